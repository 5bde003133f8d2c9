"""Figure of the spread over folds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Bools, Floats
from dsel.option_values import ONE_FOLD
from dsel.plots.style import (
    ACCENT,
    DROPPED,
    DROPPED_MARK,
    INK,
    MIDDLE,
    UNITS,
    candidate_labels,
    count_shown,
    label_rows,
    name_rows,
    new_axes,
    percent_tick,
    tidy_axes,
)
from dsel.results.candidate_tables import all_params
from dsel.results.certificate import Certificate
from dsel.results.choice import Choice
from dsel.results.cube import (
    fold_error_rates,
    has_fewer_predictions,
    read_counts,
    restore_dims,
)
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import about_percent
from dsel.search.design.certificate_methods import is_nested
from dsel.search.running.select import certificate_of_run, first_criterion, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CANDIDATES_DRAWN: Final = 8
"""Most candidates in a figure of folds."""
FEWEST_CANDIDATES_DRAWN: Final = 3
"""Fewest candidates in it, however small the axes are."""
ROW_HEIGHT: Final = 31.0
"""Points that the label and the dots of a candidate need, one above the other."""
DOT: Final = {"marker": "o", "ls": ""}
"""Mark of a mean of folds."""
BY_OTHER_FOLDS: Final = "chosen: the best on the folds that do not test it"
"""Legend entry of a candidate that was chosen without reading the fold of its bound."""
TOGETHER: Final = "all folds together"
"""Legend entry of the loss of a procedure on the rows of all folds."""
FAR: Final = 3.0
"""Means of losses, relative to the smallest, above which a figure of folds ends."""


class FoldLosses(NamedTuple):
    """The loss of each candidate on each fold."""

    values: np.ndarray
    """(n_candidates, n_folds); NaN where it was not counted."""
    name: str
    """Name of the loss: ``error``."""
    in_percent: bool = False
    """Whether it is shown in percent."""


def fold_losses(results: xr.Dataset) -> FoldLosses:
    """Return the loss of each candidate on each fold."""
    counts = read_counts(results)
    if (means := counts.get(names.FOLD_LOSS_MEAN)) is not None:
        what, loss, is_rate = "loss", certificate_of_run(results), False
        if is_squared(results):
            what = "mean squared error"  # it ranks, whatever loss is bounded
        elif loss is not None:
            what, is_rate = loss.title[:1].lower() + loss.title[1:], loss.is_rate
        return FoldLosses(np.asarray(means, float), what, is_rate)
    rates = fold_error_rates(counts)
    # Halvings have an axis of repeats and one of halves.
    rates = rates.reshape(len(rates), -1)
    return FoldLosses(rates, "error", in_percent=True)


def whole_candidates(results: xr.Dataset) -> Bools:
    """Return which candidates were counted on all folds; ValueError if none was."""
    is_whole: Bools = np.isfinite(fold_losses(results).values).all(axis=1)
    if not is_whole.any():
        raise ValueError("`results` has no candidate that was counted on all folds.")
    return is_whole


def is_squared(results: xr.Dataset) -> bool:
    """Return whether the losses on folds are mean squared errors."""
    return first_criterion(results) == "mean_squared_error"


def name_of_fold_losses(results: xr.Dataset) -> str:
    """Return the name of the numbers in a figure of folds, such as ``error``.

    Squared errors are shown as their roots.
    """
    return ("root " if is_squared(results) else "") + fold_losses(results).name


def name_cross_validation(results: xr.Dataset) -> str:
    """Return how the errors of the candidates were measured, in words.

    A nested search ranks candidates by inner cross-validation, with models trained
    without two folds; the estimate of its certificates is of models that were chosen
    and trained without one.
    """
    if has_single_fold(results):
        return "hold-out set"
    return f"{'inner ' if is_inner(results) else ''}cross-validation"


def has_single_fold(results: xr.Dataset) -> bool:
    """Return whether one fold tests all candidates, which is a hold-out set."""
    return results.sizes.get(names.FOLD) == 1


def is_inner(results: xr.Dataset) -> bool:
    """Return whether the losses on folds are those of inner cross-validation."""
    return results.attrs.get(names.FOLD_ERROR_KIND) == names.INNER_MODELS


def name_chosen(choice: Choice, values: Floats) -> str:
    """Return the legend entry of the chosen candidate, with the reason for it.

    `values` are those of all candidates, NaN or infinite where a candidate has none.
    """
    if not values[choice.candidate] > np.fmin.reduce(values, initial=np.inf):
        return "chosen"
    if is_nested(choice.certificate) and choice.deploy == ONE_FOLD:
        return BY_OTHER_FOLDS
    return "chosen by another number"


def find_dropped_candidates(results: xr.Dataset) -> Bools:
    """Return which candidates all or some searches dropped: they have fewer fits."""
    counts = read_counts(results)
    is_pruned = counts[names.STATUS] == names.STATUS_PRUNED
    return np.asarray(is_pruned | has_fewer_predictions(counts))


def plot_folds(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the errors of the best candidates on each fold, and their means.

    A procedure that is the only candidate, such as a `GridSearchCV`, has a dot for all
    folds together instead, the estimate of its certificate: what it chose may differ
    from fold to fold. The means of candidates rank these. They are of models that
    learned from fewer rows than those of the estimate, which the title has, too.

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
    losses, _, in_percent = fold_losses(results := restore_dims(results))
    choice, params = select(results), all_params(results)
    chosen = choice.candidate
    is_whole, n_most = whole_candidates(results), MOST_CANDIDATES_DRAWN
    if ax is not None:  # else the figure is made as high as its rows
        height = 72 * ax.get_window_extent().height / ax.figure.dpi
        n_most = max(
            FEWEST_CANDIDATES_DRAWN,
            min(MOST_CANDIDATES_DRAWN, int(height / ROW_HEIGHT)),
        )
    means = np.where(is_whole, losses.mean(axis=1), np.inf)
    if choice.procedure:
        means = _loss_on_all_folds(results, losses, choice.certificate)
    is_dropped = find_dropped_candidates(results)
    order = np.argsort(means, kind="stable")[: min(n_most, int(is_whole.sum()))]
    order = order[means[order] <= max(FAR * means[order[0]], means[order[:3]].max())]
    if chosen not in order and is_whole[chosen]:
        order[-1] = chosen
    if is_squared(results):  # in units of the target
        losses, means = np.sqrt(losses), np.sqrt(means)
    labels = candidate_labels([params[n] for n in order])
    if choice.procedure:  # the only candidate, whose text has all of its parameters
        choices = choice.fold_choices.texts
        # Each choice is in a line of its own.
        chose = "\n".join([" chose", *choices]) if choices else ""
        labels = [f"{choice.procedure}{chose}"]
    n_lines = max(label.count("\n") for label in labels)
    ax = new_axes(ax, height=1.6 + 0.42 * len(order) + 0.16 * n_lines)
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
        style = DROPPED_MARK if is_dropped[number] else DOT
        ax.plot(mean, place, color=color, ms=7, **style)
    style = DROPPED_MARK if is_dropped[chosen] else DOT
    legend = {what_mean: (INK, DOT), name_chosen(choice, means): (ACCENT, style)}
    if choice.procedure:  # which is the only candidate
        legend = {TOGETHER: (ACCENT, DOT)}
    for label, (color, style) in legend.items():
        ax.plot([], [], color=color, ms=7, label=label, **style)
    if is_dropped[order].any():
        ax.plot([], [], color=INK, ms=7, label=DROPPED, **DROPPED_MARK)
    label_rows(ax, labels)
    if in_percent:
        ax.xaxis.set_major_formatter(percent_tick)
    ax.grid(axis="x", color=MIDDLE, alpha=0.4, linewidth=0.5)
    low, high = ax.get_xlim()
    # No loss is below 0, and the axis would extend below it where all are 0.
    if low < 0:
        ax.set_xlim(-0.02 * high, high)
    unit = UNITS if is_squared(results) else (", %" if in_percent else "")
    ax.set_xlabel(
        f"{name_of_fold_losses(results)} on {_tested_rows(results)}{unit}"
        f"{count_shown(len(order), results)}"
    )
    shown = chosen if is_whole[chosen] else numbers[0]
    who = labels[numbers.index(shown)]
    who = choice.procedure or f"{'Chosen' if shown == chosen else 'Best'}: {who}"
    losses_shown = [means[shown], losses[shown].min(), losses[shown].max()]
    title = f"{who}\n{_name_losses(results, choice.certificate, losses_shown)}"
    rows_behind = name_rows(results, has_pool=False, is_inner=is_inner(results))
    what = f"{name_cross_validation(results).capitalize()}, from {rows_behind}"
    what = f"{_name_estimate_of_search(results, choice.certificate)}{what}"
    tidy_axes(ax, title=title, what=what)
    return ax


def _tested_rows(results: xr.Dataset) -> str:
    """Return what the rows are that a model has not seen."""
    return "the held-out rows" if has_single_fold(results) else "the fold"


def _name_losses(
    results: xr.Dataset, certificate: Certificate, losses: Sequence[float]
) -> str:
    """Return a mean loss, and the smallest and the largest one on a fold, in words."""
    about = about_percent if fold_losses(results).in_percent else certificate.about
    if is_squared(results):  # it is not the loss whose estimate is printed
        about = amount_about
    mean, least, most = map(about, losses)
    name = name_of_fold_losses(results)
    text = f"{name[:1].upper()}{name[1:]} about {mean}"
    if has_single_fold(results):
        return text
    return f"{text}, {least} to {most} on single folds"


def _name_estimate_of_search(results: xr.Dataset, certificate: Certificate) -> str:
    """Return the loss of a search whose candidates are drawn, as a sentence."""
    estimate = certificate.estimate
    # The axis has squared errors, so that a tolerance has no place on it.
    is_same_loss = names.FOLD_LOSS_MEAN in results or certificate.loss == "error"
    is_another = is_inner(results) and is_same_loss and not is_squared(results)
    if not is_another or not np.isfinite(estimate):
        return ""
    return f"The whole search: {certificate.about(estimate)} (cross-validation). "


def _loss_on_all_folds(
    results: xr.Dataset, losses: Floats, certificate: Certificate
) -> Floats:
    """Return the loss of the only candidate on the rows of all folds, shape (1,).

    It is the estimate of its certificate, since a loss such as the misses of a class is
    no mean over folds. A squared error is one, and has no certificate.
    """
    if not is_squared(results):
        return np.array([certificate.estimate])
    counts = read_counts(results)
    rows = counts.get(names.FOLD_PREDICTIONS, counts[names.FOLD_ROWS])
    return np.average(losses, axis=1, weights=np.ravel(rows))
