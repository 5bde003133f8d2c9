"""Caveats of a search: from its plan and its pool, and from its counts.

A choice at the end of a search gets them from its counts; one that is made later, by
`select`, from the cube. Others are about a chosen model: of its folds some may have
failed, or it found no row of a class, of which its bound says nothing if it is rare.
"""

import json
import re
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import floor
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Integers
from dsel.bounds import pair_error_bound
from dsel.checks import listing, show
from dsel.data.frames import Frame, native, take_rows
from dsel.data.labeled import LabeledRows
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.families.answers import predict_codes
from dsel.families.generic import collect_warnings
from dsel.losses.base import FoldCounts, Statistic
from dsel.losses.by_class import ClassRate
from dsel.losses.declared import DeclaredLosses, JointBounds
from dsel.losses.error_rate import ERROR_RATE
from dsel.option_values import ALL_ROWS
from dsel.results import BoundedModel, Certificate
from dsel.results.caveats import (
    Caveat,
    Effect,
    collect_caveats,
    make_caveats,
    texts_of,
)
from dsel.results.certificate import attribute, params_text, short_params_text
from dsel.results.cube import read_counts
from dsel.results.fit_messages import FitProblem, problems_of_cube
from dsel.results.records import from_record
from dsel.results.tables import all_params
from dsel.rounded_texts import about_percent, confidence, count_of, shorten_text
from dsel.search.engine.counts import SearchCounts
from dsel.search.engine.jobs import JobContext
from dsel.search.running.planned_search import PlannedSearch
from dsel.typing import AnyArray, Model, Options

MOST_CANDIDATES_NAMED: Final = 3
"""Most candidates that a note names."""
MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""
CAVEAT_DELTA: Final = 0.05
"""Probability that the limit in a caveat about disagreements is wrong; its text says
95% confidence, whatever the delta of the search is."""
MOST_PREDICTED: Final = 1_000
"""Labeled rows that are predicted to find out which classes a model misses."""
FEWEST_UNSEEN: Final = 5
"""Rows of a class that a model had not seen, from which it is said to miss all; with
fewer, a model that finds half of the class may miss all by chance."""
MOST_CLASSES_NAMED: Final = 3
"""Most classes that a warning names."""


def run_caveats(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of a cube that come from the plan and the pool."""

    def read(text: str) -> tuple[Caveat, ...]:
        return tuple(from_record(Caveat, record) for record in json.loads(text))

    def read_texts(text: str) -> tuple[Caveat, ...]:
        return tuple(make_caveats(Effect.VOIDS, map(str, json.loads(text))))

    return collect_caveats(
        attribute(cube, names.CAVEATS, read, ()),
        attribute(cube, "objections", read_texts, ()),  # cubes of 0.2 have texts
    )


def caveats_of(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of any choice from a cube."""
    counts, problems = read_counts(cube), problems_of_cube(cube)
    found = caveats_of_counts(counts, problems, all_params(cube))
    return caveats_of_choice(run_caveats(cube), found)


def caveats_of_choice(*groups: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return the caveats of a choice, without those that void its numbers."""
    caveats = collect_caveats(*groups)
    return tuple(c for c in caveats if c.effect is not Effect.VOIDS)


def caveats_of_counts(
    counts: Mapping[str, NDArray[Any]],
    problems: NDArray[np.object_],
    candidates: Sequence[Options],
) -> list[Caveat]:
    """Return the caveats that come from the counts of a search of these candidates."""
    caveats = caveats_of_fits(counts[names.STATUS], problems, candidates)
    errors, differ = (
        counts.get(name) for name in (names.OUTER_ERRORS, names.OUTER_DISAGREEMENTS)
    )
    if errors is not None and differ is not None:
        duplicates = counts.get(names.OUTER_DUPLICATE_DISAGREEMENTS, 0)
        fresh, n_pool_rows = differ - duplicates, int(counts[names.N_UNLABELED])
        caveats += caveats_of_disagreements(
            errors, counts[names.FOLD_ROWS], fresh, n_pool_rows
        )
    return caveats


def caveats_of_fits(
    status: AnyArray, problems: NDArray[np.object_], candidates: Sequence[Options]
) -> list[Caveat]:
    """Return a caveat for each kind of problem, which names the first candidates."""
    caveats: list[Caveat] = []
    has_failed = status == names.STATUS_FAILED
    has_raised = (problems == FitProblem.UNPREDICTED) & ~has_failed
    has_stopped = problems == FitProblem.STOPPED
    unscaled = "stopped before they converged; scale the features, or raise `max_iter`"
    for has_problem, text in (
        (has_failed, "{} failed{which}"),
        (
            has_raised,
            "{} raised in `predict`{which}, so rows count as errors: see `message`",
        ),
        (has_stopped, "fits of {} " + unscaled),
    ):
        if n := int(has_problem.sum()):
            named, which = np.array(candidates, object)[has_problem.ravel()], ""
            if len(candidates) > 1:
                texts = [f"({short_params_text(params)})" for params in named]
                which = f" {shorten_text(listing(texts, MOST_CANDIDATES_NAMED), 200)}"
            text = text.format(count_of(n, "candidate"), which=which)
            caveats.append(Caveat(Effect.INFO, text))
    return caveats


def caveats_of_disagreements(
    errors: Integers, fold_rows: Integers, differ: Integers, n_pool_rows: int
) -> list[Caveat]:
    """Return a caveat if the models differ more often than their errors explain.

    `errors` are those of the models without a fold, (n_folds,); `differ` the pool rows
    on which they differ from that of all rows, without duplicates of labeled rows.
    """
    # Two models that differ on a row cannot both be right there: half of the lower
    # limit of their disagreement is one of the mean of their errors, and needs no
    # label. It is no limit for either of them alone. Rows that equal labeled ones may
    # be records that one of both was trained on.
    delta = CAVEAT_DELTA / len(differ)
    at_least = float(pair_error_bound(differ, n_pool_rows, delta=delta).mean())
    error_rate = float(np.mean(errors / fold_rows))
    if round(at_least, 3) <= round(error_rate, 3):  # compared as they are printed
        return []
    text = (
        f"the models trained without a fold err on {100 * error_rate:.1f}% of the "
        f"labeled rows that they have not seen, but differ so often from the model "
        f"trained on all labels that, of pool rows, the mean of their error and its "
        f"error is at least {floor(1000 * at_least) / 10:.1f}% (95% confidence): its "
        f"error is far larger, or the labeled rows are few, unlike the pool, or not "
        f"independent"
    )
    return [Caveat(Effect.WEAKENS, text)]


def check_failures(
    plan: PlannedSearch, counts: SearchCounts, unpredicting: NDArray[np.bool_]
) -> None:
    """Warn of failed candidates; raise AllFitsFailedError if none is left."""
    has_failed = counts.status == names.STATUS_FAILED
    failed = np.flatnonzero(has_failed)
    if unpredicting.any() and (has_failed | unpredicting).all():
        number = int(np.argmax(unpredicting))
        raise AllFitsFailedError(
            f"no candidate can predict; `predict` of candidate {number} "
            f"({params_text(plan.axes.candidates[number])}) raised on all rows: "
            f"{name_column(counts.message_of(number), plan.labeled)}"
        )
    if not len(failed):
        return
    number = int(failed[0])
    message = name_column(counts.message_of(number), plan.labeled).rstrip(".")
    first = f"candidate {number} ({plan.axes.candidates[number]}): {message}"
    if len(failed) == plan.n_candidates:
        several = f"all {len(failed)} candidates failed; the first was {first}"
        alone = f"the only candidate failed: {message}"
        raise AllFitsFailedError(f"{alone if len(failed) == 1 else several}.")
    # The searches that do not read the failed fit may still choose its candidate.
    where = " by all folds" * plan.scheme.is_nested
    warn(
        f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be chosen"
        f"{where}; the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )


def name_column(text: str, labeled: LabeledRows) -> str:
    """Return the message of a fit with the column or class that it is about, if known.

    Learners see arrays and class codes, so what they raise has the value alone.
    """
    if "Invalid classes inferred" in text and len(labeled.classes):  # by XGBoost
        n_rows = np.bincount(labeled.y).tolist()
        label = show(labeled.classes.tolist()[n_rows.index(min(n_rows))])
        return (
            f"{text.rstrip('.')} (class {label} has only {count_of(min(n_rows), 'row')}"
            f", and this learner fits no rows without it; label more rows of it, or "
            f"leave out its rows)"
        )
    X = labeled.X
    if not isinstance(X, Frame):
        return text
    frame, name = X.given, None
    word = re.search(r"could not convert string to float: ('[^']*'|\"[^\"]*\")", text)
    if word:
        with suppress(SyntaxError, ValueError):
            value = literal_eval(word[1])
            has_value = ((n, (frame[n] == value).any()) for n in frame.columns)
            name = next((n for n, is_there in has_value if is_there), None)
    elif re.search(r"\b(NaN|infinity|missing values)\b", text):
        gaps = frame.columns[np.asarray(frame.isna().any())]
        name = next(iter(gaps), None)
    return text if name is None else f"{text.rstrip('.')} (column {name!r})"


def caveats_of_failed_folds(
    context: JobContext, failed: Mapping[int, str], bounds: JointBounds, unit: str
) -> list[Caveat]:
    """Return a warning if fits without a fold, or predictions of it, have failed.

    `failed` has the cause by fold; `unit` is what is counted, ``row`` or ``group``.
    """
    if not failed:
        return []
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    rows = count_of(int(context.scheme.fold_rows[list(failed)].sum()), unit)
    causes = [f"fold {fold}: {why}" for fold, why in failed.items()]
    is_too_large = "is"
    if np.isfinite(bounds.expected_holdout) and not context.scheme.is_holdout:
        is_too_large = "and the comparison with a hold-out set are"
    is_error = context.losses.main == ERROR_RATE
    end = f"the estimate {is_too_large} too large"
    if np.isinf(bounds.main.estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {context.scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{'errors' if is_error else 'the largest loss'}, so {end}"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_failed_all_rows(
    wanted: str, failure: str, one_fold: Certificate
) -> list[Caveat]:
    """Return the caveat of a fit on all labels that failed, if it did.

    `wanted` is the name of the model that was to be deployed.
    """
    if not failure:
        return []
    text = f"the fit on all labels failed ({failure}), so it has no model and no bound"
    if wanted != ALL_ROWS:
        return [Caveat(Effect.INFO, text)]
    end = f"; the {one_fold.model_text} is deployed in its place"
    return [Caveat(Effect.WARNS, text + end)]


def notes_of_choice(
    losses: DeclaredLosses,
    delta: float,
    bounded_models: Mapping[str, BoundedModel],
    missed: Mapping[str, Sequence[Caveat]],
    deploy: str,
) -> list[Caveat]:
    """Return notes about what another choice of options would give.

    `delta` is that of the plan; `missed` has caveats about classes that each model
    misses, by its name; `deploy` is the name of the deployed model.
    """
    notes = []
    never = {name for name, some in missed.items() if texts_of(some, Effect.WARNS)}
    if deploy in never and never != bounded_models.keys():
        [other] = bounded_models.keys() - never
        model = bounded_models[other].certificate.model_text
        notes.append(
            f"the {model} finds some rows of each class: deploy={other!r} deploys it"
        )
    main_delta = losses.divide_delta(delta).main
    if main_delta < delta:
        deployed = bounded_models[deploy]
        reports = {
            "certified_report()": deployed.report or deployed.tolerances,
            "report_by_value()": deployed.report_by_value,
        }
        shown = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"the bounds and {shown} hold jointly with "
            f"{confidence(delta)}% confidence, so the bounds alone have "
            f"{confidence(main_delta)}%: without a report they are smaller"
        )
    return make_caveats(Effect.INFO, notes)


def sample_each_class(y: Integers) -> Integers:
    """Return row numbers, at most about `MOST_PREDICTED`, with rows of each class.

    They are spread evenly, since rows may be sorted by date.
    """
    classes = np.unique(y)
    most = max(1, MOST_PREDICTED // len(classes))
    parts = []
    for code in classes:
        rows = np.flatnonzero(y == code)
        n = min(most, len(rows))
        parts.append(rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)])
    return np.sort(np.concatenate(parts))


def describe_missed_classes(
    model: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    unseen: NDArray[np.bool_],
) -> list[Caveat]:
    """Return warnings if a model predicts one class only, or found no row of another.

    Parameters
    ----------
    model
        Description of the model.
    y, predicted
        Class codes of some labeled rows, and those that the model predicts.
    classes
        Labels of the classes.
    unseen
        Whether the model was trained without the row.
    """
    labels = classes.tolist()
    is_right = predicted == y
    some = np.unique(predicted)
    if len(some) == 1 and some[0] >= 0 and len(np.unique(y)) > 1:
        text = (
            f"the {model} predicts {labels[some[0]]!r} for all of {len(y):,} labeled "
        )
        return [Caveat(Effect.WARNS, f"{text}rows, and finds no other class")]
    missed = []
    for code in np.unique(y):
        in_class, rest = y == code, ""
        # A model may know the rows that it was trained on, and no others.
        if is_right[in_class].any():
            in_class, rest = in_class & unseen, " that it had not seen"
            if in_class.sum() < FEWEST_UNSEEN or is_right[in_class].any():
                continue
        rows = count_of(int(in_class.sum()), "row")
        missed.append(f"none of {rows} of the class {labels[code]!r}{rest}")
    if not missed:
        return []
    which = listing(missed, MOST_CLASSES_NAMED)
    return [Caveat(Effect.WARNS, f"the {model} found {which}")]


def note_rarely_found_classes(
    model: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    is_rare: NDArray[np.bool_],
    way_out: str,
) -> list[Caveat]:
    """Return a note if a model finds less than half of a class of few rows.

    A small error does not show it. Arguments are as for `describe_missed_classes`;
    `is_rare`: whether the row has such a class, and was not seen by the model. The
    option `way_out`, with ``{label}`` for the class, chooses a model that finds more of
    it.
    """
    notes = []
    for code, label in enumerate(classes.tolist()):
        in_class = (y == code) & is_rare
        n, n_right = int(in_class.sum()), int((predicted[in_class] == code).sum())
        if n >= FEWEST_UNSEEN and 2 * n_right < n:
            notes.append(
                f"the {model} finds {n_right:,} of {count_of(n, 'row')} of the class "
                f"{label!r} that it had not seen: {way_out.format(label=label)}"
            )
    return make_caveats(Effect.INFO, notes[:MOST_CLASSES_NAMED])


def rare_classes(labeled: LabeledRows) -> Integers:
    """Return the codes of classes with less than half of an equal part of the rows.

    They begin with the rarest. Of another class, the error itself shows misses.
    """
    n_rows = np.bincount(labeled.y, minlength=len(labeled.classes))
    order = np.argsort(n_rows, kind="stable")
    return order[2 * len(n_rows) * n_rows[order] < len(labeled.y)]


def notes_on_found_rows(
    context: JobContext,
    models: Mapping[int, Model],
    folds: Mapping[Statistic, FoldCounts],
) -> list[Caveat]:
    """Return notes on how many rows of rare classes the models of all folds found.

    Each model predicts the rows of its fold. The class of a loss has the precision,
    too, since recall alone is large where nearly all rows get this class. A report by
    class says more than these notes.

    Parameters
    ----------
    context
        The labeled rows, folds and losses of the search.
    models
        Fitted estimators by fold.
    folds
        Counts on the folds, by statistic.
    """
    labeled, losses = context.labeled, context.losses
    if len(labeled.classes) < 2 or losses.report_classes:
        return []
    labels, counts = labeled.classes.tolist(), dict[int, tuple[int, int, int]]()
    rare = rare_classes(labeled)
    if isinstance(losses.main, ClassRate):
        tables = losses.main.narrow_tables(folds[losses.main.statistic].integers)
        table = tables.sum(axis=0)
        n_rows, n_predicted = int(table[0].sum()), int(table[:, 0].sum())
        code = labels.index(losses.main.classes[0])
        counts[code] = n_rows, int(table[0, 0]), n_predicted
        rare = rare[rare != code]
    for fold, split in enumerate(context.scheme.held_out):
        rows = split.test_rows[np.isin(labeled.y[split.test_rows], rare)]
        y, codes, model = labeled.y[rows], np.full(len(rows), -1), models.get(fold)
        # A fold without a model, or whose model raises, counts as missed.
        with collect_warnings(), suppress(Exception):
            if model is not None and len(rows):
                X = native(take_rows(labeled.X, rows))
                codes = predict_codes(model, X, labeled.classes)
        for code in rare.tolist():
            n_rows, n_found, _ = counts.get(code, (0, 0, 0))
            is_found = codes[y == code] == code
            counts[code] = n_rows + len(is_found), n_found + int(is_found.sum()), 0
    notes = []
    for code, (n_rows, n_found, n_predicted) in counts.items():
        text = (
            f"of {count_of(n_rows, 'row')} of the class {labels[code]!r} the models of "
            f"all folds found {n_found:,}"
        )
        if n_predicted:
            precision = about_percent(n_found / n_predicted)
            text += (
                f"; {precision} of their {n_predicted:,} predictions of it are right"
            )
        notes.append(f"{text} (an estimate)")
    return make_caveats(Effect.INFO, notes[:MOST_CLASSES_NAMED])


def caveats_of_missed_classes(
    context: JobContext,
    certificates: Mapping[str, Certificate],
    models: Mapping[str, Model],
) -> dict[str, list[Caveat]]:
    """Return caveats about classes that each model misses, by its name.

    The deployed model's fold may be one with few rows of a rare class, and its search
    may have chosen a model that never predicts this class.
    """
    labeled = context.labeled
    if len(labeled.classes) < 2:
        return {}
    rows, warnings = sample_each_class(labeled.y), {}
    rare = rare_classes(labeled)
    # A search inside of a model ranks by its own `scoring`, whatever `loss` is.
    way_out = "loss='balanced' or 'recall:{label}' chooses for it"
    if len(context.estimators) == 1:
        way_out = (
            "scoring='balanced_accuracy' of a search inside of the model chooses for it"
        )
    X, y = native(take_rows(labeled.X, rows)), labeled.y[rows]
    for name, model in models.items():
        bound, unseen = certificates[name], np.zeros(len(rows), bool)
        if bound.fold is not None:
            unseen = np.isin(rows, context.scheme.held_out[bound.fold].test_rows)
        with collect_warnings(), suppress(Exception):  # other caveats name what raises
            codes = predict_codes(model, X, labeled.classes)
            warnings[name] = describe_missed_classes(
                bound.model_text, y, codes, labeled.classes, unseen
            )
            if not warnings[name] and context.losses.main == ERROR_RATE:
                is_rare = unseen & np.isin(y, rare)
                warnings[name] = note_rarely_found_classes(
                    bound.model_text, y, codes, labeled.classes, is_rare, way_out
                )
    return {name: texts for name, texts in warnings.items() if texts}
