"""Tests of the assumptions of a certificate by the rows.

dsel checks for mistakes of honest users that are visible in the rows: groups, splitters
of the user and, in one pass over the pool, rows that equal labeled ones. The pass also
makes a classifier two-sample test (Lopez-Paz and Oquab 2017). A forest is trained on
one half of a sample to separate labeled from pool rows, and scores the other half. If
all rows come from one population, its scores there are independent of which rows are
labeled, so all assignments of "labeled" and "pool" are equally likely, and a
permutation test gives a valid p-value. No class label is used.

No check finds a learner that reads held-out rows from a file, a module or a closure.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, isqrt
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, stats

from dsel.arrays import Bools, Features, Floats, Integers
from dsel.bounds.duplicates import copies_refute_independence
from dsel.checks import SMALLEST_LEVEL
from dsel.data.duplicate_rows import duplicate_finder, make_comparable
from dsel.data.frames import concatenate_rows, encode_rows
from dsel.data.identity import row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.pool_parts import SampledRows
from dsel.data.row_random import SHIFT_STREAM, derive_seed, mix_bits, row_random_at
from dsel.results.caveats import IF_COPIES, NO_COPIES, Caveat, Effect
from dsel.results.records import older_name
from dsel.rounded_texts import fraction_in_percent
from dsel.search.design.cv_schemes import CVScheme

if TYPE_CHECKING:
    from distributed import Client


SAMPLE_ROWS: Final = 500
"""Sampled pool rows, which are compared with as many labeled ones."""
HASHED_ROWS: Final = 20_000
"""Approximate number of pool rows whose hashes show whether rows repeat."""
_MEMBER_COLUMNS: Final = 4
FEWEST_TESTED_ROWS: Final = 40
"""Fewest rows of either kind for a test."""
# Scikit-learn spends nearly all of the test's time on overhead of each tree. With 25
# trees and leaves of 10 rows the mean z over eight kinds of shift was 3.37, with these
# it is 3.40.
N_TREES: Final = 15
LEAF_ROWS: Final = 15
MOST_COLUMNS: Final = 100
"""Columns that are tried at each split of a tree; they are drawn from wider tables."""
MANY_VALUES: Final = 20
"""Number of values of a column above which a tree finds a single one only by chance."""
MOST_SINGLE_TESTS: Final = 10
"""Most columns that are tested one by one, those that the forest uses most."""
FIRST_PERMUTATIONS: Final = 99
"""Permutations of the first stage of the test; `CLEAR` decides on a second."""
CLEAR: Final = 0.1
"""A p-value of the first stage above this is the result, without a second stage."""
ALARM: Final = 0.001
"""The largest p-value of an alarm: one false alarm in 1,000 searches."""
COPIES_ALARM: Final = 1e-6
"""The largest p-value by which rows of a table are copies, or come in groups."""
NEIGHBOR_ROWS: Final = 1_000
"""Most labeled rows whose nearest rows are found."""
NEARER: Final = 0.75
"""Ratio of the distances to the nearest of as many labeled rows, and pool rows, below
which labeled rows come in groups."""
FEWEST_GROUPS: Final = 10
"""Fewest values of a column that may say which rows belong together."""
SHARED_LESS: Final = 0.75
"""Ratio of the fractions of pool rows, and labeled rows, that share their value of a
column with a labeled row, below which this column may be about groups."""
TAKE_ONCE: Final = "take each record once (drop_duplicates), or pass `groups`"
"""Advice for labeled rows that are copies."""
MANY_DUPLICATES: Final = 0.01
"""Fraction of rows with a duplicate in another fold that leads to a caveat."""
NO_FOLD: Final = -1
"""Number in place of that of a fold, of labeled rows that are in none."""


class SharedValues(NamedTuple):
    """A column whose values labeled rows share with each other, and pool rows do not.

    Rows of one customer have one address, and the rows in the pool are of other
    customers. If both tables were drawn row by row, a row of the pool would share its
    value with a labeled row as often as a labeled row does with another one.
    """

    column: str
    """Its name, or "value of column 3" if columns have no names."""
    groups: str
    """The argument that passes it as the key of groups."""
    of_labeled: float
    """Fraction of labeled rows with the value of another labeled row."""
    of_pool: float
    """Fraction of sampled pool rows with the value of a labeled row."""

    @property
    def column_name(self) -> str:
        """Its name, "" if columns have no names."""
        return self.column if self.groups == repr(self.column) else ""

    @property
    def text(self) -> str:
        """What this may mean, beside a shift that names the column."""
        labeled = fraction_in_percent(self.of_labeled)
        of_pool = fraction_in_percent(self.of_pool)
        return (
            f"{labeled} of labeled rows have the {self.column} of another labeled row, "
            f"and {of_pool} of similar pool rows have that of a "
            f"labeled one, so these may be groups: if rows of one {self.column} "
            f"belong together, no bound of this run holds, so run again with "
            f"groups={self.groups}"
        )


class NearRows(NamedTuple):
    """Labeled rows whose nearest row is another labeled row."""

    n_rows: int
    """Labeled rows that are compared."""
    n_near: int
    n_expected: int
    """Number that would be near by chance."""


@dataclass(frozen=True)
class PoolFacts:
    """Results of one pass over the pool, for which no label was used."""

    n_duplicates: int = field(default=0, metadata=older_name("equal_rows"))
    """Pool rows that equal a labeled row."""
    auc: float = float("nan")
    """Probability that a pool row scores higher than a labeled row; 0.5 by guessing."""
    p_value: float = 1.0
    """p-value of the two-sample test."""
    n_fitting_duplicates: int = field(
        default=0, metadata=older_name("fitting_equal_rows")
    )
    """Rows that equal labeled ones in the subset of the pool for fits."""
    telling_columns: tuple[str, ...] = ()
    """Columns that also fail a test of their own; the one that differs most comes
    first."""
    shared_values: SharedValues | None = None
    """The first of these columns by which labeled rows may come in groups."""
    n_pool_copies: int = 0
    """Number of sampled fresh pool rows (rows that equal no labeled one) that equal an
    earlier fresh row; 0 unless it is far larger than among as many labeled rows."""
    pool_repeats: bool = False
    """Whether fresh pool rows repeat as independent draws cannot."""
    near_rows: NearRows | None = None
    """Labeled rows whose nearest row is labeled; None unless these are far more than by
    chance."""

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of an older version, where an empty list stands for None."""
        return record | {"near_rows": record.get("near_rows") or None}

    @property
    def violation(self) -> str:
        """Why A1 is violated by copies or groups of rows; "" if it is not."""
        if self.n_pool_copies:
            finding = (
                f"{self.n_pool_copies:,} of about {SAMPLE_ROWS:,} sampled pool rows "
                f"equal an earlier one, and far fewer labeled rows do"
            )
        elif self.pool_repeats:
            finding = "pool rows repeat as independent draws cannot"
        elif (near := self.near_rows) is not None:
            return (
                f"{near.n_near:,} of {near.n_rows:,} labeled rows have another labeled "
                f"row as their nearest one, and by chance {near.n_expected:,} would, "
                f"so they seem to come in groups, such as several rows of one "
                f"customer, of which the pool has others: no bound of this run holds, "
                f"so run again with groups='customer'"
            )
        else:
            return ""
        return f"{finding}: copies; take each record of the pool once (drop_duplicates)"


@dataclass(frozen=True)
class PoolFindings:
    """Results of the first pass over the pool."""

    pool_facts: PoolFacts = PoolFacts()
    sampled_rows: SampledRows | None = None
    """Rows that show later passes whether the pool has changed; None if its stamps
    do."""


class _BlockFindings(NamedTuple):
    """Findings in the rows of one block, or of several consecutive blocks."""

    n_duplicates: int
    """Rows that equal a labeled one."""
    row_numbers: list[Integers]
    """Numbers of the sampled rows, for each block that has some."""
    rows: list[Features]
    """These rows."""
    are_fresh: list[Bools]
    """Which of these rows equal no labeled one."""
    repeats: list["pd.Series[int]"]
    """Results of `count_repeats`."""

    def join(self, later: "_BlockFindings") -> "_BlockFindings":
        """Return the findings in both."""
        return _BlockFindings(*map(add, self, later))


def compare_pool(
    pool: Pool,
    labeled: LabeledRows,
    *,
    seed: int,
    allow_nan: bool,
    n_fitting_duplicates: int = 0,
    client: "Client | None" = None,
    on_turn: Callable[[], object] | None = None,
) -> PoolFindings:
    """Count rows that equal labeled ones, and make the two-sample test, in one pass.

    `n_fitting_duplicates` of them are in the subset of the pool for fits, and are
    counted already. An exception of `on_turn` ends the pass.
    """
    fraction = min(1.0, SAMPLE_ROWS / pool.n_rows)
    hashed_fraction = min(1.0, HASHED_ROWS / pool.n_rows)
    find_duplicates = duplicate_finder(pool, labeled)

    def check_block(X: Features, row_numbers: Integers) -> _BlockFindings:
        words = row_random_at(seed, SHIFT_STREAM, row_numbers) >> np.uint64(11)
        sampled = np.flatnonzero(words * 2.0**-53 < fraction)
        is_duplicate = find_duplicates(X)
        n_duplicates = int(is_duplicate.sum())
        repeats = [count_repeats(X, ~is_duplicate, hashed_fraction)]
        if not len(sampled):
            return _BlockFindings(n_duplicates, [], [], [], repeats)
        return _BlockFindings(
            n_duplicates,
            [row_numbers[sampled]],
            [X[sampled]],
            [~is_duplicate[sampled]],
            repeats,
        )

    block_findings: _BlockFindings = pool.reduce(
        check_block,
        _BlockFindings.join,
        client=client,
        allow_nan=allow_nan,
        on_turn=on_turn,
    )
    if on_turn is not None:
        on_turn()  # before the test, which takes a while
    pool_facts = PoolFacts(
        block_findings.n_duplicates,
        n_fitting_duplicates=n_fitting_duplicates,
        pool_repeats=have_copies(merge_repeats(block_findings.repeats)),
    )
    if not block_findings.rows:
        return PoolFindings(pool_facts)
    sample = concatenate_rows(block_findings.rows)
    row_numbers = np.concatenate(block_findings.row_numbers)
    sampled_rows = SampledRows.of(pool, row_numbers, sample)
    if min(sample.shape[0], labeled.n_rows) >= FEWEST_TESTED_ROWS:
        are_fresh = np.concatenate(block_findings.are_fresh)
        pool_facts = _test_sample(pool_facts, labeled, sample, are_fresh, seed)
    return PoolFindings(pool_facts, sampled_rows)


def _test_sample(
    pool_facts: PoolFacts,
    labeled: LabeledRows,
    sample: Features,
    are_fresh: Bools,
    seed: int,
) -> PoolFacts:
    """Return the facts with the results of tests of sampled pool rows."""
    test = two_sample_test(labeled.X, sample, seed=seed, level=ALARM)
    telling_columns = tuple(test.column_names(labeled.columns))
    near_rows = None
    shared_values = find_shared_values(labeled.X, sample, test.columns, labeled.columns)
    # Rows that differ in some column are far from those of the other table. This column
    # then explains the distance, and groups need not.
    if not telling_columns:
        is_shifted = test.p_value <= ALARM
        near_rows = find_near_rows(labeled.X, sample, seed=seed, is_shifted=is_shifted)
    return replace(
        pool_facts,
        auc=test.auc,
        p_value=test.p_value,
        telling_columns=telling_columns,
        shared_values=shared_values,
        # Records of labeled rows may be in the pool, even often: the bounds allow for
        # them.
        n_pool_copies=count_copies(labeled.X, sample, are_fresh, seed=seed),
        near_rows=near_rows,
    )


def count_repeats(
    X: Features, is_fresh: Bools, fraction: float = 1.0
) -> "pd.Series[int]":
    """Return how often each fresh row of a subset occurs, by its hash.

    The values in a few columns decide whether a row is in the subset, so that either
    all equal rows are in it or none.
    """
    X = encode_rows(X)
    double = np.dtype(np.float64)
    step = max(X.shape[1] // _MEMBER_COLUMNS, 1)
    words = mix_bits(row_hashes(make_comparable(X[:, ::step], double))) >> np.uint64(11)
    is_member = is_fresh & (words * 2.0**-53 < fraction)
    hashes = row_hashes(make_comparable(X[np.flatnonzero(is_member)], double))
    return pd.Series(hashes).value_counts(sort=False)


def merge_repeats(repeats: Sequence["pd.Series[int]"]) -> "pd.Series[int]":
    """Return how often rows occur in several tables, of at most `HASHED_ROWS` rows.

    If there are more different rows, those with the smaller hashes are kept, so that
    the order of the tables does not matter.
    """
    times = pd.concat(repeats).groupby(level=0).sum()
    largest = 2**64
    while len(times) > HASHED_ROWS:
        largest //= 2
        times = times[times.index < largest]
    return times


def have_copies(repeats: "pd.Series[int]") -> bool:
    """Return whether rows occur too often for independent draws."""
    return copies_refute_independence(repeats.to_numpy(), COPIES_ALARM)


class TwoSampleTest(NamedTuple):
    """Result of a two-sample test by a classifier."""

    auc: float
    """Probability that a row of the second table scores higher than one of the first;
    0.5 by guessing."""
    p_value: float
    """p-value of the permutation test."""
    columns: tuple[int, ...]
    """Columns that a test of the column alone refutes.

    The one that the classifier uses most comes first; then there are some only if the
    test refutes, and only the columns of most use are tested in wide tables. With
    `each_column` all are tested, and the one with the smallest p-value comes first."""
    column_p_value: float = 1.0
    """p-value of the tests of all single columns, if they were requested."""

    def column_names(self, names: Sequence[str] | None) -> list[str]:
        """Return the names of the columns, or their numbers if they have no names."""
        return [str(at) if names is None else names[at] for at in self.columns]


def two_sample_test(
    labeled: Features,
    unlabeled: Features,
    *,
    seed: int,
    level: float,
    most_rows: int = SAMPLE_ROWS,
    each_column: bool = False,
) -> TwoSampleTest:
    """Compare rows by a classifier; see the docstring of this module.

    Rows may have missing values, except in CSR matrices. The seed draws the halves, the
    forest, the permutations, and up to `most_rows` rows of each table. A p-value of at
    most `level` refutes that the rows come from one population; the tests of single
    columns have this level together (Bonferroni).

    With `each_column` all columns of dense tables are also compared one by one, by
    Kolmogorov-Smirnov tests, which detect small shifts better than a classifier. They
    and the classifier have half of `level` each, and both p-values are twice as large.
    """
    rng = np.random.default_rng(derive_seed(seed, "two-sample test"))
    tables = [
        _draw_rows(encode_rows(table), most_rows, rng) for table in (labeled, unlabeled)
    ]
    X = _rank_values(concatenate_rows(tables))
    is_pool = np.arange(X.shape[0]) >= tables[0].shape[0]
    is_taken = ~find_excess_repeats(X, is_pool)
    X, is_pool = X[is_taken], is_pool[is_taken]
    if min(is_pool.sum(), (~is_pool).sum()) < FEWEST_TESTED_ROWS:
        return TwoSampleTest(float("nan"), 1.0, ())
    of_column, column_p_values = np.arange(X.shape[1]), None
    if not sparse.issparse(X):
        if each_column:
            column_p_values = _compare_columns(X, is_pool)
        frequencies, repeating = count_values(X)
        X = np.column_stack([X, frequencies])
        of_column = np.append(of_column, repeating)
    # A random half of the rows of both tables is scored.
    is_scored = np.zeros(len(is_pool), dtype=bool)
    for kind in (False, True):
        rows = rng.permutation(np.flatnonzero(is_pool == kind))
        is_scored[rows[: len(rows) // 2]] = True
    separate = partial(
        _classifier_two_sample_test,
        is_pool=is_pool,
        is_scored=is_scored,
        seed=seed,
        rng=rng,
    )
    if column_p_values is not None:
        auc, p_value, _ = separate(X, level=SMALLEST_LEVEL / 2)
        column_p_values = np.minimum(1.0, 2 * column_p_values)
        order = np.argsort(column_p_values, kind="stable")
        shifted = order[column_p_values[order] <= level][:MOST_SINGLE_TESTS].tolist()
        least = float(column_p_values.min())
        return TwoSampleTest(auc, min(1.0, 2 * p_value), tuple(shifted), least)
    auc, p_value, importances = separate(X, level=SMALLEST_LEVEL)
    columns: tuple[int, ...] = ()
    if p_value <= level:
        columns = _refute_columns(separate, X, of_column, importances, level)
    return TwoSampleTest(auc, p_value, columns)


def _refute_columns(
    separate: Callable[..., tuple[float, float, Floats]],
    X: Any,
    of_column: Integers,
    importances: Floats,
    level: float,
) -> tuple[int, ...]:
    """Return the most used columns that a test of the column alone refutes.

    `separate` is `_classifier_two_sample_test` with the rows of this test. `of_column`
    maps the columns of `X` to the columns from which they were made.
    """
    # A forest uses unchanged columns, too, so its importances alone name none. They are
    # of rows that are not scored, so only the columns tested here share the level.
    # A stable sort puts the first of equal columns first, like `argmax`.
    used = of_column[np.argsort(-importances, kind="stable")].tolist()
    columns = list(dict.fromkeys(used))[:MOST_SINGLE_TESTS]
    column_level = level / len(columns)
    smallest = min(column_level, SMALLEST_LEVEL)
    return tuple(
        column
        for column in columns
        if len(columns) == 1
        or separate(X[:, of_column == column], level=smallest)[1] <= column_level
    )


def _draw_rows(table: Any, most_rows: int, rng: np.random.Generator) -> Any:
    """Return a table, or as many of its rows, in order, if it has more."""
    if table.shape[0] <= most_rows:
        return table
    return table[np.sort(rng.choice(table.shape[0], most_rows, replace=False))]


def _rank_values(X: Any) -> Any:
    """Return the rank of each value in its column; zeros of CSR rows stay zeros.

    A forest depends on ranks alone, except that scikit-learn treats values that differ
    by less than 1e-7 as equal.
    """
    # The features are float32, since the float32 and the float64 next to 0.1 differ,
    # and trees would separate equal records of two tables.
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    if not sparse.issparse(X):
        return stats.rankdata(X, method="dense", axis=0, nan_policy="omit")
    _, ranks = np.unique(np.append(X.data, 0.0), return_inverse=True)
    X.data = (ranks[:-1] - ranks[-1]).astype(np.float64)
    return X


def _compare_columns(X: Floats, is_pool: Bools) -> Floats:
    """Return the p-value of each column times their number (Bonferroni).

    A missing value is smaller than all others. Ties make the p-values too large.
    """
    ranks = np.nan_to_num(X, nan=0.0)
    # Asymptotic p-values are too small where one table has few rows: of 40 rows beside
    # 2,000 they were 0.001 or less in 0.0027 of 6,000 draws.
    with warnings.catch_warnings():
        # Rounding makes some exact p-values larger than 1; SciPy then warns and uses
        # the asymptotic ones, which are near 1 as well.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation", RuntimeWarning)
        p_values: Floats = np.array([
            stats.ks_2samp(column[is_pool], column[~is_pool], method="exact").pvalue
            for column in ranks.T
        ])  # fmt: skip
    p_values *= X.shape[1]
    return p_values


def count_values(X: Floats) -> tuple[Floats, Integers]:
    """Return how often values occur in their column, and the numbers of these columns.

    Some values, such as the keys of customers, are each in one table only. Those of
    both tables are mixed in order, so that trees do not find them, but they find how
    often values occur. The rows of both tables are counted together, so that the test
    stays valid. Columns of few values, and columns whose values hardly repeat, are left
    out.
    """
    n_rows, frequencies, repeating = len(X), list[Floats](), list[int]()
    for number, column in enumerate(X.T):
        _, codes, times = np.unique(column, return_inverse=True, return_counts=True)
        if MANY_VALUES < len(times) <= 0.9 * n_rows:
            frequencies.append(times[codes].astype(np.float64))
            repeating.append(number)
    shape = len(frequencies), n_rows
    return np.reshape(frequencies, shape).T, np.array(repeating, dtype=np.int64)


def _classifier_two_sample_test(
    X: Any,
    *,
    is_pool: Bools,
    is_scored: Bools,
    level: float,
    seed: int,
    rng: np.random.Generator,
) -> tuple[float, float, Floats]:
    """Return AUC and p-value of a forest, and how much it uses each column.

    The smallest possible p-value is `level`.
    """
    from sklearn.ensemble import ExtraTreesClassifier  # takes a while to import

    # Nearly all the time is overhead of scikit-learn for each tree. Random thresholds
    # in all columns see shifts of one column, of a scale or a correlation better than
    # three times as many trees of a random forest, which tries few columns at a split.
    n_columns = X.shape[1]
    forest = ExtraTreesClassifier(
        n_estimators=N_TREES,
        min_samples_leaf=LEAF_ROWS,
        max_features=max(min(n_columns, MOST_COLUMNS), isqrt(n_columns)),
        random_state=derive_seed(seed, "forest"),
    ).fit(X[~is_scored], is_pool[~is_scored])
    scores = forest.predict_proba(X[is_scored])[:, 1]
    ranks = stats.rankdata(scores)
    scored = is_pool[is_scored]
    n_pool, n_labeled = int(scored.sum()), int((~scored).sum())
    rank_sum = ranks[scored].sum()
    auc = (rank_sum - n_pool * (n_pool + 1) / 2) / (n_pool * n_labeled)
    p_value = _permutation_p_value(ranks, n_pool, rank_sum, level, rng)
    return float(auc), p_value, forest.feature_importances_


def count_copies(
    labeled: Features, pool_rows: Features, are_fresh: Bools, *, seed: int
) -> int:
    """Return how many fresh pool rows equal an earlier one; 0 unless far too many do.

    The number is compared with that among as many labeled rows, since rows of a few
    categories equal one another there, too. `are_fresh` marks the pool rows that equal
    no labeled one.
    """
    rng = np.random.default_rng(derive_seed(seed, "copies in the pool"))
    rows = rng.permutation(labeled.shape[0])[:SAMPLE_ROWS]
    X = concatenate_rows([encode_rows(labeled)[rows], encode_rows(pool_rows)])
    is_pool = np.arange(X.shape[0]) >= len(rows)
    is_copy = _find_repeats(X, is_pool)
    is_copy[len(rows) :] &= are_fresh
    n_copies = int(is_copy[is_pool].sum())
    is_more = n_copies / is_pool.sum() > is_copy[~is_pool].mean()
    return n_copies if is_more and _has_one_more(is_copy, is_pool) else 0


def find_near_rows(
    labeled: Features, pool_rows: Features, *, seed: int, is_shifted: bool = False
) -> NearRows | None:
    """Return `PoolFacts.near_rows`, by a test of nearest neighbors.

    Rows of one customer are near each other. If rows of some customers are labeled, and
    rows of other customers are in the pool, labeled rows have labeled neighbors more
    often than independent draws of one population. For these the number of pairs has a
    known mean and variance (Schilling 1986, Henze 1988; here those of permutations, so
    that the distribution of the rows does not matter). If rows of a customer are in
    both tables, new rows belong to known customers, and the bound holds. One of several
    equal rows is taken: other tests are about equal rows, and neighbors at distance 0
    would be of one table less often.
    """
    from sklearn.neighbors import NearestNeighbors  # takes a while to import

    if any(map(sparse.issparse, (labeled, pool_rows))):  # usually words or counts
        return None
    rng = np.random.default_rng(derive_seed(seed, "nearest rows"))
    rows = rng.permutation(labeled.shape[0])[:NEIGHBOR_ROWS]
    X = concatenate_rows([encode_rows(labeled)[rows], encode_rows(pool_rows)])
    is_labeled = np.arange(X.shape[0]) < len(rows)
    # The order is random, since a search for neighbors takes the first of several that
    # are equally near.
    order = rng.permutation(np.flatnonzero(~_find_repeats(X, is_labeled)))
    X, is_labeled = np.asarray(X)[order], is_labeled[order]
    N, n = len(X), int(is_labeled.sum())
    if min(n, N - n) < FEWEST_TESTED_ROWS:
        return None
    columns = rng.permutation(X.shape[1])[:MOST_COLUMNS]
    ranks = stats.rankdata(X[:, columns], axis=0, nan_policy="omit")
    ranks = np.nan_to_num(ranks, nan=N / 2)
    search = NearestNeighbors(n_neighbors=1, metric="manhattan", algorithm="brute")
    nearest = search.fit(ranks).kneighbors(return_distance=False).ravel()
    n_near = int((is_labeled & is_labeled[nearest]).sum())
    # Two pairs of a row and its nearest one share both rows, one, or none.
    n_both = N + int((nearest[nearest] == np.arange(N)).sum())
    n_one = int(((1 + np.bincount(nearest, minlength=N)) ** 2).sum()) - 2 * n_both
    in_two, in_three, in_four = np.cumprod([(n - k) / (N - k) for k in range(4)])[1:]
    expected = in_two * N
    shared = in_two * n_both + in_three * n_one
    shared += in_four * (N**2 - n_both - n_one)
    deviations = (n_near - expected) / np.sqrt(max(shared - expected**2, 1e-9))
    if stats.norm.sf(deviations) > COPIES_ALARM:
        return None
    near_rows = NearRows(n, n_near, round(expected))
    if not is_shifted:
        return near_rows
    # Rows of another population are far from labeled ones, too, which shows no groups:
    # then labeled rows are as near to one another as pool rows are.
    n_each = min(n, N - n)
    near_labeled, near_pool = (
        np.median(search.fit(ranks[is_labeled == kind][:n_each]).kneighbors()[0])
        for kind in (True, False)
    )
    return near_rows if near_labeled < NEARER * near_pool else None


def find_shared_values(
    labeled: Features,
    pool_rows: Features,
    numbers: Sequence[int],
    names: Sequence[str] | None,
) -> SharedValues | None:
    """Return the first of these columns by which labeled rows may come in groups.

    One of several equal rows is taken, since other tests are about copies. Numbers
    outside of the range of the labeled ones are left out: a column of another
    location or scale has these, and shows no groups by it.
    """
    X, others = encode_rows(labeled), encode_rows(pool_rows)
    if sparse.issparse(X):  # usually words or counts
        return None
    if numbers:
        X = X[~_find_repeats(X, np.zeros(len(X), np.bool_))]
    for number in numbers:
        column = pd.Series(X[:, number]).dropna()
        in_range = pd.Series(others[:, number]).dropna()
        in_range = in_range[in_range.between(column.min(), column.max())]
        if min(len(column), len(in_range)) < FEWEST_TESTED_ROWS:
            continue
        of_labeled = float(column.duplicated(keep=False).mean())
        of_pool = float(in_range.isin(column).mean())
        # Folds of groups need several of them.
        are_several = column.nunique() >= FEWEST_GROUPS
        if are_several and of_labeled > 0.5 and of_pool < SHARED_LESS * of_labeled:
            name = f"value of column {number}" if names is None else names[number]
            groups = f"X[:, {number}]" if names is None else repr(name)
            return SharedValues(name, groups, of_labeled, of_pool)
    return None


def find_excess_repeats(X: Any, is_second: Bools) -> Bools:
    """Return a mask of the rows that equal an earlier row of their table.

    It is empty unless one of both tables has far more of them, such as copies of
    records, which a classifier could memorize. Repeats of other records, such as rows
    of a few categories, are equally frequent in both tables, and have no mark.
    """
    is_repeat = _find_repeats(X, is_second)
    is_excess = _has_one_more(is_repeat, is_second)
    return is_repeat if is_excess else np.zeros_like(is_repeat)


def _find_repeats(X: Any, is_second: Bools) -> Bools:
    """Return a mask of the rows that equal an earlier row of their table."""
    hashes = row_hashes(make_comparable(X, np.dtype(np.float64)))
    rows = pd.DataFrame({"row": hashes, "of": is_second})
    return np.array(rows.duplicated(), dtype=np.bool_)


def _has_one_more(is_repeat: Bools, is_second: Bools) -> bool:
    """Return whether one of two tables has far more rows that equal an earlier row."""
    # The larger table has more repeats by chance, so as many rows of both are taken.
    n = min(int(is_second.sum()), int((~is_second).sum()))
    first, second = (
        int(is_repeat[is_second == kind][:n].sum()) for kind in (False, True)
    )
    table = [[first, n - first], [second, n - second]]
    return bool(stats.fisher_exact(table).pvalue <= COPIES_ALARM)


def _permutation_p_value(
    score_ranks: Floats, n: int, rank_sum: float, level: float, rng: np.random.Generator
) -> float:
    """Compare the sum of `n` ranks with sums of random assignments; return a p-value.

    The first permutations are enough if their p-value is above `CLEAR`; otherwise all
    are made. The p-value is valid at each level. A test at a level below `CLEAR`
    refutes only after all permutations. A test at `CLEAR` or above that refutes would
    also refute by its first permutations alone. The smallest p-value is `level`.
    """
    as_good = n_permutations = 0
    for n_more in (FIRST_PERMUTATIONS, ceil(1 / level) - 1 - FIRST_PERMUTATIONS):
        shuffled = rng.permuted(np.tile(score_ranks, (n_more, 1)), axis=1)
        as_good += int((shuffled[:, :n].sum(axis=1) >= rank_sum - 1e-9).sum())
        n_permutations += n_more
        p_value = (1 + as_good) / (1 + n_permutations)
        if p_value > CLEAR:
            break
    return p_value


@dataclass(frozen=True)
class DuplicatesAcrossFolds:
    """Duplicates among labeled rows in different folds, and so in different groups."""

    n_rows: int
    """Labeled rows."""
    n_duplicates: int
    """Labeled rows that equal one of another fold."""
    n_tested: int
    """Labeled rows of one half of the folds."""
    n_tested_duplicates: int
    """Rows of this half that equal a row of the other half."""
    are_copies: bool
    """Whether rows repeat more than independent draws can."""
    have_unique_ids: bool = False
    """Whether each row has its own id, so that duplicates are different records."""

    @classmethod
    def of(
        cls,
        labeled: LabeledRows,
        scheme: CVScheme,
        *,
        has_groups: bool,
        have_unique_ids: bool = False,
    ) -> "DuplicatesAcrossFolds":
        """Count the duplicates among labeled rows, whose content alone is compared.

        Rows in groups must also have the same target: a record that is in another
        group, too, has the same target there.
        """
        hashes = row_hashes(make_comparable(labeled.X, np.dtype(np.float64)))
        if has_groups:
            records = pd.DataFrame({"row": hashes, "target": labeled.y})
            hashes = records.groupby(["row", "target"]).ngroup().to_numpy()
        fold_of = np.full(len(hashes), NO_FOLD)
        for fold, split in enumerate(scheme.fold_splits):
            if scheme.is_plain_random:
                # With groups a fold has more rows than are counted, one of each group.
                is_of_fold = np.ones(len(hashes), bool)
                is_of_fold[split.train_rows] = False
                fold_of[is_of_fold] = fold
            else:
                fold_of[split.test_rows] = fold
        n_folds = pd.Series(fold_of).groupby(hashes).transform("nunique")
        # Even folds are one half. Rows of no fold have -1, which is odd, so that of a
        # hold-out set its test rows are this half.
        is_tested = fold_of % 2 == 0
        is_duplicate = np.isin(hashes[is_tested], hashes[~is_tested])
        return cls(
            len(hashes),
            int((n_folds > 1).sum()),
            int(is_tested.sum()),
            int(is_duplicate.sum()),
            are_copies=not has_groups
            and have_copies(pd.Series(hashes).value_counts(sort=False)),
            have_unique_ids=have_unique_ids,
        )

    @property
    def n_reported(self) -> int:
        """Number of these duplicates; 0 if there are as few as by chance."""
        return (
            self.n_duplicates
            if self.n_duplicates >= MANY_DUPLICATES * self.n_rows
            else 0
        )

    @property
    def text(self) -> str:
        """Text on the number of rows that are in several folds."""
        return (
            f"{self.n_duplicates:,} of {self.n_rows:,} labeled rows equal rows of "
            f"other folds"
        )

    def caveats(self, *, has_classes: bool, has_pool: bool) -> list[Caveat]:
        """Return the caveat about duplicates; none if these are few.

        Copies violate A1 instead. Without a pool no other test detects them.
        """
        if self.are_copies or not self.n_reported:
            return []
        if self.have_unique_ids:
            differ = "their ids differ, so they are counted as records of their own"
            return [Caveat(Effect.INFO, f"{self.text}: {differ}")]
        way = "; to balance classes use class_weight" if has_classes else ""
        effect = Effect.WEAKENS if has_pool else Effect.WARNS
        return [Caveat(effect, f"{self.text}: {IF_COPIES}{way}", condition=NO_COPIES)]

    @property
    def violation_without_pool(self) -> str:
        """Why A1 is violated by labeled rows alone; "" if it is not."""
        if not self.are_copies:
            return ""
        return (
            f"{self.text}, and rows repeat as independent draws cannot: copies; "
            f"{TAKE_ONCE}"
        )

    def violation(self, n_in_pool: int, n_pool: int) -> str:
        """Return why A1 is violated if labeled rows are copies and pool rows are not.

        Given one half of the labeled rows, the rows of the other half and of the pool
        are exchangeable under A1, so that Fisher's exact test is valid however many
        copies a row has. `n_in_pool` of `n_pool` rows equal a labeled row of either
        half, which are at least as many as for the given half, so that the p-value is
        rather too large.
        """
        n_tested = self.n_tested_duplicates
        p_value = stats.hypergeom.sf(
            n_tested - 1, self.n_tested + n_pool, n_tested + n_in_pool, self.n_tested
        )
        if not self.n_reported or p_value > COPIES_ALARM:
            return ""
        in_pool = (
            f"only {n_in_pool:,} of {n_pool:,} pool rows equal" if n_in_pool else ""
        )
        return (
            f"{self.text}, but {in_pool or 'no pool row equals'} a labeled row: "
            f"copies; {TAKE_ONCE}"
        )
