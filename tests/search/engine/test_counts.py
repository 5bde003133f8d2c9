"""The record of a search's counts, whose fields are variables of the cube."""

from dataclasses import fields, replace

import numpy as np

from dsel import names
from dsel.search.engine.counts import DataSizes, SearchCounts

OTHERS = {"data", "counts_on_pool", "messages"}


STORED = {
    "fold_predictions": names.FOLD_PREDICTIONS,
    "n_duplicates": names.N_DUPLICATES,
    "prior_shares": names.PRIOR_SHARE,
}
"""Names of variables that older stores have, where the field is called otherwise."""


def test_counts__have_the_names_of_the_cube():
    data = {field.name: n for n, field in enumerate(fields(DataSizes))}
    counts = {
        field.name: np.array([100 + n])
        for n, field in enumerate(fields(SearchCounts))
        if field.name not in OTHERS
    }
    pool = {names.DISAGREEMENTS: np.array([7])}
    made = SearchCounts(DataSizes(**data), **counts, counts_on_pool=pool).by_name
    given = {**data, **counts, **pool}
    assert made == {STORED.get(name, name): value for name, value in given.items()}
    assert made.keys() <= names.BY_NAME.keys()


def test_counts__that_were_not_made_have_no_name():
    data = DataSizes(n_labeled=5, n_unlabeled=0, n_classes=2)
    made = SearchCounts(data, *(np.zeros(1, int) for _ in range(3))).by_name
    assert not {names.FOLD_ERRORS, names.N_GROUPS, names.OUTER_CANDIDATE} & made.keys()


def test_fold_scores__are_mean_losses_or_error_rates_and_nan_if_unknown():
    data = DataSizes(n_labeled=20, n_unlabeled=0, n_classes=2)
    counts = SearchCounts(
        data, np.zeros(1, np.int8), np.array([10, 10]), np.array([10, 10]),
        fold_errors=np.array([[1, names.UNCOUNTED]]),
    )  # fmt: skip
    np.testing.assert_equal(counts.fold_scores, [[0.1, np.nan]])
    several = replace(counts, fold_predictions=np.array([[40, 0]]))
    np.testing.assert_equal(several.fold_scores, [[0.025, np.nan]])
    with_loss = replace(several, fold_loss_mean=np.array([[0.3, 0.2]]))
    assert with_loss.fold_scores.tolist() == [[0.3, 0.2]]
