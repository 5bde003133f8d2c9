import threading
from typing import ClassVar

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info, threadpool_limits

import dsel
from dsel.runtime.tasks import single_threaded


class TellsThreads(ClassifierMixin, BaseEstimator):
    """Notes what native thread pools may use whenever it is fitted or asked."""

    seen: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen.extend(_limits())
        return self

    def predict(self, X):
        self.seen.extend(_limits())
        return self.classes_[(X[:, 0] > 0).astype(int)]


def _limits():
    return {pool["num_threads"] for pool in threadpool_info()}


def _blas_limits():
    found = threadpool_info()
    return [pool["num_threads"] for pool in found if pool["user_api"] == "blas"]


def test_single_threaded__limits_native_pools_and_restores_them():
    before = _limits()
    with single_threaded(), single_threaded():
        assert _limits() == {1}
    assert _limits() == before


def test_single_threaded__limits_openmp_in_every_thread_that_runs_a_task():
    found = []

    def run_a_task():
        with threadpool_limits(2):  # as where no variable of the environment says 1
            with single_threaded():
                found.append(_limits())
            found.append(_limits())

    with single_threaded():
        thread = threading.Thread(target=run_a_task)
        thread.start()
        thread.join()
    assert found[0] == {1}
    assert 2 in found[1]


@pytest.fixture
def two_native_threads():
    """As where no variable of the environment says 1; no thread holds the limit."""
    before = max(_limits())
    _limit_for_all(2)
    yield
    _limit_for_all(before)


def _limit_for_all(number):
    thread = threading.Thread(target=threadpool_limits, args=(number,))
    thread.start()
    thread.join()


def test_search__limits_blas_in_every_run_of_a_process(two_native_threads):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    before = _blas_limits()
    assert before
    assert set(before) == {2}
    for _ in range(5):
        TellsThreads.seen.clear()
        grid = [TellsThreads(), TellsThreads()]
        dsel.plan_search(
            None, grid, X[:60], y[:60], X[60:], cv=4, certificate="cv_bound"
        ).run()
        assert set(TellsThreads.seen) == {1}
        assert _blas_limits() == before


def test_single_threaded__gives_an_estimators_n_jobs_no_threads():
    with single_threaded():
        names = Parallel(n_jobs=4, prefer="threads")(
            delayed(lambda: threading.current_thread().name)() for _ in range(8)
        )
    assert set(names) == {threading.current_thread().name}


def test_single_threaded__changes_no_prediction(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    forest = RandomForestClassifier(10, n_jobs=4, random_state=0)
    with single_threaded():
        inside = forest.fit(X, y).predict_proba(X)
    assert (inside == forest.fit(X, y).predict_proba(X)).all()
