"""Queried rows, on which both models of a search differ, and the bounds they give.

The record holds counts, predictions for the queried rows and, once they are known,
their labels, as class codes. Its bounds are computed from these alone.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, Final, NamedTuple

from dsel.arrays import ArrayLike
from dsel.bounds import mean_difference_limit, queried_all_rows, sign_test_limit
from dsel.bounds.queries import QUERY_SHARES
from dsel.results.queried_labels import (
    FINAL,
    LabelTerms,
    check_same_labels,
    check_usable,
    labels_by_row,
)
from dsel.results.records import NOT_KEPT, kept_as
from dsel.rounded_texts import count_of, in_percent

UNUSABLE: Final = -1
"""Code of a row whose label is missing or no class."""
FEWEST_ROWS: Final = 5
"""With fewer rows to label nobody is asked for labels."""
LEAST_GAIN: Final = 0.01
"""Nor where the bound is not expected to become smaller by this."""
EFFECT: Final = "counts as an error of the model trained on all labels"
"""What a row without a usable label does to the bound."""


class RightAlone(NamedTuple):
    """Numbers of labeled rows on which only one of two models is right."""

    n_one_fold: int
    """Only the deployed fold's model."""
    n_all_rows: int
    """Only the model trained on all rows."""


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
    one_fold_codes: tuple[int, ...] = field(default=(), metadata=kept_as("one_fold"))
    """Class codes that the deployed fold's model predicts for the queried rows."""
    all_rows_codes: tuple[int, ...] = field(default=(), metadata=kept_as("all_rows"))
    """Class codes that the model trained on all rows predicts for the queried rows."""
    labels: tuple[int, ...] | None = None
    """Codes of their labels, -1 for a missing one; None before they are known."""
    first_labels: dict[tuple[int, ...], tuple[int, ...]] = field(
        default_factory=dict, repr=False, compare=False, metadata=NOT_KEPT
    )
    """By rows, the labels that were given first, in this process, to this record or to
    one that was made from it: other labels are refused."""

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
        """The least `bound`: the model of all rows is right on each queried row."""
        return min(self.pool_only, self._bound_of(0, len(self.rows)))

    @property
    def would_help(self) -> bool:
        """Whether labels can make the bound smaller by as much as anyone would want."""
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
        n_rows, delta = len(self.rows), QUERY_SHARES.queries * self.delta
        # Of two classes one model is right on each of these rows. Of more both may be
        # wrong, and the sign test leaves such rows out.
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

    def with_labels(self, labels: ArrayLike, terms: LabelTerms) -> "Queries":
        """Return the record with labels; see `Outcome.certify_with_labels`."""
        if not self.rows:
            raise ValueError(self.why_no_rows)
        # Other labels would be a second bound at the same delta.
        if self.labels is not None:
            raise ValueError(
                "`labels` are known already, and a bound that they gave is final; "
                "search with another seed for new labels."
            )
        row_labels = labels_by_row(labels, self.rows)
        check_usable(row_labels, self.classes, terms)
        codes = {label: code for code, label in enumerate(self.classes)}
        coded = tuple(
            codes.get(label, UNUSABLE) if isinstance(label, Hashable) else UNUSABLE
            for label in row_labels
        )
        check_same_labels(self.first_labels.setdefault(self.rows, coded), coded)
        return replace(self, labels=coded)

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

    def lines(self) -> list[tuple[str, str]]:
        """Return names and texts for the print of a choice."""
        n = len(self.rows)
        if not n:
            return [
                ("Queries", "none: both models differ on no row that may be queried")
            ]
        if self.labels is None and not self.would_help:
            text = (
                f"labels of {count_of(n, 'pool row')} on which both models differ "
                f"would hardly help: with them the bound of the model trained on all "
                f"labels would be about {_upper(self.expected)}, and it is "
                f"{_upper(self.pool_only)} from the pool alone"
            )
            return [("Queries", text)]
        if self.labels is None:
            text = (
                f"{count_of(n, 'pool row')} on which both models differ "
                f"wait for labels. With them the bound of the model trained on all "
                f"labels would be {_upper(self.smallest)} to {_upper(self.pool_only)}, "
                f"which is the one from the pool alone, and about "
                f"{_upper(self.expected)} if each model is right on half of these rows"
            )
            return [("Queries", text)]
        right = self.right_alone
        lines = [
            (
                "Queries",
                f"of {count_of(n, 'row')} on which both models differ only the model "
                f"trained on all labels is right on {right.n_all_rows:,}, only the "
                f"other one on {right.n_one_fold:,}",
            ),
            (
                "Bounds",
                f"of the model trained on all labels: {_upper(self.pool_only)} from "
                f"the pool alone, {_upper(self.queried)} with these labels; both hold "
                f"at once",
            ),
        ]
        if self.n_unusable:
            text = (
                f"{count_of(self.n_unusable, 'queried row', 'has', 'have')} no label, "
                f"or one that is no class: each {EFFECT}"
            )
            lines.append(("Note", text))
        lines.append(("Note", FINAL))
        return lines


def _upper(rate: float) -> str:
    return in_percent(min(rate, 1.0))
