"""Predictions of fitted estimators: class codes, class scores, numbers."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from dsel.arrays import Features, Floats, Integers, find_mask
from dsel.checks import listing, show
from dsel.data.cache import nbytes_of
from dsel.data.frames import read_only_rows
from dsel.data.labeled import are_classes, codes_of, type_of_labels
from dsel.families.ensemble_sizes import hash_pickle
from dsel.families.family import FitCounts, FitId, FittedGroup, iter_splits
from dsel.families.prefixes import has_prefix, transform_rows
from dsel.losses.protocols import no_predictions
from dsel.typing import AnyArray, Model, SplitNumbers

ROW_NBYTES_PER_CLASS = 64  # memory of a common classifier's predict, for each row


def flat_predictions(predicted: Any) -> NDArray[Any]:
    """Return predictions as an array, one column of them in the shape (n_rows,).

    CatBoost returns the labels of several classes as a column. Compared with labels of
    the shape (n_rows,) it would be compared with each of them.
    """
    predictions = np.asarray(predicted)
    is_column = predictions.ndim == 2 and predictions.shape[1] == 1
    return predictions.ravel() if is_column else predictions


def predict_rows(model: Any, X: Features) -> NDArray[Any]:
    """Predict rows that others read, too: a model that writes into them raises."""
    try:
        predicted = model.predict(read_only_rows(X))
        if np.ma.is_masked(find_mask(predicted)):  # numpy would unmask it
            raise ValueError(
                f"`predict` of {type(model).__name__} must return a label or a number "
                f"for each row, got masked ones; return those, as by filled(label)"
            )
        return flat_predictions(predicted)
    except ValueError as error:
        # The error is kept, since its traceback shows the user's line.
        if "read-only" in str(error):
            error.args = (
                f"{str(error).rstrip('.')}; others read these rows, too, so `predict` "
                f"of {type(model).__name__} must work on a copy, such as X.copy()",
            )
        raise


def predict_codes(model: Model, X: Features, classes: AnyArray) -> Integers:
    """Predict a label for each row, and return its class code; see `codes_of`."""
    predicted = predict_rows(model, X)
    if predicted.shape != (X.shape[0],):
        raise ValueError(
            f"`predict` of {type(model).__name__} must return one label for each row, "
            f"got labels of shape {predicted.shape} for {X.shape[0]} rows."
        )
    codes = codes_of(predicted, classes)
    # A label that is no class is counted as an error. Scores are no labels at all, nor
    # are texts in the place of numbers: nothing that `predict` returned could be right.
    if len(codes) and not are_classes(codes).any():
        unknown_labels, way = predicted[:0], "return labels of the type of `y`"
        if predicted.dtype.kind == "f":
            unknown_labels = predicted[predicted % 1 != 0]
            way = "return labels, such as classes_[scores.argmax(axis=1)]"
        if {type_of_labels(predicted), type_of_labels(classes)} > {"U"}:
            unknown_labels = predicted
        if unknown_labels.size:
            raise ValueError(
                f"`predict` of {type(model).__name__} must return a label for each "
                f"row, got {show(unknown_labels.tolist()[0])}, which is none "
                f"of the classes {listing(list(map(show, classes.tolist())), 5)}; "
                f"{way}."
            )
    return codes


def predict_numbers(model: Any, X: Any) -> Floats:
    """Predict a number for each row."""
    predicted = predict_rows(model, X)
    if predicted.shape != (X.shape[0],):
        raise ValueError(
            f"`predict` of {type(model).__name__} must return one number for each row, "
            f"got shape {predicted.shape} for {X.shape[0]} rows."
        )
    return predicted.astype(np.float64)


def predict_codes_or_numbers(
    model: Model, X: Features, classes: AnyArray
) -> NDArray[Any]:
    """Predict class codes, or numbers for a regressor."""
    return (
        predict_codes(model, X, classes) if len(classes) else predict_numbers(model, X)
    )


def class_scores(model: Any, X: Features, classes: NDArray[Any]) -> Floats:
    """Return a score for each class: decision values, or else probabilities.

    Raises TypeError where the model has neither.
    """
    X = read_only_rows(X)
    # With "ovo" an SVC returns scores of pairs of classes. For three classes there are
    # three pairs, so the shape would not reveal the mistake.
    pairwise = [
        name
        for name, value in model.get_params().items()
        if name.endswith("decision_function_shape") and value == "ovo"
    ]
    if pairwise:
        model = deepcopy(model).set_params(**dict.fromkeys(pairwise, "ovr"))
    if hasattr(model, "decision_function"):
        columns = np.asarray(model.decision_function(X), dtype=np.float64)
        if columns.ndim == 1:
            columns = np.column_stack((-columns, columns))
    elif hasattr(model, "predict_proba"):
        columns = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        raise TypeError(
            f"{type(model).__name__} has no real-valued scores; choose an estimator "
            f"with `decision_function` or `predict_proba`."
        )
    scores = np.full((X.shape[0], len(classes)), -np.inf)
    codes = codes_of(np.asarray(model.classes_), classes)
    if not are_classes(codes).all():
        unknown = model.classes_[int(np.argmin(are_classes(codes)))]
        raise ValueError(
            f"`classes_` of {type(model).__name__} must be labels that it was fitted "
            f"to, got {show(unknown)}; its scores belong to no class."
        )
    scores[:, codes] = columns
    return scores


@dataclass(frozen=True)
class FittedEstimators(FittedGroup):
    """Fitted scikit-learn classifiers, or regressors, by candidate and split."""

    candidate_numbers: tuple[int, ...]
    split_numbers: tuple[int, ...]
    fit_counts: FitCounts
    models: Mapping[FitId[int], Any]
    """Fitted models; failed fits have no entry."""
    classes: NDArray[Any]
    is_dense: bool = False
    """Whether the models were fitted on dense arrays; some then refuse sparse rows."""
    tested: dict[tuple[int, int, int], NDArray[Any]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Predictions for the test rows by candidate, split and part. They are kept until
    they are scored, so that a loss needs no second prediction."""

    @cached_property
    def nbytes(self) -> int:
        """Bytes to send the models; only a pickle shows the size of Cython trees."""
        try:
            return len(cloudpickle.dumps(self.models))
        except Exception:  # models that cannot be pickled stay in their process
            return nbytes_of(self.models)

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row."""
        return ROW_NBYTES_PER_CLASS * (len(self.classes) + len(self.candidate_numbers))

    def predict(self, X: Any, splits: Sequence[SplitNumbers]) -> NDArray[Any]:
        """Return class codes or numbers; see `FittedGroup.predict`."""
        X = X.toarray() if self.is_dense and sparse.issparse(X) else X
        candidate_numbers = self.candidate_numbers
        shape = len(splits), len(candidate_numbers), X.shape[0]
        # Models that failed to fit keep these values.
        predictions = no_predictions(
            shape, np.int64 if len(self.classes) else np.float64
        )
        for item, split, candidates, rows in iter_splits(splits):
            chosen_rows, known = X if isinstance(rows, slice) else X[rows], ""
            positions = np.arange(len(candidate_numbers))[candidates].tolist()
            hashes = {
                i: self._encoders.get(FitId(candidate_numbers[i], split), "")
                for i in positions
            }
            # Candidates are sorted, so that those with equal steps before the
            # classifier follow each other and transform the rows once.
            for position, encoder in sorted(hashes.items(), key=itemgetter(1)):
                model, table = (
                    self.models.get(FitId(candidate_numbers[position], split)),
                    chosen_rows,
                )
                if model is None:
                    continue
                if encoder:
                    if encoder != known:
                        encoded = transform_rows(
                            model.steps[:-1], read_only_rows(chosen_rows)
                        )
                    known, model, table = encoder, model[-1], encoded
                predictions[item, position, rows] = predict_codes_or_numbers(
                    model, table, self.classes
                )
        return predictions

    @cached_property
    def _encoders(self) -> dict[FitId[int], str]:
        """Hash of the steps before the last one, for each pipeline.

        Where candidates differ only in the last step, the steps before it are equal and
        transform a block of rows once for all of them. Steps that cannot be pickled
        have no hash.
        """
        hash_of_steps: dict[FitId[int], str] = {}
        known: dict[tuple[int, ...], str] = {}
        for key, model in self.models.items():
            if len(self.candidate_numbers) > 1 and has_prefix(model):
                ids = tuple(id(step) for _, step in model.steps[:-1])
                try:
                    if ids not in known:
                        content = cloudpickle.dumps(model.steps[:-1])
                        known[ids] = blake2b(content, digest_size=16).hexdigest()
                except Exception:
                    known[ids] = ""
                hash_of_steps[key] = known[ids]
        return hash_of_steps

    def test_predictions(
        self, split_number: int, part_number: int
    ) -> NDArray[Any] | None:
        """Return predictions made at the fit; see `FittedGroup.test_predictions`."""
        predictions_of_fits = [
            self.tested.get((n, split_number, part_number))
            for n in self.candidate_numbers
        ]
        known = [
            predictions
            for predictions in predictions_of_fits
            if predictions is not None
        ]
        return np.stack(known) if len(known) == len(predictions_of_fits) else None

    def forget_test_predictions(self) -> None:
        """Drop them; see `FittedGroup.forget_test_predictions`."""
        self.tested.clear()

    def model(self, candidate: int, split_number: int) -> Any:
        """Return the fitted estimator; KeyError where its fit failed."""
        model = self.models[FitId(candidate, split_number)]
        # Pipelines share fitted steps. A caller who fits one again must not change the
        # others, so it gets a copy.
        return deepcopy(model) if isinstance(model, Pipeline) else model

    def token(self, candidate: int, split_number: int) -> str:
        """Return the hash of the model's pickle; see `FittedGroup.token`."""
        return hash_pickle(self.models[FitId(candidate, split_number)])
