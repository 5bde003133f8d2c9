"""Which candidates the inner searches keep, on a table that is filled by hand."""

import numpy as np
import pytest

from dsel.errors import AllFitsFailedError
from dsel.search.design.cv_schemes import (
    ALL_ROWS_MODEL,
    pairs_of_folds,
    scheme_of_pairs,
)
from dsel.search.engine.counts import FitTable
from dsel.search.engine.inner_searches import InnerSearches
from dsel.search.engine.jobs import FitStatus
from dsel.search.engine.pruning import first_proofs, margin_above

N_FOLDS, N_CANDIDATES = 5, 3
SCHEME = scheme_of_pairs(N_FOLDS, 50, seed=7, n_candidates=N_CANDIDATES)
PAIRS = pairs_of_folds(N_FOLDS)


def table_of(scores, done=True):
    """Return a table of these scores on both folds of each pair, (3, 10, 2)."""
    table = FitTable(SCHEME, (), N_CANDIDATES)
    table.scores[:] = scores
    table.errors[:] = 0
    table.fit_status[:, :] = np.where(done, FitStatus.DONE, FitStatus.OPEN)
    return table


def flat(*scores):
    """Return scores that are the same for all pairs of folds."""
    return np.array(scores)[:, np.newaxis, np.newaxis] * np.ones((N_CANDIDATES, 10, 2))


@pytest.fixture
def halving():
    return InnerSearches(SCHEME, "halving")


def test_survivors__each_search_keeps_its_best_and_that_by_all_folds_all(halving):
    scores = flat(0.2, 0.3, 0.4)
    for split, pair in enumerate(PAIRS):
        if 2 in pair:  # the search without fold 2 reads the errors on the other fold
            scores[2, split, 1 - pair.index(2)] = 0.0
    kept = halving.survivors(table_of(scores))
    assert kept.shape == (N_FOLDS + 1, N_CANDIDATES)
    assert kept[-1].all()
    best = [row.nonzero()[0].tolist() for row in kept[:-1]]
    assert best == [[0], [0], [2], [0], [0]]


def test_survivors__are_read_from_the_first_round_alone(halving):
    scores = flat(0.2, 0.3, 0.4)
    scores[:, list(range(len(SCHEME.first_round), 10))] = flat(0.9, 0.0, 0.0)[:, 5:]
    kept = halving.survivors(table_of(scores))
    np.testing.assert_array_equal(kept[:-1], [[True, False, False]] * N_FOLDS)


def test_survivors__a_search_drops_whose_fit_failed_where_it_reads(halving):
    table = table_of(flat(0.2, 0.3, 0.4))
    table.fit_status[0, 0] = FitStatus.FAILED  # the pair of folds 0 and 1
    best = halving.survivors(table)[:-1].argmax(axis=1)
    assert best.tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("pruning", ["exact", ""])
def test_survivors__without_halving_are_all(pruning):
    kept = InnerSearches(SCHEME, pruning).survivors(table_of(flat(0.2, 0.3, 0.4)))
    assert kept.all()


def test_finalists__have_every_fit_or_were_kept_by_a_search(halving):
    done = np.ones((N_CANDIDATES, 10), bool)
    done[1:, 8:] = False  # the first round is complete
    done[2, 7] = False
    table = table_of(flat(0.2, 0.3, 0.4), done)
    for pruner in (halving, InnerSearches(SCHEME, "")):
        assert pruner.finalists(table, table.finished_fits).tolist() == [
            True,
            False,
            False,
        ]
    table.fit_status[0, 9] = FitStatus.FAILED  # then those are left that were dropped
    assert halving.finalists(table, table.finished_fits).tolist() == [
        False,
        True,
        True,
    ]
    assert not InnerSearches(SCHEME, "").finalists(table, table.finished_fits).any()


@pytest.mark.parametrize("seed", range(20))
def test_choices__by_all_folds_are_the_best_that_any_search_kept(seed):
    # Splits are harder or easier for all candidates alike, so that the best one is
    # known, whichever fits it lacks.
    rng, n = np.random.default_rng(seed), 12
    scheme = scheme_of_pairs(N_FOLDS, 50, seed=7, n_candidates=n)
    qualities, halving = rng.permutation(n) / 100, InnerSearches(scheme, "halving")
    table = FitTable(scheme, (), n)
    table.scores[:] = qualities[:, np.newaxis, np.newaxis] + rng.random((10, 2))
    # Luck in one search alone, so that searches keep different candidates.
    for search, lucky in enumerate(rng.permutation(n)[:N_FOLDS]):
        for split in scheme.first_round:
            if search in PAIRS[split]:
                table.scores[lucky, split] -= 0.05
                table.scores[lucky, split, PAIRS[split].index(search)] += 0.1
    table.errors[:] = 0
    table.fit_status[:] = FitStatus.DONE
    kept = halving.survivors(table)[:-1]
    means = np.where(kept.any(axis=0), table.scores.mean(axis=(1, 2)), np.inf)
    for test in scheme.inner_tests:
        made = kept[[i for i in range(N_FOLDS) if i in PAIRS[test.split_number]]]
        if test.split_number not in scheme.first_round:
            table.fit_status[~made.any(axis=0), test.split_number] = FitStatus.OPEN
    assert len(np.unique((table.fit_status == FitStatus.DONE).sum(axis=1))) > 2
    assert halving.choose_candidates(table).candidate_of_all_rows == means.argmin()


def test_compare__needs_a_second_round_once_the_first_has_ended(halving):
    n_first = len(SCHEME.first_round)
    table = table_of(flat(0.2, 0.3, 0.4), done=False)
    needed = halving.decide(table).needed_fits
    assert needed[:, :n_first].all()
    assert not needed[:, n_first:].any()
    table.fit_status[:, :n_first] = FitStatus.DONE
    needed = halving.decide(table).needed_fits
    assert needed[:, :n_first].all()
    assert needed[0, n_first:].all()
    assert not needed[1:, n_first:].any()


@pytest.mark.parametrize("pruning", ["exact", "halving", ""])
def test_compare__changes_nothing(pruning):
    table = table_of(flat(0.2, 0.3, 0.4), np.arange(10) < 6)
    before = table.needed_fits.copy(), table.fit_status.copy(), table.scores.copy()
    decision = InnerSearches(SCHEME, pruning).decide(table)
    for old, now in zip(
        before, (table.needed_fits, table.fit_status, table.scores), strict=True
    ):
        np.testing.assert_array_equal(old, now)
    # A missing score may be as small as 0: the bound is a mean with zeros.
    assert (decision.lower_bounds <= [0.2, 0.3, 0.4]).all()


def test_compare__exactly_needs_no_fit_of_a_candidate_that_wins_nowhere():
    done = np.ones((N_CANDIDATES, 10), bool)
    done[2, 8:] = False
    table = table_of(flat(0.1, 0.2, 0.9), done)
    decision = InnerSearches(SCHEME, "exact").decide(table)
    assert decision.beaten_candidates.tolist() == [False, False, True]
    table.apply_pruning(decision.needed_fits, decision.beaten_candidates)
    assert table.needed_fits.all(axis=1).tolist() == [True, True, False]
    assert not table.needed_fits[2].any()


def test_choices__are_one_without_each_fold_and_one_by_all(halving):
    table = table_of(flat(0.2, 0.3, 0.4))
    table.fit_status[0, 0] = FitStatus.FAILED
    chosen = halving.choose_candidates(table)
    assert (chosen.by_fold, chosen.candidate_of_all_rows) == ((1, 1, 0, 0, 0), 1)
    assert [chosen.candidate_of(ref) for ref in (3, ALL_ROWS_MODEL)] == [0, 1]


def test_choices__by_all_folds_compare_candidates_on_the_same_rows(halving):
    # The searches without folds 1 and 4 keep the second candidate alone, all others the
    # first one, so that each of both lacks a fit.
    scores = flat(0.2, 0.3, 0.4)
    for split, pair in enumerate(PAIRS[: len(SCHEME.first_round)]):
        for fold in {1, 4} & {*pair}:
            scores[1, split, 1 - pair.index(fold)] = 0.1
    done = np.ones((N_CANDIDATES, 10), bool)
    done[0, PAIRS.index((1, 4))] = done[1, PAIRS.index((0, 3))] = False
    done[2, len(SCHEME.first_round) :] = False
    scores[:, PAIRS.index((0, 3))] = 0.9  # a hard pair, which the second one lacks
    table = table_of(scores, done)
    chosen = halving.choose_candidates(table)
    assert chosen.by_fold == (0, 1, 0, 0, 1)
    assert halving.finalists(table, table.finished_fits).tolist() == [True, True, False]
    assert chosen.candidate_of_all_rows == 0


def test_choices__say_which_search_has_no_candidate(halving):
    table = table_of(flat(0.2, 0.3, 0.4))
    table.fit_status[:, 0] = FitStatus.FAILED
    with pytest.raises(AllFitsFailedError, match="chosen by all folds"):
        halving.choose_candidates(table)


ERRORS = np.array([[1, 1, 1], [0, 5, 0], [4, 0, 0], [0, 0, 3]])
"""Errors of four candidates on three splits; the first one wins with 3."""


def proofs_by_sums(shown, n_most=3):
    """Return `first_proofs` where a candidate is beaten by more than 3 errors."""
    return first_proofs(shown, n_most, lambda fits: (ERRORS * fits).sum(axis=1) > 3)


def test_margin_above__is_rounding_relative_to_numbers_above_1():
    best = np.array([0.0, 0.5, 1.0, 1.5, 1e6])
    margins = margin_above(best) - best
    np.testing.assert_allclose(margins, [1e-9, 1e-9, 1e-9, 1.5e-9, 1e-3], rtol=1e-6)


def test_first_proofs__end_with_the_fit_that_proves_a_candidate_worse():
    shown, beaten = proofs_by_sums(np.ones((4, 3), bool))
    np.testing.assert_array_equal(beaten, [False, True, True, False])
    np.testing.assert_array_equal(shown.sum(axis=1), [3, 2, 1, 3])
    assert shown[2, 0]  # the first fits, in order


def test_first_proofs__do_not_depend_on_fits_that_a_run_made_after_them():
    most, fewest = np.ones((4, 3), bool), np.ones((4, 3), bool)
    fewest[1, 2:] = fewest[2, 1:] = False  # another run has dropped them at once
    for one, other in zip(proofs_by_sums(most), proofs_by_sums(fewest), strict=True):
        np.testing.assert_array_equal(one, other)


def test_first_proofs__need_no_fit_of_a_candidate_with_an_infinite_bound():
    is_excluded = np.array([False, False, False, True])
    shown, beaten = first_proofs(np.ones((4, 3), bool), 3, lambda _: is_excluded)
    assert shown[3].sum() == 0
    assert beaten.tolist() == is_excluded.tolist()


def test_first_proofs__of_the_first_folds_alone():
    _, beaten = proofs_by_sums(np.ones((4, 3), bool), n_most=1)
    assert beaten.tolist() == [False, False, True, False]
