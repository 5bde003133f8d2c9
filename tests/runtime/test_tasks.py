"""One thread for each task: of BLAS, of OpenMP, and of an estimator's `n_jobs`."""

import threading
import warnings
from typing import ClassVar

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

import dsel
from dsel.results.fit_messages import collect_warnings
from dsel.runtime.tasks import limit_threads
from tests.estimators import Sleeper


class TellsThreads(Sleeper):
    """Notes what native thread pools may use whenever it is fitted or asked."""

    seen: ClassVar[set[int]] = set()

    def fit(self, X, y):
        self.seen.update(limits())
        return super().fit(X, y)

    def predict(self, X):
        self.seen.update(limits())
        return super().predict(X)


def limits(*kinds):
    """Return what the pools of some kinds, or of all, may use."""
    return {
        pool["num_threads"]
        for pool in threadpool_info()
        if not kinds or pool["user_api"] in kinds
    }


def test_limit_threads__limits_openmp_in_every_thread_that_runs_a_task():
    found = []

    def run_a_task():
        with threadpool_limits(2):  # as where no variable of the environment says 1
            with limit_threads():
                found.append(limits())
            found.append(limits())

    with limit_threads():
        thread = threading.Thread(target=run_a_task)
        thread.start()
        thread.join()
    assert found[0] == {1}
    assert 2 in found[1]


def test_limit_threads__restores_the_filters_of_warnings(recwarn):
    before = list(warnings.filters)
    with limit_threads():
        warnings.resetwarnings()  # as a forest does in each thread
        warnings.warn("`sklearn.utils.parallel.delayed` should be used", stacklevel=1)
        warnings.warn("another one", stacklevel=1)
    assert warnings.filters == before
    assert [str(warning.message) for warning in recwarn] == ["another one"]


def limit_for_all(number):
    """Limit native pools by a thread that ends, so that none holds the limit."""
    thread = threading.Thread(target=threadpool_limits, args=(number,))
    thread.start()
    thread.join()


@pytest.fixture
def two_native_threads():
    """As where no variable of the environment says 1."""
    before = max(limits())
    limit_for_all(2)
    yield
    limit_for_all(before)


def test_search__limits_blas_in_every_run_of_a_process(two_native_threads):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    grid = [TellsThreads(), TellsThreads()]
    rows = X[:60], y[:60], X[60:]
    assert limits("blas") == {2}
    for _ in range(5):
        TellsThreads.seen.clear()
        dsel.plan_search(None, grid, *rows, cv=4, certificate="cv_bound").run()
        assert TellsThreads.seen == {1}
        assert limits("blas") == {2}


def test_limit_threads__gives_an_estimators_n_jobs_no_threads():
    with limit_threads():
        names = Parallel(n_jobs=4, prefer="threads")(
            delayed(lambda: threading.current_thread().name)() for _ in range(8)
        )
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize("order", [1, -1])
def test_limit_threads__and_collected_warnings_may_end_in_any_order(order):
    before = warnings.showwarning, list(warnings.filters)
    first, second = (limit_threads(), collect_warnings())[::order]
    first.__enter__()
    second.__enter__()
    # As where another thread, which began later, is still at work.
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert (warnings.showwarning, list(warnings.filters)) == before
