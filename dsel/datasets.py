"""Benchmark sets by name, and scikit-learn's digits as a labeled part and a pool."""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FOLDER_VARIABLE: Final = "DSEL_DATA"
"""Environment variable that names the folder of the benchmark sets."""


@dataclass(frozen=True, eq=False)
class BenchmarkSet:
    """A public classification data set."""

    name: str
    """As in the file's name."""
    X: NDArray[Any]
    """Features, shape (n_rows, n_columns); missing values are NaN."""
    y: NDArray[np.int64]
    """Class codes, shape (n_rows,)."""
    classes: NDArray[Any]
    """Label of each code."""
    split: NDArray[np.int64] | None
    """Official division (0 train, 1 test), where there is one."""
    columns: tuple[str, ...] | None
    """Names of the features, where they are known."""
    categorical: NDArray[np.bool_] | None
    """Which columns hold integer codes of categories, where that is told."""


@dataclass(frozen=True, eq=False)
class PoolProblem:
    """Labeled rows and a pool whose labels are known, to check a certificate with."""

    X: NDArray[np.float64]
    """Labeled rows."""
    y: NDArray[Any]
    """Their labels."""
    pool: NDArray[np.float64]
    """Unlabeled rows."""
    pool_labels: NDArray[Any]
    """Labels of the pool that no search may see."""
    columns: tuple[str, ...]
    """Names of the features."""


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the benchmark sets.

    Parameters
    ----------
    folder
        The folder, or None for the one that ``DSEL_DATA`` names.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    """
    named = folder or os.environ.get(FOLDER_VARIABLE)
    if not named or not Path(named).is_dir():
        raise FileNotFoundError(
            "`folder` must hold the benchmark sets, got "
            f"{None if named is None else str(named)!r}; pass it, or set "
            f"{FOLDER_VARIABLE}."
        )
    return Path(named)


def load_set(name: str, *, folder: str | Path | None = None) -> BenchmarkSet:
    """Load a benchmark set.

    Parameters
    ----------
    name
        Such as ``"satimage"``; the file is ``<name>.npz``.
    folder
        Where it is; None takes ``DSEL_DATA``.

    Raises
    ------
    FileNotFoundError
        Where there is no folder.
    ValueError
        Where it has no such set; the message lists those there are.
    """
    path = _path(name, ".npz", folder)
    with np.load(path, allow_pickle=False) as arrays:
        return BenchmarkSet(
            name=name,
            X=arrays["X"],
            y=arrays["y"].astype(np.int64),
            classes=arrays["classes"],
            split=_optional(arrays, "split", np.int64),
            columns=(
                tuple(map(str, arrays["feature_names"]))
                if "feature_names" in arrays
                else None
            ),
            categorical=_optional(arrays, "categorical", np.bool_),
        )


def load_documents(
    name: str, *, folder: str | Path | None = None
) -> tuple[list[str], list[str]]:
    """Load a set of documents: texts and labels, one of each per document.

    Parameters
    ----------
    name
        ``"newsgroups5"`` or ``"reuters10"``; the file is ``<name>.jsonl.gz``.
    folder
        Where it is; None takes ``DSEL_DATA``.

    Raises
    ------
    FileNotFoundError
        Where there is no folder.
    ValueError
        Where it has no such set; the message lists those there are.
    """
    path = _path(name, ".jsonl.gz", folder)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    return [d["text"] for d in documents], [d["label"] for d in documents]


def load_digits_problem(*, n_labeled: int = 600) -> PoolProblem:
    """Return scikit-learn's digits as labeled rows and a pool, always the same.

    The 1,797 images of 8 x 8 pixels come with scikit-learn; pixels are divided by 16.

    Parameters
    ----------
    n_labeled
        Rows drawn at random to be labeled; the others are the pool.

    Examples
    --------
    >>> problem = load_digits_problem()
    >>> problem.X.shape, problem.pool.shape
    ((600, 64), (1197, 64))
    """
    digits = load_digits()
    X, pool, y, pool_labels = train_test_split(
        digits.data / 16.0, digits.target, train_size=n_labeled, random_state=0
    )
    return PoolProblem(X, y, pool, pool_labels, tuple(digits.feature_names))


def _path(name: str, ending: str, folder: str | Path | None) -> Path:
    place = data_folder(folder)
    known = sorted(p.name.removesuffix(ending) for p in place.glob(f"*{ending}"))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ValueError(f"`name` must be a set in {place}, got {name!r} of {listed}.")
    return place / f"{name}{ending}"


def _optional(arrays: Any, name: str, dtype: Any) -> Any:
    return arrays[name].astype(dtype) if name in arrays else None
