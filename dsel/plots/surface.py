"""A criterion over the grid: where the chosen candidate lies, and what was dropped."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel.checks import check_choice
from dsel.plots.style import (
    ACCENT,
    BLUE,
    COLORMAP,
    GREY,
    INK,
    ON_PALE,
    new_axes,
    params_label,
    tidy,
    value_labels,
)
from dsel.results.cube import candidate_dims
from dsel.results.rounding import at_least, at_most, confidence
from dsel.searches.evaluate import Evaluation, evaluate
from dsel.searches.select import select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOUND: Final = "bound on the error"
MOST_NUMBERS: Final = 15
"""Columns up to which every cell shows its number."""
DROPPED: Final = "hatched: dropped early; the number is a lower limit"


@dataclass(frozen=True)
class SurfaceData:
    """One number per candidate over one or two parameters, and the one chosen."""

    title: str
    """What was chosen and what is known of it."""
    label: str
    """What the numbers are."""
    x: str
    y: str
    """Parameters along the columns and the rows; no `y` where there is one row."""
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    values: NDArray[np.float64]
    """(rows, columns): unclipped; lower limits included; NaN where nothing is known."""
    is_limit: NDArray[np.bool_]
    """Where a value is only a lower limit: the candidate was dropped."""
    is_failed: NDArray[np.bool_]
    chosen: tuple[int, int] | None
    """Row and column of the choice; None where the counts do not decide it."""


def surface_data(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    x: str | None = None,
    y: str | None = None,
) -> SurfaceData:
    """Return the numbers of the surface figure.

    Parameters
    ----------
    results, criterion
        As `plot_surface` takes them.
    delta
        Probability with which its bounds may fail; by default that of the search.
    x, y
        Dimensions for columns and rows; by default the last two that vary. Over
        every other dimension the smallest number is shown.

    Raises
    ------
    ValueError
        Where the cube has no such dimension, or cannot answer.
    """
    evaluated = evaluate(results, criterion, delta=delta)
    dims = _axes_of(results, x, y)
    is_limit = evaluated.estimate.isnull()
    shown = evaluated.estimate.where(~is_limit, evaluated.at_least)
    is_failed = evaluated.estimate > np.finfo(float).max
    values, limits, failed = (
        _on_plane(each, shown, dims) for each in (shown, is_limit, is_failed)
    )
    at, title = _choice(results, evaluated, delta)
    labels = [tuple(value_labels(results[dim].values)) for dim in dims]
    return SurfaceData(
        title=title,
        label=_label(evaluated, results, dims),
        x=dims[-1],
        y=dims[0] if len(dims) == 2 else "",
        x_labels=labels[-1],
        y_labels=labels[0] if len(dims) == 2 else ("",),
        values=values,
        is_limit=limits.astype(bool) & np.isfinite(values),
        is_failed=failed.astype(bool),
        chosen=None if at is None else _place(at, dims),
    )


def plot_surface(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    ax: "Axes | None" = None,
    **options: Any,
) -> "Axes":
    """Draw a criterion over the grid: a heat map, or points where one dimension varies.

    Parameters
    ----------
    results
        Cube of a search.
    criterion
        What to show; by default the search's own criterion.
    ax
        Where to draw, and what is returned; None makes a new figure.
    **options
        ``delta``, ``x`` and ``y`` of `surface_data`.

    See Also
    --------
    surface_data : The numbers that are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5], "weights": ["uniform", "distance"]}
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), grid, X[::2], y[::2], X[1::2], cv=3, random_state=0,
    ...     duplicates="keep")
    >>> ax = plot_surface(plan.run())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('weights', 'n_neighbors')
    """
    data = surface_data(results, criterion, **options)
    ax = new_axes() if ax is None else ax
    if data.y:
        _draw_map(data, ax)
    else:
        _draw_points(data, ax)
    note = f"\n{DROPPED}" if data.y and data.is_limit.any() else ""
    ax.set_xlabel(data.x + note)
    longest = max(map(len, data.x_labels))
    step = -(-len(data.x_labels) // max(2, 72 // (longest + 2)))
    places = range(0, len(data.x_labels), step)
    ax.set_xticks(list(places), [data.x_labels[place] for place in places])
    tidy(ax, title=data.title)
    return ax


def _axes_of(results: xr.Dataset, x: str | None, y: str | None) -> tuple[str, ...]:
    dims = candidate_dims(results)
    for name, value in (("x", x), ("y", y)):
        if value is not None:
            check_choice(value, name, dims)
    varying = [dim for dim in dims if results.sizes[dim] > 1] or [dims[-1]]
    free = [dim for dim in varying if dim not in (x, y)]
    columns = x or free.pop()
    rows = y or (free.pop() if free else None)
    return (columns,) if rows is None else (rows, columns)


def _on_plane(
    array: xr.DataArray, shown: xr.DataArray, dims: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return rows and columns, from the smallest `shown` over the other dimensions."""
    rest = [dim for dim in shown.dims if dim not in dims]
    if rest:
        at = shown.fillna(np.inf).argmin(dim=rest)
        array = array.isel(at)
    plane = np.asarray(array.transpose(*dims).values, dtype=float)
    return plane if len(dims) == 2 else plane[np.newaxis]


def _choice(
    results: xr.Dataset, evaluated: Evaluation, delta: float | None
) -> tuple[dict[str, int] | None, str]:
    try:
        choice = select(results, evaluated.criterion, delta=delta)
    except ValueError as error:
        return None, f"{evaluated.criterion}: no choice ({str(error).split(':')[0]})"
    dims = candidate_dims(results)
    places = np.unravel_index(choice.candidate, [results.sizes[dim] for dim in dims])
    certificate = choice.certificate
    what = f"{choice.estimate:.4g}, an estimate"
    if certificate.certified:
        held = confidence(choice.delta)
        what = f"error at most {at_most(choice.bound)} with probability {held}"
    elif evaluated.is_guarantee:
        what = f"{choice.estimate:.4g}, no guarantee"
    return (
        {dim: int(place) for dim, place in zip(dims, places, strict=True)},
        f"{params_label(dict(choice.params))}: {what}",
    )


def _place(at: dict[str, int], dims: tuple[str, ...]) -> tuple[int, int]:
    places = [at[dim] for dim in dims]
    return (places[0], places[1]) if len(places) == 2 else (0, places[0])


def _label(evaluated: Evaluation, results: xr.Dataset, dims: tuple[str, ...]) -> str:
    kind = BOUND if evaluated.is_guarantee else "estimate"
    others = (dim for dim in candidate_dims(results) if dim not in dims)
    rest = ", ".join(dim for dim in others if results.sizes[dim] > 1)
    least = f"\nsmallest over {rest}" if rest else ""
    return f"{evaluated.criterion} ({kind}){least}"


def _draw_map(data: SurfaceData, ax: "Axes") -> None:
    image = ax.imshow(
        np.where(np.isfinite(data.values), data.values, np.nan),
        origin="lower",
        aspect="auto",
        cmap=COLORMAP,
        norm=_scale(data.values),
    )
    ax.set_facecolor(GREY)
    ax.set_ylabel(data.y)
    ax.set_yticks(range(len(data.y_labels)), data.y_labels)
    _draw_cells(data, ax, image)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.set_label(data.label, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, which="both", labelsize=8, colors=INK)
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.ax.yaxis.set_minor_formatter("{x:g}")


def _scale(values: NDArray[np.float64]) -> Any:
    """Return colours by ratio: the differences that matter are among small errors."""
    from matplotlib.colors import LogNorm, Normalize

    finite = values[np.isfinite(values)]
    high = min(1.0, float(finite.max(initial=0.0))) or 1.0
    low = min(float(finite.min(initial=high)), high)
    return LogNorm(low, high) if 0.0 < 1.2 * low < high else Normalize(0.0, high)


def _draw_cells(data: SurfaceData, ax: "Axes", image: Any) -> None:
    with_numbers = data.values.shape[1] <= MOST_NUMBERS
    for (row, column), value in np.ndenumerate(data.values):
        ground = image.cmap(image.norm(value)) if np.isfinite(value) else GREY
        is_dark = np.isfinite(value) and image.norm(value) > 0.55
        if data.is_limit[row, column]:
            lines = ("white", 0.6) if is_dark else (ON_PALE, 0.35)
            _draw_cell(ax, row, column, hatch="///", linewidth=0, edgecolor=lines)
        if with_numbers:
            ax.text(
                column, row, _cell_text(data, row, column), ha="center", va="center",
                fontsize=7, color="white" if is_dark else ON_PALE,
                bbox={"facecolor": ground, "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip
    if data.chosen is not None:
        _draw_cell(ax, *data.chosen, linewidth=2.5, edgecolor=ACCENT)


def _draw_cell(ax: "Axes", row: int, column: int, **style: Any) -> None:
    from matplotlib.patches import Rectangle

    corner = (column - 0.5, row - 0.5)
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, **style))


def _cell_text(data: SurfaceData, row: int, column: int) -> str:
    if data.is_failed[row, column]:
        return "failed"
    value = data.values[row, column]
    if not np.isfinite(value):
        return "?"
    decimals = 3 if value < 1 else 2
    if data.is_limit[row, column]:
        return f"$\\geq${at_least(value, decimals=decimals).removeprefix('0')}"
    is_bound = BOUND in data.label
    number = at_most(value, decimals=decimals) if is_bound else f"{value:.{decimals}f}"
    return number.removeprefix("0")


def _draw_points(data: SurfaceData, ax: "Axes") -> None:
    values, is_limit = data.values[0], data.is_limit[0]
    places = np.arange(len(values))
    known = ~is_limit & np.isfinite(values)
    ax.plot(places[known], values[known], "o", color=BLUE, label=data.label)
    if is_limit.any():
        ax.plot(
            places[is_limit], values[is_limit], "^", color=BLUE, fillstyle="none",
            label="dropped early: cannot be below",
        )  # fmt: skip
    if data.chosen is not None:
        at = data.chosen[1]
        ax.plot(at, values[at], "o", color=ACCENT, markersize=9, label="chosen")
    ax.set_ylim(0, 1.25 * values[np.isfinite(values)].max(initial=0.01))
    ax.set_ylabel(data.label)
    ax.legend(frameon=False, fontsize=8)
