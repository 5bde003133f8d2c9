"""What a task costs the scheduler, and what that makes of a very large plan.

Run by hand: ``python -m tests.benchmarks.bench_scheduler``. Runs empty tasks through
the driver's executor on a scheduler and two workers of their own, prints processor
time of scheduler and driver for a task and for one input of a task, and then the plan
of 225 candidates on 10^9 pool rows, with what it means for 500 workers. The constants
of `dsel.searches.describe` come from here.
"""

import argparse
import math
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
from dsel.searches.describe import n_spans as count_spans
from dsel.searches.describe import project
from sklearn.svm import SVC

import dsel
from dsel.cluster import Address, connect
from dsel.runtime.cluster import ClusterExecutor
from dsel.runtime.tasks import Task
from tests.clusters import running_cluster

N_INPUTS = 90  # groups times splits of the plan below
N_WORKERS = 500
N_COLUMNS = 64


def nothing(work, payloads, number):
    return number, None


def seconds_of_tasks(executor, scheduler, n_tasks, inputs=(), keeps=False):
    """Return processor seconds of scheduler and driver, and wall seconds, a task."""

    def used():
        theirs, ours = scheduler.cpu_times(), psutil.Process().cpu_times()
        spent = [theirs.user + theirs.system, ours.user + ours.system]
        return np.array([*spent, time.perf_counter()])

    before = used()
    waiting, in_flight = iter(range(n_tasks)), 0
    for number in waiting:
        key = f"task-{number}-{len(inputs)}-{keeps}"
        task = Task(key, nothing, (number,), inputs=tuple(inputs), keeps_payload=keeps)
        executor.submit(task)
        in_flight += 1
        while in_flight >= 2 * executor.n_slots:
            in_flight -= take(executor)
    while in_flight:
        in_flight -= take(executor)
    return (used() - before) / n_tasks


def take(executor):
    ended = executor.wait(0.5)
    for finished in ended:
        if not finished.key.startswith("input"):
            executor.forget(finished.key)
    return len(ended)


def measure(n_tasks, rounds):
    """Return medians over the rounds: fits, spans, and spans with many inputs."""
    with (
        tempfile.TemporaryDirectory() as place,
        running_cluster(Path(place)) as running,
    ):
        scheduler = psutil.Process(running.processes["scheduler"].pid)
        with connect(Address(running.address), timeout=60) as client:
            client.wait_for_workers(2, timeout=120)
            executor = ClusterExecutor(None, client, "bench")
            inputs = [f"input-{number}" for number in range(N_INPUTS)]
            for number, key in enumerate(inputs):
                executor.submit(Task(key, nothing, (number,), keeps_payload=True))
            left = N_INPUTS
            while left:
                left -= take(executor)
            seconds_of_tasks(executor, scheduler, 50, inputs)
            found = [
                [
                    seconds_of_tasks(executor, scheduler, n_tasks, keeps=True),
                    seconds_of_tasks(executor, scheduler, n_tasks),
                    seconds_of_tasks(executor, scheduler, n_tasks, inputs),
                ]
                for _ in range(rounds)
            ]
            executor.close()
    return np.median(found, axis=0)


def large_plan():
    """Plan 225 candidates and 10^9 rows; nothing is computed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, N_COLUMNS))
    y = (X[:, 0] > 0).astype(int)
    rows = da.zeros((10**9, N_COLUMNS), chunks=(2**20, N_COLUMNS), dtype=np.float32)
    grid = {"C": 2.0 ** np.arange(-2, 13), "gamma": 2.0 ** np.arange(-10, 5)}
    return dsel.plan_search(
        SVC(), grid, X, y, rows, cv=5, random_state=0, criterion="cv_bound"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    fit, bare, fed = measure(given.tasks, given.rounds)
    for name, found in (("fit", fit), ("span", bare)):
        print(
            f"a {name}: {1000 * found[0]:.2f} ms of the scheduler, "
            f"{1000 * found[1]:.2f} ms of the driver, {1000 * found[2]:.2f} ms in all"
        )
    more = (fed - bare) / N_INPUTS
    print(
        f"an input: {1e6 * more[0]:.0f} us of the scheduler, {1e6 * more[1]:.0f} us of "
        f"the driver"
    )
    plan = large_plan()
    found = project(plan)
    n_spans = count_spans(plan)
    waves = math.ceil(n_spans / N_WORKERS)
    print(plan)
    print(
        f"{N_WORKERS} workers: {n_spans} spans are {waves} waves, "
        f"{n_spans / (waves * N_WORKERS):.0%} of the workers busy; "
        f"{found.pool_nbytes / N_WORKERS / 2**30:.1f} GiB read by each; "
        f"{found.scheduler_seconds:.0f} s of the scheduler"
    )


if __name__ == "__main__":
    main()
