"""Tables from the usual files: in memory, or some rows at a time."""

import gzip
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.frames import NUMERIC
from dsel.data.zarr_rows import stored_columns
from dsel.stores import BAD_HEADER, check_array

CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET: Final = (".parquet", ".parq", ".pq")
NPZ: Final = (".npz",)
SVMLIGHT: Final = (".svm", ".svmlight", ".libsvm", ".svm.gz", ".svmlight.gz")

UNREADABLE: Final = (
    EOFError,
    KeyError,  # pyarrow, of what pandas wrote about columns
    RuntimeError,  # of the decoders of zarr
    ValueError,
    gzip.BadGzipFile,
    tokenize.TokenError,  # numpy, of a header
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of files raise where one is cut short or of another kind."""


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Say which file it was where what reads it says only what is wrong with it."""
    try:
        yield
    except UNREADABLE as error:
        text = str(error).strip()
        if path in text:
            raise
        way = "check that the file is whole and of that kind"
        if "allow_pickle" in text:
            way = "save arrays of numbers or text, such as y.astype(str)"
        raise ValueError(
            f"{path!r} cannot be read as what its name says: {text.rstrip('.')}; {way}."
        ) from error


def feature_columns(
    columns: Sequence[str], target: str | None, where: str
) -> list[str]:
    """Return the columns without the target, which must be one of them."""
    if target is not None and target not in columns:
        raise ValueError(
            f"`target` must be a column of {where}, got {target!r}; it has "
            f"{', '.join(columns[:20]) or 'no names'}."
        )
    return [name for name in columns if name != target]


def csv_columns(path: str, target: str | None) -> list[str]:
    """Return the columns of a CSV or TSV file without the target."""
    with naming_file(path):
        head = _of_one_width(_read_csv(path, nrows=0))
    columns = feature_columns(list(head.columns), target, repr(path))
    if not columns:
        raise ValueError(
            f"`source` {path!r} must have columns beside {target!r}, got none; "
            f"there is nothing to write."
        )
    return columns


def csv_frames(
    path: str, columns: Sequence[str], n_rows: int
) -> Iterator[pd.DataFrame]:
    """Read columns of a CSV or TSV file, however large, so many rows at a time."""
    with naming_file(path), _read_csv(path, chunksize=n_rows) as reader:
        for frame in reader:
            if frame.empty:  # which pandas gives where there is nothing but a head
                raise ValueError(
                    f"`source` {path!r} must have rows, but has a head only; there is "
                    f"nothing to write."
                )
            yield _of_one_width(frame)[list(columns)]


def _read_csv(path: str, **options: Any) -> Any:
    return pd.read_csv(path, sep="\t" if ".tsv" in path.lower() else ",", **options)


def _of_one_width(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what pandas read of a file without the index that pandas wrote."""
    # Where lines have one value more than the head, as those that end in a separator,
    # pandas takes the first for an index, and every value moves by one column.
    if len(frame) and not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(
            "its lines have one value more than its head; name every column in the "
            "head, and end no line with a separator"
        )
    names = list(map(str, frame.columns))
    has_index = names[:1] == ["Unnamed: 0"]  # so pandas calls no name
    return frame.set_axis(names, axis=1).iloc[:, int(has_index) :]


def parquet_module() -> Any:
    """Return pyarrow's Parquet reader, or raise ImportError with the way to it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow; pip install 'dsel[io]'."
        ) from error
    return parquet


class Table(NamedTuple):
    """Rows, labels and column names of a file."""

    X: Any
    """Features: numeric array or CSR; a data frame where a column of CSV or Parquet
    holds something else."""
    y: NDArray[Any] | None
    """Labels as written, or class names where the file has them; None without any."""
    columns: tuple[str, ...] | None = None
    """Names of the columns of `X`."""


def read_table(path: str | Path, *, target: str | None = None) -> Table:
    """Read a CSV, TSV, Parquet, npz, svmlight or zarr table into memory.

    npz files and zarr groups have arrays ``X`` and ``y``, or `target`, and may have
    ``classes``, names of the codes in y, and ``feature_names``. Nothing is unpickled.
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but there is nothing at {location!r}."
        )
    lower = location.lower()
    with naming_file(location):
        if lower.endswith(CSV):
            frame = _of_one_width(_read_csv(location))
            return _of_frame(frame, target, location)
        if lower.endswith(PARQUET):
            frame = parquet_module().read_table(location).to_pandas()
            return _of_frame(frame, target, location)
        if lower.endswith(NPZ):
            # numpy would leave a file open that is no archive.
            with (
                open(location, "rb") as file,
                np.load(file, allow_pickle=False) as arrays,
            ):
                if "indptr" in arrays and target is None:
                    return Table(sparse.load_npz(location).tocsr(), None)
                return _of_arrays(arrays, target, location)
        if lower.endswith(SVMLIGHT):
            from sklearn.datasets import load_svmlight_file  # takes a while to import

            if target is not None:
                raise ValueError(
                    f"`target` names no column of {location!r}, whose lines begin with "
                    f"their label, got {target!r}; leave it out."
                )
            X, y = load_svmlight_file(location)
            return Table(X, _as_integers(y))
        try:
            group = zarr.open_group(location, mode="r")
            arrays = dict(group.arrays())
        except (FileNotFoundError, *BAD_HEADER) as error:
            endings = ", ".join((*CSV, *PARQUET, *NPZ, *SVMLIGHT))
            raise ValueError(
                f"`path` must end in one of {endings} or be a zarr group with X and y, "
                f"got {location!r}."
            ) from error
        for array in arrays.values():
            check_array(array)
        table = _of_arrays(arrays, target, location)
        names = table.columns or stored_columns(group.attrs, repr(location))
        return table._replace(columns=names)


def _of_frame(frame: pd.DataFrame, target: str | None, path: str) -> Table:
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    names = feature_columns(list(frame.columns), target, repr(path))
    y = None if target is None else frame[target].to_numpy()
    X: Any = frame[names]
    if not len(X) or all(getattr(each, "kind", "O") in NUMERIC for each in X.dtypes):
        X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    return Table(X, y, tuple(names))


def _of_arrays(arrays: Mapping[str, Any], target: str | None, path: str) -> Table:
    for needed in ("X", target):
        if needed is not None and needed not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise ValueError(f"{path!r} must hold an array {needed!r}, found {found}.")
    name = "y" if target is None else target
    y = np.asarray(arrays[name]) if name in arrays else None
    if y is not None and name == "y" and "classes" in arrays:
        classes = np.asarray(arrays["classes"])
        codes = _as_integers(y) if y.dtype.kind in "fb" else y
        are_codes = codes.dtype.kind in "iu" and codes.ndim == classes.ndim == 1
        n_names, wrong = len(np.unique(classes)), np.zeros(1, dtype=np.int64)
        if are_codes:
            wrong = np.flatnonzero((codes < 0) | (codes >= len(classes)))
        if len(wrong) or n_names < len(classes):
            met = f", {y[wrong[0]]} in row {wrong[0]}" if len(wrong) else ""
            raise ValueError(
                f"{path!r} must hold distinct names in its array classes, and in y "
                f"their codes, whole numbers from 0 to {classes.size - 1}, got "
                f"{n_names} names and {codes.dtype}{met}; rows without a label belong "
                f"into the pool, and labels as they are need no classes."
            )
        y = np.asarray(classes[codes])
    names = next((arrays[k] for k in ("feature_names", "columns") if k in arrays), None)
    columns = None if names is None else tuple(map(str, np.asarray(names)))
    return Table(np.asarray(arrays["X"]), y, columns)


def _as_integers(y: NDArray[np.float64]) -> NDArray[Any]:
    """Return labels that are whole numbers as such: svmlight has only floats."""
    with np.errstate(invalid="ignore"):  # NaN is no whole number
        whole = y.astype(np.int64)
    return whole if (whole == y).all() else y
