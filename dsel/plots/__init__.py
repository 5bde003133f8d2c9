"""Plots: the figures of searches, plans and audits.

Each file has a function that returns the plot's data, which can be checked without
drawing, and one that draws them on an `Axes`.
Nothing here computes a bound: numbers come from `dsel.searches.evaluate` and `select`.

Conventions: a darker cell is a larger error; the chosen candidate is orange; a number
that is only a lower limit stands on a hatched cell; a title never calls a number a
bound where it is none. `INK` is the colour of all text, and pages replace it by theirs.

To add a figure: one file with ``<figure>_data`` and ``plot_<figure>``, and its line in
`FIGURES`. Needs the extra ``plots``.
"""

from collections.abc import Callable
from typing import Any, Final

from dsel.plots.audit_failures import audit_failures_data, plot_audit_failures
from dsel.plots.bound_plan import bound_plan_data, plot_bound_plan
from dsel.plots.loss_curves import loss_curves_data, plot_loss_curves
from dsel.plots.surface import plot_surface, surface_data
from dsel.plots.terms import plot_terms, terms_data
from dsel.plots.timing import plot_timing, timing_data

FIGURES: Final[dict[str, Callable[..., Any]]] = {
    "surface": plot_surface,
    "terms": plot_terms,
    "timing": plot_timing,
}
"""Figures of a cube, by their names in ``results.dsel.plot``."""

__all__ = [
    "FIGURES",
    "audit_failures_data",
    "bound_plan_data",
    "loss_curves_data",
    "plot_audit_failures",
    "plot_bound_plan",
    "plot_loss_curves",
    "plot_surface",
    "plot_terms",
    "plot_timing",
    "surface_data",
    "terms_data",
    "timing_data",
]
