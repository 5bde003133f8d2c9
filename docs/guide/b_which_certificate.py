"""
Which certificate?
==================

A certificate is a rule that turns counts into a bound. They differ in which model the
bound is about, in whether they need a pool, and in how small they are. With a pool and
no other wish dsel takes the one that is expected to be smallest for the model of all
labeled rows. Whoever names another one does so before the results are seen (A5).
"""

# %%
# The decision
# ------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - Your situation
#      - Certificate
#    * - No pool; a model of part of the rows is enough
#      - ``best_fold_model`` by ``certify_selection``
#    * - A pool, a grid, and the smallest bound for the model of all labeled rows
#      - ``nested`` (no pool: ``nested_fold_model``)
#    * - A pool; any procedure picks the model (AutoML, a person,
#        ``GridSearchCV``)
#      - ``best_fold`` by ``certify_selection``
#    * - A bound for every candidate at once, and the choice by it
#      - ``cv_bound``
#    * - A model of a part of the rows, one test part
#      - ``holdout_bound``
#
# The theory pages have the statement and the proof of each one.
#
# The numbers
# -----------
# What each certificate gives on average for 225 candidates, ``delta = 0.01``, 100,000
# pool rows, and models of ten folds that differ from the model of all rows on 2 % of
# rows; with fewer folds they have seen fewer rows and differ more, which ``plan_bound``
# takes into account. Columns are numbers of folds. For certificates that hold out a
# part, a fifth is held out. NaN: a nested search needs three folds.

import pandas as pd
from matplotlib import pyplot as plt

import dsel
from dsel import plots

cases = {(500, 0.10): None, (5_000, 0.05): None, (50_000, 0.02): None}
for n_labeled, error in cases:
    cases[n_labeled, error] = dsel.plan_bound(n_labeled, 100_000, 225, 0.01, error)

tables = {
    f"{n:,} labels, error {error:g}": plan.bound.clip(max=1).to_pandas()
    for (n, error), plan in cases.items()
}
pd.concat(tables, axis=1).round(3)

# %%
# Read it like this: with 500 labels and an error of 10 %, the bound of the paper
# (``cv_bound``, ten folds) is above 0.4, and the best certificate for the model of all
# rows is ``nested``, near 0.2: it searches once without each fold, and its bound does
# not grow with the number of candidates. ``certify_selection`` does the same for any
# procedure, with the numbers of one candidate:

one = {
    f"{n:,} labels, error {error:g}": dsel.plan_bound(n, 100_000, 1, 0.01, error)
    .bound.sel(certificate=["best_fold", "best_fold_model"], n_folds=[2, 3, 5])
    .to_pandas()
    for n, error in cases
}
pd.concat(one, axis=1).round(3)

# %%
# What ``plan_bound`` recommends
# ------------------------------
# The smallest bound for the model of all labeled rows.

for (n, error), plan in cases.items():
    share = float(plan.recommended_certify_share)
    how = (
        f"certify_rows={share:g}"
        if share == share
        else f"cv={int(plan.recommended_n_folds)}"
    )
    print(
        f"{n:6,} labels, error {error:4}: {plan.recommended.values!s:22s} "
        f"with {how:16s} bound {float(plan.recommended_bound):.3f}"
    )

# %%
# A picture of the second case; the recommended certificate is orange. The lower lines
# are about other models.

_, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
plots.plot_bound_plan(cases[5_000, 0.05], ax=ax)

# %%
# Three things help: fewer folds, the best fold in place of the mean of all folds, and a
# bound that does not grow with the number of candidates (``nested``, ``certify_rows``,
# ``certify_selection``).
