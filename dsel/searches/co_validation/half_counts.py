"""Co-validation of rows in memory: all counts of one candidate list, no plan, no tasks.

The same counts as `covalidate`; for many small problems in a row, such as the steps of
active learning or the trials of an experiment.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import CRITERIA, Evidence, Settings
from dsel.data.cache import process_cache
from dsel.data.splits import full_split, half_splits
from dsel.models.assignment import assign_families
from dsel.models.family import Candidate, FittedGroup

BLOCK_NBYTES = 2**25
ESTIMATES = (
    "disagreement",
    "dis_error",
    "train_error",
    "max_dt_e",
    "two_fold_cv",
    "max_cv_dt_e",
    "half_true_error",
    "true_error",
)
"""What `half_estimates` reads from the counts."""


def half_counts(
    candidates: tuple[Candidate, ...],
    table: tuple[Any, NDArray[np.int64]],
    classes: NDArray[Any],
    pool: Any,
    test: tuple[Any, NDArray[np.int64]],
    *,
    repeats: int = 30,
    seed: int = 0,
) -> Evidence:
    """Train all halves and the full set; count on split, pool and test rows.

    Parameters
    ----------
    candidates
        Numbered from 0.
    table
        Labeled rows and class codes.
    classes
        Label of each class code.
    pool
        Unlabeled rows, in memory.
    test
        Test rows and class codes, for the true errors; may be the pool itself.
    repeats
        Random halvings.
    seed
        Seed of halvings and learners.

    Returns
    -------
    dict
        Evidence for the criteria of co-validation.
    """
    X, y = table
    halves = half_splits(len(y), repeats, seed=seed)
    splits = (*halves, full_split(len(y), number=len(halves)))
    evidence = _empty(len(candidates), repeats, len(halves))
    evidence[names.TRAIN_ROWS] = np.array([len(t.train_rows) for t in halves])
    evidence[names.FOLD_ROWS] = np.array([len(t.test_rows) for t in halves])
    evidence[names.N_LABELED] = np.array(len(y))
    evidence[names.N_CLASSES] = np.array(len(classes))
    evidence[names.N_UNLABELED] = np.array(pool.shape[0])
    evidence[names.POOL_ROWS] = np.full((len(candidates), repeats), pool.shape[0])
    evidence[names.TEST_ROWS] = np.array(len(test[1]))
    for assigned in assign_families(
        candidates, X, classes=classes, seed=seed, fit_params={}
    ):
        for group in assigned.groups:
            fitted = assigned.family.fit(group, X, y, splits, budget=process_cache())
            _add_fits(evidence, fitted)
            if pool is test[0]:
                _add_rows(evidence, fitted, *test, compare=True)
            else:
                _add_rows(evidence, fitted, pool, None, compare=True)
                _add_rows(evidence, fitted, *test, compare=False)
    return evidence


def half_estimates(evidence: Evidence) -> xr.Dataset:
    """Return every estimate of co-validation over ``candidate``."""
    n = len(evidence[names.STATUS])
    settings = Settings(np.full(n, 0.5), 0.5)
    found = {
        name: CRITERIA[name].evaluate(evidence, settings).estimate for name in ESTIMATES
    }
    return xr.Dataset({name: (names.CANDIDATE, value) for name, value in found.items()})


def _empty(n: int, repeats: int, n_halves: int) -> dict[str, NDArray[Any]]:
    def zeros(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64)

    return {
        names.STATUS: np.zeros(n, dtype=np.int8),
        names.TRAIN_ERRORS: zeros(n, n_halves),
        names.FOLD_ERRORS: zeros(n, n_halves),
        names.DISAGREEMENTS: zeros(n, repeats),
        names.HALF_TEST_ERRORS: zeros(n, n_halves),
        names.FULL_TEST_ERRORS: zeros(n),
    }


def _add_fits(evidence: Mapping[str, NDArray[Any]], fitted: FittedGroup) -> None:
    numbers, n_halves = list(fitted.candidates), evidence[names.TRAIN_ERRORS].shape[1]
    counts = fitted.counts
    evidence[names.TRAIN_ERRORS][numbers] = counts.train_errors[:, :n_halves]
    evidence[names.FOLD_ERRORS][numbers] = counts.test_errors[:, :n_halves]
    failed = np.any(counts.status != 0, axis=1)
    evidence[names.STATUS][numbers] = np.where(failed, names.STATUS_FAILED, 0)


def _add_rows(
    evidence: Mapping[str, NDArray[Any]],
    fitted: FittedGroup,
    X: Any,
    truth: NDArray[np.int64] | None,
    *,
    compare: bool,
) -> None:
    """Count errors where `truth` is given, and disagreements where `compare` is set."""
    numbers = list(fitted.candidates)
    every = [np.array(t) for t in fitted.splits]
    for rows in _blocks(fitted, X.shape[0]):
        codes = fitted.predict(X[rows], every)
        if compare:
            differ = np.sum(codes[0:-1:2] != codes[1:-1:2], axis=2)
            evidence[names.DISAGREEMENTS][numbers] += differ.T
        if truth is not None:
            wrong = np.sum(codes != truth[rows], axis=2)
            evidence[names.HALF_TEST_ERRORS][numbers] += wrong[:-1].T
            evidence[names.FULL_TEST_ERRORS][numbers] += wrong[-1]


def _blocks(fitted: FittedGroup, n_rows: int) -> list[slice]:
    answers = 16 * len(fitted.splits) * len(fitted.candidates)
    step = int(np.clip(BLOCK_NBYTES // (fitted.row_nbytes + answers), 64, 65_536))
    return [slice(start, start + step) for start in range(0, n_rows, step)]
