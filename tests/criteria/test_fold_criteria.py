import numpy as np
import pytest

from dsel import bounds, names
from dsel.criteria import CRITERIA, Settings, get_criterion

N_CANDIDATES, N_FOLDS, POOL = 12, 5, 1000


@pytest.fixture
def evidence(rng):
    return {
        names.FOLD_ERRORS: rng.integers(0, 15, (N_CANDIDATES, N_FOLDS)),
        names.FOLD_ROWS: np.array([41, 41, 40, 40, 40]),
        names.DISAGREEMENTS: rng.integers(0, 20, (N_CANDIDATES, N_FOLDS)),
        names.BEST_FOLD_DISAGREEMENTS: rng.integers(0, 80, N_CANDIDATES),
        names.POOL_ROWS: np.full((N_CANDIDATES, N_FOLDS), POOL // N_FOLDS),
        names.N_UNLABELED: np.array(POOL),
        names.STATUS: np.full(N_CANDIDATES, names.STATUS_DONE, np.int8),
    }


@pytest.fixture
def settings():
    return Settings(bounds.uniform_shares(N_CANDIDATES, delta=0.05), 0.8)


def changed(evidence, name, value, at=0):
    counts = evidence[name].copy()
    counts[at] = value
    return {**evidence, name: counts}


def test_best_fold__is_the_bound_of_the_fold_counted_against(evidence, settings):
    terms = get_criterion("best_fold").evaluate(evidence, settings)
    expected = bounds.best_fold(
        evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS],
        evidence[names.BEST_FOLD_DISAGREEMENTS], POOL, delta=0.05 / N_CANDIDATES,
        label_share=0.8,
    )  # fmt: skip
    np.testing.assert_allclose(terms.estimate, expected.bound, rtol=1e-14)


def test_merged_folds__is_the_bound_of_that_name(evidence, settings):
    terms = get_criterion("merged_folds").evaluate(evidence, settings)
    expected = bounds.merged_folds(
        evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS],
        evidence[names.DISAGREEMENTS].sum(axis=1), POOL, delta=0.05 / N_CANDIDATES,
        label_share=0.8,
    )  # fmt: skip
    np.testing.assert_allclose(terms.estimate, expected.bound, rtol=1e-14)


def test_best_fold_of_leader__pays_for_candidates_in_the_label_term_only(
    evidence, settings
):
    terms = get_criterion("best_fold_of_leader").evaluate(evidence, settings)
    by_cv = get_criterion("cv_error")
    leader = by_cv.choose(by_cv.evaluate(evidence, settings), evidence)
    assert np.flatnonzero(np.isfinite(terms.estimate)).tolist() == [leader]
    every = get_criterion("best_fold").evaluate(evidence, settings)
    assert terms.label_term[leader] == every.label_term[leader]
    counted = evidence[names.BEST_FOLD_DISAGREEMENTS][leader]
    expected = bounds.binomial_tail_inversion(counted, POOL, delta=0.2 * 0.05)
    assert terms.disagreement_term[leader] == pytest.approx(float(expected), rel=1e-9)


def test_best_fold_of_leader__is_silent_while_another_may_lead(evidence, settings):
    criterion = get_criterion("best_fold_of_leader")
    leader = int(np.nanargmin(criterion.evaluate(evidence, settings).estimate))
    other = (leader + 1) % N_CANDIDATES
    waiting = changed(evidence, names.FOLD_ERRORS, -1, at=other)
    assert np.isnan(criterion.evaluate(waiting, settings).estimate).all()


def test_best_fold_of_leader__does_not_wait_for_who_cannot_lead(evidence, settings):
    criterion = get_criterion("best_fold_of_leader")
    leader = int(np.nanargmin(criterion.evaluate(evidence, settings).estimate))
    other = (leader + 1) % N_CANDIDATES
    hopeless = evidence[names.FOLD_ERRORS][other].copy()
    hopeless[:2] = 40, -1
    waiting = changed(evidence, names.FOLD_ERRORS, hopeless, at=other)
    assert np.isfinite(criterion.evaluate(waiting, settings).estimate[leader])


def test_leaders__share_the_second_term_among_themselves_only(evidence, settings):
    terms = get_criterion("leaders").evaluate(evidence, settings)
    plain = get_criterion("cv_bound").evaluate(evidence, settings)
    leads = np.isfinite(terms.estimate)
    assert leads.sum() == 10
    assert plain.label_term[leads].max() <= plain.label_term[~leads].min()
    np.testing.assert_array_equal(terms.label_term[leads], plain.label_term[leads])
    assert (terms.disagreement_term < plain.disagreement_term)[leads].all()


def test_leaders__wait_for_every_fold(evidence, settings):
    waiting = changed(evidence, names.FOLD_ERRORS, -1, at=(3, 2))
    terms = get_criterion("leaders").evaluate(waiting, settings)
    assert np.isnan(terms.estimate).all()


@pytest.mark.parametrize("name", ["best_fold", "cv_bound", "leaders", "merged_folds"])
def test_criteria__leave_out_who_did_not_see_the_whole_pool(evidence, settings, name):
    partial = changed(evidence, names.POOL_ROWS, 0, at=(4, 1))
    assert np.isnan(get_criterion(name).evaluate(partial, settings).estimate[4])


@pytest.mark.parametrize("name", ["best_fold", "cv_bound", "leaders", "merged_folds"])
def test_criteria__never_choose_a_failed_candidate(evidence, settings, name):
    criterion = get_criterion(name)
    best = criterion.choose(criterion.evaluate(evidence, settings), evidence)
    failed = changed(evidence, names.STATUS, names.STATUS_FAILED, at=best)
    terms = criterion.evaluate(failed, settings)
    assert np.isinf(terms.estimate[best])
    assert criterion.choose(terms, failed) != best


@pytest.mark.parametrize("name", ["cv_bound", "merged_folds"])
def test_criteria__bound_partial_counts_from_below(evidence, settings, name, rng):
    criterion = get_criterion(name)
    final = criterion.evaluate(evidence, settings).estimate
    for _ in range(20):
        hidden = rng.random((N_CANDIDATES, N_FOLDS)) < 0.5
        partial = changed(evidence, names.FOLD_ERRORS, -1, at=hidden)
        lower = criterion.lower_bound(partial, settings)
        assert (lower <= final + 1e-9).all()


@pytest.mark.parametrize("name", ["best_fold", "leaders"])
def test_criteria__that_cannot_prune_claim_nothing_of_partial_counts(
    evidence, settings, name
):
    criterion = get_criterion(name)
    assert not criterion.can_prune
    partial = changed(evidence, names.POOL_ROWS, 0, at=(4, 1))
    assert criterion.lower_bound(partial, settings)[4] == 0.0


def test_criteria__have_the_names_under_which_they_stand():
    assert all(name == criterion.name for name, criterion in CRITERIA.items())
    guaranteed = {name for name, each in CRITERIA.items() if each.is_guarantee}
    assert guaranteed <= set(bounds.events.CERTIFICATE_EVENTS)
