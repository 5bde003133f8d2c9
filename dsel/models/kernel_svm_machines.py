"""Fitted two-class machines of one training set and one kernel, and how they vote."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import Kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = slice | Integers

FILLED = 0.6
"""Share of a class's columns from which zeros are cheaper than copying columns."""


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
    def nbytes(self) -> int:
        """Size of the arrays."""
        arrays = (self.model_of, self.numbers, self.coefs, self.offsets, self.steps)
        return sum(array.nbytes for array in arrays)


@dataclass(frozen=True)
class Voter:
    """Machines laid out over the columns of a kernel block, ready to vote."""

    machines: Machines
    """What votes."""
    columns: tuple[Columns, ...]
    """Columns of the kernel block for each class."""
    weights: tuple[NDArray[Any], ...]
    """Dual coefficients for these columns, (n_columns, n_present - 1, n_models)."""
    sums: Floats
    """Sums of absolute dual coefficients, (n_present, n_present - 1, n_models)."""
    peaks: Floats
    """Largest absolute dual coefficients, of the same shape."""

    @property
    def n_models(self) -> int:
        """Distinct models."""
        return int(self.machines.coefs.shape[2])

    @property
    def n_columns(self) -> int:
        """Terms of the longest decision: the two largest classes."""
        return sum(sorted(len(weights) for weights in self.weights)[-2:])

    def unit(self, place: int, dtype: Any) -> float:
        """Return the relative error of a class's sum of products in this type.

        In float64 it also covers what `exact_decisions` takes for zero.
        """
        eps = float(np.finfo(dtype).eps)
        if dtype == np.float64:
            return 4.0 * eps * (self.n_columns + 16)
        return eps * (len(self.weights[place]) + 8)


def lay_out(
    machines: Machines, numbers: Integers, starts: Integers, dtype: type = np.float64
) -> Voter:
    """Prepare machines for kernel blocks with these labeled rows as columns.

    Parameters
    ----------
    machines
        All their rows must be among `numbers`.
    numbers
        Labeled row numbers of the columns, class by class and ascending within.
    starts
        Where each class code begins in `numbers`, and the end, (n_classes + 1,).
    dtype
        Of the weights.
    """
    columns: list[Columns] = []
    weights: list[NDArray[Any]] = []
    sums: list[Floats] = []
    peaks: list[Floats] = []
    for place, code in enumerate(machines.present):
        mine = slice(machines.starts[place], machines.starts[place + 1])
        begin, end = int(starts[code]), int(starts[code + 1])
        found = np.searchsorted(numbers[begin:end], machines.numbers[mine])
        coefs = machines.coefs[mine]
        if len(found) >= FILLED * (end - begin):
            filled = np.zeros((end - begin, *coefs.shape[1:]))
            filled[found] = coefs
            columns.append(slice(begin, end))
            weights.append(filled.astype(dtype))
        else:
            columns.append(begin + found)
            weights.append(coefs.astype(dtype))
        sums.append(np.abs(coefs).sum(axis=0))
        peaks.append(np.abs(coefs).max(axis=0, initial=0.0))
    return Voter(
        machines, tuple(columns), tuple(weights), np.stack(sums), np.stack(peaks)
    )


def count_votes(
    voter: Voter,
    values: NDArray[Any],
    units: Floats,
    absolute: Floats,
    models: Integers | None = None,
    *,
    bound: float | None = None,
) -> tuple[Integers, NDArray[np.bool_]]:
    """Return winners' class codes and which of them rounding could change.

    Parameters
    ----------
    voter
        Machines over the columns of `values`.
    values
        Kernel block, (n_rows, n_columns), of the dtype of the weights.
    units, absolute
        Relative and absolute error of each row's kernel values, (n_rows,).
    models
        Which of the distinct models vote; all by default.
    bound
        Largest absolute kernel value if it is known, else it is looked for.

    Returns
    -------
    codes, doubtful
        Shape (n_rows, n_models).
    """
    from dsel.solvers import compiled_votes

    chosen = slice(None) if models is None else models
    n_models = voter.n_models if models is None else len(models)
    n_rows, n_present = len(values), len(voter.machines.present)
    places = np.zeros((n_rows, n_models), dtype=np.int64)
    doubtful = np.zeros(places.shape, dtype=np.bool_)
    if n_present > 1:
        shape = (n_present, n_rows, n_present - 1, n_models)
        products = np.empty(shape, dtype=values.dtype)
        sizes = np.zeros((3, n_present, n_rows))
        unit = np.empty((n_present, n_rows))
        for place, columns in enumerate(voter.columns):
            block = values[:, columns]
            weights = voter.weights[place][:, :, chosen].reshape(block.shape[1], -1)
            np.matmul(block, weights, out=products[place].reshape(n_rows, -1))
            sizes[:2, place] = _sizes(block, bound)
            unit[place] = units + voter.unit(place, values.dtype)
        sizes[2] = absolute + np.finfo(values.dtype).tiny
        sums, peaks, offsets = (
            np.ascontiguousarray(whole[..., chosen])
            for whole in (voter.sums, voter.peaks, voter.machines.offsets)
        )
        compiled_votes.vote(
            products, sizes, sums, peaks, offsets, unit, places, doubtful
        )
    return voter.machines.present[places], doubtful


def _sizes(block: NDArray[Any], bound: float | None) -> Floats:
    """Return the largest and the sum of the absolute values of each row, (2, n_rows).

    With a bound of the values both come from it, in float64, whose rounding is too
    small for more care to pay.
    """
    sizes = np.empty((2, len(block)))
    if bound is not None:
        sizes[0], sizes[1] = bound, bound * block.shape[1]
        return sizes
    whole = np.abs(block)
    sizes[0] = whole.max(axis=1, initial=0)
    # The sum is rounded, too: up once more than its own error.
    sizes[1] = whole.sum(axis=1) * (1 + block.shape[1] * np.finfo(block.dtype).eps)
    return sizes


def exact_code(voter: Voter, values: Floats, model: int) -> int:
    """Return one row's class code by sums in a fixed order.

    A decision within rounding of zero counts as zero: duplicates and symmetric data
    make exact ties, which no order of adding should turn into a vote.

    Parameters
    ----------
    voter
        Machines over the columns of `values`.
    values
        Kernel values of the row, (n_columns,), computed for this row alone.
    model
        Place of the model.
    """
    decisions = exact_decisions(voter, values, model)
    n_present = len(voter.machines.present)
    votes = np.zeros(n_present, dtype=np.int64)
    pairs = zip(*np.triu_indices(n_present, 1), strict=True)
    for decision, (i, j) in zip(decisions, pairs, strict=True):
        votes[i if decision > 0 else j] += 1
    return int(voter.machines.present[np.argmax(votes)])


def exact_decisions(voter: Voter, values: Floats, model: int) -> Floats:
    """Return one row's decisions, exactly 0 where rounding hides the sign."""
    from dsel.solvers import compiled_votes

    n_present = len(voter.machines.present)
    terms, sizes = np.zeros((2, n_present, n_present - 1))
    counts = [
        compiled_votes.add_terms(
            np.ascontiguousarray(values[columns]), weights, model, *parts
        )
        for columns, weights, *parts in zip(
            voter.columns, voter.weights, terms, sizes, strict=True
        )
    ]
    decisions = voter.machines.offsets[:, model].copy()
    for p, (i, j) in enumerate(zip(*np.triu_indices(n_present, 1), strict=True)):
        size = sizes[i, j - 1] + sizes[j, i]
        unit = np.finfo(np.float64).eps * (counts[i] + counts[j] + 8)
        limit = unit * size + np.finfo(np.float64).eps * abs(decisions[p])
        decision = terms[i, j - 1] + terms[j, i] + decisions[p]
        decisions[p] = decision if abs(decision) > limit else 0.0
    return decisions


def settle(
    voter: Voter,
    codes: Integers,
    doubtful: NDArray[np.bool_],
    exact_values: Callable[[int], Floats],
    models: Integers,
) -> None:
    """Decide anew, in place, what rounding could change.

    Parameters
    ----------
    voter
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
            codes[row, column] = exact_code(voter, values, int(models[column]))
