"""Figures of the page, as SVG elements in the color of the text around them."""

from contextlib import suppress
from typing import Final

import xarray as xr

from dsel import names
from dsel.plots import (
    plot_bound_by_labels,
    plot_certificates,
    plot_certified_report,
    plot_folds,
    plot_report_by_value,
    plot_residuals,
    plot_surface,
    plot_terms,
)
from dsel.plots.spread import MOST_CANDIDATES_DRAWN
from dsel.plots.svg import draw_bounds, draw_svg
from dsel.results import Choice
from dsel.results.class_report import CertifiedReport
from dsel.results.cube import candidate_dims
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue

MOST_DRAWN: Final = 20
"""Classes, or values of a column, up to which a report is a figure, too."""


def figures_of_search(results: xr.Dataset, choice: Choice) -> dict[str, str]:
    """Return the figures of a search by their names; those that it lacks are left out.

    The page prints the headings of bounds and of the surface itself.
    """
    figures = {"certificates": draw_bounds(results, choice)}
    n_drawn = min(MOST_CANDIDATES_DRAWN, results[names.STATUS].size)
    if candidate_dims(results) != (names.CANDIDATE,):
        with suppress(ValueError):  # a cube without its numbers
            figures["surface"] = draw_svg(
                plot_surface, results, height=3.4, titled=False
            )
    with suppress(ValueError):  # a criterion without two terms
        height = 1.6 + 0.55 * n_drawn
        figures["terms"] = draw_svg(plot_terms, results, height=height)
    if "surface" not in figures:  # no grid
        with suppress(ValueError):  # a search without these numbers
            height = 1.5 + 0.42 * n_drawn
            figures["folds"] = draw_svg(plot_folds, results, height=height)
    with suppress(ValueError):  # no numbers, or counts of large distances alone
        figures["residuals"] = draw_svg(plot_residuals, results, height=3.4)
    with suppress(ValueError):
        figures["labels"] = draw_svg(plot_bound_by_labels, results, height=3.8)
    return figures | figures_of_reports(
        choice.by_model("report").get(choice.deploy),
        choice.by_model("report_by_value").get(choice.deploy),
    )


def figures_of_prefit(prefit: PrefitCertificate) -> dict[str, str]:
    """Return the figures of the certificate of a fitted model."""
    bound = draw_svg(plot_certificates, prefit, height=2.0, titled=False)
    report = None if prefit.report is None else prefit.certified_report()
    by_value = None if prefit.by_value is None else prefit.report_by_value()
    assert not isinstance(report, ToleranceReport)
    return {"certificates": bound} | figures_of_reports(report, by_value)


def figures_of_reports(
    report: CertifiedReport | None, by_value: ReportByValue | None
) -> dict[str, str]:
    """Return figures of the reports of a model that are not too long."""
    figures = {}
    if report is not None and len(report.classes) <= MOST_DRAWN:
        height = 1.6 + 0.5 * (1 + len(report.classes))
        figures["report"] = draw_svg(plot_certified_report, report, height=height)
    if by_value is not None and len(by_value.values) <= MOST_DRAWN:
        height = 1.6 + 0.5 * len(by_value.values)
        figures["by_value"] = draw_svg(plot_report_by_value, by_value, height=height)
    return figures
