"""Predictions of a deployed model for every row of a table, in the table's order.

Rows are read as `dsel select` reads a pool: this process reads text files in order, by
the schema of the labeled table, and tasks read all other files, block by block. Labels
are those of `predict`, which the certificate is about.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.ensemble import HistGradientBoostingClassifier as Boosting
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import Features
from dsel.candidates import takes_nan
from dsel.checks import check_columns, nothing_at
from dsel.data.frames import (
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    Frame,
    check_finite,
    frame_of,
    read_only_rows,
    take_rows,
)
from dsel.data.kinds import Kind
from dsel.data.labeled import LabeledRows, by_position, codes_of, with_columns
from dsel.data.like import convert_pool
from dsel.data.open import open_pool
from dsel.data.pool import Block, Pool, PoolSlice, read_blocks, send_values
from dsel.data.schema import ColumnSchema, TableSchema, schema_of, with_categories
from dsel.data.table_request import count_row_names
from dsel.data.text import PLAIN_DIALECT, Dialect
from dsel.data.text_tables import (
    TextRows,
    TextSource,
    decimal_marks,
    is_text,
    read_ahead,
    text_source,
)
from dsel.data.unknown_values import (
    KnownValues,
    UnknownValues,
    find_unknown_values,
    known_values,
    merge_unknown_values,
)
from dsel.errors import explaining_interrupt
from dsel.families.answers import predict_numbers
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results.certificate import Certificate
from dsel.results.choice import Choice
from dsel.results.models import open_model
from dsel.results.place import Place, check_has_results, read_outcome
from dsel.results.predictions import ROW, check_new_file, predictions_file
from dsel.results.query_files import read_labeled_choice
from dsel.results.run_store import load_schema
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task, Work
from dsel.search.outcomes.intervals import Tolerance
from dsel.typing import Model, Options, PoolLike

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")
PredictedPart = tuple[pd.DataFrame, Mapping[str, UnknownValues]]
"""Predictions, and unknown values by column."""

LABEL: Final = "label"
VALUE: Final = "value"
PREDICTION: Final = "prediction"
ENDS: Final = ("lower", "upper")
"""Columns for the interval of a regressor whose tolerance is certified."""
PROBABILITY: Final = "probability_"
"""Prefix of the names of columns of probabilities; the class follows."""
BLOCK_ROWS: Final = 2**16
"""Most rows of a task, which a model predicts at once."""
BLOCK_CELLS: Final = 2**22
"""Approximate number of values of a task."""
MOST_UNLIKE: Final = 0.02
"""Share of rows with values that no labeled row has, from which a bound says so."""
NEAR_PROBABILITIES: Final = 1e-9
"""Probabilities that differ by less may be in another order than the scores."""
BY_LARGEST: Final = (
    Boosting,
    ExtraTreesClassifier,
    LogisticRegression,
    RandomForestClassifier,
)
"""Classifiers whose label is the class of the largest probability. `predict` would
compute all of it again, so that it is called only where two are nearly as large."""

Report = Callable[[int, int | None], None]


@dataclass(frozen=True)
class InputFormat:
    """Format of the rows that a model gets."""

    columns: tuple[str, ...] | None = None
    """Names of the features in their order; None without names."""
    library: str | None = None
    """Library of its data frames, such as ``pandas``; None if it gets arrays."""
    schema: str | None = None
    """Kinds of the columns, JSON of a `TableSchema`; None for arrays without names."""

    @classmethod
    def of(cls, labeled: LabeledRows) -> "InputFormat":
        """Return the format of labeled rows."""
        X, names = labeled.X, labeled.columns
        if names is None:
            return cls()
        library, frame = None, pd.DataFrame(columns=list(names), dtype=np.float64)
        if isinstance(X, Frame):
            frame = X.given
            library = type(X.schema.empty).__module__.partition(".")[0]
        return cls(names, library, schema_of(frame).to_json())

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "InputFormat":
        """Return the format of a record, which its `vars` made."""
        names = record["columns"]
        columns = None if names is None else tuple(names)
        return cls(columns, record["library"], record["schema"])

    def with_numbers(self, name: str) -> "InputFormat":
        """Return the format with one more column of numbers."""
        schema = self.table_schema
        if schema is None or name in schema.names:
            return self
        amounts = schema.target_amounts if name == schema.target else None
        columns = (*schema.columns, ColumnSchema(name, Kind.NUMBERS, amounts=amounts))
        return replace(self, schema=replace(schema, columns=columns).to_json())

    @property
    def table_schema(self) -> TableSchema | None:
        """Kinds of the columns; None without names."""
        return None if self.schema is None else TableSchema.from_json(self.schema)


@dataclass(frozen=True)
class Deployed:
    """A stored model, with its certificate and the format of its rows."""

    model: Any
    certificate: Certificate | None
    """Its certificate; None for a model of `save_model`."""
    input_format: InputFormat
    tolerance: Tolerance | None = None
    """Certified tolerance of a regressor; None if there is none."""


@dataclass(frozen=True)
class PredictedTable:
    """A file of predictions."""

    path: Path
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
    """What is said where the model knows no names of columns, but the table does."""
    file_notes: tuple[str, ...] = ()
    """Notes about lines and columns of a text file that are left out."""

    @property
    def note_on_bound(self) -> str:
        """Statement that the bound is not about many of these rows, or ""."""
        # Rows may be in several columns' counts, so the largest count is a lower limit.
        n_unlike = max((each.n_rows + each.n_gaps for each in self.unknown), default=0)
        if n_unlike <= MOST_UNLIKE * self.n_rows:
            return ""
        least = "at least " * (len(self.unknown) > 1)
        return (
            f"This bound is not about rows such as {least}{n_unlike:,} of these "
            f"{self.n_rows:,}: they hold values that no labeled row has"
        )

    @property
    def notes(self) -> list[str]:
        """What may have changed predictions, in sentences without their periods."""
        found = [self.taken_by_position.rstrip(".")] if self.taken_by_position else []
        return [*self.file_notes, *found, *(each.line for each in self.unknown)]


def open_deployed_model(
    place: str | os.PathLike[str],
    *,
    deploy: str | None = None,
    trusted: Sequence[str] = (),
    storage_options: Options | None = None,
) -> Deployed:
    """Open a stored model, with its certificate and the format of its rows.

    Parameters are those of `open_model`, whose `name` is `deploy` here.
    """
    options = {"storage_options": storage_options}
    model = open_model(place, name=deploy, trusted=trusted, **options)
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    outcome = read_outcome(where) or {"said": {}}
    said, certificate, tolerance = outcome["said"], None, None
    if "choice" in said:
        # Bounds that labels of queried rows have made smaller are final, too.
        choice = read_labeled_choice(where) or Choice.from_json(said["choice"])
        wanted = deploy or choice.deploy
        certificate = choice.certificates[wanted]
        if certificate.is_tolerance and certificate.certified:
            other = None
            if wanted == ALL_ROWS:
                other = open_model(place, name=ONE_FOLD, trusted=trusted, **options)
            tolerance = Tolerance(choice.certificates[ONE_FOLD].bound, other)
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else tuple(map(str, names))
    other = InputFormat(columns, None if names is None else "pandas")
    return Deployed(
        model, certificate, read_input_format(place, said, other, **options), tolerance
    )


def read_input_format(
    place: str | os.PathLike[str],
    said: Mapping[str, Any],
    other: InputFormat,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> InputFormat:
    """Return how the models of an outcome get their rows.

    `said` is its record; `other` is the format where that does not say it, as of dsel
    0.2 or of `save_model`.
    """
    input_format = other
    if "input_format" in said:
        input_format = InputFormat.from_record(said["input_format"])
    # The schema of a file also has its words for missing values.
    schema = load_schema(place, storage_options=storage_options)
    if schema is not None:
        # The file may also have rows without a label.
        of_labeled, of_file = input_format.table_schema, TableSchema.from_json(schema)
        if of_labeled is not None:
            of_file = with_categories(of_file, of_labeled)
        input_format = replace(input_format, schema=of_file.to_json())
    return input_format


def predict_table(
    deployed: Deployed,
    source: Any,
    out: Any,
    *,
    id: Sequence[str] | None = None,
    client: "Client | None" = None,
    on_progress: Report | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> PredictedTable:
    """Predict every row of a table and write a file; see `Outcome.predict_table`."""
    path, model = check_new_file(out), deployed.model
    check_is_fitted(model)
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
    rows = ModelRows.of([model], deployed.input_format, table.where)
    known = known_values(deployed.input_format.table_schema)
    context = _Context(model, rows, table.ids, deployed.tolerance, known)
    client, done = resolve_client(client), 0
    unknown: dict[str, UnknownValues] = {}
    records = table.run(context, PredictPart(), client)
    # A mistake in all rows raises in the first part, before a file is created.
    first = next(records, None)
    head = context.head() if first is None else first[0].iloc[:0]
    rounded = _probability_names(_classes_of(model))
    nothing = f"Nothing of the interrupted call is kept: there is no file {path}."
    with (
        explaining_interrupt(nothing),
        predictions_file(path, head, table.dialect, rounded=rounded) as append,
    ):
        while first is not None:
            frame, more = first
            append(frame)
            done += len(frame)
            unknown = merge_unknown_values(unknown, more)
            show_progress(done, table.n_rows)
            first = next(records, None)
    return PredictedTable(
        path,
        done,
        tuple(head.columns),
        table.unused,
        tuple(unknown.values()),
        table.dialect if path.suffix.lower() == ".csv" else PLAIN_DIALECT,
        table.taken_by_position,
        table.file_notes,
    )


@dataclass(frozen=True)
class ModelRows:
    """Conversion of blocks of a table to the rows that models get."""

    input_format: InputFormat
    where: str
    """Name of the table in messages."""
    allow_nan: bool

    @classmethod
    def of(
        cls, models: Sequence[Any], input_format: InputFormat, where: str
    ) -> "ModelRows":
        """Return the conversion for models that were fitted to the same rows."""
        inner = [getattr(model, "best_estimator_", model) for model in models]
        return cls(input_format, where, takes_nan(inner))

    def prepare(self, X: Features, rows: NDArray[np.int64]) -> Any:
        """Return a block with these row numbers as models get it: read-only.

        Raises ValueError if a number is infinite, or missing and the models refuse it.
        """
        names, checked = self.input_format.columns, X
        if isinstance(X, Frame):
            checked = X if names is None else _select(X, names)
            X = checked.given
        X = self._rows_of_model(X)
        if isinstance(X, np.ndarray) and isinstance(checked, Frame):
            checked = X  # as the model gets it, with truth values as numbers
        check_finite(checked, self.where, rows, names, self.allow_nan)
        return read_only_rows(X)

    def numbers(self, X: Features) -> Any:
        """Return a block of numbers as an array, or CSR, of the models' columns."""
        if isinstance(X, Frame):
            names = self.input_format.columns
            X = X.given if names is None else X.given[list(names)]
        if not isinstance(X, pd.DataFrame):
            return X
        return np.ascontiguousarray(X.to_numpy(dtype=np.float64, na_value=np.nan))

    def _rows_of_model(self, X: Any) -> Any:
        """Return rows for the model: an array, or a frame of its library."""
        library, names = self.input_format.library, self.input_format.columns
        if library is None:
            return self.numbers(X)
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(X, columns=list(names or ()), copy=False)
        if library == "pandas":
            return X
        frame = nw.from_native(X.reset_index(drop=True), eager_only=True)
        return frame.to_polars() if library == "polars" else frame.to_arrow()


def _select(X: Frame, names: Sequence[str]) -> Frame:
    """Return a block with these columns, in this order."""
    given = X.given
    if list(given.columns) != list(names):
        given = given[list(names)]
    # The types are known, and finding them again would read all texts.
    kinds = {column.name: column for column in X.schema.columns}
    columns = tuple(kinds[name] for name in names)
    return Frame(given, replace(X.schema, columns=columns))


@dataclass(frozen=True)
class _Context:
    """Data that every task needs."""

    model: Any
    rows: ModelRows
    ids: tuple[str, ...]
    tolerance: Tolerance | None = None
    """Certified tolerance of a regressor; None if there is none."""
    known: KnownValues = field(default_factory=dict)
    """Values of text columns in labeled rows."""

    def predict(self, X: Any, rows: NDArray[np.int64]) -> PredictedPart:
        """Return predictions for a block, and unknown values by column.

        `rows` are row numbers; unknown values are those that no labeled row has.
        """
        carried: dict[str, Any] = {ROW: rows}
        if isinstance(X, Frame) and self.ids:
            carried = {name: X.given[name].array for name in self.ids}
        prepared = self.rows.prepare(X, rows)
        if self.tolerance is None:
            predicted = _predictions(self.model, prepared)
        else:
            values = predict_numbers(self.model, prepared)
            ends = self.tolerance.interval(prepared, values)
            predicted = {PREDICTION: values} | dict(zip(ENDS, ends.T, strict=True))
        if clashing := [name for name in carried if name in predicted]:
            raise ValueError(
                f"`id` names {clashing[0]!r}, as a column of predictions is called; "
                f"rename it in the table."
            )
        is_frame = isinstance(X, Frame)
        unknown = find_unknown_values(X.given, self.known) if is_frame else {}
        return pd.DataFrame({**carried, **predicted}), unknown

    def head(self) -> pd.DataFrame:
        """Return the columns of a table without rows."""
        carried: dict[str, Any] = {name: [] for name in self.ids or (ROW,)}
        classes = _classes_of(self.model)
        own = {VALUE: np.empty(0)} if classes is None else {LABEL: classes[:0]}
        if self.tolerance is not None:
            own = {name: np.empty(0) for name in (PREDICTION, *ENDS)}
        return pd.DataFrame({**carried, **own})


def _predictions(model: Any, X: Features) -> dict[str, Any]:
    """Return labels and probabilities by the names of their columns."""
    # Both need what the steps before the last one make of the rows.
    if type(model) is Pipeline and len(model) > 1:
        X, model = model[:-1].transform(X), model[-1]
    classes = _classes_of(model)
    if classes is None:
        return {VALUE: _one_each(model.predict(X), X.shape[0])}
    probabilities = None
    if callable(getattr(model, "predict_proba", None)):
        probabilities = np.asarray(model.predict_proba(X))
    by_largest = type(model) in BY_LARGEST and len(classes) > 1
    if probabilities is None or not by_largest:
        labels = _one_each(model.predict(X), X.shape[0])
    else:
        codes, margins = _largest(probabilities)
        near = np.flatnonzero(margins < NEAR_PROBABILITIES)
        if len(near):
            codes[near] = codes_of(model.predict(take_rows(X, near)), classes)
        # One text of each class instead of one of each row.
        labels = pd.Series(classes).take(codes).array
    found = {LABEL: labels}
    if probabilities is not None:
        columns = zip(_probability_names(classes), probabilities.T, strict=True)
        found |= dict(columns)
    return found


def _probability_names(classes: NDArray[Any] | None) -> list[str]:
    """Return the columns of the probabilities of classes."""
    return [
        f"{PROBABILITY}{name}" for name in ([] if classes is None else classes.tolist())
    ]


def _largest(
    probabilities: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the code of the most probable class, and its lead over the next one."""
    if probabilities.shape[1] == 2:  # several times as fast as what follows
        leads = probabilities[:, 1] - probabilities[:, 0]
        return (leads > 0.0).astype(np.int64), np.abs(leads)
    second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
    return np.argmax(probabilities, axis=1), first - second


def _one_each(predicted: Any, n_rows: int) -> NDArray[Any]:
    values = np.asarray(predicted)
    if values.shape != (n_rows,):
        raise ValueError(
            f"`predict` must return a label for each row, got the shape {values.shape} "
            f"for {n_rows} rows; predict by the model itself."
        )
    return values


def _classes_of(model: Model) -> NDArray[Any] | None:
    """Return the classes of a classifier; None for other models."""
    classes = getattr(model, "classes_", None)
    return None if classes is None or not is_classifier(model) else np.asarray(classes)


def open_table(
    input_format: InputFormat,
    source: Any,
    ids: tuple[str, ...] | None,
    *,
    model: Any,
    option: str = "id",
    separator: str | None = None,
    encoding: str | None = None,
) -> "TextTable | PoolRows":
    """Open a table for predictions by one model, or by several with the same columns.

    `ids` are columns that no model uses; errors name their argument `option`.
    """
    is_file = isinstance(source, (str, os.PathLike))
    if is_file and "://" not in str(source) and not os.path.exists(source):
        raise FileNotFoundError(
            f"`source` must be a table that exists, but {nothing_at(str(source))}"
        )
    if is_file and is_text(os.fspath(source)):
        text = text_source(os.fspath(source), separator=separator, encoding=encoding)
        return TextTable(input_format, text, ids, option)
    return PoolRows(input_format, model, source, ids, option)


class TextTable:
    """A text file, whose lines this process reads in order.

    Tasks convert them by the schema of the labeled table.
    """

    n_rows = None
    taken_by_position = ""

    def __init__(
        self,
        input_format: InputFormat,
        text: TextSource,
        ids: tuple[str, ...] | None,
        option: str,
    ) -> None:
        self.where, schema = repr(text.location), input_format.table_schema
        if schema is None:
            raise ValueError(
                f"{self.where} is a text file, but the results have no types of its "
                f"columns: their labeled rows had no names of columns, or were "
                f"searched by dsel 0.2; pass an array, or run `dsel select` again."
            )
        names, row_names = text.names, text.row_number_names
        self.ids = ids = _ids_of(schema, ids, names, row_names)
        with text.hint_at_header(schema.names):
            schema.check_columns([*names, *row_names], self.where, ids, option=option)
        self.file_notes = tuple(text.notes)
        own = tuple(name for name in ids if name not in schema.names)
        self.unused = tuple(n for n in names if n not in {*schema.names, *own})
        self._text, self._schema = text, replace(schema, ids=own)
        self._decimal, written = decimal_marks(text, self._schema)
        self.dialect = text.files[0].dialect(written)

    @property
    def like(self) -> Pool:
        """The first rows, in the types of all of them."""
        with self._text.name_lines():
            first = next(self._parts())
            return _as_frames(open_pool(next(first.frames(BLOCK_ROWS))))

    def _parts(self) -> Iterator[TextRows]:
        n_rows = _block_rows(len(self._schema.names))
        return self._text.parts(self._schema, self._decimal, n_rows)

    def run(self, context: Any, work: Work[R], client: Any) -> Iterator[R]:
        """Do work on each part of the file, and yield the results in order."""
        tasks = (
            Task(f"predict-{rows.first}", work, partial(_text_sources, rows))
            for rows in self._parts()
        )
        with self._text.name_lines():
            yield from results_in_order(context, tasks, client)


class PoolRows:
    """Rows that tasks read by themselves, of anything that `open_pool` takes."""

    dialect = PLAIN_DIALECT
    taken_by_position = ""
    file_notes: tuple[str, ...] = ()

    def __init__(
        self,
        input_format: InputFormat,
        model: Model,
        source: PoolLike,
        ids: tuple[str, ...] | None,
        option: str = "id",
    ) -> None:
        pool, names = open_pool(source), input_format.columns
        self.where = pool.where.replace("`pool`", "`source`")
        columns, schema = pool.columns or (), input_format.table_schema
        # Without names of features no column is found by its name.
        n = 0 if names is None else count_row_names(columns)
        self.ids = ids = _ids_of(schema, ids, columns, columns[:n])
        if names is not None and columns:
            wanted = dict.fromkeys((*names, *ids))
            if schema is None:
                check_columns(columns, wanted, self.where, named=ids, option=option)
            else:
                schema.check_columns(columns, self.where, ids, option=option)
            # Smaller blocks of one row group would be decoded together, and joined.
            n_rows = _block_rows(len(wanted))
            pool = pool.with_columns(wanted, block_rows=n_rows)
            if pool.frames is None and schema is not None:
                schema.refuse_plain_numbers(schema.names, self.where)
            if pool.frames is not None and schema is not None:
                _check_kinds(pool, schema, self.where)
                location = source if isinstance(source, (str, os.PathLike)) else ""
                own = tuple(name for name in ids if name not in schema.names)
                like = replace(schema, ids=own)
                pool = convert_pool(pool, like, os.fspath(location), where=self.where)
        elif ids:
            raise ValueError(
                f"`{option}` names {ids[0]!r}, but columns are found by names where "
                f"both the labeled rows and {self.where} have some; leave it out."
            )
        else:
            n_columns = getattr(model, "n_features_in_", len(names or columns))
            pool = with_columns(pool, n_columns, None)
            if columns:
                self.taken_by_position = by_position(columns, self.where)
        self.unused = tuple(
            each for each in columns if each not in (pool.columns or ())
        )
        self._pool, self.n_rows = _as_frames(pool), pool.n_rows

    @property
    def like(self) -> Pool:
        """All rows, in their types."""
        return self._pool

    def run(self, context: Any, work: Work[R], client: Any) -> Iterator[R]:
        """Do work on each part of the pool, and yield the results in order."""
        pool, n_rows = self._pool, _block_rows(self._pool.n_columns)
        parts = pool.slices(n_rows)
        # A Parquet file of a million rows often has one row group, for one task.
        are_few = client is None and len(parts) < 2 * count_threads()
        if are_few and any(part.stop - part.start > 2 * n_rows for part in parts):
            tasks = self._tasks_of_blocks(work, parts, n_rows)
        else:
            tasks = (
                Task(f"predict-{part.start}", work, partial(pool.sources, part))
                for part in parts
            )
        yield from results_in_order(context, tasks, client)

    def _tasks_of_blocks(
        self, work: Work[R], parts: Sequence[PoolSlice], n_rows: int
    ) -> Iterator[Task[R]]:
        """Read large parts here, and yield a task for each of their blocks."""
        blocks = (
            block
            for part in parts
            for block in read_blocks(self._pool.sources(part), n_rows, allow_nan=True)
        )
        for block in read_ahead(blocks):
            sources = partial(_same_source, block)
            yield Task(f"predict-{block.rows[0]}", work, sources)


def _same_source(block: Block, client: Any) -> list[Any]:
    """Return the argument of `read_table_part` for a block in memory."""
    return [block]


def _text_sources(rows: TextRows, client: Any) -> list[Any]:
    """Return the argument of `read_table_part` for rows of a text file."""
    sent = [] if client is None else send_values([rows], rows.nbytes, client)
    return sent or [rows]


def _ids_of(
    schema: TableSchema | None,
    ids: tuple[str, ...] | None,
    names: Sequence[str],
    row_names: Sequence[str],
) -> tuple[str, ...]:
    """Return the columns to copy: by default those of `dsel select --id`.

    Without any, the names of the rows identify them, where the table has some.
    """
    if ids is not None:
        return tuple(dict.fromkeys(ids))
    known, features = ((), ()) if schema is None else (schema.ids, schema.names)
    known = tuple(name for name in known if name in (*row_names, *names))
    return known or tuple(name for name in row_names[:1] if name not in features)


def _block_rows(n_columns: int) -> int:
    return min(BLOCK_ROWS, max(BLOCK_CELLS // max(n_columns, 1), 1))


def _as_frames(pool: Pool) -> Pool:
    """Return a pool whose data frames stay frames, even if all columns are numbers."""
    return pool.with_schema(pool.frames)


def read_table_part(
    inputs: Inputs, *, allow_nan: bool | None = True
) -> Iterator[Block]:
    """Yield the rows of one of the tasks of a table, block by block.

    `allow_nan` is that of `read_blocks`.
    """
    source = inputs.sources[0]
    if isinstance(source, Block):
        yield source
        return
    if not isinstance(source, TextRows):
        n_rows = _block_rows(source.n_columns)
        yield from read_blocks(inputs.sources, n_rows, allow_nan=allow_nan)
        return
    for frame in source.frames(_block_rows(len(source.like.names))):
        yield Block(frame.index.to_numpy(), frame_of(frame))


@dataclass(frozen=True)
class PredictPart:
    """Predicts all rows of a part of a table."""

    def run(self, context: "_Context", inputs: Inputs) -> Output[PredictedPart]:
        """Return predictions of all rows in their order."""
        parts = [
            context.predict(block.X, block.rows)
            for block in read_table_part(inputs, allow_nan=None)
        ]
        frames, unknown = zip(*parts, strict=True)
        frame = pd.concat(frames) if len(frames) > 1 else frames[0]
        return Output((frame, reduce(merge_unknown_values, unknown)))


def _check_kinds(pool: Pool, schema: TableSchema, where: str) -> None:
    """Raise TypeError if a column has another type than in the labeled rows."""
    assert pool.frames is not None
    found = {column.name: column for column in pool.frames.columns}
    for column in schema.columns:
        kind, known = found[column.name].kind, column.kind
        is_right = kind in (TEXT, NOTHING) or (
            (known.is_number and kind in (NUMBER, TRUTH))
            # Which numbers are text is known where the file was written from text.
            or known is known.TEXT
            or (known is known.TRUTH and kind == TRUTH)
            or (known.is_time and kind.startswith(("date", "time")))
            or known in (known.OTHER, known.GAPS)
        )
        if not is_right:
            raise TypeError(
                f"{where} holds {kind} ({found[column.name].dtype}) in column "
                f"{column.name!r}, where the labeled rows hold {known}; convert it."
            )
