"""Figure of a criterion over the grid, with the chosen and the pruned candidates."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Bools, Floats
from dsel.checks import check_choice
from dsel.criteria.criterion import Criterion
from dsel.plots.fitting import LINE_HEIGHT, axes_size, text_width
from dsel.plots.spread import (
    find_dropped_candidates,
    fold_losses,
    is_inner,
    name_chosen,
    name_cross_validation,
)
from dsel.plots.style import (
    ACCENT,
    COLORMAP,
    DROPPED,
    DROPPED_MARK,
    GREY,
    IN_UNITS,
    INK,
    MIDDLE,
    ON_PALE,
    UNITS,
    candidate_labels,
    name_rows,
    new_axes,
    percent_tick,
    short_verdict,
    show_as_written,
    tidy_axes,
    value_labels,
)
from dsel.results.candidate_tables import all_params
from dsel.results.cube import (
    candidate_dims,
    check_cube,
    parameter_name,
    restore_dims,
)
from dsel.results.params_texts import short_names, short_params_text
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import about_percent, in_percent
from dsel.search.running.select import Evaluation, certificate_of_run, evaluate, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_ROOTS: Final = {"mean_squared_error": "root mean squared error"}
"""Labels of criteria whose root is drawn."""
TITLES: Final = {"cv_error": "error", **_ROOTS}
"""Labels of criteria that are means over the folds, to which the kind is added."""
MOST_SLANTED: Final = 15
"""Most labels of ticks that are slanted, not thinned."""
MOST_LETTERS: Final = 7
"""Letters of a tick label up to which labels stand upright."""
NUMBER_SIZES: Final = (9.0, 8.0, 7.0)
"""Sizes of the numbers in cells; the first that fits is taken."""
DARK: Final = 0.55
"""Shade of cells above which texts in them are white."""


def plot_surface(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    ax: "Axes | None" = None,
    x: str | None = None,
    y: str | None = None,
) -> "Axes":
    """Draw a criterion over the grid: a heat map, or a line if one dimension varies.

    A line has a dot for each fold, if the errors of folds are what is averaged.

    Parameters
    ----------
    results
        Cube of a search.
    criterion
        The criterion to draw; by default that of the search.
    ax
        Axes to draw on, which are returned; None makes a new figure.
    x, y
        Dimensions for columns and rows; by default the last two that vary. The smallest
        number over all other dimensions is drawn.

    Raises
    ------
    ValueError
        If the cube has no such dimension, no counts for the criterion, or no grid, as
        that of `dsel.certify`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5], "weights": ["uniform", "distance"]}
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), grid, X, y, random_state=0, prune=False)
    >>> ax = plot_surface(plan.run().results)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('weights', 'n_neighbors')
    """
    evaluation = check_grid(results, criterion)
    results = restore_dims(results)  # dimensions were renamed, or are in another order
    ranking, dims = evaluation.criterion, candidate_dims(results)
    shown = _numbers_to_draw(results, evaluation)
    columns, rows = _choose_dims(results, x, y)
    other_dims = [dim for dim in dims if dim not in (columns, rows)]
    shape = [results.sizes[dim] for dim in dims]
    plane = xr.DataArray(shown.reshape(shape), dims=dims)
    dropped = xr.DataArray(find_dropped_candidates(results).reshape(shape), dims=dims)
    if other_dims:
        smallest = plane.fillna(np.inf).argmin(dim=other_dims)
        plane, dropped = plane.isel(smallest), dropped.isel(smallest)
    is_list = dims == (names.CANDIDATE,)
    parameters = [parameter_name(dim) for dim in dims]
    short = dict(zip(dims, short_names(parameters).values(), strict=True))
    other_names = ", ".join(short[dim] for dim in other_dims if results.sizes[dim] > 1)
    axis = _value_axis(results, ranking, other_names)
    place, title, name = _place_and_title(results, criterion, shown)
    ax = new_axes(ax, height=4.9)
    if rows is None:
        folds = _fold_values(results, ranking, other_dims)
        chosen_column = place.get(columns), name
        if not is_list:  # the numbers of candidates have no order
            known = np.flatnonzero(np.isfinite(plane.values))
            ax.plot(known, plane.values[known], color=MIDDLE, lw=1.0)
        _draw_line(plane.values, dropped.values, folds, chosen_column, axis, ax)
    else:
        values, triangles = (
            plane.transpose(rows, columns).values for plane in (plane, dropped)
        )
        chosen_cell = place.get(rows), place.get(columns), name
        image = _draw_map(values, triangles, chosen_cell, axis, ax)
        y_labels = value_labels(results[rows])
        ax.set_yticks(range(len(y_labels)), y_labels)
        ax.set_ylabel(short[rows])
    ax.set_xlabel(short[columns])
    labels = value_labels(results[columns])
    if is_list and len(labels) <= MOST_SLANTED:  # their numbers say nothing
        labels = candidate_labels(all_params(results))
        parts = [label.partition("=") for label in labels]
        if len({name for name, _, _ in parts}) == 1 and "," not in "".join(labels):
            ax.set_xlabel(parts[0][0])
            labels = [value for _, _, value in parts]
    tick_style: dict[str, Any] = {}
    if 2 < len(labels) <= MOST_SLANTED and max(map(len, labels)) > MOST_LETTERS:
        tick_style = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(labels)), labels, **tick_style)
    drawn = "A dot" if rows is None else "A cell"
    rows_behind = name_rows(
        results, has_pool=ranking.is_guarantee, is_inner=is_inner(results)
    )
    tidy_axes(ax, title=title, what=f"{drawn} for each candidate, from {rows_behind}")
    if rows is not None:  # now the size of cells is known
        _write_numbers(values, image, axis, ax)
    return ax


def _is_mean_of_folds(ranking: Criterion) -> bool:
    """Return whether a criterion is the mean of a loss over folds."""
    return names.FOLD_LOSS_MEAN in ranking.needs or ranking.name == "cv_error"


def _numbers_to_draw(results: xr.Dataset, evaluation: Evaluation) -> Floats:
    """Return the number that is drawn for each candidate, (n_candidates,)."""
    ranking = evaluation.criterion
    shown = np.asarray(evaluation.terms.value)
    if names.FOLD_PREDICTIONS in results and _is_mean_of_folds(ranking):
        # A pruned candidate has no value: the mean of its counted folds is drawn.
        if names.FOLD_LOSS_MEAN in ranking.needs:
            rates = results[names.FOLD_LOSS_MEAN]
        else:
            n_predictions = results[names.FOLD_PREDICTIONS]
            rates = results[names.FOLD_ERRORS] / n_predictions.where(n_predictions > 0)
        means = rates.mean(names.FOLD).values.ravel()
        shown = np.where(np.isnan(shown), means, shown)  # one that failed has inf
    # Roots of squared errors are in units of the target.
    return np.sqrt(shown) if ranking.name in _ROOTS else shown


def _choose_dims(
    results: xr.Dataset, x: str | None, y: str | None
) -> tuple[str, str | None]:
    """Return the dimensions of columns and rows; None without rows."""
    dims = candidate_dims(results)
    for argument, dim in (("x", x), ("y", y)):
        if dim is not None:
            check_choice(dim, argument, dims)
    varying = [dim for dim in dims if results.sizes[dim] > 1] or [dims[-1]]
    free = [dim for dim in varying if dim not in (x, y)]
    if x is None and not free:  # y is the only one that varies
        x, y = y, None
    columns = x or free.pop()
    return columns, y or (free.pop() if free else None)


def check_grid(results: xr.Dataset, criterion: str | None = None) -> Evaluation:
    """Return a criterion's numbers over a grid; ValueError without a grid."""
    check_cube(results)
    if procedure := procedure_without_grid(results):
        raise ValueError(
            f"`results` have no grid to draw: {procedure} is the only candidate; "
            f"plot.folds() and plot.certificates() show its errors and bounds."
        )
    return evaluate(results, criterion)


def procedure_without_grid(results: xr.Dataset) -> str:
    """Return the only candidate of a cube, if it is one procedure; "" otherwise."""
    if names.STATUS not in results or results[names.STATUS].size > 1:
        return ""
    try:
        return select(results).procedure
    except ValueError:  # no choice: the figure says so
        return ""


def _place_and_title(
    results: xr.Dataset, criterion: str | None, shown: Floats
) -> tuple[dict[str, int], str, str]:
    """Return the place of the choice along each dimension, a title, a legend entry."""
    try:
        choice = select(results, criterion)
    except ValueError as error:
        return {}, f"no choice: {str(error).split(':')[0]}", ""
    dims = candidate_dims(results)
    places = np.unravel_index(choice.candidate, [results.sizes[dim] for dim in dims])
    certificate = choice.certificate
    verdict = short_verdict(certificate)
    if not certificate.certified:
        number = choice.criterion_value  # the value is NaN if the candidate was dropped
        number = number if np.isfinite(number) else certificate.estimate
        verdict = f"No guarantee; estimate about {certificate.about(number)}"
    place = dict(zip(dims, map(int, places), strict=True))
    title = f"Chosen: {short_params_text(choice.params)}\n{verdict}"
    return place, title, name_chosen(choice, shown)


class ValueAxis(NamedTuple):
    """How the numbers of a criterion are shown."""

    label: str
    in_percent: bool
    amount: Callable[[float], str]
    """Function that returns the text of a number."""


def _value_axis(results: xr.Dataset, ranking: Criterion, other_names: str) -> ValueAxis:
    """Return how the numbers of a criterion are shown, smallest over other axes."""
    loss = certificate_of_run(results) if ranking.uses_declared_loss else None
    label = loss.title if loss else TITLES.get(ranking.name, ranking.title)
    by_folds = loss is not None or ranking.name in TITLES
    how = f"{name_cross_validation(results)}, an estimate" if by_folds else "estimate"
    label = f"{label} ({how}){UNITS if ranking.name in _ROOTS else ''}"
    if ranking.is_guarantee:
        label = f"bound on the error ({ranking.name})"
    label += f", smallest over {other_names}" if other_names else ""
    is_rate = ranking.name != "mean_squared_error" and not (loss and loss.is_cost)
    amount: Callable[[float], str] = amount_about
    if is_rate:
        amount = in_percent if ranking.is_guarantee else about_percent
    return ValueAxis(f"{label}{', %' if is_rate else ''}", is_rate, amount)


def _draw_map(
    values: Floats,
    dropped: Bools,
    chosen_cell: tuple[int | None, int | None, str],
    axis: "ValueAxis",
    ax: "Axes",
) -> "AxesImage":
    """Draw a heat map, and a color bar in axes of its own."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import LogLocator, NullLocator

    finite = np.where(np.isfinite(values), values, np.nan)
    known = values[np.isfinite(values)]
    low, high = float(known.min(initial=np.inf)), float(known.max(initial=0.0))
    high = min(high, max(low, 1.0)) if axis.in_percent else high
    norm = Normalize(low, high) if low < high else Normalize(0.0, max(high, 1e-9))
    if 0.0 < 3.0 * low < high:  # a linear scale would hide ratios of small errors
        norm = LogNorm(low, high)
    shades = colormaps[COLORMAP].with_extremes(bad=GREY)
    image = ax.imshow(finite, origin="lower", aspect="auto", cmap=shades, norm=norm)

    def frame(row: Any, column: Any, **style: Any) -> None:
        corner = (column - 0.5, row - 0.5)
        # Half of the line of a cell at the edge lies outside of the axes.
        ax.add_patch(Rectangle(corner, 1, 1, fill=False, clip_on=False, **style))

    for row, column in np.argwhere(dropped):  # below the number of the cell
        color = "white" if _shade(image, values[row, column]) > DARK else ON_PALE
        ax.plot(column, row - 0.35, color=color, ms=4, mew=0.8, **DROPPED_MARK)
    if dropped.any():  # for the legend
        ax.plot([], [], color=INK, ms=6, label=DROPPED, **DROPPED_MARK)
    *cell, label = chosen_cell
    if cell[0] is not None:
        frame(*cell, linewidth=2.5, edgecolor=ACCENT, zorder=5, label=label)
    # They have axes of their own inside these, so that any layout of the figure keeps
    # them.
    width = min(0.045, 0.12 * ax.figure.dpi / ax.get_window_extent().width)
    place = ax.inset_axes((1.0 + width / 2, 0.0, width, 1.0))
    bar = ax.figure.colorbar(image, cax=place)
    bar.set_label(axis.label)
    show_as_written(bar.ax)
    bar.outline.set_visible(False)
    if isinstance(norm, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_major_formatter(percent_tick if axis.in_percent else IN_UNITS)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    return image


def _shade(image: "AxesImage", value: float) -> float:
    """Return how dark the cell of a value is, from 0 to 1."""
    norm: Any = image.norm
    return float(norm(value)) if np.isfinite(value) else 0.0


def _write_numbers(
    values: Floats, image: "AxesImage", axis: "ValueAxis", ax: "Axes"
) -> None:
    """Write the number of each cell into it, at the largest size at which all fit."""
    texts = np.full(values.shape, "", object)
    for place, value in np.ndenumerate(values):
        texts[place] = "failed" if value > 0 else "?"
        if np.isfinite(value):
            # A bound that excludes nothing may be larger than 1. The color bar has a
            # unit.
            number = min(value, 1.0) if axis.in_percent else value
            texts[place] = axis.amount(number).removesuffix("%")
    widest, height, width = max(texts.flat, key=len), *axes_size(ax)[::-1]
    n_rows, n_columns = values.shape
    sizes = [
        size
        for size in NUMBER_SIZES
        if size * LINE_HEIGHT < height / n_rows
        and text_width(widest, size) < 0.95 * width / n_columns
    ]
    for (row, column), text in np.ndenumerate(texts if sizes else texts[:0]):
        number = float(values[row, column])
        shade, is_known = _shade(image, number), np.isfinite(number)
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=sizes[0],
            color="white" if shade > DARK else ON_PALE,
            bbox={
                "facecolor": image.cmap(shade) if is_known else GREY,
                "edgecolor": "none",
                "pad": 1.0,
            },
        )


def _fold_values(
    results: xr.Dataset, ranking: Criterion, other_dims: Sequence[str]
) -> Floats | None:
    """Return the loss of each candidate on each fold, (n_candidates, n_folds).

    None where the criterion is not their mean, or where candidates of several rows are
    drawn as one.
    """
    if not _is_mean_of_folds(ranking) or any(
        results.sizes[dim] > 1 for dim in other_dims
    ):
        return None
    losses = fold_losses(results).values
    return np.sqrt(losses) if ranking.name in _ROOTS else losses


def _draw_line(
    values: Floats,
    dropped: Bools,
    folds: Floats | None,
    chosen_column: tuple[int | None, str],
    axis: "ValueAxis",
    ax: "Axes",
) -> None:
    """Draw criterion values over one parameter as dots, with their folds."""
    columns, known = np.arange(len(values)), np.isfinite(values)
    if folds is not None and np.isfinite(folds).any():
        # Folds of equal errors are drawn next to each other.
        apart = np.linspace(-0.06, 0.06, folds.shape[1])
        x = np.broadcast_to(columns[:, np.newaxis] + apart, folds.shape)
        ax.plot(x.ravel(), folds.ravel(), ".", color=MIDDLE, ms=6, label="a fold")
    name = "mean of folds" if folds is not None else "a candidate"
    failed = columns[np.isposinf(values)]
    if len(failed):  # candidates without a value are drawn at the lower edge
        where = ax.get_xaxis_transform()
        height = np.full(len(failed), 0.03)
        ax.plot(failed, height, "x", color=MIDDLE, label="failed", transform=where)
    for shown, style, legend in (
        (known & ~dropped, {"marker": "o", "ls": "none"}, name),
        (known & dropped, DROPPED_MARK, DROPPED),
    ):
        if shown.any():
            ax.plot(columns[shown], values[shown], color=INK, label=legend, **style)
    column, label = chosen_column
    if column is not None:
        ax.plot(column, values[column], "o", color=ACCENT, ms=9, label=label)
    # Unlike an axis of bars, this one need not begin at 0: dots are compared with each
    # other, and folds show the spread.
    ax.margins(y=0.08)
    ax.set_xlim(-0.5, len(values) - 0.5)
    ax.set_ylabel(axis.label)
    ax.yaxis.set_major_formatter(percent_tick if axis.in_percent else IN_UNITS)
