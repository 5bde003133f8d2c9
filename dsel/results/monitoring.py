"""Tests of a certificate on new rows, to which the deployed model is applied.

Each test has its own level: a promise that holds is refuted with at most this
probability. A promise that is not refuted is not proved.
"""

from dataclasses import dataclass, field
from math import nan
from typing import Final

from dsel.cards import ShownRow
from dsel.checks import listing
from dsel.results.renderings import Renderable, Shown
from dsel.rounded_texts import count_of

KEPT: Final = "kept"
REFUTED: Final = "refuted"
UNTESTED: Final = "cannot be tested"
IN_DOUBT: Final = "In doubt"
KEPT_MEANS: Final = (
    "kept means not refuted, which proves nothing: few rows refute little"
)
NAMES: Final = {KEPT: "Kept", REFUTED: "Refuted", UNTESTED: "Untested"}
"""Names of results at the beginning of a line; a kept promise may be `IN_DOUBT`."""


@dataclass(frozen=True, repr=False)
class PromiseTest(Shown):
    """One promise of a search, tested on new rows.

    Examples
    --------
    >>> test = PromiseTest(
    ...     "error of one_fold", "refuted", "Error at most 4.2%, model trained on 80% "
    ...     "of the labels",
    ...     "seen 10.3% on 300 rows with a label, so the true error is at least 6.6%")
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
    """Reason for the result: the observed numbers, or what prevents the test."""
    limit: float = nan
    """The promised bound; NaN for the two-sample test."""
    at_least: float = nan
    """Lower limit from the new rows, at the level; above `limit` it refutes."""
    n_found: int = 0
    """Counted errors, differences, or wrong rows of a recall or precision; 0 for other
    losses."""
    n_rows: int = 0
    """Rows that were counted, without those that equal labeled ones: all new rows, or
    those with a label; of these for a recall the rows of its class, and for a precision
    those that are predicted as it."""
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
    def is_in_doubt(self) -> bool:
        """Whether the observed value exceeds the promise without refuting it."""
        return self.result == KEPT and self.seen > self.limit

    def shown_rows(self) -> list[ShownRow]:
        """Return the result, and the statement with what was observed."""
        text = f"{self.promise}: {self.reason}"
        if not self.is_in_doubt:
            return [(NAMES[self.result], text)]
        above = "what was seen is above the limit, but chance may explain it"
        return [(IN_DOUBT, f"{text}; {above}: more rows decide")]


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
    Nothing is refuted by 300 new rows (a true statement is refuted by chance in at most
    1% of reports)
    Kept      The new rows are like the labeled rows: p = 0.4
    Caveat    kept means not refuted, which proves nothing: few rows refute little
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
    unseen: dict[str, int] = field(default_factory=dict)
    """Number of rows with values that no labeled row has, by column; others have 0."""

    @property
    def refuted(self) -> tuple[PromiseTest, ...]:
        """The tests that refute their promise."""
        return tuple(test for test in self.tests if test.is_refuted)

    @property
    def is_refuted(self) -> bool:
        """Whether any promise is refuted."""
        return bool(self.refuted)

    @property
    def labels_refute_nothing(self) -> bool:
        """Whether labels tested the bounds, and refuted none."""
        of_errors = [test for test in self.tests if test.name.startswith("error of ")]
        results = {test.result for test in of_errors}
        return KEPT in results and REFUTED not in results

    @property
    def n_tested(self) -> int:
        """Number of promises that could be tested."""
        return sum(test.result != UNTESTED for test in self.tests)

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        n_tested = self.n_tested
        n_refuted = len(self.refuted)
        rows = f"{self.n_rows:,} new rows"
        if not n_tested:
            return f"Nothing can be tested on {rows}"
        what = "Nothing is"
        if n_refuted:
            verb = "is" if n_refuted == 1 else "are"
            plural = "s" if n_tested != 1 else ""
            what = f"{n_refuted} of {n_tested} statement{plural} {verb}"
        chance = (
            f"a true statement is refuted by chance in at most {100 * self.level:g}% "
            f"of reports"
        )
        if n_tested > 1:  # the probabilities of all tests add up
            most = f"{100 * min(1.0, n_tested * self.level):g}%"
            chance += f", one or more of {n_tested} true ones in at most {most}"
        return f"{what} refuted by {rows} ({chance}){self._text_of_unseen_values()}"

    def _text_of_unseen_values(self) -> str:
        """Return how many rows have values that the models have learned nothing of.

        No test need refute a statement because of them, and no statement is about them.
        """
        if not self.unseen:
            return ""
        least = "at least " if len(self.unseen) > 1 else ""
        n_rows = count_of(max(self.unseen.values()), "row")
        columns = listing([*map(repr, self.unseen)], 8)
        what = "columns" if len(self.unseen) > 1 else "column"
        verb = "has" if n_rows == "1 row" else "have"
        return f"; {least}{n_rows} {verb} values never seen, in {what} {columns}"

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show."""
        shown_rows: list[ShownRow] = [("", self.headline())]
        tested = [test for test in self.tests if test.result != UNTESTED]
        shown_rows += [row for test in tested for row in test.shown_rows()]
        untested: dict[str, list[str]] = {}
        for test in self.tests:
            if test.result == UNTESTED:
                untested.setdefault(test.reason, []).append(test.promise)
        shown_rows += [
            (NAMES[UNTESTED], f"{'; '.join(promises)}: {reason}")
            for reason, promises in untested.items()
        ]
        if self.n_duplicates:
            text = (
                f"{self.n_duplicates:,} of {self.n_rows:,} new rows equal labeled rows "
                f"and may be the same records: errors and differences on them are not "
                f"counted"
            )
            shown_rows.append(("Caveat", text))
        shown_rows += [("Caveat", note) for note in self.notes]
        if any(test.result == KEPT for test in self.tests):
            shown_rows.append(("Caveat", KEPT_MEANS))
        return shown_rows
