"""A bound for the model of any selection procedure: nested cross-validation.

The procedure is run once without each fold, and each of its models is tested on the
fold that it has not seen, so that no number of candidates and no adaptivity has to be
paid for. The best fold's model can be handed over as it is, or the model of all labeled
rows, whose disagreement with that one is counted on the pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice
from dsel.families.answers import predict_codes
from dsel.results import Certificate
from dsel.searches.execute import Outcome, execute
from dsel.searches.plan import Plan, plan_search
from dsel.searches.procedures import SelectionProcedure

CERTIFICATES: Final = ("best_fold", "best_fold_model")
"""About the model of all labeled rows, and about the best fold's."""

WAYS: Final = (
    "out", "storage_options", "on_failure", "on_progress", "verbose", "n_jobs",
)  # fmt: skip
OPTIONS: Final = (
    "delta", "label_share", "duplicates", "random_state", "fit_params",
    "groups", "reading", "pool_labels", "reserve",
)  # fmt: skip


@dataclass(frozen=True)
class Certified:
    """A model and its certificate."""

    model: Any
    """Fitted, as the procedure returned it."""
    certificate: Certificate
    """The bound on its error."""
    results: xr.Dataset
    """Cube of one candidate, with the errors of each fold."""


def certify_selection(
    procedure: Any,
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    cv: int = 3,
    certificate: str | None = None,
    client: Any = None,
    **options: Any,
) -> Certified:
    """Run any selection procedure k + 1 times and say how wrong its model can be.

    Parameters
    ----------
    procedure
        An unfitted scikit-learn classifier, such as a `GridSearchCV` or a pipeline with
        a feature selection, or a function of features and labels that returns a fitted
        classifier. Whatever it does with the rows that it is given is allowed; it must
        see no others, and give the same model when it is called with the same rows
        again. Each call of a function gets a copy of it, made by cloudpickle: what it
        writes outside of itself is lost.
    X, y
        Labeled rows, shape (n_labeled, n_columns), and their labels.
    pool
        Unlabeled rows, anything that `open_pool` takes; None where the best fold's
        model is handed over.
    cv
        Folds, at least 2: the procedure is run once without each. Few large folds give
        a smaller bound for models that have seen fewer rows.
    certificate
        Which model is handed over: ``"best_fold"`` that of all labeled rows, by way of
        its disagreement with the best fold's; ``"best_fold_model"`` the best fold's
        own, which needs no pool and has the smaller bound. By default the first one
        where there is a pool. To be fixed before any result is seen.
    client
        A `distributed.Client`; None means the current one, else local threads. Each run
        of the procedure is one task.
    **options
        ``delta``, ``label_share``, ``duplicates``, ``random_state``, ``fit_params``
        (of an estimator), ``groups``, ``reading``, ``pool_labels``,
        ``reserve`` as `plan_search` takes them; ``out``, ``storage_options``,
        ``on_failure``, ``on_progress``, ``verbose``, ``n_jobs`` as `execute` does.

    Returns
    -------
    Certified
        The model, its certificate, and the cube.

    Raises
    ------
    TypeError
        Where `procedure` is neither an estimator nor a function, or an option is none
        of these.
    ValueError
        Where `certificate` is none of the two, or is ``"best_fold"`` without a pool.
    AllFitsFailedError
        Where the procedure raises on one of its folds, or returns what is not fitted.
    RuntimeError
        Where the model that is handed over errs otherwise than it was counted: it draws
        random numbers without a seed, or depends on later calls.

    See Also
    --------
    plan_search : The candidates of a grid, with exact pruning.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    error of the model handed over is at most the certificate's bound, whatever and
    however many candidates the procedure has tried.
    Assumes: A1 to A6 of the certificate's ledger; A3 here says that the procedure saw
    only the rows that it was called with.
    Source: the test-set bound for each fold and the union bound over folds;
    :func:`dsel.bounds.best_fold`, :func:`dsel.bounds.best_fold_model`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> procedure = GridSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=3)
    >>> found = certify_selection(procedure, X, y, random_state=0)
    >>> found.certificate  # doctest: +ELLIPSIS
    Certificate(error <= 0.1464, delta=0.05, criterion='best_fold_model', ...)
    >>> type(found.model).__name__
    'GridSearchCV'
    """
    wanted = certificate or ("best_fold" if pool is not None else "best_fold_model")
    check_choice(wanted, "certificate", CERTIFICATES)
    if pool is None and wanted == "best_fold":
        raise ValueError(
            "`certificate` 'best_fold' compares two models on unlabeled rows, but "
            "`pool` is None; pass the pool, or use 'best_fold_model'."
        )
    candidate = _as_estimator(procedure)
    _check_options(options, candidate)
    running = {name: options.pop(name) for name in WAYS if name in options}
    plan = plan_search(
        None, [candidate], X, y, pool, cv=cv, criterion=wanted,
        **{**options, "train_errors": True},  # what `_check_same` compares
    )  # fmt: skip
    outcome = execute(plan, client, with_model=True, **running)
    _check_same(plan, outcome)
    model = outcome.model if candidate is procedure else outcome.model.model_
    return Certified(model, outcome.choice.certificate, outcome.results)


def _as_estimator(procedure: Any) -> Any:
    """Return an estimator as it is, a function as one."""
    is_estimator = callable(getattr(procedure, "fit", None))
    if isinstance(procedure, type) or not (is_estimator or callable(procedure)):
        raise TypeError(
            f"`procedure` must be an unfitted classifier or a function of features and "
            f"labels that returns a fitted one, got {procedure!r}."
        )
    return procedure if is_estimator else SelectionProcedure(procedure)


def _check_options(options: Mapping[str, Any], candidate: Any) -> None:
    """Raise where there is no such option, or a function is to take more."""
    if unknown := sorted(set(options) - {*OPTIONS, *WAYS}):
        raise TypeError(
            f"certify_selection has no option `{unknown[0]}`: `certificate` says which "
            f"model is handed over, `procedure` selects it, and beside `cv` and "
            f"`client` there are {', '.join((*OPTIONS, *WAYS))}."
        )
    if options.get("fit_params") and isinstance(candidate, SelectionProcedure):
        raise TypeError(
            f"`fit_params` {sorted(options['fit_params'])} cannot be passed to a "
            f"function, which gets features and labels only; pass an estimator, or put "
            f"them into columns of `X`."
        )


def _check_same(plan: Plan, outcome: Outcome) -> None:
    """Raise where the model that is handed over does not err as it was counted.

    It is fitted again where it was not kept: after a worker died, or where a run goes
    on from its `out`. And what it answers may depend on later calls.
    """
    fold, counted = outcome.choice.fold, outcome.results[names.FULL_TRAIN_ERRORS]
    number = plan.scheme.full if fold is None else fold
    assert number is not None, "a certificate of the full model has one"
    split = plan.work.splits[number]
    rows = split.train_rows if fold is None else split.test_rows
    if fold is not None:
        counted = outcome.results[names.FOLD_ERRORS].isel({names.FOLD: fold})
    codes = predict_codes(outcome.model, plan.work.X[rows], plan.classes)
    n_errors = int(np.sum(codes != plan.work.y[rows]))
    if n_errors != int(counted.item()):
        raise RuntimeError(
            f"`procedure` gave another model when it was run again on the same rows: "
            f"{n_errors} errors where {int(counted.item())} were counted. Give it a "
            f"fixed seed, and let it use the rows of its call only."
        )
