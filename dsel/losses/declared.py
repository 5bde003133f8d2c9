"""The losses that a plan declares by ``loss=``, ``report=`` and ``report_by=``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, isinf, nan
from typing import Any, Final, NamedTuple, cast

from dsel.arrays import Integers
from dsel.checks import check_probability, did_you_mean, show
from dsel.losses.baseline_difference import BaselineDifference
from dsel.losses.by_class import (
    ClassRate,
    ClassTable,
    Precision,
    Recall,
    few_rows_caveat,
)
from dsel.losses.by_value import VALUES_SHARE, LossByValue, ValueColumn
from dsel.losses.calls import name_loss_in_errors
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence, LossBounds, bound_models
from dsel.losses.makers import MOST_CLASSES, as_labels
from dsel.losses.protocols import (
    DeltaDivision,
    FoldCounts,
    Loss,
    PlannedDelta,
    Statistic,
)
from dsel.losses.regression import DEFAULT, ErrorQuantile
from dsel.losses.texts import loss_of_name
from dsel.rounded_texts import count_of, shorten_text
from dsel.typing import AnyArray, ReportLike

REPORTED_FRACTIONS: Final = (0.5, 0.8, 0.9, 0.95)
"""Fractions of predictions in the default report of a regressor."""


class FewRows(NamedTuple):
    """A caveat about too few labeled rows, known before anything is counted."""

    text: str
    infinite_loss: str = ""
    """`repr` of the loss that has no finite limit with these rows; "" if all losses
    have one."""

    @classmethod
    def of(cls, loss: Loss, texts: Iterable[str]) -> "list[FewRows]":
        """Return the caveats of a loss; one without a largest value has no limit."""
        infinite_loss = repr(loss) if isinf(loss.largest) else ""
        return [cls(text, infinite_loss) for text in texts]


@dataclass(frozen=True)
class DeclaredLosses:
    """All losses of a plan: the main loss, those of reports, and a baseline."""

    main: Loss = ERROR_RATE
    """The loss that ranks the candidates, and is certified."""
    report_classes: tuple[Any, ...] = ()
    """Classes of the certified report; empty without a report."""
    table: ClassTable | None = None
    """The statistic that counts by class; None if no loss uses it."""
    value_loss: LossByValue | None = None
    """The loss by the values of a column; None without ``report_by=``."""
    tolerances: tuple[ErrorQuantile, ...] = ()
    """Tolerances of a regressor's report, one for each fraction."""
    baseline_difference: BaselineDifference | None = None
    """Comparison with a baseline, at its own delta; None without one."""

    @property
    def is_about_error(self) -> bool:
        """Whether the error itself ranks and is certified."""
        return self.main == ERROR_RATE

    @property
    def is_default(self) -> bool:
        """Whether nothing was declared, so that every certificate can be used."""
        return replace(self, baseline_difference=None) == DeclaredLosses(
            DEFAULT if self.main.is_regression else ERROR_RATE
        )

    @property
    def plan_text(self) -> str:
        """The losses as the print of a plan names them; "" for the error alone."""
        if self.is_default and not self.main.is_regression:
            return ""
        text = (
            f"of {'the ' if self.is_about_error else ''}{shorten_text(repr(self.main))}"
        )
        if self.tolerances:
            text += f" and a report of {count_of(len(self.tolerances), 'share')}"
        if self.report_classes:
            text += f" and a report of {len(self.report_classes)} classes"
        if self.value_loss is not None:
            what = "limits" if self.main.is_regression else "errors"
            column = self.value_loss.column
            text += (
                f"; {what} by {column.name}, of {count_of(len(column.values), 'value')}"
            )
        return text

    @property
    def unpredicted_text(self) -> str:
        """How rows without a prediction are counted."""
        return "errors" if self.is_about_error else "the largest loss"

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """All statistics: errors of classifiers, and those of the losses."""
        statistics: list[Statistic | None] = [self.main.statistic, self.table]
        if not self.main.is_regression:
            # This is done for every loss: families have counted the errors, and the
            # cube shows them.
            statistics.insert(0, ERROR_RATE.statistic)
        statistics += [tolerance.statistic for tolerance in self.tolerances]
        if self.value_loss is not None:
            statistics.append(self.value_loss.statistic)
        if self.baseline_difference is not None:
            statistics.append(self.baseline_difference.statistic)
        # Equal statistics are counted once, whichever losses read them.
        return tuple(
            dict.fromkeys(
                statistic for statistic in statistics if statistic is not None
            )
        )

    @property
    def report_losses(self) -> tuple[Loss, ...]:
        """The losses of the report: error, recalls, precisions; or tolerances."""
        if not self.report_classes:
            return self.tolerances
        recalls = [Recall((label,), self.table) for label in self.report_classes]
        precisions = [Precision((label,), self.table) for label in self.report_classes]
        return (ERROR_RATE, *recalls, *precisions)

    def with_column(self, column: ValueColumn) -> "DeclaredLosses":
        """Return the losses with limits for each value of a column.

        These are limits of the error of classifiers, even if another loss ranks, or of
        the loss of regressors.
        """
        loss = self.main if self.main.is_regression else ERROR_RATE
        return replace(self, value_loss=LossByValue(loss, column))

    def with_baseline(self, difference: BaselineDifference) -> "DeclaredLosses":
        """Return the losses with a comparison of the models with a baseline."""
        return replace(self, baseline_difference=difference)

    def divide_among_losses(
        self, delta: float, *, has_values: bool = False
    ) -> "LossDeltas":
        """Return delta of the main loss, and of each number of a report.

        All numbers of a report share delta equally. The main loss is one of them, or
        the mean of several, whose shares it gets. A report by the values of a column
        has a fixed part, for any number of values; `has_values` replaces this column
        for a finished search, which no longer has it.
        """
        if has_values or self.value_loss is not None:
            delta *= 1.0 - VALUES_SHARE
        if not self.report_losses:
            return LossDeltas(delta, delta)
        # The union bound is over different losses: one that is listed twice is bounded
        # once.
        reported = delta / len({*self.report_losses, *self.main.components})
        return LossDeltas(reported * len(self.main.components), reported)

    def caveats(self, y: Integers, n_folds: int, delta: float) -> list[FewRows]:
        """Return caveats about too few labeled rows, before anything is counted.

        `delta` is that of limits on labeled rows.
        """
        deltas = self.divide_among_losses(delta)
        with name_loss_in_errors(self.main, "caveats"):
            few = FewRows.of(
                self.main, self.main.caveats(y, n_folds, deltas.main_delta)
            )
        # Precisions of classes have the caveats of their recalls.
        recalls = [
            report_loss
            for report_loss in self.report_losses
            if isinstance(report_loss, Recall)
        ]
        few += map(FewRows, few_rows_caveat(recalls, y, n_folds, deltas.reported_delta))
        # The main loss chooses the fold that is deployed. If this has a finite main
        # tolerance, then it has finite ones for smaller fractions.
        known_fraction = -inf
        if isinstance(self.main, ErrorQuantile) and not few:
            known_fraction = self.main.fraction
        for loss in self.report_losses:
            if loss == self.main or isinstance(loss, ClassRate):
                continue
            if not isinstance(loss, ErrorQuantile):
                few += FewRows.of(loss, loss.caveats(y, n_folds, deltas.reported_delta))
            elif loss.fraction > known_fraction:
                texts = loss.report_caveats(len(y), n_folds, deltas.reported_delta)
                few += FewRows.of(loss, texts)
        return list(dict.fromkeys([*few, *self.value_caveats(n_folds, delta)]))

    def vacuous_caveats(self, y: Any, n_folds: int, delta: float) -> list[FewRows]:
        """Return the caveats about limits that will say nothing, with so few rows.

        These are limits by the values of a column, and tolerances, which may be
        infinite. A class with few rows still has a limit, although a large one.
        """
        if self.main.is_regression:
            return self.caveats(y, n_folds, delta)
        return self.value_caveats(n_folds, delta)

    def value_caveats(self, n_folds: int, delta: float) -> list[FewRows]:
        """Return a caveat about values of a column with too few labeled rows."""
        if self.value_loss is None:
            return []
        return [*map(FewRows, self.value_loss.caveats(n_folds, VALUES_SHARE * delta))]

    def main_division(self, planned_delta: PlannedDelta) -> DeltaDivision:
        """Return the division of the main loss's part of delta."""
        return planned_delta.division_of(
            self.divide_among_losses(planned_delta.model_delta).main_delta
        )

    def bound_report_losses(
        self, evidence: Evidence, planned_delta: PlannedDelta, fold: int
    ) -> tuple[LossBounds, ...]:
        """Bound the `report_losses`, all at once, and together with the main loss.

        The model of `fold` is deployed. Limits of the main loss may have chosen it.
        """
        delta = self.divide_among_losses(planned_delta.model_delta).reported_delta
        division = planned_delta.division_of(delta)
        return tuple(
            bound_models(loss, evidence, division, fold) for loss in self.report_losses
        )

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the expected bound of a 20% hold-out set by the main loss.

        `folds` has the counts of this loss. NaN if the only fold is such a set.
        """
        if len(folds.n_rows) == 1:
            return nan
        # A report costs the bound some of delta. A hold-out set has no report and could
        # spend all of delta, so that the comparison is the same for every `report`.
        with name_loss_in_errors(self.main, "expected_holdout"):
            return self.main.expected_holdout(folds, delta)


class LossDeltas(NamedTuple):
    """Delta of the numbers of a plan, which all hold at once."""

    main_delta: float
    """Delta of the main loss."""
    reported_delta: float
    """Delta of each number of a report by class, or of tolerances."""


def declare_losses(loss: Any, report: ReportLike, classes: AnyArray) -> DeclaredLosses:
    """Return the losses that options declare, for labels of these classes.

    A regression has no classes. Raises TypeError or ValueError if a class is not in
    `y`, there are too many, or an option is for the other kind of target.
    """
    labels = classes.tolist()
    main = cast(Loss, ERROR_RATE if len(classes) else DEFAULT)
    if isinstance(loss, Loss) and not isinstance(loss, type):
        main = loss
    elif isinstance(loss, str) and loss != "error":
        main = loss_of_name(loss, labels)
    elif loss is not None and not isinstance(loss, str):
        raise TypeError(
            f"`loss` must be a name, such as 'recall:fraud', 'balanced' or "
            f"'error_quantile=0.9', or made by dsel.losses, such as "
            f'dsel.losses.recall("fraud") or .cost(...), got '
            f"{show(loss)}."
        )
    if main.is_regression != (not labels):
        kind, needed, examples = (
            ("regressors", "classifier", 'recall("fraud"), .cost(...) or "error"')
            if labels
            else ("classifiers", "regressor", "error_quantile(0.9), or .beyond(2.0)")
        )
        raise ValueError(
            f"`loss` must be one for {needed}s here: {show(main)} is for {kind}, and "
            f"the model is a {needed}; write dsel.losses.{examples}."
        )
    if main.is_regression:
        return DeclaredLosses(main, tolerances=_tolerances(main, report))
    report_classes = tuple(labels) if report is True else as_labels("report", report)
    with name_loss_in_errors(main, "named_classes"):
        loss_classes = main.named_classes(labels)
    for argument, named in (("loss", loss_classes), ("report", report_classes)):
        check_named_classes(argument, named, labels)
    if not (loss_classes or report_classes):
        return DeclaredLosses(main)
    # One table counts the classes of the report and of the loss.
    table_classes = tuple(dict.fromkeys((*report_classes, *loss_classes)))
    position_of = {label: index for index, label in enumerate(table_classes)}
    positions = tuple(position_of.get(label, len(table_classes)) for label in labels)
    table = ClassTable(table_classes, positions)
    with name_loss_in_errors(main, "of_table"):
        main = main.of_table(loss_classes, table)
    return DeclaredLosses(main, table_classes if report_classes else (), table)


def _tolerances(main: Loss, report: Any) -> tuple[ErrorQuantile, ...]:
    """Return the tolerances of a regressor's report, which share one statistic."""
    if report is None or report is False:
        return ()
    fractions: Any = REPORTED_FRACTIONS
    if report is not True:
        wrong = (
            f"`report` of regressors must be True, or a list of fractions of the "
            f"predictions in (0, 1), got {show(report)}; write report=[0.5, 0.9]."
        )
        if isinstance(report, str | Mapping) or not isinstance(report, Iterable):
            raise TypeError(wrong)
        fractions = tuple(islice(report, MOST_CLASSES + 1))
        if not fractions or len({*map(str, fractions)}) < len(fractions):
            raise ValueError(wrong)
        if len(fractions) > MOST_CLASSES:
            raise ValueError(f"`report` must name at most {MOST_CLASSES} fractions.")
    bins = main.statistic if isinstance(main, ErrorQuantile) else DEFAULT.statistic
    return tuple(
        ErrorQuantile(check_probability(fraction, "report"), shared_statistic=bins)
        for fraction in fractions
    )


def check_named_classes(
    argument: str, labels: Sequence[object], classes: Sequence[object]
) -> None:
    """Raise ValueError if a label is no class of `y`, or there are too many classes."""
    for label in labels:
        if label not in classes:
            shown = ", ".join(repr(other) for other in classes[:5])
            like = [other for other in classes if str(other) == str(label)]
            end = f"; write {like[0]!r}." if like else did_you_mean(label, classes)
            raise ValueError(
                f"`{argument}` names the class {label!r}, which is none of the "
                f"{len(classes)} classes of `y` ({shown}"
                f"{', ...' if len(classes) > 5 else ''})"
                f"{'; name one of these.' if end == '.' else end}"
            )
    if len(set(labels)) < len(labels) or len(labels) > MOST_CLASSES:
        raise ValueError(
            f"`{argument}` must name at most {MOST_CLASSES} different classes, got "
            f"{len(labels)}; name those that matter."
        )
