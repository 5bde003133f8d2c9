"""`results.dsel` asks a cube for choices, bounds and figures."""

import pytest
import xarray as xr
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
import dsel.accessor
from dsel.least_squares import LeastSquaresSearch
from dsel.report.page import report_html

GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"]}

KEPT = ("assumptions", "choice")
"""Attributes of a cube that hold what was assumed."""


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
def pruned():
    return run()


@pytest.fixture(scope="module")
def nested():
    return run(certificate="nested")


def test_repr__says_what_was_chosen_and_the_verbs(results):
    shown = repr(results.dsel)
    assert str(dsel.select(results)) in shown
    assert "certificates" in shown


def test_select__is_the_verb(results):
    asked = repr(results.dsel.select("cv_error"))
    assert asked == repr(dsel.select(results, "cv_error"))
    chosen = results.dsel.select(delta=0.2)
    assert chosen.certificate.delta == 0.2


def test_certificates__are_those_of_both_models_of_a_nested_search(nested):
    found = nested.dsel.certificates
    assert list(found) == ["one_fold", "all_rows"]
    assert all(each.certified for each in found.values())


def test_bound__is_what_the_cube_says_at_its_delta(results):
    bound = results.dsel.bound()
    xr.testing.assert_allclose(
        bound.drop_vars("criterion", errors="ignore"),
        results.estimate.sel(criterion="cv_bound", drop=True).rename("bound"),
    )
    assert bound.dims == ("n_neighbors", "weights")


def test_bound__agrees_with_the_choice(results):
    chosen = results.dsel.select(delta=0.02)
    bound = results.dsel.bound(delta=0.02)
    assert bound.sel(chosen.params).item() == chosen.certificate.unclipped
    assert bound.min().item() == chosen.estimate


def test_bound__says_what_was_not_counted(results):
    with pytest.raises(ValueError, match="lack loo_errors, which"):
        results.dsel.bound("loo_error")


@pytest.mark.parametrize("name", ["two_fold_cv", "max_dt_e", "disagreement"])
def test_select__of_folds_has_no_random_halvings(results, name):
    with pytest.raises(ValueError, match=f"needs random halvings.*criterion='{name}'"):
        results.dsel.select(name)


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


def test_table__of_a_list_of_grids_has_what_each_sets(rng):
    X = rng.normal(size=(60, 2))
    grid = [{"p": [1]}, {"n_neighbors": [3], "weights": ["distance"]}]
    plan = dsel.plan_search(KNeighborsClassifier(), grid, X, X[:, 0] > 0, cv=3)
    table = plan.run().results.dsel.table()
    assert table.columns[:4].tolist() == ["n_neighbors", "p", "weights", "status"]
    assert table.weights.tolist() == ["", "distance"]
    assert table.p.isna().tolist() == [False, True]


def test_assumptions__are_those_of_the_certificate(results):
    table = results.dsel.assumptions
    listed = results.dsel.select().certificate.assumptions
    assert table.index.tolist() == [each.name for each in listed]
    assert table.state.tolist() == [each.state for each in listed]
    assert table.reason.tolist() == [each.reason for each in listed]


@pytest.mark.parametrize(
    "lose",
    [
        lambda cube: cube.assign_attrs(content_token=""),
        lambda cube: cube.isel(n_neighbors=slice(0, 3)),
        lambda cube: cube.sortby("n_neighbors", ascending=False),
        lambda cube: cube.assign(fold_errors=cube.fold_errors * 0),
    ],
    ids=["without token", "cut", "sorted", "changed"],
)
@pytest.mark.parametrize("made", ["results", "nested"])
def test_select__certifies_nothing_of_a_cube_that_was_changed(made, lose, request):
    cube = lose(request.getfixturevalue(made))
    certificate = dsel.select(cube).certificate
    assert not certificate.certified
    assert certificate.reasons


@pytest.mark.parametrize("text", ["[]", None])
def test_select__certifies_nothing_where_assumptions_were_lost(results, text):
    attrs = {k: v for k, v in results.attrs.items() if k not in KEPT}
    attrs |= {} if text is None else {"assumptions": text}
    certificate = dsel.select(results.drop_attrs().assign_attrs(attrs)).certificate
    assert certificate.bound == dsel.select(results).bound
    assert "the results lost their attribute `assumptions`" in certificate.reasons[0]


def test_accessor__belongs_to_a_saved_cube_too(results, tmp_path):
    dsel.save_results(results, tmp_path)
    opened = dsel.open_results(tmp_path)
    assert repr(opened.dsel.select()) == repr(results.dsel.select())


def test_repr__of_a_least_squares_search_says_what_was_chosen(rng):
    X = rng.normal(size=(30, 1))
    search = LeastSquaresSearch([0.5, 1.0], [0.1, 1.0], cv=3, random_state=0)
    cube = search.fit(X, X[:, 0]).results_
    choice = cube.dsel.select("gcv")
    assert choice.criterion == "gcv"
    assert str(cube.dsel.select()) in repr(cube.dsel)
    table = cube.dsel.table()
    assert table.gcv.idxmin() == choice.candidate
    assert table.width[choice.candidate] == choice.params["width"]


CHANGED = [
    (lambda cube: cube.assign_attrs(choice=5), "attribute choice = '5'"),
    (lambda cube: cube.assign_attrs(choice="{}"), "attribute choice = '{}'"),
    (lambda cube: cube.assign_attrs(choice="torn"), "attribute choice = 'torn'"),
    (lambda cube: cube.isel(n_neighbors=0, weights=0), "no dimension of candidates"),
    (lambda cube: cube.isel(n_neighbors=[]), "or none along it"),
    (
        lambda cube: cube.assign(status=cube.status + 9),
        "status = 9; it is a whole number",
    ),
    (lambda cube: cube.mean("fold"), "has fold_errors over"),
    (lambda cube: cube.drop_vars("status"), "it lacks status"),
]


@pytest.mark.parametrize(("change", "words"), CHANGED)
@pytest.mark.parametrize("ask", [dsel.select, report_html])
def test_verbs__say_in_one_line_what_a_changed_cube_lacks(results, ask, change, words):
    with pytest.raises(ValueError, match=words) as raised:
        ask(change(results))
    assert "\n" not in str(raised.value)


LOST = [
    ({"delta": "x"}, "attribute delta = 'x'"),
    ({"assumptions": '[{"name": "A9"}]'}, "attribute assumptions = "),
    ({"objections": "torn"}, "attribute objections = 'torn'"),
]


@pytest.mark.parametrize(("attrs", "words"), LOST)
def test_select__by_a_criterion_names_a_damaged_attribute(results, attrs, words):
    with pytest.raises(ValueError, match=words):
        dsel.select(results.assign_attrs(attrs), "cv_bound")


def test_select__certifies_nothing_where_delta_was_lost(results):
    attrs = {key: text for key, text in results.attrs.items() if key != "delta"}
    lost = results.drop_attrs().assign_attrs(attrs)
    (reason, *_) = dsel.select(lost, "cv_bound").certificate.reasons
    assert reason == "the results lost the delta that the plan declared"


def test_verbs__without_the_dimension_of_criteria_ask_for_one(results):
    counted = results.drop_dims("criterion")
    assert "cv_bound" not in counted.dsel.table()
    assert counted.dsel.select("cv_error") == results.dsel.select("cv_error")
    with pytest.raises(ValueError, match=r"lack criterion, .* name one"):
        counted.dsel.bound()
