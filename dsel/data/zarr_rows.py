"""Rows in zarr, on disk or in object storage."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Self

import fsspec
import zarr
from zarr.storage import FsspecStore, LocalStore

from dsel.data.base import Layout, dense_layout, regular_boundaries, slices
from dsel.data.canonical import canonical_text
from dsel.errors import reached

_STAMPS: Final = (
    *("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "modified"),
    "created",
)
"""How file systems call what changes when a file is written, the best first."""


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
        """Metadata, and size and stamp of every stored chunk.

        An array in a store without a place, as one in memory, is itself and no other.
        """
        if self.url is None:
            return f"zarr-{uuid.uuid4().hex}"
        digest = blake2b(digest_size=16)
        digest.update(canonical_text(self.array.metadata.to_dict()).encode())
        digest.update(self._stamps.encode())
        return f"zarr-{digest.hexdigest()}"

    @property
    def tells_content(self) -> bool:
        """Whoever writes a chunk changes its stamp, where chunks have one."""
        if self.url is None:
            return False
        return not any(line.endswith(" ") for line in self._stamps.splitlines())

    @cached_property
    def _stamps(self) -> str:
        return file_stamps(self.url or "", self.storage_options)

    def reopened(self) -> Self:
        """Open the array again, where it is."""
        here = f"`pool` at {self.array.store}"
        try:
            array = zarr.open_array(self.array.store, path=self.array.path, mode="r")
        except FileNotFoundError as error:
            raise ValueError(
                f"{here} is gone; open the pool that is to be read."
            ) from error
        if _heading(array) != _heading(self.array):
            raise ValueError(
                f"{here} was written anew since it was opened, with another shape, "
                f"type or chunks; open it again, and plan with it."
            )
        return replace(self, array=array)

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the range; the task opens nothing and reads only its chunks."""
        return [start], [ZarrRows(self.array, start, stop)]


def place_of(array: Any) -> tuple[str | None, dict[str, Any]]:
    """Return path or URL of an open zarr array, and the options to reach it by.

    None where its store has neither.
    """
    store = array.store
    if isinstance(store, LocalStore):
        return str(Path(store.root) / array.path), {}
    if not isinstance(store, FsspecStore):
        return None, {}
    files = getattr(store.fs, "sync_fs", store.fs)
    options = dict(files.storage_options)
    for only_here in ("asynchronous", "loop"):
        options.pop(only_here, None)
    return files.unstrip_protocol(f"{store.path}/{array.path}".rstrip("/")), options


def file_stamps(url: str, storage_options: Mapping[str, Any]) -> str:
    """List size and stamp of every file under `url`, the place itself left out.

    A copy that keeps the times (``cp -a``, ``rsync -a``) has the same stamps. A line
    ends in a space where there is none.
    """
    files, root = fsspec.core.url_to_fs(url, **storage_options)
    files.invalidate_cache(root)  # what was listed before may have been written since
    found = files.find(root, detail=True)
    stamps = [
        f"{name.removeprefix(root)} {entry.get('size')} {_stamp(entry)}"
        for name, entry in sorted(found.items())
        if not name.endswith(".partial")
    ]
    return "\n".join(stamps)


def _stamp(entry: Mapping[str, Any]) -> str:
    for key in _STAMPS:
        if entry.get(key):
            return str(entry[key])
    return ""


def _heading(array: Any) -> dict[str, Any]:
    """Return what must be known of an array to read its chunks."""
    found = dict(array.metadata.to_dict())
    found.pop("attributes", None)
    return found
