"""What was decided about a search before anything runs.

`plan_search` makes it, everything else of this room reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dsel.bounds import uniform_shares
from dsel.checks import (
    check_flag,
    check_positive,
)
from dsel.criteria import Criterion, Settings
from dsel.models.family import Candidate
from dsel.results import Assumption, GridAxes
from dsel.searches.engine.fit_task import Work
from dsel.searches.engine.scheme import Scheme
from dsel.searches.engine.stages import Stages


@dataclass(frozen=True, repr=False)
class SearchSpec:
    """Candidates, trainings, pool, criterion and shares of delta of a search."""

    axes: GridAxes
    """Candidates and how the cube numbers them."""
    work: Work
    """Labeled rows, trainings and groups, as every task gets them."""
    classes: NDArray[Any]
    """Label of each class code."""
    scheme: Scheme
    """Trainings, and what is compared on the pool."""
    pool: Any
    """The counted part of the pool, or None."""
    whole_pool: Any
    """The pool as it was given: what is counted, fitted on, or left aside."""
    stages: Stages
    """How much of it is read, and by which tasks."""
    duplicates: str
    """What pool rows equal to labeled rows are."""
    criterion: Criterion
    """What ranks the candidates and steers the pruning."""
    certificate: Criterion
    """What the reported number is; often the criterion itself."""
    delta: float
    """Probability with which the certificate may fail."""
    label_share: float
    """Part of delta for the first term."""
    prune: bool
    """Whether candidates that cannot win are dropped."""
    seed: int
    """Source of all randomness."""
    assumptions: tuple[Assumption, ...]
    """The ledger."""
    remarks: tuple[str, ...]
    """What a reader of the plan should know."""
    fingerprint: Mapping[str, str]
    """What counts depend on beside candidates: trainings, estimator, seed; a run adds
    the rows as they are when it begins."""
    columns: tuple[str, ...] | None = None
    """Names of the features, where there are any."""
    reserve: float = 0.0
    """Probability set aside beside delta for what is added after the results."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; None for as long as it takes."""

    def __post_init__(self) -> None:
        check_flag(self.prune, "prune")
        if self.fit_timeout is not None:
            check_positive(self.fit_timeout, "fit_timeout")

    @property
    def n_candidates(self) -> int:
        """Candidates, N."""
        return self.axes.n_candidates

    @property
    def settings(self) -> Settings:
        """Shares of delta, uniform over all candidates of the grid."""
        shares = uniform_shares(self.n_candidates, delta=self.delta)
        return Settings(shares, self.label_share)

    def candidate(self, number: int) -> Candidate:
        """Return the candidate of that number."""
        return self.work.group_of(number).members((number,))[0]
