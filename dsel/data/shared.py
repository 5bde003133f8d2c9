"""Labeled rows that also lie in the pool: found by content, left out if asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.checks import check_choice
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.words import words

REFUSE: Final = "refuse"
EXCLUDE: Final = "exclude"
KEEP: Final = "keep"
POLICIES: Final = (REFUSE, EXCLUDE, KEEP)
"""What rows in both may be: an error, the same records, others that look alike."""

_HASH_SEED: Final = 0x64_73_65_6C
_FIRST_COLUMNS: Final = 8
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows that occur in the labeled table and in the pool."""

    pool_rows: NDArray[np.int64]
    """Global numbers of the pool rows, ascending."""
    keys: tuple[bytes, ...]
    """Content of each of them."""
    labeled_counts: Counter[bytes]
    """How many labeled rows have a content, for contents that are in the pool."""

    @property
    def n_labeled(self) -> int:
        """Labeled rows whose content is in the pool."""
        return sum(self.labeled_counts.values())

    def twins(self) -> NDArray[np.int64]:
        """Return one pool row for each labeled row: the first ones of each content."""
        left = Counter(self.labeled_counts)
        twins = []
        for row, key in zip(self.pool_rows.tolist(), self.keys, strict=True):
            if left[key] > 0:
                left[key] -= 1
                twins.append(row)
        return np.array(twins, dtype=np.int64)


def find_shared_rows(
    pool: Pool, labeled: LabeledRows, *, client: Any = None, allow_nan: bool = False
) -> SharedRows:
    """Find the pool rows that equal a labeled row, in one pass.

    Rows are compared in the pool's type: float64 labeled rows are rounded as the
    pool's rows were. Zeros of either sign are equal, and so are missing values.

    Parameters
    ----------
    pool, labeled
        With the same columns.
    client
        Dask client for the pass; None is the current one, else local threads.
    allow_nan
        Whether missing values may pass.
    """
    if pool.n_rows == 0:
        return SharedRows(np.empty(0, dtype=np.int64), (), Counter())
    in_labeled = comparable(labeled.X, pool.dtype)
    keys = row_keys(in_labeled)
    search = SharedRowSearch(
        stages=tuple(
            (columns, np.unique(row_hashes(in_labeled[:, columns])))
            for columns in _stages(pool)
        ),
        keys=frozenset(keys),
        dtype=pool.dtype,
    )
    found = pool.reduce(search, _joined, client=client, allow_nan=allow_nan)
    in_pool = frozenset(found[1])
    counts = Counter(key for key in keys if key in in_pool)
    return SharedRows(np.array(found[0], dtype=np.int64), tuple(found[1]), counts)


def resolve_shared_rows(
    pool: Pool,
    labeled: LabeledRows,
    policy: str,
    *,
    client: Any = None,
    allow_nan: bool = False,
) -> Pool:
    """Return the pool as it takes part, by what shared rows are said to be.

    Parameters
    ----------
    pool, labeled
        With the same columns.
    policy
        ``"refuse"``: an error if there are any. ``"exclude"``: they are the same
        records, so one pool row for each is left out. ``"keep"``: they are other
        records that look alike, so nothing is left out and no pass is made.
    client
        Dask client for the pass; None is the current one, else local threads.
    allow_nan
        Whether missing values may pass.

    Raises
    ------
    ValueError
        Where the policy is to refuse and rows are shared, or is unknown.
    """
    check_choice(policy, "shared_rows", POLICIES)
    if policy == KEEP:
        return pool
    shared = find_shared_rows(pool, labeled, client=client, allow_nan=allow_nan)
    if policy == EXCLUDE:
        return pool.excluding(shared.twins())
    if shared.n_labeled:
        raise ValueError(
            f"`pool` must not hold the labeled rows, but {shared.n_labeled:,} of "
            f"{labeled.n_rows:,} labeled rows equal one of {len(shared.pool_rows):,} "
            f"pool rows (the first is pool row {shared.pool_rows[0]:,}). If they are "
            'the same records, say shared_rows="exclude": one pool row for each is '
            "left out. If they are other records that look alike, as discrete "
            'features make likely, say shared_rows="keep".'
        )
    return pool


@dataclass(frozen=True)
class SharedRowSearch:
    """Finds rows of a block among known ones."""

    stages: tuple[tuple[slice, NDArray[np.uint64]], ...]
    """Columns, and the hashes of the known rows in them, ascending."""
    keys: frozenset[bytes]
    """Contents of the known rows."""
    dtype: np.dtype[Any]
    """Type in which rows are compared."""

    def __call__(
        self, X: Any, rows: NDArray[np.int64]
    ) -> tuple[list[int], list[bytes]]:
        """Return numbers and contents of the rows that are known."""
        likely = np.arange(X.shape[0])
        for columns, known in self.stages:
            part = X[:, columns] if len(likely) == X.shape[0] else X[likely][:, columns]
            hashes = row_hashes(comparable(part, self.dtype))
            places = np.searchsorted(known, hashes) % len(known)
            likely = likely[known[places] == hashes]
        keys = row_keys(comparable(X[likely], self.dtype))
        found = [at for at, key in enumerate(keys) if key in self.keys]
        return rows[likely[found]].tolist(), [keys[at] for at in found]


def _stages(pool: Pool) -> tuple[slice, ...]:
    """Return the columns to compare first, and all: most rows differ in a few."""
    every = slice(None)
    if pool.is_sparse or pool.n_columns < 2 * _FIRST_COLUMNS:
        return (every,)
    return slice(None, None, pool.n_columns // _FIRST_COLUMNS), every


def comparable(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows such that equal rows have equal bytes."""
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X, dtype=dtype, copy=True)
        matrix.sum_duplicates()
        matrix.data = _one_bit_pattern(matrix.data)
        matrix.eliminate_zeros()
        return matrix
    return np.ascontiguousarray(_one_bit_pattern(np.asarray(X).astype(dtype)))


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """Hash each row to 64 bits; a dense row and its CSR form have the same hash."""
    factors = words(_HASH_SEED, 0, 0, X.shape[1]) | np.uint64(1)
    if not sparse.issparse(X):
        dense: NDArray[np.uint64] = _mixed_bits(X) @ factors
        return dense
    products = _mixed_bits(X.data) * factors[X.indices]
    # Unsigned sums wrap, so differences of running sums are right.
    running = np.append(np.uint64(0), np.cumsum(products, dtype=np.uint64))
    hashes: NDArray[np.uint64] = running[X.indptr[1:]] - running[X.indptr[:-1]]
    return hashes


def row_keys(X: Any) -> list[bytes]:
    """Return the content of each row as bytes: the same for dense and CSR rows."""
    if X.dtype == np.float16:  # which scipy has no sparse matrices of
        X = X.astype(np.float32)
    matrix = sparse.csr_matrix(X)
    indices = matrix.indices.astype(np.int64)
    return [
        indices[start:stop].tobytes() + matrix.data[start:stop].tobytes()
        for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]


def _one_bit_pattern(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind != "f":
        return values
    values = values + values.dtype.type(0)  # turns -0.0 into 0.0
    missing = np.isnan(values)
    if missing.any():
        values[missing] = np.nan
    return values


def _mixed_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of each value as 64 well-mixed ones; zero stays zero.

    Small whole numbers as floats differ in few, high bits: without mixing, products
    modulo 2**64 would keep only those.
    """
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    bits = values.view(unsigned).astype(np.uint64)
    bits *= _MIX
    bits ^= bits >> np.uint64(32)
    return bits


def _joined(
    earlier: tuple[Sequence[int], Sequence[bytes]],
    later: tuple[Sequence[int], Sequence[bytes]],
) -> tuple[list[int], list[bytes]]:
    return [*earlier[0], *later[0]], [*earlier[1], *later[1]]
