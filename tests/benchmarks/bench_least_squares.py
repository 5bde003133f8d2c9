"""Closed forms of least squares against refits by scikit-learn, both sides in one run.

    python tests/benchmarks/bench_least_squares.py [rows] [loo|kfold|ridge|stream]

Refits are measured on a few cells and scaled to the grid: the time of a fit does not
depend on the regularization. One thread on both sides; times are of this process's CPU
where a neighbour's load would disturb them, and wall time is printed beside.
"""

import resource
import sys
import time
from contextlib import contextmanager

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit
from threadpoolctl import threadpool_limits

from dsel.least_squares import LeastSquaresSearch

WIDTHS = np.geomspace(0.3, 10.0, 15)
LAMS = np.geomspace(1e-6, 1e2, 50)
LOO_REFITS = 20  # of n, measured for each width that is measured


@contextmanager
def measured(results, name):
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    results[name] = time.process_time() - cpu
    results[f"{name} (wall)"] = time.perf_counter() - wall


def table(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def show(title, ours, theirs, wanted):
    print(f"{title}: {ours:.2f} s against {theirs:.0f} s, {theirs / ours:.0f} times "
          f"faster (wanted {wanted})")  # fmt: skip


def ridge_grid(width, lams):
    gamma = 1 / (2 * width**2)
    return KernelRidge(kernel="rbf"), {"alpha": list(lams), "gamma": [gamma]}


def refit_seconds(X, y, cv, n_splits):
    """Seconds of one cell by GridSearchCV, from two cells of one width."""
    estimator, grid = ridge_grid(1.0, LAMS[[10, 30]])
    search = GridSearchCV(
        estimator, grid, cv=cv, scoring="neg_mean_squared_error", refit=False
    )
    times = {}
    with measured(times, "search"):
        search.fit(X, y)
    return times["search"] / (2 * n_splits)


def bench_loo(n):
    X, y = table(n)
    times = {}
    search = LeastSquaresSearch(WIDTHS, LAMS, penalty="rkhs", cv=None, n_jobs=1)
    plan = search.plan(X, y)
    with measured(times, "loo"):
        results = plan.run(n_jobs=1)
    # Leave-one-out on a few rows: each is a split of n - 1 rows, as in the whole.
    held_out = np.full(n, -1)
    held_out[:LOO_REFITS] = np.arange(LOO_REFITS)
    per_fit = refit_seconds(X, y, PredefinedSplit(held_out), LOO_REFITS)
    theirs = per_fit * n * len(WIDTHS) * len(LAMS)
    show(f"leave-one-out, n = {n}, 15 x 50", times["loo"], theirs, "5000")
    best = float(results["estimate"].sel(criterion="loo").min())
    wall = times["loo (wall)"]
    print(f"  wall {wall:.2f} s; one refit {per_fit:.4f} s; best {best:.4g}")


def bench_kfold(n):
    X, y = table(n)
    times = {}
    search = LeastSquaresSearch(
        WIDTHS, LAMS, penalty="rkhs", criterion="kfold", cv=KFold(10), n_jobs=1
    )
    plan = search.plan(X, y)
    with measured(times, "kfold"):
        results = plan.run(n_jobs=1)
    per_fit = refit_seconds(X, y, KFold(10), 10)
    theirs = per_fit * 10 * len(WIDTHS) * len(LAMS)
    show(f"10-fold, n = {n}, 15 x 50", times["kfold"], theirs, "20")
    best = float(results["estimate"].sel(criterion="kfold").min())
    print(f"  wall {times['kfold (wall)']:.2f} s; best {best:.4g}")


def bench_ridge(n):
    """Per width, the eigenvectors given: scikit-learn's RidgeCV against ours."""
    from dsel.kernels import squared_distances
    from dsel.least_squares.closed_form import leave_one_out_residuals, solve_dual
    from dsel.least_squares.kernel import decompose_gram, gaussian_gram

    X, y = table(n)
    gram = gaussian_gram(squared_distances(X, X), width=1.0)
    times = {}
    with measured(times, "decomposition"):
        spectrum = decompose_gram(gram, penalty="rkhs")
    with measured(times, "ours"):
        solution = solve_dual(spectrum, y[:, np.newaxis], LAMS)
        losses = np.square(leave_one_out_residuals(solution)).mean(axis=(0, 1))
    # X X' = K: leave-one-out of linear ridge on these columns is that of kernel ridge.
    design = spectrum.vectors * np.sqrt(np.maximum(spectrum.values, 0.0))
    ridge = RidgeCV(LAMS, fit_intercept=False, gcv_mode="eigen", store_cv_results=True)
    with measured(times, "RidgeCV"):
        ridge.fit(design, y)
    error = np.max(np.abs(ridge.cv_results_.mean(axis=0) / losses - 1))
    print(f"one width, n = {n}, 50 regularizations: decomposition "
          f"{times['decomposition']:.2f} s + ours {times['ours']:.3f} s; RidgeCV "
          f"{times['RidgeCV']:.2f} s on these vectors, decomposing them again; "
          f"losses differ by {error:.1e}")  # fmt: skip


def bench_stream(n):
    """Chunks that Dask makes, on two worker processes of 1 GiB."""
    import dask.array as da
    from distributed import Client

    from dsel.least_squares import StreamedLeastSquaresSearch

    rng = da.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 5), chunks=(100_000, 5))
    y = da.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n, chunks=100_000)
    search = StreamedLeastSquaresSearch(
        [1.0], np.geomspace(1e-3, 1e3, 20), n_centers=500, random_state=0
    )
    with Client(
        n_workers=2,
        threads_per_worker=1,
        memory_limit="1GiB",
        dashboard_address="127.0.0.1:0",
    ) as client:
        before = sum(client.run(time.process_time).values())
        start = time.perf_counter()
        search.fit(X, y)
        seconds = time.perf_counter() - start
        cpu = sum(client.run(time.process_time).values()) - before
        peaks = client.run(peak_mib).values()
    print(f"streamed, n = {n}, 500 centres, 20 regularizations: {seconds:.1f} s wall, "
          f"{cpu:.1f} s of CPU on two workers (wanted 60 s on two cores); peak "
          f"{max(peaks):.0f} MiB a worker; {search.choice_}")  # fmt: skip


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


BENCHES = {
    "loo": bench_loo,
    "kfold": bench_kfold,
    "ridge": bench_ridge,
    "stream": bench_stream,
}

if __name__ == "__main__":
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2000
    wanted = sys.argv[2:] or ["ridge", "loo", "kfold"]
    with threadpool_limits(1):
        for name in wanted:
            BENCHES[name](rows)
