"""Regressors: how far off predictions can be, from `fit` to an interval of each row."""

import json
import re
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier, is_regressor
from sklearn.datasets import make_friedman1
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dsel
from dsel.bounds import fold_shares, tolerance_limit
from dsel.report import write_report

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

FEATURES, TARGETS = make_friedman1(2_400, noise=1.0, random_state=0)
X, Y, POOL, TRUE = FEATURES[:400], TARGETS[:400], FEATURES[400:], TARGETS[400:]
GRID = {"alpha": [0.1, 1.0, 100.0]}


def search(learner=None, grid=GRID, X=X, y=Y, pool=None, fit=None, **options):
    learner = Ridge() if learner is None else learner
    made = dsel.SemiSupervisedSearchCV(learner, grid, **{"random_state": 0} | options)
    return made.fit(X, y, pool=pool, **(fit or {}))


@pytest.fixture(scope="module")
def found():
    return search(pool=POOL)


class NoNumber(RegressorMixin, BaseEstimator):
    """Predicts no finite number where a feature is small."""

    def __init__(self, below=0.02, number=np.nan):
        self.below = below
        self.number = number

    def fit(self, X, y):
        self.model_ = Ridge().fit(X, y)
        return self

    def predict(self, X):
        return np.where(X[:, 0] < self.below, self.number, self.model_.predict(X))


class Constant(RegressorMixin, BaseEstimator):
    """Knows by heart what it saw, and else answers with the mean."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        rows = map(bytes, np.ascontiguousarray(X))
        self.known_ = dict(zip(rows, y, strict=True))
        self.mean_ = np.mean(y) + self.shift
        return self

    def predict(self, X):
        rows = map(bytes, np.ascontiguousarray(X))
        return np.array([self.known_.get(row, self.mean_) for row in rows])


def test_choice__says_how_far_off_predictions_can_be(found):
    lines = str(found.choice_).splitlines()
    assert re.fullmatch(r"Chosen +alpha=[\d.]+", lines[2])
    assert lines[3].startswith("Deployed  the first model (")
    number = r"90% of predictions are off by at most \d\.\d\d \(95% confidence"
    assert re.fullmatch(rf"{number}\), model trained on 80% of the labels", lines[0])
    jointly = " that both bounds hold"
    assert re.fullmatch(
        rf"{number}{jointly}\), model trained on all labels.*", lines[1]
    )
    fifth = (
        r"Compare   a 20% hold-out set would give a bound of about \d\.\d\d on "
        r"average.*"
    )
    estimate = r"Estimate  90% of predictions are off by about \d\.\d\d"
    assert re.fullmatch(rf"{estimate} \(cross-validated, no guarantee\)", lines[4])
    assert re.fullmatch(fifth, lines[5])
    assert found.certificate_.certified
    assert found.certificate_.loss == "error_quantile(0.9)"


def test_bound__is_the_smallest_order_statistic_of_the_folds(found):
    residuals = found.results_.outer_residuals.values
    shares = 0.95 * 0.05 * fold_shares(5)
    limits = [
        tolerance_limit(each, level=0.1, delta=share)
        for each, share in zip(residuals, shares, strict=True)
    ]
    assert found.certificate_.bound == min(limits)
    assert found.certificate_.fold == np.argmin(limits)
    fold = found.plan_.search.scheme.outer_splits[found.certificate_.fold].test_rows
    model = found.models_["one_fold"]
    own = np.sort(np.abs(Y[fold] - model.predict(X[fold])))
    np.testing.assert_array_equal(own, residuals[found.certificate_.fold])


def test_bounds__hold_for_both_models(found):
    for deploy, certificate in found.certificates_.items():
        off = np.abs(TRUE - found.models_[deploy].predict(POOL))
        assert (off > certificate.bound).mean() <= 0.1
        assert certificate.bound >= found.certificates_["one_fold"].bound


def test_predict_interval__is_the_prediction_and_its_tolerance(found):
    low, high = found.predict_interval(POOL).T
    np.testing.assert_allclose((low + high) / 2, found.predict(POOL))
    np.testing.assert_allclose((high - low) / 2, found.certificate_.bound)
    assert ((low <= TRUE) & (high >= TRUE)).mean() >= 0.9


def test_predict_interval__of_all_rows_follows_how_far_both_models_are_apart():
    made = search(KNeighborsRegressor(), {"n_neighbors": [3, 9]}, pool=POOL,
                  deploy="all_rows")  # fmt: skip
    low, high = made.predict_interval(POOL).T
    one, every = (made.models_[name].predict(POOL) for name in ("one_fold", "all_rows"))
    wanted = made.certificates_["one_fold"].bound + np.abs(one - every)
    np.testing.assert_allclose((high - low) / 2, wanted)
    assert ((high - low) / 2 >= wanted * (1 - 1e-12)).all()
    assert ((low <= TRUE) & (high >= TRUE)).mean() >= 0.9


def test_search__ranks_by_the_mean_squared_error(found):
    table = pd.DataFrame(found.cv_results_)
    assert table.rank_test_score.idxmin() == table.mean_squared_error.idxmin()
    assert dsel.select(found.results_).params == found.best_params_
    chosen = table.iloc[found.best_index_]
    variance = Y.var()
    assert chosen.mean_test_score == pytest.approx(
        1 - chosen.mean_squared_error / variance, abs=0.05
    )
    assert found.best_score_ == chosen.mean_test_score
    assert found.score(POOL, TRUE) == found.best_estimator_.score(POOL, TRUE)


def test_search__is_what_its_estimator_is():
    SEARCH = dsel.SemiSupervisedSearchCV
    assert is_regressor(SEARCH(Ridge(), GRID))
    assert not is_classifier(SEARCH(make_pipeline(StandardScaler(), Ridge()), GRID))
    assert is_classifier(SEARCH(LogisticRegression(), {"C": [1]}))
    assert is_regressor(SEARCH(None, [Ridge(), Lasso()]))
    assert not hasattr(search(), "classes_")


def test_search__of_several_learners_chooses_one():
    learners = [Ridge(), DecisionTreeRegressor(max_depth=1)]
    made = dsel.SemiSupervisedSearchCV(None, learners, random_state=0).fit(X, Y)
    assert isinstance(made.best_estimator_, Ridge)


@pytest.mark.parametrize("loss", [dsel.losses.beyond(5.0), dsel.losses.beyond(6)])
def test_beyond__bounds_the_share_that_is_off_by_more(loss):
    made = search(pool=POOL, loss=loss)
    assert "Share of bad predictions (off by more than" in str(made.choice_)
    for deploy, certificate in made.certificates_.items():
        off = np.abs(TRUE - made.models_[deploy].predict(POOL)) > loss.tolerance
        assert off.mean() <= certificate.bound <= 1
    assert made.certificates_["all_rows"].bound < 1


def test_report__has_four_tolerances_at_once_and_names_those_that_cannot_be_had():
    made = search(pool=POOL, report=True)
    for deploy in ("one_fold", "all_rows"):
        table = made.certified_report(deploy).to_dataframe()
        assert table.index.tolist() == [0.5, 0.8, 0.9, 0.95]
        off = np.abs(TRUE - made.models_[deploy].predict(POOL))
        for share, limit in table.off_by_at_most.items():
            assert (off > limit).mean() <= 1 - share
        assert (table.off_by_at_most > table.pooled_off_by).all()
        assert ("off_by" in table) == (deploy == "one_fold")
        assert table.off_by_at_most.is_monotonic_increasing
    assert made.choice_.bounded_models["one_fold"].tolerances.off_by_at_most[2] == (
        made.certificates_["one_fold"].bound
    )
    few = dsel.plan_search(Ridge(), GRID, X[:200], Y[:200], report=True, random_state=0)
    assert "too few for a bound of how far 95% of" in " ".join(str(few).split())
    assert "too few for a bound of how far 50% of" not in " ".join(str(few).split())
    own = search(report=[0.75]).certified_report().to_dataframe()
    assert own.index.tolist() == [0.75]


@pytest.mark.parametrize(
    ("n_rows", "is_infinite"), [(480, True), (520, None), (700, False)]
)
def test_report__names_the_rows_that_its_deployed_fold_may_need(n_rows, is_infinite):
    # The main loss chooses the fold, which may have less of delta than the first.
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n_rows, 3))
    targets = features @ [1.0, 2.0, 3.0] + rng.normal(size=n_rows)
    seen = set()
    for seed in (0, 1, 2):
        plan = dsel.plan_search(
            Ridge(), GRID, features, targets, report=True, random_state=seed
        )
        choice = plan.run().choice
        limit = choice.bounded_models["one_fold"].tolerances.off_by_at_most[-1]
        seen.add(np.isinf(limit))
        planned, printed = (" ".join(str(text).split()) for text in (plan, choice))
        needed = "needs 491 to 700 with 5 folds, 295 to 339 with 3, 197 to 198 with 2"
        for text, has_caveat in (
            (planned, n_rows < 700),
            (printed, np.isinf(limit)),
        ):
            assert ("how far 95% of the" in text) == has_caveat
            assert (needed in text) == has_caveat
        assert ("too few in some folds for" in planned) == (n_rows == 520)
    assert seen == ({True, False} if is_infinite is None else {is_infinite})


def test_report__has_the_tolerance_of_tables_where_the_declared_one_is_infinite(
    tmp_path,
):
    groups = np.arange(100) // 2
    made = dsel.certify(
        Ridge(), X[:100], Y[:100], groups=groups, report=True, random_state=0
    )
    limits = made.certified_report().to_dataframe().off_by_at_most
    assert np.isfinite(limits).tolist() == [True, False, False, False]
    assert np.isinf(made.predict_interval(POOL)).all()  # of the declared 90%
    predicted = made.predict_table(POOL, out=tmp_path / "p.csv")
    table = pd.read_csv(predicted.path)
    width = table.upper - table.lower
    np.testing.assert_allclose(width, 2 * limits[0.5], rtol=1e-9)
    assert ((table.lower <= TRUE) & (table.upper >= TRUE)).mean() >= 0.5
    lines = [text for _, text in predicted.shown_rows()]
    assert lines[0].startswith("50% of predictions are off by at most ")
    assert lines[-1].endswith(
        "bound above; at least 50% of targets lie between them, for a random row of "
        "each new group"
    )
    report = made.monitor(POOL, y=TRUE, groups=np.arange(len(POOL)))
    assert "Kept      50% of predictions are off by at most" in str(report)
    far = made.monitor(POOL, y=TRUE + 20, groups=np.arange(len(POOL)))
    assert "Refuted   50% of predictions are off by at most" in str(far)


def test_figures_and_page__have_units_and_no_percent(tmp_path):
    plan = dsel.plan_search(Ridge(), GRID, X, Y, POOL, report=True, random_state=0)
    cube = plan.run(out=tmp_path / "run").results
    axes = dsel.plots.plot_certificates(cube)
    assert " ".join(axes.get_xlabel().split()).startswith(
        "90% of predictions are off by at most, in units of the target"
    )
    assert "%" not in dsel.plots.plot_surface(cube).get_ylabel()
    page = write_report(cube, tmp_path / "page.html")
    text = page.read_text()
    assert "How far off predictions are" in text
    assert "ranked by the mean squared error" in text
    assert "<code>predict</code> treats each row" in text
    assert ("Checked: dsel" in text) == ("<td>checked</td>" in text)
    table = cube.dsel.table().mean_squared_error
    best = dsel.plots.plot_folds(cube)
    assert " ".join(best.get_xlabel().split()) == (
        "root mean squared error on the fold, in units of the target"
    )
    best_table = text.partition("<h3>The best")[2]
    assert "root mean squared error" in best_table
    assert f"<td>{table.min() ** 0.5:#.3g}</td>" in best_table
    few = dsel.plan_search(Ridge(), GRID, X[:90], Y[:90], random_state=0).run()
    assert dsel.plots.plot_certificates(few.results).get_xlim()[1] < np.inf


@pytest.mark.parametrize("n_rows", [100, 170])
def test_too_few_rows__are_told_of_before_the_run_with_how_many_are_needed(n_rows):
    plan = dsel.plan_search(Ridge(), GRID, X[:n_rows], Y[:n_rows], random_state=0)
    told = re.search(
        r"it needs ([\d,]+) with 5 folds, 106 with 3, 71 with 2; for (\d+)% of them "
        r"these are enough \(loss='error_quantile=(.+)'\)",
        " ".join(str(plan).split()),
    )
    assert told
    choice = plan.run().choice
    assert np.isinf(choice.bound)
    assert str(choice).count("too few for a bound of how far") == 1
    assert "plan_bound" not in str(choice)  # the numbers are there
    possible = dsel.plan_search(
        Ridge(), GRID, X[:n_rows], Y[:n_rows], random_state=0,
        loss=f"error_quantile={told[3]}",
    )  # fmt: skip
    assert np.isfinite(possible.run().choice.bound)
    assert float(told[3]) == int(told[2]) / 100
    assert "No finite bound of how far 90% of predictions are off" in str(choice)
    assert np.isinf(plan.run().predict_interval(POOL)).all()
    needed = int(told[1].replace(",", ""))
    enough, fewer = (
        dsel.plan_search(Ridge(), GRID, X[:n], Y[:n], random_state=0)
        for n in (needed, needed - 1)
    )
    assert "it needs" not in str(enough)
    assert "it needs" in str(fewer)
    assert np.isfinite(enough.run().choice.bound)
    assert np.isinf(fewer.run().choice.bound)


def test_cv_results__of_a_pruned_candidate_have_the_scores_of_the_first_round():
    grid = {"alpha": [1e-3, 1.0, 1e3, 1e5, 1e6, 1e7]}
    table = pd.DataFrame(search(Ridge(), grid, pool=POOL).cv_results_)
    pruned = table[table.status == "pruned"]
    assert len(pruned)
    assert pruned.mean_test_score.notna().all()
    assert pruned.rank_test_score.min() > 1


@pytest.mark.parametrize(
    ("n_labeled", "n_pool", "short"),
    [(215, 2000, "labeled rows"), (300, 670, "pool rows"), (300, 671, "")],
)
def test_infinite_bound_of_all_labels__says_which_rows_are_too_few(
    n_labeled, n_pool, short
):
    rows, targets = make_friedman1(3000, random_state=0)
    pool = rows[n_labeled : n_labeled + n_pool]
    outcome = dsel.plan_search(
        Ridge(), {"alpha": [1.0]}, rows[:n_labeled], targets[:n_labeled], pool,
        random_state=0,
    ).run()  # fmt: skip
    text, bound = str(outcome), outcome.certificates["all_rows"].bound
    assert np.isfinite(bound) == (not short)
    if short:
        assert f"predictions are off: too few {short}, model trained on all" in text
    assert (f"the {n_pool} pool rows are too few" in text) == (short == "pool rows")
    assert ("pass a larger pool, or" in text) == (short == "pool rows")
    assert ("label more rows, take fewer" in text) == (short == "labeled rows")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_predictions_that_are_no_finite_numbers__are_infinitely_far_off(number):
    some = search(NoNumber(number=number), {"below": [0.02]}, pool=POOL)
    assert np.isfinite(some.certificate_.bound)
    off = np.abs(TRUE - some.predict(POOL))
    is_kept = off <= some.certificate_.bound  # NaN is not
    assert is_kept.mean() >= 0.9
    assert np.isinf(some.results_.outer_residuals.values).any()
    low, high = some.predict_interval(POOL).T
    is_none = ~np.isfinite(some.predict(POOL))
    assert np.isinf(low[is_none]).all()
    assert np.isinf(high[is_none]).all()
    many = search(NoNumber(number=number), {"below": [0.3]}, pool=POOL)
    assert np.isinf(many.certificate_.bound)
    assert np.isinf(many.certificates_["all_rows"].bound)


def test_pool_rows_that_equal_labeled_rows__do_not_make_a_bound_smaller():
    fresh = search(Constant(), {"shift": [0.0]}, pool=POOL)
    stale = search(Constant(), {"shift": [0.0]}, pool=np.vstack([POOL, X, X]))
    limits = [each.certificates_["all_rows"].bound for each in (fresh, stale)]
    assert limits[1] >= limits[0]
    assert stale.results_.outer_duplicate_deviations.values.sum() > 0


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units__change_the_bound_and_nothing_else(found, unit):
    other = search(y=unit * Y, pool=POOL)
    assert other.best_params_ == found.best_params_
    for deploy in found.certificates_:
        bound = other.certificates_[deploy].bound
        assert bound == pytest.approx(unit * found.certificates_[deploy].bound)


@pytest.mark.parametrize("prune", ["exact", False])
def test_pruning__chooses_what_the_exhaustive_search_does(found, prune):
    made = search(pool=POOL, prune=prune)
    assert made.best_params_ == found.best_params_
    assert made.certificate_.bound == found.certificate_.bound


def test_search__does_not_depend_on_chunks_or_slices(found):
    chunked = search(pool=da.from_array(POOL, chunks=(137, -1)))
    for name in ("outer_residuals", "outer_deviations"):
        np.testing.assert_array_equal(chunked.results_[name], found.results_[name])
    assert chunked.certificates_ == found.certificates_


def test_out__resumes_and_is_read(tmp_path):
    options = {"random_state": 0, "report": True, "prune": False}
    plan = dsel.plan_search(Ridge(), GRID, X, Y, POOL, **options)
    first = plan.run(out=tmp_path / "run")
    again = dsel.plan_search(Ridge(), GRID, X, Y, POOL, **options).run(
        out=tmp_path / "run"
    )
    assert again.choice == first.choice
    np.testing.assert_array_equal(again.model.predict(POOL), first.model.predict(POOL))
    np.testing.assert_array_equal(
        again.predict_interval(POOL), first.predict_interval(POOL)
    )
    cube = dsel.open_results(tmp_path / "run")
    assert dsel.select(cube) == first.choice
    dsel.save_results(first.results, tmp_path / "kept.zarr")
    kept = dsel.open_results(tmp_path / "kept.zarr")
    assert dsel.select(kept) == first.choice
    np.testing.assert_array_equal(kept.outer_residuals, first.results.outer_residuals)
    estimate = dsel.select(kept, "mean_squared_error").certificate
    assert not estimate.certified
    with pytest.raises(ValueError, match="for classifiers"):
        dsel.select(kept, "cv_error")


def test_certify__bounds_any_regressor_search_or_function():
    inner = GridSearchCV(Ridge(), GRID, cv=3)
    outcome = dsel.certify(inner, X, Y, POOL, random_state=0)
    assert type(outcome.model).__name__ == "GridSearchCV"
    assert outcome.certificate.certified
    assert outcome.choice.procedure == "GridSearchCV"

    def fit(features, targets):
        return Ridge().fit(features, targets)

    made = dsel.certify(fit, X, Y, random_state=0, loss=dsel.losses.error_quantile(0.8))
    assert isinstance(made.model, Ridge)
    assert "80% of predictions are off by at most" in str(made.choice)


def test_certify_prefit__bounds_a_fitted_regressor():
    model = Ridge().fit(X[:200], Y[:200])
    made = dsel.certify(model, X[200:], Y[200:], cv="prefit")
    residuals = np.abs(Y[200:] - model.predict(X[200:]))
    assert made.bound == tolerance_limit(residuals, level=0.1, delta=0.05)
    assert re.fullmatch(
        r"90% of predictions are off by at most [\d.]+ \(95% confidence, if the model "
        r"has not seen these 200 rows\), model as given", made.headline()
    )  # fmt: skip
    few = dsel.certify(model, X[200:220], Y[200:220], cv="prefit")
    assert "No finite bound" in few.headline()
    share = dsel.certify(
        model, X[200:], Y[200:], cv="prefit", loss=dsel.losses.beyond(4.0)
    )
    assert 0 < share.bound < 1


def test_beyond__is_no_row_that_is_off_by_exactly_the_tolerance():
    y = np.resize([0.0, 2.0, -2.0, 2.5, -3.0], 400)  # 2 of 5 are off by more than 2
    zero = DummyRegressor(strategy="constant", constant=0)
    loss = dsel.losses.beyond(2.0)
    made = dsel.certify(zero.fit(X, y), X, y, cv="prefit", loss=loss)
    assert made.estimate == 0.4
    outcome = dsel.plan_search(
        zero, {"constant": [0.0]}, X, y, POOL, loss=loss, random_state=0
    ).run()
    counts = outcome.results["outer_exceedances"]
    assert counts.sel(exceeded="tolerance").sum() == 160
    assert counts.sel(exceeded="4/5 of it").sum() == 320
    assert outcome.certificate.estimate == 0.4
    tests = outcome.monitor(POOL, y=np.resize(y, len(POOL))).tests
    assert {test.n_found for test in tests if test.name.startswith("error")} == {800}


def test_certify__refuses_a_function_that_returns_the_other_kind_of_model():
    with pytest.raises(dsel.errors.AllFitsFailedError, match="a fitted regressor"):
        dsel.certify(lambda X, y: None, X, Y, random_state=0)


def test_frames__reach_the_model_with_their_texts():
    frame = pd.DataFrame(X).add_prefix("x")
    made = search(X=frame, pool=pd.DataFrame(POOL).add_prefix("x"))
    assert made.predict_interval(frame).shape == (400, 2)
    assert made.feature_names_in_.tolist() == frame.columns.tolist()


def test_y_of_one_column__is_raveled_with_a_warning(found):
    with pytest.warns(DataConversionWarning):
        made = search(y=Y[:, np.newaxis], pool=POOL)
    assert made.certificates_ == found.certificates_


def test_folds_of_groups__give_estimates():
    keys = np.arange(400) // 4
    plan = dsel.plan_search(
        Ridge(), GRID, X, Y, cv=GroupKFold(4), groups=keys, random_state=0
    )
    choice = plan.run().choice
    assert choice.criterion == "mean_squared_error"
    assert not choice.certificate.certified
    assert "No guarantee" in str(choice)


def test_groups__are_certified_by_one_row_of_each():
    keys = np.arange(400) // 2
    made = search(fit={"groups": keys})
    assert "on a random row of a new group" in str(made.choice_)
    assert made.certificate_.certified


def test_tolerance__is_certified_where_most_predictions_are_exact():
    targets = np.where(np.arange(400) % 20 == 0, 5.0, 0.0)
    always_zero = DummyRegressor(strategy="constant", constant=0.0)
    made = dsel.certify(always_zero, X, targets, POOL, random_state=0)
    first, second = made.certificates["one_fold"], made.certificates["all_rows"]
    assert first.estimate == 0.0
    assert first.bound == 5.0
    assert 5.0 <= second.bound < 10.0  # the models never differ


def holdout_residuals(plan, alpha):
    """Return residuals on the hold-out set of a model that has not seen it."""
    [split] = plan.search.scheme.fold_splits
    model = Ridge(alpha).fit(X[split.train_rows], Y[split.train_rows])
    return split.test_rows, np.abs(Y - model.predict(X))[split.test_rows]


def test_holdout__bounds_the_candidate_that_the_fold_ranks_first():
    made = plan(certificate="holdout", report=[0.5, 0.9])
    outcome, n_candidates = made.run(), len(GRID["alpha"])
    squares = [np.mean(holdout_residuals(made, a)[1] ** 2) for a in GRID["alpha"]]
    alpha = GRID["alpha"][int(np.argmin(squares))]
    rows, residuals = holdout_residuals(made, alpha)
    assert outcome.choice.params == {"alpha": alpha}
    # Two numbers of a report, of which the main one is one, and so many candidates.
    limit = tolerance_limit(residuals, level=0.1, delta=0.05 / 2 / n_candidates)
    assert outcome.certificate.bound == pytest.approx(limit)
    assert list(outcome.certificates) == ["one_fold"]
    assert str(outcome.choice).splitlines()[0] == (
        f"90% of predictions are off by at most "
        f"{outcome.certificate.amount(limit)} (95% confidence), model trained on "
        f"80% of the labels"
    )
    half = tolerance_limit(residuals, level=0.5, delta=0.05 / 2 / n_candidates)
    report = outcome.certified_report().to_dataframe().off_by_at_most
    assert report.tolist() == pytest.approx([half, limit])
    low, high = outcome.predict_interval(POOL).T
    np.testing.assert_allclose(high - low, 2 * limit)
    assert "1, of 80 labeled rows" in str(made)
    assert len(rows) == 80


def test_holdout__has_limits_by_value_of_the_rows_that_it_counts():
    site = np.where(np.arange(400) % 4 == 0, 1.0, 0.0)
    loss, features = dsel.losses.beyond(3.0), np.column_stack([X, site])
    made = plan(X=features, certificate="holdout", report_by=10, loss=loss)
    outcome = made.run()
    [split] = made.search.scheme.fold_splits
    off = np.abs(Y - outcome.model.predict(features))[split.test_rows] > 3.0
    report = outcome.report_by_value().to_dataframe()
    for value, (_, limit, rows, _) in report.iterrows():
        mine = site[split.test_rows] == value
        assert rows == mine.sum()
        share = 0.05 / 2 / 2 / 3  # of values, of one, of one candidate
        expected = stats.beta.ppf(1 - share, off[mine].sum() + 1, (~off[mine]).sum())
        assert limit == pytest.approx(expected)
    expected = stats.beta.ppf(1 - 0.05 / 2 / 3, off.sum() + 1, (~off).sum())
    assert outcome.certificate.bound == pytest.approx(expected)


def test_holdout__of_groups_counts_one_row_of_each():
    outcome = plan(certificate="holdout", groups=np.arange(400) // 4).run()
    assert outcome.results.fold_rows.values.tolist() == [20]
    assert outcome.results.outer_residuals.shape == (1, 20)
    assert "too few groups" in str(outcome.choice)
    assert "compare fewer candidates" in str(outcome.choice)


def test_holdout__names_what_its_rows_are_too_few_for():
    text = " ".join(str(plan(certificate="holdout", report=True)).split())
    assert "of the hold-out set: 80 labeled rows are too few for a bound of" in text
    assert "how far 95% of the predictions" in text
    assert "how far 90%" not in text


class Counting(Ridge):
    """Counts the rows that all models together have predicted."""

    rows = 0

    def predict(self, X):
        Counting.rows += len(X)
        return super().predict(X)


def test_search__predicts_each_held_out_row_once_a_fit():
    Counting.rows = 0
    search(Counting(), n_jobs=1, prune=False, report=True, cv=3)
    # Three candidates without each pair of three folds, then what was chosen.
    assert Counting.rows == 3 * 2 * 400 + 400


def test_holdout__resumes_and_is_read(tmp_path):
    def made():
        return plan(certificate="holdout", report=True).run(out=tmp_path)

    first, again = made(), made()
    assert again.choice == first.choice
    np.testing.assert_array_equal(again.model.predict(POOL), first.model.predict(POOL))
    for kept in (tmp_path / "models").iterdir():
        kept.unlink()
    np.testing.assert_array_equal(made().model.predict(POOL), first.model.predict(POOL))
    cube = dsel.open_results(tmp_path)
    assert dsel.select(cube, "holdout") == dsel.select(cube) == first.choice
    estimate = dsel.select(cube, "mean_squared_error")
    assert (estimate.fold, estimate.deploy) == (0, "one_fold")
    assert not estimate.certificate.certified
    with pytest.raises(ValueError, match="this certificate"):
        dsel.select(cube, "holdout", delta=0.1)
    with pytest.raises(ValueError, match="this certificate"):
        dsel.select(cube, "nested")


def plan(learner=None, grid=GRID, X=X, y=Y, pool=None, **options):
    learner = Ridge() if learner is None else learner
    return dsel.plan_search(learner, grid, X, y, pool, random_state=0, **options)


TEXTS = np.where(Y > 14, "high", "low")
GAPS = np.where(np.arange(400) == 7, np.nan, Y)
REFUSED = [
    (lambda: plan(y=np.column_stack([Y, Y])), "`y` one column (400, 2)"),
    (lambda: plan(y=GAPS), "`y` finite row 7 nan"),
    (lambda: plan(y=np.where(np.isnan(GAPS), np.inf, Y)), "`y` finite row 7 inf"),
    (lambda: plan(y=[None, *Y[1:]]), "`y` row 0 None"),
    (lambda: plan(y=TEXTS), "`y` numbers classifiers"),
    (lambda: plan(y=TEXTS.astype(object)), "`y` numbers classifiers"),
    (lambda: plan(y=np.arange(400).astype("M8[D]")), "`y` numbers Timestamp"),
    (lambda: plan(y=Y[:50]), "`y` 50 400"),
    (lambda: plan(y=None), "`y`"),
    (lambda: plan(y=Y + 1j), "`y` numbers complex"),
    (lambda: dsel.plan_search(None, [Ridge(), LogisticRegression()], X, Y),
     "`param_grid` both LogisticRegression Ridge"),
    (lambda: plan(certificate="cv_bound", pool=POOL), "'cv_bound' for classifiers"),
    (lambda: plan(certificate="best_fold", pool=POOL), "'best_fold' for classifiers"),
    (lambda: plan(n_queries=20, pool=POOL), "`n_queries` 20 for classifiers"),
    (lambda: plan(certificate="holdout", deploy="all_rows"), "`deploy` 'holdout'"),
    (lambda: plan(certificate="holdout", prune="halving"), "`prune` 'halving'"),
    (lambda: plan(criterion="mean_squared_error", report=True), "`report` nested"),
    (lambda: plan(loss=dsel.losses.recall("a")), "`loss` regressors error_quantile"),
    (lambda: plan(LogisticRegression(), {"C": [1]}, y=TEXTS,
                  loss=dsel.losses.error_quantile()), "`loss` classifiers recall"),
    (lambda: plan(criterion="cv_error"), "`criterion` 'mean_squared_error'"),
    (lambda: plan(criterion="loo_error"), "`criterion` 'mean_squared_error'"),
    (lambda: plan(LogisticRegression(), {"C": [1]}, y=TEXTS,
                  criterion="mean_squared_error"), "`criterion` regressors"),
    (lambda: plan(report=["a"]), "`report` a number in (0, 1) 'a'"),
    (lambda: plan(report="price"), "`report` fractions"),
    (lambda: plan(report=[1.5]), "`report` between 0 and 1"),
    (lambda: plan(report_by=0), "`report_by` 0 different values bins"),
    (lambda: dsel.losses.error_quantile(90), "`fraction` between 0 and 1"),
    (lambda: dsel.losses.beyond(0), "`tolerance`"),
    (lambda: dsel.losses.beyond(np.inf), "`tolerance`"),
    (lambda: search(loss=dsel.losses.beyond(2.0)).predict_interval(X),
     "intervals error_quantile(0.9) beyond(2.0)"),
    (lambda: dsel.compare_models(Ridge().fit(X, Y), Ridge(2).fit(X, Y), POOL),
     "regressor"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[each[1] for each in REFUSED])
def test_wrong_input__is_refused_in_one_line(call, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    message = str(caught.value)
    assert [word for word in words.split() if word not in message] == []
    assert "\n" not in message


def test_outcome_predict__is_that_of_the_deployed_model_and_checks_columns():
    frame = pd.DataFrame(X).add_prefix("x")
    pool = pd.DataFrame(POOL).add_prefix("x")
    plan = dsel.plan_search(Ridge(), GRID, frame, Y, pool, random_state=0)
    outcome = plan.run()
    np.testing.assert_allclose(outcome.predict(frame), outcome.model.predict(X))
    every = outcome.predict(frame, deploy="all_rows")
    np.testing.assert_allclose(every, outcome.models["all_rows"].predict(X))
    np.testing.assert_array_equal(
        outcome.predict_interval(frame.iloc[:, ::-1]), outcome.predict_interval(frame)
    )
    for wrong in (frame.rename(columns={"x0": "other"}), X[:, 1:]):
        for predict in (outcome.predict, outcome.predict_interval):
            with pytest.raises(ValueError, match=r"lacks .* 'x0' |`X` has 9"):
                predict(wrong)
    with pytest.raises(ValueError, match="`deploy` must be one of"):
        outcome.predict(frame, deploy="none")
    with pytest.raises(TypeError, match="`X` must hold rows of features"):
        outcome.predict("x")


def test_assumptions__speak_of_a_pool_only_where_there_is_one():
    plan = dsel.plan_search(Ridge(), GRID, X, Y, random_state=0)
    a1 = plan.run().certificate.assumptions[0]
    assert a1.statement.startswith("labeled rows and the rows that the model will meet")


@pytest.mark.parametrize("loss", ["error", dsel.losses.beyond(1.0)])
def test_choice__of_numbers_names_what_always_the_median_gives(loss):
    plan = dsel.plan_search(Ridge(), GRID, X[:200], Y[:200], loss=loss, random_state=0)
    choice = plan.run(n_jobs=1).choice
    off = np.abs(Y[:200] - np.median(Y[:200]))
    expected = np.mean(off > 1.0) if loss != "error" else np.sort(off)[179]
    assert choice.median == np.median(Y[:200])
    assert choice.median_loss == pytest.approx(expected)
    # Its loss stands beside it, in the comparison or in the warning.
    said = r"always predicting the median, [\d,]+\.\d+(?:: share| \(8\.73\):)"
    assert len(re.findall(said, str(choice))) == 1
    assert "the median, 266,578" in str(replace(choice, median=266578.0))
    record = json.loads(choice.to_json())
    del record["median"], record["median_loss"]  # as older versions wrote it
    older = type(choice).from_json(json.dumps(record))
    assert "always predicting" not in str(older)
    assert older.certificates == choice.certificates


def test_plan__of_numbers_speaks_in_units_of_the_target():
    y = 1000.0 + 50.0 * Y[:200]
    plan = dsel.plan_search(Ridge(), GRID, X[:200], y, random_state=0)
    median = np.median(y)
    within = np.sort(np.abs(y - median))[179]
    text = " ".join(str(plan).split())
    assert f"median {median:,.6g}, 90% of them within {within:.3g} of it;" in text
    loss = dsel.losses.beyond(1.0)
    plan = dsel.plan_search(Ridge(), GRID, X[:200], y, loss=loss, random_state=0)
    assert f"median {median:,.6g}; 4 of 5 folds" in " ".join(str(plan).split())


def test_choice__of_a_tolerance_near_that_of_the_median_says_so():
    plan = dsel.plan_search(Ridge(), GRID, X[:200], Y[:200], random_state=0)
    choice = plan.run(n_jobs=1).choice
    for part, words in (
        (0.94, "Hardly better than always predicting the median, "),
        (0.85, "Compare a 20% hold-out set"),
    ):
        text = str(replace(choice, median_loss=choice.certificate.bound / part))
        text = " ".join(text.split())
        assert words in text
        assert ("): 94% of that" in text) == ("Hardly better" in text) == (part > 0.9)


class PredictsNoNumber(LinearRegression):
    """Predicts NaN or infinity where a column is above a value."""

    def __init__(self, value=np.inf, above=0.5):
        super().__init__()
        self.value = value
        self.above = above

    def predict(self, X):
        numbers = super().predict(X)
        numbers[np.asarray(X)[:, 1] > self.above] = self.value
        return numbers


NO_NUMBER_RNG = np.random.default_rng(0)
NO_NUMBER_X = NO_NUMBER_RNG.normal(size=(400, 3))
NO_NUMBER_Y = NO_NUMBER_X[:, 0] + NO_NUMBER_RNG.normal(size=400)
NO_NUMBER_POOL = NO_NUMBER_RNG.normal(size=(2_000, 3))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_predictions__that_are_no_finite_numbers_are_the_reason_for_no_bound(value):
    model = PredictsNoNumber(value)
    n = int((NO_NUMBER_X[:, 1] > 0.5).sum())
    count = f"for {n} of 400 labeled rows the prediction is NaN or infinite"
    searched = dsel.certify(
        model, NO_NUMBER_X, NO_NUMBER_Y, NO_NUMBER_POOL, random_state=0, n_jobs=1
    )
    model = PredictsNoNumber(value).fit(NO_NUMBER_POOL, NO_NUMBER_POOL[:, 0])
    as_given = dsel.certify(model, NO_NUMBER_X, NO_NUMBER_Y, cv="prefit")
    for made in (searched, as_given):
        text = " ".join(str(made).split())
        assert "predictions are off: some predictions are NaN or infinite" in text
        assert (count in text) == (made is searched)
        assert "too small for this part" not in text
        assert "how many labels are needed" not in text
        assert "no prediction was right" not in text


class PredictsNoNumberOfMany(LinearRegression):
    """Predicts NaN for each second row of many, as of a pool."""

    def predict(self, X):
        numbers = super().predict(X)
        if len(numbers) > 1_000:
            numbers[::2] = np.nan
        return numbers


def test_predictions__that_are_no_numbers_on_the_pool_alone_are_named_as_the_cause():
    pool, model = NO_NUMBER_POOL, PredictsNoNumberOfMany()
    made = dsel.certify(model, NO_NUMBER_X, NO_NUMBER_Y, pool, random_state=0, n_jobs=1)
    assert np.isinf(made.certificates["all_rows"].bound)
    assert made.certificates["all_rows"].n_far_apart == len(pool[::2])
    text = " ".join(str(made).split())
    assert "off: predictions for the pool are far apart, NaN or infinite, model" in text
    n_rows = f"for {len(pool[::2]):,} of {len(pool):,} pool rows a prediction is NaN"
    assert n_rows in text
    assert "too few" not in text


def test_predictions__that_are_rarely_no_numbers_are_a_warning_next_to_the_bound():
    model = PredictsNoNumber(above=2.0)
    n = int((NO_NUMBER_X[:, 1] > 2.0).sum())
    made = dsel.certify(model, NO_NUMBER_X, NO_NUMBER_Y, random_state=0, n_jobs=1)
    assert np.isfinite(made.certificate.bound)
    assert str(made).startswith(f"Warning   for {n} of 400 labeled rows the pre")
    finite = dsel.certify(
        LinearRegression(), NO_NUMBER_X, NO_NUMBER_Y, random_state=0, n_jobs=1
    )
    assert finite.certificate.n_not_finite == 0
    assert "infinite" not in str(finite)
