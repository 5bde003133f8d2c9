"""Compiling happens once in an environment; then its cache is read."""

import json
import os
import subprocess
import sys

import pytest

FIRST_USE = """
import gc, json
import numpy as np
from numba.core.dispatcher import Dispatcher
from sklearn.svm import SVC
from dsel.data.cache import ByteCache
from dsel.data.splits import Split
from dsel.families.family import Candidate
from dsel.families.svm.family import KernelSVMFamily

X = np.random.default_rng(0).normal(size=(1100, 3))
y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.5)
rows = np.arange(len(X))
split = Split(0, "full", rows, rows[:9])
family = KernelSVMFamily(np.unique(y), 0)
piece = family.fit([Candidate(0, {}, SVC())], X, y, [split], budget=ByteCache(2**28))
piece.predict(X, [np.array(0)])
piece.scores(X[:9], 0)
ours = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
ours = [each for each in ours if each.py_func.__module__.startswith("dsel.")]
print(json.dumps(sum(sum(each.stats.cache_misses.values()) for each in ours)))
"""


def compiled_by_a_process(folder):
    """Return how many functions a new process compiles, with its cache in a folder."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(found.stdout)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_use__compiles_what_later_ones_read(tmp_path):
    assert compiled_by_a_process(tmp_path) > 0
    assert compiled_by_a_process(tmp_path) == 0
