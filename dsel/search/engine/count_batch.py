"""Code of workers: comparisons of models over slices of the pool."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Features
from dsel.data.cache import spare_memory
from dsel.data.pool import Block, read_blocks
from dsel.errors import LossError
from dsel.families.family import FittedGroup
from dsel.losses.base import no_predictions
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.comparisons import Comparison, QueriedRows, count_differences
from dsel.search.engine.jobs import CountedJob, CountJob, CountResult, PoolReading
from dsel.typing import SplitNumbers

BLOCK_NBYTES: Final = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS: Final = (64, 2**15)  # fewest and most: a block has an overhead of 0.2 ms
FRAME_NBYTES: Final = 2**27  # for data frames: a call on one costs milliseconds
FRAME_ROWS: Final = 2**16
NO_ROWS: Final = np.empty(0, dtype=np.int64)
CHOSEN_SET: Final = 0
"""Number of the only model set of a pass with chosen models."""


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
            group_predictions = fitted_group.predict(
                X, [splits[item] for item in items]
            )
            predictions |= dict(zip(items, group_predictions, strict=True))
        dtype = next(iter(predictions.values())).dtype
        missing = no_predictions((1, X.shape[0]), dtype)
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
    comparisons, reading = compared.comparisons, compared.reading
    started = time.perf_counter()
    all_sets = job.model_sets
    # This is the number of predictions for each pool row. The compared splits do not
    # depend on the rows, so none are passed.
    n_predictions = sum(len(c.compared_splits(NO_ROWS, all_sets)) for c in comparisons)
    # Predictions are int64, and comparisons need as much memory again.
    row_nbytes = max(sets.predictor.row_nbytes for sets in compared.joined_sets)
    row_nbytes += 16 * n_predictions * len(all_sets)
    bin_counts = {
        c.key: np.zeros((len(all_sets), c.n_bins), np.int64) for c in comparisons
    }
    bin_rows = {c.key: c.rows_by_bin(NO_ROWS) for c in comparisons}
    queried = QueriedRows()
    for block in _read_blocks(sources, row_nbytes, reading):
        if reading.sampled_rows is not None:
            reading.sampled_rows.check(block)
        # One group for each family, whose models share work when they predict.
        for numbers, predictor in compared.joined_sets:
            positions = [all_sets.index(model_set) for model_set in numbers]
            with _name_rows_in_errors(block):
                predict = partial(predictor.predict, block.X)
                differences = count_differences(comparisons, predict, block, numbers)
            for comparison, (block_counts, block_queried) in zip(
                comparisons, differences, strict=True
            ):
                bin_counts[comparison.key][positions] += block_counts
                # Rows with the smallest random words of all blocks are kept, so that
                # chunks do not decide which rows are drawn.
                queried = queried.merge(block_queried, comparison.n_queries)
        for comparison in comparisons:
            bin_rows[comparison.key] += comparison.rows_by_bin(block.row_numbers)
        del block  # it would otherwise be in memory together with the next one
    # Sets predict together, so that each gets an equal fraction of the time.
    seconds = round((time.perf_counter() - started) / len(all_sets), 6)
    rows_by_bin = {key: tuple(n.tolist()) for key, n in bin_rows.items()}
    return CountedJob(
        job,
        tuple(
            CountResult(
                job.start,
                job.stop,
                seconds,
                token,
                rows_by_bin,
                {key: tuple(n[position].tolist()) for key, n in bin_counts.items()},
                queried,
            )
            for position, token in enumerate(compared.tokens)
        ),
    )


def _read_blocks(
    sources: list[object], row_nbytes: int, reading: PoolReading
) -> Iterator[Block]:
    """Yield the rows of a slice in blocks; blocks are smaller if memory is short."""
    (fewest, most), nbytes = BLOCK_ROWS, BLOCK_NBYTES
    if reading.are_frames:
        most, nbytes = FRAME_ROWS, FRAME_NBYTES
    # Other threads of a worker have a block each, and other programs want memory, too.
    nbytes = min(nbytes, spare_memory() // 16)
    n_rows = int(np.clip(nbytes // max(1, row_nbytes), fewest, most))
    return read_blocks(sources, n_rows, allow_nan=reading.allow_nan)


@contextmanager
def _name_rows_in_errors(block: Block) -> Iterator[None]:
    """Add the numbers of the pool rows to errors of `predict`."""
    try:
        yield
    except LossError:  # not an error of the models
        raise
    except (TypeError, ValueError) as error:
        first, last = block.row_numbers[[0, -1]].tolist()
        raise ValueError(
            f"models cannot predict pool rows {first} to {last}: "
            f"{str(error).rstrip('.')}. All rows of `pool` must be such as `predict` "
            f"takes; where it has categories of its own, encoders must take unknown "
            f'ones, as OneHotEncoder(handle_unknown="ignore") does.'
        ) from error
