"""Tests of a certificate on new rows, to which the deployed model is applied.

Each test has its own level: a promise that holds is refuted with at most this
probability. A promise that is not refuted is not proved.
"""

from dataclasses import dataclass
from math import nan
from typing import Final

from dsel.cards import Fact
from dsel.results.renderings import Renderable

KEPT: Final = "kept"
REFUTED: Final = "refuted"
UNTESTED: Final = "cannot be tested"
UNCLEAR: Final = "Unclear"
NAMES: Final = {KEPT: "Kept", REFUTED: "Refuted", UNTESTED: "Untested"}
"""Names of results at the beginning of a line; what is kept may be `UNCLEAR`."""


@dataclass(frozen=True)
class PromiseTest:
    """One promise of a search, tested on new rows.

    Examples
    --------
    >>> test = PromiseTest(
    ...     "error of one_fold", "refuted", "Error at most 4.2%, model trained on 80% "
    ...     "of the labels",
    ...     "seen 10.3% on 300 rows with a label, which proves that it is 6.6% or more")
    >>> test.is_refuted
    True
    """

    name: str
    """Short name: ``rows``, ``disagreement``, ``error of one_fold``."""
    result: str
    """``kept``, ``refuted`` or ``cannot be tested``."""
    promise: str
    """The tested statement."""
    reason: str
    """Why: the observed numbers, or what prevents the test."""
    limit: float = nan
    """The promised bound; NaN for the two-sample test."""
    at_least: float = nan
    """Lower limit from the new rows, at the level; above `limit` it refutes."""
    n_found: int = 0
    """Counted errors or differences."""
    n_rows: int = 0
    """Rows among which they were counted."""
    p_value: float = nan
    """p-value of the two-sample test."""
    columns: tuple[str, ...] = ()
    """Columns that a test of the column alone refutes; all these tests share the level.
    """
    seen: float = nan
    """Observed value, an estimate of what `limit` bounds; NaN if it is not known."""

    @property
    def is_refuted(self) -> bool:
        """Whether the promise is refuted."""
        return self.result == REFUTED

    @property
    def is_unclear(self) -> bool:
        """Whether more was seen than promised, but not enough to refute it."""
        return self.result == KEPT and self.seen > self.limit

    def fact(self) -> Fact:
        """Return the result, and the statement with what was observed."""
        name = UNCLEAR if self.is_unclear else NAMES[self.result]
        return name, f"{self.promise}: {self.reason}"


@dataclass(frozen=True, repr=False, eq=False)
class MonitorReport(Renderable):
    """Results of testing the promises of a search on new rows.

    Notes
    -----
    Guarantee: each test refutes a promise that holds with probability at most `level`,
    over the draw of the new rows; for all tests together, add the probabilities.
    Assumes: new rows that are independent draws from one population, and other records
    than the labeled ones unless they equal them.
    Source: the lower Clopper-Pearson limit of errors and differences, computed such
    that rows equal to labeled ones cannot raise it; a permutation test of the labeled
    rows against the new ones.

    Examples
    --------
    >>> test = PromiseTest(
    ...     "rows", "kept", "The new rows are like the labeled rows", "p = 0.4")
    >>> print(MonitorReport(0.01, 300, 0, (test,)))  # doctest: +NORMALIZE_WHITESPACE
    Nothing is refuted by 300 new rows (each test refutes a true statement in at most 1%
    of reports)
    Kept     The new rows are like the labeled rows: p = 0.4
    Note     kept means not refuted, which proves nothing: few rows refute little
    """

    level: float
    """Largest probability that a test refutes a promise that holds."""
    n_rows: int
    """Rows of the new table."""
    n_duplicates: int | None
    """New rows that equal a labeled row; None if the labeled rows are not known."""
    tests: tuple[PromiseTest, ...]
    notes: tuple[str, ...] = ()
    """Further notes, such as skipped tests."""

    @property
    def refuted(self) -> tuple[PromiseTest, ...]:
        """The tests that refute their promise."""
        return tuple(test for test in self.tests if test.is_refuted)

    @property
    def is_refuted(self) -> bool:
        """Whether any promise is refuted."""
        return bool(self.refuted)

    @property
    def n_tested(self) -> int:
        """Number of promises that could be tested."""
        return sum(test.result != UNTESTED for test in self.tests)

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        n_tested = self.n_tested
        n_refuted, rows = len(self.refuted), f"{self.n_rows:,} new rows"
        if not n_tested:
            return f"Nothing can be tested on {rows}"
        what = "Nothing is"
        if n_refuted:
            verb, plural = "is" if n_refuted == 1 else "are", "s" * (n_tested != 1)
            what = f"{n_refuted} of {n_tested} statement{plural} {verb}"
        level = f"{100 * self.level:g}%"
        return (
            f"{what} refuted by {rows} (each test refutes a true statement in at most "
            f"{level} of reports)"
        )

    def facts(self) -> list[Fact]:
        """Return names and texts, which all renderings show."""
        facts: list[Fact] = [("", self.headline())]
        facts += [test.fact() for test in self.tests if test.result != UNTESTED]
        untested: dict[str, list[str]] = {}
        for test in self.tests:
            if test.result == UNTESTED:
                untested.setdefault(test.reason, []).append(test.promise)
        facts += [
            (NAMES[UNTESTED], f"{'; '.join(promises)}: {reason}")
            for reason, promises in untested.items()
        ]
        if self.n_duplicates:
            text = (
                f"{self.n_duplicates:,} of {self.n_rows:,} new rows equal labeled rows "
                f"and may be the same records: errors and differences on them are not "
                f"counted"
            )
            facts.append(("Note", text))
        facts += [("Note", note) for note in self.notes]
        if any(test.is_unclear for test in self.tests):
            text = "what is unclear was seen above the bound, which chance may explain"
            facts.append(("Note", text))
        n = self.n_tested
        words = "kept means not refuted, which proves nothing: few rows refute little"
        if n > 1:  # the probabilities of all tests add up
            most = f"{100 * min(1.0, n * self.level):g}%"
            words += f"; all tests together refute one in at most {most} of reports"
        if n:
            facts.append(("Note", words))
        return facts
