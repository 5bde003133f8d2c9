"""
Ten minutes with dsel
=====================

You have some labeled rows and many rows without labels. You want one model and a number
that says how wrong it can be. This page goes through the whole method once: plan, run,
choose, read, look closer, keep.

The rows are pixels of satellite images (*satimage*) where the folder of benchmark sets
is there (``DSEL_DATA`` names it), else scikit-learn's images of digits.
"""

# %%
# 1. Rows
# -------
# 800 rows keep their labels. Which ones is drawn at random, as A1 requires. The
# others are the pool.

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.datasets import load_set

if (Path(os.environ.get("DSEL_DATA", "")) / "satimage.npz").exists():
    rows = load_set("satimage")
    name, X, y = "satimage", rows.X.astype(float), rows.classes[rows.y]
else:
    X, y = load_digits(return_X_y=True)
    name = "digits"
order = np.random.default_rng(0).permutation(len(y))
labeled, others = order[:800], order[800:]
print(f"{name}: {len(labeled)} labeled rows, {len(others)} pool rows")

# %%
# 2. What can be expected?
# ------------------------
# Before a label is used, ``plan_bound`` says what each certificate gives on average. We
# guess an error of 10%.

expected = dsel.plan_bound(len(labeled), len(others), n_candidates=12, error=0.10)
expected.bound.sel(n_folds=5).round(3).to_dataframe()[["bound"]]

# %%
# The first two rows are the two numbers of a nested search, which is the default: its
# bounds do not grow with the number of candidates. ``certificate=`` and ``cv=`` name
# another one.
#
# 3. Plan
# -------
# All preprocessing is inside the pipeline, so that each fold's scaler sees only that
# fold's training rows (A3).

plan = dsel.plan_search(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": [1, 4, 16], "svc__gamma": [0.003, 0.01, 0.03, 0.1]},
    X[labeled],
    y[labeled],
    X[others],
    delta=0.05,
    random_state=0,
)
print(plan)

# %%
# 4. Run
# ------

folder = tempfile.TemporaryDirectory()
out = Path(folder.name) / "results"
outcome = plan.run(out=out)
print(outcome)

# %%
# 5. Read the certificates
# ------------------------
# Two models are certified at once: that of one fold, which mostly has the smaller
# bound and is deployed, and that of all labels (``deploy="all_rows"`` deploys it).
# The text says where a number comes from, and what you declare and dsel cannot check.

print(outcome.certificates["all_rows"].reading())

# %%
# The assumptions as a table:

pd.set_option("display.max_colwidth", None)
outcome.results.dsel.assumptions

# %%
# 6. Look closer
# --------------
# The cube is an ``xarray.Dataset`` of counts over the grid and the folds.

print(outcome.results[["fold_errors", "fold_answers", "status"]])

# %%

outcome.results.dsel.plot()

# %%
# 7. Use a model
# --------------
# Here, and only here, the hidden labels are used, to see whether the bound holds.

for deploy, model in outcome.models.items():
    error = np.mean(model.predict(X[others]) != y[others])
    bound = outcome.certificates[deploy].bound
    print(f"{deploy}: bound {bound:.4f}, truth {error:.4f}")

# %%
# 8. Keep and open again
# ----------------------
# Everything is in ``out``: the counts, the cube, the certificates. Running the same
# plan again counts nothing anew; opening needs no plan.

again = dsel.open_results(out)
print(dsel.select(again).certificates == outcome.certificates)
folder.cleanup()

# %%
# From here: :doc:`b_which_certificate`, :doc:`c_how_many_labels`, :doc:`d_assumptions`.
