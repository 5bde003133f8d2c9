"""A certified least squares search: as the main search, without refits."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.model_selection import KFold

import dsel
from dsel.bounds import fold_shares, tolerance_limit
from dsel.errors import FitFailedWarning, StoreMismatchError
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)
from dsel.losses import beyond, error_quantile
from dsel.results import open_results
from tests.executors import Killed

WIDTHS = [0.3, 1.0, 3.0]
LAMS = [1e-2, 1e-1, 1.0]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (1_400, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_t(3, 1_400)
    return X[:400], y[:400], X[400:], y[400:]


def search(widths=WIDTHS, regularizations=LAMS, **options):
    options = {
        "penalty": "rkhs", "certificate": "nested", "random_state": 0, "n_jobs": 1
    } | options  # fmt: skip
    return LeastSquaresSearch(widths, regularizations, **options)


@pytest.fixture(scope="module")
def found(table):
    return search().fit(*table[:2])


def plain(choice):
    """The text of a choice in the words of all searches: this one has own advice."""
    return str(replace(choice, renamings={}))


def searched_by_refits(table, pool=None, cv=5, fit_intercept=False, **options):
    """The main search over the same candidates in the same order."""
    model = KernelLeastSquares(penalty="rkhs", fit_intercept=fit_intercept)
    grid = [
        {"width": [width], "regularization": [lam]} for width in WIDTHS for lam in LAMS
    ]
    made = dsel.SemiSupervisedSearchCV(
        model, grid, cv=cv, prune=False, random_state=0, n_jobs=1, **options
    )
    return made.fit(*table[:2], pool=pool)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": True, "cv": 3},
        {"cv": 2, "loss": error_quantile(0.5)},
        {"cv": KFold(7, shuffle=True), "loss": beyond(0.8)},
        {"delta": 0.2, "report": True},
    ],
    ids=str,
)
def test_fit__equals_the_main_search(table, options):
    closed, refits = search(**options), searched_by_refits(table, **options)
    closed.fit(*table[:2])
    assert plain(closed.choice_) == str(refits.choice_)
    assert closed.certificate_.bound == refits.certificate_.bound
    assert closed.best_params_ == refits.best_params_
    chosen = [
        made.results_["outer_candidate"].values.tolist() for made in (closed, refits)
    ]
    assert chosen[0] == chosen[1]
    pairs = [
        made.pair_results_["fold_loss_mean"].values.ravel() for made in (closed, refits)
    ]
    np.testing.assert_allclose(*pairs, rtol=1e-10)


def test_fit__with_a_pool_bounds_the_model_of_all_rows_as_the_main_search(table):
    pool = table[2]
    closed = search(deploy="all_rows").fit(*table[:2], pool=pool)
    refits = searched_by_refits(table, pool, deploy="all_rows")
    assert plain(closed.choice_) == str(refits.choice_)
    bounds = {name: each.bound for name, each in closed.certificates_.items()}
    assert bounds == {name: each.bound for name, each in refits.certificates_.items()}
    assert bounds["one_fold"] < bounds["all_rows"] < np.inf
    np.testing.assert_array_equal(closed.predict(pool), refits.predict(pool))
    np.testing.assert_array_equal(
        closed.predict_interval(pool), refits.predict_interval(pool)
    )


def test_fit__says_how_far_off_predictions_can_be(found):
    lines = str(found.choice_).splitlines()
    assert lines[1].startswith("Chosen    regularization=")
    assert re.fullmatch(
        r"90% of predictions are off by at most 0\.\d+ \(95% confidence\), model "
        r"trained on 80% of the labels", lines[0],
    )  # fmt: skip
    assert found.certificate_.certified
    assert found.best_params_ == dict(found.choice_.params)


def test_tolerance__is_that_of_the_residuals_of_the_fold_of_its_model(table, found):
    X, y = table[:2]
    cube, fold = found.results_, found.certificate_.fold
    rows = found.plan(X, y).folds[fold].test_rows
    residuals = np.abs(y - found.predict(X))[rows]
    np.testing.assert_array_equal(
        np.sort(residuals), cube["outer_residuals"].sel(fold=fold)
    )
    delta = 0.05 * fold_shares(5)[fold]
    limit = tolerance_limit(residuals, level=0.1, delta=delta)
    assert found.certificate_.bound == limit


def test_results__have_estimates_and_what_was_counted(table, found):
    cube = found.results_
    assert cube["criterion"].values.tolist() == [
        "mean_squared_error", "loo", "gcv", "holdout", "kfold",
    ]  # fmt: skip
    assert cube["fold_loss_mean"].dims == ("width", "regularization", "fold")
    assert cube["outer_candidate"].dims == ("fold",)
    plain = LeastSquaresSearch(WIDTHS, LAMS, penalty="rkhs", cv=5, random_state=0)
    estimates = plain.fit(*table[:2]).results_["estimate"]
    np.testing.assert_allclose(
        cube["estimate"].sel(criterion=estimates["criterion"]), estimates, rtol=1e-12
    )


def test_results__answer_with_the_certified_choice(found):
    cube = found.results_
    assert str(dsel.select(cube)) == str(cube.dsel.select()) == plain(found.choice_)
    assert cube.dsel.certificates["one_fold"].bound == found.certificate_.bound
    assert cube.dsel.select("loo").criterion == "loo"
    changed = cube.assign(fold_loss_mean=cube["fold_loss_mean"] / 2)
    assert not dsel.select(changed).certificate.certified


def test_predict_interval__is_the_prediction_and_its_tolerance(table, found):
    fresh, targets = table[2:]
    low, high = found.predict_interval(fresh).T
    tolerance = found.certificate_.bound
    np.testing.assert_allclose(high - low, 2 * tolerance)
    np.testing.assert_allclose((low + high) / 2, found.predict(fresh), atol=1e-12)
    assert np.mean((targets < low) | (targets > high)) <= 0.1


def test_predict_interval__of_all_rows_needs_no_pool(table, found):
    fresh, targets = table[2:]
    low, high = found.predict_interval(fresh, deploy="all_rows").T
    models = {name: each.predict(fresh) for name, each in found.models_.items()}
    apart = np.abs(models["all_rows"] - models["one_fold"])
    np.testing.assert_allclose((low + high) / 2, models["all_rows"], atol=1e-12)
    np.testing.assert_allclose((high - low) / 2, found.certificate_.bound + apart)
    assert np.mean((targets < low) | (targets > high)) <= 0.1


def test_predict_interval__of_estimates_is_refused(table):
    plain = LeastSquaresSearch([1.0], [0.1], cv=None).fit(*table[:2])
    with pytest.raises(ValueError, match=r"estimates only, .* certificate='nested'"):
        plain.predict_interval(table[2])


@pytest.mark.parametrize("fold", [0, 3])
def test_choice_without_a_fold__reads_nothing_of_its_rows(table, found, fold):
    X, y = (each.copy() for each in table[:2])
    rows = found.plan(X, y).folds[fold].test_rows
    X[rows], y[rows] = 1.5 * X[rows[::-1]], 100.0 - y[rows]
    other = search().fit(X, y)

    def seen(made):
        """What the search without the fold reads: its pairs, on the other folds."""
        pairs = made.pair_results_
        is_read = (pairs["fold"] != fold) & (pairs["fold"] == fold).any("side")
        return pairs["fold_loss_mean"].where(is_read)

    np.testing.assert_allclose(seen(other), seen(found), rtol=1e-9)
    chosen = [
        made.results_["outer_candidate"].sel(fold=fold) for made in (found, other)
    ]
    assert chosen[0] == chosen[1]
    assert not np.allclose(
        *(made.pair_results_["fold_loss_mean"] for made in (found, other))
    )


@pytest.mark.parametrize("width", [1e-3, 1e3], ids=["K is I", "K has rank 1"])
def test_regularizations__are_left_out_whatever_the_rows_are(table, width):
    # n^2 eps is 3.6e-11: by the matrix itself the first would do where K is I.
    made = search([width], [2e-11, 4e-11, 1.0])
    with pytest.warns(FitFailedWarning, match="lambda is not above 3.6e-11"):
        made.fit(*table[:2])
    assert made.results_["status"].values.tolist() == [[2, 0, 0]]


def test_regularizations__that_are_left_out_are_told_of_once(table):
    with pytest.warns(FitFailedWarning) as told:
        search([1.0], [0.0, 1.0]).fit(*table[:2])
    assert len(told) == 1


def test_certified_report__has_several_fractions(table):
    made = search(report=[0.5, 0.9], cv=3).fit(*table[:2])
    limits = made.certified_report().to_dataframe()["off_by_at_most"]
    assert limits[0.5] < limits[0.9] == made.certificate_.bound


def test_fit__of_one_candidate_certifies_it(table):
    made = search([1.0], [0.1]).fit(*table[:2])
    assert made.best_params_ == {"width": 1.0, "regularization": 0.1}
    assert 0 < made.certificate_.bound < np.inf


def test_fit__takes_sparse_rows_and_a_column_of_targets(table, found):
    X, y = table[:2]
    sparse = search().fit(scipy.sparse.csr_matrix(X), y)
    assert sparse.certificate_.bound == pytest.approx(found.certificate_.bound)


def test_fit__too_few_rows_are_told_before_and_after(table):
    X, y = (each[:40] for each in table[:2])
    assert "too few for a bound of how far" in repr(search().plan(X, y))
    made = search().fit(X, y)
    assert made.certificate_.bound == np.inf
    assert np.isinf(made.predict_interval(X)).all()


def test_plan__says_what_is_certified(table):
    text = repr(search().plan(*table[:2]))
    assert "certificate nested at delta=0.05, of error_quantile(0.9)" in text
    assert "an estimate" not in text


@pytest.mark.parametrize("n_records", [0, 2, 3])
def test_fit__a_killed_run_goes_on_to_the_same_certificate(
    table, found, tmp_path, records_left, n_records
):
    records_left(n_records)
    if n_records < len(WIDTHS):
        with pytest.raises(Killed):
            search().fit(*table[:2], out=tmp_path)
        records_left(len(WIDTHS) - n_records)
    resumed = search().fit(*table[:2], out=tmp_path)
    assert str(resumed.choice_) == str(found.choice_)
    assert str(open_results(tmp_path).load().dsel.select()) == plain(found.choice_)


OTHERS = {
    "certificate": {"certificate": None, "cv": 5},
    "loss": {"loss": beyond(1.0)},
    "delta": {"delta": 0.1},
    "report": {"report": True},
}


@pytest.mark.parametrize("difference", OTHERS)
def test_fit__refuses_the_store_of_another(table, tmp_path, difference):
    search().fit(*table[:2], out=tmp_path)
    with pytest.raises(StoreMismatchError):
        search(**OTHERS[difference]).fit(*table[:2], out=tmp_path)


def test_fit__no_width_may_be_left_out(table, monkeypatch):
    # Rows of a fold would decide which candidates are there for the others.
    def fails(gram):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    with pytest.raises(RuntimeError, match="certified search leaves out none"):
        search().fit(*table[:2])


@pytest.mark.cluster
def test_fit__a_cluster_gives_the_same_certificate(table, found, processes):
    with processes.as_current():
        remote = search().fit(*table[:2])
    assert str(remote.choice_) == str(found.choice_)
    assert remote.certificate_.bound == found.certificate_.bound


def test_streamed__has_estimates_and_says_so():
    with pytest.raises(TypeError, match="'certificate': it has estimates"):
        StreamedLeastSquaresSearch([1.0], [0.1], certificate="nested")


def test_fit__counts_a_residual_of_the_tolerance_as_the_main_search_does():
    # Rows are so far apart that a model predicts 0 for each row it has not seen.
    y = np.resize([0.0, 2.0, -2.0, 2.5, -3.0], 100)
    table = 1e3 * np.arange(100.0)[:, np.newaxis], y
    closed = search(loss=beyond(2.0)).fit(*table)
    refits = searched_by_refits(table, loss=beyond(2.0))
    for made in (closed, refits):
        assert made.certificate_.estimate == 0.4
        counts = made.results_["outer_exceedances"].sel(exceeded="tolerance")
        assert int(counts.sum()) == 40
