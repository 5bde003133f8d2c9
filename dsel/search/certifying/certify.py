"""Bounds for any model: of a procedure that dsel runs again, or of a fitted model.

A procedure is run once without each fold, and each of its models is tested on the fold
that it has not seen. Therefore the bound does not grow with the number of candidates,
nor with adaptive choices. This is a nested search of a single candidate. A fitted model
is tested on rows that it was not trained on.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from sklearn.model_selection import KFold

from dsel.arrays import Estimator, RandomState
from dsel.checks import explain_unknown, show, show_model
from dsel.data.labeled import one_column
from dsel.errors import Words, rename_in_errors
from dsel.families.estimator_kinds import is_fitted
from dsel.losses.protocols import Loss
from dsel.old_names import warn_of_old_name
from dsel.results.caveats import Caveat, Effect
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.runtime.progress import Progress, check_verbose
from dsel.search.certifying.prefit import certify_prefit
from dsel.search.design.search_options import SearchOptions
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import run_unseen
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options
from dsel.search.running.procedures import as_estimator
from dsel.search.running.run import RunOptions
from dsel.typing import (
    BaselineLike,
    GroupsLike,
    LabelsLike,
    Model,
    Options,
    PathLike,
    PoolLike,
    Procedure,
    ReportLike,
    RowsLike,
)

if TYPE_CHECKING:
    from distributed import Client


PREFIT: Final = "prefit"
WORDS_OF_CERTIFY: Final[Words] = {
    "`param_grid[0]`": "`model`",
    "`estimator`": "`model`",
}
"""Arguments of `certify`, by those of the search that it makes."""
OF_SEARCHES: Final = {
    "scoring": "set scoring in your GridSearchCV, which chooses by it; `loss` says "
    "what is certified",
    "refit": "the model that was counted is deployed, see `deploy`; leave it out",
    "error_score": "a fit that fails counts as all errors; leave it out",
    "param_grid": "pass a GridSearchCV as `model`",
}
"""Advice for parameters of scikit-learn's searches."""


@overload
def certify(
    model: Model,
    X: RowsLike,
    y: LabelsLike,
    pool: None = None,
    *,
    cv: Literal["prefit"],
    random_state: RandomState = None,
    groups: GroupsLike = None,
    loss: Loss | str = "error",
    delta: float = 0.05,
    report: ReportLike = False,
    report_by: str | int | None = None,
    baseline: BaselineLike = None,
) -> PrefitCertificate: ...
@overload
def certify(
    model: Estimator | Procedure,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike = None,
    *,
    random_state: RandomState = None,
    groups: GroupsLike = None,
    loss: Loss | str = "error",
    delta: float = 0.05,
    cv: int = 5,
    report: ReportLike = False,
    report_by: str | int | None = None,
    baseline: BaselineLike = None,
    out: PathLike | None = None,
    n_jobs: int | None = None,
    verbose: bool | int | None = None,
    deploy: str | None = None,
    n_queries: int = 0,
    max_pool_rows: int | None = None,
    fit_params: Options | None = None,
    client: "Client | None" = None,
    storage_options: Options | None = None,
    on_failure: str = "record",
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome: ...
@explain_unknown(OF_SEARCHES)
def certify(
    model: Any,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike = None,
    *,
    random_state: RandomState = None,
    groups: GroupsLike = None,
    loss: Loss | str = "error",
    delta: float = 0.05,
    cv: int | str = 5,
    report: ReportLike = False,
    report_by: str | int | None = None,
    baseline: BaselineLike = None,
    out: PathLike | None = None,
    n_jobs: int | None = None,
    verbose: bool | int | None = None,
    deploy: str | None = None,
    n_queries: int = 0,
    max_pool_rows: int | None = None,
    fit_params: Options | None = None,
    client: "Client | None" = None,
    storage_options: Options | None = None,
    on_failure: str = "record",
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome | PrefitCertificate:
    """Bound the error of the model of any search, pipeline or function.

    >>> import dsel
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> search = GridSearchCV(tree, {"max_depth": [1, 3]})
    >>> outcome = dsel.certify(search, X, y, random_state=0)
    >>> print(outcome.certificate.headline())
    Error at most 9.9% (95% confidence), model trained on 80% of the labels
    >>> outcome.model.predict(X[:2])
    array([0, 0])

    The model is fitted again: once without each fold, on the other folds, and with a
    pool once on all rows. The bound is about one of these new models, which the outcome
    has; ``print(outcome)`` shows more. ``cv="prefit"`` certifies a fitted model, on
    rows that it was not trained on; then nothing is fitted.

    Parameters
    ----------
    model : estimator or callable
        An unfitted scikit-learn classifier or regressor, a search such as
        `GridSearchCV`, or a pipeline: clones of it are fitted. Or a function of
        features and labels that returns a new fitted model. It may use the rows that it
        gets in any way, but no other rows. With ``cv="prefit"`` a fitted model, or a
        path that `dsel.results.open_model` opens.
    X : array-like or data frame of shape (n_labeled, n_columns)
        Labeled rows; with ``cv="prefit"`` rows that the model has not seen.
    y : array-like of shape (n_labeled,)
        Labels of any kind, or for a regressor numbers.
    pool : array-like, data frame, path or Pool of shape (n_unlabeled, n_columns)
        Rows without labels, drawn like `X`: anything that `open_pool` takes. With them
        the model trained on all labels has a bound, too.
    random_state : int, RandomState, Generator or None
        Seed of the folds; ``outcome.seed`` has it. With ``cv="prefit"`` it draws the
        row of each group, and None is 0; without groups nothing is drawn.
    groups : array-like of shape (n_labeled,), str or None
        If rows come in groups (customers, patients): the key of each row, or the name
        of a column of `X`, which is no feature then. Folds consist of whole groups. The
        inner splitter of a model, or a function with a parameter ``groups``, gets those
        of its rows. With ``cv="prefit"`` one row of each group is drawn.
    loss : str or Loss
        What is certified: ``"error"``, or such as ``"recall:fraud"``, ``"balanced"`` or
        ``dsel.losses.error_quantile(0.9)``, see `dsel.losses`. It does not change what
        a `GridSearchCV` ranks by: set ``scoring=`` of the search for that.
    delta : float in (0, 0.5]
        Probability that the bounds fail: 0.05 is 95% confidence.
    cv : int >= 2, or "prefit"
        Number of folds: the model is fitted once without each. Few large folds give a
        smaller bound for models that have seen fewer rows. ``"prefit"`` fits nothing.
    report : bool or list
        True, or a list of classes: recall and precision of each class are certified,
        too; for a regressor several tolerances. It needs no further fit, but all these
        limits share the confidence of `delta`, so the bound is larger.
    report_by : str, int or None
        Name or position of a column: the error is certified for each of its values.
    baseline : fitted model, path, "largest class" or None
        A model to compare with, trained on none of these labels, such as the one in
        production.
    out : path or None
        Directory or URL where results are kept; the same call continues from them. This
        argument, and those below, are refused with ``cv="prefit"``.
    n_jobs : int or None
        Number of fits at a time on this machine; None and -1 mean one for each core.
    verbose : bool, int or None
        Whether progress is shown on standard error; None shows bars, and lines only of
        runs that last longer than 5 seconds.
    deploy : {"one_fold", "all_rows"} or None
        Which model is deployed: that of a fold, the default, or that of all labels,
        which needs a pool. Both are certified at once.
    n_queries : int
        Number of pool rows to label after the run, for a smaller bound of the model of
        all labels; see `Outcome.query_rows`.
    max_pool_rows : int or None
        About how many pool rows to count at most: a random part.
    fit_params : dict or None
        Keyword arguments of every `fit` of an estimator, such as ``sample_weight``.
    client : distributed.Client or None
        None means the current client, else local workers. Each fit is one task.
    storage_options, on_failure, on_progress
        As `Plan.run` takes them.

    Returns
    -------
    Outcome or PrefitCertificate
        ``choice``, ``certificates`` and ``models`` by their names; ``model`` is the one
        that is deployed. With ``cv="prefit"`` the certificate of the model as it is,
        which is its own ``certificate``; its methods ``certified_report()`` and
        ``report_by_value()`` return reports.

    Raises
    ------
    TypeError
        Where `model` is neither an estimator nor a function, or an option has no
        effect with ``cv="prefit"``.
    ValueError
        If `deploy` is ``"all_rows"`` without a pool.
    AllFitsFailedError
        If the fits without each fold all raise, or a function returns a model that is
        not fitted.

    See Also
    --------
    plan_search : Bounds for the candidates of a grid; ``plan_search(None, [model], X,
        y, pool)`` is the plan of this call.
    compare_models : Tests whether one fitted model is better than another.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    errors of both models are at most their certificates' bounds, for any number of
    candidates. With ``cv="prefit"``: the error of the model is at most the bound with
    probability at least ``1 - delta`` over the rows.
    Assumes: what the certificates list; A3 means here that the model saw only the rows
    that it was fitted to, and with ``cv="prefit"`` that it saw none of these rows.
    Source: the test-set bound for each fold and the union bound over folds;
    :func:`dsel.bounds.nested_one_fold`, :func:`dsel.bounds.nested_all_rows`. With
    ``cv="prefit"``: Clopper and Pearson, "The use of confidence or fiducial limits
    illustrated in the case of the binomial", Biometrika 26 (1934).

    Examples
    --------
    The plan of the first call, which says what will be fitted and what bound to expect;
    its ``run`` returns the same outcome:

    >>> plan = dsel.plan_search(None, [search], X, y, random_state=0)
    >>> print(str(plan).splitlines()[0])
    Plan of 1 candidate
    >>> plan.run().choice == outcome.choice
    True

    A model that is fitted already, on rows that it has not seen:

    >>> fitted = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> made = certify(fitted, X[1::2], y[1::2], cv="prefit")
    >>> print(made.headline())  # doctest: +NORMALIZE_WHITESPACE
    Error at most 12.1% (95% confidence, if the model has not seen these 284
    rows), model as given
    """
    search_options = SearchOptions(
        deploy=deploy,
        delta=delta,
        loss=loss,
        report=report,
        report_by=report_by,
        groups=groups,
        baseline=baseline,
        n_queries=n_queries,
        max_pool_rows=max_pool_rows,
        random_state=random_state,
        fit_params=fit_params,
    )
    if isinstance(cv, str) and cv == PREFIT:  # arrays compare by element
        check_unused_options(
            client=client,
            deploy=deploy,
            fit_params=fit_params,
            max_pool_rows=max_pool_rows,
            n_jobs=n_jobs,
            n_queries=n_queries or None,
            on_failure=None if on_failure == "record" else on_failure,
            on_progress=on_progress,
            out=out,
            pool=pool,
            storage_options=storage_options,
            verbose=verbose,
        )
        return certify_prefit(model, X, y, search_options)
    search_options = replace(search_options, certificate="nested", cv=check_folds(cv))
    is_estimator = callable(getattr(model, "fit", None))
    check_model(model, fit_params, is_estimator=is_estimator)
    notes = notes_on_fitted_model(model) if is_estimator else []
    plan = rename_in_errors(WORDS_OF_CERTIFY)(plan_with_options)(
        None,
        [model if is_estimator else as_estimator(model, y, loss)],
        X,
        one_column(y),
        pool,
        search_options,
        CallerSettings(caveats=tuple(notes)),
    )
    run_options = RunOptions(
        client=client,
        out=out,
        storage_options=storage_options,
        on_failure=on_failure,
        on_progress=on_progress,
        verbose=check_verbose(verbose),
        n_jobs=n_jobs,
    )
    return run_unseen(plan, run_options)


def check_unused_options(**options: object) -> None:
    """Raise TypeError if an option is not None; none has an effect without fits."""
    for name, option in options.items():
        if option is not None:
            raise TypeError(
                f"`{name}` has no effect with cv='prefit', which fits nothing and "
                f"reads the rows of `X` alone; leave it out, or pass cv=5 to fit the "
                f"model anew without each fold."
            )


def notes_on_fitted_model(model: Estimator) -> list[Caveat]:
    """Return a note if the model was fitted already: no bound is about that fit."""
    if not is_fitted(model):
        return []
    text = (
        f"{type(model).__name__} was fitted already, and the bounds are not about "
        f"that model: it was fitted anew without each fold; cv='prefit' certifies "
        f"the model as it is, on rows that it has not seen"
    )
    return [Caveat(Effect.INFO, text)]


def check_folds(cv: int | str) -> int:
    """Return `cv`; raise if it is no number of plain random folds."""
    if isinstance(cv, str):
        raise ValueError(
            f"`cv` must be a number of folds or 'prefit', got {show(cv)}; 'prefit' "
            f"is for a model that is fitted already and rows that it has not seen."
        )
    is_random = isinstance(cv, Real | KFold) and getattr(cv, "shuffle", True)
    if not is_random:
        raise TypeError(
            f"`cv` must be a number of folds or 'prefit', got {show(cv)}; a bound "
            f"needs plain random folds, which are drawn here: write cv=5, and pass "
            f"`groups` where rows come in groups."
        )
    return cv


def check_model(
    model: object, fit_params: Options | None, *, is_estimator: bool
) -> None:
    """Raise TypeError unless it is an estimator or a function of two arguments."""
    if isinstance(model, type) or not (is_estimator or callable(model)):
        what = f"{show_model(model)}."
        # The description of an array has a shape, too.
        is_class = isinstance(model, type)
        if not is_class and (
            hasattr(model, "shape") or isinstance(model, list | tuple)
        ):
            what = f"rows ({type(model).__name__}): did you swap the arguments?"
        raise TypeError(
            f"`model` must be a classifier or a regressor with `fit`, such as `SVC()`, "
            f"or a function of features and labels that returns a fitted one, got "
            f"{what}"
        )
    if is_estimator or not callable(model):
        return
    if fit_params:
        raise TypeError(
            f"`fit_params` {sorted(fit_params)} cannot be passed to a function, which "
            f"gets features and labels only; pass an estimator, or put them into "
            f"columns of `X`."
        )
    try:
        signature = inspect.signature(model)
    except ValueError:  # some builtins have no signature
        return
    # The arguments are those with which `FunctionEstimator.fit` calls it.
    groups = {"groups": None} if "groups" in signature.parameters else {}
    try:
        signature.bind("X", "y", **groups)
    except TypeError as error:
        name = getattr(model, "__name__", type(model).__name__)
        raise TypeError(
            f"`model` must be a function of features and labels, f(X, y), that returns "
            f"a fitted model, got {name}{signature}: {error}."
        ) from error


def certify_selection(
    procedure: Estimator | Procedure,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike = None,
    **options: Any,
) -> Outcome:
    """Certify a model by its folds: the old name of `certify`.

    It warns, and will be removed in 0.4.

    Parameters
    ----------
    procedure
        The `model` of `certify`.
    X, y, pool
        As for `certify`.
    **options
        As for `certify`, except ``cv="prefit"``.

    Returns
    -------
    Outcome
        See `certify`.

    See Also
    --------
    certify : The same function, with its documentation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore", category=FutureWarning):
    ...     certify_selection(GaussianNB(), X, y, random_state=0).certificate.certified
    True
    """
    warn_of_old_name("certify_selection", "certify")
    outcome: Outcome = certify(procedure, X, y, pool, **options)
    return outcome
