"""Numbers of a report: values and limits of one model, and pooled values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import pandas as pd

from dsel.cards import ShownRow
from dsel.results.caveats import (
    FOLD_MODELS,
    POOLED,
    LimitsWithCaveats,
    warnings_first,
)
from dsel.results.renderings import Renderable

POOLED_NOTE: Final = f"Pooled: {FOLD_MODELS}, on all labeled rows (an estimate)"
"""Line below a table with pooled numbers."""


@dataclass(frozen=True)
class BoundedValues:
    """One quantity of one model, such as its recall, for each class or value.

    Examples
    --------
    >>> recall = BoundedValues(limits=(0.71,), own=(0.87,), pooled=(0.86,))
    >>> report_frame(["fraud"], {"recall": recall}, "at_least", True, [16], [80])
           recall  recall_at_least  test_rows  pooled_recall  rows  certified
    fraud    0.87             0.71         16           0.86    80       True
    """

    limits: tuple[float, ...]
    """Limits of this model's values."""
    own: tuple[float, ...] = ()
    """Values of this model on rows outside of its training rows: NaN without such a
    row, and empty if no labeled row tests the model, which was then trained on all
    labels."""
    pooled: tuple[float, ...] = ()
    """Values of the models of all folds on all labeled rows. They are estimates, and
    not values of the model that the limits are about. Empty if there is only one
    model."""

    @property
    def estimates(self) -> tuple[float, ...]:
        """Values of this model, or the pooled ones if no labeled row tests it."""
        return self.own or self.pooled

    @property
    def whose(self) -> str:
        """The models of which `estimates` are the values, in words."""
        return "this model" if self.own else POOLED


def report_frame(
    index: Sequence[Any] | pd.Index,
    quantities: Mapping[str, BoundedValues],
    limit: str,
    is_certified: bool,
    test_rows: Sequence[int] = (),
    n_rows: Sequence[int] = (),
) -> pd.DataFrame:
    """Return a frame of a report: values and limits of the model, then pooled values.

    `limit` ends the names of limits: ``at_least`` or ``at_most``. Values of the model
    are about `test_rows`, pooled ones about `n_rows`; both may be unknown. The last
    column, ``certified``, says whether the limits are a guarantee: a frame is read, or
    stored, without the line above the table.
    """
    columns: dict[str, Sequence[Any]] = {}
    for name, values in quantities.items():
        columns |= {name: values.own} if values.own else {}
        columns[f"{name}_{limit}"] = values.limits
    pooled = {f"pooled_{n}": v.pooled for n, v in quantities.items() if v.pooled}
    # Pooled values come last: they are about other models than the limits. Without them
    # there is one model, which all labeled rows test.
    columns |= {"test_rows": test_rows} if pooled and test_rows else {}
    columns |= pooled | ({"rows": n_rows} if n_rows else {})
    return pd.DataFrame(columns, index=index).assign(certified=is_certified)


def report_table(
    names: Sequence[str],
    heads: tuple[str, str, str, str],
    values: BoundedValues,
    about: Callable[[float], str],
    at_most: Callable[[float], str],
    test_rows: Sequence[int] = (),
    n_rows: Sequence[int] = (),
) -> list[ShownRow]:
    """Return heads, and the texts of each class or value, of a table of one quantity.

    `heads` are those of names, own values, limits and pooled values; columns of missing
    numbers are left out, like those of rows.
    """

    def texts(rates: Sequence[float]) -> list[str]:
        return ["" if isnan(rate) else about(rate) for rate in rates]

    columns = [(heads[0], *names)]
    if values.own:
        columns.append((heads[1], *texts(values.own)))
    columns.append((heads[2], *map(at_most, values.limits)))
    if test_rows:
        columns.append(("rows", *(f"{n:,}" for n in test_rows)))
    if values.pooled:
        columns.append((heads[3], *texts(values.pooled)))
    if values.pooled and n_rows:
        head = "all rows" if values.own else "rows"
        columns.append((head, *(f"{n:,}" for n in n_rows)))
    return list(zip(*columns, strict=True))


class TableReport(LimitsWithCaveats, Renderable):
    """A report of one quantity, which is a table between lines."""

    def headline(self) -> str:
        """Return the line above the table."""
        raise NotImplementedError

    def table(self) -> list[ShownRow]:
        """Return the heads of the table, and its rows of texts."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """Return the lines below the table."""
        raise NotImplementedError

    def shown_rows(self) -> list[ShownRow]:
        """Return the line above the table, the table, and the lines below it."""
        notes = [("", line) for line in self.notes()]
        shown_rows = [("", self.headline()), *self.table(), *notes]
        return warnings_first(shown_rows, self.caveats)
