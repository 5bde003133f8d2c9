"""The cube: candidates in order, its variables, and what is read from it."""

from math import inf, nan

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dsel import names
from dsel.results.candidate_tables import all_params, candidate_table, cv_results
from dsel.results.cube import grid_axes, make_cube, read_counts


@pytest.mark.parametrize(
    "grid",
    [
        {"gamma": [1.0, 0.1], "C": 2.0 ** np.arange(4), "kernel": ["rbf"]},
        [{"C": [1, 2], "kernel": ["linear"]}, {"gamma": [0.1, None]}],
        {},
    ],
)
def test_grid_axes__numbers_in_parameter_grid_order(grid):
    axes = grid_axes(grid)
    assert list(axes.candidates) == list(ParameterGrid(grid))
    assert "np." not in str(axes.candidates)
    shown = all_params(make_cube(axes, {"fold": 2}, {}))
    assert [set(each) for each in shown] == [set(each) for each in axes.candidates]
    if len(axes.sizes) > 1:
        assert shown == list(axes.candidates)


@pytest.mark.parametrize(
    ("values", "shown", "kind"),
    [
        ([100, 1], [100, 1], "i"),
        ([1, 2.5], [1.0, 2.5], "f"),
        ([True, False], [True, False], "b"),
        (["rbf", "k-means++"], ["rbf", "k-means++"], "O"),
        (["scale", 0.1], ["scale", "0.1"], "O"),
        ([np.float64(0.5), None], ["0.5", "None"], "O"),
        ([1, 1.0, True, "1", "a.b"], ["1", "1.0", "True", "'1'", "'a.b'"], "O"),
        ([1, 2, np.int64(1)], ["1", "2", "1  # 2"], "O"),
        ([0.5, 0.5], ["0.5", "0.5  # 2"], "O"),
        ([0.0, -0.0], ["0.0", "-0.0"], "O"),
        (["", "nan", "None"], ["''", "'nan'", "'None'"], "O"),
        ([2**70, 1], [str(2**70), "1"], "O"),
        ([2**53 + 1, 0.5], [str(2**53 + 1), "0.5"], "O"),
        ([(1, 2), [3]], ["(1, 2)", "[3]"], "O"),
        ([DecisionTreeClassifier()], ["DecisionTreeClassifier()"], "O"),
        ([max], ["builtins.max"], "O"),
    ],
)
def test_grid_axes__shows_numbers_as_they_are_and_the_rest_as_text(values, shown, kind):
    axes = grid_axes({"criterion": values})
    dim, coordinate, _ = axes.coords["param_criterion"]
    assert axes.sizes == {dim: len(values)} == {"param_criterion": len(values)}
    assert coordinate.tolist() == shown
    assert coordinate.dtype.kind == kind
    assert [each["criterion"] for each in axes.candidates] == values


def test_grid_axes__of_a_list_has_parameters_along_candidate():
    axes = grid_axes([{"C": [1, 2], "kernel": ["rbf"]}, {"flag": [True]}])
    assert axes.sizes == {"candidate": 3}
    np.testing.assert_array_equal(axes.coords["C"][1], [1.0, 2.0, np.nan])
    assert axes.coords["kernel"][1].tolist() == ["rbf", "rbf", ""]
    assert axes.coords["flag"][1].tolist() == ["", "", "True"]
    estimators = [LogisticRegression(C=2.0), DecisionTreeClassifier()]
    axes = grid_axes(estimators)
    texts = ["LogisticRegression(C=2.0)", "DecisionTreeClassifier()"]
    assert axes.coords["estimator"][1].tolist() == texts
    assert axes.candidates == tuple({"estimator": each} for each in estimators)
    assert grid_axes(estimators[:1]).candidates == ({},)


LOOK_ALIKE = [
    [1, 1.0, True, "1", None, "None", lambda x: x, lambda x: -x],
    [nan, "nan", float("inf"), "inf", -inf, ""],
    [nan, nan],
    [np.float32(0.1), 0.1],
    [np.int64(3), 3, np.float64(3)],
    [0.1, np.nextafter(0.1, 1.0), 0.1 + 0.2, 0.3],
    [SVC(C=1), SVC(C=1), SVC()],
    [np.arange(5000), np.arange(5000) + (np.arange(5000) == 2500)],
    [(1, "a  b"), [1, "a  b"], (1, "a b"), (nan,)],
    ["1  # 2", 1, 1, "'1'", "<f>", "a\nb", "SVC()", "\ud800"],
    [np.str_("a"), np.bool_(True), b"a"],
]


@pytest.mark.parametrize("values", LOOK_ALIKE, ids=range(len(LOOK_ALIKE)))
@pytest.mark.parametrize("is_listed", [False, True])
def test_grid_axes__tells_apart_values_that_look_alike(values, is_listed):
    grid = {"p": values, "fold": [1]}
    axes = grid_axes([grid, {"q": ["x"]}] if is_listed else grid)
    cube = make_cube(axes, {"fold": 2}, {})
    n = len(values)
    assert axes.n_candidates == n + is_listed
    if not is_listed:
        labels = cube["p"].values.tolist()
        assert len({repr(label) for label in labels}) == n
        assert cube.indexes["p"].is_unique
    seen = all_params(cube)[:n]
    for given, params in zip(axes.candidates, seen, strict=False):
        assert params.keys() == given.keys()
        assert repr(params["fold"]) == "1"
        readable = (bool, int, float, str, bytes, tuple, list, type(None))
        if isinstance(given["p"], readable) and given["p"] != (nan,):
            assert repr(params["p"]) == repr(given["p"])
            assert type(params["p"]) is type(given["p"])


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([], ValueError, "`param_grid` is empty"),
        ({"C": "abc"}, TypeError, "`param_grid` must give 'C' a list"),
        ({"C": np.ones((2, 2))}, TypeError, "`param_grid` must give 'C' a list"),
        ("C", TypeError, "`param_grid` must be a dict .* got 'C'"),
        ([{"C": [1]}, LogisticRegression()], TypeError, "or a list of estimators, got"),
        ([LogisticRegression], TypeError, "or a list of estimators, got"),
        ({"fold": [1], "param_fold": [2]}, ValueError, "want one dimension"),
    ],
)
def test_grid_axes__refuses_what_is_no_grid(grid, error, message):
    with pytest.raises(error, match=message):
        grid_axes(grid)


def test_reserved__has_the_counts_of_every_statistic():
    counts = {name for key, name in vars(names).items() if key.startswith("OUTER_")}
    assert len(counts) > 10
    assert counts <= names.RESERVED


def test_read_counts__returns_integers_of_flat_candidates(cube):
    found = read_counts(cube)
    assert set(cube.data_vars) <= names.RESERVED
    assert found["fold_errors"].shape == (6, 5)
    assert found["fold_errors"].dtype == np.int64
    assert found["fold_errors"][3, 2] == -1
    assert found["equal_rows"] == 3
    assert "estimate" not in found
    grown = read_counts(cube.reindex(C=[1, 10, 5]))  # where nothing was counted
    assert grown["status"].tolist() == [0, 0, 1, 2, 3, 3]
    assert grown["fold_errors"][4:].max() == -1


def test_candidate_table__has_parameters_and_errors_by_answers(cube):
    assert all_params(cube)[3] == {"C": 10, "kernel": "linear"}
    assert all_params(cube.isel(C=1, fold=0))[0] == {"C": 10, "kernel": "rbf"}
    table = candidate_table(cube)
    assert table.columns[:4].tolist() == ["C", "kernel", "status", "cv_error"]
    assert table.status.tolist()[:4] == ["done", "done", "pruned", "failed"]
    assert table.nested_label_term.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    bare = candidate_table(cube.drop_dims("criterion"))
    assert bare.cv_error[0] == pytest.approx(
        read_counts(cube)["fold_errors"][0].mean() / 80
    )
    assert np.isnan(bare.cv_error[3])


def test_cv_results__is_what_scikit_learn_has(cube, axes):
    found = cv_results(cube, axes)
    assert found["params"] == list(axes.candidates)
    assert found["rank_test_score"].tolist().count(1) == 1
    assert found["rank_test_score"][3] == 6
    assert found["param_C"].tolist() == [1, 1, 10, 10, 100, 100]
    assert found["mean_fit_time"].shape == (6,)
    listed = grid_axes([{"C": [1.0], "size": [(1, 2)]}, {"kernel": ["rbf"]}])
    counted = {"fold_errors": [[1, 1], [0, 0]], "fold_rows": [10, 10]}
    found = cv_results(make_cube(listed, {"fold": 2}, counted), listed)
    assert found["mean_test_score"].tolist() == [0.9, 1.0]
    assert found["param_kernel"].tolist() == [None, "rbf"]
    assert found["param_C"].tolist() == [1.0, None]
    assert found["param_size"].tolist() == [(1, 2), None]
