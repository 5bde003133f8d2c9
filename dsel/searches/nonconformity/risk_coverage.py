"""Risk against coverage: how wrong the answers are that are kept at each cut."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class RiskCoverage:
    """A curve with one point for each distinct value, ascending."""

    values: NDArray[np.float64]
    """Distinct values; rows of at most this value are kept."""
    coverage: NDArray[np.float64]
    """Share of rows kept, in (0, 1]."""
    risk: NDArray[np.float64]
    """Share of wrong answers among the kept ones; the last is the overall error."""


def risk_coverage(values: ArrayLike, is_wrong: ArrayLike) -> RiskCoverage:
    """Return the error rate among rows of at most each value.

    Rows are kept by their value, small first: critical epsilon, or a bound. Equal
    values are kept together, so the curve does not depend on row order.

    Examples
    --------
    >>> curve = risk_coverage([0.1, 0.1, 0.3, 0.2], [False, True, True, False])
    >>> curve.values.tolist(), curve.risk.round(3).tolist()
    ([0.1, 0.2, 0.3], [0.5, 0.333, 0.5])
    """
    cuts, wrong = np.asarray(values, dtype=np.float64), np.asarray(is_wrong, dtype=bool)
    if cuts.ndim != 1 or cuts.shape != wrong.shape or not len(cuts):
        raise ValueError(
            "`is_wrong` must hold one answer for each of `values`, at least one, got "
            f"shapes {wrong.shape} and {cuts.shape}."
        )
    order = np.argsort(cuts, kind="stable")
    last = np.append(np.flatnonzero(np.diff(cuts[order]) > 0), len(cuts) - 1)
    kept = last + 1.0
    return RiskCoverage(
        values=cuts[order][last],
        coverage=kept / len(cuts),
        risk=np.cumsum(wrong[order])[last] / kept,
    )
