"""Labeled tables that fit in memory, from the usual files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray

from dsel.data.open import stored_columns
from dsel.data.streams import (
    CSV,
    NPZ,
    PARQUET,
    SVMLIGHT,
    csv_separator,
    feature_columns,
    named_columns,
    naming_file,
    numeric_values,
    parquet_module,
)
from dsel.stores import BAD_HEADER, check_array


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds; unlabeled where no target was named or found."""

    X: Any
    """Features, shape (n_rows, n_columns), numeric array or CSR."""
    y: NDArray[Any] | None
    """Labels, shape (n_rows,), as written; class names where the file has them."""
    columns: tuple[str, ...] | None
    """Names of the features."""
    split: NDArray[Any] | None = None
    """Official division of the rows (0 train, 1 test), where the file has one."""


def read_table(path: str | Path, *, target: str | None = None) -> Table:
    """Read a table into memory.

    Parameters
    ----------
    path
        A CSV, TSV, Parquet, npz or svmlight file, or a zarr group with ``X`` and
        ``y``. npz files and groups may hold ``classes`` (distinct names of the codes
        0, 1, ... in y), ``feature_names`` and ``split``. Nothing is ever unpickled.
    target
        Column, or array, of labels. Without it CSV and Parquet are unlabeled, npz
        and zarr take ``y``; svmlight files say it themselves.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    TypeError
        Where a feature is not numeric.
    ValueError
        Where the kind of file is unknown, the target is not in it, or a code in y is
        none of its classes.
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but there is nothing at {location!r}."
        )
    with naming_file(location):
        return _read_kind(location, target)


def _read_kind(location: str, target: str | None) -> Table:
    lower = location.lower()
    if lower.endswith(CSV):
        return _from_frame(
            pd.read_csv(location, sep=csv_separator(lower)), target, location
        )
    if lower.endswith(PARQUET):
        frame = parquet_module().read_table(location).to_pandas()
        return _from_frame(frame, target, location)
    if lower.endswith(NPZ):
        # numpy would leave a file open that is no archive.
        with open(location, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _from_arrays(arrays, target, location)
    if lower.endswith(SVMLIGHT):
        from sklearn.datasets import load_svmlight_file  # takes a while to import

        X, y = load_svmlight_file(location)
        return Table(X, _as_integers(y), None)
    return _from_zarr(location, target)


def _from_frame(frame: pd.DataFrame, target: str | None, path: str) -> Table:
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    names = feature_columns(list(frame.columns), target, path)
    y = None if target is None else frame[target].to_numpy()
    return Table(numeric_values(frame[list(names)], path), y, names)


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
    return Table(np.asarray(arrays["X"]), y, named_columns(arrays), split)


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
