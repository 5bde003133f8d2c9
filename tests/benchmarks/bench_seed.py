"""How much the bounds of one search depend on its seed, on the same rows.

    python tests/benchmarks/bench_seed.py [N_SEEDS]

The search is README's: 500 rows of digits, the others are the pool. The seed draws the
folds. The error of the first model is counted on the pool, whose labels are known here.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

import dsel


def main(n_seeds: int = 21) -> None:
    """Print the smallest, the median and the largest number of each kind."""
    X, y = load_digits(return_X_y=True)
    X, pool, y, truth = train_test_split(X, y, train_size=500, random_state=11)
    grid = {"C": [0.1, 1, 10, 100], "gamma": [1e-4, 1e-3, 1e-2]}
    rows = []
    for seed in range(n_seeds):
        outcome = dsel.certify(
            GridSearchCV(SVC(), grid), X, y, pool, random_state=seed, verbose=0
        )
        first, second = (made.number for made in outcome.certificates.values())
        wrong = np.mean(outcome.model.predict(pool) != truth)
        rows.append((first, second, outcome.certificate.estimate, wrong))
    names = "first bound", "second bound", "estimate", "error of the first model"
    for name, numbers in zip(names, np.sort(rows, axis=0).T, strict=True):
        shown = (f"{100 * n:.1f}%" for n in np.quantile(numbers, [0, 0.5, 1]))
        print(f"{name:<25} {'  '.join(shown)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
