"""The bound through the best fold's model as a criterion and read-out.

It is at its best as the read-out of a choice that another criterion made: as a ranking
it is noisier than the mean over folds, and cannot prune, since another count can make
another fold the best one, and the number smaller.
"""

from typing import Any, Final

from dsel import names
from dsel.bounds import best_fold
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound, reading, rows_read

COUNTS: Final = (names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS)
"""Errors of the folds, and disagreement with the model of the best one."""


def judge(evidence: Evidence, settings: Settings, **changed: Any) -> Terms:
    """Bound every candidate's error through its best fold."""
    return Terms(
        *best_fold(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.BEST_FOLD_DISAGREEMENTS],
            rows_read(evidence),
            delta=settings.delta_shares,
            label_share=settings.label_share,
            reading=reading(evidence),
            **changed,
        )
    )


BEST_FOLD: Final = Bound("best_fold", judge, COUNTS)
"""Its disagreement is another event than that of `cv_bound`: to report both as
guarantees, divide delta."""
