"""Rows in zarr, on disk or in object storage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import fsspec
import numpy as np

from dsel.data.base import Layout, dense_layout, regular_boundaries, slices
from dsel.data.canonical import canonical_text
from dsel.errors import reached


@dataclass(frozen=True)
class ZarrRows:
    """A range of rows of a zarr array, from one chunk boundary to another."""

    array: Any
    """The array; a few hundred bytes when pickled."""
    start: int
    stop: int

    def blocks(self, block_rows: int) -> Iterator[tuple[int, Any]]:
        """Read whole chunks, several at once where they are small."""
        chunk_rows = self.array.chunks[0]
        step = max(block_rows // chunk_rows, 1) * chunk_rows
        for first in range(self.start, self.stop, step):
            rows = self._read(first, min(first + step, self.stop))
            yield from slices(first, rows, block_rows)

    def _read(self, first: int, stop: int) -> Any:
        try:
            where = f"`pool` at {self.array.store}"
            return reached(where, lambda: self.array[first:stop])
        except (RuntimeError, ValueError) as error:
            one = self.array.chunks[0]
            if stop - first > one:  # of several chunks, find the one
                for start in range(first, stop, one):
                    self._read(start, min(start + one, stop))
            raise ValueError(
                f"`pool` at {self.array.store} is damaged: rows {first} to {stop - 1} "
                f"cannot be read ({error}); write the pool again."
            ) from error


@dataclass(frozen=True, eq=False)
class ZarrStorage:
    """A 2-d zarr array that tasks read themselves."""

    array: Any
    """zarr array of shape (n_rows, n_columns), numeric."""
    columns: tuple[str, ...] | None = None
    """Names of the features."""
    url: str | None = None
    """Where the array is, if it was opened by path or URL."""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec; may hold secrets, so they are neither shown nor stored."""

    @cached_property
    def layout(self) -> Layout:
        """Chunks are those of the array."""
        boundaries = regular_boundaries(self.array.shape[0], self.array.chunks[0])
        return dense_layout(self.array, self.columns, boundaries)

    @cached_property
    def token(self) -> str:
        """Metadata, and size and stamp of every stored chunk."""
        digest = blake2b(digest_size=16)
        digest.update(canonical_text(self.array.metadata.to_dict()).encode())
        if self.url is None:
            digest.update(_sample(self.array))
        else:
            digest.update(file_stamps(self.url, self.storage_options).encode())
        return f"zarr-{digest.hexdigest()}"

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the range; the task opens nothing and reads only its chunks."""
        return [start], [ZarrRows(self.array, start, stop)]


def file_stamps(url: str, storage_options: Mapping[str, Any]) -> str:
    """List size and stamp of every file under `url`, the place itself left out.

    A copy that keeps the times (``cp -a``, ``rsync -a``) has the same stamps.
    """
    files, root = fsspec.core.url_to_fs(url, **storage_options)
    found = files.find(root, detail=True)
    stamps = [
        f"{name.removeprefix(root)} {entry.get('size')} {_stamp(entry)}"
        for name, entry in sorted(found.items())
        if not name.endswith(".partial")
    ]
    return "\n".join(stamps)


def _stamp(entry: Mapping[str, Any]) -> str:
    for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created"):
        if key in entry:
            return str(entry[key])
    return ""


def _sample(array: Any) -> bytes:
    """Return the first, middle and last row: all that other stores offer cheaply."""
    if array.shape[0] == 0:
        return b""
    rows = (0, array.shape[0] // 2, array.shape[0] - 1)
    return b"".join(np.ascontiguousarray(array[row]).tobytes() for row in rows)
