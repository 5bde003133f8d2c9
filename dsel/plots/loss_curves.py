"""Estimates of the squared error along the regularizations, at one width."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.least_squares import select_least_squares
from dsel.plots.style import ACCENT, BLUE, GREEN, INK, PINK, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (ACCENT, BLUE, INK, GREEN, PINK)


@dataclass(frozen=True)
class LossCurvesData:
    """One curve for each estimate, at the chosen width."""

    width: float
    """c of the chosen model."""
    chosen: float
    """lambda of the chosen model."""
    criterion: str
    regularizations: NDArray[np.float64]
    """lambda, ascending and above 0."""
    estimates: Mapping[str, NDArray[np.float64]]
    """Estimated squared errors by name."""


def loss_curves_data(
    results: xr.Dataset, *, criterion: str | None = None
) -> LossCurvesData:
    """Return the curves of a least-squares search.

    Parameters
    ----------
    results, criterion
        As `plot_loss_curves` takes them.
    """
    choice = select_least_squares(results, criterion)
    width = choice.params["width"]
    cube = results.sel({names.WIDTH: width}).sortby(names.REGULARIZATION)
    cube = cube.sel({names.REGULARIZATION: cube[names.REGULARIZATION] > 0})
    return LossCurvesData(
        width,
        choice.params["regularization"],
        choice.criterion,
        np.asarray(cube[names.REGULARIZATION].values),
        {
            str(name): np.asarray(cube[names.ESTIMATE].sel(criterion=name).values)
            for name in cube[names.CRITERION].values
        },
    )


def plot_loss_curves(
    results: xr.Dataset, *, criterion: str | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw what a least-squares search estimated at the chosen width, and its choice.

    Parameters
    ----------
    results
        Cube of a `LeastSquaresSearch`.
    criterion
        What chooses the width; None means the criterion of the search.
    ax
        Where to draw, and what is returned; None makes a new figure.

    See Also
    --------
    loss_curves_data : The numbers that are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from dsel.least_squares import LeastSquaresSearch
    >>> X = np.linspace(0, 1, 20)[:, np.newaxis]
    >>> search = LeastSquaresSearch([0.1, 0.3], [1e-3, 1e-1, 10.0], random_state=0)
    >>> ax = plot_loss_curves(search.fit(X, np.sin(6 * X[:, 0])).results_)
    >>> ax.get_xlabel()
    'regularization'
    """
    data = loss_curves_data(results, criterion=criterion)
    ax = new_axes() if ax is None else ax
    for number, (name, values) in enumerate(data.estimates.items()):
        # Estimates often agree: later curves are thinner and leave the others visible.
        ax.plot(
            data.regularizations,
            np.where(np.isfinite(values), values, np.nan),
            color=COLORS[number % len(COLORS)],
            label=name,
            lw=3.2 - 0.5 * number,
        )
    if data.chosen > 0:
        ax.axvline(data.chosen, color=ACCENT, lw=0.8, ls=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("regularization")
    ax.set_ylabel("estimated squared error")
    ax.legend(frameon=False, fontsize=8)
    tidy(
        ax,
        title=f"width {data.width:.3g}, regularization {data.chosen:.3g} "
        f"by {data.criterion}",
    )
    return ax
