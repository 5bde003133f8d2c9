"""Labeled rows that also lie in the pool: found by content, left out if asked.

Found are equal rows, near copies, and whether equal rows are more than chance makes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from dsel.checks import check_choice
from dsel.data.equal_rows import coarser, comparable
from dsel.data.frames import encoded
from dsel.data.identity import mixed_bits, row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.near_copies import NearCopies, NearSearch, near_search
from dsel.data.pool import Pool

REFUSE: Final = "refuse"
EXCLUDE: Final = "exclude"
KEEP: Final = "keep"
POLICIES: Final = (REFUSE, EXCLUDE, KEEP)
"""What rows in both may be: an error, the same records, others that look alike."""

MANY: Final = 0.1
"""Part of the labeled rows: if so many have near copies, the pool holds them."""
_MOST_TIMES: Final = 9
"""Contents that occur more often are common ones, of which chance puts some in both."""
_MOST_HASHES: Final = 2**18  # of pool rows, sampled to count equal pairs
_FIRST_COLUMNS: Final = 8


Found = tuple[list[int], list[bytes], NearCopies, list[NDArray[np.uint64]]]
"""Pool rows that equal labeled ones, their contents, near copies, sampled hashes."""


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows that occur in the labeled table and in the pool."""

    pool_rows: NDArray[np.int64]
    """Global numbers of the pool rows, ascending."""
    keys: tuple[bytes, ...]
    """Content of each of them."""
    labeled_counts: Counter[bytes]
    """How many labeled rows have a content, for contents that are in the pool."""
    near: NearCopies
    """Labeled rows of which the pool holds near copies."""
    n_remaining: int
    """Labeled rows whose content is in what remains of the pool."""
    p_value: float
    """How often chance pairs so many labeled rows with pool rows; NaN: not asked."""

    @property
    def n_labeled(self) -> int:
        """Labeled rows whose content is in the pool."""
        return sum(self.labeled_counts.values())

    @property
    def has_many_near(self) -> bool:
        """Whether near copies are too many to be a few odd rows."""
        return 0 < self.near.n_copied >= MANY * self.near.n_searched

    def twins(self) -> NDArray[np.int64]:
        """Return one pool row for each labeled row, equal ones first, then near ones.

        Of several equal rows any may be the record: those are taken whose numbers have
        the smallest hashes, so that no part of the pool lacks more of them than others.
        """
        left = Counter(self.labeled_counts)
        order = np.argsort(row_hashes(self.pool_rows[:, np.newaxis]), kind="stable")
        twins = []
        for at in order.tolist():
            if left[self.keys[at]] > 0:
                left[self.keys[at]] -= 1
                twins.append(int(self.pool_rows[at]))
        if self.near.n_copied:
            twins.extend(self.near.copied.values())
        return np.unique(np.array(twins, dtype=np.int64))


def find_shared_rows(
    pool: Pool,
    labeled: LabeledRows,
    *,
    client: Any = None,
    allow_nan: bool = False,
    with_chance: bool = False,
    leaves_out: bool = False,
) -> SharedRows:
    """Find the pool rows that equal a labeled row, or nearly do, in one pass.

    Rows are compared in the type with fewer digits, as rows of the other one were
    rounded. Zeros of either sign are equal, and so are missing values. Of data
    frames, near copies have equal texts and categories: spelling is not looked at. With
    `with_chance` it is asked how often chance would find as many equal rows; with
    `leaves_out` too, of the pool without one row for each labeled one.
    """
    X = _rounded(labeled.X, pool)
    is_frame = pool.dtype.kind == "O"
    dtype = np.dtype(np.float64) if is_frame else coarser(X.dtype, pool.dtype)
    in_labeled = _as_in(pool, comparable(X, dtype))
    keys = row_keys(in_labeled)
    hashes = row_hashes(in_labeled)
    if pool.n_rows == 0:
        none = NearCopies(0, {}, frozenset())
        return SharedRows(np.empty(0, dtype=np.int64), (), Counter(), none, 0, 1.0)
    distinct = np.unique(hashes, return_index=True)[1]
    if dtype.kind != "f":  # whole numbers are equal or they are not
        distinct = distinct[:0]
    share = min(1.0, _MOST_HASHES / pool.n_rows) if with_chance else 0.0
    search = SharedRowSearch(
        stages=tuple(
            (columns, np.unique(row_hashes(in_labeled[:, columns])))
            for columns in _stages(pool)
        ),
        keys=frozenset(keys),
        dtype=dtype,
        near=near_search(in_labeled[distinct], distinct),
        share=share,
    )
    rows, found, near, sampled = pool.reduce(
        search, _joined, client=client, allow_nan=allow_nan
    )
    in_pool = frozenset(found)
    counts = Counter(key for key in keys if key in in_pool)
    in_labeled_too, remaining = Counter(keys), Counter(found)
    if leaves_out:
        remaining -= in_labeled_too
    return SharedRows(
        np.array(rows, dtype=np.int64),
        tuple(found),
        counts,
        near,
        sum(times for key, times in in_labeled_too.items() if remaining[key]),
        _chance(in_labeled_too, remaining, hashes, sampled, pool.n_rows, share),
    )


def resolve_shared_rows(
    pool: Pool,
    labeled: LabeledRows,
    policy: str,
    *,
    client: Any = None,
    allow_nan: bool = False,
) -> SharedRows:
    """Return what labeled rows and pool share, or refuse it.

    By the policy ``"refuse"`` shared rows are an error. ``"exclude"``: they are the
    same records, so one pool row for each, its `twins`, is to be left out. ``"keep"``:
    they are other records that look alike, which chance must explain.
    """
    check_choice(policy, "duplicates", POLICIES)
    shared = find_shared_rows(
        pool,
        labeled,
        client=client,
        allow_nan=allow_nan,
        with_chance=policy != REFUSE,
        leaves_out=policy == EXCLUDE,
    )
    ways = (
        'If they are the same records, say duplicates="exclude": one pool row for '
        "each is left out. If they are other records that look alike, as discrete "
        'features make likely, say duplicates="keep".'
    )
    if policy == REFUSE and shared.n_labeled:
        raise ValueError(
            f"`pool` must not hold the labeled rows, but {shared.n_labeled:,} of "
            f"{labeled.n_rows:,} labeled rows equal one of {len(shared.pool_rows):,} "
            f"pool rows (the first is pool row {shared.pool_rows[0]:,}). {ways}"
        )
    if policy == REFUSE and shared.has_many_near:
        number, row = min(shared.near.copied.items())
        raise ValueError(
            f"`pool` must not hold the labeled rows, but it holds near copies of "
            f"{shared.near.n_copied:,} of {shared.near.n_searched:,} labeled rows, "
            f"which differ by rounding or noise alone (labeled row {number:,} and pool "
            f"row {row:,}). {ways}"
        )
    return shared


def chance_of_equal(labeled: Any, sample: Any) -> tuple[int, float]:
    """Return how many sampled pool rows equal labeled ones, and how often by chance.

    Where the pool is so much larger that the sample shows none of its labeled records,
    they are too few of its rows to matter.
    """
    labeled, sample = encoded(labeled), encoded(sample)
    dtype = coarser(labeled.dtype, sample.dtype)
    there = comparable(labeled, dtype), comparable(sample, dtype)
    (keys, in_pool), hashes = map(Counter, map(row_keys, there)), row_hashes(there[0])
    found = Counter({key: times for key, times in in_pool.items() if key in keys})
    n_pool = sample.shape[0]
    p_value = _chance(keys, found, hashes, [row_hashes(there[1])], n_pool, 1.0)
    return sum(found.values()), p_value


def _chance(
    in_labeled: Counter[bytes],
    in_pool: Counter[bytes],
    hashes: NDArray[np.uint64],
    sampled: Sequence[NDArray[np.uint64]],
    n_pool: int,
    share: float,
) -> float:
    """Return how often chance pairs so many labeled rows with pool rows.

    A content that t rows have, in both tables together, is by chance in both of them
    with probability 1 - (1 - f)^t - f^t, f being the part of the rows that is labeled:
    the number of contents in both is binomial for every t. Returned is the smallest of
    the p-values times their number. Contents of the pool are counted in a sample.
    """
    if not share:
        return nan
    n = sum(in_labeled.values())
    part = n / (n + n_pool)
    both = Counter(m + in_pool[key] for key, m in in_labeled.items() if in_pool[key])
    alone = Counter(m for key, m in in_labeled.items() if not in_pool[key])
    values, times = np.unique(np.concatenate(sampled), return_counts=True)
    times = times[~np.isin(values, hashes)]
    p_values = []
    for t in range(2, _MOST_TIMES + 1):
        if both[t]:
            others = alone[t] + round(int((times == t).sum()) / share)
            chance = 1.0 - (1.0 - part) ** t - part**t
            tail = stats.binom.sf(both[t] - 1, both[t] + others, chance)
            p_values.append(float(tail))
    return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


@dataclass(frozen=True)
class SharedRowSearch:
    """Finds rows of a block among known ones."""

    stages: tuple[tuple[slice, NDArray[np.uint64]], ...]
    """Columns, and the hashes of the known rows in them, ascending."""
    keys: frozenset[bytes]
    dtype: np.dtype[Any]
    near: NearSearch
    share: float = 0.0
    """Part of all contents whose hashes are returned."""

    def __call__(self, X: Any, rows: NDArray[np.int64]) -> Found:
        """Return numbers and contents of known rows, near copies, sampled hashes."""
        X = encoded(X)
        likely = np.arange(X.shape[0])
        for columns, known in self.stages:
            part = X[:, columns] if len(likely) == X.shape[0] else X[likely][:, columns]
            hashes = row_hashes(comparable(part, self.dtype))
            places = np.searchsorted(known, hashes) % len(known)
            likely = likely[known[places] == hashes]
        keys = row_keys(comparable(X[likely], self.dtype))
        found = [at for at, key in enumerate(keys) if key in self.keys]
        near = X if X.dtype == self.dtype else comparable(X, self.dtype)
        return (
            rows[likely[found]].tolist(),
            [keys[at] for at in found],
            self.near(near, rows),
            [self._sampled(X)],
        )

    def _sampled(self, X: Any) -> NDArray[np.uint64]:
        if not self.share:
            return np.empty(0, dtype=np.uint64)
        hashes = row_hashes(comparable(X, self.dtype))
        return hashes[mixed_bits(hashes) / 2.0**64 < self.share]


def _stages(pool: Pool) -> tuple[slice, ...]:
    """Return the columns to compare first, and all: most rows differ in a few."""
    every = slice(None)
    if pool.is_sparse or pool.n_columns < 2 * _FIRST_COLUMNS:
        return (every,)
    return slice(None, None, pool.n_columns // _FIRST_COLUMNS), every


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


def _rounded(X: Any, pool: Pool) -> Any:
    """Return labeled rows as numbers, rounded as floats of the pool's frames were."""
    values = encoded(X)
    if pool.dtype.kind != "O":
        return values
    rounded = np.array(values)
    for place, column in enumerate(pool.array.schema.columns):
        if column.is_single:
            rounded[:, place] = values[:, place].astype(np.float32)
    return rounded


def _as_in(pool: Pool, X: Any) -> Any:
    """Return rows sparse or dense as the pool's are."""
    if pool.is_sparse:
        return sparse.csr_matrix(X)
    return X.toarray() if sparse.issparse(X) else X


def _joined(earlier: Found, later: Found) -> Found:
    return (
        [*earlier[0], *later[0]],
        [*earlier[1], *later[1]],
        earlier[2].plus(later[2]),
        [*earlier[3], *later[3]],
    )
