"""The zarr array or group that a pool is written to, with its progress."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import zarr
from zarr.storage import FsspecStore

from dsel.checks import check_url
from dsel.data.open import COMPLETE
from dsel.data.sparse_zarr import (
    DTYPE,
    ENTRIES,
    N_COLUMNS,
    N_ROWS,
    PART_ROWS,
    fast_codecs,
    write_part,
)
from dsel.data.zarr_rows import COLUMNS
from dsel.stores import POOL, check_empty, check_outside

SOURCE: Final = "source"
"""Attribute: what the pool is written from, so that only that is gone on with."""
WRITTEN: Final = "written_chunks"
"""Attribute: chunks from the first on that are surely there."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class PoolSchema:
    """What is known of rows before they are read."""

    token: str
    n_rows: int | None
    n_columns: int
    dtype: np.dtype[Any]
    columns: tuple[str, ...] | None
    is_sparse: bool


@dataclass(frozen=True)
class PoolWriter:
    """The zarr array or group being written."""

    node: Any
    chunk_rows: int
    on_progress: Progress | None = None

    @property
    def written(self) -> int:
        """Chunks that need not be written again."""
        return int(self.node.attrs[WRITTEN])

    def write_chunk(self, number: int, rows: Any) -> None:
        """Write one chunk; the array is as long already."""
        if isinstance(self.node, zarr.Group):
            write_part(self.node, number, rows)
        else:
            start = number * self.chunk_rows
            self.node[start : start + rows.shape[0]] = rows

    def mark(self, written: int, entries: int, done: int, n_rows: int | None) -> None:
        """Note that the first `written` chunks are there: `done` rows of `n_rows`."""
        total = int(self.node.attrs[ENTRIES]) + entries
        self.node.attrs.update({WRITTEN: written, ENTRIES: total})
        if self.on_progress is not None:
            self.on_progress(done, n_rows)

    def finish(self, n_rows: int) -> None:
        """Note that every row is there."""
        self.node.attrs.update({N_ROWS: n_rows, COMPLETE: True})


def open_node(
    path: str, schema: PoolSchema, chunk_rows: int, options: dict[str, Any]
) -> Any:
    """Open what an earlier call began, or create it."""
    if "://" in path:
        check_url(path, "path")
    else:
        check_outside(path, "path")
    source = f"{schema.token} {schema.dtype} {chunk_rows}"
    node = _existing(path, options)
    if node is None:
        return _create(path, schema, chunk_rows, source, options)
    if node.attrs.get(SOURCE) != source:
        raise FileExistsError(
            f"`path` must be free or hold a pool begun from the same source, but "
            f"{path!r} holds another; choose another path, or remove it."
        )
    return node


def _existing(path: str, options: dict[str, Any]) -> Any:
    if "://" not in path and not os.path.exists(path):
        return None
    try:
        return zarr.open(path, mode="r+", storage_options=options or None)
    except FileNotFoundError:
        if "://" not in path and (not os.path.isdir(path) or os.listdir(path)):
            raise FileExistsError(
                f"`path` must be free, but {path!r} is there and is no pool."
            ) from None
        if "://" in path:
            check_empty(FsspecStore.from_url(path, storage_options=options), "path")
        return None


def _create(
    path: str, schema: PoolSchema, chunk_rows: int, source: str, options: dict[str, Any]
) -> Any:
    attributes: dict[str, Any] = {
        POOL: "csr" if schema.is_sparse else "dense",
        COLUMNS: None if schema.columns is None else list(schema.columns),
        COMPLETE: False,
        SOURCE: source,
        WRITTEN: 0,
        ENTRIES: 0,
    }
    if schema.is_sparse:
        attributes |= {
            PART_ROWS: chunk_rows,
            N_COLUMNS: schema.n_columns,
            DTYPE: schema.dtype.str,
        }
        return zarr.create_group(
            path, attributes=attributes, zarr_format=3, storage_options=options or None
        )
    return zarr.create_array(
        path,
        shape=(schema.n_rows or 0, schema.n_columns),
        chunks=(chunk_rows, max(schema.n_columns, 1)),
        dtype=schema.dtype,
        compressors=fast_codecs(schema.dtype),
        attributes=attributes,
        zarr_format=3,
        config={"write_empty_chunks": True},
        storage_options=options or None,
    )
