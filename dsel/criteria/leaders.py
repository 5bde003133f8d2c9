"""The bound whose second term is shared by the candidates that lead on labeled rows.

The label term is that of `cv_bound`; what is left of delta for the second term is
divided among the candidates with the smallest label terms only. It pays for pools of a
few thousand rows; above 1e5 the gain is below 0.001.
"""

from typing import Final

import numpy as np

from dsel import names
from dsel.bounds.semi_supervised import mean_of_limits
from dsel.bounds.shares import leading_shares
from dsel.criteria.base import Evidence, Settings, Terms, has_failed
from dsel.criteria.bound import Bound, reading, rows_read
from dsel.criteria.cv_bound import COUNTS

N_LEADERS: Final = 10
"""How many candidates share the second term."""


def _judge(evidence: Evidence, settings: Settings) -> Terms:
    gamma, shares = settings.label_share, settings.delta_shares
    label_term = mean_of_limits(
        evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS], gamma * shares
    )
    second = leading_shares(
        np.where(has_failed(evidence), np.inf, label_term),
        delta=(1.0 - gamma) * float(shares.sum()),
        n_leaders=N_LEADERS,
    )
    leads = second > 0
    disagreement_term = np.full_like(label_term, np.nan)
    disagreement_term[leads] = reading(evidence).limits(
        evidence[names.DISAGREEMENTS].sum(axis=-1)[leads],
        rows_read(evidence)[leads],
        second[leads],
    )
    return Terms(label_term + disagreement_term, label_term, disagreement_term)


LEADERS: Final = Bound(
    "leaders",
    _judge,
    COUNTS,
    compares_all=True,
    only_about=f"the {N_LEADERS} candidates of smallest label term, and known where "
    f"all folds are counted; search with prune=False, or report certificate='cv_bound'",
)
"""Union bounds, the second one conditionally on the labeled rows: leaders are a
function of these, which is why all of them must be counted."""
