"""Estimators that behave in ways real ones rarely do; workers import them from here."""

import operator
import os
import time
from pathlib import Path

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
from tests.clusters import wait_until

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
    """Answers with the sign of a column, after a while or never."""

    def __init__(self, seconds=0.0, dies=False):
        self.seconds, self.dies = seconds, dies

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.dies:
            os._exit(9)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


class Rememberer(ClassifierMixin, BaseEstimator):
    """Answers with the sign of a column, on rows of its pool (or on others) wrongly."""

    def __init__(self, errs_on_pool=True):
        self.errs_on_pool = errs_on_pool

    def fit(self, X, y, pool=None):
        rows = [] if pool is None else pool.reduce(_contents, operator.add)
        self.remembered_ = frozenset(rows)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        in_pool = [row in self.remembered_ for row in _contents(np.asarray(X))]
        wrong = np.array(in_pool, dtype=bool) == self.errs_on_pool
        return self.classes_[((X[:, 0] > 0) ^ wrong).astype(int)]


def _contents(X, rows=None):
    return [row.tobytes() for row in np.ascontiguousarray(X)]


class KillsWhenSent(ClassifierMixin, BaseEstimator):
    """Answers with the sign of a column; its process dies when it is sent, fitted."""

    def __init__(self, pids=(), reverse=False):
        self.pids, self.reverse = pids, reverse

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[((X[:, 0] > 0) != self.reverse).astype(int)]

    def __getstate__(self):
        if hasattr(self, "classes_"):
            for pid in (*self.pids, os.getpid()):
                os.kill(pid, 9)
        return super().__getstate__()


class WaitsForFile(LogisticRegression):
    """A logistic regression that answers for a thousand rows once a file is there."""

    def __init__(self, path=""):
        super().__init__()
        self.path = path

    def predict(self, X):
        if len(X) > 1000:
            wait_until(Path(self.path).exists, what=self.path)
        return super().predict(X)
