"""Rows in Parquet files: one, or a folder of them, partitioned or not."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import fsspec
import numpy as np
import pandas as pd

from dsel.data.frames import NUMBER, TEXT, FrameSchema, columns_of
from dsel.data.pool import Pool, in_blocks
from dsel.data.tables import PARQUET, parquet_module
from dsel.data.zarr_rows import told_by_stamps
from dsel.errors import reaching

_FOOTERS_AT_ONCE: Final = 16
_MOST_FOLDERS: Final = 100
BLOCK_NBYTES: Final = 2**25
"""Row groups of a file are read together up to so many bytes."""


def has_parquet(location: str, storage_options: Mapping[str, Any]) -> bool:
    """Whether there is a folder that holds Parquet files, in the first it looks into.

    A disk takes minutes to be walked, and partitions have files in the first folder.
    """
    fs, root = fsspec.core.url_to_fs(location, **storage_options)
    with reaching(f"`pool` {location!r}"):
        folders = islice(fs.walk(root), _MOST_FOLDERS)
        files = (f"{folder}/{name}" for folder, _, names in folders for name in names)
        return any(_is_part(root, file) for file in files)


def from_parquet(
    location: str, columns: tuple[str, ...] | None, storage_options: Mapping[str, Any]
) -> Pool:
    """Return the rows of a Parquet file or folder; only footers are read.

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
    dtype = frames.dtype
    if dtype.kind in "biu":  # whole numbers may have gaps in any of the files
        dtype = np.dtype(np.float64)
    most_rows = max(BLOCK_NBYTES // max(frames.row_nbytes, 1), 1)
    groups = [group for each in fragments for group in _groups(each, most_rows)]
    return in_blocks(
        [(partial(_read, group, schema),) for group in groups],
        map(_n_rows, groups),
        frames,
        partial(told_by_stamps, location, storage_options, schema.names),
        dtype=dtype,
        read=lambda names: from_parquet(location, names, storage_options),
        where=f"`pool` {paths[0]!r}",
    )


def _paths(fs: Any, root: str) -> list[str]:
    """Return the Parquet files at a place, in the order of their names."""
    if fs.isfile(root):
        return [root]
    return [path for path in sorted(fs.find(root)) if _is_part(root, path)]


def _is_part(root: str, path: str) -> bool:
    names = path.removeprefix(root).strip("/").split("/")
    is_hidden = any(name.startswith(("_", ".")) for name in names)
    return path.lower().endswith(PARQUET) and not is_hidden


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

    def read_footer(fragment: Any) -> None:
        with _naming_file(fragment.path):
            fragment.ensure_complete_metadata()

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
        list(threads.map(read_footer, fragments))
    return fragments


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
    """Return Arrow types by name: those of the file, then those of its folders."""
    import pyarrow as pa
    from pyarrow import dataset

    schema = fragment.physical_schema
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    types = {each.name: each.type for each in schema}
    keys = dataset.get_partition_keys(fragment.partition_expression)
    for name in sorted(keys, key=lambda name: fragment.path.index(f"/{name}=")):
        types[name] = pa.int64() if isinstance(keys[name], int) else pa.string()
    return {name: dtype for name, dtype in types.items() if name not in index}


def _joined_schema(fragments: Sequence[Any], columns: tuple[str, ...] | None) -> Any:
    """Return the schema that all files have, cut to some columns.

    A file that has no value of a column at all may have written it without a type.
    """
    import pyarrow as pa

    first, joined = fragments[0].path, _columns_of(fragments[0])
    for fragment in fragments[1:]:
        here, types = fragment.path, _columns_of(fragment)
        if lacking := joined.keys() ^ types.keys():
            name = min(lacking)
            one, other = (here, first) if name in joined else (first, here)
            raise ValueError(
                f"`pool` {one!r} lacks the column {name!r} that {other!r} has; write "
                f"all files with the same columns."
            )
        for name, dtype in types.items():
            known = joined[name]
            if dtype == known or pa.types.is_null(dtype):
                continue
            joined[name] = dtype if pa.types.is_null(known) else _plain(known)
            if _plain(dtype) != _plain(joined[name]):
                raise TypeError(
                    f"`pool` {here!r} holds {dtype} in column {name!r}, where "
                    f"{first!r} holds {known}; write all files with the same types."
                )
    if unknown := [name for name in columns or () if name not in joined]:
        raise ValueError(
            f"`columns` must be columns of `pool` {first!r}, got {unknown[0]!r}; it "
            f"has {', '.join(joined)}."
        )
    return pa.schema([(name, joined[name]) for name in columns or joined])


def _plain(dtype: Any) -> Any:
    """Return a type without its encoding: texts are stored in many ways."""
    import pyarrow as pa

    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if pa.types.is_large_string(dtype) else dtype


def _frame_schema(schema: Any, fragments: Sequence[Any]) -> FrameSchema:
    """Return the schema of blocks as frames of pandas, empty columns marked."""
    import pyarrow as pa

    n_missing: Counter[str] = Counter()  # as far as footers tell
    for metadata in (fragment.metadata for fragment in fragments):
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                if chunk.is_stats_set and chunk.statistics.has_null_count:
                    n_missing[chunk.path_in_schema] += chunk.statistics.null_count
    of_objects = {  # which pandas holds of these types
        "date": pa.types.is_date, "time of day": pa.types.is_time,
        NUMBER: pa.types.is_decimal, TEXT: pa.types.is_string,
        "lists or structs": pa.types.is_nested, "bytes": pa.types.is_binary,
    }  # fmt: skip
    plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
    n_rows, columns = sum(map(_n_rows, fragments)), []
    found = columns_of(plain.empty_table().to_pandas())
    for field, column in zip(plain, found, strict=True):
        kinds = (kind for kind, is_kind in of_objects.items() if is_kind(field.type))
        is_null = pa.types.is_null(field.type) or n_missing[column.name] == n_rows
        kind = next(kinds, column.kind)
        columns.append(replace(column, kind=kind, is_empty=n_rows > 0 and is_null))
    return FrameSchema(schema.empty_table().to_pandas(), tuple(columns))


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
