"""Predictions of a deployed model for every row of a table, in the table's order.

Labels are those of `predict`, which the certificate is about. `deployed_model` has the
model and the format of its rows, `table_rows` reads the table.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.ensemble import HistGradientBoostingClassifier as Boosting
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from dsel.arrays import Estimator, Features, Floats, Integers
from dsel.cards import ShownRow
from dsel.checks import listing
from dsel.data.frames import Frame, take_rows
from dsel.data.labeled import codes_of
from dsel.data.text import PLAIN_DIALECT, Dialect
from dsel.data.unknown_values import (
    KnownValues,
    UnknownValues,
    find_unknown_values,
    known_values,
    merge_unknown_values,
    select_unexpected_values,
)
from dsel.errors import explain_interrupt
from dsel.families.estimator_kinds import is_classifier
from dsel.families.predictions import flat_predictions, predict_numbers
from dsel.files import check_new_file
from dsel.option_values import ALL_ROWS
from dsel.results.certificate import NOTED_DUPLICATES, Certificate
from dsel.results.prediction_files import ROW, Append, predictions_file
from dsel.results.renderings import Shown
from dsel.results.row_hashes import RowHashes, hash_keys
from dsel.runtime.clients import resolve_client
from dsel.runtime.progress import OnProgress
from dsel.runtime.tasks import Inputs, Output
from dsel.search.outcomes.deployed_model import Deployed, ModelRows
from dsel.search.outcomes.intervals import Tolerance
from dsel.search.outcomes.prediction_summary import (
    LABEL,
    ClassSummary,
    NumberSummary,
    merge_summaries,
    summarize,
)
from dsel.search.outcomes.table_rows import open_table, read_table_slice
from dsel.typing import PathLike

if TYPE_CHECKING:
    from distributed import Client


class PredictedSlice(NamedTuple):
    """Predictions of some rows, and what was found about them."""

    frame: pd.DataFrame
    unknown: Mapping[str, UnknownValues]
    """Unknown values by column."""
    n_labeled: int
    """Rows that equal a labeled one."""
    n_of_known_groups: int
    """Rows of a group of which rows were labeled."""
    summary: ClassSummary | NumberSummary | None
    """What was predicted, in short; None without rows."""


PREDICTION: Final = "prediction"
ENDS: Final = ("lower", "upper")
"""Columns for the interval of a regressor whose tolerance is certified."""
PROBABILITY: Final = "probability_"
"""Prefix of the names of columns of probabilities; the class follows."""
MOST_UNLIKE: Final = 0.02
"""Fraction of rows with values that no labeled row has, from which a bound says so."""
NEAR_PROBABILITIES: Final = 1e-9
"""Probabilities that differ by less may have another order than the scores."""
BY_LARGEST: Final = (
    Boosting,
    ExtraTreesClassifier,
    LogisticRegression,
    RandomForestClassifier,
)
"""Classifiers whose label is the class of the largest probability. `predict` would
compute all of it again, so that it is called only where two are nearly as large."""


@dataclass(frozen=True, repr=False)
class PredictedTable(Shown):
    """A file of predictions, or predictions in memory."""

    path: Path | None
    """The file; None if the predictions are in `frame`."""
    n_rows: int
    columns: tuple[str, ...]
    """Its columns."""
    unused: tuple[str, ...]
    """Columns of the table that neither the model nor the file has."""
    unknown: tuple[UnknownValues, ...] = ()
    """Values that no labeled row has, by column."""
    dialect: Dialect = PLAIN_DIALECT
    """Dialect of a text file: that of the table, if it is a text file, too."""
    taken_by_position: str = ""
    """Warning if the model knows no names of columns, but the table has some."""
    file_notes: tuple[str, ...] = ()
    """Notes about lines and columns of a text file that are left out."""
    certificate: Certificate | None = None
    """Certificate of the model; None for a model of `save_model`."""
    frame: pd.DataFrame | None = None
    """The predictions, if no file was written."""
    n_labeled: int = 0
    """Rows that equal labeled ones; 0 where this is not known."""
    n_of_known_groups: int = 0
    """Rows of groups of which rows were labeled; 0 where this is not known."""
    summary: ClassSummary | NumberSummary | None = None
    """What was predicted, in short; None without rows."""

    @property
    def is_certified(self) -> bool:
        """Whether the error of the model is certified."""
        return self.certificate is not None and self.certificate.certified

    @property
    def n_unlike(self) -> int:
        """Number of rows, at least, that hold values which no labeled row has."""
        # A row may be counted for several columns, so the largest count is a lower
        # limit.
        return max((v.n_rows + v.n_gaps for v in self.unknown), default=0)

    @property
    def are_mostly_unlike(self) -> bool:
        """Whether most rows hold values that no labeled row has."""
        return 2 * self.n_unlike > self.n_rows

    @property
    def says_nothing(self) -> bool:
        """Whether a search made the model, and no bound is about most of these rows."""
        if self.certificate is None:
            return False
        is_vacuous = not self.is_certified or self.certificate.says_nothing
        return is_vacuous or self.are_mostly_unlike

    @property
    def note_on_bound(self) -> str:
        """Statement that the bound is not about many of these rows, or ""."""
        n_unlike = self.n_unlike
        if not self.is_certified or n_unlike <= MOST_UNLIKE * self.n_rows:
            return ""
        least = "at least " if len(self.unknown) > 1 else ""
        return (
            f"The bound says nothing about {least}{n_unlike:,} of these "
            f"{self.n_rows:,} rows: they hold values that no labeled row has"
        )

    @property
    def text_on_bound(self) -> str:
        """The bound of the model, in one line; "" if it is not about most rows."""
        # Next to the note on these rows the bound would read as a promise for them.
        if self.is_certified and self.are_mostly_unlike:
            return ""
        if self.certificate is None:
            return (
                "No error bound: the model was stored by `save_model`, not by a search"
            )
        return self.certificate.headline()

    def texts_on_file(self, path: PathLike, target: str | None = None) -> list[str]:
        """Return what the file has, with the path as its reader knows it.

        `target` is the name of what is predicted, if it is known.
        """
        names = [name or "names of rows" for name in self.columns]
        # One name for all targets, so that a script need not know them.
        if target not in (None, LABEL):
            names = [
                f"{LABEL} (predicted {target})" if n == LABEL else n for n in names
            ]
        columns = listing(names, 10)
        form = f" ({self.dialect.words})" if self.dialect.words else ""
        texts = [f"Wrote {self.n_rows:,} rows to {path}{form}: {columns}"]
        if {*ENDS} <= {*self.columns} and self.certificate is not None:
            what = "the prediction less and plus the bound above"
            if self.certificate.model_name == ALL_ROWS:
                what = "farther from the prediction where both models are farther apart"
            fraction = self.certificate.fraction
            between = f"at least {100 * fraction:.6g}% of targets lie between them"
            if self.certificate.n_groups:
                between += ", for a random row of each new group"
            if self.note_on_bound:  # a promise for these rows would contradict it
                n_like = self.n_rows - self.n_unlike
                others = f"{n_like:,} rows" if len(self.unknown) == 1 else "rows"
                between = f"of the other {others} {between}"
            texts.append(
                f"lower and upper are {what}{'' if isnan(fraction) else f'; {between}'}"
            )
        return texts

    def shown_rows(self) -> list[ShownRow]:
        """Return the bound, what the file has, and what may have changed it."""
        texts = []
        if self.unused:
            texts.append(f"Not used of the table: {listing(self.unused, 10)}")
        if self.path is not None:
            texts += self.texts_on_file(self.path)
        named = [
            ("", self.note_on_bound),
            ("", self.text_on_bound),
            *self.summary_rows,
            *(("", text) for text in texts),
            *(("Note", note) for note in self.notes),
        ]
        return [(name, text) for name, text in named if text]

    @property
    def summary_rows(self) -> list[ShownRow]:
        """What was predicted, in one row; none where the table has no rows."""
        return [] if self.summary is None else [("Predicted", self.summary.line)]

    @property
    def notes(self) -> list[str]:
        """Sentences, without their periods, about what may have changed predictions."""
        by_place = filter(None, [self.taken_by_position.rstrip(".")])
        labeled = []
        if self.n_labeled > NOTED_DUPLICATES * self.n_rows:
            labeled = [
                f"{self.n_labeled:,} of these {self.n_rows:,} rows equal labeled rows "
                f"of the search, and the bound is about new rows"
            ]
        if n := self.n_of_known_groups:
            labeled.append(
                f"{n:,} of these {self.n_rows:,} rows are of groups that were labeled, "
                f"and the bound is about new groups"
            )
        lines = (values.line for values in self.unknown)
        return [*labeled, *self.file_notes, *by_place, *lines]


def predict_table(
    deployed: Deployed,
    source: Any,
    out: Any,
    *,
    id: Sequence[str] | None = None,
    client: "Client | None" = None,
    on_progress: OnProgress | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> PredictedTable:
    """Predict every row of a table and write a file; see `Outcome.predict_table`.

    With `out` None the predictions are kept in `frame` instead.
    """
    path = None if out is None else check_new_file(out)
    model = deployed.model
    ids = (id,) if isinstance(id, str) else None if id is None else tuple(id)
    show_progress = on_progress or (lambda done, total: None)
    table = open_table(
        deployed.input_format,
        source,
        ids,
        model=model,
        separator=separator,
        encoding=encoding,
    )
    unused, copied, column = table.unused, table.ids, deployed.group_column
    if deployed.group_hashes is None or column not in (*unused, *copied):
        column = None
    elif column not in copied:  # it is read, and not copied
        table = open_table(
            deployed.input_format,
            source,
            (*copied, column),
            model=model,
            separator=separator,
            encoding=encoding,
        )
    rows = ModelRows.of([model], deployed.input_format, table.where)
    known = known_values(deployed.input_format.table_schema)
    predictor = _BlockPredictor(
        model,
        rows,
        copied,
        deployed.tolerance,
        known,
        deployed.labeled_hashes,
        deployed.group_hashes,
        column,
    )
    client = resolve_client(client)
    done = n_labeled = n_of_known_groups = 0
    unknown: dict[str, UnknownValues] = {}
    summary: Any = None
    records = table.run(predictor, PredictSlice(), client)
    # A mistake in all rows raises in the first slice, before a file is created.
    first = next(records, None)
    head = predictor.head() if first is None else first.frame.iloc[:0]
    names_of_rows = None if path is None else _index_columns(source, copied, head)
    head = _name_rows(head, names_of_rows, 0)
    blocks = [head]
    with ExitStack() as stack:
        append: Append = blocks.append
        if path is not None:
            message = (
                f"Nothing of the interrupted call is kept: there is no file {path}."
            )
            stack.enter_context(explain_interrupt(message))
            rounded = _probability_names(_classes_of(model))
            file = predictions_file(path, head, table.dialect, rounded=rounded)
            append = stack.enter_context(file)
        while first is not None:
            append(_name_rows(first.frame, names_of_rows, done))
            done += len(first.frame)
            summary = merge_summaries(summary, first.summary)
            unknown = merge_unknown_values(unknown, first.unknown)
            n_labeled += first.n_labeled
            n_of_known_groups += first.n_of_known_groups
            show_progress(done, table.n_rows)
            first = next(records, None)
    frame = None
    if path is None:
        frame = pd.concat(blocks[1:] or blocks, ignore_index=True)
        if isinstance(source, pd.DataFrame):  # so that they are joined with its columns
            frame.index = source.index
    is_csv = path is not None and path.suffix.lower() == ".csv"
    return PredictedTable(
        path,
        done,
        tuple(head.columns),
        unused,
        tuple(select_unexpected_values(unknown, done)),
        table.dialect if is_csv else PLAIN_DIALECT,
        table.taken_by_position,
        table.file_notes,
        deployed.certificate,
        frame,
        n_labeled,
        n_of_known_groups,
        summary,
    )


def _index_columns(
    source: Any, ids: Sequence[str], head: pd.DataFrame
) -> pd.DataFrame | None:
    """Return the index of a pandas frame as columns of a file of predictions.

    None if the file has other ids, or the index is the default one: then the file has
    the numbers of the rows. `head` has the columns of the predictions.
    """
    if ids or not isinstance(source, pd.DataFrame):
        return None
    index = source.index
    if index.equals(pd.RangeIndex(len(source))):
        return None
    columns = index.to_frame().reset_index(drop=True)
    unnamed = ["index"] if index.nlevels == 1 else [f"level_{n}" for n in range(9)]
    names = [
        new if name is None else str(name)
        for name, new in zip(index.names, unnamed, strict=False)
    ]
    if clashing := [name for name in names if name in head.columns and name != ROW]:
        raise ValueError(
            f"`source` has an index named {clashing[0]!r}, as a column of predictions "
            f"is called; rename it by source.rename_axis('id')."
        )
    return columns.set_axis(names, axis=1)


def _name_rows(
    frame: pd.DataFrame, names: pd.DataFrame | None, start: int
) -> pd.DataFrame:
    """Return predictions with the names of rows, from `start` on, for their numbers."""
    if names is None:
        return frame
    part = names.iloc[start : start + len(frame)].reset_index(drop=True)
    predicted = frame.drop(columns=ROW).reset_index(drop=True)
    return pd.concat([part, predicted], axis=1)


@dataclass(frozen=True)
class _BlockPredictor:
    """Predicts blocks of rows, with all that every task needs for it."""

    model: Any
    rows: ModelRows
    ids: tuple[str, ...]
    tolerance: Tolerance | None = None
    """Certified tolerance of a regressor; None if there is none."""
    known: KnownValues = field(default_factory=dict)
    """Values of text columns in labeled rows."""
    labeled_hashes: RowHashes | None = None
    group_hashes: NDArray[np.uint64] | None = None
    group_column: str | None = None
    """Column of a block with the keys of groups; None if it has none."""

    def predict(self, X: Any, row_numbers: Integers) -> PredictedSlice:
        """Return predictions for a block, and what was found about its rows.

        `row_numbers` are those of the rows.
        """
        carried: dict[str, Any] = {ROW: row_numbers}
        if isinstance(X, Frame) and self.ids:
            carried = {name: X.given[name].array for name in self.ids}
        prepared = self.rows.prepare(X, row_numbers)
        if self.tolerance is None:
            predicted = _predictions(self.model, prepared)
        else:
            numbers = predict_numbers(self.model, prepared)
            ends = self.tolerance.interval(prepared, numbers)
            predicted = {PREDICTION: numbers} | dict(zip(ENDS, ends.T, strict=True))
        if clashing := [name for name in carried if name in predicted]:
            raise ValueError(
                f"`id` names {clashing[0]!r}, as a column of predictions is called; "
                f"rename it in the table."
            )
        is_frame = isinstance(X, Frame)
        unknown = find_unknown_values(X.given, self.known) if is_frame else {}
        hashes = self.labeled_hashes
        n_labeled = 0 if hashes is None else int(hashes.find(X).sum())
        n_of_groups = 0
        if is_frame and self.group_hashes is not None and self.group_column is not None:
            keys = hash_keys(X.given[self.group_column].dropna())
            n_of_groups = int(np.isin(keys, self.group_hashes).sum())
        frame = pd.DataFrame({**carried, **predicted})
        name = next(name for name in (LABEL, PREDICTION) if name in predicted)
        summary = summarize(pd.Series(predicted[name], name=name), row_numbers)
        return PredictedSlice(frame, unknown, n_labeled, n_of_groups, summary)

    def head(self) -> pd.DataFrame:
        """Return the columns of a table without rows."""
        carried: dict[str, Any] = {name: [] for name in self.ids or (ROW,)}
        classes = _classes_of(self.model)
        predicted = (
            {LABEL: classes[:0]} if classes is not None else {PREDICTION: np.empty(0)}
        )
        if self.tolerance is not None:
            predicted = {name: np.empty(0) for name in (PREDICTION, *ENDS)}
        return pd.DataFrame({**carried, **predicted})


def _predictions(model: Any, X: Features) -> dict[str, Any]:
    """Return labels and probabilities by the names of their columns."""
    # Both need what the steps before the last one make of the rows.
    if type(model) is Pipeline and len(model) > 1:
        X = model[:-1].transform(X)
        model = model[-1]
    classes = _classes_of(model)
    if classes is None:
        return {PREDICTION: _check_predictions(model.predict(X), X.shape[0])}
    probabilities = None
    if callable(getattr(model, "predict_proba", None)):
        probabilities = np.asarray(model.predict_proba(X))
    by_largest = type(model) in BY_LARGEST and len(classes) > 1
    if probabilities is None or not by_largest:
        labels = _check_predictions(model.predict(X), X.shape[0])
    else:
        codes, margins = _find_most_probable(probabilities)
        near = np.flatnonzero(margins < NEAR_PROBABILITIES)
        if len(near):
            codes[near] = codes_of(model.predict(take_rows(X, near)), classes)
        # One text of each class instead of one of each row.
        labels = pd.Series(classes).array.take(codes)
    columns = {LABEL: labels}
    if probabilities is not None:
        columns |= dict(zip(_probability_names(classes), probabilities.T, strict=True))
    return columns


def _probability_names(classes: NDArray[Any] | None) -> list[str]:
    """Return the columns of the probabilities of classes."""
    return [
        f"{PROBABILITY}{name}" for name in ([] if classes is None else classes.tolist())
    ]


def _find_most_probable(
    probabilities: Floats,
) -> tuple[Integers, Floats]:
    """Return the code of the most probable class, and its lead over the next one."""
    if probabilities.shape[1] == 2:  # several times as fast as the lines below
        leads = probabilities[:, 1] - probabilities[:, 0]
        return (leads > 0.0).astype(np.int64), np.abs(leads)
    second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
    return np.argmax(probabilities, axis=1), first - second


def _check_predictions(predicted: Any, n_rows: int) -> NDArray[Any]:
    """Return what a model predicted as an array with one value for each row."""
    predictions = flat_predictions(predicted)
    if predictions.shape != (n_rows,):
        raise ValueError(
            f"`predict` must return a label for each row, got the shape "
            f"{predictions.shape} for {n_rows} rows; predict by the model itself."
        )
    return predictions


def _classes_of(model: Estimator) -> NDArray[Any] | None:
    """Return the classes of a classifier; None for other models."""
    classes = getattr(model, "classes_", None)
    return None if classes is None or not is_classifier(model) else np.asarray(classes)


@dataclass(frozen=True)
class PredictSlice:
    """Predicts all rows of a slice of a table."""

    def run(
        self, predictor: "_BlockPredictor", inputs: Inputs
    ) -> Output[PredictedSlice]:
        """Return predictions of all rows in their order."""
        blocks = [
            predictor.predict(block.X, block.row_numbers)
            for block in read_table_slice(inputs, allow_nan=None)
        ]
        frames, unknown, n_labeled, n_of_groups, summaries = zip(*blocks, strict=True)
        frame = pd.concat(frames) if len(frames) > 1 else frames[0]
        merged = reduce(merge_unknown_values, unknown)
        summary = reduce(merge_summaries, summaries)
        counts = sum(n_labeled), sum(n_of_groups)
        return Output(PredictedSlice(frame, merged, *counts, summary))
