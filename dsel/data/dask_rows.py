"""Rows of a Dask array."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from scipy import sparse

from dsel.data.base import Layout, dense_layout


@dataclass(frozen=True, eq=False)
class DaskStorage:
    """A 2-d Dask array in one chunk of columns, with known chunk lengths."""

    array: Any
    """Shape (n_rows, n_columns), numeric; chunks may be scipy CSR."""
    columns: tuple[str, ...] | None = None
    """Names of the features."""

    @cached_property
    def layout(self) -> Layout:
        """Chunks are Dask's; empty ones do not count."""
        lengths = np.asarray(self.array.chunks[0], dtype=np.int64)
        boundaries = np.unique(np.append(np.int64(0), np.cumsum(lengths)))
        layout = dense_layout(self.array, self.columns, boundaries)
        return replace(layout, is_sparse=sparse.issparse(self.array._meta))

    @property
    def token(self) -> str:
        """Dask's own name of the array, and its chunks.

        What the names stand for may have changed: files, arrays in memory.
        """
        return f"dask-{self.array.name}-{hash_of_lengths(self.array.chunks[0])}"

    @property
    def tells_content(self) -> bool:
        """A name says how rows are made, not which they are."""
        return False

    def reopened(self) -> Self:
        """Return the same: nothing is known of the rows."""
        return self

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the chunks: futures on the client, else delayed."""
        part = self.array[start:stop]
        chunks = part.to_delayed().ravel().tolist()
        starts = np.cumsum([start, *part.chunks[0][:-1]]).tolist()
        return starts, chunks if client is None else client.compute(chunks)


def with_known_chunks(array: Any) -> Any:
    """Return a Dask array whose chunk lengths are known, in one chunk of columns.

    Lengths that are unknown cost one pass, of which only they are kept.
    """
    if any(math.isnan(length) for length in array.chunks[0]):
        array = array.copy().compute_chunk_sizes()
    return array if array.numblocks[1] == 1 else array.rechunk({1: -1})


def hash_of_lengths(lengths: tuple[int, ...]) -> str:
    """Return a short text for the lengths of chunks."""
    return blake2b(str(lengths).encode(), digest_size=8).hexdigest()
