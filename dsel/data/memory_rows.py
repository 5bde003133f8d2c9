"""Collections of rows in this process's memory, in a mapped file, and of Dask's own."""

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import pairwise, starmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.collection import (
    Collection,
    Partitions,
    array_of_reads,
    block_lengths,
    chunk_of_any,
    dask_array,
    new_name,
)
from dsel.data.content import content_hash
from dsel.data.frames import frame_of, row_nbytes_of

Columns = tuple[str, ...] | None
_LOOK: Final = 1000  # rows by which the kind of a column of Python objects is told


def from_memory(rows: Any, columns: Columns) -> Collection:
    """Return the collection of an array, or of a CSR matrix in canonical format.

    Blocks are views: neither is copied.
    """
    n_rows = int(rows.shape[0])
    parts = (rows.data, rows.indices, rows.indptr) if sparse.issparse(rows) else (rows,)
    nbytes = sum(int(part.nbytes) for part in parts)
    name, cut = new_name(), _csr_rows if sparse.issparse(rows) else operator.getitem
    lengths, slices = _blocks(n_rows, nbytes)
    graph = {(name, i, 0): cut(rows, each) for i, each in enumerate(slices)}
    array = dask_array(graph, lengths, rows, name)
    tell = partial(_told_of_values, array)
    return Collection(array, columns, nbytes, tell, is_in_memory=True)


def _blocks(n_rows: int, nbytes: int) -> tuple[tuple[int, ...], list[slice]]:
    """Return the lengths of blocks, and which rows they have."""
    lengths = block_lengths(n_rows, chunk_of_any(n_rows, nbytes), nbytes)
    return lengths, list(starmap(slice, pairwise(np.cumsum((0, *lengths)).tolist())))


def _csr_rows(matrix: Any, rows: slice) -> Any:
    first, last = matrix.indptr[[rows.start, rows.stop]]
    indptr = matrix.indptr[rows.start : rows.stop + 1] - first
    parts = (matrix.data[first:last], matrix.indices[first:last], indptr)
    return sparse.csr_matrix(parts, shape=(len(indptr) - 1, matrix.shape[1]))


def from_frame(rows: Any) -> Collection:
    """Return the collection of a data frame in memory, in its own library."""
    frame = frame_of(rows)
    name, (lengths, slices) = new_name(), _blocks(len(frame), frame.nbytes)
    graph = {(name, number): frame[each] for number, each in enumerate(slices)}
    array = Partitions(graph, list(graph), lengths, frame.schema)
    names, tell = frame.schema.names, partial(_told_of_values, array)
    return Collection(array, names, frame.nbytes, tell, is_in_memory=True)


def _told_of_values(array: Any) -> tuple[str, bool]:
    kind = "sparse" if sparse.issparse(array._meta) else "array"
    graph = dict(array.__dask_graph__())
    blocks = (graph[row[0]] for row in array.__dask_keys__())
    return f"{kind}-{content_hash(*blocks)}", True


@dataclass(frozen=True)
class MappedFile:
    """A C-contiguous array in a file."""

    path: str
    offset: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    can_change: bool
    """Whether it was mapped for writing too."""
    size: int
    """Bytes of the file."""

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Map some rows, and nothing else."""
        at = self.offset + start * self.shape[1] * self.dtype.itemsize
        shape = (stop - start, self.shape[1])
        return np.memmap(self.path, self.dtype, "r", offset=at, shape=shape)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows."""
        return np.array(self.rows(start, stop))

    def reopened(self, collection: Collection) -> Collection:
        """Return the rows as they are now; ValueError where the file has another size.

        Its head was read before: of another array the bytes would be other values.
        """
        if not os.path.exists(self.path) or os.stat(self.path).st_size != self.size:
            raise ValueError(
                f"`pool` {self.path!r} is gone, or was written anew since it was "
                f"opened, with another size; open it again, and plan with it."
            )
        return replace(collection)

    def told(self) -> tuple[str, bool]:
        """Return size and time of the file, and where the array lies in it.

        Of an array that can be written to through its map, the values: of that not
        every file system keeps the time.
        """
        if self.can_change:
            return f"array-{content_hash(self.rows(0, self.shape[0]))}", True
        status = os.stat(self.path)
        text = f"{self.shape} {self.dtype.str}{self.offset} {status.st_size} "
        digest = blake2b(f"{text}{status.st_mtime_ns}".encode(), digest_size=16)
        return f"file-{digest.hexdigest()}", True


def from_file(array: "np.memmap[Any, Any]", columns: Columns) -> Collection:
    """Return the collection of a C-contiguous map of a file, which tasks map again."""
    root: Any = array
    while isinstance(root.base, np.memmap):  # a slice keeps its parent's attribute
        root = root.base
    file = MappedFile(
        path=os.path.realpath(str(array.filename)),
        offset=int(root.offset) + array.ctypes.data - int(root.ctypes.data),
        shape=(int(array.shape[0]), int(array.shape[1])),
        dtype=array.dtype,
        can_change=array.mode in ("r+", "w+"),
        size=os.stat(str(array.filename)).st_size,
    )
    nbytes = int(array.nbytes)
    rows = array_of_reads(file.read, chunk_of_any(len(array), nbytes), nbytes, array)
    return Collection(rows, columns, nbytes, file.told, file.reopened)


def from_dask(array: Any, columns: Columns) -> Collection:
    """Return the collection of a Dask array.

    Chunk lengths that are unknown cost one pass, of which only they are kept.
    """
    if any(math.isnan(length) for length in array.chunks[0]):
        array = array.copy().compute_chunk_sizes()
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    nbytes = int(array.shape[0]) * int(array.shape[1]) * array.dtype.itemsize
    return Collection(array, columns, nbytes, partial(_told_by_name, array))


def with_checked_names(rows: Any) -> Any:
    """Return a Dask data frame whose partitions raise where they have other columns.

    Dask takes its word for it, and a partition's columns by their places.
    """
    names = list(rows.columns)
    check = partial(_same_names, names=names)
    return rows.map_partitions(check, meta=rows._meta, enforce_metadata=False)


def _same_names(part: Any, names: list[Any]) -> Any:
    if list(part.columns) != names:
        found, wanted = (", ".join(map(str, each)) for each in (part.columns, names))
        raise ValueError(
            f"`pool` must have the columns {wanted} in every partition, but one has "
            f"{found}; give all of them the same names in the same order."
        )
    return part


def from_dask_frame(rows: Any, lengths: Sequence[int] | None = None) -> Collection:
    """Return the collection of a Dask data frame, of known lengths or by one pass."""
    if lengths is None:
        lengths = tuple(map(int, rows.map_partitions(len).compute()))
    head = rows._meta
    if any(dtype.kind == "O" for dtype in rows.dtypes) and any(lengths):
        head = rows.get_partition(int(np.argmax(np.array(lengths) > 0))).head(_LOOK)
    schema = replace(frame_of(head).schema, empty=head.iloc[:0])
    array = Partitions(rows.__dask_graph__(), rows.__dask_keys__(), lengths, schema)
    nbytes = sum(lengths) * row_nbytes_of(schema)
    return Collection(array, schema.names, nbytes, partial(_told_by_name, array))


def _told_by_name(array: Any) -> tuple[str, bool]:
    """Return Dask's name of the array, and its chunks: how rows are made, not which.

    What the name stands for may have changed: files, arrays in memory.
    """
    name = getattr(array, "name", str(array.__dask_keys__()[:1]))
    lengths = blake2b(str(array.chunks[0]).encode(), digest_size=8).hexdigest()
    return f"dask-{name}-{lengths}", False
