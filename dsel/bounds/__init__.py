"""Counts and ``delta`` in, guaranteed error rates out.

Every function here is pure, takes integer counts (never rates) and broadcasts. A
bound is an upper bound on an error rate unless its name says lower; ``delta`` is
the probability with which it fails, and may be an array of shares. Bounds of
several terms are not clipped at 1, since they also rank.

Vocabulary: the *label term* comes from labeled rows, the *disagreement term* from
the pool; a *share* is the part of delta that one candidate may spend; a *limit*
is the inverse of one binomial tail.

To add a member, write one file named after its inequality, with a docstring that
says Guarantee, Assumes and Source, and a coverage test that could fail.
"""

from dsel.bounds.anytime import anytime_limit, anytime_limit_lower
from dsel.bounds.averaged_disagreement import (
    averaged_disagreement,
    bentkus_limit,
    bernstein_limit,
    merged_disagreement_limit,
)
from dsel.bounds.best_fold import best_fold, best_fold_number
from dsel.bounds.betting import betting_limit, pilot_bet
from dsel.bounds.binomial import binomial_tail_inversion, binomial_tail_inversion_lower
from dsel.bounds.co_validation import (
    disagreement_limits,
    error_from_disagreement,
    error_variance_bound,
    error_variance_bound_sharp,
    error_variance_limit,
    pair_error_bound,
    row_disagreement,
)
from dsel.bounds.events import DeltaLedger, Event, ReadOut, read_out
from dsel.bounds.holdout import holdout_bound
from dsel.bounds.intervals import ErrorInterval, best_fold_interval, cv_interval
from dsel.bounds.looks import doubling_shares, limits_at_looks, look_schedule
from dsel.bounds.merged_folds import merged_folds
from dsel.bounds.nonconformity import (
    conformal_p_value,
    margin_conformity,
    nearest_neighbour_conformity,
)
from dsel.bounds.pairs import PairFacts, pair_facts
from dsel.bounds.reading import AnyTime, FixedLooks, StoppingRule
from dsel.bounds.select_then_certify import select_then_certify
from dsel.bounds.semi_supervised import BoundTerms, semi_supervised_cv_bound
from dsel.bounds.shares import (
    countable_shares,
    family_shares,
    leading_shares,
    prior_shares,
    uniform_shares,
)
from dsel.bounds.thresholds import (
    printed_error_bound,
    selective_error_bound,
    threshold_bound,
    threshold_bound_dkw,
    threshold_bound_even,
    threshold_bound_vc,
)
from dsel.bounds.transductive import transductive

cv_bound = semi_supervised_cv_bound
"""The name that the criterion has."""

__all__ = [
    "AnyTime",
    "BoundTerms",
    "DeltaLedger",
    "ErrorInterval",
    "Event",
    "FixedLooks",
    "PairFacts",
    "ReadOut",
    "StoppingRule",
    "anytime_limit",
    "anytime_limit_lower",
    "averaged_disagreement",
    "bentkus_limit",
    "bernstein_limit",
    "best_fold",
    "best_fold_interval",
    "best_fold_number",
    "betting_limit",
    "binomial_tail_inversion",
    "binomial_tail_inversion_lower",
    "conformal_p_value",
    "countable_shares",
    "cv_bound",
    "cv_interval",
    "disagreement_limits",
    "doubling_shares",
    "error_from_disagreement",
    "error_variance_bound",
    "error_variance_bound_sharp",
    "error_variance_limit",
    "family_shares",
    "holdout_bound",
    "leading_shares",
    "limits_at_looks",
    "look_schedule",
    "margin_conformity",
    "merged_disagreement_limit",
    "merged_folds",
    "nearest_neighbour_conformity",
    "pair_error_bound",
    "pair_facts",
    "pilot_bet",
    "printed_error_bound",
    "prior_shares",
    "read_out",
    "row_disagreement",
    "select_then_certify",
    "selective_error_bound",
    "semi_supervised_cv_bound",
    "threshold_bound",
    "threshold_bound_dkw",
    "threshold_bound_even",
    "threshold_bound_vc",
    "transductive",
    "uniform_shares",
]
