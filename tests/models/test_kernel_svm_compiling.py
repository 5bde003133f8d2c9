"""How long compiling takes: once in an environment, then read from its cache."""

import json
import os
import subprocess
import sys

import pytest

MOST_SECONDS = 10.0

FIRST_USE = """
import json, time
import numpy as np
import numba
from sklearn.svm import SVC
from dsel.data.cache import ByteCache
from dsel.data.trainings import Training
from dsel.models.base import Candidate
from dsel.models.kernel_svm import KernelSVMFamily

X = np.random.default_rng(0).normal(size=(1100, 3))
y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.5)
rows = np.arange(len(X))
training = Training(0, "full", rows, rows[:9])
started = time.process_time()
family = KernelSVMFamily(np.unique(y), 0, precision="mixed")
for limit in (2**28, 10**6):  # the whole Gram matrix, and row by row
    piece = family.fit(
        [Candidate(0, {}, SVC())], X, y, [training], budget=ByteCache(limit)
    )
piece.predict(X, [np.array(0)])
piece.scores(X[:9], [np.array(0)])
print(json.dumps(time.process_time() - started))
"""


def seconds_of_first_use(folder):
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_use__compiles_within_ten_seconds_and_once(tmp_path):
    first, second = (seconds_of_first_use(tmp_path) for _ in range(2))
    assert first < MOST_SECONDS
    assert second < MOST_SECONDS / 4
