"""Searches of learners that hold the interpreter, once processes have taken over."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import psutil
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import RandomizedSearchCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.errors import ClusterLostError
from dsel.runtime import local_executor
from dsel.runtime.tasks import Output, Task
from tests.clusters import environment, wait_until

GRID = {"column": [0, 1, 2]}


class Column(ClassifierMixin, BaseEstimator):
    """Answers with the sign of a column; writes down which process has fitted it."""

    def __init__(self, column=0, folder=None, has_lock=False, dies=False, seconds=0.02):
        self.column, self.folder, self.has_lock = column, folder, has_lock
        self.dies, self.seconds = dies, seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        (self.folder / str(os.getpid())).touch()
        if self.dies and not psutil.Process().children():
            os._exit(9)
        if self.has_lock:
            self.lock_ = threading.Lock()
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, self.column] > 0).astype(int)]


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Have processes begin at once, and end them."""
    monkeypatch.setattr(local_executor, "PATIENCE_SECONDS", 0.0)
    yield
    local_executor.end_processes(2)


def begin():
    """Begin two processes that have imported what a search needs."""
    for begun in [local_executor._start_in_process(2, _import_all) for _ in range(8)]:
        begun.result()


def _import_all():
    import dsel.search  # noqa: F401

    time.sleep(0.1)


@pytest.fixture
def there():
    begin()


def search(folder, n_jobs=2, estimator=None, **options):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = (X[:, 1] + rng.normal(size=1200) > 0).astype(int)
    made = dsel.SemiSupervisedSearchCV(
        estimator or Column(folder=folder, **options), GRID,
        random_state=0, n_jobs=n_jobs, prune=False,
    )  # fmt: skip
    return made.fit(X[:200], y[:200], pool=X[200:])


def counted(made):
    return (
        made.results_.fold_errors.values.tolist(),
        {name: each.bound for name, each in made.certificates_.items()},
    )


def pids(folder):
    """Return which other processes have fitted."""
    found = {int(each.name) for each in folder.iterdir() if each.name.isdigit()}
    return found - {os.getpid()}


def test_processes__fit_what_threads_would_and_count_the_same(tmp_path, there):
    one = search(tmp_path / "one", n_jobs=1)
    assert not pids(tmp_path / "one")
    several = [search(tmp_path / "two") for _ in range(2)]
    assert len(pids(tmp_path / "two")) == 2  # the same ones for both
    assert [counted(each) for each in several] == [counted(one)] * 2
    assert several[0].best_estimator_.get_params()["column"] == 1


def test_processes__fit_a_class_of_a_function_that_draws_without_a_seed(
    tmp_path, there
):
    class Local(Column):
        def fit(self, X, y):
            grid = {"max_depth": [1, 2, 3]}
            tree = DecisionTreeClassifier(max_features=1)
            self.inner_ = RandomizedSearchCV(tree, grid, n_iter=2, cv=2).fit(X, y)
            return super().fit(X, y)

        def predict(self, X):
            return self.inner_.predict(X)

    made = search(tmp_path, estimator=Local(folder=tmp_path))
    assert len(pids(tmp_path)) == 2
    assert all(each.certified for each in made.certificates_.values())


def test_processes__do_not_begin_for_a_kernel_svm():
    X = np.random.default_rng(0).normal(size=(200, 3))
    grid = {"C": [0.5, 1.0, 2.0], "gamma": [0.1, 1.0]}
    made = dsel.SemiSupervisedSearchCV(SVC(), grid, random_state=0, n_jobs=2)
    made.fit(X, (X[:, 0] > 0).astype(int))
    assert not local_executor._pools


def test_processes__leave_to_threads_what_cannot_be_pickled(tmp_path, there, caplog):
    made = search(tmp_path, has_lock=True)
    assert "all tasks run on threads; processes do not" in caplog.text
    assert (tmp_path / str(os.getpid())).exists()
    assert made.best_estimator_.lock_ is not None


def test_processes__end_the_run_where_one_of_them_dies(tmp_path, there):
    with pytest.raises(
        ClusterLostError, match=r"a process of this machine ended.*n_jobs"
    ):
        search(tmp_path, dies=True)
    before = pids(tmp_path)
    begin()  # others
    search(tmp_path)
    assert pids(tmp_path) - before


def test_processes__that_died_between_two_tasks_end_the_run(there):
    executor = local_executor.LocalExecutor(None, 2, processes_since=0.0)
    with closing(executor):
        wait_until(partial(executor._are_processes_ready, executor._first))
        with pytest.raises(BrokenExecutor):
            local_executor._start_in_process(2, os._exit, 9).result()
        with pytest.raises(ClusterLostError, match="a process of this machine ended"):
            executor.submit(Task("a", None))


def _forget(key, packed):
    """Leave a process without the work that was sent to it."""


def test_processes__that_begin_late_are_sent_the_work(tmp_path, there, monkeypatch):
    # As if all had ended, idle, and begun again after the work had come.
    with monkeypatch.context() as patched:
        patched.setattr(local_executor, "_receive", _forget)
        made = search(tmp_path / "two")
    assert pids(tmp_path / "two")
    assert counted(made) == counted(search(tmp_path / "one", n_jobs=1))


SCRIPT = """
import sys, threading, time
import numpy as np
import dsel
from dsel.runtime import local_executor
from tests.runtime.test_processes import GRID, Column, slow_to_begin
from pathlib import Path

if __name__ == "__main__":
    local_executor.PATIENCE_SECONDS = 0.0
    local_executor._begin_process = slow_to_begin  # as on a machine that is busy
    X = np.random.default_rng(0).normal(size=(200, 3))
    plan = dsel.plan_search(Column(folder=Path(sys.argv[1])), GRID, X, X[:, 0] > 0)
    def interrupt(progress):
        if local_executor._pools and sys.argv[2] != "ends":
            raise KeyboardInterrupt if sys.argv[2] == "interrupted" else ValueError
    try:
        plan.run(n_jobs=2, on_progress=interrupt)
    finally:
        assert local_executor._pools
        print(time.time(), flush=True)
"""


def slow_to_begin(parent):
    time.sleep(60)


@pytest.mark.parametrize("how", ["ends", "fails", "interrupted"])
def test_process__ends_at_once_though_others_have_not_begun(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, tmp_path, how], env=environment(), timeout=55,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode == 0) == (how == "ends")
    assert time.time() - float(done.stdout) < 20  # for a machine that is busy


def test_processes__end_with_the_process_that_started_them(tmp_path, there):
    begun = [local_executor._start_in_process(2, os.getpid).result() for _ in range(2)]
    code = (
        "import os, sys, time; from dsel.runtime import local_executor\n"
        "if __name__ == '__main__':\n"
        "    pid = local_executor._start_in_process(2, os.getpid).result()\n"
        "    print(pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    (tmp_path / "script.py").write_text(code)
    with subprocess.Popen(
        [sys.executable, tmp_path / "script.py"], env=environment(),
        stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        child = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not psutil.pid_exists(child), 30, "the end of an orphan")
    assert all(map(psutil.pid_exists, begun))


def test_processes__end_with_an_interrupted_run(tmp_path, there):
    class Stop(BaseException):
        pass

    def stop(progress):
        if pids(tmp_path):
            raise Stop

    X = np.random.default_rng(0).normal(size=(200, 3))
    estimator = Column(folder=tmp_path)
    plan = dsel.plan_search(estimator, GRID, X, X[:, 0] > 0, prune=False)
    with pytest.raises(Stop):
        plan.run(n_jobs=2, on_progress=stop)
    begun = pids(tmp_path)
    assert wait_until(lambda: not any(map(psutil.pid_exists, begun)))


def test_processes__of_a_run_outlive_another_one_that_is_interrupted(tmp_path, there):
    class Stop(BaseException):
        pass

    one, other = tmp_path / "one", tmp_path / "other"
    made = []
    thread = threading.Thread(
        target=lambda: made.append(search(one, seconds=0.2)), daemon=True
    )

    def stop(progress):
        if pids(one) and pids(other):
            raise Stop

    other.mkdir()
    X = np.random.default_rng(0).normal(size=(200, 3))
    estimator = Column(folder=other, seconds=0.2)
    plan = dsel.plan_search(estimator, GRID, X, X[:, 0] > 0, prune=False)
    thread.start()
    wait_until(lambda: one.is_dir() and pids(one), what="a fit in a process")
    with pytest.raises(Stop):
        plan.run(n_jobs=2, on_progress=stop)
    assert thread.is_alive()
    thread.join()
    assert [counted(each) for each in made] == [counted(search(tmp_path / "a", 1))]
    assert len(pids(one) | pids(other)) == 2  # no others were started


@dataclass(frozen=True)
class Sleep:
    seconds: float

    def run(self, context, inputs):
        time.sleep(self.seconds)
        return Output(None)


def test_close__the_last_run_ends_what_an_earlier_one_has_left_running(there):
    first, last = (
        local_executor.LocalExecutor(None, 2, processes_since=0.0) for _ in range(2)
    )
    for each in (first, last):
        wait_until(partial(each._are_processes_ready, each._first))
    for number in range(8):
        first.submit(Task(str(number), Sleep(60.0)))
    processes = [psutil.Process(n) for n in local_executor._pools[2]._processes]
    first.close()
    assert all(each.is_running() for each in processes)
    last.close()
    assert wait_until(lambda: not any(each.is_running() for each in processes))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_end_processes__ends_them_where_queued_tasks_were_cancelled(there):
    running = [local_executor._start_in_process(2, time.sleep, 60) for _ in range(12)]
    wait_until(lambda: running[1].running(), what="a running task")
    cancelled = [each for each in running if each.cancel()]
    assert 0 < len(cancelled) < len(running)
    processes = [psutil.Process(n) for n in local_executor._pools[2]._processes]
    local_executor.end_processes(2)
    assert not any(each.is_running() for each in processes)
    assert all(each.exception() for each in running if each not in cancelled)
