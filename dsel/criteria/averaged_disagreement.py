"""The bound with disagreement averaged over all fold models, as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import averaged_disagreement
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    judged,
    smallest,
)
from dsel.criteria.fold_bounds import is_complete


@dataclass(frozen=True)
class AveragedDisagreement:
    """Judge candidates by `dsel.bounds.averaged_disagreement`, each at its share.

    Notes
    -----
    Guarantee: with probability at least 1 - delta all candidates' bounds hold at once.
    Assumes: A1 to A6; the shares sum to at most delta. Its disagreement is another
    event than that of `cv_bound`. It pays for pools below 1e5 rows.
    Source: the mean of the draw of a fold, bounded by betting.
    """

    name: str = "averaged_disagreement"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (
        names.FOLD_ERRORS,
        names.FOLD_ROWS,
        names.DIFFERING_FOLDS,
        names.POOL_ROWS,
        names.N_UNLABELED,
    )
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = True
    """It rises with every error, and where one more fold model differs on a row."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds and whole pool are counted."""
        known = is_complete(evidence, names.DIFFERING_FOLDS)
        return _judge(evidence, settings, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet agreed."""
        every = np.ones(len(evidence[names.STATUS]), dtype=bool)
        return _judge(evidence, settings, every).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)


def _judge(evidence: Evidence, settings: Settings, known: NDArray[np.bool_]) -> Terms:
    counts = smallest(evidence, names.FOLD_ERRORS, names.DIFFERING_FOLDS)
    differing = counts[names.DIFFERING_FOLDS]
    agreeing = counts[names.N_UNLABELED] - differing.sum(axis=1, keepdims=True)
    bound = averaged_disagreement(
        counts[names.FOLD_ERRORS],
        counts[names.FOLD_ROWS],
        np.concatenate([agreeing, differing], axis=1),
        delta=settings.delta_shares,
        label_share=settings.label_share,
    )
    return judged(known, has_failed(evidence), *bound)
