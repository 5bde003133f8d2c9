"""Large tables: a pass over a pool, discriminant analysis on one, leave-one-out.

    python -m tests.benchmarks.bench_scale PART... [--rows 10000000] [--folder PLACE]

`pool`: one pass of a search over a zarr pool, beside Dask's plain read-and-sum. It runs
on workers that dsel starts, which keep freed memory for the next chunk; the sum on
workers as Dask starts them, and on ours. Prints seconds, rows per second, the largest
worker and the ratios, those of the workers' processor time too (which other load on the
machine disturbs less), for three rounds.

`compare`: `compare_models` on such a pool, beside both models' own `predict` on chunks
of a Dask array, on the same workers; three rounds in turn.

`queries`: a default search with such a pool, without and with 50 queries, each on new
workers: how large the largest worker and the driver grow, and seconds.

`numbers`: the pass of a search of regressors over a pool, linear models and trees of
depth 8, whose deviations are counted in bins (a tolerance), beside the same pass that
counts one number (the share beyond a fixed tolerance) and the models' own `predict` on
blocks of 32,768 rows. One thread; compared is processor time of the pass alone, the
least of three rounds.

`mcpl`: semi-supervised discriminant analysis with such a pool, on two workers of Dask.

`loo`: leave-one-out of least squares on 2,000 rows against refits by scikit-learn,
measured on a few cells and scaled to the grid: the time of a fit does not depend on the
regularization. One thread on both sides; compared is processor time.
"""

import argparse
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
import zarr
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import dsel
from dsel.cluster import connect
from dsel.least_squares import LeastSquaresSearch
from dsel.losses import beyond, error_quantile
from dsel.mcpl import SemiSupervisedLDA
from dsel.runtime.progress import CHECKING, COUNTING
from tests.benchmarks.measuring import watch
from tests.clusters import two_workers

CHUNK_ROWS = 100_000
CENTRES = np.outer([0, 1], np.linspace(-1, 1, 50)).astype(np.float32)
DRAWN = np.random.default_rng(3).standard_normal((5, 50))
FIVE_CENTRES = 0.7 * DRAWN.astype(np.float32)
WIDTHS, LAMS = np.geomspace(0.3, 10.0, 15), np.geomspace(1e-6, 1e2, 50)
LOO_REFITS = 20  # of n, each a split of n - 1 rows, as in the whole
RATIOS = (
    "pass / sum on Dask's workers {:.2f}, on ours {:.2f}; the same of processor time "
    "{:.2f}, {:.2f}; of the whole run {:.2f}, {:.2f}"
)


def draw_rows(n_rows, seed, centres):
    """Return noise around the centre of a class that is drawn, and the classes."""
    rng = np.random.default_rng([7, seed])
    labels = rng.integers(0, len(centres), n_rows)
    noise = rng.standard_normal((n_rows, centres.shape[1]), dtype=np.float32)
    return centres[labels] + noise, labels


def make_pool(path, n_rows, centres=CENTRES):
    """Write such rows, unless they are there already."""

    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        return draw_rows(stop - start, start + 1, centres)[0]

    lengths = [min(CHUNK_ROWS, n_rows - at) for at in range(0, n_rows, CHUNK_ROWS)]
    chunks = (tuple(lengths), centres.shape[1])
    rows = da.map_blocks(chunk, chunks=chunks, dtype=np.float32, name="bench-pool")
    return dsel.write_pool(rows, path, chunk_rows=CHUNK_ROWS)


def pass_over(path, client):
    """Return what was watched, seconds beyond the longest fit, and rows of the pool.

    The pass before, which looks for labeled rows in the pool, is part of what was
    watched, but its seconds are not.
    """
    plan = dsel.plan_search(
        LinearSVC(), {"C": [0.1]}, *draw_rows(2000, 0, CENTRES), dsel.open_pool(path),
        certificate="cv_bound", cv=5, random_state=7,
    )  # fmt: skip
    begun = []

    def note(progress):
        if progress.phase != CHECKING:
            begun.append(time.perf_counter())

    with watch(client) as found:
        results = plan.run(client, on_progress=note).results
        searched = time.perf_counter() - begun[0]
    seconds = searched - float(results.full_fit_seconds.max())
    return found, seconds, int(results.n_unlabeled)


def sum_of(path, client):
    with watch(client) as found:
        client.compute(da.from_zarr(path).sum()).result()
    return found


def round_of(path, others, client):
    """Print and return the ratios of one round."""
    sums = [sum_of(path, each) for each in (others, client)]
    found, seconds, n_rows = pass_over(path, client)
    ratios = [
        *(seconds / each.wall for each in sums),
        *(found.cpu / each.cpu for each in sums),
        *(found.wall / each.wall for each in sums),
    ]
    print(
        f"sums {sums[0].wall:.2f} and {sums[1].wall:.2f} s, pass {seconds:.2f} s, "
        f"{found.cpu:.2f} s of processors, {n_rows / seconds / 1e6:.2f} M rows/s, "
        f"{found.memory}; {RATIOS.format(*ratios)}",
        flush=True,
    )
    return ratios


def pool_pass(n_rows, folder):
    path, small = (folder / f"pool-{n}.zarr" for n in (n_rows, 100_000))
    make_pool(path, n_rows)
    make_pool(small, 100_000)
    with two_workers("2GiB") as others, connect(workers=2, memory="2 GiB") as client:
        pass_over(small, client)
        for each in (others, client):  # the first to read waits for the disk
            sum_of(path, each)
        found = [round_of(path, others, client) for _ in range(3)]
    print("median of " + RATIOS.format(*np.median(np.array(found), axis=0)))


def compare(n_rows, folder):
    path = folder / f"pool-{n_rows}.zarr"
    make_pool(path, n_rows)
    X, y = draw_rows(2000, 0, CENTRES)
    old = LogisticRegression().fit(X[:500], y[:500])
    new = RandomForestClassifier(20, max_depth=6, random_state=0).fit(X, y)
    ratios = []
    with connect(workers=2, memory="2 GiB") as client:
        rows = da.from_zarr(path)

        def predict():
            both = [
                rows.map_blocks(model.predict, dtype=y.dtype, drop_axis=1)
                for model in (old, new)
            ]
            return client.compute((both[0] != both[1]).sum()).result()

        predict()  # the first to read waits for the disk
        for _ in range(3):
            with watch(client) as ours:
                found = dsel.compare_models(
                    old, new, path, n_queries=60, random_state=0, client=client
                )
            with watch(client) as theirs:
                assert predict() == found.n_differ
            ratios.append((ours.wall / theirs.wall, ours.cpu / theirs.cpu))
            print(f"compare_models {ours.wall:.2f} s, {ours.cpu:.2f} s of processors; "
                  f"both models' predict {theirs.wall:.2f}, {theirs.cpu:.2f}; "
                  f"{ours.memory}", flush=True)  # fmt: skip
    print("median ratios of wall {:.2f}, of processors {:.2f}".format(
        *np.median(ratios, axis=0)
    ))  # fmt: skip


def queries(n_rows, folder):
    path, small = (folder / f"pool-{n}.zarr" for n in (n_rows, 100_000))
    for name, n in ((path, n_rows), (small, 100_000)):
        make_pool(name, n, FIVE_CENTRES)
    X, y = draw_rows(1000, 0, FIVE_CENTRES)
    found = {}
    # The first turn, on a small pool, loads what any search needs.
    for pool, n_queries in ((small, 50), (path, 0), (path, 50)):
        plan = dsel.plan_search(
            LogisticRegression(), {"C": [0.01, 0.1, 1.0]}, X, y, pool,
            n_queries=n_queries, random_state=7,
        )  # fmt: skip
        with connect(workers=2, memory="2 GiB") as client, watch(client) as seen:
            outcome = plan.run(client)
        queries = outcome.choice.queries
        assert bool(queries and queries.rows) == bool(n_queries)
        found[n_queries] = seen
        print(f"{int(outcome.results.n_unlabeled):,} rows, {n_queries} queries: "
              f"{seen.wall:.1f} s, {seen.memory}, driver "
              f"{seen.driver_nbytes / 2**20:.0f} MiB", flush=True)  # fmt: skip
    for who, size in (("worker", "nbytes"), ("driver", "driver_nbytes")):
        more = getattr(found[50], size) - getattr(found[0], size)
        print(f"with queries the {who} is {more / 2**20:+.0f} MiB larger (wanted 50)")


def count_numbers(plan):
    """Return processor seconds of the pass over the pool, and the outcome."""
    times = []

    def note(progress):
        if progress.phase == COUNTING:
            times.append(time.process_time())

    outcome = plan.run(n_jobs=1, on_progress=note)
    return times[-1] - times[0], outcome  # without the bounds that are read from it


def predict_blocks(path, models, block=2**15):
    """Return processor seconds of reading the pool and predicting it by each model."""
    rows, began = zarr.open(path, mode="r"), time.process_time()
    rows = rows["X"] if hasattr(rows, "array_keys") else rows
    for start in range(0, rows.shape[0], CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        for at in range(0, len(chunk), block):
            for model in models:
                model.predict(chunk[at : at + block])
    return time.process_time() - began


def numbers(n_rows, folder):
    path = folder / f"numbers-{n_rows}.zarr"
    make_pool(path, n_rows, CENTRES[:, :10])
    X, _ = draw_rows(2000, 0, CENTRES[:, :10])
    y = X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.random.default_rng(0).normal(size=2000)
    losses = {"bins": error_quantile(0.9), "one number": beyond(1.0)}
    for learner in (Ridge(), DecisionTreeRegressor(max_depth=8, random_state=0)):
        found = {}
        for _ in range(3):
            for name, loss in losses.items():
                plan = dsel.plan_search(
                    None, [learner], X, y, path, loss=loss, random_state=7
                )
                seconds, outcome = count_numbers(plan)
                found.setdefault(name, []).append(seconds)
            models = [plan.model(0, fold) for fold in (*range(5), None)]
            found.setdefault("predict", []).append(predict_blocks(path, models))
        least = {name: min(each) for name, each in found.items()}
        assert outcome.certificates["all_rows"].n_unlabeled == n_rows
        print(
            f"{type(learner).__name__}, {n_rows:,} rows: with bins {least['bins']:.2f} "
            f"s, with one number {least['one number']:.2f} s, six models' predict "
            f"{least['predict']:.2f} s of a processor; bins / one number "
            f"{least['bins'] / least['one number']:.2f} (wanted: 1.2), bins / predict "
            f"{least['bins'] / least['predict']:.2f}",
            flush=True,
        )


def mcpl(n_rows, folder):
    pool = make_pool(folder / f"classes-{n_rows}.zarr", n_rows, FIVE_CENTRES)
    with two_workers("1.5GiB") as client, client.as_current(), watch(client) as found:
        model = SemiSupervisedLDA(start_rows=20_000)
        model.fit(*draw_rows(250, 0, FIVE_CENTRES), pool=pool)
    print(f"{n_rows} x 50, 2 workers: {found.wall:.1f} s, {model.n_passes_} passes, "
          f"gap {model.duality_gap_:.2e}, contrast >= {model.contrast_lower_:.4f}, "
          f"{found.memory}")  # fmt: skip


def leave_one_out(n=2000):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)
    ours = LeastSquaresSearch(WIDTHS, LAMS, penalty="rkhs", cv=None, n_jobs=1)
    plan = ours.plan(X, y)
    held_out = np.full(n, -1)
    held_out[:LOO_REFITS] = np.arange(LOO_REFITS)
    theirs = GridSearchCV(
        KernelRidge(kernel="rbf"), {"alpha": LAMS[[10, 30]].tolist(), "gamma": [0.5]},
        cv=PredefinedSplit(held_out), scoring="neg_mean_squared_error", refit=False,
    )  # fmt: skip
    with threadpool_limits(1):
        with watch() as loo:
            plan.run(n_jobs=1)
        with watch() as refits:
            theirs.fit(X, y)
    seconds = refits.cpu / (2 * LOO_REFITS) * n * len(WIDTHS) * len(LAMS)
    print(f"leave-one-out, n = {n}, 15 x 50: {loo.cpu:.2f} s against {seconds:.0f} s, "
          f"{seconds / loo.cpu:.0f} times faster (wanted 5000)")  # fmt: skip


PARTS = {
    "pool": pool_pass,
    "compare": compare,
    "queries": queries,
    "numbers": numbers,
    "mcpl": mcpl,
    "loo": lambda *_: leave_one_out(),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=tempfile.mkdtemp())
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.rows, Path(options.folder))


if __name__ == "__main__":
    main()
