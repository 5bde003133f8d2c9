import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from dsel.data.splits import (
    fold_splits,
    half_splits,
    holdout_split,
    random_folds,
    splits_of_cv,
)


@given(n_rows=st.integers(2, 200), n_folds=st.integers(2, 200), seed=st.integers(0))
def test_random_folds__sizes_differ_by_at_most_one(n_rows, n_folds, seed):
    n_folds = min(n_folds, n_rows)
    sizes = np.bincount(random_folds(n_rows, n_folds, seed=seed), minlength=n_folds)
    larger = n_rows % n_folds
    assert (sizes[:larger] == n_rows // n_folds + 1).all()
    assert (sizes[larger:] == n_rows // n_folds).all()


def test_fold_splits__test_rows_partition_the_rows():
    *folds, full = fold_splits(random_folds(23, 4, seed=1))
    assert [fold.number for fold in folds] == [0, 1, 2, 3]
    tested = np.concatenate([fold.test_rows for fold in folds])
    assert sorted(tested) == [*range(23)]
    for fold in folds:
        assert sorted([*fold.train_rows, *fold.test_rows]) == [*range(23)]
    assert (full.number, full.name) == (4, "full")
    assert (len(full.train_rows), len(full.test_rows)) == (23, 0)


def test_given_splits__are_those_of_a_splitter_row_numbers_and_masks(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    *folds, full = splits_of_cv(StratifiedKFold(5), X, y)
    expected = [test for _, test in StratifiedKFold(5).split(X, y)]
    assert [f.test_rows.tolist() for f in folds] == [t.tolist() for t in expected]
    assert full.number == 5
    pairs = [([3, 0], [1, 2]), (np.array([False, True, True, False]), [0])]
    one, other, _ = splits_of_cv(pairs, np.eye(4), [0, 1, 0, 1])
    assert (one.train_rows.tolist(), one.test_rows.tolist()) == ([0, 3], [1, 2])
    assert (other.train_rows.tolist(), other.test_rows.tolist()) == ([1, 2], [0])


def test_half_splits__are_tested_on_the_other_half():
    splits = half_splits(11, 3, seed=4)
    assert [t.name for t in splits[2:4]] == ["repeat-1-half-0", "repeat-1-half-1"]
    assert [t.number for t in splits] == [*range(6)]
    first, second = splits[:2]
    assert (len(first.train_rows), len(second.train_rows)) == (5, 6)
    assert (first.test_rows == second.train_rows).all()
    assert (second.test_rows == first.train_rows).all()


def test_holdout_split__leaves_out_as_many_as_asked():
    split = holdout_split(10, 3, seed=2)
    assert len(split.test_rows) == 3
    assert sorted([*split.train_rows, *split.test_rows]) == [*range(10)]
