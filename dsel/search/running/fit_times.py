"""How long the fits that are left will take, by the seconds of those that are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from dsel.arrays import Bools, Integers
from dsel.runtime.progress import FitTime
from dsel.search.engine.counts import FitTable
from dsel.typing import Options


@dataclass(frozen=True, eq=False)
class FitTimes:
    """The candidates by their kind of model.

    A forest takes a hundred times as long as a logistic regression, while the
    candidates of one kind differ much less.
    """

    kind_of_candidate: Integers
    """Number of each candidate's kind, (n_candidates,)."""

    @classmethod
    def of(cls, candidates: Sequence[Options]) -> Self:
        """Return the kinds of candidates, by the estimators among their parameters."""
        kinds = [
            " ".join(type(v).__name__ for v in params.values() if hasattr(v, "fit"))
            for params in candidates
        ]
        return cls(pd.factorize(np.array(kinds, object))[0].astype(np.int64))

    def expect(
        self, table: FitTable, in_phase: Bools, n_more: int = 0
    ) -> FitTime | None:
        """Return the seconds of fits that are done or left; None before one is done.

        `in_phase` are flags of the fits that may be left, (n_candidates, n_splits), and
        `n_more` fits of any candidates follow. A kind that was not fitted yet takes no
        longer than the slowest one of the others, and perhaps no time.
        """
        is_done = table.finished_fits & np.isfinite(table.fit_seconds)
        if not is_done.any():
            return None
        is_left = in_phase & ~table.finished_fits & table.needed_fits
        kinds = np.arange(self.kind_of_candidate.max() + 1)
        of_kind = self.kind_of_candidate == kinds[:, np.newaxis]
        seconds = np.where(is_done, table.fit_seconds, 0.0).sum(axis=1)
        n_done, n_left = of_kind @ is_done.sum(axis=1), of_kind @ is_left.sum(axis=1)
        means = np.divide(
            of_kind @ seconds, n_done, out=np.full(len(kinds), np.nan), where=n_done > 0
        )
        least = np.nan_to_num(means)
        most = np.where(n_done > 0, means, np.nanmax(means))
        return FitTime(
            float(seconds.sum()),
            float(n_left @ least + n_more * least.min()),
            float(n_left @ most + n_more * most.max()),
        )
