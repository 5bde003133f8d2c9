"""Keep all models of a grid and choose one for each test row by nonconformity."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags, get_tags

from dsel.checks import check_choice, check_integer
from dsel.data.row_random import seed_from
from dsel.data.splits import Split, holdout_split
from dsel.errors import GuaranteeWarning, warn
from dsel.searches.candidates import drawn, make_candidates
from dsel.searches.model_set import ModelSet, TrainedGroups, encode_labels, train_grid
from dsel.searches.nonconformity.answers import NonconformityAnswers, hashes_of
from dsel.searches.nonconformity.conformity import (
    MEASURES,
    Measure,
    Neighbours,
    make_calibration,
)
from dsel.searches.nonconformity.row_choice import Reader, RowChooser
from dsel.searches.nonconformity.tie_rules import LITERAL, TIE_RULES

LARGEST_VALIDATION: Final = 50
"""The paper's validation part has min(n / 5, 50) rows."""


class NonconformityClassifier(NonconformityAnswers):
    """Train every model of a grid once; let each test row choose among them.

    A part of the rows is held out for validation. A model's p-value for a label at a
    test row is the fraction of validation rows that conform no better to their own
    label. Its second largest p-value at the row (of two labels, the smaller one) says
    how well any other label than its answer conforms. The model for which this number
    is smallest predicts the row, by the label that conforms best. Each candidate is
    fitted once, where k-fold cross-validation fits it k times.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier with `decision_function` or `predict_proba`.
    param_grid
        Parameter grid as in `GridSearchCV`, or a ``ParameterSampler``; or, with
        ``estimator=None``, a list of classifiers.
    validation_size
        Rows held out: a number, a fraction in (0, 1), or None for min(n / 5, 50), the
        paper's rule. With few validation rows, or rows of one class only, several
        models tie at most test rows.
    measure
        Conformity of a row to a label: ``"margin"`` of the scores, ``"probability"``,
        ``"nearest"`` (distance to other classes over distance to one's own; the same
        for all models), or a function of (fitted model, rows) that returns one number
        per row and class in the order of the model's ``classes_``.
    ties
        Which of several models answers for which this number is smallest: ``"random"``
        (the paper), ``"margin"`` (the largest relative to the model's median),
        ``"vote"`` (the majority, then the margin), ``"first"``, or ``"literal"``
        (random, and where the model's labels tie too a random label, as the paper
        prints it).
    random_state
        Seed of split, ties and learners.

    Attributes
    ----------
    classes_
        Labels.
    models_
        The fitted models, packed.
    validation_scores_
        Conformity of the validation rows to their labels, models x rows, ascending.
    params_
        Parameters of each model, in the order of `chosen_model`.
    failures_
        Reason by number of each candidate that could not be used.
    n_candidates_
        Number of candidates of the grid, failed ones included; bounds divide delta by
        it.
    nbytes_
        Bytes of models and validation scores.
    row_hashes_
        Hash of each row of `fit`, which certify nothing.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    See Also
    --------
    MaximumMarginClassifier : Takes the largest margin.
    dsel.SemiSupervisedSearchCV : Keeps one model, with a bound.

    Notes
    -----
    With ``ties="random"`` a row's answer depends on its place in `X` (the same place
    gives the same answer, in any chunking), so subsets of `X` may be answered
    otherwise; with the other rules a prediction depends on the row alone.

    `dsel.results.save_model` keeps a fitted classifier with all its models in a
    folder or object store, and `open_model` gives it back, without pickle.

    References
    ----------
    Hardoon, Hussain and Shawe-Taylor (2009), A nonconformity approach to model
    selection for SVMs.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = NonconformityClassifier(
    ...     SVC(), {"C": [1, 10], "gamma": [0.1, 1, 10]}, random_state=0
    ... ).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        validation_size: float | None = None,
        measure: Measure = "margin",
        ties: str = "random",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.validation_size = validation_size
        self.measure = measure
        self.ties = ties
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, *, client: Any = None, **fit_params: Any
    ) -> Self:
        """Train all models on one part of the rows, and calibrate them on the other.

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
        NonconformityClassifier
            Itself.

        Raises
        ------
        AllFitsFailedError
            Where no candidate could be fitted.
        """
        self._check_parameters()
        X, codes = encode_labels(self, X, y)
        self.row_hashes_ = hashes_of(X)
        self.seed_ = seed_from(self.random_state)
        split = holdout_split(
            len(codes), _validation_rows(self.validation_size, len(codes)),
            seed=self.seed_,
        )  # fmt: skip
        trained = train_grid(
            make_candidates(self.estimator, drawn(self.param_grid, self.seed_)),
            X, codes, [split],
            classes=self.classes_, seed=self.seed_, fit_params=fit_params,
            client=client,
        )  # fmt: skip
        self._measure(trained, X, codes, split)
        return self

    def _check_parameters(self) -> None:
        if not callable(self.measure):
            check_choice(self.measure, "measure", MEASURES)
        check_choice(self.ties, "ties", (*TIE_RULES, LITERAL))

    def _measure(
        self, trained: TrainedGroups, X: Any, y: NDArray[np.int64], split: Split
    ) -> None:
        train, held = split.train_rows, split.test_rows
        neighbours = None
        if self.measure == "nearest":
            neighbours = Neighbours(X[train], y[train], len(self.classes_))
        models = trained.pack(trained.failures())
        reader = Reader(models, self.measure, neighbours)
        values = reader(X[held])
        if unusable := _scoring_nan(models, values):
            models = trained.pack({**models.failures, **unusable})
            reader = replace(reader, models=models)
            values = reader(X[held])
        calibration = make_calibration(
            values, y[held], by_margin=self.measure == "margin"
        )
        if calibration.by_margin and not (calibration.ascending <= 0).any():
            warn(
                f"no model errs on the {len(held)} validation rows, so every critical "
                "epsilon is 0 and the tie rule alone decides; hold out more rows.",
                GuaranteeWarning,
            )
        self.models_ = models
        self.chooser_ = RowChooser(reader, calibration, self.ties, self.seed_)
        self.validation_scores_ = calibration.ascending
        self.params_ = [dict(each.params) for each in models.candidates]
        self.failures_ = models.failures
        self.n_candidates_ = models.n_models + len(models.failures)
        self.nbytes_ = models.nbytes + calibration.ascending.nbytes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.ties in ("random", LITERAL)
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _validation_rows(size: Any, n_rows: int) -> int:
    """Return how many rows are held out: `validation_size` as a number."""
    if n_rows < 2:
        raise ValueError(
            f"`X` must have at least 2 rows, one of them to hold out, got n_samples = "
            f"{n_rows}."
        )
    if size is None:
        return max(1, min(n_rows // 5, LARGEST_VALIDATION))
    rule = "`validation_size` must be a number of rows, or a share of them in (0, 1)"
    if isinstance(size, bool) or not isinstance(size, Real):
        raise TypeError(f"{rule}, got {size!r}.")
    if isinstance(size, Integral):
        return check_integer(size, "validation_size", at_least=1, at_most=n_rows - 1)
    share = float(size)
    if not 0.0 < share < 1.0:
        raise ValueError(f"{rule}, got {size!r}.")
    return min(max(1, round(share * n_rows)), n_rows - 1)


def _scoring_nan(models: ModelSet, values: NDArray[np.float64]) -> dict[int, str]:
    """Return the candidates that score NaN on validation rows, and the message."""
    bad = np.isnan(values).any(axis=(1, 2))
    return {
        models.candidates[place].number: "scores NaN on validation rows"
        for place in np.flatnonzero(bad)
    }
