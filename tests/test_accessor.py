"""`results.dsel` asks a cube for choices, bounds and figures."""

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.least_squares import LeastSquaresSearch
from dsel.report.page import report_html

GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"]}


def run(**options):
    X, y = make_classification(2400, 5, class_sep=1.2, random_state=4)
    settings = {"certificate": "cv_bound", "cv": 4, "delta": 0.1, "random_state": 3}
    plan = dsel.plan_search(
        KNeighborsClassifier(), GRID, X[:400], y[:400], X[400:], **settings | options
    )
    return plan.run().results


@pytest.fixture(scope="module")
def results():
    return run(prune=False)


@pytest.fixture(scope="module")
def nested():
    return run(certificate="nested")


def test_select__is_the_verb_of_a_saved_cube_too(results, nested, tmp_path):
    shown = repr(results.dsel)
    assert str(dsel.select(results)) in shown
    assert "certificates" in shown
    assert results.dsel.select("cv_error") == dsel.select(results, "cv_error")
    assert results.dsel.select(delta=0.2).certificate.delta == 0.2
    assert list(nested.dsel.certificates) == ["one_fold", "all_rows"]
    assert all(each.certified for each in nested.dsel.certificates.values())
    dsel.save_results(results, tmp_path)
    assert dsel.open_results(tmp_path).dsel.select() == results.dsel.select()


def test_bound__is_what_the_cube_says_and_agrees_with_the_choice(results):
    bound = results.dsel.bound()
    expected = results.estimate.sel(criterion="cv_bound", drop=True).rename("bound")
    xr.testing.assert_allclose(bound, expected)
    assert bound.dims == ("n_neighbors", "weights")
    chosen, bound = results.dsel.select(delta=0.02), results.dsel.bound(delta=0.02)
    assert bound.sel(chosen.params).item() == chosen.certificate.unclipped
    assert bound.min().item() == chosen.criterion_value


def test_table__has_a_row_for_each_candidate(results):
    table, chosen = results.dsel.table(), results.dsel.select()
    assert table.columns[:4].tolist() == [*GRID, "status", "cv_error"]
    row = table.loc[chosen.candidate]
    assert row[list(GRID)].to_dict() == chosen.params
    assert (row.status, row.cv_bound) == ("done", chosen.criterion_value)
    assert row.cv_bound_label_term == chosen.certificate.label_term
    assert row.cv_bound_disagreement_term == chosen.certificate.disagreement_term
    assert table.cv_error.idxmin() == results.dsel.select("cv_error").candidate
    short = run().dsel.table()
    assert short.cv_bound[short.status == "pruned"].isna().all()
    assert table.cv_bound.idxmin() == short.cv_bound.idxmin() == chosen.candidate


def test_table__of_a_list_of_grids_has_what_each_sets(rng):
    X = rng.normal(size=(60, 2))
    grid = [{"p": [1]}, {"n_neighbors": [3], "weights": ["distance"]}]
    plan = dsel.plan_search(KNeighborsClassifier(), grid, X, X[:, 0] > 0, cv=3)
    table = plan.run().results.dsel.table()
    assert table.columns[:4].tolist() == ["n_neighbors", "p", "weights", "status"]
    assert table.weights.isna().tolist() == [True, False]
    assert table.weights[1] == "distance"
    assert table.p.isna().tolist() == [False, True]


def test_assumptions__are_those_of_all_certificates(results):
    table = results.dsel.assumptions
    listed = results.dsel.select().assumptions
    assert list(table.itertuples(name=None)) == [
        (each.name, each.state, each.statement, each.reason) for each in listed
    ]


def test_repr__of_a_least_squares_search_says_what_was_chosen(rng):
    X = rng.normal(size=(30, 1))
    search = LeastSquaresSearch([0.5, 1.0], [0.1, 1.0], cv=3, random_state=0)
    cube = search.fit(X, X[:, 0]).results_
    choice, table = cube.dsel.select("gcv"), cube.dsel.table()
    assert choice.criterion == "gcv"
    assert str(cube.dsel.select()) in repr(cube.dsel)
    assert table.gcv.idxmin() == choice.candidate
    assert table.width[choice.candidate] == choice.params["width"]


CHANGES = {
    "without token": lambda cube: cube.assign_attrs(content_token=""),
    "cut": lambda cube: cube.isel(n_neighbors=slice(0, 3)),
    "sorted": lambda cube: cube.sortby("n_neighbors", ascending=False),
    "changed": lambda cube: cube.assign(fold_errors=cube.fold_errors * 0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_select__certifies_nothing_of_a_cube_that_was_changed(change, results, nested):
    for cube in (results, nested):
        certificate = dsel.select(CHANGES[change](cube)).certificate
        assert not certificate.certified
        assert certificate.reasons


def without(cube, *names):
    kept = {name: text for name, text in cube.attrs.items() if name not in names}
    return cube.drop_attrs().assign_attrs(kept)


def test_select__certifies_nothing_where_attributes_were_lost(results):
    lost = without(results, "choice", "assumptions")
    for cube in (lost, lost.assign_attrs(assumptions="[]")):
        certificate = dsel.select(cube).certificate
        assert np.isnan(certificate.bound)
        assert certificate.number == dsel.select(results).bound
        assert "the results lost their attribute `assumpt" in certificate.reasons[0]
    (reason, *_) = dsel.select(
        without(results, "delta"), "cv_bound"
    ).certificate.reasons
    assert reason == "the results lost the delta that the plan declared"
    counted = results.drop_dims("criterion")
    assert "cv_bound" not in counted.dsel.table()
    assert counted.dsel.select("cv_error") == results.dsel.select("cv_error")
    assert counted.dsel.select("cv_bound").certificate.certified  # nothing was counted


REFUSED = {
    "lack loo_errors, which": lambda cube: cube.dsel.bound("loo_error"),
    r"lack criterion, .* name one": lambda cube: cube.drop_dims(
        "criterion"
    ).dsel.bound(),
    "attribute delta = 'x'": lambda cube: cube.assign_attrs(delta="x"),
    "attribute assumptions = ": lambda cube: cube.assign_attrs(
        assumptions='[{"name": "A9"}]'
    ),
    "attribute objections = 'torn'": lambda cube: cube.assign_attrs(objections="torn"),
} | {
    f"needs random halvings.*criterion='{name}'": lambda cube, name=name: (
        cube.dsel.bound(name)
    )
    for name in ("two_fold_cv", "max_dt_e", "disagreement")
}


@pytest.mark.parametrize("words", REFUSED)
def test_verbs__name_what_is_missing_or_damaged(results, words):
    with pytest.raises(ValueError, match=words):
        dsel.select(REFUSED[words](results), "cv_bound")


CHANGED = {
    "attribute choice = '5'": lambda cube: cube.assign_attrs(choice=5),
    "attribute choice = '{}'": lambda cube: cube.assign_attrs(choice="{}"),
    "attribute choice = 'torn'": lambda cube: cube.assign_attrs(choice="torn"),
    "no dimension of candidates": lambda cube: cube.isel(n_neighbors=0, weights=0),
    "or none along it": lambda cube: cube.isel(n_neighbors=[]),
    "status = 9; it is a whole": lambda cube: cube.assign(status=cube.status + 9),
    "has fold_errors over": lambda cube: cube.mean("fold"),
    "it lacks status": lambda cube: cube.drop_vars("status"),
}


@pytest.mark.parametrize("words", CHANGED)
@pytest.mark.parametrize("ask", [dsel.select, report_html])
def test_verbs__say_in_one_line_what_a_changed_cube_lacks(results, ask, words):
    with pytest.raises(ValueError, match=words) as raised:
        ask(CHANGED[words](results))
    assert "\n" not in str(raised.value)
