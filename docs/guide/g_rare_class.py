"""
Find the rare class
===================

Where one row in twenty is a fraud, "the error is at most 5%" says nothing: a model
that never says "fraud" keeps that promise. What matters is how many frauds are missed,
how many alarms are false, or what both cost. A search can rank by that, choose the
threshold by it, and certify it.
"""

# %%
# Rows
# ----
# 4,000 labeled rows with 177 frauds, and a pool of 16,000. The labels of the pool
# are looked at in the end only, to see whether what was promised holds.

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.model_selection import FixedThresholdClassifier

import dsel
from dsel import losses, plots

rows, numbers = make_classification(
    20_000, 8, n_informative=6, n_clusters_per_class=1, weights=[0.95], flip_y=0,
    random_state=3,
)  # fmt: skip
labels = np.where(numbers == 1, "fraud", "ok")
X, y, pool, truth = rows[:4000], labels[:4000], rows[4000:], labels[4000:]
print((y == "fraud").sum(), "frauds in", len(y), "labeled rows")

# %%
# What mistakes cost
# ------------------
# A missed fraud costs 50, a false alarm 1. Thresholds are candidates like all others:
# ``FixedThresholdClassifier`` says "fraud" where the probability is at least the
# threshold. So the search without a fold chooses the threshold, too, and the fold that
# it is tested on has no part in it. A threshold that is moved afterwards, because of
# what was seen, is not covered by any limit below.
#
# Classes and costs are declared before the run, and so is ``report``.

learner = FixedThresholdClassifier(
    LogisticRegression(), pos_label="fraud", response_method="predict_proba"
)
grid = {"threshold": [0.01, 0.02, 0.05, 0.1, 0.5], "estimator__C": [0.1, 1.0]}
costs = losses.cost({("fraud", "ok"): 50, ("ok", "fraud"): 1})
plan = dsel.plan_search(
    learner, grid, X, y, pool, loss=costs, report=["fraud", "ok"], random_state=0,
    prune=False,
)  # fmt: skip
print(plan)

# %%
outcome = plan.run()
print(outcome)

# %%
# Costs are no percents: the number is what a row costs on average. Its limit is far
# above what was seen, since each missed fraud among the 800 rows of a fold adds .06.

plots.plot_surface(outcome.results)

# %%
# How many are found, how many alarms are true
# --------------------------------------------
# Each number has its limit, and all of them hold at once, together with the cost above.
# Those of the model trained on all labels follow: it is likely better, and its limits
# come from the pool, too.

print(outcome.certified_report())
print(outcome.certified_report("all_rows"))

# %%
plots.plot_certified_report(outcome.certified_report())

# %%
# The pool's true labels, which nobody has outside of an example:

print(classification_report(truth, outcome.model.predict(pool), digits=3))

# %%
# One number, and nothing else
# ----------------------------
# A report divides ``delta`` among all of its numbers. If you need one promise only,
# declare only that: its limit is tighter. Recall alone is no goal, since always saying
# "fraud" misses none, so the threshold is fixed here and other parameters are chosen:

fixed = FixedThresholdClassifier(
    LogisticRegression(), pos_label="fraud", response_method="predict_proba",
    threshold=0.02,
)  # fmt: skip
search = dsel.SemiSupervisedSearchCV(
    fixed, {"estimator__C": [0.1, 1.0, 10.0]}, loss=losses.recall("fraud"),
    random_state=0,
)  # fmt: skip
print(search.fit(X, y, pool).choice_)

# %%
# Few rows give wide limits
# -------------------------
# A recall is counted in the rows of its class alone: here some 35 in a fold. What to
# expect is known before a label is bought, here for a class with this share of the rows
# of which one in ten is missed:

hoped = dsel.plan_bound(4000, 16_000, n_candidates=10, error=0.1, class_share=0.045)
print(hoped.bound.sel(n_folds=5).to_pandas().dropna().round(3))

# %%
# The theory has the statements, and what has no certificate: :doc:`/theory/by_class`.
