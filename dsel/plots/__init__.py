"""Plots: the figures of searches, plans, audits and least squares.

Each function draws one panel on an `Axes` from a Dataset, and returns it. Nothing here
computes a bound: numbers come from the cube and `dsel.select`.

All figures use one code: a bar, or a line, is a bound; a dot is a value measured on
labeled rows, and a small dot one on a fold. The chosen candidate is orange, the part of
a bound from the pool pale, a hold-out set dashed and gray. Only a guarantee is called a
bound: the bar of another number is hatched. Candidates that were dropped early are
triangles. Artists that have a label are in the legend, which `tidy_axes` draws above
the data. `INK` is the color of all text; pages replace it with their own color. To add
a figure, write a function in the file of its kind, and a method of
`dsel.accessor.ResultsPlots` if it draws the cube of a search. Needs the extra
``plots``.
"""

from dsel.checks import explain_public
from dsel.plots.bars import (
    plot_certificates,
    plot_certified_report,
    plot_comparison,
    plot_report_by_value,
    plot_terms,
)
from dsel.plots.by_labels import plot_bound_by_labels
from dsel.plots.curves import plot_audit_failures, plot_bound_plan, plot_loss_curves
from dsel.plots.residuals import plot_residuals
from dsel.plots.spread import plot_folds
from dsel.plots.surface import plot_surface

__all__ = [
    "plot_audit_failures",
    "plot_bound_by_labels",
    "plot_bound_plan",
    "plot_certificates",
    "plot_certified_report",
    "plot_comparison",
    "plot_folds",
    "plot_loss_curves",
    "plot_report_by_value",
    "plot_residuals",
    "plot_surface",
    "plot_terms",
]

explain_public(globals())
