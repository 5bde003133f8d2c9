"""Prediction intervals of regressors, by their certified tolerance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from dsel.arrays import ArrayLike, Estimator, Floats
from dsel.bounds.tolerance import add_tolerances
from dsel.families.predictions import predict_numbers
from dsel.losses.regression import ErrorQuantile
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import Certificate, Choice
from dsel.results.certificate import loss_fields


def tolerance_certificates(choice: Choice) -> Mapping[str, Certificate]:
    """Return the certificates of a choice whose tolerances are known, by model.

    If rows are too few, the declared part of the predictions has an infinite tolerance.
    Then the largest part with a finite tolerance replaces it, if a report was declared:
    all tolerances of a report hold at once.
    """
    certificates, report = (
        choice.certificates,
        choice.by_model("tolerances").get(ONE_FOLD),
    )
    bounds = [certificate.bound for certificate in certificates.values()]
    if report is None or any(map(isfinite, bounds)):
        return certificates
    finite = np.flatnonzero(np.isfinite(report.off_by_at_most))
    if not len(finite):
        return certificates
    largest = int(max(finite, key=report.fractions.__getitem__))
    loss = ErrorQuantile(report.fractions[largest])
    return {
        name: replace(
            certificate,
            unclipped=choice.by_model("tolerances")[name].off_by_at_most[largest],
            delta=report.delta,
            **loss_fields(loss),
            label_term=np.nan,
            disagreement_term=np.nan,
            estimate=np.nan,
        )
        for name, certificate in certificates.items()
    }


def check_tolerance(choice: Choice, deploy: str | None = None) -> str:
    """Return the name of the model whose tolerance is requested.

    Raises ValueError if no tolerance of it is certified.
    """
    name = deploy or choice.deploy
    certificate = choice.certificates[name]
    if not certificate.is_tolerance or ONE_FOLD not in choice.certificates:
        raise ValueError(
            f"intervals are certified for regressors with "
            f"loss=dsel.losses.error_quantile(0.9), which is their default, got "
            f"loss={certificate.loss}; classifiers have none."
        )
    if not certificate.certified:
        raise ValueError(
            f"no tolerance is certified, since {certificate.reasons[0]}; mend that, "
            f"and search in another `out`."
        )
    return name


@dataclass(frozen=True)
class Tolerance:
    """Certified distance between the predictions of a model and their targets."""

    bound: float
    """Certified tolerance of the model of one fold."""
    fold_model: Any = None
    """The model of that fold, if the predictions are those of the model of all rows.

    Then the distance of both predictions is added, row by row. By the triangle
    inequality the interval holds for the same fraction of the rows: it misses a target
    only if the fold's model is off by more than its tolerance.
    """

    @classmethod
    def of(
        cls,
        certificates: Mapping[str, Certificate],
        name: str,
        load_model: Callable[[str], Any],
    ) -> "Tolerance":
        """Return the tolerance of a model, by its name and that of the fold's model."""
        fold_model = load_model(ONE_FOLD) if name == ALL_ROWS else None
        return cls(certificates[ONE_FOLD].bound, fold_model)

    def interval(self, X: ArrayLike, predicted: Floats) -> Floats:
        """Return prediction minus and plus tolerance, (n_rows, 2), rounded outward."""
        tolerances = np.full(len(predicted), self.bound)
        if self.fold_model is not None:
            with np.errstate(invalid="ignore"):
                apart = np.abs(predicted - predict_numbers(self.fold_model, X))
            tolerances = add_tolerances(tolerances, apart)
        # A prediction that is no finite number may be off by anything.
        is_known = np.isfinite(predicted) & np.isfinite(tolerances)
        center = np.where(is_known, predicted, 0.0)
        width = np.where(is_known, tolerances, np.inf)
        low = np.nextafter(center - width, -np.inf)
        return np.column_stack((low, np.nextafter(center + width, np.inf)))


def predict_interval(
    choice: Choice,
    models: Mapping[str, Estimator],
    X: ArrayLike,
    deploy: str | None = None,
) -> Floats:
    """Return the lower and upper end of each interval, (n_rows, 2)."""
    name = check_tolerance(choice, deploy)
    tolerance = Tolerance.of(choice.certificates, name, models.__getitem__)
    return tolerance.interval(X, predict_numbers(models[name], X))
