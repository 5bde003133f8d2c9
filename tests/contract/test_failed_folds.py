"""Fits that fail on one fold: the first line is about them, and no note blames luck."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV

import dsel

X, Y = make_classification(200, 10, n_informative=5, class_sep=3, random_state=0)
X_NUMBERS, Y_NUMBERS = make_regression(200, 4, noise=1.0, random_state=0)
MARKS = (X[3, 0], X_NUMBERS[3, 0])


def has_mark(rows):
    return np.isin(np.asarray(rows)[:, 0], MARKS).any()


class RaisesInFit(LogisticRegression):
    def fit(self, X, y):
        if not has_mark(X):
            raise RuntimeError("my bug")
        return super().fit(X, y)


class RaisesInPredict(LogisticRegression):
    def predict(self, X):
        if has_mark(X):
            raise RuntimeError("my bug")
        return super().predict(X)


class RaisesInRegression(LinearRegression):
    def fit(self, X, y):
        if not has_mark(X):
            raise RuntimeError("my bug")
        return super().fit(X, y)


def fit_function(X, y):
    return RaisesInFit().fit(X, y)


def certify(model, **options):
    return dsel.certify(model, X, Y, random_state=0, **options)


def search_grid():
    plan = dsel.plan_search(
        RaisesInPredict(), {"C": [0.1, 1.0]}, X, Y, random_state=0, report=True
    )
    return plan.run()


CASES = {
    "estimator": lambda: certify(RaisesInFit()),
    "function": lambda: certify(fit_function),
    "groups": lambda: certify(RaisesInFit(), groups=np.arange(200)),
    "predict": lambda: certify(RaisesInPredict()),
    "grid": search_grid,
    "search": lambda: certify(
        GridSearchCV(RaisesInFit(), {"C": [1.0]}, cv=2, error_score=np.nan)
    ),
    "regression": lambda: dsel.certify(
        RaisesInRegression(), X_NUMBERS, Y_NUMBERS, random_state=0
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_failed_fold__is_named_first_and_no_note_blames_luck(name):
    outcome = CASES[name]()
    lines = str(outcome).splitlines()
    first, text = lines[0], " ".join(str(outcome).split())
    assert first.startswith("Warning  1 of 5 fits failed (fold ")
    assert "RuntimeError: " in first
    assert "its 40 groups" in text if name == "groups" else "its 40 rows" in text
    assert text.count("too large") == 1
    assert ("comparison with a hold-out set are" in text) == (name != "regression")
    assert "likely lucky" not in text
    certificate = outcome.certificates["one_fold"]
    assert certificate.certified
    assert str(certificate).startswith("Warning  1 of 5 fits failed")


def test_failed_fold__leaves_the_note_where_other_folds_are_above_the_bound():
    made = dsel.certify(fit_function, X, Y, random_state=0).certificates["one_fold"]
    above = replace(made, estimate_of_models=made.bound + 0.1)
    assert "the estimate from folds that were fitted" in str(above)
    assert made.estimate > made.bound > made.estimate_of_models


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_interrupt_in_a_function__ends_the_run_at_its_first_call(stop, caplog):
    calls = []

    def fit(X, y):
        calls.append(len(y))
        raise stop

    with pytest.raises(stop):
        dsel.certify(fit, X, Y, random_state=0, n_jobs=1)
    assert len(calls) <= 2  # one runs, and the next one may have begun
    assert "again" not in caplog.text


def test_failed_fold__is_no_warning_where_all_fits_succeed():
    made = certify(LogisticRegression())
    assert "Warning" not in str(made)
    assert np.isnan(made.certificates["one_fold"].estimate_of_models)
