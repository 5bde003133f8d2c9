"""Counts of thousands of halvings of two-class kernel machines, in a few products.

The same counts as those of `dsel.covalidate`, without families and for all halvings at
once: the selection experiment fits 144,000 machines of at most 200 rows on one set.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import CRITERIA, Evidence, Settings
from dsel.data.splits import half_splits
from dsel.families.svm.fit import solve_pairs
from dsel.kernels.functions import Kernel

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
BLOCK_NBYTES = 2**26
TOL = 1e-3
ESTIMATES = (
    "disagreement", "dis_error", "train_error", "max_dt_e", "two_fold_cv",
    "max_cv_dt_e", "half_true_error", "true_error",
)  # fmt: skip
"""What co-validation makes of the halves of some labeled rows."""


def inner_products(X: Any, pool: Any) -> tuple[Floats, Floats]:
    """Return what all polynomial kernels share: products of the rows, dense or sparse.

    They are of labeled rows with each other, shape (n_labeled, n_labeled), and of pool
    rows with labeled ones, shape (n_pool, n_labeled).
    """

    def dense(product: Any) -> Floats:
        return np.asarray(
            product.toarray() if hasattr(product, "toarray") else product, dtype=float
        )

    return dense(X @ X.T), dense(pool @ X.T)


def halves_of(n_rows: int, repeats: int, seeds: Sequence[int]) -> Masks:
    """Return the rows that each half trains on, shape (n_trials, n_halves, n_rows).

    The halvings of a trial are those that its seed gives, as `covalidate` has them.
    """
    halves = np.zeros((len(seeds), 2 * repeats, n_rows), dtype=bool)
    for trial, seed in zip(halves, seeds, strict=True):
        for split in half_splits(n_rows, repeats, seed=seed):
            trial[split.number, split.train_rows] = True
    return halves


def machine_counts(
    inner: tuple[Floats, Floats],
    y: NDArray[np.int64],
    truth: NDArray[np.int64],
    halves: Masks,
    kernels: Sequence[Kernel],
    *,
    C: float,
) -> list[Evidence]:
    """Fit every kernel on every half, and return the evidence of each trial.

    The kernels are the candidates; `y` and `truth` are class codes 0 and 1 of labeled
    and of pool rows.
    """
    half = halves.reshape(-1, halves.shape[-1]).T
    counts = [_count(inner, y, truth, half, kernel, C) for kernel in kernels]
    stacked = {name: np.stack([each[name] for each in counts]) for name in counts[0]}
    return [_trial(stacked, halves, len(truth), trial) for trial in range(len(halves))]


def _count(
    inner: tuple[Floats, Floats],
    y: NDArray[np.int64],
    truth: NDArray[np.int64],
    half: Masks,
    kernel: Kernel,
    C: float,
) -> dict[str, NDArray[np.int64]]:
    """Count what the machine of each column of `half` does, and that of all rows."""
    rows, pool = inner
    gram = kernel.values(rows)
    every = np.ones((len(y), 1), dtype=bool)
    coefs, offsets = _fit(gram, y, np.hstack([half, every]), C)
    wrong = ((gram @ coefs + offsets) > 0)[:, :-1] != (y == 1)[:, np.newaxis]
    disagreements = np.zeros(half.shape[1] // 2, dtype=np.int64)
    errors = np.zeros(len(offsets), dtype=np.int64)
    step = max(64, BLOCK_NBYTES // (8 * len(offsets)))
    for start in range(0, len(truth), step):
        block = kernel.values(pool[start : start + step])
        says = (block @ coefs + offsets) > 0
        disagreements += (says[:, 0:-1:2] != says[:, 1:-1:2]).sum(axis=0)
        errors += (says != (truth[start : start + step] == 1)[:, np.newaxis]).sum(
            axis=0
        )
    return {
        names.TRAIN_ERRORS: (wrong & half).sum(axis=0),
        names.FOLD_ERRORS: (wrong & ~half).sum(axis=0),
        names.DISAGREEMENTS: disagreements,
        names.HALF_TEST_ERRORS: errors[:-1],
        names.FULL_TEST_ERRORS: errors[-1:],
    }


def _fit(
    gram: Floats,
    y: NDArray[np.int64],
    train: Masks,
    C: float,
) -> tuple[Floats, Floats]:
    """Return dual coefficients (n_labeled, n_splits), and constants.

    As libsvm has it the smaller code is its first class, and only the diagonal stays
    unrounded; here decisions above 0 say 1.
    """
    rounded, diagonal = gram.astype(np.float32), np.diagonal(gram)
    coefs, offsets = np.zeros(train.shape), np.zeros(train.shape[1])
    for column, mask in enumerate(train.T):
        members = np.concatenate([np.flatnonzero(mask & (y == c)) for c in (0, 1)])
        if len(set(y[members])) < 2:
            offsets[column] = np.inf if y[members[0]] == 1 else -np.inf
            continue
        starts = np.searchsorted(y[members], [0, 1, 2])
        paths = solve_pairs(
            rounded, members, starts, np.ones(len(members)), diagonal[members],
            C_values=np.array([C]), tol=TOL, max_iter=-1,
        )  # fmt: skip
        coefs[members, column] = -paths.coefs[:, 0, 0]
        offsets[column] = -paths.offsets[0, 0]
    return coefs, offsets


def _trial(
    stacked: dict[str, NDArray[np.int64]], halves: Masks, n_pool: int, trial: int
) -> Evidence:
    n_trials, n_halves, n_labeled = halves.shape
    n = len(stacked[names.DISAGREEMENTS])
    train_rows = halves[trial].sum(axis=1)
    own = {
        name: each.reshape(n, n_trials, -1)[:, trial]
        for name, each in stacked.items()
        if name != names.FULL_TEST_ERRORS
    }
    return {
        **own,
        names.STATUS: np.zeros(n, dtype=np.int8),
        names.FULL_TEST_ERRORS: stacked[names.FULL_TEST_ERRORS][:, 0],
        names.POOL_ROWS: np.full((n, n_halves // 2), n_pool),
        names.TRAIN_ROWS: train_rows,
        names.FOLD_ROWS: n_labeled - train_rows,
        names.N_LABELED: np.array(n_labeled),
        names.N_UNLABELED: np.array(n_pool),
        names.N_CLASSES: np.array(2),
        names.TEST_ROWS: np.array(n_pool),
    }


def half_estimates(evidence: Evidence) -> xr.Dataset:
    """Return every estimate of co-validation over ``candidate``."""
    n = len(evidence[names.STATUS])
    settings = Settings(np.full(n, 0.5), 0.5)
    found = {
        name: CRITERIA[name].evaluate(evidence, settings).estimate for name in ESTIMATES
    }
    return xr.Dataset({name: (names.CANDIDATE, value) for name, value in found.items()})
