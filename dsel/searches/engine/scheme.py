"""Which models a search trains, and which pairs of them it compares on the pool.

A comparison says which training answers each pool row (its *readings*) and into which
bin of the cube a disagreement of two answers is counted. Cross-validation and random
halvings differ in nothing else, so they share the plan, the driver and the store.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.data.trainings import FULL, LEAVE_ONE_OUT, Training
from dsel.data.words import RANDOM_FOLD_STREAM, uniform_integers, words, words_at
from dsel.results import TrainingAxes, fold_axes, half_axes
from dsel.searches.engine.answers import AllAnswers, by_halving


class Comparison(Protocol):
    """Two answers to every pool row, and the bins in which differences are counted."""

    @property
    def variable(self) -> str:
        """Name of the cube's variable that the counts become."""

    @property
    def n_bins(self) -> int:
        """Bins a candidate has."""

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the bin of each row, or None where every row is in every bin."""

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return training numbers, as `FittedGroup.predict` takes them."""

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count rows whose readings differ, shape (n_candidates, n_bins)."""


@dataclass(frozen=True)
class RandomFold:
    """The full model against a fold model drawn for each row: f against f_rand."""

    seed: int
    """Seed of the row words."""
    n_folds: int
    """Folds; training k is the full one."""
    variable: str = names.DISAGREEMENTS
    """Counted by the fold that was drawn."""

    @property
    def n_bins(self) -> int:
        """One bin a fold."""
        return self.n_folds

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return I(r), the fold drawn for each row."""
        first, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        if stop - first == len(rows):
            return _drawn_folds(self.seed, self.n_folds, first, stop)
        return uniform_integers(
            words_at(self.seed, RANDOM_FOLD_STREAM, rows), self.n_folds
        )

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask the full model and the drawn one."""
        del candidates  # the same draws for all
        drawn = self.bins(rows)
        assert drawn is not None
        return [np.array(self.n_folds), drawn]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count by the drawn fold."""
        drawn = self.bins(rows)
        assert drawn is not None
        return np.stack(
            [
                np.bincount(drawn[differs], minlength=self.n_folds)
                for differs in codes[0] != codes[1]
            ]
        )


@lru_cache(maxsize=8)
def _drawn_folds(seed: int, n_folds: int, first: int, stop: int) -> NDArray[np.int64]:
    """Draw for consecutive rows; a block asks for the same ones a few times."""
    drawn = uniform_integers(words(seed, RANDOM_FOLD_STREAM, first, stop), n_folds)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class BestFold:
    """The full model against one fold model, fixed for each candidate beforehand."""

    n_folds: int
    """Folds; training k is the full one."""
    chosen: NDArray[np.int64]
    """Fold of each candidate of the plan, shape (n_candidates,); -1 not known yet."""
    variable: str = names.BEST_FOLD_DISAGREEMENTS
    """Counted on the whole pool."""
    n_bins: int = 1
    """One bin a candidate."""

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is compared."""
        del rows
        return None

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask the full model and the chosen fold's."""
        del rows
        fold = self.chosen[np.asarray(candidates)]
        return [np.array(self.n_folds), fold[:, np.newaxis]]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count all differing rows."""
        del rows
        return np.asarray(np.count_nonzero(codes[:1] != codes[1:2], axis=2).T)


@dataclass(frozen=True)
class Scheme:
    """Trainings of a search and what is compared on the pool."""

    trainings: tuple[Training, ...]
    """In the order of their numbers."""
    n_folds: int
    """How many of them are folds; the full training and leave-one-out, if any, follow
    them."""
    comparisons: tuple[Comparison, ...]
    """Empty where no pool is read."""
    is_plain_random: bool
    """Whether rows were assigned without a look at features or labels."""

    @property
    def full(self) -> int | None:
        """Number of the training on all labeled rows, or None."""
        return self._find(FULL)

    @property
    def leave_one_out(self) -> int | None:
        """Number of the training that holds out every row in turn, or None."""
        return self._find(LEAVE_ONE_OUT)

    @property
    def with_models(self) -> tuple[Training, ...]:
        """The trainings of one model each, which can be compared on the pool."""
        return tuple(t for t in self.trainings if t.name != LEAVE_ONE_OUT)

    @property
    def halving(self) -> AllAnswers | None:
        """The comparison of halves, where the trainings are random halvings."""
        for each in self.comparisons:
            if isinstance(each, AllAnswers) and each.count is by_halving:
                return each
        return None

    @property
    def axes(self) -> TrainingAxes:
        """Axes of the cube on which the trainings stand."""
        if self.halving is not None:
            return half_axes(self.halving.n_bins)
        return fold_axes(self.n_folds)

    def number_of(self, name: str) -> int:
        """Return the number of the training of that name."""
        return next(t.number for t in self.trainings if t.name == name)

    def _find(self, name: str) -> int | None:
        return next((t.number for t in self.trainings if t.name == name), None)
