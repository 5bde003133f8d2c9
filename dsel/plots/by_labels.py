"""Figure of the bounds to expect with more, or fewer, labels."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.losses.protocols import DeltaDivision
from dsel.losses.regression import ErrorQuantile
from dsel.losses.texts import loss_of_text
from dsel.option_values import ALL_ROWS, ONE_FOLD
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
    tidy_axes,
)
from dsel.results.choice import Choice
from dsel.results.cube import read_counts
from dsel.results.plan_calls import clip_rate, main_delta
from dsel.rounded_texts import fraction_in_percent
from dsel.search.design.certificate_methods import is_nested
from dsel.search.design.expected_bounds import five_fold_disagreement
from dsel.search.design.expected_tolerances import (
    MeasuredDistances,
    expect_of_all_rows,
    expect_of_holdout,
    expect_of_one_fold,
)
from dsel.search.planning.plan_bound import PLAIN_HOLDOUT, plan_bound
from dsel.search.running.select import select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ESTIMATE: Final = "cross-validated estimate"
BOUND: Final = "bound of this run"
WITH_LABELS: Final = f"{BOUND}, with queried labels"
SQUARE: Final = 7.0
"""Size of the squares of the run in points."""
SIDE: Final = 0.6 * SQUARE
"""How far each of two squares is from the number of labels of the run."""
FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Numbers of labels, relative to the run, for which bounds are predicted."""
COLORS: Final[Mapping[str, str]] = {
    ONE_FOLD: BLUE,
    ALL_ROWS: GREEN,
    PLAIN_HOLDOUT: MIDDLE,
}
"""Colors of both models, and of a hold-out set."""
STYLES: Final[Mapping[str, str]] = {ONE_FOLD: "-", ALL_ROWS: "-.", PLAIN_HOLDOUT: "--"}
"""Styles of their lines, which tell them apart without colors."""
MARKERS: Final[Mapping[str, str]] = {ONE_FOLD: "s", ALL_ROWS: "D"}
"""Marks of the bounds of both models in the run."""


def plot_bound_by_labels(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the bounds to expect with more labels, and the bounds of the run.

    The prediction assumes models that err, and differ, as often as those of the run, or
    are as far off. More labels usually make better models, too, and then the bounds are
    still smaller.

    Parameters
    ----------
    results, ax
        As for `plot_surface`; the search must be a nested one for the error, or for a
        tolerance of a regressor.

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
    choice, counts = choice_by_labels(results), read_counts(results)
    certificate = choice.certificate
    k = int(results.sizes.get(names.FOLD, 0))
    n_labeled, unit = int(counts[names.N_LABELED]), "labeled rows"
    if certificate.n_groups:  # of which one row each is counted
        n_labeled, unit = certificate.n_groups, "groups of labeled rows"
    numbers = sorted({round(n_labeled * f) for f in FACTORS if n_labeled * f >= 4 * k})
    expect = _expect_tolerances if certificate.is_tolerance else _expect_errors
    lines = expect(results, choice, numbers)
    # No line begins below the number of labels that its first finite bound needs.
    is_drawn = np.isfinite([*lines.values()]).any(axis=0) | (
        np.array(numbers) == n_labeled
    )
    numbers = [n for n, is_it in zip(numbers, is_drawn, strict=True) if is_it]
    lines = {name: values[is_drawn] for name, values in lines.items()}
    ax = new_axes(ax, height=3.9)
    part = fraction_in_percent(1 - 1 / k) if k else "a part"
    unit_of_models = "groups" if certificate.n_groups else "labels"
    texts = {
        ONE_FOLD: f"model trained on {part} of the {unit_of_models}",
        ALL_ROWS: f"model trained on all {unit_of_models}",
        PLAIN_HOLDOUT: "20% hold-out set",
    }
    for name, text in texts.items():
        if np.isfinite(values := lines[name]).any():
            style = STYLES[name]
            ax.plot(numbers, values, style, color=COLORS[name], lw=1.4, label=text)
    _mark_run(ax, choice, n_labeled, {ONE_FOLD: part, ALL_ROWS: "all"})
    ax.set_xscale("log")
    ax.set_xticks(numbers, [f"{n:,}" for n in numbers])
    ax.minorticks_off()
    bounds_to_draw = np.concatenate(
        [*lines.values(), [bound.number for bound in choice.certificates.values()]]
    )
    highest = np.max(
        bounds_to_draw[np.isfinite(bounds_to_draw)], initial=0.01 * certificate.is_rate
    )
    ax.set_ylim(0.0, min(certificate.largest, 1.1 * float(highest) or 1.0))
    ax.yaxis.set_major_formatter(percent_tick if certificate.is_rate else IN_UNITS)
    ax.grid(axis="y", color=MIDDLE, alpha=0.4, linewidth=0.5)
    ax.set_xlabel(unit)
    label = f"{certificate.title} at most{UNITS}"
    ax.set_ylabel(label if certificate.is_tolerance else "bound on the error, %")
    line = dict(zip(numbers, lines[choice.deploy].tolist(), strict=True))
    # Both are averages, since a single run may be a lucky one.
    expected = [
        f"{certificate.about(bound)} with {n:,} {what}"
        for n, what in ((n_labeled, unit_of_models), (4 * n_labeled, ""))
        if np.isfinite(bound := line.get(n, np.inf))
    ]
    title = (
        f"Bound to expect: {', '.join(expected).strip()}"
        if expected
        else "No finite bound"
    )
    what = f"Averages over runs like this one, which had {name_rows(results)}"
    tidy_axes(ax, title=title, what=what)
    return ax


def _mark_run(
    ax: "Axes", choice: Choice, n_labeled: int, parts: Mapping[str, str]
) -> None:
    """Draw the bounds of the run as a square and a diamond, its estimate as a dot.

    `parts` are the parts of the labels on which the models were trained.
    """
    from matplotlib.transforms import ScaledTranslation

    finite_bounds = {
        name: bound
        for name, bound in choice.certificates.items()
        if np.isfinite(bound.number)
    }
    # Squares of two models stand side by side: their bounds may be nearly equal.
    sides = (-SIDE, SIDE) if len(finite_bounds) > 1 else (0.0,)
    for (name, bound), points in zip(finite_bounds.items(), sides, strict=False):
        text = WITH_LABELS if bound.n_queried else BOUND
        if len(finite_bounds) > 1 and not bound.n_queried:
            text += f" (trained on {parts[name]})"
        text += "" if bound.certified else f", {UNPROVED}"
        ax.plot(
            n_labeled,
            bound.number,
            MARKERS[name],
            color=COLORS[name],
            ms=SQUARE,
            label=text,
            fillstyle="full" if bound.certified else "none",
            transform=ax.transData
            + ScaledTranslation(points / 72, 0.0, ax.figure.dpi_scale_trans),
            clip_on=False,
        )
    estimate = choice.certificate.estimate
    # The line is not clipped at the edge, where it is 0, and is in front of a square.
    ax.plot(n_labeled, estimate, "o", color=INK, ms=5, label=ESTIMATE, clip_on=False)
    ax.axvline(n_labeled, color=MIDDLE, alpha=0.5, linewidth=0.6)


def _expect_errors(
    results: xr.Dataset, choice: Choice, numbers: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return the expected bounds of the error by the names of `COLORS`."""
    certificate, counts = choice.certificate, read_counts(results)
    n_pool = max(0, int(counts[names.N_UNLABELED]))
    error, disagreement = clip_rate(certificate.estimate), None
    n_folds = int(results.sizes.get(names.FOLD, 0))
    if names.OUTER_DISAGREEMENTS in results and n_pool:
        differ = results[names.OUTER_DISAGREEMENTS].values
        rate = float(np.nanmean(differ)) / n_pool
        disagreement = clip_rate(five_fold_disagreement(rate, n_folds))
    n_queries = 0 if choice.queries is None else choice.queries.n_planned
    certificate_error, holdout = (
        xr.concat(
            [
                plan_bound(
                    n,
                    n_pool,
                    n_candidates=int(counts[names.N_CANDIDATES]),
                    error=error,
                    cv=n_folds,
                    disagreement=disagreement,
                    delta=delta,
                    n_queries=n_queries,
                )[names.BOUND].isel({names.N_FOLDS: 0})
                for n in numbers
            ],
            "n_labels",
        ).clip(max=1.0)
        for delta in (main_delta(choice), certificate.delta)
    )
    return {
        name: (holdout if name == PLAIN_HOLDOUT else certificate_error)
        .sel({names.CERTIFICATE: name})
        .values
        for name in COLORS
    }


def _expect_tolerances(
    results: xr.Dataset, choice: Choice, numbers: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return the expected tolerances by the names of `COLORS`."""
    certificate, measured = choice.certificate, MeasuredDistances.of_cube(results)
    loss = ErrorQuantile(certificate.fraction)
    division = DeltaDivision.of_plan(
        main_delta(choice), has_pool=ALL_ROWS in choice.certificates
    )
    return {
        ONE_FOLD: np.array(
            [expect_of_one_fold(measured, loss, division, n) for n in numbers]
        ),
        ALL_ROWS: np.array(
            [expect_of_all_rows(measured, loss, division, n) for n in numbers]
        ),
        PLAIN_HOLDOUT: np.array(
            [expect_of_holdout(measured, loss, certificate.delta, n) for n in numbers]
        ),
    }


def choice_by_labels(results: xr.Dataset) -> Choice:
    """Return the choice of a search whose bounds can be drawn by labels.

    Raises ValueError if it is no nested search, or bounds another loss than the error
    or a tolerance.
    """
    choice = select(results)
    certificate = choice.certificate
    if not is_nested(certificate):
        raise ValueError(
            "`results` must be those of a nested search: certificate='nested', the "
            "default. plan_bound has the bounds to expect of others."
        )
    is_quantile = isinstance(loss_of_text(certificate.loss), ErrorQuantile)
    if certificate.loss != "error" and not is_quantile:
        raise ValueError(
            f"`results` must bound the error, or how far off predictions are, got "
            f"{certificate.title!r}: what more labels would give for it depends on how "
            f"many there will be of each class; plan_bound(class_share=0.1) has it for "
            f"the recall of a class."
        )
    return choice
