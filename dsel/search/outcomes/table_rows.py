"""The rows of a table, block by block in its order, for a model or for counts.

Rows are read as `dsel select` reads a pool: this process reads text files in order, by
the schema of the labeled table, and tasks read all other files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from dsel.checks import describe_missing_path
from dsel.data.columns import NOT_NAMED, check_columns
from dsel.data.labeled import text_on_positions, with_columns
from dsel.data.like import convert_pool
from dsel.data.open import open_pool
from dsel.data.pool import Block, Pool, PoolSlice, read_blocks, send_values
from dsel.data.schema import TableSchema, frame_of_texts
from dsel.data.table_files import PARQUET, note_on_file_order
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
from dsel.errors import Words, rename_in_errors
from dsel.runtime.clients import count_threads
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task, Work
from dsel.search.outcomes.deployed_model import InputFormat
from dsel.typing import Model, PoolLike

if TYPE_CHECKING:
    from distributed import Client

C = TypeVar("C")
R = TypeVar("R")

BLOCK_ROWS: Final = (2**14, 2**17)
"""Fewest and most rows of a task, which a model predicts in one call: pandas and
scikit-learn take about 10 ms for a call with any number of rows."""
BLOCK_CELLS: Final = 2**22
"""Approximate number of values of a task."""
WORDS_OF_PYTHON: Final[Words] = {
    "; build the pool from its text file, `dsel pool build --like` the labeled table": (
        "; write texts there, too, such as by astype(str)"
    ),
    ", or leave the columns out by --drop": "",
    "name its encoding by --encoding": (
        "read it by pandas.read_csv(..., dtype=str, encoding=...) with its encoding"
    ),
    "name it by --sep": "read it by pandas.read_csv(..., dtype=str, sep=...)",
    "write --sep ": "read it by pandas.read_csv(..., dtype=str) with sep=",
    ", and --sep , if not": "",
    ", leave --sep out": ", read it by pandas.read_csv(..., dtype=str) with this sep",
}
"""What messages about a table name in a shell, and what a caller writes in Python."""


class TableRows(Protocol):
    """All rows of a table, of which tasks get one slice after the other."""

    where: str
    """Name of the table in messages."""
    ids: tuple[str, ...]
    """Columns to copy, which identify rows."""
    unused: tuple[str, ...]
    """Columns that neither the model nor `ids` has."""
    n_rows: int | None = None
    """Number of rows; None if it is known at the end only."""
    dialect: Dialect = PLAIN_DIALECT
    """Dialect of a text file."""
    taken_by_position: str = ""
    """A warning where the model knows no names of columns, but the table does."""
    file_notes: tuple[str, ...] = ()
    """Notes about lines and columns of a text file that are left out."""

    @property
    def like(self) -> Pool:
        """Rows in the types of all rows; not always all of them."""

    def run(self, context: C, work: Work[C, R], client: "Client | None") -> Iterator[R]:
        """Do work on each slice, and yield the results in order.

        The work gets a slice by `read_table_slice`.
        """


def open_table(
    input_format: InputFormat,
    source: Any,
    ids: tuple[str, ...] | None,
    *,
    model: Any,
    argument_of: Mapping[str, str] = NOT_NAMED,
    with_record_ids: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
) -> TableRows:
    """Open a table for predictions by one model, or by several with the same columns.

    `ids` are columns that no model uses; `argument_of` has the arguments that name them
    if that is not ``id``. With `with_record_ids` those of `dsel select --id` are read,
    too, where the table has them.
    """
    is_file = isinstance(source, (str, os.PathLike))
    if is_file and "://" not in str(source) and not os.path.exists(source):
        raise FileNotFoundError(
            f"`source` must be a table that exists, but "
            f"{describe_missing_path(str(source))}"
        )
    if is_file and is_text(os.fspath(source)):
        text = text_source(
            os.fspath(source),
            separator=separator,
            encoding=encoding,
            like=input_format.table_schema,
        )
        return TextTable(input_format, text, ids, argument_of, with_record_ids)
    with rename_in_errors({"`pool`": "`source`"}):
        return PoolRows(input_format, model, source, ids, argument_of, with_record_ids)


class TextTable(TableRows):
    """A text file, whose lines this process reads in order.

    Tasks convert them by the schema of the labeled table.
    """

    def __init__(
        self,
        input_format: InputFormat,
        text: TextSource,
        ids: tuple[str, ...] | None,
        argument_of: Mapping[str, str],
        with_record_ids: bool,
    ) -> None:
        self.where = repr(text.location)
        schema = input_format.table_schema
        if schema is None:
            raise ValueError(
                f"{self.where} is a text file, but the results have no types of its "
                f"columns: their labeled rows had no names of columns, or were "
                f"searched by dsel 0.2; pass an array, or run `dsel select` again."
            )
        names, row_names = text.names, text.row_number_names
        self.ids = ids = _ids_of(schema, ids, names, row_names, with_record_ids)
        with text.hint_at_header(schema.names):
            named = _name_arguments(ids, argument_of)
            schema.check_columns([*names, *row_names], self.where, named)
        names_of_files = [os.path.basename(file.path) for file in text.files]
        in_order = [] if ids else note_on_file_order(names_of_files)
        self.file_notes = (*text.notes, *in_order)
        self.unused = tuple(n for n in names if n not in {*schema.names, *ids})
        self._text = text
        self._schema = replace(schema, ids=_new_ids(ids, schema))
        self._decimal, written = decimal_marks(text, self._schema)
        self.dialect = text.files[0].dialect(written)

    @property
    def like(self) -> Pool:
        """The first rows, in the types of all of them."""
        with self._text.name_lines():
            first = next(self._slices())
            return _as_frames(open_pool(next(first.frames(first.part.n_rows))))

    def _slices(self) -> Iterator[TextRows]:
        sizes = [file.estimate_rows() for file in self._text.files]
        n_rows = None if None in sizes else sum(filter(None, sizes))
        n_rows = _block_rows(len(self._schema.names), n_rows)
        return self._text.parts(self._schema, self._decimal, n_rows)

    def run(self, context: C, work: Work[C, R], client: "Client | None") -> Iterator[R]:
        """Do work on each slice of the file, and yield the results in order."""
        tasks = (
            Task(f"predict-{rows.first}", work, partial(_text_sources, rows))
            for rows in self._slices()
        )
        with self._text.name_lines():
            yield from results_in_order(context, tasks, client)


class PoolRows(TableRows):
    """Rows that tasks read by themselves, of anything that `open_pool` takes."""

    def __init__(
        self,
        input_format: InputFormat,
        model: Model,
        source: PoolLike,
        ids: tuple[str, ...] | None,
        argument_of: Mapping[str, str] = NOT_NAMED,
        with_record_ids: bool = False,
    ) -> None:
        pool = open_pool(source)
        names, columns = input_format.columns, pool.columns or ()
        self.where = pool.where.replace("`pool`", "`source`")
        # Without names of features no column is found by its name.
        n = 0 if names is None else count_row_names(columns)
        self.ids = _ids_of(
            input_format.table_schema, ids, columns, columns[:n], with_record_ids
        )
        if names is not None and columns:
            location = (
                os.fspath(source) if isinstance(source, str | os.PathLike) else ""
            )
            pool = self._find_columns(
                pool, names, input_format.table_schema, argument_of, location
            )
        else:
            # A model of the user's own may not know the number of its features.
            n_columns = getattr(model, "n_features_in_", input_format.n_columns)
            if n_columns is None:
                n_columns = pool.n_columns
            pool = self._take_by_position(pool, n_columns, argument_of)
        self.unused = tuple(n for n in columns if n not in (pool.columns or ()))
        files = [n for n in pool.origin.stamps if n.lower().endswith(PARQUET)]
        self.file_notes = () if self.ids else tuple(note_on_file_order(files))
        self._pool = _as_frames(pool)
        self.n_rows = pool.n_rows

    def _find_columns(
        self,
        pool: Pool,
        names: Sequence[str],
        schema: TableSchema | None,
        argument_of: Mapping[str, str],
        location: str,
    ) -> Pool:
        """Return the columns of the model and of `ids`, by their names."""
        columns, ids = pool.columns or (), self.ids
        needed = dict.fromkeys((*names, *ids))
        named = _name_arguments(ids, argument_of)
        if schema is None:
            check_columns(columns, needed, self.where, named=named)
        else:
            schema.check_columns(columns, self.where, named)
        # Smaller blocks of one row group would be decoded together, and joined.
        n_rows = _block_rows(len(needed), pool.n_rows)
        pool = pool.with_columns(needed, block_rows=n_rows)
        if schema is None:
            return pool
        if pool.frames is None:
            schema.refuse_plain_numbers(schema.names, self.where)
            return pool
        like = replace(schema, ids=_new_ids(ids, schema))
        return convert_pool(pool, like, location, where=self.where)

    def _take_by_position(
        self, pool: Pool, n_columns: int, argument_of: Mapping[str, str]
    ) -> Pool:
        """Return the columns of the model, which knows no names, or finds none here."""
        if self.ids:
            argument = _name_arguments(self.ids, argument_of)[self.ids[0]]
            instead = ", and pass the labels as y=" if argument == "target" else ""
            raise ValueError(
                f"`{argument}` names {self.ids[0]!r}, but columns are found by names "
                f"where both the labeled rows and {self.where} have some; leave it out"
                f"{instead}."
            )
        if pool.columns:
            self.taken_by_position = text_on_positions(pool.columns, self.where)
        return with_columns(pool, n_columns, None)

    @property
    def like(self) -> Pool:
        """All rows, in their types."""
        return self._pool

    def run(self, context: C, work: Work[C, R], client: "Client | None") -> Iterator[R]:
        """Do work on each slice of the pool, and yield the results in order."""
        pool = self._pool
        n_rows = _block_rows(pool.n_columns, pool.n_rows)
        slices = pool.slices(n_rows)
        # A Parquet file of a million rows often has one row group, for one task.
        are_few = client is None and len(slices) < 2 * count_threads()
        if are_few and any(rows.stop - rows.start > 2 * n_rows for rows in slices):
            tasks = self._tasks_of_blocks(work, slices, n_rows)
        else:
            tasks = (
                Task(f"predict-{rows.start}", work, partial(pool.sources, rows))
                for rows in slices
            )
        yield from results_in_order(context, tasks, client)

    def _tasks_of_blocks(
        self, work: Work[C, R], slices: Sequence[PoolSlice], n_rows: int
    ) -> Iterator[Task[C, R]]:
        """Read large slices here, and yield a task for each of their blocks."""
        blocks = (
            block
            for rows in slices
            for block in read_blocks(self._pool.sources(rows), n_rows, allow_nan=True)
        )
        for block in read_ahead(blocks):
            sources = partial(_block_sources, block)
            yield Task(f"predict-{block.row_numbers[0]}", work, sources)


def _block_sources(block: Block, client: "Client | None") -> list[Any]:
    """Return the argument of `read_table_slice` for a block in memory."""
    return [block]


def _text_sources(rows: TextRows, client: "Client | None") -> list[Any]:
    """Return the argument of `read_table_slice` for rows of a text file."""
    sent = [] if client is None else send_values([rows], rows.nbytes, client)
    return sent or [rows]


def _ids_of(
    schema: TableSchema | None,
    ids: tuple[str, ...] | None,
    names: Sequence[str],
    row_names: Sequence[str],
    with_record_ids: bool,
) -> tuple[str, ...]:
    """Return the columns to copy: by default those of `dsel select --id`.

    Without such columns the names of the rows identify them, if the table has names.
    """
    known, features = ((), ()) if schema is None else (schema.ids, schema.names)
    known = tuple(name for name in known if name in (*row_names, *names))
    if ids is not None:
        return tuple(dict.fromkeys((*ids, *(known if with_record_ids else ()))))
    return known or tuple(name for name in row_names[:1] if name not in features)


def _name_arguments(
    ids: Sequence[str], argument_of: Mapping[str, str]
) -> dict[str, str]:
    """Return the argument that names each column: ``id`` where it is no other one."""
    return {name: argument_of.get(name, "id") for name in ids}


def _new_ids(ids: tuple[str, ...], schema: TableSchema) -> tuple[str, ...]:
    """Return the columns to copy that are no features."""
    return tuple(name for name in ids if name not in schema.names)


def _block_rows(n_columns: int, n_rows: int | None = None) -> int:
    """Return the most rows of a task; of `n_rows` rows each thread gets three tasks."""
    fewest, most = BLOCK_ROWS
    if n_rows is not None:
        most = min(most, max(n_rows // (3 * count_threads()), fewest))
    return min(most, max(BLOCK_CELLS // max(n_columns, 1), 1))


def _as_frames(pool: Pool) -> Pool:
    """Return a pool whose data frames stay frames, even if all columns are numbers."""
    return pool.with_schema(pool.frames)


class ReadSlice:
    """Reads all rows of a slice of a table, so that a wrong value is found."""

    def run(self, context: None, inputs: Inputs) -> Output[None]:
        """Read the rows; raise where one has a value that is not of its column."""
        for _ in read_table_slice(inputs):
            pass
        return Output(None)


def check_values(table: TableRows) -> None:
    """Raise where a row of a table has a value that is not of its column."""
    for _ in table.run(None, ReadSlice(), None):
        pass


def read_table_slice(
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
        yield Block(frame.index.to_numpy(), frame_of_texts(frame, source.like))
