"""
Several certificates of one search
==================================

A certificate that is wanted beside the first one has to be paid for, because the one
that looks best afterwards would fail more often than declared. ``reserve=`` sets a part
of the failure probability aside for that.
"""

# %%
# 1. Declare
# ----------
# The search may fail with probability 0.03, what is added later with 0.02: together
# 0.05.

from sklearn.svm import SVC

import dsel
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=600)
plan = dsel.plan_search(
    SVC(),
    {"C": [0.5, 2.0, 8.0], "gamma": [0.01, 0.03]},
    problem.X,
    problem.y,
    problem.pool,
    criterion="cv_bound",
    cv=3,
    delta=0.03,
    reserve=0.02,
    random_state=0,
)
results = plan.run()
print(results.dsel.spent.to_string())

# %%
# 2. Add one
# ----------
# The cube holds counts, so another certificate costs no fit. What it costs of delta is
# written down.

more = results.dsel.add_certificate("best_fold", delta=0.02)
print(more.dsel.spent.to_string())
for name, delta in (("cv_bound", 0.03), ("best_fold", 0.02)):
    choice = dsel.select(more, "cv_bound", certificate=name, delta=delta)
    print(choice.certificate)

# %%
# 3. Ask for more than was declared
# ---------------------------------
# The number is still computed. It is not certified, and the reason comes first.

late = dsel.select(more, "cv_bound", certificate="merged_folds", delta=0.05)
print(late.certificate.reading())

# %%
# 4. Every criterion that these counts answer, for orientation
# ------------------------------------------------------------

columns = ["params", "estimate", "is_guarantee"]
results.dsel.compare()[columns].to_dataframe().dropna()

# %%
# What the smallest bounds are made of: errors on labeled rows, and disagreement on the
# pool.

results.dsel.plot.terms()
