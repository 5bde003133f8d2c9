"""Tables read from the first row to the last, some rows at a time."""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import islice
from tokenize import TokenError
from typing import Any, BinaryIO, Final

import numpy as np
import pandas as pd
from scipy import sparse

CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET: Final = (".parquet",)
NPZ: Final = (".npz",)
SVMLIGHT: Final = (".svm", ".svmlight", ".libsvm", ".svm.gz", ".svmlight.gz")

UNREADABLE: Final = (
    EOFError,
    SyntaxError,  # numpy reads the header of an array as Python's own text
    TokenError,
    ValueError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of files raise where one is cut short or of another kind."""

_READ_ROWS: Final = 50_000


@dataclass(frozen=True)
class RowStream:
    """A table's features in row order; numeric, dense or CSR."""

    n_columns: int
    dtype: np.dtype[Any]
    columns: tuple[str, ...] | None
    is_sparse: bool
    blocks: Callable[[], Iterator[Any]]
    """Reads from the first row: arrays or CSR of shape (some rows, n_columns)."""


def is_table(path: str) -> bool:
    """Tell by the ending whether `open_stream` reads a file."""
    return path.lower().endswith((*CSV, *PARQUET, *NPZ, *SVMLIGHT))


def open_stream(path: str, *, target: str | None = None) -> RowStream:
    """Open a table for reading its features in order, however large it is.

    Parameters
    ----------
    path
        A CSV, TSV, Parquet, npz or svmlight file.
    target
        Column of labels, which is left out. npz files have their features in ``X``.

    Raises
    ------
    ValueError
        Where the ending is unknown, or the target is no column.
    TypeError
        Where a column is not numeric.
    """
    with naming_file(path):
        stream = _open_kind(path, target)
    return replace(stream, blocks=partial(_named_blocks, path, stream.blocks))


def _open_kind(path: str, target: str | None) -> RowStream:
    lower = path.lower()
    if lower.endswith(CSV):
        return _csv_stream(path, target)
    if lower.endswith(PARQUET):
        return _parquet_stream(path, target)
    if lower.endswith(NPZ):
        return _npz_stream(path)
    if lower.endswith(SVMLIGHT):
        return _svmlight_stream(path)
    endings = ", ".join((*CSV, *PARQUET, *NPZ, *SVMLIGHT))
    raise ValueError(f"`source` must end in one of {endings}, got {path!r}.")


def _named_blocks(path: str, blocks: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    with naming_file(path):
        yield from blocks()


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Say which file it was where what reads it says only what is wrong with it.

    Raises
    ------
    ValueError
        In the place of what the readers of its kind raise.
    """
    try:
        yield
    except UNREADABLE as error:
        text = str(error).strip()
        if path in text:
            raise
        raise ValueError(
            f"{path!r} cannot be read as what its name says: {text.rstrip('.')}; check "
            f"that the file is whole and of that kind."
        ) from error


def csv_separator(path: str) -> str:
    """Return what stands between the values of a line."""
    return "\t" if ".tsv" in path.lower() else ","


def feature_columns(
    columns: list[str], target: str | None, path: str
) -> tuple[str, ...]:
    """Return the columns without the target.

    Raises
    ------
    ValueError
        Where the target is no column.
    """
    if target is not None and target not in columns:
        raise ValueError(
            f"`target` must be a column of {path!r}, got {target!r}; it has "
            f"{', '.join(columns[:20])}."
        )
    return tuple(name for name in columns if name != target)


def numeric_values(frame: pd.DataFrame, path: str) -> Any:
    """Return a frame's values as float64.

    Raises
    ------
    TypeError
        Where a column is not numeric.
    """
    for name, dtype in frame.dtypes.items():
        if len(frame) and getattr(dtype, "kind", "O") not in "buif":
            raise TypeError(
                f"`source` {path!r} must be numeric, but column {name!r} holds "
                f"{_first_text(frame[name])!r}; encode it as numbers, or leave it out."
            )
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _first_text(column: pd.Series) -> Any:
    """Return the first value that is no number, else the first of all."""
    is_text = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    return column.iloc[int(is_text.to_numpy().argmax())]


def _csv_stream(path: str, target: str | None) -> RowStream:
    separator = csv_separator(path)
    head = pd.read_csv(path, sep=separator, nrows=0)
    names = feature_columns(list(map(str, head.columns)), target, path)

    def blocks() -> Iterator[Any]:
        with pd.read_csv(path, sep=separator, chunksize=_READ_ROWS) as reader:
            for frame in reader:
                yield numeric_values(
                    frame.set_axis(list(map(str, frame.columns)), axis=1)[list(names)],
                    path,
                )

    return RowStream(len(names), np.dtype(np.float64), names, False, blocks)


def _parquet_stream(path: str, target: str | None) -> RowStream:
    parquet = parquet_module()
    schema = parquet.read_schema(path)
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    columns = [name for name in schema.names if name not in index]
    names = feature_columns(columns, target, path)

    def blocks() -> Iterator[Any]:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_READ_ROWS, columns=list(names)):
                yield numeric_values(batch.to_pandas(), path)

    return RowStream(len(names), np.dtype(np.float64), names, False, blocks)


def parquet_module() -> Any:
    """Return pyarrow's Parquet reader, or raise ImportError with the way to it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow; pip install 'dsel[io]'."
        ) from error
    return parquet


def _npz_stream(path: str) -> RowStream:
    with zipfile.ZipFile(path) as archive:
        if "X.npy" not in archive.namelist():
            found = ", ".join(archive.namelist()) or "nothing"
            raise ValueError(f"`source` {path!r} must hold an array X, found {found}.")
        with archive.open("X.npy") as member:
            shape, dtype = _npy_header(member, path)
    with np.load(path, allow_pickle=False) as arrays:
        names = named_columns(arrays)
    blocks = partial(_npz_blocks, path, shape, dtype)
    return RowStream(shape[1], dtype, names, False, blocks)


def named_columns(arrays: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the column names that an npz file holds beside ``X``, if any."""
    for key in ("feature_names", "columns"):
        if key in arrays:
            return tuple(map(str, np.asarray(arrays[key])))
    return None


def _npy_header(member: Any, path: str) -> tuple[tuple[int, int], np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(member)
    if len(shape) != 2 or fortran or dtype.kind not in "buif":
        raise ValueError(
            f"`source` {path!r} must hold X as a numeric, two-dimensional, C-ordered "
            f"array, got shape {shape} and type {dtype}."
        )
    return shape, dtype


def _npz_blocks(
    path: str, shape: tuple[int, int], dtype: np.dtype[Any]
) -> Iterator[Any]:
    """Read the member as a stream: an array in a zip archive cannot be mapped."""
    n_rows, n_columns = shape
    with zipfile.ZipFile(path) as archive, archive.open("X.npy") as member:
        _npy_header(member, path)
        for start in range(0, n_rows, _READ_ROWS):
            rows = min(_READ_ROWS, n_rows - start)
            raw = member.read(rows * n_columns * dtype.itemsize)
            yield np.frombuffer(raw, dtype=dtype).reshape(rows, n_columns)


def _svmlight_stream(path: str) -> RowStream:
    first, last = _svmlight_range(path)
    zero_based = first == 0
    n_columns = last + zero_based

    def blocks() -> Iterator[Any]:
        for lines in _line_blocks(path):
            yield _svmlight_rows(lines, n_features=n_columns, zero_based=zero_based)

    return RowStream(n_columns, np.dtype(np.float64), None, True, blocks)


def _svmlight_range(path: str) -> tuple[int, int]:
    """Return the smallest and largest column number as written: one pass."""
    first, last, n_rows = 1, 0, 0
    for lines in _line_blocks(path):
        X = _svmlight_rows(lines, zero_based=True)
        n_rows += X.shape[0]
        if X.nnz:
            first = min(first, int(X.indices.min()))
            last = max(last, int(X.indices.max()))
    if not n_rows:
        raise ValueError(f"`source` {path!r} must hold a row at least, but has none.")
    return first, last


def _line_blocks(path: str) -> Iterator[BinaryIO]:
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        while lines := list(islice(file, _READ_ROWS)):
            yield BytesIO(b"".join(lines))


def _svmlight_rows(lines: BinaryIO, **options: Any) -> Any:
    from sklearn.datasets import load_svmlight_file  # takes a while to import

    X, _ = load_svmlight_file(lines, **options)
    return sparse.csr_matrix(X)
