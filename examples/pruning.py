"""
Candidates that cannot win are dropped
======================================

A candidate that is far behind need not be fitted on all folds. ``prune="exact"`` drops
it once it cannot win any more, even if it made no error in what is not counted yet. So
what is chosen is exactly what the full grid would choose. ``prune="halving"``, the
default, keeps the best quarter after a first round; it saves more, and may choose
another candidate. Either way the bound holds, since each search is tested on a fold
that it has not seen.
"""

# %%
# The same grid three times
# -------------------------

from matplotlib import pyplot as plt
from sklearn.svm import SVC

import dsel
from dsel import plots
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=500)
exponents = {"C": range(-4, 8, 2), "gamma": range(-10, 0, 2)}
grid = {name: [2.0**each for each in values] for name, values in exponents.items()}
found = {}
for prune in ("halving", "exact", False):
    plan = dsel.plan_search(
        SVC(),
        grid,
        problem.X,
        problem.y,
        problem.pool,
        prune=prune,
        random_state=0,
    )
    found[prune] = plan.run()

# %%
# What was left out
# -----------------
# Each fit has not seen a pair of folds. A pair that was fitted has a count; NaN says
# that nothing was counted.

for prune, outcome in found.items():
    fits = int(outcome.pair_results.fit_seconds.notnull().sum())
    choice = outcome.choice
    print(
        f"prune={prune!s:8} fits {fits:3d}  choice {choice.params}  "
        f"bound {choice.bound:.4f}"
    )

# %%
# Triangles are candidates that were dropped.

figure = plt.figure(figsize=(6.4, 12), layout="constrained")
for part, (prune, outcome) in zip(figure.subfigures(3), found.items(), strict=True):
    part.suptitle(f"prune={prune!r}", x=0.02, ha="left")
    plots.plot_surface(outcome.results, ax=part.subplots())
plt.show()
