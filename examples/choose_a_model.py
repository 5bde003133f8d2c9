"""
Choose a model and say how wrong it can be
==========================================

The main job: some labeled rows, more rows without labels, a grid of candidates. The
result is a fitted model and a bound on its error.
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
# A plan checks all arguments and fits nothing. It says what will be done.

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

outcome = plan.run()
print(outcome)

# %%
# The search was made once without each fold, so that each fold tests the model that was
# chosen without it. Two models are certified at once: that of one fold, which is
# deployed, and that of all labels; ``deploy="all_rows"`` deploys the latter. What
# the second number rests on:

print(outcome.certificates["all_rows"].reading())

# %%
# One row for each candidate. ``pruned`` candidates were dropped after a first round.

outcome.results.dsel.table()

# %%
# The surface
# -----------
# The frame marks the chosen candidate; triangles stand for dropped ones.

outcome.results.dsel.plot()

# %%
# Both bounds, and what a 20% hold-out set would have given on average:

outcome.results.dsel.plot.certificates()

# %%
# The truth
# ---------
# Nobody has it in practice. Here the labels of the pool exist and nothing above has
# used them.

for deploy, model in outcome.models.items():
    error = np.mean(model.predict(problem.pool) != problem.pool_labels)
    bound = outcome.certificates[deploy].bound
    print(f"{deploy}: bound {bound:.4f}, error on the pool's true labels {error:.4f}")
