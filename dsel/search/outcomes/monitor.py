"""Tests on a new table of whether the promises of a search still hold.

There are three kinds of tests, each at its own level: the new rows against the labeled
ones, the disagreement of both deployed models and, if the new rows have labels, their
errors. One pass over the table counts for all of them, and keeps a sample of its rows.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dsel import names
from dsel.arrays import Bools, Floats, Integers, as_plain
from dsel.bounds import binomial_tail_inversion, upper_pool_rows
from dsel.bounds.duplicates import lower_rate_limits
from dsel.bounds.shares import LABEL_SHARE
from dsel.checks import as_array, check_probability, listed
from dsel.data.equal_rows import FindDuplicates, duplicate_finder
from dsel.data.frames import Frame, concatenate_rows, frame_like, take_rows
from dsel.data.groups import RowGroups
from dsel.data.labeled import (
    LabeledRows,
    check_unmasked,
    codes_of,
    matching_pool,
    seen_rows,
)
from dsel.data.query_rows import smallest_words
from dsel.data.row_random import SHIFT_STREAM, row_random_at
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.data.unknown_values import (
    KnownValues,
    UnknownValues,
    find_unknown_values,
    known_values,
    merge_unknown_values,
)
from dsel.families.kinds import is_regressor
from dsel.losses import loss_of_text
from dsel.losses.base import (
    FoldCounts,
    Loss,
    PoolCounts,
    RefutableLoss,
    Rows,
    Statistic,
)
from dsel.losses.declared import declare_losses
from dsel.losses.error_rate import ERROR
from dsel.losses.regression import Beyond, ErrorQuantile, absolute_residuals
from dsel.results.certificate import ALL_ROWS, ONE_FOLD, Certificate
from dsel.results.choice import Choice
from dsel.results.inputs import load_inputs
from dsel.results.monitoring import KEPT, REFUTED, UNTESTED, MonitorReport, PromiseTest
from dsel.results.place import Place
from dsel.results.query_files import as_label, read_choice, read_labeled_choice
from dsel.results.run_store import open_results
from dsel.rounded_texts import confidence, floor_percent, in_percent, shorten_text
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.assumptions import (
    FEWEST_ROWS,
    N_PERMUTATIONS,
    SAMPLE_ROWS,
    two_sample_test,
)
from dsel.search.outcomes.predict_table import (
    InputFormat,
    ModelRows,
    PoolTable,
    Report,
    TextTable,
    open_deployed,
    open_table,
    read_table_part,
)

if TYPE_CHECKING:
    from distributed import Client


LEVEL: Final = 0.01
"""Default of the probability that a test refutes a promise that holds."""
SEED: Final = 0
"""Seed of the sample and the forest of the two-sample test: the same each time."""
SHOWN_COLUMNS: Final = 3
LIKE_LABELED: Final = "The new rows are like the labeled rows"
NO_LABEL: Final = -1
"""Code of a row without a label."""
NO_FRESH: Final = "all of these rows equal labeled rows, which are no fresh draws"
NAME_LABELED: Final = "name it by --labeled"
IN_GROUPS: Final = "rows come in groups, so they are not independent draws"


@dataclass(frozen=True)
class Promises:
    """Promises of a search, with the models and rows that their tests need."""

    models: Mapping[str, Any]
    """The deployed models, fitted; ``one_fold``, ``all_rows`` or both."""
    choice: Choice
    input_format: InputFormat
    disagreement: float | None
    """Limit, from the pool, of the rate at which both models differ, or None."""
    labeled: LabeledRows | None = None
    """The labeled rows; their labels are not used."""
    why_unknown: str = ""
    """Reason why the labeled rows are not known."""
    group_keys: NDArray[Any] | None = None
    """Keys of the labeled groups, if rows come in groups; None if unknown."""
    own_loss: Loss | None = None
    """Loss of the plan, which may be of the user's own; None if unknown."""

    @property
    def loss(self) -> Loss | None:
        """Loss that the search has bounded; None if it cannot be tested.

        Stored results keep only its text, by which a loss of dsel is made again. A loss
        of the user's own needs lower limits, and counts that add up over blocks.
        """
        text, own = self.choice.certificate.loss, self.own_loss
        if (named := loss_of_text(text)) is not None:
            return named
        if own is None or repr(own) != text or own.statistic.fold_shape is None:
            return None
        return own if isinstance(own, RefutableLoss) else None

    @property
    def are_in_groups(self) -> bool:
        """Whether bounds are about a random row of a new group."""
        return any(each.n_groups for each in self.choice.certificates.values())


@dataclass(frozen=True)
class NewLabels:
    """Labels of new rows: a column of the table, or an array by row number."""

    target: str | None = None
    y: NDArray[Any] | None = None
    option: str = "`target`"
    """The argument with the column of labels; the command line has another name."""
    groups: Any = None
    """Column with the key of each row's group, or these keys; None without groups."""
    groups_option: str = "`groups`"

    @property
    def why_none(self) -> str:
        """Reason why errors cannot be tested, with advice."""
        return f"the new rows have no labels; {self.option} names their column"

    @property
    def are_there(self) -> bool:
        """Whether there are labels."""
        return self.target is not None or self.y is not None


def monitor_table(
    promises: Promises,
    source: Any,
    labels: NewLabels,
    *,
    level: float = LEVEL,
    client: "Client | None" = None,
    on_progress: Report | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> MonitorReport:
    """Test the promises of a search on a table; see `Outcome.monitor`."""
    level = check_level(level)
    for model in promises.models.values():
        check_is_fitted(model)
    input_format = promises.input_format
    if labels.target is not None and any(map(is_regressor, promises.models.values())):
        input_format = input_format.with_numbers(labels.target)
    column = labels.groups if isinstance(labels.groups, str) else None
    others = [name for name in (labels.target, column) if name is not None]
    if labels.groups is not None and not promises.are_in_groups:
        raise ValueError(
            f"{labels.groups_option} is for a search with groups, and these bounds are "
            f"about independent rows; leave it out if the new rows are such rows."
        )
    table = open_table(
        input_format,
        source,
        tuple(others) or None,
        option="target" if column is None else "target` or `groups",
        model=next(iter(promises.models.values())),
        separator=separator,
        encoding=encoding,
    )
    context, client = _Context.of(promises, table, labels), resolve_client(client)
    notes: list[str] = []
    if labels.groups is not None:
        drawn, notes = draw_rows_of_groups(promises, table, labels, client)
        context = replace(context, drawn=drawn)
    tally: _Tally | None = None
    report = on_progress or (lambda done, total: None)
    for part in results_in_order(context, table.tasks(MonitorJob), client):
        tally = part if tally is None else tally.merge(part)
        report(tally.n_rows, table.n_rows)
    if tally is None:
        raise ValueError(f"{table.where} must have rows to be tested, got none.")
    if labels.y is not None and len(labels.y) != tally.n_rows:
        raise ValueError(
            f"`y` must have a label for each new row, got {len(labels.y):,} for "
            f"{tally.n_rows:,} rows; write None for a label that is not known."
        )
    if context.drawn is not None and len(context.drawn) != tally.n_rows:
        raise ValueError(
            f"{labels.groups_option} must have a key for each new row, got "
            f"{len(context.drawn):,} for {tally.n_rows:,} rows."
        )
    made = _read_report(promises, context, tally, level)
    return replace(made, notes=(*notes, *made.notes))


def draw_rows_of_groups(
    promises: Promises, table: TextTable | PoolTable, labels: NewLabels, client: Any
) -> tuple[Bools, list[str]]:
    """Draw one row with a label of each new group; return a mask of rows, and notes.

    Such rows are independent draws of a random row of a new group. Keys are compared
    as texts with those of the labeled groups, whose rows are no fresh draws.
    """
    keys, has_label = labels.groups, None
    if labels.y is not None:
        has_label = ~pd.isna(labels.y)
    if isinstance(keys, str) or labels.target is not None:
        parts = list(results_in_order(labels, table.tasks(KeysJob), client))
        if isinstance(keys, str):
            keys = np.concatenate([part for part, _ in parts])
        if labels.target is not None:
            has_label = np.concatenate([part for _, part in parts])
    keys = pd.Series(keys, dtype=object)
    if has_label is None:
        has_label = np.zeros(len(keys), np.bool_)
    if len(has_label) != len(keys):
        raise ValueError(
            f"{labels.groups_option} must have a key for each new row, got "
            f"{len(keys):,} for {len(has_label):,} rows."
        )
    has_key = keys.notna().to_numpy()
    texts, known = keys.map(lambda key: str(as_plain(key))), promises.group_keys
    is_known = np.zeros(len(keys), np.bool_)
    if known is not None:
        is_known = (
            has_key & texts.isin({str(as_plain(key)) for key in known}).to_numpy()
        )
    fresh = np.flatnonzero(has_label & has_key & ~is_known)
    codes, distinct = pd.factorize(texts.to_numpy()[fresh])
    drawn = np.zeros(len(keys), np.bool_)
    if len(fresh):
        drawn[fresh[RowGroups(np.asarray(distinct), codes).draw_rows(SEED)]] = True
    notes = [f"one row with a label of each of {len(distinct):,} new groups is counted"]
    if n := int(is_known.sum()):
        notes.append(f"{n:,} rows of groups that were labeled are not counted")
    if n := int((~has_key).sum()):
        notes.append(f"{n:,} rows without a key of their group are not counted")
    if known is None:
        notes.append(
            "the keys of the labeled groups are not known: a new row of such a group "
            "is no fresh draw, and would be counted as others are"
        )
    return drawn, notes


def checked_labels(y: Any) -> NDArray[Any]:
    """Return labels of new rows as one array; some may be missing."""
    check_unmasked(y)
    labels = as_array(y, "y", object)
    if labels.ndim != 1:
        raise ValueError(
            f"`y` must have a label for each new row, got shape {labels.shape}."
        )
    return labels


def check_level(level: Any) -> float:
    """Return the level of the tests, or raise if it is out of range."""
    number, least = check_probability(level, "level"), 1 / (N_PERMUTATIONS + 1)
    if not least <= number <= 0.5:
        raise ValueError(
            f"`level` must be between {least:g}, the smallest p-value that the "
            f"two-sample test can have, and 0.5, got {number:g}."
        )
    return number


def disagreement_delta(choice: Choice) -> float:
    """Return the probability that the limit of the disagreement does not hold.

    A bound of the error without queries gives as much of its delta to the pool. Other
    bounds divide theirs otherwise, so the limit is printed with its confidence.
    """
    return (1.0 - LABEL_SHARE) * choice.delta


def disagreement_limit(cube: xr.Dataset, choice: Choice) -> float | None:
    """Return the limit, from the pool, of the rate at which the deployed models differ.

    It is a statement of its own, at the level of `disagreement_delta`, which all folds
    share, since the labels choose the deployed one. None if no pool was counted.
    """
    fold = choice.certificates[ONE_FOLD].fold if ONE_FOLD in choice.certificates else 0
    if ALL_ROWS not in choice.certificates or fold is None:
        return None
    counted = (names.OUTER_DISAGREEMENTS, names.OUTER_DUPLICATE_DISAGREEMENTS)
    if any(name not in cube for name in counted):
        return None
    differ, duplicates = (cube[name].values for name in counted)
    if not np.isfinite(differ[fold]):
        return None
    rows = upper_pool_rows(
        int(cube[names.N_UNLABELED]), int(cube[names.EQUAL_ROWS]), int(duplicates[fold])
    )
    share = disagreement_delta(choice) / len(differ)
    return float(binomial_tail_inversion(int(differ[fold]), rows, delta=share))


@dataclass(frozen=True)
class _Tally:
    """Counts of new rows; those of parts add up in any order."""

    n_rows: int
    n_duplicates: int
    n_differ: Integers
    """Rows on which both models differ, then the duplicates of labeled rows in them."""
    n_labels: Integers
    """Rows with a label, then the duplicates of labeled rows in them, then those whose
    label is no class."""
    counts: Integers
    """Counts of the loss on rows with a label, by model, then those on duplicates of
    labeled rows; (2, n_models, ...)."""
    words: NDArray[np.uint64]
    """Random words of the sampled rows, the smallest ones."""
    rows: Integers
    sample: Any
    """The sampled rows in the types of the labeled ones; None if not needed."""
    unknown: Mapping[str, UnknownValues]
    """Values that no labeled row has, by column."""

    def merge(self, later: "_Tally") -> "_Tally":
        """Return the sum of both counts, and the rows with the smallest words."""
        words = np.concatenate([self.words, later.words])
        rows = np.concatenate([self.rows, later.rows])
        kept = smallest_words(words, rows, SAMPLE_ROWS)
        sample = None
        if self.sample is not None:
            sample = concatenate_rows([self.sample, later.sample])[kept]
        return _Tally(
            self.n_rows + later.n_rows,
            self.n_duplicates + later.n_duplicates,
            self.n_differ + later.n_differ,
            self.n_labels + later.n_labels,
            self.counts + later.counts,
            words[kept],
            rows[kept],
            sample,
            merge_unknown_values(self.unknown, later.unknown),
        )


@dataclass(frozen=True)
class _Context:
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
    known: KnownValues
    """Values of text columns in labeled rows."""
    of_numbers: bool = False
    """Whether models predict numbers."""
    tolerances: tuple[float, ...] = ()
    """Tolerance of each model; empty if another loss is tested."""
    drawn: Bools | None = None
    """Whether each row is counted, one of each group; None without groups."""

    @property
    def counted(self) -> str:
        """Description of the counted rows."""
        one = "" if self.drawn is None else ", one of each new group"
        return f"rows with a label{one}"

    @classmethod
    def of(
        cls, promises: Promises, table: TextTable | PoolTable, labels: NewLabels
    ) -> "_Context":
        """Return the data that tasks of a table need."""
        models, labeled = tuple(promises.models.values()), promises.labeled
        named, of_numbers = promises.loss, any(map(is_regressor, models))
        tolerances: tuple[float, ...] = ()
        if of_numbers:
            classes, loss = np.empty(0), named
            bounds = promises.choice.certificates.values()
            if isinstance(loss, ErrorQuantile | Beyond):
                tolerances = tuple(_tolerance_of(each, loss) for each in bounds)
        else:
            classes = _classes_of(promises, named or ERROR)
            loss = None if named is None else declare_losses(named, None, classes).main
        like, find = None, None
        if labeled is not None:
            like = labeled.X[:0]
            find = duplicate_finder(matching_pool(table.like, labeled), labeled)
        return cls(
            models,
            ModelRows.of(models, promises.input_format, table.where),
            classes,
            labels,
            loss,
            (loss or ERROR).statistic,
            like,
            find,
            known_values(promises.input_format.table_schema),
            of_numbers,
            tolerances,
        )

    def count(self, X: Any, rows: Integers) -> _Tally:
        """Count a block of rows with these numbers."""
        known = self._convert_rows(X)
        is_duplicate = np.zeros(len(rows), np.bool_)
        if self.find_duplicates is not None:
            is_duplicate = self.find_duplicates(known)
        given = self.model_rows.prepare(X, rows)
        predicted = [self._codes(np.asarray(m.predict(given))) for m in self.models]
        differs = predicted[0] != predicted[-1]  # nowhere where there is one model
        y: NDArray[Any] = np.zeros(len(rows), np.int64)
        has_label = np.zeros(len(rows), np.bool_)
        if (values := self._values_of_labels(X, rows)) is not None:
            y = self._numbers(values) if self.of_numbers else self._labels(values)
            has_label = np.isfinite(y) if self.of_numbers else y != NO_LABEL
        if self.drawn is not None:
            if rows[-1] >= len(self.drawn):
                raise ValueError(
                    f"{self.labels.groups_option} must have a key for each row of "
                    f"{self.model_rows.where}, got {len(self.drawn):,} for more rows."
                )
            has_label = has_label & self.drawn[rows]
        parts = has_label, has_label & is_duplicate
        n_unknown = 0 if self.of_numbers else int((y[has_label] < 0).sum())
        inside = X if known is None else known
        counts = np.stack(
            [
                np.stack(
                    [
                        self._count(place, Rows(inside[some], y[some]), each[some])
                        for place, each in enumerate(predicted)
                    ]
                )
                for some in map(np.flatnonzero, parts)
            ]
        )
        words = row_random_at(SEED, SHIFT_STREAM, rows)
        kept = smallest_words(words, rows, SAMPLE_ROWS)
        return _Tally(
            len(rows),
            int(is_duplicate.sum()),
            np.array([differs.sum(), (differs & is_duplicate).sum()]),
            np.array([*(part.sum() for part in parts), n_unknown]),
            counts,
            words[kept],
            rows[kept],
            None if known is None else known[kept],
            find_unknown_values(X.given, self.known) if isinstance(X, Frame) else {},
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
        return predicted if self.of_numbers else codes_of(predicted, self.classes)

    def _count(self, place: int, rows: Rows, predicted: NDArray[Any]) -> Integers:
        """Return the counts of one model on rows with a label."""
        if not self.tolerances:
            return np.asarray(self.statistic.count(rows, predicted), np.int64)
        residuals = absolute_residuals(np.asarray(rows.y), predicted)
        return np.asarray(np.sum(residuals > self.tolerances[place]))

    def _values_of_labels(self, X: Any, rows: Integers) -> Any:
        """Return the labels of rows, not converted; None without labels."""
        if self.labels.y is not None:
            if rows[-1] >= len(self.labels.y):
                raise ValueError(
                    f"`y` must have a label for each row of {self.model_rows.where}, "
                    f"got {len(self.labels.y):,} for more rows."
                )
            return pd.Series(self.labels.y[rows])
        return None if self.labels.target is None else X.given[self.labels.target]

    def _numbers(self, values: Any) -> Floats:
        """Return targets as numbers, NaN for a missing one."""
        try:
            return np.asarray(pd.to_numeric(values), np.float64)
        except (TypeError, ValueError) as error:
            what = "`y`" if self.labels.target is None else "`target`"
            raise ValueError(
                f"{what} must hold numbers, since the models predict some, but "
                f"{self.model_rows.where} has another value ({error}); write decimal "
                f"points, and the empty cell for a gap."
            ) from error

    def _labels(self, values: Any) -> Integers:
        """Return class codes, `NO_LABEL` for a missing label.

        A label that is no class has a code below it, and every model errs there.
        """
        places, different = pd.factorize(np.asarray(values, object))
        known = tuple(self.classes.tolist())
        labels = [
            as_label(each, known) if isinstance(each, str) else each
            for each in different.tolist()
        ]
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
        return np.asarray(codes[places])  # the last one of -1, a missing label


@dataclass(frozen=True)
class MonitorJob:
    """A part of a table, whose rows begin at a number."""

    start: int

    def run(self, context: "_Context", inputs: Inputs) -> Output:
        """Return the tally of the part."""
        parts = [
            context.count(block.X, block.rows + self.start)
            for block in read_table_part(inputs)
        ]
        return Output(reduce(_Tally.merge, parts))


@dataclass(frozen=True)
class KeysJob:
    """A part of a table, of which keys and the places of labels are read."""

    start: int

    def run(self, context: NewLabels, inputs: Inputs) -> Output:
        """Return both arrays; each is empty where it is known without the table."""
        keys: list[Any] = []
        has_label: list[Any] = []
        for block in read_table_part(inputs):
            frame = block.X.given
            if isinstance(context.groups, str):
                keys.extend(list(frame[context.groups]))
            if context.target is not None:
                has_label.extend((~pd.isna(frame[context.target])).tolist())
        found = np.empty(len(keys), object)
        found[:] = keys
        return Output((found, np.array(has_label, np.bool_)))


def _classes_of(promises: Promises, loss: Loss) -> NDArray[Any]:
    """Return all classes that models and loss know, in order."""
    of_models = [getattr(each, "classes_", None) for each in promises.models.values()]
    classes = [np.asarray(each) for each in of_models if each is not None]
    if len(classes) < len(of_models):
        labeled = promises.labeled
        if labeled is None or len(labeled.classes) < 2:
            raise ValueError(
                "the models have no attribute `classes_`, so their "
                "predictions cannot be compared with labels."
            )
        classes = [labeled.classes]
    known: NDArray[Any] = np.unique(np.concatenate(classes))
    named = [label for label in loss.named_classes(()) if label not in known.tolist()]
    return np.unique(np.concatenate([known, named])) if named else known


def _read_report(
    promises: Promises, context: _Context, tally: _Tally, level: float
) -> MonitorReport:
    """Return the tests of all promises by a tally."""
    n_labels, _, n_unknown = tally.n_labels.tolist()
    if n_labels and n_labels == n_unknown:
        what = "`y`" if context.labels.target is None else "`target`"
        shown = listed([repr(label) for label in context.classes.tolist()], 5)
        raise ValueError(
            f"{what} must hold labels of the search, but none of the {n_labels:,} "
            f"labels of {context.model_rows.where} is one of its classes, {shown}."
        )
    notes = []
    is_single = context.drawn is None
    if context.labels.are_there and n_labels < tally.n_rows and is_single:
        notes.append(f"{tally.n_rows - n_labels:,} new rows have no label")
    if n_unknown:
        notes.append(
            f"{n_unknown:,} labels are no class of the search: every model errs there"
        )
    notes += [each.line for each in tally.unknown.values()]
    if promises.labeled is None:
        notes.append(
            "the labeled rows are not known, so new rows that equal one are counted as "
            "others are"
        )
    of_rows = [
        _test_rows(promises, tally, level),
        _test_disagreement(promises, tally, level),
    ]
    of_errors = (
        _test_tolerances(promises, context, tally, level)
        if context.tolerances
        else _test_errors(promises, context, tally, level)
    )
    if promises.are_in_groups:
        # Labels of one row of each group are independent draws; all rows are none.
        of_rows = [
            replace(each, result=UNTESTED, evidence=IN_GROUPS) for each in of_rows
        ]
        if is_single:
            option = context.labels.groups_option
            why = f"{IN_GROUPS}; {option} names the column of their groups"
            of_errors = [
                replace(each, result=UNTESTED, evidence=why) for each in of_errors
            ]
    tests = [*of_rows, *of_errors]
    n_duplicates = None if promises.labeled is None else tally.n_duplicates
    return MonitorReport(level, tally.n_rows, n_duplicates, tuple(tests), tuple(notes))


def _test_rows(promises: Promises, tally: _Tally, level: float) -> PromiseTest:
    """Return the test of the new rows against the labeled ones."""
    test, labeled = PromiseTest("rows", UNTESTED, LIKE_LABELED, ""), promises.labeled
    if labeled is None:
        return replace(test, evidence=promises.why_unknown)
    if tally.n_duplicates == tally.n_rows:
        return replace(test, evidence=NO_FRESH)
    fewest = min(labeled.n_rows, tally.n_rows)
    if fewest < FEWEST_ROWS:
        which = "labeled" if fewest == labeled.n_rows else "new"
        why = f"there are {fewest} {which} rows, and it needs {FEWEST_ROWS}"
        return replace(test, evidence=why)
    found = two_sample_test(labeled.X, tally.sample, seed=SEED)
    columns = tuple(found.column_names(labeled.columns)[:SHOWN_COLUMNS])
    is_refuted = found.p_value <= level
    evidence = f"p = {found.p_value:.2g}, AUC {found.auc:.2f}"
    if is_refuted:
        kind = "" if labeled.columns else "column "
        evidence += f"; they differ most in {kind}{', '.join(columns)}"
    return replace(
        test,
        result=REFUTED if is_refuted else KEPT,
        evidence=evidence,
        n_rows=tally.n_rows,
        p_value=found.p_value,
        columns=columns,
    )


def _test_disagreement(promises: Promises, tally: _Tally, level: float) -> PromiseTest:
    """Return the test of the disagreement of both deployed models."""
    limit, what = promises.disagreement, "Both models differ on no more rows than they"
    test = PromiseTest("disagreement", UNTESTED, f"{what} did on the pool", "")
    if any(map(is_regressor, promises.models.values())):
        why = "predictions are numbers, which differ on nearly every row"
        return replace(test, evidence=why)
    if limit is None:
        why = "no second model was compared with the deployed one on a pool"
        return replace(test, evidence=why)
    # Without the last digits of the product, which would show as 99.7499% confidence.
    delta = float(f"{disagreement_delta(promises.choice):.12g}")
    promise = (
        f"Both models differ on at most {in_percent(limit)} of the rows "
        f"({confidence(delta)}% confidence)"
    )
    test = replace(test, limit=limit, promise=promise)
    if tally.n_duplicates == tally.n_rows:
        return replace(test, evidence=NO_FRESH)
    differ, duplicates = tally.n_differ.tolist()
    at_least = float(lower_rate_limits(differ, duplicates, tally.n_rows, level))
    return replace(
        test,
        result=REFUTED if at_least > limit else KEPT,
        at_least=at_least,
        n_found=differ - duplicates,
        n_rows=tally.n_rows,
        evidence=f"{differ:,} of {tally.n_rows:,} rows, at least "
        f"{floor_percent(at_least)}",
    )


def _test_errors(
    promises: Promises, context: _Context, tally: _Tally, level: float
) -> list[PromiseTest]:
    """Return the tests of the bounds of the deployed models."""
    n_labels, n_duplicates, _ = tally.n_labels.tolist()
    limits, seen = None, [nan] * len(promises.models)
    loss = context.loss
    if n_labels and isinstance(loss, RefutableLoss):
        rows = PoolCounts(*tally.counts, n_labels, n_duplicates)
        limits = loss.lower_limits(rows, level)
        seen = [loss.estimate(each) for each in _one_by_one(tally.counts[0], n_labels)]
    tests = []
    for place, (deploy, certificate) in enumerate(promises.choice.certificates.items()):
        bound, says = certificate.bound, certificate.says
        test = PromiseTest(
            f"error of {deploy}",
            UNTESTED,
            f"{says} {certificate.amount(bound)}{certificate.on_rows}, "
            f"{certificate.model}",
            "",
            bound,
        )
        why = _reason_for_no_test(certificate, loss)
        if not context.labels.are_there:
            why = why or context.labels.why_none
        elif not n_labels:
            why = why or "no new row has a label"
        elif n_duplicates == n_labels:
            why = why or NO_FRESH
        elif limits is not None and isnan(limits[place]):
            why = why or "no new row with a label counts for it"
        if why or limits is None:
            promise = test.promise
            if not certificate.certified or certificate.says_nothing:
                promise = f"{certificate.what}, {certificate.model}"
            tests.append(replace(test, evidence=why, promise=promise))
            continue
        at_least, is_cost = float(limits[place]), certificate.is_cost
        shown = certificate.about(at_least) if is_cost else floor_percent(at_least)
        tests.append(
            replace(
                test,
                result=REFUTED if at_least > bound else KEPT,
                at_least=at_least,
                n_rows=n_labels,
                evidence=f"seen {certificate.about(seen[place])}, at least {shown}, on "
                f"{n_labels:,} {context.counted}",
            )
        )
    return tests


def _tolerance_of(certificate: Certificate, loss: Loss | None) -> float:
    """Return the tolerance of a model that was certified, or declared in advance."""
    return loss.tolerance if isinstance(loss, Beyond) else certificate.bound


def _test_tolerances(
    promises: Promises, context: _Context, tally: _Tally, level: float
) -> list[PromiseTest]:
    """Return the tests of the shares of rows that are off by more than a tolerance."""
    n_labels, n_duplicates, _ = tally.n_labels.tolist()
    tests = []
    for place, (deploy, certificate) in enumerate(promises.choice.certificates.items()):
        bound, loss = certificate.bound, context.loss
        limit = loss.level if isinstance(loss, ErrorQuantile) else bound
        test = PromiseTest(
            f"error of {deploy}",
            UNTESTED,
            f"{certificate.says} {certificate.amount(bound)}{certificate.on_rows}, "
            f"{certificate.model}",
            "",
            limit,
        )
        why = ""
        if not certificate.certified or certificate.says_nothing:
            why = "no bound was certified"
        elif not isinstance(loss, ErrorQuantile | Beyond):
            why = f"no test of {shorten_text(certificate.loss)} is known"
        elif not context.labels.are_there:
            why = context.labels.why_none
        elif not n_labels:
            why = "no new row has a label"
        elif n_duplicates == n_labels:
            why = NO_FRESH
        if why:
            tests.append(replace(test, evidence=why))
            continue
        counted, stale = (int(each[place]) for each in tally.counts)
        at_least = float(lower_rate_limits(counted, stale, n_labels, level))
        seen = f"{counted:,} of {n_labels:,} {context.counted} are off by more"
        if context.drawn is None:
            seen = f"{counted:,} of {n_labels:,} rows are off by more"
        tests.append(
            replace(
                test,
                result=REFUTED if at_least > limit else KEPT,
                at_least=at_least,
                n_found=counted - stale,
                n_rows=n_labels,
                evidence=f"{seen}, at least {floor_percent(at_least)}",
            )
        )
    return tests


def _one_by_one(counts: Integers, n_rows: int) -> list[FoldCounts]:
    """Return the counts of each model."""
    return [FoldCounts(each[np.newaxis], np.array([n_rows])) for each in counts]


def _reason_for_no_test(certificate: Certificate, loss: Loss | None) -> str:
    """Return why no new rows can refute a bound; "" if some can."""
    if not certificate.certified:
        # The reason without its details, which the certificate has.
        return f"it is no guarantee: {certificate.reasons[0].partition(':')[0]}"
    if certificate.says_nothing:
        return "no bound was certified"
    if not isinstance(loss, RefutableLoss):
        return f"no test of {shorten_text(certificate.loss)} is known"
    return ""


def open_promises(
    place: str | os.PathLike[str],
    *,
    labeled: str | None = None,
    trusted: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
    groups: str | None = None,
) -> tuple[Promises, tuple[str, ...]]:
    """Open what a search in a place has promised; return it, and notes.

    `labeled` is the table of its labeled rows; None takes the one that it names. Its
    column `groups` has the key of each row's group.
    """
    choice, _ = read_choice(place)
    choice = read_labeled_choice(Place(place, name="place")) or choice
    deployed = {
        name: open_deployed(place, deploy=name, trusted=trusted)
        for name in choice.certificates
    }
    cube, inputs = open_results(place), load_inputs(place)
    input_format = next(iter(deployed.values())).input_format
    promises = Promises(
        {name: each.model for name, each in deployed.items()},
        choice,
        input_format,
        disagreement_limit(cube, choice),
    )
    location = labeled or (None if inputs is None else inputs.labeled)
    if location is None:
        why = f"the results do not name the labeled table; {NAME_LABELED}"
        return replace(promises, why_unknown=why), ()
    if labeled is None and not os.path.exists(location):
        why = f"{location!r} is not there any more; {NAME_LABELED}"
        return replace(promises, why_unknown=why), ()
    if inputs is not None:
        separator = separator or inputs.separator
        encoding = encoding or inputs.encoding
    target = None if inputs is None else inputs.target
    rows, keys = read_labeled_rows(
        location, input_format.table_schema, target, separator, encoding, groups
    )
    n_labeled = int(cube[names.N_LABELED])
    promises = replace(promises, labeled=rows, group_keys=keys)
    if rows.n_rows == n_labeled:
        return promises, ()
    note = (
        f"{location!r} has {rows.n_rows:,} rows with a label, and the search had "
        f"{n_labeled:,}: it is another table, or was changed"
    )
    return promises, (note,)


def read_labeled_rows(
    location: str,
    schema: TableSchema | None,
    target: str | None,
    separator: str | None,
    encoding: str | None,
    groups: str | None = None,
) -> tuple[LabeledRows, NDArray[Any] | None]:
    """Read the rows with a label of a table, in the kinds that the models learned.

    Return the keys of their groups, too; None where no column of a table has them.
    """
    read, keys = partial(read_table, separator=separator, encoding=encoding), None
    if schema is None or schema.target is None:
        table = read(location, target=target)
        labels = table.y
    else:
        others = (schema.target, *([] if groups is None else [groups]))
        table = read(location, like=replace(schema, ids=others))
        labels = None if table.ids is None else table.ids[schema.target].to_numpy()
        if groups is not None and table.ids is not None:
            keys = table.ids[groups].to_numpy()
    X = table.X
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))
    if labels is not None and labels.ndim == 1:
        X = take_rows(X, np.flatnonzero(~pd.isna(labels)))
        keys = None if keys is None else keys[~pd.isna(labels)]
    return seen_rows(X, repr(location)), keys
