"""Criteria without a guarantee that need no delta: one formula of counts each.

To add one: the formula, and its line in `ESTIMATES` (of folds and leave-one-out; those
of random halves are in `co_validation`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.criteria.base import Criterion, Evidence, Formula, Settings, Terms


@dataclass(frozen=True)
class Estimate(Criterion):
    """A criterion without a guarantee, which needs no delta.

    Its formula takes the evidence, and returns one number for each candidate.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing, since nothing is claimed.
    Source: that of its formula.
    """

    label_term: Formula | None = None
    """Function that returns the part of the number that comes from labeled rows."""
    disagreement_term: Formula | None = None
    """Function that returns the part of the number that comes from the pool."""

    def terms(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the number and the parts that it has; NaN for those it has not."""
        del settings  # an estimate needs no delta
        none = np.full(len(evidence[names.STATUS]), np.nan)
        parts = (
            none if each is None else each(evidence)
            for each in (self.label_term, self.disagreement_term)
        )
        return Terms(self.formula(evidence), *parts)


def fold_answers(evidence: Evidence) -> NDArray[np.int64]:
    """Return in how many answers errors on each fold are counted, shape (n_folds,).

    Its rows; in a nested search, where several models answer the rows of a fold, as
    many times more. Of candidates that were asked less often, the answers that are
    missing count as right, as all counts that are missing do.
    """
    if names.FOLD_ANSWERS not in evidence:
        return evidence[names.FOLD_ROWS]
    return np.asarray(np.maximum(evidence[names.FOLD_ANSWERS].max(axis=0), 1))


def fold_error(evidence: Evidence) -> Floats:
    r"""Mean over folds of the error rate, on the held-out fold, of models without it.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    It estimates the average error of the fold models: M. Kaariainen, ICSI TR-05-010,
    2005, section 2.
    """
    rates = evidence[names.FOLD_ERRORS] / fold_answers(evidence)
    return np.asarray(rates.mean(axis=-1))


def cv_score(evidence: Evidence) -> Floats:
    """Return `fold_error` times a constant, whole numbers where fold sizes allow it.

    Two candidates tie exactly where these are equal; the rates themselves round.
    """
    answers = fold_answers(evidence)
    sizes = np.unique(answers)
    if sizes.size > 2:
        return fold_error(evidence)
    # Errors of small folds times the large size, and of large ones times the small one.
    weights = sizes.sum() - answers if sizes.size == 2 else np.ones_like(answers)
    errors = evidence[names.FOLD_ERRORS]
    return np.asarray((errors * weights).sum(axis=-1), np.float64)


def loo_error(evidence: Evidence) -> Floats:
    """Return the share of labeled rows that the model of all others errs on.

    Nearly unbiased where rows were drawn at random; looE in Madani, Pennock and Flake
    (2004).
    """
    return np.asarray(evidence[names.LOO_ERRORS] / evidence[names.N_LABELED])


def mean_loss(evidence: Evidence) -> Floats:
    """Mean over folds of the declared loss, of models that did not see the fold."""
    return np.asarray(evidence[names.FOLD_LOSS_MEAN].mean(axis=-1))


ESTIMATES: Final = (
    Estimate(
        "cv_error",
        fold_error,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=fold_error,
        exact=cv_score,
    ),
    Estimate(
        "mean_loss",
        mean_loss,
        (names.FOLD_LOSS_MEAN,),
        (names.FOLD_ROWS,),
        can_prune=False,  # a mean of fewer models may be larger
        label_term=mean_loss,
    ),
    Estimate(
        "loo_error",
        loo_error,
        (names.LOO_ERRORS,),
        (names.N_LABELED,),
        label_term=loo_error,
    ),
)
"""Estimates of the error of models of all, or nearly all, labeled rows."""
