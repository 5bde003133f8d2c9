"""Kääriäinen (2005): C and gamma of an SVM, chosen by the semi-supervised bound.

A tenth of the examples of a set lose their labels and are the pool; on the others every
kernel SVM of the grid gets its error of cross-validation and its bound. Both choices
are then compared with the pool's true labels. The paper has one division of each
of six sets; its seed is not known, so what can be compared is the pattern: how often
both choose the same model, whose is better where they do not, and that every bound says
something and holds.

`docs/project/papers.md` says what was found, with the printed grid, too.
`tests/reference/kaariainen2005.json` has every division.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from dsel import names
from dsel.data.row_random import hashed_seed
from dsel.datasets import BenchmarkSet, load_set
from dsel.experiments.base import Experiment
from dsel.experiments.kaariainen2005.figures import figures
from dsel.experiments.kaariainen2005.tables import (
    CRITERIA,
    DEPARTURES,
    ERRORS,
    SETS,
    SURFACES,
    compare,
)
from dsel.searches import Plan, execute, plan_search, select
from dsel.searches.evaluate import evaluate

GRIDS: Final[Mapping[str, tuple[tuple[int, int], tuple[int, int]]]] = {
    "hsu-lin": ((-2, 12), (-10, 4)),
    "printed": ((-10, 4), (-2, 12)),
}
"""First and last exponent of C and of gamma: those of Hsu and Lin (2002), whom the
paper cites, and as it prints them, one for the other."""


@dataclass(frozen=True)
class Scale:
    """How much of the paper is run."""

    sets: tuple[str, ...] = SETS
    repetitions: int = 20
    """Divisions into labeled rows and pool; the paper has one."""
    most_rows: int | None = None
    """Rows of a set that take part, drawn at random; None for all."""
    cv: int = 10
    step: int = 1
    """Between exponents of the grid: 1 gives the paper's 225 models."""
    grid: str = "hsu-lin"
    delta: float = 0.01
    """Chance that any bound of a search fails."""
    seed: int = 0


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "medium": Scale(sets=("dna", "satimage", "segment"), most_rows=2500),
    "small": Scale(
        sets=("segment",), repetitions=2, most_rows=500, cv=5, step=7, delta=0.1
    ),
}


@dataclass(frozen=True, eq=False)
class Division:
    """One division of a set."""

    X: NDArray[np.float64]
    """Labeled rows, scaled, shape (n_labeled, n_columns)."""
    y: NDArray[np.int64]
    pool: NDArray[np.float64]
    """A tenth of the rows, shape (n_unlabeled, n_columns)."""
    truth: NDArray[np.int64]
    """The labels that it lost."""


def divide(table: BenchmarkSet, division: int, scale: Scale) -> Division:
    """Return a division of a set; every tenth row loses its label, at random."""
    rng = np.random.default_rng(hashed_seed(scale.seed, table.name, division))
    rows = rng.permutation(len(table.y))[: scale.most_rows]
    X = MinMaxScaler((-1, 1)).fit_transform(np.asarray(table.X[rows], dtype=float))
    y, n_pool = table.y[rows].astype(np.int64), len(rows) // 10
    return Division(X[n_pool:], y[n_pool:], X[:n_pool], y[:n_pool])


def grid_of(scale: Scale) -> dict[str, NDArray[np.float64]]:
    """Return the values of C and of gamma, ascending."""
    ends = dict(zip(("C", "gamma"), GRIDS[scale.grid], strict=True))
    return {
        name: np.exp2(np.arange(first, last + 1, scale.step, dtype=np.float64))
        for name, (first, last) in ends.items()
    }


def plan_division(drawn: Division, scale: Scale) -> Plan:
    """Return the search of one division: all models, none left out."""
    return plan_search(
        SVC(),
        grid_of(scale),
        drawn.X,
        drawn.y,
        drawn.pool,
        pool_labels=drawn.truth,
        criterion="cv_bound",
        cv=scale.cv,
        delta=scale.delta,
        duplicates="keep",
        prune=False,
        random_state=scale.seed,
    )


def measure(
    table: BenchmarkSet, divisions: Sequence[int], scale: Scale, *, out: Any = None
) -> list[dict[str, Any]]:
    """Return what either criterion chooses on some divisions of a set.

    `out` is the place of the search where there is only one division.
    """
    drawn = [divide(table, each, scale) for each in divisions]
    return [run_division(each, scale, out=out) for each in drawn]


def run_division(drawn: Division, scale: Scale, *, out: Any = None) -> dict[str, Any]:
    """Return what each criterion chooses on one division, and all that it sees.

    Returns
    -------
    dict
        Of the choice of either of `CRITERIA`: ``candidate``, ``estimate`` (error of
        cross-validation, or bound), ``observed_error`` on the pool's true labels, and
        ``tied``, whether its criterion likes the other's choice as well; and
        ``surface``, the observed error and both numbers of every candidate.
    """
    plan = plan_division(drawn, scale)
    results = execute(plan, out=out).results
    chosen = [select(results, criterion=name).candidate for name in CRITERIA]
    surface = np.array(
        [evaluate(results, SURFACES[name]).estimate.values for name in SURFACES]
    )
    observed, *numbers = surface.reshape(len(SURFACES), -1)
    return {
        "candidate": chosen,
        "estimate": [numbers[i][each] for i, each in enumerate(chosen)],
        "observed_error": [observed[number] for number in chosen],
        "tied": [row[chosen[0]] == row[chosen[1]] for row in numbers],
        "surface": surface,
    }


EXPERIMENT: Final = Experiment(
    name="kaariainen2005",
    paper="Kääriäinen (2005), semi-supervised model selection by cross-validation",
    shows="Figures 1 and 2, and what section 4 says of bounds, estimates and choices",
    duration="half a minute a division; usps two, letter and shuttle half an hour",
    scales=SCALES,
    files={name: name for name in SETS},
    measured={
        **dict.fromkeys(
            ("candidate", "estimate", "observed_error", "tied"), (names.CRITERION,)
        ),
        "surface": ("number", "C", "gamma"),
    },
    axes=lambda scale: {
        names.CRITERION: CRITERIA,
        "number": tuple(SURFACES),
        **{name: values.tolist() for name, values in grid_of(scale).items()},
    },
    load=load_set,
    measure=measure,
    compare=compare,
    figures=figures,
    errors=ERRORS,
    departures=DEPARTURES,
    spreads=True,
    is_search=True,
)
