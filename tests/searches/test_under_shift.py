"""The estimate under shift follows the error that shift makes, and claims nothing."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from dsel.searches import estimate_under_shift
from tests.tables import in_two_entries


def draw(rng, n_rows, moved):
    X = rng.normal(size=(n_rows, 3))
    X[:, 0] += moved
    # Far from the labeled rows the straight border of the model is wrong.
    return X, (X[:, 1] + 0.15 * X[:, 0] ** 2 > 0.0).astype(int)


def test_estimate_under_shift__is_above_the_error_and_below_one(rng):
    X, y = draw(rng, 1500, 0.0)
    model = LogisticRegression().fit(X[:500], y[:500])
    moved, truth = draw(rng, 3000, 1.5)
    found = estimate_under_shift(model, X[500:], y[500:], moved, random_state=0)
    wrong = float(np.mean(model.predict(moved) != truth))
    assert found.labeled_error < wrong < found.error < 1.0
    assert found.error == pytest.approx(sum(found[1:]))
    stays, _ = draw(rng, 3000, 0.0)
    near = estimate_under_shift(model, X[500:], y[500:], stays, random_state=0)
    assert near.discrepancy < 0.1 < found.discrepancy


def test_estimate_under_shift__takes_other_critics_and_names_of_classes(rng):
    X, y = draw(rng, 900, 0.0)
    names = np.array(["one", "two", "three"])[y + (X[:, 2] > 1.0)]
    model = LogisticRegression().fit(X[:300], names[:300])
    moved, _ = draw(rng, 1000, 1.5)
    rich = estimate_under_shift(
        model, X[300:], names[300:], moved, critic=SVC(gamma=1.0), random_state=0
    )
    assert 0.0 < rich.discrepancy < 1.0


def test_estimate_under_shift__names_what_is_missing(rng):
    X, y = draw(rng, 100, 0.0)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"four rows or more.*got 100 and 2 rows"):
        estimate_under_shift(model, X, y, X[:2])


def test_estimate_under_shift__sums_entries_of_one_place(rng):
    X, y = draw(rng, 600, 0.0)
    model = SVC().fit(sparse.csr_matrix(X[:200]), y[:200])
    tables = X[200:400], X[400:]
    found, expected = (
        estimate_under_shift(model, made(a), y[200:400], made(b), random_state=0)
        for made in (in_two_entries, sparse.csr_matrix)
        for a, b in [tables]
    )
    assert found == expected


def test_estimate_under_shift__wants_a_label_for_each_row(rng):
    X, y = draw(rng, 200, 0.0)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="each of the 100 rows of `X`, got 200"):
        estimate_under_shift(model, X[:100], y, X)
    masked = np.ma.masked_array(y[:100], mask=np.arange(100) == 7)
    with pytest.raises(ValueError, match="row 7 is masked"):
        estimate_under_shift(model, X[:100], masked, X)
