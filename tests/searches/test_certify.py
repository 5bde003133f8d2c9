import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.bounds import select_then_certify
from dsel.errors import AllFitsFailedError
from dsel.searches.certify import certify, certifying_split
from tests.estimators import Sleeper


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    return X[order], y[order]


def test_certify__is_the_bound_of_the_split_and_the_disagreement(digits):
    X, y = digits
    found = certify(
        lambda X, y: SVC(gamma=0.001), X[:500], y[:500], X[500:], random_state=4
    )
    split = certifying_split(500, 0.2, seed=4)
    winner = SVC(gamma=0.001).fit(X[split.train_rows], y[split.train_rows])
    final = SVC(gamma=0.001).fit(X[:500], y[:500])
    expected = select_then_certify(
        int((winner.predict(X[split.test_rows]) != y[split.test_rows]).sum()),
        100,
        int((winner.predict(X[500:]) != final.predict(X[500:])).sum()),
        len(X) - 500,
        delta=0.05,
    )
    assert found.certificate.unclipped == pytest.approx(float(expected.bound))
    assert (found.model.predict(X[500:]) == final.predict(X[500:])).all()


def test_certify__shows_the_selection_no_certifying_row(digits):
    X, y = digits
    seen = []

    def choose(X, y):
        seen.append(len(y))
        return SVC(gamma=0.001)

    certify(choose, X[:200], y[:200], X[500:], certify_rows=0.25, random_state=0)
    assert seen == [150]


def test_search__certifies_by_rows_that_the_selection_never_saw(digits, tmp_path):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        SVC(),
        {"C": [1.0, 10.0], "gamma": [1e-4, 1e-3]},
        cv=5,
        certify_rows=0.2,
        random_state=0,
    )
    search.fit(X[:600], y[:600], pool=X[600:], out=tmp_path)
    assert search.certificate_.criterion == "select_then_certify"
    assert search.certificate_.certified
    assert int(search.results_.n_labeled) == 480
    assert 1 - search.score(X[600:], y[600:]) <= search.certificate_.bound


def test_select__refuses_to_certify_with_rows_of_the_selection(digits):
    X, y = digits
    plan = dsel.plan_search(
        SVC(), {"gamma": [1e-3]}, X[:200], y[:200], X[500:], cv=5, random_state=0
    )
    with pytest.raises(ValueError, match="5 folds that all did"):
        dsel.select(plan.run(), "select_then_certify")


def test_certify__gives_the_fits_no_more_than_their_time(rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(AllFitsFailedError, match=r"the fit took more than 0\.5 s"):
        certify(
            lambda X, y: Sleeper(seconds=1000.0),
            X[:60],
            y[:60],
            X[60:],
            fit_timeout=0.5,
            random_state=0,
        )
