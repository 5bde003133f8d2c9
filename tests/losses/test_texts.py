"""Losses by name: Python and the shell have one parser."""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR

import dsel
from dsel import losses

X = np.random.default_rng(0).normal(size=(60, 2))
COSTS = {("no", "yes"): 5, ("yes", "no"): 1}


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("error", "error"),
        ("balanced", losses.balanced()),
        ("recall:yes", losses.recall("yes")),
        ("precision:no", losses.precision("no")),
        ("cost:no>yes=5,yes>no=1", losses.cost(COSTS)),
    ],
)
def test_name__is_the_loss_that_it_names(name, loss):
    y = np.where(X[:, 0] > 0, "yes", "no")
    plans = [
        dsel.plan_search(SVC(), {"C": [1, 2]}, X, y, loss=each, random_state=0)
        for each in (name, loss)
    ]
    assert plans[0].facts.identity == plans[1].facts.identity
    assert str(plans[0]) == str(plans[1])


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("error_quantile=0.8", losses.error_quantile(0.8)),
        ("beyond=0.5", losses.beyond(0.5)),
    ],
)
def test_name__of_numbers(name, loss):
    plans = [
        dsel.plan_search(SVR(), {"C": [1, 2]}, X, X[:, 0], loss=each, random_state=0)
        for each in (name, loss)
    ]
    assert plans[0].facts.identity == plans[1].facts.identity
    with pytest.raises(ValueError, match="`loss` 'balanced' is for classes"):
        dsel.plan_search(SVR(), {"C": [1]}, X, X[:, 0], loss="balanced")
    with pytest.raises(ValueError, match="`loss` beyond= needs a number, got 'far'"):
        dsel.plan_search(SVR(), {"C": [1]}, X, X[:, 0], loss="beyond=far")


def test_name__is_taken_by_searches_and_certify():
    y = (X[:, 0] > 0).astype(int)
    options = {"loss": "recall:1", "random_state": 0}
    search = dsel.SemiSupervisedSearchCV(SVC(), {"C": [1, 2]}, **options).fit(X, y)
    assert search.certificate_.loss == "recall(1)"
    assert search.outcome_.choice == search.choice_
    certified = dsel.certify(SVC(), X, y, **options)
    assert certified.certificate.loss == "recall(1)"
    fitted = SVC().fit(X, y)
    prefit = dsel.certify(fitted, X[::-1] + 0.1, y, cv="prefit", loss="recall:1")
    assert prefit.loss == "recall(1)"
