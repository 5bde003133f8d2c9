"""`results.dsel` asks a cube for choices, bounds and figures."""

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.criteria import CRITERIA
from dsel.searches.evaluate import evaluate

GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"]}


def run(**options):
    X, y = make_classification(2400, 5, class_sep=1.2, random_state=4)
    plan = dsel.plan_search(
        KNeighborsClassifier(), GRID, X[:400], y[:400], X[400:],
        cv=4, delta=0.1, random_state=3, **options,
    )  # fmt: skip
    return plan.run()


@pytest.fixture(scope="module")
def results():
    return run(prune=False)


@pytest.fixture(scope="module")
def pruned():
    return run()


def test_repr__says_what_was_chosen_and_the_verbs(results):
    shown = repr(results.dsel)
    assert str(dsel.select(results)) in shown
    assert "compare" in shown


def test_select__is_the_verb(results):
    asked = repr(results.dsel.select("cv_error"))
    assert asked == repr(dsel.select(results, "cv_error"))
    chosen = results.dsel.select(delta=0.2)
    assert chosen.certificate.delta == 0.2


def test_bound__is_what_the_cube_says_at_its_delta(results):
    bound = results.dsel.bound()
    xr.testing.assert_allclose(
        bound.drop_vars("criterion", errors="ignore"),
        results.estimate.sel(criterion="cv_bound", drop=True).rename("bound"),
    )
    assert bound.dims == ("n_neighbors", "weights")
    assert bound.attrs["delta"] == 0.1


def test_bound__falls_as_delta_grows(results):
    assert (results.dsel.bound(delta=0.3) < results.dsel.bound(delta=0.01)).all()


def test_bound__agrees_with_the_choice(results):
    chosen = results.dsel.select(delta=0.02)
    bound = results.dsel.bound(delta=0.02)
    assert bound.sel(chosen.params).item() == chosen.certificate.unclipped
    assert bound.min().item() == chosen.estimate


def test_judge__gives_pruned_candidates_a_lower_limit(results, pruned):
    judged = evaluate(pruned)
    cut = np.isnan(judged.estimate)
    assert cut.any()
    assert (
        judged.at_least.where(cut) <= evaluate(results).estimate.where(cut)
    ).sum() == (cut.sum())
    assert np.isnan(judged.at_least.where(~cut)).all()


def test_judge__says_what_was_not_counted(results):
    with pytest.raises(ValueError, match="needs `loo_errors`, which this search"):
        evaluate(results, "loo_error")


def test_compare__answers_for_every_criterion(results):
    table = results.dsel.compare()
    assert table.criterion.values.tolist() == list(CRITERIA)
    row = table.sel(criterion="cv_bound")
    assert row.candidate == results.dsel.select().candidate
    assert row.bound == results.dsel.select().bound
    assert np.isnan(table.bound.sel(criterion="cv_error"))
    assert "loo_errors" in table.message.sel(criterion="loo_error").item()
    assert table.candidate.sel(criterion="loo_error") == -1


def test_accessor__belongs_to_a_saved_cube_too(results, tmp_path):
    dsel.save_results(results, tmp_path)
    opened = dsel.open_results(tmp_path)
    assert repr(opened.dsel.select()) == repr(results.dsel.select())
