"""Plain cross-validation: the mean over folds of the error rate on the fold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    is_counted,
    judged,
    smallest,
)


def cv_error(
    fold_errors: NDArray[np.int64], fold_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over folds of the fold model's error rate on the held-out fold.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    Parameters
    ----------
    fold_errors
        Errors counted on each fold, :math:`c_i`; the folds on the last axis.
    fold_rows
        Rows of each fold, :math:`n_i`, broadcast against `fold_errors`.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; it is an estimate of the average error of the fold models.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: the cross-validation estimate, [1]_ section 2.

    References
    ----------
    .. [1] M. Kaariainen, "Semi-supervised model selection based on
       cross-validation", ICSI TR-05-010, 2005.

    Examples
    --------
    >>> cv_error(np.array([[1, 0], [2, 2]]), np.array([10, 10]))
    array([0.05, 0.2 ])
    """
    rates: NDArray[np.float64] = (fold_errors / fold_rows).mean(axis=-1)
    return rates


def cv_score(
    fold_errors: NDArray[np.int64], fold_rows: NDArray[np.int64]
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return `cv_error` times a constant, in integers where fold sizes allow it.

    Two candidates tie exactly where these are equal; the rates themselves round.
    """
    small, large = int(fold_rows.min()), int(fold_rows.max())
    if large - small > 1:
        return cv_error(fold_errors, fold_rows)
    weights = np.where(fold_rows == small, large, small) if large > small else 1
    scores: NDArray[np.int64] = (fold_errors * weights).sum(axis=-1)
    return scores


@dataclass(frozen=True)
class CvError:
    """Judge candidates by `cv_error`; ties go to the smallest number."""

    name: str = "cv_error"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (names.FOLD_ERRORS, names.FOLD_ROWS)
    """Variables of the cube that it reads."""
    is_guarantee: bool = False
    """An estimate."""
    can_prune: bool = True
    """The sum of errors never falls."""
    deploys: str = "full"
    """The model of all labeled rows."""
    only_about: str = ""
    """Every candidate has a number."""
    by_halves: bool = False
    """It reads folds."""
    holds_out_one_fold: bool = False
    """All folds count."""
    reads_whole_pool: bool = False
    """It reads no pool."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds are all counted."""
        del settings  # an estimate needs no delta
        counted = is_counted(evidence, names.FOLD_ERRORS)
        errors = evidence[names.FOLD_ERRORS].clip(min=0)
        rates = cv_error(errors, evidence[names.FOLD_ROWS])
        none = np.full_like(rates, np.nan)
        return judged(counted, has_failed(evidence), Terms(rates, rates, none))

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate with folds that did not run yet at 0 errors."""
        return self.evaluate(smallest(evidence, names.FOLD_ERRORS), settings).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest exact score."""
        scores = cv_score(
            evidence[names.FOLD_ERRORS].clip(min=0), evidence[names.FOLD_ROWS]
        )
        return first_smallest(np.where(np.isfinite(terms.estimate), scores, np.inf))
