"""Models of `dsel select` by name, and grids from the command line."""

import importlib
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

import click
import cloudpickle
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from dsel.arrays import ArrayLike, Estimator
from dsel.cli.encoders import encoders, leave_out
from dsel.cli.grids import names_of_models, parse_grid
from dsel.cli.users_code import users_code
from dsel.data.identity import is_installed
from dsel.data.text_columns.text_reasons import TextReason
from dsel.option_values import (
    BOOSTING,
    DEFAULT_MODELS,
    FOREST,
    LOGISTIC,
    MODELS_OF_GRID,
    RIDGE,
    SVM,
)

MODELS: Final[dict[str, tuple[Any, tuple[str, ...], bool]]] = {
    SVM: (SVC(), ("C=2^-2..2^12:4", "gamma=2^-10..2^4:4"), True),
    LOGISTIC: (LogisticRegression(max_iter=1000), ("C=2^-8..2^4:4",), True),
    FOREST: (RandomForestClassifier(), ("max_features=0.1,0.3,1.0",), False),
    BOOSTING: (
        HistGradientBoostingClassifier(),
        ("learning_rate=0.03,0.1,0.3", "max_leaf_nodes=7,31"),
        False,
    ),
}
"""Classifiers by name, their default grids, and whether numbers are scaled first."""
REGRESSORS: Final[dict[str, tuple[Any, tuple[str, ...], bool]]] = {
    # The target is scaled, too: epsilon and C of an SVR are in units of the target.
    SVM: (
        TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
        ("regressor__C=2^-2..2^8:4", "regressor__gamma=2^-10..2^2:4"),
        True,
    ),
    RIDGE: (Ridge(), ("alpha=2^-8..2^12:4",), True),
    FOREST: (RandomForestRegressor(), ("max_features=0.1,0.3,1.0",), False),
    BOOSTING: (
        HistGradientBoostingRegressor(),
        ("learning_rate=0.03,0.1,0.3", "max_leaf_nodes=7,31"),
        False,
    ),
}
"""Regressors by name, as in `MODELS`."""


def default_model(grid: Sequence[str], *, is_regression: bool) -> str:
    """Return the default of ``--model``: one name, or several.

    Values of parameters are those of one model.
    """
    names = {name.casefold() for name in parse_grid(grid)}
    if is_regression or not names:
        return DEFAULT_MODELS[is_regression]
    # A name in the wrong case is refused by its own model, which suggests the right
    # one.
    for model in MODELS_OF_GRID:
        if names <= {name.casefold() for name in MODELS[model][0].get_params()}:
            return model
    return MODELS_OF_GRID[0]


def count_default_candidates(*, is_regression: bool) -> int:
    """Return the number of candidates of a search that names no model and no grid."""
    models = REGRESSORS if is_regression else MODELS
    named = names_of_models(default_model((), is_regression=is_regression))
    return sum(len(ParameterGrid(parse_grid(models[name][1]))) for name in named)


def build(
    name: str,
    grid: Sequence[str],
    X: Any,
    why_texts: Mapping[str, TextReason] = MappingProxyType({}),
    unused: str | None = None,
    *,
    is_regression: bool = False,
    weighs_classes: bool = False,
    has_groups: bool = False,
    pool_columns: Collection[str] | None = None,
    measured: Collection[str] = (),
) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Return estimator and grid for rows `X`, and descriptions of the encoders.

    Several names, separated by commas, are one search over the grids of all.
    `why_texts` has the reasons why the reader took columns for texts. `has_groups` is
    whether a column has groups. Ids must be among `pool_columns`. Columns that are
    `measured` are no keys. The model must not use the column `unused`. If
    `weighs_classes`, the grid of a named classifier has `class_weight`, too.
    """
    values = parse_grid(grid)
    models = REGRESSORS if is_regression else MODELS
    if unused is not None and ":" in name:
        raise click.BadParameter(
            f"{unused!r} is named by --report-by, too, so that it stays in the table; "
            f"a model of your own must drop it by itself.",
            param_hint="--drop",
        )
    if ":" in name:
        estimator = import_name(name)
        return (estimator, values, []) if values else (None, [estimator], [])
    named = names_of_models(name)
    if BOOSTING in named and sparse.issparse(X):
        raise click.BadParameter(
            "boosting takes no sparse rows; the other models do.", param_hint="--model"
        )
    features = X if unused is None else X.drop(columns=unused)
    # Trees do not change with the scale of a column, so one scaler serves all models.
    is_scaled = any(models[model_name][2] for model_name in named)
    steps, shown_rows = encoders(
        features,
        is_scaled=is_scaled,
        why_texts=why_texts,
        has_groups=has_groups,
        pool_columns=pool_columns,
        measured=measured,
    )
    if unused is not None:
        steps.insert(0, ("without", leave_out(unused)))
        shown_rows.append(("no feature", unused))
    grids = []
    for model_name in named:
        model, own_grid, _ = models[model_name]
        values = parse_grid(grid or own_grid)
        if isinstance(model, TransformedTargetRegressor):
            values = {
                key if "__" in key else f"regressor__{key}": listed
                for key, listed in values.items()
            }
        if weighs_classes and not grid and "class_weight" in model.get_params():
            values["class_weight"] = [None, "balanced"]
        params = {  # a name may include its step of the pipeline
            key if re.match(r"(?!regressor__).+__", key) else f"model__{key}": listed
            for key, listed in values.items()
        }
        grids.append({"model": [model]} | params if len(named) > 1 else params)
    pipeline = Pipeline([*steps, ("model", models[named[0]][0])])
    return pipeline, grids if len(named) > 1 else grids[0], shown_rows


def import_name(name: str) -> Any:
    """Return the estimator ``module:object``, from this folder or an installed package.

    The object is an estimator, or a function or class that returns one. Processes that
    are started here can import modules of this folder. Workers of a running cluster get
    the module by value, but not other modules of this folder that the module imports.
    """
    module_name, _, object_name = name.partition(":")
    try:
        with users_code(name):
            module = _import(module_name)
        named_object = getattr(module, object_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise click.BadParameter(
            f"{name!r} cannot be imported: {error}.", param_hint="--model"
        ) from error
    if _is_of_this_folder(module):
        del sys.modules[module_name]
    if not callable(named_object):
        return named_object
    try:
        with users_code(name):
            return named_object()
    # The call failed, not the user's code: the function needs arguments.
    except TypeError as error:
        raise click.BadParameter(
            f"{name!r} must be an estimator, or make one without arguments: {error}.",
            param_hint="--model",
        ) from error


def show_failure(
    name: str, estimator: Estimator | None, grid: Any, X: ArrayLike, y: ArrayLike
) -> None:
    """Fit the first candidate in this process, so that its error has a traceback.

    Tasks return messages of errors, but no tracebacks. Raises UserCodeError if the fit
    raises here, too.
    """
    if estimator is None:
        [estimator], grid = grid, {}
    first = {key: values[0] for key, values in grid.items()}
    with users_code(name):
        clone(estimator).set_params(**first).fit(X, y)


def import_from_here(types: Sequence[str]) -> None:
    """Import the modules of types; those of this folder go to workers by value."""
    for name in types:
        try:
            _import(name.rpartition(".")[0] or name)
        except ImportError as error:
            raise click.BadParameter(
                f"{name!r} cannot be imported: {error}; call from the folder of its "
                f"module, or install it.",
                param_hint="--trust",
            ) from error


def _import(name: str) -> ModuleType:
    """Import a module; one of this folder is sent to workers by value."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    module = importlib.import_module(name)
    if _is_of_this_folder(module):
        # distributed uses cloudpickle only for objects that pickle cannot import.
        cloudpickle.register_pickle_by_value(module)
    return module


def _is_of_this_folder(module: ModuleType) -> bool:
    file = Path(getattr(module, "__file__", None) or "")
    return file.is_relative_to(Path.cwd()) and not is_installed(module.__name__, file)
