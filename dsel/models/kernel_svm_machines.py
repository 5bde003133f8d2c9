"""Fitted two-class machines of one training set and one kernel."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import Kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Machines:
    """One-against-one machines of one training set, for every C of a kernel."""

    training: int
    """Number of the training."""
    framed_by: int
    """Training whose transformer made the rows, -1 where they are as given."""
    kernel: Kernel
    """With gamma resolved on the training rows."""
    candidates: tuple[int, ...]
    """Candidate numbers, in ascending order of C."""
    model_of: Integers
    """Place of each candidate's model; equal solutions are kept once."""
    present: Integers
    """Class codes of the training rows, ascending; a lone class is always predicted."""
    numbers: Integers
    """Labeled row numbers of the support vectors of any model, class by class."""
    starts: Integers
    """Where each class begins in `numbers`, and the end, (n_present + 1,)."""
    coefs: Floats
    """Dual coefficients in libsvm's layout, (n_rows, n_present - 1, n_models)."""
    offsets: Floats
    """Constants of the decisions, (n_pairs, n_models)."""
    steps: Integers
    """Solver steps of each pair, (n_pairs, n_candidates)."""
    stopped: NDArray[np.bool_]
    """Whether the solver took all its steps in some pair, (n_candidates,)."""
    class_weight: Floats
    """Factor of C of each class, (n_present,)."""

    @property
    def n_models(self) -> int:
        """Distinct models."""
        return int(self.coefs.shape[2])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Places of both classes of each decision, in libsvm's order."""
        return list(combinations(range(len(self.present)), 2))

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        arrays = (self.model_of, self.numbers, self.coefs, self.offsets, self.steps)
        return sum(array.nbytes for array in arrays)

    def of(self, candidates: Collection[int]) -> "Machines":
        """Return those of some candidates, with the support vectors that these have."""
        places = [i for i, n in enumerate(self.candidates) if n in candidates]
        if len(places) == len(self.candidates):
            return self
        models, model_of = np.unique(self.model_of[places], return_inverse=True)
        coefs = self.coefs[:, :, models]
        used = coefs.any(axis=(1, 2))
        return replace(
            self,
            candidates=tuple(self.candidates[place] for place in places),
            model_of=model_of,
            numbers=self.numbers[used],
            starts=np.concatenate(([0], np.cumsum(used)))[self.starts],
            coefs=coefs[used],
            offsets=self.offsets[:, models],
            steps=self.steps[:, places],
            stopped=self.stopped[places],
        )
