"""Figures 1 to 3 of Madani, Pennock and Flake (2004), for every problem."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel.experiments.base import Figure
from dsel.experiments.madani2004.tables import chosen_errors, findings
from dsel.experiments.pieces import REPETITION
from dsel.plots.panels import Lines, draw_lines

DRAWN: Final = {
    "true_error": "trueE",
    "half_true_error": "1/2trueE",
    "max_dt_e": "maxDtE",
    "two_fold_cv": "2cvE",
    "loo_error": "looE",
}
"""Curves of Figure 1, by the paper's names."""
RATIOS: Final = {
    "figure_2a": "(2cvE - trueE) / (disE - trueE)",
    "figure_2b": "disE / trueE",
    "figure_2c": "disE / (1/2trueE)",
}
"""Panels of Figure 2."""
SAMPLINGS: Final = {"random": "random rows", "active": "picked rows"}


def estimate_figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return Figure 1, one for each problem, and Figure 2, of all of them.

    Parameters
    ----------
    results
        Of `dsel.experiments.madani2004.ESTIMATION`.
    """
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
            width=9.0,
            height=height,
        )
        for name in map(str, results.data_set.values)
    ]


def _draw_figure_1(here: xr.Dataset, drawing: Any) -> None:
    mean = here.mean(REPETITION)
    axes = drawing.subplots(1, 2, sharey=True)
    for ax, (sampling, title) in zip(axes, SAMPLINGS.items(), strict=True):
        cell, sizes = mean.sel(sampling=sampling), mean.n_labeled.values
        curves = {label: (sizes, cell[name].values) for name, label in DRAWN.items()}
        draw_lines(Lines(title, "labeled rows", "error rate", curves), ax)


def _draw_figure_2(results: xr.Dataset, drawing: Any) -> None:
    ratios = findings(results).sel(sampling="active")
    sizes = ratios.n_labeled.values
    for ax, (name, title) in zip(drawing.subplots(1, 3), RATIOS.items(), strict=True):
        for number, each in enumerate(map(str, ratios.data_set.values)):
            values = ratios[name].sel(data_set=each).values
            ax.plot(
                sizes, values, color=f"C{number}", marker="os^Dvx+*"[number % 8],
                ms=4, lw=1, label=each,
            )  # fmt: skip
        frame = Lines(title, "labeled rows", "ratio of means", {})
        ax.axhline(1.0, color="0.4", ls=":", lw=1)
        draw_lines(frame, ax)
        # A difference near 0 below makes some ratios huge.
        if name == "figure_2a":
            ax.set_yscale("symlog", linthresh=1.0)
    ax.legend(frameon=False, fontsize=7)


def choice_figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return Figure 3: error curves over the degrees, and all choices.

    Parameters
    ----------
    results
        Of `dsel.experiments.madani2004.SELECTION`.
    """
    text = (
        "true error and criteria over the degree, at every number of picked rows; "
        "means of trials."
    )
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
            label: (degrees, cell[name].values)
            for name, label in DRAWN.items()
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
