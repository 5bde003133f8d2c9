"""The report by class: recall, precision and error of one model, with limits."""

from dataclasses import dataclass, field
from math import isnan
from typing import Any, Final

import pandas as pd

from dsel.cards import ShownRow
from dsel.old_names import OldName
from dsel.results.bounded_values import BoundedValues, report_frame
from dsel.results.caveats import (
    POOLED,
    Caveat,
    Effect,
    LimitsWithCaveats,
    upgrade_texts,
    warnings_first,
)
from dsel.results.records import older_name
from dsel.results.renderings import Renderable
from dsel.rounded_texts import (
    NONE,
    about_percent,
    confidence,
    floor_percent,
    in_percent,
)

LUCKY: Final = " (by which its fold was chosen, so these are likely lucky)"
"""Caveat about values of the model of one fold, since these rows chose the fold,
by the loss of the search."""
LIMITS_OF_0_2: Final = {
    "recall": "recall_at_least",
    "precision": "precision_at_least",
    "error": "error_at_most",
}
"""Fields of 0.2 with the limits of each quantity."""


@dataclass(frozen=True, repr=False, eq=False)
class CertifiedReport(LimitsWithCaveats, Renderable):
    """Recall and precision of every class, and the error of one model, with limits.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` all limits hold at once, together
    with those of the report of the other model.
    Assumes: what the certificate of the search lists; classes that were declared before
    the labels were inspected.
    Source: :func:`dsel.bounds.binomial_tail_inversion` for each fold, the functions of
    ``dsel.bounds.class_counts`` for the model of all rows, and the union bound over all
    numbers.

    Examples
    --------
    >>> made = CertifiedReport(
    ...     0.05, "model trained on 80% of the labels", ("fraud", "ok"), (80, 1920),
    ...     recall=BoundedValues((0.712, 0.97), (0.875, 0.992), (0.86, 0.99)),
    ...     precision=BoundedValues((0.749, 0.96), (0.824, 0.995), (0.9, 0.98)),
    ...     error=BoundedValues((0.031,), (0.0125,), (0.012,)), test_rows=(16, 384))
    >>> print(made)  # doctest: +NORMALIZE_WHITESPACE
    Certified report (95% confidence, all limits jointly), model trained on 80% of the
    labels
            recall  at least  precision  at least  rows
    fraud    87.5%     71.2%      82.4%     74.9%    16
    ok       99.2%     97.0%      99.5%     96.0%   384
    Error about 1.2%, at most 3.1%, of this model on rows that it had not seen (by
    which its fold was chosen, so these are likely lucky)
    Models of all folds, pooled (an estimate): error about 1.2%
            recall  precision   rows
    fraud    86.0%      90.0%     80
    ok       99.0%      98.0%  1,920

    A model trained on all labels has limits only, since no labeled row tests it:

    >>> from dataclasses import replace
    >>> untested = {name: replace(getattr(made, name), own=())
    ...     for name in ("recall", "precision", "error")}
    >>> print(replace(
    ...     made, model_text="model trained on all labels", test_rows=(), **untested))
    Certified report (95% confidence, all limits jointly), model trained on all labels
            recall at least  precision at least
    fraud             71.2%               74.9%
    ok                97.0%               96.0%
    Error at most 3.1%
    Models of all folds, pooled (an estimate): error about 1.2%
            recall  precision   rows
    fraud    86.0%      90.0%     80
    ok       99.0%      98.0%  1,920
    """

    delta: float
    """Probability that any of the limits fails."""
    model_text: str = field(metadata=older_name("model"))
    """Description of the model."""
    classes: tuple[Any, ...]
    rows: tuple[int, ...]
    """Labeled rows of each class."""
    recall: BoundedValues
    """Recall of each class, with lower limits."""
    precision: BoundedValues
    """Precision of each class, with lower limits; the value of this model is NaN for a
    class that it never predicts."""
    error: BoundedValues
    """The error, one number, with an upper limit."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the model's certificate; `reasons` are those that void limits."""
    test_rows: tuple[int, ...] = ()
    """Rows of each class that tested this model, which was not trained on them; empty
    for the model trained on all labels."""
    model, remarks = OldName("model_text"), OldName("reasons")

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2, whose values are pooled, with the current fields."""
        record = upgrade_texts(record, "remarks", Effect.VOIDS)
        for name, key in LIMITS_OF_0_2.items():
            if key in record:  # a record without limits stays, and is refused
                limits = record.pop(key), record.get(name, [])
                lists = [n if isinstance(n, list) else [n] for n in limits]
                record[name] = dict(zip(("limits", "pooled"), lists, strict=True))
        return record

    @property
    def recall_at_least(self) -> tuple[float, ...]:
        """Lower limits of this model's recall."""
        return self.recall.limits

    @property
    def precision_at_least(self) -> tuple[float, ...]:
        """Lower limits of this model's precision."""
        return self.precision.limits

    @property
    def error_at_most(self) -> float:
        """Upper limit of this model's error."""
        return self.error.limits[0]

    def to_dataframe(self) -> pd.DataFrame:
        """Return a frame of numbers in [0, 1], with one row for each class.

        Returns
        -------
        pandas.DataFrame
            ``recall``, ``precision`` and ``test_rows`` are those of this model, as
            printed; they are left out where no labeled row tests it.
            ``recall_at_least`` and ``precision_at_least`` are limits of this model.
            ``pooled_recall`` and ``pooled_precision`` are of the models of all folds,
            on all labeled ``rows``. ``certified`` is False where the limits are no
            guarantee.
        """
        quantities = {"recall": self.recall, "precision": self.precision}
        index = pd.Index(self.classes, name="class")
        return report_frame(
            index, quantities, "at_least", self.certified, self.test_rows, self.rows
        )

    @property
    def is_pooled(self) -> bool:
        """Whether there are estimates from the models of several folds."""
        return bool(self.error.pooled)

    def headline(self) -> str:
        """Return the line above the table."""
        level = f"{confidence(self.delta)}% confidence, all limits jointly"
        if self.reasons:
            return f"No guarantee, since {self.reasons[0]}, {self.model_text}"
        return f"Certified report ({level}), {self.model_text}"

    def shown_rows(self) -> list[ShownRow]:
        """Return the numbers of this model, then those of the models of all folds.

        Each part has a line, a table, and the lines below it.
        """
        shown_rows = [("", self.headline()), *self.table()]
        shown_rows += [("", line) for line in self.notes()]
        if self.is_pooled:
            shown_rows += [("", self.pooled_line()), *self.pooled_table()]
        return warnings_first(shown_rows, self.caveats)

    def table(self) -> list[ShownRow]:
        """Return heads, and the texts of each class, of the numbers of this model."""
        limits = self.recall_at_least, self.precision_at_least
        recalls, precisions = (list(map(floor_percent, column)) for column in limits)
        classes = list(map(str, self.classes))
        if not self.test_rows:
            limits_alone = zip(classes, recalls, precisions, strict=True)
            return [("", "recall at least", "precision at least"), *limits_alone]
        heads = ("", "recall", "at least", "precision", "at least", "rows")
        columns = (
            classes,
            map(_rate_text_or_none, self.recall.own),
            recalls,
            map(_rate_text_or_none, self.precision.own),
            precisions,
            (f"{n:,}" for n in self.test_rows),
        )
        return [heads, *zip(*columns, strict=True)]

    def notes(self) -> list[str]:
        """Return the lines below the table of this model."""
        limit = in_percent(self.error_at_most)
        # The limits hold for any fold that these rows choose; its own numbers are about
        # the fold that looked best, and are too good on average.
        lines = [f"Error at most {limit}"]
        if self.test_rows:
            lines = [
                f"Error about {about_percent(self.error.own[0])}, at most {limit}, of "
                f"this model on rows that it had not seen"
                f"{LUCKY if self.is_pooled else ''}"
            ]
        if any(map(isnan, (*self.recall.own, *self.precision.own))):
            lines.append(f"{NONE}: no such row, or the class is never predicted")
        if min(*self.recall_at_least, *self.precision_at_least) < 0.001:
            lines.append(
                "At least 0.0%: too few rows or predictions of the class were seen, or "
                "nearly all of them were wrong"
            )
        return lines + [f"No guarantee: {reason}" for reason in self.reasons[1:]]

    def pooled_line(self) -> str:
        """Return the line above the table of the models of all folds."""
        error = about_percent(self.error.pooled[0])
        return f"{POOLED[0].upper()}{POOLED[1:]} (an estimate): error about {error}"

    def pooled_table(self) -> list[ShownRow]:
        """Return heads, and the texts of each class, of the models of all folds."""
        columns = (
            map(str, self.classes),
            map(about_percent, self.recall.pooled),
            map(about_percent, self.precision.pooled),
            (f"{n:,}" for n in self.rows),
        )
        return [("", "recall", "precision", "rows"), *zip(*columns, strict=True)]


def _rate_text_or_none(rate: float) -> str:
    return NONE if isnan(rate) else about_percent(rate)
