"""Labeled tables, splits, and the unlabeled pool: rows in blocks with row numbers.

Promise: whatever holds the rows, tasks read them block by block with their global row
numbers, and all randomness is a function of (seed, stream, row), so that chunking,
workers, retries and order change no count.

Vocabulary: a *pool* has blocks (a Dask graph), an *origin* (what tells its content, and
where it is), the schema that is stored, the one that models get, and a row filter,
which are in `pool_parts.py`; a *slice* is some blocks, read by one task; *sources* are
what the task needs, the pool with those blocks alone; a *block* is rows in memory; a
*split* names training and test rows.

To add a kind of pool, write a function that returns a `Pool` (see `zarr_rows.py`)
and let `open_pool` call it.
"""

from dsel.data.open import open_pool
from dsel.data.write import write_pool

__all__ = ["open_pool", "write_pool"]
