"""
Learners that take unlabeled rows
=================================

Semi-supervised learners take unlabeled rows in different ways: by ``fit(X, y,
X_unlabeled)`` or, as in scikit-learn, among the labeled rows with the label -1. dsel
passes unlabeled rows to a learner whose ``fit`` has an argument ``pool``. It gets one
half of them, and is compared on the other half, so that the certificate holds.
"""

# %%
# Wrap it
# -------
# ``pool.reduce`` reads the rows block by block. A learner that wants them all in memory
# puts the blocks together.

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

import dsel


def rows_of(block, numbers):
    return block


def stack_rows(earlier, later):
    return np.concatenate([earlier, later])


class WithPool(ClassifierMixin, BaseEstimator):
    """A learner of scikit-learn that takes unlabeled rows with the label -1."""

    def __init__(self, learner, gamma=20.0):
        self.learner = learner
        self.gamma = gamma

    def fit(self, X, y, pool=None):
        unlabeled = X[:0] if pool is None else pool.reduce(rows_of, stack_rows)
        rows = np.concatenate([X, unlabeled])
        self.classes_, codes = np.unique(y, return_inverse=True)
        codes = np.concatenate([codes, np.full(len(unlabeled), -1)])
        self.learner_ = clone(self.learner).set_params(gamma=self.gamma)
        self.learner_.fit(rows, codes)
        return self

    def predict(self, X):
        return self.classes_[self.learner_.predict(X)]


# %%
# Search it
# ---------
# For a learner with ``fit(X, y, X_unlabeled)`` the last line of ``fit`` is
# ``self.learner_.fit(X, y, unlabeled)``. The plan says which rows it gets.

X, y = load_digits(return_X_y=True)
X = X / 16
order = np.random.default_rng(0).permutation(len(y))
labeled, rest = order[:150], order[150:]
plan = dsel.plan_search(
    WithPool(LabelSpreading(max_iter=100)),
    {"gamma": [0.5, 2.0, 8.0]},
    X[labeled],
    y[labeled],
    X[rest],
    cv=3,
    random_state=0,
)
print(plan)
outcome = plan.run()
print(outcome)
wrong = outcome.model.predict(X[rest]) != y[rest]
print(f"Observed {100 * wrong.mean():.1f}% on the labels of the unlabeled rows")

# %%
# The error of every candidate on held-out folds:

outcome.results.dsel.plot()
