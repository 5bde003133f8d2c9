"""Caveats about classes that chosen models miss or seldom find.

The bound of an error says nothing about a rare class.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Integers
from dsel.checks import listing
from dsel.data.labeled import LabeledRows
from dsel.families.predictions import predict_codes
from dsel.losses.base import FoldCounts, Statistic
from dsel.losses.by_class import ClassRate
from dsel.losses.error_rate import ERROR_RATE
from dsel.results import BoundedModel
from dsel.results.caveats import Caveat, Effect, make_caveats
from dsel.results.fit_messages import collect_warnings
from dsel.rounded_texts import about_percent, count_of
from dsel.search.engine.jobs import JobContext
from dsel.typing import AnyArray, Model

MOST_PREDICTED: Final = 1_000
"""Labeled rows that are predicted to find out which classes a model misses."""
FEWEST_UNSEEN: Final = 5
"""Rows of a class that a model had not seen, from which it is said to miss all; with
fewer, a model that finds half of the class may miss all by chance."""
MOST_CLASSES_NAMED: Final = 3
"""Most classes that a warning names."""


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

    `model` is its description, `y` and `predicted` are class codes of labeled rows, and
    `unseen` says whether it was trained without the row.
    """
    labels = classes.tolist()
    is_right = predicted == y
    some = np.unique(predicted)
    if len(some) == 1 and some[0] >= 0 and len(np.unique(y)) > 1:
        text = (
            f"the {model} predicted {labels[some[0]]!r} for all of {len(y):,} labeled "
            f"rows, and found no other class"
        )
        return [Caveat(Effect.WARNS, text, f"the {model}")]
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
    misses = listing(missed, MOST_CLASSES_NAMED)
    return [Caveat(Effect.WARNS, f"the {model} found {misses}", f"the {model}")]


def note_rarely_found_classes(
    model: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    is_rare: NDArray[np.bool_],
) -> list[Caveat]:
    """Return a note if a model finds less than half of a class of few rows.

    A small error does not show it. Arguments are as for `describe_missed_classes`;
    `is_rare`: whether the row has such a class, and was not seen by the model.
    """
    found = []
    for code, label in enumerate(classes.tolist()):
        in_class = (y == code) & is_rare
        n, n_right = int(in_class.sum()), int((predicted[in_class] == code).sum())
        if n >= FEWEST_UNSEEN and 2 * n_right < n:
            rows = count_of(n, "row")
            found.append(f"{n_right:,} of {rows} of the class {label!r}")
    if not found:
        return []
    text = (
        f"the {model} found {listing(found, MOST_CLASSES_NAMED)} that it had not seen"
    )
    return [Caveat(Effect.INFO, text, f"the {model}")]


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

    `models` are fitted estimators by fold, and each predicts the rows of its fold;
    `folds` are the counts there. The class of a loss has the precision, too, since
    recall alone is large where nearly all rows get this class. A report by class says
    more than these notes.
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
                codes = predict_codes(model, labeled.take(rows), labeled.classes)
        for code in rare.tolist():
            n_rows, n_found, _ = counts.get(code, (0, 0, 0))
            is_found = codes[y == code] == code
            counts[code] = n_rows + len(is_found), n_found + int(is_found.sum()), 0
    if not counts:
        return []
    texts = list[str]()
    for code, (n_rows, n_found, n_predicted) in counts.items():
        who = "" if texts else " the models of all folds found"
        text = f"of {count_of(n_rows, 'row')} of the class {labels[code]!r}{who}"
        text += f" {n_found:,}"
        if n_predicted:
            precision = about_percent(n_found / n_predicted)
            text += (
                f"; where they predict it ({n_predicted:,} rows), {precision} are right"
            )
        texts.append(text)
    more = " classes" * (len(texts) > MOST_CLASSES_NAMED)
    note = f"{listing(texts, MOST_CLASSES_NAMED)}{more} (an estimate)"
    missed = [c for c, (n_rows, n_found, _) in counts.items() if 2 * n_found < n_rows]
    if losses.main == ERROR_RATE and missed:
        # A search inside of a model ranks by its own `scoring`, whatever `loss` is.
        way = f"loss='balanced' or 'recall:{labels[missed[0]]}' chooses for it"
        if len(missed) > 1:
            way = "loss='balanced' chooses for them"
        if len(context.estimators) == 1:
            way = "scoring='balanced_accuracy' of a search inside of the model chooses"
            way += f" for {'it' if len(missed) == 1 else 'them'}"
        note += f": {way}"
    return make_caveats(Effect.INFO, [note])


def caveats_of_missed_classes(
    context: JobContext,
    bounded_models: Mapping[str, BoundedModel],
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
    X, y = labeled.take(rows), labeled.y[rows]
    for name, model in models.items():
        bound, unseen = bounded_models[name].certificate, np.zeros(len(rows), bool)
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
                    bound.model_text, y, codes, labeled.classes, is_rare
                )
    return {name: texts for name, texts in warnings.items() if texts}
