"""Benchmark sets by name, and scikit-learn's digits as a labeled part and a pool.

A set is a file ``<name>.npz`` in the folder of the benchmark sets, with arrays ``X``
(rows, as they come: nothing is scaled, missing values are NaN, categories are codes),
``y`` (codes of the classes, from 0), ``classes`` (their labels) and, where there are
any, ``split`` (0 for the official training rows, 1 for test rows), ``feature_names``
and ``categorical`` (0 or 1 for each column). Documents are ``<name>.jsonl.gz``, one
line each: ``{"text": ..., "label": ...}``. `PUBLIC_NAMES` lists their sources.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dsel.arrays import Bools, Floats, Integers
from dsel.checks import (
    check_choice,
    check_integer,
    check_path,
    check_string,
    check_strings,
    did_you_mean,
    offer_public,
    show,
)

__all__ = [
    "FOLDER_VARIABLE",
    "PUBLIC_NAMES",
    "BenchmarkSet",
    "PoolProblem",
    "check_files",
    "data_folder",
    "load_digits_problem",
    "load_set",
]
offer_public(globals())

FOLDER_VARIABLE: Final = "DSEL_DATA"
"""Environment variable that names the folder of the benchmark sets."""

PUBLIC_NAMES: Final[Mapping[str, str]] = {
    "adult": "UCI: Adult",
    "banknote": "UCI: Banknote Authentication",
    "breast_cancer_wisconsin": "UCI: Breast Cancer Wisconsin (Original)",
    "bupa": "UCI: Liver Disorders",
    "chess": "UCI: Chess (King-Rook vs. King-Pawn)",
    "climate": "UCI: Climate Model Simulation Crashes",
    "crx": "UCI: Credit Approval",
    "dna": "LIBSVM data, multi-class: dna",
    "gas_drift_zscored": "UCI: Gas Sensor Array Drift, standardized by batch",
    "glass": "UCI: Glass Identification",
    "haberman": "UCI: Haberman's Survival",
    "ionosphere": "UCI: Ionosphere",
    "letter": "UCI: Letter Recognition",
    "lrs": "UCI: Low Resolution Spectrometer, ones digit of the class",
    "magic": "UCI: MAGIC Gamma Telescope",
    "newsgroups5": "20 Newsgroups: baseball, hockey, atheism, both of religion",
    "optdigits": "UCI: Optical Recognition of Handwritten Digits",
    "pendigits": "UCI: Pen-Based Recognition of Handwritten Digits",
    "pima": "Pima Indians Diabetes, once of UCI",
    "qsar_biodegradation": "UCI: QSAR biodegradation",
    "reuters10": "Reuters-21578, Distribution 1.0: the ten largest topics",
    "satimage": "UCI: Statlog (Landsat Satellite)",
    "segment": "UCI: Statlog (Image Segmentation)",
    "shuttle": "UCI: Statlog (Shuttle)",
    "skin": "UCI: Skin Segmentation",
    "spambase": "UCI: Spambase",
    "spectf": "UCI: SPECTF Heart",
    "theorem": "UCI: First-order theorem proving",
    "usps": "LIBSVM data, multi-class: usps",
    "votes": "UCI: Congressional Voting Records",
}
"""Published names of the sets, by the names of their files."""


@dataclass(frozen=True, eq=False)
class BenchmarkSet:
    """A public classification data set."""

    name: str
    """Name of the file, without its ending."""
    X: NDArray[Any]
    """Features, shape (n_rows, n_columns); missing values are NaN."""
    y: Integers
    """Class codes, shape (n_rows,)."""
    classes: NDArray[Any]
    """Label of each code."""
    split: Integers | None
    """Official division (0 train, 1 test); None if there is none."""
    columns: tuple[str, ...] | None
    """Names of the features; None if they are not known."""
    categorical: Bools | None
    """Whether each column has integer codes of categories; None if not known."""


@dataclass(frozen=True, eq=False)
class PoolProblem:
    """Labeled rows and a pool whose labels are known, so that bounds can be checked."""

    X: Floats
    """Labeled rows."""
    y: NDArray[Any]
    """Their labels."""
    pool: Floats
    """Unlabeled rows."""
    pool_labels: NDArray[Any]
    """Labels of the pool, for checks only: no search may use them."""
    columns: tuple[str, ...]
    """Names of the features."""


def _find_folder(folder: str | Path | None) -> str | None:
    """Return the folder of the argument or the environment variable."""
    if folder is None:
        return os.environ.get(FOLDER_VARIABLE) or None
    return check_path(folder, "folder")


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the benchmark sets.

    Parameters
    ----------
    folder
        The folder; None takes the one in ``DSEL_DATA``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    path = _find_folder(folder)
    if not path or not Path(path).is_dir():
        raise FileNotFoundError(
            "`folder` must hold the benchmark sets, got "
            f"{path!r}; pass it, or set "
            f"{FOLDER_VARIABLE}."
        )
    return Path(path)


def check_files(wanted: Collection[str], *, folder: str | Path | None = None) -> None:
    """Raise FileNotFoundError if sets are missing; it has their published names.

    Parameters
    ----------
    wanted
        Names of files, without their endings.
    folder
        Folder of the files; None takes the one in ``DSEL_DATA``.
    """
    place = _find_folder(folder)
    file_names = (
        {path.name.split(".")[0] for path in Path(place).glob("*")} if place else ()
    )
    names = check_strings(wanted, "wanted")
    for name in names:
        check_choice(name, "wanted", [*PUBLIC_NAMES])
    missing = [
        f"{name} ({PUBLIC_NAMES[name]})" for name in names if name not in file_names
    ]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of {len(names)} benchmark sets are missing: "
            f"{'; '.join(missing)}. Put them into one folder, as described in the "
            f"docstring of dsel.datasets, and name it by --data or {FOLDER_VARIABLE}."
        )


def load_set(name: str, *, folder: str | Path | None = None) -> BenchmarkSet:
    """Load a benchmark set.

    Parameters
    ----------
    name
        Such as ``"satimage"``; the file is ``<name>.npz``.
    folder
        Folder of the file; None takes the one in ``DSEL_DATA``.

    Raises
    ------
    FileNotFoundError
        If there is no folder.
    ValueError
        If the folder has no such set; the message lists its sets.
    """
    place = data_folder(folder)
    check_string(name, "name")
    known = sorted(path.stem for path in place.glob("*.npz"))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ValueError(
            f"`name` must be a set in {place}, got {show(name)} of {listed}"
            f"{did_you_mean(name, known)}"
        )
    with np.load(place / f"{name}.npz", allow_pickle=False) as file:
        arrays = dict(file)
    names, types = arrays.get("feature_names"), {"split": np.int64, "categorical": bool}
    return BenchmarkSet(
        name=name,
        X=arrays["X"],
        y=arrays["y"].astype(np.int64),
        classes=arrays["classes"],
        columns=None if names is None else tuple(map(str, names)),
        **{
            key: arrays[key].astype(dtype) if key in arrays else None
            for key, dtype in types.items()
        },
    )


def load_digits_problem(*, n_labeled: int = 600) -> PoolProblem:
    """Return scikit-learn's digits as labeled rows and a pool, always the same.

    The 1,797 images of 8 x 8 pixels come with scikit-learn; pixels are divided by 16.

    Parameters
    ----------
    n_labeled
        Number of labeled rows, drawn at random; the others are the pool.

    Examples
    --------
    >>> problem = load_digits_problem()
    >>> problem.X.shape, problem.pool.shape
    ((600, 64), (1197, 64))
    """
    digits = load_digits()
    most = len(digits.target) - 10  # one row of every class, at least
    check_integer(n_labeled, "n_labeled", at_least=10, at_most=most)
    X, pool, y, pool_labels = train_test_split(
        digits.data / 16.0, digits.target, train_size=n_labeled, random_state=0
    )
    return PoolProblem(X, y, pool, pool_labels, tuple(digits.feature_names))
