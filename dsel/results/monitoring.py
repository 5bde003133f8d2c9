"""Whether a certificate is still about the rows that a model meets now.

Each test is a statement of its own at one level: a promise that holds is refuted with
at most this probability. A promise that is not refuted is not proved.
"""

from dataclasses import dataclass
from math import nan
from typing import Final

from dsel.cards import Fact
from dsel.results.told import Told

KEPT: Final = "kept"
REFUTED: Final = "refuted"
UNTESTED: Final = "cannot be tested"
MEANS: Final = (
    "Each test refutes a promise that holds with a probability of at most {level}. "
    "What is kept is not proved: few rows refute little."
)
"""What is said below the tests."""


@dataclass(frozen=True)
class PromiseTest:
    """One promise of a search, tested on new rows.

    Examples
    --------
    >>> test = PromiseTest(
    ...     "error of one_fold", "refuted", "Error at most 4.2%, model trained on 80% "
    ...     "of the labels", "seen 10.3%, at least 6.6%, on 300 rows with a label")
    >>> test.is_refuted, test.line
    (True, 'Error at most 4.2%, model trained on 80% of the labels: refuted (seen 10.3%, at least 6.6%, on 300 rows with a label)')
    """  # noqa: E501

    name: str
    """Short and always the same: ``rows``, ``disagreement``, ``error of one_fold``."""
    result: str
    """``kept``, ``refuted`` or ``cannot be tested``."""
    promise: str
    """What is tested, as a statement."""
    evidence: str
    """What was seen, or why it cannot be tested."""
    limit: float = nan
    """The bound that was promised; NaN of the two-sample test."""
    at_least: float = nan
    """Lower limit of the new rows at the level; refuted where it exceeds `limit`."""
    n_found: int = 0
    """Errors or differences that were counted on."""
    n_rows: int = 0
    """The rows behind them."""
    p_value: float = nan
    """Of the two-sample test."""
    columns: tuple[str, ...] = ()
    """Columns that differ most, of the two-sample test, the most telling one first."""

    @property
    def is_refuted(self) -> bool:
        """Whether the promise is refuted."""
        return self.result == REFUTED

    @property
    def line(self) -> str:
        """The test in one line."""
        if self.result == UNTESTED:
            return f"{self.promise}: {UNTESTED} because {self.evidence}"
        return f"{self.promise}: {self.result} ({self.evidence})"


@dataclass(frozen=True, repr=False, eq=False)
class MonitorReport(Told):
    """What new rows say about the promises of a search.

    Notes
    -----
    Guarantee: each test refutes a promise that holds with probability at most `level`,
    over the draw of the new rows; that of all together is at most their sum.
    Assumes: new rows that are independent draws from one population, other records than
    the labeled ones where they do not equal them.
    Source: the lower Clopper-Pearson limit of errors and differences, read such that
    rows equal to labeled ones cannot raise it; a permutation test of the labeled rows
    against the new ones.

    Examples
    --------
    >>> test = PromiseTest(
    ...     "rows", "kept", "The new rows are like the labeled rows", "p = 0.4")
    >>> print(MonitorReport(0.01, 300, 0, (test,)))
    Nothing is refuted by 300 new rows (each test at level 1%)
    The new rows are like the labeled rows: kept (p = 0.4)
    Each test refutes a promise that holds with a probability of at most 1%. What is kept is not proved: few rows refute little.
    """  # noqa: E501

    level: float
    """Probability with which a test refutes what holds, at most."""
    n_rows: int
    """Rows of the new table."""
    n_duplicates: int | None
    """New rows that equal a labeled row; None where the labeled rows are not known."""
    tests: tuple[PromiseTest, ...]
    notes: tuple[str, ...] = ()
    """What else a reader should know."""

    @property
    def refuted(self) -> tuple[PromiseTest, ...]:
        """The tests whose promise is refuted."""
        return tuple(test for test in self.tests if test.is_refuted)

    @property
    def is_refuted(self) -> bool:
        """Whether any promise is refuted."""
        return bool(self.refuted)

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        n_tested = sum(test.result != UNTESTED for test in self.tests)
        n_refuted, rows = len(self.refuted), f"{self.n_rows:,} new rows"
        if not n_tested:
            return f"Nothing can be tested on {rows}"
        what = "Nothing is"
        if n_refuted:
            verb, plural = "is" if n_refuted == 1 else "are", "s" * (n_tested != 1)
            what = f"{n_refuted} of {n_tested} promise{plural} {verb}"
        return f"{what} refuted by {rows} (each test at level {self._level})"

    @property
    def _level(self) -> str:
        return f"{100 * self.level:g}%"

    def facts(self) -> list[Fact]:
        """Return names and texts, which all renderings show."""
        lines = [self.headline(), *(test.line for test in self.tests)]
        facts: list[Fact] = [("", line) for line in lines]
        if self.n_duplicates:
            text = (
                f"{self.n_duplicates:,} of {self.n_rows:,} new rows equal labeled rows "
                f"and may be the same records: errors and differences on them are not "
                f"counted"
            )
            facts.append(("Note", text))
        facts += [("Note", note) for note in self.notes]
        if any(test.result != UNTESTED for test in self.tests):
            facts.append(("", MEANS.format(level=self._level)))
        return facts
