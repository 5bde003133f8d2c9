"""
A run that is killed, and goes on
=================================

With ``out=`` counts are on disk soon after they are made. A run that was killed goes on
with the same line: what was counted is not counted again, and the result is the same as
if nothing had happened.
"""

# %%
# Kill it in the middle
# ---------------------
# The script runs itself in a second process and kills that process as soon as the
# journal of the store holds something.

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import dsel
from dsel.datasets import load_digits_problem

RUN = """
from sklearn.ensemble import RandomForestClassifier
import dsel
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=300)
plan = dsel.plan_search(
    RandomForestClassifier(20), {"max_depth": [2, 4, 8], "max_features": [4, 8]},
    problem.X, problem.y, problem.pool, random_state=0)
plan.run(out="results", n_jobs=1)
"""
folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
process = subprocess.Popen([sys.executable, "-c", RUN], cwd=place)
while process.poll() is None and len(list(place.glob("results/journal/*"))) < 2:
    time.sleep(0.05)
process.kill()
process.wait()
print(f"the process ended with {process.returncode}")

# %%
# The same line again
# -------------------

problem = load_digits_problem(n_labeled=300)
plan = dsel.plan_search(
    RandomForestClassifier(20),
    {"max_depth": [2, 4, 8], "max_features": [4, 8]},
    problem.X,
    problem.y,
    problem.pool,
    random_state=0,
)
outcome = plan.run(out=place / "results")
print(outcome)

# %%
# The same without an interruption
# --------------------------------

whole = plan.run()
for name in ("fold_errors", "outer_errors", "outer_disagreements"):
    same = np.array_equal(outcome.results[name], whole.results[name], equal_nan=True)
    print(f"{name}: the same counts {same}")
print(f"the same certificates {outcome.certificates == whole.certificates}")
folder.cleanup()
