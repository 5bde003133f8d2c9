"""The options of a search, as one record."""

from dataclasses import dataclass, replace
from typing import Final, Self

from dsel.arrays import RandomState
from dsel.checks import check_delta, check_integer
from dsel.losses.protocols import Loss
from dsel.typing import (
    BaselineLike,
    GroupsLike,
    Options,
    PriorLike,
    ReportLike,
    SplitsLike,
)

# Divided among folds and by the smallest weight of a prior, it stays above the delta at
# which binomial tails underflow (`binomial.SMALLEST_TAIL`).
SMALLEST_DELTA: Final = 1e-100


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search, which `plan_search` documents; their defaults are its."""

    certificate: str | None = None
    deploy: str | None = None
    criterion: str | None = None
    cv: SplitsLike = None
    delta: float = 0.05
    prune: str | bool | None = True
    max_pool_rows: int | None = None
    random_state: RandomState = None
    fit_params: Options | None = None
    groups: GroupsLike = None
    """Key of each labeled row, or None; a name of a column was replaced before."""
    loss: Loss | str = "error"
    report: ReportLike = False
    report_by: str | int | None = None
    prior: PriorLike = None
    n_queries: int = 0
    baseline: BaselineLike = None

    def check_values(self) -> Self:
        """Return them with plain numbers; raise if one is of the wrong kind."""
        delta = check_delta(self.delta)
        if delta < SMALLEST_DELTA:
            raise ValueError(
                f"`delta` must be at least {SMALLEST_DELTA:g}, got {delta:g}; no data "
                f"are that certain; 0.05 is 95% confidence."
            )
        if self.max_pool_rows is not None:
            check_integer(self.max_pool_rows, "max_pool_rows", at_least=1)
        n_queries = check_integer(self.n_queries, "n_queries", at_least=0)
        return replace(self, delta=delta, n_queries=n_queries)
