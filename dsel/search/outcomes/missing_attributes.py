"""Errors of attributes that an outcome lacks, with the code that has them."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from sklearn.pipeline import Pipeline

from dsel.checks import attribute_error
from dsel.old_names import names_of
from dsel.results import Choice
from dsel.results.choice import NAMES_IN_OUTCOME
from dsel.search.outcomes.certified_models import CertifiedModels

WAYS: Final[Mapping[str, str]] = {
    "report": "dsel.write_report(outcome, path) writes a page, and `certified_report` "
    "has the limits of each class",
    "summary": "print(outcome) has it",
}
"""Ways to what users look for under these names."""
OF_MODEL: Final = (
    "classes_",
    "decision_function",
    "predict_log_proba",
    "predict_proba",
)
"""Attributes that an outcome has if its deployed model has them."""
OF_ROWS: Final[Mapping[str, str]] = {
    "feature_names_in_": "the labeled rows had no names of columns",
    "n_features_in_": "it is opened, and its folder has no number of columns",
}
"""Attributes that an outcome has if its labeled rows have them, with why not."""
FITTED_PARTS: Final = ("best_estimator_", "estimator_", "regressor_", "model_")
"""Attributes in which searches, wrappers and functions keep the model that they fit."""


def missing_attribute(outcome: CertifiedModels, name: str) -> AttributeError:
    """Return the error of an attribute that an outcome lacks, with what has it."""
    end = ""
    if name in OF_MODEL:  # the model lacks it
        end = f"; {type(outcome.model).__name__} has none."
    elif name in OF_ROWS:
        return AttributeError(f"an outcome has no attribute {name!r}: {OF_ROWS[name]}.")
    elif path := _path_in_model(outcome, name):
        end = f"; it is `{path}` here."
    elif name in NAMES_IN_OUTCOME:
        end = f"; it is `{NAMES_IN_OUTCOME[name].removeprefix('outcome.')}` here."
    elif name in WAYS:
        end = f"; {WAYS[name]}."
    elif not name.startswith("_") and name in names_of(Choice):
        end = f"; it is `choice.{name}` here."
    return attribute_error("an outcome", name, names_of(type(outcome)), end)


def _path_in_model(outcome: CertifiedModels, name: str) -> str:
    """Return the code that reads what `fit` has set in the model; "" if it is not.

    A search that was certified as it is has its own `cv_results_`.
    """
    if not name.endswith("_") or name.startswith("_"):
        return ""
    with suppress(Exception):  # a stored model may need types that are not trusted
        return code_of_attribute(outcome.model, name, "model")
    return ""


def code_of_attribute(model: Any, name: str, path: str) -> str:
    """Return the code that reads an attribute of a fitted model, or of a part of it.

    `path` is the code of the model. "" if no part has the attribute.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(Ridge()).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> code_of_attribute(model, "coef_", "model")
    "model['ridge'].coef_"
    """
    if hasattr(model, name):
        return f"{path}.{name}"
    parts = {f"{path}.{part}": getattr(model, part, None) for part in FITTED_PARTS}
    if isinstance(model, Pipeline):
        steps = reversed(model.steps)
        parts = {f"{path}[{step!r}]": part for step, part in steps}
    found = (code_of_attribute(part, name, way) for way, part in parts.items() if part)
    return next(filter(None, found), "")
