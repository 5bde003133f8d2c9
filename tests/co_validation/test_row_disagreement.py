"""Disagreement row by row, and labels picked by active learning."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from dsel.co_validation import most_disputed, sample_uncertain, write_row_disagreement
from dsel.data.splits import block_splits
from dsel.results.rows import read_rows


def test_write_row_disagreement__is_the_share_of_pairs_that_differ(tmp_path):
    X, y = load_iris(return_X_y=True)
    learner, rows = LogisticRegression(max_iter=1000), np.arange(0, 150, 3)
    write_row_disagreement(learner, X[rows], y[rows], X, tmp_path / "d", n_models=5)
    blocks = [rows[split.train_rows] for split in block_splits(50, 5, seed=0)]
    answers = [clone(learner).fit(X[at], y[at]).predict(X) for at in blocks]
    differ = np.mean([[a != b for b in answers] for a in answers], axis=(0, 1)) * 5 / 4
    for name, expected in (("disagreement", differ), ("variance", differ / 2)):
        [(_, found)] = read_rows(tmp_path / "d", name)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    numbers, rates = most_disputed(tmp_path / "d", 9)
    assert (
        numbers.tolist() == np.lexsort((np.arange(150), -differ.round(6)))[:9].tolist()
    )
    assert rates == pytest.approx(differ[numbers])


def test_sample_uncertain__picks_rows_near_the_border_and_a_beginning_is_a_run():
    X, y = make_moons(300, noise=0.2, random_state=0)
    svc = SVC(kernel="linear")
    rows = sample_uncertain(svc, X, y.__getitem__, n_rows=40, batch=5)
    assert len(set(rows)) == 40
    fewer = sample_uncertain(svc, X, y.__getitem__, n_rows=25, batch=5)
    assert rows[:25].tolist() == fewer.tolist()
    gaps = np.abs(clone(svc).fit(X[rows[:10]], y[rows[:10]]).decision_function(X))
    gaps[rows[:10]] = np.inf
    assert set(rows[10:15]) == set(np.argsort(gaps)[:5])
