"""The bound of select-then-certify as a criterion: one candidate, one fresh split.

The first fold holds the certifying rows: its model is the winner trained without them,
the full model is what is deployed.
"""

from typing import Any, Final

from numpy.typing import NDArray

from dsel.bounds import BoundTerms, select_then_certify
from dsel.criteria.bound import Bound
from dsel.criteria.cv_bound import COUNTS, of_random_fold


def check_one_fold(n_folds: int) -> None:
    """Raise ValueError unless there is one fold only, of the certifying rows."""
    if n_folds != 1:
        raise ValueError(
            f"`certificate` 'select_then_certify' needs labeled rows that took no part "
            f"in the selection, but there are {n_folds} folds that all did; plan the "
            f"search with certify_rows=0.2, or use 'best_fold'."
        )


def _of_one_fold(
    fold_errors: NDArray[Any], fold_rows: NDArray[Any], *pool: Any, **settings: Any
) -> BoundTerms:
    check_one_fold(fold_errors.shape[1])
    return select_then_certify(fold_errors[:, 0], fold_rows[0], *pool, **settings)


SELECT_THEN_CERTIFY: Final = Bound(
    "select_then_certify", of_random_fold(_of_one_fold), COUNTS, can_prune=True
)
"""Certifying rows and counted pool took no part in the selection; with several
candidates each has its share of delta."""
