"""One pass of a search over a large zarr pool, beside Dask's plain read-and-sum.

Run by hand: ``python -m tests.benchmarks.bench_pool_pass``. The pass runs on
workers that dsel starts, which keep freed memory for the next chunk; the sum on workers
as Dask starts them, and on ours. Prints seconds, rows per second, the largest worker
and the ratios, those of the workers' processor time too (which other load on the
machine disturbs less), for three rounds.
"""

import argparse
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
from sklearn.svm import LinearSVC

import dsel
from dsel.cluster import connect
from tests.benchmarks.measuring import Watch, two_workers

N_COLUMNS = 50


def make_pool(path, n_rows, chunk_rows):
    """Write noise with one direction that matters, unless it is there already."""
    direction = np.linspace(-1, 1, N_COLUMNS, dtype=np.float32)

    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        rng = np.random.default_rng(start)
        noise = rng.standard_normal((stop - start, N_COLUMNS), dtype=np.float32)
        return noise + rng.integers(0, 2, (stop - start, 1)) * direction

    lengths = [min(chunk_rows, n_rows - at) for at in range(0, n_rows, chunk_rows)]
    rows = da.map_blocks(
        chunk, chunks=(tuple(lengths), N_COLUMNS), dtype=np.float32, name="bench-pool"
    )
    return dsel.write_pool(rows, path, chunk_rows=chunk_rows)


def labeled_rows(n_rows=2000):
    rng = np.random.default_rng(-1 % 2**32)
    y = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    return X + y[:, None] * np.linspace(-1, 1, N_COLUMNS), y


def pass_over(path, client):
    """Return the watch of a search, its seconds beyond its longest fit, and the cube.

    The pass before, which looks for labeled rows in the pool, is in the watch alone.
    """
    X, y = labeled_rows()
    plan = dsel.plan_search(
        LinearSVC(), {"C": [0.1]}, X, y, dsel.open_pool(path), certificate="cv_bound",
        cv=5, random_state=7,
    )  # fmt: skip
    begun = []
    with Watch(client) as watch:
        results = plan.run(
            client, on_progress=lambda _: begun.append(time.perf_counter())
        ).results
        searched = time.perf_counter() - begun[0]
    return watch, searched - float(results.full_fit_seconds.max()), results


def sum_of(path, client):
    """Return the watch of Dask's plain read-and-sum."""
    with Watch(client) as watch:
        client.compute(da.from_zarr(path).sum()).result()
    return watch


def round_of(path, others, client):
    """Print and return the ratios of one round."""
    sums = [sum_of(path, each) for each in (others, client)]
    watch, seconds, results = pass_over(path, client)
    ratios = [
        *(seconds / each.wall for each in sums),
        *(watch.cpu / each.cpu for each in sums),
        *(watch.wall / each.wall for each in sums),
    ]
    rows = int(results.n_unlabeled) / seconds / 1e6
    print(
        f"sums {sums[0].wall:.2f} and {sums[1].wall:.2f} s, pass {seconds:.2f} s, "
        f"{watch.cpu:.2f} s of processors, {rows:.2f} M rows/s, {watch.mebibytes}; "
        f"{RATIOS.format(*ratios)}",
        flush=True,
    )
    return ratios


RATIOS = (
    "pass / sum on Dask's workers {:.2f}, on ours {:.2f}; the same of processor time "
    "{:.2f}, {:.2f}; of the whole run {:.2f}, {:.2f}"
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--chunk-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    path = folder / f"pool-{options.rows}-{options.chunk_rows}.zarr"
    make_pool(path, options.rows, options.chunk_rows)
    with (
        two_workers("2GiB") as others,
        connect(workers=2, memory="2 GiB") as client,
    ):
        small = folder / "pool-warm.zarr"
        make_pool(small, 100_000, 50_000)
        pass_over(small, client)
        for each in (others, client):  # the first to read waits for the disk
            sum_of(path, each)
        found = [round_of(path, others, client) for _ in range(options.rounds)]
    print("median of " + RATIOS.format(*np.median(np.array(found), axis=0)))


if __name__ == "__main__":
    main()
