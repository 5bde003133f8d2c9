"""The cube is what the table of its variables says."""

import numpy as np
import pytest

from dsel import names
from dsel.results import (
    Assumption,
    add_criterion,
    check_cube,
    evidence,
    fold_axes,
    grid_axes,
    half_axes,
    make_cube,
)
from dsel.results.ledger import assumptions_of, with_assumptions

CELL = ("C", "kernel", "fold")
TABLE = {
    "fold_errors": (CELL, "float64"),
    "fold_rows": (("fold",), "float64"),
    "train_rows": (("fold",), "float64"),
    "train_errors": (CELL, "float64"),
    "full_train_errors": (("C", "kernel"), "float64"),
    "disagreements": (CELL, "float64"),
    "pool_rows": (CELL, "float64"),
    "best_fold_disagreements": (("C", "kernel"), "float64"),
    "status": (("C", "kernel"), "int8"),
    "message": (("C", "kernel"), "StringDType()"),
    "fit_seconds": (CELL, "float64"),
    "score_seconds": (CELL, "float64"),
    "full_fit_seconds": (("C", "kernel"), "float64"),
    "n_labeled": ((), "float64"),
    "n_unlabeled": ((), "float64"),
    "n_classes": ((), "float64"),
    "n_candidates": ((), "float64"),
    "estimate": (("criterion", "C", "kernel"), "float64"),
    "label_term": (("criterion", "C", "kernel"), "float64"),
    "disagreement_term": (("criterion", "C", "kernel"), "float64"),
    "delta_share": (("criterion", "C", "kernel"), "float64"),
    "delta": (("criterion",), "float64"),
    "label_share": (("criterion",), "float64"),
}


def test_make_cube__has_the_table_s_variables(cube):
    found = {str(k): (v.dims, str(v.dtype)) for k, v in cube.data_vars.items()}
    assert found == TABLE


def test_make_cube__every_variable_says_what_it_is(cube):
    for array in cube.data_vars.values():
        assert array.attrs["long_name"]
        assert str(array.dtype) == "StringDType()" or array.attrs["units"] in ("1", "s")


def test_make_cube__flags_are_cf_flags(cube):
    assert cube.status.attrs["flag_values"] == [0, 1, 2, 3]
    assert cube.status.attrs["flag_meanings"] == "done pruned failed missing"


def test_make_cube__shows_candidates_in_c_order(bare_cube):
    assert bare_cube.full_train_errors.sel(C=10, kernel="linear") == 3
    assert bare_cube.message.sel(C=10, kernel="linear").item() == "it raised"


def test_make_cube__what_was_not_given_is_not_zero():
    cube = make_cube(grid_axes({"C": [1]}), fold_axes(3), {})
    assert np.isnan(cube.fold_errors).all()
    assert np.isnan(cube.fit_seconds).all()
    assert (cube.status == 3).all()
    assert cube.n_candidates == 1


def test_make_cube__attributes_are_plain(bare_cube):
    assert bare_cube.attrs["seeds"] == '{"folds": 3}'
    assert bare_cube.attrs["is_pruned"] == 1
    assert bare_cube.attrs["client"] == ""
    assert bare_cube.attrs["creation_library"] == "dsel"


def test_make_cube__halves_are_compared_per_repeat():
    cube = make_cube(grid_axes({"C": [1, 2]}), half_axes(4), {})
    assert cube.fold_errors.dims == ("C", "repeat", "half")
    assert cube.disagreements.dims == ("C", "repeat")
    check_cube(cube)


def test_make_cube__takes_estimators_and_lists():
    cube = make_cube(grid_axes([{"C": [1]}, {"gamma": [2.0]}]), fold_axes(3), {})
    assert cube.fold_errors.dims == ("candidate", "fold")
    assert cube.C.dims == ("candidate",)
    check_cube(cube)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"fold_error": 1}, ValueError, r"names that no cube has: \['fold_error'\]"),
        ({"fold_errors": np.zeros((2, 3))}, TypeError, "must hold integers, got float"),
        ({"fold_errors": np.zeros((3, 2), int)}, ValueError, "must have 6 elements"),
        ({"fold_rows": [1, 2]}, ValueError, r"must have 3 elements for {'fold': 3}"),
    ],
)
def test_make_cube__refuses_what_does_not_fit(values, error, message):
    with pytest.raises(error, match=message):
        make_cube(grid_axes({"C": [1, 2]}), fold_axes(3), values)


def test_evidence__flattens_candidates(cube):
    found = evidence(cube)
    assert found["fold_errors"].shape == (6, 5)
    assert found["fold_rows"].shape == (5,)
    assert found["n_labeled"].shape == ()
    assert found["full_train_errors"].tolist() == [0, 1, 2, 3, 4, 5]
    assert "estimate" not in found


def test_evidence__survives_the_way_back(cube):
    found = evidence(cube)
    again = make_cube(grid_axes({"C": [1, 10, 100], "kernel": ["rbf", "linear"]}),
                      fold_axes(5), found)  # fmt: skip
    for name, values in evidence(again).items():
        np.testing.assert_array_equal(values, found[name])


def test_add_criterion__appends_and_replaces_in_place(cube, judgement):
    settings = {"delta_shares": np.zeros(6), "delta": 0.1, "label_share": 0.9}
    two = add_criterion(cube, "cv_error", judgement(start=10), **settings)
    three = add_criterion(two, "cv_bound", judgement(start=20), **settings)
    assert three.criterion.values.tolist() == ["cv_bound", "cv_error"]
    assert three.estimate.sel(criterion="cv_bound", C=1, kernel="rbf") == 20
    assert three.estimate.sel(criterion="cv_error", C=1, kernel="linear") == 11
    assert three.delta.values.tolist() == [0.1, 0.1]
    assert cube.delta.values.tolist() == [0.01]
    check_cube(three)


def test_with_assumptions__replaces_the_ledger(cube):
    assert [each.state for each in assumptions_of(cube)][:3] == [
        "declared",
        "checked",
        "declared",
    ]
    changed = with_assumptions(cube, [Assumption("A1", "violated", "shared rows")])
    assert assumptions_of(changed) == (Assumption("A1", "violated", "shared rows"),)


def test_check_cube__takes_a_cube(cube, bare_cube):
    check_cube(cube)
    check_cube(cube.isel(C=[0], kernel=0))
    check_cube(bare_cube)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.drop_vars("status"), "lacks status"),
        (lambda c: c.assign(fold_errors=c.fold_errors.astype(int)),
         "fold_errors of type int64, expected float64"),
        (lambda c: c.transpose("fold", ...), "transpose or select"),
    ],
)  # fmt: skip
def test_check_cube__names_what_is_wrong(cube, change, message):
    with pytest.raises(ValueError, match=message):
        check_cube(change(cube))


def test_check_cube__refuses_other_things():
    with pytest.raises(TypeError, match=r"`results` must be an xarray\.Dataset"):
        check_cube({"a": 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.assign(fold_errors=c.fold_errors + 100),
         "more fold_errors than fold_rows"),
        (lambda c: c.assign(fold_rows=c.fold_rows - 23),
         "fold_rows = -3; a count is a whole number, never negative"),
        (lambda c: c.assign(fold_errors=c.fold_errors / 3 + 0.1),
         r"fold_errors = .*\.\d.*; a count is a whole number"),
        (lambda c: c.assign(fold_errors=c.fold_errors * np.inf),
         "fold_errors = inf; a count is a whole number"),
    ],
)  # fmt: skip
def test_evidence__refuses_what_is_no_count(cube, change, message):
    changed = change(cube.assign(fold_errors=cube.fold_errors + 1))
    with pytest.raises(ValueError, match=message):
        evidence(changed)


def test_evidence__is_whole_numbers_and_minus_one(cube):
    found = evidence(cube)
    assert found["fold_errors"].dtype == np.int64
    assert np.isnan(cube.disagreements).all()
    assert (found["disagreements"] == names.UNCOUNTED).all()


def test_evidence__takes_one_candidate(cube):
    assert evidence(cube.sel(C=10, kernel="rbf"))["fold_errors"].shape == (1, 5)


def test_make_cube__what_was_not_counted_cannot_be_taken_for_a_count():
    """Neither the smallest, nor a mean, nor a sum of candidates that were pruned."""
    errors = np.array([[-1, -1], [2, 3], [-1, 1]])
    cube = make_cube(grid_axes({"C": [1, 2, 3]}), fold_axes(2), {"fold_errors": errors})
    assert cube.fold_errors.sum("fold", skipna=False).argmin("C") == 1
    means = cube.fold_errors.mean("fold", skipna=False)
    np.testing.assert_array_equal(means, [np.nan, 2.5, np.nan])


def test_make_cube__has_no_dimension_but_the_grid_s_folds_and_criteria(cube):
    assert set(cube.dims) == {"C", "kernel", "fold", "criterion"}
