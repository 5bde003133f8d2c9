"""Which class wins the vote of pairs, whatever the rounding.

Votes are counted in float32. What its rounding could change is counted anew in float64,
and what that rounding could change is summed in a fixed order: a code does not depend
on the precision, nor on the rows beside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.models.arrays import Bools, Floats, Integers
from dsel.models.svm.decisions import EPS, LEAST, DecisionWeights, decisions_of
from dsel.models.svm.queries import slice_of


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all rows of a table, class by class."""

    values: NDArray[Any]
    """Its values, (n_rows, n_columns), in float32 where votes are counted."""
    peaks: Floats
    """Bound of each row's absolute values by class code, (n_classes, n_rows)."""
    errors: Floats
    """Bound of each row's errors beside the rounding to float32, (n_rows,)."""
    precise: Callable[[Integers], Floats]
    """Gives some rows' values in float64, by their places in the block."""
    exact: Callable[[int], Floats]
    """Gives a row's values, computed for it alone."""


def flush_to_peaks(
    values: NDArray[Any], starts: Integers, *, squared: bool = False
) -> Floats:
    """Return each row's largest absolute value by class, (n_classes, n_rows).

    Values that are as good as 0, see `LEAST`, are set to it, in place; if `squared`,
    all are squared before.

    Parameters
    ----------
    values
        Kernel block, (n_rows, n_columns), class by class.
    starts
        Where each class begins among the columns, and the end, (n_classes + 1,).
    """
    from dsel.solvers import compiled_votes

    peaks = np.zeros((len(starts) - 1, len(values)))
    least = LEAST[values.dtype.type]
    compiled_votes.flush_to_peaks(
        values, starts, values.dtype.type(least), peaks, squared
    )
    return peaks


def decide(
    block: KernelBlock,
    duals: DecisionWeights,
    places: Integers,
    models: Integers,
    guess: Integers,
) -> Integers:
    """Return the codes of some rows of a block, (n_rows, n_models).

    Parameters
    ----------
    block
        Kernel values.
    duals
        Machines over its columns.
    places
        Rows of the block, ascending.
    models
        Model of each column of the codes; may repeat.
    guess
        Class code for each row of the block that is tried first; changes no code.
    """
    present = duals.machines.present
    if len(present) == 1:
        return np.broadcast_to(present, (len(places), len(models)))
    distinct, back = np.unique(models, return_inverse=True)
    codes = _settle(block, duals, places, distinct, guess)
    again = np.flatnonzero((codes < 0).any(axis=1))
    if len(again):
        some = np.flatnonzero((codes < 0).any(axis=0))
        cells = np.ix_(again, some)
        codes[cells] = _count_again(block, duals, places[again], distinct[some])
    return present[codes[:, back]]


def _settle(
    block: KernelBlock,
    duals: DecisionWeights,
    places: Integers,
    models: Integers,
    guess: Integers,
) -> Integers:
    """Return winners' places among the classes, -1 where float32 cannot tell."""
    from dsel.solvers import compiled_votes

    present = duals.machines.present
    whole = len(present) == len(block.peaks)
    peaks = block.peaks if whole else block.peaks[present]
    first = np.searchsorted(present[1:], guess[places], side="right")
    # Values that the user computed may stand column by column.
    values = np.ascontiguousarray(block.values)
    codes = np.zeros((len(places), duals.n_models), dtype=np.int64)
    codes[:, models] = -1
    for layout, some in duals.in_float32:
        found = np.ascontiguousarray(codes[:, some])
        compiled_votes.settle(
            values, places, layout, peaks, block.errors, first.copy(), found
        )
        codes[:, some] = found
    return codes[:, models]


def _count_again(
    block: KernelBlock, duals: DecisionWeights, places: Integers, models: Integers
) -> Integers:
    """Return winners' places among the classes by float64 and, in doubt, exact sums."""
    rows = slice_of(places)
    peaks = block.peaks[duals.machines.present][:, rows]
    values = block.precise(places)
    decisions = decisions_of(duals, values)[..., models]
    limits = duals.limits(peaks, block.errors[rows])[..., models]
    codes, doubtful = _vote(decisions, limits)
    for row in np.flatnonzero(doubtful.any(axis=1)):
        values = block.exact(int(places[row]))
        for column in np.flatnonzero(doubtful[row]):
            codes[row, column] = _exact_winner(duals, values, int(models[column]))
    return codes


def _vote(decisions: Floats, limits: Floats) -> tuple[Integers, Bools]:
    """Return winners' places among the classes, and where rounding could change them.

    Parameters
    ----------
    decisions, limits
        Decisions and bounds of their errors, (n_pairs, n_rows, n_models).
    """
    # Not compiled: only few rows are in doubt, and compiling takes a second.
    n_classes = isqrt(2 * len(decisions)) + 1
    classes = np.arange(n_classes)[:, np.newaxis]
    wins, sure, lost = decisions > 0, decisions > limits, decisions < -limits
    of_first = np.stack((wins, sure, ~lost), axis=1)
    of_second = np.stack((~wins, lost, ~sure), axis=1)
    is_of = np.concatenate(np.triu_indices(n_classes, 1)) == classes
    votes = np.tensordot(
        is_of.astype(np.float32), np.concatenate((of_first, of_second)), 1
    )
    # By the pairs as they are, by those beyond doubt, and with those in doubt.
    counted, fewest, most = np.moveaxis(votes, 1, 0)
    codes = counted.argmax(axis=0)  # the first class with the most votes
    ahead = np.take_along_axis(fewest, codes[np.newaxis], axis=0) - most
    others = classes[..., np.newaxis]
    doubtful = np.where(others < codes, ahead < 1, (others > codes) & (ahead < 0))
    return codes, doubtful.any(axis=0)


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


def _exact_winner(duals: DecisionWeights, values: Floats, model: int) -> int:
    """Return the winner's place among the classes by one row's exact decisions."""
    decisions = exact_decisions(duals, values, model)
    votes = np.zeros(len(duals.machines.present), dtype=np.int64)
    for decision, (i, j) in zip(decisions, duals.machines.pairs, strict=True):
        votes[i if decision > 0 else j] += 1
    return int(np.argmax(votes))
