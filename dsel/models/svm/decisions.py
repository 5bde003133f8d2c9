"""Fitted two-class machines, how they vote, and which votes rounding could change.

The computed decision of a pair p of classes is a sum of kernel values k times dual
coefficients c. Let s_p be the sum of the absolute c and n_p their number. In floating
point of precision u, whatever the order of adding,

    |error| <= u n_p s_p max|k| + s_p max|error of k| + the rounding of the constant,

because adding a product that is zero changes nothing: the number of columns does not
matter, only that of the coefficients.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import Kernel
from dsel.models.arrays import Bools, Floats, Integers


@dataclass(frozen=True)
class Machines:
    """One-against-one machines of one training set, for every C of a kernel."""

    training: int
    """Number of the training."""
    rows_of: int
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


Columns = slice | Integers

FILLED: Final = 0.8
"""Share of a class's columns from which zeros are cheaper than copying columns."""
EPS: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class DecisionWeights:
    """Machines laid out over the columns of a kernel block."""

    machines: Machines
    """Whose decisions they are."""
    columns: tuple[Columns, ...]
    """Columns of the kernel block for each class."""
    weights: tuple[NDArray[Any], ...]
    """Dual coefficients for these columns, (n_columns, n_present - 1, n_models)."""
    sums: Floats
    """Sums of absolute dual coefficients of each decision, (n_pairs, n_models)."""
    slack: Floats
    """What adding changes at most if no kernel value exceeds 1, (n_pairs, n_models)."""
    fixed: Floats
    """What rounding changes whatever the kernel values, (n_pairs, n_models)."""

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
        columns: list[Columns] = []
        weights: list[NDArray[Any]] = []
        for place, code in enumerate(machines.present):
            mine = slice(machines.starts[place], machines.starts[place + 1])
            begin, end = int(starts[code]), int(starts[code + 1])
            found = np.searchsorted(numbers[begin:end], machines.numbers[mine])
            coefs = machines.coefs[mine]
            if len(found) >= FILLED * (end - begin):
                filled = np.zeros((end - begin, *coefs.shape[1:]))
                filled[found] = coefs
                columns.append(slice(begin, end))
                weights.append(filled)
            else:
                columns.append(begin + found)
                weights.append(coefs)
        bounds = _bounds(machines, np.float64)
        return cls(machines, tuple(columns), tuple(weights), *bounds)

    @cached_property
    def in_float32(self) -> "DecisionWeights":
        """The same with weights in float32, and bounds of what that rounding does."""
        weights = tuple(each.astype(np.float32) for each in self.weights)
        bounds = _bounds(self.machines, np.float32)
        return DecisionWeights(self.machines, self.columns, weights, *bounds)

    @property
    def n_models(self) -> int:
        """Distinct models."""
        return self.machines.n_models

    def limits(self, peaks: Floats, errors: Floats) -> Floats:
        """Bound the error of each decision, (n_pairs, n_rows, n_models).

        `peaks` and `errors` are as `count_votes` takes them.
        """
        slack, sums, fixed = (
            whole[:, np.newaxis] for whole in (self.slack, self.sums, self.fixed)
        )
        return peaks[:, np.newaxis] * slack + errors[:, np.newaxis] * sums + fixed


def _bounds(machines: Machines, dtype: type) -> tuple[Floats, Floats, Floats]:
    """Return `sums`, `slack` and `fixed` of `DecisionWeights` in a float type.

    Each product is off by a few units before it is added: its factors were rounded to
    the type, and an exponential is good to three units in the last place. In float64
    four times the bound also covers the other route, `exact_decisions`, and what that
    takes for zero.
    """
    units = 4.0 * EPS
    if dtype != np.float64:
        units += 0.6 * float(np.finfo(dtype).eps)  # eps is two units of rounding
    sums, slack = np.zeros((2, *machines.offsets.shape))
    for p, (i, j) in enumerate(machines.pairs):
        for one, other in ((i, j - 1), (j, i)):
            mine = slice(machines.starts[one], machines.starts[one + 1])
            sizes = np.abs(machines.coefs[mine, other])
            total, count = sizes.sum(axis=0), np.count_nonzero(sizes, axis=0)
            sums[p] += total
            slack[p] += units * (count + 16) * total
    fixed = 8.0 * EPS * np.abs(machines.offsets) + np.finfo(dtype).tiny
    return sums, slack, fixed


def class_products(
    duals: DecisionWeights, values: NDArray[Any], chosen: slice | Integers = slice(None)
) -> NDArray[Any]:
    """Return what the support vectors of each class add to every decision.

    Shape (n_present, n_rows, n_present - 1, n_chosen); `chosen` picks models.
    """
    n_present, n_others = len(duals.weights), duals.weights[0].shape[1]
    n_chosen = len(duals.slack[0, chosen])
    products = np.empty(
        (n_present, len(values), n_others, n_chosen), dtype=values.dtype
    )
    for columns, weights, product in zip(
        duals.columns, duals.weights, products, strict=True
    ):
        mine = weights[:, :, chosen].reshape(len(weights), -1)
        np.matmul(values[:, columns], mine, out=product.reshape(len(values), -1))
    return products


def count_votes(
    duals: DecisionWeights,
    values: NDArray[Any],
    peaks: Floats,
    errors: Floats,
    models: Integers | None = None,
) -> tuple[Integers, Bools]:
    """Return winners' class codes and which of them rounding could change.

    Parameters
    ----------
    duals
        Machines over the columns of `values`.
    values
        Kernel block, (n_rows, n_columns), of the dtype of the weights.
    peaks
        Bound of each row's absolute kernel values, (n_rows,).
    errors
        Bound of the error of each row's kernel values, (n_rows,), beside their
        rounding to the dtype.
    models
        Which of the distinct models vote; all by default.

    Returns
    -------
    codes, doubtful
        Shape (n_rows, n_models).
    """
    from dsel.solvers import compiled_votes

    chosen = slice(None) if models is None else models
    n_models = duals.n_models if models is None else len(models)
    n_rows, n_present = len(values), len(duals.machines.present)
    places = np.zeros((n_rows, n_models), dtype=np.int64)
    doubtful = np.zeros(places.shape, dtype=np.bool_)
    if n_present > 1:
        products = class_products(duals, values, chosen)
        slack, sums, fixed, offsets = (
            np.ascontiguousarray(whole[:, chosen])
            for whole in (duals.slack, duals.sums, duals.fixed, duals.machines.offsets)
        )
        compiled_votes.vote(
            products, peaks, errors, slack, sums, fixed, offsets, places, doubtful
        )
    return duals.machines.present[places], doubtful


def exact_decisions(duals: DecisionWeights, values: Floats, model: int) -> Floats:
    """Return one row's decisions by sums in a fixed order, (n_pairs,).

    A decision within rounding of zero is exactly 0: duplicates and symmetric data make
    exact ties, which no order of adding should turn into a vote.

    Parameters
    ----------
    duals
        Machines over the columns of `values`, with weights in float64.
    values
        Kernel values of the row, (n_columns,), computed for this row alone.
    model
        Place of the model.
    """
    from dsel.solvers import compiled_votes

    n_present = len(duals.machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1))
    for columns, weights, *parts in zip(
        duals.columns, duals.weights, terms, limits, strict=True
    ):
        mine = np.ascontiguousarray(values[columns])
        compiled_votes.add_terms(mine, weights, model, *parts)
    decisions = duals.machines.offsets[:, model].copy()
    for p, (i, j) in enumerate(duals.machines.pairs):
        limit = limits[i, j - 1] + limits[j, i] + EPS * abs(decisions[p])
        decision = terms[i, j - 1] + terms[j, i] + decisions[p]
        decisions[p] = decision if abs(decision) > limit else 0.0
    return decisions


def exact_code(duals: DecisionWeights, values: Floats, model: int) -> int:
    """Return one row's class code by its exact decisions."""
    decisions = exact_decisions(duals, values, model)
    votes = np.zeros(len(duals.machines.present), dtype=np.int64)
    for decision, (i, j) in zip(decisions, duals.machines.pairs, strict=True):
        votes[i if decision > 0 else j] += 1
    return int(duals.machines.present[np.argmax(votes)])


def decide_exactly(
    duals: DecisionWeights,
    codes: Integers,
    doubtful: Bools,
    exact_values: Callable[[int], Floats],
    models: Integers,
) -> None:
    """Decide anew, in place, what rounding could change.

    Parameters
    ----------
    duals
        With weights in float64.
    codes, doubtful
        As `count_votes` returned them, (n_rows, n_models).
    exact_values
        Gives a row's kernel values by its place in `codes`.
    models
        Place of the model of each column of `codes`.
    """
    for row in np.flatnonzero(doubtful.any(axis=1)):
        values = exact_values(int(row))
        for column in np.flatnonzero(doubtful[row]):
            codes[row, column] = exact_code(duals, values, int(models[column]))
