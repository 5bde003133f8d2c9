"""The bound with folds merged by the geometric mean as a criterion."""

from typing import Final

from dsel.bounds import merged_folds
from dsel.criteria.bound import Bound
from dsel.criteria.cv_bound import COUNTS, of_random_fold

MERGED_FOLDS: Final = Bound(
    "merged_folds", of_random_fold(merged_folds), COUNTS, can_prune=True
)
"""Its label term is another event than that of `cv_bound`: the smaller of the two is no
guarantee at delta."""
