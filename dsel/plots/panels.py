"""Panels that the figures of several experiments are made of: lines, maps, surfaces.

Each takes arrays and draws them on an `Axes`; nothing is computed here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.plots.style import (
    ACCENT,
    BLUE,
    COLORMAP,
    GREEN,
    GREY,
    INK,
    PINK,
    tidy,
    value_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS: Final = (INK, BLUE, ACCENT, GREEN, PINK)
MARKERS: Final = "os^Dv"
"""Of lines and surfaces, in order: the truth comes first."""


@dataclass(frozen=True)
class Lines:
    """Curves over one quantity."""

    title: str
    x: str
    """What runs along the horizontal axis."""
    y: str
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]]
    """Places and values by label, drawn in order."""
    logarithmic: str = ""
    """``"x"``, ``"y"`` or ``"xy"``."""
    errors: Mapping[str, ArrayLike] | None = None
    """Half the length of the bars at each point, by label."""
    dashed: Sequence[str] = ()
    """Labels of curves that are no measurement of their own."""
    unconnected: bool = False
    """Whether points have no line between them."""


def draw_lines(data: Lines, ax: "Axes") -> None:
    """Draw curves with points, and a legend of their labels."""
    for number, (label, (places, values)) in enumerate(data.curves.items()):
        style = "" if data.unconnected else "--" if label in data.dashed else "-"
        bars = (data.errors or {}).get(label)
        ax.errorbar(
            np.asarray(places), np.asarray(values), yerr=bars, ls=style, lw=1.4,
            capsize=2, marker=MARKERS[number % len(MARKERS)], ms=3.5,
            color=COLORS[number % len(COLORS)], label=label,
        )  # fmt: skip
    if "x" in data.logarithmic:
        ax.set_xscale("log")
        _label_few(ax.xaxis, ax.get_xlim())
    else:
        ax.locator_params(axis="x", nbins=6)
    if "y" in data.logarithmic:
        ax.set_yscale("log")
        _label_few(ax.yaxis, ax.get_ylim())
    ax.set_xlabel(data.x, fontsize=8)
    ax.set_ylabel(data.y, fontsize=8)
    if len(data.curves) > 1:
        ax.legend(frameon=False, fontsize=7)
    tidy(ax, title=data.title)


def _label_few(axis: Any, ends: tuple[float, float]) -> None:
    """Write plain numbers along a logarithmic axis of less than two decades."""
    from matplotlib import ticker

    ratio = ends[1] / ends[0]
    if ratio < 100.0:
        few = (
            ticker.MaxNLocator(5) if ratio < 4.0 else ticker.LogLocator(subs=(1, 2, 5))
        )
        axis.set_major_locator(few)
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def draw_alone(data: Lines, drawing: Any) -> None:
    """Draw curves as the only panel of an empty figure."""
    draw_lines(data, drawing.add_subplot())


@dataclass(frozen=True)
class Grid:
    """Some numbers over the two parameters of a grid."""

    x: str
    x_values: NDArray[Any]
    y: str
    y_values: NDArray[Any]
    surfaces: Mapping[str, NDArray[np.float64]]
    """By label, each of shape (y_values, x_values)."""


def draw_map(data: Grid, label: str, ax: "Axes", *, ends: tuple[float, float]) -> None:
    """Draw one of the surfaces as a map; a darker cell is a larger number.

    `ends` are the numbers of the lightest and the darkest colour, the same for maps
    that are to be compared. Between them colours are logarithmic, so that the shape
    shows where most numbers are small.
    """
    from matplotlib.colors import LogNorm

    values = data.surfaces[label]
    image = ax.imshow(
        values, origin="lower", aspect="auto", cmap=COLORMAP,
        norm=LogNorm(*ends, clip=True),
    )  # fmt: skip
    for axis, name, steps in (
        ("x", data.x, data.x_values),
        ("y", data.y, data.y_values),
    ):
        every = max(1, len(steps) // 5)
        getattr(ax, f"set_{axis}ticks")(
            range(0, len(steps), every), value_labels(steps)[::every]
        )
        getattr(ax, f"set_{axis}label")(name, fontsize=8)
    row, column = np.unravel_index(np.argmin(values), values.shape)
    ax.plot(column, row, "o", color=ACCENT, ms=5)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both", labelsize=7, colors=INK)
    _label_few(bar.ax.yaxis, ends)
    tidy(ax, title=f"{label}: least {values.min():.3f}")


def draw_surfaces(data: Grid, ax: Any, *, title: str) -> None:
    """Draw all surfaces over the logarithms of the parameters, on 3-d axes.

    The first surface is solid, the others are nets.
    """
    from matplotlib.lines import Line2D

    x, y = np.meshgrid(np.log2(data.x_values), np.log2(data.y_values))
    marks = []
    colors = (GREY, BLUE, ACCENT)
    for place, (label, values) in enumerate(data.surfaces.items()):
        if place == 0:
            ax.plot_surface(x, y, values, color=colors[0], linewidth=0, shade=True)
        else:
            cut = np.where(values <= 1.0, values, np.nan)  # above 1 it says nothing
            ax.plot_wireframe(x, y, cut, color=colors[place], linewidth=0.6)
        marks.append(Line2D([], [], color=colors[place], lw=3, label=label))
    ax.set_xlabel(f"$\\log_2$ {data.x}", color=INK, fontsize=8)
    ax.set_ylabel(f"$\\log_2$ {data.y}", color=INK, fontsize=8)
    ax.tick_params(labelsize=7, colors=INK)
    ax.set_zlim(0.0, min(1.0, max(each.max() for each in data.surfaces.values())))
    ax.view_init(elev=24, azim=52)  # errors of the smallest values are behind
    ax.legend(handles=marks, frameon=False, fontsize=7, loc="upper left")
    ax.set_title(title, loc="left", fontsize=10, color=INK)
