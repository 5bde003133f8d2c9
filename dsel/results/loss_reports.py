"""Reports of a plan's bounded models, made from the bounds of its losses.

Losses return numbers, and do not depend on reports; this module makes the records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isinf, nan
from typing import Final

from dsel.arrays import Integers
from dsel.losses.by_class import wrong_rows
from dsel.losses.calls import rate_beyond
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence, LossBounds
from dsel.losses.protocols import Loss, PlannedDelta
from dsel.option_values import ONE_FOLD
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.bounded_values import BoundedValues
from dsel.results.class_report import CertifiedReport
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import (
    ERROR_QUANTITY,
    OFF_BY_QUANTITY,
    SHARE_QUANTITY,
    ReportByValue,
)

UNNAMED: Final = ""
"""Description of a report's model, until `BoundedModel.name_in_reports` sets it."""


@dataclass(frozen=True, kw_only=True)
class ModelReports:
    """Makes the reports of one model, in addition to its bound; None if not declared.

    The model of all rows has some only where it was compared on a pool. The numbers of
    both models hold at once, with the bounds by the main loss. The comparison with a
    baseline has its own delta: it holds together with the others at twice delta.
    """

    losses: DeclaredLosses
    evidence: Evidence
    planned_delta: PlannedDelta
    deployed_fold: int
    """Fold whose model is deployed."""
    name: str
    """Name of the model: ``one_fold`` or ``all_rows``."""

    @property
    def is_tested(self) -> bool:
        """Whether labeled rows test the model, which was trained without its fold."""
        return self.name == ONE_FOLD

    @property
    def is_pooled(self) -> bool:
        """Whether estimates are about several models, each tested on its own fold."""
        return any(
            len(folds.n_rows) > 1 for folds in self.evidence.fold_counts_of.values()
        )

    @property
    def reported_bounds(self) -> tuple[LossBounds, ...]:
        """The bounds of the report, in the order of `DeclaredLosses.report_losses`."""
        return self.losses.bound_report_losses(
            self.evidence, self.planned_delta, self.deployed_fold
        )

    def bounded_values(
        self, losses: Sequence[Loss], loss_bounds: Sequence[LossBounds]
    ) -> BoundedValues:
        """Return the numbers of several losses that have one statistic."""
        unseen_values: tuple[float, ...] = ()
        if self.is_tested:
            fold = self.evidence.fold_counts_of[losses[0].statistic].fold(
                self.deployed_fold
            )
            unseen_values = tuple(loss.estimate(fold) for loss in losses)
        return BoundedValues(
            tuple(
                min(bound.of(self.name), loss.largest)
                for loss, bound in zip(losses, loss_bounds, strict=True)
            ),
            unseen_values,
            tuple(b.estimate for b in loss_bounds) if self.is_pooled else (),
        )

    def tolerances(self) -> ToleranceReport | None:
        """Return the report of a regressor."""
        tolerances = self.losses.tolerances
        if not tolerances:
            return None
        return ToleranceReport(
            self.planned_delta.delta,
            UNNAMED,
            tuple(tolerance.fraction for tolerance in tolerances),
            self.bounded_values(tolerances, self.reported_bounds),
        )

    def report_by_class(self) -> CertifiedReport | None:
        """Return recall and precision of the reported classes, and the error.

        The losses of the report are the error, the misses of each class, then the false
        predictions of each class. Recall is 1 less the misses, precision 1 less these.
        """
        classes, table = self.losses.report_classes, self.losses.table
        if not classes:
            return None
        assert table is not None  # else nothing is reported
        error_bounds, *rate_bounds = self.reported_bounds
        miss_bounds = rate_bounds[: len(classes)]
        false_bounds = rate_bounds[len(classes) :]
        # The axes are the fold, the true class and the prediction of the fold's model.
        confusions = self.evidence.fold_counts_of[table].integers
        own_confusion = confusions[self.deployed_fold]
        positions = [table.classes.index(label) for label in classes]

        def count_rows(confusion: Integers) -> tuple[int, ...]:
            """Return the number of rows of each class."""
            return tuple(int(wrong_rows(confusion, n)[1]) for n in positions)

        def complement_rates(
            loss_bounds: Sequence[LossBounds], confusion: Integers
        ) -> BoundedValues:
            """Return 1 less each bounded rate, which is about rows of `confusion`."""
            counts = [wrong_rows(confusion, n) for n in positions]
            # The loss of a class without a row is 1, which nothing has measured.
            unseen_rates = (
                1.0 - int(wrong) / int(n) if n else nan for wrong, n in counts
            )
            return BoundedValues(
                tuple(max(0.0, 1.0 - b.of(self.name)) for b in loss_bounds),
                tuple(unseen_rates) if self.is_tested else (),
                tuple(1.0 - b.estimate for b in loss_bounds) if self.is_pooled else (),
            )

        return CertifiedReport(
            self.planned_delta.delta,
            UNNAMED,
            classes,
            count_rows(confusions.sum(axis=0)),
            recall=complement_rates(miss_bounds, own_confusion),
            # Precision is the recall of the transposed table.
            precision=complement_rates(false_bounds, own_confusion.T),
            error=self.bounded_values([ERROR_RATE], [error_bounds]),
            test_rows=count_rows(own_confusion) if self.is_tested else (),
        )

    def report_by_value(self) -> ReportByValue | None:
        """Return the limits for each value of a column."""
        by_value = self.losses.value_loss
        if by_value is None:
            return None
        column, loss = by_value.column, by_value.loss
        value_bounds = by_value.bounds(
            self.evidence, self.planned_delta, self.deployed_fold
        )
        bounded = self.bounded_values(by_value.losses, value_bounds)
        limits = list(bounded.limits)
        if column.has_categories and None in column.values:
            # New rows with a category that `X` does not declare also become gaps, and
            # no labeled row is like them.
            limits[column.values.index(None)] = loss.largest
        pool_counts = self.evidence.pool_counts_of.get(by_value.statistic)
        n_pool = [] if pool_counts is None else pool_counts.counts[0, :, 0].tolist()
        quantity = SHARE_QUANTITY if loss.is_regression else ERROR_QUANTITY
        what = loss.title
        if isinf(loss.largest):
            quantity = OFF_BY_QUANTITY
        if (beyond := rate_beyond(loss)) is not None:
            what = f"How far {100 * (1.0 - beyond):.6g}% of predictions are off"
        fold = self.evidence.fold_counts_of[by_value.statistic].fold(self.deployed_fold)
        n_tests = (int(one.folds_of_value(fold).n_rows[0]) for one in by_value.losses)
        return ReportByValue(
            self.planned_delta.delta,
            UNNAMED,
            column.name,
            values=column.plain_values,
            rows=column.rows,
            numbers=replace(bounded, limits=tuple(limits)),
            pool_rows=tuple(n_pool[:-1]),
            other_pool_rows=int(n_pool[-1]) if n_pool else 0,
            quantity=quantity,
            what=what,
            test_rows=tuple(n_tests) if self.is_tested else (),
        )

    def comparison(self) -> BaselineComparison | None:
        """Return the comparison with the baseline, by the rows of a fold."""
        difference = self.losses.baseline_difference
        if difference is None:
            return None
        baseline_bounds = difference.bounds(
            self.evidence, self.planned_delta, self.deployed_fold
        )
        bound = baseline_bounds[0 if self.is_tested else 1]
        folds = self.evidence.fold_counts_of[difference.statistic]
        n_model, n_baseline = (int(n) for n in folds.counts[bound.fold])
        totals = folds.counts.sum(axis=0)
        n_rows = int(folds.n_rows[bound.fold])
        pooled = float((totals[1] - totals[0]) / folds.n_rows.sum())
        largest = difference.largest_classes
        return BaselineComparison(
            self.planned_delta.delta,
            UNNAMED,
            difference.described[bound.fold],
            BoundedValues(
                (bound.upper,),
                ((n_baseline - n_model) / n_rows,) if self.is_tested else (),
                (pooled,) if self.is_pooled else (),
            ),
            n_rows,
            n_model,
            n_baseline,
            label_term=bound.label_term,
            largest_class=largest[bound.fold] if largest else "",
        )
