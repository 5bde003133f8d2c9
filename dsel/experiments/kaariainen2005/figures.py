"""Figures 1 and 2 of Kääriäinen (2005), drawn from the first division of each set."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel.experiments.base import Figure
from dsel.experiments.pieces import REPETITION
from dsel.plots.panels import Grid, Lines, draw_alone, draw_map, draw_surfaces

LABELS: Final = {
    "observed_error": "observed error",
    "cv_error": "CV estimate",
    "cv_bound": "bound",
}
"""What each number of a candidate is called, the observed error first."""


def figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return both figures of every set."""
    found = []
    for name in map(str, results.data_set.values):
        surfaces = results.surface.sel(data_set=name).isel({REPETITION: 0})
        found += [
            Figure(
                f"figure-1-{name}",
                f"Figure 1, {name}: observed error on the pool, CV estimate and bound "
                f"of every C and gamma, on the first division. Colours are logarithms, "
                f"the same in all maps; a dot marks the least.",
                partial(_draw_all, _grid(surfaces), name),
                height=8.0,
            ),
            Figure(
                f"figure-2-{name}",
                f"Figure 2, {name}: the same along gamma, at the C of the least "
                f"observed error.",
                partial(draw_alone, cross_section(surfaces, name)),
                width=6.4,
                height=3.6,
            ),
        ]
    return found


def cross_section(surfaces: xr.DataArray, name: str) -> Lines:
    """Return the curves along gamma at the C of the least observed error."""
    observed = surfaces.sel(number="observed_error")
    best = int(observed.min("gamma").argmin("C"))
    section = surfaces.isel(C=best)
    gammas = section.gamma.values
    return Lines(
        f"{name}, C = $2^{{{int(np.log2(section.C))}}}$",
        "gamma",
        "error rate",
        {
            label: (gammas, section.sel(number=number).values)
            for number, label in LABELS.items()
        },
        logarithmic="x",
    )


def _grid(surfaces: xr.DataArray) -> Grid:
    return Grid(
        "gamma",
        surfaces.gamma.values,
        "C",
        surfaces.C.values,
        {
            label: surfaces.sel(number=number).transpose("C", "gamma").values
            for number, label in LABELS.items()
        },
    )


def _draw_all(grid: Grid, name: str, drawing: Any) -> None:
    every = np.concatenate([values.ravel() for values in grid.surfaces.values()])
    ends = float(every[every > 0.0].min()), min(float(every.max()), 1.0)
    places = drawing.add_gridspec(2, 3, height_ratios=(2, 1))
    ax = drawing.add_subplot(places[0, :], projection="3d")
    draw_surfaces(grid, ax, title=f"{name}: error rates")
    for place, label in enumerate(grid.surfaces):
        ax = drawing.add_subplot(places[1, place])
        draw_map(grid, label, ax, ends=ends)
