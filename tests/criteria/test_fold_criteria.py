import numpy as np
import pytest

from dsel import names
from dsel.bounds.cross_validation import best_fold, cv_bound
from dsel.bounds.holdout import holdout_bound
from dsel.bounds.shares import uniform_shares
from dsel.criteria import CRITERIA, Estimate, Settings, get_criterion
from tests.criteria.test_co_validation import HALVES, make_evidence

N_CANDIDATES, N_FOLDS, POOL = 12, 5, 1000
SHARE = 0.05 / N_CANDIDATES
SETTINGS = Settings(uniform_shares(N_CANDIDATES, delta=0.05))
GUARANTEES = ["best_fold", "cv_bound", "holdout"]
ALL = [*GUARANTEES, "cv_error", "loo_error"]


@pytest.fixture
def evidence(rng):
    return {
        names.FOLD_ERRORS: rng.integers(0, 15, (N_CANDIDATES, N_FOLDS)),
        names.FOLD_ROWS: np.array([41, 41, 40, 40, 40]),
        names.DISAGREEMENTS: rng.integers(0, 20, (N_CANDIDATES, N_FOLDS)),
        names.BEST_FOLD_DISAGREEMENTS: rng.integers(0, 80, N_CANDIDATES),
        names.POOL_ROWS: np.full((N_CANDIDATES, N_FOLDS), POOL // N_FOLDS),
        names.N_UNLABELED: np.array(POOL),
        names.LOO_ERRORS: rng.integers(0, 60, N_CANDIDATES),
        names.N_LABELED: np.array(202),
        names.STATUS: np.full(N_CANDIDATES, names.STATUS_DONE, np.int8),
    }


def changed(evidence, name, value, at=0):
    counts = evidence[name].copy()
    counts[at] = value
    return {**evidence, name: counts}


def estimate(name, evidence):
    return get_criterion(name).evaluate(evidence, SETTINGS).estimate


def chosen(name, evidence):
    rule = get_criterion(name)
    return rule.choose(rule.evaluate(evidence, SETTINGS), evidence)


@pytest.mark.parametrize("n_equal", [0, 100])
def test_certificates__are_the_bounds_of_their_names(evidence, n_equal):
    if n_equal:
        evidence[names.EQUAL_ROWS] = np.array(n_equal)
    folds, seen = (
        (evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS]),
        POOL - n_equal,
    )

    expected = {
        "cv_bound": cv_bound(
            *folds, evidence[names.DISAGREEMENTS].sum(axis=1), seen, delta=SHARE
        ).bound,
        "best_fold": best_fold(
            *folds, evidence[names.BEST_FOLD_DISAGREEMENTS], seen, delta=SHARE
        ).bound,
        "holdout": holdout_bound(folds[0][:, 0], 41, delta=SHARE),
    }

    for name, bound in expected.items():
        np.testing.assert_allclose(estimate(name, evidence), bound, rtol=1e-14)


def test_holdout__reads_the_first_fold_only(evidence):
    others = changed(evidence, names.FOLD_ERRORS, -1, at=(slice(None), slice(1, None)))

    assert np.array_equal(estimate("holdout", others), estimate("holdout", evidence))
    assert get_criterion("holdout").deploys == "fold 0"


def test_loo_error__is_a_rate_of_the_labeled_rows(evidence):
    expected = evidence[names.LOO_ERRORS] / 202

    assert np.array_equal(estimate("loo_error", evidence), expected)


def test_cv_error__is_the_mean_of_the_rates_of_the_folds(evidence):
    rates = evidence[names.FOLD_ERRORS] / evidence[names.FOLD_ROWS]

    np.testing.assert_allclose(estimate("cv_error", evidence), rates.mean(axis=1))


def test_cv_error__counts_answers_where_several_models_answer_a_row(evidence):
    answers = np.tile(4 * evidence[names.FOLD_ROWS], (N_CANDIDATES, 1))
    nested = {**evidence, names.FOLD_ANSWERS: answers}

    found = estimate("cv_error", nested)

    np.testing.assert_allclose(found, estimate("cv_error", evidence) / 4)
    assert chosen("cv_error", nested) == chosen("cv_error", evidence)


def test_cv_error__has_no_number_of_who_was_asked_less_often(evidence):
    answers = np.tile(4 * evidence[names.FOLD_ROWS], (N_CANDIDATES, 1))
    answers[3] //= 2
    errors = changed(evidence, names.FOLD_ERRORS, 0, at=3)

    found = estimate("cv_error", {**errors, names.FOLD_ANSWERS: answers})

    assert np.flatnonzero(np.isnan(found)).tolist() == [3]


def test_cv_error__bounds_from_below_who_was_asked_less_often(evidence):
    answers = np.tile(4 * evidence[names.FOLD_ROWS], (N_CANDIDATES, 1))
    final = estimate("cv_error", {**evidence, names.FOLD_ANSWERS: answers})
    answers[3] //= 2  # all errors may lie in the answers that were given

    lower = get_criterion("cv_error").lower_bound(
        {**evidence, names.FOLD_ANSWERS: answers}, SETTINGS
    )

    assert lower[3] == final[3]


def test_cv_error__ties_are_exact_and_go_to_the_first():
    # 1/3 + 1 and 2/3 + 2/3 are equal as fractions, not always as sums of rates.
    rows = np.array([3, 3, 2])
    errors = np.array([[3, 3, 2], [0, 1, 2], [2, 2, 0], [1, 0, 2]])
    tied = {
        names.FOLD_ERRORS: errors,
        names.FOLD_ROWS: rows,
        names.STATUS: np.zeros(4, np.int8),
    }

    assert chosen("cv_error", tied) == 1


def test_cv_bound__leaves_out_who_did_not_see_the_whole_pool(evidence):
    partial = changed(evidence, names.POOL_ROWS, 0, at=(4, 1))

    assert np.flatnonzero(np.isnan(estimate("cv_bound", partial))).tolist() == [4]


def evidence_for(name, evidence, rng):
    return make_evidence(rng, N_CANDIDATES) if name in HALVES else evidence


@pytest.mark.parametrize("name", [*ALL, *HALVES])
def test_criteria__know_only_complete_candidates(evidence, name, rng):
    rule, partial = get_criterion(name), evidence_for(name, evidence, rng)
    for count in rule.counts:
        partial = changed(partial, count, -1, at=1)

    found = estimate(name, partial)

    assert np.flatnonzero(np.isnan(found)).tolist() == [1]


@pytest.mark.parametrize("name", [*ALL, *HALVES])
def test_criteria__never_choose_a_failed_candidate(evidence, name, rng):
    evidence = evidence_for(name, evidence, rng)
    best = chosen(name, evidence)

    failed = changed(evidence, names.STATUS, names.STATUS_FAILED, at=best)

    assert np.isinf(estimate(name, failed)[best])
    assert chosen(name, failed) != best


@pytest.mark.parametrize("name", [*(n for n in ALL if n != "best_fold"), *HALVES])
def test_criteria__bound_partial_counts_from_below(evidence, name, rng):
    evidence = evidence_for(name, evidence, rng)
    rule, final = get_criterion(name), estimate(name, evidence)
    for _ in range(20):
        partial = dict(evidence)
        for count in rule.counts:
            hidden = rng.random(evidence[count].shape) < 0.5
            partial = changed(partial, count, -1, at=hidden)

        assert (rule.lower_bound(partial, SETTINGS) <= final + 1e-9).all()


def test_best_fold__claims_nothing_of_partial_counts(evidence):
    rule = get_criterion("best_fold")
    partial = changed(evidence, names.FOLD_ERRORS, -1, at=(4, 1))

    assert not rule.can_prune
    assert rule.lower_bound(partial, SETTINGS)[4] == 0.0


def test_criteria__say_what_they_are():
    assert all(name == rule.name for name, rule in CRITERIA.items())
    guaranteed = [name for name, rule in CRITERIA.items() if rule.is_guarantee]
    assert sorted(guaranteed) == GUARANTEES


def test_get_criterion__names_all_that_there_are():
    with pytest.raises(ValueError, match=r"`certificate` must be one of .*'cv_bound'"):
        get_criterion("nested_vote", "certificate")


def test_estimate__is_added_from_outside_in_one_line(evidence):
    worst = Estimate(
        "worst_fold",
        lambda counts: counts[names.FOLD_ERRORS].max(axis=1) / 40.0,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
    )

    found = worst.evaluate(evidence, SETTINGS).estimate

    assert np.array_equal(found, evidence[names.FOLD_ERRORS].max(axis=1) / 40)
    assert worst.choose(worst.evaluate(evidence, SETTINGS), evidence) == found.argmin()
