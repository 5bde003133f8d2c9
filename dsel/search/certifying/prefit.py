"""The exact bound of a fitted model, from rows that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from dsel.arrays import Features, RandomState
from dsel.checks import check_delta
from dsel.data.frames import rows_by_name
from dsel.data.groups import notes_on_identifiers, read_row_groups, take_groups
from dsel.data.labeled import (
    check_features,
    check_labels,
    check_numbers,
    check_order,
    codes_of,
    names_of_columns,
    one_column,
)
from dsel.data.row_random import seed_from
from dsel.families.estimator_kinds import is_regressor
from dsel.families.predictions import predict_codes_or_numbers
from dsel.losses.by_value import find_column
from dsel.losses.calls import count_not_finite, count_rows
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.losses.joint import Evidence, bound_models
from dsel.losses.protocols import FoldCounts, Loss, PlannedDelta, Predictions, Rows
from dsel.option_values import ONE_FOLD
from dsel.results.assumptions import DECLARED, VIOLATED, Assumption, full_list
from dsel.results.caveats import (
    IF_COPIES,
    NO_COPIES,
    Caveat,
    Effect,
    caveats_of_identifiers,
    make_caveats,
)
from dsel.results.certificate import loss_fields
from dsel.results.loss_reports import ModelReports
from dsel.results.prefit_certificate import AS_GIVEN, NEW_GROUPS, PrefitCertificate
from dsel.rounded_texts import count_of
from dsel.search.design.assumption_checks import (
    MANY_DUPLICATES,
    TAKE_ONCE,
    count_repeats,
    have_copies,
)
from dsel.search.design.baseline import (
    describe_sources,
    fitted_model,
    note_on_positions,
    read_fixed_baseline,
    takes_positions,
)
from dsel.search.design.search_options import SearchOptions
from dsel.search.planning.plan_caveats import caveats_of_copies
from dsel.search.running.chosen_caveats import describe_missed_classes
from dsel.search.running.procedures import unwrap_model
from dsel.typing import (
    AnyArray,
    GroupsLike,
    LabelsLike,
    Model,
    ReportLike,
    RowsLike,
)


def certify_prefit(
    model: Model, X: RowsLike, y: LabelsLike, search_options: SearchOptions
) -> PrefitCertificate:
    """Bound the loss of a fitted model, from rows that it was not trained on.

    If rows come in groups, one row of each is drawn and counted. Without a random state
    the seed of the draw is fixed, since the smallest of several bounds is no bound.

    Source: Clopper and Pearson (1934). See `dsel.certify`.
    """
    delta = check_delta(search_options.delta)
    model = fitted_model(model, "model", allows_regression=True)
    random_state = (
        0 if search_options.random_state is None else search_options.random_state
    )
    rows = _read_counted_rows(model, X, y, search_options.groups, random_state)
    losses = _declare_losses(
        rows, search_options.loss, search_options.report, search_options.report_by
    )
    baseline_codes = None
    by_position = ["`model`"] * takes_positions(model, rows.features)
    if search_options.baseline is not None:
        fixed_baseline = read_fixed_baseline(
            search_options.baseline, losses, rows.features, rows.classes
        )
        losses = losses.with_baseline(fixed_baseline.difference)
        baseline_codes = fixed_baseline.codes
        by_position += ["`baseline`"] * fixed_baseline.takes_positions
    predictions = predict_codes_or_numbers(model, rows.given, rows.classes)
    labeled = Rows(rows.features, rows.targets, baseline_codes)
    evidence = _count_losses(losses, labeled, predictions)
    planned_delta = PlannedDelta(delta=delta, has_pool=False)
    division = losses.main_division(planned_delta)
    bounds = bound_models(losses.main, evidence, division, 0)
    reports = ModelReports(
        losses=losses,
        evidence=evidence,
        planned_delta=planned_delta,
        deployed_fold=0,
        name=ONE_FOLD,
    )
    main = losses.main
    repeats = count_repeats(rows.features, np.ones(rows.n_rows, np.bool_))
    certificate = PrefitCertificate(
        bounds.one_fold_bound,
        delta,
        "holdout",
        AS_GIVEN,
        assumptions=full_list([_judge_draw(rows, repeats)], has_pool=False),
        estimate=bounds.estimate,
        n_not_finite=count_not_finite(main, evidence.fold_counts_of[main.statistic]),
        n_labeled=rows.n_rows,
        is_holdout=True,
        caveats=(
            *_caveats(rows, repeats, predictions, is_regression=main.is_regression),
            *make_caveats(
                Effect.INFO, [note_on_positions("`X`", name) for name in by_position]
            ),
        ),
        n_groups=rows.n_groups,
        report=reports.report_by_class(),
        tolerances=reports.tolerances(),
        by_value=reports.report_by_value(),
        sources=describe_sources({"model": model}),
        **loss_fields(main),
    )
    return certificate.with_baseline(reports.comparison())


def _declare_losses(
    rows: "CountedRows",
    loss: Loss | str | None,
    report: ReportLike,
    report_by: str | int | None,
) -> DeclaredLosses:
    """Return the losses that are bounded, also by the values of a column."""
    losses = declare_losses(loss, report, rows.classes)
    column = find_column(report_by, rows.features, rows.columns, rows.target)
    return losses if column is None else losses.with_column(column)


def _count_losses(
    losses: DeclaredLosses, labeled: Rows, predictions: Predictions
) -> Evidence:
    """Return the counts of all losses.

    The rows are one fold, and the given model is its model: every loss bounds it as it
    bounds others.
    """
    n_rows = np.array([len(predictions)])
    fold_counts_of = {
        statistic: FoldCounts(
            count_rows(statistic, labeled, predictions)[np.newaxis], n_rows
        )
        for statistic in losses.statistics
    }
    return Evidence(fold_counts_of, {})


def _judge_draw(rows: "CountedRows", repeats: "pd.Series[int]") -> Assumption:
    """Return the assumption of independent draws, which copies violate."""
    reason = ""
    if have_copies(repeats):
        reason = f"rows repeat as independent draws cannot: copies; {TAKE_ONCE}"
    state, says = VIOLATED if reason else DECLARED, NEW_GROUPS if rows.n_groups else ""
    return Assumption("A1", state, reason, says)


@dataclass(frozen=True)
class CountedRows:
    """The labeled rows that are counted: all, or one of each group."""

    given: Any
    """The rows of the caller, in the columns that the model was fitted to."""
    features: Features
    """The same as an array, CSR matrix or `Frame`."""
    targets: NDArray[Any]
    """Class codes, or numbers."""
    classes: AnyArray
    """Labels of the classes; none of numbers."""
    columns: Sequence[str] | None
    target: Any
    """Name of the labels, where they have one."""
    n_groups: int
    """0 where rows are independent."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.targets)


def _read_counted_rows(
    model: Model,
    X: RowsLike,
    y: LabelsLike,
    groups: GroupsLike,
    random_state: RandomState,
) -> CountedRows:
    """Check labeled rows, and draw one of each group."""
    is_regression = is_regressor(unwrap_model(model))
    check_order(X, y)
    y = one_column(y)
    X, group_keys, _ = take_groups(X, groups)
    X = X.compute() if hasattr(X, "compute") else X
    features, columns = check_features(X, as_frame=True)
    n_rows = features.shape[0]
    n_groups = 0
    labels = check_numbers(y) if is_regression else check_labels(y)
    if len(labels) != n_rows:
        raise ValueError(
            f"`y` must have a label for each row of `X`, got {len(labels)} labels for "
            f"{n_rows} rows."
        )
    classes = np.empty(0)
    if not is_regression:
        known = np.asarray(getattr(model, "classes_", labels[:0]))
        known = known if known.ndim == 1 else labels[:0]
        if len(known) and isinstance(known[0], str) != isinstance(labels[0], str):
            raise TypeError(
                f"`y` must hold labels of the type that `model` predicts, such as "
                f"{known.tolist()[0]!r}, got {labels.tolist()[0]!r}; convert one of "
                f"them."
            )
        classes = np.unique(np.concatenate([known, labels]))
    counted_rows = X if hasattr(X, "shape") else np.asarray(X)
    counted_rows = rows_by_name(counted_rows, names_of_columns(model), " of `model`")
    if group_keys is not None:
        row_groups = read_row_groups(group_keys, n_rows)
        counted = np.flatnonzero(row_groups.draw_rows(seed_from(random_state)))
        counted_rows = _safe_indexing(counted_rows, counted)
        features = features[counted]
        labels = labels[counted]
        n_groups = row_groups.n_groups
    targets = labels if is_regression else codes_of(labels, classes)
    target = getattr(y, "name", None)
    return CountedRows(
        counted_rows, features, targets, classes, columns, target, n_groups
    )


def _caveats(
    rows: CountedRows,
    repeats: "pd.Series[int]",
    predictions: NDArray[Any],
    *,
    is_regression: bool,
) -> tuple[Caveat, ...]:
    """Return caveats of missed classes, leaks, groups, duplicates, and no errors."""
    missed: list[Caveat] = []
    if not is_regression:
        unseen = np.ones(rows.n_rows, np.bool_)
        missed = describe_missed_classes(
            "model as given", rows.targets, predictions, rows.classes, unseen
        )
    asked: list[Caveat] = []
    if np.array_equal(predictions, rows.targets):
        n_rows = count_of(rows.n_rows, "row")
        text = (
            f"the model makes no error on {n_rows}: was it trained on these rows? Then "
            f"the bound is no guarantee (A3), so pass rows that it has not seen"
        )
        asked = [Caveat(Effect.INFO, text)]
    in_groups: list[Caveat] = []
    if not rows.n_groups:
        notes = notes_on_identifiers(rows.given, rows.columns)
        in_groups = caveats_of_identifiers(notes)
    copies = caveats_of_copies(rows.features, rows.targets, rows.columns, rows.target)
    return (*missed, *in_groups, *copies, *_duplicates(repeats), *asked)


def _duplicates(repeats: "pd.Series[int]") -> tuple[Caveat, ...]:
    """Return a caveat if rows are duplicates of each other, as in a bootstrap."""
    n_rows = int(repeats.sum())
    n_copies = n_rows - len(repeats)
    if not n_copies or have_copies(repeats):
        return ()
    text = (
        f"{n_copies:,} of {n_rows:,} rows "
        f"{'are duplicates' if n_copies > 1 else 'is a duplicate'} of another row: "
        f"{IF_COPIES}"
    )
    are_many = n_copies >= MANY_DUPLICATES * n_rows
    effect = Effect.WARNS if are_many else Effect.WEAKENS
    return (Caveat(effect, text, condition=NO_COPIES),)
