"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

"Perform simulations using Gaussian kernel models and quadratically constrained least
squares, and optimize the width and the regularization by cross-validation. Analyze the
results when changing the target function, the number of samples and the noise level."
The slides print no numbers. What must show: estimates follow the true error plus the
noise's variance, and their minimisers are nearly as good as the best candidate.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.data.row_random import hashed_seed
from dsel.experiments.base import Experiment, made_up
from dsel.experiments.comparison import (
    Comparison,
    compare_number,
    compare_order,
    mean_of,
)
from dsel.experiments.pieces import REPETITION
from dsel.experiments.sugiyama.figures import ORACLE, figures
from dsel.least_squares import LeastSquaresSearch, select_least_squares

Floats = NDArray[np.float64]

_SETTING: Final = ("n_samples", "noise")

DOMAIN: Final = 3.0
"""Inputs are uniform on [-3, 3]."""
DENSE: Final = 1000
"""Points of the grid on which the true error G is integrated."""
ESTIMATES: Final = ("loo", "gcv", "kfold", "holdout")
CHOSEN: Final = ("width", "regularization", "error")
"""What is kept of a choice; its error is the true G."""

CLAIMS: Final = {
    "holdout": ("slide 83", "hold-out by the first fold"),
    "loo": ("slide 84", "leave-one-out"),
    "kfold": ("slide 85", "hold-out, mean over all folds"),
}
"""Estimates that are said to be almost unbiased up to the noise: where, and names."""

STEADIER: Final = (
    ("slide 83", "holdout", "hold-out less that of its mean over all folds"),
    ("slide 85", "loo", "leave-one-out less that of hold-out, mean over all folds"),
)
"""Estimates than which k-fold is said to be more stable: where, and in words."""
CLOSE: Final = 1e-9
"""Relative difference up to which the closed form equals refits."""

TARGETS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "sin": lambda x: np.sin(2.0 * x),
    "sinc": np.sinc,
    "step": lambda x: np.where(x > 0.0, 1.0, 0.0),
}


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    sets: tuple[str, ...] = tuple(TARGETS)
    sizes: tuple[int, ...] = (20, 50, 100, 200)
    """Numbers of samples, n."""
    noises: tuple[float, ...] = (0.05, 0.1, 0.3)
    """Standard deviations of the noise, sigma."""
    repetitions: int = 20
    widths: tuple[float, ...] = tuple(np.geomspace(0.05, 5.0, 11).tolist())
    """c."""
    regularizations: tuple[float, ...] = tuple(np.geomspace(1e-6, 1e2, 17).tolist())
    """lambda."""
    penalty: str = "coefficients"
    """Of the slides; ``"rkhs"`` is kernel ridge regression."""
    seed: int = 0


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "small": Scale(
        sizes=(20, 50),
        noises=(0.1,),
        repetitions=3,
        widths=(0.1, 0.5, 2.0),
        regularizations=(1e-3, 1e-1, 10.0),
    ),
}


def measure(
    target: str, repeats: Sequence[int], scale: Scale
) -> list[dict[str, Floats]]:
    """Return what is estimated, chosen and true in some repeats of a target."""
    return [_measure_once(target, each, scale) for each in repeats]


def _measure_once(target: str, repeat: int, plan: Scale) -> dict[str, Floats]:
    """Return the choices and estimates of a repeat, over n_samples and noise first."""
    shape = (len(plan.sizes), len(plan.noises))
    choices = np.empty((*shape, 3, len(ESTIMATES) + 1))
    spread = np.empty((*shape, len(plan.widths), len(plan.regularizations)))
    grid = (len(plan.widths), len(plan.regularizations))
    estimates = np.empty((*shape, len(ESTIMATES) + 1, *grid))
    gaps = np.empty(len(plan.noises))
    for place in np.ndindex(shape):
        n, noise = plan.sizes[place[0]], plan.noises[place[1]]
        seed = hashed_seed(plan.seed, "sugiyama", target, n, noise, repeat)
        cube = search_once(plan, target, n, noise, np.random.default_rng(seed))
        if place[0] == 0:
            data = draw(target, n, noise, np.random.default_rng(seed))
            gaps[place[1]] = _closed_form_gap(cube, *data)
        choices[place], estimates[place] = _choices(cube), _surfaces(cube)
        spread[place] = holdout_estimates(cube).std(names.FOLD, ddof=1).values
    chosen = {f"chosen_{name}": choices[:, :, i] for i, name in enumerate(CHOSEN)}
    return {
        **chosen,
        "estimate": estimates,
        "holdout_spread": spread,
        "closed_form_gap": gaps,
    }


def _closed_form_gap(cube: xr.Dataset, X: Floats, y: Floats) -> float:
    """Return how far the closed form is from n refits, relatively, for its choice."""
    choice = select_least_squares(cube, "loo")
    width, lam = (choice.params[name] for name in ("width", "regularization"))
    basis = np.exp(-((X - X.T) ** 2) / (2.0 * width**2))
    rows = np.vstack([basis, np.sqrt(lam) * np.eye(len(y))])
    targets = np.append(y, np.zeros(len(y)))
    losses = []
    for row in range(len(y)):  # its basis function stays
        alpha = np.linalg.lstsq(np.delete(rows, row, 0), np.delete(targets, row))[0]
        losses.append((basis[row] @ alpha - y[row]) ** 2)
    return abs(choice.estimate / float(np.mean(losses)) - 1.0)


def search_once(
    plan: Scale, target: str, n_samples: int, noise: float, rng: np.random.Generator
) -> xr.Dataset:
    """Return the cube of one data set; its extra-sample estimate is the true G."""
    X, y = draw(target, n_samples, noise, rng)
    dense = dense_grid()
    search = LeastSquaresSearch(
        plan.widths,
        plan.regularizations,
        penalty=plan.penalty,
        cv=10,
        random_state=rng,
        n_jobs=1,
    )
    # Without noise in its targets the extra sample gives G, not G + sigma^2.
    return search.plan(X, y, dense, TARGETS[target](dense[:, 0])).run(n_jobs=1)


def draw(
    target: str, n_samples: int, noise: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return inputs, shape (n_samples, 1), and noisy targets."""
    X = rng.uniform(-DOMAIN, DOMAIN, (n_samples, 1))
    y = TARGETS[target](X[:, 0]) + noise * rng.standard_normal(n_samples)
    return X, y


def dense_grid() -> Floats:
    """Return midpoints of a fine partition of the domain, shape (DENSE, 1)."""
    steps = (np.arange(DENSE) + 0.5) / DENSE
    return np.asarray(DOMAIN * (2.0 * steps - 1.0))[:, np.newaxis]


def holdout_estimates(cube: xr.Dataset) -> xr.DataArray:
    """Return the estimate by each fold alone; their mean is that of ``kfold``."""
    return cube[names.FOLD_LOSSES] / cube[names.FOLD_ROWS]


def _choices(cube: xr.Dataset) -> Floats:
    """Return width, regularization and true error chosen by each criterion."""
    found = [
        select_least_squares(cube, "extra_sample" if name == ORACLE else name)
        for name in (*ESTIMATES, ORACLE)
    ]
    truth = cube[names.EXTRA_LOSS].values.ravel()
    return np.array(
        [
            [choice.params["width"] for choice in found],
            [choice.params["regularization"] for choice in found],
            [truth[choice.candidate] for choice in found],
        ]
    )


def _surfaces(cube: xr.Dataset) -> Floats:
    estimates = cube[names.ESTIMATE].sel(criterion=list(ESTIMATES)).values
    return np.concatenate([estimates, cube[names.EXTRA_LOSS].values[np.newaxis]])


def _axes(scale: Scale) -> dict[str, Sequence[Any]]:
    """Return the coordinates of what is measured."""
    return {
        "n_samples": scale.sizes,
        "noise": scale.noises,
        names.CRITERION: (*ESTIMATES, ORACLE),
        names.WIDTH: scale.widths,
        names.REGULARIZATION: scale.regularizations,
    }


def compare(results: xr.Dataset) -> list[Comparison]:
    """Hold the estimates to what the slides say, for the candidate of least mean G."""
    lines, n = _closed_form(results), results.sizes[REPETITION]
    cells = results.estimate.stack(
        cell=("data_set", "n_samples", "noise"),
        candidate=(names.WIDTH, names.REGULARIZATION),
    )
    for target, size, noise in cells.cell.values:
        each = cells.sel(cell=(target, size, noise))
        truth = each.sel(criterion=ORACLE)
        best = int(truth.mean(REPETITION).argmin("candidate"))
        where = f"{target}, n = {size}, sigma = {noise:g}"
        gaps = {
            name: (each.sel(criterion=name) - truth).isel(candidate=best) - noise**2
            for name in CLAIMS
        }
        for name, (source, label) in CLAIMS.items():
            ours = mean_of(gaps[name])
            what = f"mean of {label} - G - sigma^2"
            lines.append(
                compare_number(
                    source, where, what, printed=0.0, ours=ours, spread=ours[1], n=n
                )
            )
        for source, name, what in STEADIER:
            ours = mean_of(gaps[name] ** 2 - gaps["kfold"] ** 2)
            steady = f"squared error of {what}"
            lines.append(compare_order(source, where, steady, ours=ours, n=n))
    return lines


def _closed_form(results: xr.Dataset) -> list[Comparison]:
    """Hold the closed form of leave-one-out to refits, on the smallest samples."""
    n, size = results.sizes[REPETITION], results.n_samples.values[0]
    what = f"{CLOSE:g} - |closed form / refits - 1|, largest"
    source = "closed form of LOOCV"
    return [
        compare_order(
            source, f"{name}, n = {size}", what,
            ours=(CLOSE - float(gaps.max()), np.nan), n=n,
        )
        for name, gaps in results.closed_form_gap.groupby("data_set")
    ]  # fmt: skip


EXPERIMENT: Final = Experiment(
    name="sugiyama",
    paper="Sugiyama, slides on cross-validation: the homework",
    shows="slides 83 to 85, the closed form and the homework: estimates and choices",
    duration="about two minutes",
    scales=SCALES,
    files={},
    measured={
        **{f"chosen_{name}": (*_SETTING, names.CRITERION) for name in CHOSEN},
        "estimate": (*_SETTING, names.CRITERION, names.WIDTH, names.REGULARIZATION),
        "holdout_spread": (*_SETTING, names.WIDTH, names.REGULARIZATION),
        "closed_form_gap": ("noise",),
    },
    axes=_axes,
    load=made_up,
    measure=measure,
    compare=compare,
    figures=figures,
    errors=(),
    departures=(
        "The slides print no numbers: what they say of means is held to 0.",
        "Targets, sizes, noises and grids are ours; the homework leaves them open.",
    ),
)
