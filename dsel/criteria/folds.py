"""Criteria of folds: guarantees, and estimates by cross-validation.

A guarantee bounds all candidates at once, each at its share of delta, so that any of
them may be chosen by hand. A nested search is bounded as a whole, so its numbers are no
criteria. Each guarantee spends the whole delta by itself: the smaller of two bounds
is not a guarantee at one delta.

To add a criterion, write a formula of counts and list it in `FOLDS`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.bounds.cross_validation import best_fold, cv_bound, upper_pool_rows
from dsel.bounds.holdout import holdout_bound
from dsel.criteria.criterion import (
    Bound,
    CountsByName,
    Criterion,
    Estimate,
    Settings,
    Terms,
)


def _by_pool(
    formula: Callable[..., Any],
    disagreements: str,
    counts: CountsByName,
    settings: Settings,
) -> Terms:
    """Return a bound from errors on folds and disagreements on the pool.

    `disagreements` is the name of their counts.
    """
    n_duplicates = counts.get(names.N_DUPLICATES, np.array(0))
    terms = formula(
        counts[names.FOLD_ERRORS],
        counts[names.FOLD_ROWS],
        counts[disagreements].reshape(len(counts[disagreements]), -1).sum(axis=1),
        upper_pool_rows(counts[names.N_UNLABELED], n_duplicates),
        delta=settings.candidate_deltas,
    )
    return Terms(*terms)


def _holdout(counts: CountsByName, settings: Settings) -> Terms:
    errors, rows = counts[names.FOLD_ERRORS][:, 0], counts[names.FOLD_ROWS][0]
    bound = holdout_bound(errors, rows, delta=settings.candidate_deltas)
    return Terms(bound, bound, np.full_like(bound, np.nan))


def count_fold_predictions(counts: CountsByName) -> Integers:
    """Return the number of predictions on each fold in which errors are counted.

    It is the number of rows, (n_folds,), or in a nested search, where several models
    predict the rows of a fold, that times the number of models, (n_candidates,
    n_folds). Missing predictions of pruned candidates count as right, as all missing
    counts do.
    """
    if names.FOLD_PREDICTIONS not in counts:
        return counts[names.FOLD_ROWS]
    predictions = counts[names.FOLD_PREDICTIONS]
    is_pruned = counts[names.STATUS][:, np.newaxis] == names.STATUS_PRUNED
    return np.maximum(np.where(is_pruned, predictions.max(axis=0), predictions), 1)


def fold_error(counts: CountsByName) -> Floats:
    r"""Mean over folds of the error rate of models trained without the fold.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    It estimates the average error of the fold models: M. Kaariainen, ICSI TR-05-010,
    2005, section 2.
    """
    rates = counts[names.FOLD_ERRORS] / count_fold_predictions(counts)
    return np.asarray(rates.mean(axis=-1))


def loo_error(counts: CountsByName) -> Floats:
    """Return the leave-one-out error rate.

    Nearly unbiased where rows were drawn at random; looE in Madani, Pennock and Flake
    (2004).
    """
    return np.asarray(counts[names.LOO_ERRORS] / counts[names.N_LABELED])


def mean_loss(counts: CountsByName) -> Floats:
    """Mean over folds of the declared loss, of models trained without the fold."""
    return np.asarray(counts[names.FOLD_LOSS_MEAN].mean(axis=-1))


FOLDS: Final[tuple[Criterion, ...]] = (
    # This is structural risk minimization over the bound of Theorem 1 of ICSI
    # TR-05-010. Every limit grows with its count, so a candidate can be pruned by the
    # counts so far.
    Bound(
        "cv_bound",
        partial(_by_pool, cv_bound, names.DISAGREEMENTS),
        (names.FOLD_ERRORS, names.DISAGREEMENTS),
        (names.FOLD_ROWS, names.POOL_ROWS, names.N_UNLABELED),
    ),
    # It cannot prune: a larger count can make another fold the best one, and the bound
    # smaller.
    Bound(
        "best_fold",
        partial(_by_pool, best_fold, names.BEST_FOLD_DISAGREEMENTS),
        (names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS),
        (names.FOLD_ROWS, names.N_UNLABELED),
        can_prune=False,
    ),
    # The bound is about the model trained without the first fold, which is deployed:
    # delta is divided among candidates, so that they may be chosen by the rows of this
    # fold.
    Bound(
        "holdout",
        _holdout,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        holds_out_one_fold=True,
    ),
    Estimate(
        "cv_error",
        fold_error,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=fold_error,
        description="cross-validated error",
    ),
    Estimate(
        "mean_loss",
        mean_loss,
        (names.FOLD_LOSS_MEAN,),
        (names.FOLD_ROWS,),
        label_term=mean_loss,
        can_prune=False,  # a mean of fewer models may be larger
        uses_declared_loss=True,
        description="mean loss",
    ),
    Estimate(
        "mean_squared_error",
        mean_loss,
        (names.FOLD_LOSS_MEAN,),
        (names.FOLD_ROWS,),
        label_term=mean_loss,
        can_prune=False,
        is_regression=True,
        description="mean squared error",
    ),
    Estimate(
        "loo_error",
        loo_error,
        (names.LOO_ERRORS,),
        (names.N_LABELED,),
        label_term=loo_error,
        description="leave-one-out error",
    ),
)
"""All criteria of folds, and leave-one-out."""
