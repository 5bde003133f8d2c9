"""Labeled tables, folds, and the unlabeled pool as chunks of rows.

Promise: whatever holds the rows, tasks read them block by block with their global row
numbers, and all randomness is a function of (seed, stream, row), so that chunking,
workers, retries and order change no count.

Vocabulary: a *storage* says where chunks are; a *pool* is a storage and row filters; a
*span* is some chunks, read by one task; a *block* is rows in memory; *sources* are what
a task needs to read a span; a *training* names training and test rows.

To add a kind of pool, write one file with a `Storage` (see `base.py`) and let
`open_pool` recognise it.
"""

from dsel.data.open import open_pool
from dsel.data.tables import read_table
from dsel.data.write import write_pool

__all__ = ["open_pool", "read_table", "write_pool"]
