"""What a bound must take into account, and what must not be certified."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dsel
from dsel.bounds import cv_bound, nested_all_rows, upper_pool_rows
from tests.contract.runs import TREES, digits, run_search

pytestmark = pytest.mark.contract

X, Y, POOL = digits(200)
FORMULAS = {
    "nested": ("outer_errors", "outer_disagreements", nested_all_rows),
    "cv_bound": ("fold_errors", "disagreements", cv_bound),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_bound__allows_for_pool_rows_that_are_labeled_rows(name):
    errors, differ, formula = FORMULAS[name]
    run = run_search(*TREES, X, Y, np.vstack([POOL, X[:90]]), certificate=name, cv=3)
    chosen = run.results.isel(max_depth=run.choice.candidate).fillna(0)
    errors, differ, rows = (
        chosen[each].values.astype(int) for each in (errors, differ, "fold_rows")
    )
    if name == "cv_bound":
        terms = formula(errors, rows, differ.sum(), len(POOL), delta=0.05 / 4)
    else:
        among = chosen["outer_duplicate_disagreements"].values.astype(int)
        seen = upper_pool_rows(len(POOL) + 90, 90, among)
        _, terms = formula(errors, rows, differ, seen, delta=0.05)
        assert 0 < among.sum() < differ.sum()
    found = run.certificates["all_rows"]
    assert (found.equal_rows, found.n_unlabeled) == (90, len(POOL) + 90)
    assert found.bound == pytest.approx(min(1.0, terms.bound), abs=1e-12)
    assert "90 pool rows equal a labeled row" in found.assumptions[0].reason


def test_pool__of_another_population_is_told_and_nothing_is_certified():
    run = run_search(*TREES, X, Y, np.random.default_rng(0).permuted(POOL, axis=1))
    for each in run.certificates.values():
        assert not each.certified
        assert "a classifier tells labeled rows from pool rows" in each.reasons[0]
    assert "contradiction: the folds' models err on" in str(run.choice)


def test_max_pool_rows__are_about_as_many_as_are_counted():
    cube = run_search(*TREES, X, Y, POOL, max_pool_rows=500).results
    assert 420 < int(cube["n_unlabeled"]) < 580
    assert (cube["outer_disagreements"] <= cube["n_unlabeled"]).all()


def centered(rows):
    return rows - rows.mean(axis=0)


def test_function__that_looks_at_all_rows_of_a_call_rules_its_candidate_out():
    learner = make_pipeline(FunctionTransformer(centered), TREES[0])
    with pytest.raises(dsel.errors.AllFitsFailedError, match="otherwise alone than"):
        run_search(learner, {"decisiontreeclassifier__max_depth": [4]}, X, Y, cv=3)


@pytest.mark.parametrize(
    ("asked", "rows", "why"),
    [
        ({}, slice(None), ""),
        ({"criterion": "cv_error"}, slice(None), "is an estimate, not a bound"),
        ({"criterion": "best_fold"}, slice(None), "is not the certificate that the"),
        ({"delta": 0.04}, slice(None), "the plan declared delta=0.05"),
        ({}, slice(2), "was cut, sorted or changed after the run"),
        ({"criterion": "cv_bound"}, slice(2), "was cut, sorted or changed after"),
    ],
)
def test_select__certifies_what_the_plan_declared_and_nothing_else(asked, rows, why):
    run = run_search(*TREES, X, Y, POOL, certificate="cv_bound", cv=3)
    found = dsel.select(run.results.isel(max_depth=rows), **asked).certificate
    assert found.certified == (not why)
    assert why in "".join(found.reasons[:1])
