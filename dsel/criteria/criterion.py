"""The base of all criteria, which turn counts into a number for each candidate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Bools, Floats
from dsel.errors import AllFitsFailedError
from dsel.old_names import OldName

TIE_TOLERANCE: Final = 1e-12
"""Relative difference up to which two numbers count as equal: means of the same rates,
or squares, that were summed in another order. Rates of n and n + 1 rows differ by 1 /
n^2 or more."""

CountsByName = Mapping[str, NDArray[Any]]
"""Variables of the cube by name, the candidates flattened into the first axis.

Counts that are not known (yet) are -1. Scalars have shape (). Only criteria read counts
by name: they name what they need, so that one of yours may read any variable, and a
cube of another system or version may lack some. A search passes its counts as records,
and makes a mapping of them where it calls a criterion, and for the cube.
"""
Formula = Callable[[CountsByName], Floats]
"""Function of counts, of which none is missing, that returns one value per
candidate."""


@dataclass(frozen=True)
class Settings:
    """Settings of a criterion in addition to the counts."""

    candidate_deltas: Floats
    """Delta of every candidate, (n_candidates,); the sum is at most delta. A candidate
    whose delta is 0 has no bound."""
    delta_shares: ClassVar = OldName("candidate_deltas")


@dataclass(frozen=True)
class Terms:
    """A criterion's values, each of shape (n_candidates,); NaN where not computed."""

    value: Floats
    """Value by which candidates are compared, not clipped at 1; +inf where a fit
    failed."""
    label_term: Floats
    """Part of the value that comes from labeled rows."""
    disagreement_term: Floats
    """Part of the value that comes from the pool."""


@dataclass(frozen=True)
class Criterion:
    """One way to compare candidates: a pure function of counts."""

    name: str
    """Value of `criterion=`, and its name along the cube's dimension ``criterion``."""
    formula: Callable[..., Any]
    """Function of counts, of which none is missing."""
    counts: tuple[str, ...]
    """Variables of the cube that it needs and that may not be counted yet."""
    sizes: tuple[str, ...]
    """Variables of the cube that it needs and that are known from the start."""
    can_prune: bool = True
    """Whether the value never falls when a count grows."""
    holds_out_one_fold: bool = False
    """Whether it uses the first fold only and is about the model trained without it;
    every other criterion is about the model of all labeled rows."""
    by_halves: bool = False
    """Whether it uses counts of random halves, not of folds."""
    is_regression: bool = False
    """Whether candidates are regressors; every other criterion is of classifiers."""
    uses_declared_loss: bool = False
    """Whether it is the mean of the loss that a plan declares, not an error."""
    is_guarantee: bool = False
    """Whether the value bounds the true error with probability 1 - delta."""
    description: str = ""
    """A description for figures and tables; the name by default."""
    tie_break: Formula | None = None
    """Among equal values the candidate with the smallest value of this is chosen,
    then the first."""

    @property
    def title(self) -> str:
        """The description of the value, or its name without one."""
        return self.description or self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that `evaluate` reads."""
        return self.counts + self.sizes

    def terms(self, counts: CountsByName, settings: Settings) -> Terms:
        """Return the value and its terms, if no count is missing."""
        raise NotImplementedError

    def evaluate(self, counts: CountsByName, settings: Settings) -> Terms:
        """Return the terms of candidates whose counts are complete, NaN for others."""
        if self.holds_out_one_fold and names.FOLD_ERRORS in counts:
            first = counts[names.FOLD_ERRORS][:, :1]
            counts = {**counts, names.FOLD_ERRORS: first}
        n = len(counts[names.STATUS])
        conditions = [counts[name] >= 0 for name in self.counts]
        if names.POOL_ROWS in self.sizes:
            # A pool row is compared once in all folds, and once in each halving.
            n_compared = counts[names.POOL_ROWS]
            n_compared = n_compared if self.by_halves else n_compared.sum(axis=-1)
            conditions.append(n_compared == counts[names.N_UNLABELED])
        by_prediction = {names.FOLD_ERRORS, names.FOLD_LOSS_MEAN} & set(self.counts)
        if by_prediction and names.FOLD_PREDICTIONS in counts:
            # A candidate that was pruned early has been tested by fewer models.
            conditions.append(counts[names.STATUS] != names.STATUS_PRUNED)
        is_known = np.all([c.reshape(n, -1).all(axis=1) for c in conditions], axis=0)
        return self._mask_terms(counts, settings, is_known)

    def lower_bound(self, counts: CountsByName, settings: Settings) -> Floats:
        """Return a lower bound of every value, with missing counts set to 0.

        Where the value may fall when a count grows, incomplete counts give no lower
        bound but 0.
        """
        if self.can_prune:
            is_known = np.ones(len(counts[names.STATUS]), dtype=bool)
            return self._mask_terms(counts, settings, is_known).value
        values = self.evaluate(counts, settings).value
        return np.nan_to_num(values, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, counts: CountsByName) -> int:
        """Return the candidate with the smallest value; `tie_break` decides ties.

        Values that differ only in the last digits count as equal, because sums of
        fractions are rounded.
        """
        values = terms.value
        is_tied = values <= values[first_smallest(values)] * (1.0 + TIE_TOLERANCE)
        if self.tie_break is None:
            return int(is_tied.argmax())
        order = self.tie_break(self._fill_missing(counts))
        return first_smallest(np.where(is_tied, order, np.inf))

    def _fill_missing(self, counts: CountsByName) -> dict[str, NDArray[Any]]:
        """Return the counts with every missing one at 0, its smallest value."""
        filled = {name: np.fmax(counts[name], 0) for name in self.counts}
        return {**counts, **filled}

    def _mask_terms(
        self, counts: CountsByName, settings: Settings, is_known: Bools
    ) -> Terms:
        """Return the terms with inf where a fit failed, and NaN where not known."""
        terms = self.terms(self._fill_missing(counts), settings)
        has_failed = counts[names.STATUS] == names.STATUS_FAILED
        masked = {
            name: np.where(is_known & ~has_failed, term, np.nan)
            for name, term in vars(terms).items()
        }
        masked["value"] = np.where(has_failed, np.inf, masked["value"])
        return Terms(**masked)


@dataclass(frozen=True)
class Bound(Criterion):
    """A criterion that bounds the error of every candidate.

    Its formula takes counts and settings, and returns the terms. With probability at
    least 1 - delta the bounds of all candidates hold at once, so that of the chosen
    candidate holds, if A1 to A7 do and the shares sum to at most delta.
    """

    is_guarantee: bool = True
    """Always True."""

    def terms(self, counts: CountsByName, settings: Settings) -> Terms:
        """Return the terms by the formula of the bound."""
        deltas = settings.candidate_deltas
        is_bounded = np.broadcast_to(deltas > 0.0, len(counts[names.STATUS]))
        if is_bounded.all():
            return self._check_terms(self.formula(counts, settings))
        # Formulas refuse a delta of 0, so candidates without a bound get any other one,
        # and their terms become infinite.
        valid = Settings(np.where(is_bounded, deltas, 0.5))
        terms = self._check_terms(self.formula(counts, valid))
        return Terms(*(np.where(is_bounded, x, np.inf) for x in vars(terms).values()))

    def _check_terms(self, terms: Terms) -> Terms:
        """Return terms; raise ValueError where a formula is no bound of any error."""
        if (terms.value < 0.0).any():
            raise ValueError(
                f"{self.name!r} must bound an error, which is not negative, got "
                f"{float(terms.value.min()):.6g}; correct its formula."
            )
        return terms


@dataclass(frozen=True)
class Estimate(Criterion):
    """A criterion without a guarantee, which needs no delta.

    Its formula takes the counts, and returns one value for each candidate.
    """

    label_term: Formula | None = None
    """Function that returns the part of the value that comes from labeled rows."""
    disagreement_term: Formula | None = None
    """Function that returns the part of the value that comes from the pool."""

    def terms(self, counts: CountsByName, settings: Settings) -> Terms:
        """Return the value and its terms; NaN for terms that it does not have."""
        absent = np.full(len(counts[names.STATUS]), np.nan)
        terms = (
            absent if formula is None else formula(counts)
            for formula in (self.label_term, self.disagreement_term)
        )
        return Terms(self.formula(counts), *terms)


def first_smallest(values: Floats) -> int:
    """Return the first candidate with the smallest value.

    Raises AllFitsFailedError where no candidate has a finite value.
    """
    known = np.where(np.isnan(values), np.inf, values)
    if not np.isfinite(known).any():
        raise AllFitsFailedError(
            "no candidate has a value to compare: every fit failed, or none is "
            "complete; `results.message` has the reason for each."
        )
    return int(np.argmin(known))
