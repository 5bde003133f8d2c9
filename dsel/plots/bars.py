"""Bars: both certificates beside a held-out fifth, terms of bounds, and times."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from dask.utils import format_time

from dsel import names
from dsel.plots.style import ACCENT, BLUE, INK, PALE, new_axes, tidy
from dsel.results.certificate import in_percent, params_text
from dsel.results.cube import evidence
from dsel.results.tables import all_params
from dsel.search.select import select, terms_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASES = {
    names.FIT_SECONDS: "fits on folds",
    names.FULL_FIT_SECONDS: "fits on all labeled rows",
    names.SCORE_SECONDS: "passes over the pool",
}


def plot_certificates(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw what is certified of each model, beside what a held-out fifth would give.

    Parameters
    ----------
    results
        Cube of a search.
    ax
        Where to draw, and what is returned; None makes a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5]}
    >>> plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    >>> ax = plot_certificates(plan.run().results)
    >>> ax.get_xlabel()
    'share of rows'
    """
    choice = select(results)
    lines = [
        (each.model, each.bound, each.label_term, each.estimate)
        for each in choice.certificates.values()
    ]
    if np.isfinite(choice.held_out_fifth):
        fifth = choice.held_out_fifth
        lines.append(("a held-out fifth, about", fifth, fifth, np.nan))
    ax = new_axes(height=1.2 + 0.6 * len(lines)) if ax is None else ax
    for place, (model, bound, label_term, estimate) in zip(
        range(len(lines))[::-1], lines, strict=True
    ):
        first = np.nan_to_num(label_term, nan=bound)
        is_ours = place or len(lines) == len(choice.certificates)
        color = BLUE if is_ours else INK
        ax.barh(place, min(first, bound), height=0.6, color=color, alpha=0.85)
        ax.barh(place, max(bound - first, 0.0), height=0.6, left=first, color=PALE)
        ax.annotate(
            f" {in_percent(bound)}", (bound, place), va="center", fontsize=9, color=INK
        )
        if np.isfinite(estimate):
            ax.plot(estimate, place, "|", color=ACCENT, ms=16, mew=2.5)
        del model
    ax.set_yticks(range(len(lines))[::-1], [model for model, *_ in lines])
    ax.set_xlim(0, 1.15 * max(min(bound, 1.0) for _, bound, *_ in lines))
    ax.set_xlabel("share of rows")
    tidy(ax, title="Error at most; the mark is the error seen on held-out folds")
    return ax


def plot_terms(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    n_best: int = 8,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw what the smallest bounds of all candidates are made of, the best on top.

    Parameters
    ----------
    results
        Cube of a search by ``cv_bound`` or ``best_fold``.
    criterion
        A criterion that has two terms; by default the search's certificate.
    n_best
        How many candidates to show.
    ax
        Where to draw, and what is returned; None makes a new figure.

    Raises
    ------
    ValueError
        Where the criterion has no two terms.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X[::2], y[::2], X[1::2],
    ...     certificate="cv_bound", random_state=0)
    >>> ax = plot_terms(plan.run().results)
    >>> ax.get_xlabel()
    'bound on the error (share of rows)'
    """
    declared = results.attrs.get("certificate")
    if criterion is None and declared in ("cv_bound", "best_fold"):
        criterion = declared
    rule, terms = terms_of(results, criterion)
    first, second = terms.label_term, terms.disagreement_term
    order = np.argsort(terms.estimate, kind="stable")
    best = [int(n) for n in order if np.isfinite(first[n] + second[n])][:n_best]
    if not best:
        raise ValueError(
            f"`criterion` {rule.name!r} has no two terms to show for every candidate; "
            f"`plot_certificates` draws those of a nested search."
        )
    counts = evidence(results)
    n_rows = counts[names.FOLD_ROWS].sum()
    errors = counts[names.FOLD_ERRORS][best].sum(axis=1) / n_rows
    ax = new_axes(height=1.6 + 0.4 * len(best)) if ax is None else ax
    places = np.arange(len(best))[::-1]
    labels, pool = first[best], second[best]
    ax.barh(places, labels, height=0.6, color=BLUE, label="from labeled rows")
    ax.barh(
        places, pool, height=0.6, left=labels, color=PALE, edgecolor=BLUE, lw=0.6,
        label="from disagreement on the pool",
    )  # fmt: skip
    for place, bound in zip(places, labels + pool, strict=True):
        ax.annotate(
            f" {in_percent(bound)}", (bound, place), va="center", fontsize=8, color=INK
        )
    ax.plot(
        errors, places, "|", color=ACCENT, markersize=14, markeredgewidth=2.5,
        label="error in cross-validation (an estimate)",
    )  # fmt: skip
    params = all_params(results)
    ax.set_yticks(places, [params_text(params[n]) for n in best])
    ax.set_xlabel("bound on the error (share of rows)")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.15))
    tidy(ax, title=f"{rule.name}: what it is made of")
    return ax


def plot_timing(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw where the time of a search went, one bar for each kind of task.

    Parameters
    ----------
    results
        Cube of a search.
    ax
        Where to draw, and what is returned; None makes a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, y, random_state=0,
    ...     criterion="cv_error")
    >>> ax = plot_timing(plan.run().results)
    >>> ax.get_xlabel()
    'seconds, summed over tasks'
    """
    sums = {
        phase: float(results[name].sum())
        for name, phase in PHASES.items()
        if name in results
    }
    total = sum(sums.values())
    ax = new_axes(height=2.4) if ax is None else ax
    places = np.arange(len(sums))[::-1]
    ax.barh(places, list(sums.values()), color=BLUE, height=0.6)
    for place, seconds in zip(places, sums.values(), strict=True):
        share = seconds / total if total else 0.0
        ax.annotate(
            f" {format_time(seconds)} ({share:.0%})", (seconds, place), va="center",
            fontsize=8, color=INK,
        )  # fmt: skip
    ax.set_yticks(places, list(sums))
    ax.set_xlim(right=1.25 * max((*sums.values(), 1e-9)))
    ax.set_xlabel("seconds, summed over tasks")
    tidy(ax, title=f"{format_time(total)} of work")
    return ax
