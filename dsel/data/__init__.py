"""Labeled tables, splits, and the unlabeled pool: rows in blocks with row numbers.

Tasks read rows from any source block by block, with their global row numbers. All
randomness is a function of (seed, stream, row), so chunking, workers, retries and order
change no count.

Vocabulary: a *pool* has blocks (a Dask graph), an *origin* (identity and location), the
schema that is stored, the schema that models get, and a row filter; these are in
`pool_parts.py`. A *slice* is a run of blocks that one task reads; *sources* are the
inputs of this task, the pool with only those blocks; a *block* is rows in memory; a
*split* names training and test rows.

`read_table` reads a file by the rules of `dsel select`, into a `Table`, and
`make_encoder` returns the encoder that it puts in front of its models.

To add a kind of pool, write a function that returns a `Pool` (see `zarr_rows.py`)
and let `open_pool` call it.
"""

from dsel.checks import explain_public
from dsel.data.column_encoders import make_encoder
from dsel.data.open import open_pool
from dsel.data.table_request import Table
from dsel.data.tables import read_table
from dsel.data.write import write_pool

__all__ = ["Table", "make_encoder", "open_pool", "read_table", "write_pool"]

explain_public(globals())
