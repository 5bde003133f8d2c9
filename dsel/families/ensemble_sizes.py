"""Ensembles that begin with the members of smaller ones, whose fits they contain.

With one seed scikit-learn's forests, bagging and boosting draw for one member after the
other, so that an ensemble of 30 members is exactly the beginning of one of 100.
`warm_start` and `staged_predict` of scikit-learn rely on this.
"""

import uuid
from collections.abc import Callable, Mapping
from copy import copy
from hashlib import blake2b
from io import BytesIO
from numbers import Integral
from typing import Any, Final

import cloudpickle
import numpy as np
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline

from dsel.families.prefixes import has_prefix


def _keep_forest(model: Any, size: int) -> None:
    model.estimators_ = model.estimators_[:size]


def _keep_bagging(model: Any, size: int) -> None:
    _keep_forest(model, size)
    model.estimators_features_ = model.estimators_features_[:size]
    model._seeds = model._seeds[:size].copy()


def _keep_boosting(model: Any, size: int) -> None:
    """Cut a fitted boosting model to its first `size` stages, in place."""
    model.n_estimators_ = size
    per_stage = ["estimators_", "train_score_"]
    if model.subsample < 1.0:
        per_stage += ["oob_improvement_", "oob_scores_"]
    for name in per_stage:
        setattr(model, name, getattr(model, name)[:size].copy())
    if model.subsample < 1.0:
        model.oob_score_ = model.oob_scores_[-1]


def _keep_histograms(model: Any, size: int) -> None:
    model._predictors = model._predictors[:size]
    # With early stopping the first scores are those without any tree.
    model.train_score_ = model.train_score_[: size + 1].copy()
    model.validation_score_ = model.validation_score_[: size + 1].copy()


BAGGING: Final = BaggingClassifier, BaggingRegressor
# A subclass may fit in another way. AdaBoost is left out: few grids hold its size
# alone.
ENSEMBLES: Final[Mapping[type, tuple[str, Callable[[Any, int], None]]]] = {
    BaggingClassifier: ("n_estimators", _keep_bagging),
    BaggingRegressor: ("n_estimators", _keep_bagging),
    ExtraTreesClassifier: ("n_estimators", _keep_forest),
    ExtraTreesRegressor: ("n_estimators", _keep_forest),
    GradientBoostingClassifier: ("n_estimators", _keep_boosting),
    GradientBoostingRegressor: ("n_estimators", _keep_boosting),
    HistGradientBoostingClassifier: ("max_iter", _keep_histograms),
    HistGradientBoostingRegressor: ("max_iter", _keep_histograms),
    RandomForestClassifier: ("n_estimators", _keep_forest),
    RandomForestRegressor: ("n_estimators", _keep_forest),
}
"""The parameter of the size of each class, and the function that keeps the first
members of a copy."""


def size_parameter(estimator: Any) -> str:
    """Return the parameter of the size, if a larger fit contains each smaller one.

    Return "" otherwise. The ensemble may be the last step of a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> forest = RandomForestClassifier()
    >>> size_parameter(make_pipeline(StandardScaler(), forest))
    'randomforestclassifier__n_estimators'
    >>> size_parameter(forest.set_params(oob_score=True))
    ''
    """
    prefix, last = "", estimator
    if has_prefix(estimator):
        step, last = estimator.steps[-1]
        prefix = f"{step}__"
    if type(last) not in ENSEMBLES:
        return ""
    name, _ = ENSEMBLES[type(last)]
    params = last.get_params(deep=True)
    size, seed = params[name], params["random_state"]
    shares = (
        _is_integer(size)
        and size > 0
        and (seed is None or _is_integer(seed))
        # Their output and warnings depend on the size.
        and not params["verbose"]
        and not params["warm_start"]
        and not params.get("oob_score")
        and (name == "max_iter" or params.get("n_iter_no_change") is None)
        # The deviation at which this loss turns linear is that of the last stage.
        and params.get("loss") != "huber"
        # With several processes a model depends on how its members are split.
        and not (type(last) in BAGGING and params["n_jobs"] not in (None, 1))
        # Learners of other packages may depend on how many were fitted before.
        and all(
            type(inner).__module__.startswith("sklearn.")
            for inner in params.values()
            if hasattr(inner, "fit")
        )
    )
    return f"{prefix}{name}" if shares else ""


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def keep_members(model: Any, size: int) -> Any:
    """Return a copy of a fitted model with the first members of its ensemble.

    The copy shares these with the model. A model without members, as for rows of a
    single class, is copied unchanged.
    """
    if type(model) is Pipeline:
        return with_last_step(model, keep_members(model.steps[-1][1], size))
    smaller = copy(model)
    if type(model) in ENSEMBLES:
        name, keep = ENSEMBLES[type(model)]
        setattr(smaller, name, size)
        keep(smaller, size)
    return smaller


def with_last_step(pipeline: Pipeline, last: Any) -> Pipeline:
    """Return a copy of a pipeline with another last step; it shares the others."""
    new_pipeline = copy(pipeline)
    new_pipeline.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], last)]
    return new_pipeline


class _WithoutGenerators(cloudpickle.Pickler):
    """Pickles random generators as if all had the same state."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (np.random.RandomState, np.random.Generator)):
            return str, (type(obj).__name__,)
        return super().reducer_override(obj)


def hash_pickle(model: Any) -> str:
    """Return a hash of a model's pickle, the same if a larger ensemble was fitted.

    Boosting keeps its generator, whose state depends on the number of members that were
    drawn, but no prediction depends on it. A model that cannot be pickled equals no
    other model.
    """
    last, file = model.steps[-1][1] if has_prefix(model) else model, BytesIO()
    is_ensemble = type(last) in ENSEMBLES
    pickler = _WithoutGenerators if is_ensemble else cloudpickle.Pickler
    try:
        pickler(file).dump(model)
    except Exception:  # pickling runs the user's code, which may raise anything
        return uuid.uuid4().hex
    return blake2b(file.getbuffer(), digest_size=12).hexdigest()
