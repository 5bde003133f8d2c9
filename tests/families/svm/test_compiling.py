"""Compiling happens once in an environment; then its cache is read."""

import os
import subprocess
import sys

import pytest

FIRST_USE = """
import gc
import numpy as np
from numba.core.dispatcher import Dispatcher
from sklearn.svm import SVC
from dsel import SemiSupervisedSearchCV
from dsel.nonconformity import NonconformityClassifier

X = np.random.default_rng(0).normal(size=(1100, 3))
y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.5)
SemiSupervisedSearchCV(SVC(), {"C": [1.0]}, n_jobs=1).fit(X[:500], y[:500], pool=X)
NonconformityClassifier(SVC(), {"C": [1.0]}).fit(X[:500], y[:500])
ours = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
ours = [each for each in ours if each.py_func.__module__.startswith("dsel.")]
for each in ours:
    for signature in each.stats.cache_misses:
        print("compiled", each.py_func.__name__, signature)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_use__compiles_what_later_ones_read(tmp_path):
    first, later = (
        {
            line
            for line in subprocess.run(
                [sys.executable, "-c", FIRST_USE],
                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.splitlines()
            if line.startswith("compiled ")
        }
        for _ in range(2)
    )
    # Which rows are in doubt, and so what is compiled, may differ between two runs.
    assert first
    assert not first & later
