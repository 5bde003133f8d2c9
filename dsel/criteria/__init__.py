"""What turns counts into one number per candidate.

A criterion names the evidence that it needs, gives a number to candidates whose
evidence is complete and a lower bound of it to the others (what pruning compares), has
a rule for ties, and says whether its number is a guarantee. It is a pure function:
another criterion, another `delta` of the same evidence costs no fit. Smaller is better.

Vocabulary: *evidence* is the cube's counts with the candidates flattened into the first
axis; *terms* are the number and what it is made of; *settings* are delta's shares.

To add a criterion: a formula, and one line that makes it a `Bound` or an `Estimate` in
`certificates`, `estimates`, `co_validation` or `losses`; from outside of dsel,
`CRITERIA[name] = ...`.
"""

from typing import Final

from dsel.checks import check_choice
from dsel.criteria.base import Criterion, Evidence, Settings, Terms, is_nested
from dsel.criteria.certificates import CERTIFICATES, Bound
from dsel.criteria.co_validation import CO_VALIDATION
from dsel.criteria.estimates import ESTIMATES, Estimate
from dsel.criteria.losses import LOSSES
from dsel.criteria.nested import NESTED

_MEMBERS: Final[tuple[Criterion, ...]] = (
    *CERTIFICATES,
    *NESTED,
    *ESTIMATES,
    *CO_VALIDATION,
)

CRITERIA: Final[dict[str, Criterion]] = {each.name: each for each in _MEMBERS}
"""Every criterion by name."""

LOSS_CRITERIA: Final[dict[str, Criterion]] = {each.name: each for each in LOSSES}
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


def named_criteria(
    criterion: str, certificate: str | None
) -> tuple[Criterion, Criterion]:
    """Return what ranks the candidates, and what is reported of the chosen one.

    Parameters
    ----------
    criterion, certificate
        Names; None for the certificate that the criterion is.

    Raises
    ------
    ValueError
        Where there is no criterion of a name, or a nested search is to choose by
        another one than cross-validation error.
    """
    for argument, name in (("criterion", criterion), ("certificate", certificate)):
        if name is not None and is_nested(get_criterion(name, argument)):
            if {criterion, certificate} <= {None, name, "cv_error"}:
                return get_criterion("cv_error"), get_criterion(name)
            raise ValueError(
                f"`certificate` {name!r} is about a search that chooses by "
                f"cross-validation error, with or without each fold, but criterion is "
                f"{criterion!r} and certificate {certificate!r}; leave `criterion` out."
            )
    rule = get_criterion(criterion)
    return rule, get_criterion(certificate or rule.name, "certificate")


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
    "named_criteria",
]
