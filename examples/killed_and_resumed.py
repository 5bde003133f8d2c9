"""
A run that is killed, and goes on
=================================

With ``out=`` every finished piece of a run is on disk soon after it is done. A run that
was killed goes on with the same line: what was counted is not counted again, and the
result is the same as if nothing had happened.
"""

# %%
# Kill it in the middle
# ---------------------
# The script runs itself in a second process and kills that process as soon as the
# store holds something.

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
while process.poll() is None and len(list(place.glob("results/**/c/*"))) < 2:
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
results = plan.run(out=place / "results")
print(dsel.select(results))

# %%
# The same without an interruption
# --------------------------------

whole = plan.run()
for name in ("fold_errors", "inner_errors"):
    same = np.array_equal(results[name], whole[name], equal_nan=True)
    print(f"{name}: the same counts {same}")

# %%
# Where the time of the fits and the pool went:

results.dsel.plot.timing()
folder.cleanup()
