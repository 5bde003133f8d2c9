"""
Choose a model and say how wrong it can be
==========================================

The main job: some labeled rows, more rows without labels, a grid of candidates. The
result is one fitted model, and a certificate that bounds its error.
"""

# %%
# Rows
# ----
# Scikit-learn has 1,797 images of handwritten digits. We act as if 600 of them had
# labels. The other 1,197 are the *pool*: rows of the same kind without labels.

import numpy as np
from sklearn.svm import SVC

import dsel
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=600)
grid = {"C": [0.5, 2.0, 8.0], "gamma": [0.003, 0.01, 0.03, 0.1]}

# %%
# Plan
# ----
# A plan checks all arguments and computes nothing. It says what will be done, and which
# certificate is expected to be the smallest for so many rows and candidates.

plan = dsel.plan_search(
    SVC(),
    grid,
    problem.X,
    problem.y,
    problem.pool,
    delta=0.05,
    random_state=0,
)
print(plan)

# %%
# Run
# ---
# With a Dask ``Client`` in scope the same line runs on its workers; here it runs on
# local threads. The counts are the same.

results = plan.run()
choice = dsel.select(results)
print(choice.summary())
print(choice.certificate.reading())

# %%
# One row for each candidate. ``pruned`` candidates were shown not to win before all of
# their work was done.

results.dsel.table()

# %%
# The surface
# -----------
# The frame marks the chosen candidate. On hatched cells only a lower limit is known.

results.dsel.plot.surface()

# %%
# The truth
# ---------
# Nobody has it in practice. Here the labels of the pool exist and nothing above has
# used them.

model = plan.deployed(choice)
error = np.mean(model.predict(problem.pool) != problem.pool_labels)
print(f"bound {choice.bound:.4f}, error on the pool's true labels {error:.4f}")
