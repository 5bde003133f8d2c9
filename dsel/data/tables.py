"""Tables from the usual files: in memory, or some rows at a time."""

import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.zarr_rows import stored_columns
from dsel.stores import BAD_HEADER, check_array

CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET: Final = (".parquet", ".parq", ".pq")
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
    """A CSV, TSV or Parquet file, read from the first row to the last."""

    path: str
    columns: tuple[str, ...]

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Read the file from its beginning, some rows of numbers at a time."""
        for frame in self.frames():
            with _naming_file(self.path):
                yield _numeric_values(frame, self.path)

    def frames(self) -> Iterator[pd.DataFrame]:
        """Read the file from its beginning, some rows at a time, whatever they are."""
        with _naming_file(self.path):
            for frame in _frames(self.path, list(self.columns)):
                named = frame.set_axis(list(map(str, frame.columns)), axis=1)
                yield named[list(self.columns)]


def open_stream(path: str, *, target: str | None = None) -> RowStream:
    """Open a CSV, TSV or Parquet file, however large, to read all but one column."""
    with _naming_file(path):
        return RowStream(path, _feature_columns(_columns_of(path), target, path))


@contextmanager
def _naming_file(path: str) -> Iterator[None]:
    """Say which file it was where what reads it says only what is wrong with it."""
    try:
        yield
    except UNREADABLE as error:
        text = str(error).strip()
        if path in text:
            raise
        way = (
            "save arrays of numbers or text, such as y.astype(str)"
            if "allow_pickle" in text
            else "check that the file is whole and of that kind"
        )
        raise ValueError(
            f"{path!r} cannot be read as what its name says: {text.rstrip('.')}; {way}."
        ) from error


def _csv_separator(path: str) -> str:
    """Return what stands between the values of a line."""
    return "\t" if ".tsv" in path.lower() else ","


def _feature_columns(
    columns: list[str], target: str | None, path: str
) -> tuple[str, ...]:
    """Return the columns without the target, which must be one of them."""
    if target is not None and target not in columns:
        raise ValueError(
            f"`target` must be a column of {path!r}, got {target!r}; it has "
            f"{', '.join(columns[:20])}."
        )
    return tuple(name for name in columns if name != target)


def _numeric_values(frame: pd.DataFrame, path: str) -> Any:
    """Return a frame's values as float64, or raise TypeError where one is none."""
    way = "write it to a path that ends in .parquet"
    if path.lower().endswith(PARQUET):
        way = "a search takes the file itself as its pool"
    for name, dtype in frame.dtypes.items():
        if len(frame) and getattr(dtype, "kind", "O") not in "buif":
            raise TypeError(
                f"`source` {path!r} must be numeric, but column {name!r} holds "
                f"{_first_text(frame[name])!r}; {way}, or encode it as numbers."
            )
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _first_text(column: pd.Series) -> Any:
    """Return the first value that is no number, else the first of all."""
    is_text = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    return column.iloc[int(is_text.to_numpy().argmax())]


def _columns_of(path: str) -> list[str]:
    if not path.lower().endswith(PARQUET):
        head = pd.read_csv(path, sep=_csv_separator(path), nrows=0)
        return list(map(str, head.columns))
    schema = parquet_module().read_schema(path)
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in schema.names if name not in index]


def _frames(path: str, columns: list[str]) -> Iterator[pd.DataFrame]:
    if not path.lower().endswith(PARQUET):
        with pd.read_csv(
            path, sep=_csv_separator(path), chunksize=_READ_ROWS
        ) as reader:
            for frame in reader:
                yield _of_one_width(frame, path)
        return
    with parquet_module().ParquetFile(path) as file:
        for batch in file.iter_batches(_READ_ROWS, columns=columns):
            yield batch.to_pandas()


def _of_one_width(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    """Return what pandas read of a file, or raise where it took values for an index.

    It does so where lines have one value more than the head. R writes names of rows so;
    by a separator at the end of each line every value would move by one column.
    """
    if frame.size and frame.iloc[:, -1].isna().all():
        separator = _csv_separator(path)
        line = pd.read_csv(path, sep=separator, header=None, skiprows=1, nrows=1)
        if line.shape[1] > frame.shape[1]:
            raise ValueError(
                f"its lines end in {separator!r} and its head does not, so that every "
                f"value would stand in another column; take it away, or write it there"
            )
    return frame


def parquet_module() -> Any:
    """Return pyarrow's Parquet reader, or raise ImportError with the way to it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow; pip install 'dsel[io]'."
        ) from error
    return parquet


def _named_columns(arrays: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the column names that an npz file holds beside ``X``, if any."""
    for key in ("feature_names", "columns"):
        if key in arrays:
            return tuple(map(str, np.asarray(arrays[key])))
    return None


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, labels and column names of a file."""

    X: Any
    """Features, shape (n_rows, n_columns), numeric array or CSR; a data frame where a
    column of CSV or Parquet holds something else."""
    y: NDArray[Any] | None
    """Labels, shape (n_rows,), as written, or class names where the file has them; None
    where no target was named or found."""
    columns: tuple[str, ...] | None
    """Names of the columns of `X`; None where the file has none."""
    split: NDArray[Any] | None = None
    """Official division of the rows (0 train, 1 test), where the file has one."""


def read_table(path: str | Path, *, target: str | None = None) -> Table:
    r"""Read a table into memory.

    Parameters
    ----------
    path
        A CSV, TSV, Parquet, npz or svmlight file, or a zarr group with ``X`` and
        ``y``. npz files and groups may hold ``classes`` (distinct names of the codes
        0, 1, ... in y), ``feature_names`` and ``split``. An npz file of scipy's
        `save_npz` is unlabeled. Nothing is ever unpickled.
    target
        Name of the column, or array, of labels. Without it a CSV or Parquet file is
        unlabeled, and npz and zarr take ``y``. Lines of svmlight files begin with the
        label, so they need none.

    Returns
    -------
    Table
        ``X``, ``y`` (None where unlabeled), ``columns`` and ``split``.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ValueError
        Where the kind of file is unknown, the target is not in it, or a code in ``y``
        is none of its classes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("age,label\n41,stays\n35,leaves\n")
    ...     table = read_table(path, target="label")
    >>> table.columns, table.y.tolist()
    (('age',), ['stays', 'leaves'])
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but there is nothing at {location!r}."
        )
    with _naming_file(location):
        return _read_kind(location, target)


def _read_kind(location: str, target: str | None) -> Table:
    lower = location.lower()
    if lower.endswith(CSV):
        frame = pd.read_csv(location, sep=_csv_separator(lower))
        return _from_frame(_of_one_width(frame, location), target, location)
    if lower.endswith(PARQUET):
        frame = parquet_module().read_table(location).to_pandas()
        return _from_frame(frame, target, location)
    if lower.endswith(NPZ):
        # numpy would leave a file open that is no archive.
        with open(location, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            if "indptr" in arrays and target is None:
                return Table(sparse.load_npz(location).tocsr(), None, None)
            return _from_arrays(arrays, target, location)
    if lower.endswith(SVMLIGHT):
        from sklearn.datasets import load_svmlight_file  # takes a while to import

        X, y = load_svmlight_file(location)
        return Table(X, _as_integers(y), None)
    return _from_zarr(location, target)


def _from_frame(frame: pd.DataFrame, target: str | None, path: str) -> Table:
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    names = _feature_columns(list(frame.columns), target, path)
    y = None if target is None else frame[target].to_numpy()
    rows = frame[list(names)]
    is_numeric = all(getattr(dtype, "kind", "O") in "buif" for dtype in rows.dtypes)
    as_numbers = is_numeric or not len(rows)
    return Table(_numeric_values(rows, path) if as_numbers else rows, y, names)


def _from_arrays(arrays: Mapping[str, Any], target: str | None, path: str) -> Table:
    name = target or "y"
    if "X" not in arrays or (target is not None and target not in arrays):
        missing = "X" if "X" not in arrays else target
        found = ", ".join(arrays) or "nothing"
        raise ValueError(f"{path!r} must hold an array {missing}, found {found}.")
    y = np.asarray(arrays[name]) if name in arrays else None
    if y is not None and name == "y" and "classes" in arrays:
        y = _class_names(y, np.asarray(arrays["classes"]), path)
    split = np.asarray(arrays["split"]) if "split" in arrays else None
    return Table(np.asarray(arrays["X"]), y, _named_columns(arrays), split)


def _class_names(codes: NDArray[Any], classes: NDArray[Any], path: str) -> NDArray[Any]:
    """Return the class name of each row, or say which code or name is none.

    A code of -1 is scikit-learn's mark of an unlabeled row, and would be numpy's last
    class: rows without a label belong into the pool.
    """
    names, times = np.unique(classes, return_counts=True)
    if classes.ndim != 1 or (times > 1).any():
        found = f"{names[times > 1].tolist()[0]!r} twice" if classes.ndim == 1 else ""
        raise ValueError(
            f"{path!r} must hold distinct names in its array classes, one for each "
            f"code of y, got {found or f'shape {classes.shape}'}; rename one of them."
        )
    whole = _as_integers(codes) if codes.dtype.kind in "fb" else codes
    if whole.dtype.kind not in "iu" or whole.ndim != 1:
        raise ValueError(
            f"{path!r} must hold codes of its {len(classes)} classes in y, whole "
            f"numbers from 0 to {len(classes) - 1}, got {whole.dtype} of shape "
            f"{whole.shape}; leave out classes where y holds the labels themselves."
        )
    wrong = np.flatnonzero((whole < 0) | (whole >= len(classes)))
    if len(wrong):
        raise ValueError(
            f"{path!r} must hold codes of its {len(classes)} classes in y, 0 to "
            f"{len(classes) - 1}, but {len(wrong):,} rows have others (row {wrong[0]} "
            f"has {whole[wrong[0]]}); rows without a label belong into the pool."
        )
    return np.asarray(classes[whole])


def _from_zarr(path: str, target: str | None) -> Table:
    try:
        group = zarr.open_group(path, mode="r")
        arrays = dict(group.arrays())
    except (FileNotFoundError, *BAD_HEADER) as error:
        endings = ", ".join((*CSV, *PARQUET, *NPZ, *SVMLIGHT))
        raise ValueError(
            f"`path` must end in one of {endings} or be a zarr group with X and y, "
            f"got {path!r}."
        ) from error
    for array in arrays.values():
        check_array(array)
    table = _from_arrays(arrays, target, path)
    columns = table.columns or stored_columns(group.attrs)
    return Table(table.X, table.y, columns, table.split)


def _as_integers(y: NDArray[np.float64]) -> NDArray[Any]:
    """Return labels that are whole numbers as such: svmlight has only floats."""
    with np.errstate(invalid="ignore"):  # NaN is no whole number
        whole = y.astype(np.int64)
    return whole if (whole == y).all() else y
