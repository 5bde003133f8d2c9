"""The member of `Family` that takes any scikit-learn classifier: groups of one."""

import inspect
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing, column_or_1d

from dsel.data.cache import nbytes_of
from dsel.data.canonical import canonical_text
from dsel.data.labeled import codes_of
from dsel.data.trainings import Training
from dsel.data.words import hashed_seed
from dsel.models.family import (
    Cache,
    Candidate,
    FitCounts,
    FittedGroup,
)
from dsel.models.linear import LinearStack, stack_linear

ROW_NBYTES_PER_CLASS = 64  # what predict of a common classifier keeps for a row
_LIBSVM_DRAWS = threading.Lock()


@dataclass(frozen=True)
class ScikitLearnFamily:
    """Any classifier or pipeline, fitted and asked through its public methods.

    Linear models are an exception when they predict: the models of all candidates
    and trainings are stacked into one matrix product.
    """

    classes: NDArray[Any]
    """Label of each class code, sorted."""
    seed: int
    """Seed of the plan; `random_state` parameters that are None get a hash of it."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of every `fit`; arrays of one value a row are cut to rows."""

    @property
    def name(self) -> str:
        """Short name, shown by the plan."""
        return "scikit-learn"

    @property
    def fits_trainings_together(self) -> bool:
        """Trainings share nothing."""
        return False

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Take any budget."""

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Return groups of one: nothing is known about what candidates share."""
        return [(candidate,) for candidate in candidates]

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: NDArray[np.int64],
        trainings: Sequence[Training],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit every candidate on every training; see `Family.fit`."""
        models: dict[tuple[int, int], Any] = {}
        counts = FitCounts.empty(len(group), len(trainings))
        for i, candidate in enumerate(group):
            for j, training in enumerate(trainings):
                started = time.perf_counter()
                key = (candidate.number, training.number)
                try:
                    model = self._fit_one(candidate, X, y, training, pool)
                    test, train = (
                        count_errors(model, X, y, rows, self.classes)
                        for rows in (training.test_rows, training.train_rows)
                    )
                    counts.record((i, j), test, train)
                    models[key] = model
                except Exception as error:
                    counts.failed(*key, error)
                counts.seconds[i, j] = time.perf_counter() - started
        return FittedClassifiers(
            tuple(candidate.number for candidate in group),
            tuple(training.number for training in trainings),
            counts,
            models,
            self.classes,
            not sparse.issparse(X),
        )

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts together; see `Family.join`."""
        pieces = [
            piece
            for piece in fitted
            if isinstance(piece, FittedClassifiers | LinearStack)
        ]
        models = {key: model for piece in pieces for key, model in piece.models.items()}
        numbers = candidates or sorted(
            {c for piece in pieces for c in piece.candidates}
        )
        trainings = sorted({t for piece in pieces for t in piece.trainings})
        wanted = {key: models[key] for key in models if key[0] in set(numbers)}
        stacked = stack_linear(wanted, tuple(numbers), tuple(trainings), self.classes)
        if stacked is not None:
            return stacked
        return FittedClassifiers(
            tuple(numbers),
            tuple(trainings),
            FitCounts.empty(len(numbers), len(trainings)),
            wanted,
            self.classes,
            any(isinstance(p, FittedClassifiers) and p.is_dense for p in pieces),
        )

    def _fit_one(
        self,
        candidate: Candidate,
        X: Any,
        y: NDArray[np.int64],
        training: Training,
        pool: Any,
    ) -> Any:
        rows = training.train_rows
        labels = self.classes[y[rows]]
        if np.all(y[rows] == y[rows[0]]):
            # Learners differ in what they do with one class; all folds alike get this.
            return DummyClassifier(strategy="most_frequent").fit(X[rows], labels)
        model = self._seeded(candidate, training)
        extra = {} if pool is None or not takes_pool(model) else {"pool": pool}
        with _alone_if_random(model):
            return model.fit(
                X[rows], labels, **cut_to_rows(self.fit_params, rows, len(y)), **extra
            )

    def _seeded(self, candidate: Candidate, training: Training) -> Any:
        model = clone(candidate.estimator)
        unset = {
            name: hashed_seed(self.seed, identity(candidate), training.name, name)
            for name, value in sorted(model.get_params(deep=True).items())
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        return model.set_params(**unset)


@dataclass(frozen=True)
class FittedClassifiers:
    """Fitted scikit-learn classifiers by candidate and training."""

    candidates: tuple[int, ...]
    """Candidate numbers, in the order of every candidate axis."""
    trainings: tuple[int, ...]
    """Training numbers, in the order of every training axis."""
    counts: FitCounts
    """Errors of every model."""
    models: Mapping[tuple[int, int], Any]
    """(candidate, training) to the fitted model; failed ones are not there."""
    classes: NDArray[Any]
    """Label of each class code."""
    is_dense: bool = False
    """Whether they were fitted on arrays; some then refuse CSR."""

    @property
    def nbytes(self) -> int:
        """What moving the models costs: the arrays that they hold."""
        return nbytes_of(self.models)

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row."""
        return ROW_NBYTES_PER_CLASS * (len(self.classes) + len(self.candidates))

    def predict(self, X: Any, which: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return class codes; see `FittedGroup.predict`."""
        X = X.toarray() if self.is_dense and sparse.issparse(X) else X
        shape = (len(which), len(self.candidates), X.shape[0])
        codes = np.full(shape, -1, dtype=np.int64)
        for reading, chosen in zip(codes, which, strict=True):
            asked = np.broadcast_to(chosen, shape[1:])
            for row_codes, candidate, numbers in zip(
                reading, self.candidates, asked, strict=True
            ):
                for number in np.unique(numbers):
                    model = self.models.get((candidate, int(number)))
                    rows = np.flatnonzero(numbers == number)
                    if model is not None and len(rows):
                        part = X if len(rows) == X.shape[0] else X[rows]
                        row_codes[rows] = predict_codes(model, part, self.classes)
        return codes

    def scores(self, X: Any, which: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return real scores; see `FittedGroup.scores`."""
        X = X.toarray() if self.is_dense and sparse.issparse(X) else X
        shape = (len(which), len(self.candidates), X.shape[0])
        scores = np.full((*shape, len(self.classes)), -np.inf)
        for reading, chosen in zip(scores, which, strict=True):
            asked = np.broadcast_to(chosen, shape[1:])
            for row_scores, candidate, numbers in zip(
                reading, self.candidates, asked, strict=True
            ):
                for number in np.unique(numbers):
                    model = self.models.get((candidate, int(number)))
                    rows = np.flatnonzero(numbers == number)
                    if model is not None:
                        row_scores[rows] = class_scores(model, X[rows], self.classes)
        return scores

    def model(self, candidate: int, training: int) -> Any:
        """Return the fitted estimator; KeyError where its fit failed."""
        return self.models[candidate, training]


def identity(candidate: Candidate) -> str:
    """Return a text that is the same for equal candidates in every process."""
    params = candidate.params or candidate.estimator.get_params(deep=True)
    return f"{type(candidate.estimator).__name__}{canonical_text(params)}"


def cut_to_rows(
    fit_params: Mapping[str, Any], rows: NDArray[np.int64], n_rows: int
) -> dict[str, Any]:
    """Return fit parameters for some of `n_rows` rows; others stay as they are."""
    return {
        name: _safe_indexing(value, rows) if _one_per_row(value, n_rows) else value
        for name, value in fit_params.items()
    }


def checked_params(fit_params: Mapping[str, Any] | None, n_rows: int) -> dict[str, Any]:
    """Return fit parameters; those of another length reach every fit as they are.

    Raises
    ------
    ValueError
        Where sample weights are not one number a row.
    """
    params = dict(fit_params or {})
    for name, value in params.items():
        is_weight = name.rpartition("__")[2] == "sample_weight" and value is not None
        if is_weight and np.shape(value) != (n_rows,):
            raise ValueError(
                f"`{name}` must hold one weight for each of the {n_rows} labeled rows, "
                f"got shape {np.shape(value)}."
            )
    return params


def takes_pool(estimator: Any) -> bool:
    """Return whether the estimator's `fit` wants the unlabeled rows as `pool`."""
    return "pool" in inspect.signature(estimator.fit).parameters


def check_pool_learners(estimators: Iterable[Any]) -> None:
    """Raise where a learner that wants the pool stands inside another estimator.

    Raises
    ------
    ValueError
        Naming both: the outer one's `fit` would give the inner one no pool.
    """
    for estimator in estimators:
        inner = None if takes_pool(estimator) else _pool_learner_in(estimator)
        if inner is not None:
            learner, outer = type(inner).__name__, type(estimator).__name__
            raise ValueError(
                f"`estimator` must be the {learner} itself, whose `fit` wants the "
                f"pool: a {outer} around it passes none on. Search the {learner} alone "
                f"(labeled rows and pool may be scaled alike before, by numbers that "
                f"neither gave), or give the {outer} a `fit` that takes `pool`."
            )


def _pool_learner_in(estimator: Any) -> Any:
    """Return a part that wants the pool; what is frozen is not fitted any more."""
    from sklearn.frozen import FrozenEstimator

    parts = {"": estimator, **estimator.get_params(deep=True)}
    frozen = [
        f"{name}__" if name else ""
        for name, part in parts.items()
        if isinstance(part, FrozenEstimator)
    ]
    for name, part in parts.items():
        is_fitted = not isinstance(part, type) and hasattr(part, "fit")
        if is_fitted and not name.startswith(tuple(frozen)) and takes_pool(part):
            return part
    return None


def predict_codes(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Predict and turn labels into class codes; see `codes_of`.

    Raises
    ------
    ValueError
        Where the model does not answer each row with one label.
    """
    answers = column_or_1d(model.predict(X))
    if len(answers) != X.shape[0]:
        raise ValueError(
            f"`predict` of {type(model).__name__} must answer each row with one label, "
            f"got {len(answers)} labels for {X.shape[0]} rows."
        )
    return codes_of(answers, classes)


def count_errors(
    model: Any,
    X: Any,
    y: NDArray[np.int64],
    rows: NDArray[np.int64],
    classes: NDArray[Any],
) -> int:
    """Return the model's errors on some of the labeled rows."""
    if not len(rows):
        return 0
    return int(np.sum(predict_codes(model, X[rows], classes) != y[rows]))


def class_scores(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return one score per class: the margin where there is one, else probability.

    Raises
    ------
    TypeError
        Where the model has neither `decision_function` nor `predict_proba`.
    """
    if hasattr(model, "decision_function"):
        seen = np.asarray(model.decision_function(X), dtype=np.float64)
        if seen.ndim == 1:
            seen = np.column_stack((-seen, seen))
    elif hasattr(model, "predict_proba"):
        seen = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        raise TypeError(
            f"{type(model).__name__} has no real-valued scores; choose an estimator "
            f"with `decision_function` or `predict_proba`."
        )
    scores = np.full((X.shape[0], len(classes)), -np.inf)
    scores[:, places_of_classes(model, classes)] = seen
    return scores


def places_of_classes(model: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places of a model's `classes_` among the classes.

    Raises
    ------
    ValueError
        Where the model has a class of its own.
    """
    places = codes_of(np.asarray(model.classes_), classes)
    if (places < 0).any():
        own = model.classes_[int(np.argmax(places < 0))]
        raise ValueError(
            f"`classes_` of {type(model).__name__} must be labels that it was fitted "
            f"to, got {own!r}; its scores belong to no class."
        )
    return places


def _alone_if_random(model: Any) -> AbstractContextManager[Any]:
    """Keep fits on other threads out while libsvm draws folds for its probabilities.

    It draws from one generator of the whole process, which each fit seeds anew.
    """
    asked = [
        value
        for name, value in model.get_params(deep=True).items()
        if name.rpartition("__")[2] == "probability"
    ]
    return _LIBSVM_DRAWS if True in asked else nullcontext()


def _one_per_row(value: Any, n_rows: int) -> bool:
    return (
        hasattr(value, "__len__")
        and not isinstance(value, str | dict)
        and (len(value) == n_rows)
    )
