"""How machines vote on rows, and which of their votes rounding could change.

The computed decision of a pair p of classes is a sum of kernel values k times dual
coefficients c. Let s_p be the sum of the absolute c and n_p their number. In floating
point of precision u, whatever the order of adding,

    |error| <= u n_p s_p max|k| + s_p max|error of k| + the rounding of the constant,

because adding a product that is zero changes nothing: the number of columns does not
matter, only that of the coefficients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.models.kernel_svm_machines import Floats, Integers, Machines

Columns = slice | Integers

FILLED: Final = 0.8
"""Share of a class's columns from which zeros are cheaper than copying columns."""
EPS: Final = float(np.finfo(np.float64).eps)


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
    """Sums of absolute dual coefficients of each decision, (n_pairs, n_models)."""
    slack: Floats
    """What adding changes at most if no kernel value exceeds 1, (n_pairs, n_models)."""
    fixed: Floats
    """What rounding changes whatever the kernel values, (n_pairs, n_models)."""

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
    for place, code in enumerate(machines.present):
        mine = slice(machines.starts[place], machines.starts[place + 1])
        begin, end = int(starts[code]), int(starts[code + 1])
        found = np.searchsorted(numbers[begin:end], machines.numbers[mine])
        coefs = machines.coefs[mine]
        if len(found) >= FILLED * (end - begin):
            filled = np.zeros((end - begin, *coefs.shape[1:]), dtype=dtype)
            filled[found] = coefs
            columns.append(slice(begin, end))
            weights.append(filled)
        else:
            columns.append(begin + found)
            weights.append(coefs.astype(dtype))
    fixed = 8.0 * EPS * np.abs(machines.offsets) + np.finfo(dtype).tiny
    sums, slack = _sums_and_slack(machines, dtype)
    return Voter(machines, tuple(columns), tuple(weights), sums, slack, fixed)


def _sums_and_slack(machines: Machines, dtype: type) -> tuple[Floats, Floats]:
    """Return `Voter.sums` and `Voter.slack`.

    Each product is off by a few units before it is added: its factors were rounded to
    the type, and an exponential is good to three units in the last place. In float64
    four times the bound also covers the other route, `exact_decision`, and what that
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
    return sums, slack


def class_products(
    voter: Voter, values: NDArray[Any], chosen: slice | Integers = slice(None)
) -> NDArray[Any]:
    """Return what the support vectors of each class add to every decision.

    Shape (n_present, n_rows, n_present - 1, n_chosen); `chosen` picks models.
    """
    n_present, n_others = len(voter.weights), voter.weights[0].shape[1]
    n_chosen = len(voter.slack[0, chosen])
    products = np.empty(
        (n_present, len(values), n_others, n_chosen), dtype=values.dtype
    )
    for columns, weights, product in zip(
        voter.columns, voter.weights, products, strict=True
    ):
        mine = weights[:, :, chosen].reshape(len(weights), -1)
        np.matmul(values[:, columns], mine, out=product.reshape(len(values), -1))
    return products


def count_votes(
    voter: Voter,
    values: NDArray[Any],
    peaks: Floats,
    errors: Floats,
    models: Integers | None = None,
) -> tuple[Integers, NDArray[np.bool_]]:
    """Return winners' class codes and which of them rounding could change.

    Parameters
    ----------
    voter
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
    n_models = voter.n_models if models is None else len(models)
    n_rows, n_present = len(values), len(voter.machines.present)
    places = np.zeros((n_rows, n_models), dtype=np.int64)
    doubtful = np.zeros(places.shape, dtype=np.bool_)
    if n_present > 1:
        products = class_products(voter, values, chosen)
        slack, sums, fixed, offsets = (
            np.ascontiguousarray(whole[:, chosen])
            for whole in (voter.slack, voter.sums, voter.fixed, voter.machines.offsets)
        )
        compiled_votes.vote(
            products, peaks, errors, slack, sums, fixed, offsets, places, doubtful
        )
    return voter.machines.present[places], doubtful


def exact_decisions(voter: Voter, values: Floats, model: int) -> Floats:
    """Return one row's decisions by sums in a fixed order, (n_pairs,).

    A decision within rounding of zero is exactly 0: duplicates and symmetric data make
    exact ties, which no order of adding should turn into a vote.

    Parameters
    ----------
    voter
        Machines over the columns of `values`, with weights in float64.
    values
        Kernel values of the row, (n_columns,), computed for this row alone.
    model
        Place of the model.
    """
    from dsel.solvers import compiled_votes

    n_present = len(voter.machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1))
    for columns, weights, *parts in zip(
        voter.columns, voter.weights, terms, limits, strict=True
    ):
        mine = np.ascontiguousarray(values[columns])
        compiled_votes.add_terms(mine, weights, model, *parts)
    decisions = voter.machines.offsets[:, model].copy()
    for p, (i, j) in enumerate(voter.machines.pairs):
        limit = limits[i, j - 1] + limits[j, i] + EPS * abs(decisions[p])
        decision = terms[i, j - 1] + terms[j, i] + decisions[p]
        decisions[p] = decision if abs(decision) > limit else 0.0
    return decisions


def exact_code(voter: Voter, values: Floats, model: int) -> int:
    """Return one row's class code by its exact decisions."""
    decisions = exact_decisions(voter, values, model)
    votes = np.zeros(len(voter.machines.present), dtype=np.int64)
    for decision, (i, j) in zip(decisions, voter.machines.pairs, strict=True):
        votes[i if decision > 0 else j] += 1
    return int(voter.machines.present[np.argmax(votes)])


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
