"""The bound on the error made on the counted rows of the pool, as a criterion.

Those are the pool without what a `PoolReading` leaves out, what a learner was fitted
on, and what was excluded. It says nothing about other rows. Nothing proves that it
rises with every count.
"""

from typing import Final

from dsel import names
from dsel.bounds import transductive
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound


def _judge(evidence: Evidence, settings: Settings) -> Terms:
    return Terms(
        *transductive(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.FOLD_DISAGREEMENTS],
            int(evidence[names.N_UNLABELED]),
            delta=settings.delta_shares,
        )
    )


TRANSDUCTIVE: Final = Bound(
    "transductive",
    _judge,
    (names.FOLD_ERRORS, names.FOLD_DISAGREEMENTS),
    reads_whole_pool=True,
)
"""Hypergeometric tails given the bag of labeled and pool rows."""
