"""The options of `plan_search`, and checks for contradictions between them."""

from dataclasses import dataclass, replace
from typing import Any, Final

from dsel.checks import check_delta, check_integer
from dsel.losses.declared import DeclaredLosses
from dsel.search.design.certificate_methods import CertificateMethod

# Divided among folds and by the smallest weight of a prior, it stays above the share at
# which binomial tails underflow (`binomial.SMALLEST_SHARE`).
SMALLEST_DELTA: Final = 1e-100


@dataclass(frozen=True)
class SearchOptions:
    """Arguments of `plan_search` that decide the search and its certificates.

    `plan_search` documents each of them.
    """

    certificate: str | None
    deploy: str | None
    criterion: str | None
    cv: Any
    delta: float
    prune: str | bool | None
    max_pool_rows: int | None
    loss: Any
    report: Any
    report_by: str | int | None
    prior: Any
    n_queries: int
    baseline: Any


def check_search_options(options: SearchOptions) -> SearchOptions:
    """Return the options with plain numbers; raise if one is of the wrong kind."""
    delta = check_delta(options.delta)
    if delta < SMALLEST_DELTA:
        raise ValueError(
            f"`delta` must be at least {SMALLEST_DELTA:g}, got {delta:g}; no data are "
            f"that certain: 5 % is written 0.05."
        )
    if options.max_pool_rows is not None:
        check_integer(options.max_pool_rows, "max_pool_rows", at_least=1)
    n_queries = check_integer(options.n_queries, "n_queries", at_least=0)
    return replace(options, delta=delta, n_queries=n_queries)


def check_losses(
    losses: DeclaredLosses, method: CertificateMethod, report_by: str | int | None
) -> None:
    """Raise ValueError if a loss is declared and the certificate bounds errors only."""
    if not (losses.is_default or method.takes(losses.main)):
        options = "`loss` and `report` are"
        if losses.by_value is not None:
            options = f"`report_by` {report_by!r} is"
        raise ValueError(
            f"{options} for certificate='nested' with plain random folds "
            f"and no `criterion`, got certificate={method.name or None!r}; the others "
            f"are about the error: leave one of them out."
        )


def check_options_of_numbers(options: SearchOptions) -> None:
    """Raise ValueError if an option is not for regressors."""
    if options.n_queries:
        raise ValueError(
            f"`n_queries` {options.n_queries} is for classifiers: two regressors "
            f"differ on every row; leave it out."
        )


def check_queries(
    n_queries: int,
    method: CertificateMethod,
    losses: DeclaredLosses,
    *,
    has_pool: bool,
    in_groups: bool,
) -> None:
    """Raise ValueError if labels of pool rows cannot make a bound smaller."""
    if not n_queries:
        return
    for is_wrong, why in (
        (not method.bounds_two_models,
         f"queries labels where the two models of certificate='nested' differ, got "
         f"certificate={method.name or None!r}, which has one model; leave it out, and "
         f"give `cv` as a number"),
        (in_groups,
         "queries labels of pool rows, which have no `groups`; leave one of them out"),
        (not has_pool,
         "queries labels of unlabeled rows, but `pool` is None; pass the pool"),
        (losses != DeclaredLosses(),
         f"is for loss='error' without a report, got loss={losses.main!r}"
         f"{' and a report' * bool(losses.reported)}"
         f"{' and report_by' * (losses.by_value is not None)}; leave one of them out"),
    ):  # fmt: skip
        if is_wrong:
            raise ValueError(f"`n_queries` {n_queries} {why}.")
