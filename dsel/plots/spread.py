"""Figures of the spread over folds, and of bounds by the number of labels."""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Floats
from dsel.losses.declared import DeclaredLosses
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.plots.style import (
    ACCENT,
    BLUE,
    DROPPED,
    DROPPED_MARK,
    GREEN,
    INK,
    MIDDLE,
    UNITS,
    UNPROVED,
    candidate_labels,
    in_hundreds,
    label_rows,
    new_axes,
    tidy,
)
from dsel.results.choice import Choice
from dsel.results.cube import count_predictions, read_counts
from dsel.results.tables import all_params
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import about_percent, in_percent
from dsel.search.design.certificate_methods import is_nested
from dsel.search.planning.plan_bound import PLAIN_HOLDOUT, plan_bound
from dsel.search.running.select import declared_loss, first_criterion, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CANDIDATES_DRAWN: Final = 8
"""Most candidates in a figure of folds."""
FEWEST_CANDIDATES_DRAWN: Final = 3
"""Fewest candidates in it, however small the axes are."""
ROW_HEIGHT: Final = 28.0
"""Points that the label and the dots of a candidate need, one above the other."""
WITH_LABELS: Final = "this run, with queried labels"
BY_OTHER_FOLDS: Final = "chosen by the other folds"
"""Legend entry of a candidate for whose choice the fold of its bound was not read."""
FAR: Final = 3.0
"""Means of losses, relative to the smallest, above which a figure of folds ends."""
FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Numbers of labels, relative to the run, for which bounds are predicted."""
COLORS: Final = {ONE_FOLD: BLUE, ALL_ROWS: GREEN, PLAIN_HOLDOUT: MIDDLE}
"""Colors of both models, and of a hold-out set."""


class FoldLosses(NamedTuple):
    """The loss of each candidate on each fold."""

    values: np.ndarray
    """(n_candidates, n_folds); NaN where it was not counted."""
    name: str
    """Name of the loss: ``error on the fold``."""
    in_percent: bool = False
    """Whether it is shown in percent."""


def fold_losses(results: xr.Dataset) -> FoldLosses:
    """Return the loss of each candidate on each fold."""
    counts = read_counts(results)
    if (means := counts.get(names.FOLD_LOSS_MEAN)) is not None:
        what, loss, is_rate = "loss", declared_loss(results), False
        if is_squared(results):
            what = "mean squared error"  # it ranks, whatever loss is bounded
        elif loss is not None:
            what, is_rate = loss.what[:1].lower() + loss.what[1:], loss.is_rate
        return FoldLosses(np.asarray(means, float), f"{what} on the fold", is_rate)
    errors = np.asarray(counts[names.FOLD_ERRORS], float)
    n_predictions = count_predictions(counts)
    is_known = (errors >= 0) & (n_predictions > 0)
    rates = np.where(
        is_known, errors / np.where(n_predictions > 0, n_predictions, 1.0), np.nan
    )
    # Halvings have an axis of repeats and one of halves.
    rates = rates.reshape(len(rates), -1)
    return FoldLosses(rates, "error on the fold", in_percent=True)


def is_squared(results: xr.Dataset) -> bool:
    """Return whether the losses on folds are mean squared errors."""
    return first_criterion(results) == "mean_squared_error"


def name_of_fold_losses(results: xr.Dataset) -> str:
    """Return the name of the numbers in a figure of folds: roots of squared errors."""
    return "root " * is_squared(results) + fold_losses(results).name


def name_chosen(choice: Choice, values: Floats) -> str:
    """Return the legend entry of the chosen candidate; where others are below it, why.

    `values` are those of all candidates, NaN or infinite where a candidate has none.
    """
    if not values[choice.candidate] > np.fmin.reduce(values, initial=np.inf):
        return "chosen"
    if is_nested(choice.certificate) and choice.deploy == ONE_FOLD:
        return BY_OTHER_FOLDS
    return "chosen by another number"


def plot_folds(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the errors of the best candidates on each fold, and their means.

    Candidates whose mean is more than three times the smallest are left out: on their
    scale the folds of the others would look alike. Axes of yours get as many candidates
    as have room there, at least three.

    Parameters
    ----------
    results, ax
        As for `plot_surface`.

    Raises
    ------
    ValueError
        If no candidate was counted on all folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5]}
    >>> plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    >>> ax = plot_folds(plan.run().results)
    >>> ax.get_xlabel()
    'error on the fold, %'
    """
    losses, name, in_percent = fold_losses(results)
    choice, params = select(results), all_params(results)
    chosen = choice.candidate
    is_whole, n_most = np.isfinite(losses).all(axis=1), MOST_CANDIDATES_DRAWN
    if ax is not None:  # else the figure is made as high as its rows
        height = 72 * ax.get_window_extent().height / ax.figure.dpi
        n_most = max(
            FEWEST_CANDIDATES_DRAWN,
            min(MOST_CANDIDATES_DRAWN, int(height / ROW_HEIGHT)),
        )
    if not is_whole.any():
        raise ValueError("`results` has no candidate that was counted on all folds.")
    means = np.where(is_whole, losses.mean(axis=1), np.inf)
    is_dropped = results[names.STATUS].values.ravel() == names.STATUS_PRUNED
    order = np.argsort(means, kind="stable")[: min(n_most, int(is_whole.sum()))]
    order = order[means[order] <= max(FAR * means[order[0]], means[order[:3]].max())]
    if chosen not in order and is_whole[chosen]:
        order[-1] = chosen
    if is_squared(results):  # in units of the target
        losses, means, name = np.sqrt(losses), np.sqrt(means), f"root {name}"
    ax = new_axes(ax, height=1.3 + 0.42 * len(order))
    what_mean = "root of their mean square" if is_squared(results) else "mean of folds"
    numbers = order.tolist()  # the best one on top
    for place, number in zip(range(len(numbers))[::-1], numbers, strict=True):
        # Dots of equal values do not overlap, below the label, which begins at 0.25.
        heights = place + np.linspace(-0.12, 0.12, losses.shape[1])
        folds, mean = losses[number], means[number]
        ax.plot([folds.min(), folds.max()], [place, place], color=MIDDLE, lw=0.8)
        label = "" if place else "a fold"
        ax.plot(folds, heights, ".", color=MIDDLE, ms=6, label=label)
        color = ACCENT if number == chosen else INK
        style = DROPPED_MARK if is_dropped[number] else {"marker": "o"}
        ax.plot(mean, place, color=color, ms=7, **style)
    legend = {what_mean: INK, name_chosen(choice, means): ACCENT}
    if choice.procedure:  # which is the only candidate
        legend = {what_mean: ACCENT}
    for label, color in legend.items():
        ax.plot([], [], "o", color=color, ms=7, label=label)
    if is_dropped[order].any():
        ax.plot([], [], color=INK, ms=7, label=DROPPED, **DROPPED_MARK)
    labels = candidate_labels([params[n] for n in numbers])
    if choice.procedure:  # the only candidate, whose text has all of its parameters
        chose = choice.choices_of_folds
        labels = [choice.procedure + (f", which chose {chose}" if chose else "")]
    label_rows(ax, labels)
    if in_percent:
        ax.xaxis.set_major_formatter(in_hundreds)
    ax.grid(axis="x", color=MIDDLE, alpha=0.4, linewidth=0.5)
    ax.set_xlabel(name + (UNITS if is_squared(results) else ", %" * in_percent))
    about = about_percent if in_percent else choice.certificate.about
    if is_squared(results):
        about = amount_about
    shown = chosen if is_whole[chosen] else order[0]
    least, most = losses[shown].min(), losses[shown].max()
    who = "Chosen" if shown == chosen else "Best"
    title = f"{who}: {about(means[shown])} on average, {about(least)} to {about(most)}"
    tidy(ax, title=title)
    return ax


def plot_bound_by_labels(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the bounds to expect with more labels, and the bounds of the run.

    The prediction assumes models that err, and differ, as often as those of the run.
    More labels usually make better models, too, and then the bounds are still smaller.

    Parameters
    ----------
    results, ax
        As for `plot_surface`; the search must be a nested one for the error.

    Raises
    ------
    ValueError
        If the search bounds another loss, or by another certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5]}
    >>> plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    >>> ax = plot_bound_by_labels(plan.run().results)
    >>> ax.get_xlabel()
    'labeled rows'
    """
    choice, counts = select(results), read_counts(results)
    certificate = choice.certificate
    k = int(results.sizes.get(names.FOLD, 0))
    if certificate.loss != "error" or not is_nested(certificate):
        raise ValueError("`results` must be those of a nested search for the error.")
    n_labeled, unit = int(counts[names.N_LABELED]), "labeled rows"
    if certificate.n_groups:  # of which one row each is counted
        n_labeled, unit = certificate.n_groups, "groups of labeled rows"
    n_pool = max(0, int(counts[names.N_UNLABELED]))
    numbers = sorted({round(n_labeled * f) for f in FACTORS if n_labeled * f >= 4 * k})
    error, disagreement = _clip_rate(certificate.estimate), None
    if names.OUTER_DISAGREEMENTS in results and n_pool:
        differ = results[names.OUTER_DISAGREEMENTS].values
        disagreement = _clip_rate(float(np.nanmean(differ)) / n_pool)
    # Reports have their part of delta; a hold-out set spends all of it on its bound.
    report, by_value = choice.reports.get(choice.deploy), choice.reports_by_value
    classes = tuple(report.classes) if report is not None else ()
    declared = DeclaredLosses(report_classes=classes)
    main_delta = declared.divide_delta(
        certificate.delta, has_values=bool(by_value)
    ).main
    own, holdout = (
        xr.concat(
            [
                plan_bound(
                    n,
                    n_pool,
                    n_candidates=int(counts[names.N_CANDIDATES]),
                    error=error,
                    cv=k,
                    disagreement=disagreement,
                    delta=delta,
                )[names.BOUND].isel({names.N_FOLDS: 0})
                for n in numbers
            ],
            "n_labels",
        )
        for delta in (main_delta, certificate.delta)
    )
    bounds = own.where(own[names.CERTIFICATE] != PLAIN_HOLDOUT, holdout)
    ax = new_axes(ax, height=3.2)
    part = f"{1 - 1 / k:.0%}" if k else "a part"
    texts = {
        ONE_FOLD: f"trained on {part}",
        ALL_ROWS: "trained on all",
        PLAIN_HOLDOUT: "20% hold-out set",
    }
    drawn = [each.number for each in choice.certificates.values()]
    for name, text in texts.items():
        values = bounds.sel({names.CERTIFICATE: name}).clip(max=1.0).values
        if np.isfinite(values).any():
            drawn += values.tolist()
            style = "--" if name == PLAIN_HOLDOUT else "-"
            ax.plot(numbers, values, style, color=COLORS[name], lw=1.4, label=text)
    for name, each in choice.certificates.items():
        label = "" if name == ALL_ROWS else "this run"
        label = WITH_LABELS if each.n_queried else label
        style = "full" if each.certified else "none"
        if label and not each.certified:
            label = f"{label}, {UNPROVED}"
        ax.plot(
            n_labeled, each.number, "s", color=COLORS[name], ms=7, label=label,
            fillstyle=style,
        )  # fmt: skip
    estimate = certificate.estimate
    ax.plot(n_labeled, estimate, "o", color=INK, ms=6, label="measured")
    ax.axvline(n_labeled, color=MIDDLE, alpha=0.5, linewidth=0.6)
    ax.set_xscale("log")
    ax.set_xticks(numbers, [f"{n:,}" for n in numbers])
    ax.minorticks_off()
    top = min(1.0, 1.1 * np.nanmax(drawn, initial=0.01))
    ax.set_ylim(0.0, top)
    ax.yaxis.set_major_formatter(in_hundreds)
    ax.grid(axis="y", color=MIDDLE, alpha=0.4, linewidth=0.5)
    ax.set_xlabel(unit)
    ax.set_ylabel("bound on the error, %")
    what = "groups" if certificate.n_groups else "labels"
    line = bounds.sel({names.CERTIFICATE: choice.deploy}).clip(max=1.0)
    now, later = (
        in_percent(line[numbers.index(n)].item()) for n in (n_labeled, 4 * n_labeled)
    )
    # Averages both: a run of its own may be a lucky one.
    title = f"4 times as many {what}: on average a bound of {later} in place of {now}"
    tidy(ax, title=title)
    return ax


def _clip_rate(rate: float) -> float:
    """Return a rate inside (0, 1), which a plan needs."""
    return float(np.clip(rate, 1e-4, 0.99))
