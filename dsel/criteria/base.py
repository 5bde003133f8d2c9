"""The base of all criteria, which turn counts into a number for each candidate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.errors import AllFitsFailedError

ROUNDING: Final = 1e-12
"""Relative difference of numbers that are equal."""

Evidence = Mapping[str, NDArray[Any]]
"""Variables of the cube by name, the candidates flattened into the first axis.

Counts that were not made (yet) are -1. Scalars have shape ().
"""
Formula = Callable[[Evidence], Floats]
"""Takes evidence without a missing count, returns one number per candidate."""


@dataclass(frozen=True)
class Settings:
    """Settings of a criterion in addition to the counts."""

    delta_shares: Floats
    """Share of delta of every candidate, (n_candidates,); the sum is at most delta. A
    candidate whose share is 0 has no bound."""


@dataclass(frozen=True)
class Terms:
    """A criterion's numbers, each of shape (n_candidates,); NaN where not computed."""

    estimate: Floats
    """The number that is compared, not clipped at 1; +inf where a fit failed."""
    label_term: Floats
    """Part of it that comes from labeled rows."""
    disagreement_term: Floats
    """Part of it that comes from the pool."""


@dataclass(frozen=True)
class Criterion:
    """One way to compare candidates: a pure function of the evidence."""

    name: str
    """Value of `criterion=`, and label along the cube's dimension ``criterion``."""
    formula: Callable[..., Any]
    """Takes evidence without a missing count."""
    counts: tuple[str, ...]
    """Variables of the cube that it reads and that may not be counted yet."""
    sizes: tuple[str, ...]
    """Variables of the cube that it reads and that are known from the start."""
    can_prune: bool = True
    """Whether the number never falls when a count grows."""
    holds_out_one_fold: bool = False
    """Whether it reads the first fold only, and is about the model without it; every
    other criterion is about the model of all labeled rows."""
    by_halves: bool = False
    """Whether it reads counts of random halves, not of folds."""
    of_regressors: bool = False
    """Whether candidates are regressors; every other criterion is of classifiers."""
    of_declared_loss: bool = False
    """Whether it is the mean of the loss that a plan declares, not an error."""
    is_guarantee: bool = False
    """Whether the number bounds the true error with probability 1 - delta."""
    tie_break: Formula | None = None
    """The smallest value of this is chosen among equal numbers, then the first."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that `evaluate` reads."""
        return self.counts + self.sizes

    def terms(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the number and its parts, for evidence without missing counts."""
        raise NotImplementedError

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates whose evidence is complete, NaN for others."""
        if self.holds_out_one_fold and names.FOLD_ERRORS in evidence:
            first = evidence[names.FOLD_ERRORS][:, :1]
            evidence = {**evidence, names.FOLD_ERRORS: first}
        n = len(evidence[names.STATUS])
        there = [evidence[name] >= 0 for name in self.counts]
        if names.POOL_ROWS in self.sizes:
            # Every pool row goes to one fold, and to each of the halvings.
            read = evidence[names.POOL_ROWS]
            read = read if self.by_halves else read.sum(axis=-1)
            there.append(read == evidence[names.N_UNLABELED])
        by_answers = {names.FOLD_ERRORS, names.FOLD_LOSS_MEAN} & set(self.counts)
        if by_answers and names.FOLD_ANSWERS in evidence:
            # Who was dropped before the last round was asked less often than others.
            there.append(evidence[names.STATUS] != names.STATUS_PRUNED)
        known = np.all([each.reshape(n, -1).all(axis=1) for each in there], axis=0)
        return self._numbers(evidence, settings, known)

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
        """Return a lower bound of every number: missing counts are taken as 0.

        Where the number may fall when a count grows, incomplete counts say nothing
        about it, and it is 0.
        """
        if self.can_prune:
            every = np.ones(len(evidence[names.STATUS]), dtype=bool)
            return self._numbers(evidence, settings, every).estimate
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the candidate with the smallest number; ties go to the tie break.

        Sums of fractions round: what differs in the last digits only is equal.
        """
        values = terms.estimate
        tied = values <= values[first_smallest(values)] * (1.0 + ROUNDING)
        if self.tie_break is None:
            return int(tied.argmax())
        order = self.tie_break(self._fill_missing(evidence))
        return first_smallest(np.where(tied, order, np.inf))

    def _fill_missing(self, evidence: Evidence) -> dict[str, NDArray[Any]]:
        """Return the evidence with every missing count at 0, its smallest value."""
        counts = {name: np.fmax(evidence[name], 0) for name in self.counts}
        return {**evidence, **counts}

    def _numbers(
        self, evidence: Evidence, settings: Settings, known: NDArray[np.bool_]
    ) -> Terms:
        """Return the terms with inf where a fit failed, and NaN where not known."""
        terms = self.terms(self._fill_missing(evidence), settings)
        failed = evidence[names.STATUS] == names.STATUS_FAILED
        shown = {
            name: np.where(known & ~failed, term, np.nan)
            for name, term in vars(terms).items()
        }
        shown["estimate"] = np.where(failed, np.inf, shown["estimate"])
        return Terms(**shown)


@dataclass(frozen=True)
class Bound(Criterion):
    """A criterion that bounds the error of every candidate.

    Its formula takes evidence and settings, and returns the terms. With probability at
    least 1 - delta the bounds of all candidates hold at once, so that of the chosen
    candidate holds, if A1 to A7 do and the shares sum to at most delta.
    """

    is_guarantee: bool = True
    """Always True."""

    def terms(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms by the formula of the bound."""
        shares = settings.delta_shares
        is_bounded = np.broadcast_to(shares > 0.0, len(evidence[names.STATUS]))
        if is_bounded.all():
            found: Terms = self.formula(evidence, settings)
            return found
        # Formulas refuse a delta of 0; what they say at any other is not read.
        known = Settings(np.where(is_bounded, shares, 0.5))
        found = self.formula(evidence, known)
        return Terms(*(np.where(is_bounded, x, np.inf) for x in vars(found).values()))


@dataclass(frozen=True)
class Estimate(Criterion):
    """A criterion without a guarantee, which needs no delta.

    Its formula takes the evidence, and returns one number for each candidate.
    """

    label_term: Formula | None = None
    """Function that returns the part of the number that comes from labeled rows."""
    disagreement_term: Formula | None = None
    """Function that returns the part of the number that comes from the pool."""

    def terms(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the number and its parts; NaN for parts that it does not have."""
        none = np.full(len(evidence[names.STATUS]), np.nan)
        parts = (
            none if each is None else each(evidence)
            for each in (self.label_term, self.disagreement_term)
        )
        return Terms(self.formula(evidence), *parts)


def first_smallest(values: Floats) -> int:
    """Return the first candidate with the smallest value.

    Raises AllFitsFailedError where no candidate has a finite value.
    """
    known = np.where(np.isnan(values), np.inf, values)
    if not np.isfinite(known).any():
        raise AllFitsFailedError(
            "no candidate has a value to compare: every fit failed, or none is "
            "complete; `results.message` says what happened to each."
        )
    return int(np.argmin(known))
