"""The certified report: recall and precision of every class, each with its limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Self

import pandas as pd

from dsel.results.texts import about_percent, confidence, floor_percent, in_percent

COLUMNS = ("recall", "at least", "precision", "at least", "rows")
"""Heads of the table, after that of the classes."""
NOTHING: Final = (
    "At least 0.0 %: too few rows or answers of the class were seen to say anything"
)


@dataclass(frozen=True)
class CertifiedReport:
    """Recall and precision of every class and the error of one model, with limits.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` all limits hold at once, those of
    the report of the other deployment among them.
    Assumes: what the certificate of the search lists; classes that were named before
    the labels were seen.
    Source: :func:`dsel.bounds.binomial_tail_inversion` for each fold, the functions of
    ``dsel.bounds.by_class`` for the model of all rows, and the union bound over all
    numbers.

    Examples
    --------
    >>> made = CertifiedReport(
    ...     0.05, "the model of all labels", ("fraud", "ok"), (80, 1920), (0.86, 0.99),
    ...     (0.712, 0.97), (0.9, 0.98), (0.749, 0.96), 0.012, 0.031)
    >>> print(made)
    Certified report (95 % sure, all numbers at once): the model of all labels
            recall  at least  precision  at least   rows
    fraud   86.0 %    71.2 %     90.0 %    74.9 %     80
    ok      99.0 %    97.0 %     98.0 %    96.0 %  1,920
    Error about 1.2 %, at most 3.1 %
    """

    delta: float
    """Probability with which any of the numbers may fail."""
    model: str
    """The model that it is about, in words."""
    classes: tuple[Any, ...]
    rows: tuple[int, ...]
    """Labeled rows of each class."""
    recall: tuple[float, ...]
    """Estimates, of the models of all folds."""
    recall_at_least: tuple[float, ...]
    precision: tuple[float, ...]
    """Estimates, of the models of all folds."""
    precision_at_least: tuple[float, ...]
    error: float
    """Estimate, of the models of all folds."""
    error_at_most: float
    remarks: tuple[str, ...] = ()
    """Why limits are no guarantee; empty where they are one."""

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """Return the report whose fields were written as JSON."""
        found: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in told.items()
        }
        return cls(**found)

    def to_dataframe(self) -> pd.DataFrame:
        """Return a frame of numbers in [0, 1], a row for each class."""
        return pd.DataFrame(
            {
                "recall": self.recall,
                "recall_at_least": self.recall_at_least,
                "precision": self.precision,
                "precision_at_least": self.precision_at_least,
                "rows": self.rows,
            },
            index=pd.Index(self.classes, name="class"),
        )

    def __str__(self) -> str:
        table = [("", *COLUMNS), *self.cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [self.head()]
        for name, *cells in table:
            padded = (c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0] + 1), *padded]))
        return "\n".join([*lines, *self.feet()])

    def _repr_html_(self) -> str:
        """Return the table as HTML without colours, for light and dark ground."""
        head = "".join(f"<th>{name}</th>" for name in ("", *COLUMNS))
        body = "".join(
            f"<tr><th>{escape(name)}</th><td>{'</td><td>'.join(cells)}</td></tr>\n"
            for name, *cells in self.cells()
        )
        foot = "<br>".join(map(escape, self.feet()))
        return (
            f"<div><strong>{escape(self.head())}</strong><table>\n<tr>{head}</tr>\n"
            f"{body}</table>{foot}</div>"
        )

    def head(self) -> str:
        """Return the line above the table."""
        if self.remarks:
            return f"No guarantee, since {self.remarks[0]}: {self.model}"
        sure = f"{confidence(self.delta)} % sure, all numbers at once"
        return f"Certified report ({sure}): {self.model}"

    def feet(self) -> list[str]:
        """Return the lines below the table."""
        seen, limit = about_percent(self.error), in_percent(self.error_at_most)
        lines = [f"Error about {seen}, at most {limit}"]
        if min(*self.recall_at_least, *self.precision_at_least) < 0.001:
            lines.append(NOTHING)
        return lines + [f"No guarantee: {why}" for why in self.remarks[1:]]

    def cells(self) -> Sequence[tuple[str, ...]]:
        """Return the texts of each class: its name, then what `COLUMNS` name."""
        columns = (
            self.recall, self.recall_at_least, self.precision, self.precision_at_least
        )  # fmt: skip
        texts = (about_percent, floor_percent) * 2
        return [
            (
                str(label),
                *(text(c[place]) for text, c in zip(texts, columns, strict=True)),
                f"{self.rows[place]:,}",
            )
            for place, label in enumerate(self.classes)
        ]
