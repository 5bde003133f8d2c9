"""Candidates are numbered as scikit-learn numbers them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.tree import DecisionTreeClassifier

from dsel.results.grid import grid_axes

GRIDS = {
    "product": {"gamma": [1.0, 0.1], "C": 2.0 ** np.arange(4), "kernel": ["rbf"]},
    "list": [{"C": [1, 2], "kernel": ["linear"]}, {"gamma": [0.1, None]}],
    "nothing to set": {},
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_grid_axes__numbers_in_parameter_grid_order(grid):
    axes = grid_axes(grid)
    expected = list(ParameterGrid(grid))
    assert list(axes) == expected
    assert [axes.params(n) for n in range(axes.n_candidates)] == expected


def test_grid_axes__cube_order_is_candidate_order():
    axes = grid_axes(GRIDS["product"])
    assert axes.dims == ("C", "gamma", "kernel")
    place = np.unravel_index(5, axes.shape)
    shown = {
        dim: axes.coords[dim][1][p] for dim, p in zip(axes.dims, place, strict=True)
    }
    assert shown == axes.params(5)


def test_grid_axes__keeps_the_given_order_of_values():
    axes = grid_axes({"C": [100, 1, 10]})
    assert axes.coords["C"][1].tolist() == [100, 1, 10]


@pytest.mark.parametrize(
    ("values", "shown", "kind"),
    [
        ([1, 2], [1, 2], "i"),
        ([1, 2.5], [1.0, 2.5], "f"),
        ([True, False], [True, False], "b"),
        (["a", "b"], ["a", "b"], "O"),
        (["scale", 0.1], ["scale", "0.1"], "O"),
        ([None, "None"], ["None", "'None'"], "O"),
        ([2**70], [float(2**70)], "f"),
        ([np.float64(0.5), None], ["0.5", "None"], "O"),
        ([(1, 2), [3]], ["(1, 2)", "[3]"], "O"),
        ([DecisionTreeClassifier()], ["DecisionTreeClassifier()"], "O"),
        ([max], ["builtins.max"], "O"),
    ],
)
def test_grid_axes__shows_numbers_as_they_are_and_the_rest_as_text(values, shown, kind):
    axes = grid_axes({"p": values})
    coordinate = axes.coords["p"][1]
    assert coordinate.tolist() == shown
    assert coordinate.dtype.kind == kind
    assert axes.params(0)["p"] is values[0]


def test_grid_axes__renames_reserved_dimensions():
    axes = grid_axes({"criterion": ["gini"], "fold": [1]})
    assert axes.dims == ("param_criterion", "param_fold")
    assert axes.params(0) == {"criterion": "gini", "fold": 1}


def test_grid_axes__list_of_grids_has_parameters_along_candidate():
    axes = grid_axes([{"C": [1, 2], "kernel": ["rbf"]}, {"flag": [True]}])
    assert axes.dims == ("candidate",)
    assert axes.shape == (3,)
    np.testing.assert_array_equal(axes.coords["C"][1], [1.0, 2.0, np.nan])
    assert axes.coords["kernel"][1].tolist() == ["rbf", "rbf", ""]
    assert axes.coords["flag"][1].tolist() == ["", "", "True"]


def test_grid_axes__takes_estimators():
    estimators = [LogisticRegression(C=2.0), DecisionTreeClassifier()]
    axes = grid_axes(estimators)
    assert axes.estimators == tuple(estimators)
    assert axes.coords["estimator"][1].tolist() == [
        "LogisticRegression(C=2.0)",
        "DecisionTreeClassifier()",
    ]
    assert list(axes) == [{}, {}]
    assert axes.params(1) == {}


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([], ValueError, "`param_grid` is empty"),
        ({"C": []}, ValueError, "`param_grid` gives 'C' no values"),
        (
            {"C": 3},
            TypeError,
            r"`param_grid` must give 'C' a list of values, got 3; write",
        ),
        ({"C": "abc"}, TypeError, "`param_grid` must give 'C' a list"),
        ({"C": np.ones((2, 2))}, TypeError, "`param_grid` must give 'C' a list"),
        ({3: [1]}, TypeError, "`param_grid` must name parameters by text, got 3"),
        (7, TypeError, "`param_grid` must be a dict .* got int"),
        ("C", TypeError, "`param_grid` must be a dict .* got str"),
        ([{"C": [1]}, LogisticRegression()], TypeError, "or estimators only"),
        ([LogisticRegression], TypeError, "or estimators only"),
        ({"fold": [1], "param_fold": [2]}, ValueError, "want one dimension"),
        ({"C": [1, 2, np.int64(1)]}, ValueError, r"'C' the value 1 2 times; give each"),
        ({"gamma": ["auto", "auto"]}, ValueError, "'gamma' the value auto 2 times"),
    ],
)
def test_grid_axes__refuses_what_is_no_grid(grid, error, message):
    with pytest.raises(error, match=message):
        grid_axes(grid)


def test_grid_axes__takes_values_that_only_look_alike():
    values = [1, 1.0, True, "1", None, "None", lambda x: x, lambda x: -x]
    assert grid_axes({"max_features": values}).n_candidates == len(values)


def test_params__refuses_numbers_outside_the_grid():
    with pytest.raises(IndexError, match=r"`number` must be in \[0, 1\], got 2"):
        grid_axes({"C": [1, 2]}).params(2)
