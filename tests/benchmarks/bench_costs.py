"""What a search costs, and what it says: seconds, peak memory and bound.

Run by hand: ``python tests/benchmarks/bench_costs.py [--labels 500 2000 10000]
[--pool 100000 1000000 10000000]``. A support vector machine is chosen among 25, on two
threads of a process of its own; rows have 16 features, four classes and 5 % of wrong
labels. The pool is zarr, written before the clock starts. Prints README's table.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dask.array as da
import joblib
import numpy as np
import psutil
from sklearn.svm import SVC

import dsel

N_COLUMNS, N_CLASSES, NOISE = 16, 4, 0.05
GRID = {"C": 4.0 ** np.arange(-1, 4), "gamma": 4.0 ** np.arange(-6, -1)}


def rows_of(seed, n_rows):
    """Draw rows, and their labels by which of some centres is nearest."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    centres = np.random.default_rng(0).normal(size=(N_CLASSES, N_COLUMNS))
    squares = np.sum(centres**2, axis=1)
    y = (squares - 2 * X @ centres.astype(np.float32).T).argmin(axis=1)
    wrong = rng.random(n_rows) < NOISE
    y[wrong] = rng.integers(0, N_CLASSES, int(wrong.sum()))
    return X, y


def make_pool(path, n_rows, chunk_rows=100_000):
    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        return rows_of(1000 + start, stop - start)[0]

    lengths = [min(chunk_rows, n_rows - at) for at in range(0, n_rows, chunk_rows)]
    rows = da.map_blocks(
        chunk, chunks=(tuple(lengths), N_COLUMNS), dtype=np.float32, name="bench-costs"
    )
    dsel.write_pool(rows, path, chunk_rows=chunk_rows)


def run(n_labels, path, certificate):
    """Search once here; print what it took and what was found, as JSON."""
    X, y = rows_of(1, n_labels)
    test_rows, test_labels = rows_of(2, 50_000)
    started, before = time.perf_counter(), psutil.Process().cpu_times()
    with joblib.parallel_config(n_jobs=2):
        plan = dsel.plan_search(
            SVC(), GRID, X, y, dsel.open_pool(path), certificate=certificate,
            random_state=0,
        )  # fmt: skip
        outcome = plan.run()
        seconds = time.perf_counter() - started
        after = psutil.Process().cpu_times()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    certificate = outcome.choice.certificate
    found = {
        "seconds": seconds,
        "processor": after.user + after.system - before.user - before.system,
        "memory": peak,
        "estimate": certificate.estimate,
        "bound": certificate.bound,
        "error": float(np.mean(outcome.model.predict(test_rows) != test_labels)),
        "rows_read": int(outcome.results.n_unlabeled),
    }
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--labels", type=int, nargs="+", default=[500, 2000, 10_000])
    parser.add_argument("--pool", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--certificate", default="nested")
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        return run(int(options.one[0]), options.one[1], options.certificate)
    print("| labels | pool | seconds | peak GiB | cross-validation | bound | error |")
    with tempfile.TemporaryDirectory() as folder:
        for n_pool in options.pool:
            path = Path(folder) / f"{n_pool}.zarr"
            make_pool(path, n_pool)
            for n_labels in options.labels:
                words = [sys.executable, __file__, "--one", str(n_labels), str(path)]
                words += ["--certificate", options.certificate]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                each = json.loads(done.stdout.splitlines()[-1])
                print(
                    f"| {n_labels:,} | {n_pool:,} | {each['seconds']:.0f} "
                    f"| {each['memory'] / 2**30:.1f} | {each['estimate']:.3f} "
                    f"| {each['bound']:.3f} | {each['error']:.3f} |",
                    f"CPU {each['processor']:.0f} s, {each['rows_read']:,} rows read",
                    flush=True,
                )
    return None


if __name__ == "__main__":
    main()
