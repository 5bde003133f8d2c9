"""Section 5 of Kääriäinen (2005): the bound and its choice go to the Bayes error.

The theorem asks that some candidate be consistent, that the most likely class lead all
others by a margin everywhere (the noise condition), and, unsaid, that delta go to 0
slowly. Here rows are uniform on a square, the likelier class is that of a wave, and is
the true one with probability 0.9 everywhere; candidates are nearest neighbours whose
number grows; the pool grows as the labeled rows do, and delta is n ** -1/2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from dsel.data.row_random import hashed_seed
from dsel.experiments.base import Experiment, Figure, made_up
from dsel.experiments.comparison import Comparison, compare_order, mean_of
from dsel.experiments.pieces import REPETITION
from dsel.plots.panels import Lines, draw_alone
from dsel.searches import execute, plan_search

NOISE: Final = 0.1
"""Probability that a label is not the likelier one: the Bayes error."""
N_FRESH: Final = 20_000
"""Rows on which true errors are measured; their labels play no part."""
LEFT: Final = 0.25
"""Share of the distance to the Bayes error that may be left at the largest n."""
NUMBERS: Final = ("bound", "true_error", "label_term", "disagreement_term")


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    sets: tuple[str, ...] = ("wave",)
    sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    """Labeled rows, n; the pool has ten times as many."""
    repetitions: int = 20
    cv: int = 5
    seed: int = 0


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "small": Scale(sizes=(60, 600), repetitions=2),
}


def likelier(X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class that is the likelier one of each row."""
    return (X[:, 1] > 0.5 + 0.25 * np.sin(2 * np.pi * X[:, 0])).astype(np.int64)


def measure(
    name: str, repeats: Sequence[int], scale: Scale
) -> list[dict[str, NDArray[np.float64]]]:
    """Return the choice's bound, its terms and its true error, over n_labeled."""
    pieces = []
    for repeat in repeats:
        found = [_choice(name, repeat, n, scale) for n in scale.sizes]
        pieces.append({key: np.array([each[key] for each in found]) for key in NUMBERS})
    return pieces


def _choice(name: str, repeat: int, n: int, scale: Scale) -> dict[str, float]:
    rng = np.random.default_rng(hashed_seed(scale.seed, name, repeat, n))
    X, pool, fresh = (rng.random((rows, 2)) for rows in (n, 10 * n, N_FRESH))
    y = likelier(X) ^ (rng.random(n) < NOISE)
    # About n ** 0.6 neighbours are consistent; the others are there to be refused.
    neighbours = sorted({1, *(int(n**power) for power in (0.2, 0.4, 0.6, 0.8))})
    plan = plan_search(
        KNeighborsClassifier(),
        {"n_neighbors": neighbours},
        X,
        y,
        pool,
        criterion="cv_bound",
        cv=scale.cv,
        delta=n**-0.5,
        random_state=scale.seed,
    )
    outcome = execute(plan, with_model=True, n_jobs=1)
    certificate = outcome.choice.certificate
    missed = float(np.mean(outcome.model.predict(fresh) != likelier(fresh)))
    return {
        "bound": certificate.unclipped,
        "true_error": NOISE + (1.0 - 2.0 * NOISE) * missed,
        "label_term": certificate.label_term,
        "disagreement_term": certificate.disagreement_term,
    }


def compare(results: xr.Dataset) -> list[Comparison]:
    """Hold bound and error to Theorem 2: their distance to the Bayes error falls.

    It falls at every step, and to less than `LEFT` of what it was from first to last.
    """
    lines, n = [], results.sizes[REPETITION]
    sizes = results.n_labeled.values
    for name in map(str, results.data_set.values):
        here = results.sel(data_set=name)
        for key, source in (("bound", "Lemma 3"), ("true_error", "Theorem 2")):
            falls = -here[key].diff("n_labeled")
            for small, large in pairwise(sizes):
                ours = mean_of(falls.sel(n_labeled=large))
                what = f"{key.replace('_', ' ')}, n = {small} less n = {large}"
                lines.append(compare_order(source, name, what, ours=ours, n=n))
            excess = here[key] - NOISE
            gone = LEFT * excess.isel(n_labeled=0) - excess.isel(n_labeled=-1)
            what = f"{LEFT} of {key.replace('_', ' ')} - Bayes error, n = {sizes[0]}"
            what = f"{what}, less all of it, n = {sizes[-1]}"
            lines.append(compare_order(source, name, what, ours=mean_of(gone), n=n))
        # The bound is never over-optimistic in the limit, here for no n.
        least = float((here.bound - here.true_error).min()), float("nan")
        what = "smallest bound - true error"
        lines.append(compare_order("Lemma 1", name, what, ours=least, n=n))
    return lines


def figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return how bound and error of the choice fall as rows grow."""
    mean = results.mean(REPETITION)
    found = []
    for name in map(str, results.data_set.values):
        here, sizes = mean.sel(data_set=name), mean.n_labeled.values
        lines = Lines(
            "the choice by the bound, mean of repetitions",
            "labeled rows (pool: ten times as many)",
            "error rate",
            {
                "true error": (sizes, here.true_error.values),
                "bound": (sizes, here.bound.values),
                "disagreement term": (sizes, here.disagreement_term.values),
                "Bayes error": (sizes, np.full(len(sizes), NOISE)),
            },
            logarithmic="x",
            dashed=("Bayes error",),
        )
        caption = "Section 5: the bound and its choice's error go to the Bayes error."
        found.append(
            Figure(f"consistency-{name}", caption, partial(draw_alone, lines), 6.4, 4.0)
        )
    return found


CONSISTENCY: Final = Experiment(
    name="kaariainen2005-consistency",
    paper="Kääriäinen (2005), semi-supervised model selection by cross-validation",
    shows="section 5: bound and error of the choice go to the Bayes error",
    duration="a few minutes",
    scales=SCALES,
    files={},
    measured=dict.fromkeys(NUMBERS, ("n_labeled",)),
    axes=lambda scale: {"n_labeled": scale.sizes},
    load=made_up,
    measure=measure,
    compare=compare,
    figures=figures,
    errors=("Theorem 2 needs a delta that goes to 0 slowly, which is not said.",),
    departures=(
        "The paper has no experiment on its theorem: data, candidates and sizes are "
        "ours.",
    ),
)
