"""Leave-one-out of least squares against refits by scikit-learn, both in one run.

    python -m tests.benchmarks.bench_least_squares [--rows 2000]

Refits are measured on a few cells and scaled to the grid: the time of a fit does not
depend on the regularization. One thread on both sides; compared is processor time,
which a neighbour's load does not stretch.
"""

import argparse

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from threadpoolctl import threadpool_limits

from dsel.least_squares import LeastSquaresSearch
from tests.benchmarks.measuring import Watch

WIDTHS = np.geomspace(0.3, 10.0, 15)
LAMS = np.geomspace(1e-6, 1e2, 50)
LOO_REFITS = 20  # of n, each a split of n - 1 rows, as in the whole


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    n = parser.parse_args().rows
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
        with Watch() as loo:
            results = plan.run(n_jobs=1)
        with Watch() as refits:
            theirs.fit(X, y)
    refit = refits.cpu / (2 * LOO_REFITS)
    seconds = refit * n * len(WIDTHS) * len(LAMS)
    best = float(results["estimate"].sel(criterion="loo").min())
    print(f"leave-one-out, n = {n}, 15 x 50: {loo.cpu:.2f} s against {seconds:.0f} s, "
          f"{seconds / loo.cpu:.0f} times faster (wanted 5000); wall {loo.wall:.2f} s; "
          f"one refit {refit:.4f} s; best {best:.4g}")  # fmt: skip


if __name__ == "__main__":
    main()
