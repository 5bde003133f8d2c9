"""The exact bound of a fitted model, from rows that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from dsel.arrays import Features, Integers, RandomState
from dsel.checks import check_delta
from dsel.data.duplicates import comparable
from dsel.data.frames import rows_by_name
from dsel.data.groups import row_groups, take_groups
from dsel.data.identity import row_hashes
from dsel.data.labeled import (
    check_labels,
    check_numbers,
    check_order,
    checked_features,
    codes_of,
    names_of_columns,
)
from dsel.data.row_random import seed_from
from dsel.families.kinds import is_regressor
from dsel.families.predictions import predict_codes_or_numbers
from dsel.losses.base import FoldCounts, Loss, PlannedDelta, Rows
from dsel.losses.by_value import find_column
from dsel.losses.calls import count_rows
from dsel.losses.declared import declare_losses
from dsel.losses.joint import Evidence
from dsel.option_values import ONE_FOLD
from dsel.results.by_class import CertifiedReport
from dsel.results.caveats import Caveat, Effect
from dsel.results.certificate import Assumption, full_list
from dsel.results.loss_reports import ModelReports
from dsel.results.prefit import AS_GIVEN, NEW_GROUPS, PrefitCertificate
from dsel.results.tolerances import ToleranceReport
from dsel.rounded_texts import count_of
from dsel.search.design.baseline import fitted_model, read_fixed_baseline
from dsel.search.running.class_checks import describe_missed_classes
from dsel.search.running.procedures import returned_model
from dsel.typing import (
    AnyArray,
    BaselineLike,
    GroupsLike,
    LabelsLike,
    Model,
    ReportLike,
    RowsLike,
)


def certify_prefit(
    model: Model,
    X: RowsLike,
    y: LabelsLike,
    *,
    delta: float = 0.05,
    loss: Loss | str = "error",
    report: ReportLike = False,
    report_by: str | int | None = None,
    groups: GroupsLike = None,
    baseline: BaselineLike = None,
    random_state: RandomState = 0,
) -> PrefitCertificate:
    """Bound the loss of a fitted model, from rows that it was not trained on.

    If rows come in groups, one row of each is drawn and counted. The default seed of
    the draw is fixed, since the smallest of several bounds is no bound.

    Source: Clopper and Pearson (1934). See `dsel.certify`.
    """
    delta = check_delta(delta)
    model = fitted_model(model, "model", allows_regression=True)
    rows = _read_counted_rows(model, X, y, groups, random_state)
    losses = declare_losses(loss, report, rows.classes)
    column = find_column(report_by, rows.features, rows.columns, rows.target)
    if column is not None:
        losses = losses.with_column(column)
    baseline_codes = None
    if baseline is not None:
        read = read_fixed_baseline(baseline, losses, rows.features, rows.classes)
        losses, baseline_codes = losses.with_baseline(read.difference), read.codes
    predicted = predict_codes_or_numbers(model, rows.given, rows.classes)
    labeled = Rows(rows.features, rows.targets, baseline_codes)
    # One fold whose model is the given one: every loss bounds it as it bounds others.
    n_rows = np.array([rows.n_rows])
    folds = {
        statistic: FoldCounts(
            count_rows(statistic, labeled, predicted)[np.newaxis], n_rows
        )
        for statistic in losses.statistics
    }
    evidence = Evidence(folds, {})
    planned = PlannedDelta(delta=delta, has_pool=False)
    bounds = losses.bound(evidence, planned, losses.limit_folds(folds, planned), 0)
    reports = ModelReports(
        losses=losses,
        evidence=evidence,
        bounds=bounds,
        deployed_fold=0,
        delta=delta,
        name=ONE_FOLD,
    )
    made, main = reports.report(), losses.main
    in_groups = [Assumption("A1", says=NEW_GROUPS)] if rows.n_groups else []
    certificate = PrefitCertificate(
        bounds.main.one_fold_bound,
        delta,
        "holdout",
        AS_GIVEN,
        assumptions=full_list(in_groups, has_pool=False),
        estimate=bounds.main.estimate,
        n_labeled=rows.n_rows,
        is_holdout=True,
        caveats=_caveats(rows, predicted, is_regression=main.is_regression),
        n_groups=rows.n_groups,
        report=made if isinstance(made, CertifiedReport) else None,
        tolerances=made if isinstance(made, ToleranceReport) else None,
        by_value=reports.report_by_value(),
    )
    return certificate.with_loss(main).with_baseline(reports.comparison())


@dataclass(frozen=True)
class CountedRows:
    """The labeled rows that are counted: all, or one of each group."""

    given: Any
    """As the caller has them, in the columns that the model was fitted to."""
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
    is_regression = is_regressor(returned_model(model))
    check_order(X, y)
    X, keys = take_groups(X, groups)
    X = X.compute() if hasattr(X, "compute") else X
    features, columns = checked_features(X, as_frame=True)
    n_rows, n_groups = features.shape[0], 0
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
    given = X if hasattr(X, "shape") else np.asarray(X)
    given = rows_by_name(given, names_of_columns(model), " of `model`")
    if keys is not None:
        key_groups = row_groups(keys, n_rows)
        drawn = np.flatnonzero(key_groups.draw_rows(seed_from(random_state)))
        given, features = _safe_indexing(given, drawn), features[drawn]
        labels, n_groups = labels[drawn], key_groups.n_groups
    targets = labels if is_regression else codes_of(labels, classes)
    target = getattr(y, "name", None)
    return CountedRows(given, features, targets, classes, columns, target, n_groups)


def _caveats(
    rows: CountedRows, predicted: NDArray[Any], *, is_regression: bool
) -> tuple[Caveat, ...]:
    """Return caveats of missed classes, of duplicates, and of models without error."""
    missed: list[Caveat] = []
    if not is_regression:
        unseen = np.ones(rows.n_rows, np.bool_)
        missed = describe_missed_classes(
            "model as given", rows.targets, predicted, rows.classes, unseen
        )
    asked: list[Caveat] = []
    if np.array_equal(predicted, rows.targets):
        n_rows = count_of(rows.n_rows, "row")
        text = (
            f"the model makes no error on {n_rows}: was it trained on these rows? Then "
            f"the bound is no guarantee (A3), so pass rows that it has not seen"
        )
        asked = [Caveat(Effect.INFO, text)]
    return (*missed, *_duplicates(rows.features), *asked)


def _duplicates(features: Features) -> tuple[Caveat, ...]:
    """Return a caveat if rows are duplicates of each other, as in a bootstrap."""
    hashes = row_hashes(comparable(features, np.dtype(np.float64)))
    first: Integers = np.unique(hashes, return_index=True)[1]
    n_copies = len(hashes) - len(first)
    if not n_copies:
        return ()
    text = (
        f"{n_copies:,} of {len(hashes):,} rows "
        f"{'are duplicates' if n_copies > 1 else 'is a duplicate'} of another row: if "
        f"these are copies of one record, rows are not independent (A1), so take each "
        f"once"
    )
    return (Caveat(Effect.WEAKENS, text),)
