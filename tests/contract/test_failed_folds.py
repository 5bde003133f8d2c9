"""Fits that fail on one fold: the first line is about them, and no note blames luck."""

import re
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
    assert first.startswith("Warning   1 of 5 fits failed (fold ")
    assert "RuntimeError: " in first
    assert "its 40 groups" in text if name == "groups" else "its 40 rows" in text
    is_regression = name == "regression"
    end = "the estimate is without them" if is_regression else "too large"
    assert text.count(end) == 1
    assert ("comparison with a hold-out set are" in text) != is_regression
    assert "likely lucky" not in text
    certificate = outcome.certificates["one_fold"]
    assert certificate.certified
    assert str(certificate).startswith("Warning   1 of 5 fits failed")


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
    assert made.certificates["one_fold"].estimate_of_models is None


@pytest.mark.parametrize("report", [False, True])
def test_failed_fold__of_a_regressor_prints_no_infinite_number(report):
    pool = X_NUMBERS + 0.1
    outcome = dsel.certify(
        RaisesInRegression(), X_NUMBERS, Y_NUMBERS, pool, report=report, random_state=0
    )
    shown = [str(outcome)]
    if report:
        shown += [str(outcome.certified_report(name)) for name in outcome.certificates]
        assert any("none: too few labeled rows for" in table for table in shown)
    assert not re.findall(r"\b(?:inf|nan)\b", " ".join(shown))
    assert "off: fits failed, model trained on all labels" in shown[0]
    assert "Caveat    rows without a prediction count as infinitely far" in shown[0]


class RaisesOnAllRows(LogisticRegression):
    def fit(self, X, y):
        if len(X) == len(Y):
            raise RuntimeError("my bug")
        return super().fit(X, y)


@pytest.mark.parametrize("options", [{}, {"deploy": "all_rows"}])
def test_failed_fit_on_all_rows__is_named_and_first_if_it_was_to_be_deployed(options):
    outcome = certify(RaisesOnAllRows(), pool=X + 0.1, **options)
    text = "the fit on all labels failed (RuntimeError: my bug (test_failed_folds.py, "
    place = "; the model trained on 80% of the labels is deployed in its place"
    assert outcome.choice.deploy == "one_fold"
    assert str(outcome).startswith(f"Warning   {text}") == bool(options)
    assert (f"Caveat    {text}" in str(outcome)) == (not options)
    assert (place in str(outcome)) == bool(options)


def test_failed_fits__say_in_words_on_which_rows():
    for certificate, where in (
        ("nested", r"folds \d and \d"),
        ("cv_bound", r"fold \d"),
    ):
        plan = dsel.plan_search(
            RaisesInFit(), {"C": [0.1, 1.0]}, X, Y, X + 0.1, certificate=certificate,
            random_state=0,
        )  # fmt: skip
        match = rf"without {where}: RuntimeError: my bug"
        with pytest.raises(dsel.errors.AllFitsFailedError, match=match):
            plan.run()
