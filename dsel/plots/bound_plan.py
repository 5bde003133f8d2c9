"""What each certificate would give, by number of folds: the figure of a bound plan."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from dsel import names
from dsel.plots.style import ACCENT, BLUE, GREY, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bound_plan_data(plan: xr.Dataset) -> xr.DataArray:
    """Return the bounds of a plan, at most 1, smallest certificate first.

    Parameters
    ----------
    plan
        Dataset of `dsel.plan_bound`.
    """
    bounds = plan[names.BOUND].clip(max=1.0)
    order = np.argsort(bounds.min(names.N_FOLDS).values, kind="stable")
    return bounds.isel({names.CERTIFICATE: order})


def draw_bound_plan(bounds: xr.DataArray, ax: "Axes", *, recommended: str) -> None:
    """Draw one line for each certificate over the number of folds.

    Parameters
    ----------
    bounds
        What `bound_plan_data` returns.
    ax
        Where to draw.
    recommended
        Certificate that wears orange.
    """
    places = np.arange(bounds.sizes[names.N_FOLDS])
    for certificate in bounds[names.CERTIFICATE].values:
        values = bounds.sel({names.CERTIFICATE: certificate}).values
        color = ACCENT if certificate == recommended else BLUE
        ax.plot(places, values, color=color, marker="o", markersize=3)
        ax.annotate(
            f" {certificate}", (places[-1], values[-1]), color=color, fontsize=8
        )
    ax.set_xticks(places, [str(k) for k in bounds[names.N_FOLDS].values])
    ax.set_xlim(-0.2, places[-1] + 1.4)
    ax.grid(axis="y", color=GREY, linewidth=0.5)
    ax.set_xlabel("folds")
    ax.set_ylabel("bound on the error, on average")
    tidy(ax, title="What each certificate would give")


def plot_bound_plan(plan: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw what each certificate of a plan would give, by number of folds.

    Parameters
    ----------
    plan
        Dataset of `dsel.plan_bound`.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        What was drawn on.

    See Also
    --------
    dsel.plan_bound : Makes the plan.

    Examples
    --------
    >>> import dsel
    >>> ax = plot_bound_plan(dsel.plan_bound(500, 100_000, 225, 0.01, 0.1))
    >>> ax.get_ylabel()
    'bound on the error, on average'
    """
    ax = new_axes() if ax is None else ax
    draw_bound_plan(
        bound_plan_data(plan), ax, recommended=str(plan["recommended"].values)
    )
    return ax
