"""Predictions of fitted estimators: class codes, class scores, numbers."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from dsel.arrays import Floats, Integers
from dsel.checks import show
from dsel.data.cache import nbytes_of
from dsel.data.frames import read_only_rows
from dsel.data.labeled import codes_of
from dsel.families.family import FitCounts, FittedGroup, iter_splits
from dsel.families.prefixes import has_prefix, transform_rows

ROW_NBYTES_PER_CLASS = 64  # what predict of a common classifier keeps for a row


def predict_codes(model: Any, X: Any, classes: NDArray[Any]) -> Integers:
    """Predict a label for each row, and return its class code; see `codes_of`."""
    answers = np.asarray(model.predict(read_only_rows(X)))
    if answers.shape not in ((X.shape[0],), (X.shape[0], 1)):
        raise ValueError(
            f"`predict` of {type(model).__name__} must answer each row with one label, "
            f"got labels of shape {answers.shape} for {X.shape[0]} rows."
        )
    return codes_of(answers.ravel(), classes)


def predict_numbers(model: Any, X: Any) -> Floats:
    """Predict a number for each row."""
    predicted = np.asarray(model.predict(read_only_rows(X)))
    if predicted.shape not in ((X.shape[0],), (X.shape[0], 1)):
        raise ValueError(
            f"`predict` of {type(model).__name__} must give each row one number, got "
            f"shape {predicted.shape} for {X.shape[0]} rows."
        )
    return predicted.ravel().astype(np.float64)


def predict_codes_or_numbers(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Predict class codes, or numbers for a regressor."""
    return (
        predict_codes(model, X, classes) if len(classes) else predict_numbers(model, X)
    )


def class_scores(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Return a score for each class: decision values, or else probabilities.

    Raises TypeError where the model has neither.
    """
    X = read_only_rows(X)
    # Of an SVC these are scores of pairs of classes, for three as many as classes.
    pairwise = [
        name
        for name, value in model.get_params().items()
        if name.endswith("decision_function_shape") and value == "ovo"
    ]
    if pairwise:
        model = deepcopy(model).set_params(**dict.fromkeys(pairwise, "ovr"))
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
    places = codes_of(np.asarray(model.classes_), classes)
    if (places < 0).any():
        own = model.classes_[int(np.argmax(places < 0))]
        raise ValueError(
            f"`classes_` of {type(model).__name__} must be labels that it was fitted "
            f"to, got {show(own)}; its scores belong to no class."
        )
    scores[:, places] = seen
    return scores


@dataclass(frozen=True)
class FittedClassifiers(FittedGroup):
    """Fitted scikit-learn classifiers, or regressors, by candidate and split."""

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
        """Bytes to send the models; for trees in Cython only a pickle tells."""
        try:
            return len(cloudpickle.dumps(self.models))
        except Exception:  # what cannot be pickled serves the threads of one process
            return nbytes_of(self.models)

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row."""
        return ROW_NBYTES_PER_CLASS * (len(self.classes) + len(self.candidates))

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        X = X.toarray() if self.is_dense and sparse.issparse(X) else X
        numbers = self.candidates
        shape = len(which), len(numbers), X.shape[0]
        # Of a model that is not there: no class, or no number.
        codes: NDArray[Any] = (
            np.full(shape, -1, np.int64)
            if len(self.classes)
            else np.full(shape, np.nan)
        )
        for item, split, some, rows in iter_splits(which, len(numbers)):
            part, known = X if isinstance(rows, slice) else X[rows], ""
            places = np.arange(len(numbers))[some].tolist()
            hashes = {at: self._encoders.get((numbers[at], split), "") for at in places}
            # Those behind equal steps follow each other: a block is transformed once.
            for place, encoder in sorted(hashes.items(), key=itemgetter(1)):
                model, table = self.models.get((numbers[place], split)), part
                if model is None:
                    continue
                if encoder:
                    if encoder != known:
                        seen = transform_rows(model.steps[:-1], read_only_rows(part))
                    known, model, table = encoder, model[-1], seen
                codes[item, place, rows] = predict_codes_or_numbers(
                    model, table, self.classes
                )
        return codes

    @cached_property
    def _encoders(self) -> dict[tuple[int, int], str]:
        """Hash of the steps before the classifier of each pipeline.

        Where only parameters of the classifier differ, the steps before it are equal,
        and transform a block once for all of them. What cannot be pickled has none.
        """
        hashes: dict[tuple[int, int], str] = {}
        known: dict[tuple[int, ...], str] = {}
        for key, model in self.models.items():
            if len(self.candidates) > 1 and has_prefix(model):
                same = tuple(id(step) for _, step in model.steps[:-1])
                try:
                    if same not in known:
                        content = cloudpickle.dumps(model.steps[:-1])
                        known[same] = blake2b(content, digest_size=16).hexdigest()
                except Exception:
                    known[same] = ""
                hashes[key] = known[same]
        return hashes

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator; KeyError where its fit failed."""
        model = self.models[candidate, split]
        # A pipeline shares steps with others, which its owner may fit again.
        return deepcopy(model) if isinstance(model, Pipeline) else model
