"""Bar charts: bounds of both models and of a 20% hold-out set, terms, and times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.utils import format_time
from numpy.typing import ArrayLike

from dsel import names
from dsel.arrays import Floats
from dsel.checks import check_integer, check_kind
from dsel.losses.texts import loss_of_text
from dsel.plots.spread import MOST_CANDIDATES_DRAWN
from dsel.plots.style import (
    BLUE,
    GREEN,
    IN_UNITS,
    INK,
    MIDDLE,
    NOT_RUN,
    PALE,
    TO_COMPARE,
    UNITS,
    candidate_labels,
    count_shown,
    explain_bars,
    label_rows,
    mark_unproved_bars,
    name_rows,
    new_axes,
    percent_tick,
    short_verdict,
    tidy_axes,
)
from dsel.results import Choice
from dsel.results.bounded_values import BoundedValues
from dsel.results.candidate_tables import all_params
from dsel.results.certificate import Certificate
from dsel.results.choice_parts import BestConstant
from dsel.results.choice_texts import holdout_text
from dsel.results.class_report import CertifiedReport
from dsel.results.comparison import ModelComparison
from dsel.results.cube import candidate_dims, check_cube, read_counts
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.results.value_report import ReportByValue
from dsel.rounded_texts import (
    NONE,
    about_percent,
    confidence,
    count_of,
    floor_percent,
    in_percent,
    points_at_least,
    points_at_most,
)
from dsel.search.running.select import Evaluation, evaluate, method_of, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 24
"""Largest number of letters of a class name in a figure."""
FAR = 2.0
"""Loss of the best constant prediction, relative to the largest bound, above which its
bar is cut at the edge, since the bounds would look alike on its scale."""
FROM_POOL = "from pool rows on which models differ"
"""Label of the second part of bars."""
PHASES = {
    names.FIT_SECONDS: "fits on folds",
    names.FULL_FIT_SECONDS: "fits on all labeled rows",
    names.SCORE_SECONDS: "passes over the pool",
}


def plot_certificates(
    results: xr.Dataset | PrefitCertificate, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the bound of each model, and what it can be compared with.

    That is the bound expected of a 20% hold-out set, and the error of the best constant
    prediction on the labeled rows, whose bar is cut where it is far larger. The dot at
    the deployed model is the cross-validated error, or that on the held-out rows. A
    number that is no guarantee has a hatched bar.

    Parameters
    ----------
    results
        Cube of a search, or the certificate of a fitted model.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `results` is no Dataset.
    ValueError
        If it is not the cube of a search.

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
    'Error, %'
    """
    choice = results if isinstance(results, PrefitCertificate) else select(results)
    models, main = list(choice.certificates.values()), choice.certificate
    rows: list[tuple[str, Any, Any, float, str]] = []
    estimate, measured = main.estimate, ""
    if main.is_estimate or not np.isfinite(estimate):
        estimate = np.nan
    else:
        how = "this model" if main.is_holdout else "cross-validated"
        measured = f"{how}: about {main.about(estimate)}"
    for certificate in models:
        text = _name_bound(certificate)
        # A bound without terms comes from labeled rows alone.
        first = np.fmin(
            certificate.number,
            certificate.label_term if certificate.certified else np.inf,
        )
        if certificate.certified and certificate.has_large_pool_term:
            first = 0.0  # no part of labeled rows explains this bar
        if not np.isfinite(certificate.number):  # such a tolerance has no bar
            first = np.nan
        numbers = np.array([first, certificate.number])
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        rows.append((text, *numbers, estimate if certificate is main else np.nan, BLUE))
    fifth = choice.expected_holdout if isinstance(choice, Choice) else np.nan
    if np.isfinite(fifth) and isinstance(choice, Choice):
        text = f"20% hold-out set: about {holdout_text(choice)} on average"
        rows.append((text, fifth, fifth, np.nan, MIDDLE))
    best = choice.best_constant if isinstance(choice, Choice) else BestConstant()
    constant, loss = best
    end = FAR * max([row[2] for row in rows if np.isfinite(row[2])], default=0.0)
    is_far = bool(constant and 0.0 < end < loss)
    if constant:
        text = f"always predicting {_short_class_name(constant)}: {best.amount(main)}"
        text += ", beyond this axis" if is_far else ""
        rows.append((text, loss, loss, np.nan, MIDDLE))
    texts, *bars, colors = zip(*rows, strict=True)
    firsts, ends, marks = np.array(bars)
    ax = new_axes(ax, height=1.9 + 0.6 * len(texts))
    has_parts = bool((ends > firsts).any())
    label = f"bound{', from labeled rows' if has_parts else ''}"
    is_bound = any(certificate.certified for certificate in models)
    patches = _draw_bars(
        ax,
        texts,
        (firsts, ends, marks),
        colors,
        label=label if is_bound else "",
        measured=measured,
    )
    for patch, certificate in zip(patches, models, strict=False):
        mark_unproved_bars(ax, [patch], certified=certificate.certified)
    for patch in patches[len(models) :]:  # no bounds, but what these compare with
        patch.set(**NOT_RUN)
        explain_bars(ax, TO_COMPARE, NOT_RUN)
    if is_far:
        ax.set_xlim(0, end)
        _open_bar(patches[-1], end)
    unit = ", %" if main.is_rate else ""
    if main.is_tolerance:
        unit = f" at most{UNITS}"
    # A report of the same run has the other direction.
    complement = getattr(loss_of_text(main.loss), "complement", "")
    of_report = f" (100% minus {complement})" if complement else ""
    ax.set_xlabel(f"{main.title}{of_report}{unit}")
    if not main.is_rate:
        ax.xaxis.set_major_formatter(IN_UNITS)
    if isinstance(results, PrefitCertificate):
        rows_behind = results.counted_rows
    else:
        rows_behind = name_rows(results)
    kind = "Bounds for new rows" if main.certified else "Numbers"
    tidy_axes(ax, title=short_verdict(main), what=f"{kind}, from {rows_behind}")
    return ax


def _open_bar(bar: Any, end: float) -> None:
    """Let a bar end before the edge of the axes, with an arrow to where it goes on."""
    from matplotlib.patches import FancyArrowPatch

    bar.set_width(0.94 * end)
    middle = bar.get_y() + bar.get_height() / 2
    arrow = FancyArrowPatch(
        (bar.get_width(), middle), (end, middle), arrowstyle="-|>", mutation_scale=10,
        color=MIDDLE, shrinkA=0, shrinkB=0, linewidth=NOT_RUN["linewidth"],
    )  # fmt: skip
    bar.axes.add_patch(arrow)


def _name_bound(certificate: Certificate) -> str:
    """Return the text above the bar of a model."""
    text = certificate.model_text
    if not np.isfinite(certificate.number):
        return f"{text}: no finite bound"
    if certificate.certified and certificate.says_nothing:
        return f"{text}: no bound below {certificate.most}"
    words = "at most" if certificate.certified else "about"
    return f"{text}: {words} {certificate.amount(certificate.number)}"


def estimate_name(certificate: Certificate) -> str:
    """Return the name of the estimate that is drawn with a bound."""
    what = "error" if certificate.loss == "error" else "estimate"
    # A hold-out set tests one model, and cross-validation the models of all folds.
    if certificate.is_holdout:
        return f"{what} on rows that the model had not seen"
    return f"cross-validated {what}"


def plot_comparison(comparison: ModelComparison, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the limits of the error of the new model minus that of the old one.

    They have the signs of ``lower`` and ``upper``: negative where the new model is
    better.

    Parameters
    ----------
    comparison
        Result of `dsel.compare_models`, or of its `certify_with_labels`. With labels
        the limits from the pool alone, which hold at the same time, are drawn below.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `comparison` is something else.

    Examples
    --------
    >>> from dsel.results import ModelComparison
    >>> ax = plot_comparison(ModelComparison(0.05, 10_000, n_differ=200))
    >>> print(ax.get_xlabel())
    error of new minus old, percentage points
    ← new better · old better →
    """
    check_kind(comparison, ModelComparison, "comparison", "`dsel.compare_models`")
    rate = comparison.disagreement
    rows = [("from the pool alone", -rate, rate)]
    if comparison.labels is not None:
        text = f"with {count_of(len(comparison.rows), 'label')}"
        rows.insert(0, (text, comparison.lower, comparison.upper))
    ax = new_axes(ax, height=1.9 + 0.4 * len(rows))
    texts: list[str] = []
    for place, (text, lower, upper) in zip(range(len(rows))[::-1], rows, strict=True):
        label = "" if texts else "possible differences"
        ax.barh(place, upper - lower, height=0.4, left=lower, color=BLUE, label=label)
        texts.append(f"{text}: {points_at_least(lower)} to {points_at_most(upper)}")
    places = np.arange(len(rows))  # a line across the axes would cross the texts
    starts, ends = places - 0.3, places + 0.22
    ax.vlines(0 * places, starts, ends, color=INK, lw=1.2, label="no difference")
    label_rows(ax, texts)
    ax.xaxis.set_major_formatter(percent_tick)
    ax.set_xlabel(
        "error of new minus old, percentage points\n← new better · old better →"
    )
    rows_behind = count_of(comparison.n_unlabeled, "pool row")
    if comparison.labels is not None:
        rows_behind += f" and {count_of(len(comparison.rows), 'label')} of them"
    what = f"Error of the new model minus that of the old one, from {rows_behind}"
    tidy_axes(ax, title=comparison.headline(), what=what)
    return ax


def plot_certified_report(
    report: CertifiedReport, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw recall and precision of every class and the error, with their limits.

    A bar is a limit of this model, a dot its value on rows that it had not seen. No row
    tests the model trained on all labels: its dots are those of the models of all
    folds, pooled.

    Parameters
    ----------
    report
        Result of `SemiSupervisedSearchCV.certified_report`.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `report` is something else.

    Examples
    --------
    >>> from dsel.results import BoundedValues, CertifiedReport
    >>> ax = plot_certified_report(CertifiedReport(
    ...     0.05, "model trained on all labels", ("fraud", "ok"), (80, 1920),
    ...     BoundedValues((0.712, 0.97), pooled=(0.86, 0.99)),
    ...     BoundedValues((0.749, 0.96), pooled=(0.9, 0.98)),
    ...     BoundedValues((0.031,), pooled=(0.012,))))
    >>> ax.get_xlabel()
    'recall, precision and error, %'
    """
    check_kind(report, CertifiedReport, "report", "`Outcome.certified_report`")
    texts = [
        f"{_short_class_name(name)}: "
        f"recall at least {floor_percent(recall)}, "
        f"precision at least {floor_percent(precision)}"
        for name, recall, precision in zip(
            map(str, report.classes),
            report.recall_at_least,
            report.precision_at_least,
            strict=True,
        )
    ]
    texts.append(f"error at most {in_percent(report.error_at_most)}")
    n = len(report.classes)
    ax = new_axes(ax, height=1.7 + 0.5 * len(texts))
    places = np.arange(n, -1, -1)
    # In gray both colors look alike, so that labels have the places, too.
    for above, color, label, numbers in (
        (0.12, BLUE, "recall at least (upper bar)", report.recall),
        (-0.12, GREEN, "precision at least (lower bar)", report.precision),
    ):
        heights = places[:n] + above
        bars = ax.barh(heights, numbers.limits, height=0.2, color=color, label=label)
        mark_unproved_bars(ax, bars, certified=not report.reasons)
    label = "error at most"
    bars = ax.barh(0.12, report.error_at_most, height=0.2, color=MIDDLE, label=label)
    mark_unproved_bars(ax, bars, certified=not report.reasons)
    measured = [report.recall, report.precision, report.error]
    dots = np.concatenate([numbers.estimates for numbers in measured])
    heights = np.array([*(places[:n] + 0.12), *(places[:n] - 0.12), 0.12])
    _draw_measured_values(ax, dots, heights, report.error.whose)
    _above_bars(ax, texts)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("recall, precision and error, %")
    verdict = "No guarantee"
    if not report.reasons:
        verdict = f"All limits at once ({confidence(report.delta)}% confidence)"
    n_rows = count_of(sum(report.rows), "labeled row")  # a report may lack classes
    what = f"Limits for new rows; {n_rows} of these classes"
    tidy_axes(ax, title=f"{verdict}, {report.model_text}", what=what)
    return ax


def plot_report_by_value(report: ReportByValue, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the error for each value of a column, with its limit.

    A bar is a limit of this model, a dot its value on rows that it had not seen. No row
    tests the model trained on all labels: its dots are those of the models of all
    folds, pooled.

    Parameters
    ----------
    report
        Result of `SemiSupervisedSearchCV.report_by_value`.
    ax
        As for `plot_surface`.

    Raises
    ------
    TypeError
        If `report` is something else.

    Examples
    --------
    >>> from dsel.results import BoundedValues, ReportByValue
    >>> ax = plot_report_by_value(ReportByValue(
    ...     0.05, "model trained on all labels", "site", ("A", "B"), (812, 31),
    ...     BoundedValues((0.0631, 1.0), pooled=(0.041, 0.1))))
    >>> ax.get_xlabel()
    'Error, %'
    """
    check_kind(report, ReportByValue, "report", "`Outcome.report_by_value`")
    numbers, n_rows = report.numbers, report.test_rows or report.rows
    values = numbers.estimates
    # Only cells with estimates, and their rows, are drawn.
    shown_numbers = BoundedValues(numbers.limits, values)
    shown = replace(report, numbers=shown_numbers, test_rows=n_rows)
    texts = [
        f"{_short_class_name(name)}: "
        f"{'no limit' if limit in (NONE, '100.0%') else f'at most {limit}'}, "
        f"about {unseen_value} on {rows} labeled rows"
        for name, unseen_value, limit, rows in shown.table()[1:]
    ]
    ax = new_axes(ax, height=1.5 + 0.45 * len(texts))
    places = np.arange(len(texts))[::-1]
    limits = np.where(np.isfinite(report.limits), report.limits, np.nan)
    bars = ax.barh(places, limits, height=0.4, color=BLUE, label="at most")
    mark_unproved_bars(ax, bars, certified=not report.reasons)
    _draw_measured_values(ax, values, places, numbers.whose)
    _above_bars(ax, texts)
    ends = [x for x in (*values, *report.limits) if np.isfinite(x)]
    ax.set_xlim(0, 1.05 * max(ends, default=1.0) or 1.0)
    unit = f"{report.quantity.capitalize()}, %"
    if report.is_tolerance:
        unit = f"Off by{UNITS}"
        ax.xaxis.set_major_formatter(IN_UNITS)
    ax.set_xlabel(unit)
    title = f"{report.title} ({confidence(report.delta)}% confidence)"
    if report.reasons:
        title = f"No guarantee: {report.title}"
    n_labeled = count_of(sum(report.rows), "labeled row")
    what = f"Limits for new rows with each value, from {n_labeled}"
    tidy_axes(ax, title=f"{title}, {report.model_text}", what=what)
    return ax


def plot_terms(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    n_best: int = 8,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the parts of the smallest bounds of all candidates, the best on top.

    Parameters
    ----------
    results
        Cube of a search by ``cv_bound`` or ``best_fold``.
    criterion
        A criterion that has two terms; by default the search's certificate.
    n_best
        Number of candidates to draw.
    ax
        As for `plot_surface`.

    Raises
    ------
    ValueError
        If the criterion does not have two terms.

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
    'bound on the error (cv_bound), % (1 of 2 candidates)'
    """
    check_integer(n_best, "n_best", at_least=1)
    evaluation, best = smallest_bounds(results, criterion)
    best = best[:n_best]
    ranking, terms = evaluation.criterion, evaluation.terms
    first, second = terms.label_term, terms.disagreement_term
    counts = read_counts(results)
    errors = counts[names.FOLD_ERRORS][best].reshape(len(best), -1).sum(axis=1)
    errors = errors / counts[names.FOLD_ROWS].sum()
    ax = new_axes(ax, height=1.7 + 0.5 * len(best))
    labels, sums = candidate_labels(all_params(results)), (first + second)[best]
    words, amount = "about", about_percent
    if ranking.is_guarantee:
        words, amount = "at most", in_percent
    texts = [
        f"{labels[n]}: {words} {amount(number)}, "
        f"{about_percent(error)} on held-out folds"
        for n, number, error in zip(best, sums, errors, strict=True)
    ]
    bars = first[best], sums, errors
    patches = _draw_bars(
        ax, texts, bars, BLUE, label="from labeled rows", measured="cross-validated"
    )
    is_bound = ranking.is_guarantee and select(results).certificate.certified
    mark_unproved_bars(ax, patches, certified=is_bound)
    number = f"error ({ranking.title})"
    if ranking.is_guarantee:
        number = f"bound on the error ({ranking.title})"
    ax.set_xlabel(f"{number}, %{count_shown(len(best), results)}")
    kind = "Bounds" if is_bound else "Estimates"
    tidy_axes(
        ax,
        title=f"{labels[best[0]]} has the smallest {number}: {amount(sums[0])}",
        what=f"{kind} of candidates for new rows, from {name_rows(results)}",
    )
    return ax


def smallest_bounds(
    results: xr.Dataset, criterion: str | None = None
) -> tuple[Evaluation, list[int]]:
    """Return a criterion with two terms, and the candidates that have them in order.

    Raises ValueError if there are none.
    """
    check_cube(results)
    declared = method_of(results)
    if criterion is None and declared is not None and declared.needs_pool:
        criterion = declared.name  # it has a term from the pool, too
    evaluation = evaluate(results, criterion)
    terms = evaluation.terms
    sums = terms.label_term + terms.disagreement_term
    order = np.argsort(terms.value, kind="stable")
    best = [int(n) for n in order if np.isfinite(sums[n])]
    if not best:
        raise ValueError(
            f"`criterion` {evaluation.criterion.name!r} has no two terms to show for "
            f"every candidate, as 'cv_bound' and 'best_fold' have; "
            f"plot.certificates() draws the bounds of this search, plot.folds() the "
            f"errors of candidates."
        )
    return evaluation, best


def plot_timing(results: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the time that a search spent on each kind of task, or on each candidate.

    Arguments are those of `plot_surface`; seconds are summed over tasks. For a nested
    search pass its `pair_results` as `results`: they have the seconds of fits alone,
    and the slowest candidates are drawn.
    """
    there = names_of_timed_phases(results)
    seconds = np.array([float(results[name].sum()) for name in there])
    texts, total, n_shown = [PHASES[name] for name in there], seconds.sum(), ""
    title, kind = f"All tasks took {format_time(total)}", "kind of task"
    if len(there) == 1:  # a single bar would repeat the title
        title, kind = f"{texts[0].capitalize()} took {format_time(total)}", "candidate"
        fits = results[there[0]]
        split_dims = {*names.RESERVED} & {*fits.dims} - {names.CANDIDATE}
        cube = results.assign({names.STATUS: fits.sum(split_dims)})
        by_candidate = (
            cube[names.STATUS].transpose(*candidate_dims(cube)).values.ravel()
        )
        slowest = np.argsort(-by_candidate, kind="stable")[:MOST_CANDIDATES_DRAWN]
        labels, seconds = candidate_labels(all_params(cube)), by_candidate[slowest]
        texts = [labels[n] for n in slowest]
        n_shown = count_shown(len(slowest), cube)
    texts = [
        f"{text}: {format_time(task_seconds)} ({task_seconds / (total or 1):.0%})"
        for text, task_seconds in zip(texts, seconds, strict=True)
    ]
    ax = new_axes(ax, height=1.7 + 0.5 * len(texts))
    _draw_bars(ax, texts, (seconds, seconds, np.nan * seconds), BLUE, label="")
    ax.xaxis.set_major_formatter(IN_UNITS)
    ax.set_xlabel(f"seconds, summed over tasks{n_shown}")
    tidy_axes(ax, title=title, what=f"Where the time went, by {kind}")
    return ax


def names_of_timed_phases(results: xr.Dataset) -> list[str]:
    """Return the names of the variables with seconds; ValueError without any."""
    there = [name for name in PHASES if name in results]
    # Counts of inner searches have no status.
    if not there and (names.STATUS not in results or results[names.STATUS].size == 1):
        raise ValueError(
            "`results` have no seconds to draw: fits of a single candidate are not "
            "timed; plot.folds() and plot.certificates() show its errors and bounds."
        )
    if not there:
        raise ValueError(
            "`results` have no seconds to draw; those of a nested search are in the "
            "`pair_results` of its outcome (`pair_results_` of an estimator): write "
            "outcome.plot.timing(), or outcome.pair_results.dsel.plot.timing()."
        )
    return there


def _draw_bars(
    ax: "Axes",
    texts: Sequence[str],
    bars: Sequence[Floats],
    color: Any,
    *,
    label: str,
    measured: str = "",
) -> Sequence[Any]:
    """Draw bars of two parts with dots, and the text of each above it.

    Texts above the bars, and not next to the axis, fit on narrow pages. The first parts
    are returned.
    """
    firsts, ends, dots = bars
    places = np.arange(len(texts))[::-1]
    patches: Any = ax.barh(places, firsts, height=0.4, color=color, label=label)
    if (ends > firsts).any():
        pool_parts, label = ends - firsts, FROM_POOL
        ax.barh(places, pool_parts, height=0.4, left=firsts, color=PALE, label=label)
    _draw_measured_values(ax, dots, places, measured)
    _above_bars(ax, texts)
    # The axis reaches every dot: one outside of the axes would leave no room for them.
    ax.set_xlim(0, 1.05 * np.nanmax([*ends, *dots], initial=0.01))
    return list(patches)


def _draw_measured_values(
    ax: "Axes", values: ArrayLike, heights: ArrayLike, source: str
) -> None:
    """Draw a dot for each estimate, a value that was measured on labeled rows."""
    if np.isfinite(values).any():
        label = f"estimate ({source})"
        ax.plot(values, heights, "o", color=INK, ms=6, label=label, clip_on=False)


def _above_bars(ax: "Axes", texts: Sequence[str]) -> None:
    """Write a text above each bar, the first at the top, and percentages below."""
    label_rows(ax, texts)
    ax.xaxis.set_major_formatter(percent_tick)


def _short_class_name(name: str) -> str:
    """Return the name of a class, shortened for a figure."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
