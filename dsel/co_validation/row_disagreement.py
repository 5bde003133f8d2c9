"""Disagreement of models, row by row over the pool."""

from typing import TYPE_CHECKING, Final

import numpy as np

from dsel.arrays import Estimator, Features, Floats, Integers, RandomState, Singles
from dsel.bounds.disagreement import row_disagreement
from dsel.candidates import make_candidates, takes_nan
from dsel.checks import check_integer
from dsel.data import open_pool
from dsel.data.labeled import labeled_rows, match_pool
from dsel.data.row_random import seed_from
from dsel.data.splits import block_splits
from dsel.nonconformity.models import train_grid
from dsel.results.rows import read_rows, write_rows
from dsel.typing import LabelsLike, PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client


DISAGREEMENT_BLOCK_NBYTES: Final = 2**24


def write_row_disagreement(
    estimator: Estimator,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike,
    path: PathLike,
    *,
    n_models: int = 20,
    random_state: RandomState = 0,
    client: "Client | None" = None,
) -> None:
    """Write how often independent models differ on each pool row.

    The labeled rows are divided at random into disjoint blocks, and a model is trained
    on each, so that every pair of models is independent. The disagreement d_x of all
    pairs follows from the counts of predicted labels, at a cost of O(models) for each
    row. The rates are those of models of ``n_labeled // n_models`` rows.

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
        out. Attributes have the number of models and of rows for each.
    n_models
        Number of models and blocks, >= 2.
    random_state
        Seed of the blocks and of the learner.
    client
        A `distributed.Client`; None means the current one, else this machine.

    Raises
    ------
    ValueError
        Where there are fewer labeled rows than models.
    """
    candidates = make_candidates(None, [estimator])  # raises for other objects
    allow_nan, seed = takes_nan([estimator]), seed_from(random_state)
    labeled = labeled_rows(X, y, allow_nan=allow_nan)
    n_rows = len(labeled.y)
    check_integer(n_models, "n_models", at_least=2, at_most=n_rows)
    opened = match_pool(open_pool(pool), labeled)
    [(family, fitted)], failures = train_grid(
        candidates,
        labeled.X,
        labeled.y,
        block_splits(n_rows, n_models, seed=seed),
        classes=labeled.classes,
        seed=seed,
        client=client,
    )
    if failures:
        raise ValueError(f"`estimator` could not be fitted: {failures[0]}")
    models = family.join(fitted)
    row_nbytes = models.row_nbytes + 16 * n_models
    attributes = {
        "n_models": n_models,
        "rows_per_model": n_rows // n_models,
        "compared": "all pairs",
        "seed": str(seed),
    }
    n_classes, splits = len(labeled.classes), list(map(np.array, models.split_numbers))

    def rates_of(X: Features, row_numbers: Integers) -> dict[str, Singles]:
        codes = models.predict(X, splits)[:, 0]
        # Predictions that are not a class count as one further class.
        codes = np.where(codes < 0, n_classes, codes)
        counts = [np.sum(codes == c, axis=0) for c in range(n_classes + 1)]
        rates = row_disagreement(np.stack(counts, axis=-1)).astype(np.float32)
        return {"disagreement": rates, "variance": np.asarray(rates / 2, np.float32)}

    write_rows(
        opened,
        path,
        rates_of,
        dict.fromkeys(("disagreement", "variance"), ((), "float32", np.nan)),
        block_rows=int(np.clip(DISAGREEMENT_BLOCK_NBYTES // row_nbytes, 64, 65_536)),
        attributes=attributes,
        client=client,
        allow_nan=allow_nan,
    )


def most_disputed(path: PathLike, n_rows: int = 20) -> tuple[Integers, Floats]:
    """Return the pool rows on which models differ most.

    Parameters
    ----------
    path
        Folder or URL that `write_row_disagreement` has written.
    n_rows
        Number of rows to return.

    Returns
    -------
    rows, rates
        Row numbers in descending order of their rates, ascending among equal ones, and
        these rates. One chunk is in memory at a time.

    Raises
    ------
    FileNotFoundError
        Where the path does not exist.
    ValueError
        Where it was not completely written, or a chunk is missing or damaged.
    """
    check_integer(n_rows, "n_rows", at_least=1)
    rows, rates = np.empty(0, dtype=np.int64), np.empty(0)
    for start, values in read_rows(path, "disagreement"):
        chunk = values.astype(np.float64)
        known = np.flatnonzero(~np.isnan(chunk))
        rows = np.concatenate([rows, start + known])
        rates = np.concatenate([rates, chunk[known]])
        best = np.lexsort((rows, -rates))[:n_rows]
        rows, rates = rows[best], rates[best]
    return rows, rates
