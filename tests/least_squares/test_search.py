"""LeastSquaresSearch: the cube, its estimates and the choice."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, LeaveOneOut, TimeSeriesSplit, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel import names
from dsel.errors import AllFitsFailedError, FitFailedWarning
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    select_least_squares,
)
from dsel.least_squares import search as least_squares_search
from dsel.results import open_results, save_results
from dsel.results.cube import check_cube

WIDTHS = [0.3, 1.0]
LAMS = [1e-3, 1e-1, 1.0]
both_penalties = pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks(
    [
        LeastSquaresSearch([1.0, 3.0], [0.01, 0.1], cv=None, n_jobs=1),
        LeastSquaresSearch(
            [1.0], [0.1], penalty="rkhs", fit_intercept=True, cv=2, random_state=0
        ),
    ]
)
def test_search__passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (33, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(33)


def searched(table, **options):
    options = {"random_state": 0, "cv": 5, "n_jobs": 2} | options
    return LeastSquaresSearch(WIDTHS, LAMS, **options).fit(*table)


def mean_squares(model, X, y, cv):
    scores = cross_val_score(model, X, y, cv=cv, scoring="neg_mean_squared_error")
    return -scores.mean()


def test_fit__makes_the_cube(table):
    search = searched(table)
    cube = search.results_
    check_cube(cube)
    assert dict(cube.sizes) == {
        "width": 2,
        "regularization": 3,
        "fold": 5,
        "criterion": 4,
    }
    assert cube["fold_losses"].dims == ("width", "regularization", "fold")
    assert cube["fold_losses"].dtype == np.float64
    assert cube["criterion"].values.tolist() == ["loo", "gcv", "holdout", "kfold"]
    assert int(cube["fold_rows"].sum()) == int(cube["n_labeled"]) == 33
    assert "fold_errors" not in cube


def test_fit__estimates_equal_those_of_scikit_learn(table):
    X, y = table
    cube = searched(table, penalty="rkhs", cv=KFold(4)).results_["estimate"]
    for width in WIDTHS:
        for lam in LAMS:
            ridge = KernelLeastSquares(width, lam, penalty="rkhs").to_kernel_ridge()
            cell = cube.sel(width=width, regularization=lam)
            loo = mean_squares(ridge, X, y, LeaveOneOut())
            np.testing.assert_allclose(cell.sel(criterion="loo"), loo, rtol=1e-8)
            kfold = mean_squares(ridge, X, y, KFold(4))
            np.testing.assert_allclose(cell.sel(criterion="kfold"), kfold, rtol=1e-8)


def test_fit__splitters_need_not_partition_the_rows(table):
    X, y = table
    cv = TimeSeriesSplit(3)
    cube = searched(table, penalty="rkhs", criterion="kfold", cv=cv).results_
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5)
    np.testing.assert_allclose(
        cube["estimate"].sel(width=1.0, regularization=0.1, criterion="kfold"),
        mean_squares(ridge, X, y, cv),
        rtol=1e-8,
    )


def test_fit__decomposes_once_a_width(table, monkeypatch):
    calls = []
    original = least_squares_search.decompose_gram

    def counted(gram, **options):
        calls.append(len(gram))
        return original(gram, **options)

    monkeypatch.setattr(least_squares_search, "decompose_gram", counted)
    searched(table, criterion="kfold")
    assert calls == [33, 33]


def test_fit__chooses_and_refits(table):
    X, y = table
    search = searched(table)
    estimate = search.results_["estimate"].sel(criterion="loo")
    place = np.unravel_index(int(estimate.argmin(...)["width"]), (2,))[0]
    assert search.best_params_["width"] == WIDTHS[place]
    assert search.choice_.estimate == float(estimate.min())
    model = KernelLeastSquares(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), model.predict(X))
    assert search.score(X, y) > 0.8


def test_fit__ties_go_to_the_smoothest_model(rng):
    # Rows so far apart that the kernel matrix is I: every model predicts 0.
    X = 1e6 * np.arange(12.0)[:, np.newaxis]
    search = LeastSquaresSearch([0.5, 2.0, 1.0], [0.5, 4.0, 2.0], cv=None)
    search.fit(X, rng.standard_normal(12))
    assert search.best_params_ == {"width": 2.0, "regularization": 4.0}


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
    np.testing.assert_array_equal(cube["fold_losses"].isel(fold=0), cube["loo_losses"])


def test_fit__holdout_tests_the_first_fold_only(table):
    one = searched(table, criterion="holdout").results_
    all_folds = searched(table, criterion="kfold").results_
    assert one.sizes["fold"] == 1
    np.testing.assert_array_equal(
        one["estimate"].sel(criterion="holdout"),
        all_folds["estimate"].sel(criterion="holdout"),
    )


@both_penalties
def test_fit__extra_sample_is_the_error_on_fresh_rows(table, rng, penalty):
    fresh = rng.uniform(-2, 2, (20, 1))
    targets = np.sin(2 * fresh[:, 0])
    search = LeastSquaresSearch(
        WIDTHS, LAMS, penalty=penalty, criterion="extra_sample", cv=None
    )
    search.fit(*table, fresh, targets)
    for width in WIDTHS:
        model = KernelLeastSquares(width, 0.1, penalty=penalty).fit(*table)
        expected = np.mean((model.predict(fresh) - targets) ** 2)
        found = search.results_["extra_loss"].sel(width=width, regularization=0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert search.choice_.criterion == "extra_sample"


def test_select_least_squares__answers_for_every_estimate(table):
    cube = searched(table).results_
    for criterion in cube["criterion"].values:
        choice = select_least_squares(cube, str(criterion))
        best = float(cube["estimate"].sel(criterion=criterion).min())
        assert choice.estimate == best
    with pytest.raises(ValueError, match="`criterion` must be one of 'loo', 'gcv'"):
        select_least_squares(cube, "extra_sample")


def with_estimates(values):
    """A cube over two widths and two regularizations with given leave-one-out."""
    cube = LeastSquaresSearch([0.5, 2.0], [0.1, 1.0], cv=None)
    cube = cube.fit(np.arange(9.0)[:, np.newaxis], np.arange(9.0)).results_
    estimate = cube["estimate"].copy()
    estimate.loc[{"criterion": "loo"}] = np.reshape(values, (2, 2))
    return cube.assign(estimate=estimate)


@pytest.mark.parametrize(
    ("estimates", "chosen"),
    [
        ([1.0, 1.0, 1.0, 1.0], 3),
        ([1.0, 2.0, 1.0, 2.0], 2),
        ([1.0, 1.0, 1.0, 2.0], 1),
        ([0.5, 1.0, 1.0, 1.0], 0),
        ([np.inf, np.nan, 7.0, np.inf], 2),
        ([1.0, 1.0 + 1e-15, 2.0, 2.0], 1),
    ],
)
def test_select_least_squares__ties_go_to_the_smoothest_model(estimates, chosen):
    assert select_least_squares(with_estimates(estimates), "loo").candidate == chosen


def test_select_least_squares__needs_one_finite_estimate():
    with pytest.raises(AllFitsFailedError, match="no candidate has a finite estimate"):
        select_least_squares(with_estimates([np.inf, np.nan, np.inf, np.inf]))


def test_select_least_squares__holds_out_the_fold_that_is_asked_for(table):
    cube = searched(table).results_
    means = cube.fold_losses / cube.fold_rows
    for fold in range(5):
        choice = select_least_squares(cube, "holdout", fold=fold)
        assert choice.estimate == float(means.isel(fold=fold).min())
    with pytest.raises(ValueError, match="`fold` is for criterion='holdout'"):
        select_least_squares(cube, "loo", fold=1)
    with pytest.raises(ValueError, match=r"`fold` must be in \[0, 4\], got 5"):
        select_least_squares(cube, "holdout", fold=5)


def test_results__survive_a_round_trip(table, tmp_path):
    cube = searched(table).results_
    save_results(cube, tmp_path / "cube.zarr")
    opened = open_results(tmp_path / "cube.zarr")
    assert select_least_squares(opened) == select_least_squares(cube)


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


def test_fit__tiny_regularizations_stay_finite(table):
    search = LeastSquaresSearch([0.05, 1.0, 20.0], [1e-12, 1e-8], cv=5).fit(*table)
    assert np.isfinite(search.results_["estimate"]).all()


def test_fit__takes_sparse_rows(table):
    X, y = table
    sparse = searched((scipy.sparse.csr_array(X), y))
    np.testing.assert_allclose(
        sparse.results_["loo_losses"], searched(table).results_["loo_losses"], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": [1.0, 0.0]}, "`widths` must be positive and finite, got 0.0"),
        ({"widths": []}, "`widths` must be a list of at least one number"),
        ({"regularizations": [-1.0]}, "`regularizations` must be >= 0 and finite"),
        ({"regularizations": [[1.0, 2.0]]}, "`regularizations` must be a list"),
        ({"penalty": "l1"}, "`penalty` must be one of"),
        ({"criterion": "cv_bound"}, "`criterion` must be one of 'loo', 'gcv'"),
        ({"criterion": "extra_sample"}, "pass them to `fit` as `X_extra`"),
        ({"criterion": "kfold", "cv": None}, "`cv` must be a number of folds"),
        ({"cv": 34}, r"`cv` must be in \[2, 33\], got 34"),
    ],
)
def test_fit__refuses_what_cannot_be_searched(table, options, message):
    search = LeastSquaresSearch(
        **({"widths": WIDTHS, "regularizations": LAMS} | options)
    )
    with pytest.raises(ValueError, match=message):
        search.fit(*table)


@pytest.mark.parametrize("value", ["a", None, True])
def test_fit__refuses_grids_of_other_things_than_numbers(table, value):
    with pytest.raises(TypeError, match="`regularizations` must be a number >= 0"):
        LeastSquaresSearch(WIDTHS, [1.0, value]).fit(*table)
    with pytest.raises(TypeError, match="`widths` must be a positive number"):
        LeastSquaresSearch([value], LAMS).fit(*table)


def test_fit__refuses_extra_targets_of_another_shape(table):
    X, y = table
    with pytest.raises(ValueError, match=r"`y_extra` must have the shape \(33,\)"):
        LeastSquaresSearch(WIDTHS, LAMS).fit(X, y, X, y[:-1])
    with pytest.raises(ValueError, match="`X_extra` and `y_extra` belong together"):
        LeastSquaresSearch(WIDTHS, LAMS).fit(X, y, X)


def test_fit__refuses_more_rows_than_memory_holds(table, monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    with pytest.raises(ValueError, match=r"33 rows.*n_centers"):
        LeastSquaresSearch(WIDTHS, LAMS).fit(*table)


def test_fit__all_widths_failing_is_an_error(table, monkeypatch):
    def broken(gram, **options):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(least_squares_search, "decompose_gram", broken)
    with pytest.raises(
        AllFitsFailedError, match=r"all 2 widths failed; .*no convergence"
    ):
        LeastSquaresSearch(WIDTHS, LAMS).fit(*table)


def test_plan__says_what_it_will_do(table):
    plan = LeastSquaresSearch(WIDTHS, LAMS, random_state=0).plan(*table)
    text = repr(plan)
    assert "2 widths x 3 regularizations = 6 candidates" in text
    assert "2 tasks: one decomposition of 33 x 33 each" in text


def test_search__is_cloneable():
    search = LeastSquaresSearch(WIDTHS, LAMS, criterion="gcv")
    assert clone(search).get_params() == search.get_params()


@pytest.mark.cluster
def test_fit__a_cluster_gives_the_same_cube(table):
    from distributed import Client

    local = searched(table).results_
    with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=2):
        remote = searched(table).results_
    for name in (names.FOLD_LOSSES, names.LOO_LOSSES, names.ESTIMATE):
        np.testing.assert_array_equal(local[name], remote[name])


def test_fit__values_given_twice_are_one(table):
    X, y = table
    once, twice = (
        LeastSquaresSearch(widths, lams, cv=None).fit(X, y).results_
        for widths, lams in (([1.0, 2.0], [0.1]), ([1.0, 2, 1, 2.0], [0.1, 0.1]))
    )
    assert twice.drop_vars(names.FULL_FIT_SECONDS).equals(
        once.drop_vars(names.FULL_FIT_SECONDS)
    )
