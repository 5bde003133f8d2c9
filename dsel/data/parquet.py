"""Rows in Parquet files: a single file, or a folder of them, partitioned or not."""

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, parquet

from dsel.data.cache import process_cache
from dsel.data.frame_columns import NUMBER, TEXT, columns_of
from dsel.data.frames import FrameSchema
from dsel.data.pool import Pool, pool_of_blocks
from dsel.data.pool_parts import Origin
from dsel.data.table_files import PARQUET, name_file
from dsel.data.table_request import check_distinct_names, check_same_names
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.data.zarr_rows import origin_of
from dsel.errors import explain_store_errors

_FOOTERS_AT_ONCE: Final = 16
_MOST_FOLDERS: Final = 100
_MOST_PARTS: Final = 32
"""Approximate largest number of blocks of files that have fewer row groups."""
_FEWEST_PART_ROWS: Final = 8_192
_LONG: Final = 100
"""Rows for each column from which a data frame has each column as an array."""
_ROWS_SHOWN: Final = 10_000
"""Rows that show whether the values of a column repeat."""


def has_parquet(location: str, options: Mapping[str, object]) -> bool:
    """Return whether a folder, or one of the first folders below it, has Parquet files.

    Not all folders are visited: walking a disk takes minutes, and partitions have files
    in the first folder.
    """
    fs, root = fsspec.core.url_to_fs(location, **options)
    with explain_store_errors(f"`pool` {location!r}"):
        folders = islice(fs.walk(root), _MOST_FOLDERS)
        files = (f"{folder}/{name}" for folder, _, names in folders for name in names)
        return any(_is_part(root, file) for file in files)


def from_parquet(location: str, options: Mapping[str, object]) -> Pool:
    """Return the rows of a Parquet file or folder; only footers are read."""
    fs, root = fsspec.core.url_to_fs(location, **options)
    with explain_store_errors(f"`pool` {location!r}"):
        paths = [root]
        if not fs.isfile(root):
            paths = [path for path in sorted(fs.find(root)) if _is_part(root, path)]
        if not paths:
            raise ValueError(f"`pool` {location!r} holds no Parquet files.")
        with name_file(paths[0]):
            try:
                files = dataset.dataset(
                    paths,
                    filesystem=fs,
                    format="parquet",
                    partitioning=dataset.partitioning(flavor="hive"),
                    partition_base_dir=root,
                )
            except pa.ArrowInvalid:
                # pyarrow does not name the column, so the footer is read again, only
                # here.
                names = parquet.read_schema(paths[0], filesystem=fs).names
                check_distinct_names(names, paths[0])
                raise
        fragments = list(files.get_fragments())
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
            list(threads.map(_read_footer, fragments))
    in_files = fragments[0].physical_schema.names
    folder_columns = [  # fields that are in the names of partition folders only
        pa.field(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type)
        for f in files.schema
        if f.name not in in_files
    ]
    origin = replace(
        origin_of(location, options),
        location=f"`pool` {(root if len(paths) > 1 else paths[0])!r}",
    )
    schema = join_schemas(fragments, folder_columns, "`pool` ")
    return _open_columns(fragments, schema, origin, schema.names)


def _open_columns(
    fragments: Sequence[Any],
    every: pa.Schema,
    origin: Origin,
    columns: Sequence[str],
    part_rows: int | None = None,
) -> Pool:
    """Return some columns, in blocks of at most `part_rows` rows for a single pass."""
    schema = pa.schema([every.field(name) for name in columns])
    object_kinds = {  # types that pandas holds as Python objects
        "date": pa.types.is_date,
        "time of day": pa.types.is_time,
        NUMBER: pa.types.is_decimal,
        "bytes": pa.types.is_binary,
        TEXT: lambda of: pa.types.is_string(of) or pa.types.is_large_string(of),
        "lists or structs": pa.types.is_nested,
    }
    empty, known = schema.empty_table().to_pandas(), []
    for field, column in zip(schema, columns_of(empty), strict=True):
        kinds = (kind for kind, is_kind in object_kinds.items() if is_kind(field.type))
        known.append(replace(column, kind=next(kinds, column.kind)))
    frames = FrameSchema(empty, tuple(known))
    groups = [group for part in fragments for group in part.split_by_row_group()]
    lengths = [sum(part.num_rows for part in group.row_groups) for group in groups]
    # pandas writes up to a million rows as one row group. One block would be one task:
    # one core would work, and progress would not move until all is done.
    is_single_pass = part_rows is not None
    part_rows = part_rows or max(_FEWEST_PART_ROWS, -(-sum(lengths) // _MOST_PARTS))
    opened, tasks, part_lengths = uuid.uuid4().hex, [], []
    for row_group_number, (group, length) in enumerate(
        zip(groups, lengths, strict=True)
    ):
        n_parts = max(-(-length // part_rows), 1)
        edges = [length * part // n_parts for part in range(n_parts + 1)]
        key = f"parquet-{opened}-{row_group_number}" if len(edges) > 2 else ""
        # Tasks of the group before may still run.
        read = f"parquet-{opened}-{row_group_number - 2}" if is_single_pass else ""
        for start, stop in pairwise(edges):
            tasks.append((partial(_read, group, schema, start, stop, key, read),))
            part_lengths.append(stop - start)
    return pool_of_blocks(
        tasks,
        part_lengths,
        frames,
        replace(origin, read_columns=partial(_open_columns, fragments, every, origin)),
        # Integers become floats, because any of the files may have missing values.
        dtype=np.dtype(np.float64) if frames.dtype.kind in "biu" else frames.dtype,
    )


def _is_part(root: str, path: str) -> bool:
    names = path.removeprefix(root).strip("/").split("/")
    is_hidden = any(name.startswith(("_", ".")) for name in names)
    return path.lower().endswith(PARQUET) and not is_hidden


def _read_footer(fragment: Any) -> None:
    with name_file(fragment.path):
        fragment.ensure_complete_metadata()


def join_schemas(
    fragments: Sequence[Any], keys: Sequence[Any] = (), what: str = ""
) -> pa.Schema:
    """Return the common schema of all files, with the fields of partition folders.

    Categories become plain values, since the labeled rows decide the categories. Raises
    TypeError if no type holds all types of a column, and ValueError if files have
    different columns, or a column twice. Messages about several files begin with
    `what`.
    """
    first, joined = fragments[0].path, None
    for fragment in fragments:
        here, schema = fragment.path, fragment.physical_schema
        check_distinct_names(schema.names, here)
        left_out = [key.name for key in keys]
        left_out += (schema.pandas_metadata or {}).get("index_columns", ())
        types = {f.name: f.type for f in schema if f.name not in left_out}
        for name, kind in types.items():
            types[name] = kind.value_type if pa.types.is_dictionary(kind) else kind
        schema = pa.schema([*types.items(), *keys])
        joined = joined or schema
        check_same_names(first, joined.names, here, schema.names, what=what)
        try:
            joined = pa.unify_schemas([joined, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise TypeError(
                f"{what}{here!r} holds other types than {first!r}: {error}; write "
                f"all files with the same types."
            ) from error
    return joined


def _read(
    fragment: Any, schema: Any, start: int, stop: int, key: str, read: str
) -> pd.DataFrame:
    """Return rows of a row group; `key` is its key in the cache, "" to read it once.

    `read` is the key of a row group that is dropped, as all of its rows have been read.
    """

    def decode() -> pa.Table:
        # One thread, because tasks run in parallel already. `schema` gives a column the
        # same type in all files.
        columns = schema.names
        return fragment.to_table(schema=schema, columns=columns, use_threads=False)

    # Pages in the middle of a row group cannot be read alone. The cache has a limit of
    # bytes; a row group above it is decoded again for each part. A stream of batches,
    # ParquetFile.iter_batches, takes half of the memory but no less time.
    process_cache().forget([read])
    table = process_cache().get(key, decode) if key else decode()
    return to_exact_pandas(table.slice(start, stop - start))


def to_exact_pandas(rows: pa.Table) -> pd.DataFrame:
    """Return a table of Arrow as a data frame, with large whole numbers as they are.

    pandas makes floats of whole numbers where one is missing, which rounds those above
    2**53: two labels may become one class.
    """
    # Joining long columns to one array copies them; thousands of short ones take longer
    # one by one.
    is_long = rows.num_rows > _LONG * rows.num_columns
    frame = rows.to_pandas(split_blocks=is_long)
    for name in {*rows.column_names} & {*frame.columns}:
        field = rows.schema.field(name)
        values = rows.column(name)
        if not pa.types.is_integer(field.type) or not values.null_count:
            continue
        ends = pc.min_max(values).as_py()
        if max(-(ends["min"] or 0), ends["max"] or 0) > LARGEST_EXACT:
            is_signed = pa.types.is_signed_integer(field.type)
            exact = pd.Int64Dtype() if is_signed else pd.UInt64Dtype()
            frame[name] = values.to_pandas(types_mapper={field.type: exact}.get).array
    return frame


def columns_of_few_values(rows: pa.Table | pa.RecordBatch) -> list[str]:
    """Return the columns of few different values, as far as the first rows show.

    They are written with a dictionary. A dictionary of values that all differ takes
    more time than all the rest.
    """
    first_rows, few = rows.slice(0, _ROWS_SHOWN), []
    for name in first_rows.schema.names:
        with suppress(pa.ArrowNotImplementedError):  # for example columns of lists
            if (
                2 * pc.count_distinct(first_rows.column(name)).as_py()
                <= first_rows.num_rows
            ):
                few.append(name)
    return few
