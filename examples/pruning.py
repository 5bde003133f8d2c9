"""
Candidates that cannot win are dropped
======================================

Every bound rises with each error and each disagreement that is counted. So with what
is not counted yet set to zero, a candidate's bound is a lower limit of its final
number. Once this limit is above the final bound of another candidate, the candidate
cannot win, and its remaining fits and pool passes are left out. The choice and the
bound are exactly those of the full grid.
"""

# %%
# The same grid twice
# -------------------

import numpy as np
from matplotlib import pyplot as plt
from sklearn.svm import SVC

import dsel
from dsel import plots
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=500)
grid = {"C": 2.0 ** np.arange(-4, 8, 2), "gamma": 2.0 ** np.arange(-10, 0, 2)}
found = {}
for prune in (True, False):
    plan = dsel.plan_search(
        SVC(),
        grid,
        problem.X,
        problem.y,
        problem.pool,
        criterion="cv_bound",
        cv=5,
        prune=prune,
        random_state=0,
    )
    found[prune] = plan.run(n_jobs=1)

# %%
# What was left out
# -----------------
# A fold that was fitted has a count; NaN says that nothing was counted.

for prune, results in found.items():
    folds = int(results.fold_errors.notnull().sum())
    passes = int((results.pool_rows.sum("fold") > 0).sum())
    choice = dsel.select(results)
    print(
        f"prune={prune!s:5}  fold fits {folds:3d}  candidates that read the pool "
        f"{passes:2d}  choice {choice.params}  bound {choice.bound:.6f}"
    )

# %%
# With pruning, hatched cells show the lower limit at which a candidate was dropped;
# without it every cell has its number.

figure, axes = plt.subplots(2, 1, figsize=(6.4, 8), layout="constrained")
for ax, (prune, results) in zip(axes, found.items(), strict=True):
    plots.plot_surface(results, ax=ax)
    ax.set_title(f"prune={prune}: {ax.get_title('left')}", loc="left", fontsize=10)
plt.show()
