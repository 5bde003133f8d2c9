"""Counts of new rows, made slice by slice in one pass, and the sample of their rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel.arrays import Bools, Floats, Integers
from dsel.checks import class_of_same_letters
from dsel.data.duplicate_rows import FindDuplicates, duplicate_finder
from dsel.data.frames import Frame, frame_like
from dsel.data.labeled import codes_of, match_pool
from dsel.data.query_rows import merge_smallest, smallest_rows
from dsel.data.record_ids import RecordIds
from dsel.data.row_random import SHIFT_STREAM, row_random_at
from dsel.data.unknown_values import (
    KnownValues,
    UnknownValues,
    find_unknown_values,
    known_values,
    merge_unknown_values,
)
from dsel.families.estimator_kinds import is_regressor
from dsel.families.predictions import flat_predictions
from dsel.losses.calls import count_rows, name_loss_in_errors
from dsel.losses.declared import declare_losses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import DistanceLoss, Exceedance, Loss, Rows, Statistic
from dsel.losses.regression import absolute_residuals
from dsel.losses.texts import loss_of_text
from dsel.results.certificate import Certificate
from dsel.results.query_files import as_label
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.assumption_checks import count_repeats, merge_repeats
from dsel.search.outcomes.deployed_model import ModelRows
from dsel.search.outcomes.intervals import tolerance_certificates
from dsel.search.outcomes.new_labels import SEED, NewLabels
from dsel.search.outcomes.promises import Promises
from dsel.search.outcomes.table_rows import TableRows, read_table_slice
from dsel.typing import AnyArray, LabelsLike

COMPARED_ROWS: Final = 2_000
"""Most new rows, and most labeled rows, that the two-sample test compares. The test is
made once, so there are more rows than before a search."""
NO_LABEL: Final = -1
"""Code of a row without a label."""


@dataclass(frozen=True)
class Tally:
    """Counts of new rows; those of slices add up in any order."""

    n_rows: int
    n_duplicates: int
    n_differ: Integers
    """Rows on which both models differ, then the duplicates of labeled rows in them."""
    n_labels: Integers
    """Numbers of rows with a label, of duplicates of labeled rows among them, and of
    rows whose label is no class."""
    counts: Integers
    """Counts of the loss on rows with a label, by model, then those on duplicates of
    labeled rows; (2, n_models, ...)."""
    random_words: NDArray[np.uint64]
    """Random words of the sampled rows, the smallest ones."""
    rows: Integers
    sample: Any
    """The sampled rows in the types of the labeled ones; None if not needed."""
    unknown: Mapping[str, UnknownValues]
    """Values that no labeled row has, by column."""
    repeats: "pd.Series[int]"
    """How often rows occur that equal no labeled one; see `merge_repeats`."""

    def merge(self, later: "Tally") -> "Tally":
        """Return both counts added up, and the rows with the smallest random words."""
        samples = [(t.random_words, t.rows, t.sample) for t in (self, later)]
        random_words, rows, sample = merge_smallest(
            samples[0], samples[1], COMPARED_ROWS
        )
        return Tally(
            self.n_rows + later.n_rows,
            self.n_duplicates + later.n_duplicates,
            self.n_differ + later.n_differ,
            self.n_labels + later.n_labels,
            self.counts + later.counts,
            random_words,
            rows,
            sample,
            merge_unknown_values(self.unknown, later.unknown),
            merge_repeats([self.repeats, later.repeats]),
        )


@dataclass(frozen=True)
class MonitorContext:
    """Data that every task needs."""

    models: tuple[Any, ...]
    model_rows: ModelRows
    classes: NDArray[Any]
    labels: NewLabels
    loss: Loss | None
    """The loss that the search bounded; None for a user's own loss."""
    statistic: Statistic
    like: Any
    """Labeled rows, of which only names and types are read; None if unknown."""
    find_duplicates: FindDuplicates | None
    labeled_ids: RecordIds | None
    """Ids by which rows that equal labeled ones are known to be other records."""
    known: KnownValues
    """Values of text columns in labeled rows."""
    is_regression: bool = False
    """Whether models predict numbers."""
    exceedances: tuple[Exceedance, ...] = ()
    """Exceedance by the bound of each model; empty for a loss without distances."""
    is_counted: Bools | None = None
    """Whether each row is counted, one of each group; None without groups."""

    @property
    def kind_of_rows_text(self) -> str:
        """Kind of the rows that are counted: all labeled ones, or one of each group."""
        return f"rows with a label{self.of_groups_text}"

    @property
    def of_groups_text(self) -> str:
        """The end of a text on counted rows, which says that they come in groups."""
        return "" if self.is_counted is None else ", one of each new group"

    @classmethod
    def of(
        cls, promises: Promises, table: TableRows, new_labels: NewLabels
    ) -> "MonitorContext":
        """Return the data that tasks of a table need."""
        models = tuple(promises.models.values())
        labeled = promises.labeled
        named = promises.loss
        is_regression = any(map(is_regressor, models))
        exceedances: tuple[Exceedance, ...] = ()
        if is_regression:
            classes = np.empty(0)
            loss = named
            if isinstance(loss, DistanceLoss):
                bounded = tolerance_certificates(promises.choice).values()
                with name_loss_in_errors(loss, "exceedance"):
                    exceedances = tuple(_exceedance(c, loss) for c in bounded)
        else:
            classes = classes_of(promises, named or ERROR_RATE)
            loss = None if named is None else declare_losses(named, None, classes).main
        like, find = None, None
        if labeled is not None:
            # Tasks need only names and types of the labeled rows, so no row is sent.
            like = labeled.X[:0]
            find = duplicate_finder(match_pool(table.like, labeled), labeled)
        return cls(
            models,
            ModelRows.of(models, promises.input_format, table.where),
            classes,
            new_labels,
            loss,
            (loss or ERROR_RATE).statistic,
            like,
            find,
            promises.labeled_ids,
            known_values(promises.input_format.table_schema),
            is_regression,
            exceedances,
        )

    def count(self, X: Any, row_numbers: Integers) -> Tally:
        """Count a block of rows with these numbers."""
        converted = self._convert_rows(X)
        is_duplicate = np.zeros(len(row_numbers), np.bool_)
        # With groups only rows of new ones are counted, and these are other records.
        if self.find_duplicates is not None and self.is_counted is None:
            is_duplicate = self.find_duplicates(converted)
        if self.labeled_ids is not None and isinstance(X, Frame):
            # A row with another id is another record, even if all its features are
            # equal.
            is_duplicate = is_duplicate & self.labeled_ids.may_have(X.given)
        prepared = self.model_rows.prepare(X, row_numbers)
        predicted = [
            self._codes(flat_predictions(m.predict(prepared))) for m in self.models
        ]
        differs = predicted[0] != predicted[-1]  # one model differs nowhere from itself
        y: NDArray[Any] = np.zeros(len(row_numbers), np.int64)
        has_label = np.zeros(len(row_numbers), np.bool_)
        if (values := self._values_of_labels(X, row_numbers)) is not None:
            y = self._numbers(values) if self.is_regression else self._labels(values)
            has_label = np.isfinite(y) if self.is_regression else y != NO_LABEL
        if self.is_counted is not None:
            if row_numbers[-1] >= len(self.is_counted):
                raise ValueError(
                    f"{self.labels.groups_option} must have a key for each row of "
                    f"{self.model_rows.where}, got {len(self.is_counted):,} for more "
                    f"rows."
                )
            has_label = has_label & self.is_counted[row_numbers]
        masks = has_label, has_label & is_duplicate
        n_unknown = 0 if self.is_regression else int((y[has_label] < 0).sum())
        inside = X if converted is None else converted
        counts = np.stack(
            [
                np.stack(
                    [
                        self._count(
                            index,
                            Rows(inside[positions], y[positions]),
                            codes[positions],
                        )
                        for index, codes in enumerate(predicted)
                    ]
                )
                for positions in map(np.flatnonzero, masks)
            ]
        )
        # Rows with the smallest random words are a random sample that does not depend
        # on the blocks.
        random_words, sampled_rows, sample = smallest_rows(
            (row_random_at(SEED, SHIFT_STREAM, row_numbers), row_numbers, converted),
            COMPARED_ROWS,
        )
        return Tally(
            len(row_numbers),
            int(is_duplicate.sum()),
            np.array([differs.sum(), (differs & is_duplicate).sum()]),
            np.array([*(mask.sum() for mask in masks), n_unknown]),
            counts,
            random_words,
            sampled_rows,
            sample,
            find_unknown_values(X.given, self.known) if isinstance(X, Frame) else {},
            merge_repeats([count_repeats(inside, ~is_duplicate)]),
        )

    def _convert_rows(self, X: Any) -> Any:
        """Return a block in the columns and types of the labeled rows."""
        if self.like is None:
            return None
        if isinstance(self.like, Frame):
            return frame_like(X.given if isinstance(X, Frame) else X, self.like.schema)
        return self.model_rows.numbers(X)

    def _codes(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Return predictions as class codes, or numbers as they are."""
        return predicted if self.is_regression else codes_of(predicted, self.classes)

    def _count(self, model_number: int, rows: Rows, predicted: AnyArray) -> Integers:
        """Return the counts of one model on rows with a label."""
        if not self.exceedances:
            return np.asarray(count_rows(self.statistic, rows, predicted), np.int64)
        residuals = absolute_residuals(np.asarray(rows.targets), predicted)
        return np.asarray(np.sum(residuals > self.exceedances[model_number].tolerance))

    def _values_of_labels(self, X: Any, row_numbers: Integers) -> Any:
        """Return the labels of rows, not converted; None without labels."""
        if self.labels.y is not None:
            if row_numbers[-1] >= len(self.labels.y):
                raise ValueError(
                    f"`y` must have a label for each row of {self.model_rows.where}, "
                    f"got {len(self.labels.y):,}, and there are more rows."
                )
            return pd.Series(self.labels.y[row_numbers])
        return None if self.labels.target is None else X.given[self.labels.target]

    def _numbers(self, values: Any) -> Floats:
        """Return targets as numbers, NaN for a missing one."""
        try:
            return np.asarray(pd.to_numeric(values), np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.labels.argument} must hold numbers, since the models predict "
                f"some, but {self.model_rows.where} has another value ({error}); write "
                f"decimal points, and the empty cell for a gap."
            ) from error

    def _labels(self, values: LabelsLike) -> Integers:
        """Return class codes, `NO_LABEL` for a missing label.

        A label that is no class has a code below it, and every model errs there.
        """
        indices, distinct = pd.factorize(np.asarray(values, object))
        classes = tuple(self.classes.tolist())
        labels = [as_label(value, classes) for value in distinct.tolist()]
        codes = np.array(
            [
                NO_LABEL
                if label is None
                else codes_of(np.array([label]), self.classes)[0]
                for label in labels
            ]
            + [NO_LABEL],
            np.int64,
        )
        for index in np.flatnonzero(codes[:-1] < NO_LABEL):
            meant = class_of_same_letters(labels[index], classes)
            if meant is not None:
                raise ValueError(
                    f"{self.labels.argument} must be written as the classes are, but "
                    f"{self.model_rows.where} has {labels[index]!r}, which is no "
                    f"class; did you mean {meant!r}?"
                )
        return np.asarray(codes[indices])  # the last one of -1, a missing label


@dataclass(frozen=True)
class CountSlice:
    """Counts a slice of a table."""

    def run(self, context: "MonitorContext", inputs: Inputs) -> Output[Tally]:
        """Return the tally."""
        tallies = [
            context.count(block.X, block.row_numbers)
            for block in read_table_slice(inputs)
        ]
        return Output(reduce(Tally.merge, tallies))


def classes_of(promises: Promises, loss: Loss) -> NDArray[Any]:
    """Return all classes that models and loss know, in order."""
    class_lists = [getattr(m, "classes_", None) for m in promises.models.values()]
    classes = [np.asarray(labels) for labels in class_lists if labels is not None]
    if len(classes) < len(class_lists):
        labeled = promises.labeled
        if labeled is None or len(labeled.classes) < 2:
            raise ValueError(
                "the models have no attribute `classes_`, so their "
                "predictions cannot be compared with labels."
            )
        classes = [labeled.classes]
    known: NDArray[Any] = np.unique(np.concatenate(classes))
    with name_loss_in_errors(loss, "named_classes"):
        names = loss.named_classes(())
    named = [label for label in names if label not in known.tolist()]
    return np.unique(np.concatenate([known, named])) if named else known


def _exceedance(certificate: Certificate, declared: DistanceLoss) -> Exceedance:
    """Return the exceedance of a bound; a report may have replaced the declared one."""
    loss = loss_of_text(certificate.loss)
    loss = loss if isinstance(loss, DistanceLoss) else declared
    return loss.exceedance(certificate.number)
