import threading

from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from dsel.searches.executing.threads import single_threaded


def _limits():
    return {pool["num_threads"] for pool in threadpool_info()}


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
