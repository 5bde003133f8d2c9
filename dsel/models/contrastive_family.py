"""MCPL estimators of a grid: one read of the pool serves all candidates and folds."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from dsel.checks import check_integer
from dsel.data.trainings import Training
from dsel.errors import GuaranteeWarning
from dsel.models.base import (
    FIT_DONE,
    FIT_FAILED,
    Cache,
    Candidate,
    FitCounts,
    FittedGroup,
)
from dsel.models.contrast import ContrastFit, ContrastProblem, fit_contrasts
from dsel.models.contrastive import ContrastiveClassifier
from dsel.models.discriminant import read_labeled, read_pool, store_classes
from dsel.models.scikit_learn import (
    FittedClassifiers,
    ScikitLearnFamily,
    predict_codes,
)
from dsel.solvers.frank_wolfe import CONVERGED

Key = tuple[int, int]
"""Candidate number and training number."""


def is_contrastive(estimator: Any) -> bool:
    """Return whether the estimator is fitted by contrastive pessimistic likelihood."""
    return isinstance(estimator, ContrastiveClassifier)


@dataclass(frozen=True)
class ContrastiveFamily:
    """MCPL estimators; the fits of a call share every read of the pool.

    The model of one candidate and training is the same, to the bit, whatever else is
    fitted in the call.
    """

    classes: NDArray[Any]
    """Label of each class code, sorted."""
    seed: int = 0
    """Unused: the fits draw nothing."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Must be empty: the estimators' `fit` takes none."""

    @property
    def name(self) -> str:
        """Shown by the plan."""
        return "contrastive likelihood"

    @property
    def fits_trainings_together(self) -> bool:
        """All fits of a call share every read of the pool."""
        return True

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Take any budget."""

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Group candidates that start from the same subsample of the pool."""
        found: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            found.setdefault(repr(candidate.estimator.start_rows), []).append(candidate)
        return [
            tuple(sorted(members, key=lambda candidate: candidate.number))
            for members in found.values()
        ]

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: NDArray[np.int64],
        trainings: Sequence[Training],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedClassifiers:
        """Fit every candidate on every training; see `Family.fit`."""
        del budget  # blocks of the pool are kept by the pool itself
        started = time.perf_counter()
        models: dict[Key, Any] = {}
        messages: dict[Key, str] = {}
        problems: dict[Key, ContrastProblem] = {}
        for candidate in group:
            for training in trainings:
                key = (candidate.number, training.number)
                rows = training.train_rows
                try:
                    models[key], problem = _begin(
                        candidate.estimator, X[rows], self.classes[y[rows]]
                    )
                    if problem is not None:
                        problems[key] = problem
                except Exception as error:
                    messages[key] = f"{type(error).__name__}: {error}"
        _solve(models, problems, pool, messages)
        fitted = _with_counts(self.classes, group, trainings, models, messages)
        _count_errors(fitted, X, y, trainings)
        fitted.counts.seconds[:] = (
            time.perf_counter() - started
        ) / fitted.counts.seconds.size
        return fitted

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts together; see `Family.join`."""
        return ScikitLearnFamily(self.classes, self.seed).join(fitted, candidates)


def _begin(
    estimator: ContrastiveClassifier, X: Any, labels: NDArray[Any]
) -> tuple[Any, ContrastProblem | None]:
    """Return a model and what is to be solved for it, if anything."""
    if np.all(labels == labels[0]):
        # As in the generic family: where there is one class, it is predicted.
        return DummyClassifier(strategy="most_frequent").fit(X, labels), None
    model = clone(estimator)
    return model, model.problem(read_labeled(model, X, labels).moments)


def _solve(
    models: dict[Key, Any],
    problems: Mapping[Key, ContrastProblem],
    pool: Any,
    messages: dict[Key, str],
) -> None:
    """Solve all problems together and set the estimates; drop models that fail."""
    if not problems:
        return
    keys = list(problems)
    first = models[keys[0]]
    try:
        start_rows = check_integer(first.start_rows, "start_rows", at_least=0)
        opened = read_pool(first, pool)
    except Exception as error:
        for key in keys:
            messages[key] = f"{type(error).__name__}: {error}"
            del models[key]
        return
    for key, fit in zip(
        keys, _fits([problems[key] for key in keys], opened, start_rows), strict=True
    ):
        if isinstance(fit, Exception):
            messages[key] = f"{type(fit).__name__}: {fit}"
            del models[key]
            continue
        store_classes(models[key], fit.classes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GuaranteeWarning)
            models[key].report(fit)
        for remark in caught:
            messages[key] = str(remark.message)


def _fits(
    problems: Sequence[ContrastProblem], pool: Any, start_rows: int
) -> list[ContrastFit | Exception]:
    """Solve together; where that raises, one by one, so that one fails alone."""
    if pool is None:
        return [ContrastFit(p.supervised, 0.0, 0.0, 0, CONVERGED) for p in problems]
    try:
        return [*fit_contrasts(problems, pool, start_rows=start_rows)]
    except Exception as error:
        if len(problems) == 1:
            return [error]
        alone = [_fits([problem], pool, start_rows) for problem in problems]
        return [each[0] for each in alone]


def _with_counts(
    classes: NDArray[Any],
    group: Sequence[Candidate],
    trainings: Sequence[Training],
    models: Mapping[Key, Any],
    messages: dict[Key, str],
) -> FittedClassifiers:
    """Return the group with its counts still to be filled."""
    numbers = tuple(candidate.number for candidate in group)
    shape = (len(numbers), len(trainings))
    status = np.full(shape, FIT_FAILED, dtype=np.int8)
    for i, candidate in enumerate(numbers):
        for j, training in enumerate(trainings):
            if (candidate, training.number) in models:
                status[i, j] = FIT_DONE
    counts = FitCounts(
        np.full(shape, -1, dtype=np.int64),
        np.full(shape, -1, dtype=np.int64),
        status,
        np.full(shape, np.nan),
        messages,
    )
    named = tuple(training.number for training in trainings)
    return FittedClassifiers(numbers, named, counts, models, classes)


def _count_errors(
    fitted: FittedClassifiers,
    X: Any,
    y: NDArray[np.int64],
    trainings: Sequence[Training],
) -> None:
    """Count errors on test and training rows of every model that was fitted."""
    for i, candidate in enumerate(fitted.candidates):
        for j, training in enumerate(trainings):
            model = fitted.models.get((candidate, training.number))
            if model is None:
                continue
            for counts, rows in (
                (fitted.counts.test_errors, training.test_rows),
                (fitted.counts.train_errors, training.train_rows),
            ):
                wrong = 0
                if len(rows):
                    codes = predict_codes(model, X[rows], fitted.classes)
                    wrong = int(np.sum(codes != y[rows]))
                counts[i, j] = wrong
