"""Bars: both certificates beside a held-out fifth, terms of bounds, and times."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.utils import format_time
from numpy.typing import NDArray

from dsel import names
from dsel.plots.style import ACCENT, BLUE, INK, PALE, new_axes, tidy
from dsel.results.certificate import params_text
from dsel.results.cube import evidence
from dsel.results.tables import all_params
from dsel.results.texts import in_percent
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
    models = list(choice.certificates.values())
    labels = [each.model for each in models]
    bounds = [each.bound for each in models]
    # A bound without terms comes from labeled rows alone.
    firsts = [
        min(each.bound, np.nan_to_num(each.label_term, nan=each.bound))
        for each in models
    ]
    if np.isfinite(choice.held_out_fifth):
        labels.append("a held-out fifth, about")
        bounds.append(choice.held_out_fifth)
        firsts.append(choice.held_out_fifth)
    ax = new_axes(height=1.2 + 0.6 * len(labels)) if ax is None else ax
    places = np.arange(len(labels))[::-1]
    colors = [BLUE] * len(models) + [INK] * (len(labels) - len(models))
    _draw_bars(ax, places, np.array(firsts), np.array(bounds), color=colors)
    estimates = [each.estimate for each in models]
    ax.plot(estimates, places[: len(models)], "|", color=ACCENT, ms=16, mew=2.5)
    ax.set_yticks(places, labels)
    ax.set_xlim(0, 1.15 * min(max(bounds), 1.0))
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
    labels = ("from labeled rows", "from disagreement on the pool")
    _draw_bars(ax, places, first[best], (first + second)[best], labels=labels)
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
    bars = ax.barh(places, list(sums.values()), color=BLUE, height=0.6)
    shown = [
        f"{format_time(each)} ({each / (total or 1):.0%})" for each in sums.values()
    ]
    ax.bar_label(bars, shown, padding=3, fontsize=8, color=INK)
    ax.set_yticks(places, list(sums))
    ax.set_xlim(right=1.25 * max((*sums.values(), 1e-9)))
    ax.set_xlabel("seconds, summed over tasks")
    tidy(ax, title=f"{format_time(total)} of work")
    return ax


def _draw_bars(
    ax: "Axes",
    places: NDArray[np.int64],
    firsts: NDArray[np.float64],
    bounds: NDArray[np.float64],
    *,
    color: Any = BLUE,
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw bounds as bars of two parts, with their numbers at the end."""
    ax.barh(places, firsts, height=0.6, color=color, label=labels[0])
    rest = ax.barh(
        places, bounds - firsts, height=0.6, left=firsts, color=PALE, label=labels[1]
    )
    shown = [in_percent(bound) for bound in bounds]
    ax.bar_label(rest, shown, padding=3, fontsize=8, color=INK)
