"""Which model predicts a row: that of smallest count, and a rule where several tie."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.row_random import row_random_at


@dataclass(frozen=True)
class TiedModels:
    """Counts and scores of the models on a block of rows."""

    tied: NDArray[np.bool_]
    """Models whose count is the smallest of the row, models x rows."""
    values: NDArray[np.float64]
    """Score of each label, models x rows x classes."""
    usual: NDArray[np.float64]
    """Usual size of a model's margins, one a model, > 0."""
    units: NDArray[np.float64]
    """One number a row, uniform on [0, 1), that depends on seed and row only."""

    @property
    def margins(self) -> NDArray[np.float64]:
        """Gap between the two best labels over the usual one, models x rows."""
        best, second = two_best(self.values)
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(best - second, nan=0.0, posinf=np.inf)
        return np.asarray(gaps / self.usual[:, np.newaxis])


def choose_at_random(tied_models: TiedModels) -> NDArray[np.int64]:
    """Draw one of the tied models, each with the same chance (the paper's rule)."""
    position = np.cumsum(tied_models.tied, axis=0, dtype=np.int32)
    wanted = np.floor(tied_models.units * position[-1]).astype(np.int32)
    return _first(position > wanted)


def choose_first(tied_models: TiedModels) -> NDArray[np.int64]:
    """Take the tied model of smallest number."""
    return _first(tied_models.tied)


def choose_by_margin(tied_models: TiedModels) -> NDArray[np.int64]:
    """Take the tied model whose margin is largest relative to its median."""
    return _first(np.where(tied_models.tied, tied_models.margins, -np.inf))


def choose_by_vote(tied_models: TiedModels) -> NDArray[np.int64]:
    """Take the label that most tied models predict, from that of largest margin."""
    labels = best_label(tied_models.values)
    votes = np.zeros_like(labels)
    for label in np.unique(labels):
        agrees = labels == label
        votes += agrees * np.sum(tied_models.tied & agrees, axis=0)
    votes[~tied_models.tied] = -1
    winners = tied_models.tied & (votes == votes.max(axis=0))
    return _first(np.where(winners, tied_models.margins, -np.inf))


LITERAL: Final = "literal"
"""Name of the rule that also ties the labels of a model, see `choose_literally`."""


def _first(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first model of the largest value of each row."""
    return np.asarray(np.argmax(values, axis=0))


TIE_RULES: Final[Mapping[str, Callable[[TiedModels], NDArray[np.int64]]]] = (
    MappingProxyType(
        {
            "first": choose_first,
            "margin": choose_by_margin,
            "random": choose_at_random,
            "vote": choose_by_vote,
        }
    )
)
"""Rule of each name."""


def choose_literally(
    counts: NDArray[np.int64], units: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw a model and a label as the paper prints it: ties inside a model too.

    Where several labels of a model have the same critical count, the sign of its score
    is ignored and one of them is drawn. From counts of every label, (n_models, n_rows,
    n_classes), and one number in [0, 1) a row, the models and labels are drawn with
    equal chances among the (model, conforming label) pairs that tie.
    """
    best, second = two_best(counts)
    tied = second == second.min(axis=0)
    pairs = tied[..., np.newaxis] & (counts == best[..., np.newaxis])
    by_row = np.moveaxis(pairs, 1, 0).reshape(pairs.shape[1], -1)
    return np.divmod(_drawn(by_row, units), counts.shape[-1])


def two_best(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest and the second largest value of the last axis."""
    if values.shape[-1] == 2:
        first, second = values[..., 0], values[..., 1]
        return np.maximum(first, second), np.minimum(first, second)
    top = np.partition(values, values.shape[-1] - 2, axis=-1)
    return top[..., -1], top[..., -2]


def best_label(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best of the labels on the last axis.

    Equal ones: class 1 of two classes (sign of a zero margin is +1), else the lowest.
    """
    if values.shape[-1] == 2:
        return (values[..., 1] >= values[..., 0]).astype(np.int64)
    return np.asarray(np.argmax(values, axis=-1))


def drawn_label(
    values: NDArray[np.float64], units: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return one of the best labels of each row, each with the same chance.

    `values` is rows x classes, `units` one number in [0, 1) a row.
    """
    return _drawn(values == values.max(axis=-1, keepdims=True), units)


def _drawn(allowed: NDArray[np.bool_], units: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw one allowed place of each row, rows x places."""
    position = np.cumsum(allowed, axis=1)
    wanted = np.floor(units * position[:, -1])
    return np.asarray(np.argmax(position > wanted[:, np.newaxis], axis=1))


def row_units(
    seed: int, stream: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two independent numbers in [0, 1) for each row, of 53 and 11 random bits.

    Examples
    --------
    >>> first, second = row_units(7, 2, np.arange(4))
    >>> bool((row_units(7, 2, np.array([2]))[0] == first[2]).all())
    True
    """
    drawn = row_random_at(seed, stream, rows)
    high = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
    low = (drawn & np.uint64(2047)).astype(np.float64) * 2.0**-11
    return high, low
