"""Keep all models of a grid; the one of largest margin at a row answers it."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from dsel.checks import check_choice
from dsel.data.lazy import lazily
from dsel.data.row_random import seed_from
from dsel.data.splits import full_split
from dsel.searches.candidates import drawn, make_candidates
from dsel.searches.model_set import ModelSet, encode_labels, train_grid
from dsel.searches.nonconformity.tie_rules import best_label, two_best

MARGINS = ("functional", "geometric")


class MaximumMarginClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Train every model of a grid; at each row the largest margin decides.

    Known as SVM-L-infinity. With another `norm`, the weight of a label is that norm of
    the margins of all models that predict it: SVM-L1, SVM-L2. No rows are held out, so
    a model that overfits, with large margins everywhere, decides too.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier with `decision_function` or `predict_proba`.
    param_grid
        Parameter grid as in `GridSearchCV`, or a ``ParameterSampler``; or, with
        ``estimator=None``, a list of classifiers.
    margin
        ``"functional"``: the gap of the two best scores; ``"geometric"``: two classes
        only, the distance from the separating hyperplane, for linear models and
        kernel machines.
    norm
        p >= 1: a label's weight at a row is the p-norm of the margins of the models
        that predict it there. Infinity takes the largest margin alone.
    random_state
        Seed of the learners.

    Attributes
    ----------
    classes_
        Labels.
    models_
        The fitted models, packed.
    params_
        Parameters of each model, in the order of `chosen_model`.
    norms_
        Divisor of the margins, one for each model: 1, or the norm of its hyperplane.
    failures_
        Reason by number of each candidate that could not be fitted.
    nbytes_
        Bytes of the models.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    See Also
    --------
    NonconformityClassifier : Chooses by held-out rows.

    References
    ----------
    Ozogur-Akyuz, Hussain and Shawe-Taylor, Prediction with the SVM using test point
    margins; compared in Hardoon, Hussain and Shawe-Taylor (2009).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = MaximumMarginClassifier(SVC(), {"C": [1, 10], "gamma": [0.1, 1]})
    >>> bool(model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        margin: str = "functional",
        norm: float = np.inf,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.margin = margin
        self.norm = norm
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, *, client: Any = None, **fit_params: Any
    ) -> Self:
        """Train all models on all rows.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, n_columns), dense or sparse.
        y
            Their labels, of any kind.
        client
            Dask client; None is the current one, else local threads.
        **fit_params
            Passed to every model's `fit`.

        Returns
        -------
        MaximumMarginClassifier
            Itself.

        Raises
        ------
        AllFitsFailedError
            Where no candidate could be fitted.
        """
        check_choice(self.margin, "margin", MARGINS)
        if not self.norm >= 1.0:
            raise ValueError(f"`norm` must be at least 1, got {self.norm!r}.")
        X, codes = encode_labels(self, X, y)
        seed = seed_from(self.random_state)
        trained = train_grid(
            make_candidates(self.estimator, drawn(self.param_grid, seed)),
            X,
            codes,
            [full_split(len(codes))],
            classes=self.classes_,
            seed=seed,
            fit_params=fit_params,
            client=client,
        )
        models = trained.pack(trained.failures())
        models.scores(X[:1])  # an estimator without scores is refused here
        self.models_ = models
        self.norms_ = self._norms(models)
        self.params_ = [dict(each.params) for each in models.candidates]
        self.failures_ = models.failures
        self.nbytes_ = models.nbytes
        return self

    def _norms(self, models: ModelSet) -> NDArray[np.float64]:
        if self.margin == "functional":
            return np.ones(models.n_models)
        if len(self.classes_) > 2:
            raise NotImplementedError(
                f'`margin="geometric"` is defined for two classes, got '
                f'{len(self.classes_)}; use `margin="functional"`.'
            )
        return np.array([hyperplane_norm(model) for model in models.models()])

    @lazily
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of largest weight; ties: the first of the grid."""
        codes = self._answer(X)[0]
        return np.asarray(self.classes_[codes])

    @lazily
    def chosen_model(self, X: Any) -> NDArray[np.int64]:
        """Return the number of the model of largest margin for each row's answer."""
        return self._answer(X)[1]

    def _answer(self, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        step = self.models_.block_rows
        answers = [
            self._answer_block(X[start : start + step])
            for start in range(0, X.shape[0], step)
        ]
        labels, models = zip(*answers, strict=True)
        return np.concatenate(labels), np.concatenate(models)

    def _answer_block(self, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        values = self.models_.scores(X)
        best, second = two_best(values)
        margins = (best - second) / self.norms_[:, np.newaxis]
        rows = np.arange(X.shape[0])
        models = np.argmax(margins, axis=0)
        if np.isinf(self.norm):
            return best_label(values[models, rows]), models
        labels = best_label(values)
        weights = np.stack(
            [
                np.linalg.norm(
                    np.where(labels == code, margins, 0.0), self.norm, axis=0
                )
                for code in range(len(self.classes_))
            ]
        )
        # Equal weights go to the label of the largest margin.
        is_best = weights == weights.max(axis=0)
        first = labels[models, rows]
        chosen = np.where(is_best[first, rows], first, weights.argmax(axis=0))
        return chosen, np.argmax(np.where(labels == chosen, margins, -np.inf), axis=0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def hyperplane_norm(model: Any) -> float:
    """Return the norm of the weights of a fitted two-class model, or of its kernel.

    Raises TypeError where the model is neither linear nor a kernel machine.
    """
    last = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(last, "coef_"):
        weights = last.coef_
        dense = weights.toarray() if issparse(weights) else weights
        return float(np.linalg.norm(dense))
    if not hasattr(last, "dual_coef_") or not hasattr(last, "support_vectors_"):
        raise TypeError(
            f'`margin="geometric"` needs a linear model or a kernel machine, got '
            f'{type(last).__name__}; use `margin="functional"`.'
        )
    # |w|^2 = a'Ka, and Ka is the decision on the support vectors less the intercept.
    decision = last.decision_function(last.support_vectors_) - last.intercept_
    return float(np.sqrt(np.ravel(last.dual_coef_ @ decision)[0]))
