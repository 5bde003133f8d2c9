"""Whether labeled rows and pool rows look like draws from one population.

A forest learns to tell them apart on one half of a sample, and is asked on the other.
If rows come from one population, its scores on that half say nothing, and every
assignment of "labeled" and "pool" to them is equally likely: which gives an exact
p-value, for one fit. No label is used.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from dsel.data.chunking import stacked
from dsel.data.shared import chance_of_equal
from dsel.data.words import hashed_seed

MOST_ROWS: Final = 500
"""Rows of either kind in the sample."""
FEWEST_ROWS: Final = 40
"""With fewer of either kind nothing is compared."""
N_PERMUTATIONS: Final = 999
ALARM: Final = 0.001
"""A p-value at which rows are said to differ: a false alarm in one of 1000 searches."""


@dataclass(frozen=True)
class TwoSampleTest:
    """How well rows of two kinds can be told apart."""

    auc: float
    """Chance that a pool row scores higher than a labeled row; 0.5 by guessing."""
    p_value: float
    """How often chance alone does as well."""
    n_equal: int = 0
    """Rows of the pool's sample that equal a labeled row."""
    equal_p_value: float = 1.0
    """How often chance makes so many equal; see `chance_of_equal`."""

    @property
    def finds_records(self) -> bool:
        """Whether the pool holds the labeled records themselves."""
        return self.equal_p_value <= ALARM

    @property
    def finds_shift(self) -> bool:
        """Whether the two are hardly of one population."""
        return self.p_value <= ALARM

    def __str__(self) -> str:
        found = "tells" if self.finds_shift else "does not tell"
        return (
            f"a classifier {found} labeled rows from pool rows "
            f"(AUC {self.auc:.2f}, p = {self.p_value:.2g})"
        )


def two_sample_test(labeled: Any, unlabeled: Any, *, seed: int) -> TwoSampleTest:
    """Compare rows of two kinds, (n_rows, n_columns) each, by a classifier.

    Parameters
    ----------
    labeled, unlabeled
        Arrays or CSR matrices; missing values may stand in arrays.
    seed
        Of the halves, the forest and the permutations.
    """
    from sklearn.ensemble import RandomForestClassifier  # takes a while to import

    rng = np.random.default_rng(hashed_seed(seed, "two-sample test"))
    X = stacked([_drawn(each, MOST_ROWS, rng) for each in (labeled, unlabeled)])
    X = _as_float32(X)
    is_pool = np.arange(X.shape[0]) >= min(labeled.shape[0], MOST_ROWS)
    asked = _half_of_each(is_pool, rng)
    forest = RandomForestClassifier(
        n_estimators=50, min_samples_leaf=5, random_state=hashed_seed(seed, "forest")
    ).fit(X[~asked], is_pool[~asked])
    scores = forest.predict_proba(X[asked])[:, 1]
    auc, p_value = _rank_test(scores, is_pool[asked], rng)
    return TwoSampleTest(auc, p_value, *chance_of_equal(labeled, unlabeled))


def _as_float32(X: Any) -> Any:
    """Return rows as a forest takes them: it asks for the order of values only."""
    most = np.finfo(np.float32).max
    if sparse.issparse(X):
        X = X.copy()
        X.data = np.clip(X.data, -most, most).astype(np.float32)
        return X
    return np.clip(X, -most, most).astype(np.float32)


def _rank_test(
    scores: NDArray[np.float64], is_pool: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Compare the mean rank of one kind with what it is in random assignments."""
    ranks = stats.rankdata(scores)
    n_pool, n_labeled = int(is_pool.sum()), int((~is_pool).sum())
    shuffled = rng.permuted(np.tile(ranks, (N_PERMUTATIONS, 1)), axis=1)
    by_chance = shuffled[:, :n_pool].sum(axis=1)
    seen = ranks[is_pool].sum()
    as_good = int((by_chance >= seen - 1e-9).sum())
    auc = (seen - n_pool * (n_pool + 1) / 2) / (n_pool * n_labeled)
    return float(auc), (1 + as_good) / (1 + N_PERMUTATIONS)


def _half_of_each(
    is_pool: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    asked = np.zeros(len(is_pool), dtype=bool)
    for kind in (False, True):
        rows = rng.permutation(np.flatnonzero(is_pool == kind))
        asked[rows[: len(rows) // 2]] = True
    return asked


def _drawn(X: Any, n_rows: int, rng: np.random.Generator) -> Any:
    if X.shape[0] <= n_rows:
        return X
    return X[np.sort(rng.choice(X.shape[0], n_rows, replace=False))]
