"""Disagreement row by row against models fitted one by one."""

import itertools

import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from dsel.data import open_pool
from dsel.data.splits import block_splits, half_splits
from dsel.searches.co_validation.row_disagreement import (
    most_disputed,
    write_half_disagreement,
    write_row_disagreement,
)


@pytest.fixture(scope="module")
def table():
    return make_classification(
        400, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=1
    )


def answers(table, splits):
    X, y = table
    return [
        DecisionTreeClassifier(random_state=0)
        .fit(X[t.train_rows], y[t.train_rows])
        .predict(X[120:])
        for t in splits
    ]


def read(path, name="disagreement"):
    return zarr.open_group(path, mode="r")[name][:]


def test_write_row_disagreement__is_the_average_over_all_pairs(table, tmp_path):
    X, y = table
    model = DecisionTreeClassifier(random_state=0)

    write_row_disagreement(
        model, X[:120], y[:120], X[120:], tmp_path / "d.zarr", n_models=6
    )

    pairs = itertools.combinations(answers(table, block_splits(120, 6, seed=0)), 2)
    expected = np.mean([a != b for a, b in pairs], axis=0)
    np.testing.assert_allclose(read(tmp_path / "d.zarr"), expected, rtol=1e-6)
    np.testing.assert_allclose(
        read(tmp_path / "d.zarr", "variance"), expected / 2, rtol=1e-6
    )


def test_write_half_disagreement__compares_halves_only(table, tmp_path):
    X, y = table
    model = DecisionTreeClassifier(random_state=0)

    write_half_disagreement(
        model, X[:120], y[:120], X[120:], tmp_path / "d.zarr", repeats=5
    )

    found = answers(table, half_splits(120, 5, seed=0))
    expected = np.mean([a != b for a, b in zip(found[::2], found[1::2])], axis=0)  # noqa: B905
    np.testing.assert_allclose(read(tmp_path / "d.zarr"), expected, rtol=1e-6)


def test_write_row_disagreement__does_not_depend_on_chunks(table, tmp_path):
    X, y = table
    chunked = zarr.create_array(tmp_path / "p.zarr", data=X[120:], chunks=(17, 5))
    for name, pool in [("a", X[120:]), ("b", chunked)]:
        write_row_disagreement(
            LogisticRegression(), X[:120], y[:120], pool, tmp_path / name, n_models=4
        )

    np.testing.assert_array_equal(read(tmp_path / "a"), read(tmp_path / "b"))


def test_most_disputed__lists_rows_by_falling_rate(table, tmp_path):
    X, y = table
    pool = open_pool(X[120:]).excluding([3])
    write_row_disagreement(
        DecisionTreeClassifier(random_state=0), X[:120], y[:120], pool, tmp_path / "d"
    )
    rates = read(tmp_path / "d")

    rows, found = most_disputed(tmp_path / "d", 10)

    assert np.isnan(rates[3])
    order = np.lexsort((np.arange(280), -np.nan_to_num(rates, nan=-1)))[:10]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(found, rates[order])


def test_write_row_disagreement__refuses_more_models_than_rows(table, tmp_path):
    X, y = table
    with pytest.raises(ValueError, match="`n_models` must be"):
        write_row_disagreement(
            LogisticRegression(), X[:8], y[:8], X, tmp_path / "d", n_models=9
        )


def test_write_row_disagreement__takes_missing_values_that_a_pipeline_fills(
    table, tmp_path
):
    X, y = table
    X = np.where(np.arange(len(X))[:, np.newaxis] % 7 == 0, np.nan, X)
    model = make_pipeline(SimpleImputer(), DecisionTreeClassifier(random_state=0))
    write_row_disagreement(model, X[:80], y[:80], X[80:], tmp_path / "d", n_models=2)
    one, other = (
        clone(model).fit(X[split.train_rows], y[split.train_rows]).predict(X[80:])
        for split in block_splits(80, 2, seed=0)
    )
    np.testing.assert_array_equal(read(tmp_path / "d"), one != other)
