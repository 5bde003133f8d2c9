"""The bound of a single held-out part as a criterion.

The number is about the model trained without the first fold, which is therefore the one
that is deployed.
"""

from typing import Final

import numpy as np

from dsel import names
from dsel.bounds import holdout_bound
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound


def _judge(evidence: Evidence, settings: Settings) -> Terms:
    bound = holdout_bound(
        evidence[names.FOLD_ERRORS][:, 0],
        evidence[names.FOLD_ROWS][0],
        delta=settings.delta_shares,
    )
    return Terms(bound, bound, np.full_like(bound, np.nan))


HOLDOUT_BOUND: Final = Bound(
    "holdout_bound",
    _judge,
    (names.FOLD_ERRORS,),
    (names.FOLD_ROWS,),
    can_prune=True,
    deploys="fold-0",
    holds_out_one_fold=True,
)
"""The test set bound with a union over candidates."""
