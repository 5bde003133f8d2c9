"""
Which certificate?
==================

A certificate is a rule that turns counts into a bound. They differ in which model the
bound is about, in whether they need a pool, and in how small they are. The default is
``nested``; if you take another one, do so before you see the results (A5).
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
#    * - The smallest bound
#      - ``nested``: the model of one fold; no pool is needed
#    * - The model of all labels
#      - ``nested`` with a pool and ``deploy="all_rows"``
#    * - Any procedure picks the model (AutoML, a person, ``GridSearchCV``)
#      - ``dsel.certify``, which is ``nested`` for it
#    * - A bound for every candidate at once, and a choice by hand
#      - ``best_fold``, or ``cv_bound`` as the paper has it; both need a pool
#    * - One held-out part of the labels, all candidates at once
#      - ``holdout``
#
# The theory pages have the statement and the proof of each one.
#
# The numbers
# -----------
# What each certificate gives on average for 225 candidates, ``delta = 0.05`` and
# 100,000 pool rows. ``one_fold`` and ``all_rows`` are the two numbers of ``nested``;
# ``holdout_20_percent`` is what a search on 80% of the labels and a test on the
# rest would give. Columns are numbers of folds.

import pandas as pd
from matplotlib import pyplot as plt

import dsel
from dsel import plots

cases = {
    (n, error): dsel.plan_bound(
        n, 100_000, n_candidates=225, error=error, cv=(2, 3, 5, 10)
    )
    for n, error in ((500, 0.10), (5_000, 0.05), (50_000, 0.02))
}
tables = {
    f"{n:,} labels, error {error:g}": plan.bound.clip(max=1).to_pandas()
    for (n, error), plan in cases.items()
}
pd.concat(tables, axis=1).round(3)

# %%
# Fewer folds give smaller bounds, for models that have seen fewer labels:

cases[500, 0.10].seen.to_pandas().round(2)

# %%
# A picture of the second case:

_, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
plots.plot_bound_plan(cases[5_000, 0.05], ax=ax)

# %%
# What is guessed here, and where a 20% hold-out set is as good, is said in words:

for (n, error), plan in cases.items():
    print(f"{n:,} labels, error {error:g}:", *plan.attrs["remarks"])

# %%
# The same on real rows: :doc:`/gallery/compare_certificates`.
