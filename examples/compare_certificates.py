"""
Four certificates
=================

A certificate is declared before the search, since one that is picked afterwards for its
small number would fail more often than declared. Here the same search is made with each
of them, to see how they differ.
"""

# %%
# The same rows, four plans
# -------------------------
# ``nested`` searches once without each fold, so that its bound does not grow with the
# number of candidates. The others bound all candidates at once: ``cv_bound`` by the
# mean of all folds, ``best_fold`` by the best one, ``holdout`` by the first alone.

import numpy as np
from sklearn.svm import SVC

import dsel
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=600)
grid = {"C": [0.5, 2.0, 8.0], "gamma": [0.003, 0.01, 0.03, 0.1]}
found = {}
for name in ("nested", "cv_bound", "best_fold", "holdout"):
    plan = dsel.plan_search(
        SVC(),
        grid,
        problem.X,
        problem.y,
        problem.pool,
        certificate=name,
        random_state=0,
    )
    found[name] = plan.run()

# %%
# Bound and truth
# ---------------

for name, outcome in found.items():
    for deploy, each in outcome.certificates.items():
        answers = outcome.models[deploy].predict(problem.pool)
        error = np.mean(answers != problem.pool_labels)
        print(
            f"{name:10} error at most {each.bound:.3f}, true {error:.3f}: {each.model}"
        )

# %%
# The two numbers of the nested search hold at once. A 20% hold-out set would test a
# model trained on 80% of the labels.

found["nested"].results.dsel.plot.certificates()

# %%
# What the bound of the paper is made of, for its best candidates:

found["cv_bound"].results.dsel.plot.terms()
