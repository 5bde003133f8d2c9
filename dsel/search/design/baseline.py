"""Models that were fitted elsewhere, and baselines: such a model or the largest class.

All predictions for labeled rows are made here, before any work starts: a model that
cannot predict them is refused at once, and no task needs the model.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import get_tags

from dsel.arrays import Features, Integers
from dsel.checks import did_you_mean, listing, raise_first, show
from dsel.data.duplicate_rows import make_comparable
from dsel.data.frames import Frame
from dsel.data.identity import content_hash, row_hashes
from dsel.data.labeled import LabeledRows, are_classes, codes_of, names_of_columns
from dsel.errors import DselWarning, RowError, warn
from dsel.families.estimator_kinds import refuse_unfitted_model
from dsel.families.predictions import predict_rows
from dsel.losses.baseline_difference import BaselineDifference
from dsel.losses.declared import DeclaredLosses
from dsel.losses.protocols import no_predictions
from dsel.option_values import LARGEST_CLASS
from dsel.results.model_files import open_model
from dsel.results.params_texts import short_params_text
from dsel.results.row_hashes import RowHashes, load_row_hashes
from dsel.results.values import value_text
from dsel.rounded_texts import count_of, shorten_text
from dsel.runtime.versions import installed_versions
from dsel.search.design.assumption_checks import MANY_DUPLICATES
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.cv_schemes import CVScheme
from dsel.typing import AnyArray, BaselineLike, Model, Options


class PredictedShapeError(ValueError):
    """A fitted model did not return one label for each row."""


@dataclass(frozen=True)
class ConvertingModel:
    """A fitted model that converts rows of a pool, or in memory, to its own format."""

    model: Any
    name: str
    """The argument by which the model was passed."""
    columns: tuple[str, ...] | None
    """Names of the columns to which the model was fitted, or None."""
    takes_frame: bool

    def predict(self, X: Features) -> NDArray[Any]:
        """Return one label for each row."""
        n_rows = X.shape[0]
        predicted = predict_rows(self.model, self.rows(X))
        if predicted.shape != (n_rows,):
            returned = f"{len(predicted)} labels" if predicted.ndim == 1 else "an array"
            shape = f" of shape {predicted.shape}" if predicted.ndim != 1 else ""
            raise PredictedShapeError(
                f"`predict` of `{self.name}` must return one label for each row, got "
                f"{returned}{shape} for {count_of(n_rows, 'row')}; return an array of "
                f"the shape (n_rows,)."
            )
        return predicted

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
    def from_model(cls, model: Model, name: str, X: Features) -> "ConvertingModel":
        """Return a model with the columns and types of rows that it takes.

        Raises ValueError if the labeled rows `X` lack a column; errors name the
        argument `name`.
        """
        named = getattr(model, "feature_names_in_", None)
        columns = None
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
    model: Any, name: str, *, allows_regression: bool = False, other_values: str = ""
) -> Any:
    """Return a fitted model, by default a classifier; a path is opened.

    `other_values` describes what else the argument `name` may be, for messages.
    """
    if isinstance(model, (str, os.PathLike)):
        try:
            model = open_model(model)
        except (OSError, ValueError) as error:
            kind = ValueError if isinstance(error, ValueError) else FileNotFoundError
            way = other_values and f"; it may also be {other_values}"
            raise kind(
                f"`{name}` {show(os.fspath(model))} cannot be opened: "
                f"{str(error).rstrip('.')}{way}."
            ) from error
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"`{name}` must be a fitted model with `predict`, or a place that "
            f"`open_model` opens{other_values and f', or {other_values}'}, got "
            f"{show(model)}."
        )
    if isinstance(model, BaseEstimator):
        if is_regressor(model) and not allows_regression:
            raise TypeError(
                f"`{name}` must be a classifier, since wrong labels are counted, got "
                f"{type(model).__name__}, a regressor; to choose among regressors, "
                f"search them together, such as dsel.plan_search(None, [Ridge(), "
                f"Lasso()], X, y)."
            )
        # An estimator without a declared type may predict labels, so it is accepted;
        # clusterers predict numbers of clusters.
        if get_tags(model).estimator_type in ("clusterer", "density_estimator"):
            kinds = "classifier or a regressor" if allows_regression else "classifier"
            raise TypeError(
                f"`{name}` must be a {kinds}, got {type(model).__name__}, whose "
                f"clusters are no labels; fit a classifier to labeled rows."
            )
        refuse_unfitted_model(
            model,
            f"`{name}` must be a fitted model, got a %(name)s that is not "
            f"fitted; call its `fit` before.",
        )
    return model


@dataclass(frozen=True)
class Baseline:
    """A baseline, with its predictions for every labeled row."""

    codes: Integers
    """Class codes, (n_labeled,); see `codes_of` for a label that is no class. The
    largest class of a row is that of the rows outside of its fold."""
    difference: BaselineDifference
    identity: str
    """Hash of the predictions, or the name of the rule."""
    takes_positions: bool = False
    """Whether it takes the named columns of `X` by their positions."""


def read_baseline(
    baseline: BaselineLike,
    losses: DeclaredLosses,
    method: CertificateMethod,
    X: Features,
    labeled: LabeledRows,
    scheme: CVScheme,
) -> Baseline:
    """Return the baseline of a plan, with its predictions.

    `X` are the rows of `labeled` as an array, CSR matrix or `Frame`. The models without
    each fold of the `scheme` are compared on their test rows.

    Raises TypeError or ValueError if `baseline` is no baseline, cannot predict these
    rows and classes, or the plan does not certify the error of models without a fold.
    """
    check_baseline(baseline, losses, method)
    if isinstance(baseline, str) and baseline == LARGEST_CLASS:
        return _largest_class(labeled, scheme)
    return _baseline_of_model(baseline, X, labeled.classes, scheme.n_folds)


def read_fixed_baseline(
    baseline: BaselineLike, losses: DeclaredLosses, X: Features, classes: AnyArray
) -> Baseline:
    """Return the baseline of one fitted model, with its predictions.

    Neither the training rows of the model nor their largest class are known. Raises the
    errors of `read_baseline`.
    """
    check_baseline(baseline, losses)
    if isinstance(baseline, str) and baseline == LARGEST_CLASS:
        raise ValueError(
            f"`baseline` {baseline!r} is that of the rows that a model was trained on, "
            f"which cv='prefit' does not know; pass the fitted "
            f"sklearn.dummy.DummyClassifier(strategy='most_frequent') of these rows."
        )
    return _baseline_of_model(baseline, X, classes, 1)


def _baseline_of_model(
    baseline: BaselineLike, X: Features, classes: AnyArray, n_folds: int
) -> Baseline:
    """Return a fitted model as the baseline of every fold."""
    if isinstance(baseline, str) and not os.path.exists(baseline):
        end = did_you_mean(baseline, [LARGEST_CLASS])
        if end != ".":
            raise FileNotFoundError(f"`baseline` {baseline!r} cannot be opened{end}")
    model = fitted_model(baseline, "baseline", other_values=repr(LARGEST_CLASS))
    if isinstance(baseline, (str, os.PathLike)):
        check_unseen(load_row_hashes(baseline), X, f"`baseline` {show(baseline)}")
    elif (searched := getattr(baseline, "outcome_", None)) is not None:
        check_unseen(RowHashes.of(searched.labeled), X, "`baseline`")
    codes = predict_baseline(model, X, classes)
    # Only its predictions are compared, so these identify it in a plan: a model that is
    # opened again is another object, and predicts the same.
    difference = BaselineDifference((f"the baseline ({describe(model)})",) * n_folds)
    identity = f"model {content_hash(codes)}"
    return Baseline(codes, difference, identity, takes_positions(model, X))


def check_unseen(known: RowHashes | None, X: Features, baseline: str) -> None:
    """Raise ValueError if a baseline was trained on some of these rows.

    `known` are the labeled rows of the search for it; None if there was no search.

    If many of the rows equal each other, equal rows may be other records: then only a
    table without any other row is refused, and otherwise a warning says how many are
    equal.
    """
    if known is None:
        return
    is_known = known.find(X)
    n = X.shape[0]
    if not (n_known := int(is_known.sum())):
        return
    counted = f"{n_known:,} of these {n:,} labeled rows"
    _, times = np.unique(
        row_hashes(make_comparable(X, np.dtype(np.float64))), return_counts=True
    )
    if n_known < n and times[times > 1].sum() >= MANY_DUPLICATES * n:
        warn(
            f"{counted} equal rows that {baseline} was trained on; if these are the "
            f"same records, it looks better than it is.",
            DselWarning,
        )
        return
    raise ValueError(
        f"{baseline} was trained on {counted}, so it would look better than it is; "
        f"search with rows that it has not seen, or leave the baseline out."
    )


def check_baseline(
    baseline: BaselineLike,
    losses: DeclaredLosses,
    method: CertificateMethod | None = None,
) -> None:
    """Raise ValueError if a plan's models cannot be compared with a baseline.

    `method` is None for a single fitted model.
    """
    reasons = (
        (method is not None and not method.is_nested,
         f"is compared with the models of certificate='nested' with plain random "
         f"folds, got certificate={method and method.name!r}; leave one of "
         f"them out"),
        (losses.main.is_regression,
         "is for classifiers: wrong labels are compared, and of two numbers neither "
         "is right; leave it out"),
        (not losses.is_about_error,
         f"is compared by wrong labels, loss='error', got loss={losses.main!r}; leave "
         f"one of them out"),
    )  # fmt: skip
    start = f"`baseline` {show(baseline)}"
    raise_first(*((is_wrong, f"{start} {reason}.") for is_wrong, reason in reasons))


def _largest_class(labeled: LabeledRows, scheme: CVScheme) -> Baseline:
    """Return the class with the most training rows, fold by fold.

    With groups one row of each is counted, as where the models are compared: a group of
    many rows is one group in a fold.

    Like the model of the fold, it is a function of the rows outside of the fold, so
    that it does not depend on the labels on which both are compared. The largest class
    of all labeled rows would depend on them: it is more likely to be large in the fold,
    too.
    """
    n_classes = len(labeled.classes)
    codes = no_predictions((labeled.n_rows,), np.int64)
    largest_classes = []
    for split in scheme.fold_splits:
        rows = scheme.independent_rows(split.train_rows)
        n_rows = np.bincount(labeled.y[rows], minlength=n_classes)
        largest = int(n_rows.argmax())  # the first one among equals
        # With groups a fold tests one row of each; codes of other rows are not used.
        codes[split.test_rows] = largest
        largest_classes.append(show(labeled.classes.tolist()[largest]))
    difference = BaselineDifference(
        tuple(f"always predicting {label}" for label in largest_classes),
        tuple(largest_classes),
    )
    return Baseline(codes, difference, LARGEST_CLASS)


def predict_baseline(model: Model, X: Features, classes: AnyArray) -> Integers:
    """Return the class codes that a fitted model predicts for labeled rows.

    Raises TypeError or ValueError if the model was fitted to other columns, or predicts
    a value that is neither a class of the labels nor one of its own.
    """
    known = getattr(model, "classes_", None)
    own_classes = np.ravel(np.asarray([] if known is None else known))
    check_baseline_labels(own_classes, classes)
    converting = ConvertingModel.from_model(model, "baseline", X)
    try:
        predicted = converting.predict(X)
    except PredictedShapeError:
        raise
    except Exception as error:  # a model of the user may raise anything
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"`baseline` {describe(model)} cannot predict the rows of `X`: {text}. "
            f"Give the columns that it was fitted with."
        ) from error
    check_baseline_labels(predicted, classes, "predicts")
    codes = codes_of(predicted, classes)
    strange = ~are_classes(codes)
    if len(own_classes):
        strange &= ~are_classes(codes_of(predicted, own_classes))
    if strange.any():
        row = int(np.argmax(strange))
        raise RowError(
            f"`baseline` {describe(model)} predicts {show(predicted.tolist()[row])} "
            f"for ",
            row,
            f" of `X`, which is no class of `y` "
            f"({listing([*map(show, classes.tolist())], 5)}); wrap it in a "
            f"model whose `predict` gives these labels.",
        )
    return codes


def takes_positions(model: Model, X: Features) -> bool:
    """Return whether a fitted model takes the named columns of `X` by position."""
    has_names = names_of_columns(model) is not None
    # A model without a number of columns gets the data frame, and may read names.
    return isinstance(X, Frame) and not has_names and hasattr(model, "n_features_in_")


def note_on_positions(named: str, other: str) -> str:
    """Return a note that `other` has no names of columns, in contrast to `named`."""
    return (
        f"{named} has names of columns and {other} has none: columns are taken by "
        f"position"
    )


def check_baseline_labels(
    labels: AnyArray, classes: AnyArray, verb: str = "knows the classes"
) -> None:
    """Raise if labels of a baseline have another type than those of `y`."""
    if not len(labels):
        return
    first, expected = labels.tolist()[0], classes.tolist()[0]
    way = "train it on these labels, or wrap it in a model that predicts them"
    if isinstance(first, str) != isinstance(expected, str):
        raise TypeError(
            f"`baseline` {verb} {show(first)} where `y` holds {show(expected)}, which "
            f"is of another type; {way}."
        )
    if verb != "predicts" and not are_classes(codes_of(labels, classes)).any():
        predicted_texts, label_texts = (
            listing([show(label) for label in labels_of_side.tolist()], 5)
            for labels_of_side in (labels, classes)
        )
        raise ValueError(
            f"`baseline` {verb} {predicted_texts}, none of which is one of `y` "
            f"({label_texts}); {way}."
        )


def describe(model: Model) -> str:
    """Return the class name of a model, or of the last step of a pipeline."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps and hasattr(model, "named_steps"):
        return f"Pipeline with {type(steps[-1][1]).__name__}"
    return type(model).__name__


def _differing_params(params: Sequence[Options]) -> list[dict[str, Any]]:
    """Return the parameters of each model that another one has otherwise, or lacks.

    Parameters that are models are left out: their own parameters are listed, too.
    """
    texts = [{name: value_text(value) for name, value in p.items()} for p in params]
    return [
        {
            name: value
            for name, value in own.items()
            if not (hasattr(value, "get_params") or isinstance(value, list))
            and any(other.get(name) != shown[name] for other in texts)
        }
        for own, shown in zip(params, texts, strict=True)
    ]


def describe_sources(models: Mapping[str, Model]) -> dict[str, str]:
    """Return texts for pages: models by their roles, the date and the version of dsel.

    Models of one class are distinguished by the parameters in which they differ.
    """
    texts = [describe(model) for model in models.values()]
    if len({*texts}) < len(texts):
        # A model of a user's own may have no parameters.
        params: list[Options] = [
            getattr(model, "get_params", dict)() for model in models.values()
        ]
        texts = [
            f"{text}({shorten_text(short_params_text(own))})" if own else text
            for text, own in zip(texts, _differing_params(params), strict=True)
        ]
    return {
        **dict(zip(models, texts, strict=True)),
        "date": date.today().isoformat(),
        "dsel": installed_versions()["dsel"] or "unknown",
    }
