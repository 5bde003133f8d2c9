"""The search as a scikit-learn meta-estimator."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import (
    ArrayLike,
    Estimator,
    Floats,
    RandomState,
    replaces_earlier_fit,
    validate_data,
)
from dsel.candidates import Grid, takes_nan, with_learner_tags
from dsel.checks import explain_unknown
from dsel.data.groups import take_groups, without_column
from dsel.data.lazy import LazyScore, takes_dask_arrays
from dsel.families.estimator_kinds import FittedAttributes, last_step
from dsel.families.fit_arguments import RoutedFit, check_fit_names
from dsel.families.predictions import flat_predictions
from dsel.losses.protocols import Loss
from dsel.old_names import names_of
from dsel.results.candidate_tables import cv_results
from dsel.results.choice import NAMES_IN_OUTCOME
from dsel.results.cube import is_list
from dsel.runtime.progress import check_verbose
from dsel.search.design.search_options import SearchOptions
from dsel.search.outcomes.intervals import predict_interval
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import run_unseen
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options
from dsel.search.running.run import RunOptions
from dsel.typing import (
    AnyArray,
    BaselineLike,
    GroupsLike,
    LabelsLike,
    Model,
    Options,
    PathLike,
    PoolLike,
    PriorLike,
    ReportLike,
    RowsLike,
    SplitsLike,
)

SCORING = (
    "what ranks is certified, too: write loss=dsel.losses.recall(label), "
    ".precision(label), .balanced() or .cost(...), and put decision thresholds into "
    "the grid (FixedThresholdClassifier)"
)
DRAWN = "pass sklearn.model_selection.ParameterSampler(..., n_iter=20) as `param_grid`"
OF_OTHER_SEARCHES = {
    "scoring": SCORING,
    "refit": "the model that was counted is deployed, see `deploy`; leave it out",
    "error_score": "a fit that fails counts as all errors; leave it out",
    "duplicates": "pool rows that equal labeled ones are counted, and cost the bound a "
    "little; leave it out",
    "n_iter": DRAWN,
    "param_distributions": DRAWN,
}
"""Advice for parameters of scikit-learn's searches, and of dsel 0.1."""


def _best_has(method: str) -> Any:
    def check(self: Any) -> bool:
        model = getattr(self, "best_estimator_", self.estimator)
        return model is None or callable(getattr(model, method))

    return check


P = ParamSpec("P")
R = TypeVar("R")


def forward_to_outcome(
    method: Callable[Concatenate[Outcome, P], R],
) -> Callable[Concatenate[Any, P], R]:
    """Return a method of a fitted search that calls this one of its outcome."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_is_fitted(self, "choice_")
        return method(self.outcome_, *args, **kwargs)

    return call


@explain_unknown(OF_OTHER_SEARCHES)
@dataclass(eq=False, repr=False)
class SemiSupervisedSearchCV(
    FittedAttributes, LazyScore, RoutedFit, MetaEstimatorMixin, BaseEstimator
):
    """Choose the parameters of a classifier or regressor, and bound its error.

    Like scikit-learn's searches it is a classifier if its estimator is one, else a
    regressor.

    Parameters
    ----------
    estimator : estimator or None
        Unfitted scikit-learn classifier, regressor or pipeline; None if `param_grid`
        lists estimators, all of one kind.
    param_grid : dict, list of dicts or iterable
        Dict of parameter to values, list of such dicts, or list of estimators; or
        candidates one by one, such as a ``ParameterSampler``, see `plan_search`.
    certificate : str or None
        The method of the bound; `plan_search` lists all. None is ``"nested"``, or
        ``"cv_error"``, an estimate, where `cv` gives estimates only. It is an option
        that `fit` leaves as it is: after that the bound is in `certificate_`.
    deploy : {"one_fold", "all_rows"} or None
        The model of a nested search that is `best_estimator_`: ``"one_fold"``, the
        default, or ``"all_rows"``, which needs a pool. Both are in `models_`.
    cv : int, splitter, iterable or None
        Number of plain random folds, 5 by default, or ``KFold(n, shuffle=True)``, whose
        seed must be None, since `random_state` draws the folds. Any other splitter, or
        a list of (train rows, test rows), gives estimates only.
    delta : float in (0, 0.5]
        Probability that the certificate fails, in (0, 0.5].
    prune : bool, "halving", "exact" or None
        True, as None, takes ``"halving"`` for nested searches and ``"exact"`` for all
        others; see `plan_search`. False counts every candidate in full.
    max_pool_rows : int or None
        About how many pool rows to count at most: a random part, fixed in advance.
    loss : str or Loss
        ``"error"``, or another loss that ranks candidates and is certified, such as
        ``dsel.losses.recall("fraud")``, or its name as in the shell:
        ``"recall:fraud"``, ``"balanced"``, ``"cost:fraud>ok=50,ok>fraud=1"``. For
        regressors ``"error"`` means ``dsel.losses.error_quantile(0.9)``, the distance
        to the target that 90% of the predictions keep; see `plan_search`.
    report : bool or list
        True, or a list of classes: certifies recall and precision of each class, too.
        For regressors the distances that 50, 80, 90 and 95% of the predictions keep, or
        a list of fractions. See `certified_report`.
    report_by : str, int or None
        A column of `X`, such as ``"site"``: its name, or its position if columns have
        no names. The error is certified for each of its values, at most 100, all at
        once; see `report_by_value`.
    prior : array-like, callable or None
        For ``"cv_bound"`` and ``"best_fold"``: weights by which delta is divided among
        the candidates, an array or a function of their parameters; see `plan_search`.
    n_queries : int
        Number of pool rows to label after the run, drawn where both models of a nested
        search differ, for a smaller bound of the model trained on all rows; see
        `query_rows` and `certify_with_labels`; for ``loss="error"`` without `report`,
        `report_by` and groups. 0 queries none.
    random_state : int, RandomState, Generator or None
        None, an integer, a RandomState or a Generator.
    n_jobs : int or None
        Without a Dask client: number of threads for kernel SVMs, or of processes for
        other learners, which start after one second. None and -1 mean one for each core
        (in scikit-learn None means 1). No effect with a client, whose workers do the
        work.
    verbose : int or None
        0 shows nothing; 1 or more shows progress on standard error: bars in terminals
        and notebooks, lines elsewhere. None shows bars, and lines only of runs that
        last longer than 5 seconds.

    Attributes
    ----------
    choice_ : Choice
        The chosen candidate with its error bound: ``print(search.choice_)``.
    certificates_ : dict
        Certificates by model, ``one_fold`` and (with a pool) ``all_rows``: ``bound``,
        ``delta``, ``certified``, ``reasons``. Those of a nested search hold at once.
    outcome_ : Outcome
        The whole outcome, as `Plan.run` returns it.
    models_ : dict
        The certified models, by the same names.
    certificate_ : Certificate
        The certificate of `best_estimator_`.
    best_estimator_ : estimator
        The model of `deploy`.
    best_params_ : dict
        Parameters of `best_estimator_`.
    best_index_ : int
        Number of its candidate.
    best_score_ : float
        Mean score of that candidate on held-out folds, ``mean_test_score`` of
        `cv_results_`, as `GridSearchCV` has it: an estimate.
    results_ : xarray.Dataset
        The cube over the grid, ``fold`` and ``criterion``.
    pair_results_ : xarray.Dataset
        Counts of inner searches, by pair of folds; None if the search is not nested.
    cv_results_ : dict
        The table that scikit-learn's searches have, made from `results_`, for
        ``pd.DataFrame(search.cv_results_)``. Scores and ranks are of the `loss` that
        ranks, larger is better: accuracy, recall, precision or balanced accuracy, and
        minus the cost; the column ``mean_loss`` has the loss itself, ``cv_error`` the
        error. Candidates that were dropped early rank after the others, since their
        scores are from fewer fits. For regressors scores are R^2, and ranks those of
        the column ``mean_squared_error``. Times are those of the fits that were made,
        NaN if none was timed: nested searches time no predictions.
    plan_ : Plan
        The plan that was run. It holds the labeled rows and refers to the pool, so that
        a pickle or copy of the search does not contain it, and its `outcome_` no rows.
        Models that keep rows, such as support vectors, are pickled with them.
    classes_ : ndarray
        Labels, for classifiers.
    n_features_in_ : int
        Columns of the labeled rows.

    See Also
    --------
    plan_search : The same in steps.
    certify : A bound for any other way to select.

    Examples
    --------
    A table with labels, as for a `GridSearchCV`:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> X, pool, y, _ = train_test_split(X, y, train_size=500, random_state=0)
    >>> search = SemiSupervisedSearchCV(
    ...     SVC(), {"C": [1, 10], "gamma": [1e-4, 1e-3]}, random_state=0)
    >>> search.fit(X, y).best_params_
    {'C': 10, 'gamma': 0.001}
    >>> print(search.certificate_.headline())
    Error at most 4.3% (95% confidence), model trained on 80% of the labels

    With rows without labels, the model of all labels has a bound, too:

    >>> search = search.fit(X, y, pool)
    >>> round(search.certificates_["all_rows"].bound, 3)
    0.057
    """

    estimator: Estimator | None
    param_grid: Grid
    _: KW_ONLY
    certificate: str | None = None
    deploy: str | None = None
    cv: SplitsLike = None
    delta: float = 0.05
    prune: str | bool | None = True
    max_pool_rows: int | None = None
    loss: Loss | str = "error"
    report: ReportLike = False
    report_by: str | int | None = None
    prior: PriorLike = None
    n_queries: int = 0
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int | None = 0

    @replaces_earlier_fit
    def fit(
        self,
        X: RowsLike,
        y: LabelsLike,
        pool: PoolLike = None,
        *,
        groups: GroupsLike = None,
        baseline: BaselineLike = None,
        out: PathLike | None = None,
        storage_options: Options | None = None,
        **fit_params: Any,
    ) -> Self:
        """Search, on the current Dask client if there is one, else on this machine.

        Parameters
        ----------
        X : array-like or data frame of shape (n_labeled, n_columns)
            Labeled rows.
        y : array-like of shape (n_labeled,)
            Labels, or for a regressor numbers.
        pool : array-like, data frame, path or Pool of shape (n_unlabeled, n_columns)
            Unlabeled rows: anything that `dsel.open_pool` takes.
        groups : array-like of shape (n_labeled,), str or None
            If rows come in groups (customers, patients, documents): the key of each
            labeled row, or the name of a column of a data frame `X`, which is no
            feature then. Folds consist of whole groups, and the bound is about a random
            row of a new group; see `plan_search`.
        baseline : fitted model, path, "largest class" or None
            A fitted classifier that was trained on none of these labels, such as the
            one in production, a place that `dsel.results.open_model` opens, or
            ``"largest class"``: ``choice_.baseline`` shows whether the deployed model
            is proved to err less; see `plan_search`.
        out : path or None
            Directory or URL where counts are stored; the same call continues from them.
        storage_options : dict or None
            Options of fsspec if `out` is a URL; never stored.
        **fit_params
            For the estimator's `fit`, by scikit-learn's metadata routing where it is
            enabled. ``sample_weight`` reaches the fits; the counts stay unweighted.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If an argument is of a wrong type or has a wrong value, before anything is
            fitted; the message names the argument.
        AllFitsFailedError
            If no candidate could be fitted.
        StoreMismatchError
            If `out` belongs to another plan.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> search = SemiSupervisedSearchCV(SVC(), {"C": [1, 10]}, random_state=0)
        >>> search.fit(X, y).best_params_
        {'C': 10}
        """
        # The ten steps from here to a bound are listed in `dsel.search.__init__`.
        for name in set(fit_params) & set(OF_OTHER_SEARCHES):
            raise TypeError(
                f"`fit` has no argument `{name}`: {OF_OTHER_SEARCHES[name]}."
            )
        check_fit_names(fit_params, self.fit, self.estimator)
        X, group_keys, self._groups_column = take_groups(X, groups)
        options = SearchOptions(
            certificate=self.certificate,
            deploy=self.deploy,
            cv=self.cv,
            delta=self.delta,
            prune=self.prune,
            max_pool_rows=self.max_pool_rows,
            random_state=self.random_state,
            loss=self.loss,
            report=self.report,
            report_by=self.report_by,
            prior=self.prior,
            n_queries=self.n_queries,
            fit_params=self.route_fit_params(fit_params),
            groups=group_keys,
            baseline=baseline,
        )
        plan = plan_with_options(
            self.estimator, self.param_grid, X, y, pool, options, CallerSettings()
        )
        # The plan has checked the rows; `validate_data` sets the number and names of
        # features.
        validate_data(self, X, y, skip_check_array=True)
        run_options = RunOptions(
            out=out,
            storage_options=storage_options,
            n_jobs=self.n_jobs,
            verbose=check_verbose(self.verbose),
        )
        outcome = run_unseen(plan, run_options)
        self.plan_ = plan
        self.results_, self.pair_results_ = outcome.results, outcome.pair_results
        self.choice_ = outcome.choice
        self.certificates_ = outcome.certificates
        self.certificate_ = self.choice_.certificate
        self.outcome_, self.models_ = outcome, outcome.models
        self.best_estimator_ = self.models_[self.choice_.deploy]
        self.best_index_ = self.choice_.candidate
        self.best_params_ = plan.axes.candidates[self.best_index_]
        self.cv_results_ = cv_results(
            self.results_,
            plan.axes,
            self.pair_results_,
            loss=plan.search.context.losses.main,
            variances=plan.fold_variances,
        )
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        if not plan.search.is_regression:
            self.classes_ = plan.search.classes
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the search, or those of its estimator as `estimator__C`.

        Parameters
        ----------
        **params
            Names and values, such as ``delta=0.01`` or ``estimator__C=10``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a name is no parameter of the search or of its estimator.

        Examples
        --------
        >>> from sklearn.svm import SVC
        >>> search = SemiSupervisedSearchCV(SVC(), {"gamma": [0.1, 1]})
        >>> search.set_params(delta=0.01, estimator__C=10).estimator
        SVC(C=10)
        """
        for name in set(params) & set(OF_OTHER_SEARCHES):
            raise ValueError(
                f"SemiSupervisedSearchCV has no parameter {name!r}: "
                f"{OF_OTHER_SEARCHES[name]}."
            )
        super().set_params(**params)
        return self

    certified_report = forward_to_outcome(Outcome.certified_report)
    report_by_value = forward_to_outcome(Outcome.report_by_value)
    query_rows = forward_to_outcome(Outcome.query_rows)
    certify_with_labels = forward_to_outcome(Outcome.certify_with_labels)
    predict_table = forward_to_outcome(Outcome.predict_table)
    monitor = forward_to_outcome(Outcome.monitor)
    save = forward_to_outcome(Outcome.save)

    @property
    def plot(self) -> Any:
        """Figures of the search, as `Outcome.plot` has them."""
        check_is_fitted(self, "choice_")
        return self.outcome_.plot

    def _why_not(self, name: str) -> str:
        is_fitted = "choice_" in vars(self)
        # Fields without a default are no attributes of the class.
        names_of_outcome = {*names_of(Outcome), *Outcome.__dataclass_fields__}
        is_of_outcome = name in names_of_outcome and not name.startswith("_")
        is_of_fit = (
            name in NAMES_IN_OUTCOME or name.removesuffix("_") in names_of_outcome
        )
        if f"{name}_" in vars(self):
            return f"; it is `{name}_` here."
        if is_of_outcome and not name.endswith("_"):
            after = "" if is_fitted else ", after `fit`"
            return f"; it is `outcome_.{name}` here{after}."
        return "; call `fit(X, y)` before." if is_of_fit and not is_fitted else ""

    def model(self, candidate: int | None = None, fold: int | None = None) -> Any:
        """Fit any candidate again, as `Plan.model` does.

        Parameters
        ----------
        candidate
            Number of the candidate; None is the chosen one, whose certified models are
            in `models_`.
        fold
            Fold to leave out; None fits to all rows.

        Returns
        -------
        estimator
            The fitted model, which has no certificate.

        Raises
        ------
        RuntimeError
            If the fit fails, or if the search comes from a pickle, which has no labeled
            rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> search = SemiSupervisedSearchCV(SVC(), {"C": [1, 10]}, random_state=0)
        >>> search.fit(X, y).model(candidate=0).C
        1
        """
        check_is_fitted(self, "best_estimator_")
        if not hasattr(self, "plan_"):
            raise RuntimeError(
                "a search that was pickled or copied has no labeled rows any more; "
                "`dsel.plan_search` with the same arguments and an integer "
                "`random_state` gives the same models by its `model`."
            )
        number = self.best_index_ if candidate is None else candidate
        return self.plan_.model(number, fold)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a pickle: everything except the plan and its rows."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "plan_"}

    @takes_dask_arrays
    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict labels, or numbers; lazily for a Dask array or frame.

        `predict_table` reads a file, and writes one.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).

        Returns
        -------
        ndarray or dask.array.Array
            Predictions, shape (n_rows,).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> search = SemiSupervisedSearchCV(SVC(), {"C": [1, 10]}, random_state=0)
        >>> search.fit(X, y).predict(X[:3]).tolist()
        [0, 0, 0]
        """
        return flat_predictions(self._call("predict", X))

    def score(
        self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of the chosen model, or R^2 of a regressor.

        Parameters
        ----------
        X, y
            Rows and their labels, or numbers.
        sample_weight
            Weight of each row, shape (n_rows,); None for equal ones.

        Returns
        -------
        float
            Accuracy in [0, 1], or R^2, at most 1: an estimate, with no bound.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> search = SemiSupervisedSearchCV(SVC(), {"C": [1, 10]}, random_state=0)
        >>> round(search.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
        0.97
        """
        return super().score(X, y, sample_weight)

    @takes_dask_arrays
    def predict_interval(self, X: RowsLike) -> Floats:
        """Return an interval for each target, as `Outcome.predict_interval` does.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).

        Returns
        -------
        ndarray
            Lower and upper end for each row, shape (n_rows, 2), in units of the target.

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        ValueError
            If no tolerance is certified, as for classifiers.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> search = SemiSupervisedSearchCV(
        ...     Ridge(), {"alpha": [0.1, 1]}, random_state=0)
        >>> low, high = search.fit(X, y).predict_interval(X[:2]).T
        >>> bool((low < high).all())
        True
        """
        check_is_fitted(self, "choice_")
        function = partial(predict_interval, self.choice_, self.models_)
        return self._call_with_rows(function, X)

    @available_if(_best_has("predict_proba"))
    @takes_dask_arrays
    def predict_proba(self, X: RowsLike) -> Floats:
        """Predict probabilities of `classes_`; lazily for a Dask array."""
        probabilities = self._call("predict_proba", X)
        return fill_class_columns(
            probabilities, self.best_estimator_, self.classes_, 0.0
        )

    @available_if(_best_has("predict_log_proba"))
    @takes_dask_arrays
    def predict_log_proba(self, X: RowsLike) -> Floats:
        """Predict logarithms of the probabilities of `classes_`, -inf for 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_best_has("decision_function"))
    @takes_dask_arrays
    def decision_function(self, X: RowsLike) -> Floats:
        """Return scores of the chosen model; lazily for a Dask array.

        A class without training rows has the smallest possible score. Scores of pairs
        of classes, by ``decision_function_shape="ovo"``, are those of the model alone.
        """
        scores = np.asarray(self._call("decision_function", X))
        model = self.best_estimator_
        # Three known classes have as many pairs: the shape does not tell them apart.
        shape = getattr(last_step(model), "decision_function_shape", "ovr")
        if shape == "ovo" and scores.ndim == 2:
            return scores
        least = np.finfo(np.float64).min
        return fill_class_columns(scores, model, self.classes_, least)

    def _call(self, method: str, X: RowsLike) -> Any:
        """Return what a method of the deployed model returns."""
        check_is_fitted(self, "best_estimator_")
        return self._call_with_rows(getattr(self.best_estimator_, method), X)

    def _call_with_rows(self, function: Callable[[Any], R], X: RowsLike) -> R:
        if (column := getattr(self, "_groups_column", None)) is not None:
            X = without_column(X, column)  # rows to be predicted may have it
        return self.outcome_.input_format.call(function, X, self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if hasattr(self, "choice_") and "text/html" in bundle:
            bundle["text/html"] += self.outcome_._repr_html_()
        return bundle

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def __sklearn_tags__(self) -> Any:
        learner, grid = self.estimator, self.param_grid
        if learner is None and is_list(grid) and len(grid):
            learner = grid[0]
        tags = with_learner_tags(super().__sklearn_tags__(), learner)
        tags.estimator_type = tags.estimator_type or "classifier"
        tags.target_tags.required = True
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.allow_nan = takes_nan([self.estimator])
        return tags


def fill_class_columns(
    scores: ArrayLike, model: Model, classes: AnyArray, lacking: float
) -> Floats:
    """Return one column for each class, also for those that the model does not know."""
    columns, known = np.asarray(scores), np.asarray(getattr(model, "classes_", classes))
    if len(known) == len(classes):
        return columns
    if columns.ndim == 1 and len(known) == 2:
        columns = np.column_stack((-columns, columns))
    if columns.ndim != 2 or columns.shape[1] != len(known):
        return columns  # scores of pairs of classes
    # Columns of unknown classes are filled as in scikit-learn's `cross_val_predict`.
    full = np.full((len(columns), len(classes)), lacking)
    full[:, np.searchsorted(classes, known)] = columns
    return full
