"""Bounds: functions of counts and ``delta`` that return guaranteed error rates.

Every function here is pure. Bounds of counts broadcast, except for an axis that has a
meaning, such as that of the folds. Bounds take integer counts, or limits of other
bounds; only functions of expectations take rates. A bound is an upper bound on an error
rate unless its name has "lower" in it or its summary says so. ``delta`` is the
probability with which it fails; most functions also take an array of deltas. Bounds
that are sums of terms are not clipped at 1, because they also rank candidates.

Vocabulary: the *label term* comes from labeled rows, the *disagreement term* from
the pool; a *share* is a fraction of delta, which one term may spend, such as that of a
candidate, a fold or the pool; a *limit* is the inverse of one binomial tail.

To add a bound: write a function in the file of its kind, with Guarantee, Assumes and
Source in the docstring, list it here, and add a coverage test that could fail.
"""

from dsel.bounds.baseline_differences import baseline_limits
from dsel.bounds.binomial import binomial_tail_inversion
from dsel.bounds.cross_validation import (
    best_fold,
    cv_bound,
    nested_all_rows,
    nested_one_fold,
    upper_pool_rows,
)
from dsel.bounds.disagreement import (
    error_ends_from_disagreement,
    error_from_disagreement,
    error_variance_from_disagreement,
    error_variance_from_pairs,
    pair_error_bound,
)
from dsel.bounds.holdout import holdout_bound
from dsel.bounds.nonconformity import threshold_bound
from dsel.bounds.queried_differences import (
    mean_difference_limit,
    queried_all_rows,
    queried_difference,
    sign_test_limit,
)
from dsel.bounds.shares import fold_shares
from dsel.bounds.tolerance import deviation_limit, tolerance_limit
from dsel.checks import explain_public

__all__ = [
    "baseline_limits",
    "best_fold",
    "binomial_tail_inversion",
    "cv_bound",
    "deviation_limit",
    "error_ends_from_disagreement",
    "error_from_disagreement",
    "error_variance_from_disagreement",
    "error_variance_from_pairs",
    "fold_shares",
    "holdout_bound",
    "mean_difference_limit",
    "nested_all_rows",
    "nested_one_fold",
    "pair_error_bound",
    "queried_all_rows",
    "queried_difference",
    "sign_test_limit",
    "threshold_bound",
    "tolerance_limit",
    "upper_pool_rows",
]

explain_public(globals())
