"""Panels that the figures of several papers are made of: lines, maps, surfaces."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

INK, BLUE, ACCENT, GREEN, PINK, GREY = (
    "#22303c", "#4a7fb5", "#d95f02", "#009e73", "#cc79a7", "#c9ccd1",
)  # fmt: skip
COLORS = (INK, BLUE, ACCENT, GREEN, PINK)
MARKERS = "os^Dv"
"""Of lines and surfaces, in order: the truth comes first."""


def empty(width: float = 9.0, height: float = 3.4) -> Any:
    """Return an empty matplotlib figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_lines(
    ax: Any,
    title: str,
    x: str,
    y: str,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    logarithmic: str = "",
    errors: Mapping[str, ArrayLike] | None = None,
    dashed: Sequence[str] = (),
    unconnected: bool = False,
) -> None:
    """Draw curves (places and values, by label), and a legend of their labels.

    `logarithmic` is ``"x"``, ``"y"`` or ``"xy"``; `errors` are half the lengths of the
    bars at each point, and `dashed` the curves that are no measurement of their own.
    """
    for number, (label, (places, values)) in enumerate(curves.items()):
        style = "" if unconnected else "--" if label in dashed else "-"
        ax.errorbar(
            np.asarray(places), np.asarray(values), ls=style, lw=1.4, capsize=2,
            yerr=(errors or {}).get(label), label=label, ms=3.5,
            marker=MARKERS[number % 5], color=COLORS[number % 5],
        )  # fmt: skip
    if "x" in logarithmic:
        ax.set_xscale("log")
        _label_few(ax.xaxis, ax.get_xlim())
    else:
        ax.locator_params(axis="x", nbins=6)
    if "y" in logarithmic:
        ax.set_yscale("log")
        _label_few(ax.yaxis, ax.get_ylim())
    ax.set_xlabel(x, fontsize=8)
    ax.set_ylabel(y, fontsize=8)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=7)
    _tidy(ax, title)


def _tidy(ax: Any, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0, which="both", labelsize=8, colors=INK)


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


def draw_map(
    ax: Any,
    title: str,
    x: tuple[str, NDArray[Any]],
    y: tuple[str, NDArray[Any]],
    values: NDArray[np.float64],
    *,
    ends: tuple[float, float],
) -> None:
    """Draw numbers over two parameters, which are powers of 2, as a map.

    A darker cell is a larger number; `ends` are those of the lightest and the darkest
    colour. Between them colours are logarithmic, so that the shape shows where most
    numbers are small.
    """
    from matplotlib.colors import LogNorm

    norm = LogNorm(*ends, clip=True)
    image = ax.imshow(values, origin="lower", aspect="auto", cmap="Blues", norm=norm)
    for axis, (name, steps) in ((ax.xaxis, x), (ax.yaxis, y)):
        every = max(1, len(steps) // 5)
        labels = [f"$2^{{{np.log2(value):g}}}$" for value in steps[::every]]
        axis.set_ticks(range(0, len(steps), every), labels)
        axis.set_label_text(name, fontsize=8)
    row, column = np.unravel_index(np.argmin(values), values.shape)
    ax.plot(column, row, "o", color=ACCENT, ms=5)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.ax.tick_params(length=0, which="both", labelsize=7)
    _label_few(bar.ax.yaxis, ends)
    _tidy(ax, f"{title}: least {values.min():.3f}")


def draw_surfaces(
    ax: Any,
    title: str,
    x: tuple[str, NDArray[Any]],
    y: tuple[str, NDArray[Any]],
    surfaces: Mapping[str, NDArray[np.float64]],
) -> None:
    """Draw all surfaces on 3-d axes: the first is solid, the others are nets."""
    from matplotlib.lines import Line2D

    places = np.meshgrid(np.log2(x[1]), np.log2(y[1]))
    marks = []
    for color, (label, values) in zip(
        (GREY, BLUE, ACCENT), surfaces.items(), strict=True
    ):
        if not marks:
            ax.plot_surface(*places, values, color=color, linewidth=0, shade=True)
        else:
            cut = np.where(values <= 1.0, values, np.nan)  # above 1 it says nothing
            ax.plot_wireframe(*places, cut, color=color, linewidth=0.6)
        marks.append(Line2D([], [], color=color, lw=3, label=label))
    ax.set_xlabel(f"$\\log_2$ {x[0]}", fontsize=8)
    ax.set_ylabel(f"$\\log_2$ {y[0]}", fontsize=8)
    ax.set_zlim(0.0, min(1.0, max(each.max() for each in surfaces.values())))
    ax.view_init(elev=24, azim=52)  # errors of the smallest values are behind
    ax.legend(handles=marks, frameon=False, fontsize=7, loc="upper left")
    ax.set_title(title, loc="left", fontsize=10, color=INK)
