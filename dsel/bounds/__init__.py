"""Counts and ``delta`` in, guaranteed error rates out.

Every function here is pure. Bounds take integer counts (never rates) and broadcast;
only what is said of expectations takes rates. A bound is an upper bound on an error
rate unless its name says lower; ``delta`` is the probability with which it fails,
mostly also an array of shares. Bounds of several terms are not clipped: they also rank.

Vocabulary: the *label term* comes from labeled rows, the *disagreement term* from
the pool; a *share* is the part of delta that one candidate may spend; a *limit*
is the inverse of one binomial tail.

To add a member: a function in the file of its kind, with a docstring that says
Guarantee, Assumes and Source, its line here, and a coverage test that could fail.
"""

from dsel.bounds.averaged_disagreement import averaged_disagreement, betting_limit
from dsel.bounds.best_fold import best_fold, best_fold_model, best_fold_number
from dsel.bounds.binomial import binomial_tail_inversion, binomial_tail_inversion_lower
from dsel.bounds.bounded_mean import (
    MeanInterval,
    bounded_mean_interval,
)
from dsel.bounds.co_validation import (
    error_from_disagreement,
    pair_error_bound,
    row_disagreement,
)
from dsel.bounds.cross_validation import (
    nested_all_rows,
    nested_one_fold,
    upper_pool_rows,
)
from dsel.bounds.events import DeltaLedger, Event, ReadOut, read_out
from dsel.bounds.holdout import (
    expected_holdout_bound,
    holdout_bound,
    select_then_certify,
)
from dsel.bounds.intervals import ErrorInterval, best_fold_interval, cv_interval
from dsel.bounds.merged_folds import merged_folds
from dsel.bounds.nonconformity import (
    conformal_p_value,
    margin_conformity,
    threshold_bound,
)
from dsel.bounds.semi_supervised import BoundTerms, cv_bound
from dsel.bounds.shares import (
    LABEL_SHARE,
    leading_shares,
    prior_shares,
    uniform_shares,
)
from dsel.bounds.stopping import (
    AnyTime,
    FixedStages,
    StoppingRule,
    anytime_limit,
    stage_schedule,
)
from dsel.bounds.transductive import transductive

semi_supervised_cv_bound = cv_bound
"""The same function, by its longer name."""

__all__ = [
    "LABEL_SHARE",
    "AnyTime",
    "BoundTerms",
    "DeltaLedger",
    "ErrorInterval",
    "Event",
    "FixedStages",
    "MeanInterval",
    "ReadOut",
    "StoppingRule",
    "anytime_limit",
    "averaged_disagreement",
    "best_fold",
    "best_fold_interval",
    "best_fold_model",
    "best_fold_number",
    "betting_limit",
    "binomial_tail_inversion",
    "binomial_tail_inversion_lower",
    "bounded_mean_interval",
    "conformal_p_value",
    "cv_bound",
    "cv_interval",
    "error_from_disagreement",
    "expected_holdout_bound",
    "holdout_bound",
    "leading_shares",
    "margin_conformity",
    "merged_folds",
    "nested_all_rows",
    "nested_one_fold",
    "pair_error_bound",
    "prior_shares",
    "read_out",
    "row_disagreement",
    "select_then_certify",
    "semi_supervised_cv_bound",
    "stage_schedule",
    "threshold_bound",
    "transductive",
    "uniform_shares",
    "upper_pool_rows",
]
