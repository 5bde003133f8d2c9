"""One pass over a large pool in an S3-compatible server on loopback.

Run by hand: ``python -m tests.benchmarks.bench_object_store --rows 10000000``. Prints
rows per second from the object store and from a local directory, and whether the
counts are the same. The server is a test server in Python: the rate is its, not dsel's.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
from sklearn.svm import LinearSVC

import dsel
from dsel.cluster import connect
from tests.object_store import BUCKET, object_store

N_COLUMNS = 8
CHUNK_ROWS = 250_000


def make_rows(n_rows):
    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        rng = np.random.default_rng(start)
        return rng.standard_normal((stop - start, N_COLUMNS), dtype=np.float32)

    lengths = [min(CHUNK_ROWS, n_rows - at) for at in range(0, n_rows, CHUNK_ROWS)]
    return da.map_blocks(
        chunk, chunks=(tuple(lengths), N_COLUMNS), dtype=np.float32, name="bench-store"
    )


def make_plan(pool):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, N_COLUMNS))
    y = (X[:, 0] + rng.standard_normal(1000) > 0).astype(int)
    grid = {"C": [1.0]}
    return dsel.plan_search(
        LinearSVC(), grid, X, y, pool, cv=5, random_state=0, certificate="cv_bound"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, object_store(Path(place)) as options:
        rows = make_rows(given.rows)
        counts = {}
        with connect(workers=2) as client:
            for name, url in [("local", f"{place}/pool"), ("store", f"{BUCKET}/pool")]:
                there = options if "://" in url else None
                pool = dsel.write_pool(
                    rows, url, chunk_rows=CHUNK_ROWS, storage_options=there
                )
                plan = make_plan(pool)
                plan.run(client)  # workers import what they need
                start = time.perf_counter()
                results = plan.run(client).results
                counts[name] = results.disagreements.values.tolist()
                seconds = time.perf_counter() - start
                rate = given.rows / seconds
                sys.stdout.write(f"{name}: {seconds:.1f} s, {rate:,.0f} rows/s\n")
        sys.stdout.write(f"same counts: {counts['local'] == counts['store']}\n")


if __name__ == "__main__":
    main()
