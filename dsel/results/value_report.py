"""Error, or tolerance, of a model for each value of a column, with limits."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from dsel.cards import ShownRow
from dsel.losses.by_value import GAP
from dsel.results.bounded_values import (
    POOLED_NOTE,
    BoundedValues,
    TableReport,
    report_frame,
    report_table,
)
from dsel.results.caveats import Caveat
from dsel.results.records import older_name
from dsel.results.tolerances import amount_about, amount_at_most
from dsel.rounded_texts import NONE, about_percent, confidence, in_percent

ERROR_QUANTITY: Final = "error"
OFF_BY_QUANTITY: Final = "off_by"
SHARE_QUANTITY: Final = "share"
LARGEST: Final = sys.float_info.max


@dataclass(frozen=True, repr=False, eq=False)
class ReportByValue(TableReport):
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
    ...     BoundedValues((0.0631, 1.0), pooled=(0.041, 0.1)), (9000, 300), 12)
    >>> print(made)  # doctest: +NORMALIZE_WHITESPACE
    Error by site (95% confidence, all limits jointly), model trained on all labels
    site   at most  pooled error  rows
    A         6.4%          4.1%   812
    B       100.0%         10.0%    31
    Pooled: models of all folds, on all labeled rows (an estimate)
    At most 100.0%: too few rows with this value were seen, or nearly all of them
    were wrong
    12 pool rows have another value of site: nothing is known about such rows
    >>> made.to_dataframe().columns.tolist()
    ['error_at_most', 'pooled_error', 'rows', 'certified']

    Labeled rows test a model that was trained without them:

    >>> from dataclasses import replace
    >>> print(replace(made, model_text="model trained on 80% of the labels",
    ...     other_pool_rows=0, numbers=replace(made.numbers, own=(0.0375, 0.0)),
    ...     test_rows=(160, 6)))  # doctest: +NORMALIZE_WHITESPACE
    Error by site (95% confidence, all limits jointly), model trained on 80% of the
    labels
    site   error  at most  rows  pooled error  all rows
    A       3.8%     6.4%   160          4.1%       812
    B       0.0%   100.0%     6         10.0%        31
    Pooled: models of all folds, on all labeled rows (an estimate)
    At most 100.0%: too few rows with this value were seen, or nearly all of them
    were wrong
    """

    delta: float
    """Probability that any of the limits, or a bound of the search, fails."""
    model_text: str = field(metadata=older_name("model"))
    """Description of the model."""
    column: str
    values: tuple[Any, ...]
    """Values in labeled rows; None stands for a missing value."""
    rows: tuple[int, ...]
    """Labeled rows of each value."""
    numbers: BoundedValues
    """The `quantity` at each value, with upper limits. A limit without information is
    1, or infinite for a tolerance. NaN where no row was counted."""
    pool_rows: tuple[int, ...] = ()
    """Pool rows of each value; empty where none were counted."""
    other_pool_rows: int = 0
    """Pool rows with a value that no labeled row has."""
    quantity: str = ERROR_QUANTITY
    """`ERROR_QUANTITY` for a classifier. For a regressor `OFF_BY_QUANTITY`, a tolerance
    in units of the target, or `SHARE_QUANTITY`, the fraction of predictions that are
    off by more than a fixed distance."""
    what: str = "Error"
    """Name of the quantity, as printed."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the model's certificate; `reasons` are those that void limits."""
    test_rows: tuple[int, ...] = ()
    """Rows of each value that tested this model, which was not trained on them; empty
    if no labeled row did."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Upper limits of this model."""
        return self.numbers.limits

    def to_dataframe(self) -> pd.DataFrame:
        """Return a frame with a row for each value, which is its index.

        Returns
        -------
        pandas.DataFrame
            ``error`` is of this model, on its ``test_rows``; both are left out where no
            labeled row tests it. ``error_at_most`` is its limit. ``pooled_error`` is of
            the models of all folds, on all labeled ``rows``. All are in [0, 1]. For a
            regressor they are ``off_by``, ``off_by_at_most`` and ``pooled_off_by``, in
            units of the target, or ``share``, ``share_at_most`` and ``pooled_share``.
            ``certified`` is False where the limits are no guarantee.
        """
        index = pd.Index(self.values, name=self.column)
        quantities = {self.quantity: self.numbers}
        return report_frame(
            index, quantities, "at_most", self.certified, self.test_rows, self.rows
        )

    @property
    def is_tolerance(self) -> bool:
        """Whether limits are in units of the target."""
        return self.quantity == OFF_BY_QUANTITY

    @property
    def title(self) -> str:
        """Title of the table: the quantity and the column."""
        comma = "" if self.quantity == ERROR_QUANTITY else ","
        return f"{self.what}{comma} by {self.column}"

    def headline(self) -> str:
        """Return the title with the confidence of the limits, or why there are none."""
        if self.reasons:
            return f"No guarantee, since {self.reasons[0]}, {self.model_text}"
        level = f"{confidence(self.delta)}% confidence, all limits jointly"
        return f"{self.title} ({level}), {self.model_text}"

    def table(self) -> list[ShownRow]:
        """Return the heads of the table, and the texts of each value."""
        name = self.quantity.replace("_", " ")
        return report_table(
            [GAP if value is None else str(value) for value in self.values],
            (self.column, name, "at most", f"pooled {name}"),
            self.numbers,
            amount_about if self.is_tolerance else about_percent,
            amount_at_most if self.is_tolerance else in_percent,
            self.test_rows,
            self.rows,
        )

    def notes(self) -> Sequence[str]:
        """Return the lines below the table."""
        lines = [POOLED_NOTE] if self.numbers.pooled else []
        nothing, why = "At most 100.0%", "or nearly all of them were wrong"
        if self.is_tolerance:
            nothing, why = NONE, "or some have no finite prediction"
        # Limits are rounded up, so that from this one on they are printed as 100.0%.
        if max(self.limits) > (LARGEST if self.is_tolerance else 0.999):
            lines.append(f"{nothing}: too few rows with this value were seen, {why}")
        if n := self.other_pool_rows:
            lines.append(
                f"{n:,} pool row{'s have' if n > 1 else ' has'} another value of "
                f"{self.column}: nothing is known about such rows"
            )
        return [*lines, *(f"No guarantee: {reason}" for reason in self.reasons[1:])]
