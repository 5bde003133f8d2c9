"""The options of a search, and the inputs by which a certificate method is chosen."""

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Final, Self

from dsel.arrays import RandomState
from dsel.checks import check_delta, check_integer
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.losses.base import Loss
from dsel.search.design.folds import number_of_folds
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
    """Options of a search, which `plan_search` documents; signatures have defaults."""

    certificate: str | None
    deploy: str | None
    criterion: str | None
    cv: SplitsLike
    delta: float
    prune: str | bool | None
    max_pool_rows: int | None
    random_state: RandomState
    fit_params: Options | None
    groups: GroupsLike
    """Key of each labeled row; a column of `X` is taken from it before."""
    loss: Loss | str
    report: ReportLike
    report_by: str | int | None
    prior: PriorLike
    n_queries: int
    baseline: BaselineLike

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


@dataclass(frozen=True, kw_only=True)
class MethodInputs:
    """Options and labeled rows of a search, from which its scheme is made."""

    options: SearchOptions
    labeled: LabeledRows
    seed: int
    n_candidates: int
    groups: RowGroups | None
    """Groups of the labeled rows, by the option `groups`."""
    has_pool: bool

    @cached_property
    def is_plain(self) -> bool:
        """Whether folds are drawn at random, and not those of a splitter or a list."""
        # A number is of folds, or of random halvings.
        is_number = self.options.cv is None or isinstance(self.options.cv, Real)
        return is_number or bool(number_of_folds(self.options.cv, self.labeled.n_rows))

    @property
    def is_covered(self) -> bool:
        """Whether the randomly drawn units are independent: rows, or whole groups."""
        # Fits get groups of `fit_params`, and folds ignore them.
        in_groups = "groups" in (self.options.fit_params or ())
        return self.is_plain and (self.groups is not None or not in_groups)

    @property
    def by_groups(self) -> bool:
        """Whether random folds consist of whole groups."""
        return self.is_plain and self.groups is not None
