"""What a plan decides: the method, which models are trained, and what is counted."""

from dataclasses import dataclass

from dsel.criteria import get_criterion
from dsel.criteria.base import Criterion
from dsel.data.groups import RowGroups
from dsel.data.pool import Pool
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.search.design.certificate_methods import (
    CertificateMethod,
    MethodOptions,
    SchemeOptions,
    choose_method,
    choose_pruning,
)
from dsel.search.design.folds import CVScheme
from dsel.search.planning.plan_inputs import PoolParts, SearchInputs
from dsel.search.planning.plan_options import SearchOptions, check_losses, check_queries


@dataclass(frozen=True)
class SearchDesign:
    """How a search is made: by which certificate, which models, on which rows."""

    method: CertificateMethod
    scheme: CVScheme
    deploy: str
    """Which model is deployed: ``one_fold`` or ``all_rows``."""
    prune: str
    groups: RowGroups | None
    """Groups of which a bound counts one row each; None where rows are independent, or
    there is no bound."""
    counted: Pool | None
    """The pool rows on which models are compared."""


def choose_design(
    options: SearchOptions, inputs: SearchInputs, parts: PoolParts
) -> SearchDesign:
    """Return what the options mean for these rows and candidates.

    Raises ValueError where they contradict each other.
    """
    method = choose_method(
        MethodOptions(
            options.certificate,
            options.criterion,
            options.deploy,
            options.prune,
            options.cv,
            inputs.labeled.n_rows,
            inputs.groups,
            are_passed_on=inputs.passes_groups,
            has_pool=parts.counted is not None,
            is_regression=inputs.is_regression,
        )
    )
    scheme = method.make_scheme(
        SchemeOptions(
            options.cv,
            inputs.labeled,
            inputs.seed,
            inputs.groups,
            len(inputs.candidates),
            method.criterion,
        )
    )
    groups, counted = None, parts.counted
    if inputs.groups is not None and method.is_guarantee and scheme.is_plain_random:
        groups = inputs.groups
        counted = None  # of pool rows nobody knows the groups
        check_no_fitting_pool(parts)
    return SearchDesign(
        method,
        scheme,
        options.deploy or method.deploys,
        choose_pruning(options.prune, method),
        groups,
        counted,
    )


def check_no_fitting_pool(parts: PoolParts) -> None:
    """Raise ValueError where learners are given rows of a pool.

    They may be of the groups of a fold, and no content tells it.
    """
    if parts.fitting is not None:
        raise ValueError(
            "`groups` give no bound for learners that are given a part of `pool`, "
            "where rows may be of the same groups as the labeled rows; leave the pool "
            "out, or use cv=sklearn.model_selection.GroupKFold(5) for an estimate."
        )


def choose_losses(
    options: SearchOptions, inputs: SearchInputs, design: SearchDesign
) -> DeclaredLosses:
    """Return what is ranked by, bounded and reported.

    Raises ValueError where the method of the design cannot bound it.
    """
    losses = declare_losses(options.loss, options.report, inputs.labeled.classes)
    if (column := inputs.column) is not None:
        if design.scheme.is_holdout:  # values are of all rows, and counted are some
            column = column.of_rows(inputs.labeled.X[design.scheme.counted_rows])
        losses = losses.report_by(column)
    check_losses(losses, design.method, options.report_by)
    check_queries(
        options.n_queries,
        design.method,
        losses,
        has_pool=design.counted is not None,
        in_groups=design.groups is not None,
    )
    return losses


def ranking_criterion(losses: DeclaredLosses, method: CertificateMethod) -> Criterion:
    """Return what ranks the candidates: the loss, where one was declared."""
    if losses == DeclaredLosses():
        return method.criterion
    return get_criterion(losses.main.criterion)
