"""Caveats about classes that chosen models miss or seldom find.

The bound of an error says nothing about a rare class.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from dsel.arrays import Bools, Estimator, Integers
from dsel.checks import listing
from dsel.data.labeled import LabeledRows, are_classes
from dsel.families.predictions import predict_codes
from dsel.losses.base import FoldCounts, Rows, Statistic, no_predictions
from dsel.losses.by_class import ClassRate, ClassTable
from dsel.results import Certificate
from dsel.results.caveats import Caveat, Effect
from dsel.results.fit_messages import collect_warnings
from dsel.rounded_texts import about_percent, count_of
from dsel.search.design.cv_schemes import CVScheme, ModelRef
from dsel.search.engine.jobs import JobContext
from dsel.typing import AnyArray, Model

MOST_PREDICTED: Final = 1_000
"""Labeled rows that are predicted to find out which classes a model misses."""
FEWEST_UNSEEN: Final = 5
"""Fewest rows of a class, outside of the training rows, for a warning that a model
misses all of them; with fewer rows a model that finds half of the class may miss all by
chance."""
MOST_CLASSES_NAMED: Final = 3
"""Most classes that a warning names."""
MOST_CONFUSED: Final = 20
"""Most classes of a confusion matrix on a page."""


def sample_each_class(y: Integers) -> Integers:
    """Return row numbers, at most about `MOST_PREDICTED`, with rows of each class.

    They are spread evenly, since rows may be sorted by date.
    """
    classes = np.unique(y)
    most = max(1, MOST_PREDICTED // len(classes))
    samples = []
    for code in classes:
        rows = np.flatnonzero(y == code)
        # Rare classes, of which every row matters, count all rows.
        n = min(most, len(rows))
        samples.append(rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)])
    return np.sort(np.concatenate(samples))


def describe_missed_classes(
    model_text: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    unseen: Bools,
) -> list[Caveat]:
    """Return warnings if a model predicts only one class, or finds no row of a class.

    `model_text` describes it, `y` and `predicted` are class codes of labeled rows, and
    `unseen` marks the rows that it was not trained on.
    """
    labels = classes.tolist()
    is_right = predicted == y
    # A model that raises is no model of one class.
    some = np.unique(predicted)
    if len(some) == 1 and are_classes(some).all() and len(np.unique(y)) > 1:
        text = (
            f"the {model_text} predicted {labels[some[0]]!r} for all of {len(y):,} "
            f"labeled rows, and found no other class"
        )
        return [Caveat(Effect.WARNS, text, f"the {model_text}")]
    missed = []
    for code in np.unique(y):
        in_class, condition = y == code, ""
        # A model may know the rows that it was trained on, and no others.
        if is_right[in_class].any():
            in_class, condition = in_class & unseen, " that it had not seen"
            if in_class.sum() < FEWEST_UNSEEN or is_right[in_class].any():
                continue
        rows = count_of(int(in_class.sum()), "row")
        missed.append(f"none of {rows} of the class {labels[code]!r}{condition}")
    if not missed:
        return []
    misses = listing(missed, MOST_CLASSES_NAMED)
    return [
        Caveat(Effect.WARNS, f"the {model_text} found {misses}", f"the {model_text}")
    ]


def rare_classes(labeled: LabeledRows, scheme: CVScheme) -> Integers:
    """Return the codes of classes with less than half of the mean size of a class.

    The rarest class comes first. The error itself shows misses of any other class.
    Classes of which no row is counted, as may be with groups, are left out.
    """
    rows = scheme.independent_rows(np.arange(labeled.n_rows))
    n_rows = np.bincount(labeled.y[rows], minlength=len(labeled.classes))
    order = np.argsort(n_rows, kind="stable")
    is_rare = 2 * len(n_rows) * n_rows[order] < len(rows)
    return order[is_rare & (n_rows[order] > 0)]


class FoundRows(NamedTuple):
    """Held-out rows of a class, and the number that the models of folds found."""

    n_rows: int = 0
    n_found: int = 0
    n_predicted: int = 0
    """Rows that are predicted as the class; 0 where they are not counted."""
    n_rows_of_fold: int = 0
    """Rows in the fold of one model."""
    n_found_of_fold: int = 0
    """Rows that this model found."""


def notes_on_found_rows(
    context: JobContext,
    models: Mapping[ModelRef, Model],
    fold_counts_of: Mapping[Statistic, FoldCounts],
    one_fold: Certificate,
) -> list[Caveat]:
    """Return a note on how many rows of rare classes the models of all folds found.

    `models` are fitted estimators, and each predicts the rows of its fold;
    `fold_counts_of` has the counts there. The model of the certificate `one_fold` is
    one of them, and is named if it finds less than half of such a class. The class of a
    loss has the precision, too, since recall is large if nearly all rows are predicted
    as this class. A report by class has more details than this note.
    """
    labels, losses = context.labeled.classes.tolist(), context.losses
    if len(labels) < 2 or losses.report_classes:
        return []
    found_of = count_found_rows(context, models, fold_counts_of, one_fold.fold)
    if not found_of:
        return []
    texts = list[str]()
    for code, found_rows in found_of.items():
        who = "" if texts else " the models of all folds found"
        rows = count_of(found_rows.n_rows, "row")
        start = f"of {rows} of the class {labels[code]!r}{who}"
        texts.append(f"{start} {_text_of_found(found_rows, one_fold)}")
    more = " classes" if len(texts) > MOST_CLASSES_NAMED else ""
    note = f"{listing(texts, MOST_CLASSES_NAMED)}{more} (an estimate)"
    missed = [code for code, n in found_of.items() if 2 * n.n_found < n.n_rows]
    way = ""
    if losses.is_about_error and missed:
        # A search inside of a model ranks by its own `scoring`, whatever `loss` is.
        named = listing([repr(labels[code]) for code in missed], MOST_CLASSES_NAMED)
        named = f"{'class' if len(missed) == 1 else 'classes'} {named}"
        way = f"loss='balanced' or 'recall:{labels[missed[0]]}' chooses for {named}"
        if len(missed) > 1:
            way = f"loss='balanced' chooses for {named}"
        if len(context.estimators) == 1:
            way = _way_of_one_candidate(context.estimators[0], named)
    return [Caveat(Effect.INFO, note, advice=way)]


def count_found_rows(
    context: JobContext,
    models: Mapping[ModelRef, Model],
    fold_counts_of: Mapping[Statistic, FoldCounts],
    named_fold: int | None,
) -> dict[int, FoundRows]:
    """Return the found rows of rare classes by code; those of the loss come first.

    The model of `named_fold` is also counted alone.
    """
    labeled, loss = context.labeled, context.losses.main
    found_of, rare = dict[int, FoundRows](), rare_classes(labeled, context.scheme)
    if isinstance(loss, ClassRate):
        tables = loss.narrow_tables(fold_counts_of[loss.statistic].integers)
        table = tables.sum(axis=0)
        code = labeled.classes.tolist().index(loss.classes[0])
        found_of[code] = FoundRows(
            int(table[0].sum()), int(table[0, 0]), int(table[:, 0].sum())
        )
        rare = rare[rare != code]
    for fold, split in enumerate(context.scheme.fold_splits):
        rows = split.test_rows[np.isin(labeled.y[split.test_rows], rare)]
        y, model = labeled.y[rows], models.get(fold)
        codes = no_predictions((len(rows),), y.dtype)
        # A fold without a model, or whose model raises, counts as missed.
        with collect_warnings(), suppress(Exception):
            if model is not None and len(rows):
                codes = predict_codes(model, labeled.take(rows), labeled.classes)
        for code in rare.tolist():
            is_found = codes[y == code] == code
            n_rows, n_found = len(is_found), int(is_found.sum())
            found_rows = found_of.get(code, FoundRows())
            found_rows = found_rows._replace(
                n_rows=found_rows.n_rows + n_rows, n_found=found_rows.n_found + n_found
            )
            if fold == named_fold:
                found_rows = found_rows._replace(
                    n_rows_of_fold=n_rows, n_found_of_fold=n_found
                )
            found_of[code] = found_rows
    return found_of


def _text_of_found(found_rows: FoundRows, one_fold: Certificate) -> str:
    """Return how many rows were found; add the count of one model if it finds few."""
    text, n_of_fold = f"{found_rows.n_found:,}", found_rows.n_rows_of_fold
    if n_of_fold >= FEWEST_UNSEEN and 2 * found_rows.n_found_of_fold < n_of_fold:
        text += (
            f" (of its {n_of_fold:,} the {one_fold.model_text} found "
            f"{found_rows.n_found_of_fold:,})"
        )
    if found_rows.n_predicted:
        precision = about_percent(found_rows.n_found / found_rows.n_predicted)
        text += (
            f"; where they predict it ({found_rows.n_predicted:,} rows), {precision} "
            f"are right"
        )
    return text


def _way_of_one_candidate(estimator: Estimator, missed: str) -> str:
    """Return how the only candidate finds more rows of the missed classes, or ""."""
    get_params = getattr(estimator, "get_params", None)
    # A function that makes models has no parameters that are known.
    params: dict[str, object] = {"scoring": None}
    if get_params is not None:
        params = {
            name.rpartition("__")[2]: value for name, value in get_params().items()
        }
    if params.get("scoring") not in (None, "accuracy"):
        return f"label more rows of {missed}"
    if "scoring" in params:
        return f"scoring='balanced_accuracy' of the search inside chooses for {missed}"
    if "class_weight" in params:
        return f"class_weight='balanced' of the model finds more of {missed}"
    return ""


def count_confusion(
    context: JobContext, ref: ModelRef, model: Model
) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a model's own fold by true class and prediction.

    The last row and column are for other classes, as in a table of a report. It is
    empty for the model of all rows, which no labeled row tests; with a report, which
    counts the same for all folds; for regressors; for many classes; and if `predict`
    raises.
    """
    labeled = context.labeled
    classes = tuple(labeled.classes.tolist())
    if ref is None or context.losses.report_classes or len(classes) > MOST_CONFUSED:
        return ()
    if len(classes) < 2:
        return ()
    rows = context.scheme.fold_splits[ref].test_rows
    table = ClassTable(classes, tuple(range(len(classes))))
    with collect_warnings(), suppress(Exception):  # other caveats name what raises
        codes = predict_codes(model, labeled.take(rows), labeled.classes)
        counts = table.count(Rows(labeled.X[rows], labeled.y[rows]), codes)
        return tuple(map(tuple, counts.tolist()))
    return ()


def caveats_of_missed_classes(
    labeled: LabeledRows, scheme: CVScheme, certificate: Certificate, model: Model
) -> list[Caveat]:
    """Return caveats about classes that a model misses, which its certificate names.

    The fold of the deployed model may have few rows of a rare class, and its search may
    have chosen a model that never predicts this class.
    """
    text = certificate.model_text
    if len(labeled.classes) < 2:
        return []
    rows = sample_each_class(labeled.y)
    y, unseen = labeled.y[rows], np.zeros(len(rows), bool)
    if certificate.fold is not None:
        unseen = np.isin(rows, scheme.fold_splits[certificate.fold].test_rows)
    with collect_warnings(), suppress(Exception):  # other caveats name what raises
        codes = predict_codes(model, labeled.take(rows), labeled.classes)
        return describe_missed_classes(text, y, codes, labeled.classes, unseen)
    return []
