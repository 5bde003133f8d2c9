"""Figures 1 to 3 of Madani, Pennock and Flake (2004), for every problem."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel.experiments.base import Figure
from dsel.experiments.madani2004.tables import LABELS, SAMPLINGS, chosen_errors
from dsel.experiments.pieces import REPETITION
from dsel.plots.panels import Lines, draw_lines

DRAWN: Final = ("true_error", "half_true_error", "max_dt_e", "two_fold_cv", "loo_error")
"""Curves of Figure 1."""
RATIOS: Final[Mapping[str, Callable[[xr.Dataset], xr.DataArray]]] = {
    "(2cvE - trueE) / (disE - trueE)": lambda mean: (
        (mean.two_fold_cv - mean.true_error) / (mean.dis_error - mean.true_error)
    ),
    "disE / trueE": lambda mean: mean.dis_error / mean.true_error,
    "disE / (1/2trueE)": lambda mean: mean.dis_error / mean.half_true_error,
}
"""Panels of Figure 2."""


def estimate_figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return Figure 1, one for each problem, and Figure 2, of the estimation."""
    text = (
        "error estimates with rows drawn at random (a) and picked by active learning "
        "(b); means of trials."
    )
    found = _of_each(results, "1", text, _draw_figure_1, height=3.4)
    caption = "Figure 2: ratios of estimates with picked rows; 1 is the dotted line."
    last = Figure("figure-2", caption, partial(_draw_figure_2, results), 9.0, 3.6)
    return [*found, last]


def _of_each(
    results: xr.Dataset,
    number: str,
    text: str,
    draw: Callable[[xr.Dataset, Any], None],
    *,
    height: float,
) -> list[Figure]:
    """Return a figure for each problem."""
    return [
        Figure(
            f"figure-{number}-{name}",
            f"Figure {number}, {name}: {text}",
            partial(draw, results.sel(data_set=name)),
            height=height,
        )
        for name in map(str, results.data_set.values)
    ]


def _draw_figure_1(here: xr.Dataset, drawing: Any) -> None:
    mean = here.mean(REPETITION)
    axes = drawing.subplots(1, 2, sharey=True)
    for ax, (sampling, title) in zip(axes, SAMPLINGS.items(), strict=True):
        cell, sizes = mean.sel(sampling=sampling), mean.n_labeled.values
        curves = {LABELS[name]: (sizes, cell[name].values) for name in DRAWN}
        draw_lines(Lines(title, "labeled rows", "error rate", curves), ax)


def _draw_figure_2(results: xr.Dataset, drawing: Any) -> None:
    mean = results.sel(sampling="active").mean(REPETITION)
    sizes = mean.n_labeled.values
    for ax, (title, ratio_of) in zip(
        drawing.subplots(1, 3), RATIOS.items(), strict=True
    ):
        for number, each in enumerate(map(str, mean.data_set.values)):
            values = ratio_of(mean.sel(data_set=each)).values
            ax.plot(
                sizes, values, color=f"C{number}", marker="os^Dvx+*"[number % 8],
                ms=4, lw=1, label=each,
            )  # fmt: skip
        frame = Lines(title, "labeled rows", "ratio of means", {})
        ax.axhline(1.0, color="0.4", ls=":", lw=1)
        draw_lines(frame, ax)
        # A difference near 0 below makes some ratios huge.
        if title.startswith("("):
            ax.set_yscale("symlog", linthresh=1.0)
    ax.legend(frameon=False, fontsize=7)


def choice_figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return Figure 3, of the selection: errors over the degrees, and all choices."""
    text = (
        "true error and criteria over the degree, at every number of picked rows; "
        "means of trials."
    )
    results = results.sel(sampling="active")
    height = 2.8 * ((results.sizes["n_labeled"] + 1) // 2)
    found = _of_each(results, "3a", text, _draw_figure_3a, height=height)
    caption = (
        "Figure 3(b): true error of the choice by looE against that by maxDtE, every "
        "problem and size; above the diagonal maxDtE does better."
    )
    last = Figure("figure-3b", caption, partial(_draw_figure_3b, results), 5.0, 4.6)
    return [*found, last]


def _draw_figure_3a(here: xr.Dataset, drawing: Any) -> None:
    mean, sizes = here.mean(REPETITION), here.n_labeled.values
    rows = (len(sizes) + 1) // 2
    axes = np.ravel(drawing.subplots(rows, 2, squeeze=False))
    for ax, n in zip(axes, sizes, strict=False):
        cell, degrees = mean.sel(n_labeled=n), mean.degree.values
        curves = {
            LABELS[name]: (degrees, cell[name].values)
            for name in DRAWN
            if name != "half_true_error"
        }
        draw_lines(Lines(f"{n} rows", "degree", "error rate", curves), ax)
    for ax in axes[len(sizes) :]:
        ax.set_axis_off()


def _draw_figure_3b(results: xr.Dataset, drawing: Any) -> None:
    errors = chosen_errors(results).mean(REPETITION)
    curves: dict[str, Any] = {}
    for n in errors.n_labeled.values:
        cell = errors.sel(n_labeled=n)
        # An error of 0 has no place on these axes.
        places, values = np.maximum([cell.max_dt_e.values, cell.loo_error.values], 1e-4)
        curves[f"{n} rows"] = (places, values)
    lines = Lines(
        "choices", "trueE of the choice by maxDtE", "trueE of the choice by looE",
        curves, logarithmic="xy", unconnected=True,
    )  # fmt: skip
    ax = drawing.add_subplot()
    ends = [min(np.min(each) for each in curves.values()), 0.5]
    ax.plot(ends, ends, color="0.4", ls=":", lw=1)
    draw_lines(lines, ax)
