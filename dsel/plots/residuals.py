"""Figure of how far predictions of numbers are off."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from dsel.arrays import Floats
from dsel.option_values import ONE_FOLD
from dsel.plots.by_labels import MARKERS
from dsel.plots.style import (
    BLUE,
    GREEN,
    IN_UNITS,
    INK,
    MIDDLE,
    UNITS,
    UNPROVED,
    name_rows,
    new_axes,
    percent_tick,
    short_verdict,
    tidy_axes,
)
from dsel.results.choice import Choice
from dsel.search.design.expected_tolerances import MeasuredDistances
from dsel.search.running.select import select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_QUANTILE = 0.99
"""Fraction of the residuals that the axis shows, since a few large ones would hide all
others.
"""


def plot_residuals(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw which fraction of predictions of a regressor is off by how much at most.

    Lines are measurements: the absolute residuals of the model of each fold, on its
    fold, and of all folds together. Squares are the bounds: that of each model, and the
    tolerances of the deployed model if the plan declared a report. The cube holds
    residuals alone, without predictions and true values.

    Parameters
    ----------
    results, ax
        As for `plot_surface`; the search must be a nested one of regressors.

    Raises
    ------
    ValueError
        If it has no residuals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import dsel
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ax = plot_residuals(dsel.certify(Ridge(), X, y, random_state=0).results)
    >>> ax.get_ylabel()
    'share of predictions, %'
    """
    measured, choice = MeasuredDistances.of_cube(results), select(results)
    ax = new_axes(ax, height=3.8)
    bounds = _bounds_to_draw(choice)
    last = float(np.quantile(measured.residuals, SHOWN_QUANTILE, method="lower"))
    ends = [last, *(end for _, _, limits in bounds for end in limits)]
    end = 1.05 * max(filter(np.isfinite, ends), default=1.0) or 1.0
    for number, residuals in enumerate(measured.folds.numbers_by_row()):
        label = "" if number else "the model of a fold, on its fold"
        x, y = _steps(residuals, end)
        ax.step(x, y, where="post", color=MIDDLE, lw=0.7, label=label)
    x, y = _steps(measured.residuals, end)
    ax.step(x, y, where="post", color=INK, lw=1.6, label="all folds")
    for name, fractions, limits in bounds:
        certificate = choice.certificates[name]
        color = BLUE if name == ONE_FOLD else GREEN
        label = f"bound{'s' if len(limits) > 1 else ''}, {certificate.model_text}"
        if not certificate.certified:
            label = f"{UNPROVED}, {certificate.model_text}"
        fill = "full" if certificate.certified else "none"
        # A square marks a limit, and the fraction of predictions within it.
        ax.hlines(fractions, 0, limits, color=color, lw=0.8, alpha=0.6)
        mark = MARKERS[name]
        ax.plot(limits, fractions, mark, color=color, ms=6, fillstyle=fill, label=label)
    ax.set_xlim(0.0, end)
    ax.set_ylim(0.0, 1.02)
    ax.xaxis.set_major_formatter(IN_UNITS)
    ax.yaxis.set_major_formatter(percent_tick)
    ax.grid(color=MIDDLE, alpha=0.3, linewidth=0.5)
    ax.set_xlabel(f"off by at most{UNITS}")
    ax.set_ylabel("share of predictions, %")
    what = "How far predictions are from true values"
    what = f"{what}, on {name_rows(results, has_pool=False)}"
    tidy_axes(ax, title=short_verdict(choice.certificate), what=what)
    return ax


def _bounds_to_draw(choice: Choice) -> list[tuple[str, list[float], list[float]]]:
    """Return names of models, fractions of predictions, and their finite limits."""
    lines = []
    for name, certificate in choice.certificates.items():
        pairs = [(certificate.fraction, certificate.number)]
        if name == choice.deploy and name in choice.by_model("tolerances"):
            report = choice.by_model("tolerances")[name]
            pairs += zip(report.fractions, report.off_by_at_most, strict=True)
        finite_pairs = sorted({pair for pair in pairs if np.isfinite(pair).all()})
        if finite_pairs:
            fractions, limits = zip(*finite_pairs, strict=True)
            lines.append((name, list(fractions), list(limits)))
    return lines


def _steps(residuals: Floats, end: float) -> tuple[Floats, Floats]:
    """Return the corners of the distribution of residuals, for steps after each."""
    values = np.sort(residuals[np.isfinite(residuals)])
    shares = np.arange(len(values) + 1) / len(residuals)
    # The line goes on to the end of the axis.
    x = np.concatenate([[0.0], values, [max(end, *values[-1:])]])
    return x, np.append(shares, shares[-1])
