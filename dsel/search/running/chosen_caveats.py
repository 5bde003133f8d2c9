"""Caveats of a choice about its models: failed fits, missed classes, better options.

The bound of an error says nothing about a rare class, so that classes which models miss
or seldom find are named.
"""

from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from dsel.arrays import Bools, Estimator, Integers
from dsel.checks import listing, show
from dsel.data.labeled import LabeledRows, are_classes
from dsel.families.family import error_line
from dsel.families.predictions import predict_codes
from dsel.losses.by_class import ClassRate, ClassTable
from dsel.losses.declared import DeclaredLosses
from dsel.losses.protocols import FoldCounts, Loss, Rows, Statistic, no_predictions
from dsel.option_values import ALL_ROWS
from dsel.results import BoundedModel, Certificate
from dsel.results.caveats import Caveat, Effect, make_caveats
from dsel.results.certificate_texts import not_finite_text
from dsel.results.fit_messages import collect_warnings
from dsel.rounded_texts import about_percent, confidence, count_of, name_folds
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme, ModelRef
from dsel.search.engine.jobs import JobContext
from dsel.search.running.count_chosen import PoolPassResult
from dsel.search.running.procedures import find_searches, unwrap_model
from dsel.typing import AnyArray, Model

MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""


def caveats_of_failed_folds(
    losses: DeclaredLosses,
    scheme: CVScheme,
    failed: Mapping[int, str],
    *,
    estimate: float,
    expected_holdout: float,
    unit: str,
) -> list[Caveat]:
    """Return a warning that fits without a fold, or predictions of the fold, failed.

    `failed` maps folds to causes; `unit` is what a fold counts, ``row`` or ``group``.
    """
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    rows = count_of(int(scheme.fold_rows[list(failed)].sum()), unit)
    causes = [f"{name_folds(fold)}: {reason}" for fold, reason in failed.items()]
    is_too_large = "is"
    if np.isfinite(expected_holdout):
        is_too_large = "and the comparison with a hold-out set are"
    end = f"the estimate {is_too_large} too large"
    if np.isinf(estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{losses.unpredicted_text}, so {end}"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_failed_all_rows(
    deploy: str, reason: str, one_fold: Certificate
) -> list[Caveat]:
    """Return the caveat of a fit on all labels that failed for this reason.

    `deploy` is the name of the model that was to be deployed.
    """
    failed = f"the fit on all labels failed ({reason})"
    text = f"{failed}, so it has no model and no bound"
    if deploy != ALL_ROWS:
        return [Caveat(Effect.INFO, text)]
    end = f"; the {one_fold.model_text} is deployed in its place"
    return [Caveat(Effect.WARNS, text + end)]


def caveats_of_infinite_predictions(certificate: Certificate) -> list[Caveat]:
    """Return a warning of predictions that are no numbers, if the bound is finite.

    Otherwise they are the reason why there is none.
    """
    if certificate.says_nothing:
        return []
    return [Caveat(Effect.WARNS, not_finite_text(certificate))]


def caveats_of_unpredicted_rows(
    deploy: str, on_pool: PoolPassResult, one_fold: Certificate
) -> list[Caveat]:
    """Return a warning that models raised on rows of the pool.

    `deploy` is the name of the model that was to be deployed.
    """
    rows = on_pool.unpredicted
    if on_pool.refusal:
        text = (
            f"the model trained on all labels has no bound, since "
            f"{on_pool.refusal.rstrip('.')}"
        )
        if deploy == ALL_ROWS:
            text += f"; the {one_fold.model_text} is deployed in its place"
        return [Caveat(Effect.WARNS, text)]
    text = (
        f"`predict` raised on {count_of(rows.n_rows, 'pool row')} (row "
        f"{rows.first_row}: {rows.cause}), counted as if a model that raised differed "
        f"from all others there, so the bound of the model trained on all labels may "
        f"be larger than it would be"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_unranked_searches(labeled: LabeledRows, model: Any) -> list[Caveat]:
    """Return a warning of each search in a model whose scores are all NaN.

    Such a search takes its first candidate, as if this one had been the best.
    """
    caveats = []
    for path, search in find_searches(unwrap_model(model)):
        score = getattr(search, "best_score_", None)
        if not isinstance(score, Real) or not np.isnan(float(score)):
            continue
        reason = ""
        scorer = getattr(search, "scorer_", None)
        # Steps of a pipeline before a search would change the rows.
        if callable(scorer) and not path:
            try:
                scorer(
                    search.best_estimator_, labeled.take(slice(None)), labeled.labels
                )
            except Exception as error:  # scorers of users may raise any error
                reason = f", which fails ({error_line(error)})"
        scoring = f"scoring={show(getattr(search, 'scoring', None))}"
        text = (
            f"{type(search).__name__} has ranked no candidate, and took the first one: "
            f"all of its scores are NaN; correct {scoring}"
        )
        caveats.append(Caveat(Effect.WARNS, f"{text}{reason}"))
    return caveats


def notes_of_choice(
    losses: DeclaredLosses,
    delta: float,
    bounded: Mapping[str, BoundedModel],
    deployed: BoundedModel,
) -> list[Caveat]:
    """Return notes about what another choice of options would give."""
    notes = []
    names_with_misses = {
        name
        for name, model in bounded.items()
        if any(c.model and c.effect is Effect.WARNS for c in model.certificate.caveats)
    }
    if deployed.name in names_with_misses and names_with_misses != bounded.keys():
        [other] = bounded.keys() - names_with_misses
        text = bounded[other].certificate.model_text
        of_training = ""
        # No fold tests that model, which may merely have memorized these rows.
        if other == ALL_ROWS:
            of_training = ", though among the rows that it learned from"
        notes.append(
            f"the warning above is about the deployed model alone: the {text} finds "
            f"rows of each class{of_training}; deploy={other!r} "
            f"deploys it"
        )
    main_delta = losses.divide_among_losses(delta).main_delta
    # Numbers without a guarantee have no confidence to share.
    if main_delta < delta and deployed.certificate.certified:
        reports = {
            "certified_report()": deployed.report or deployed.tolerances,
            "report_by_value()": deployed.report_by_value,
        }
        shown = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"the bounds and all numbers of {shown} share the "
            f"{confidence(delta)}% confidence: the bounds are computed with "
            f"{confidence(main_delta, decimals=2)}%, and would be smaller without a "
            f"report"
        )
    return make_caveats(Effect.INFO, notes)


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
    found_of = count_found_rows(
        context.labeled,
        losses.main,
        context.scheme,
        models,
        fold_counts_of,
        one_fold.fold,
    )
    if not found_of:
        return []
    texts = list[str]()
    for code, found_rows in found_of.items():
        who = "" if texts else " the models of all folds found"
        rows = count_of(found_rows.n_rows, "row")
        start = f"of {rows} of the class {labels[code]!r}{who}"
        texts.append(f"{start} {_text_of_found_rows(found_rows, one_fold)}")
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
    labeled: LabeledRows,
    loss: Loss,
    scheme: CVScheme,
    models: Mapping[ModelRef, Model],
    fold_counts_of: Mapping[Statistic, FoldCounts],
    named_fold: int | None,
) -> dict[int, FoundRows]:
    """Return the found rows of rare classes by code; those of the loss come first.

    The model of `named_fold` is also counted alone.
    """
    found_of, rare = dict[int, FoundRows](), rare_classes(labeled, scheme)
    if isinstance(loss, ClassRate):
        tables = loss.narrow_tables(fold_counts_of[loss.statistic].integers)
        table = tables.sum(axis=0)
        code = labeled.classes.tolist().index(loss.classes[0])
        found_of[code] = FoundRows(
            int(table[0].sum()), int(table[0, 0]), int(table[:, 0].sum())
        )
        rare = rare[rare != code]
    for fold, split in enumerate(scheme.fold_splits):
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


def _text_of_found_rows(found_rows: FoundRows, one_fold: Certificate) -> str:
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
    labeled: LabeledRows,
    losses: DeclaredLosses,
    scheme: CVScheme,
    ref: ModelRef,
    model: Model,
) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a model's own fold by true class and prediction.

    The last row and column are for other classes, as in a table of a report. It is
    empty for the model of all rows, which no labeled row tests; with a report, which
    counts the same for all folds; for regressors; for many classes; and if `predict`
    raises.
    """
    classes = tuple(labeled.classes.tolist())
    if ref is ALL_ROWS_MODEL or losses.report_classes or len(classes) > MOST_CONFUSED:
        return ()
    if len(classes) < 2:
        return ()
    rows = scheme.fold_splits[ref].test_rows
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
