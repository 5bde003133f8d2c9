"""How often certificates failed where the truth is known: the figure of an audit."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds import binomial_tail_inversion, binomial_tail_inversion_lower
from dsel.plots.style import ACCENT, INK, MIDDLE, new_axes, tidy
from dsel.searches.auditing.audit import SIGNIFICANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def audit_failures_data(report: xr.Dataset) -> xr.Dataset:
    """Return the share of draws in which each bound of an audit failed.

    Returns
    -------
    xarray.Dataset
        Over (`setting`, `delta`): `share`, failures divided by draws, and the ends
        `lower` and `upper` of its two-sided 95 % interval (Clopper and Pearson);
        `p_value` as in the report.
    """
    failures, n_draws = report["failures"], int(report["n_draws"])
    lower = binomial_tail_inversion_lower(failures.values, n_draws, delta=0.025)
    upper = binomial_tail_inversion(failures.values, n_draws, delta=0.025)
    return xr.Dataset(
        {
            "share": failures / n_draws,
            "lower": (failures.dims, lower),
            "upper": (failures.dims, upper),
            "p_value": report["p_value"],
            "n_draws": n_draws,
        }
    )


def plot_audit_failures(report: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how often each bound of an audit failed, beside what delta allows.

    There is one line for each setting and delta.

    Parameters
    ----------
    report
        Dataset of `dsel.audit`; `report.sel(setting=[...])` draws a part.
    ax
        Where to draw, and what is returned; None makes a new figure.

    See Also
    --------
    dsel.audit : Makes the report.

    Examples
    --------
    >>> import dsel
    >>> report = dsel.audit(["cv_bound, lucky folds"], n_draws=5, random_state=0)
    >>> ax = plot_audit_failures(report)
    >>> ax.get_xlabel()
    'share of 5 draws in which the bound failed'
    """
    data = audit_failures_data(report)
    ax = new_axes(7.2, 0.9 + 0.19 * data["share"].size) if ax is None else ax
    table = data.stack(line=["setting", names.DELTA])
    places = np.arange(table.sizes["line"])[::-1]
    shares, deltas = table["share"].values, table[names.DELTA].values
    bars = np.abs(np.stack([table["lower"], table["upper"]]) - shares)
    ax.barh(
        places, deltas, height=0.9, color=MIDDLE, alpha=0.25, label="allowed by delta"
    )
    ax.errorbar(
        shares, places, xerr=bars, fmt="o", ms=4, lw=1.4, capsize=2, color=INK,
        label="failed, with 95 % interval",
    )  # fmt: skip
    above = table["p_value"].values < SIGNIFICANCE
    ax.plot(
        shares[above], places[above], "D", ms=6, color=ACCENT, zorder=3,
        label="more than chance allows" if above.any() else None,
    )  # fmt: skip
    n_deltas = data.sizes[names.DELTA]
    labels = [
        f"{name}   {delta:g}" if number % n_deltas == 0 else f"{delta:g}"
        for number, (name, delta) in enumerate(table["line"].values)
    ]
    ax.set_yticks(places, labels)
    ax.set_xlim(0, max(1.1 * deltas.max(), 1.05 * table["upper"].values.max()))
    ax.set_ylim(-0.7, len(places) - 0.3)
    for edge in places[n_deltas::n_deltas]:
        ax.axhline(edge + 0.5, color=INK, lw=0.4)
    ax.set_xlabel(f"share of {int(data['n_draws']):,} draws in which the bound failed")
    ax.set_ylabel("setting, delta")
    ax.legend(
        frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(-0.02, 1)
    )
    tidy(ax, title="")
    return ax
