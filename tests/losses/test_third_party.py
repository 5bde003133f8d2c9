"""A loss that dsel has never heard of ranks, is counted, and is bounded."""

from dataclasses import dataclass, replace
from importlib import import_module
from math import ceil

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel import losses
from dsel.bounds import binomial_tail_inversion, fold_shares
from dsel.bounds.binomial import sum_outward
from dsel.bounds.duplicates import lower_rate_limits
from dsel.losses.calls import ConstantPrediction
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import (
    CubeVariable,
    Exceedance,
    Loss,
    RowSentence,
    Statistic,
    smallest_sum,
)
from dsel.losses.regression import RegressionLoss
from dsel.results import Certificate

X, Y = make_classification(900, 6, n_informative=4, flip_y=0.05, random_state=1)
NEW, TRUTH = X[300:], Y[300:]
POOL, X, Y = np.vstack([X[300:], X[:20]]), X[:300], Y[:300]  # some duplicates
TREE, GRID = DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4]}


@dataclass(frozen=True)
class ErrorsWhere:
    """Errors, and rows, where a column is positive."""

    column: int
    on_folds: str = "positive_errors"
    on_pool: str = "positive_disagreements"
    on_duplicates: str = "positive_duplicates"
    fold_shape: tuple = (2,)
    pair_shape: tuple = (2,)
    counts_differences: bool = False

    @property
    def variables(self):
        names = (self.on_folds, self.on_pool, self.on_duplicates)
        counted = CubeVariable({"counted": ("errors", "rows")}, "where positive")
        return dict.fromkeys(names, counted)

    def _count(self, rows, is_wrong):
        there = np.asarray(rows.X)[:, self.column] > 0
        return np.array([np.sum(is_wrong & there), there.sum()])

    def count(self, rows, predictions):
        return self._count(rows, predictions != rows.y)

    def counts_from_errors(self, n_errors):
        return None

    def count_pair(self, rows, fold_predictions, all_rows_predictions, fold):
        return self._count(rows, fold_predictions != all_rows_predictions)


@dataclass(frozen=True)
class ErrorWhere:
    """The error on rows where a column is positive."""

    column: int
    title: str = "Error where positive"
    largest: float = 1.0
    criterion: str = "mean_loss"
    is_regression: bool = False
    is_cost: bool = False
    sentence = RowSentence(
        "Of {rows} {model} gets at most {count} wrong on average.",
        rows="rows where it is positive",
    )

    @property
    def statistic(self):
        return ErrorsWhere(self.column)

    @property
    def components(self):
        return (self,)

    def named_classes(self, known):
        return ()

    def of_table(self, classes, table):
        return self

    def score_from_errors(self, n_errors, n_rows):
        return None

    def score(self, rows, predictions):
        errors, n_rows = self.statistic.count(rows, predictions)
        return errors / n_rows if n_rows else 1.0

    def estimate(self, folds):
        errors, n_rows = folds.counts.sum(axis=0)
        return float(errors / n_rows)

    def limits(self, folds, delta):
        shares = delta * fold_shares(len(folds.n_rows))
        return binomial_tail_inversion(*folds.counts.T, delta=shares)

    def bound_all_rows(self, folds, pool_counts, division):
        limits, k = self.limits(folds, division.label_delta), len(folds.n_rows)
        (differ, rows), (same, same_rows) = (
            pool_counts.counts.T,
            pool_counts.duplicates.T,
        )
        fresh = rows - same_rows + same
        added = binomial_tail_inversion(differ, fresh, delta=division.pool_delta / k)
        return smallest_sum(limits, sum_outward(limits, added))

    def expected_holdout(self, folds, delta):
        return float("nan")

    def caveats(self, y, n_folds, delta):
        return []

    def lower_limits(self, new_counts, delta):
        (errors, n_rows), (same, _) = new_counts.counts.T, new_counts.duplicates.T
        return lower_rate_limits(errors, same, n_rows, delta)


@pytest.mark.parametrize(
    "loss",
    [ERROR_RATE, losses.recall(1), losses.precision(1), losses.balanced([0, 1]),
     losses.cost({(0, 1): 5, (1, 0): 1}), ErrorWhere(0)],
    ids=repr,
)  # fmt: skip
def test_losses__have_the_members_of_the_protocol(loss):
    assert isinstance(loss, Loss)
    assert isinstance(loss.statistic, Statistic)


def test_loss__has_its_title_by_the_old_name_too():
    with pytest.warns(FutureWarning, match="`label` is now called `title`"):
        assert losses.recall("fraud").label == "Misses of 'fraud'"


def test_cost_of_a_third_party__is_shown_as_a_number_and_not_in_percent():
    options = {"random_state": 7, "prune": False, "deploy": "one_fold"}
    lines = []
    for is_cost in (False, True):
        loss = ErrorWhere(0, is_cost=is_cost)
        plan = dsel.plan_search(TREE, GRID, X, Y, POOL, loss=loss, **options)
        made = plan.run().certificate
        assert made.is_cost == is_cost
        lines.append(made.headline().partition(" (")[0])
    percent, number = lines
    assert percent.endswith("%")
    assert float(number.split()[-1]) == pytest.approx(made.bound, abs=0.01)


def test_loss_of_a_third_party__takes_the_path_of_the_error():
    plan = dsel.plan_search(
        TREE, GRID, X, Y, POOL, loss=ErrorWhere(0), random_state=7, prune=False
    )
    outcome = plan.run()
    cube, there = outcome.results, X[:, 0] > 0
    for fold, split in enumerate(plan.search.scheme.outer_splits[:-1]):
        chosen = int(cube["outer_candidate"][fold])
        model = DecisionTreeClassifier(
            random_state=0, max_depth=GRID["max_depth"][chosen]
        )
        rows = split.test_rows[there[split.test_rows]]
        model.fit(X[split.train_rows], Y[split.train_rows])
        wrong = int((model.predict(X[rows]) != Y[rows]).sum())
        assert cube["positive_errors"][fold].values.tolist() == [wrong, len(rows)]
    found = outcome.certificates["one_fold"]
    n_most = ceil(1000 * found.bound)
    sentence = (
        f"Of 1,000 new rows where it is positive the model gets at most {n_most} wrong "
        f"on average."
    )
    for certificate in (found, Certificate.from_json(found.to_json())):
        assert certificate.in_numbers_of_rows() == sentence
    limits = binomial_tail_inversion(
        *cube["positive_errors"].values.T, delta=0.95 * 0.05 * fold_shares(5)
    )
    assert found.bound == limits.min()
    assert found.headline().startswith("Error where positive at most ")
    one, full = (outcome.models[name].predict(POOL) for name in outcome.models)
    differ = int(((one != full) & (POOL[:, 0] > 0)).sum())
    pairs = cube["positive_disagreements"].values[found.fold]
    assert pairs.tolist() == [differ, (POOL[:, 0] > 0).sum()]
    assert int(cube["positive_duplicates"][0, 1]) == (X[:20, 0] > 0).sum()
    assert outcome.certificates["all_rows"].bound > found.bound


def test_loss_of_a_third_party__is_read_from_out(tmp_path):
    options = {"loss": ErrorWhere(0), "random_state": 7}
    plan = dsel.plan_search(TREE, GRID, X, Y, POOL, **options)
    first, again = (plan.run(out=tmp_path) for _ in range(2))
    assert again.certificates == first.certificates
    other = dsel.plan_search(
        TREE, GRID, X, Y, POOL, **options | {"loss": ErrorWhere(1)}
    )
    with pytest.raises(ValueError, match="another plan"):
        other.run(out=tmp_path)


def test_loss_of_a_third_party__is_monitored_where_it_has_lower_limits():
    outcome = dsel.plan_search(
        TREE, GRID, X, Y, loss=ErrorWhere(0), random_state=7
    ).run()
    kept = outcome.monitor(NEW, y=TRUTH)
    wrong = outcome.monitor(NEW, y=1 - TRUTH)
    assert [test.name for test in wrong.refuted] == ["error of one_fold"]
    test = wrong.refuted[0]
    there = NEW[:, 0] > 0
    errors = (outcome.model.predict(NEW) == TRUTH)[there].sum()
    exact = stats.beta.ppf(0.01, errors, there.sum() - errors + 1)
    assert test.at_least == pytest.approx(exact, abs=1e-6)
    assert "Error where positive at most" in test.promise
    assert kept.tests[-1].result == "kept"


@dataclass(frozen=True)
class OwnQuantile(RegressionLoss):
    """A tolerance that is none of dsel, and has the numbers of one."""

    share: float
    title: str = "Own quantile"
    largest: float = np.inf

    @property
    def like(self):
        return losses.error_quantile(self.share)

    @property
    def statistic(self):
        return self.like.statistic

    def estimate(self, folds):
        return self.like.estimate(folds)

    def limits(self, folds, delta):
        return self.like.limits(folds, delta)

    def bound_all_rows(self, folds, pool_counts, division):
        return self.like.bound_all_rows(folds, pool_counts, division)

    def expected_holdout(self, folds, delta):
        return self.like.expected_holdout(folds, delta)

    def exceedance(self, bound):
        return Exceedance(bound, 1 - self.share)


def test_loss_of_a_third_party__is_monitored_where_its_bound_is_about_distances():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 3))
    y = X[:, 0] + rng.normal(size=900)
    outcomes = [
        dsel.plan_search(
            Ridge(), {"alpha": [1.0]}, X[:300], y[:300], loss=loss, random_state=7
        ).run()
        for loss in (losses.error_quantile(0.9), OwnQuantile(0.9))
    ]
    for truth, n_refuted in ((y, 0), (3 * y, 1)):
        reports = [each.monitor(X[300:], y=truth[300:]) for each in outcomes]
        of_dsel, own = (report.tests[-1] for report in reports)
        assert len(reports[1].refuted) == n_refuted
        promise = of_dsel.promise.replace(
            "90% of predictions are off by", "Own quantile"
        )
        assert own == replace(of_dsel, promise=promise)
        off_by = np.abs(outcomes[1].model.predict(X[300:]) - truth[300:])
        assert own.n_found == (off_by > outcomes[1].certificate.bound).sum()


def test_loss_of_a_third_party__whose_bound_is_a_tolerance_is_reported_by_value():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=300), np.arange(300) % 20 == 0])
    y = X[:, 0] + rng.normal(size=300)
    plans = [
        dsel.plan_search(
            Ridge(), {"alpha": [1.0]}, X, y, loss=loss, report_by=1, random_state=7
        )
        for loss in (losses.error_quantile(0.9), OwnQuantile(0.9))
    ]
    few, of_own = ([str(each) for each in plan.facts.caveats] for plan in plans)
    assert "the tolerance would be infinite" in "".join(of_own)
    proof = "OwnQuantile is not of dsel, nor is the proof of this bound"
    assert sorted(of_own) == sorted([*few, proof])
    of_dsel, own = (plan.run().report_by_value("one_fold") for plan in plans)
    assert str(own) == str(of_dsel)
    assert own.to_dataframe().equals(of_dsel.to_dataframe())


class Compared(ErrorWhere):
    """Finds its best constant itself."""

    def best_constant(self, rows, classes):
        there = rows.y[np.asarray(rows.X)[:, self.column] > 0]
        best = int(np.argmax(np.bincount(there)))
        return ConstantPrediction(f"class {classes[best]}", np.mean(there != best))


def test_loss_of_a_third_party__may_find_its_best_constant_itself():
    there = Y[X[:, 0] > 0]
    assert np.mean(Y) < 0.5 < np.mean(there)  # the largest class is not the best one
    for kind, constant in ((ErrorWhere, "0"), (Compared, "class 1")):
        plan = dsel.plan_search(TREE, GRID, X, Y, loss=kind(0), random_state=7)
        choice = plan.run().choice
        assert choice.constant == constant
        assert choice.constant_loss == np.mean(there != int(constant[-1]))


class Incomparable(ErrorWhere):
    """Fails where it looks for its best constant."""

    def best_constant(self, rows, classes):
        raise KeyError("constant")


def test_loss_of_a_third_party__that_has_no_constant_to_return_is_named():
    with pytest.raises(dsel.errors.LossError, match="KeyError in `best_constant`"):
        dsel.plan_search(TREE, GRID, X, Y, loss=Incomparable(0), random_state=7)


class Unexpected(ErrorWhere):
    """Fails where it looks for what is only compared with a bound."""

    def expected_holdout(self, folds, delta):
        raise KeyError("holdout")


def test_loss_of_a_third_party__whose_comparison_fails_is_refused_before_the_fits():
    failure = pytest.raises(dsel.errors.LossError, match="in `expected_holdout`")
    with failure:
        dsel.plan_search(TREE, GRID, X, Y, loss=Unexpected(0), random_state=7)
    with failure:
        dsel.losses.check_loss(Unexpected(0))


class Optimistic(ErrorWhere):
    """Gives its best score where nothing is predicted."""

    def score(self, rows, predictions):
        return 0.0 if (predictions < 0).all() else super().score(rows, predictions)


class Scoreless(ErrorWhere):
    """Forgets to return its score."""

    def score(self, rows, predictions):
        super().score(rows, predictions)


class Ordered(ErrorWhere):
    """Counts by the place of a row."""

    @property
    def statistic(self):
        return OrderedErrors(self.column)


class OrderedErrors(ErrorsWhere):
    """Errors in the first rows."""

    def count(self, rows, predictions):
        return super()._count(
            rows, (predictions != rows.y) & (np.arange(len(rows.y)) < 9)
        )


class Undefined(ErrorWhere):
    """Has no limit of several folds with errors."""

    def limits(self, folds, delta):
        limits = super().limits(folds, delta)
        has_errors = folds.counts[:, 0] > 0
        return np.where(has_errors & (len(limits) > 1), np.nan, limits)


class Single(ErrorWhere):
    """Has one limit for all folds."""

    def limits(self, folds, delta):
        return float(np.max(super().limits(folds, delta)))


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Single(0), "`loss` Single number each of 1 fold from `limits`"),
        (Optimistic(0), "Optimistic.score largest nothing predicted"),
        (Scoreless(0), "`loss` score None check_loss"),
        (ErrorWhere(6), "`loss` IndexError score out of bounds"),
        (Ordered(0), "OrderedErrors.count order"),
    ],
)
def test_plan__refuses_a_loss_that_fails_on_its_rows(loss, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        dsel.plan_search(TREE, GRID, X, Y, POOL, loss=loss, random_state=0)
    assert [word for word in words.split() if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_limits_of_a_third_party__that_are_no_numbers_are_named_with_the_loss():
    plan = dsel.plan_search(TREE, GRID, X, Y, loss=Undefined(0), random_state=7)
    with pytest.raises(dsel.errors.LossError, match="number >= 0 for each of 5 folds"):
        plan.run()


class Untold(ErrorWhere):
    """Has no value, though its limits have one."""

    def estimate(self, folds):
        return np.nan


class Weighted(ErrorWhere):
    """Weighs its errors by three, and still says that 1 is its largest value."""

    def estimate(self, folds):
        return 3.0 * super().estimate(folds)

    def limits(self, folds, delta):
        return 3.0 * super().limits(folds, delta)

    def score(self, rows, predictions):
        return super().score(rows, predictions)


class WeightedScore(ErrorWhere):
    """Weighs the errors of its score alone, by the number of rows."""

    def score(self, rows, predictions):
        score = super().score(rows, predictions)
        return score if len(predictions) == 200 else 30.0 * score


class Unbounded(ErrorWhere):
    """Has no bound of the model of all rows."""

    def bound_all_rows(self, folds, pool_counts, division):
        return np.nan, 0.1, np.nan


class TooGood(ErrorWhere):
    """Has a bound of the model of all rows that is below those of all folds."""

    def bound_all_rows(self, folds, pool_counts, division):
        return 0.001, 0.001, 0.0


class Negative(ErrorWhere):
    """Counts the rows of the pool on which models differ below 0."""

    @property
    def statistic(self):
        return NegativeErrors(self.column)


class NegativeErrors(ErrorsWhere):
    """Counts on the pool as if they were gains."""

    def count_pair(self, *arguments):
        return -super().count_pair(*arguments)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Untold(0), "`loss` Untold number `estimate` nan"),
        (Weighted(0), "`loss` Weighted `estimate` `largest` 1.0"),
        (WeightedScore(0), "`loss` WeightedScore `score` `largest` 1.0"),
        (Unbounded(0), "`loss` Unbounded `bound_all_rows` nan 0.1"),
        (TooGood(0), "`loss` TooGood `bound_all_rows` 0.001 limit"),
        (Negative(0), "NegativeErrors `loss` below 0 `count_pair`"),
    ],
)
def test_value_of_a_third_party__that_would_make_a_bound_too_small_is_refused(
    loss, words
):
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    flipped = np.where(np.random.default_rng(0).random(len(Y)) < 0.5, Y, 1 - Y)
    with pytest.raises(dsel.errors.LossError) as caught:
        dsel.certify(stump, X, flipped, POOL, loss=loss, random_state=0, n_jobs=1)
    assert [word for word in words.split() if word not in str(caught.value)] == []


def test_value_of_a_third_party__is_refused_for_a_fitted_model_too():
    model = DecisionTreeClassifier(random_state=0).fit(NEW, TRUTH)
    for loss in (Untold(0), Weighted(0)):
        flipped = Y if isinstance(loss, Untold) else 1 - Y
        with pytest.raises(dsel.errors.LossError, match="`estimate`"):
            dsel.certify(model, X, flipped, cv="prefit", loss=loss)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("dsel.losses.base", "dsel.losses.protocols", "SingleLoss"),
        ("dsel.criteria.base", "dsel.criteria.criterion", "Criterion"),
    ],
)
def test_old_modules__have_the_names_of_the_new_ones_and_warn(old, new, name):
    module = import_module(old)  # tools import all modules, so this does not warn
    with pytest.warns(FutureWarning, match=f"`{old}` is now called `{new}`"):
        assert getattr(module, name) is getattr(import_module(new), name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018
