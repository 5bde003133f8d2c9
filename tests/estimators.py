"""Estimators that behave in ways real ones rarely do; workers import them from here."""

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dsel.least_squares import KernelLeastSquaresClassifier
from dsel.mcpl import SemiSupervisedLDA
from dsel.search import plan_search

FAMILIES = {
    "kernel svm": (SVC(), {"C": [0.5, 4.0, 64.0], "gamma": [0.02, 0.5]}),
    "pipeline": (make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}),
    "least squares": (
        KernelLeastSquaresClassifier(width=2.0),
        {"regularization": [1e-3, 1.0]},
    ),
    "linear": (LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}),
    "steps": (
        make_pipeline(PCA(2), LogisticRegression(max_iter=500)),
        {"logisticregression__C": [0.1, 1.0]},
    ),
    "several": (None, [KNeighborsClassifier(), SVC(), SVC(C=8.0)]),
    "takes a pool": (SemiSupervisedLDA(ridge=1.0), {"ridge": [0.1, 1.0]}),
}
"""An estimator of each family with its grid."""


class Sleeper(ClassifierMixin, BaseEstimator):
    """Answers with the sign of a column, after a while."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def plan_of_sleepers(seconds, pool_rows=0, **options):
    """Return a plan that takes so long for each of its candidates."""
    X = np.random.default_rng(0).normal(size=(60 + pool_rows, 2))
    rows = X[:60], X[:60, 0] > 0, X[60:] if pool_rows else None
    asked = {"cv": 2, "random_state": 0, "prune": False, **options}
    return plan_search(Sleeper(), {"seconds": seconds}, *rows, **asked)


class Drawn(ClassifierMixin, BaseEstimator):
    """A random linear model, from a generator of its own; `scale` is for the grid."""

    def __init__(self, generator=None, scale=1.0):
        self.generator = generator
        self.scale = scale

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        generator = self.generator or np.random.default_rng()
        self.weights_ = generator.normal(size=(X.shape[1], len(self.classes_)))
        return self

    def predict(self, X):
        return self.classes_[(X @ self.weights_).argmax(axis=1)]


class OnAllRows(ClassifierMixin, BaseEstimator):
    """Answers by the sign of a column, and the other way round if it got all rows."""

    def __init__(self, n_rows=0, flip=True):
        self.n_rows = n_rows
        self.flip = flip

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.is_turned_ = self.flip and len(X) == self.n_rows
        return self

    def predict(self, X):
        is_positive = (X[:, 0] > 0) ^ self.is_turned_
        return self.classes_[is_positive.astype(int)]
