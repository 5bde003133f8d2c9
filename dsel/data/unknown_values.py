"""Values of text columns that no labeled row has: models have not learned them.

An encoder that takes unknown values writes zeros for them, so that predictions change
in silence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dsel.checks import listing
from dsel.data.kinds import Kind
from dsel.data.schema import TableSchema
from dsel.rounded_texts import count_of

MOST_SHOWN: Final = 3
"""Values of a column that are shown."""
_MOST_LETTERS: Final = 40

KnownValues = Mapping[str, frozenset[str | None]]
"""By text column, the values that labeled rows have; None is a gap."""


@dataclass(frozen=True)
class UnknownValues:
    """Values of one column that no labeled row has.

    Examples
    --------
    >>> UnknownValues("town", 340, ("Ulm", "Bonn")).line
    "in 340 rows column 'town' has values that no labeled row has, such as 'Ulm', 'Bonn': the models have learned nothing about them"
    """  # noqa: E501

    column: str
    n_rows: int
    """Rows that have one of them."""
    values: tuple[str, ...]
    """The first ones."""
    n_gaps: int = 0
    """Rows that have no value, where every labeled row has one."""
    with_zeros: str | None = None
    """Value of labeled rows that is one of these with zeros before it, as codes are
    that were read as numbers and written again."""

    @property
    def line(self) -> str:
        """Description of the values in one line."""
        parts, what = [], f"column {self.column!r}"
        if self.n_rows:
            shown = listing([repr(value[:_MOST_LETTERS]) for value in self.values], 10)
            parts.append(
                f"in {count_of(self.n_rows, 'row')} {what} has values that no labeled "
                f"row has, such as {shown}"
            )
            what = "it"
        if self.n_gaps:
            parts.append(
                f"in {count_of(self.n_gaps, 'row')} {what} is empty, as in no labeled "
                f"row"
            )
        zeros = ""
        if self.with_zeros is not None:
            zeros = (
                f"; labeled rows have {self.with_zeros!r}, so zeros at the beginning "
                f"may be lost here"
            )
        return (
            f"{', and '.join(parts)}: the models have learned nothing about them{zeros}"
        )

    def merge(self, later: "UnknownValues") -> "UnknownValues":
        """Return the unknown values of these rows and of later ones."""
        values = dict.fromkeys((*self.values, *later.values))
        return UnknownValues(
            self.column,
            self.n_rows + later.n_rows,
            tuple(values)[:MOST_SHOWN],
            self.n_gaps + later.n_gaps,
            self.with_zeros or later.with_zeros,
        )


def known_values(schema: TableSchema | None) -> KnownValues:
    """Return the values of the text columns of labeled rows, where they are kept."""
    return {
        column.name: frozenset(
            column.categories
            if column.has_gaps is False
            else (*column.categories, None)
        )
        for column in (() if schema is None else schema.columns)
        if column.kind is Kind.TEXT and column.categories is not None
    }


def find_unknown_values(
    X: pd.DataFrame, known: KnownValues
) -> dict[str, UnknownValues]:
    """Return the values by column of a block that no labeled row has."""
    found = {}
    for name, values in known.items():
        n_rows, first = _unknown_values(X[name], values)
        n_gaps = 0 if None in values else int(X[name].isna().sum())
        if n_rows or n_gaps:
            of_stripped = {
                value.lstrip("0"): value
                for value in values
                if first and value and value.startswith("0")
            }
            with_zeros = next(filter(None, map(of_stripped.get, first)), None)
            found[name] = UnknownValues(name, n_rows, first, n_gaps, with_zeros)
    return found


def _unknown_values(
    column: pd.Series, known: frozenset[str | None]
) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows with an unknown value, and the first such values."""
    if isinstance(column.dtype, pd.StringDtype):
        # Several times as fast as pandas where many values differ.
        texts = pa.array(column, from_pandas=True)  # in its own type: no copy
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        is_known = pc.is_in(texts, value_set=pa.array(list(known), texts.type))
        new = texts.filter(pc.invert(is_known)).drop_null()
        return len(new), tuple(new.unique().slice(0, MOST_SHOWN).to_pylist())
    new = [each for each in column.dropna().unique() if str(each) not in known]
    if not new:
        return 0, ()
    return int(column.isin(new).sum()), tuple(map(str, new[:MOST_SHOWN]))


def merge_unknown_values(
    earlier: Mapping[str, UnknownValues], later: Mapping[str, UnknownValues]
) -> dict[str, UnknownValues]:
    """Return the unknown values of both parts of a table."""
    both = {
        name: each.merge(later[name]) if name in later else each
        for name, each in earlier.items()
    }
    return {**later, **both}
