"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

"Perform simulations using Gaussian kernel models and quadratically constrained least
squares, and optimize the width and the regularization by cross-validation. Analyze the
results when changing the target function, the number of samples and the noise level."
The slides print no numbers. What must show: estimates follow the true error plus the
noise's variance, and their minimisers are nearly as good as the best candidate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.searches import LeastSquaresSearch, select_least_squares

Floats = NDArray[np.float64]

DOMAIN: Final = 3.0
"""Inputs are uniform on [-3, 3]."""
DENSE: Final = 1000
"""Points of the grid on which the true error G is integrated."""
ESTIMATES: Final = ("loo", "gcv", "kfold", "holdout")
ORACLE: Final = "true"
"""The choice by the true error itself, which nobody knows in earnest."""

TARGETS: Final[Mapping[str, Callable[[Floats], Floats]]] = MappingProxyType(
    {
        "sin": lambda x: np.sin(2.0 * x),
        "sinc": np.sinc,
        "step": lambda x: np.where(x > 0.0, 1.0, 0.0),
    }
)
"""Target functions f."""


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    targets: tuple[str, ...] = tuple(TARGETS)
    """Target functions."""
    sizes: tuple[int, ...] = (20, 50, 100, 200)
    """Numbers of samples, n."""
    noises: tuple[float, ...] = (0.05, 0.1, 0.3)
    """Standard deviations of the noise, sigma."""
    n_repeats: int = 20
    """Data sets of each kind."""
    widths: tuple[float, ...] = tuple(np.geomspace(0.05, 5.0, 11).tolist())
    """c."""
    regularizations: tuple[float, ...] = tuple(np.geomspace(1e-6, 1e2, 17).tolist())
    """lambda."""
    penalty: str = "coefficients"
    """Of the slides; ``"rkhs"`` is kernel ridge regression."""
    seed: int = 0
    """Seed of inputs, noise and folds."""


SCALES: Final[Mapping[str, Scale]] = MappingProxyType(
    {
        "full": Scale(),
        "small": Scale(
            sizes=(20, 50),
            noises=(0.1,),
            n_repeats=3,
            widths=(0.1, 0.5, 2.0),
            regularizations=(1e-3, 1e-1, 10.0),
        ),
    }
)
"""Sizes by name."""


def run(scale: str | Scale = "full") -> xr.Dataset:
    """Repeat the homework and keep what was estimated, chosen and true.

    Parameters
    ----------
    scale
        A name of `SCALES`, or a `Scale`.

    Returns
    -------
    xarray.Dataset
        Over target, n_samples, noise, repeat and criterion (with ``true`` for the best
        candidate): ``chosen_width``, ``chosen_regularization`` and ``chosen_error``,
        the true G of the choice. Over target, n_samples, noise, criterion, width and
        regularization: ``mean_estimate`` over the repeats; for ``true`` it is G, for
        the others an estimate of G + sigma^2.
    """
    plan = SCALES[scale] if isinstance(scale, str) else scale
    shape = (len(plan.targets), len(plan.sizes), len(plan.noises), plan.n_repeats)
    chosen = np.empty((3, *shape, len(ESTIMATES) + 1))
    grid = (len(plan.widths), len(plan.regularizations))
    total = np.zeros((*shape[:3], len(ESTIMATES) + 1, *grid))
    for place in np.ndindex(shape):
        setting = (plan.targets[place[0]], plan.sizes[place[1]], plan.noises[place[2]])
        seeds = np.random.SeedSequence([plan.seed, *place])
        cube = search_once(plan, *setting, np.random.default_rng(seeds))
        chosen[(slice(None), *place)] = _choices(cube)
        total[place[:3]] += _surfaces(cube)
    return _dataset(plan, chosen, total / plan.n_repeats)


def search_once(
    plan: Scale, target: str, n_samples: int, noise: float, rng: np.random.Generator
) -> xr.Dataset:
    """Return the cube of one data set; its extra-sample estimate is the true G.

    Parameters
    ----------
    plan
        Grid and penalty.
    target
        Name of the target function.
    n_samples
        n.
    noise
        sigma.
    rng
        Source of inputs, noise and folds.
    """
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


def summary(results: xr.Dataset) -> xr.Dataset:
    """Return the mean true error of the choices and how much worse than the best.

    Parameters
    ----------
    results
        From `run`.

    Returns
    -------
    xarray.Dataset
        ``mean_error`` and ``median_ratio`` over target, n_samples, noise and
        criterion; the ratio is to the best candidate of the same data set.
    """
    error = results["chosen_error"]
    ratio = error / error.sel(criterion=ORACLE)
    return xr.Dataset(
        {"mean_error": error.mean("repeat"), "median_ratio": ratio.median("repeat")}
    )


def draw_figure(results: xr.Dataset, path: str | Path, *, noise: float) -> None:
    """Draw estimates against the true error, and the error of the choices.

    Parameters
    ----------
    results
        From `run`.
    path
        Where the picture is written.
    noise
        Noise level that is shown.
    """
    from matplotlib import pyplot as plt

    targets = results["target"].values
    figure, axes = plt.subplots(
        len(targets), 2, figsize=(9.5, 2.9 * len(targets)), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for row, target in zip(axes, targets, strict=True):
        shown = results.sel(target=target, noise=noise)
        _draw_curves(shown, row[0], noise)
        _draw_choices(shown, row[1], noise)
    figure.savefig(path, dpi=110)
    plt.close(figure)


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


def _dataset(plan: Scale, chosen: Floats, surfaces: Floats) -> xr.Dataset:
    setting = ("target", "n_samples", "noise")
    choice = (*setting, "repeat", names.CRITERION)
    surface = (*setting, names.CRITERION, names.WIDTH, names.REGULARIZATION)
    return xr.Dataset(
        {
            "chosen_width": (choice, chosen[0]),
            "chosen_regularization": (choice, chosen[1]),
            "chosen_error": (choice, chosen[2]),
            "mean_estimate": (surface, surfaces),
        },
        coords={
            "target": list(plan.targets),
            "n_samples": list(plan.sizes),
            "noise": list(plan.noises),
            "repeat": np.arange(plan.n_repeats),
            names.CRITERION: [*ESTIMATES, ORACLE],
            names.WIDTH: list(plan.widths),
            names.REGULARIZATION: list(plan.regularizations),
        },
        attrs={"penalty": plan.penalty, "seed": str(plan.seed)},
    )


def _draw_curves(shown: xr.Dataset, axes: Any, noise: float) -> None:
    from dsel.plots.style import ACCENT, BLUE, INK, PALE, tidy

    size = shown["n_samples"].values[-1]
    surface = shown["mean_estimate"].sel(n_samples=size)
    truth = surface.sel(criterion=ORACLE)
    best = truth.min(names.REGULARIZATION).argmin(names.WIDTH)
    lams = surface[names.REGULARIZATION].values
    for name, color in zip(("loo", "gcv", "kfold"), (ACCENT, BLUE, PALE), strict=True):
        values = surface.sel(criterion=name).isel({names.WIDTH: best})
        axes.plot(lams, values, color=color, label=name)
    # Estimates less the variance may be negative, which no logarithm shows.
    expected = truth.isel({names.WIDTH: best}) + noise**2
    axes.plot(lams, expected, color=INK, ls="--", label="true G + noise variance")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("regularization", color=INK)
    axes.set_ylabel("squared error, mean of repeats", color=INK)
    axes.legend(frameon=False, fontsize=8)
    width = float(surface[names.WIDTH][best])
    tidy(axes, title=f"{shown['target'].item()}, n={size}, width {width:.2g}")


def _draw_choices(shown: xr.Dataset, axes: Any, noise: float) -> None:
    from dsel.plots.style import ACCENT, BLUE, GREY, INK, PALE, tidy

    mean = shown["chosen_error"].mean("repeat")
    colors = (ACCENT, BLUE, PALE, GREY, INK)
    for name, color in zip(mean[names.CRITERION].values, colors, strict=True):
        style = "--" if name == ORACLE else "-"
        axes.plot(
            mean["n_samples"], mean.sel(criterion=name), color=color, ls=style,
            marker="o", ms=3, label="best candidate" if name == ORACLE else name,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = [int(size) for size in mean["n_samples"].values]
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("samples", color=INK)
    axes.set_ylabel("true G, mean of repeats", color=INK)
    axes.legend(frameon=False, fontsize=8)
    tidy(axes, title=f"{shown['target'].item()}, noise {noise:g}: true G of the choice")
