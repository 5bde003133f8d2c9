"""The models of a search with their certificates, and their predictions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from dsel.arrays import ArrayLike, Floats
from dsel.checks import check_choice, explain_unknown
from dsel.data.lazy import apply_by_block, score_predictions
from dsel.families.predictions import flat_predictions
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.choice_parts import ByModel
from dsel.results.class_report import CertifiedReport
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue
from dsel.search.outcomes.deployed_model import InputFormat
from dsel.search.outcomes.intervals import predict_interval
from dsel.typing import LabelsLike, Options


def _model_has(method: str) -> Callable[["CertifiedModels"], bool]:
    """Return a check whether the deployed model has a method, as scikit-learn's."""
    return lambda models: callable(getattr(models.model, method))


@explain_unknown()
class CertifiedModels:
    """The models of a choice: their certificates, their reports and predictions.

    `Outcome` adds the counts, and what was declared about rows.
    """

    choice: Choice
    make_models: Callable[[], Mapping[str, Any]]
    input_format: InputFormat

    @cached_property
    def bounded_models(self) -> Mapping[str, BoundedModel]:
        """The models of the search, ``one_fold`` and ``all_rows``, with their reports.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> made = outcome.bounded_models["one_fold"]
        >>> made.certificate.certified, made.params, made.model.C
        (True, {'C': 10}, 10)
        """
        return ByModel(
            (name, replace(model, load_model=partial(self._load_model, name)))
            for name, model in self.choice.bounded_models.items()
        )

    def _load_model(self, name: str) -> Any:
        return self.models[name]

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """The bound of each model: ``one_fold``, ``all_rows``."""
        return self.choice.certificates

    @property
    def certificate(self) -> Certificate:
        """The certificate of the deployed model."""
        return self.choice.certificate

    @property
    def bound(self) -> float:
        """The bound of the deployed model: ``certificate.bound``, NaN without one."""
        return self.certificate.bound

    @property
    def best_params_(self) -> Options:
        """Parameters of the deployed model, as scikit-learn's searches name them."""
        return self.choice.params

    @property
    def best_estimator_(self) -> Any:
        """The deployed model, `model`, as scikit-learn's searches name it."""
        return self.model

    @property
    def baseline(self) -> BaselineComparison | None:
        """Comparison of the deployed model with the baseline; None without one."""
        return self.choice.baseline

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """The certified fitted models, by name.

        If the run had ended before, without stored models, they are fitted and counted
        again.

        Raises
        ------
        RuntimeError
            If a model that was fitted again differs from the counted one.
        """
        return ByModel(self.make_models())

    @property
    def model(self) -> Any:
        """The deployed model."""
        return self.models[self.choice.deploy]

    def certified_report(
        self, deploy: str | None = None
    ) -> CertifiedReport | ToleranceReport:
        """Return recall and precision of every class with limits, and the error.

        For regressors return tolerances, the distances that fractions of the
        predictions keep.

        Parameters
        ----------
        deploy
            ``one_fold`` or ``all_rows``; by default the deployed model.

        Returns
        -------
        CertifiedReport or ToleranceReport
            Printed, it is a table; `to_dataframe` has its numbers. All limits hold at
            once, and with the bounds of the search.

        Raises
        ------
        ValueError
            If the plan had no ``report``: it must be declared before the run.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> from dsel import certify
        >>> outcome = certify(SVC(), X, y, report=True, random_state=0)
        >>> outcome.certified_report().classes
        (0, 1, 2)
        """
        return self.choice.report(deploy)

    def report_by_value(self, deploy: str | None = None) -> ReportByValue:
        """Return the error for each value of the column that the plan reports by.

        Parameters
        ----------
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ReportByValue
            Printed, it is a table; `to_dataframe` has ``error``, ``error_at_most`` and
            ``rows`` by value. All limits hold at once.

        Raises
        ------
        ValueError
            If the plan had no ``report_by``: it must be declared before the run.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_digits(return_X_y=True, as_frame=True)
        >>> X["ward"] = [1, 2, 2] * 599
        >>> outcome = plan_search(
        ...     SVC(), {"C": [1]}, X, y, report_by="ward", random_state=0).run()
        >>> outcome.report_by_value().to_dataframe().error_at_most.round(2).tolist()
        [0.09, 0.04]
        """
        return self.choice.report_by_value(deploy)

    def predict(self, X: ArrayLike, *, deploy: str | None = None) -> NDArray[Any]:
        """Predict labels, or numbers of a regressor; lazily for a Dask collection.

        `predict_table` reads a file, and writes one.

        Parameters
        ----------
        X
            Rows with the columns of the labeled rows, shape (n_rows, n_columns). Those
            of a data frame are found by their names, and others are left out.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ndarray or dask.array.Array
            One prediction for each row, shape (n_rows,).

        Raises
        ------
        TypeError
            If `X` is no table of rows, such as a path.
        ValueError
            If `deploy` is no model of this outcome, or a column is missing in `X`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> outcome.predict(X[:3]).tolist()
        [0, 0, 0]
        """
        return self._call("predict", X, deploy)

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return probabilities of `classes_`; lazily for a Dask collection.

        Parameters
        ----------
        X, deploy
            As for `predict`.

        Returns
        -------
        ndarray or dask.array.Array
            Shape (n_rows, n_classes). No bound is about them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from dsel import certify
        >>> X, y = load_iris(return_X_y=True)
        >>> certify(GaussianNB(), X, y, random_state=0).predict_proba(X[:2]).shape
        (2, 3)
        """
        return self._call("predict_proba", X, deploy)

    @available_if(_model_has("predict_log_proba"))
    def predict_log_proba(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return logarithms of the probabilities of `classes_`.

        Parameters
        ----------
        X, deploy
            As for `predict`.
        """
        return self._call("predict_log_proba", X, deploy)

    @available_if(_model_has("decision_function"))
    def decision_function(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return scores of `classes_`; lazily for a Dask collection.

        Parameters
        ----------
        X, deploy
            As for `predict`.
        """
        return self._call("decision_function", X, deploy)

    def score(
        self,
        X: ArrayLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None = None,
        *,
        deploy: str | None = None,
    ) -> float:
        """Return the accuracy of the deployed model, or R^2 of a regressor.

        It is a number about these rows. `monitor` tests whether they refute a bound.

        Parameters
        ----------
        X, y
            Rows and their labels, or numbers.
        sample_weight
            Weight of each row, shape (n_rows,); None for equal ones.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        float
            Accuracy in [0, 1], or R^2, at most 1: an estimate, with no bound.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import certify
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = certify(SVC(), X[::2], y[::2], random_state=0)
        >>> round(outcome.score(X[1::2], y[1::2]), 2)
        0.97
        """
        predicted = np.asarray(self.predict(X, deploy=deploy))
        return score_predictions(self.model, y, predicted, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the deployed model, in the order of its probabilities.

        A class that none of its training rows has is missing. Regressors have none.
        """
        return np.asarray(self.model.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the labeled rows, if the folder of an outcome has it."""
        if self.input_format.n_columns is None:
            raise AttributeError  # `__getattr__` says why
        return self.input_format.n_columns

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of their columns, if these are texts, as scikit-learn has them."""
        if self.input_format.columns is None:
            raise AttributeError  # `__getattr__` says why
        return np.array(self.input_format.columns, dtype=object)

    def _name_model(self, deploy: str | None) -> str:
        """Return the name of a bounded model: `deploy`, or that of the deployed one."""
        names = tuple(self.certificates)
        return check_choice(deploy or self.choice.deploy, "deploy", names)

    def _call(self, method: str, X: ArrayLike, deploy: str | None) -> NDArray[Any]:
        """Return what a method of a model returns, lazily for a Dask collection."""
        model = self.models[self._name_model(deploy)]
        function, input_format = getattr(model, method), self.input_format

        def call(rows: Any) -> NDArray[Any]:
            values = input_format.call(function, rows)
            # Probabilities of a single class are a column, too.
            return (
                flat_predictions(values) if method == "predict" else np.asarray(values)
            )

        results: NDArray[Any] = apply_by_block(call, X)
        return results

    def predict_interval(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return an interval for the target of each row, of a certified regressor.

        It is lazy for a Dask collection.

        Intervals of the model ``one_fold`` all have the same width: prediction minus
        and plus the certified tolerance. For ``all_rows`` the distance of both models'
        predictions is added, so that the width depends on the row.

        Parameters
        ----------
        X
            Rows with the columns of the labeled rows, shape (n_rows, n_columns). Those
            of a data frame are found by their names, and others are left out.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ndarray or dask.array.Array
            Lower and upper ends, shape (n_rows, 2), rounded outward. Infinite if there
            were too few labeled rows for a tolerance.

        Raises
        ------
        ValueError
            If no tolerance is certified, as for classifiers.

        Notes
        -----
        Guarantee: with probability at least ``1 - delta`` over labeled rows, the share
        of new rows whose target lies between the ends is at least that of the loss,
        0.9 by default; for both models at once, and with the bounds of the search.
        Assumes: what the certificate lists.
        Source: :func:`dsel.bounds.tolerance_limit`; for the model of all rows the
        triangle inequality, row by row, which needs no pool.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from dsel import plan_search
        >>> X, y = load_diabetes(return_X_y=True)
        >>> plan = plan_search(Ridge(), {"alpha": [0.1, 1]}, X, y, random_state=0)
        >>> low, high = plan.run().predict_interval(X).T
        >>> bool(((low <= y) & (y <= high)).mean() > 0.9)
        True
        """
        self._name_model(deploy)
        choice, models, input_format = self.choice, self.models, self.input_format

        def interval(rows: Any) -> Floats:
            return predict_interval(choice, models, rows, deploy)

        intervals: Floats = apply_by_block(partial(input_format.call, interval), X)
        return intervals
