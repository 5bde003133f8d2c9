"""Rows in Parquet files: one, or a folder of them, partitioned or not."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import fsspec
import numpy as np
import pandas as pd

from dsel.data.collection import Collection, Partitions, dask_array, new_name
from dsel.data.columns import NOTHING
from dsel.data.frames import FrameSchema, frame_of, row_nbytes_of
from dsel.data.tables import PARQUET, parquet_module
from dsel.data.zarr_rows import told_by_stamps
from dsel.errors import reaching

_FOOTERS_AT_ONCE: Final = 16
BLOCK_NBYTES: Final = 2**25
"""Row groups of a file are read together up to so many bytes."""


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
    parquet_module()
    fs, root = fsspec.core.url_to_fs(location, **storage_options)
    with reaching(f"`pool` {location!r}"):
        paths = _paths(fs, root)
        if not paths:
            raise ValueError(f"`pool` {location!r} holds no Parquet files.")
        fragments = _fragments(fs, root, paths)
    schema = _joined_schema(fragments, columns)
    frames = _frame_schema(schema, fragments)
    row_nbytes, name = row_nbytes_of(frames), new_name()
    groups = [
        group
        for fragment in fragments
        for group in _groups(fragment, max(BLOCK_NBYTES // row_nbytes, 1))
    ]
    graph = {(name, i, 0): (_read, group, schema) for i, group in enumerate(groups)}
    lengths = [_n_rows(group) for group in groups]
    rows = Collection(
        Partitions(graph, list(graph), lengths, frames),
        frames.names,
        sum(lengths) * row_nbytes,
        partial(told_by_stamps, location, dict(storage_options), schema.names),
        read=partial(_columns_read, location, dict(storage_options)),
        where=f"`pool` {paths[0]!r}",
    )
    if not frames.is_numeric:
        return rows
    # Whole numbers may have gaps in any of the files.
    is_single = all(column.is_single for column in frames.columns)
    return as_numbers(rows, np.dtype(np.float32 if is_single else np.float64))


def _columns_read(
    location: str, storage_options: Mapping[str, Any], names: tuple[str, ...]
) -> Collection:
    return from_parquet(location, names, storage_options)


def as_numbers(frames: Collection, dtype: np.dtype[Any]) -> Collection:
    """Return frames of numbers as an array, and beside it as they were given."""
    parts, name = frames.array, new_name()
    graph = {
        (name, number, 0): (_numbers, key, dtype)
        for number, key in enumerate(parts.keys)
    }
    like = np.empty((0, parts.shape[1]), dtype)
    rows = dask_array({**parts.graph, **graph}, parts.chunks[0], like, name)
    return replace(frames, array=rows, nbytes=rows.nbytes, frames=frames)


def _numbers(rows: Any, dtype: np.dtype[Any]) -> Any:
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


def _fragments(fs: Any, root: str, paths: Sequence[str]) -> list[Any]:
    """Return pyarrow's fragment of each file, its footer read."""
    from pyarrow import dataset

    with _naming_file(paths[0]):
        files = dataset.dataset(
            list(paths),
            filesystem=fs,
            format="parquet",
            partitioning=dataset.partitioning(flavor="hive"),
            partition_base_dir=root,
        )
    fragments = list(files.get_fragments())
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
        list(threads.map(_read_footer, fragments))
    return fragments


def _read_footer(fragment: Any) -> None:
    with _naming_file(fragment.path):
        fragment.ensure_complete_metadata()


@contextmanager
def _naming_file(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ValueError(
            f"`pool` {path!r} cannot be read as Parquet: {str(error).rstrip('.')}; "
            f"write it again."
        ) from error


def _columns_of(fragment: Any) -> dict[str, Any]:
    """Return Arrow fields by name: those of the file, then those of its folders."""
    import pyarrow as pa
    from pyarrow import dataset

    schema = fragment.physical_schema
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    fields = {each.name: each.remove_metadata() for each in schema}
    keys = dataset.get_partition_keys(fragment.partition_expression)
    for name in sorted(keys, key=lambda name: fragment.path.index(f"/{name}=")):
        kind = pa.int64() if isinstance(keys[name], int) else pa.string()
        fields[name] = pa.field(name, kind)
    return {name: field for name, field in fields.items() if name not in index}


def _joined_schema(fragments: Sequence[Any], columns: tuple[str, ...] | None) -> Any:
    """Return the schema that all files have, cut to some columns.

    A file that has no value of a column at all may have written it without a type.
    """
    import pyarrow as pa

    first = fragments[0].path
    joined = _columns_of(fragments[0])
    for fragment in fragments[1:]:
        fields = _columns_of(fragment)
        _check_names(first, joined, fragment.path, fields)
        for name, field in fields.items():
            known = joined[name].type
            if pa.types.is_null(known):
                joined[name] = field
            elif field.type == known or pa.types.is_null(field.type):
                continue
            elif _plain(field.type) == _plain(known):
                joined[name] = pa.field(name, _plain(known))
            else:
                raise TypeError(
                    f"`pool` {fragment.path!r} holds {field.type} in column {name!r}, "
                    f"where {first!r} holds {known}; write all files with the same "
                    f"types."
                )
    for name in columns or ():
        if name not in joined:
            raise ValueError(
                f"`columns` must be columns of `pool` {first!r}, got {name!r}; it has "
                f"{', '.join(joined)}."
            )
    return pa.schema([joined[name] for name in columns or joined])


def _plain(dtype: Any) -> Any:
    """Return a type without its encoding: texts are stored in many ways."""
    import pyarrow as pa

    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if pa.types.is_large_string(dtype) else dtype


def _check_names(
    first: str, known: Mapping[str, Any], path: str, found: Mapping[str, Any]
) -> None:
    for here, names, there, others in (
        (path, found, first, known),
        (first, known, path, found),
    ):
        missing = next((name for name in others if name not in names), None)
        if missing is not None:
            raise ValueError(
                f"`pool` {here!r} lacks the column {missing!r} that {there!r} has; "
                f"write all files with the same columns."
            )


def _frame_schema(schema: Any, fragments: Sequence[Any]) -> FrameSchema:
    """Return the schema of blocks as frames of pandas, empty columns marked."""
    empty = schema.empty_table()
    n_rows = sum(map(_n_rows, fragments))
    n_missing = _missing(fragments)
    columns = tuple(
        replace(
            column,
            is_empty=n_rows > 0
            and (column.kind == NOTHING or n_missing.get(column.name) == n_rows),
        )
        for column in frame_of(empty).schema.columns
    )
    return FrameSchema(empty.to_pandas(), columns)


def _missing(fragments: Sequence[Any]) -> dict[str, int]:
    """Return the missing values of columns, as far as footers tell of them."""
    counts: dict[str, int] = {}
    for fragment in fragments:
        metadata = fragment.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                told = column.statistics if column.is_stats_set else None
                if told is not None and told.has_null_count:
                    name = column.path_in_schema
                    counts[name] = counts.get(name, 0) + told.null_count
    return counts


def _groups(fragment: Any, most_rows: int) -> list[Any]:
    """Return fragments of some row groups each that have so many rows at most."""
    groups: list[list[int]] = []
    n_rows = most_rows + 1
    for group in fragment.row_groups:
        if n_rows + group.num_rows > most_rows:
            groups.append([])
            n_rows = 0
        groups[-1].append(group.id)
        n_rows += group.num_rows
    return [fragment.subset(row_group_ids=each) for each in groups]


def _n_rows(fragment: Any) -> int:
    return sum(group.num_rows for group in fragment.row_groups)


def _read(fragment: Any, schema: Any) -> pd.DataFrame:
    # Tasks run side by side already. `schema` gives text one type, however stored.
    table = fragment.to_table(schema=schema, columns=schema.names, use_threads=False)
    return table.to_pandas()
