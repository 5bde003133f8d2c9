"""The record of a search's counts, whose fields are variables of the cube."""

from dataclasses import fields, replace

import numpy as np
import pytest

from dsel import names
from dsel.search.engine.counts import DataSizes, ExhaustiveCounts, NestedCounts

OTHERS = {"data", "counts_on_pool", "messages"}


STORED = {
    "fold_predictions": names.FOLD_PREDICTIONS,
    "n_duplicates": names.N_DUPLICATES,
}
"""Names of variables that older stores have, where the field is called otherwise."""


@pytest.mark.parametrize("kind", [NestedCounts, ExhaustiveCounts])
def test_counts__have_the_names_of_the_cube(kind):
    data = {field.name: n for n, field in enumerate(fields(DataSizes))}
    counts = {
        field.name: np.array([100 + n])
        for n, field in enumerate(fields(kind))
        if field.name not in OTHERS
    }
    pool = {names.DISAGREEMENTS: np.array([7])} if kind is ExhaustiveCounts else {}
    on_pool = {"counts_on_pool": pool} if pool else {}
    made = kind(data=DataSizes(**data), **counts, **on_pool).by_name
    given = {**data, **counts, **pool}
    assert made == {STORED.get(name, name): value for name, value in given.items()}
    assert made.keys() <= names.BY_NAME.keys()


def count_folds(data, *, fold_errors, fold_loss_mean=None):
    """Return counts of one candidate on two folds, which a hold-out search makes."""
    return ExhaustiveCounts(
        data=data, status=np.zeros(1, np.int8), fold_rows=np.array([10, 10]),
        train_rows=np.array([10, 10]), fold_errors=fold_errors,
        fold_loss_mean=fold_loss_mean, fit_seconds=np.zeros((1, 2)),
        full_fit_seconds=None, train_errors=None, loo_errors=None, counts_on_pool={},
    )  # fmt: skip


def test_counts__that_were_not_made_have_no_name():
    data = DataSizes(n_labeled=5, n_unlabeled=0, n_classes=2)
    made = count_folds(data, fold_errors=None, fold_loss_mean=np.zeros(1)).by_name
    missing = (
        names.FOLD_ERRORS,
        names.N_GROUPS,
        names.FULL_FIT_SECONDS,
        names.LOO_ERRORS,
    )
    assert not {*missing} & made.keys()


def test_fold_scores__are_mean_losses_or_error_rates_and_nan_if_unknown():
    data = DataSizes(n_labeled=20, n_unlabeled=0, n_classes=2)
    counts = count_folds(data, fold_errors=np.array([[1, names.UNCOUNTED]]))
    np.testing.assert_equal(counts.fold_scores, [[0.1, np.nan]])
    several = NestedCounts(
        data=data, status=counts.status, fold_rows=counts.fold_rows,
        train_rows=counts.train_rows, fold_errors=counts.fold_errors,
        fold_loss_mean=None, fold_predictions=np.array([[40, 0]]),
    )  # fmt: skip
    np.testing.assert_equal(several.fold_scores, [[0.025, np.nan]])
    with_loss = replace(several, fold_loss_mean=np.array([[0.3, 0.2]]))
    assert with_loss.fold_scores.tolist() == [[0.3, 0.2]]
