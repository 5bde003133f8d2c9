"""Co-validation: judge candidates by how often half models differ on the pool."""

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.checks import check_integer
from dsel.results import Assumption
from dsel.searches.grid import Grid
from dsel.searches.plan import Plan, plan_search
from dsel.searches.scheme import KnownLabels

UNKNOWN = -1
PICKED = (
    "the labels were picked by active learning: they are no random sample of the "
    "population, so neither cross-validation nor any bound is about it"
)


def covalidate(
    estimator: Any,
    grid: Grid | None,
    X: Any,
    y: Any,
    pool: Any,
    *,
    repeats: int = 30,
    criterion: str = "max_dt_e",
    random_state: Any = 0,
    client: Any = None,
    **options: Any,
) -> xr.Dataset:
    """Estimate errors by disagreement on the pool, and choose by it.

    In every repeat the labeled rows are halved at random, each candidate is trained
    on both halves, and the two models are compared on the whole pool.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `grid` lists some.
    grid
        Dict of parameter to values, list of such dicts, or list of estimators; None
        for the estimator as it is.
    X
        Labeled rows, shape (n_labeled, n_columns).
    y
        Labels, shape (n_labeled,).
    pool
        Unlabeled rows: anything that `open_pool` takes. Rows that are in `X` too make
        disagreement too low; leave them out.
    repeats
        Random halvings, R >= 1. The first half of an odd number of rows is smaller.
    criterion
        What ranks the candidates and, with ``prune=True``, steers the pruning.
    random_state
        Seed of the halvings and of the learners.
    client
        A `distributed.Client`; None means the current one, else local threads.
    **options
        As `plan_covalidation` takes them: ``pool_labels``, ``picked``, ``prune``,
        ``shared_rows``, ``fit_params``.

    Returns
    -------
    xarray.Dataset
        The cube over the grid, ``repeat`` and ``half``; `dsel.select` chooses from it
        by any criterion of co-validation.

    Raises
    ------
    TypeError, ValueError
        For anything that cannot be searched; the message says the way out.

    Notes
    -----
    No number of co-validation is a guarantee. Disagreement bounds the error of half
    models from below in expectation, and a stable learner may err far more.

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
        grid,
        X,
        y,
        pool,
        repeats=repeats,
        criterion=criterion,
        random_state=random_state,
        **options,
    )
    results: xr.Dataset = plan.run(client)
    return results


def plan_covalidation(
    estimator: Any,
    grid: Grid | None,
    X: Any,
    y: Any,
    pool: Any,
    *,
    repeats: int = 30,
    criterion: str = "max_dt_e",
    pool_labels: ArrayLike | None = None,
    picked: bool = False,
    prune: bool = False,
    random_state: Any = 0,
    **options: Any,
) -> Plan:
    """Plan a co-validation; everything is checked, nothing is fitted.

    Parameters
    ----------
    estimator, grid, X, y, pool, repeats, criterion, random_state
        As for `covalidate`.
    pool_labels
        Labels of pool rows by their row numbers, for evaluation: one label a row, a
        masked array where some are not known. With them the criteria
        ``half_true_error`` and ``true_error`` can be read, on the same rows as the
        disagreement. A label that is not in `y` is an error of every model.
    picked
        Whether the labeled rows were chosen by active learning, not at random. The
        estimates stay, and the results say that nothing can be certified.
    prune
        Whether to drop candidates as soon as they cannot win by `criterion`.
    **options
        As `plan_search` takes them: ``shared_rows``, ``fit_params``.

    Returns
    -------
    Plan
        Print it, or call its `run`.
    """
    check_integer(repeats, "repeats", at_least=1)
    if grid is None:
        estimator, grid = None, [estimator]
    plan = plan_search(
        estimator,
        grid,
        X,
        y,
        pool,
        criterion=criterion,
        cv=repeats,
        prune=prune,
        random_state=random_state,
        **options,
    )
    if plan.scheme.halving is None:
        raise ValueError(
            f"`criterion` must be one of co-validation, such as 'max_dt_e', with a "
            f"pool; got {criterion!r}."
        )
    if pool_labels is not None:
        plan = _with_labels(plan, _codes(pool_labels, plan))
    return _with_picked(plan) if picked else plan


def _codes(labels: ArrayLike, plan: Plan) -> NDArray[np.int32]:
    """Return class codes by global row number, -1 where the label is not known."""
    hidden = np.ma.getmaskarray(np.ma.asarray(labels))
    given = np.ma.getdata(labels)
    n_rows = int(plan.pool.boundaries[-1])
    if given.shape != (n_rows,):
        raise ValueError(
            f"`pool_labels` must have one label for each of the {n_rows} rows of "
            f"`pool`, got shape {given.shape}; mask those that are not known."
        )
    n_classes = len(plan.classes)
    place = np.searchsorted(plan.classes, given).clip(max=n_classes - 1)
    codes = np.where(plan.classes[place] == given, place, n_classes)
    return np.where(hidden, UNKNOWN, codes).astype(np.int32)


def _with_labels(plan: Plan, labels: NDArray[np.int32]) -> Plan:
    full = plan.scheme.n_folds
    halves = tuple(range(full))
    known = (
        KnownLabels(labels, halves, names.HALF_TEST_ERRORS),
        KnownLabels(labels, (full,), names.FULL_TEST_ERRORS),
    )
    scheme = replace(plan.scheme, comparisons=(*plan.scheme.comparisons, *known))
    return replace(plan, scheme=scheme)


def _with_picked(plan: Plan) -> Plan:
    ledger = tuple(
        Assumption("A1", "violated", PICKED) if each.name == "A1" else each
        for each in plan.assumptions
    )
    return replace(plan, assumptions=ledger)
