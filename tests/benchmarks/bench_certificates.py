"""What each certificate gives on real data, beside a held-out fifth of the labels.

    python tests/benchmarks/bench_certificates.py [NAME...] [--rows 500 ...] [--seeds 1]

For each data set and number of labels: the bound, the estimate that stands beside it
and the error observed on the labels of the pool, which no search has seen, of every
certificate, as averages over seeds, and processor seconds. `held-out fifth` is what
people do: choose by cross-validation on four fifths of the labels, and take the
Clopper-Pearson limit of the errors on the other fifth for that model.
`MAPIE, held-out fifth` is risk control by learn-then-test, where MAPIE 1.6 is there:
all candidates are trained on four fifths, and the bound is the smallest error that its
controller certifies for any of them on the other fifth, by Bonferroni's correction.
"""

import argparse
import os
import time
import warnings
from contextlib import suppress

import numpy as np
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.svm import SVC

import dsel
from dsel.bounds import binomial_tail_inversion
from dsel.data.cache import process_cache

DATA_DIR = os.environ.get("DSEL_DATA", "../shared/data")
DIVISORS = {"satimage": 255.0, "letter": 15.0, "optdigits": 16.0, "usps": 2.0}
"""Data sets, and what their features are divided by, whatever rows are drawn."""
C_VALUES = 2.0 ** np.arange(-1, 8, 2)
WIDTHS = 2.0 ** np.arange(-3, 6, 2)
DELTA = 0.05
POOL_ROWS = 10_000
CERTIFICATES = {"cv_bound": [10], "best_fold": [5], "holdout": [5], "nested": [3, 5]}
"""Every certificate, and with how many folds."""


def draw(name, n_labeled, seed):
    with np.load(os.path.join(DATA_DIR, f"{name}.npz")) as table:
        X, y = table["X"] / DIVISORS[name], table["y"]
    order = np.random.default_rng(seed).permutation(len(y))
    labeled, rest = order[:n_labeled], order[n_labeled:][:POOL_ROWS]
    return X[labeled], y[labeled], X[rest], y[rest]


def grid_of(X):
    scale = 1.0 / (X.shape[1] * X.var())
    return {"C": C_VALUES, "gamma": scale * WIDTHS}


def observed(model, rows):
    return float(np.mean(model.predict(rows[2]) != rows[3]))


def timed(make):
    """Return the processor seconds of a call without kept matrices, and its value."""
    process_cache.cache_clear()
    started = time.process_time()
    found = make()
    return time.process_time() - started, found


def by_certificate(rows, grid, seed):
    """Yield name, bound, estimate, error and seconds of each certificate."""
    for name, numbers in CERTIFICATES.items():
        for n_folds in numbers:
            plan = dsel.plan_search(
                SVC(), grid, *rows[:3], certificate=name, cv=n_folds, delta=DELTA,
                random_state=seed,
            )  # fmt: skip
            spent, outcome = timed(plan.run)
            for deploy, found in outcome.certificates.items():
                error = observed(outcome.models[deploy], rows)
                title = f"{name}, {n_folds} folds, {deploy}"
                yield title, found.unclipped, found.estimate, error, spent
    yield held_out(rows, grid, seed)
    with suppress(ImportError):
        yield by_mapie(rows, grid, seed)


def held_out(rows, grid, seed):
    X, y, _, _ = rows
    train_X, test_X, train_y, test_y = train_test_split(
        X, y, test_size=0.2, random_state=seed
    )
    search = dsel.SemiSupervisedSearchCV(SVC(), grid, cv=5, random_state=seed)
    spent, _ = timed(lambda: search.fit(train_X, train_y))
    wrong = int((search.predict(test_X) != test_y).sum())
    limit = float(binomial_tail_inversion(wrong, len(test_y), delta=DELTA))
    estimate = wrong / len(test_y)
    return "held-out fifth", limit, estimate, observed(search, rows), spent


def by_mapie(rows, grid, seed):
    from mapie.risk_control.multi_classification import MultiClassificationLTTController
    from mapie.risk_control.risks import BinaryRisk

    X, y, _, _ = rows
    train_X, test_X, train_y, test_y = train_test_split(
        X, y, test_size=0.2, random_state=seed
    )
    models = [SVC(**params) for params in ParameterGrid(grid)]
    spent, _ = timed(lambda: [each.fit(train_X, train_y) for each in models])
    answers = [each.predict(test_X) for each in models]
    wrong = BinaryRisk(
        risk_occurrence=lambda true, found: found != true,
        risk_condition=lambda true, found: np.ones(len(true), bool),
        higher_is_better=False,
    )

    def certified(level):
        control = MultiClassificationLTTController(
            predict_function=lambda _, number: answers[int(number)],
            risks=[wrong],
            target_level=[level],
            confidence_level=1 - DELTA,
            list_predict_params=np.arange(len(models))[:, np.newaxis],
        )
        with warnings.catch_warnings(action="ignore"):
            control.calibrate(test_X, test_y)
        return len(control.valid_predict_params) > 0

    low, limit = 0.0, 1.0
    while limit - low > 1e-4:
        middle = (low + limit) / 2
        low, limit = (low, middle) if certified(middle) else (middle, limit)
    errors = [float(np.mean(found != test_y)) for found in answers]
    best = int(np.argmin(errors))
    error = observed(models[best], rows)
    return "MAPIE, held-out fifth", limit, errors[best], error, spent


def table(name, n_labeled, seeds):
    found = {}
    for seed in range(seeds):
        rows = draw(name, n_labeled, seed)
        for certificate, *numbers in by_certificate(rows, grid_of(rows[0]), seed):
            found.setdefault(certificate, []).append(numbers)
    print(f"{name}, {n_labeled:,} labels, {len(rows[3]):,} pool rows, {seeds} draws")
    head = ("bound", "estimate", "observed", "seconds", "failed")
    print(f"  {'':32}{''.join(f'{each:>10}' for each in head)}")
    for certificate, numbers in found.items():
        *rates, spent = np.mean(numbers, axis=0)
        failed = sum(bound < error for bound, _, error, *_ in numbers)
        line = "".join(f"{each:10.4f}" for each in rates)
        print(f"  {certificate:32}{line}{spent:10.2f}{failed:10d}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(DIVISORS))
    parser.add_argument("--rows", nargs="+", type=int, default=[500, 2000, 8000])
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    for n in arguments.rows:
        for each in arguments.names:
            with np.load(os.path.join(DATA_DIR, f"{each}.npz")) as stored:
                enough = len(stored["y"]) >= n + 1000
            if enough:
                table(each, n, arguments.seeds)
