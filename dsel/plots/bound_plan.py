"""What each certificate would give, by number of folds: the figure of a bound plan."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.plots.style import ACCENT, BLUE, INK, MIDDLE, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bound_plan_data(plan: xr.Dataset) -> xr.DataArray:
    """Return the bounds of a plan, at most 1, smallest certificate first."""
    bounds = plan[names.BOUND].clip(max=1.0)
    order = np.argsort(bounds.min(names.N_FOLDS).values, kind="stable")
    return bounds.isel({names.CERTIFICATE: order})


def plot_bound_plan(plan: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw what each certificate of a plan would give, by number of folds.

    The recommended one is orange.

    Parameters
    ----------
    plan
        Dataset of `dsel.plan_bound`.
    ax
        Where to draw, and what is returned; None makes a new figure.

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
    bounds, recommended = bound_plan_data(plan), str(plan["recommended"].values)
    ax = new_axes() if ax is None else ax
    places = np.arange(bounds.sizes[names.N_FOLDS])
    ends = bounds.isel({names.N_FOLDS: -1}).values
    for certificate, end, beside in zip(
        bounds[names.CERTIFICATE].values, ends, _apart(ends), strict=True
    ):
        values = bounds.sel({names.CERTIFICATE: certificate}).values
        is_best = certificate == recommended
        color = ACCENT if is_best else BLUE
        ax.plot(places, values, color=color, marker="o", markersize=3)
        ax.plot(places[-1] + np.array([0, 0.2]), [end, beside], color=color, lw=0.6)
        ax.annotate(
            certificate, (places[-1] + 0.23, beside), color=INK, fontsize=8,
            va="center", fontweight="bold" if is_best else "normal",
        )  # fmt: skip
    ax.set_xticks(places, [str(k) for k in bounds[names.N_FOLDS].values])
    ax.set_xlim(-0.2, places[-1] + 1.5)
    ax.grid(axis="y", color=MIDDLE, alpha=0.4, linewidth=0.5)
    ax.set_xlabel("number of folds")
    ax.set_ylabel("bound on the error, on average")
    tidy(ax, title="What each certificate would give (orange: recommended)")
    return ax


def _apart(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places of labels near `values`, far enough apart to be read."""
    shown = np.nan_to_num(values)
    places = shown.copy()
    order = np.argsort(shown, kind="stable")
    least = 0.045 * (shown.max() - min(shown.min(), 0.0))
    for below, above in pairwise(order):
        places[above] = max(places[above], places[below] + least)
    return np.asarray(places - (places - shown).mean())
