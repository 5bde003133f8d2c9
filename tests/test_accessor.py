"""`results.dsel` asks a cube for choices, bounds and figures."""

import numpy as np
import pytest
import xarray as xr
from dsel.searches.evaluate import evaluate
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.criteria import CRITERIA
from dsel.results import fold_axes, grid_axes, make_cube

GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"]}


def run(**options):
    X, y = make_classification(2400, 5, class_sep=1.2, random_state=4)
    settings = {"criterion": "cv_bound", "cv": 4, "delta": 0.1, "random_state": 3}
    plan = dsel.plan_search(
        KNeighborsClassifier(), GRID, X[:400], y[:400], X[400:], **settings | options
    )
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


def test_evaluate__gives_pruned_candidates_a_lower_limit(results, pruned):
    judged = evaluate(pruned)
    cut = np.isnan(judged.estimate)
    assert cut.any()
    assert (
        judged.at_least.where(cut) <= evaluate(results).estimate.where(cut)
    ).sum() == (cut.sum())
    assert np.isnan(judged.at_least.where(~cut)).all()


def test_evaluate__says_what_was_not_counted(results):
    with pytest.raises(ValueError, match="needs `loo_errors`, which this search"):
        evaluate(results, "loo_error")


@pytest.mark.parametrize("name", ["two_fold_cv", "max_dt_e", "disagreement"])
def test_select__of_folds_has_no_random_halvings(results, name):
    with pytest.raises(ValueError, match=r"this cube has no random halvings.*4 folds"):
        results.dsel.select(name)


def test_compare__answers_for_every_criterion(results):
    table = results.dsel.compare()
    assert table.criterion.values.tolist() == list(CRITERIA)
    row = table.sel(criterion="cv_bound")
    assert row.candidate == results.dsel.select().candidate
    assert row.bound == results.dsel.select().bound
    assert np.isnan(table.bound.sel(criterion="cv_error"))
    assert "loo_errors" in table.message.sel(criterion="loo_error").item()
    assert table.candidate.sel(criterion="loo_error") == -1


def test_table__has_a_row_for_each_candidate(results, pruned):
    table = results.dsel.table()
    chosen = results.dsel.select()
    assert table.columns[:4].tolist() == [*GRID, "status", "cv_error"]
    row = table.loc[chosen.candidate]
    assert row[list(GRID)].to_dict() == chosen.params
    assert (row.status, row.cv_bound) == ("done", chosen.estimate)
    assert row.cv_bound_label_term == chosen.certificate.label_term
    assert row.cv_bound_disagreement_term == chosen.certificate.disagreement_term
    assert table.cv_error.idxmin() == results.dsel.select("cv_error").candidate
    assert table.cv_bound.idxmin() == chosen.candidate
    short = pruned.dsel.table()
    assert short.cv_bound[short.status == "pruned"].isna().all()
    assert short.cv_bound.idxmin() == chosen.candidate


def test_table__of_a_list_of_grids_has_what_each_sets():
    axes = grid_axes([{"C": [1]}, {"gamma": [0.5], "kernel": ["rbf"]}])
    table = make_cube(axes, fold_axes(2), {}).dsel.table()
    assert table.columns.tolist() == ["C", "gamma", "kernel", "status", "cv_error"]
    assert table.kernel.tolist() == ["", "rbf"]
    assert table.C.isna().tolist() == [False, True]


def test_assumptions__are_those_of_the_certificate(results):
    table = results.dsel.assumptions
    ledger = results.dsel.select().certificate.assumptions
    assert table.index.tolist() == [each.name for each in ledger]
    assert table.state.tolist() == [each.state for each in ledger]
    assert table.reason.tolist() == [each.reason for each in ledger]


def test_spent__says_what_delta_went_to(results):
    spent = results.dsel.spent
    assert spent.certificate.tolist() == ["cv_bound", "cv_bound"]
    assert spent.delta.sum() == pytest.approx(0.1)
    assert spent.attrs == {"delta": 0.1, "reserve": 0.0}


def without(results, name):
    kept = {key: value for key, value in results.attrs.items() if key != name}
    return results.drop_attrs().assign_attrs(kept)


@pytest.mark.parametrize(
    "lose",
    [
        lambda results: without(results, "assumptions"),
        lambda results: without(results, "spent"),
        lambda results: results.assign_attrs(assumptions="[]"),
        lambda results: results.drop_attrs(),
        lambda results: xr.merge([results, {"mine": 1}], combine_attrs="drop"),
    ],
)
def test_select__certifies_nothing_of_a_cube_that_lost_its_record(results, lose):
    certificate = dsel.select(lose(results)).certificate
    assert certificate.bound == dsel.select(results).bound
    assert not certificate.certified
    assert "the results lost their attribute `" in certificate.reasons[0]


def test_select__refuses_results_that_were_put_together(results):
    rest = {"data_vars": "minimal", "coords": "minimal", "compat": "override"}
    both = xr.concat([results, results], "n_neighbors", join="override", **rest)
    with pytest.raises(ValueError, match="hold 16 candidates, but delta was divided"):
        dsel.select(both)


def test_accessor__belongs_to_a_saved_cube_too(results, tmp_path):
    dsel.save_results(results, tmp_path)
    opened = dsel.open_results(tmp_path)
    assert repr(opened.dsel.select()) == repr(results.dsel.select())
