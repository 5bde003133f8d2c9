import numpy as np
import pytest

from dsel.datasets import data_folder, load_digits_problem, load_set


def test_load_digits_problem__is_always_the_same_and_shares_no_row():
    first, second = [load_digits_problem(n_labeled=100) for _ in range(2)]
    assert (first.X == second.X).all()
    assert (first.pool_labels == second.pool_labels).all()
    assert len(first.X) + len(first.pool) == 1797
    assert len(np.unique(np.vstack([first.X, first.pool]), axis=0)) == 1797


def test_load_set__has_codes_labels_and_categories(data_dir):
    satimage, adult = (
        load_set(each, folder=data_dir) for each in ("satimage", "adult")
    )
    assert satimage.X.shape == (6435, 36)
    assert satimage.y.max() + 1 == len(satimage.classes) == 6
    assert (satimage.split == 0).sum() == 4435
    assert satimage.columns is None
    assert adult.categorical.sum() == 8
    assert len(adult.columns) == 14


def test_load_set__lists_the_sets_there_are(data_dir):
    with pytest.raises(ValueError, match="got 'iris' of adult, banknote"):
        load_set("iris", folder=data_dir)


def test_data_folder__says_what_to_set(monkeypatch):
    monkeypatch.delenv("DSEL_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="pass it, or set DSEL_DATA"):
        data_folder()
