"""A bound for the model of any selection procedure: nested cross-validation.

The procedure is run once without each fold, and each of its models is tested on the
fold that it has not seen, so that no number of candidates and no adaptivity has to be
paid for. The best fold's model can be handed over as it is, or the model of all labeled
rows, whose disagreement with that one is counted on the pool.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dsel import names
from dsel.checks import check_choice
from dsel.models.answers import predict_codes
from dsel.searches.certify import Certified
from dsel.searches.execute import Outcome, execute
from dsel.searches.plan import Plan, plan_search

CERTIFICATES: Final = ("best_fold", "best_fold_model")
"""About the model of all labeled rows, and about the best fold's."""

WAYS: Final = (
    "out", "storage_options", "on_failure", "on_progress", "verbose", "n_jobs",
)  # fmt: skip
OPTIONS: Final = (
    "delta", "label_share", "duplicates", "random_state", "fit_params", "fit_timeout",
    "groups", "reading", "pool_labels", "reserve",
)  # fmt: skip

_RETURNED: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
"""What procedures have returned in this process, by identity."""
_RETURNING: Final = Lock()

Procedure = Callable[[Any, Any], Any]
"""Takes features and labels, returns a fitted classifier."""


class SelectionProcedure(ClassifierMixin, BaseEstimator):
    """A selection procedure as a classifier: `fit` runs it."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure

    def fit(self, X: Any, y: NDArray[Any]) -> "SelectionProcedure":
        """Run the procedure; raise where what it returns is no fitted classifier."""
        model = self.procedure(X, y)
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"`procedure` must return a fitted classifier, got {model!r}, which "
                f"has no `predict`."
            )
        if isinstance(model, BaseEstimator):
            check_is_fitted(
                model,
                msg="`procedure` must return a fitted classifier, but its %(name)s is "
                "not fitted; call `fit` before it is returned.",
            )
        _check_new(model)
        self.model_ = model
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that the model gives."""
        return np.asarray(self.model_.predict(X))


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
        again.
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
        (of an estimator), ``fit_timeout``, ``groups``, ``reading``, ``pool_labels``,
        ``reserve`` as `plan_search` takes them; ``out``, ``storage_options``,
        ``on_failure``, ``on_progress``, ``verbose``, ``n_jobs`` as `execute` does.

    Returns
    -------
    Certified
        The model, as the procedure returned it, its certificate, and the cube with
        the errors of each fold.

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
        Where it gave another model when it was run again.

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
    candidate = _as_estimator(procedure)
    _check_options(options, candidate)
    running = {name: options.pop(name) for name in WAYS if name in options}
    plan = plan_search(
        None, [candidate], X, y, pool, cv=cv, criterion=wanted,
        **{**options, "train_errors": True},  # what `_check_same` compares
    )  # fmt: skip
    outcome = execute(plan, client, with_model=True, **running)
    _check_same(plan, outcome)
    model = outcome.model
    if isinstance(model, SelectionProcedure):
        model = model.model_
    return Certified(model, outcome.choice.certificate, outcome.results)


def _check_new(model: Any) -> None:
    """Raise TypeError where an earlier call, in this process, returned the same."""
    with _RETURNING:
        is_known = _RETURNED.get(id(model)) is model
        with suppress(TypeError):  # there are types without weak references
            _RETURNED[id(model)] = model
    if is_known:
        raise TypeError(
            f"`procedure` must return a new model in each call, but it returned the "
            f"same {type(model).__name__} again, fitted to other rows; clone it inside "
            f"the function before it is fitted."
        )


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
    """Raise where the full model does not err as the one that was counted.

    A model is fitted again where it was not kept: after a worker died, or where a run
    goes on from its `out`. That of a fold is compared where it is counted again.
    """
    if outcome.choice.fold is not None:
        return
    counted = outcome.results[names.FULL_TRAIN_ERRORS]
    codes = predict_codes(outcome.model, plan.work.X, plan.classes)
    n_errors = int(np.sum(codes != plan.work.y))
    if n_errors != int(counted.item()):
        raise RuntimeError(
            f"`procedure` gave another model when it was run again on the same rows: "
            f"{n_errors} errors where {int(counted.item())} were counted. Give it a "
            f"fixed seed."
        )
