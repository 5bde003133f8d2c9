"""What each certificate gives on real data, beside a held-out fifth of the labels.

    python tests/benchmarks/bench_certificates.py [NAME...] [--rows 500 ...] [--seeds 1]

For each data set and number of labels: the bound, the estimate that stands beside it
and the error observed on the labels of the pool, which no search has seen, of every
certificate, as averages over seeds. `held-out fifth` is what people do: choose by
cross-validation on four fifths of the labels, and take the Clopper-Pearson limit of
the errors on the other fifth for that model. Processor seconds of the nested search
of three folds are compared with those of the plain one (`times`). Conformal risk
control has no place here: it bounds the risk of thresholds, not of a chosen model.
"""

import argparse
import os
import time

import numpy as np
from sklearn.model_selection import train_test_split
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
COMMON = {"delta": DELTA, "duplicates": "keep"}
ONE_EVENT = {**COMMON, "label_share": 0.95}


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


def searched(rows, grid, seed, **options):
    search = dsel.SemiSupervisedSearchCV(SVC(), grid, random_state=seed, **options)
    search.fit(*rows[:3])
    return search


def cv_error(search):
    counts = search.results_.fold_errors / search.results_.fold_rows
    return float(counts.mean("fold").values.ravel()[search.best_index_])


def by_certificate(rows, grid, seed):
    """Yield name, bound, estimate and observed error of each certificate."""
    wanted = {
        "cv_bound, 10 folds": {"criterion": "cv_bound", "cv": 10, **COMMON},
        "best_fold_of_leader, 5 folds": {
            "criterion": "cv_error",
            "certificate": "best_fold_of_leader",
            "cv": 5,
            **ONE_EVENT,
        },
        "select_then_certify, a fifth": {
            "certify_rows": 0.2,
            "criterion": "cv_error",
            "cv": 5,
            **ONE_EVENT,
        },
    }
    for name, options in wanted.items():
        search = searched(rows, grid, seed, **options)
        found = search.certificate_.unclipped, cv_error(search)
        yield name, *found, observed(search.best_estimator_, rows)
    for k in (3, 5):
        yield from nested(rows, grid, seed, k)
    yield held_out(rows, grid, seed)


def nested(rows, grid, seed, n_folds):
    X, y, pool, answers = rows
    options = {"cv": n_folds, "random_state": seed, **ONE_EVENT}
    plan = dsel.plan_search(
        SVC(), grid, X, y, pool, certificate="nested", pool_labels=answers, **options
    )
    results = plan.run()
    estimate = float((results.outer_errors / results.fold_rows).mean())
    for name in ("nested", "nested_fold_model", "nested_vote"):
        choice = dsel.select(results, name)
        wrong = {
            "nested": results.full_test_errors.values.ravel()[choice.candidate],
            "nested_fold_model": results.outer_test_errors.values[choice.fold or 0],
            "nested_vote": results.vote_test_errors.item(),
        }[name]
        bound = choice.certificate.unclipped
        yield f"{name}, {n_folds} folds", bound, estimate, wrong / len(answers)


def held_out(rows, grid, seed):
    X, y, _, _ = rows
    train_X, test_X, train_y, test_y = train_test_split(
        X, y, test_size=0.2, random_state=seed
    )
    search = dsel.SemiSupervisedSearchCV(SVC(), grid, cv=5, random_state=seed)
    search.fit(train_X, train_y)
    wrong = int((search.predict(test_X) != test_y).sum())
    limit = float(binomial_tail_inversion(wrong, len(test_y), delta=DELTA))
    estimate = wrong / len(test_y)
    return "held-out fifth", limit, estimate, observed(search, rows)


def seconds(rows, grid, **options):
    """Return wall and processor seconds of a search without a pool, with its model."""
    process_cache.cache_clear()
    started = time.perf_counter(), time.process_time()
    search = dsel.SemiSupervisedSearchCV(SVC(), grid, cv=3, random_state=0, **options)
    search.fit(*rows[:2])
    return np.array([time.perf_counter(), time.process_time()]) - started


def compare_times(rows, grid, repeat=3):
    plain, nest = (
        np.median([seconds(rows, grid, **options) for _ in range(repeat)], axis=0)
        for options in ({}, {"certificate": "nested_fold_model"})
    )
    print(
        f"  times: plain {plain[0]:.2f} s ({plain[1]:.2f} processor), nested "
        f"{nest[0]:.2f} s ({nest[1]:.2f}): {nest[1] / plain[1]:.2f} times",
        flush=True,
    )


def table(name, n_labeled, seeds):
    found = {}
    for seed in range(seeds):
        rows = draw(name, n_labeled, seed)
        for certificate, *numbers in by_certificate(rows, grid_of(rows[0]), seed):
            found.setdefault(certificate, []).append(numbers)
    print(f"{name}, {n_labeled:,} labels, {len(rows[3]):,} pool rows, {seeds} draws")
    print(f"  {'':32}{'bound':>8}{'estimate':>10}{'observed':>10}{'failed':>8}")
    for certificate, numbers in found.items():
        bound, estimate, error = np.mean(numbers, axis=0)
        failed = sum(b < e for b, _, e in numbers)
        line = f"{bound:8.4f}{estimate:10.4f}{error:10.4f}{failed:8d}"
        print(f"  {certificate:32}{line}", flush=True)
    compare_times(rows, grid_of(rows[0]))


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
