"""The search as a scikit-learn meta-estimator."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dsel.candidates import takes_nan
from dsel.checks import check_integer
from dsel.data.frames import Frame, frame_of, has_named_columns
from dsel.data.lazy import lazily
from dsel.results.choice import cv_results
from dsel.searches.certify import search_and_certify
from dsel.searches.engine.stages import PoolReading
from dsel.searches.execute import execute
from dsel.searches.plan import OPTIONS, plan_search


def _best_has(method: str) -> Any:
    def check(self: Any) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)
        elif self.estimator is not None:
            getattr(self.estimator, method)
        return True

    return check


def _shown(verbose: Any) -> bool | None:
    if verbose is None or isinstance(verbose, bool):
        return verbose
    return check_integer(verbose, "verbose", at_least=0) > 0


class SemiSupervisedSearchCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Choose a classifier's parameters, and bound its error with unlabeled rows.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `param_grid` lists
        some.
    param_grid
        Dict of parameter to values, list of such dicts, or list of estimators; or
        candidates one by one, such as a ``ParameterSampler``, see `plan_search`.
    criterion
        What ranks the candidates; None means what `certificate` needs.
    certificate
        Criterion of the reported bound, which decides which model is handed over, see
        `plan_search`; ``"auto"`` takes the one whose bound is expected to be smallest.
        None means `criterion`, or ``"auto"`` where `criterion` is None too and `fit`
        gets a pool.
    cv
        Number of plain random folds. A scikit-learn splitter, or a list of (train
        rows, test rows), gives estimates only, never a guarantee. None means 3 for a
        nested search, else 10; with ``"auto"`` it is chosen too.
    delta
        Probability with which the reported bound may fail, in (0, 1).
    label_share
        Part of delta for the term of the labeled rows, in (0, 1); see `plan_search`.
    duplicates
        What to do about pool rows that equal labeled rows: ``"refuse"`` to search,
        ``"exclude"`` or ``"keep"`` them.
    prune
        Whether to drop candidates as soon as they cannot win.
    certify_rows
        Part of the labeled rows, such as 0.2, that takes no part in the selection and
        certifies the chosen model: the bound does not grow with the number of
        candidates, and the selection has fewer rows. Needs a pool; the criterion is
        ``cv_error``, or another one that needs no pool.
    random_state
        None, an integer or a numpy RandomState.
    n_jobs
        Threads of this process, where there is no Dask client: None and -1 mean one for
        each core (in scikit-learn None means 1). No effect with a client, whose workers
        do the work.
    reserve
        Probability set aside besides `delta` for candidates or certificates that are
        added after results were seen.
    reading
        How much of the pool is read, a `PoolReading`; None for all of it.
    prior
        Part of delta of each candidate; None for equal parts. See `plan_search`.
    on_failure
        What to do about candidates that cannot be fitted: ``"record"`` them, or
        ``"raise"`` RuntimeError at the first.
    train_errors
        Whether errors on training rows are counted even if no criterion reads them.
    verbose
        0 shows nothing; 1 or more shows progress, in terminals on standard error; None
        shows it in terminals and notebooks only.

    Attributes
    ----------
    results_ : xarray.Dataset
        The cube over the grid, ``fold`` and ``criterion``.
    choice_ : Choice
        The chosen candidate.
    certificate_ : Certificate
        ``bound``, ``delta``, ``criterion``, ``certified``, ``reasons``.
    certificate_results_ : xarray.Dataset
        Counts of the certifying rows; only with `certify_rows`.
    cv_results_ : dict
        The table that scikit-learn's searches have, made from `results_`, for
        ``pd.DataFrame(search.cv_results_)``: ``params``, ``param_C``,
        ``split0_test_score``, ``mean_test_score`` (accuracy; larger is better),
        ``rank_test_score``, ``mean_fit_time``; beside them ``status`` and the number of
        every criterion by its name, such as ``cv_bound``. Candidates that were dropped
        have NaN and the last rank; ``prune=False`` counts all.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_score_ : float
        Mean accuracy of the chosen candidate on the held-out folds: an estimate.
    best_index_ : int
        Its number. The criterion chose it, so its ``rank_test_score`` need not be 1.
    best_estimator_ : estimator
        The model that `certificate_` is about. It was trained on all labeled rows, but
        with ``holdout_bound`` without fold 0, and with ``best_fold_model`` or
        ``nested_fold_model`` without the fold ``choice_.fold``; with ``nested_vote`` it
        is a vote of the folds' models.
    plan_ : Plan
        The plan that was run. It holds the labeled rows and refers to the pool, so a
        pickle of the search does not contain it.
    classes_ : ndarray
        Labels.
    n_features_in_ : int
        Columns of the labeled rows.
    frame_schema_ : FrameSchema or None
        Types in which the models get data frames; None where they get arrays.

    See Also
    --------
    plan_search : The same in steps.
    certify_selection : A bound for any other way to select.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SemiSupervisedSearchCV(
    ...     LogisticRegression(max_iter=1000), {"C": [0.1, 1.0]}, cv=5, random_state=0)
    >>> search.fit(X, y).best_params_
    {'C': 1.0}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        criterion: str | None = None,
        certificate: str | None = None,
        cv: Any = None,
        delta: float = 0.05,
        label_share: float | None = None,
        duplicates: str = "refuse",
        prune: bool = True,
        certify_rows: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        reserve: float = 0.0,
        reading: PoolReading | None = None,
        prior: Any = None,
        on_failure: str = "record",
        train_errors: bool = False,
        verbose: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.criterion = criterion
        self.certificate = certificate
        self.cv = cv
        self.delta = delta
        self.label_share = label_share
        self.duplicates = duplicates
        self.prune = prune
        self.certify_rows = certify_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.reserve = reserve
        self.train_errors = train_errors
        self.reading = reading
        self.prior = prior
        self.on_failure = on_failure
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        pool: Any = None,
        *,
        pool_labels: Any = None,
        groups: Any = None,
        out: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        **fit_params: Any,
    ) -> Self:
        """Search, on the current Dask client if there is one, else on local threads.

        Parameters
        ----------
        X
            Labeled rows, shape (n_labeled, n_columns).
        y
            Labels, shape (n_labeled,).
        pool
            Unlabeled rows: anything that `dsel.open_pool` takes.
        pool_labels
            Labels of pool rows, for evaluation by ``true_error`` and
            ``half_true_error``; masked or missing where they are not known.
        groups
            Group of each labeled row, for a splitter such as ``GroupKFold``; then
            nothing is certified.
        out
            Directory or URL where counts are stored; the same call continues from them.
        storage_options
            Passed to fsspec where `out` is a URL; never stored.
        **fit_params
            For the estimator's `fit`, by scikit-learn's metadata routing where it is
            enabled. ``sample_weight`` reaches the fits; the counts stay unweighted.

        Returns
        -------
        self
        """
        validate_data(self, X, y, skip_check_array=True)
        params = self._route(fit_params)
        running = {
            "out": out,
            "storage_options": storage_options,
            "n_jobs": self.n_jobs,
            "on_failure": self.on_failure,
            "verbose": _shown(self.verbose),
        }
        own = self.get_params(deep=False)
        options = {name: own[name] for name in OPTIONS if name in own}
        options |= {"pool_labels": pool_labels, "groups": groups}
        options["fit_params"] = params
        rows = self.estimator, self.param_grid, X, y, pool
        self.__dict__.pop("certificate_results_", None)  # of an earlier `fit`
        if self.certify_rows is None:
            plan = plan_search(*rows, **options)
            outcome = execute(plan, with_model=True, **running)
        else:
            plan, outcome, self.certificate_results_ = search_and_certify(
                *rows, certify_rows=self.certify_rows, running=running, **options
            )
        self.plan_ = plan
        self.results_, self.choice_ = outcome.results, outcome.choice
        self.best_estimator_ = outcome.model
        self.certificate_ = self.choice_.certificate
        self.best_index_ = self.choice_.candidate
        self.best_params_ = plan.axes.params(self.best_index_)
        self.cv_results_ = cv_results(self.results_, plan.axes)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.classes_ = self.best_estimator_.classes_
        self.n_features_in_ = plan.work.X.shape[1]
        self.frame_schema_ = getattr(plan.work.X, "schema", None)
        return self

    def model(self, candidate: int | None = None, fold: int | None = None) -> Any:
        """Fit any model of the search again: of any candidate, on any fold.

        Parameters
        ----------
        candidate
            Its number, the place in the cube's C order; None for the chosen one.
        fold
            Number of the fold whose rows were held out; None for the model of all
            labeled rows that were searched.

        Returns
        -------
        estimator
            The same model as the search's own; see `Plan.model`.

        Raises
        ------
        ValueError
            Where there is no such candidate, fold or full model.
        RuntimeError
            Where the fit fails, as it did in the search, or the search comes from a
            pickle and has no labeled rows any more.
        """
        check_is_fitted(self, "best_estimator_")
        if not hasattr(self, "plan_"):
            raise RuntimeError(
                "a search that was pickled has no labeled rows any more; "
                "`dsel.plan_search` with the same arguments and an integer "
                "`random_state` gives the same models by its `model`."
            )
        number = self.best_index_ if candidate is None else candidate
        return self.plan_.model(number, fold)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: everything but the plan and its rows."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "plan_"}

    @lazily
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels with the chosen model; of a Dask array lazily.

        `dsel.searches.predict_pool` writes those of a whole pool.
        """
        rows = self._rows(X)
        return np.asarray(self.best_estimator_.predict(rows))

    @available_if(_best_has("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities with the chosen model; of a Dask array lazily."""
        rows = self._rows(X)
        return np.asarray(self.best_estimator_.predict_proba(rows))

    @available_if(_best_has("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores of the chosen model; of a Dask array lazily."""
        rows = self._rows(X)
        return np.asarray(self.best_estimator_.decision_function(rows))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how `fit` passes metadata on to the estimator, or to all of a list."""
        router = MetadataRouter(owner=type(self).__name__)
        router.add_self_request(self)
        listed = [self.estimator] if self.estimator is not None else self.param_grid
        for number, estimator in enumerate(listed):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            name = f"param_grid[{number}]" if self.estimator is None else "estimator"
            router.add(method_mapping=mapping, **{name: estimator})
        return router

    def _route(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not (fit_params and get_config()["enable_metadata_routing"]):
            return fit_params
        routed = process_routing(self, "fit", **fit_params)
        first, *others = (each.fit for each in routed.values())
        for name in fit_params:
            if any((name in first) != (name in other) for other in others):
                raise ValueError(
                    f"`{name}` must be requested by all estimators of `param_grid` or "
                    f"by none, since a search fits all in one way; call "
                    f"set_fit_request({name}=True) on each."
                )
        return dict(first)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        if len(getattr(X, "shape", (0, 0))) == 1:
            return X  # the model raises an error that says what is wrong
        rows = validate_data(self, X, reset=False, skip_check_array=True)
        # As the models saw them; the names of columns were checked above.
        if has_named_columns(rows):
            if self.frame_schema_ is not None:
                return Frame(rows, self.frame_schema_).native
            return frame_of(rows).numbers
        return rows.to_numpy() if hasattr(rows, "to_numpy") else rows

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if hasattr(self, "choice_") and "text/html" in bundle:
            bundle["text/html"] += self.choice_._repr_html_()
        return bundle

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Something that is not an estimator is refused by `fit`, with a clearer error.
        known = hasattr(self.estimator, "__sklearn_tags__")
        if known and not isinstance(self.estimator, type):
            inner = get_tags(self.estimator)
            tags.classifier_tags = inner.classifier_tags
            tags.input_tags.allow_nan = takes_nan([self.estimator])
            tags.input_tags.sparse = inner.input_tags.sparse
        return tags
