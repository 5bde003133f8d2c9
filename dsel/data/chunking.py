"""Blocks of rows put together, and cut into chunks of one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse


def rechunked(blocks: Iterable[Any], chunk_rows: int) -> Iterator[Any]:
    """Yield the rows of blocks in chunks of one length; the last may be shorter."""
    held: list[Any] = []
    n_held = 0
    for block in blocks:
        rows = block
        while n_held + rows.shape[0] >= chunk_rows:
            cut = chunk_rows - n_held
            yield stacked([*held, rows[:cut]])
            held, n_held, rows = [], 0, rows[cut:]
        if rows.shape[0]:
            held.append(rows)
            n_held += rows.shape[0]
    if held:
        yield stacked(held)


def cut_rows(blocks: Iterable[Any], skipped: int, n_rows: int) -> Iterator[Any]:
    """Yield `n_rows` rows after the first `skipped`."""
    start = 0
    for block in blocks:
        lower, upper = skipped - start, skipped + n_rows - start
        start += block.shape[0]
        part = block[max(lower, 0) : max(upper, 0)]
        if part.shape[0]:
            yield part


def stacked(parts: Sequence[Any]) -> Any:
    """Return blocks of rows as one: CSR where any of them is sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(list(parts), format="csr")
    return np.concatenate(parts)


def count_entries(rows: Any) -> int:
    """Return the number of stored values."""
    return int(rows.nnz) if sparse.issparse(rows) else int(rows.size)
