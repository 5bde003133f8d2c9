"""What the store costs: per cell of a large grid, and to reopen a finished run.

Run by hand: ``python -m tests.benchmarks.bench_store [rounds]``. Prints the
milliseconds per candidate of writing 20,000 of them (11 splits each, in groups of 15
and alone), and the median seconds to reopen a finished search of 225 candidates,
imports excluded.
"""

import json
import statistics
import sys
import tempfile
import time

import numpy as np
from dsel.results.journal import open_journal
from dsel.searches import execute, plan_search
from dsel.searches.phases import PHASE_SECONDS
from sklearn.datasets import make_classification
from sklearn.svm import SVC

N_CANDIDATES = 20_000
SPLITS = 11


def record_of(group, size):
    """Return a record like those of the driver."""
    counts = np.arange(size)
    return {
        "split": "fold-3",
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
                for split in range(SPLITS):
                    record = record_of(group, size)
                    journal.append(f"fit/{group}/{split}", record)
        spent = time.perf_counter() - started, time.process_time() - worked
        return [1000 * seconds / N_CANDIDATES for seconds in spent]


def reopening():
    """Return seconds to run a finished search of 225 candidates again.

    And those of the processor, and those of saving its cube.
    """
    X, y = make_classification(1200, 6, random_state=3)
    grid = {"C": 2.0 ** np.arange(-2, 13), "gamma": 2.0 ** np.arange(-10, 5)}
    plan = plan_search(
        SVC(),
        grid,
        X[:200],
        y[:200],
        X[200:],
        cv=5,
        random_state=1,
        criterion="cv_bound",
    )
    with tempfile.TemporaryDirectory() as place:
        execute(plan, out=place, with_model=True)
        started, worked = time.perf_counter(), time.process_time()
        done = execute(plan, out=place, with_model=True)
        spent = time.perf_counter() - started, time.process_time() - worked
    return *spent, json.loads(done.results.attrs[PHASE_SECONDS])["save"]


def main():
    for size in (15, 1):
        wall, processor = writing(size)
        print(
            f"{wall:.3f} ms a candidate in groups of {size} (at most 1), "
            f"{processor:.3f} ms of the processor"
        )
    seconds = [reopening() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    wall, processor, saving = (
        statistics.median(each) for each in zip(*seconds, strict=True)
    )
    print(
        f"{wall:.2f} s to reopen 225 candidates (at most 1), {processor:.2f} s of the "
        f"processor; {saving:.3f} s of it to save the cube"
    )


if __name__ == "__main__":
    main()
