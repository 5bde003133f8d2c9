"""What turns counts into one number per candidate.

A criterion names the evidence that it needs, judges candidates whose evidence is
complete, bounds from below those whose evidence is not (all that pruning knows), has a
tie rule, and says whether its number is a guarantee. It is a pure function: another
criterion, another `delta` of the same evidence costs no fit. Smaller is better.

Vocabulary: *evidence* is the cube's counts with the candidates flattened into the first
axis; *terms* are the number and what it is made of; *settings* are delta's shares.

To add a criterion: a formula, and one line that makes it a `Bound` or an `Estimate` in
`certificates`, `estimates` or `co_validation`; from outside `CRITERIA[name] = ...`.
"""

from typing import Final

from dsel.checks import check_choice
from dsel.criteria.base import Criterion, Evidence, Settings, Terms
from dsel.criteria.certificates import CERTIFICATES, Bound
from dsel.criteria.co_validation import CO_VALIDATION
from dsel.criteria.estimates import ESTIMATES, Estimate
from dsel.criteria.losses import LOSSES, LossCriterion

_MEMBERS: Final[tuple[Criterion, ...]] = (*CERTIFICATES, *ESTIMATES, *CO_VALIDATION)

CRITERIA: Final[dict[str, Criterion]] = {each.name: each for each in _MEMBERS}
"""Every criterion by name."""

LOSS_CRITERIA: Final[dict[str, LossCriterion]] = {
    criterion.name: criterion for criterion in LOSSES
}
"""Estimates of a squared error by name; none is a bound."""


def get_criterion(name: str, argument: str = "criterion") -> Criterion:
    """Return the criterion of that name.

    Parameters
    ----------
    name
        One of `CRITERIA`.
    argument
        What messages call it.

    Raises
    ------
    ValueError
        Where there is none; the message lists the names.
    """
    if name in LOSS_CRITERIA:
        raise ValueError(
            f"`{argument}` {name!r} estimates the squared error of least squares; "
            f"search with `LeastSquaresSearch` and choose with `select_least_squares`, "
            f"or use {argument}='cv_error' for classifiers."
        )
    return CRITERIA[check_choice(name, argument, sorted(CRITERIA))]


__all__ = [
    "CRITERIA",
    "LOSS_CRITERIA",
    "Bound",
    "Criterion",
    "Estimate",
    "Evidence",
    "Settings",
    "Terms",
    "get_criterion",
]
