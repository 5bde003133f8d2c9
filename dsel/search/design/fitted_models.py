"""Models that were fitted elsewhere, and the conversion of rows for them."""

import os
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import Features
from dsel.checks import show
from dsel.data.frames import Frame
from dsel.families.answers import predict_rows
from dsel.results.models import open_model
from dsel.rounded_texts import count_of
from dsel.typing import Model


class PredictedShapeError(ValueError):
    """A fitted model did not return one label for each row."""


@dataclass(frozen=True)
class Predictor:
    """A fitted model that converts rows of a pool, or in memory, to its own format."""

    model: Any
    name: str
    """The argument by which it was passed."""
    columns: tuple[str, ...] | None
    """Names of the columns to which it was fitted, or None."""
    takes_frame: bool

    def predict(self, X: Features) -> NDArray[Any]:
        """Return one label for each row."""
        n_rows = X.shape[0]
        labels = predict_rows(self.model, self.rows(X))
        if labels.shape not in ((n_rows,), (n_rows, 1)):
            got = f"{len(labels)} labels" if labels.ndim == 1 else "an array"
            shape = f" of shape {labels.shape}" * (labels.ndim != 1)
            raise PredictedShapeError(
                f"`predict` of `{self.name}` must return one label for each row, got "
                f"{got}{shape} for {n_rows} rows."
            )
        return labels.ravel()

    def rows(self, X: Features) -> Any:
        """Return rows with the columns and the type that the model needs."""
        if isinstance(X, Frame):
            if self.columns is not None:
                X = Frame(
                    X.given[list(self.columns)], X.schema.with_columns(self.columns)
                )
            X = X if self.takes_frame else X.numbers
        return X

    @classmethod
    def of_rows(cls, model: Model, name: str, X: Features) -> "Predictor":
        """Return the predictor for labeled rows; ValueError if a column is missing."""
        named, columns = getattr(model, "feature_names_in_", None), None
        if named is not None and isinstance(X, Frame):
            columns = tuple(map(str, named))
            if missing := [
                column for column in columns if column not in X.schema.names
            ]:
                raise ValueError(
                    f"`{name}` was fitted with the column {missing[0]!r}, which `X` "
                    f"lacks; give all of its columns, or another model."
                )
        elif (n := getattr(model, "n_features_in_", X.shape[1])) != X.shape[1]:
            raise ValueError(
                f"`{name}` was fitted with {count_of(n, 'column')}, but `X` has "
                f"{X.shape[1]:,}; give the columns that it was fitted with."
            )
        takes_frame = columns is not None or not hasattr(model, "n_features_in_")
        return cls(model, name, columns, takes_frame and isinstance(X, Frame))


def fitted_model(
    model: Any, name: str, *, allows_regression: bool = False, others: str = ""
) -> Any:
    """Return a fitted model, by default a classifier; a path is opened.

    `others` describes what else the argument `name` may be, for messages.
    """
    if isinstance(model, (str, os.PathLike)):
        try:
            model = open_model(model)
        except (OSError, ValueError) as error:
            kind = ValueError if isinstance(error, ValueError) else FileNotFoundError
            way = others and f"; it may also be {others}"
            raise kind(
                f"`{name}` {show(os.fspath(model))} cannot be opened: "
                f"{str(error).rstrip('.')}{way}."
            ) from error
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"`{name}` must be a fitted model with `predict`, or a place that "
            f"`open_model` opens{others and f', or {others}'}, got {show(model)}."
        )
    if isinstance(model, BaseEstimator):
        if is_regressor(model) and not allows_regression:
            raise TypeError(
                f"`{name}` must be a classifier, since wrong labels are counted, got "
                f"{type(model).__name__}, a regressor."
            )
        check_is_fitted(
            model,
            msg=f"`{name}` must be a fitted model, got a %(name)s that is not "
            f"fitted; call its `fit` before.",
        )
    return model
