"""The design of a search: its certificate, models, counted rows and losses."""

from dataclasses import dataclass

from dsel.criteria import get_criterion
from dsel.criteria.base import Criterion
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.losses.base import Loss, Rows
from dsel.losses.checking import LOSS_CHECK_ROWS, check_loss_on_rows
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.option_values import Pruning
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
    """Design of a search: its certificate, its models, and their test rows."""

    method: CertificateMethod
    scheme: CVScheme
    deploy: str
    """Name of the deployed model: ``one_fold`` or ``all_rows``."""
    prune: Pruning
    groups: RowGroups | None
    """Groups of which a bound counts one row each; None if rows are independent, or
    there is no bound."""
    pool: Pool | None
    """The pool rows on which models are compared; None if none can be."""


def choose_design(
    options: SearchOptions, inputs: SearchInputs, parts: PoolParts
) -> SearchDesign:
    """Return the design of the options, for these rows and candidates.

    Raises ValueError if options contradict each other.
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
    # The method decides which splits are made, such as halves for co-validation.
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
    groups, compared_pool = None, parts.counted
    if inputs.groups is not None and method.is_guarantee and scheme.is_plain_random:
        groups = inputs.groups
        compared_pool = None  # the groups of its rows are not known
        check_no_fitting_pool(parts)
    return SearchDesign(
        method,
        scheme,
        options.deploy or method.deploys,
        choose_pruning(options.prune, method),
        groups,
        compared_pool,
    )


def check_no_fitting_pool(parts: PoolParts) -> None:
    """Raise ValueError if learners are fitted on rows of a pool.

    The rows may belong to the groups of a fold, which their content does not show.
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
    """Return the losses by which candidates are ranked, bounded and reported.

    Raises ValueError if the certificate of the design cannot bound one, or a loss that
    is not of dsel fails on labeled rows.
    """
    losses = declare_losses(options.loss, options.report, inputs.labeled.classes)
    check_own_loss(losses.main, inputs.labeled)
    if (column := inputs.column) is not None:
        if design.scheme.is_holdout:  # values are of all rows, and counted are some
            column = column.of_rows(inputs.labeled.X[design.scheme.counted_rows])
        losses = losses.with_column(column)
    check_losses(losses, design.method, options.report_by)
    check_queries(
        options.n_queries,
        design.method,
        losses,
        has_pool=design.pool is not None,
        in_groups=design.groups is not None,
    )
    return losses


def check_own_loss(loss: Loss, labeled: LabeledRows) -> None:
    """Raise LossError or ValueError if a loss of the user's own fails on labeled rows.

    Only scores and counts are tried: rows and classes of a plan may be any, and for
    limits `check_loss` has rows of its own.
    """
    # An error of such a loss would otherwise appear on a worker, after the first fits.
    if type(loss).__module__.startswith("dsel."):
        return
    rows = Rows(labeled.X[:LOSS_CHECK_ROWS], labeled.y[:LOSS_CHECK_ROWS])
    check_loss_on_rows(loss, rows)


def ranking_criterion(losses: DeclaredLosses, method: CertificateMethod) -> Criterion:
    """Return the criterion that ranks the candidates: a declared loss, if any."""
    if losses == DeclaredLosses():
        return method.criterion
    return get_criterion(losses.main.criterion)
