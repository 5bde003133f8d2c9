"""Co-validation: rank candidates by the disagreement of half-data models."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from dsel.arrays import ArrayLike, Estimator, RandomState
from dsel.candidates import Grid
from dsel.checks import check_integer, check_truth, explain_unknown
from dsel.criteria import get_criterion
from dsel.data.labeled import one_column
from dsel.search.design.search_options import SearchOptions
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options
from dsel.typing import Options, PathLike

if TYPE_CHECKING:
    from distributed import Client


PICKED: Final = (
    "the labeled rows were picked by active learning and are no random sample of the "
    "population, so neither cross-validation nor any bound holds for it"
)
HALVED: Final = {"cv": "labeled rows are halved at random, `repeats` times"}
"""Why co-validation lacks an option that searches have."""


@explain_unknown(HALVED)
def covalidate(
    estimator: Estimator,
    param_grid: Grid | None,
    X: ArrayLike,
    y: ArrayLike,
    pool: object,
    *,
    repeats: int = 30,
    criterion: str = "max_dt_e",
    leave_one_out: bool = False,
    picked: bool = False,
    prune: bool = False,
    max_pool_rows: int | None = None,
    fit_params: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
    client: "Client | None" = None,
    out: PathLike | None = None,
    storage_options: Options | None = None,
) -> xr.Dataset:
    """Estimate errors by the disagreement on the pool, and rank candidates by it.

    In every repeat the labeled rows are halved at random, each candidate is trained
    on both halves, and the two models are compared on the whole pool.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `param_grid` lists
        some.
    param_grid
        As `plan_search` takes it; None for the estimator as it is.
    X
        Labeled rows, shape (n_labeled, n_columns).
    y
        Labels, shape (n_labeled,).
    pool
        Unlabeled rows: anything that `open_pool` takes. Rows that are also in `X`
        make the disagreement too low; leave them out.
    repeats
        Random halvings, R >= 1. The first half of an odd number of rows is smaller.
    criterion
        Criterion that ranks the candidates and, with ``prune=True``, prunes them.
    leave_one_out, picked, prune, max_pool_rows, fit_params
        As `plan_covalidation` takes them.
    random_state
        Seed of the halvings and of the learners.
    client
        A `distributed.Client`; None means the current one, else this machine.
    out
        Directory or URL where counts are stored; the same call continues from them.
        None stores nothing.
    storage_options
        For fsspec, where `out` is a URL.

    Returns
    -------
    xarray.Dataset
        The cube over the grid, ``repeat`` and ``half``; `dsel.select` chooses from it
        by any criterion of co-validation.

    Raises
    ------
    TypeError, ValueError
        Where an argument is invalid; the message names it and what to change.

    See Also
    --------
    plan_search : The same for folds, with a certificate.
    dsel.co_validation.learn_actively : Queries labels, and estimates the error.

    Notes
    -----
    No number of co-validation is a guarantee. In expectation the disagreement is a
    lower bound of the error of half models, and a stable learner may err far more.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> results = covalidate(
    ...     SVC(), {"gamma": [0.01, 1.0, 100.0]}, X[:60], y[:60], X[60:], repeats=5
    ... )
    >>> dict(results.sizes)["repeat"], results.disagreements.dims
    (5, ('gamma', 'repeat'))
    """
    plan = plan_covalidation(
        estimator,
        param_grid,
        X,
        y,
        pool,
        repeats=repeats,
        criterion=criterion,
        leave_one_out=leave_one_out,
        picked=picked,
        prune=prune,
        max_pool_rows=max_pool_rows,
        fit_params=fit_params,
        random_state=random_state,
    )
    return plan.run(client, out=out, storage_options=storage_options).results


@explain_unknown(HALVED)
def plan_covalidation(
    estimator: Any,
    param_grid: Grid | None,
    X: Any,
    y: Any,
    pool: Any,
    *,
    repeats: int = 30,
    criterion: str = "max_dt_e",
    leave_one_out: bool = False,
    picked: bool = False,
    prune: bool = False,
    max_pool_rows: int | None = None,
    fit_params: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
) -> Plan:
    """Plan a co-validation: check all arguments and fit nothing.

    Parameters
    ----------
    estimator, param_grid, X, y, pool, repeats, criterion, random_state
        As for `covalidate`.
    leave_one_out
        Whether to count leave-one-out errors too, for ``loo_error``: as many fits as
        rows.
    picked
        Whether the labeled rows were chosen by active learning, not at random. The
        estimates are the same, and the results state that nothing can be certified.
    prune
        Whether to drop candidates as soon as they cannot win by `criterion`.
    max_pool_rows, fit_params
        As for `plan_search`.

    Returns
    -------
    Plan
        Print it, or call its `run`.

    Raises
    ------
    TypeError, ValueError
        As `covalidate` does, for all but failures of fits.
    """
    if not get_criterion(criterion).by_halves:
        raise ValueError(
            f"`criterion` must be one of co-validation, such as 'max_dt_e', got "
            f"{criterion!r}."
        )
    if pool is None:
        raise ValueError(
            "`pool` must hold unlabeled rows, on which halves are compared; without "
            "any use plan_search with criterion='cv_error' or 'loo_error'."
        )
    if param_grid is None:
        estimator, param_grid = None, [estimator]
    for name, flag in (
        ("leave_one_out", leave_one_out),
        ("picked", picked),
        ("prune", prune),
    ):
        check_truth(flag, name)
    caller_settings = CallerSettings(
        leave_one_out=leave_one_out, violation=PICKED if picked else ""
    )
    search_options = SearchOptions(
        criterion=criterion,
        cv=check_integer(repeats, "repeats", at_least=1),
        prune="exact" if prune else False,
        max_pool_rows=max_pool_rows,
        random_state=random_state,
        fit_params=fit_params,
    )
    y = one_column(y)
    return plan_with_options(
        estimator, param_grid, X, y, pool, search_options, caller_settings
    )
