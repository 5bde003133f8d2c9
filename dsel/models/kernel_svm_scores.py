"""Real scores of many kernel SVMs over a block of rows, in one product each."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dsel.models.kernel_svm_machines import Floats, Integers, Voter, exact_decisions
from dsel.models.kernel_svm_readings import slice_of


def score_block(
    voter: Voter,
    values: Floats,
    relative: Floats,
    absolute: Floats,
    exact_values: Callable[[int], Floats],
) -> Floats:
    """Return a score for every row, model and class present.

    Decisions that rounding could turn round are summed anew in a fixed order, so that
    the largest score is the class that the machines predict.

    Parameters
    ----------
    voter
        Machines over the columns of `values`.
    values
        Kernel block, (n_rows, n_columns), in float64.
    relative, absolute
        Error of each row's kernel values, (n_rows,).
    exact_values
        Gives a row's kernel values by its place, computed for it alone.

    Returns
    -------
    ndarray
        Shape (n_rows, n_models, n_present). Two classes have the pair (f, -f); more
        have votes, and sums of decisions squeezed into (-1/3, 1/3).
    """
    n_present = len(voter.machines.present)
    if n_present == 1:
        return np.zeros((len(values), voter.n_models, 1))
    decisions, limits = _decisions(voter, values, relative, absolute)
    doubtful = np.abs(decisions) <= limits
    for row in np.flatnonzero(doubtful.any(axis=(0, 2))):
        alone = exact_values(int(row))
        for model in np.flatnonzero(doubtful[:, row].any(axis=0)):
            decisions[:, row, model] = exact_decisions(voter, alone, int(model))
    if n_present == 2:
        return np.stack((decisions[0], -decisions[0]), axis=-1)
    return _votes(decisions, n_present)


def _decisions(
    voter: Voter, values: Floats, relative: Floats, absolute: Floats
) -> tuple[Floats, Floats]:
    """Return decisions and what rounding may change, (n_pairs, n_rows, n_models)."""
    n_rows, n_present = len(values), len(voter.machines.present)
    products, largest = [], []
    for columns, weights in zip(voter.columns, voter.weights, strict=True):
        block = values[:, columns]
        product = block @ weights.reshape(len(weights), -1)
        products.append(product.reshape(n_rows, n_present - 1, -1))
        high, low = block.max(axis=1, initial=0), block.min(axis=1, initial=0)
        largest.append(np.maximum(high, -low))
    unit = relative + 4.0 * np.finfo(np.float64).eps * (voter.n_columns + 16)
    shape = (n_present * (n_present - 1) // 2, n_rows, voter.n_models)
    decisions, limits = np.empty(shape), np.empty(shape)
    for p, (i, j) in enumerate(_pairs(n_present)):
        offset = voter.machines.offsets[p]
        decisions[p] = products[i][:, j - 1] + products[j][:, i] + offset
        limits[p] = np.outer(unit * largest[i] + absolute, voter.sums[i, j - 1])
        limits[p] += np.outer(unit * largest[j] + absolute, voter.sums[j, i])
        limits[p] += 4.0 * np.finfo(np.float64).eps * np.abs(offset)
    return decisions, limits


def _votes(decisions: Floats, n_present: int) -> Floats:
    votes = np.zeros((*decisions.shape[1:], n_present))
    sums = np.zeros_like(votes)
    for decision, (i, j) in zip(decisions, _pairs(n_present), strict=True):
        wins: NDArray[np.bool_] = decision > 0
        votes[..., i] += wins
        votes[..., j] += ~wins
        sums[..., i] += decision
        sums[..., j] -= decision
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))


def _pairs(n_present: int) -> list[tuple[int, int]]:
    rows, columns = np.triu_indices(n_present, 1)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def write_scores(
    found: Floats, voter: Voter, target: Floats, at: Integers, rows: Integers
) -> None:
    """Write block scores of some models to (n_candidates, n_rows, n_classes).

    Parameters
    ----------
    found
        Scores of these rows and of the models asked, (n_rows, n_models, n_present).
    voter
        Whose they are.
    target
        Written to; classes that are not present get -inf.
    at
        Place of each of the models on the candidate axis.
    rows
        Row numbers.
    """
    where = slice_of(rows)
    for model, place in enumerate(at):
        if len(voter.machines.present) < target.shape[-1]:
            target[place, where] = -np.inf
        for column, code in enumerate(voter.machines.present):
            target[place, where, code] = found[:, model, column]
