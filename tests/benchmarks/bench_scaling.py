"""Two workers against one, beside two bare processes against one in the same minute.

Run by hand: ``python -m tests.benchmarks.bench_scaling fits`` or ``... pool``. The bare
processes do the same jobs, divided evenly beforehand, with no Dask between them. They
have the settings of the memory that dsel's workers have. Prints seconds of each round,
and the ratio of the two factors (at least 0.9 wanted).
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from functools import partial

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.cluster import connect
from dsel.runtime.threads import single_threaded
from dsel.search.comparisons import BestFold
from dsel.search.tasks import FitJob, SpanJob, count_spans, fit_jobs


def plan_of_fits():
    """Plan 15 kernels of 8 machines on 5 folds and the whole; no pool."""
    X, y = load_digits(return_X_y=True)
    grid = {"C": 2.0 ** np.arange(-2, 6), "gamma": 2.0 ** np.arange(-16, -1)}
    return dsel.plan_search(
        SVC(), grid, X, y, criterion="cv_error", cv=5, random_state=0, prune=False
    )


def plan_of_pool(n_rows=500_000):
    """Plan few machines and many rows, so that nearly all of the work is the pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    rows = rng.standard_normal((n_rows, 20), dtype=np.float32)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.05]}
    place = f"{tempfile.gettempdir()}/dsel-bench-scaling-{n_rows}.zarr"
    pool = dsel.write_pool(rows, place, chunk_rows=10_000)
    return dsel.plan_search(
        SVC(), grid, X, y, pool, cv=3, random_state=0, prune=False,
        certificate="cv_bound",
    )  # fmt: skip


PLANS = {"fits": plan_of_fits, "pool": plan_of_pool}


def jobs_of(plan, kind):
    """Return every job of a plan, as the driver would submit them."""
    fits = [
        FitJob(number, tuple(c.number for c in group.candidates), split.number)
        for number, group in enumerate(plan.work.groups)
        for split in plan.layout.splits
    ]
    if kind == "fits":
        return fits
    everybody = tuple(range(plan.n_candidates))
    return [SpanJob(span.start, span.stop, everybody) for span in plan.spans]


def bare_process(kind, part, n_parts, pipe):
    """Do every n-th job each time the other side asks."""
    plan = PLANS[kind]()
    work, jobs = plan.work, jobs_of(plan, kind)[part::n_parts]
    comparisons = [
        BestFold(each.n_folds, np.zeros(plan.n_candidates, np.int64))
        if isinstance(each, BestFold)
        else each
        for each in plan.comparisons
    ]
    spans = {(span.start, span.stop): span for span in plan.spans}
    with single_threaded():
        payload = {} if kind == "fits" else fit_jobs(work, [], jobs_of(plan, "fits"))[1]
        do = {
            "fits": lambda job: fit_jobs(work, (), [job]),
            "pool": lambda job: count_spans(
                work,
                [payload],
                [plan.pool.sources(spans[job.start, job.stop], None)],
                [job],
                comparisons,
                "bench",
            ),
        }[kind]
        do(jobs[0])
        pipe.send(None)
        while pipe.recv():
            for job in jobs:
                do(job)
            pipe.send(None)


class Bare:
    """Processes that stand ready with their parts of the jobs."""

    def __init__(self, kind, n_parts):
        spawn = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for part in range(n_parts):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(
                target=bare_process, args=(kind, part, n_parts, theirs), daemon=True
            )
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)
        for pipe in self.pipes:
            pipe.recv()

    def run(self):
        for pipe in self.pipes:
            pipe.send(True)
        for pipe in self.pipes:
            pipe.recv()

    def close(self):
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send(False)
            process.join()


def run_plan(plan, workers, pipe):
    """Run the plan on a cluster of so many workers each time the other side asks."""
    with connect(workers=workers) as client:
        plan().run(client)
        ready = plan()
        pipe.send(None)
        while pipe.recv():
            ready.run(client)
            pipe.send(None)


class Cluster(Bare):
    """The same through a cluster, in a process of its own as the driver."""

    def __init__(self, kind, workers):
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=run_plan, args=(PLANS[kind], workers, theirs))
        process.start()
        self.pipes, self.processes = [ours], [process]
        ours.recv()


def seconds(run):
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(PLANS))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    PLANS[given.kind]()  # the pool is written before others look for it
    make = {"bare": partial(Bare, given.kind), "dsel": partial(Cluster, given.kind)}
    sides = {(name, n): make[name](n) for n in (1, 2) for name in make}
    ratios = []
    for _ in range(given.rounds):
        spent = {key: seconds(side.run) for key, side in sides.items()}
        factors = {name: spent[name, 1] / spent[name, 2] for name in make}
        ratios.append(factors["dsel"] / factors["bare"])
        texts = [f"{name} {n}: {s:.2f} s" for (name, n), s in spent.items()]
        print(
            f"{', '.join(texts)}; factor bare {factors['bare']:.2f}, "
            f"dsel {factors['dsel']:.2f}, ratio {ratios[-1]:.2f}"
        )
    print(f"{given.kind}: median ratio {statistics.median(ratios):.2f} (at least 0.9)")
    for side in sides.values():
        side.close()


if __name__ == "__main__":
    main()
