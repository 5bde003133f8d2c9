"""The bound of select-then-certify as a criterion: one candidate, one fresh split."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import BoundTerms, select_then_certify
from dsel.criteria.base import Evidence, Settings, Terms, first_smallest
from dsel.criteria.fold_bounds import NEEDS, judge_complete, judge_partial


@dataclass(frozen=True)
class SelectThenCertify:
    """Certify the winner of any selection by rows that the selection never saw.

    The first fold holds the certifying rows: its model is the winner trained without
    them, the full model is what is deployed.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the error of the full model is at
    most the number.
    Assumes: A1 to A6; the certifying rows and the counted pool took no part in the
    selection. With several candidates each has its share of delta.
    Source: test set bound for the winner, plus its disagreement with the full model.
    """

    name: str = "select_then_certify"
    """Value of `certificate=`."""
    needs: tuple[str, ...] = NEEDS
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = True
    """It rises with every count."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """The full model is trained too."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose split and whole pool are counted."""
        _check_single_split(evidence)
        return judge_complete(_of_one_fold, evidence, settings)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet agreed."""
        return judge_partial(_of_one_fold, evidence, settings)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)


def _of_one_fold(
    fold_errors: NDArray[np.int64],
    fold_rows: NDArray[np.int64],
    n_disagreements: NDArray[np.int64],
    n_unlabeled: int,
    **settings: Any,
) -> BoundTerms:
    return select_then_certify(
        fold_errors[:, 0], fold_rows[0], n_disagreements, n_unlabeled, **settings
    )


def _check_single_split(evidence: Evidence) -> None:
    n_folds = evidence[names.FOLD_ERRORS].shape[1]
    if n_folds != 1:
        raise ValueError(
            f"`certificate` 'select_then_certify' needs labeled rows that took no part "
            f"in the selection, but these results hold {n_folds} folds that all did; "
            f"plan the search with certify_rows=0.2, or use 'best_fold'."
        )
