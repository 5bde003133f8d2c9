"""Data frames: pandas inside, the library of the labeled rows where estimators begin.

Labeled rows decide in which library, names and types an estimator gets rows. Blocks of
a pool are cut first and converted then, where they are needed: what reads numbers only
never makes a frame of an array.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_numeric_dtype
from scipy import sparse
from sklearn.utils import check_array

NUMBER: Final = "number"
TRUTH: Final = "truth value"
TEXT: Final = "text"
NOTHING: Final = "nothing but missing values"
NUMERIC: Final = "buif"
"""Kinds of numpy's types of numbers and truth values."""
_KINDS: Final = {
    "string": TEXT, "empty": NOTHING, "boolean": TRUTH, "decimal": NUMBER,
    "integer": NUMBER, "floating": NUMBER, "mixed-integer-float": NUMBER,
    "datetime64": "time", "datetime": "time", "timedelta64": "duration",
    "timedelta": "duration", "time": "time of day",
}  # fmt: skip
"""Of what pandas infers from values; any other kind has pandas' own name."""
_ARE_DEEP: Final = int(pd.__version__.split(".")[0]) < 3
"""Whether a copy that may be written to copies values; pandas 3 does so on a write."""


@dataclass(frozen=True)
class Column:
    """Name and type of a column."""

    name: str
    kind: str
    """What its values are: number, text, date, time in a zone. Categories have the
    kind of their values."""
    dtype: str
    """Type as pandas writes it, categories included."""
    is_empty: bool = False
    """Whether there are rows and every value is missing."""

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers or truth values."""
        return self.kind in (NUMBER, TRUTH)

    @property
    def number_type(self) -> np.dtype[Any]:
        """Numpy's type of its numbers: float64 where it has none."""
        try:
            found = np.dtype(self.dtype)
        except TypeError:
            return np.dtype(np.float64)
        return found if found.kind in NUMERIC else np.dtype(np.float64)


def columns_of(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Return names and types of a frame's columns."""
    found = []
    for name, column in frame.items():
        text, values = str(column.dtype), column
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = pd.Series(column.cat.categories)
            text = f"{text} {values.to_list()}"
        is_empty = len(column) > 0 and bool(column.isna().all())
        found.append(Column(str(name), _kind(values), text, is_empty))
    return tuple(found)


def _kind(values: pd.Series) -> str:
    if zone := getattr(values.dtype, "tz", None):
        return f"time in zone {zone}"
    inferred = str(infer_dtype(values, skipna=True))
    return _KINDS.get(inferred, inferred)


@dataclass(frozen=True, eq=False)
class FrameSchema:
    """Library, names and types of a data frame."""

    empty: Any
    """The data frame without its rows, in its own library."""
    columns: tuple[Column, ...]
    """Names and types; objects are known by the rows that there were."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def text(self) -> str:
        """What tells this schema from others, categories included."""
        return f"{type(self.empty).__module__} {self.columns}"

    @property
    def is_numeric(self) -> bool:
        """Whether every column is of numbers or truth values."""
        return all(each.is_number for each in self.columns)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What holds the values of all columns: Python objects, if not all are numbers.

        Of types that have none in common, or have missing values, that is float64.
        """
        types = [each.number_type for each in self.columns]
        return np.result_type(*types) if self.is_numeric and types else np.dtype(object)

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row, about: a text is taken to have some dozen letters."""
        return sum(8 if each.is_number else 32 for each in self.columns)

    def with_columns(self, names: Sequence[str]) -> "FrameSchema":
        """Return the schema of some of the columns, in this order."""
        columns = {column.name: column for column in self.columns}
        empty = nw.from_native(self.empty, eager_only=True).select(list(names))
        return FrameSchema(empty.to_native(), tuple(columns[name] for name in names))


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows that are to be a data frame like another one, with an array's indexing."""

    given: Any
    """A frame of pandas with these columns, or their numbers, dense or CSR."""
    schema: FrameSchema
    """Of the data frame that it is like."""

    def __getstate__(self) -> dict[str, Any]:
        # What was made of the fields is made again.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __len__(self) -> int:
        return int(self.given.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.schema.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as they were given, about."""
        return table_nbytes(self.given)

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of the library that they are like."""
        like = self.schema.empty
        if isinstance(like, pd.DataFrame):
            return self._typed
        rows = nw.from_native(self._typed.reset_index(drop=True), eager_only=True)
        if nw.from_native(like, eager_only=True).implementation.is_polars():
            found = rows.to_polars()
            cast = found.cast(dict(like.schema), strict=False)
            # A number that a type of whole ones does not hold stays as it is.
            whole = [name for name, dtype in like.schema.items() if dtype.is_integer()]
            kept = [name for name in whole if (cast[name] != found[name]).any()]
            return cast.with_columns([found[name] for name in kept])
        table = rows.to_arrow()
        columns = [_cast_arrow(table[field.name], field.type) for field in like.schema]
        return type(like).from_arrays(columns, names=list(self.schema.names))

    def typed(self) -> "Frame":
        """Return the same rows with the types of pandas that they are to have."""
        return Frame(self._typed, self.schema)

    @cached_property
    def _typed(self) -> pd.DataFrame:
        """The rows in pandas, with the types of a frame of pandas that they are like.

        Values are kept: a number goes into another type of number only where that holds
        it (floats round to floats), a value that is no category of a column with
        declared categories becomes a missing one.
        """
        rows, like = self.given, self.schema.empty
        if not isinstance(rows, pd.DataFrame):
            dense = rows.toarray() if sparse.issparse(rows) else rows
            rows = pd.DataFrame(dense, columns=list(self.schema.names), copy=False)
        if not isinstance(like, pd.DataFrame):
            return rows[list(self.schema.names)]
        if rows.dtypes.equals(like.dtypes):
            return rows
        columns = {name: _cast(rows[name], like[name].dtype) for name in like.columns}
        return pd.DataFrame(columns, index=rows.index, copy=False)

    @cached_property
    def numbers(self) -> Any:
        """The rows as an array, or CSR; TypeError where a column is no number."""
        if not isinstance(self.given, pd.DataFrame):
            return self.given
        for column in columns_of(self.given):
            if not column.is_number:
                known = self.given[column.name].dropna()
                value = known.iloc[0] if len(known) else None
                raise TypeError(
                    f"`X` must be a table of numbers for this estimator, but column "
                    f"{column.name!r} holds {column.kind} such as {value!r}; put an "
                    f"encoder in front of it, make_pipeline(make_column_transformer("
                    f"(OneHotEncoder(handle_unknown='ignore'), [{column.name!r}]), "
                    f"remainder='passthrough'), estimator)."
                )
        return check_array(self.given, accept_sparse="csr", ensure_all_finite=False)

    @cached_property
    def encoded(self) -> Any:
        """The rows as float64, or CSR, so that equal values are equal numbers.

        Numbers, dates and times stand for themselves, missing values are NaN, anything
        else is a hash in [0, 1): it is compared for equality, never for nearness.
        """
        if not isinstance(self.given, pd.DataFrame) and self.schema.is_numeric:
            return self.given
        columns = [_encoded(column) for _, column in self._typed.items()]
        return np.column_stack(columns) if columns else np.empty(self.shape)

    @property
    def float_columns(self) -> NDArray[np.float64]:
        """The columns of numbers, as float64."""
        kept = [each.name for each in self.schema.columns if each.kind == NUMBER]
        found = [_encoded(self._typed[name]) for name in kept]
        return np.column_stack(found) if found else np.empty((len(self), 0))

    def __getitem__(self, rows: Any) -> "Frame":
        """Return some rows: a slice, their numbers, or a mask."""
        return Frame(taken(self.given, rows), self.schema)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numbers = self.numbers
        dense = numbers.toarray() if sparse.issparse(numbers) else numbers
        return np.array(dense, dtype=dtype, copy=copy)


def is_frame(rows: Any) -> bool:
    """Whether rows are a data frame in memory."""
    if isinstance(rows, (np.ndarray, pd.DataFrame)):
        return isinstance(rows, pd.DataFrame)
    found = nw.from_native(rows, eager_only=True, pass_through=True)
    return isinstance(found, nw.DataFrame)


def has_named_columns(rows: Any) -> bool:
    """Whether rows are a data frame whose columns scikit-learn finds by name.

    One whose names are no texts, or not distinct, is taken as a matrix, and so is one
    of pandas' sparse columns.
    """
    if not isinstance(rows, pd.DataFrame):
        return is_frame(rows)
    are_names = all(isinstance(name, str) for name in rows.columns)
    are_sparse = any(isinstance(each, pd.SparseDtype) for each in rows.dtypes)
    return are_names and rows.columns.is_unique and not are_sparse


def frame_of(rows: Any, schema: FrameSchema | None = None) -> Frame:
    """Return a data frame of any library, as it is or like another one."""
    frame = nw.from_native(rows, eager_only=True)
    given = frame.to_pandas()
    return Frame(
        given, schema or FrameSchema(frame.head(0).to_native(), columns_of(given))
    )


def native(rows: Any) -> Any:
    """Return rows as estimators get them: a frame as that of its library."""
    return rows.native if isinstance(rows, Frame) else rows


def unchangeable(rows: Any) -> Any:
    """Return rows as estimators get them that others will read, too.

    An estimator that works in place, such as ``StandardScaler(copy=False)``, makes a
    copy or fails: else the next model would read what the last one made of the rows.
    """
    rows = native(rows)
    if isinstance(rows, pd.DataFrame):
        return rows.copy(deep=_ARE_DEEP)
    if sparse.issparse(rows) and rows.format == "csr":
        parts = rows.data, rows.indices, rows.indptr
        rows = type(rows)(parts, shape=rows.shape, copy=False)
        if not rows.has_sorted_indices:  # of words, say; an SVC sorts in place
            rows = rows.sorted_indices()
        rows.data = rows.data.view()
        rows.data.flags.writeable = False
    elif isinstance(rows, np.ndarray):
        rows = rows.view()
        rows.flags.writeable = False
    return rows


def numbers(rows: Any) -> Any:
    """Return rows as an array or CSR, where they may be a `Frame`."""
    return rows.numbers if isinstance(rows, Frame) else rows


def encoded(rows: Any) -> Any:
    """Return rows such that equal ones are equal numbers; see `Frame.encoded`."""
    return rows.encoded if isinstance(rows, Frame) else rows


def taken(rows: Any, which: Any) -> Any:
    """Return some rows of a table: a slice, their numbers, or a mask."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[which].copy(deep=_ARE_DEEP)
    return rows[which]


def table_nbytes(rows: Any) -> int:
    """Return the bytes of rows in memory, about."""
    if isinstance(rows, pd.DataFrame):
        return int(rows.memory_usage(index=False).sum())
    parts = (rows.data, rows.indices, rows.indptr) if sparse.issparse(rows) else (rows,)
    return sum(int(part.nbytes) for part in parts)


def check_names(names: Sequence[str], n_columns: int, what: str = "`columns`") -> None:
    """Raise ValueError where columns have other names than one each, all distinct."""
    if len(names) != n_columns:
        raise ValueError(
            f"{what} must name each of the {n_columns} columns, got {len(names)} names."
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"{what} must have distinct names, got {twice[0]!r} twice; rename one."
        )


def _cast(column: pd.Series, dtype: Any) -> pd.Series:
    """Return a column in a type of pandas, or as it is; see `Frame._typed`."""
    if column.dtype == dtype:
        return column
    if isinstance(dtype, pd.CategoricalDtype):
        if not len(dtype.categories):  # as of Parquet files, read without their rows
            return column.astype("category")
        return pd.Series(_recoded(column, dtype), index=column.index, copy=False)
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and column.hasnans:
        # Numpy has no missing number of this type, and takes None for false.
        return column if dtype.kind == "b" else column.astype(float)
    are_numbers = is_numeric_dtype(column.dtype) and is_numeric_dtype(dtype)
    return column if are_numbers and not _holds(dtype, column.dtype) else (
        column.astype(dtype)
    )  # fmt: skip


def _recoded(column: pd.Series, dtype: pd.CategoricalDtype) -> pd.Categorical:
    """Return categories by value; pandas will refuse values that are none of them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = dtype.categories.get_indexer(column.cat.categories)
        codes = np.append(places, -1)[column.cat.codes.to_numpy()]
    else:
        codes = dtype.categories.get_indexer(column)
    return pd.Categorical.from_codes(codes, dtype=dtype)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether a type of numbers holds those of another; floats may be rounded."""
    wide, narrow = (getattr(each, "numpy_dtype", each) for each in (wide, narrow))
    return (wide.kind, narrow.kind) == ("f", "f") or np.can_cast(narrow, wide, "safe")


def _cast_arrow(column: Any, dtype: Any) -> Any:
    """Return a column in a type of Arrow, or as it is where that does not hold it."""
    import pyarrow as pa

    try:
        return column.cast(dtype)
    except pa.ArrowInvalid:
        return column


def _encoded(column: pd.Series) -> NDArray[np.float64]:
    """Return a column as float64; see `Frame.encoded`."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.categories
        if is_numeric_dtype(values.dtype):
            numbers = values.to_numpy(dtype=np.float64)
            return np.asarray(np.append(numbers, np.nan)[column.cat.codes])
    elif column.dtype.kind in "mM":
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(float))
    elif _kind(column) in (NUMBER, TRUTH):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    objects = column.to_numpy(dtype=object)
    try:
        hashes = pd.util.hash_array(objects, categorize=False)
    except (TypeError, ValueError):  # of several types, or lists
        texts = np.array(list(map(repr, objects)), dtype=object)
        hashes = pd.util.hash_array(texts, categorize=False)
    return np.where(column.isna(), np.nan, (hashes >> np.uint64(12)) / 2.0**52)
