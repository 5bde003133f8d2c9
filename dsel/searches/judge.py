"""What a criterion says of every candidate of a cube, on the cube's own axes."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dsel import names
from dsel.searches.asking import ask


@dataclass(frozen=True)
class Judgement:
    """A criterion's numbers over the dimensions of the grid."""

    criterion: str
    """Its name."""
    is_guarantee: bool
    """Whether the numbers bound true errors."""
    delta: float
    """Probability with which the bounds may fail, all together."""
    estimate: xr.DataArray
    """Unclipped; NaN where the evidence is not complete, inf where a fit failed."""
    at_least: xr.DataArray
    """What the number cannot be below where the evidence is not complete; else NaN."""
    label_term: xr.DataArray
    """Part that comes from labeled rows."""
    disagreement_term: xr.DataArray
    """Part that comes from the pool."""


def judge(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    label_share: float | None = None,
) -> Judgement:
    """Judge every candidate of a cube by a criterion; nothing is fitted.

    Parameters
    ----------
    results
        Cube of a search.
    criterion
        Name of the criterion; by default that of the search.
    delta, label_share
        As in `select`; by default those of the search.

    Raises
    ------
    ValueError
        Where the search did not count what the criterion needs.
    """
    question = ask(results, criterion, delta=delta, label_share=label_share)
    rule, counts, settings = question.criterion, question.counts, question.settings
    terms = rule.evaluate(counts, settings)
    lower = np.full(len(terms.estimate), np.nan)
    unfinished = np.isnan(terms.estimate)
    if rule.can_prune and unfinished.any():
        lower[unfinished] = rule.lower_bound(counts, settings)[unfinished]
    return Judgement(
        criterion=rule.name,
        is_guarantee=rule.is_guarantee,
        delta=question.delta,
        estimate=_on_axes(results, terms.estimate, names.ESTIMATE),
        at_least=_on_axes(results, lower, "at_least"),
        label_term=_on_axes(results, terms.label_term, names.LABEL_TERM),
        disagreement_term=_on_axes(
            results, terms.disagreement_term, names.DISAGREEMENT_TERM
        ),
    )


def _on_axes(results: xr.Dataset, values: ArrayLike, name: str) -> xr.DataArray:
    status = results[names.STATUS]
    return xr.DataArray(
        np.asarray(values, dtype=float).reshape(status.shape),
        coords=status.coords,
        dims=status.dims,
        name=name,
    )
