"""Numbers of a paper beside ours, and whether they agree.

The scripts yield a `Row` for each; `judged` is the one rule by which all are compared.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

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


class Row(NamedTuple):
    """One number, or one finding in words, of a paper and of ours."""

    source: str
    """Where it is printed, such as ``Table 3``."""
    where: str
    """Data set, and what else identifies the row or column of the table."""
    what: str
    """What it says; of a finding in words, what must be above 0."""
    ours: Any
    standard_error: Any = math.nan
    """Of ours, over repetitions; NaN where ours is the smallest number of them all."""
    printed: float | None = None
    """As printed; None for a finding in words, NaN where only ours is told."""
    spread: float | None = None
    """Standard error of the difference: ours, the paper's and its rounding. None for
    whole numbers, which are equal or not."""
    why: str = ""
    """Why it cannot be compared."""
    note: str = ""
    """What else is said of it."""
    n: int | None = None
    """Repetitions behind ours, where these are not those of the run."""
    verdict: str = ""


def judged(row: Row, n_repetitions: int) -> Row:
    """Return the row with its verdict, and `why` with all that is said of it.

    Two numbers agree within Student's quantile, a finding is one beyond it.
    """
    n, why = row.n or n_repetitions, row.why
    ours, error, printed, spread = (
        None if each is None else float(each) for each in row[3:7]
    )
    # Student's quantile of n repetitions which is left with the probability that a
    # normal number is left beyond three standard errors.
    quantile = float(stats.t.isf(stats.norm.sf(MOST_ERRORS), max(n - 1, 1)))
    is_whole = printed is not None and spread is None and not why
    if not is_whole and not why and n < FEWEST:
        why = f"too few to say: {n} of at least {FEWEST}"
    told = ""
    if is_whole:
        agrees = ours == printed
    elif printed is None:
        agrees = ours > 0.0
        if not why and abs(ours) <= quantile * np.nan_to_num(error):
            why = f"no difference within {quantile:.1f} s.e."
    else:
        distance = (ours - printed) / (spread or math.nan)
        agrees, told = abs(distance) <= quantile, f"{distance:+.1f} s.e."
        if not why and not math.isfinite(distance):
            why = "no standard error: all repetitions are alike, or it is not known"
    return row._replace(
        ours=ours,
        standard_error=error,
        printed=printed,
        verdict=OPEN if why else AGREES if agrees else DIFFERS,
        why="; ".join(filter(None, (why or told, row.note))),
    )


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


def in_short(rows: Iterable[Row]) -> str:
    """Return one line about all of them."""
    found = [each.verdict for each in rows]
    agree, differ, left = map(found.count, (AGREES, DIFFERS, OPEN))
    return (
        f"Agree with the paper: {agree} of {len(found)}; differ: {differ}; "
        f"not compared: {left}."
    )


def printed_table(text: str) -> dict[str, tuple[float, ...]]:
    """Return the numbers of each line of a table, by the name at its beginning."""
    rows = (line.split() for line in text.strip().splitlines())
    return {name: tuple(map(float, numbers)) for name, *numbers in rows}
