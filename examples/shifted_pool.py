"""
A pool from somewhere else
==========================

A bound assumes that labeled rows and pool rows are draws from one population (A1). No
computation can prove that. But a run tests whether a classifier can distinguish labeled
rows from pool rows, and says so.
"""

# %%
# One pool like the labeled rows, one that moved
# ----------------------------------------------

import numpy as np
from matplotlib import pyplot as plt
from sklearn.svm import SVC

import dsel

rng = np.random.default_rng(0)


def draw(n_rows, *, moved=0.0):
    """Draw rows of two classes; the features may have moved."""
    y = rng.integers(2, size=n_rows)
    X = rng.normal(size=(n_rows, 4)) + y[:, np.newaxis]
    return X + moved, y


X, y = draw(300)
pools = {"like the labeled rows": draw(3_000)[0], "moved": draw(3_000, moved=1.0)[0]}

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
bins = np.linspace(-4, 6, 41)
for name, rows in {"labeled rows": X, **pools}.items():
    label = name if rows is X else f"pool {name}"
    ax.hist(rows[:, 0], bins, density=True, histtype="step", linewidth=2, label=label)
ax.set_title(
    "One pool is like the labeled rows, the other one has moved\n"
    "The first feature of 300 labeled rows and of 3,000 rows of each pool"
)
ax.set_xlabel("first feature")
ax.set_ylabel("share of rows per unit")
fig.legend(loc="outside lower center", ncols=3)

# %%
# What the certificate says
# -------------------------

for name, pool in pools.items():
    plan = dsel.plan_search(
        SVC(), {"C": [0.1, 1], "gamma": [0.1]}, X, y, pool, cv=3, random_state=0
    )
    outcome = plan.run()
    certificate = outcome.choice.certificate
    first = certificate.assumptions[0]
    print(f"pool {name}: certified {certificate.certified}")
    print(f"  {first.name} {first.state}: {first.reason}\n")

# %%
# The whole text, in the second case:

print(certificate.reading())

# %%
# How wrong is the model there?
# -----------------------------
# Nothing can prove that without labels. A critic that agrees with the model on fresh
# labeled rows, and differs from it on the others as often as it can, gives an estimate:
# a bound only if the truth does not differ more than the critic.


from sklearn.ensemble import RandomForestClassifier


def estimate_there(model, X, y, others):
    """Return the error on labeled rows, and how much more a critic differs there."""
    near, far = model.predict(X), model.predict(others)
    n, m = len(X) // 2, len(others) // 2
    critic = RandomForestClassifier(min_samples_leaf=5, random_state=0)
    # Equal numbers of rows to agree on and to differ on, so that neither outweighs.
    k = min(n, m)
    critic.fit(np.vstack([X[:k], others[:k]]), np.append(near[:k], 1 - far[:k]))
    differs_here = np.mean(critic.predict(X[n:]) != near[n:])
    differs_there = np.mean(critic.predict(others[m:]) != far[m:])
    return np.mean(near[n:] != y[n:]), max(differs_there - differs_here, 0.0)


here, more = estimate_there(outcome.model, *draw(600), pools["moved"])
moved, truth = draw(3_000, moved=1.0)
print(f"estimate {here + more:.2f}, on fresh labeled rows {here:.2f}")
print(f"true error there {np.mean(outcome.model.predict(moved) != truth):.2f}")
