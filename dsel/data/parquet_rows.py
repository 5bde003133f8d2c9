"""Collections of rows in Parquet files: one, or a folder, partitioned or not."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import fsspec
import numpy as np

from dsel.data.collection import Collection, Partitions, dask_array, new_name
from dsel.data.columns import NOTHING, Column
from dsel.data.frames import FrameSchema, frame_of, row_nbytes_of
from dsel.data.tables import PARQUET, parquet_module
from dsel.data.zarr_rows import told_by_stamps
from dsel.errors import reached, reaching

_FOOTERS_AT_ONCE: Final = 16
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
BLOCK_NBYTES: Final = 2**25
"""Row groups of a file are read together up to so many bytes."""


@dataclass(frozen=True)
class ParquetFile:
    """What the footer and the place of a file tell."""

    path: str
    schema: Any
    """Arrow schema of the file's own columns."""
    keys: tuple[tuple[str, str | None], ...]
    """Columns that its folders name, as in ``year=2024``, and their value."""
    group_rows: tuple[int, ...]
    n_missing: Mapping[str, int]
    """Missing values by column, where the footer tells them."""

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return sum(self.group_rows)


@dataclass(frozen=True)
class ParquetFiles:
    """Files of one schema, read by tasks; `fs` may hold secrets and is not shown."""

    fs: Any
    schema: Any
    """Arrow schema of all columns that are read, those of folders included."""

    def __repr__(self) -> str:
        return f"<Parquet files of {len(self.schema)} columns>"

    def read(
        self, path: str, keys: Mapping[str, str | None], groups: Sequence[int]
    ) -> Any:
        """Return row groups of a file as an Arrow table."""
        import pyarrow as pa

        names = [name for name in self.schema.names if name not in keys]
        table = reached(f"`pool` {path!r}", partial(self._groups, path, groups, names))
        columns = []
        for field in self.schema:
            if field.name in keys:
                values = pa.array([keys[field.name]], pa.string()).cast(field.type)
                columns.append(pa.repeat(values[0], table.num_rows))
            else:
                columns.append(table[field.name].cast(field.type))
        return pa.table(columns, schema=self.schema)

    def _groups(self, path: str, groups: Sequence[int], names: Sequence[str]) -> Any:
        with self.fs.open(path, "rb") as file:
            reader = parquet_module().ParquetFile(file)
            return reader.read_row_groups(list(groups), columns=list(names))


def has_parquet(location: str, storage_options: Mapping[str, Any]) -> bool:
    """Whether there is a Parquet file, or a folder that holds some."""
    if location.lower().rstrip("/").endswith(PARQUET):
        return True
    fs, root = fsspec.core.url_to_fs(location, **storage_options)
    with reaching(f"`pool` {location!r}"):
        return fs.isdir(root) and bool(_paths(fs, root))


def from_parquet(
    location: str, columns: tuple[str, ...] | None, storage_options: Mapping[str, Any]
) -> Collection:
    """Return the collection of a Parquet file or folder; only footers are read.

    Raises ValueError or TypeError where files differ in columns or types.
    """
    fs, root = fsspec.core.url_to_fs(location, **storage_options)
    with reaching(f"`pool` {location!r}"):
        paths = _paths(fs, root)
        if not paths:
            raise ValueError(f"`pool` {location!r} holds no Parquet files.")
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
            files = list(threads.map(partial(_footer, fs, root), paths))
    schema = _joined_schema(files, columns)
    rows = ParquetFiles(fs, schema)
    schemas = _with_empty(frame_of(schema.empty_table()).schema, files)
    graph, lengths = _graph(rows, files, row_nbytes_of(schemas))
    tell = partial(_told, location, dict(storage_options), schemas.names)
    reopen = partial(_reopened, location, columns, dict(storage_options))
    frames = Collection(
        Partitions(graph, list(graph), lengths, schemas),
        schemas.names,
        sum(lengths) * row_nbytes_of(schemas),
        tell,
        reopen,
        where=f"`pool` {files[0].path!r}",
    )
    return _of_numbers(frames) if schemas.is_numeric else frames


def _of_numbers(frames: Collection) -> Collection:
    """Return frames of numbers as an array of their common type."""
    array, name = frames.array, new_name()
    schema = array.schema
    single = all(column.is_single for column in schema.columns)
    dtype = np.dtype(np.float32 if single else np.float64)
    graph = {
        **array.graph,
        **{
            (name, number, 0): (_numbers_of, key, dtype)
            for number, key in enumerate(array.keys)
        },
    }
    like = np.empty((0, len(schema.columns)), dtype)
    rows = dask_array(graph, array.chunks[0], like, name)
    return replace(frames, array=rows, frames=lambda: frames)


def _numbers_of(rows: Any, dtype: np.dtype[Any]) -> Any:
    return frame_of(rows).numbers.astype(dtype, copy=False)


def _paths(fs: Any, root: str) -> list[str]:
    """Return the Parquet files at a place, in the order of their names."""
    if fs.isfile(root):
        return [root]
    found = sorted(fs.find(root))
    parts = [path.removeprefix(root).strip("/").split("/") for path in found]
    return [
        path
        for path, names in zip(found, parts, strict=True)
        if path.lower().endswith(PARQUET)
        and not any(name.startswith(("_", ".")) for name in names)
    ]


def _footer(fs: Any, root: str, path: str) -> ParquetFile:
    with fs.open(path, "rb") as file:
        try:
            reader = parquet_module().ParquetFile(file)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"`pool` {path!r} cannot be read as Parquet: {str(error).rstrip('.')}; "
                f"write it again."
            ) from error
        metadata, schema = reader.metadata, reader.schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    for name in (each for each in index if each in schema.names):
        schema = schema.remove(schema.get_field_index(name))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    folders = path.removeprefix(root).strip("/").split("/")[:-1]
    keys = tuple(
        (name, None if value == _NO_VALUE else unquote(value))
        for name, equals, value in (each.partition("=") for each in folders)
        if equals
    )
    return ParquetFile(
        path, schema, keys, tuple(g.num_rows for g in groups), _missing(groups)
    )


def _missing(groups: Sequence[Any]) -> dict[str, int]:
    """Return the missing values of a file by column, where its footer tells them."""
    counts: dict[str, float] = {}
    for group in groups:
        for column in map(group.column, range(group.num_columns)):
            known = column.is_stats_set and column.statistics.has_null_count
            n = column.statistics.null_count if known else math.nan
            name = column.path_in_schema
            counts[name] = counts.get(name, 0.0) + n
    return {name: int(n) for name, n in counts.items() if not math.isnan(n)}


def _joined_schema(
    files: Sequence[ParquetFile], columns: tuple[str, ...] | None
) -> Any:
    """Return the schema that all files have, cut to some columns.

    A file that has no value of a column at all may have written it without a type.
    """
    import pyarrow as pa

    first, *others = files
    fields = {field.name: field.remove_metadata() for field in first.schema}
    for file in others:
        _check_names(first, file)
        for field in file.schema:
            known = fields[field.name].type
            if pa.types.is_null(known):
                fields[field.name] = field.remove_metadata()
            elif field.type == known or pa.types.is_null(field.type):
                continue
            elif _plain(field.type) == _plain(known):
                fields[field.name] = pa.field(field.name, _plain(known))
            else:
                raise TypeError(
                    f"`pool` {file.path!r} holds {field.type} in column "
                    f"{field.name!r}, where {first.path!r} holds {known}; write all "
                    f"files with the same types."
                )
    for name, _ in first.keys:
        values = {dict(file.keys)[name] for file in files} - {None}
        whole = all(str(value).lstrip("-").isdigit() for value in values)
        fields[name] = pa.field(name, pa.int64() if whole else pa.string())
    for name in columns or ():
        if name not in fields:
            raise ValueError(
                f"`columns` must be columns of `pool` {first.path!r}, got {name!r}; it "
                f"has {', '.join(fields)}."
            )
    return pa.schema([fields[name] for name in columns or fields])


def _plain(dtype: Any) -> Any:
    """Return a type without its encoding: texts are stored in many ways."""
    import pyarrow as pa

    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if pa.types.is_large_string(dtype) else dtype


def _check_names(first: ParquetFile, file: ParquetFile) -> None:
    one, other = ([*f.schema.names, *dict(f.keys)] for f in (first, file))
    for here, names, there, others in (
        (file, other, first, one),
        (first, one, file, other),
    ):
        for name in others:
            if name not in names:
                raise ValueError(
                    f"`pool` {here.path!r} lacks the column {name!r} that "
                    f"{there.path!r} has; write all files with the same columns."
                )


def _with_empty(schema: FrameSchema, files: Sequence[ParquetFile]) -> FrameSchema:
    """Return the schema with the columns marked in which every value is missing."""
    n_rows = sum(file.n_rows for file in files)

    def marked(column: Column) -> Column:
        counts = [file.n_missing.get(column.name, 0) for file in files]
        is_empty = column.kind == NOTHING or sum(counts) == n_rows
        return replace(column, is_empty=is_empty and n_rows > 0)

    return replace(schema, columns=tuple(map(marked, schema.columns)))


def _graph(
    rows: ParquetFiles, files: Sequence[ParquetFile], row_nbytes: int
) -> tuple[dict[Any, Any], list[int]]:
    """Return tasks that each read some row groups of one file, and their rows."""
    name, most = new_name(), max(BLOCK_NBYTES // row_nbytes, 1)
    graph: dict[Any, Any] = {}
    lengths: list[int] = []
    for file in files:
        together: list[int] = []
        n_rows = 0
        for group, length in enumerate((*file.group_rows, math.inf)):
            if together and n_rows + length > most:
                task = (rows.read, file.path, dict(file.keys), together)
                graph[name, len(graph)] = task
                lengths.append(n_rows)
                together, n_rows = [], 0
            together, n_rows = [*together, group], n_rows + int(min(length, 2**62))
    return graph, lengths


def _told(
    location: str, storage_options: Mapping[str, Any], names: tuple[str, ...]
) -> tuple[str, bool]:
    head = {"columns": names}
    text, has_stamps = told_by_stamps(head, location, storage_options)
    return f"parquet-{text}", has_stamps


def _reopened(
    location: str,
    columns: tuple[str, ...] | None,
    storage_options: Mapping[str, Any],
    collection: Collection,
) -> Collection:
    again = from_parquet(location, columns, storage_options)
    frames = again.frames() if again.frames is not None else again
    found = frames if isinstance(collection.array, Partitions) else again
    if found.array.chunks != collection.array.chunks or (
        found.columns != collection.columns
    ):
        raise ValueError(
            f"{collection.where} was written anew since it was opened, with other "
            f"columns or row groups; open it again, and plan with it."
        )
    return found
