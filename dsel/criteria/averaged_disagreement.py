"""The bound with disagreement averaged over all fold models, as a criterion.

It pays for pools below 1e5 rows. It rises with every error, and where one more fold
model differs on a row.
"""

from typing import Final

import numpy as np

from dsel import names
from dsel.bounds import averaged_disagreement
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound, rows_read


def _judge(evidence: Evidence, settings: Settings) -> Terms:
    differing = evidence[names.DIFFERING_FOLDS]
    agreeing = rows_read(evidence)[:, np.newaxis] - differing.sum(axis=1, keepdims=True)
    # A product of bets at fixed stakes is a martingale: its limit holds at every row.
    return Terms(
        *averaged_disagreement(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            np.concatenate([agreeing, differing], axis=1),
            delta=settings.delta_shares,
            label_share=settings.label_share,
        )
    )


AVERAGED_DISAGREEMENT: Final = Bound(
    "averaged_disagreement",
    _judge,
    (names.FOLD_ERRORS, names.DIFFERING_FOLDS),
    can_prune=True,
)
"""Its disagreement is another event than that of `cv_bound`."""
