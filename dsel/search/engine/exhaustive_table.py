"""The table of an exhaustive search, which counts candidates on the pool, too."""

from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold_number
from dsel.data.pool import PoolSlice
from dsel.families.family import FitKey
from dsel.search.design.comparisons import Comparison
from dsel.search.engine.counts import CountTable, PoolTable, Records
from dsel.search.engine.jobs import FitResult, FitStatus, join_tokens


@dataclass
class ExhaustiveTable(CountTable):
    """Counts of fits and on the pool, by candidate.

    A candidate's models make one model set of the pool table, with its number.
    """

    comparisons: InitVar[tuple[Comparison, ...]]
    """Comparisons of models on the pool; empty without one."""
    slices: InitVar[tuple[PoolSlice, ...]]
    """Parts of the pool; empty without comparisons."""

    def __post_init__(
        self, comparisons: tuple[Comparison, ...], slices: tuple[PoolSlice, ...]
    ) -> None:
        super().__post_init__()
        # By candidate and split; a token identifies the model of one fit.
        self.tokens: dict[FitKey, str] = {}
        # It asks for tokens when a slice arrives, because fits may have been repeated
        # by then.
        self.pool = PoolTable(slices, comparisons, self.keys, self.joined_token)

    def add_fit(self, number: int, split: int, result: FitResult) -> None:
        """Write the result of a fit; drop the counts of its earlier model."""
        key = FitKey(number, split)
        # The pool may be counted with the former model, which is gone: a fit that
        # repeats exactly has no token, and its counts stay.
        is_again = self.fit_status[key] == FitStatus.DONE
        if is_again and self.tokens.get(key, "") != result.token:
            self.pool.forget(number)
        super().add_fit(number, split, result)
        self.tokens[key] = result.token

    def forget_fits(self, number: int) -> None:
        """Drop all counts of a candidate, whose models differ from the counted ones."""
        for split in range(len(self.scheme.splits)):
            super().add_fit(number, split, FitResult(FitStatus.OPEN, np.nan))
            self.tokens.pop(FitKey(number, split), None)
        self.pool.forget(number)

    def joined_token(self, number: int) -> str:
        """Return a text that identifies all models of a candidate."""
        splits = self.scheme.with_models
        tokens = {split: self.tokens.get(FitKey(number, split), "") for split in splits}
        return join_tokens(tokens)

    @property
    def fitted(self) -> NDArray[np.bool_]:
        """Whether every fit of each candidate is done."""
        return np.asarray((self.fit_status == FitStatus.DONE).all(axis=1))

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Whether every fit of each candidate is done, and the whole pool counted."""
        return np.asarray(self.fitted & self.pool.is_complete)

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons, with each candidate's best fold so far."""
        k, best = self.scheme.n_folds, np.full(self.n_candidates, -1)
        errors = self.errors[:, :k, 0]
        known = (errors >= 0).all(axis=1)
        # The best fold is read from the labeled rows alone, so the pool cannot choose
        # it.
        if known.any():
            best[known] = best_fold_number(errors[known], self.scheme.fold_rows)
        return tuple(each.at_best_folds(best) for each in self.pool.comparisons)

    def pool_counts(self, shown: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return pool counts by the cube's variables; -1 for candidates not `shown`."""
        named: dict[str, NDArray[Any]] = {}
        pool, is_shown = self.pool, shown[:, np.newaxis]
        for comparison, differences, rows in zip(
            pool.comparisons, pool.differences, pool.pool_rows, strict=True
        ):
            counts = np.where(is_shown, differences, names.UNCOUNTED)
            if comparison.variable == names.BEST_FOLD_DISAGREEMENTS:
                named[comparison.variable] = counts[:, 0]
                continue
            named[comparison.variable] = counts
            named[names.POOL_ROWS] = pool_rows = np.where(is_shown, rows, 0)
            fraction = pool_rows / np.maximum(1, pool_rows.sum(axis=1, keepdims=True))
            spent = fraction * pool.seconds[:, np.newaxis]
            named[names.SCORE_SECONDS] = np.where(is_shown, spent, np.nan)
        return named

    def replay(self, records: Records) -> None:
        """Write the records of an earlier run into the table."""
        super().replay(records)
        # The tokens of the fits show which counts on the pool are of these models.
        self.pool.replay(records)
