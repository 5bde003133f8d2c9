"""A bound for the model of any selection procedure: nested cross-validation.

The procedure is run once without each fold, and each of its models is tested on the
fold that it has not seen, so that no number of candidates and no adaptivity has to be
paid for. It is a nested search of a single candidate.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from dsel.search.outcome import Outcome
from dsel.search.plan import plan_search
from dsel.search.procedures import SelectionProcedure, returned_model

OPTIONS: Final = (
    "delta", "max_pool_rows", "random_state", "fit_params", "loss", "report",
    "n_queries",
)  # fmt: skip
RUNNING: Final = (
    "out", "storage_options", "on_failure", "on_progress", "verbose", "n_jobs",
)  # fmt: skip


def certify_selection(
    procedure: Any,
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    cv: int = 5,
    deploy: str | None = None,
    client: Any = None,
    **options: Any,
) -> Outcome:
    """Run any selection procedure k + 1 times and say how wrong its model can be.

    Parameters
    ----------
    procedure
        An unfitted scikit-learn classifier, such as a `GridSearchCV` or a pipeline with
        a feature selection, or a function of features and labels that returns a new
        fitted classifier. Whatever it does with the rows that it is given is allowed;
        it must see no others.
    X, y, pool
        Labeled rows, their labels and unlabeled rows, as `plan_search` takes them.
    cv
        Folds, at least 2: the procedure is run once without each. Few large folds give
        a smaller bound for models that have seen fewer rows.
    deploy
        Which model is handed over: ``"one_fold"``, the default, that of the best fold,
        or ``"all_rows"``, which needs a pool. Both are certified at once.
    client
        A `distributed.Client`; None means the current one, else local threads. Each run
        of the procedure is one task.
    **options
        ``delta``, ``max_pool_rows``, ``random_state``, ``fit_params`` (of an
        estimator), ``loss``, ``report`` and ``n_queries`` as `plan_search` takes them;
        ``out``, ``storage_options``, ``on_failure``, ``on_progress``, ``verbose``,
        ``n_jobs`` as `Plan.run` does.

    Returns
    -------
    Outcome
        ``choice``, ``certificates`` and ``models`` by deployment, as the procedure
        returned them; ``model`` is the one that is handed over.

    Raises
    ------
    TypeError
        Where `procedure` is neither an estimator nor a function, or an option is none
        of these.
    ValueError
        Where `deploy` is ``"all_rows"`` without a pool.
    AllFitsFailedError
        Where the procedure raises without every fold, or returns what is not fitted.

    See Also
    --------
    plan_search : The candidates of a grid.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    errors of both models are at most their certificates' bounds, whatever and however
    many candidates the procedure has tried.
    Assumes: what the certificates list; A3 says here that the procedure saw only the
    rows that it was called with.
    Source: the test-set bound for each fold and the union bound over folds;
    :func:`dsel.bounds.nested_one_fold`, :func:`dsel.bounds.nested_all_rows`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> procedure = GridSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=3)
    >>> outcome = certify_selection(procedure, X, y, cv=3, random_state=0)
    >>> outcome.certificates["one_fold"].certified
    True
    >>> type(outcome.model).__name__
    'GridSearchCV'
    """
    is_estimator = callable(getattr(procedure, "fit", None))
    if isinstance(procedure, type) or not (is_estimator or callable(procedure)):
        raise TypeError(
            f"`procedure` must be an unfitted classifier or a function of features and "
            f"labels that returns a fitted one, got {procedure!r}."
        )
    if unknown := sorted(set(options) - {*OPTIONS, *RUNNING}):
        raise TypeError(
            f"certify_selection has no option `{unknown[0]}`: `procedure` selects the "
            f"model, and beside `cv`, `deploy` and `client` there are "
            f"{', '.join((*OPTIONS, *RUNNING))}."
        )
    if options.get("fit_params") and not is_estimator:
        raise TypeError(
            f"`fit_params` {sorted(options['fit_params'])} cannot be passed to a "
            f"function, which gets features and labels only; pass an estimator, or put "
            f"them into columns of `X`."
        )
    candidate = procedure if is_estimator else SelectionProcedure(procedure)
    running = {name: options.pop(name) for name in RUNNING if name in options}
    plan = plan_search(
        None, [candidate], X, y, pool, certificate="nested", deploy=deploy, cv=cv,
        **options,
    )  # fmt: skip
    outcome = plan.run(client, **running)
    if is_estimator:
        return outcome
    return replace(outcome, make_models=partial(_as_returned, outcome))


def _as_returned(outcome: Outcome) -> dict[str, Any]:
    """Return the models as the function returned them."""
    return {name: returned_model(model) for name, model in outcome.models.items()}
