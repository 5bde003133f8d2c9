"""Rows as data frames of pandas, polars or Arrow, with the indexing of an array.

Labeled rows decide in which library, names and types an estimator gets rows. Blocks of
a pool are cut first and converted then, where they are needed: what reads numbers only
never makes a frame of an array.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from dsel.data.columns import NUMBER, TRUTH, Column, check_number_of_names, columns_of


@dataclass(frozen=True, eq=False)
class FrameSchema:
    """Library, names and types of a data frame."""

    empty: Any
    """The data frame without its rows."""
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
        return all(each.kind in (NUMBER, TRUTH) for each in self.columns)


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows of a data frame in the names, types and library of another one."""

    given: Any
    """A data frame with the same columns, or their numbers, dense or CSR."""
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
        rows = self.given
        if is_frame(rows):
            return int(nw.from_native(rows, eager_only=True).estimated_size())
        if sparse.issparse(rows):
            return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
        return int(rows.nbytes)

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of the library that they are like."""
        return cast(self.given, self.schema.empty)

    @cached_property
    def numbers(self) -> Any:
        """The rows as an array, or CSR; TypeError where a column is no number."""
        if not is_frame(self.given):
            return self.given
        for column in columns_of(self.given):
            if column.kind not in (NUMBER, TRUTH):
                value = _first_value(self.given, column.name)
                raise TypeError(
                    f"`X` must be a table of numbers for this estimator, but column "
                    f"{column.name!r} holds {column.kind} such as {value!r}; encode it "
                    f"as numbers, or put a ColumnTransformer in front of the estimator."
                )
        pandas = nw.from_native(self.given, eager_only=True).to_pandas()
        return check_array(pandas, accept_sparse="csr", ensure_all_finite=False)

    @cached_property
    def encoded(self) -> Any:
        """The rows as float64, or CSR, so that equal values are equal numbers.

        Numbers, dates and times stand for themselves, missing values are NaN, anything
        else is a hash in [0, 1): it is compared for equality, never for nearness.
        """
        if not is_frame(self.given) and self.schema.is_numeric:
            return self.given
        frame = nw.from_native(self.native, eager_only=True)
        columns = [_encoded(frame[name]) for name in frame.columns]
        return np.column_stack(columns) if columns else np.empty(self.shape)

    @property
    def float_columns(self) -> NDArray[np.float64]:
        """The columns of numbers, as float64."""
        frame = nw.from_native(self.native, eager_only=True)
        kept = [each.name for each in self.schema.columns if each.kind == NUMBER]
        if not kept:
            return np.empty((len(self), 0))
        return np.column_stack([_encoded(frame[name]) for name in kept])

    def __getitem__(self, rows: Any) -> "Frame":
        """Return some rows: a slice, their numbers, or a mask."""
        made = self.__dict__.get("native", self.given)
        return Frame(taken(made, rows), self.schema)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numbers = self.numbers
        dense = numbers.toarray() if sparse.issparse(numbers) else numbers
        return np.array(dense, dtype=dtype, copy=copy)


def is_frame(rows: Any) -> bool:
    """Whether rows are a data frame in memory."""
    if isinstance(rows, np.ndarray):
        return False
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


def frame_of(rows: Any) -> Frame:
    """Return a data frame as it is."""
    empty = nw.from_native(rows, eager_only=True).head(0).to_native()
    return Frame(rows, FrameSchema(empty, columns_of(rows)))


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
        return rows.copy(deep=False)
    if sparse.issparse(rows) and rows.format == "csr":
        parts = rows.data, rows.indices, rows.indptr
        rows = type(rows)(parts, shape=rows.shape, copy=False)
        if not rows.has_sorted_indices:  # of words, say; an SVC sorts in place
            rows = rows.sorted_indices()
        rows.data = _read_only(rows.data)
        return rows
    return _read_only(rows) if isinstance(rows, np.ndarray) else rows


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    view = values.view()
    view.flags.writeable = False
    return view


def numbers(rows: Any) -> Any:
    """Return rows as an array or CSR, where they may be a `Frame`."""
    return rows.numbers if isinstance(rows, Frame) else rows


def encoded(rows: Any) -> Any:
    """Return rows such that equal ones are equal numbers; see `Frame.encoded`."""
    return rows.encoded if isinstance(rows, Frame) else rows


def taken(rows: Any, which: Any) -> Any:
    """Return some rows of a frame or an array: a slice, their numbers, or a mask."""
    if not is_frame(rows):
        return rows[which]
    if getattr(which, "dtype", None) == np.dtype(bool):
        which = np.flatnonzero(which)
    return nw.from_native(rows, eager_only=True)[which].to_native()


def columns_taken(rows: Any, names: Sequence[str]) -> Any:
    """Return some columns of a data frame, in this order."""
    given = native(rows)
    return nw.from_native(given, eager_only=True).select(list(names)).to_native()


def concatenated(parts: Sequence[Any]) -> Any:
    """Return the rows of frames that are like each other as one."""
    frames = [nw.from_native(native(part), eager_only=True) for part in parts]
    joined = nw.concat(frames).to_native()
    first = parts[0]
    return Frame(joined, first.schema) if isinstance(first, Frame) else joined


def pandas_of(rows: Any) -> pd.DataFrame:
    """Return a data frame as one of pandas."""
    return nw.from_native(rows, eager_only=True).to_pandas()


def renamed(rows: Any, names: Sequence[str]) -> Any:
    """Return a data frame with other names of its columns."""
    frame = nw.from_native(rows, eager_only=True)
    check_number_of_names(names, len(frame.columns))
    into = dict(zip(frame.columns, names, strict=True))
    return frame.rename(into).to_native()


def row_nbytes_of(schema: FrameSchema) -> int:
    """Return the bytes of a row, about: a text is taken to have some dozen letters."""
    return sum(8 if each.kind in (NUMBER, TRUTH) else 32 for each in schema.columns)


def cast(rows: Any, like: Any) -> Any:
    """Return rows in the library, names and types of a frame without rows.

    Values are kept: a number goes into another type of number only where that holds
    it (floats round to floats), a value that is no category of a column with declared
    categories becomes a missing one.
    """
    wanted = nw.from_native(like, eager_only=True)
    if not is_frame(rows):
        dense = rows.toarray() if sparse.issparse(rows) else rows
        rows = pd.DataFrame(dense, columns=wanted.columns, copy=False)
    elif type(rows) is type(like) and _same_types(rows, like):
        return rows
    have = nw.from_native(rows, eager_only=True)
    library = wanted.implementation
    if library.is_polars():
        return _as_polars(have, wanted)
    if library.is_pyarrow():
        return _as_arrow(have, wanted)
    frame = have.to_pandas()
    columns = {
        name: _pandas_column(frame[name], like[name].dtype) for name in like.columns
    }
    return pd.DataFrame(columns, index=frame.index, copy=False)


def _same_types(rows: Any, like: Any) -> bool:
    if isinstance(rows, pd.DataFrame):
        return list(rows.columns) == list(like.columns) and all(
            one == other for one, other in zip(rows.dtypes, like.dtypes, strict=True)
        )
    return bool(rows.schema == like.schema)


def _pandas_column(column: pd.Series, dtype: Any) -> pd.Series:
    if column.dtype == dtype:
        return column
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and column.hasnans:
        # Numpy has no missing number of this type, and takes None for false.
        return column if dtype.kind == "b" else column.astype(float)
    if isinstance(dtype, pd.CategoricalDtype):
        if not len(dtype.categories):  # as of Parquet files, read without their rows
            return column.astype("category")
        return pd.Series(_recoded(column, dtype), index=column.index, copy=False)
    kept = _is_number(column.dtype) and _is_number(dtype)
    return column if kept and not _holds(dtype, column.dtype) else column.astype(dtype)


def _recoded(column: pd.Series, dtype: pd.CategoricalDtype) -> pd.Categorical:
    """Return categories by value; pandas will refuse values that are none of them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = dtype.categories.get_indexer(column.cat.categories)
        codes = np.append(places, -1)[column.cat.codes.to_numpy()]
    else:
        codes = dtype.categories.get_indexer(column)
    return pd.Categorical.from_codes(codes, dtype=dtype)


def _as_polars(have: Any, wanted: Any) -> Any:
    frame = have.to_polars().select(wanted.columns)
    types = wanted.to_native().schema
    kept = {
        name
        for name in wanted.columns
        if types[name].is_numeric()
        and frame.schema[name].is_numeric()
        and not _holds(_numpy(types[name]), _numpy(frame.schema[name]))
    }
    into = {name: dtype for name, dtype in types.items() if name not in kept}
    return frame.cast(into, strict=False)


def _as_arrow(have: Any, wanted: Any) -> Any:
    import pyarrow as pa

    table, columns = have.to_arrow(), []
    for field in wanted.to_native().schema:
        column, into = table[field.name], field.type
        if pa.types.is_dictionary(column.type) and column.type != into:
            column = column.cast(column.type.value_type)
        if pa.types.is_dictionary(into) and column.type != into:
            column = column.cast(into.value_type).dictionary_encode()
        elif not _is_arrow_number(column.type, into) or _holds(
            _numpy(into), _numpy(column.type)
        ):
            column = column.cast(into)
        columns.append(column)
    return pa.table(columns, names=wanted.columns)


def _is_arrow_number(*types: Any) -> bool:
    import pyarrow as pa

    return all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types)


def _numpy(dtype: Any) -> np.dtype[Any]:
    """Return numpy's type of polars' Int64 and of Arrow's int64 or double."""
    names = {"double": "float64", "float": "float32", "halffloat": "float16"}
    name = str(dtype).lower()
    try:
        return np.dtype(names.get(name, name))
    except TypeError:
        return np.dtype(np.float64)  # decimals


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(
        dtype
    )


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether a type of numbers holds those of another; floats may be rounded."""
    wide, narrow = (getattr(each, "numpy_dtype", each) for each in (wide, narrow))
    return (wide.kind, narrow.kind) == ("f", "f") or np.can_cast(narrow, wide, "safe")


def _encoded(column: Any) -> NDArray[np.float64]:
    """Return a column as float64; see `Frame.encoded`."""
    dtype, found = column.dtype, column.to_native()
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _numbers_of_categories(pd.Series(column.to_pandas()).astype("category"))
    if dtype.is_numeric() or dtype == nw.Boolean:
        if isinstance(found, pd.Series):
            return np.asarray(found.to_numpy(dtype=np.float64, na_value=np.nan))
        if not dtype.is_integer():  # of which Arrow's cast refuses those above 2^53
            column = column.cast(nw.Float64())
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if isinstance(dtype, nw.Datetime | nw.Duration | nw.Date):
        times = pd.Series(column.to_pandas())
        if times.dtype.kind not in "mM" and not hasattr(times.dtype, "tz"):
            times = pd.to_datetime(times)
        values = times.astype("int64").to_numpy(dtype=np.float64)
        return np.where(times.isna(), np.nan, values)
    return _numbers_of_categories(_as_categories(pd.Series(column.to_pandas())))


def _as_categories(column: pd.Series) -> pd.Series:
    try:
        return column.astype("category")
    except TypeError:  # lists, which cannot be compared
        return column.map(repr, na_action="ignore").astype("category")


def _numbers_of_categories(column: pd.Series) -> NDArray[np.float64]:
    found = column.cat.categories
    if pd.api.types.is_numeric_dtype(found.dtype):
        numbers = found.to_numpy(dtype=np.float64)
    else:
        values = found.to_numpy(dtype=object)
        try:
            hashes = pd.util.hash_array(values, categorize=False)
        except TypeError:  # of several types
            hashes = pd.util.hash_array(np.array(list(map(repr, values)), dtype=object))
        numbers = (hashes >> np.uint64(12)) / 2.0**52
    return np.asarray(np.append(numbers, np.nan)[column.cat.codes.to_numpy()])


def _first_value(frame: Any, name: str) -> Any:
    column = nw.from_native(frame, eager_only=True)[name].drop_nulls()
    return column[0] if len(column) else None
