"""Rows in memory: arrays, CSR matrices, and data frames (held as pandas frames).

Estimators get all rows in the library, with the names and in the types of the labeled
rows. Blocks of a pool are converted to these after they are cut, in the task that needs
them.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from scipy import sparse
from sklearn.utils import check_array

from dsel.arrays import Features, Floats, Integers
from dsel.checks import listing, show
from dsel.data.columns import check_columns
from dsel.data.encoding import Ways, find_ways
from dsel.data.frame_columns import NUMBER, Column, columns_of
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.errors import RowError
from dsel.typing import AnyArray

NUMERIC: Final = "buif"
"""Kinds of numpy's types of numbers and truth values."""
_ARE_DEEP: Final = int(pd.__version__.split(".")[0]) < 3
"""Whether this pandas copies values at once; pandas 3 copies on the first write."""


@dataclass(frozen=True, eq=False, repr=False)
class FrameSchema:
    """Library, names and types of a data frame."""

    empty: Any
    """The data frame without its rows, in its own library."""
    columns: tuple[Column, ...]
    """Names and types; the kind of Python objects comes from the original rows."""

    def __repr__(self) -> str:
        return f"<FrameSchema: {listing(self.names, 10)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def text(self) -> str:
        """A text that identifies this schema, with its categories."""
        return f"{type(self.empty).__module__} {self.columns}"

    @property
    def is_numeric(self) -> bool:
        """Whether every column is of numbers or truth values."""
        return all(column.is_number for column in self.columns)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The common type of all columns: object unless all are numeric."""
        if not self.is_numeric or not self.columns:
            return np.dtype(object)
        # numpy does not know pandas' extension types.
        with suppress(TypeError, ValueError):
            dtype = np.result_type(*(np.dtype(c.dtype) for c in self.columns))
            if dtype.kind in NUMERIC:
                return dtype
        return np.dtype(np.float64)

    @property
    def row_nbytes(self) -> int:
        """Approximate bytes of a row; a text counts as some dozen letters."""
        return sum(8 if column.is_number else 32 for column in self.columns)

    def with_columns(self, names: Sequence[str]) -> "FrameSchema":
        """Return the schema of some of the columns, in this order."""
        columns = {column.name: column for column in self.columns}
        empty = nw.from_native(self.empty, eager_only=True).select(list(names))
        return FrameSchema(empty.to_native(), tuple(columns[name] for name in names))


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows of a data frame of any library, with the indexing of an array."""

    given: pd.DataFrame
    schema: FrameSchema
    """Schema of the original data frame."""

    def __getstate__(self) -> dict[str, Any]:
        # Other state is computed again.
        return {"given": self.given, "schema": self.schema}

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, rows: slice | AnyArray) -> "Frame":
        """Return some rows: a slice, their numbers, or a mask."""
        return Frame(take_rows(self.given, rows), self.schema)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.numbers, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.schema.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, about."""
        return table_nbytes(self.given)

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of the original library."""
        like = self.schema.empty
        if isinstance(like, pd.DataFrame):
            return self.given
        rows = nw.from_native(self.given.reset_index(drop=True), eager_only=True)
        if nw.from_native(like, eager_only=True).implementation.is_polars():
            original = rows.to_polars()
            cast = original.cast(dict(like.schema), strict=False)
            # A column with a number that an integer type cannot hold keeps its type.
            uncast = [
                original[name]
                for name, dtype in like.schema.items()
                if dtype.is_integer()
                and original[name].dtype.is_numeric()  # the column has values at all
                and cast[name].ne_missing(original[name]).any()
            ]
            return cast.with_columns(uncast)
        import pyarrow as pa

        table = rows.to_arrow()
        for place, field in enumerate(like.schema):
            with suppress(pa.ArrowInvalid):  # such a column keeps its type here, too
                values = table[field.name].cast(field.type)
                table = table.set_column(place, field.name, values)
        return table

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """The rows as an array; TypeError where a column is not numeric."""
        others = [c for c in columns_of(self.given) if not c.is_number]
        if others:
            raise self.encoding_error(others)
        array: NDArray[Any] = check_array(self.given, ensure_all_finite=False)
        return array

    def encoding_error(
        self, others: Sequence[Column], why: str = "", needed: str = "numbers"
    ) -> TypeError:
        """Return the error about columns that an estimator does not take.

        `why` follows the description of a column, and `needed` is what it takes.
        """
        ways, is_pandas = self._ways_to_encode
        # Rows that come in groups are to be thought of first.
        others = [c for c in others if c.name in ways.owners] or [*others]
        known = self.given[others[0].name].dropna()
        value = known.iloc[0] if len(known) else None
        return TypeError(
            f"`X` must be a table of {needed} for this estimator, but column "
            f"{others[0].name!r} holds {others[0].kind} such as {show(value)}{why}; "
            f"{ways.advice(is_pandas=is_pandas)}."
        )

    @property
    def way_to_encode(self) -> str:
        """What makes numbers of all columns, as the end of a message."""
        ways, is_pandas = self._ways_to_encode
        return ways.advice(is_pandas=is_pandas)

    @property
    def _ways_to_encode(self) -> tuple[Ways, bool]:
        """What makes numbers of the columns, and whether they are of pandas."""
        return find_ways(self.given), isinstance(self.schema.empty, pd.DataFrame)

    @property
    def float_columns(self) -> Floats:
        """The columns of numbers, as float64."""
        names = [column.name for column in self.schema.columns if column.kind == NUMBER]
        return numbers_of(self.given[names], np.dtype(np.float64))

    @cached_property
    def encoded_rows(self) -> Floats:
        """The rows as float64; values that are not numeric are hashes in [0, 1)."""
        # These are the rows as an estimator gets them, with its rounding and its units
        # of time.
        rows = nw.from_native(self.native, eager_only=True).to_pandas()
        columns = [
            numbers_of(rows[column.name], np.dtype(np.float64))
            if column.is_number
            else _encode_column(rows[column.name])
            for column in columns_of(rows)
        ]
        return np.column_stack(columns) if columns else np.empty(self.shape)


def with_column_names(rows: Any) -> Any:
    """Return a table of xarray whose columns have a coordinate as a data frame.

    The columns of data frames are found by their names. A table of pyarrow that pandas
    made has its index as a column, which is left out, as in pandas. Other rows are
    unchanged.
    """
    if type(rows).__module__.startswith("pyarrow") and hasattr(rows, "drop_columns"):
        # Some entries describe the numbers 0, 1, 2, ..., for which there is no column.
        index = (rows.schema.pandas_metadata or {}).get("index_columns", ())
        known = [name for name in index if name in rows.column_names]
        return rows.drop_columns(known) if known else rows
    is_array = isinstance(rows, xr.DataArray) and rows.ndim == 2
    if not is_array or rows.dims[1] not in rows.coords:
        return rows
    return pd.DataFrame(rows.values, columns=rows.coords[rows.dims[1]].values)


def has_named_columns(rows: Any) -> bool:
    """Return whether rows are a data frame whose columns scikit-learn finds by name.

    Other frames count as matrices: those with duplicate names or names that are not
    strings, and those with sparse columns.
    """
    if not isinstance(rows, pd.DataFrame):
        frame = nw.from_native(rows, eager_only=True, pass_through=True)
        return isinstance(frame, nw.DataFrame)
    are_names = all(isinstance(name, str) for name in rows.columns)
    are_sparse = any(isinstance(dtype, pd.SparseDtype) for dtype in rows.dtypes)
    return are_names and rows.columns.is_unique and not are_sparse


def names_of_frame(rows: Any) -> tuple[str, ...] | None:
    """Return the names that a model learns from rows; None unless they are a frame."""
    if not has_named_columns(rows):
        return None
    return tuple(nw.from_native(rows, eager_only=True).columns)


def rows_by_name(rows: Any, names: Sequence[str] | None, whose: str) -> Any:
    """Return a data frame of any library with the columns that a model was fitted to.

    Columns are found by their names, and others are left out. Rows are unchanged if
    they or the model have no names. Raises ValueError that names the missing columns;
    `whose` is the end of the message, such as " of the model".
    """
    rows = with_column_names(rows)
    is_pandas = isinstance(rows, pd.DataFrame)
    if names is None or not (is_pandas or has_named_columns(rows)):
        return rows
    if is_pandas:
        # scikit-learn ignores names that are no texts, and would take the columns of
        # such a frame by position, while those of a pool are found by name.
        rows = rows.set_axis([str(name) for name in rows.columns], axis=1)
    frame = nw.from_native(rows, eager_only=True)
    # In pyarrow `rows.columns` are the values.
    check_columns(frame.columns, names, "`X`", whose)
    return frame.select(list(names)).to_native()


def frame_of(rows: Any) -> Frame:
    """Return a data frame of any library as a `Frame`."""
    if isinstance(rows, pd.DataFrame):
        # pandas cannot take rows of another byte order than the machine's.
        swapped = {
            name: values.dtype.newbyteorder("=")
            for name, values in rows.items()
            if isinstance(values.dtype, np.dtype) and not values.dtype.isnative
        }
        rows = rows.astype(swapped) if swapped else rows
    rows = with_column_names(rows)
    frame = nw.from_native(rows, eager_only=True)
    native = frame.to_pandas()
    return Frame(native, FrameSchema(frame.head(0).to_native(), columns_of(native)))


def frame_like(rows: Any, schema: FrameSchema) -> Frame:
    """Return a pandas frame, or numbers, with the names and types of another frame.

    A number is cast only to a type that holds it (floats are rounded to floats). A
    value that is not among the declared categories becomes a missing value.
    """
    names, like = list(schema.names), schema.empty
    if not isinstance(rows, pd.DataFrame):
        dense = rows.toarray() if sparse.issparse(rows) else rows
        rows = pd.DataFrame(dense, columns=names, copy=False)
    if not isinstance(like, pd.DataFrame):
        return Frame(rows[names], schema)
    if not rows.dtypes.equals(like.dtypes):
        columns = {name: _cast(rows[name], like[name].dtype) for name in names}
        rows = pd.DataFrame(columns, index=rows.index, copy=False)
    return Frame(rows, schema)


def native(rows: Features) -> Any:
    """Return rows as estimators get them: a frame in its own library."""
    return rows.native if isinstance(rows, Frame) else rows


def read_only_rows(rows: Any) -> Any:
    """Return rows as estimators get them, read-only where other tasks share them."""
    # An estimator that works in place, such as StandardScaler(copy=False), then makes a
    # copy or fails, and cannot change rows that other tasks read.
    rows = native(rows)
    if isinstance(rows, pd.DataFrame):
        # The values are copied: scikit-learn gets the memory of a frame through numpy
        # and writes into it, which the copy on write of pandas 3 does not notice.
        return rows.copy(deep=True)
    if sparse.issparse(rows) and rows.format == "csr":
        parts = rows.data, rows.indices, rows.indptr
        rows = type(rows)(parts, shape=rows.shape, copy=False)
        if not rows.has_sorted_indices:  # an SVC would sort them in place
            rows = rows.sorted_indices()
        rows.data = rows.data.view()
        rows.data.flags.writeable = False
    elif isinstance(rows, np.ndarray):
        rows = rows.view()
        rows.flags.writeable = False
    return rows


def number_matrix(rows: Any) -> Any:
    """Return rows as an array or CSR, where they may be a `Frame`."""
    return rows.numbers if isinstance(rows, Frame) else rows


def encode_rows(rows: Any) -> Any:
    """Return rows as numbers; equal rows stay equal, see `Frame.encoded_rows`."""
    return rows.encoded_rows if isinstance(rows, Frame) else rows


def take_rows(rows: Any, row_numbers: Any) -> Any:
    """Return the rows of a table that a slice, row numbers or a mask select."""
    if isinstance(rows, pd.DataFrame):
        # In pandas 3 a selection of all rows is not a copy, and an estimator that works
        # in place would write into the caller's frame.
        is_view = isinstance(
            row_numbers, slice
        )  # `read_only_rows` copies what is predicted
        return rows.iloc[row_numbers].copy(deep=_ARE_DEEP or not is_view)
    return rows[row_numbers]


def copy_rows(rows: Any) -> Any:
    """Return a copy of rows that shares no memory with them."""
    if isinstance(rows, Frame):
        return Frame(rows.given.copy(deep=True), rows.schema)
    return rows.copy() if sparse.issparse(rows) else np.array(rows, order="K")


def table_nbytes(rows: Any) -> int:
    """Return the approximate bytes of rows in memory."""
    if isinstance(rows, pd.DataFrame):
        return int(rows.memory_usage(index=False).sum())
    parts = (rows.data, rows.indices, rows.indptr) if sparse.issparse(rows) else (rows,)
    return sum(int(part.nbytes) for part in parts)


def check_names(names: Sequence[str], n_columns: int, what: str = "`columns`") -> None:
    """Raise ValueError unless every column has one name and all names differ."""
    if len(names) != n_columns:
        raise ValueError(
            f"{what} must name each of the {n_columns} columns, got {len(names)} names."
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"{what} must have distinct names, got {twice[0]!r} twice; rename one."
        )


def check_number_type(dtype: np.dtype[Any], name: str) -> None:
    """Raise TypeError unless values are numbers of at most 8 bytes."""
    if dtype.kind not in NUMERIC:
        raise TypeError(
            f"`{name}` must be numeric, got values of type {dtype}; pass "
            f"{name}.astype('float64') if they are numbers."
        )
    if dtype.itemsize > 8:
        raise TypeError(
            f"`{name}` must hold numbers of at most 8 bytes, got {dtype}; pass "
            f"{name}.astype('float64'), which rounds them."
        )


def check_numeric(frames: FrameSchema | None, where: str) -> None:
    """Raise TypeError where a column of the pool's data frames is not numeric."""
    for column in frames.columns if frames else ():
        if not column.is_number:
            raise TypeError(
                f"{where} must be numeric, but column {column.name!r} holds "
                f"{column.kind}; encode it as numbers, or search with a data frame "
                f"`X`, a pipeline that encodes it, and this table itself as `pool` "
                f"(.parquet or another format that holds text)."
            )


def find_cast_changes(
    values: Any, cast: NDArray[Any], *, may_round: bool = True
) -> NDArray[np.bool_] | None:
    """Return which numbers a cast has changed; None if none has.

    A cast to floats may round, as everywhere in numpy. If `may_round` is False, numbers
    that a smaller type of floats rounds have changed, too.
    """
    to_floats = cast.dtype.kind == "f"
    is_number = values.dtype.kind in "iuf"  # objects may hold pd.NA, which is NaN there
    if np.can_cast(values.dtype, cast.dtype) or (
        to_floats and (may_round or not is_number)
    ):
        return None
    changed = np.asarray(values != cast, dtype=np.bool_)
    if to_floats:
        changed &= ~np.isnan(cast)
    return changed if changed.any() else None


def numbers_of(rows: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a numeric frame or column as a C-ordered array."""
    if isinstance(rows, pd.DataFrame) and any(t.kind == "O" for t in rows.dtypes):
        rows = rows.where(rows.notna(), np.nan)  # `na_value` leaves pd.NA in objects
    missing = {"na_value": np.nan} if dtype.kind == "f" else {}
    return np.ascontiguousarray(rows.to_numpy(dtype=dtype, **missing))


def concatenate_rows(parts: Sequence[Any]) -> Any:
    """Concatenate blocks of rows; the result is CSR where any block is sparse."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Frame):
        return Frame(concatenate_rows([part.given for part in parts]), first.schema)
    if isinstance(first, pd.DataFrame):
        return pd.concat(parts)
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(list(parts), format="csr")
    return np.concatenate(parts)


def merge_entries(rows: Any) -> Any:
    """Return rows unchanged, sparse ones as CSR without duplicate entries."""
    if not sparse.issparse(rows):
        return rows
    matrix = rows.tocsr()
    # Many learners accept only indices of 32 bits, which scipy uses where they suffice.
    small = sparse.get_index_dtype(maxval=max(matrix.nnz, *matrix.shape))
    if matrix.indices.dtype != small:
        parts = matrix.data, matrix.indices.astype(small), matrix.indptr.astype(small)
        matrix = type(matrix)(parts, shape=matrix.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_finite(
    X: Any,
    where: str,
    row_numbers: Integers,
    names: Sequence[str] | None,
    allow_nan: bool,
    error_type: type[RowError] = RowError,
) -> None:
    """Raise RowError where a value is infinite, or NaN where that is not allowed."""
    way_to_fill = "put an imputer, such as SimpleImputer(), in front of the estimator"
    if isinstance(X, Frame):
        # The columns are checked one by one, since an array of all of them would be a
        # copy.
        names = [
            column.name
            for column in X.schema.columns
            if column.is_number and _needs_exact_check(X.given[column.name], allow_nan)
        ]
        if not names:
            return
        if not X.schema.is_numeric:  # an imputer has no mean of texts
            way_to_fill = X.way_to_encode
        X = numbers_of(X.given[names], np.dtype(np.float64))
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return
    if _has_finite_squares(values):
        return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    if sparse.issparse(X):
        entries, place = sparse.coo_matrix(X), np.argmax(bad)
        row, column = entries.row[place], entries.col[place]
    else:
        row, column = np.argwhere(bad)[0]
    column_name = column if names is None else repr(names[column])
    value = X[row, column]
    is_gap = bool(np.isnan(value))
    what, way = f"{value}, which is infinite", "correct the value"
    if is_gap:
        what = "NaN, a missing value"
        way = way_to_fill
    raise error_type(
        f"{where} must hold finite numbers, but ",
        int(row_numbers[row]),
        f", column {column_name} is {what}; drop the row, or {way}.",
    )


def _has_finite_squares(values: NDArray[Any]) -> bool:
    """Return whether the sum of squares is finite, which shows that all values are.

    It is several times faster than a test of each value. It may overflow, so an
    infinite sum proves nothing.
    """
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.dot(flat, flat)))


def _needs_exact_check(column: pd.Series, allow_nan: bool) -> bool:
    """Return whether a column of numbers may have a value that is not allowed."""
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind == "O":
        return True
    values = column.to_numpy()
    if column.dtype.kind != "f" or _has_finite_squares(values):
        return False
    return not allow_nan or bool(np.isinf(values).any())


def _cast(column: pd.Series, dtype: Any) -> pd.Series:
    """Return a column in a type of pandas, or as it is; see `frame_like`."""
    if column.dtype == dtype:
        return column
    if column.dtype.kind in "mM" and len(column) and not column.notna().any():
        column = pd.Series(None, index=column.index, dtype=object)  # of no type
    if isinstance(dtype, pd.CategoricalDtype):
        # This uses codes, because `astype` of pandas will refuse values outside the
        # categories.
        codes = dtype.categories.get_indexer(np.asarray(column))
        values = pd.Categorical.from_codes(codes, dtype=dtype)
        return pd.Series(values, index=column.index, copy=False)
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and column.hasnans:
        # Numpy has no missing value of these types, and would turn None into False.
        is_whole = getattr(column.dtype, "kind", "O") in "iu"
        is_large = is_whole and bool((column.abs() > LARGEST_EXACT).any())
        return column if dtype.kind == "b" or is_large else column.astype(float)
    if is_numeric_dtype(column.dtype) and is_numeric_dtype(dtype):
        wide, narrow = (getattr(d, "numpy_dtype", d) for d in (dtype, column.dtype))
        are_floats = (wide.kind, narrow.kind) == ("f", "f")
        if not are_floats and not np.can_cast(narrow, wide, "safe"):
            return column
    if dtype == np.dtype(object) and getattr(column.dtype, "na_value", None) is pd.NA:
        # pandas would leave pd.NA, which encoders of objects refuse.
        return column.astype(object).where(column.notna(), None)
    return column.astype(dtype)


def _encode_column(column: pd.Series) -> Floats:
    """Return times as numbers, and other values as hashes in [0, 1); NaN if missing."""
    if column.dtype.kind in "mM":
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(float))
    objects = column.to_numpy(dtype=object)
    try:
        hashes = pd.util.hash_array(objects, categorize=False)
    except (TypeError, ValueError):  # values of several types, or lists
        texts = np.array(list(map(repr, objects)), dtype=object)
        hashes = pd.util.hash_array(texts, categorize=False)
    return np.where(column.isna(), np.nan, (hashes >> np.uint64(12)) / 2.0**52)
