"""Every criterion on every kind of cube: the number by hand, or one line."""

import re
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedKFold, StratifiedKFold

import dsel
from dsel import bounds
from dsel.least_squares import LeastSquaresSearch
from tests.estimators import OnAllRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
POOL = RNG.normal(size=(1_500, 3))
GRID = {"C": [0.001, 0.01, 1.0, 10.0]}
SPLITTER = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)


def search(pool=POOL, grid=GRID, **options):
    options = {"random_state": 0, "cv": 3, "prune": False, **options}
    plan = dsel.plan_search(LogisticRegression(), grid, X, Y, pool, **options)
    return plan.run(n_jobs=1).results


def covalidate(**options):
    return dsel.covalidate(LogisticRegression(), GRID, X, Y, POOL, repeats=3, **options)


def least_squares():
    return LeastSquaresSearch([1.0], [0.1, 1.0]).fit(X, Y.astype(float)).results_


CUBES = {
    "nested": search,
    "nested, pruned": lambda: search(prune="halving"),
    "nested, no pool": lambda: search(None),
    "nested, one": lambda: search(grid={"C": [1.0]}),
    "nested, loss": lambda: search(loss=dsel.losses.recall(1)),
    "cv_bound": lambda: search(certificate="cv_bound"),
    "cv_bound, pruned": lambda: search(certificate="cv_bound", prune="exact"),
    "best_fold": lambda: search(certificate="best_fold"),
    "holdout": lambda: search(None, certificate="holdout"),
    "stratified": lambda: search(None, criterion="cv_error", cv=StratifiedKFold(3)),
    "repeated": lambda: search(criterion="cv_error", cv=SPLITTER),
    "loo": lambda: search(None, criterion="loo_error"),
    "covalidate": covalidate,
    "covalidate, loo": lambda: covalidate(leave_one_out=True),
    "least squares": least_squares,
}
OF_HALVES = (
    *("disagreement", "dis_error", "train_error", "two_fold_cv", "max_dt_e"),
    "max_cv_dt_e",
)
CRITERIA = (
    *("nested", "cv_bound", "best_fold", "holdout", "cv_error", "mean_loss"),
    *("loo_error", *OF_HALVES),
)
NESTED = ("cv_error", "nested")
OF_FOLDS = ("cv_error", "holdout")
OF_POOL = (*OF_FOLDS, "cv_bound", "best_fold")
ANSWERS = {
    "nested": NESTED, "nested, pruned": NESTED, "nested, no pool": NESTED,
    "nested, one": NESTED, "nested, loss": (*NESTED, "mean_loss"),
    "cv_bound": OF_POOL, "best_fold": OF_POOL, "repeated": OF_POOL,
    "holdout": OF_FOLDS, "stratified": OF_FOLDS, "loo": (*OF_FOLDS, "loo_error"),
    "covalidate": OF_HALVES, "covalidate, loo": (*OF_HALVES, "loo_error"),
    "least squares": (),
}  # fmt: skip


@cache
def cube_of(kind):
    return CUBES[kind]()


def flat(cube, name, n_last=1):
    """Return a variable with candidates in one axis, and `n_last` others."""
    values = cube[name].values
    shape = values.shape[values.ndim - n_last :] if n_last else ()
    return values.reshape(-1, *shape)


def cv_error(cube):
    answers = flat(cube, "fold_answers") if "fold_answers" in cube else cube.fold_rows
    return (flat(cube, "fold_errors") / np.asarray(answers)).mean(axis=1)


def holdout(cube):
    errors = flat(cube, "fold_errors")[:, 0]
    share = 0.05 / len(errors)
    return bounds.binomial_tail_inversion(
        errors.astype(int), int(cube.fold_rows[0]), delta=share
    )


def bound_by_pool(formula, differ):
    def by_hand(cube):
        errors, rows = flat(cube, "fold_errors").astype(int), cube.fold_rows.values
        share = 0.05 / len(errors)
        return [
            formula(e, rows.astype(int), int(d), len(POOL), delta=share).bound
            for e, d in zip(errors, differ(cube), strict=True)
        ]

    return by_hand


def halves(cube, name):
    return flat(cube, name, 2)


def disagreement(cube):
    return flat(cube, "disagreements").mean(axis=1) / len(POOL)


def dis_error(cube):
    return bounds.error_from_disagreement(disagreement(cube), n_classes=2)


def train_error(cube):
    rates = halves(cube, "train_errors") / cube.train_rows.values
    return rates.mean(axis=(1, 2))


def two_fold_cv(cube):
    return halves(cube, "fold_errors").sum(axis=(1, 2)) / cube.fold_rows.values.sum()


BY_HAND = {
    "cv_error": cv_error,
    "nested": cv_error,
    "holdout": holdout,
    "cv_bound": bound_by_pool(
        bounds.cv_bound, lambda c: flat(c, "disagreements").sum(axis=1)
    ),
    "best_fold": bound_by_pool(
        bounds.cv_bound, lambda c: flat(c, "disagreements").sum(axis=1)
    ),
    "loo_error": lambda cube: flat(cube, "loo_errors", 0) / 120,
    "mean_loss": lambda cube: flat(cube, "fold_loss_mean").mean(axis=1),
    "disagreement": disagreement,
    "dis_error": dis_error,
    "train_error": train_error,
    "two_fold_cv": two_fold_cv,
    "max_dt_e": lambda c: np.maximum(train_error(c), dis_error(c)),
    "max_cv_dt_e": lambda c: np.maximum.reduce(
        [two_fold_cv(c), train_error(c), dis_error(c)]
    ),
}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ANSWERS)
def test_select__is_the_number_by_hand_or_one_line(kind, criterion):
    cube = cube_of(kind)
    if criterion not in ANSWERS[kind]:
        with pytest.raises(ValueError, match=re.escape(f"'{criterion}'")) as raised:
            dsel.select(cube, criterion)
        assert "\n" not in str(raised.value)
        return
    choice = dsel.select(cube, criterion)
    if kind == "nested, loss" and criterion == "nested":
        assert str(choice) == str(dsel.select(cube))
        return
    numbers = np.asarray(BY_HAND[criterion](cube), float)
    done = cube["status"].values.ravel() == 0
    assert choice.criterion_value == pytest.approx(numbers[choice.candidate], rel=1e-9)
    assert choice.criterion_value <= numbers[done].min() * (1 + 1e-9)
    # What cv_bound ranks first is what the certificate of the best fold is about.
    is_declared = criterion in (kind, "nested") or (
        (kind, criterion) == ("best_fold", "cv_bound")
    )
    assert choice.certificate.certified == is_declared


@pytest.mark.parametrize("kind", ["cv_bound, pruned"])
def test_select__of_pruned_candidates_is_right_or_refused(kind):
    cube = cube_of(kind)
    assert dsel.select(cube, "cv_bound").certificate.certified
    for criterion in ("holdout", "cv_error", "best_fold"):
        with suppress(ValueError):  # of candidates that were pruned and might win
            choice = dsel.select(cube, criterion)
            exhaustive = dsel.select(cube_of("cv_bound"), criterion)
            assert choice.candidate == exhaustive.candidate


def test_select__of_a_nested_search_at_another_delta_is_refused():
    with pytest.raises(ValueError, match=r"'nested' is read .* at another `delta`"):
        dsel.select(cube_of("nested"), "nested", delta=0.2)


@pytest.mark.parametrize("kind", sorted(ANSWERS.keys() - {"least squares"}))
def test_cube__has_errors_divided_by_the_answers_behind_them(kind):
    cube = cube_of(kind)
    answers = cube.fold_answers if "fold_answers" in cube else cube.fold_rows
    expected = (cube.fold_errors / answers).transpose(*cube["error"].dims)
    np.testing.assert_allclose(cube["error"], expected)
    assert cube["error"].dims == cube.fold_errors.dims
    if "answers" in cube["error"].attrs["long_name"]:
        assert np.nanmax(cube["error"]) <= 1


def test_choice__tells_what_a_limit_by_disagreement_is_about():
    y = (X[:, 0] > 0).astype(int)
    plan = dsel.plan_search(
        OnAllRows(n_rows=len(X)), {"flip": [True]}, X, y, POOL, cv=3, random_state=0
    )
    outcome = plan.run(n_jobs=1)
    # The models of folds are right everywhere, that of all rows is always wrong.
    assert outcome.results.outer_errors.sum() == 0
    told = [r for r in outcome.choice.remarks if "the mean of their error" in r]
    assert len(told) == 1
    assert told[0].startswith("the models trained without a fold err on 0.0% of")
    [least] = re.findall(r"at least (\d+\.\d)% \(95% confidence\)", told[0])
    assert 47.0 < float(least) <= 50.0


@pytest.mark.parametrize(("certificate", "groups"), [
    *((name, None) for name in ("nested", "cv_bound", "holdout")),
    *((name, np.arange(120) // 2) for name in ("nested", "holdout")),
], ids=str)  # fmt: skip
def test_select__an_estimate_has_the_facts_of_the_certificate(certificate, groups):
    rows = np.concatenate([X[:100], X[:20]])  # copies in other folds
    pool = np.concatenate([POOL, X[:7]])
    plan = dsel.plan_search(
        LogisticRegression(), GRID, rows, Y, pool, certificate=certificate, cv=3,
        groups=groups, prune=False, random_state=0,
    )  # fmt: skip
    outcome = plan.run(n_jobs=1)

    def facts(made):
        return (made.n_labeled, made.n_unlabeled, made.n_duplicates,
                made.copied_rows, made.n_groups, made.is_holdout)  # fmt: skip

    declared, estimate = outcome.certificate, dsel.select(outcome, "cv_error")
    assert facts(estimate.certificate) == facts(declared)
    assert estimate.certificate.assumptions == outcome.choice.assumptions
    assert estimate.largest_class_error == outcome.choice.largest_class_error
    n_pool, n_equal, n_groups = (1_507, 7, 0) if groups is None else (0, 0, 60)
    assert (declared.n_labeled, declared.n_unlabeled) == (120, n_pool)
    assert (declared.n_duplicates, declared.n_groups) == (n_equal, n_groups)


@pytest.mark.parametrize("criterion", ["holdout", "cv_error"])
def test_holdout__says_what_its_model_is_trained_on_since_it_has_no_folds(criterion):
    plan = dsel.plan_search(
        LogisticRegression(), GRID, X, Y, certificate="holdout", random_state=0
    )
    choice = dsel.select(plan.run(n_jobs=1).results, criterion)
    assert choice.certificate.model_text == "model trained on 80% of the labels"
    assert "fold 0" not in str(choice)
    of_folds = dsel.select(CUBES["stratified"](), "holdout")
    assert of_folds.certificate.model_text == "model trained without fold 0"
