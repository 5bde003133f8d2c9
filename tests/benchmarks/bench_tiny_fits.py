"""What a fit costs beside itself: 2,500 tiny fits on two worker processes.

Run by hand: ``python tests/benchmarks/bench_tiny_fits.py [REPETITIONS]``. Prints, for
each repetition and as the median, (wall time - summed fit seconds / 2) / fits.
"""

import statistics
import sys
import time

import numpy as np
from distributed import Client, LocalCluster
from dsel.searches import execute, plan_search
from sklearn.naive_bayes import GaussianNB

N_CANDIDATES = 227
N_FOLDS = 10  # and the full fit: 2,497 fits


def overhead(client, seed):
    """Return milliseconds a fit, and the number of fits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    grid = {"var_smoothing": np.geomspace(1e-12, 1e-3, N_CANDIDATES)}
    plan = plan_search(
        GaussianNB(), grid, X, y, cv=N_FOLDS, prune=False, random_state=seed
    )
    started = time.perf_counter()
    results = execute(plan, client).results
    wall = time.perf_counter() - started
    spent = float(results.fit_seconds.sum() + results.full_fit_seconds.sum())
    n_fits = N_CANDIDATES * (N_FOLDS + 1)
    return 1000 * (wall - spent / 2) / n_fits, n_fits


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        overhead(client, 0)  # imports on the workers
        found = [overhead(client, seed)[0] for seed in range(1, repetitions + 1)]
    for each in found:
        print(f"{each:.2f} ms a fit beside the fit itself")
    print(f"median {statistics.median(found):.2f} ms (at most 5)")


if __name__ == "__main__":
    main()
