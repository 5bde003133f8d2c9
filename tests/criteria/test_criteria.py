"""Criteria on counts small enough to check by hand: numbers, ties, what is missing."""

import numpy as np
import pytest

from dsel import names
from dsel.bounds import error_from_disagreement
from dsel.bounds.cross_validation import best_fold, cv_bound
from dsel.bounds.holdout import holdout_bound
from dsel.bounds.shares import uniform_deltas
from dsel.criteria import CRITERIA, Bound, Estimate, Settings, get_criterion
from dsel.criteria.criterion import Terms
from dsel.errors import AllFitsFailedError

N, N_FOLDS, POOL = 12, 5, 1000
SHARE = 0.05 / N
SETTINGS = Settings(uniform_deltas(N, delta=0.05))
GUARANTEES = sorted(name for name, rule in CRITERIA.items() if rule.is_guarantee)
HALVES = [name for name, rule in CRITERIA.items() if rule.by_halves]
ALL = [*GUARANTEES, "cv_error", "loo_error", *HALVES]


@pytest.fixture
def counted(rng):
    """Counts of folds."""
    return {
        names.FOLD_ERRORS: rng.integers(0, 15, (N, N_FOLDS)),
        names.FOLD_ROWS: np.array([41, 41, 40, 40, 40]),
        names.DISAGREEMENTS: rng.integers(0, 20, (N, N_FOLDS)),
        names.BEST_FOLD_DISAGREEMENTS: rng.integers(0, 80, N),
        names.POOL_ROWS: np.full((N, N_FOLDS), POOL // N_FOLDS),
        names.N_UNLABELED: np.array(POOL),
        names.LOO_ERRORS: rng.integers(0, 60, N),
        names.N_LABELED: np.array(202),
        names.STATUS: np.full(N, names.STATUS_DONE, np.int8),
    }


@pytest.fixture
def halves(rng):
    """Counts of three halvings of 21 rows."""
    sizes = np.tile([10, 11], (3, 1))
    return {
        names.TRAIN_ROWS: sizes,
        names.FOLD_ROWS: sizes[:, ::-1],
        names.TRAIN_ERRORS: rng.integers(0, 5, (N, 3, 2)),
        names.FOLD_ERRORS: rng.integers(0, 9, (N, 3, 2)),
        names.DISAGREEMENTS: rng.integers(0, 50, (N, 3)),
        names.POOL_ROWS: np.full((N, 3), 100),
        names.N_UNLABELED: np.array(100),
        names.N_CLASSES: np.array(2),
        names.STATUS: np.zeros(N, dtype=np.int8),
    }


@pytest.fixture(params=ALL)
def case(request, counted, halves):
    """Every criterion, with the counts that it reads."""
    return request.param, halves if request.param in HALVES else counted


def changed(counted, name, value, at=0):
    counts = counted[name].copy()
    counts[at] = value
    return {**counted, name: counts}


def estimate(name, counted):
    return get_criterion(name).evaluate(counted, SETTINGS).value


def chosen(name, counted):
    rule = get_criterion(name)
    return rule.choose(rule.evaluate(counted, SETTINGS), counted)


@pytest.mark.parametrize("n_equal", [0, 100])
def test_criteria_of_folds__are_the_formulas_of_their_names(counted, n_equal):
    if n_equal:
        counted[names.N_DUPLICATES] = np.array(n_equal)
    folds, seen = (
        (counted[names.FOLD_ERRORS], counted[names.FOLD_ROWS]),
        POOL - n_equal,
    )
    differing = counted[names.DISAGREEMENTS].sum(axis=1)
    of_best = counted[names.BEST_FOLD_DISAGREEMENTS]
    for name, expected in {
        "cv_bound": cv_bound(*folds, differing, seen, delta=SHARE).bound,
        "best_fold": best_fold(*folds, of_best, seen, delta=SHARE).bound,
        "holdout": holdout_bound(folds[0][:, 0], 41, delta=SHARE),
        "cv_error": (folds[0] / folds[1]).mean(axis=1),
        "loo_error": counted[names.LOO_ERRORS] / 202,
    }.items():
        np.testing.assert_allclose(estimate(name, counted), expected, rtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_criteria_of_halves__are_the_formulas_of_the_paper(halves, n_classes):
    halves[names.N_CLASSES] = np.array(n_classes)
    d = halves[names.DISAGREEMENTS].mean(axis=1) / 100
    s = halves[names.DISAGREEMENTS]
    e_l = error_from_disagreement(d, n_classes=n_classes)
    train = (halves[names.TRAIN_ERRORS] / [10, 11]).mean(axis=(1, 2))
    cv = halves[names.FOLD_ERRORS].sum(axis=2).mean(axis=1) / 21
    for name, expected in {
        "disagreement": d,
        "dis_error": e_l,
        "dis_error_upper": 1 - e_l if n_classes == 2 else np.ones(N),
        "row_variance": d / 2,
        "error_variance": (s * (s - 1) / (100 * 99)).mean(axis=1) / 2,
        "train_error": train,
        "two_fold_cv": cv,
        "max_dt_e": np.maximum(train, e_l),
        "max_cv_dt_e": np.maximum(cv, np.maximum(train, e_l)),
    }.items():
        np.testing.assert_allclose(estimate(name, halves), expected)
    halves[names.DISAGREEMENTS][:] = 70  # more than two classes can
    assert (estimate("dis_error", halves) == 0.5).all() == (n_classes == 2)


def test_holdout__reads_the_first_fold_only(counted):
    others = changed(counted, names.FOLD_ERRORS, -1, at=(slice(None), slice(1, None)))
    assert np.array_equal(estimate("holdout", others), estimate("holdout", counted))
    assert get_criterion("holdout").holds_out_one_fold


def test_cv_error__counts_answers_where_several_models_answer_a_row(counted):
    answers = np.tile(4 * counted[names.FOLD_ROWS], (N, 1))
    nested = {**counted, names.FOLD_PREDICTIONS: answers}
    final = estimate("cv_error", nested)
    np.testing.assert_allclose(final, estimate("cv_error", counted) / 4)
    assert chosen("cv_error", nested) == chosen("cv_error", counted)
    # Who was dropped has no number, and is bounded from below as if all errors lay in
    # the answers that were given.
    answers[3] //= 2
    fewer = {**nested, names.FOLD_PREDICTIONS: answers}
    assert estimate("cv_error", fewer)[3] == 2 * final[3]
    fewer = changed(fewer, names.STATUS, names.STATUS_PRUNED, at=3)
    found = estimate("cv_error", changed(fewer, names.FOLD_ERRORS, 0, at=3))
    assert np.flatnonzero(np.isnan(found)).tolist() == [3]
    lower = get_criterion("cv_error").lower_bound(fewer, SETTINGS)
    assert lower[3] == final[3]


def test_choose__ties_are_exact_and_go_to_the_first():
    # 1/3 + 1 and 2/3 + 2/3 are equal as fractions, not always as sums of rates.
    errors = np.array([[3, 3, 2], [0, 1, 2], [2, 2, 0], [1, 0, 2]])
    tied = {
        names.FOLD_ERRORS: errors,
        names.FOLD_ROWS: np.array([3, 3, 2]),
        names.STATUS: np.zeros(4, np.int8),
    }
    assert chosen("cv_error", tied) == 1


def test_choose__what_differs_by_rounding_is_equal(counted):
    errors = np.full((N, N_FOLDS), 9)
    errors[3:5, :3] = [[1, 2, 3], [3, 2, 1]]  # .1 + .2 + .3 > .3 + .2 + .1
    errors[3:5, 3:] = 0
    counts = {**counted, names.FOLD_ERRORS: errors, names.FOLD_ROWS: np.full(5, 10)}
    first, second = estimate("cv_error", counts)[3:5]
    assert second < first < second * (1 + 1e-15)
    assert chosen("cv_error", counts) == 3


def test_choose__ties_of_max_dt_e_go_to_the_lower_training_error(halves):
    halves[names.DISAGREEMENTS][:] = 40
    halves[names.TRAIN_ERRORS][:] = 2
    halves[names.TRAIN_ERRORS][[2, 3]] = 1
    assert chosen("max_dt_e", halves) == 2


def test_choose__fails_where_nothing_is_known(halves):
    halves[names.DISAGREEMENTS][:] = -1
    with pytest.raises(AllFitsFailedError, match="no candidate has a value"):
        chosen("disagreement", halves)


def test_cv_bound__leaves_out_who_did_not_see_the_whole_pool(counted):
    partial = changed(counted, names.POOL_ROWS, 0, at=(4, 1))
    assert np.flatnonzero(np.isnan(estimate("cv_bound", partial))).tolist() == [4]


def test_criteria__know_only_complete_candidates(case):
    name, partial = case
    for count in get_criterion(name).counts:
        partial = changed(partial, count, -1, at=1)
    assert np.flatnonzero(np.isnan(estimate(name, partial))).tolist() == [1]


def test_criteria__never_choose_a_failed_candidate(case):
    name, counted = case
    best = chosen(name, counted)
    failed = changed(counted, names.STATUS, names.STATUS_FAILED, at=best)
    assert np.isinf(estimate(name, failed)[best])
    assert chosen(name, failed) != best


def test_criteria__bound_partial_counts_from_below(case, rng):
    name, counted = case
    rule, final = get_criterion(name), estimate(name, counted)
    # Of counts that are not complete these two claim nothing.
    assert rule.can_prune == (name not in ("best_fold", "dis_error_upper"))
    for _ in range(20):
        partial = dict(counted)
        for count in rule.counts:
            hidden = rng.random(counted[count].shape) < 0.5
            partial = changed(partial, count, -1, at=hidden)
        lower = rule.lower_bound(partial, SETTINGS)
        assert (lower <= final + 1e-9).all()
        unknown = np.isnan(estimate(name, partial))
        assert rule.can_prune or (lower[unknown] == 0).all()


def test_criteria__say_what_they_are():
    assert all(name == rule.name for name, rule in CRITERIA.items())
    guaranteed = [name for name, rule in CRITERIA.items() if rule.is_guarantee]
    assert sorted(guaranteed) == GUARANTEES
    with pytest.raises(ValueError, match=r"`criterion` must be one of .*'cv_bound'"):
        get_criterion("nested_vote")


def test_estimate__is_added_from_outside_in_one_line(counted):
    worst = Estimate(
        "worst_fold",
        lambda counts: counts[names.FOLD_ERRORS].max(axis=1) / 40.0,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
    )
    terms = worst.evaluate(counted, SETTINGS)
    expected = counted[names.FOLD_ERRORS].max(axis=1) / 40
    assert np.array_equal(terms.value, expected)
    assert worst.choose(terms, counted) == expected.argmin()


def test_bound__that_is_negative_is_no_bound_of_an_error(counted):
    def below_zero(counts, settings):
        value = np.full(len(counts[names.STATUS]), -0.01)
        return Terms(value, value, value)

    wrong = Bound("wrong", below_zero, counts=(names.FOLD_ERRORS,), sizes=())
    deltas = np.full(len(counted[names.STATUS]), 0.05)
    with pytest.raises(ValueError, match=r"'wrong' must bound an error.*got -0\.01"):
        wrong.evaluate(counted, Settings(deltas))


def test_choose__of_numbers_that_round_apart_takes_the_first(counted):
    # (0.1 + 0.2) + 0.3 is above (0.3 + 0.2) + 0.1 in the last digit.
    errors = np.array([[1, 2, 3], [3, 2, 1], [9, 9, 9]])
    counts = {
        names.FOLD_ERRORS: errors,
        names.FOLD_ROWS: np.array([10, 10, 10]),
        names.STATUS: np.zeros(3, np.int8),
    }
    found = estimate("cv_error", counts)
    assert found[0] > found[1]
    assert chosen("cv_error", counts) == 0
