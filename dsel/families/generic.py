"""The member of `Family` that takes any scikit-learn classifier: groups of one."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from dsel.arrays import Floats, Integers
from dsel.data.cache import nbytes_of
from dsel.data.frames import Frame, native, unchangeable
from dsel.data.row_random import canonical_text, hashed_seed
from dsel.data.splits import Split
from dsel.families.answers import class_scores, count_errors, predict_codes
from dsel.families.family import (
    Cache,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
    asked,
    joined_numbers,
)
from dsel.families.fit_arguments import cut_to_rows, takes_pool
from dsel.families.linear import stack_linear
from dsel.families.prefixes import (
    cloned,
    fitted_prefix,
    has_prefix,
    prefix_hashes,
    transformed,
    with_seeds,
)

ROW_NBYTES_PER_CLASS = 64  # what predict of a common classifier keeps for a row
_LIBSVM_DRAWS = threading.Lock()


@dataclass(frozen=True)
class ScikitLearnFamily(Family):
    """Any classifier or pipeline, used through its public methods.

    Linear models are an exception when they predict: the models of all candidates
    and splits are stacked into one matrix product.
    """

    name: ClassVar[str] = "scikit-learn"

    def check(self, candidates: Sequence[Candidate], X: Any) -> None:
        """Raise ValueError for what needs a square matrix; else `fit` raises."""
        for estimator in (candidate.estimator for candidate in candidates):
            if get_tags(estimator).input_tags.pairwise:
                raise ValueError(
                    f"`estimator` must take features, but {estimator!r} takes kernel "
                    f"values or distances between labeled rows; these are cut to folds "
                    f"for SVC(kernel='precomputed') alone, without a pipeline, "
                    f"`break_ties` and `probability`."
                )

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit every candidate on every split; see `Family.fit`."""
        models: dict[tuple[int, int], Any] = {}
        counts = FitCounts.empty(len(group), len(splits))
        for i, candidate in enumerate(group):
            for j, split in enumerate(splits):
                started = time.perf_counter()
                key = (candidate.number, split.number)
                try:
                    model, seen = self._fit_one(candidate, X, y, split, pool, budget)
                except Exception as error:
                    counts.failed(*key, error)
                else:
                    models[key] = model
                    errors, failure = count_errors(
                        model, X, y, split, self.classes, seen
                    )
                    counts.record((i, j), *errors)
                    if failure is not None:
                        counts.failed(*key, failure)
                counts.seconds[i, j] = time.perf_counter() - started
        return FittedClassifiers(
            tuple(candidate.number for candidate in group),
            tuple(split.number for split in splits),
            counts,
            models,
            self.classes,
            not sparse.issparse(X),
        )

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts together; see `Family.join`."""
        numbers, splits = joined_numbers(fitted, candidates)
        wanted = {
            key: model
            for piece in fitted
            for key, model in piece.models.items()
            if key[0] in numbers
        }
        stacked = stack_linear(wanted, numbers, splits, self.classes)
        if stacked is not None:
            return stacked
        return FittedClassifiers(
            numbers,
            splits,
            FitCounts.empty(len(numbers), len(splits)),
            wanted,
            self.classes,
            any(getattr(piece, "is_dense", False) for piece in fitted),
        )

    def _fit_one(
        self,
        candidate: Candidate,
        X: Any,
        y: Integers,
        split: Split,
        pool: Any,
        cache: Cache,
    ) -> tuple[Any, Sequence[Any]]:
        """Return the model, and the parts of the test rows as its last step sees them.

        There are none where they are not known.
        """
        rows = split.train_rows
        labels = self.classes[y[rows]]
        if np.all(y[rows] == y[rows[0]]):
            # Learners differ in what they do with one class; all folds alike get this.
            dummy = DummyClassifier(strategy="most_frequent")
            return dummy.fit(native(X[rows]), labels), ()
        model = self._seeded(candidate, split)
        given = cut_to_rows(self.fit_params, rows, len(y))
        if pool is not None and takes_pool(model):
            given["pool"] = pool
        # Libsvm draws folds for its probabilities from one generator of the whole
        # process, which each fit seeds anew: fits on other threads are kept out.
        draws = any(
            name.rpartition("__")[2] == "probability" and value is True
            for name, value in model.get_params(deep=True).items()
        )
        with _LIBSVM_DRAWS if draws else nullcontext():
            if given or not has_prefix(model):
                return model.fit(native(X[rows]), labels, **given), ()
            steps, train, tests = fitted_prefix(
                model, X, y, self.classes, split, seed=self.seed, cache=cache
            )
            last = model[-1].fit(train, labels)
            model.steps = [*steps, (model.steps[-1][0], last)]
            return model, tests

    def _seeded(self, candidate: Candidate, split: Split) -> Any:
        model = cloned(candidate.estimator)
        if has_prefix(model):
            with_seeds(model[:-1], self.seed, split.name)
        unset = {
            name: hashed_seed(self.seed, identity(candidate), split.name, name)
            for name, value in sorted(model.get_params(deep=True).items())
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        model.set_params(**unset)  # of a FrozenEstimator it returns None
        return model


class _Length:
    """A file that keeps no more than its length."""

    nbytes = 0

    def write(self, data: Any) -> int:
        """Count what is written."""
        self.nbytes += memoryview(data).nbytes
        return memoryview(data).nbytes


@dataclass(frozen=True)
class FittedClassifiers(FittedGroup):
    """Fitted scikit-learn classifiers by candidate and split."""

    candidates: tuple[int, ...]
    splits: tuple[int, ...]
    counts: FitCounts
    models: Mapping[tuple[int, int], Any]
    """(candidate, split) to the fitted model; failed ones are not there."""
    classes: NDArray[Any]
    is_dense: bool = False
    """Whether they were fitted on arrays; some then refuse CSR."""

    @cached_property
    def nbytes(self) -> int:
        """What moving the models costs; trees in Cython show it to a pickle alone."""
        length = _Length()
        try:
            cloudpickle.dump(self.models, length)
        except Exception:  # what cannot be pickled serves the threads of one process
            return nbytes_of(self.models)
        return length.nbytes

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row."""
        return ROW_NBYTES_PER_CLASS * (len(self.classes) + len(self.candidates))

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        X, numbers = self._as_fitted(X), self.candidates
        codes = np.full((len(which), len(numbers), X.shape[0]), -1, dtype=np.int64)
        for query, split, some, rows in asked(which, len(numbers)):
            part, known = X if isinstance(rows, slice) else X[rows], ""
            places = np.arange(len(numbers))[some].tolist()
            hashes = {at: self._encoders.get((numbers[at], split), "") for at in places}
            for place in sorted(places, key=lambda at: hashes[at]):
                model = self.models.get((numbers[place], split))
                encoder, table = hashes[place], part
                if model is None:
                    continue
                if encoder:
                    if encoder != known:  # it transforms once for all of them
                        seen = transformed(model.steps[:-1], unchangeable(part))
                    known, model, table = encoder, model[-1], seen
                codes[query, place, rows] = predict_codes(model, table, self.classes)
        return codes

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Return real scores; see `FittedGroup.scores`."""
        X = self._as_fitted(X)
        shape = (len(which), len(self.candidates), X.shape[0], len(self.classes))
        scores = np.full(shape, -np.inf)
        for query, split, some, rows in asked(which, shape[1]):
            for place in np.arange(shape[1])[some].tolist():
                model = self.models.get((self.candidates[place], split))
                if model is not None:
                    found = class_scores(model, X[rows], self.classes)
                    scores[query, place, rows] = found
        return scores

    def _as_fitted(self, X: Any) -> Any:
        """Return rows as the models had them: a frame is converted whole, once."""
        if isinstance(X, Frame):
            return X.typed()
        return X.toarray() if self.is_dense and sparse.issparse(X) else X

    @cached_property
    def _encoders(self) -> dict[tuple[int, int], str]:
        """Hash of what stands before the classifier of each pipeline.

        Where only parameters of the classifier differ, the steps before it are equal,
        and transform a block once for all of them.
        """
        return prefix_hashes(self.models) if len(self.candidates) > 1 else {}

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator; KeyError where its fit failed."""
        model = self.models[candidate, split]
        # A pipeline shares steps with others, which its owner may fit again.
        return deepcopy(model) if isinstance(model, Pipeline) else model


def identity(candidate: Candidate) -> str:
    """Return a text that is the same for equal candidates in every process."""
    params = candidate.params or candidate.estimator.get_params(deep=True)
    return f"{type(candidate.estimator).__name__}{canonical_text(params)}"
