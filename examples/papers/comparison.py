"""Numbers of a paper beside ours, and whether they agree."""

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


class Comparisons(list[Comparison]):
    """A list to which numbers of n repetitions are added with their verdicts.

    In all methods `ours` is our number and its standard error over repetitions, and
    `why` says why it cannot be compared.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.few = "" if n >= FEWEST else f"too few to say: {n} of at least {FEWEST}"
        # Student's quantile of n repetitions which is left with the probability that a
        # normal number is left beyond three standard errors.
        tail = stats.norm.sf(MOST_ERRORS)
        self.quantile = float(stats.t.isf(tail, max(n - 1, 1)))

    def number(
        self, source: str, where: str, what: str,
        *, printed: float, ours: tuple[Any, Any], spread: float, why: str = "",
    ) -> None:  # fmt: skip
        """Compare a printed number with ours by Student's quantile.

        `spread` is the standard error of the difference: ours, the paper's and its
        rounding.
        """
        value, error = map(float, ours)
        why = why or self.few
        distance = (value - printed) / (spread or math.nan)
        if not why and not math.isfinite(distance):
            why = "no standard error: all repetitions are alike, or it is not known"
        near = abs(value - printed) <= self.quantile * spread
        verdict = OPEN if why else AGREES if near else DIFFERS
        why = why or f"{distance:+.1f} s.e."
        numbers = (printed, value, error)
        self.append(Comparison(source, where, what, *numbers, verdict, why))

    def order(
        self, source: str, where: str, what: str,
        ours: tuple[Any, Any], *, why: str = "",
    ) -> None:  # fmt: skip
        """Compare a number with a finding, that it is above 0.

        The standard error is NaN where the number is the smallest of all repetitions,
        so that its sign says all. Nearer to 0 than Student's quantile of its standard
        errors, it is not compared.
        """
        value, error = map(float, ours)
        why = why or self.few
        if not why and abs(value) <= self.quantile * np.nan_to_num(error):
            why = f"no difference within {self.quantile:.1f} s.e."
        verdict = OPEN if why else AGREES if value > 0.0 else DIFFERS
        self.append(Comparison(source, where, what, None, value, error, verdict, why))

    def exact(
        self, source: str, where: str, what: str,
        *, printed: float, ours: float, why: str = "",
    ) -> None:  # fmt: skip
        """Compare a whole number, which agrees or differs."""
        verdict = OPEN if why else AGREES if ours == printed else DIFFERS
        numbers = (printed, ours, math.nan)
        self.append(Comparison(source, where, what, *numbers, verdict, why))


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
