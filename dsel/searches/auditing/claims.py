"""What each certificate claims of a draw, beside what is true."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel import bounds
from dsel.bounds.binomial import upper_limits
from dsel.bounds.semi_supervised import mean_of_limits
from dsel.bounds.shares import leading_shares
from dsel.criteria.leaders import N_LEADERS
from dsel.searches.auditing.counts import AuditCounts

Floats = NDArray[np.float64]


class Claims(NamedTuple):
    """Bounds, unclipped, and the errors that they are about, (draws, candidates)."""

    bound: Floats
    """What is claimed."""
    truth: Floats
    """What is so."""
    lower: Floats | float = 0.0
    """Lower ends, where an interval is claimed."""

    @property
    def has_failed(self) -> NDArray[np.bool_]:
        """Return the draws in which a claim is wrong for any candidate."""
        wrong = (self.bound < self.truth) | (self.truth < self.lower)
        return np.asarray(wrong.any(axis=1))


def _of_folds(
    bound: Callable[..., Any],
    counts: AuditCounts,
    differing: NDArray[np.int64],
    delta: float,
    gamma: float,
) -> Any:
    """Return what a bound of fold errors and disagreements claims of each candidate."""
    return bound(
        counts.fold_errors,
        counts.fold_rows,
        differing,
        counts.n_unlabeled,
        delta=delta / counts.n_candidates,
        label_share=gamma,
    )


def _cv_bound(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    differing = counts.disagreements
    terms = _of_folds(bounds.semi_supervised_cv_bound, counts, differing, delta, gamma)
    return Claims(terms.bound, counts.true_error)


def _merged_folds(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    differing = counts.disagreements
    terms = _of_folds(bounds.merged_folds, counts, differing, delta, gamma)
    return Claims(terms.bound, counts.true_error)


def _best_fold(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    number = bounds.best_fold_number(counts.fold_errors, counts.fold_rows)
    differing = np.take_along_axis(
        counts.fold_disagreements, number[..., np.newaxis], -1
    )[..., 0]
    terms = _of_folds(bounds.best_fold, counts, differing, delta, gamma)
    return Claims(terms.bound, counts.true_error)


def _best_fold_of_leader(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    rates = (counts.fold_errors / counts.fold_rows).mean(axis=-1)
    leader = rates.argmin(axis=1)[:, np.newaxis]
    errors = np.take_along_axis(counts.fold_errors, leader[..., np.newaxis], 1)
    number = bounds.best_fold_number(errors, counts.fold_rows)
    apart = np.take_along_axis(counts.fold_disagreements, leader[..., np.newaxis], 1)
    terms = bounds.best_fold(
        errors,
        counts.fold_rows,
        np.take_along_axis(apart, number[..., np.newaxis], -1)[..., 0],
        counts.n_unlabeled,
        delta=delta / counts.n_candidates,
        label_share=gamma,
        disagreement_delta=(1 - gamma) * delta,
    )
    return Claims(terms.bound, np.take_along_axis(counts.true_error, leader, 1))


def _cv_interval(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    differing = counts.disagreements
    interval = _of_folds(bounds.cv_interval, counts, differing, delta, gamma)
    return Claims(interval.upper, counts.true_error, interval.lower)


def _best_fold_interval(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    differing = counts.fold_disagreements
    interval = _of_folds(bounds.best_fold_interval, counts, differing, delta, gamma)
    return Claims(interval.upper, counts.true_error, interval.lower)


def _averaged_disagreement(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    terms = bounds.averaged_disagreement(
        counts.fold_errors,
        counts.fold_rows,
        counts.histogram,
        delta=delta / counts.n_candidates,
        label_share=gamma,
    )
    return Claims(terms.bound, counts.true_error)


def _leaders(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    share = gamma * delta / counts.n_candidates
    label = mean_of_limits(counts.fold_errors, counts.fold_rows, share)
    second = np.stack(
        [
            leading_shares(row, delta=(1 - gamma) * delta, n_leaders=N_LEADERS)
            for row in label
        ]
    )
    limits = np.ones_like(label)
    leads = second > 0
    limits[leads] = upper_limits(
        counts.disagreements[leads], counts.n_unlabeled, second[leads]
    )
    return Claims(label + limits, counts.true_error)


def _transductive(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    del gamma  # one event, one share
    terms = bounds.transductive(
        counts.fold_errors,
        counts.fold_rows,
        counts.fold_disagreements,
        counts.n_unlabeled,
        delta=delta / counts.n_candidates,
    )
    # Both are multiples of 1 / m: a tie must not fail by rounding.
    return Claims(terms.bound + 1e-12, counts.pool_error)


def _holdout_bound(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    del gamma  # one event, one share
    first = bounds.holdout_bound(
        counts.fold_errors[..., 0],
        counts.fold_rows[..., 0],
        delta=delta / counts.n_candidates,
    )
    return Claims(first, counts.first_error)


def _select_then_certify(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    terms = bounds.select_then_certify(
        counts.certify_errors,
        counts.certify_rows,
        counts.certify_disagreements,
        counts.n_unlabeled,
        delta=delta,
        label_share=gamma,
    )
    return Claims(terms.bound, counts.certified_error)


def pooled_binomial(counts: AuditCounts, delta: float, gamma: float) -> Claims:
    """Take all fold errors as one binomial: BROKEN, for folds depend on each other."""
    rows = np.broadcast_to(counts.fold_rows, counts.fold_errors.shape)
    share = delta / counts.n_candidates
    label = upper_limits(
        counts.fold_errors.sum(axis=-1), rows.sum(axis=-1), gamma * share
    )
    second = upper_limits(counts.disagreements, counts.n_unlabeled, (1 - gamma) * share)
    return Claims(label + second, counts.true_error)


CLAIMS: Mapping[str, Callable[[AuditCounts, float, float], Claims]] = MappingProxyType(
    {
        "cv_bound": _cv_bound,
        "cv_interval": _cv_interval,
        "merged_folds": _merged_folds,
        "best_fold": _best_fold,
        "best_fold_interval": _best_fold_interval,
        "best_fold_of_leader": _best_fold_of_leader,
        "leaders": _leaders,
        "averaged_disagreement": _averaged_disagreement,
        "transductive": _transductive,
        "holdout_bound": _holdout_bound,
        "select_then_certify": _select_then_certify,
    }
)
"""Every certificate that an audit replays."""
