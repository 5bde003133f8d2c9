"""Fitted two-class machines, how they vote, and which votes rounding could change.

The computed decision of a pair of classes is a sum of kernel values k times dual
coefficients c. A label that was found in float32 is proved by a bound of its error.
Let u = 2^-24 be the unit of float32. For each class of the pair let s be the sum of the
absolute c, n the number of those that are not 0, N that of support vectors that any
model of the pair has, and p the largest computed k. The term c k with k = exp(-x) is
off by at most

- u |c k| for c in float32, and u |c k| for the product;
- u x |c k| for x, which is rounded once from float64;
- 23.2 u |c k| for the exponential, which is good to 2.52 units in the last place, that
  is 5.04 u, each of the two squarings doubling that and adding u: 4 * 5.04 + 3;
- (a + 2) u |c k| for adding: its sum is one of four, which are added at the end, so a
  is at most n and at most N / 4 + 3; adding a product that is 0 changes nothing.

Now k x = k log(1/k) is at most p max(1, log(1/p)) for all k <= p, since it rises until
k = 1/e and is never above 1/e. So the error of a class is at most

    u s p (a + 27.2 + max(1, log(1/p))) <= 1.2 u (a + 24) s p (1 + log(1/p) / 24),

for with L = log(1/p) the right side is u s p times 1.2 a + 28.8 or more where L <= 1,
and at least a + 28.8 + 1.2 L where L > 1; the rest is room for products of errors.
`slack` is 1.2 u (a + 24) s, `peaks` are p (1 + L / 24). Other kernels are computed in
float64 and rounded once. In float64 no order of adding is relied on, so a is n, and 8 u
stands for 1.2 u: what is left covers the other route, `exact_decisions`, and what that
takes for 0; in float32 these 8 u of float64 are added.

Where x <= 1 for all rows of a block, k - 1 stands in the place of k, and the sum of the
coefficients joins the constant: all k are near 1 there, and the coefficients of both
classes nearly cancel. Now p is the largest computed 1 - k, and relative to 1 - k there
are, instead of the last three errors above,

- u for x, since x exp(-x) <= 1 - exp(-x);
- 5 u for the exponential: `compiled_votes.exponentials_less_one` sums (-x)^n / n! up to
  n = 10. What rounding does grows with x; at x = 1 the sums inside of each other round
  by 3.1 u of the result, the last product by u, and .7 u is left out;
- 2 u for each of two squarings v (v + 2) of v = k - 1, which do not raise what was
  there before: the slope of v (v + 2) is its value over v times 2 (1 + v) / (2 + v),
  which is at most 1;
- (a + 2) u for adding.

Together with those of c and its product that is u s p (a + 14), less than `slack` p.
The sum of the coefficients is off by at most n s units of float64.

Beside these stand, times s, the errors that the kernel values have from float64
(`Kernel.rounding`), and the constant's rounding.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.arrays import Bools, Floats, Integers
from dsel.kernels.functions import Kernel


@cache
def places_of_pairs(n_classes: int) -> tuple[Integers, Integers]:
    """Return the first and the second class of each pair, in libsvm's order."""
    return np.triu_indices(n_classes, 1)


@dataclass(frozen=True)
class Machines:
    """One-against-one machines of one training set, for every C of a kernel."""

    split: int
    """Number of the split."""
    rows_of: str
    """`RowsByClass.origin` of the rows."""
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
    stopped: Bools
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


EPS: Final = float(np.finfo(np.float64).eps)
LEAST: Final[dict[Any, float]] = {np.float32: 1e-30, np.float64: 1e-250}
"""Kernel values below it are as good as 0: a type's smallest numbers are slow."""


Layout = tuple[Integers, NDArray[np.float32], Integers, Floats]
"""Columns, weights, starts and bounds, as `compiled_votes.settle` takes them."""


@dataclass(frozen=True)
class DecisionWeights:
    """Machines laid out over the columns of a kernel block."""

    machines: Machines
    """Whose decisions they are."""
    columns: tuple[Integers, ...]
    """Column of the kernel block for each support vector, class by class."""
    weights: tuple[Floats, ...]
    """Dual coefficients of each class's support vectors, (n_vectors, n_present - 1,
    n_models)."""

    @classmethod
    def from_machines(
        cls, machines: Machines, numbers: Integers, starts: Integers
    ) -> "DecisionWeights":
        """Prepare machines for kernel blocks with these labeled rows as columns.

        Parameters
        ----------
        machines
            All their rows must be among `numbers`.
        numbers
            Labeled row numbers of the columns, class by class and ascending within.
        starts
            Where each class code begins in `numbers`, and the end, (n_classes + 1,).
        """
        columns: list[Integers] = []
        weights: list[Floats] = []
        for place, code in enumerate(machines.present):
            mine = slice(machines.starts[place], machines.starts[place + 1])
            begin, end = int(starts[code]), int(starts[code + 1])
            found = np.searchsorted(numbers[begin:end], machines.numbers[mine])
            columns.append(begin + found)
            weights.append(np.ascontiguousarray(machines.coefs[mine]))
        return cls(machines, tuple(columns), tuple(weights))

    @cached_property
    def pieces(self) -> tuple[tuple[Any, ...], ...]:
        """For every `LANES` models what `compiled_votes.lay_out` writes."""
        from dsel.families.svm import compiled_votes
        from dsel.families.svm.compiled_lanes import LANES

        columns = np.concatenate(self.columns)
        coefs, starts = np.ascontiguousarray(self.machines.coefs), self.machines.starts
        (n_rows, n_others, n_models), pieces = coefs.shape, []
        for first in range(0, n_models, LANES):
            taken = np.empty(n_rows * n_others, dtype=np.int64)
            weights = np.zeros((len(taken), LANES), dtype=np.float32)
            begins = np.zeros((n_others + 1) * n_others + 1, dtype=np.int64)
            count = min(LANES, n_models - first)
            sums = np.zeros((3, n_others + 1, n_others, count))
            into = taken, weights, begins, sums
            size = compiled_votes.lay_out(coefs, starts, columns, first, into)
            pieces.append((taken[:size], weights[:size], begins, *sums))
        return tuple(pieces)

    @cached_property
    def in_float32(self) -> tuple[tuple[Layout, slice], ...]:
        """Weights in float32, and bounds of what that rounding does, as votes are cast.

        A pair has the support vectors that any of the models of its layout has. A
        layout for every `LANES` models, and which these are.
        """
        layouts, first = [], 0
        i, j = places_of_pairs(len(self.machines.present))
        for columns, weights, starts, totals, counts, _ in self.pieces:
            models = slice(first, first + totals.shape[2])
            offsets = self.machines.offsets[:, models]
            union = np.diff(starts).reshape(totals.shape[:2])
            sums, slack, fixed = _bounds(offsets, totals, counts, union)
            bounds = np.zeros((len(offsets), 5, weights.shape[1]))
            bounds[..., : len(offsets.T)] = np.stack(
                (offsets, slack[i, j - 1], slack[j, i], sums, fixed), axis=1
            )
            bounds = bounds.reshape(len(offsets), -1)
            layouts.append(((columns, weights, starts, bounds), models))
            first = models.stop
        return tuple(layouts)

    @cached_property
    def in_float32_less_one(self) -> tuple[tuple[Layout, slice], ...]:
        """The same for kernel values less 1: sums of coefficients join the offsets."""
        i, j = places_of_pairs(len(self.machines.present))
        layouts = []
        for (layout, models), piece in zip(self.in_float32, self.pieces, strict=True):
            totals, counts, sums = (a[i, j - 1] + a[j, i] for a in piece[3:])
            bounds = layout[3].reshape(len(i), 5, -1).copy()
            mine = bounds[..., : sums.shape[1]]
            mine[:, 0] += sums
            mine[:, 4] += EPS * (counts * totals + 8.0 * np.abs(sums))
            layouts.append(((*layout[:3], bounds.reshape(len(i), -1)), models))
        return tuple(layouts)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats, Floats]:
        """What bounds the rounding of float64; see `_bounds`."""
        totals, counts = (
            np.concatenate([piece[k] for piece in self.pieces], axis=2) for k in (3, 4)
        )
        return _bounds(self.machines.offsets, totals, counts)

    @property
    def n_models(self) -> int:
        """Distinct models."""
        return self.machines.n_models

    def limits(self, peaks: Floats, errors: Floats) -> Floats:
        """Bound the error of each decision in float64, (n_pairs, n_rows, n_models).

        Parameters
        ----------
        peaks
            Bound of each row's absolute kernel values by class, (n_present, n_rows).
        errors
            Bound of the error of each row's kernel values, (n_rows,).
        """
        i, j = places_of_pairs(len(self.machines.present))
        sums, slack, fixed = self.bounds
        bounds = errors[:, np.newaxis] * sums[:, np.newaxis]
        bounds += fixed[:, np.newaxis]
        bounds += peaks[i][:, :, np.newaxis] * slack[i, j - 1][:, np.newaxis]
        bounds += peaks[j][:, :, np.newaxis] * slack[j, i][:, np.newaxis]
        return bounds


def _bounds(
    offsets: Floats, totals: Floats, counts: Floats, union: Integers | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return what bounds the error of decisions, in float32 if `union` is given.

    Parameters
    ----------
    offsets
        Constants of the decisions, (n_pairs, n_models).
    totals, counts
        Sums of the absolute dual coefficients of each class for each other one, and how
        many are not 0, (n_present, n_present - 1, n_models).
    union
        Support vectors that any of the models has, (n_present, n_present - 1).

    Returns
    -------
    sums
        Sums of absolute dual coefficients of each decision, (n_pairs, n_models).
    slack
        What adding the terms of a class changes at most if no kernel value exceeds 1,
        in the shape of `totals`.
    fixed
        What rounding changes whatever the kernel values, which may be 0 below `LEAST`,
        (n_pairs, n_models).
    """
    dtype: Any = np.float64 if union is None else np.float32
    slack = 4.0 * EPS * (counts + 26)
    if union is not None:
        unit = float(np.finfo(dtype).eps) / 2
        added = np.minimum(counts, union[..., np.newaxis] / 4 + 3)
        slack += 1.2 * unit * (added + 24)
    i, j = places_of_pairs(len(totals))
    sums = totals[i, j - 1] + totals[j, i]
    tiny = float(np.finfo(dtype).tiny)
    fixed = 8.0 * EPS * np.abs(offsets) + tiny + LEAST[dtype] * sums
    return sums, slack * totals, fixed


def decisions_of(
    duals: DecisionWeights, values: Floats, models: Integers | None = None
) -> Floats:
    """Return the decisions of rows of a kernel block, (n_pairs, n_rows, n_models).

    They are those of all models, or of the models at the places that are given.
    """
    chosen: Any = slice(None) if models is None else models
    offsets = duals.machines.offsets[:, chosen]
    products = []
    for columns, weights in zip(duals.columns, duals.weights, strict=True):
        mine = weights[..., chosen]
        product = values[:, columns] @ mine.reshape(len(mine), -1)
        products.append(product.reshape(len(values), *mine.shape[1:]))
    return np.stack(
        [
            products[i][:, j - 1] + products[j][:, i] + offset
            for (i, j), offset in zip(duals.machines.pairs, offsets, strict=True)
        ]
    )
