"""Error, or tolerance, of a model for each value of a column, with limits."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import pandas as pd

from dsel.cards import Fact
from dsel.losses.by_value import GAP
from dsel.results.caveats import POOLED, Caveat, LimitsWithCaveats, warnings_first
from dsel.results.renderings import Renderable
from dsel.results.tolerances import amount_about, amount_at_most
from dsel.rounded_texts import about_percent, confidence, in_percent

ERROR: Final = "error"
OFF_BY: Final = "off_by"
SHARE: Final = "share"
LARGEST: Final = sys.float_info.max


@dataclass(frozen=True, eq=False)
class ReportByValue(LimitsWithCaveats, Renderable):
    """The error, or tolerance, of one model for each value of a column, with limits.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` all limits hold at once, together
    with those of the other model and with the bounds of the search.
    Assumes: what the certificate of the search lists; a column that is a function of a
    row's features, chosen before the labeled rows were inspected.
    Source: :class:`dsel.losses.by_value.LossByValue`.

    Examples
    --------
    >>> made = ReportByValue(
    ...     0.05, "model trained on all labels", "site", ("A", "B"), (812, 31),
    ...     (0.041, 0.1), (0.0631, 1.0), (9000, 300), 12)
    >>> print(made)
    Error by site (95% confidence, all limits jointly), model trained on all labels
    site   error  at most  rows
    A       4.1%     6.4%   812
    B      10.0%   100.0%    31
    Error: models of all folds, pooled; at most: this model
    At most 100.0%: too few rows with this value were seen to say anything
    12 pool rows have another value of site: nothing is known about such rows
    >>> float(made.to_dataframe().error_at_most["A"])
    0.0631
    """

    delta: float
    """Probability that any of the limits, or a bound of the search, fails."""
    model: str
    """Description of the model."""
    column: str
    values: tuple[Any, ...]
    """Values that labeled rows have; None stands for a missing one."""
    rows: tuple[int, ...]
    """Labeled rows of each value."""
    estimates: tuple[float, ...]
    """Estimates from the models of all folds; NaN where no row was counted."""
    limits: tuple[float, ...]
    """Upper limits; one without information is 1, an infinite one of a tolerance."""
    pool_rows: tuple[int, ...] = ()
    """Pool rows of each value; empty where none were counted."""
    other_pool_rows: int = 0
    """Pool rows with a value that no labeled row has."""
    quantity: str = ERROR
    """`ERROR` of a classifier; of a regressor `OFF_BY`, a tolerance in units of the
    target, or `SHARE` of the predictions that are off by more than a fixed one."""
    what: str = "Error"
    """Name of the quantity, as printed."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the model's certificate; `remarks` are those that void limits."""
    is_pooled: bool = True
    """Whether the estimates are those of the models of all folds; else of this one."""

    def to_dataframe(self) -> pd.DataFrame:
        """Return a frame with a row for each value, which is its index.

        ``error`` and ``error_at_most`` are in [0, 1], ``rows`` are labeled rows. For a
        regressor the columns are ``off_by`` and ``off_by_at_most``, in units of the
        target, or ``share`` and ``share_at_most``.
        """
        columns = (self.estimates, self.limits, self.rows)
        index = pd.Index(self.values, name=self.column)
        return pd.DataFrame(dict(zip(self.columns, columns, strict=True)), index=index)

    @property
    def columns(self) -> tuple[str, str, str]:
        """Names of the columns of `to_dataframe`."""
        return self.quantity, f"{self.quantity}_at_most", "rows"

    @property
    def is_tolerance(self) -> bool:
        """Whether limits are in units of the target."""
        return self.quantity == OFF_BY

    @property
    def title(self) -> str:
        """Title of the table: the quantity and the column."""
        comma = "" if self.quantity == ERROR else ","
        return f"{self.what}{comma} by {self.column}"

    def headline(self) -> str:
        """Return the line above the table."""
        if self.remarks:
            return f"No guarantee, since {self.remarks[0]}, {self.model}"
        level = f"{confidence(self.delta)}% confidence, all limits jointly"
        return f"{self.title} ({level}), {self.model}"

    @property
    def heads(self) -> Fact:
        """Heads of the table."""
        return self.column, self.quantity.replace("_", " "), "at most", "rows"

    def cells(self) -> list[Fact]:
        """Return the texts of each value: its name, then what `heads` name."""
        about: Callable[[float], str] = about_percent
        at_most: Callable[[float], str] = in_percent
        if self.is_tolerance:
            about, at_most = amount_about, amount_at_most
        columns = (
            (GAP if value is None else str(value) for value in self.values),
            ("" if isnan(rate) else about(rate) for rate in self.estimates),
            (at_most(limit) for limit in self.limits),
            (f"{n:,}" for n in self.rows),
        )
        return list(zip(*columns, strict=True))

    def notes(self) -> Sequence[str]:
        """Return the lines below the table."""
        name = self.heads[1]
        lines = [f"{name.capitalize()}: {POOLED}; at most: this model"] * self.is_pooled
        nothing = "At most inf" if self.is_tolerance else "At most 100.0%"
        if max(self.limits) > (LARGEST if self.is_tolerance else 0.999):
            lines.append(
                f"{nothing}: too few rows with this value were seen to say anything"
            )
        if n := self.other_pool_rows:
            lines.append(
                f"{n:,} pool row{'s have' if n > 1 else ' has'} another value of "
                f"{self.column}: nothing is known about such rows"
            )
        return [*lines, *(f"No guarantee: {why}" for why in self.remarks[1:])]

    def facts(self) -> list[Fact]:
        """Return the line above the table, the table, and the lines below it."""
        lines = [("", line) for line in self.notes()]
        facts = [("", self.headline()), self.heads, *self.cells(), *lines]
        return warnings_first(facts, self.caveats)
