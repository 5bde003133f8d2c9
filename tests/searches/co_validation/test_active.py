"""Uncertainty sampling."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dsel.searches.co_validation.active import sample_uncertain, sure_margins
from tests.tables import in_two_entries


@pytest.fixture(scope="module")
def table():
    return make_classification(
        400, 5, n_informative=4, n_redundant=0, n_classes=2, random_state=3
    )


def test_sample_uncertain__picks_the_row_of_smallest_gap(table):
    X, y = table
    run = sample_uncertain(LogisticRegression(), X, y.__getitem__, n_rows=25)

    assert len(set(run.rows)) == 25
    for size in (10, 17, 24):
        seen = run.prefix(size)
        model = LogisticRegression().fit(X[seen], y[seen])
        free = np.setdiff1d(np.arange(400), seen)
        gaps = sure_margins(model, X[free])
        assert run.rows[size] == free[np.argmin(gaps)]


def test_sample_uncertain__asks_for_labels_of_picked_rows_only(table):
    X, y = table
    asked = []

    def label_of(rows):
        asked.extend(rows)
        return y[rows]

    run = sample_uncertain(LogisticRegression(), X, label_of, n_rows=30, batch=4)

    np.testing.assert_array_equal(asked, run.rows)


def test_sample_uncertain__draws_at_random_until_there_are_two_classes():
    X = np.arange(100.0)[:, np.newaxis]
    y = (X[:, 0] > 96).astype(int)

    run = sample_uncertain(LogisticRegression(), X, y.__getitem__, n_rows=100)

    assert sorted(run.rows) == list(range(100))


def test_sample_uncertain__is_the_same_again_and_not_with_another_seed(table):
    X, y = table

    def run(seed):
        return sample_uncertain(
            LogisticRegression(), X, y.__getitem__, n_rows=20, random_state=seed
        ).rows

    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_sample_uncertain__refuses_more_rows_than_there_are(table):
    X, y = table
    with pytest.raises(ValueError, match="`n_rows` must be"):
        sample_uncertain(LogisticRegression(), X, y.__getitem__, n_rows=401)


def test_sample_uncertain__sums_entries_of_one_place(table):
    X, y = table
    found, expected = (
        sample_uncertain(SVC(), made(X), y.__getitem__, n_rows=30).rows
        for made in (in_two_entries, sparse.csr_matrix)
    )
    np.testing.assert_array_equal(found, expected)


def test_sample_uncertain__sets_the_seed_of_a_forest_in_a_pipeline(table):
    X, y = table
    model = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3))
    one, other = (
        sample_uncertain(model, X, y.__getitem__, n_rows=25).rows for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


def test_sample_uncertain__takes_frames_and_lists_of_numbers(table):
    X, y = table
    first, *others = (
        sample_uncertain(SVC(), rows, y.__getitem__, n_rows=20).rows
        for rows in (X, pd.DataFrame(X), X.tolist())
    )
    for each in others:
        np.testing.assert_array_equal(each, first)
