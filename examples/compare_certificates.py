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
from matplotlib import pyplot as plt
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

rows = {}
for name, outcome in found.items():
    for deploy, certificate in outcome.certificates.items():
        predictions = outcome.models[deploy].predict(problem.pool)
        error = np.mean(predictions != problem.pool_labels)
        rows[f"{name}, {certificate.model_text}"] = certificate.bound, error
for label, (bound, error) in rows.items():
    print(f"{label:42} error at most {bound:.1%}, true {error:.1%}")

# %%
# The two numbers of the nested search hold at once. The others are one each.

figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
bounds, errors = 100 * np.array([*rows.values()]).T
ax.barh([*rows], bounds, height=0.5, color="#4a7fb5", label="bound, 95% confidence")
ax.plot(errors, [*rows], "o", color="#22303c", label="true error, on the pool")
ax.invert_yaxis()
ax.set_title(
    "Each bound is above the true error of its model\n"
    "Certificates of searches, from 600 labeled rows"
)
ax.set_xlabel("error, %")
figure.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# What the bound of the paper is made of, for its best candidates:

found["cv_bound"].results.dsel.plot.terms()
