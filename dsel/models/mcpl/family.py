"""MCPL estimators of a grid: one read of the pool serves all candidates and folds."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from dsel.checks import check_integer
from dsel.data.splits import Split
from dsel.errors import GuaranteeWarning
from dsel.families.answers import count_errors
from dsel.families.arrays import Integers
from dsel.families.family import (
    Assignment,
    Cache,
    Candidate,
    FitCounts,
    FittedGroup,
    group_by,
)
from dsel.families.generic import FittedClassifiers, ScikitLearnFamily
from dsel.models.mcpl.discriminant import read_labeled, read_pool, store_classes
from dsel.models.mcpl.estimators import MCPLClassifier, report_fit
from dsel.models.mcpl.saddle_point import ContrastFit, ContrastProblem, fit_contrasts

Key = tuple[int, int]
"""Candidate number and split number."""


@dataclass(frozen=True)
class MCPLFamily:
    """MCPL estimators; the fits of a call share every read of the pool.

    The model of one candidate and split is the same, to the bit, whatever else is
    fitted in the call.
    """

    name: ClassVar[str] = "contrastive likelihood"
    fits_splits_together: ClassVar[bool] = True
    takes_frames: ClassVar[bool] = False
    classes: NDArray[Any]
    seed: int = 0
    """Not needed: the fits draw nothing."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Refused unless empty: the estimators' `fit` takes none."""

    def refusal(self, estimator: Any) -> str | None:
        """Refuse all but MCPL estimators without fit parameters."""
        is_ours = isinstance(estimator, MCPLClassifier) and not self.fit_params
        return None if is_ours else ""

    def assign(self, candidates: Sequence[Candidate], X: Any) -> Assignment:
        """Let `fit` raise where a candidate cannot work."""
        remark = "all of them in the same reads of the pool"
        groups = tuple(self.groups(candidates))
        return Assignment(self, tuple(candidates), groups, remark)

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Take any budget."""

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return 0: fits share nothing."""
        return 0

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Group candidates that start from the same subsample of the pool."""
        return group_by(candidates, lambda c: repr(c.estimator.start_rows))

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedClassifiers:
        """Fit every candidate on every split; see `Family.fit`."""
        del budget  # blocks of the pool are kept by the pool itself
        started = time.perf_counter()
        models: dict[Key, Any] = {}
        problems: dict[Key, ContrastProblem] = {}
        counts = FitCounts.empty(len(group), len(splits))
        for candidate, split in product(group, splits):
            key = (candidate.number, split.number)
            rows = split.train_rows
            try:
                models[key], problem = _begin(
                    candidate.estimator, X[rows], self.classes[y[rows]]
                )
                if problem is not None:
                    problems[key] = problem
            except Exception as error:
                counts.failed(*key, error)
        _solve(models, problems, pool, counts)
        for i, candidate in enumerate(group):
            for j, split in enumerate(splits):
                model = models.get((candidate.number, split.number))
                if model is not None:
                    errors, _ = count_errors(model, X, y, split, self.classes)
                    counts.record((i, j), *errors)
        counts.seconds[:] = (time.perf_counter() - started) / counts.seconds.size
        return FittedClassifiers(
            tuple(candidate.number for candidate in group),
            tuple(split.number for split in splits),
            counts,
            models,
            self.classes,
            not sparse.issparse(X),
        )

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts together; see `Family.join`."""
        return ScikitLearnFamily(self.classes, self.seed).join(fitted, candidates)


def _begin(
    estimator: MCPLClassifier, X: Any, labels: NDArray[Any]
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
    counts: FitCounts,
) -> None:
    """Solve all problems together and set the estimates; drop models that fail."""
    if not problems:
        return
    # Candidates of a group have the same `start_rows`, and all read the same pool.
    first = models[next(iter(problems))]
    try:
        start_rows = check_integer(first.start_rows, "start_rows", at_least=0)
        opened = read_pool(first, pool)
        fits = _fits([*problems.values()], opened, start_rows)
    except Exception as error:
        fits = [error] * len(problems)
    for key, fit in zip(problems, fits, strict=True):
        if isinstance(fit, Exception):
            counts.failed(*key, fit)
            del models[key]
            continue
        store_classes(models[key], fit.classes)
        # A warning for each of hundreds of fits would be noise: they become messages.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GuaranteeWarning)
            report_fit(models[key], fit)
        for remark in caught:
            counts.messages[key] = str(remark.message)


def _fits(
    problems: Sequence[ContrastProblem], pool: Any, start_rows: int
) -> list[ContrastFit | Exception]:
    """Solve together; where that raises, one by one, so that one fails alone."""
    try:
        return [*fit_contrasts(problems, pool, start_rows=start_rows)]
    except Exception as error:
        if len(problems) == 1:
            return [error]
        alone = [_fits([problem], pool, start_rows) for problem in problems]
        return [each[0] for each in alone]
