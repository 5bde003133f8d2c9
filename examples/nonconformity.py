"""Keep every model of a grid, and let each row choose the one that answers it.

Cross-validation trains each candidate ten times and keeps one. Here each is trained
once, all are kept, and a small held-out part tells how strange an answer is.

    python examples/nonconformity.py
"""

import numpy as np
from sklearn.svm import SVC

from dsel.datasets import load_digits_problem
from dsel.searches import MaximumMarginClassifier, NonconformityClassifier

# 1. Three hundred labeled digits; the others have labels that only we may look at.
problem = load_digits_problem(n_labeled=300)
grid = {"C": [0.5, 2.0, 8.0], "gamma": [0.003, 0.03, 0.3]}

# 2. One training of nine machines; 50 rows are held out to take their measure.
model = NonconformityClassifier(SVC(), grid, ties="margin", random_state=0)
model.fit(problem.X, problem.y)
print(f"{len(model.params_)} models, {model.nbytes_ / 2**20:.1f} MiB, all kept")

# 3. Every row chooses: the smaller its critical epsilon, the surer its answer.
wrong = model.predict(problem.pool) != problem.pool_labels
sure = model.critical_epsilon(problem.pool) == 0
print(
    f"error {wrong.mean():.3f}, "
    f"of the {sure.mean():.0%} surest {wrong[sure].mean():.3f}"
)
print("rows answered by each model:", np.bincount(model.chosen_model(problem.pool)))

# 4. Regions: with a model fixed in advance the true label is missed in 10 % at most.
region = model.predict_set(problem.pool, 0.1, model=4)
missed = ~region[np.arange(len(wrong)), problem.pool_labels]
print(
    f"model 4 misses {missed.mean():.3f}, {region.sum(axis=1).mean():.2f} labels a row"
)

# 5. What is certain: the bound by rows that were never used, at 95 %.
print(
    model.certify(problem.pool[:400], problem.pool_labels[:400], delta=0.05).reading()
)

# 6. The rival holds nothing out and trusts the largest margin.
rival = MaximumMarginClassifier(SVC(), grid).fit(problem.X, problem.y)
print(f"largest margin: error {1 - rival.score(problem.pool, problem.pool_labels):.3f}")
