"""A criterion from outside of dsel: one function and one line."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.criteria import CRITERIA, Estimate


def worst_fold(evidence):
    return (evidence["fold_errors"] / evidence["fold_rows"]).max(axis=-1)


WORST_FOLD = Estimate("worst_fold", worst_fold, ("fold_errors",), ("fold_rows",))


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setitem(CRITERIA, "worst_fold", WORST_FOLD)
    X, y = load_iris(return_X_y=True)
    grid = {"n_neighbors": [1, 15, 60]}
    model = KNeighborsClassifier()

    def search(**options):
        return dsel.plan_search(model, grid, X, y, random_state=0, **options).run()

    return search


def test_criteria__of_others_rank_and_prune_a_search(run):
    results = run(criterion="worst_fold")
    worst = results.estimate.sel(criterion="worst_fold").values
    choice = dsel.select(results)
    assert choice.candidate == np.nanargmin(worst)
    assert not choice.certificate.certified


def test_criteria__of_others_read_the_counts_of_any_search(run):
    results = run(criterion="cv_error", prune=False)
    rates = (results.fold_errors / results.fold_rows).max("fold").values
    assert dsel.select(results, "worst_fold").candidate == rates.argmin()
