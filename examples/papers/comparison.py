"""A number of a paper beside ours, and whether they agree."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

MOST_ERRORS = 3.0
"""Standard errors within which two numbers agree, were there very many repetitions."""
FEWEST = 10
"""Repetitions below which nothing is compared."""
AGREES = "agrees"
DIFFERS = "differs"
OPEN = "not compared"
"""Verdicts; what is not compared says why."""


@dataclass(frozen=True)
class Comparison:
    """One number, or one finding in words, of a paper and of ours."""

    source: str
    """Where it is printed, such as ``Table 3``."""
    where: str
    """Data set, and what else identifies the row or column of the table."""
    what: str
    """What it says; of a finding in words, what must be above 0."""
    printed: float | None
    """As printed; None for a finding in words."""
    ours: float
    standard_error: float
    """Of ours, over repetitions; NaN where it is not known."""
    verdict: str
    """`AGREES`, `DIFFERS` or `OPEN`."""
    why: str = ""


def widest(n: int) -> float:
    """Return the standard errors within which numbers of n repetitions agree.

    That is Student's quantile with n - 1 degrees of freedom which is left with the
    probability that a normal number is left beyond three standard errors.
    """
    tail = stats.norm.sf(MOST_ERRORS)
    return float(stats.t.isf(tail, max(n - 1, 1)))


def too_few(n: int) -> str:
    """Return that n repetitions are too few to compare; empty where they are not."""
    return "" if n >= FEWEST else f"too few to say: {n} of at least {FEWEST}"


def compare_number(
    source: str,
    where: str,
    what: str,
    *,
    printed: float,
    ours: tuple[float, float],
    spread: float,
    n: int,
    why_open: str = "",
) -> Comparison:
    """Compare a printed number with ours by Student's quantile of n repetitions.

    `ours` is our number and its standard error, `spread` that of the difference: ours,
    the paper's and its rounding. `why_open` says why the two cannot be compared.
    """
    value, error = map(float, ours)
    why_open = why_open or too_few(n)
    if not why_open and not math.isfinite((value - printed) / (spread or math.nan)):
        why_open = "no standard error: all repetitions are alike, or it is not known"
    near = abs(value - printed) <= widest(n) * spread
    verdict = OPEN if why_open else AGREES if near else DIFFERS
    distance = "" if why_open else f"{(value - printed) / spread:+.1f} s.e."
    return Comparison(
        source, where, what, printed, value, error, verdict, why_open or distance
    )


def compare_order(
    source: str, where: str, what: str, *, ours: tuple[float, float], n: int
) -> Comparison:
    """Compare a number and its standard error with a finding, that it is above 0.

    The standard error is NaN where the number is the smallest of all repetitions, so
    that its sign says all. Nearer to 0 than Student's quantile of its standard errors,
    it is not compared.
    """
    value, error = map(float, ours)
    quantile = widest(n)
    room = 0.0 if math.isnan(error) else quantile * error
    why = too_few(n)
    if not why and abs(value) <= room:
        why = f"no difference within {quantile:.1f} s.e."
    verdict = OPEN if why else AGREES if value > 0.0 else DIFFERS
    return Comparison(source, where, what, None, value, error, verdict, why)


def compare_exact(
    source: str, where: str, what: str, *, printed: float, ours: float, why: str = ""
) -> Comparison:
    """Compare a whole number, which agrees or differs; `why` it cannot be compared."""
    verdict = OPEN if why else AGREES if ours == printed else DIFFERS
    return Comparison(source, where, what, printed, ours, math.nan, verdict, why)


def mean_of(values: ArrayLike) -> tuple[Any, Any]:
    """Return the mean over the first axis and its standard error; NaN for one value."""
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    error = numbers.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.nan * numbers[0]
    return numbers.mean(axis=0), error


def share_of(count: int, n: int) -> tuple[float, float]:
    """Return a share and its standard error, never 0: one more could differ."""
    smoothed = (count + 0.5) / (n + 1)
    return count / n, math.sqrt(smoothed * (1 - smoothed) / n)


def in_short(comparisons: Iterable[Comparison]) -> str:
    """Return one line about all of them."""
    found = [each.verdict for each in comparisons]
    agree, differ, left = map(found.count, (AGREES, DIFFERS, OPEN))
    return (
        f"Agree with the paper: {agree} of {len(found)}; differ: {differ}; "
        f"not compared: {left}."
    )
