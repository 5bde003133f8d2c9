"""
Keep all models, one predicts each row
======================================

Cross-validation trains each candidate many times and keeps one. Here each candidate is
trained once, all are kept, and a small hold-out set shows how unusual a prediction is.
"""

# %%
# Three hundred labeled digits; the others have labels that only we may look at.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.svm import SVC

from dsel.datasets import load_digits_problem
from dsel.nonconformity import NonconformityClassifier

problem = load_digits_problem(n_labeled=300)
grid = {"C": [0.5, 2.0, 8.0], "gamma": [0.003, 0.03, 0.3]}

# %%
# One training of nine models; 50 rows are held out to measure their scores.

model = NonconformityClassifier(SVC(), grid, random_state=0)
model.fit(problem.X, problem.y)
print(f"{len(model.params_)} models, all kept")

# %%
# What the held-out rows say of each model, over the grid: its errors, and how confident
# it is on these rows. Neither chooses anything.

print(model.results_.estimate.sel(criterion="validation_error").to_pandas())

# %%
# For every row one model is chosen: the smaller its critical epsilon, the more
# confident the prediction.

wrong = model.predict(problem.pool) != problem.pool_labels
is_confident = model.critical_epsilon(problem.pool) == 0
print(
    f"error {wrong.mean():.3f}, "
    f"of the most confident {is_confident.mean():.0%} {wrong[is_confident].mean():.3f}"
)
print("rows answered by each model:", np.bincount(model.chosen_model(problem.pool)))

# %%
# The error among the most confident predictions, by how many of them are kept:

order = np.argsort(model.critical_epsilon(problem.pool), kind="stable")
kept = np.arange(1, len(order) + 1)
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(100 * kept / len(order), 100 * np.cumsum(wrong[order]) / kept)
ax.set_title(
    "Confident answers are wrong less often\n"
    "Error of the pool rows that are kept, by how many are kept"
)
ax.set_xlabel("% of the rows, the most confident first")
ax.set_ylabel("error among them, %")

# %%
# Regions: with a model fixed in advance the true label is missed in 10% at most.

region = model.predict_set(problem.pool, 0.1, model=4)
missed = ~region[np.arange(len(wrong)), problem.pool_labels]
print(
    f"model 4 misses {missed.mean():.3f}, {region.sum(axis=1).mean():.2f} labels a row"
)

# %%
# What is certain: the bound by rows that were never used, at 95%.

certificate = model.certify(problem.pool[:400], problem.pool_labels[:400], delta=0.05)
print(certificate.reading())
