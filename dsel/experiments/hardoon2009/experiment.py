"""Hardoon, Hussain and Shawe-Taylor (2009): nonconformity against cross-validation.

Tables 1 to 3 and Figure 2: ten outer folds; of the other nine min(l / 5, 50) rows are
held out, on the rest 110 RBF machines are trained. Cross-validation and the largest
margin use the same training rows, and all three methods the same test rows.

`docs/project/papers.md` says what was found: the paper did not scale its features.
`tests/reference/hardoon2009.json` has every number.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from dsel.data.splits import holdout_split, random_folds
from dsel.experiments.base import Experiment
from dsel.experiments.hardoon2009.numbers import DEPARTURES, ERRORS, NORMS
from dsel.experiments.hardoon2009.sets import (
    RECIPES,
    SCALINGS,
    SIZES,
    Table,
    load_table,
    scale_to_range,
)
from dsel.experiments.hardoon2009.tables import (
    ALL_METHODS,
    MOST_COUNT,
    compare,
    figures,
)
from dsel.nonconformity import NonconformityClassifier
from dsel.searches import execute, plan_search

N_FOLDS: Final = 10


@dataclass(frozen=True)
class Scale:
    """How much of the paper is run."""

    sets: tuple[str, ...] = tuple(SIZES)
    scalings: tuple[str, ...] = SCALINGS
    repetitions: int = 10
    """Outer folds that are run, of ten."""
    C: tuple[float, ...] = tuple(2.0**power for power in range(-5, 16, 2))
    """Table 2."""
    gamma: tuple[float, ...] = tuple(2.0**power for power in range(-15, 4, 2))
    """Table 2; libsvm's default grid, its signs are lost in our text of the paper."""
    ties: str = "random"
    """Tie rule of the nonconformity choice; the paper's is random."""
    seed: int = 0
    """Seed of outer folds, split and ties."""


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "small": Scale(
        sets=("glass", "bupa"), scalings=("range",), repetitions=2,
        C=(2.0**-1, 2.0**3, 2.0**7), gamma=(2.0**-5, 2.0**-1),
    ),
}  # fmt: skip


@cache
def _warm_up(seed: int) -> None:
    """Compile what is compiled on first use, so that no fold's seconds include it."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), np.tile([-1, 1], 30)
    cross_validation(X, y, Scale(C=(1.0,), gamma=(1.0,), seed=seed))


def measure(
    table: Table, folds: Sequence[int], scale: Scale
) -> list[dict[str, NDArray[np.float64]]]:
    """Return what all methods do on some outer folds, over scalings."""
    _warm_up(scale.seed)
    pieces = []
    for fold in folds:
        found = [run_fold(_scaled(table, each), fold, scale) for each in scale.scalings]
        piece = {name: np.array([each[name] for each in found]) for name in found[0]}
        piece["size"] = np.array(size_of(table), dtype=float)
        pieces.append(piece)
    return pieces


def _scaled(table: Table, scaling: str) -> Table:
    X, y = table
    return (scale_to_range(X) if scaling == "range" else X), y


def run_fold(table: Table, fold: int, scale: Scale) -> dict[str, Any]:
    """Return error and seconds of each method on one outer fold.

    Returns
    -------
    dict
        ``error`` and ``seconds`` by method; of the nonconformity choice the test rows
        at every critical count, ``kept`` and ``wrong``, and ``n_held``.
    """
    X, y = table
    outer = random_folds(len(y), N_FOLDS, seed=scale.seed)
    inside, outside = np.flatnonzero(outer != fold), np.flatnonzero(outer == fold)
    n_held = min(len(inside) // 5, 50)
    # The classifier makes this same split; the other methods train on its first part.
    split = holdout_split(len(inside), n_held, seed=scale.seed)
    train = inside[split.train_rows]
    wrong, times = [], []

    def ask(started: float, predict: Callable[[Any], Any]) -> None:
        wrong.append(predict(X[outside]) != y[outside])
        times.append(time.perf_counter() - started)

    started = time.perf_counter()
    model = NonconformityClassifier(
        SVC(), grid(scale), validation_size=n_held, ties=scale.ties,
        random_state=scale.seed,
    ).fit(X[inside], y[inside])  # fmt: skip
    fitting = time.perf_counter() - started
    ask(started, model.predict)
    started = time.perf_counter()
    ask(started, cross_validation(X[train], y[train], scale).predict)
    # The largest margin asks the same models, trained on the same rows.
    for norm in (np.inf, *NORMS.values()):
        started = time.perf_counter() - fitting
        ask(started, partial(largest_margin, model, norm))
    counts = np.rint(model.critical_epsilon(X[outside]) * n_held).astype(int)
    return {
        "error": [float(each.mean()) for each in wrong],
        "seconds": times,
        "kept": np.bincount(counts, minlength=MOST_COUNT),
        "wrong": np.bincount(counts, wrong[0], minlength=MOST_COUNT),
        "n_held": float(n_held),
    }


def largest_margin(
    model: NonconformityClassifier, norm: float, X: NDArray[np.float64]
) -> NDArray[Any]:
    """Predict by SVM-L-infinity: at each row the sign of the largest |f| of any model.

    With another `norm` a label weighs that norm of the margins of all models that
    predict it; equal weights go to the label of the largest margin.
    """
    scores = model.models_.scores(X)
    margins = scores[..., 1] - scores[..., 0]
    first = margins[np.argmax(np.abs(margins), axis=0), np.arange(len(X))]
    weights = [
        np.linalg.norm(np.where(side, margins, 0.0), norm, axis=0)
        for side in (margins < 0, margins >= 0)
    ]
    equal = weights[0] == weights[1]
    codes = np.where(equal, first >= 0, weights[1] > weights[0])
    return np.asarray(model.classes_[codes.astype(np.int64)])


def size_of(table: Table) -> tuple[int, ...]:
    """Return rows, columns, positive and negative rows of a set, as Table 1 does."""
    X, y = table
    return (*X.shape, int((y > 0).sum()), int((y < 0).sum()))


def grid(scale: Scale) -> dict[str, list[float]]:
    """Return the grid of Table 2."""
    return {"C": list(scale.C), "gamma": list(scale.gamma)}


def cross_validation(X: NDArray[np.float64], y: NDArray[np.int64], scale: Scale) -> Any:
    """Choose by ten-fold cross-validation, exhaustively, and train on all rows."""
    plan = plan_search(
        SVC(), grid(scale), X, y, cv=10, prune=False, random_state=scale.seed
    )
    return execute(plan, with_model=True).model


EXPERIMENT: Final = Experiment(
    name="hardoon2009",
    paper="Hardoon, Hussain and Shawe-Taylor (2009), nonconformity of all models",
    shows="Tables 1 to 3 and Figure 2: three ways to choose among 110 SVMs",
    duration="about half an hour",
    scales=SCALES,
    files={name: recipe[0] for name, recipe in RECIPES.items()},
    measured={
        **dict.fromkeys(("error", "seconds"), ("scaling", "method")),
        **dict.fromkeys(("kept", "wrong"), ("scaling", "count")),
        "n_held": ("scaling",),
        "size": ("column",),
    },
    axes=lambda scale: {
        "scaling": scale.scalings,
        "method": ALL_METHODS,
        "count": tuple(range(MOST_COUNT)),
        "column": ("rows", "columns", "positive rows", "negative rows"),
        **grid(scale),
    },
    load=load_table,
    measure=measure,
    compare=compare,
    figures=figures,
    errors=ERRORS,
    departures=DEPARTURES,
    spreads=True,  # so that methods are timed one after the other
    most_repetitions=N_FOLDS,
)
