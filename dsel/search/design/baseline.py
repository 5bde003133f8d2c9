"""Baselines, with which a plan compares its models: a fitted one, or the largest class.

All predictions for labeled rows are made here, before any work starts: a model that
cannot predict them is refused at once, and no task needs the model.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsel.arrays import Features, Integers
from dsel.checks import did_you_mean, listing, show
from dsel.data.identity import content_hash
from dsel.data.labeled import LabeledRows, codes_of
from dsel.data.splits import Split
from dsel.errors import RowError
from dsel.losses.baseline import BaselineDifference
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR
from dsel.option_values import LARGEST_CLASS
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.fitted_models import (
    PredictedShapeError,
    Predictor,
    fitted_model,
)
from dsel.typing import AnyArray, BaselineLike, Model


@dataclass(frozen=True)
class Baseline:
    """A baseline, with its predictions for every labeled row."""

    codes: Integers
    """Class codes, (n_labeled,), below 0 for a label that is no class. The largest
    class is that of the rows outside of the fold that a row is in."""
    difference: BaselineDifference
    identity: str
    """Hash of the predictions, or the name of the rule."""


def add_baseline(
    losses: DeclaredLosses,
    baseline: BaselineLike,
    method: CertificateMethod,
    X: Features,
    labeled: LabeledRows,
    folds: Sequence[Split],
) -> tuple[DeclaredLosses, Baseline | None]:
    """Return losses that compare with the baseline, and the baseline's predictions.

    Parameters
    ----------
    losses, method
        Losses and certificate of the plan.
    baseline
        A fitted classifier, a place that `open_model` opens, or `LARGEST_CLASS`; None
        for none.
    X
        The labeled rows as an array, CSR matrix or `Frame`.
    labeled
        The same with their labels.
    folds
        The splits without each fold: on the test rows of each its model is compared.

    Raises
    ------
    TypeError, ValueError
        If it is something else, cannot predict these rows and classes, or the plan does
        not certify the error of models without a fold.
    """
    if baseline is None:
        return losses, None
    check_baseline(baseline, losses, method)
    if isinstance(baseline, str) and baseline == LARGEST_CLASS:
        compared = _largest_class(labeled, folds)
    else:
        compared = _given_model(baseline, X, labeled.classes, len(folds))
    return losses.with_baseline(compared.difference), compared


def add_model(
    losses: DeclaredLosses, baseline: BaselineLike, X: Features, classes: AnyArray
) -> tuple[DeclaredLosses, Integers | None]:
    """Return losses that compare one model with a fitted one, and its predictions.

    Its training rows are not known, and neither is their largest class. Raises the
    errors of `add_baseline`.
    """
    if baseline is None:
        return losses, None
    check_baseline(baseline, losses)
    if isinstance(baseline, str) and baseline == LARGEST_CLASS:
        raise ValueError(
            f"`baseline` {baseline!r} is that of the rows that a model was trained on, "
            f"which cv='prefit' does not know; pass the fitted "
            f"sklearn.dummy.DummyClassifier(strategy='most_frequent') of these rows."
        )
    compared = _given_model(baseline, X, classes, 1)
    return losses.with_baseline(compared.difference), compared.codes


def _given_model(
    baseline: BaselineLike, X: Features, classes: AnyArray, n_folds: int
) -> Baseline:
    """Return a fitted model as the baseline of every fold."""
    if isinstance(baseline, str) and not os.path.exists(baseline):
        end = did_you_mean(baseline, [LARGEST_CLASS])
        if end != ".":
            raise FileNotFoundError(f"`baseline` {baseline!r} cannot be opened{end}")
    model = fitted_model(baseline, "baseline", others=repr(LARGEST_CLASS))
    codes = predict_baseline(model, X, classes)
    # Only its predictions are compared, so these identify it in a plan: a model that is
    # opened again is another object, and predicts the same.
    difference = BaselineDifference((f"the baseline ({describe(model)})",) * n_folds)
    return Baseline(codes, difference, f"model {content_hash(codes)}")


def check_baseline(
    baseline: BaselineLike,
    losses: DeclaredLosses,
    method: CertificateMethod | None = None,
) -> None:
    """Raise ValueError if a plan's models cannot be compared with a baseline.

    Without a `method` there is one fitted model.
    """
    for is_wrong, why in (
        (method is not None and not method.is_nested,
         f"is compared with the models of certificate='nested' with plain random "
         f"folds, got certificate={(method and method.name) or None!r}; leave one of "
         f"them out"),
        (losses.main.is_regression,
         "is for classifiers: wrong labels are compared, and of two numbers neither "
         "is right; leave it out"),
        (losses.main != ERROR,
         f"is compared by wrong labels, loss='error', got loss={losses.main!r}; leave "
         f"one of them out"),
    ):  # fmt: skip
        if is_wrong:
            raise ValueError(f"`baseline` {show(baseline)} {why}.")


def _largest_class(labeled: LabeledRows, folds: Sequence[Split]) -> Baseline:
    """Return the class with the most training rows, fold by fold.

    It is a function of the rows outside of the fold, as the fold's model is, so it does
    not depend on the labels on which both are compared. The largest class of all
    labeled rows would: it is more likely to be large in the fold, too.
    """
    n_classes = len(labeled.classes)
    codes = np.full(labeled.n_rows, -1, np.int64)
    largest_classes = []
    for split in folds:
        rows = np.bincount(labeled.y[split.train_rows], minlength=n_classes)
        largest = int(rows.argmax())  # of equal ones the first
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
    predictor = Predictor.of_rows(model, "baseline", X)
    try:
        predicted = predictor.predict(X)
    except PredictedShapeError:
        raise
    except Exception as error:  # a model of the user's may raise anything
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"`baseline` {describe(model)} cannot predict the rows of `X`: {text}. "
            f"Give the columns that it was fitted with."
        ) from error
    check_baseline_labels(predicted, classes, "predicts")
    codes = codes_of(predicted, classes)
    strange = codes < 0
    if len(own_classes):
        strange &= codes_of(predicted, own_classes) < 0
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
    if verb != "predicts" and (codes_of(labels, classes) < 0).all():
        found, known = (
            listing([show(label) for label in some.tolist()], 5)
            for some in (labels, classes)
        )
        raise ValueError(
            f"`baseline` {verb} {found}, none of which is one of `y` ({known}); {way}."
        )


def describe(model: Model) -> str:
    """Return the class name of a model, or of the last step of a pipeline."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps and hasattr(model, "named_steps"):
        return f"Pipeline with {type(steps[-1][1]).__name__}"
    return type(model).__name__
