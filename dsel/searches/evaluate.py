"""A criterion at some delta, evaluated on a finished cube."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.bounds import uniform_shares
from dsel.bounds.shares import checked_prior
from dsel.checks import check_probability
from dsel.criteria import Criterion, Evidence, Settings, get_criterion
from dsel.criteria.base import reads_folds
from dsel.results import check_cube, evidence
from dsel.results.choice import ORDER, candidate_order

UNDECLARED = (0.05, 0.5)  # delta and label share of a cube without a criterion


@dataclass(frozen=True)
class ResolvedCriterion:
    """A criterion, its delta and label share, and the counts it is evaluated on."""

    criterion: Criterion
    delta: float
    """Probability with which its bounds may fail, all together."""
    declared_delta: float
    """The same as the search declared it."""
    label_share: float
    """Part of delta for the labeled term."""
    counts: Evidence
    """Of the cube."""
    prior: NDArray[np.float64] | None = None
    """Part of delta of each candidate; None for equal parts."""

    @property
    def settings(self) -> Settings:
        """Shares of delta; each candidate of a slice keeps its own."""
        if self.prior is not None:
            return Settings(self.prior * self.delta, self.label_share)
        shares = uniform_shares(int(self.counts[names.N_CANDIDATES]), delta=self.delta)
        return Settings(shares[: self.counts[names.STATUS].size], self.label_share)


def resolve(
    results: xr.Dataset,
    criterion: str | None,
    *,
    delta: float | None,
    label_share: float | None,
    prior: ArrayLike | None = None,
) -> ResolvedCriterion:
    """Return a criterion, its delta and shares; where None as the search declared.

    Raises ValueError where the search did not count what it needs, or folds are left
    out.
    """
    check_cube(results)
    _check_folds(results)
    _check_candidates(results)
    declared = _declared(results)
    resolved = ResolvedCriterion(
        get_criterion(criterion or str(results[names.CRITERION].values[0])),
        check_probability(declared[0] if delta is None else delta, "delta"),
        declared[0],
        check_probability(
            declared[1] if label_share is None else label_share, "label_share"
        ),
        evidence(results),
        declared_prior(results)
        if prior is None
        else checked_prior(prior, results[names.STATUS].size),
    )
    check_evidence(resolved.criterion, resolved.counts)
    return resolved


def declared_prior(results: xr.Dataset) -> NDArray[np.float64] | None:
    """Return each candidate's part of delta; None where the search gave equal parts."""
    if names.CRITERION not in results.dims:
        return None
    first = results.isel({names.CRITERION: 0})
    parts = first[names.DELTA_SHARE].values.ravel() / float(first[names.DELTA])
    is_equal = np.isclose(parts * float(results[names.N_CANDIDATES]), 1.0, rtol=1e-9)
    return None if is_equal.all() else np.asarray(parts)


def _check_folds(results: xr.Dataset) -> None:
    """Raise unless all folds are there in order: bounds depend on their places."""
    for dim, coordinate in results.coords.items():
        found = np.atleast_1d(coordinate.values).tolist()
        if dim in results[names.FOLD_ROWS].dims:  # older cubes do not say how many
            n_splits = coordinate.attrs.get(names.N_SPLITS, len(found))
        elif names.N_SPLITS in coordinate.attrs:  # one fold, without a dimension
            n_splits = 0
        else:
            continue
        if found != list(range(n_splits)):
            raise ValueError(
                f"`results` must hold every {dim} of the search in order, got {found}; "
                f"take parts of the grid only, and select before you cut by {dim}."
            )


def is_reordered(results: xr.Dataset) -> bool:
    """Whether candidates stand in another order than in the search, or are left out."""
    return results.attrs.get(ORDER) not in (None, candidate_order(results))


def check_order(results: xr.Dataset) -> None:
    """Raise where the numbers of what a nested search chose mean other candidates."""
    if is_reordered(results):
        raise ValueError(
            "`results` must hold all candidates of a nested search in their order, "
            "since its counts name them by their numbers; select before you sort or "
            "cut them, or sort `results.dsel.table()`."
        )


def _check_candidates(results: xr.Dataset) -> None:
    """Raise where results of several searches were put together: delta was of one."""
    n_here, n = results[names.STATUS].size, results[names.N_CANDIDATES].item()
    if n_here > n:
        raise ValueError(
            f"`results` hold {n_here} candidates, but delta was divided among {n:g}: "
            f"they were put together from several searches; select from one of them."
        )


def check_evidence(criterion: Criterion, counts: Evidence) -> None:
    """Raise ValueError where the search did not count what the criterion needs."""
    _check_splits(criterion, counts)
    for name in criterion.needs:
        values = counts.get(name)
        if values is None or (values.size and np.all(values < 0)):
            option = "train_errors=True or " if name == names.TRAIN_ERRORS else ""
            raise ValueError(
                f"`criterion` {criterion.name!r} needs `{name}`, which this search did "
                f"not count; plan one with {option}criterion={criterion.name!r}"
                + (" and a pool." if "pool" in name or "dis" in name else ".")
            )
    if criterion.reads_whole_pool and names.STAGE_ROWS in counts:
        raise ValueError(
            f"`criterion` {criterion.name!r} needs the whole pool, but this search "
            f"could stop reading before its end; leave `stop_within` out of `reading`."
        )


def _check_splits(criterion: Criterion, counts: Evidence) -> None:
    """Raise ValueError where a criterion of folds is read from halves, or the reverse.

    Training errors mean the same of both, held-out errors and disagreements do not.
    """
    rows = counts[names.FOLD_ROWS]
    compares = {names.FOLD_ERRORS, names.DISAGREEMENTS} & set(criterion.needs)
    if rows.ndim == 2:
        wanted, found = "folds", "random halvings" if reads_folds(criterion) else ""
    else:
        of_halves = criterion.by_halves and compares
        wanted, found = "random halvings", f"{rows.size} folds" if of_halves else ""
    if found:
        raise ValueError(
            f"`criterion` {criterion.name!r} needs {wanted} of the labeled rows, but "
            f"this cube has no {wanted}: its search counted {found}; plan one with "
            f"criterion={criterion.name!r}."
        )


def _declared(results: xr.Dataset) -> tuple[float, float]:
    if names.CRITERION not in results.dims:
        return UNDECLARED
    first = results.isel({names.CRITERION: 0})
    return float(first[names.DELTA]), float(first[names.LABEL_SHARE])


@dataclass(frozen=True)
class Evaluation:
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
    """Lower bound of the estimate where the evidence is not complete; else NaN."""
    label_term: xr.DataArray
    """Part that comes from labeled rows."""
    disagreement_term: xr.DataArray
    """Part that comes from the pool."""


def evaluate(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    label_share: float | None = None,
) -> Evaluation:
    """Evaluate a criterion for every candidate of a cube; nothing is fitted.

    Arguments are those of `select`, by default the search's own. Raises ValueError
    where the search did not count what the criterion needs.
    """
    resolved = resolve(results, criterion, delta=delta, label_share=label_share)
    rule, counts, settings = resolved.criterion, resolved.counts, resolved.settings
    terms = rule.evaluate(counts, settings)
    lower = np.full(len(terms.estimate), np.nan)
    unfinished = np.isnan(terms.estimate)
    if rule.can_prune and unfinished.any():
        lower[unfinished] = rule.lower_bound(counts, settings)[unfinished]
    return Evaluation(
        criterion=rule.name,
        is_guarantee=rule.is_guarantee,
        delta=resolved.delta,
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
