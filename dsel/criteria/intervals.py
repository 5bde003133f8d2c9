"""Two-sided intervals as criteria: their upper end ranks and is the number reported.

An interval is a certificate of its own: both sides of a fold's limit cost delta, so its
upper end is larger than the bound of one side at the same delta.
"""

from typing import Final

import numpy as np

from dsel import names
from dsel.bounds import ErrorInterval, best_fold_interval, cv_interval
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound, reading, rows_read
from dsel.criteria.cv_bound import COUNTS


def _judge_mean(evidence: Evidence, settings: Settings) -> Terms:
    return _terms(
        cv_interval(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.DISAGREEMENTS].sum(axis=-1),
            rows_read(evidence),
            delta=settings.delta_shares,
            label_share=settings.label_share,
            reading=reading(evidence),
        )
    )


def _judge_best_fold(evidence: Evidence, settings: Settings) -> Terms:
    return _terms(
        best_fold_interval(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.FOLD_DISAGREEMENTS],
            rows_read(evidence)[:, np.newaxis],
            delta=settings.delta_shares,
            label_share=settings.label_share,
            reading=reading(evidence),
        )
    )


def _terms(interval: ErrorInterval) -> Terms:
    unknown = np.full_like(interval.upper, np.nan)  # one side's terms are not both's
    return Terms(interval.upper, unknown, unknown, interval.lower)


CV_INTERVAL: Final = Bound("cv_interval", _judge_mean, COUNTS, can_prune=True)
"""The limits of the folds on both sides, one event of disagreement."""

BEST_FOLD_INTERVAL: Final = Bound(
    "best_fold_interval",
    _judge_best_fold,
    (names.FOLD_ERRORS, names.FOLD_DISAGREEMENTS),
)
"""Through the best fold above and the one with the largest lower limit below."""
