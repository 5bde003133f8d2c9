"""Executors, here and on workers: slots, memory, versions, and tasks that kill."""

import os
import time
from importlib import import_module

import numpy as np
import psutil
import pytest
import xarray as xr
from dask import config
from distributed import Client
from joblib import cpu_count

from dsel.cluster import connect
from dsel.errors import VersionMismatchError
from dsel.runtime.clients import count_threads
from dsel.runtime.submission import make_executor, run_to_completion
from dsel.runtime.tasks import Output, Task, is_worker_death
from dsel.search.engine import count_batch
from tests.clusters import beginning_with, running_cluster
from tests.estimators import plan_of_sleepers
from tests.job import counts_of, make_plan

OTHER_VERSION = """
from importlib import metadata
there = metadata.version
metadata.version = lambda name: "0.1" if name == "scikit-learn" else there(name)
"""


def test_count_threads__reads_n_jobs_as_scikit_learn_does():
    assert count_threads(None) == count_threads(-1) == cpu_count()
    assert count_threads(3) == 3
    assert count_threads(-1000) == 1


def test_local_executor__divides_free_memory_by_threads():
    executor = make_executor(None, None, 4)
    assert 0 < executor.slot_memory <= psutil.virtual_memory().total // 4
    executor.close()


@pytest.mark.cluster
def test_cluster_executor__knows_slots_and_the_memory_of_one():
    with Client(
        n_workers=2, threads_per_worker=2, memory_limit="1 GiB", processes=False,
        dashboard_address="127.0.0.1:0", set_as_default=False,
    ) as client:  # fmt: skip
        executor = make_executor(None, client)
        assert executor.n_slots == 4
        assert 0 < executor.slot_memory <= 2**29
        executor.close()


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_run__a_worker_of_other_versions_that_joins_later_ends_it(tmp_path):
    plan = plan_of_sleepers(np.linspace(0.5, 0.6, 200), criterion="cv_error")
    other = beginning_with(OTHER_VERSION, tmp_path / "other")
    with running_cluster(tmp_path, workers=1) as running:

        def join(progress):
            if "late" not in running.processes:
                running.start_worker("late", **other)

        with connect(running.address, timeout=60) as client:
            client.wait_for_workers(1, timeout=120)
            expected = r"worker tcp://127.*scikit-learn 0\.1 \(client "
            with pytest.raises(VersionMismatchError, match=expected):
                plan.run(client, on_progress=join)


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_run__workers_with_the_least_memory_that_messages_name_live():
    plan = make_plan()
    expected = counts_of(plan.run().results)
    with connect(workers=2, memory="700 MiB") as client:
        before = client.run(os.getpid)
        found = counts_of(plan.run(client).results)
        assert client.run(os.getpid) == before
    assert found == expected


def test_run__counts_do_not_depend_on_spare_memory(monkeypatch):
    plan = plan_of_sleepers([0.0], pool_rows=340, certificate="cv_bound")
    times = ["fit_seconds", "score_seconds", "full_fit_seconds"]
    whole = plan.run().results.drop_vars(times)
    monkeypatch.setattr(count_batch, "spare_memory", lambda: 0)
    xr.testing.assert_equal(plan.run().results.drop_vars(times), whole)


class Die:
    """Does what the system does to a process that asks for too much."""

    def run(self, context, inputs):
        os._exit(1)


class ChangesAlways:
    """A context that only one process can pickle, as its tasks change it."""

    def __init__(self):
        self.pid = os.getpid()

    def __getstate__(self):
        if os.getpid() != self.pid:
            raise RuntimeError("dictionary changed size during iteration")
        return self.__dict__


class Where:
    """Work that returns the process that does it."""

    def run(self, context, inputs):
        assert context.pid != os.getpid()
        time.sleep(0.5)
        return Output(os.getpid())


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_cluster_executor__workers_pickle_no_context_that_tasks_change(processes):
    executor = make_executor(ChangesAlways(), processes)
    tasks = [Task(f"task {n}", Where(), affinity=n) for n in range(4)]
    ended = list(run_to_completion(executor, tasks))
    assert len({task.get() for task in ended}) == 2
    executor.close()


SLOW_IMPORT = """
import time
from pathlib import Path

Path(__file__).with_name("begun").touch()
time.sleep(1.5)
import slow_package.work
"""
WORK = """
import time

time.sleep(3)  # until the package waits for this module
import slow_package.context
from name_of_context import Name

class Work(Name):
    pass
"""
NAME_OF_CONTEXT = """
from dsel.runtime.tasks import Output

class Name:
    def run(self, context, inputs):
        return Output(type(context).__name__)
"""


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_cluster_executor__threads_import_a_package_and_its_modules_in_turn(
    tmp_path, monkeypatch
):
    # Python raises where one thread imports the package, as the context makes it do,
    # and another has begun to import the module of the work.
    (tmp_path / "slow_package").mkdir()
    contents = {
        "name_of_context": NAME_OF_CONTEXT,
        "slow_package/__init__": SLOW_IMPORT,
        "slow_package/context": "class Context: pass",
        "slow_package/work": WORK,
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    first = import_module("name_of_context").Name()
    context, work = map(import_module, ("slow_package.context", "slow_package.work"))
    begun = tmp_path / "slow_package" / "begun"
    begun.unlink()
    with connect(workers=1) as client:
        executor = make_executor(context.Context(), client)
        executor.submit(Task("first", first))
        while not begun.exists():  # by the thread of this task, for the context
            time.sleep(0.1)
        executor.submit(Task("second", work.Work()))
        ended = [task for _ in range(2) for task in executor.wait(30.0)]
        assert {task.get() for task in ended} == {"Context"}
        executor.close()


@pytest.mark.cluster
def test_cluster_executor__a_task_that_kills_its_workers_is_short_of_memory():
    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        connect(workers=1) as client,
    ):
        executor = make_executor(None, client)
        executor.submit(Task("task", Die()))
        [finished] = executor.wait(120.0)
        assert is_worker_death(finished.error)
        with pytest.raises(MemoryError, match=r"1 workers had died .* more, then run"):
            finished.get()
