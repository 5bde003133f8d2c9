"""All decisions about a search before it runs, as a run reads them.

A design becomes a planned search with what follows from it before any fit, and
`planning.plan.Plan` adds what users call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final, Self

import numpy as np

from dsel.arrays import Floats
from dsel.bounds.shares import uniform_deltas
from dsel.criteria.base import Criterion
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool, PoolSlice
from dsel.families.kinds import search_name
from dsel.losses.base import PlannedDelta
from dsel.option_values import Pruning
from dsel.results.caveats import Caveat
from dsel.results.certificate import Assumption
from dsel.results.cube import GridAxes
from dsel.search.design.assumptions import DuplicatesAcrossFolds, PoolFacts
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.comparisons import BestFold, Comparison, Halves, RandomFold
from dsel.search.design.folds import CVScheme
from dsel.search.engine.inner_searches import count_survivors
from dsel.search.engine.jobs import JobContext
from dsel.typing import AnyArray

SLICES: Final = 64  # tasks of a pass, unless their rows get too few or too many
SLICE_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a slice


@dataclass(frozen=True, repr=False, kw_only=True)
class SearchDesign:
    """The decisions of a plan: candidates, folds, pool, certificate and delta."""

    axes: GridAxes
    """Candidates, with their axes in the cube."""
    context: JobContext
    """Labeled rows, splits and groups, for every task."""
    pool: Pool | None
    """The part of the pool that is counted, or None."""
    criterion: Criterion
    """The criterion that ranks the candidates."""
    method: CertificateMethod
    """The certificate, or the method of an estimate."""
    deploy: str
    """Name of the deployed model: ``one_fold`` or ``all_rows``."""
    delta: float
    """Probability that the certificate fails."""
    prune: Pruning
    """How candidates are dropped; it equals its text, such as ``"halving"``."""
    seed: int
    prior_shares: Floats | None
    """Share of delta of each candidate, (n_candidates,); None for equal parts."""
    n_queries: int
    """Number of pool rows to label, on which both models differ."""
    source: Pool | None
    """The pool with all columns, from which queried rows are read; None without one."""
    fit_notes: tuple[str, ...]
    """How families will fit the candidates; empty if a closed form does it."""
    groups: RowGroups | None
    """Groups of the labeled rows, of which a bound counts one row each; None if rows
    are independent, or there is no bound."""

    @property
    def labeled(self) -> LabeledRows:
        """The labeled rows."""
        return self.context.labeled

    @property
    def classes(self) -> AnyArray:
        """Sorted labels; empty for a regression."""
        return self.labeled.classes

    @property
    def certificate(self) -> str:
        """Name of the certificate; "" for a search that gives an estimate."""
        return self.method.name

    @property
    def is_regression(self) -> bool:
        """Whether candidates predict numbers."""
        return self.labeled.is_regression

    @property
    def n_candidates(self) -> int:
        """Candidates, N."""
        return self.axes.n_candidates

    @property
    def n_chosen_fits(self) -> int:
        """Fits of chosen candidates, without each fold and on all rows; or 0.

        The model of all rows has a bound only by a pool.
        """
        n_folds = self.scheme.n_folds
        return n_folds + (self.pool is not None) if self.method.is_nested else 0

    @property
    def scheme(self) -> CVScheme:
        """The models that are trained, with the test rows of each."""
        return self.context.scheme

    @property
    def planned_delta(self) -> PlannedDelta:
        """Delta of the bounds, with what divides it."""
        return self.method.plan_delta(
            self.delta,
            self.n_candidates,
            has_pool=self.pool is not None,
            has_queries=self.n_queries > 0,
        )

    @property
    def candidate_deltas(self) -> Floats:
        """Delta of each candidate, (n_candidates,)."""
        if self.prior_shares is None:
            return uniform_deltas(self.n_candidates, delta=self.delta)
        return self.delta * self.prior_shares

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons on the pool for every candidate."""
        scheme, k = self.scheme, self.scheme.n_folds
        # Of the models of a nested search only the chosen ones are compared.
        if self.pool is None or scheme.all_rows is None or self.method.is_nested:
            return ()
        if scheme.n_halvings:
            return (Halves(scheme.n_halvings),)
        # Best folds are known once all folds are fitted; see `at_best_folds`.
        unknown = np.full(self.n_candidates, -1)
        return RandomFold(self.seed, k), BestFold(k, unknown)

    @cached_property
    def slices(self) -> tuple[PoolSlice, ...]:
        """Parts of the pool, one task each; they do not depend on the cluster."""
        if self.pool is None:
            return ()
        # By the pool alone, never by the cluster: a run resumed elsewhere must
        # find the slices that are stored.
        fewest, most = SLICE_ROWS
        n_rows = -(-self.pool.n_rows // SLICES)
        return self.pool.slices(int(np.clip(n_rows, fewest, most)))

    @cached_property
    def fit_unit(self) -> str:
        """Name of the units of work: ``fits``, or ``searches by GridSearchCV``."""
        names = {search_name(estimator) for estimator in self.context.estimators}
        name = names.pop() if len(names) == 1 else ""
        return f"searches by {name}" if name else "fits"

    @property
    def is_halved(self) -> bool:
        """Whether fits come in two rounds, the second one of the best candidates."""
        n_first, n_splits = len(self.scheme.first_round), len(self.scheme.splits)
        return self.prune == Pruning.HALVING and n_first < n_splits

    def fits_range(self) -> tuple[int, int]:
        """Return the least and the largest number of fits of the run, without failures.

        A fit that is retried counts once. Where ``prune`` is ``"exact"`` and the
        criterion can drop candidates, the least are the fits of one candidate.
        """
        scheme, n, chosen = self.scheme, self.n_candidates, self.n_chosen_fits
        splits, first = len(scheme.splits), len(scheme.first_round)
        if not self.is_halved:
            may_prune = self.prune == Pruning.EXACT and self.criterion.can_prune
            return (1 if may_prune else n) * splits + chosen, n * splits + chosen
        # A fit without two folds is read by two searches, which may keep different
        # thirds.
        least, most = (
            n * first + kept * (splits - first) + chosen
            for kept in (count_survivors(n), min(n, 2 * count_survivors(n)))
        )
        return least, most


@dataclass(frozen=True, repr=False, kw_only=True)
class PlannedSearch(SearchDesign):
    """A design, with what is known of its numbers before any fit."""

    identity: Mapping[str, str]
    """Everything but rows that affects counts; a store recognizes its plan by it."""
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """Caveats, the gravest first, without violated assumptions. Choices repeat all but
    those with `Effect.PLAN`."""
    duplicates: DuplicatesAcrossFolds
    """Duplicates among labeled rows; only with the pool's can a run judge them."""

    @classmethod
    def of(
        cls,
        design: SearchDesign,
        *,
        identity: Mapping[str, str],
        assumptions: tuple[Assumption, ...],
        caveats: tuple[Caveat, ...],
        duplicates: DuplicatesAcrossFolds,
    ) -> Self:
        """Return a design as a planned search."""
        decisions = {one.name: getattr(design, one.name) for one in fields(design)}
        return cls(
            **decisions,
            identity=identity,
            assumptions=assumptions,
            caveats=caveats,
            duplicates=duplicates,
        )

    def counted_duplicates(self, pool_facts: PoolFacts) -> int:
        """Return how many pool rows may be records of labeled rows.

        Those that equal one, unless the pool was declared to hold other records.
        """
        is_declared = self.pool is not None and self.pool.other_records
        return 0 if is_declared else pool_facts.n_duplicates
