"""Which root the constrained LDA of Table 5 of Loog (2015) takes.

The method moves rows from one covariance to another by a root that the text does not
define. Three interpretations, each with its errors:

- ``invariant``: the root of the one times the inverse of the other, which does not
  depend on coordinates, and a small ridge where the labeled rows are singular. This is
  `MomentConstrainedLDA`. It agrees with the table where labeled rows are regular.
- ``careless``: the same without a check for singular matrices. It gives what is printed
  where they are singular: on optical in every draw, where the error is that of
  guessing, 0.9 (the paper calls the reason unclear), on spambase in half of them,
  0.31, and on qsar in a few, 0.23. Rounding makes these numbers.
- ``symmetric``: one symmetric root times the inverse of the other. Landsat (0.257 here,
  0.308 printed) and pen-based (0.288, 0.299 printed) rule it out.
"""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.linalg import sqrtm

from dsel.experiments.comparison import mean_of
from dsel.experiments.loog2015.numbers import CONSTRAINED, CONSTRAINED_COLUMNS
from dsel.experiments.loog2015.protocol import (
    PARTS,
    SINGULAR_RIDGE,
    Table,
    draw_rows,
    load_table,
    needed_ridge,
)
from dsel.models.baselines.moment_constrained import root_of_ratio

Floats = NDArray[np.float64]


def symmetric_map(everywhere: Floats, here: Floats) -> Floats:
    """Return the product of the symmetric root and the inverse symmetric root."""
    values, vectors = np.linalg.eigh(here)
    return np.asarray(sqrtm(everywhere).real @ (vectors / np.sqrt(values)) @ vectors.T)


def careless_map(everywhere: Floats, here: Floats) -> Floats:
    """Return the root of ``everywhere here^-1``, whatever rounding makes of it."""
    return np.asarray(sqrtm(everywhere @ np.linalg.inv(here)).real)


MAPS: Final[Mapping[str, Callable[[Floats, Floats], Floats]]] = MappingProxyType(
    {
        "invariant": root_of_ratio,
        "careless": careless_map,
        "symmetric": symmetric_map,
    }
)
"""Interpretations; all but ``careless`` get a ridge where one is needed."""


def compare_roots(
    name: str,
    *,
    n_repeats: int = 200,
    seed: int = 0,
    folder: str | Path | None = None,
) -> xr.Dataset:
    """Return the errors of constrained LDA under every interpretation.

    Parameters
    ----------
    name
        The set, as the paper abbreviates it.
    n_repeats
        Repetitions.
    seed
        Seed of the draws, which are those of `dsel.experiments.loog2015.EXPERIMENT`.
    folder
        Folder of the benchmark sets; None takes ``DSEL_DATA``.

    Returns
    -------
    xarray.Dataset
        ``error`` and its ``standard_error`` over reading and part, ``published`` over
        part, and ``n_singular``, draws of singular labeled covariance.
    """
    table = load_table(name, folder=folder)
    draws = [_errors(table, repeat, seed) for repeat in range(n_repeats)]
    mean, error = mean_of([errors for errors, _ in draws])
    printed = dict(zip(CONSTRAINED_COLUMNS, CONSTRAINED[name], strict=True))
    dims = ("reading", "part")
    return xr.Dataset(
        {
            "error": (dims, mean),
            "standard_error": (dims, error),
            "published": ("part", [printed[f"error_{part}"] for part in PARTS]),
            "n_singular": sum(is_singular for _, is_singular in draws),
        },
        coords={"reading": list(MAPS), "part": list(PARTS)},
        attrs={"data_set": name, "n_repeats": n_repeats, "seed": seed},
    )


def _errors(table: Table, repeat: int, seed: int) -> tuple[list[list[float]], bool]:
    """Return the errors of one draw, readings x parts, and whether it is singular."""
    draw = draw_rows(table, repeat, seed=seed)
    X, y = table.X[draw.labeled], table.y[draw.labeled]
    train = np.concatenate([draw.labeled, draw.unlabeled])
    everywhere, here = (np.cov(Z.T, bias=True) for Z in (table.X[train], X))
    is_singular = needed_ridge(X, y) > 0.0
    found = []
    for reading, make in MAPS.items():
        ridge = SINGULAR_RIDGE if is_singular and reading != "careless" else 0.0
        floor = ridge * np.eye(len(here))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # singular matrices are the point
            mapping = make(everywhere + floor, here + floor)
        moved = (X - X.mean(axis=0)) @ mapping.T + table.X[train].mean(axis=0)
        linear, offsets = _scores(moved, y, mapping @ floor @ mapping.T)
        found.append(
            [
                float(np.mean((Z @ linear.T + offsets).argmax(axis=1) != labels))
                for Z, labels in (
                    (table.X[rows], table.y[rows]) for rows in (draw.test, train)
                )
            ]
        )
    return found, is_singular


def _scores(X: Floats, y: NDArray[np.int64], floor: Floats) -> tuple[Floats, Floats]:
    """Return LDA's linear scores; the covariance is inverted by singular values."""
    counts = np.bincount(y).astype(np.float64)
    means = np.array([X[y == code].mean(axis=0) for code in range(len(counts))])
    steps = X - means[y]
    left, values, right = np.linalg.svd(steps.T @ steps / len(y) + floor)
    values = np.maximum(values, np.finfo(np.float64).tiny)
    linear = means @ (right.T / values) @ left.T
    offsets = np.log(counts / len(y)) - 0.5 * np.einsum("kd,kd->k", linear, means)
    return np.asarray(linear), np.asarray(offsets)
