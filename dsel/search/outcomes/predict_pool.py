"""Predictions of a fitted model for every row of a pool."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dsel.arrays import Integers
from dsel.candidates import takes_nan
from dsel.checks import show_model
from dsel.data.labeled import (
    codes_of,
    names_of_columns,
    text_on_positions,
    with_columns,
)
from dsel.data.open import open_pool
from dsel.errors import GuaranteeWarning, warn
from dsel.families.estimator_kinds import is_classifier, refuse_unfitted_model
from dsel.families.predictions import predict_rows
from dsel.names import NO_CLASS
from dsel.results.place import Place
from dsel.results.rows import write_rows
from dsel.search.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from distributed import Client


PREDICTED_ROWS: Final = 2**14
"""Rows that a model predicts at once."""
STORED: Final = {"label": ("int32", NO_CLASS), "value": ("float64", np.nan)}
"""Type and fill value of class codes and of numbers."""
TEXT: Final = ("str", "")
"""Type and fill value of labels as texts."""


def predict_pool(
    model: Any,
    pool: Any,
    path: Any,
    *,
    labels: bool = False,
    client: "Client | None" = None,
) -> str:
    """Predict every row of a pool with a fitted model, and write a zarr group.

    Parameters
    ----------
    model
        Any fitted search, estimator or pipeline with `predict`, of dsel or not; or an
        outcome, for its deployed model.
    pool
        Unlabeled rows: anything that `open_pool` takes. A search gets frames of the
        library that it was fitted on; other models get frames of pandas from Parquet
        files.
        Columns are found by `feature_names_in_`, and those of a search by any names;
        a model without names gets them in the order of the pool, with a
        `GuaranteeWarning` where they have some.
    path
        Folder or URL of a new zarr group. For a classifier ``label`` has class codes,
        indices of `classes_` (-1 for rows that the pool's filters leave out, -2 for
        predictions that are no class), otherwise ``value`` has numbers (NaN for rows
        left out). `read_rows` reads them.
    labels
        Whether ``label`` of a classifier has the labels themselves, as texts ("" for
        rows left out), instead of codes.
    client
        Dask client; None is the current one, else this machine. Tasks return a few
        bytes for each row, which the driver writes.

    Returns
    -------
    str
        Path or URL of the predictions.

    Raises
    ------
    FileExistsError
        If results for rows, or other zarr data, are there.
    ValueError
        If the model does not accept the pool's rows.

    See Also
    --------
    NonconformityClassifier.predict_pool : Writes more than labels.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dsel.results.rows import read_rows
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier().fit(X[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     path = predict_pool(model, X[1::2], f"{folder}/answers.zarr")
    ...     [(_, codes)] = read_rows(path, "label")
    >>> bool((model.classes_[codes] == model.predict(X[1::2])).all())
    True
    """
    if hasattr(model, "predict_pool"):  # it writes more than labels
        if labels:
            raise ValueError(
                f"`labels` must be False for a {type(model).__name__}, which writes "
                f"more than labels; its `classes_` name them."
            )
        model.predict_pool(pool, path, client=client)
        return str(Place(path, name="path"))
    # An outcome converts rows for its model, which knows the classes.
    is_outcome = isinstance(model, Outcome)
    fitted = model.model if is_outcome else model
    if isinstance(model, type) or not callable(getattr(fitted, "predict", None)):
        raise TypeError(
            f"`model` must be a fitted model with `predict`, or an outcome, got "
            f"{show_model(model)}."
        )
    if isinstance(fitted, BaseEstimator):
        refuse_unfitted_model(fitted)
    opened = open_pool(pool)
    if is_outcome:
        has_frames = model.input_format.library is not None
    else:
        has_frames = hasattr(fitted, "feature_names_in_")
    if has_frames:
        opened = opened.with_schema(opened.frames)
    n_columns = getattr(fitted, "n_features_in_", opened.n_columns)
    names = names_of_columns(model)
    if names is None and opened.columns:
        warn(text_on_positions(opened.columns, "`pool`"), GuaranteeWarning)
    opened = with_columns(opened, n_columns, names)
    classes = np.asarray(fitted.classes_) if is_classifier(fitted) else None

    def predict_block(X: Any, _: Integers) -> dict[str, NDArray[Any]]:
        predictions = predict_rows(model, X)
        if classes is None:
            return {"value": predictions}
        if labels:
            return {"label": predictions.astype(str)}
        # Predictions that are no class have codes of their own, too long for an int32.
        return {"label": np.maximum(codes_of(predictions, classes), -2)}

    def type_of(name: str) -> tuple[str, Any]:
        return TEXT if labels and classes is not None else STORED[name]

    allow_nan = takes_nan([getattr(fitted, "best_estimator_", fitted)])  # in a search
    # One row is predicted first, so that an unfitted model or wrong columns raise now.
    first_row = opened.reduce(
        lambda X, rows: predict_block(X[:1], rows[:1]),
        lambda first, _: first,
        client=client,
        allow_nan=allow_nan,
        slices=opened.slices(1)[:1],
    )
    write_rows(
        opened,
        path,
        predict_block,
        {
            name: (values.shape[1:], *type_of(name))
            for name, values in first_row.items()
        },
        block_rows=PREDICTED_ROWS,
        attributes={} if classes is None else {"classes": [*map(str, classes)]},
        client=client,
        allow_nan=allow_nan,
    )
    return str(Place(path, name="path"))
