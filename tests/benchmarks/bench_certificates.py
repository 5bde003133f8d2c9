"""What each certificate gives on real data, beside a held-out fifth of the labels.

    python tests/benchmarks/bench_certificates.py [NAME...] [--rows 500 ...] [--seeds 1]

For each data set and number of labels: the bound, the estimate that stands beside it
and the error observed on the labels of the pool, which no search has seen, of every
certificate, as averages over seeds; how often the model of all rows differs from the
one that was tested (`differ`), and processor seconds. `held-out fifth` is what people
do: choose by cross-validation on four fifths of the labels, and take the
Clopper-Pearson limit of the errors on the other fifth for that model. Below stands
what `certificate="auto"` takes for these numbers of rows, before it sees any of them.
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


def differing(search):
    """Return how often the full model and the one that was tested differ."""
    if hasattr(search, "certificate_results_"):
        cube = search.certificate_results_
        return float((cube.disagreements.sum() / cube.pool_rows.sum()).item())
    cube, chosen = search.results_, search.best_index_
    differ, rows = (
        cube[name].sum("fold").values.ravel()[chosen]
        for name in ("disagreements", "pool_rows")
    )
    return differ / rows


def timed(make):
    """Return the processor seconds of a call without kept matrices, and its value."""
    process_cache.cache_clear()
    started = time.process_time()
    found = make()
    return time.process_time() - started, found


def by_certificate(rows, grid, seed):
    """Yield name, bound, estimate, error, disagreement, seconds of each certificate."""
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
        spent, search = timed(lambda o=options: searched(rows, grid, seed, **o))
        found = search.certificate_.unclipped, cv_error(search)
        yield (
            name,
            *found,
            observed(search.best_estimator_, rows),
            differing(search),
            spent,
        )
    for k in (3, 5):
        yield from nested(rows, grid, seed, k)
    yield held_out(rows, grid, seed)
    with suppress(ImportError):
        yield by_mapie(rows, grid, seed)


def nested(rows, grid, seed, n_folds):
    X, y, pool, answers = rows
    options = {"cv": n_folds, "random_state": seed, **ONE_EVENT}
    plan = dsel.plan_search(
        SVC(), grid, X, y, pool, certificate="nested", pool_labels=answers, **options
    )
    spent, results = timed(plan.run)
    estimate = float((results.outer_errors / results.fold_rows).mean())
    differ = {
        "nested": float(results.outer_disagreements.mean()),
        "nested_fold_model": 0.0,
        "nested_vote": float(results.vote_disagreements.mean()),
    }
    for name, counted in differ.items():
        choice = dsel.select(results, name)
        wrong = {
            "nested": results.full_test_errors.values.ravel()[choice.candidate],
            "nested_fold_model": results.outer_test_errors.values[choice.fold or 0],
            "nested_vote": results.vote_test_errors.item(),
        }[name]
        n = len(answers)
        found = choice.certificate.unclipped, estimate, wrong / n, counted / n, spent
        yield f"{name}, {n_folds} folds", *found


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
    return "held-out fifth", limit, estimate, observed(search, rows), 0.0, spent


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
    return "MAPIE, held-out fifth", limit, errors[best], error, 0.0, spent


def table(name, n_labeled, seeds):
    found = {}
    for seed in range(seeds):
        rows = draw(name, n_labeled, seed)
        for certificate, *numbers in by_certificate(rows, grid_of(rows[0]), seed):
            found.setdefault(certificate, []).append(numbers)
    print(f"{name}, {n_labeled:,} labels, {len(rows[3]):,} pool rows, {seeds} draws")
    head = ("bound", "estimate", "observed", "differ", "seconds", "failed")
    print(f"  {'':32}{''.join(f'{each:>10}' for each in head)}")
    for certificate, numbers in found.items():
        *rates, spent = np.mean(numbers, axis=0)
        failed = sum(bound < error for bound, _, error, *_ in numbers)
        line = "".join(f"{each:10.4f}" for each in rates)
        print(f"  {certificate:32}{line}{spent:10.2f}{failed:10d}", flush=True)
    plan = dsel.plan_search(
        SVC(), grid_of(rows[0]), *rows[:3], certificate="auto", **COMMON
    )
    print(f"  {plan.remarks[0]}", flush=True)


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
