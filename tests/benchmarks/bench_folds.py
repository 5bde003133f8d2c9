"""Searches with three and with five folds on the same few labeled rows.

    DSEL_DATA=FOLDER python -m tests.benchmarks.bench_folds [N_DRAWS]

Prints, for each number of labels, the bound and the error of the first model with
``cv=3`` divided by those with ``cv=5``: geometric means over sets, learners and draws,
with their standard errors. The error is counted on rows that no search has seen.
"""

import sys
import warnings
from zlib import crc32

import numpy as np

import dsel
from tests.benchmarks.bench_certificates import SETS, problem, table

LEARNERS = ("logistic", "knn", "svm")
SIZES = (120, 200, 300)
N_TEST = 6_000


def main(n_draws: int = 3) -> None:
    """Print a line for each number of labels."""
    for n in SIZES:
        ratios = np.array([
            ratios_of(name, learner, n, draw)
            for draw in range(n_draws)
            for name in SETS
            for learner in LEARNERS
        ])  # fmt: skip
        logs = np.log(ratios[(ratios > 0).all(axis=1)])
        means, errors = np.exp(logs.mean(0)), logs.std(0) / np.sqrt(len(logs))
        for what, mean, error in zip(("bound", "error"), means, errors, strict=True):
            print(
                f"{n} labels: {what} {mean:.3f} +- {error:.3f} ({len(logs)} searches)"
            )


def ratios_of(name: str, learner: str, n: int, draw: int) -> tuple[float, float]:
    """Return the ratios of the bounds and of the errors, cv=3 over cv=5."""
    X, y, _ = table(name)
    estimator, grid = problem(name, learner)
    seed = crc32(f"folds {name} {n} {learner} {draw}".encode())
    order = np.random.default_rng(seed).permutation(len(y))
    own, rest = order[:n], order[n:][:N_TEST]
    numbers = []
    for cv in (3, 5):
        search = dsel.SemiSupervisedSearchCV(
            estimator, grid, cv=cv, random_state=seed, n_jobs=1
        ).fit(X[own], y[own])
        wrong = np.mean(search.predict(X[rest]) != y[rest])
        numbers.append((search.outcome_.certificates["one_fold"].bound, wrong))
    (bound_3, error_3), (bound_5, error_5) = numbers
    return bound_3 / bound_5, error_3 / error_5 if error_5 else np.nan


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of convergence, on unscaled columns
    main(*map(int, sys.argv[1:]))
