"""Leave-one-out of least squares against refits by scikit-learn, both in one run.

    python -m tests.benchmarks.bench_least_squares [ROWS]

Refits are measured on a few cells and scaled to the grid: the time of a fit does not
depend on the regularization. One thread on both sides; compared is processor time,
which a neighbour's load does not stretch.
"""

import sys

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from threadpoolctl import threadpool_limits

from dsel.least_squares import LeastSquaresSearch
from tests.benchmarks.measuring import watch

WIDTHS = np.geomspace(0.3, 10.0, 15)
LAMS = np.geomspace(1e-6, 1e2, 50)
LOO_REFITS = 20  # of n, each a split of n - 1 rows, as in the whole


def main(n=2000):
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
