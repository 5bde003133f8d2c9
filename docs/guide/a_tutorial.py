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
# 800 rows keep their labels. Which ones is drawn at random, as assumption A1 asks. The
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
# 2. What can be hoped for?
# -------------------------
# Before a label is used, ``plan_bound`` says what each certificate gives on average. We
# guess an error of 10 % and that the model of all rows differs from a fold's model on
# 5 % of the rows.

expected = dsel.plan_bound(len(labeled), len(others), 12, 0.05, 0.10, 0.05)
print(
    expected.bound.sel(certificate=["cv_bound", "best_fold", "nested"])
    .round(3)
    .to_pandas()
)

# %%
# A nested search has the smallest one, since its bound does not grow with the number
# of candidates. A plan compares such numbers itself (for an error of 10 % and a
# disagreement of 2 %) and takes the smallest, before a label is used; ``criterion=``,
# ``certificate=`` and ``cv=`` name another one.
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
    duplicates="keep",
    random_state=0,
)
print(plan)

# %%
# ``duplicates="keep"`` says: equal rows are different records that happen to look
# alike. The default, ``"refuse"``, stops where a labeled row stands in the pool, too.
#
# 4. Run and choose
# -----------------

folder = tempfile.TemporaryDirectory()
out = Path(folder.name) / "results"
results = plan.run(out=out)
choice = dsel.select(results)
print(choice)

# %%
# 5. Read the certificate
# -----------------------
# The text says where the number comes from, and what you declare and dsel cannot check.

print(choice.certificate.reading())

# %%
# The ledger of assumptions as a table:

pd.set_option("display.max_colwidth", None)
results.dsel.assumptions

# %%
# 6. Look closer
# --------------
# The cube is an ``xarray.Dataset`` of counts over the grid and the folds.

print(results[["fold_errors", "inner_errors", "status"]])

# %%

results.dsel.plot.surface()

# %%
# 7. Use the model
# ----------------
# Here, and only here, the hidden labels are used, to see whether the bound holds.

model = plan.deployed(choice)
error = np.mean(model.predict(X[others]) != y[others])
print(f"bound {choice.bound:.4f}, cross-validation", end=" ")
print(
    f"{float(results.dsel.table().cv_error[choice.candidate]):.4f}, truth {error:.4f}"
)

# %%
# 8. Keep and open again
# ----------------------
# Everything is in ``out``: the counts, the cube, what delta was spent on. Running the
# same plan again counts nothing anew; opening needs no plan.

again = dsel.open_results(out)
print(dsel.select(again).certificate == choice.certificate)
folder.cleanup()

# %%
# From here: :doc:`b_which_certificate`, :doc:`c_how_many_labels`, :doc:`d_assumptions`.
