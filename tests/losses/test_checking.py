"""The check of a loss: ours pass, and each member is refused that is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from dsel import losses
from dsel.losses import check_loss
from dsel.losses.declared import declare_losses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import NO_PREDICTION
from tests.losses.test_third_party import ErrorWhere


@pytest.mark.parametrize(
    "loss",
    ["error", losses.recall(1), losses.precision(1), losses.balanced([0, 1]),
     losses.cost({(0, 1): 5, (1, 0): 1}), ErrorWhere(0)],
    ids=repr,
)  # fmt: skip
def test_check_loss__takes_what_a_search_takes(loss):
    check_loss(declare_losses(loss, None, np.array([0, 1])).main)


@pytest.mark.parametrize(
    "loss", [losses.error_quantile(0.9), losses.error_quantile(0.5), losses.beyond(0.5)]
)
def test_check_loss__takes_losses_of_numbers(loss):
    check_loss(loss)


def changed(name, function, *, of_statistic=False):
    """Return a loss of which one member does something else."""
    loss = ERROR_RATE
    if of_statistic:
        kind = type("Counting", (type(ERROR_RATE.statistic),), {name: function})
        return replace(loss, statistic=kind())
    return type("Changed", (type(ERROR_RATE),), {name: function})()


def bound_worst_fold(self, folds, pool_counts, division):
    """Spend all of delta on labeled rows, and some on the pool."""
    worst = int(folds.counts.argmax())
    its = [
        numbers[worst : worst + 1]
        for numbers in (pool_counts.counts, pool_counts.duplicates)
    ]
    more = replace(division, delta=division.delta / division.label_share)
    return ERROR_RATE.bound_all_rows(
        folds.fold(worst), replace(pool_counts, counts=its[0], duplicates=its[1]), more
    )


def spend_pool_delta_by_fold(self, folds, pool_counts, division):
    """Give each of k folds all of the pool's delta."""
    k = len(folds.n_rows)
    labels, rest = division.label_share / k, 1.0 - division.label_share
    more = replace(
        division, delta=k * division.delta, label_share=labels,
        query_share=1.0 - labels - rest + division.query_share,
    )  # fmt: skip
    return ERROR_RATE.bound_all_rows(folds, pool_counts, more)


def spend_queries(self, folds, pool_counts, division):
    """Give the pool what labels of queried rows should get."""
    more = replace(division, query_share=0.0)
    return ERROR_RATE.bound_all_rows(folds, pool_counts, more)


REFUSED = [
    (changed("limits", lambda self, folds, delta: np.full(5, delta)),
     "limits larger delta"),
    (changed("limits", lambda self, folds, delta: np.full(5, 0.01 / delta**0.01)),
     "limits above"),
    (changed("limits", lambda self, folds, delta: 1.0), "limits each of 5"),
    (changed("limits", lambda self, folds, delta: folds.integers / folds.n_rows),
     "limits larger where delta is smaller"),
    (changed("limits", lambda self, folds, delta:
             ERROR_RATE.limits(folds, delta) if len(folds.n_rows) > 1 else 1 / 0),
     "ZeroDivisionError in `limits`"),
    (changed("count_pair", lambda self, rows, one, other, fold:
             np.array(((one != other) & (other == 0)).sum()), of_statistic=True),
     "bound_all_rows count_pair fold model"),
    (changed("score", lambda self, rows, predictions: 2.0), "score [0, 1.0]"),
    (changed("counts_from_errors", lambda self, n_errors: np.array(n_errors + 1),
             of_statistic=True), "counts_from_errors None"),
    (changed("bound_all_rows",
             lambda self, folds, pool_counts, division: (0.0, 0.1, 0.2)),
     "bound_all_rows limit of a fold"),
    (changed("score_from_errors", lambda self, n, n_rows: n_rows / n),
     "ZeroDivisionError in `score_from_errors`"),
    (changed("score_from_errors",
             lambda self, n, n_rows: n / n_rows if n != 3 else np.nan),
     "number from `score_from_errors`, got nan"),
    (changed("__repr__", object.__repr__), "repr store"),
    (changed("count", lambda self, rows, predictions: np.array(rows.y[0]),
             of_statistic=True), "count"),
    (changed("count_pair", lambda self, rows, one, other, fold: np.array(1),
             of_statistic=True), "count_pair add up"),
    (changed("count_pair", lambda self, rows, one, other, fold: np.array(0.5),
             of_statistic=True), "count_pair integers"),
    (changed("count_pair", lambda self, rows, one, other, fold: np.array(len(one)),
             of_statistic=True), "counts_differences denies"),
    (changed("limits", lambda self, folds, delta: np.concatenate(
        [ERROR_RATE.limits(fold, delta) for fold in folds.iter_folds()])),
     "limits together alone"),
    (changed("bound_all_rows", bound_worst_fold), "bound_all_rows label_delta"),
    (changed("bound_all_rows", spend_pool_delta_by_fold), "share pool_delta alone"),
    (changed("bound_all_rows", spend_queries), "pool_delta is smaller"),
    (changed("count_pair", lambda self, rows, one, other, fold:
             np.array(((one != other) & (one == 0)).sum()), of_statistic=True),
     "bound_all_rows count_pair fold"),
    (changed("count", lambda self, rows, predictions:
             np.array(((predictions != rows.y) & (predictions != -1)).sum()),
             of_statistic=True), "count score below 0 no prediction -1"),
    (changed("score", lambda self, rows, predictions:
             float(np.mean((predictions != rows.y) & (predictions != -1)))),
     "score below 0 no prediction -1"),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "words"), REFUSED, ids=[each[1] for each in REFUSED])
def test_check_loss__refuses(loss, words):
    with pytest.raises(ValueError, match=r"must|denies") as caught:
        check_loss(loss)
    assert [word for word in words.split() if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("caveats", lambda self, y, n_folds, delta: [1]),
        ("expected_holdout", lambda self, folds, delta: "unknown"),
    ],
)
def test_check_loss__refuses_wrong_types_of_what_is_only_told(method, wrong):
    with pytest.raises(TypeError, match=f"{method} must return"):
        check_loss(changed(method, wrong))


def test_check_loss__tries_each_pair_of_predictions():
    def count_pair(self, rows, one, other, fold):
        return np.array(((one != other) & ~((one == 1) & (other == 2))).sum())

    loss = changed("count_pair", count_pair, of_statistic=True)
    check_loss(loss)  # of two classes, none is the third
    with pytest.raises(ValueError, match="bound_all_rows must be above the loss"):
        check_loss(loss, n_classes=3)


def test_check_loss__names_the_members_that_are_missing():
    with pytest.raises(TypeError, match=r"members of Loss; it lacks .*bound_all_rows"):
        check_loss(object())


def test_no_prediction__is_no_class():
    assert NO_PREDICTION < -1
