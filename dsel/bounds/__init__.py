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

from dsel.bounds.binomial import binomial_tail_inversion, binomial_tail_inversion_lower
from dsel.bounds.holdout import holdout_bound
from dsel.bounds.semi_supervised import BoundTerms, semi_supervised_cv_bound
from dsel.bounds.shares import (
    check_shares,
    countable_shares,
    family_shares,
    prior_shares,
    uniform_shares,
)

__all__ = [
    "BoundTerms",
    "binomial_tail_inversion",
    "binomial_tail_inversion_lower",
    "check_shares",
    "countable_shares",
    "family_shares",
    "holdout_bound",
    "prior_shares",
    "semi_supervised_cv_bound",
    "uniform_shares",
]
