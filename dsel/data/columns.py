"""Names and kinds of columns, and what is wrong where a pool has others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

NUMBER: Final = "number"
TRUTH: Final = "truth value"
TEXT: Final = "text"
NOTHING: Final = "nothing but missing values"
_INFERRED: Final = {
    "string": TEXT, "empty": NOTHING, "date": "date", "boolean": TRUTH,
    "decimal": NUMBER, "integer": NUMBER, "floating": NUMBER, "time": "time of day",
    "mixed-integer-float": NUMBER,
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """Name and type of a column."""

    name: str
    kind: str
    """What its values are: number, text, date, time in a zone. Categories have the
    kind of their values."""
    dtype: str
    """Type as its library writes it, categories included."""
    is_empty: bool = False
    """Whether there are rows and every value is missing."""

    @property
    def is_single(self) -> bool:
        """Whether it holds floats of four bytes."""
        return self.dtype.lower() in ("float32", "float")


def columns_of(frame: Any) -> tuple[Column, ...]:
    """Return names and types of a frame's columns."""
    wrapped = nw.from_native(frame, eager_only=True)
    return tuple(_column(name, wrapped[name]) for name in wrapped.columns)


def _column(name: str, column: Any) -> Column:
    dtype, found = column.dtype, column.to_native()
    text = str(found.dtype if hasattr(found, "dtype") else found.type)
    is_empty = len(column) > 0 and column.null_count() == len(column)
    if isinstance(dtype, nw.Categorical | nw.Enum):
        values = column.cat.get_categories()
        # Types of polars and Arrow do not say which there are, or write them out.
        is_declared = isinstance(getattr(found, "dtype", None), pd.CategoricalDtype)
        listed = values.to_list() if is_declared else ""
        return Column(name, _kind(values), f"{text} {listed}".strip(), is_empty)
    return Column(name, _kind(column), text, is_empty)


def _kind(column: Any) -> str:
    dtype = column.dtype
    found = column.to_native()
    if getattr(found, "dtype", None) == np.dtype(object):
        inferred = str(pd.api.types.infer_dtype(found, skipna=True))
        return _INFERRED.get(inferred, inferred)
    if isinstance(dtype, nw.Datetime):
        return f"time in zone {dtype.time_zone}" if dtype.time_zone else "time"
    named = {
        nw.Boolean: TRUTH, nw.String: TEXT, nw.Date: "date",
        nw.Duration: "duration", nw.Time: "time of day", nw.Unknown: NOTHING,
    }  # fmt: skip
    return NUMBER if dtype.is_numeric() else named.get(type(dtype), str(dtype))


def check_same_kinds(
    where: str, found: Sequence[Column], wanted: Sequence[Column]
) -> None:
    """Raise where the values of a pool's columns are not like those of labeled rows.

    ValueError where a column has nothing but missing values, TypeError where one holds
    values of another kind.
    """
    for here, labeled in zip(found, wanted, strict=True):
        if not labeled.is_empty:
            check_filled(where, here, labeled.kind)
        if here.kind != labeled.kind and NOTHING not in (here.kind, labeled.kind):
            raise TypeError(
                f"{where} holds {here.kind} ({here.dtype}) in column {here.name!r}, "
                f"where `X` holds {labeled.kind} ({labeled.dtype}); convert one of "
                f"them."
            )


def check_filled(where: str, column: Column, kind: str) -> None:
    """Raise ValueError where a pool's column has no value, and that of `X` has some."""
    if column.is_empty:
        raise ValueError(
            f"{where} holds {NOTHING} in column {column.name!r}, where `X` holds "
            f"{kind}; fill it, or leave the column out of both."
        )


def check_number_of_names(names: Sequence[str], n_columns: int) -> None:
    """Raise ValueError where names of columns are not as many as these."""
    if len(names) != n_columns:
        raise ValueError(
            f"`columns` must name each of the {n_columns} columns, got {len(names)} "
            "names."
        )


def check_has_columns(where: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise ValueError where a pool lacks one of the columns that are wanted."""
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing:
        instead = f", but has {extra[0]!r}; rename it" if extra else "; write it too"
        raise ValueError(
            f"{where} lacks the column {missing[0]!r} of `X`{instead}, or leave the "
            f"column out of `X`."
        )
