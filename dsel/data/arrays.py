"""Rows in memory: arrays, memory-mapped files and CSR matrices."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dsel.data.base import Layout, dense_layout, slices, virtual_boundaries
from dsel.data.cache import nbytes_of
from dsel.data.content import content_hash

_SENT_NBYTES: Final = 2**20
_SECONDS: Final = 10.0  # for which a worker to send to is awaited


@dataclass(frozen=True, eq=False)
class ArrayStorage:
    """A 2-d array in this process's memory; each task is sent its slice."""

    array: NDArray[Any]
    """Shape (n_rows, n_columns), numeric."""
    columns: tuple[str, ...] | None = None
    """Names of the features."""

    @cached_property
    def layout(self) -> Layout:
        """Chunks are nominal: any slice costs the same."""
        row_nbytes = self.array.shape[1] * self.array.itemsize
        boundaries = virtual_boundaries(self.array.shape[0], row_nbytes)
        return dense_layout(self.array, self.columns, boundaries)

    @cached_property
    def token(self) -> str:
        """Hash of the values."""
        return f"array-{content_hash(self.array)}"

    @property
    def tells_content(self) -> bool:
        """Every value is hashed."""
        return True

    def reopened(self) -> Self:
        """Return the same, to be hashed anew: who holds the array may change it."""
        return replace(self)

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the slice, or where it was sent if it is large."""
        return [start], [_sent(np.asarray(self.array[start:stop]), client)]


@dataclass(frozen=True)
class FileRows:
    """Rows of an uncompressed array in a file."""

    path: str
    offset: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    start: int

    def blocks(self, block_rows: int) -> Iterator[tuple[int, Any]]:
        """Map the file and read slices of it."""
        mapped = np.memmap(
            self.path, mode="r", dtype=self.dtype, offset=self.offset, shape=self.shape
        )
        for first, rows in slices(self.start, mapped, block_rows):
            yield first, np.array(rows)


@dataclass(frozen=True, eq=False)
class MemmapStorage:
    """A memory-mapped array; tasks map the file themselves."""

    array: np.memmap[Any, np.dtype[Any]]
    """Shape (n_rows, n_columns), C-contiguous, mapped from a file."""
    columns: tuple[str, ...] | None = None
    """Names of the features."""

    @cached_property
    def layout(self) -> Layout:
        """Chunks are nominal: any slice costs the same."""
        row_nbytes = self.array.shape[1] * self.array.itemsize
        boundaries = virtual_boundaries(self.array.shape[0], row_nbytes)
        return dense_layout(self.array, self.columns, boundaries)

    @property
    def path(self) -> str:
        """The file."""
        return os.path.realpath(str(self.array.filename))

    @cached_property
    def token(self) -> str:
        """Size and time of the file, and where the array lies in it.

        Of an array that can be written to through its map, the values: of that not
        every file system keeps the time.
        """
        if self.array.mode in ("r+", "w+"):
            return f"array-{content_hash(self.array)}"
        status = os.stat(self.path)
        digest = blake2b(_shape_text(self.array), digest_size=16)
        digest.update(f"{self.offset} {status.st_size} {status.st_mtime_ns}".encode())
        return f"file-{digest.hexdigest()}"

    @property
    def tells_content(self) -> bool:
        """Whoever writes to a file sets its time."""
        return True

    def reopened(self) -> Self:
        """Return the same, to be looked at anew."""
        return replace(self)

    @cached_property
    def offset(self) -> int:
        """Byte at which the array begins; a slice keeps its parent's attribute."""
        root: Any = self.array
        while isinstance(root.base, np.memmap):
            root = root.base
        return int(root.offset) + self.array.ctypes.data - int(root.ctypes.data)

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the place of the rows in the file."""
        n_columns = self.layout.n_columns
        row_nbytes = n_columns * self.array.itemsize
        rows = FileRows(
            path=self.path,
            offset=self.offset + start * row_nbytes,
            shape=(stop - start, n_columns),
            dtype=self.layout.dtype,
            start=start,
        )
        return [start], [rows]


@dataclass(frozen=True, eq=False)
class SparseStorage:
    """A CSR matrix in this process's memory; each task is sent its slice."""

    matrix: Any
    """scipy CSR matrix or array with sorted indices and no duplicates."""
    columns: tuple[str, ...] | None = None
    """Names of the features."""

    @cached_property
    def layout(self) -> Layout:
        """Chunks are nominal: any slice costs the same."""
        n_rows, n_columns = self.matrix.shape
        parts = self.matrix.data, self.matrix.indices, self.matrix.indptr
        nbytes = sum(int(part.nbytes) for part in parts)
        return Layout(
            n_rows=n_rows,
            n_columns=n_columns,
            dtype=self.matrix.dtype,
            columns=self.columns,
            is_sparse=True,
            nbytes=nbytes,
            boundaries=virtual_boundaries(n_rows, nbytes // max(n_rows, 1)),
        )

    @cached_property
    def token(self) -> str:
        """Hash of the entries and where they are."""
        return f"sparse-{content_hash(self.matrix)}"

    @property
    def tells_content(self) -> bool:
        """Every value is hashed."""
        return True

    def reopened(self) -> Self:
        """Return the same, to be hashed anew: who holds the matrix may change it."""
        return replace(self)

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the slice, or where it was sent if it is large."""
        return [start], [_sent(self.matrix[start:stop], client)]


def _sent(rows: Any, client: Any) -> Any:
    """Keep large slices out of the scheduler: send them straight to a worker."""
    if client is None or nbytes_of(rows) < _SENT_NBYTES:
        return rows
    try:
        # Of a scheduler that is gone an answer would be awaited for long.
        if client.status == "running":
            return client.scatter(rows, hash=False, timeout=_SECONDS)
    except OSError:
        pass
    return rows  # no worker takes them now: they wait with their task for one


def _shape_text(array: Any) -> bytes:
    return f"{array.shape} {array.dtype.str}".encode()
