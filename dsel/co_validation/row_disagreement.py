"""Disagreement row by row: on which pool rows models of the same data differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.bounds.co_validation import row_disagreement
from dsel.candidates import make_candidates, takes_nan
from dsel.checks import check_integer
from dsel.data import open_pool
from dsel.data.labeled import check_labels, labeled_rows, matching_pool
from dsel.data.row_random import seed_from
from dsel.data.splits import Split, block_splits, half_splits
from dsel.families.family import FittedGroup
from dsel.nonconformity.models import train_grid
from dsel.results.rows import read_rows, write_rows

FIELDS: Final = {
    "disagreement": ((), "float32", np.nan),
    "variance": ((), "float32", np.nan),
}
"""Arrays of the results: shape of a row, dtype, fill value."""
BLOCK_NBYTES: Final = 2**24


@dataclass(frozen=True)
class RowCounter:
    """Counts on a block of rows how many models disagree."""

    models: FittedGroup
    """One candidate, several splits."""
    n_classes: int
    """Class codes are below it."""
    in_pairs: bool
    """Whether only splits 2r and 2r + 1 are independent of each other."""

    @property
    def block_rows(self) -> int:
        """Rows to predict at once."""
        row = self.models.row_nbytes + 16 * len(self.models.splits)
        return int(np.clip(BLOCK_NBYTES // row, 64, 65_536))

    def __call__(
        self, X: Any, rows: NDArray[np.int64]
    ) -> Mapping[str, NDArray[np.float32]]:
        """Return d_x and the estimate of the error's variance, d_x / 2."""
        del rows
        every = [np.array(number) for number in self.models.splits]
        codes = self.models.predict(X, every)[:, 0]
        if self.in_pairs:
            found = (codes[0::2] != codes[1::2]).mean(axis=0)
        else:
            found = row_disagreement(self._label_counts(codes))
        rates = found.astype(np.float32)
        return {"disagreement": rates, "variance": rates / 2}

    def _label_counts(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = [np.sum(codes == c, axis=0) for c in range(self.n_classes)]
        # Predictions that are not a class count as one further class.
        return np.stack([*counts, np.sum(codes < 0, axis=0)], axis=-1)


def write_row_disagreement(
    estimator: Any,
    X: Any,
    y: Any,
    pool: Any,
    path: Any,
    *,
    n_models: int = 20,
    random_state: Any = 0,
    client: Any = None,
) -> None:
    """Write for every pool row how often independent models differ on it.

    The labeled rows are cut at random into disjoint blocks, so that every pair of
    models is independent: from the counts of their labels d_x costs O(models) a row.
    The rates are those of models of ``n_labeled // n_models`` rows.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier.
    X, y
        Labeled rows and their labels.
    pool
        Unlabeled rows: anything that `open_pool` takes.
    path
        Folder or URL of a new zarr group, with ``disagreement`` (d_x, in [0, 1]) and
        ``variance`` (d_x / 2, the unbiased estimate of the variance of the 0/1 error
        for two classes, a larger number for more); NaN in rows that the pool leaves
        out. Attributes say how many models and rows each.
    n_models
        Blocks, >= 2.
    random_state
        Seed of the blocks and of the learner.
    client
        A `distributed.Client`; None means the current one, else local threads.

    Raises
    ------
    ValueError
        Where there are fewer labeled rows than models.
    """
    seed, n_rows = seed_from(random_state), len(check_labels(y))
    check_integer(n_models, "n_models", at_least=2, at_most=n_rows)
    splits = block_splits(n_rows, n_models, seed=seed)
    _write(estimator, (X, y), pool, path, splits, seed=seed, client=client)


def write_half_disagreement(
    estimator: Any,
    X: Any,
    y: Any,
    pool: Any,
    path: Any,
    *,
    repeats: int = 30,
    random_state: Any = 0,
    client: Any = None,
) -> None:
    """Write for every pool row how often the two models of a random halving differ.

    The rates are those of models of half the rows. Models of different halvings share
    rows, so only the two of one halving are compared: R pairs instead of all.

    Parameters
    ----------
    estimator, X, y, pool, path, random_state, client
        As for `write_row_disagreement`.
    repeats
        Random halvings, R >= 1; the same as those of `covalidate`.
    """
    seed = seed_from(random_state)
    splits = half_splits(len(check_labels(y)), repeats, seed=seed)
    _write(estimator, (X, y), pool, path, splits, seed=seed, client=client)


def most_disputed(
    path: Any, n_rows: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the pool rows on which models differ most.

    Parameters
    ----------
    path
        What `write_row_disagreement` or `write_half_disagreement` wrote.
    n_rows
        How many rows.

    Returns
    -------
    rows, rates
        Row numbers by falling rate, equal ones by number, and their rates. One chunk
        is in memory at a time.

    Raises
    ------
    FileNotFoundError
        Where nothing is there.
    ValueError
        Where it was not written to the end, or a chunk is missing or damaged.
    """
    check_integer(n_rows, "n_rows", at_least=1)
    rows, rates = np.empty(0, dtype=np.int64), np.empty(0)
    for start, values in read_rows(path, "disagreement"):
        found = values.astype(np.float64)
        known = np.flatnonzero(~np.isnan(found))
        rows = np.concatenate([rows, start + known])
        rates = np.concatenate([rates, found[known]])
        best = np.lexsort((rows, -rates))[:n_rows]
        rows, rates = rows[best], rates[best]
    return rows, rates


def _write(
    estimator: Any,
    table: tuple[Any, Any],
    pool: Any,
    path: Any,
    splits: tuple[Split, ...],
    *,
    seed: int,
    client: Any,
) -> None:
    allow_nan = takes_nan([estimator])
    labeled = labeled_rows(*table, allow_nan=allow_nan)
    opened = matching_pool(open_pool(pool), labeled)
    [(family, fitted)], failures = train_grid(
        make_candidates(None, [estimator]), labeled.X, labeled.y, splits,
        classes=labeled.classes, seed=seed, client=client,
    )  # fmt: skip
    if failures:
        raise ValueError(f"`estimator` could not be fitted: {failures[0]}")
    models = family.join(fitted)
    in_pairs = splits[0].name.startswith("repeat")
    counter = RowCounter(models, len(labeled.classes), in_pairs)
    attributes = {
        "n_models": len(splits),
        "rows_per_model": len(splits[0].train_rows),
        "compared": "halves" if in_pairs else "all pairs",
        "seed": str(seed),
    }
    write_rows(
        opened, path, counter, FIELDS, block_rows=counter.block_rows,
        attributes=attributes, client=client, allow_nan=allow_nan,
    )  # fmt: skip
