"""LeastSquaresSearch: the cube, its estimates and the choice."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
import xarray as xr

from dsel.errors import AllFitsFailedError, FitFailedWarning, StoreMismatchError
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    select_least_squares,
)
from dsel.results import open_results
from dsel.results.cube import read_counts
from tests.executors import Killed, faulty_threads

WIDTHS = [0.3, 1.0]
LAMS = [1e-3, 1e-1, 1.0]


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (33, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(33)


def search(**options):
    options = {"random_state": 0, "cv": 5, "n_jobs": 1, "widths": WIDTHS} | options
    return LeastSquaresSearch(regularizations=LAMS, **options)


def searched(table, **options):
    return search(**options).fit(*table)


def test_fit__makes_the_cube(table):
    search = searched(table)
    cube = search.results_
    read_counts(cube)
    assert list(cube.sizes.values()) == [2, 3, 5, 4]
    assert cube["fold_loss_sum"].dims == ("width", "regularization", "fold")
    assert cube["fold_loss_sum"].dtype == np.float64
    assert cube["criterion"].values.tolist() == ["loo", "gcv", "holdout", "kfold"]
    assert int(cube["fold_rows"].sum()) == int(cube["n_labeled"]) == 33
    assert "fold_errors" not in cube


def test_fit__chooses_and_refits(table):
    X, y = table
    search = searched(table)
    estimate = search.results_["estimate"].sel(criterion="loo")
    assert estimate.sel(search.best_params_) == estimate.min()
    assert search.choice_.estimate == float(estimate.min())
    model = KernelLeastSquares(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), model.predict(X))
    assert search.score(X, y) > 0.8


def test_fit__constant_targets_with_an_intercept_tie_at_zero(table):
    X, _ = table
    search = searched((X, np.full(len(X), 3.3)), fit_intercept=True)
    assert search.choice_.estimate == 0.0
    assert search.best_params_ == {"width": 1.0, "regularization": 1.0}
    np.testing.assert_allclose(search.predict(X), 3.3)


def test_fit__without_folds_holds_out_every_row_in_turn(table):
    cube = searched(table, cv=None).results_
    assert cube["criterion"].values.tolist() == ["loo", "gcv"]
    assert cube["fold_rows"].values.tolist() == [33]
    assert cube["train_rows"].values.tolist() == [32]
    losses = cube["fold_loss_sum"].isel(fold=0)
    np.testing.assert_array_equal(losses, cube["loo_loss_sum"])


def test_fit__holdout_tests_the_first_fold_only(table):
    cubes = [searched(table, criterion=c).results_ for c in ("holdout", "kfold")]
    assert cubes[0].sizes["fold"] == 1
    estimates = [cube.estimate.sel(criterion="holdout") for cube in cubes]
    np.testing.assert_array_equal(*estimates)


def test_fit__extra_sample_is_the_error_on_fresh_rows(table, rng, penalty):
    fresh = rng.uniform(-2, 2, (20, 1))
    targets = np.sin(2 * fresh[:, 0])
    made = search(penalty=penalty, criterion="extra_sample", cv=None)
    made.fit(*table, fresh, targets)
    for width in WIDTHS:
        model = KernelLeastSquares(width, 0.1, penalty=penalty).fit(*table)
        expected = np.mean((model.predict(fresh) - targets) ** 2)
        found = made.results_["extra_loss_mean"].sel(width=width, regularization=0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert made.choice_.criterion == "extra_sample"


TIES = [
    ([1.0, 1.0, 1.0, 1.0], 3),
    ([1.0, 2.0, 1.0, 2.0], 2),
    ([1.0, 1.0, 1.0, 2.0], 1),
    ([0.5, 1.0, 1.0, 1.0], 0),
    ([np.inf, np.nan, 7.0, np.inf], 2),
    ([1.0, 1.0 + 1e-15, 2.0, 2.0], 1),
    ([np.inf, np.nan, np.inf, np.inf], None),
]


@pytest.mark.parametrize(("estimates", "chosen"), TIES)
def test_select_least_squares__ties_go_to_the_smoothest_model(estimates, chosen):
    search = LeastSquaresSearch([0.5, 2.0], [0.1, 1.0], cv=None)
    cube = search.fit(np.arange(9.0)[:, np.newaxis], np.arange(9.0)).results_
    cube["estimate"].loc[{"criterion": "loo"}] = np.reshape(estimates, (2, 2))
    if chosen is not None:
        for same in (cube, cube.transpose(..., "regularization", "width")):
            assert select_least_squares(same, "loo").candidate == chosen
        return
    with pytest.raises(AllFitsFailedError, match="no candidate has a finite estimate"):
        select_least_squares(cube, "loo")
    with pytest.raises(ValueError, match="`criterion` must be one of 'loo', 'gcv'"):
        select_least_squares(cube, "extra_sample")


def test_select_least_squares__by_one_fold_reads_its_rows_alone(rng):
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    search = LeastSquaresSearch([0.3, 1.0], [1e-3, 0.1], cv=5, random_state=0)
    cube = search.fit(X, y).results_
    for fold in range(5):
        losses = (cube.fold_loss_sum / cube.fold_rows).isel(fold=fold)
        best = losses.isel(losses.argmin(("width", "regularization")))
        choice = select_least_squares(cube, fold=fold)
        assert choice.estimate == pytest.approx(float(best))
        assert choice.params == {
            "width": float(best.width), "regularization": float(best.regularization)
        }  # fmt: skip
    means = [select_least_squares(cube, fold=j).estimate for j in range(5)]
    assert len(set(means)) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fold": 9}, r"`fold` must be in \[0, 4\]"),
        ({"fold": 0, "criterion": "loo"}, "leave one of them out"),
    ],
)
def test_select_least_squares__refuses_folds_that_are_none(options, words, rng):
    X = rng.uniform(-3, 3, (20, 1))
    search = LeastSquaresSearch([1.0], [0.1], cv=5).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=words):
        select_least_squares(search.results_, **options)
    alone = LeastSquaresSearch([1.0], [0.1], cv=None).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="which has none"):
        select_least_squares(alone.results_, fold=0)


def test_fit__regularizations_that_cannot_be_used_are_recorded(table):
    X, y = table
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    search = LeastSquaresSearch([5.0], [0.0, 1e-16, 0.1], penalty="rkhs", cv=4)
    with pytest.warns(FitFailedWarning, match="2 of 3 candidates cannot be chosen"):
        search.fit(*twice)
    cube = search.results_
    assert cube["status"].values.tolist() == [[2, 2, 0]]
    assert "singular" in str(cube["message"].values[0, 0])
    assert "below the rounding" in str(cube["message"].values[0, 1])
    assert np.isinf(cube["estimate"].sel(criterion="loo").values[0, :2]).all()
    assert search.best_params_["regularization"] == 0.1


def test_fit__takes_sparse_rows(table):
    X, y = table
    sparse = searched((scipy.sparse.csr_array(X), y))
    found, expected = sparse.results_, searched(table).results_
    np.testing.assert_allclose(found.loo_loss_sum, expected.loo_loss_sum, rtol=1e-9)


def test_run__all_widths_failing_is_an_error(table):
    def fails(task):
        raise np.linalg.LinAlgError("no convergence")

    plan = LeastSquaresSearch(WIDTHS, LAMS).plan(*table)
    with pytest.raises(
        AllFitsFailedError, match=r"all 2 widths failed; .*no convergence"
    ):
        plan.run(faulty_threads(fails))


def test_tasks__are_named_by_their_width(table):
    keys = []
    plan = LeastSquaresSearch(WIDTHS, LAMS).plan(*table)
    plan.run(faulty_threads(lambda task: keys.append(task.key)))
    assert keys == [f"fit-width={width}" for width in WIDTHS]


def test_plan__says_what_it_will_do(table):
    plan = LeastSquaresSearch(WIDTHS, LAMS, random_state=0).plan(*table)
    text = repr(plan)
    assert "2 widths x 3 regularizations = 6 candidates" in text
    assert "  33 rows, 1 column, 1 output\n" in text
    assert "2 tasks: one decomposition of 33 x 33 each" in text
    one = repr(LeastSquaresSearch(WIDTHS[:1], LAMS[:1]).plan(*table))
    assert "1 width x 1 regularization = 1 candidate, penalty" in one
    assert "1 task: one decomposition of" in one


@pytest.mark.cluster
def test_fit__a_cluster_gives_the_same_cube(table, processes):
    local = searched(table).results_
    with processes.as_current():
        remote = searched(table).results_
    xr.testing.assert_equal(remote, local)


def test_fit__values_given_twice_are_one(table):
    once, twice = searched(table), search(widths=[0.3, 1.0, 1, 0.3]).fit(*table)
    assert twice.results_.equals(once.results_)


@pytest.mark.parametrize("n_records", [0, 1, 2])
def test_fit__a_killed_run_goes_on_to_the_same_cube(
    table, tmp_path, records_left, n_records
):
    whole = searched(table).results_
    records_left(n_records)
    with pytest.raises(Killed) if n_records < len(WIDTHS) else nullcontext():
        search().fit(*table, out=tmp_path)
    records_left(len(WIDTHS) - n_records)
    resumed = search().fit(*table, out=tmp_path)
    xr.testing.assert_equal(resumed.results_, whole)
    stored = open_results(tmp_path).load()
    assert select_least_squares(stored) == resumed.choice_


def test_fit__more_widths_cost_only_themselves(table, tmp_path, records_left):
    whole = searched(table).results_
    search(widths=WIDTHS[:1]).fit(*table, out=tmp_path)
    records_left(1)
    grown = search().fit(*table, out=tmp_path).results_
    xr.testing.assert_equal(grown, whole)


OTHERS = {
    "penalty": {"penalty": "rkhs"},
    "other folds": {"cv": 4},
    "fit_intercept": {"fit_intercept": True},
    "seed": {"random_state": 1},
    "targets": {},
}


@pytest.mark.parametrize("difference", OTHERS)
def test_fit__refuses_the_store_of_another(table, tmp_path, difference):
    X, y = table
    search().fit(X, y, out=tmp_path)
    with pytest.raises(StoreMismatchError, match=difference):
        search(**OTHERS[difference]).fit(
            X, 2.0 * y if difference == "targets" else y, out=tmp_path
        )


@pytest.mark.parametrize("cv", [4, None])
def test_fit__without_a_seed_names_that_of_the_store(table, tmp_path, cv):
    search(cv=cv, random_state=None).fit(*table, out=tmp_path)
    with pytest.raises(StoreMismatchError, match=r"pass random_state=\d+ ") as caught:
        search(cv=cv, random_state=None).fit(*table, out=tmp_path)
    seed = int(re.search(r"random_state=(\d+)", str(caught.value))[1])
    search(cv=cv, random_state=seed).fit(*table, out=tmp_path)
