"""Code of workers: comparisons of models over slices of the pool."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dsel.arrays import Features, Integers
from dsel.data.cache import spare_memory
from dsel.data.pool import Block, read_blocks
from dsel.errors import LossError
from dsel.families.family import FittedGroup, error_line
from dsel.losses.protocols import no_predictions
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.comparisons import Comparison, QueriedRows, count_differences
from dsel.search.engine.jobs import (
    CountedJob,
    CountJob,
    CountResult,
    PoolReading,
    UnpredictedRows,
)
from dsel.typing import SplitNumbers

BLOCK_NBYTES: Final = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS: Final = (64, 2**15)  # fewest and most: a block has an overhead of 0.2 ms
FRAME_NBYTES: Final = 2**27  # for data frames: a call on one costs milliseconds
FRAME_ROWS: Final = 2**16
NO_ROWS: Final = np.empty(0, dtype=np.int64)
CHOSEN_SET: Final = 0
"""Number of the only model set of a pass with chosen models."""
MOST_UNPREDICTED: Final = 1_000
"""Most rows of a slice on which `predict` may raise. Each of them costs some calls, and
models that raise on more get no useful bound from the pool."""
OF_MACHINE: Final = (MemoryError, OSError)
"""Errors that say nothing about rows. Their task is tried again: a certificate must not
depend on the health of a machine."""


class UnpredictablePoolError(ValueError):
    """Models raise on pool rows, which are not counted as differences."""


class Predictor(Protocol):
    """Models that predict pool rows together: a `FittedGroup`, or `JoinedModels`."""

    @property
    def row_nbytes(self) -> int:
        """Bytes that `predict` needs for one row."""

    def predict(self, X: Features, splits: Sequence[SplitNumbers]) -> NDArray[Any]:
        """Predict rows as `FittedGroup.predict` does."""


@dataclass(frozen=True)
class JoinedModels:
    """Models of the chosen candidates, which differ between splits.

    They predict together and are the only model set of their pass. A split without a
    model has no predictions.
    """

    fitted_groups: tuple[FittedGroup, ...]
    """Groups of one candidate each; no two have a model of the same split."""
    dtype: DTypeLike = np.int64
    """dtype of the predictions: int64 for class codes, float64 for numbers."""

    @property
    def row_nbytes(self) -> int:
        """Bytes that `predict` needs for one row."""
        return max(fitted_group.row_nbytes for fitted_group in self.fitted_groups)

    def predict(self, X: Features, splits: Sequence[SplitNumbers]) -> NDArray[Any]:
        """Return predictions, (len(splits), 1, n_rows); each item is one split."""
        indices = [int(split) for split in splits]
        predictions: dict[int, NDArray[Any]] = {}
        for fitted_group in self.fitted_groups:
            items = [
                item
                for item, split in enumerate(indices)
                if split in fitted_group.split_numbers
            ]
            if not items:
                continue
            group_predictions = fitted_group.predict(
                X, [splits[item] for item in items]
            )
            predictions |= dict(zip(items, group_predictions, strict=True))
        missing = no_predictions((1, X.shape[0]), self.dtype)
        return np.stack([predictions.get(n, missing) for n in range(len(indices))])


class ModelSets(NamedTuple):
    """Sets of models that predict together."""

    numbers: tuple[int, ...]
    """Numbers of the model sets."""
    predictor: Predictor


class ComparedModels(NamedTuple):
    """Sets of models, and the comparisons of the models of a set."""

    joined_sets: Sequence[ModelSets]
    tokens: Sequence[str]
    """Token of each set, in the order of the job's `model_sets`."""
    comparisons: Sequence[Comparison]
    reading: PoolReading
    dtype: DTypeLike | None = None
    """dtype of the predictions, if a row on which a model raises counts as a difference
    from all others. None if it ends the pass, as where a model set is one of many
    that predict together: their counts would depend on each other."""


@dataclass(frozen=True)
class ChosenCountBatch:
    """Slices of the pool that are one task, with all chosen models."""

    jobs: tuple[CountJob, ...]

    def run(self, compared: ComparedModels, inputs: Inputs) -> Output[list[CountedJob]]:
        """Count; the result is a `CountedJob` for each job."""
        slices = zip(self.jobs, inputs.sources, strict=True)
        return Output([count_slice(job, rows, compared) for job, rows in slices])


def count_slice(
    job: CountJob, sources: list[object], compared: ComparedModels
) -> CountedJob:
    """Count the rows of a slice on which the models of a set differ."""
    reading, comparisons = compared.reading, compared.comparisons
    started = time.perf_counter()
    counts = SliceCounts(compared, job.model_sets)
    n_rows = choose_block_rows(compared, job.model_sets)
    for block in read_blocks(sources, n_rows, allow_nan=reading.allow_nan):
        if reading.sampled_rows is not None:
            reading.sampled_rows.check(block)
        counts.add_block(block)
        del block  # it would otherwise be in memory together with the next one
    # Sets predict together, so that each gets an equal fraction of the time.
    seconds = round((time.perf_counter() - started) / len(job.model_sets), 6)
    rows_by_bin = {c.key: tuple(counts.bin_rows[c.key].tolist()) for c in comparisons}
    return CountedJob(
        job,
        tuple(
            CountResult(
                job.start,
                job.stop,
                seconds,
                token,
                rows_by_bin,
                {
                    key: tuple(n[position].tolist())
                    for key, n in counts.bin_counts.items()
                },
                counts.queried,
                counts.unpredicted,
            )
            for position, token in enumerate(compared.tokens)
        ),
    )


def choose_block_rows(compared: ComparedModels, model_sets: tuple[int, ...]) -> int:
    """Return the rows of a block of the pool; they are fewer if memory is short."""
    # This is the number of predictions for each pool row. The compared splits do not
    # depend on the rows, so none are passed.
    n_predictions = sum(
        len(c.compared_splits(NO_ROWS, model_sets)) for c in compared.comparisons
    )
    # Predictions are int64, and comparisons need as much memory again.
    row_nbytes = max(sets.predictor.row_nbytes for sets in compared.joined_sets)
    row_nbytes += 16 * n_predictions * len(model_sets)
    (fewest, most), nbytes = BLOCK_ROWS, BLOCK_NBYTES
    if compared.reading.are_frames:
        most, nbytes = FRAME_ROWS, FRAME_NBYTES
    # Other threads of a worker have a block each, and other programs want memory, too.
    nbytes = min(nbytes, spare_memory() // 16)
    return int(np.clip(nbytes // max(1, row_nbytes), fewest, most))


@dataclass(eq=False)
class SliceCounts:
    """The counts of a slice, to which those of its blocks are added."""

    compared: ComparedModels
    model_sets: tuple[int, ...]
    """Numbers of the model sets that are counted."""
    bin_counts: dict[str, Integers] = field(init=False)
    """Counts of each comparison by its key, (n_model_sets, n_bins)."""
    bin_rows: dict[str, Integers] = field(init=False)
    """Rows of the bins of each comparison by its key, (n_bins,)."""
    queried: QueriedRows = field(init=False, default_factory=QueriedRows)
    unpredicted: UnpredictedRows = field(init=False, default_factory=UnpredictedRows)

    def __post_init__(self) -> None:
        n_sets, comparisons = len(self.model_sets), self.compared.comparisons
        self.bin_counts = {
            c.key: np.zeros((n_sets, c.n_bins), np.int64) for c in comparisons
        }
        self.bin_rows = {c.key: c.rows_by_bin(NO_ROWS) for c in comparisons}

    def add_block(self, block: Block) -> None:
        """Count the rows of a block.

        Raises UnpredictablePoolError if models cannot predict too many of its rows.
        """
        comparisons, dtype = self.compared.comparisons, self.compared.dtype
        # One group for each family, whose models share work when they predict.
        for numbers, predictor in self.compared.joined_sets:
            positions = [self.model_sets.index(model_set) for model_set in numbers]
            causes: dict[int, str] = {}
            predict = partial(predictor.predict, block.X)
            if dtype is not None:
                predict = partial(
                    predict_where_possible, predictor, block.X, dtype, causes
                )
            with _name_rows_in_errors(block):
                differences = count_differences(comparisons, predict, block, numbers)
            for comparison, (block_counts, block_queried) in zip(
                comparisons, differences, strict=True
            ):
                self.bin_counts[comparison.key][positions] += block_counts
                # Rows with the smallest random words of all blocks are kept, so that
                # chunks do not decide which rows are drawn.
                self.queried = self.queried.merge(block_queried, comparison.n_queries)
            if causes:
                self._add_unpredicted_rows(block, causes)
        for comparison in comparisons:
            self.bin_rows[comparison.key] += comparison.rows_by_bin(block.row_numbers)

    def _add_unpredicted_rows(self, block: Block, causes: Mapping[int, str]) -> None:
        """Add the rows on which a model raised, by their index in the block."""
        row = min(causes)
        rows = UnpredictedRows(len(causes), int(block.row_numbers[row]), causes[row])
        self.unpredicted = self.unpredicted.merge(rows)
        # Of the slice, which depends on the pool alone: how a slice is cut into blocks
        # must not decide whether there is a bound.
        if self.unpredicted.n_rows > MOST_UNPREDICTED:
            with _name_rows_in_errors(block):
                raise UnpredictablePoolError(self.unpredicted.cause)


def predict_where_possible(
    predictor: Predictor,
    X: Features,
    dtype: DTypeLike,
    causes: dict[int, str],
    splits: Sequence[SplitNumbers],
) -> NDArray[Any]:
    """Predict rows with models, also if these raise on some rows.

    For such a row the prediction is no class, and another one for each model, so that
    all comparisons count it as a difference; a regressor has NaN. `causes` gets the
    error of each such row, by its index.
    """
    try:
        return predictor.predict(X, splits)
    except OF_MACHINE:
        raise
    except Exception as error:
        if X.shape[0] == 0:
            raise UnpredictablePoolError(error_line(error)) from error
    predictions = no_predictions((len(splits), 1, X.shape[0]), dtype)
    # Two models that both predict nothing would agree. The row may be predicted among
    # other rows, so that they must not seem to agree on it.
    if predictions.dtype.kind != "f":
        predictions += 1 + np.arange(len(splits))[:, np.newaxis, np.newaxis]
    for split, predictions_of_split in zip(splits, predictions[:, 0], strict=True):
        fill_by_halves(predictor, X, split, predictions_of_split, causes)
    return predictions


def fill_by_halves(
    predictor: Predictor,
    X: Features,
    split: SplitNumbers,
    predictions: NDArray[Any],
    causes: dict[int, str],
) -> None:
    """Overwrite `predictions` of one model, (n_rows,), except where the model raises.

    Rows that raise together are halved, until single rows raise. Raises
    `UnpredictablePoolError` if these are more than `MOST_UNPREDICTED`.
    """
    n_unpredicted = 0
    waiting = [np.arange(X.shape[0])]
    while waiting:
        rows = waiting.pop()
        try:
            predictions[rows] = predictor.predict(X[rows], [split])[0, 0]
        except OF_MACHINE:
            raise
        except Exception as error:
            if len(rows) > 1:
                waiting += reversed(np.array_split(rows, 2))
                continue
            cause = error_line(error)
            causes.setdefault(int(rows[0]), cause)
            n_unpredicted += 1
            if n_unpredicted > MOST_UNPREDICTED:
                raise UnpredictablePoolError(cause) from error


@contextmanager
def _name_rows_in_errors(block: Block) -> Iterator[None]:
    """Add the numbers of the pool rows to errors of `predict`."""
    try:
        yield
    except LossError:  # not an error of the models
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        first, last = block.row_numbers[[0, -1]].tolist()
        known = isinstance(error, UnpredictablePoolError)
        cause = str(error) if known else error_line(error)
        raise UnpredictablePoolError(
            f"models cannot predict pool rows {first} to {last}: {cause.rstrip('.')}. "
            f"All rows of `pool` must be such as `predict` takes; where it has "
            f"categories of its own, encoders must take unknown ones, as "
            f'OneHotEncoder(handle_unknown="ignore") does.'
        ) from error
