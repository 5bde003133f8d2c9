"""Compiling happens once in an environment; then its cache is read."""

import json
import os
import subprocess
import sys

import pytest

from dsel.families.svm.compiled_once import one_at_a_time

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
for limit in (2**28, 10**6):  # the whole Gram matrix, and row by row
    piece = family.fit(
        [Candidate(0, {}, SVC())], X, y, [split], budget=ByteCache(limit)
    )
piece.predict(X, [np.array(0)])
piece.scores(X[:9], [np.array(0)])
ours = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
ours = [each for each in ours if each.py_func.__module__.startswith("dsel.")]
print(json.dumps(sum(sum(each.stats.cache_misses.values()) for each in ours)))
"""


def first_uses(folder, n_processes=1):
    """Return what each of some processes compiled that begin at the same time."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_USE],
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(n_processes)
    ]
    return [json.loads(process.communicate()[0]) for process in processes]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_use__compiles_what_later_ones_read(tmp_path):
    (alone,) = first_uses(tmp_path / "one")
    assert alone > 0
    assert first_uses(tmp_path / "one") == [0]
    assert sum(first_uses(tmp_path / "two", n_processes=2)) == alone


def test_one_at_a_time__others_wait_until_the_block_is_left(tmp_path):
    entered, path = [], str(tmp_path / "lock")
    code = (
        "import sys; from dsel.families.svm.compiled_once import one_at_a_time\n"
        "with one_at_a_time(sys.argv[1]): print('in')"
    )
    with one_at_a_time(path), one_at_a_time(path):  # a thread may enter again
        other = subprocess.Popen(
            [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(4)
        entered.append("first")
    entered.append(other.communicate()[0].strip())
    assert entered == ["first", "in"]


def test_one_at_a_time__nobody_waits_where_no_file_can_be_made(tmp_path):
    with one_at_a_time(str(tmp_path / "missing" / "lock")):
        pass
