"""Reports of a plan's bounded models, made from the bounds of its losses.

Losses return numbers, and do not depend on reports; this module makes the records.
"""

from dataclasses import dataclass
from math import isinf, nan
from typing import Any, Final

from dsel.losses.by_class import wrong_rows
from dsel.losses.by_value import LossByValue
from dsel.losses.calls import share_beyond
from dsel.losses.declared import DeclaredLosses, JointBounds
from dsel.losses.error_rate import ERROR as ERROR_RATE
from dsel.losses.joint import Evidence
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results.baseline import BaselineComparison
from dsel.results.by_value import ERROR, OFF_BY, SHARE, ReportByValue
from dsel.results.certificate import CertifiedReport
from dsel.results.tolerances import ToleranceReport

MODEL_NAMES: Final = (ONE_FOLD, ALL_ROWS)
UNNAMED: Final = ""
"""Description of a report's model, until `BoundedModel.name_in_reports` sets it."""


@dataclass(frozen=True)
class ModelReports:
    """Reports of one model, in addition to its bound; each may be None."""

    report: CertifiedReport | ToleranceReport | None
    by_value: ReportByValue | None
    baseline: BaselineComparison | None


def make_reports(
    losses: DeclaredLosses, evidence: Evidence, bounds: JointBounds, delta: float
) -> dict[str, ModelReports]:
    """Return the reports of each bounded model, by its name.

    The model of all rows has some only where it was compared on a pool.
    """
    model_names = MODEL_NAMES if evidence.pool else MODEL_NAMES[:1]
    return {
        name: ModelReports(
            _report(losses, evidence, bounds, delta, name),
            _report_by_value(losses.by_value, evidence, bounds, delta, name),
            _comparison(losses, evidence, bounds, delta, name),
        )
        for name in model_names
    }


def _report(
    losses: DeclaredLosses,
    evidence: Evidence,
    bounds: JointBounds,
    delta: float,
    name: str,
) -> CertifiedReport | ToleranceReport | None:
    """Return the report of one model, of numbers in the order of `losses.listed`."""
    if not bounds.listed:
        return None
    limits = [bound.of(name) for bound in bounds.listed]
    estimates = [bound.estimate for bound in bounds.listed]
    if losses.tolerances:
        return ToleranceReport(
            delta,
            UNNAMED,
            tuple(tolerance.share for tolerance in losses.tolerances),
            tuple(estimates),
            tuple(limits),
            is_pooled=_is_pooled(evidence),
        )
    table, n = losses.table, len(losses.reported)
    assert table is not None  # else nothing is reported
    pooled = evidence.folds[table].counts.sum(axis=0)
    places = [table.classes.index(label) for label in losses.reported]
    rows = tuple(int(wrong_rows(pooled, place)[1]) for place in places)
    # The first number is the error. Losses are misses: recall and precision are what
    # is left of one.
    at_least = [max(0.0, 1.0 - limit) for limit in limits[1:]]
    about = [1.0 - estimate for estimate in estimates[1:]]
    return CertifiedReport(
        delta,
        UNNAMED,
        losses.reported,
        rows,
        pooled_recall=tuple(about[:n]),
        recall_at_least=tuple(at_least[:n]),
        pooled_precision=tuple(about[n:]),
        precision_at_least=tuple(at_least[n:]),
        pooled_error=estimates[0],
        error_at_most=min(1.0, limits[0]),
        **(_count_tests(losses, evidence, bounds) if name == ONE_FOLD else {}),
    )


def _count_tests(
    losses: DeclaredLosses, evidence: Evidence, bounds: JointBounds
) -> dict[str, Any]:
    """Return what the rows of its fold show of the model of one fold alone."""
    assert losses.table is not None
    table = evidence.folds[losses.table].counts[bounds.main.fold]
    places = [losses.table.classes.index(label) for label in losses.reported]
    by_class = [wrong_rows(table, place) for place in places]
    by_prediction = [wrong_rows(table.T, place) for place in places]
    recall, precision = (
        tuple(1.0 - int(wrong) / int(n) if n else nan for wrong, n in pairs)
        for pairs in (by_class, by_prediction)
    )
    errors = evidence.folds[ERROR_RATE.statistic]
    fold = bounds.main.fold
    return {
        "test_rows": tuple(int(n) for _, n in by_class),
        "recall": recall,
        "precision": precision,
        "error": float(errors.counts[fold] / errors.n_rows[fold]),
    }


def _is_pooled(evidence: Evidence) -> bool:
    """Return whether estimates are of several models, each tested on its own fold."""
    return any(len(folds.n_rows) > 1 for folds in evidence.folds.values())


def _report_by_value(
    by_value: LossByValue | None,
    evidence: Evidence,
    bounds: JointBounds,
    delta: float,
    name: str,
) -> ReportByValue | None:
    """Return the limits of one model for each value of a column."""
    if by_value is None:
        return None
    column, loss = by_value.column, by_value.loss
    limits = [bound.of(name) for bound in bounds.by_value]
    if column.has_categories and None in column.values:
        # New rows of a category that `X` does not declare are gaps, too, and no
        # labeled row tells of them.
        limits[column.values.index(None)] = loss.largest
    pool = evidence.pool.get(by_value.statistic)
    n_pool = [] if pool is None else pool.counts[0, :, 0].tolist()
    quantity, what = (SHARE if loss.is_regression else ERROR), loss.label
    if isinf(loss.largest):
        quantity = OFF_BY
    if (beyond := share_beyond(loss)) is not None:
        what = f"How far {100 * (1.0 - beyond):.6g}% of predictions are off"
    tests: dict[str, Any] = {}
    if name == ONE_FOLD and _is_pooled(evidence):
        fold = [*evidence.folds[by_value.statistic].one_by_one()][bounds.main.fold]
        losses = by_value.losses
        tests = {
            "tested": tuple(loss.estimate(fold) for loss in losses),
            "test_rows": tuple(int(loss.folds(fold).n_rows[0]) for loss in losses),
        }
    return ReportByValue(
        delta,
        UNNAMED,
        column.name,
        values=column.labels,
        rows=column.rows,
        estimates=tuple(bound.estimate for bound in bounds.by_value),
        limits=tuple(min(limit, loss.largest) for limit in limits),
        pool_rows=tuple(n_pool[:-1]),
        other_pool_rows=int(n_pool[-1]) if n_pool else 0,
        quantity=quantity,
        what=what,
        is_pooled=_is_pooled(evidence),
        **tests,
    )


def _comparison(
    losses: DeclaredLosses,
    evidence: Evidence,
    bounds: JointBounds,
    delta: float,
    name: str,
) -> BaselineComparison | None:
    """Return how one model compares with the baseline, by the rows of a fold."""
    difference = losses.baseline
    if difference is None:
        return None
    bound = bounds.baseline[MODEL_NAMES.index(name)]
    folds = evidence.folds[difference.statistic]
    model, baseline = (int(n) for n in folds.counts[bound.fold])
    totals = folds.counts.sum(axis=0)
    largest = difference.largest_classes
    return BaselineComparison(
        delta,
        UNNAMED,
        difference.described[bound.fold],
        bound.upper,
        int(folds.n_rows[bound.fold]),
        model,
        baseline,
        estimate=float((totals[1] - totals[0]) / folds.n_rows.sum()),
        label_term=bound.label_term,
        largest_class=largest[bound.fold] if largest else "",
    )
