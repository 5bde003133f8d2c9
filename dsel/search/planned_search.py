"""The two parts of a plan, each complete when it is made.

1. `PlannedSearch` is the decisions, by which a run fits and counts.
2. `PlanFacts` is what is known before any fit, and is computed from the decisions:
   identity, assumptions and caveats.

`planning.plan.Plan` has both, with what users call: it prints itself, runs, and fits
candidates again. They stand here since a run imports nothing from planning.

None is completed or changed later. Settings of a caller besides options, such as that
labeled rows were picked by active learning, are part of `planning.plan_inputs` instead.
`Plan.with_leave_one_out` plans another search from a finished plan, before either runs:
it equals the plan of a caller that wanted these errors from the beginning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dsel.arrays import Floats
from dsel.bounds.shares import uniform_deltas
from dsel.criteria.criterion import Criterion
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool, PoolSlice
from dsel.errors import Words
from dsel.families.estimator_kinds import name_search
from dsel.losses.protocols import PlannedDelta
from dsel.option_values import Pruning
from dsel.results.assumptions import Assumption
from dsel.results.caveats import Caveat
from dsel.results.cube import GridAxes
from dsel.search.design.assumption_checks import (
    DuplicatesAcrossFolds,
)
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.comparisons import (
    UNKNOWN_FOLD,
    BestFold,
    Comparison,
    Halves,
    QueryDraw,
    RandomFold,
)
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme, ModelRef
from dsel.search.engine.inner_searches import count_survivors
from dsel.search.engine.jobs import JobContext
from dsel.typing import AnyArray

SLICES: Final = 64  # tasks of a pass, unless their rows get too few or too many
SLICE_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a slice


@dataclass(frozen=True, repr=False, kw_only=True)
class PlannedSearch:
    """The decisions of a plan: candidates, folds, pool, certificate and delta."""

    axes: GridAxes
    """Candidates, with their axes in the cube."""
    context: JobContext
    """Labeled rows, splits and candidate groups, for every task."""
    pool: Pool | None
    """The subset of the pool that is counted, or None."""
    criterion: Criterion
    """The criterion that ranks the candidates."""
    method: CertificateMethod
    """The certificate method, or that of an estimate."""
    deploy: str
    """Name of the deployed model: ``one_fold`` or ``all_rows``."""
    delta: float
    """Probability that the certificate fails."""
    prune: Pruning
    """How candidates are dropped; it equals its text, such as ``"halving"``."""
    seed: int
    prior_shares: Floats | None
    """Share of delta of each candidate, (n_candidates,); None for equal shares."""
    n_queries: int
    """Number of pool rows to label, on which both models differ."""
    queried_pool: Pool | None
    """The pool with all columns, from which queried rows are read; None without one."""
    fit_notes: tuple[str, ...]
    """How families will fit the candidates; empty if a closed form does it."""
    row_groups: RowGroups | None
    """Groups of the labeled rows, of which a bound counts one row each; None if rows
    are independent, or there is no bound."""
    renamings: Words
    """Words of the reader of its texts."""

    @property
    def labeled(self) -> LabeledRows:
        """The labeled rows."""
        return self.context.labeled

    @property
    def classes(self) -> AnyArray:
        """Sorted labels; empty for a regression."""
        return self.labeled.classes

    @property
    def method_name(self) -> str | None:
        """Name of the certificate method; None for a search that gives an estimate."""
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
    def models_to_fit(self) -> tuple[ModelRef, ...]:
        """The models of chosen candidates; none if the search is not nested.

        The model of all rows has a bound only by a pool, and is not fitted without one.
        """
        folds = range(self.scheme.n_folds) if self.scheme.is_nested else ()
        if not folds or self.pool is None:
            return (*folds,)
        return (*folds, ALL_ROWS_MODEL)

    @property
    def scheme(self) -> CVScheme:
        """The models that are trained, with the test rows of each."""
        return self.context.scheme

    @property
    def planned_delta(self) -> PlannedDelta:
        """Delta of the bounds, with what divides it."""
        return PlannedDelta(
            delta=self.delta,
            # Criteria of other searches divide delta between labels and pool.
            has_pool=self.pool is not None and self.method.is_nested,
            has_queries=self.n_queries > 0,
            n_bounded=self.n_candidates if self.method.bounds_all_candidates else 1,
        )

    @property
    def query_draw(self) -> QueryDraw:
        """How rows to label are drawn from the pool."""
        return QueryDraw(self.n_queries, self.seed)

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
        # A nested search compares only its chosen models.
        if self.pool is None or scheme.all_rows is None or self.method.is_nested:
            return ()
        if scheme.n_halvings:
            return (Halves(scheme.n_halvings),)
        # The best folds are known once all folds are fitted; see `with_best_folds`.
        unknown = np.full(self.n_candidates, UNKNOWN_FOLD)
        all_rows = scheme.all_rows_number
        return RandomFold(self.seed, k, all_rows), BestFold(all_rows, unknown)

    @cached_property
    def slices(self) -> tuple[PoolSlice, ...]:
        """Parts of the pool, one task each; they do not depend on the cluster."""
        if self.pool is None:
            return ()
        # Slices depend on the pool alone, never on the cluster: a run resumed elsewhere
        # must find the slices that are stored.
        fewest, most = SLICE_ROWS
        n_rows = -(-self.pool.n_rows // SLICES)
        return self.pool.slices(int(np.clip(n_rows, fewest, most)))

    @cached_property
    def fitted_search(self) -> str:
        """Class of the search that each fit is, ``GridSearchCV``; "" if it is none."""
        names = {name_search(estimator) for estimator in self.context.estimators}
        return names.pop() if len(names) == 1 else ""

    @property
    def fit_unit(self) -> str:
        """Name of the units of work: ``fits``, or ``searches by GridSearchCV``."""
        return f"searches by {self.fitted_search}" if self.fitted_search else "fits"

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
        scheme, n, n_chosen = self.scheme, self.n_candidates, len(self.models_to_fit)
        splits, first = len(scheme.splits), len(scheme.first_round)
        if not self.is_halved:
            may_prune = self.prune == Pruning.EXACT and self.criterion.can_prune
            return (1 if may_prune else n) * splits + n_chosen, n * splits + n_chosen
        # A fit without two folds is read by two searches, which may keep different
        # quarters.
        least, most = (
            n * first + n_survivors * (splits - first) + n_chosen
            for n_survivors in (count_survivors(n), min(n, 2 * count_survivors(n)))
        )
        return least, most


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """What is known of the numbers of a search before any fit."""

    identity: Mapping[str, str]
    """Everything but rows that affects counts; a store recognizes its plan by it."""
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """Caveats, the gravest first, without violated assumptions. Choices repeat all but
    those with `Effect.PLAN`."""
    duplicates: DuplicatesAcrossFolds
    """Duplicates among labeled rows; only with the pool's can a run judge them."""
