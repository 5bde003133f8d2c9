"""The cube: its variables, what xarray does to it, and what is read from it."""

import numpy as np
import pytest
import xarray as xr

from dsel import names
from dsel.results import schema
from dsel.results.assumptions import assumption_table, assumptions_of
from dsel.results.choice import (
    candidate_labels,
    candidate_table,
    content_token,
    cv_results,
    params_of,
)
from dsel.results.cube import (
    add_criterion,
    candidate_shape,
    check_cube,
    evidence,
    make_cube,
    make_pair_cube,
)
from dsel.results.grid import fold_axes, grid_axes, half_axes


def test_make_cube__has_the_variables_that_were_given(cube):
    assert cube.fold_errors.dims == ("C", "kernel", "fold")
    assert cube.outer_errors.dims == ("fold",)
    assert cube.estimate.dims == ("criterion", "C", "kernel")
    assert {*cube.dims} == {"C", "kernel", "fold", "criterion"}
    assert set(cube.message.values.ravel()) == {""}
    assert "disagreements" not in cube
    assert cube.attrs["seeds"] == '{"folds": 3}'
    assert candidate_shape(cube) == (3, 2)
    assert cube.C.values.tolist() == [1, 10, 100]


def test_make_cube__counts_what_was_not_counted_as_nan(cube):
    assert np.isnan(cube.fold_errors.values[1, 1, 2])
    assert cube.outer_disagreements.values.tolist()[:4] == [1, 2, 3, 4]
    assert np.isnan(cube.outer_disagreements.values[4])


def test_make_cube__says_why_a_candidate_failed(axes):
    messages = ["", "", "", "it raised", "", ""]
    cube = make_cube(axes, fold_axes(2), {"message": messages})
    assert cube.message.values[1, 1] == "it raised"
    assert cube.status.values.tolist() == [[3, 3]] * 3


def test_make_cube__takes_counts_by_class(axes):
    confusion = np.arange(5 * 9).reshape(5, 3, 3)
    cube = make_cube(axes, fold_axes(5), {"outer_errors": confusion})
    assert cube.outer_errors.dims == ("fold", "true_class", "predicted_class")
    check_cube(cube)
    np.testing.assert_array_equal(evidence(cube)["outer_errors"], confusion)
    answers = {"outer_disagreements": confusion}
    dims = make_cube(axes, fold_axes(5), answers).outer_disagreements.dims
    assert dims == ("fold", "predicted_class", "other_class")


def test_make_cube__takes_halves_of_repeats(axes):
    values = {
        "fold_errors": np.ones((6, 3, 2), dtype=int),
        "fold_rows": np.full((3, 2), 5),
        "train_errors": np.zeros((6, 3, 2), dtype=int),
        "disagreements": np.ones((6, 3), dtype=int),
        "pool_rows": np.full((6, 3), 7),
    }
    cube = make_cube(axes, half_axes(3), values)
    check_cube(cube)
    assert cube.fold_errors.dims == ("C", "kernel", "repeat", "half")
    assert evidence(cube)["disagreements"].shape == (6, 3)


def test_schema__holds_what_numpy_promotes():
    kinds = {np.dtype(dtype).kind for dtype in schema.DTYPES.values()}
    assert kinds <= set("fiO")
    assert {each.name for each in schema.VARIABLES} <= names.RESERVED | {names.MESSAGE}


def _other(cube):
    return cube.assign_coords(C=[10, 100, 1000])


IDIOMS = {
    "where": lambda cube: cube.where(cube.fold_errors > 3),
    "where_drop": lambda cube: cube.where(cube.C > 1, drop=True),
    "reindex": lambda cube: cube.reindex(C=[1, 5], kernel=["rbf", "poly"]),
    "align": lambda cube: xr.align(cube, _other(cube), join="outer"),
    "merge": lambda cube: xr.merge(
        [cube, _other(cube)], join="outer", compat="override"
    ),
    "concat": lambda cube: xr.concat([cube, _other(cube)], "run", join="outer"),
    "concat_C": lambda cube: xr.concat(
        [cube, cube.assign_coords(C=[2, 3, 4])], "C", data_vars="minimal"
    ),
    "combine_first": lambda cube: cube.combine_first(_other(cube)),
    "fillna": lambda cube: cube.fillna(0),
    "max": lambda cube: cube.max(),
    "max_grown": lambda cube: cube.reindex(C=[1, 5]).max(),
    "max_fold": lambda cube: cube.max("fold"),
    "mean": lambda cube: cube.mean("C"),
    "coarsen": lambda cube: cube.coarsen(C=3).max(),
    "coarsen_fold": lambda cube: cube.coarsen(fold=5).max(),
    "rolling": lambda cube: cube[["fold_errors"]].rolling(C=2).mean(),
    "dropna": lambda cube: cube.dropna("fold"),
    "groupby": lambda cube: cube.groupby("kernel").mean(),
    "groupby_max": lambda cube: cube.groupby("kernel").max(),
    "stack": lambda cube: cube.stack(candidate=("C", "kernel")),
    "sortby": lambda cube: cube.sortby("C", ascending=False),
    "to_dataframe": lambda cube: cube.to_dataframe(),
}


@pytest.mark.parametrize("idiom", IDIOMS.values(), ids=IDIOMS)
def test_cube__takes_what_xarray_does_to_a_dataset(cube, idiom):
    assert idiom(cube) is not None


def test_cube__goes_to_netcdf(cube, tmp_path):
    pytest.importorskip("netCDF4")
    cube.to_netcdf(tmp_path / "cube.nc")
    with xr.open_dataset(tmp_path / "cube.nc") as opened:
        np.testing.assert_array_equal(opened.fold_errors, cube.fold_errors)


def test_cube__that_was_grown_is_still_one(cube):
    grown = cube.reindex(C=[1, 10, 5]).drop_dims("criterion")
    check_cube(grown)
    assert evidence(grown)["status"].tolist() == [0, 0, 1, 2, 3, 3]
    assert evidence(grown)["fold_errors"][4:].max() == -1


def test_evidence__is_integers_of_flat_candidates(cube):
    found = evidence(cube)
    assert found["fold_errors"].shape == (6, 5)
    assert found["fold_errors"].dtype == np.int64
    assert found["fold_errors"][3, 2] == -1
    assert found["equal_rows"] == 3
    assert "estimate" not in found


def test_add_criterion__replaces_and_appends(bare_cube, terms):
    cube = bare_cube
    for name, start in (("a", 0.0), ("b", 1.0), ("a", 5.0)):
        cube = add_criterion(cube, name, terms(start), delta_shares=0.1, delta=0.6)
    assert cube.criterion.values.tolist() == ["a", "b"]
    assert cube.estimate.sel(criterion="a").values.ravel().tolist() == [
        5,
        6,
        7,
        8,
        9,
        10,
    ]
    assert cube.estimate.sel(criterion="b").values.ravel()[0] == 1
    assert cube.delta_share.values.max() == 0.1
    check_cube(cube)


def test_make_pair_cube__says_which_fold_errors_are_on(axes, rng):
    pairs = [(0, 1), (0, 2), (1, 2)]
    errors = rng.integers(0, 9, (6, 3, 2))
    errors[0, 0, 1] = -1
    made = make_pair_cube(axes, pairs, errors, np.full((3, 2), 9), rng.random((6, 3)))
    assert made.fold_errors.dims == ("C", "kernel", "pair", "side")
    on_two = made.fold_errors.where(made.fold == 2).sum(("pair", "side"))
    assert (
        on_two.values.ravel().tolist() == (errors[:, 1, 1] + errors[:, 2, 1]).tolist()
    )
    assert np.isnan(made.fold_errors.values[0, 0, 0, 1])


def test_content_token__changes_with_counts_and_order(cube):
    token = content_token(cube)
    assert content_token(cube.drop_dims("criterion")) == token
    assert content_token(cube.sortby("C", ascending=False)) != token
    changed = cube.copy(deep=True)
    changed.fold_errors.values[0, 0, 0] += 1
    assert content_token(changed) != token


def test_assumptions__stand_in_the_cube_until_attributes_are_lost(cube):
    assert [each.name for each in assumptions_of(cube)] == [
        "A1",
        "A3",
        "A4",
        "A5",
        "A7",
    ]
    assert assumption_table(cube).loc["A4", "state"] == "by design"
    assert assumptions_of(cube.drop_attrs()) == ()


def test_candidates__are_shown_by_their_parameters(cube):
    assert params_of(cube, 3) == {"C": 10, "kernel": "linear"}
    assert candidate_labels(cube)[0] == "C=1, kernel=rbf"
    assert params_of(cube.isel(C=1), 0) == {"C": 10, "kernel": "rbf"}
    listed = grid_axes([{"C": [1], "gamma": [2.0]}, {"C": [5]}])
    assert params_of(make_cube(listed, fold_axes(2), {}), 1) == {"C": 5}


def test_candidate_table__has_errors_by_answers(cube):
    table = candidate_table(cube)
    rates = evidence(cube)["fold_errors"] / 80
    assert table.cv_error[0] == pytest.approx(rates[0].mean())
    assert np.isnan(table.cv_error[3])
    assert table.status.tolist()[:4] == ["done", "done", "pruned", "failed"]
    assert table.nested_label_term.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


def test_cv_results__is_what_scikit_learn_has(cube, axes):
    found = cv_results(cube, axes)
    assert found["params"] == list(axes)
    assert found["rank_test_score"].tolist().count(1) == 1
    assert found["rank_test_score"][3] == 6
    assert found["param_C"].tolist() == [1, 1, 10, 10, 100, 100]
    assert found["mean_fit_time"].shape == (6,)
