"""Which models a search trains, and on which held-out rows each is tested."""

import numpy as np
import pytest
from sklearn.svm import SVC

import dsel
from dsel.search.design.cv_schemes import pairs_of_folds, scheme_of_pairs


@pytest.mark.parametrize(("k", "n_pairs"), [(3, 3), (4, 6), (5, 10), (6, 15), (8, 16)])
def test_pairs__are_all_or_four_neighbours_each(k, n_pairs):
    pairs = pairs_of_folds(k)
    assert len(pairs) == len(set(pairs)) == n_pairs
    assert pairs[:k] == [tuple(sorted((i, (i + 1) % k))) for i in range(k)]
    assert set(np.bincount(np.ravel(pairs))) == {2 * n_pairs // k}


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_nested__no_search_reads_a_model_or_a_row_of_its_own_fold(k):
    scheme = scheme_of_pairs(k, 83, seed=7, n_candidates=4)
    assert sum(len(split.test_rows) for split in scheme.fold_splits) == 83
    for test in scheme.inner_tests:
        mine = scheme.outer_splits[test.left_out_fold].test_rows
        split = scheme.splits[test.split_number]
        tested = split.second_part if test.part_number else split.test_rows
        assert not np.intersect1d(mine, split.train_rows).size
        assert not np.intersect1d(mine, tested).size
        assert not np.intersect1d(tested, split.train_rows).size
        assert np.isin(tested, scheme.outer_splits[test.fold].test_rows).all()
        assert test.n_rows == len(tested)


def test_nested__two_folds_train_on_a_half_of_one_and_test_on_its_other_half():
    scheme = scheme_of_pairs(2, 16, seed=7, n_candidates=3)
    folds = [split.test_rows for split in scheme.fold_splits]
    assert [split.name for split in scheme.splits] == [f"quarter-{q}" for q in range(4)]
    assert [split.numbers for split in scheme.splits] == [(0,), (1,), (2,), (3,)]
    for split in scheme.splits:
        assert (len(split.train_rows), len(split.test_rows)) == (4, 4)
        both = np.union1d(split.train_rows, split.test_rows)
        np.testing.assert_array_equal(both, np.sort(folds[split.number % 2]))
    trained = np.concatenate([split.train_rows for split in scheme.splits])
    assert sorted(trained) == [*range(16)]


def test_nested__a_single_candidate_is_chosen_without_any_fit():
    scheme = scheme_of_pairs(5, 50, seed=7, n_candidates=1)
    assert scheme.is_nested
    assert scheme.splits == scheme.inner_tests == ()


@pytest.mark.parametrize("cv", [1, 90])
def test_plan__by_halves_takes_as_many_halvings_as_asked(cv, rng):
    rows = rng.normal(size=(40, 2)), np.arange(40) % 2
    made = dsel.plan_search(SVC(), {"C": [1]}, *rows, criterion="two_fold_cv", cv=cv)
    assert made.search.scheme.n_halvings == cv
