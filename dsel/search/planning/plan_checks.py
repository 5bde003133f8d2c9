"""Options of a plan that contradict each other, or what is searched."""

from typing import Any

from dsel.checks import show
from dsel.losses.declared import DeclaredLosses
from dsel.search.design.certificate_methods import CertificateMethod


def check_losses(
    losses: DeclaredLosses, method: CertificateMethod, report_by: str | int | None
) -> None:
    """Raise ValueError where a certificate bounds the error alone."""
    if not (losses.is_default or method.takes(losses.main)):
        options = "`loss` and `report` are"
        if losses.by_value is not None:
            options = f"`report_by` {report_by!r} is"
        raise ValueError(
            f"{options} for certificate='nested' with plain random folds "
            f"and no `criterion`, got certificate={method.name or None!r}; the others "
            f"are about the error: leave one of them out."
        )


def check_options_of_numbers(
    n_queries: Any, baseline: Any, *, is_regression: bool
) -> None:
    """Raise ValueError where an option is not for regressors, and these are some."""
    if not is_regression:
        return
    if baseline is not None:
        raise ValueError(
            f"`baseline` {show(baseline)} is for classifiers: wrong labels are "
            f"compared, and of two numbers neither is right; leave it out."
        )
    if n_queries:
        raise ValueError(
            f"`n_queries` {n_queries} is for classifiers: two regressors differ on "
            f"every row; leave it out."
        )


def check_queries(
    n_queries: int,
    method: CertificateMethod,
    losses: DeclaredLosses,
    *,
    has_pool: bool,
    in_groups: bool,
) -> None:
    """Raise ValueError where labels of pool rows can make no bound smaller."""
    if not n_queries:
        return
    for is_wrong, why in (
        (not method.is_nested,
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
