"""The exact bound of a fitted model, from rows that it was not trained on."""

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from dsel.arrays import Integers, RandomState
from dsel.checks import check_delta
from dsel.data.equal_rows import comparable
from dsel.data.groups import row_groups, take_groups
from dsel.data.identity import row_hashes
from dsel.data.labeled import (
    check_labels,
    check_numbers,
    checked_features,
    codes_of,
)
from dsel.data.row_random import seed_from
from dsel.families.answers import predict_codes_or_numbers
from dsel.families.kinds import is_regressor
from dsel.losses.base import FoldCounts, Rows
from dsel.losses.by_value import find_column
from dsel.losses.declared import declare_losses
from dsel.losses.joint import Evidence
from dsel.results.caveats import Caveat, Effect
from dsel.results.certificate import ONE_FOLD, Assumption, CertifiedReport, full_list
from dsel.results.loss_reports import make_reports
from dsel.results.prefit import AS_GIVEN, NEW_GROUPS, PrefitCertificate
from dsel.results.tolerances import ToleranceReport
from dsel.search.design.baseline import add_model
from dsel.search.design.fitted_models import fitted_model
from dsel.search.running.procedures import returned_model


def certify_prefit(
    model: Any,
    X: Any,
    y: Any,
    *,
    delta: float = 0.05,
    loss: Any = "error",
    report: Any = False,
    report_by: str | int | None = None,
    groups: Any = None,
    baseline: Any = None,
    random_state: RandomState = 0,
) -> PrefitCertificate:
    """Bound the loss of a fitted model, from rows that it was not trained on.

    If rows come in groups, one row of each is drawn and counted. The default seed of
    the draw is fixed, since the smallest of several bounds is no bound.

    Source: Clopper and Pearson (1934). See `dsel.certify`.
    """
    delta = check_delta(delta)
    model = fitted_model(model, "model", takes_regressors=True)
    is_regression = is_regressor(returned_model(model))
    X, keys = take_groups(X, groups)
    X = X.compute() if hasattr(X, "compute") else X
    features, columns = checked_features(X, as_frame=True)
    n_rows = features.shape[0]
    labels = check_numbers(y) if is_regression else check_labels(y)
    if len(labels) != n_rows:
        raise ValueError(
            f"`y` must have a label for each row of `X`, got {len(labels)} labels for "
            f"{n_rows} rows."
        )
    classes = np.empty(0) if is_regression else _all_classes(labels, model)
    losses = declare_losses(loss, report, classes)
    # The model gets the rows as the caller has them: it was fitted on such ones.
    rows = X if hasattr(X, "shape") else np.asarray(X)
    of_rows = None if keys is None else row_groups(keys, n_rows)
    if of_rows is not None:
        drawn = np.flatnonzero(of_rows.draw_rows(seed_from(random_state)))
        rows, features = _safe_indexing(rows, drawn), features[drawn]
        labels, n_rows = labels[drawn], len(drawn)
    column = find_column(report_by, features, columns, getattr(y, "name", None))
    if column is not None:
        losses = losses.report_by(column)
    losses, known_codes = add_model(losses, baseline, features, classes)
    targets = labels if is_regression else codes_of(labels, classes)
    predicted = predict_codes_or_numbers(model, rows, classes)
    labeled = Rows(features, targets, known_codes)
    # One fold whose model is the given one: every loss bounds it as it bounds others.
    folds = {
        each: FoldCounts(
            np.asarray(each.count(labeled, predicted))[np.newaxis], np.array([n_rows])
        )
        for each in losses.statistics
    }
    evidence, main = Evidence(folds, {}), losses.main
    bounds = losses.bound(evidence, delta, has_pool=False)
    read = bounds.main
    reports = make_reports(losses, evidence, bounds, delta)[ONE_FOLD]
    made, known = reports.report, []
    if of_rows is not None:
        known.append(Assumption("A1", says=NEW_GROUPS))
    certificate = PrefitCertificate(
        read.one_fold,
        delta,
        "holdout",
        AS_GIVEN,
        assumptions=full_list(known, has_pool=False),
        estimate=read.estimate,
        n_labeled=n_rows,
        loss=repr(main),
        says=f"{main.label} at most",
        largest=main.largest,
        caveats=_duplicates(features),
        n_groups=0 if of_rows is None else of_rows.n_groups,
        report=made if isinstance(made, CertifiedReport) else None,
        tolerances=made if isinstance(made, ToleranceReport) else None,
        by_value=reports.by_value,
    )
    return certificate.with_baseline(reports.baseline)


def _all_classes(labels: Any, model: Any) -> Any:
    """Return the classes that the rows or the model know, in sorted order."""
    known = np.asarray(getattr(model, "classes_", labels[:0]))
    if known.ndim != 1:
        known = labels[:0]
    if len(known) and isinstance(known[0], str) != isinstance(labels[0], str):
        raise TypeError(
            f"`y` must hold labels of the type that `model` predicts, such as "
            f"{known.tolist()[0]!r}, got {labels.tolist()[0]!r}; convert one of them."
        )
    return np.unique(np.concatenate([known, labels]))


def _duplicates(features: Any) -> tuple[Caveat, ...]:
    """Return a caveat if rows are duplicates of each other, as in a bootstrap."""
    hashes = row_hashes(comparable(features, np.dtype(np.float64)))
    first: Integers = np.unique(hashes, return_index=True)[1]
    n_copies = len(hashes) - len(first)
    if not n_copies:
        return ()
    text = (
        f"{n_copies:,} of {len(hashes):,} rows are duplicates of another row: if they "
        f"are copies of the same records, rows are not independent (A1), so take each "
        f"once"
    )
    return (Caveat(Effect.WEAKENS, text),)
