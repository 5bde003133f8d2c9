"""Figures of plans, audits and least squares."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds import binomial_tail_inversion
from dsel.bounds.binomial import binomial_tail_inversion_lower
from dsel.least_squares import select_least_squares
from dsel.plots.fitting import SMALL, axes_size, wrap
from dsel.plots.style import (
    ACCENT,
    BLUE,
    GREEN,
    INK,
    MIDDLE,
    NOT_RUN,
    PINK,
    label_rows,
    name_rows,
    new_axes,
    percent_tick,
    tidy_axes,
)
from dsel.results.cube import check_dataset, read_counts
from dsel.rounded_texts import NONE, about_percent
from dsel.search.planning.plan_bound import PLAIN_HOLDOUT, describe_row, name_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH: Final = 130.0
"""Width in points of the labels at the ends of lines."""
ROOM_FOR_LABELS: Final = 300.0
"""Width in points of axes from which on these have room for labels beside lines."""
COLORS = (BLUE, GREEN, PINK, MIDDLE, INK)
ESTIMATES: Final = {
    "loo": "leave-one-out",
    "gcv": "generalized cross-validation",
    "kfold": "mean of {} folds",
    "holdout": "first fold, held out",
    "extra_sample": "extra test rows",
    "mean_squared_error": "inner cross-validation",
}
"""Words for the criteria of least squares; braces hold the number of folds."""


def plot_bound_plan(plan: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the expected bound of each certificate by number of folds.

    It draws bars for a single number of folds.

    Parameters
    ----------
    plan
        Dataset of `dsel.plan_bound`.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `plan` is no Dataset.
    ValueError
        If it is not one of `dsel.plan_bound`.

    Examples
    --------
    >>> import dsel
    >>> ax = plot_bound_plan(dsel.plan_bound(500, 100_000, n_candidates=225, error=0.1))
    >>> ax.get_xlabel()
    'bound on the error, on average, %, with 5 folds'
    """
    check_dataset(
        plan, "plan", "`dsel.plan_bound`", names.BOUND, names.CERTIFICATE, names.N_FOLDS
    )
    bounds = plan[names.BOUND].clip(max=1.0).transpose(names.CERTIFICATE, names.N_FOLDS)
    order = np.argsort(bounds.min(names.N_FOLDS).values, kind="stable")
    bounds = bounds.isel({names.CERTIFICATE: order})
    what = str(plan.attrs.get("title", ""))
    if bounds.sizes[names.N_FOLDS] == 1:  # lines would have a single point
        return _draw_one_plan(bounds, what, ax)
    ax = new_axes(ax)
    places = np.arange(bounds.sizes[names.N_FOLDS])
    for number, (certificate, values) in enumerate(
        zip(bounds[names.CERTIFICATE].values, bounds.values, strict=True)
    ):
        is_holdout = certificate == PLAIN_HOLDOUT
        color = MIDDLE if is_holdout else ACCENT if not number else BLUE
        line = "--" if is_holdout else "-"
        ax.plot(places, values, line, color=color, marker="s", ms=3)
    _label_ends(bounds, ax)
    ax.set_xticks(places, [str(k) for k in bounds[names.N_FOLDS].values])
    ax.set_xlim(-0.2, places[-1] + 2.2)
    ax.yaxis.set_major_formatter(percent_tick)
    ax.grid(axis="y", color=MIDDLE, alpha=0.4, linewidth=0.5)
    ax.set_xlabel("number of folds")
    ax.set_ylabel("bound on the error, on average, %")
    tidy_axes(ax, title=_name_smallest(bounds), what=what)
    return ax


def _label_ends(bounds: xr.DataArray, ax: "Axes") -> None:
    """Label lines near their ends, and move labels apart until none overlap."""
    last = bounds.sizes[names.N_FOLDS] - 1
    ends = bounds.isel({names.N_FOLDS: -1}).values
    width, height = axes_size(ax)
    words, least_share = name_row, 1.2 * SMALL / height
    if width > ROOM_FOR_LABELS:
        words, least_share = describe_row, 0.1
    shown = np.nan_to_num(ends)
    apart, least = shown.copy(), least_share * (shown.max() - min(shown.min(), 0.0))
    for below, above in pairwise(np.argsort(shown, kind="stable")):
        apart[above] = max(apart[above], apart[below] + least)
    apart -= (apart - shown).mean()
    for line, certificate, end, height in zip(
        ax.lines[:], bounds[names.CERTIFICATE].values, ends, apart, strict=True
    ):
        x, y = last + np.array([0, 0.2]), [end, height]
        ax.plot(x, y, color=line.get_color(), lw=0.6)
        ax.annotate(
            wrap(words(certificate), LABEL_WIDTH, SMALL),
            (last + 0.23, height),
            color=INK,
            fontsize=SMALL,
            va="center",
        )


def _name_smallest(bounds: xr.DataArray) -> str:
    """Return a title: the smallest bound that can be expected, and its certificate."""
    first = bounds.isel({names.CERTIFICATE: 0})
    smallest = describe_row(first[names.CERTIFICATE].item())
    n_folds = int(first[names.N_FOLDS].values[np.nanargmin(first.values)])
    folds = "" if first.size == 1 else f" with {n_folds} folds"
    least = about_percent(float(first.min()))
    return f"Smallest bound to expect: {least}{folds} ({smallest})"


def _draw_one_plan(bounds: xr.DataArray, what: str, ax: "Axes | None") -> "Axes":
    """Draw bars of the bounds of certificates, the smallest at the top."""
    [n_folds], values = bounds[names.N_FOLDS].values, bounds.values[:, 0]
    certificates = bounds[names.CERTIFICATE].values.tolist()
    ax = new_axes(ax, height=1.8 + 0.45 * len(values))
    colors = [ACCENT, *[BLUE] * (len(values) - 1)]
    places = np.arange(len(values))[::-1]
    bars = ax.barh(places, values, height=0.4, color=colors)
    if PLAIN_HOLDOUT in certificates:
        bars[certificates.index(PLAIN_HOLDOUT)].set(**NOT_RUN)
    label_rows(
        ax,
        [
            f"{describe_row(name)}: {NONE if np.isnan(bound) else about_percent(bound)}"
            for name, bound in zip(certificates, values, strict=True)
        ],
    )
    ax.set_xlim(0, 1.05 * np.nanmax(values, initial=0.01))
    ax.xaxis.set_major_formatter(percent_tick)
    ax.set_xlabel(f"bound on the error, on average, %, with {n_folds} folds")
    tidy_axes(ax, title=_name_smallest(bounds), what=what)
    return ax


def plot_loss_curves(
    results: xr.Dataset, *, criterion: str | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a least-squares search at the chosen width: its estimates, and its choice.

    Parameters
    ----------
    results
        Cube of a `LeastSquaresSearch`.
    criterion
        Criterion that chooses the width; None means the criterion of the search.
    ax
        As for `plot_surface`.

    Raises
    ------
    ValueError
        If the cube is of another kind of search.

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
    read_counts(results)  # raises if it is no cube
    if names.REGULARIZATION not in results.dims:
        raise ValueError(
            "`results` must be those of a LeastSquaresSearch; `plot_surface` draws a "
            "search of classifiers."
        )
    choice = select_least_squares(results, criterion)
    cube = results.sel({names.WIDTH: choice.params["width"]})
    cube = cube.sortby(names.REGULARIZATION)
    cube = cube.sel({names.REGULARIZATION: cube[names.REGULARIZATION] > 0})
    ax = new_axes(ax)
    estimates = cube[names.CRITERION_VALUE].transpose(
        names.CRITERION, names.REGULARIZATION
    )
    finite = estimates.where(np.isfinite(estimates))
    n_folds = results.sizes.get(names.FOLD, 0)
    words = {name: text.format(n_folds) for name, text in ESTIMATES.items()}
    for number, losses_of_criterion in enumerate(finite):
        # Estimates often agree: later curves are thinner and leave the others visible.
        ax.plot(
            cube[names.REGULARIZATION],
            losses_of_criterion,
            color=COLORS[number % len(COLORS)],
            label=words[losses_of_criterion[names.CRITERION].item()],
            lw=3.2 - 0.5 * number,
            ls=("-", "--", "-.", ":")[number % 4],
        )
    chosen = choice.params["regularization"]
    if chosen > 0:
        ax.axvline(chosen, color=ACCENT, lw=0.8, ls=":", label="chosen")
    ax.set(xscale="log", yscale="log")
    ax.set(
        xlabel="regularization",
        ylabel="estimated squared error, squared units of the target",
    )
    what = f"Estimates of the error on new rows, from {name_rows(results)}"
    where = f"width={choice.params['width']:.3g}, regularization={chosen:.3g}"
    tidy_axes(ax, title=f"Chosen by {words[choice.criterion]}: {where}", what=what)
    return ax


def plot_audit_failures(report: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the failure rate of each bound in an audit, and the rate that delta allows.

    There is one line for each setting and delta, with a 95% interval.

    Parameters
    ----------
    report
        Dataset of `dsel.audit`; `report.sel(setting=[...])` draws a part.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `report` is no Dataset.
    ValueError
        If it is not one of `dsel.audit`.
    """
    of = ("failures", "n_draws", "setting", names.DELTA)
    check_dataset(report, "report", "`dsel.audit`", *of)
    failures = report["failures"].transpose("setting", names.DELTA)
    settings, deltas = (failures[axis].values for axis in failures.dims)
    counts, n_draws = failures.values.ravel(), int(report["n_draws"])
    lower = binomial_tail_inversion_lower(counts, n_draws, delta=0.025)
    upper = binomial_tail_inversion(counts, n_draws, delta=0.025)
    fractions, allowed = counts / n_draws, np.tile(deltas, len(settings))
    ax = new_axes(ax, 7.2, 0.9 + 0.19 * failures.size)
    places = np.arange(len(counts))[::-1]
    ax.barh(
        places, allowed, height=0.9, color=MIDDLE, alpha=0.25, label="allowed by delta"
    )
    ax.errorbar(
        fractions,
        places,
        xerr=[fractions - lower, upper - fractions],
        fmt="o",
        ms=4,
        lw=1.4,
        capsize=2,
        color=INK,
        label="failed, with 95% interval",
    )
    above = lower > allowed
    if above.any():
        ax.plot(
            fractions[above],
            places[above],
            "D",
            ms=6,
            color=ACCENT,
            zorder=3,
            label="more than chance allows",
        )
    labels = [
        f"{name}   {delta:g}" if delta == deltas[0] else f"{delta:g}"
        for name in settings
        for delta in deltas
    ]
    ax.set_yticks(places, labels)
    ax.set_xlim(0, max(1.1 * deltas.max(), 1.05 * upper.max()))
    ax.set_ylim(-0.7, len(places) - 0.3)
    ax.set_xlabel(f"share of {n_draws:,} draws that failed")
    ax.set_ylabel("setting, delta")
    failed = f"{int(above.sum()) or 'None'} of {above.size} bounds failed"
    tidy_axes(
        ax,
        title=f"{failed} more often than chance allows",
        what=f"How often each bound was below the true error, in {n_draws:,} "
        f"simulated samples",
    )
    return ax
