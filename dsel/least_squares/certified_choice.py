r"""A certified choice of width and regularization, without refits of the candidates.

The search without fold i ranks candidates by the residuals on each other fold j of the
models trained without both. `closed_form` computes those of all pairs of folds from one
decomposition for each width. The choice of each search is then fitted, counted and
certified by the same steps as for every other learner.

A model trained without fold i must not depend on this fold. With the RKHS penalty it
does not: the coefficient of the kernel at a row that is left out is 0. The set of
candidates must not depend on the fold either: a regularization is excluded if it is
below the rounding of any kernel matrix of this number of rows, whatever the rows are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import ArrayLike, Floats, Integers
from dsel.checks import check_choice, raise_first
from dsel.data.labeled import one_column
from dsel.data.splits import Split
from dsel.errors import Words, rename_in_errors
from dsel.least_squares.closed_form import EPS
from dsel.least_squares.estimators import KernelLeastSquares
from dsel.least_squares.loss_cube import axes_of
from dsel.losses.regression import mean_squared_error
from dsel.option_values import ALL_ROWS, FORGOTTEN_GROUPS
from dsel.results.candidate_tables import content_token
from dsel.results.cube import with_criterion_values
from dsel.search.design.search_options import SearchOptions
from dsel.search.engine.counts import FitTable
from dsel.search.engine.inner_searches import InnerSearches
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options
from dsel.search.running.cube_of_run import TOKEN
from dsel.search.running.nested import certify_choices, make_pair_results
from dsel.search.running.pool_check import check_pool
from dsel.search.running.run import Run, RunOptions, open_engine
from dsel.search.running.run_description import describe_run
from dsel.typing import AnyArray, PoolLike

if TYPE_CHECKING:
    from distributed import Client


PAIR_LOSSES: Final = "pair_losses"
"""Key in a record of the mean squared errors of models without a pair of folds, on each
fold of the pair."""
AUTO: Final = "auto"
WORDS_OF_LEAST_SQUARES: Final[Words] = {
    FORGOTTEN_GROUPS: "",
    ", or pass `groups`": "",
    " Where rows come in groups pass `groups`; for estimates": " For estimates",
    "run again with groups='customer'": (
        "search KernelLeastSquares with SemiSupervisedSearchCV, which takes groups"
    ),
    "run again with groups=": (
        "search KernelLeastSquares with SemiSupervisedSearchCV, which takes groups: "
    ),
    "pass `groups` where it wants them, or ": "",
    "use plan_search without `certificate`": "leave `certificate` out",
    "pass report_by='site' or another column to the search, and an `out` of its own": (
        "search KernelLeastSquares with SemiSupervisedSearchCV, which takes report_by"
    ),
}
"""Advice of certified searches that this one cannot follow, and what it says instead.
"""
Grid = tuple[Sequence[float], Floats]
"""Widths and regularizations, each once."""


def smallest_regularization(n_rows: int) -> float:
    """Return the rounding limit of any kernel matrix of `n_rows` rows.

    It is n eps times the largest possible eigenvalue, which is n because kernel values
    are at most 1. A limit from the matrix itself would be tighter, but then the rows of
    a fold would decide which candidates the search without this fold has.
    """
    return n_rows**2 * EPS


def why_below_rounding(regularizations: Floats, n_rows: int) -> NDArray[Any]:
    """Return why each regularization cannot be chosen; "" where it can."""
    limit = smallest_regularization(n_rows)
    reasons = np.full(len(regularizations), "", dtype=object)
    reasons[regularizations <= limit] = (
        f"lambda is not above {limit:.1e}, the rounding of a kernel matrix of "
        f"{n_rows:,} rows"
    )
    return reasons


def plan_certified_search(
    search: Any, grid: Grid, X: ArrayLike, y: Floats, pool: PoolLike, seed: int
) -> Plan:
    """Plan the certified search over a grid of a `LeastSquaresSearch`.

    Raises ValueError where a model without a fold may depend on this fold.
    """
    widths, regularizations = grid
    check_choice(search.certificate, "certificate", ("nested",))
    limit = smallest_regularization(len(y))
    raise_first(
        (search.penalty != "rkhs",
         "`certificate` 'nested' needs penalty='rkhs', got 'coefficients', which has a "
         "kernel at every labeled row, so that models depend on the rows that they are "
         "tested on; or search KernelLeastSquares with SemiSupervisedSearchCV, which "
         "has kernels at the training rows only."),
        (search.criterion != "loo",
         f"`criterion` {search.criterion!r} is for estimates, but certificate='nested' "
         f"ranks by the mean squared error of inner folds; leave one of them out."),
        (search.cv is None,
         "`cv` must be a number of folds for certificate='nested', got None."),
        (y.ndim > 1 and y.shape[1] > 1,
         f"`y` must be one column for certificate='nested', got shape {y.shape}; "
         f"make a search for each output."),
        ((regularizations <= limit).all(),
         f"`regularizations` must have one above {limit:.1e}, the rounding of a kernel "
         f"matrix of {len(y):,} rows, for certificate='nested', got at most "
         f"{regularizations.max():g}."),
    )  # fmt: skip
    candidates = [  # their parameters are in the order of the alphabet, as in any grid
        {names.REGULARIZATION: lam, names.WIDTH: width}
        for width in widths
        for lam in regularizations.tolist()
    ]
    axes = axes_of(widths, regularizations, candidates)
    plan: Plan = rename_in_errors(WORDS_OF_LEAST_SQUARES)(plan_with_options)(
        KernelLeastSquares(penalty=search.penalty, fit_intercept=search.fit_intercept),
        [{name: [value] for name, value in params.items()} for params in candidates],
        X,
        one_column(y),
        pool,
        SearchOptions(
            certificate=search.certificate,
            deploy=search.deploy,
            cv=None if is_auto(search.cv) else search.cv,
            delta=search.delta,
            # All candidates are computed at once, so pruning would save nothing.
            prune=False,
            random_state=seed,
            loss=search.loss,
            report=search.report,
        ),
        CallerSettings(axes=axes, renamings=WORDS_OF_LEAST_SQUARES),
    )
    return plan


def is_auto(cv: object) -> bool:
    """Return whether the number of folds was left to the search."""
    return isinstance(cv, str) and cv == AUTO


def mean_squares_of(split: Split[int], left_out: Integers, residuals: Floats) -> Floats:
    """Return the mean squared residual on each test part of a split, (2,).

    `residuals` are those of the rows `left_out`, all rows that the training lacks.
    Without a second part its mean is NaN.
    """
    means = np.full(2, np.nan)
    for part_number, rows in enumerate(split.row_parts):
        # `left_out` is sorted, so the positions of rows in it are found by bisection.
        part_residuals = residuals[np.searchsorted(left_out, rows)].ravel()
        means[part_number] = mean_squared_error(
            part_residuals, np.zeros(len(part_residuals))
        )
    return means


def certify(
    plan: Plan,
    losses: Floats,
    reasons: AnyArray,
    client: "Client | None",
    n_jobs: int | None,
) -> tuple[Outcome, Any]:
    """Choose, fit and certify; return the outcome and the model of all rows.

    `losses` are mean squared errors without pairs of folds, (n_candidates, n_splits,
    2). `reasons` has the reason why a candidate cannot be chosen, "" where it can.
    """
    search = plan.search
    scheme, candidate_groups = search.scheme, search.context.candidate_groups
    table = FitTable(scheme, candidate_groups, search.n_candidates)
    # The closed form has computed all inner fits, so the table is filled at once and
    # the inner searches read it like one of real fits.
    table.fill(losses, reasons.tolist())
    run = Run(search, plan.facts, RunOptions(client=client, n_jobs=n_jobs))
    inner = InnerSearches(scheme, search.prune)
    pool_findings = check_pool(search, None, client=client)
    description = describe_run(search, plan.facts, pool_findings.pool_facts)
    # `make_loss_cube` has already warned about candidates that cannot be chosen.
    counts = inner.final_counts(table, description.data)
    chosen_candidates = inner.choose_candidates(table)
    with open_engine(
        search.context, search.pool, client=client, n_jobs=n_jobs
    ) as engine:
        outcome = certify_choices(
            run,
            engine,
            chosen_candidates,
            counts,
            description,
            sampled_rows=pool_findings.sampled_rows,
            pair_results=make_pair_results(search.axes, table, is_regression=True),
        )
    models = outcome.models
    if ALL_ROWS not in models:
        return outcome, plan.model(chosen_candidates.candidate_of_all_rows)
    return outcome, models[ALL_ROWS]


def add_certified_counts(cube: xr.Dataset, certified: xr.Dataset) -> xr.Dataset:
    """Return the cube of estimates with the counts of the certified search.

    The mean squared error of inner folds, by which candidates were chosen, is the first
    estimate.
    """
    criteria = {
        str(name): certified[names.CRITERION_VALUE].sel({names.CRITERION: name})
        for name in certified[names.CRITERION].values
    }
    estimates = {
        str(name): cube[names.CRITERION_VALUE].sel({names.CRITERION: name})
        for name in cube[names.CRITERION].values
    }
    cube = with_criterion_values(
        cube.drop_vars([names.CRITERION_VALUE, names.CRITERION]), criteria | estimates
    )
    added = {
        name: variable.variable
        for name, variable in certified.data_vars.items()
        if name not in cube and names.CRITERION not in variable.dims
    }
    # Dimensions that only the counts have, such as that of parts of a tolerance.
    labels = {
        dim: certified[dim].variable
        for variable in added.values()
        for dim in variable.dims
        if dim in certified.coords and dim not in cube.coords
    }
    cube = cube.assign_coords(labels).assign(added).assign_attrs(certified.attrs)
    # The token is that of the joined cube, whose variables are of both parts.
    return cube.assign_attrs({TOKEN: content_token(cube)})
