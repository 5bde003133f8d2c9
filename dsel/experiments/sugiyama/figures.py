"""The homework of the slides, drawn: curves, choices, and the spread of hold-out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.experiments.base import Figure
from dsel.experiments.pieces import REPETITION
from dsel.plots.panels import Lines, draw_lines

ORACLE: Final = "true"
"""The choice by the true error itself, which is known for made-up data only."""
LABELS: Final = {
    "loo": "leave-one-out",
    "kfold": "mean over folds",
    "gcv": "GCV",
    "holdout": "one fold",
}
"""What each estimate is called, in the order in which all panels draw them."""


def figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return curves and errors of choices, the choices, and spreads, by noise level."""
    n_targets = results.sizes["data_set"]
    size = results.n_samples.values[-1]
    found = []
    for noise in results.noise.values.tolist():
        at = f"noise {noise:g}"
        panels: dict[str, tuple[str, tuple[Callable[..., Lines], ...]]] = {
            "homework": (
                f"Estimates against the truth at n = {size}, and the true error of "
                f"the choices, {at}.",
                (curves, errors),
            ),
            "choices": (
                f"Width and regularization that each estimate chooses, medians, {at}.",
                (partial(choices, name="width"),
                 partial(choices, name="regularization")),
            ),
            "spread": (
                f"Hold-out at n = {size}: how much it depends on the fold j, and its "
                f"distance from G + sigma^2, {at}.",
                (spreads, biases),
            ),
        }  # fmt: skip
        found += [
            Figure(
                f"{name}-noise-{noise:g}",
                caption,
                partial(_draw, results.sel(noise=noise), each),
                height=2.9 * n_targets,
            )
            for name, (caption, each) in panels.items()
        ]
    return found


def curves(shown: xr.Dataset) -> Lines:
    """Return estimates and truth along the regularizations, at the best width."""
    surface, best = _at_best_width(shown)
    mean = surface.mean(REPETITION)
    lams = mean[names.REGULARIZATION].values
    # Estimates less the variance may be negative, which no logarithm shows.
    truth = "true G + noise variance"
    drawn = {truth: (lams, (mean.sel(criterion=ORACLE) + shown.noise**2).values)}
    for name in ("loo", "kfold", "gcv"):
        drawn[LABELS[name]] = (lams, mean.sel(criterion=name).values)
    return Lines(
        f"{shown.data_set.item()}, n = {shown.n_samples.values[-1]}, width {best:.2g}",
        "regularization",
        "squared error, mean of repeats",
        drawn,
        logarithmic="xy",
        dashed=(truth,),
    )


def errors(shown: xr.Dataset) -> Lines:
    """Return the true error of the choices as samples grow."""
    mean = shown.chosen_error.mean(REPETITION)
    title, what = "true G of the choice", "true G, mean of repeats"
    return _over_samples(shown, mean, title=title, what=what)


def choices(shown: xr.Dataset, *, name: str) -> Lines:
    """Return the medians of a chosen parameter as samples grow."""
    median = shown[f"chosen_{name}"].median(REPETITION)
    title, what = f"chosen {name}", f"{name}, median of repeats"
    return _over_samples(shown, median, title=title, what=what)


def _over_samples(
    shown: xr.Dataset, values: xr.DataArray, *, title: str, what: str
) -> Lines:
    sizes, best = values.n_samples.values, "best candidate"
    by_label = {best: ORACLE, **{label: name for name, label in LABELS.items()}}
    return Lines(
        f"{shown.data_set.item()}: {title}",
        "samples",
        what,
        {
            label: (sizes, values.sel(criterion=name).values)
            for label, name in by_label.items()
        },
        logarithmic="xy",
        dashed=(best,),
    )


def spreads(shown: xr.Dataset) -> Lines:
    """Return the standard deviation of hold-out over the folds, and of their mean."""
    surface, best = _at_best_width(shown)
    spread = shown.holdout_spread.isel(n_samples=-1).sel({names.WIDTH: best})
    lams = surface[names.REGULARIZATION].values
    drawn = {
        "one fold, over j": (lams, spread.mean(REPETITION).values),
        "one fold, over repeats": (
            lams,
            surface.sel(criterion="holdout").std(REPETITION).values,
        ),
        "mean over folds, over repeats": (
            lams,
            surface.sel(criterion="kfold").std(REPETITION).values,
        ),
    }
    return Lines(
        f"{shown.data_set.item()}: standard deviations",
        "regularization",
        "squared error",
        drawn,
        logarithmic="xy",
    )


def biases(shown: xr.Dataset) -> Lines:
    """Return how far estimates are from G + sigma^2, with three standard errors."""
    surface, _ = _at_best_width(shown)
    lams = surface[names.REGULARIZATION].values
    truth = surface.sel(criterion=ORACLE) + shown.noise**2
    drawn, bars = {}, {}
    for name in ("holdout", "loo", "kfold"):
        label = LABELS[name]
        gap = surface.sel(criterion=name) - truth
        drawn[label] = (lams, gap.mean(REPETITION).values)
        error = gap.std(REPETITION, ddof=1) / np.sqrt(gap.sizes[REPETITION])
        bars[label] = 3.0 * error.values
    return Lines(
        f"{shown.data_set.item()}: estimate - G - $\\sigma^2$",
        "regularization",
        "squared error",
        drawn,
        logarithmic="x",
        errors=bars,
    )


def _at_best_width(shown: xr.Dataset) -> tuple[xr.DataArray, float]:
    """Return the estimates of the largest n at the width of least mean G."""
    surface = shown.estimate.isel(n_samples=-1)
    truth = surface.sel(criterion=ORACLE).mean(REPETITION)
    place = int(truth.min(names.REGULARIZATION).argmin(names.WIDTH))
    return surface.isel({names.WIDTH: place}), float(surface[names.WIDTH][place])


def _draw(
    results: xr.Dataset, panels: Sequence[Callable[..., Lines]], drawing: Any
) -> None:
    targets = results.data_set.values
    axes = drawing.subplots(len(targets), len(panels), squeeze=False)
    for row, target in zip(axes, targets, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            draw_lines(panel(results.sel(data_set=target)), ax)
