"""Queried rows, on which both models of a search differ, and the bounds they give.

The record holds counts, predictions for the queried rows and, once they are known,
their labels, as class codes. Its bounds are computed from these alone.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, Final, NamedTuple

from dsel.arrays import ArrayLike
from dsel.bounds import mean_difference_limit, queried_all_rows, sign_test_limit
from dsel.bounds.queried_differences import QUERY_SHARES
from dsel.cards import ShownRow
from dsel.old_names import OldName
from dsel.results.queried_labels import (
    FINAL,
    LabelRules,
    add_labels,
    check_usable,
    labels_by_row,
    note_on_corrections,
    notes_on_neither,
)
from dsel.results.records import NOT_KEPT, older_name
from dsel.rounded_texts import about_percent, count_of, in_percent

UNUSABLE: Final = -1
"""Code of a row whose label is missing or no class."""
FEWEST_ROWS: Final = 5
"""With fewer rows to label no labels are requested."""
LEAST_GAIN: Final = 0.01
"""No queries are advised where they are not expected to reduce the bound; other numbers
of folds are not advised either."""
OF_ALL: Final = "model trained on all labels"
"""The model whose bound queried labels make smaller."""
NO_QUERIES: Final = (
    "no rows are to be labeled: the search planned no queries, or has no model of all "
    "labels; search with n_queries=50 and a pool, and an `out` of its own."
)
LABELS: Final = "Labels"
"""Name of the row about the labels of queried rows."""
EFFECT: Final = "counts as an error of the model trained on all labels"
"""The effect of a row without a usable label on the bound."""


@dataclass(frozen=True)
class QueryForecast:
    """Expected bounds of the same search if rows are queried; no guarantee.

    Examples
    --------
    >>> forecast = QueryForecast(50, 0.310, 0.332)
    >>> forecast.would_help(0.371), forecast.would_help(0.333)
    (True, False)
    """

    n_rows: int
    """Rows to label."""
    one_fold_bound: float = field(metadata=older_name("first"))
    """Bound of the model of a fold, which then has a smaller part of delta."""
    all_rows_bound: float = field(metadata=older_name("second"))
    """Bound of the model trained on all labels, if either model alone is right on half
    of the rows."""
    first, second = OldName("one_fold_bound"), OldName("all_rows_bound")

    def would_help(self, all_rows_bound: float) -> bool:
        """Return whether the bound of all labels becomes smaller by a percentage point.

        `all_rows_bound` is that bound without queries.
        """
        gain = min(all_rows_bound, 1.0) - min(self.all_rows_bound, 1.0)
        return self.n_rows >= FEWEST_ROWS and gain >= LEAST_GAIN

    def advice(self, one_fold_bound: float, all_rows_bound: float) -> str:
        """Return what queries would change, of these two bounds."""
        return (
            f"n_queries={self.n_rows} and labels of {self.n_rows} pool rows give the "
            f"{OF_ALL} a bound of about {_about(self.all_rows_bound)} in place of "
            f"{_upper(all_rows_bound)}, the other one {_upper(self.one_fold_bound)} in "
            f"place of {_upper(one_fold_bound)}"
        )


class RightAlone(NamedTuple):
    """Numbers of labeled rows on which only one of two models is right."""

    n_one_fold: int
    """Rows on which only the model of the deployed fold is right."""
    n_all_rows: int
    """Rows on which only the model trained on all rows is right."""


@dataclass(frozen=True)
class Queries:
    """Queried rows of a search, and both bounds of the model trained on all rows.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta``, the error of the model trained
    on all rows is at most ``pool_only`` and, once labels are known, at most
    ``queried``: both hold at once, so that the smaller one is a bound, too.
    Assumes: what the certificate of the model lists.
    Source: :func:`dsel.bounds.nested_all_rows`, :func:`dsel.bounds.queried_all_rows`.
    """

    delta: float
    """Probability that any bound of the search fails."""
    n_planned: int
    """Planned queries; fewer rows are queried if the models differ on fewer."""
    classes: tuple[Any, ...]
    """All classes, by code."""
    fold_limit: float
    """Upper limit of the error of the deployed fold's model."""
    pool_only: float
    """Bound of the model trained on all rows, without queried labels, not clipped."""
    n_unlabeled: int
    """Pool rows."""
    n_differ: int
    """Pool rows on which the models differ, without duplicates of labeled rows."""
    n_duplicates: int
    """Pool rows that equal labeled rows."""
    n_duplicates_differ: int
    """Duplicates on which the models differ; they are never queried."""
    rows: tuple[int, ...] = ()
    """Numbers of the queried pool rows, ascending."""
    one_fold_codes: tuple[int, ...] = field(default=(), metadata=older_name("one_fold"))
    """Class codes that the deployed fold's model predicts for the queried rows."""
    all_rows_codes: tuple[int, ...] = field(default=(), metadata=older_name("all_rows"))
    """Class codes that the model trained on all rows predicts for the queried rows."""
    fold_limit_without: float = nan
    """The value of `fold_limit` if no queries were planned; NaN in a record of an older
    version."""
    labels: tuple[int, ...] | None = None
    """Codes of their labels, -1 for a missing one; None before they are known."""
    n_corrected: int = 0
    """Queried rows whose labels took the place of others."""
    passed_labels: dict[tuple[int, ...], list[tuple[int, ...]]] = field(
        default_factory=dict, repr=False, compare=False, metadata=NOT_KEPT
    )
    """All labels that were passed, in this process, to this record or to one that was
    made from it, by rows: others are refused, unless they correct these."""

    @property
    def queried(self) -> float:
        """Bound from the queried labels; NaN before they are known."""
        if self.labels is None:
            return nan
        right = self.right_alone
        # A row without a usable label counts as if the model of all rows erred there.
        return self._bound_of(right.n_one_fold + self.n_unusable, right.n_all_rows)

    @property
    def bound(self) -> float:
        """The smaller of the known bounds, not clipped at 1."""
        return min(self.pool_only, self.queried)  # in this order NaN is never taken

    @property
    def expected(self) -> float:
        """Estimate of `bound` if either model alone is right on half of the rows."""
        n_only_f_right = len(self.rows) // 2
        n_only_g_right = len(self.rows) - n_only_f_right
        return min(self.pool_only, self._bound_of(n_only_g_right, n_only_f_right))

    @property
    def smallest(self) -> float:
        """The smallest `bound`: the model of all rows is right on each queried row."""
        return min(self.pool_only, self._bound_of(0, len(self.rows)))

    @property
    def would_help(self) -> bool:
        """Whether labels can make the bound smaller by a useful amount."""
        gain = min(self.pool_only, 1.0) - min(self.expected, 1.0)
        return len(self.rows) >= FEWEST_ROWS and gain >= LEAST_GAIN

    @property
    def right_alone(self) -> RightAlone:
        """Numbers of queried rows on which only one model is right."""
        codes = self.one_fold_codes, self.all_rows_codes, self.labels or ()
        pairs = [
            (one_fold_code == label, all_rows_code == label)
            for one_fold_code, all_rows_code, label in zip(*codes, strict=False)
            if label != UNUSABLE
        ]
        return RightAlone(pairs.count((True, False)), pairs.count((False, True)))

    @property
    def n_unusable(self) -> int:
        """Number of queried rows whose label is missing or no class."""
        return (self.labels or ()).count(UNUSABLE)

    def _bound_of(self, n_only_g_right: int, n_only_f_right: int) -> float:
        """Return the bound of the model of all rows for these counts of the labels."""
        n_rows = len(self.rows)
        delta = QUERY_SHARES.queries * self.delta
        # If there are two classes, one model is right on each of these rows. If there
        # are more, both may be wrong, and the sign test leaves such rows out.
        if len(self.classes) > 2:
            mean = sign_test_limit(n_only_g_right, n_only_f_right, n_rows, delta=delta)
        else:
            mean = mean_difference_limit(n_only_f_right, n_rows, delta=delta)
        bound = queried_all_rows(
            self.fold_limit,
            mean,
            self.n_differ,
            self.n_unlabeled,
            delta=self.delta,
            n_duplicates=self.n_duplicates,
            n_duplicates_differ=self.n_duplicates_differ,
        )
        return float(bound)

    def with_labels(self, labels: ArrayLike, rules: LabelRules) -> "Queries":
        """Return the record with labels; see `Outcome.certify_with_labels`."""
        if not self.rows:
            raise ValueError(self.why_no_rows)
        # Other labels would be a second bound at the same delta.
        if self.labels is not None:
            raise ValueError(
                "`labels` are known already, and a bound that they gave is final; if "
                "they were wrong, pass the right ones to the result without labels, "
                "with corrected=True; else search with another seed for new labels."
            )
        row_labels = labels_by_row(labels, self.rows)
        check_usable(row_labels, self.classes, rules)
        codes = {label: code for code, label in enumerate(self.classes)}
        coded = tuple(
            codes.get(label, UNUSABLE) if isinstance(label, Hashable) else UNUSABLE
            for label in row_labels
        )
        passed = self.passed_labels.setdefault(self.rows, [])
        n_corrected = add_labels(passed, coded, rules)
        return replace(self, labels=coded, n_corrected=n_corrected)

    @property
    def why_no_rows(self) -> str:
        """Reason why there are no rows to label."""
        if self.rows:
            return (
                "the queried rows cannot be read any more; their labels can be given."
            )
        return (
            "there are no rows to be labeled: both models differ on no pool row that "
            "may be queried, so no label can make the bound smaller."
        )

    def lines(self, *, are_bounds: bool = True) -> list[ShownRow]:
        """Return names and texts for the print of a choice.

        Parameters
        ----------
        are_bounds
            Whether the numbers are certified, as those of the model of all rows.

        Returns
        -------
        list of tuple of str
            Name and text of each line.
        """
        n = len(self.rows)
        if not n:
            text = "no rows to label: both models differ on no row that may be queried"
            return [(LABELS, text)]
        if self.labels is None:
            return [(LABELS, f"{self._offer()}{self._cost()}")]
        right = self.right_alone
        what = "bound" if are_bounds else "number"
        end = "both hold at once" if are_bounds else "neither is a bound"
        lines: list[ShownRow] = [
            (
                LABELS,
                f"of {count_of(n, 'row')} on which both models differ only the "
                f"{OF_ALL} is right on {right.n_all_rows:,}, only the other one on "
                f"{right.n_one_fold:,}: its {what} is {_upper(self.queried)} with "
                f"these labels, {_upper(self.pool_only)} from the pool alone, "
                f"and {end}",
            ),
        ]
        if self.n_unusable:
            text = (
                f"{count_of(self.n_unusable, 'queried row', 'has', 'have')} no label, "
                f"or one that is no class: each {EFFECT}"
            )
            lines.append(("Caveat", text))
        usable = [None if code == UNUSABLE else code for code in self.labels]
        codes = self.one_fold_codes, self.all_rows_codes
        notes = [
            *notes_on_neither(usable, *codes),
            *note_on_corrections(self.n_corrected),
            FINAL,
        ]
        return lines + [("Caveat", note) for note in notes]

    def _offer(self) -> str:
        """Return what labels of the queried rows would give."""
        n = len(self.rows)
        rows = f"{count_of(n, 'pool row')} on which both models differ"
        if n < self.n_planned:
            rows += f" (there are no more: {self.n_planned:,} were planned)"
        if not self.would_help:
            return (
                f"labels of {rows} would hardly help: with them the bound of the "
                f"{OF_ALL} would be about {self._expected_text()}, and it is "
                f"{_upper(self.pool_only)} from the pool alone"
            )
        return (
            f"with labels of {rows} the bound of the {OF_ALL} will be about "
            f"{self._expected_text()} if each model is right on half of them, and "
            f"{_upper(self.smallest)} at best"
        )

    def _expected_text(self) -> str:
        """Return the expected bound as text, rounded to the nearest, as no limit.

        Where it is the bound from the pool alone, it is rounded up like this one.
        """
        is_equal = self.expected == self.pool_only
        return _upper(self.expected) if is_equal else _about(self.expected)

    def _cost(self) -> str:
        """Return by how much queries raise the first bound; "" if they do not."""
        before, now = _upper(self.fold_limit_without), _upper(self.fold_limit)
        if not isfinite(self.fold_limit_without) or before == now:
            return ""
        return (
            f". These queries raised the other bound from {before} to {now}, since "
            f"all bounds of a run share its confidence"
        )


def _about(rate: float) -> str:
    return about_percent(min(rate, 1.0))


def _upper(rate: float) -> str:
    return in_percent(min(rate, 1.0))
