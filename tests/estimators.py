"""Estimators that behave in ways real ones rarely do; workers import them from here."""

import os
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


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
