"""Loog (2015): contrastive pessimistic likelihood for LDA on benchmark sets.

Tables 2 to 5: supervised, semi-supervised (MCPL), oracle and moment-constrained LDA
on 2d + K labeled rows, one half of the rest as the pool and the other as test rows.
Each repetition draws anew; repetitions are tasks on the current Dask client.

`docs/project/papers.md` says what was found, and what was tried where the text leaves
something open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel.experiments.base import Experiment
from dsel.experiments.comparison import mean_of
from dsel.experiments.loog2015.numbers import DEPARTURES, ERRORS
from dsel.experiments.loog2015.protocol import (
    FILES,
    GROWTH,
    METHODS,
    PARTS,
    Table,
    load_table,
    run_repetition,
    supervised_curve,
)
from dsel.experiments.loog2015.tables import compare


@dataclass(frozen=True)
class Scale:
    """How much of the paper is run."""

    sets: tuple[str, ...] = tuple(FILES)
    """Data sets, by the paper's abbreviations."""
    repetitions: int = 1000
    clean: bool = False
    """Whether scaling and PCA are fitted without the test rows."""
    seed: int = 0


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "medium": Scale(repetitions=200),
    "small": Scale(sets=("banknote", "climate", "spectf"), repetitions=4),
}
"""Sizes by name; comparisons within standard errors need "medium" or more."""


def load(name: str, *, folder: str | Path | None = None) -> dict[bool, Table]:
    """Return a set, raw (True) and preprocessed on all rows, by `Scale.clean`."""
    return {
        clean: load_table(name, clean=clean, folder=folder) for clean in (False, True)
    }


def measure(
    tables: Mapping[bool, Table], repeats: Sequence[int], scale: Scale
) -> list[dict[str, Any]]:
    """Return likelihoods and errors of all fits in some repetitions."""
    table = tables[scale.clean]
    how: dict[str, Any] = {"seed": scale.seed, "clean": scale.clean}
    return [
        {
            **run_repetition(table, each, **how),
            "grown_error": supervised_curve(table, each, **how),
        }
        for each in repeats
    ]


def learning_curve(
    table: str | Table,
    sizes: Sequence[int],
    *,
    n_repeats: int = 100,
    seed: int = 0,
    folder: str | Path | None = None,
) -> xr.Dataset:
    """Return the errors for growing numbers of labeled rows (section 6.3).

    `table` names a set, of which the paper looked at ``"low"`` and ``"spectf"``, or is
    any `dsel.experiments.loog2015.protocol.Table`, taken as it is. ``error`` and its
    ``standard_error`` are over n_labeled, classifier and part; the rows that are not
    labeled are halved into pool and test rows at every size.
    """
    if isinstance(table, str):
        table = load_table(table, folder=folder)
    errors = np.array(
        [
            [
                run_repetition(table, repeat, seed=seed, clean=False, n_labeled=size)[
                    "error"
                ]
                for size in sizes
            ]
            for repeat in range(n_repeats)
        ]
    )
    dims = ("n_labeled", "classifier", "part")
    mean, error = mean_of(errors)
    return xr.Dataset(
        {"error": (dims, mean), "standard_error": (dims, error)},
        coords={
            "n_labeled": list(sizes),
            "classifier": list(METHODS),
            "part": list(PARTS),
        },
        attrs={"data_set": table.name, "n_repeats": n_repeats, "seed": seed},
    )


EXPERIMENT: Final = Experiment(
    name="loog2015",
    paper="Loog (2015), contrastive pessimistic likelihood estimation",
    shows="Tables 3 to 5: likelihoods, errors and wins of four discriminant analyses",
    duration="about an hour",
    scales=SCALES,
    files=FILES,
    measured={
        "log_likelihood": ("classifier", "part"),
        "error": ("classifier", "part"),
        "grown_error": ("growth",),
        **dict.fromkeys(
            ("duality_gap", "contrast_lower", "n_passes", "ridge", "seconds"), ()
        ),
    },
    axes=lambda scale: {"classifier": METHODS, "part": PARTS, "growth": GROWTH},
    load=load,
    measure=measure,
    compare=compare,
    errors=ERRORS,
    departures=DEPARTURES,
    block=10,
)
