"""Real scores of many kernel SVMs over a block of rows, in one product each."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dsel.models.kernel_svm_machines import Floats, Integers, Machines
from dsel.models.kernel_svm_readings import slice_of
from dsel.models.kernel_svm_votes import Voter, class_products, exact_decisions


def score_block(
    voter: Voter,
    values: Floats,
    peaks: Floats,
    errors: Floats,
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
    peaks, errors
        Bounds of each row's absolute kernel values and of their error, (n_rows,).
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
    decisions = _decisions(voter, values)
    doubtful = np.abs(decisions) <= voter.limits(peaks, errors)
    for row in np.flatnonzero(doubtful.any(axis=(0, 2))):
        alone = exact_values(int(row))
        for model in np.flatnonzero(doubtful[:, row].any(axis=0)):
            decisions[:, row, model] = exact_decisions(voter, alone, int(model))
    if n_present == 2:
        return np.stack((decisions[0], -decisions[0]), axis=-1)
    return _votes(decisions, voter.machines)


def _decisions(voter: Voter, values: Floats) -> Floats:
    """Return decisions, (n_pairs, n_rows, n_models)."""
    products = class_products(voter, values)
    return np.stack(
        [
            products[i, :, j - 1] + products[j, :, i] + offset
            for (i, j), offset in zip(
                voter.machines.pairs, voter.machines.offsets, strict=True
            )
        ]
    )


def _votes(decisions: Floats, machines: Machines) -> Floats:
    votes = np.zeros((*decisions.shape[1:], len(machines.present)))
    sums = np.zeros_like(votes)
    for decision, (i, j) in zip(decisions, machines.pairs, strict=True):
        wins: NDArray[np.bool_] = decision > 0
        votes[..., i] += wins
        votes[..., j] += ~wins
        sums[..., i] += decision
        sums[..., j] -= decision
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))


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
