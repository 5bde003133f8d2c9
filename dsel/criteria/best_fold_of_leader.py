"""The best fold's bound for the candidate of least cross-validation error alone.

The leader is a function of the labeled rows, so its disagreement with the best fold's
model may spend all that is set aside for disagreement: the number of candidates enters
the label term only. It is the read-out to ask for beside ``criterion="cv_error"``.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence, Settings, Terms, has_failed
from dsel.criteria.best_fold import COUNTS, judge
from dsel.criteria.bound import Bound
from dsel.criteria.cv_error import cv_score


def _judge_leader(evidence: Evidence, settings: Settings) -> Terms:
    all_of_it = (1.0 - settings.label_share) * float(settings.delta_shares.sum())
    terms = judge(evidence, settings, disagreement_delta=all_of_it)
    return replace(terms, estimate=np.where(_leads(evidence), terms.estimate, np.nan))


def _leads(evidence: Evidence) -> NDArray[np.bool_]:
    """Return where the first candidate of least cross-validation error stands.

    Folds that were not counted can only add errors: if the smallest score with these
    at 0 belongs to a candidate with all folds counted, it leads whatever they are.
    """
    scores = cv_score(evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS])
    possible = np.where(has_failed(evidence), np.inf, scores)
    leads = np.zeros(len(possible), dtype=bool)
    if np.isfinite(possible).any():
        leads[np.argmin(possible)] = True
    return leads


BEST_FOLD_OF_LEADER: Final = Bound(
    "best_fold_of_leader",
    _judge_leader,
    COUNTS,
    only_about="the candidate of least cross-validation error; choose by "
    "criterion='cv_error', or report certificate='best_fold'",
)
"""The label term by a union over candidates and folds; the second one conditionally on
the labeled rows."""
