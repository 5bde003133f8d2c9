"""The design of a search: its certificate, models, counted rows, and losses.

Design and options give the identity by which a store recognizes a plan.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn import get_config

from dsel.arrays import Floats, fill_masked_values
from dsel.bounds.shares import proportional_shares
from dsel.data.frames import Frame
from dsel.data.identity import exact_text, is_of_dsel
from dsel.errors import Correction, UndecidedError
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.losses.loss_checks import LOSS_CHECK_ROWS, check_loss_on_rows
from dsel.losses.protocols import Rows
from dsel.results.params_texts import params_text
from dsel.search.design.baseline import read_baseline
from dsel.search.design.certificate_methods import (
    CertificateMethod,
    choose_pruning,
    names_of_methods,
)
from dsel.search.design.cv_schemes import CVScheme
from dsel.search.design.search_options import SearchOptions
from dsel.search.engine.jobs import JobContext, PoolReading
from dsel.search.planned_search import PlannedSearch
from dsel.search.planning.plan_inputs import CallerSettings, DividedPool, SearchInputs
from dsel.typing import Options, PriorLike


def check_losses(
    losses: DeclaredLosses, method: CertificateMethod, report_by: str | int | None
) -> None:
    """Raise ValueError if a loss is declared and the certificate bounds errors only."""
    if not (losses.is_default or method.supports(losses.main)):
        passed = []
        if not losses.is_about_error:
            passed.append(f"`loss` {losses.main!r}")
        if losses.report_losses:
            passed.append("`report`")
        if losses.value_loss is not None:
            passed.append(f"`report_by` {report_by!r}")
        is_one = len(passed) == 1
        raise ValueError(
            f"{' and '.join(passed)} {'is' if is_one else 'are'} for "
            f"certificate='nested' with plain random folds and no `criterion`, got "
            f"certificate={method.name!r}; the others are about the error: "
            f"leave {'it' if is_one else 'them'} out."
        )


def check_queries(search: PlannedSearch) -> None:
    """Raise ValueError if labels of pool rows cannot make a bound smaller."""
    method, losses = search.method, search.context.losses
    reasons = (
        (losses.main.is_regression,
         "is for classifiers: two regressors differ on every row; leave it out"),
        (not method.is_nested,
         f"is for labels where the two models of certificate='nested' differ, got "
         f"certificate={method.name!r}, which has one model; leave it out, and "
         f"give `cv` as a number"),
        (search.row_groups is not None,
         "is not for `groups`, since those of pool rows are not known; leave "
         "`n_queries` out"),
        (search.pool is None,
         "is for labels of unlabeled rows, but `pool` is None; pass the pool"),
        (not losses.is_default,
         f"is for loss='error' without a report, got loss={losses.main!r}"
         f"{' and a report' if losses.report_classes else ''}"
         f"{' and report_by' if losses.value_loss is not None else ''}; leave one of "
         f"them out"),
    )  # fmt: skip
    argument = f"`n_queries` {search.n_queries}"
    for is_wrong, reason in reasons:
        if is_wrong:
            leave_out = [Correction("--queries", str(search.n_queries), None)]
            needs_pool = search.pool is None and search.row_groups is None
            ways = [] if needs_pool else [leave_out]
            raise UndecidedError(f"{argument} {reason}.", *ways)


def make_context(
    search_options: SearchOptions,
    search_inputs: SearchInputs,
    divided_pool: DividedPool,
    method: CertificateMethod,
    scheme: CVScheme,
) -> JobContext:
    """Return what all tasks share: rows, splits, candidates, losses and a baseline."""
    losses = choose_losses(search_options, search_inputs, method, scheme)
    baseline = None
    if search_options.baseline is not None:
        baseline = read_baseline(
            search_options.baseline,
            losses,
            method,
            search_inputs.given_rows,
            search_inputs.labeled,
            scheme,
        )
        # The baseline is only compared: it does not change the ranks of candidates.
        losses = losses.with_baseline(baseline.difference)
    return JobContext(
        labeled=search_inputs.labeled,
        scheme=scheme,
        candidate_groups=search_inputs.candidate_groups,
        reading=PoolReading(
            are_frames=isinstance(search_inputs.labeled.X, Frame),
            allow_nan=search_inputs.allow_nan,
        ),
        fitting_pool=divided_pool.fitting,
        losses=losses,
        baseline=baseline,
    )


def design_search(
    search_options: SearchOptions,
    search_inputs: SearchInputs,
    divided_pool: DividedPool,
    method: CertificateMethod,
    context: JobContext,
    caller_settings: CallerSettings,
) -> PlannedSearch:
    """Return all decisions about a search.

    Raises ValueError if groups or a prior do not fit the certificate.
    """
    # A bound counts one row of each group; without a bound all rows count.
    row_groups = search_inputs.row_groups
    if not (method.is_guarantee and context.scheme.is_plain_random):
        row_groups = None
    if row_groups is not None and divided_pool.fitting is not None:
        # They may be of the groups of a fold, which their content does not show.
        raise ValueError(
            "`groups` give no bound for learners that are given a part of `pool`, "
            "where rows may be of the same groups as the labeled rows; leave the "
            "pool out, or use cv=sklearn.model_selection.GroupKFold(5) for an "
            "estimate."
        )
    prior_shares = None
    if search_options.prior is not None:
        prior_shares = read_prior(
            search_options.prior, method, search_inputs.axes.candidates
        )
    return PlannedSearch(
        axes=caller_settings.axes or search_inputs.axes,
        context=context,
        # With groups the pool is not compared: its rows may come in groups, too.
        pool=divided_pool.counted if row_groups is None else None,
        criterion=method.criterion_of(context.losses.main),
        method=method,
        deploy=search_options.deploy or method.deploys,
        delta=search_options.delta,
        prune=choose_pruning(search_options.prune, method),
        seed=search_inputs.seed,
        prior_shares=prior_shares,
        n_queries=search_options.n_queries,
        # The pool keeps all columns: a person who labels rows may need those that no
        # model reads.
        queried_pool=(caller_settings.queried_pool or divided_pool.whole)
        if search_options.n_queries
        else None,
        # No family fits what a closed form ranks.
        fit_notes=search_inputs.fit_notes if caller_settings.axes is None else (),
        row_groups=row_groups,
        renamings=caller_settings.renamings,
    )


def read_prior(
    prior: PriorLike, method: CertificateMethod, candidate_params: Sequence[Options]
) -> Floats:
    """Return the shares of delta by a prior, (n_candidates,)."""
    n = len(candidate_params)
    if not method.supports_prior:
        reason = "a nested search does not pay for its candidates"
        raise ValueError(
            f"`prior` is for "
            f"certificate={names_of_methods(lambda m: m.supports_prior)}, which divide "
            f"delta among the candidates, got {method.name!r}; leave it "
            f"out{'' if method.bounds_all_candidates else f': {reason}'}."
        )
    weights: Any = prior
    if callable(prior):
        weights = []
        for params in candidate_params:
            try:
                # The function gets a copy, since code of the user may change its
                # arguments.
                weights.append(prior(dict(params)))
            except Exception as error:
                raise ValueError(
                    f"`prior` must return a weight for every candidate, but for "
                    f"{params_text(params)} it raised {type(error).__name__}: {error}"
                ) from error
    if isinstance(weights, Mapping | str) or not np.iterable(weights):
        raise TypeError(
            f"`prior` must be a list of {n} weights, one for each candidate, or a "
            f"function of a candidate's parameters, got {weights!r:.60}."
        )
    try:
        weights = np.asarray(fill_masked_values(weights, "`prior`"))
    except ValueError as error:
        raise TypeError(f"`prior` must have numbers as weights: {error}") from error
    if weights.dtype.kind not in "iuf":
        raise TypeError(
            f"`prior` must have numbers as weights, got {weights.ravel()[:3].tolist()}."
        )
    if weights.shape != (n,):
        raise ValueError(
            f"`prior` must have one weight for each of the {n} candidates, got shape "
            f"{weights.shape}; plan.axes.candidates has their order."
        )
    return proportional_shares(weights.astype(np.float64))


def choose_losses(
    search_options: SearchOptions,
    search_inputs: SearchInputs,
    method: CertificateMethod,
    scheme: CVScheme,
) -> DeclaredLosses:
    """Return the losses by which candidates are ranked, bounded and reported.

    Raises ValueError if the certificate cannot bound one, or a loss that is not of dsel
    fails on labeled rows.
    """
    losses = declare_losses(
        search_options.loss, search_options.report, search_inputs.labeled.classes
    )
    # An error of a loss of the user's own would otherwise appear on a worker, after the
    # first fits.
    if not type(losses.main).__module__.startswith("dsel."):
        X, y = (
            search_inputs.labeled.X[:LOSS_CHECK_ROWS],
            search_inputs.labeled.y[:LOSS_CHECK_ROWS],
        )
        check_loss_on_rows(losses.main, Rows(X, y))
    if (column := search_inputs.column) is not None:
        if scheme.is_holdout:  # the column has all rows, and only its test rows count
            column = column.with_rows(search_inputs.labeled.X[scheme.counted_rows])
        losses = losses.with_column(column)
    check_losses(losses, method, search_options.report_by)
    return losses


def plan_identity(
    search: PlannedSearch, search_options: SearchOptions, search_inputs: SearchInputs
) -> dict[str, str]:
    """Return the identity of a plan: texts and hashes by name.

    Names and texts are in the stores of users, so none of them may change.
    """
    context, method = search.context, search.method
    losses = context.losses
    keys = [
        candidate_group.candidate_keys for candidate_group in context.candidate_groups
    ]
    certificate = method.name or "none"
    delta = f"{search.delta:g}"
    if float(delta) != search.delta:
        delta = repr(search.delta)
    identity = {
        "estimator": short_hash(exact_text(search_inputs.estimator)),
        "candidates": short_hash(keys),
        "certificate": f"{certificate}, {search.criterion.name}, delta={delta}",
        "splits": search.scheme.identity,
        "prune": search.prune or "no",
        "deploy": search.deploy,
        "loss": repr(losses.main),
        "report": repr(losses.tolerances or losses.report_classes or None),
        "max_pool_rows": str(search_options.max_pool_rows),
        "fit_params": short_hash(exact_text(search_inputs.fit_params)),
        "transform_output": str(get_config()["transform_output"]),
        "seed": str(search.seed),
    }
    # Newer options are part of the identity only where they are used, so that other
    # plans keep the identity that their stores have.
    if search.pool is not None and search.pool.other_records:
        identity["other_records"] = "declared"
    if losses.value_loss is not None:
        identity["report_by"] = losses.value_loss.column.name
    if search.prior_shares is not None:
        identity["prior"] = short_hash(search.prior_shares.tolist())
    if search.n_queries:
        identity["n_queries"] = str(search.n_queries)
    if context.baseline is not None:
        identity["baseline"] = context.baseline.identity
    if search_inputs.row_groups is not None:
        identity["groups"] = search_inputs.row_groups.token
    if code := list_user_code(context, search.criterion, method):
        identity["own_code"] = short_hash(code)
    return identity


def list_user_code(context: JobContext, *other_objects: object) -> list[str]:
    """Return the source texts of the user's code that counts and ranks.

    An edited loss, statistic, kernel, family, criterion or certificate gives other
    counts under its old name.
    """
    objects: list[object] = [
        context.losses.main,
        context.losses.main.statistic,
        *other_objects,
    ]
    for candidate_group in context.candidate_groups:
        objects.append(type(candidate_group.family))
        if user_kernels := getattr(candidate_group.family, "user_kernels", {}):
            named = {
                value
                for candidate in candidate_group.candidates
                for value in candidate.all_params.values()
                if isinstance(value, str)
            }
            objects += [
                user_kernels[name] for name in sorted(named & user_kernels.keys())
            ]
    texts = [exact_text(part) for part in objects if not is_of_dsel(part)]
    return list(dict.fromkeys(texts))


def short_hash(value: object) -> str:
    """Return a hash of a value's text."""
    return blake2b(str(value).encode(), digest_size=12).hexdigest()
