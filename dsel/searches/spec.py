"""What is decided about a search before it runs: made by `plan_search`, read by all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.bounds import prior_shares, uniform_shares
from dsel.checks import check_flag
from dsel.criteria import Criterion, Settings
from dsel.criteria.base import is_nested
from dsel.families.family import Candidate
from dsel.results import Assumption, GridAxes
from dsel.searches.engine.fit_task import Work
from dsel.searches.engine.scheme import Scheme
from dsel.searches.engine.stages import Stages


@dataclass(frozen=True, repr=False)
class SearchSpec:
    """Candidates, splits, pool, criterion and shares of delta of a search."""

    axes: GridAxes
    """Candidates, and their places in the cube."""
    work: Work
    """Labeled rows, splits and groups, as every task gets them."""
    classes: NDArray[Any]
    scheme: Scheme
    whole_pool: Any
    """The pool as it was given, the parts that are not counted included."""
    stages: Stages
    """How the counted part of it is read."""
    duplicates: str
    """How pool rows that equal labeled rows are treated."""
    criterion: Criterion
    """What ranks the candidates, and decides which are pruned."""
    certificate: Criterion
    """Criterion of the reported number; often the one that ranks."""
    delta: float
    label_share: float
    prune: bool
    """Whether candidates that cannot win are dropped."""
    seed: int
    assumptions: tuple[Assumption, ...]
    """A1 to A6, each checked, declared or violated."""
    remarks: tuple[str, ...]
    fingerprint: Mapping[str, str]
    """What counts depend on besides candidates: splits, estimator, seed; a run adds
    hashes of the rows as they are when it begins."""
    columns: tuple[str, ...] | None = None
    """Names of the features, where there are any."""
    reserve: float = 0.0
    """Probability set aside besides delta for what is added after results were seen."""
    prior: NDArray[np.float64] | None = None
    """Part of delta of each candidate; None for equal parts."""

    def __post_init__(self) -> None:
        check_flag(self.prune, "prune")
        if self.prior is not None and is_nested(self.certificate):
            raise ValueError(
                f"`prior` gives candidates unequal parts of delta, but the certificate "
                f"{self.certificate.name!r} pays for no candidate; leave `prior` out."
            )

    @property
    def pool(self) -> Any:
        """The counted part of the pool, or None."""
        return self.stages.pool

    @property
    def n_candidates(self) -> int:
        """Candidates, N."""
        return self.axes.n_candidates

    @property
    def settings(self) -> Settings:
        """Shares of delta, by the prior or uniform over all candidates of the grid."""
        shares = (
            uniform_shares(self.n_candidates, delta=self.delta)
            if self.prior is None
            else prior_shares(self.prior, delta=self.delta)
        )
        return Settings(shares, self.label_share)

    def candidate(self, number: int) -> Candidate:
        """Return the candidate of that number."""
        return self.work.group_of(number).members((number,))[0]
