"""Where the time of a search went, summed over its tasks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from dask.utils import format_time

from dsel import names
from dsel.plots.style import BLUE, INK, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASES = {
    names.FIT_SECONDS: "fits on folds",
    names.INNER_FIT_SECONDS: "fits on pairs of folds",
    names.FULL_FIT_SECONDS: "fits on all labeled rows",
    names.SCORE_SECONDS: "passes over the pool",
}


@dataclass(frozen=True)
class TimingData:
    """Seconds of work by phase; of all tasks, whatever ran side by side.

    A phase that was not measured is left out: nested searches do not time the pool.
    """

    phases: tuple[str, ...]
    seconds: tuple[float, ...]
    """Summed over tasks."""

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds)


def timing_data(results: xr.Dataset) -> TimingData:
    """Return the seconds of a search's phases, from its cube."""
    sums = {
        phase: float(results[name].sum())
        for name, phase in PHASES.items()
        if name in results
    }
    found = {phase: seconds for phase, seconds in sums.items() if seconds}
    return TimingData(tuple(found), tuple(found.values()))


def plot_timing(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw where the time of a search went, one bar for each phase.

    Parameters
    ----------
    results
        Cube of a search.
    ax
        Where to draw, and what is returned; None makes a new figure.

    See Also
    --------
    timing_data : The numbers that are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, y)
    >>> ax = plot_timing(plan.run())
    >>> ax.get_xlabel()
    'seconds, summed over tasks'
    """
    data = timing_data(results)
    ax = new_axes(height=2.4) if ax is None else ax
    places = np.arange(len(data.phases))[::-1]
    ax.barh(places, data.seconds, color=BLUE, height=0.6)
    for place, seconds in zip(places, data.seconds, strict=True):
        share = seconds / data.total if data.total else 0.0
        ax.annotate(
            f" {format_time(seconds)} ({share:.0%})", (seconds, place), va="center",
            fontsize=8, color=INK,
        )  # fmt: skip
    ax.set_yticks(places, data.phases)
    ax.set_xlim(right=1.25 * max((*data.seconds, 1e-9)))
    ax.set_xlabel("seconds, summed over tasks")
    tidy(ax, title=f"{format_time(data.total)} of work")
    return ax
