"""A number of a paper beside ours, and whether they agree."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

MOST_ERRORS: Final = 3.0
"""Standard errors of the difference within which two numbers agree."""
AGREES: Final = "agrees"
DIFFERS: Final = "differs"
OPEN: Final = "not compared"
"""Verdicts; what is not compared says why."""


@dataclass(frozen=True)
class Comparison:
    """One number, or one finding in words, of a paper and of ours."""

    source: str
    """Where it is printed, such as ``Table 3``."""
    where: str
    """Data set and whatever else tells it from others in the table."""
    what: str
    """What it says; of a finding in words, what must be above 0."""
    printed: float | None
    """As printed; None for a finding in words."""
    ours: float
    """What we measured."""
    standard_error: float
    """Of ours, over repetitions; NaN where it is not known."""
    verdict: str
    """`AGREES`, `DIFFERS` or `OPEN`."""
    why: str = ""
    """Of the verdict, where it does not speak for itself."""


def compare_number(
    source: str,
    where: str,
    what: str,
    *,
    printed: float,
    ours: tuple[float, float],
    spread: float,
    why_open: str = "",
) -> Comparison:
    """Compare a printed number with ours: within three standard errors they agree.

    Parameters
    ----------
    source, where, what
        As in `Comparison`.
    printed
        The paper's number.
    ours
        Our number and its standard error.
    spread
        Standard error of the difference: ours, the paper's and its rounding.
    why_open
        Why the two cannot be compared; empty where they can.

    Examples
    --------
    >>> found = compare_number(
    ...     "Table 3", "votes", "error", printed=0.07, ours=(0.06, 0.01), spread=0.02
    ... )
    >>> found.verdict
    'agrees'
    """
    value, error = map(float, ours)
    if not why_open and not math.isfinite((value - printed) / (spread or math.nan)):
        why_open = "no standard error: run more repetitions"
    near = abs(value - printed) <= MOST_ERRORS * spread
    verdict = OPEN if why_open else AGREES if near else DIFFERS
    distance = "" if why_open else f"{(value - printed) / spread:+.1f} s.e."
    return Comparison(
        source, where, what, printed, value, error, verdict, why_open or distance
    )


def compare_order(
    source: str, where: str, what: str, *, ours: tuple[float, float]
) -> Comparison:
    """Hold a number to what the paper says in words, that it is above 0.

    Parameters
    ----------
    source, where, what
        As in `Comparison`.
    ours
        The number and its standard error. Below 0, but by at most three of these, it
        says nothing.
    """
    value, error = map(float, ours)
    if value > 0.0:
        return Comparison(source, where, what, None, value, error, AGREES)
    if value >= -MOST_ERRORS * error:
        why = "no difference within 3 s.e."
        return Comparison(source, where, what, None, value, error, OPEN, why)
    return Comparison(source, where, what, None, value, error, DIFFERS)


def mean_of(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error, which one value does not have."""
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    spread = float(numbers.std(ddof=1)) if n > 1 else math.nan
    return float(numbers.mean()), spread / math.sqrt(n)


def share_of(count: int, n: int) -> tuple[float, float]:
    """Return a share and its standard error, never 0: one more could differ.

    Examples
    --------
    >>> share, error = share_of(0, 20)
    >>> share, round(error, 3)
    (0.0, 0.034)
    """
    smoothed = (count + 0.5) / (n + 1)
    return count / n, math.sqrt(smoothed * (1 - smoothed) / n)


def in_short(comparisons: Iterable[Comparison]) -> str:
    """Return one line about all of them.

    Examples
    --------
    >>> in_short([compare_order("Figure 1", "dna", "gap", ours=(0.1, 0.01))])
    'Agree with the paper: 1 of 1; differ: 0; not compared: 0.'
    """
    found = [each.verdict for each in comparisons]
    agree, differ, left = map(found.count, (AGREES, DIFFERS, OPEN))
    return (
        f"Agree with the paper: {agree} of {len(found)}; differ: {differ}; "
        f"not compared: {left}."
    )
