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

from dsel.checks import letters_of, listing
from dsel.data.kinds import Kind
from dsel.data.schema import TableSchema
from dsel.rounded_texts import count_of

MOST_VALUES_SHOWN: Final = 3
"""Values of a column that are shown."""
_MOST_LETTERS: Final = 40
_MOST_COMPARED: Final = 1000
"""Unknown values of a block that are compared with those of labeled rows."""

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
    alike: str | None = None
    """Value of labeled rows that differs from one of these by blanks or case only."""

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
        hint = ""
        if self.with_zeros is not None:
            hint = (
                f"; labeled rows have {self.with_zeros!r}, so zeros at the beginning "
                f"may be lost here"
            )
        elif self.alike is not None:
            hint = f"; labeled rows have {self.alike[:_MOST_LETTERS]!r}"
        return (
            f"{', and '.join(parts)}: the models have learned nothing about them{hint}"
        )

    def merge(self, later: "UnknownValues") -> "UnknownValues":
        """Return the unknown values of these rows and of later ones."""
        values = dict.fromkeys((*self.values, *later.values))
        return UnknownValues(
            self.column,
            self.n_rows + later.n_rows,
            tuple(values)[:MOST_VALUES_SHOWN],
            self.n_gaps + later.n_gaps,
            self.with_zeros or later.with_zeros,
            self.alike or later.alike,
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
        n_rows, new = _unknown_values(X[name], values)
        n_gaps = 0 if None in values else int(X[name].isna().sum())
        if n_rows or n_gaps:
            texts = [value for value in values if new and value]
            stripped = {v.lstrip("0"): v for v in texts if v.startswith("0")}
            by_letters = {letters_of(value): value for value in texts}
            with_zeros = next(filter(None, map(stripped.get, new)), None)
            alike = next(filter(None, map(by_letters.get, map(letters_of, new))), None)
            shown = tuple(new[:MOST_VALUES_SHOWN])
            found[name] = UnknownValues(name, n_rows, shown, n_gaps, with_zeros, alike)
    return found


def describe_alike(unknown: Mapping[str, UnknownValues]) -> list[str]:
    """Return lines about unknown values that labeled rows have in another form."""
    return [each.line for each in unknown.values() if each.with_zeros or each.alike]


def _unknown_values(
    column: pd.Series, known: frozenset[str | None]
) -> tuple[int, list[str]]:
    """Return the number of rows with an unknown value, and the first such values."""
    if isinstance(column.dtype, pd.StringDtype):
        # Several times as fast as pandas where many values differ.
        texts = pa.array(column, from_pandas=True)  # in its own type: no copy
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        is_known = pc.is_in(texts, value_set=pa.array(list(known), texts.type))
        new = texts.filter(pc.invert(is_known)).drop_null()
        return len(new), new.unique().slice(0, _MOST_COMPARED).to_pylist()
    new = [each for each in column.dropna().unique() if str(each) not in known]
    if not new:
        return 0, []
    return int(column.isin(new).sum()), [*map(str, new[:_MOST_COMPARED])]


def merge_unknown_values(
    earlier: Mapping[str, UnknownValues], later: Mapping[str, UnknownValues]
) -> dict[str, UnknownValues]:
    """Return the unknown values of both parts of a table."""
    both = {
        name: each.merge(later[name]) if name in later else each
        for name, each in earlier.items()
    }
    return {**later, **both}
