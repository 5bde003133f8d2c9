"""What the store costs: per cell of a large grid, and to reopen a finished run.

Run by hand: ``python -m tests.benchmarks.bench_store``. Prints the milliseconds per
candidate of writing 20,000 of them (11 trainings each, in groups of 15 and alone), the
seconds to reopen a finished search of 225 candidates, imports excluded, and what part
of the digits run on two workers the store takes, both sides in turns. A single round
tells little on a machine whose cores are not all ours: the mean comes with its standard
error, and beside it stands what the run itself says of opening and saving.
"""

import json
import statistics
import sys
import tempfile
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from dsel.cluster import Local, connect
from dsel.results.journal import open_journal
from dsel.searches import execute, plan_search
from dsel.searches.phases import PHASE_SECONDS
from tests import job

N_CANDIDATES = 20_000
TRAININGS = 11


def record_of(group, size):
    """Return a record like those of the driver."""
    counts = np.arange(size)
    return {
        "training": "fold-3",
        "keys": [f"{group * size + n:024x}" for n in range(size)],
        "test_errors": counts,
        "train_errors": counts,
        "failed": counts < 0,
        "seconds": counts / 7,
        "messages": [""] * size,
    }


def writing(size):
    """Return milliseconds per candidate: wall time, and that of the processor."""
    with tempfile.TemporaryDirectory() as place:
        started, worked = time.perf_counter(), time.process_time()
        with open_journal(place, {"seed": 1}) as journal:
            for group in range(N_CANDIDATES // size):
                for training in range(TRAININGS):
                    record = record_of(group, size)
                    journal.append(f"fit/{group}/{training}", record)
        spent = time.perf_counter() - started, time.process_time() - worked
        return [1000 * seconds / N_CANDIDATES for seconds in spent]


def reopening():
    """Return seconds to run a finished search of 225 candidates again."""
    X, y = make_classification(1200, 6, random_state=3)
    grid = {"C": 2.0 ** np.arange(-2, 13), "gamma": 2.0 ** np.arange(-10, 5)}
    plan = plan_search(SVC(), grid, X[:200], y[:200], X[200:], cv=5, random_state=1)
    with tempfile.TemporaryDirectory() as place:
        execute(plan, out=place, with_model=True)
        started = time.perf_counter()
        execute(plan, out=place, with_model=True)
        return time.perf_counter() - started


def overhead(rounds):
    """Return what part of the digits run is the store's, round by round.

    And seconds of a run without it, and seconds of opening and saving.
    """
    plan, shares, bare, own = job.make_plan(prune=False), [], [], []
    with connect(Local(workers=2)) as client:
        execute(plan, client)
        for _ in range(rounds):
            seconds = []
            for keep in (False, True, True, False):
                with tempfile.TemporaryDirectory() as place:
                    started = time.perf_counter()
                    done = execute(plan, client, out=place if keep else None)
                    seconds.append(time.perf_counter() - started)
                if keep:
                    phases = json.loads(done.results.attrs[PHASE_SECONDS])
                    own.append(phases["resume"] + phases["save"])
            without, kept = seconds[0] + seconds[3], seconds[1] + seconds[2]
            shares.append(kept / without - 1)
            bare.append(without / 2)
            print(f"without {without / 2:.2f} s, with {kept / 2:.2f} s", flush=True)
    return shares, statistics.median(bare), statistics.median(own)


def main():
    for size in (15, 1):
        wall, processor = writing(size)
        print(
            f"{wall:.3f} ms a candidate in groups of {size} (at most 1), "
            f"{processor:.3f} ms of the processor"
        )
    print(f"{reopening():.2f} s to reopen 225 candidates (at most 1)")
    shares, bare, own = overhead(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
    error = statistics.stdev(shares) / len(shares) ** 0.5
    print(
        f"{statistics.mean(shares):.1%} +- {error:.1%} of the digits run, median "
        f"{statistics.median(shares):.1%} (at most 3 %)"
    )
    print(f"{own:.3f} s of {bare:.2f} s ({own / bare:.1%}) to open and to save")


if __name__ == "__main__":
    main()
