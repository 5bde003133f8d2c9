"""Models of `dsel select` by name, and grids from the command line."""

import importlib
import math
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
from dsel.checks import did_you_mean
from dsel.cli.encoders import encoders, leave_out
from dsel.cli.users_code import users_code
from dsel.data.identity import is_installed
from dsel.data.kinds import TextReason
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

MOST_VALUES: Final = 10_000
"""Most values of one parameter that a range may have."""
NAMED: Final = {"true": True, "false": False, "none": None}


def default_model(grid: Sequence[str], *, is_regression: bool) -> str:
    """Return the default of ``--model``: one name, or several.

    Values of parameters are those of one model.
    """
    names = parse_grid(grid).keys()
    if is_regression or not names:
        return DEFAULT_MODELS[is_regression]
    fitting = (m for m in MODELS_OF_GRID if names <= MODELS[m][0].get_params().keys())
    return next(fitting, MODELS_OF_GRID[0])


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
) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Return estimator and grid for rows `X`, and descriptions of the encoders.

    Several names, separated by commas, are one search over the grids of all.
    `why_texts` has the reasons why the reader took columns for texts. `has_groups` is
    whether a column has groups. Ids must be among `pool_columns`. The model must not
    use the column `unused`. If `weighs_classes`, the grid of a named classifier has
    `class_weight`, too.
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
    for model_name in named:
        if model_name not in models:
            raise click.BadParameter(
                f"{model_name!r} is none of {', '.join(models)}; models of other "
                f"packages are MODULE:OBJECT, such as "
                f"xgboost:XGBClassifier{did_you_mean(model_name, models)}",
                param_hint="--model",
            )
    if len(named) > 1 and values:
        raise click.BadParameter(
            f"--model {name} names several models, and the values of --grid are those "
            f"of one; leave --grid out, or name one model.",
            param_hint="--grid",
        )
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


def names_of_models(text: str) -> list[str]:
    """Return the names in ``--model``: one, or several that are separated by commas."""
    if ":" in text:
        return [text]
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


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


def parse_grid(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``name=a,b,c`` or ``name=start..stop:factor``; ``2^-3`` is a power.

    Examples
    --------
    >>> parse_grid(["C=2^-1..2^3:4", "kernel=rbf,linear"])
    {'C': [0.5, 2.0, 8.0], 'kernel': ['rbf', 'linear']}
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        values = listed.split(",")
        if not (equals and name and listed):
            raise click.BadParameter(f"{text!r} is not NAME=VALUES, such as C=0.1,1,10")
        if "" in values:
            raise click.BadParameter(
                f"value {values.index('') + 1} of {text!r} is empty; leave out a comma."
            )
        if name in grid:
            raise click.BadParameter(
                f"--grid names {name!r} twice; write {name}=A,B with all its values."
            )
        start, dots, stop_and_factor = listed.partition("..")
        stop, colon, factor = stop_and_factor.partition(":")
        if dots:
            grid[name] = _range(text, start, stop, factor if colon else "2")
        else:
            grid[name] = list(map(_value, values))
    return grid


def _range(text: str, *words: str) -> list[float]:
    """Return start, start * factor, ... up to stop."""
    ends = list(map(_value, words))
    if not all(isinstance(end, int | float) for end in ends):
        raise click.BadParameter(f"{text!r} is not NAME=START..STOP:FACTOR")
    start, stop, factor = map(float, ends)
    if not (0.0 < start <= stop < math.inf and factor > 1.0):
        raise click.BadParameter(
            f"{text!r} must have 0 < START <= STOP and FACTOR > 1, as in 2^-2..2^12:4"
        )
    if math.log(stop / start) / math.log(factor) >= MOST_VALUES:
        raise click.BadParameter(
            f"{text!r} stands for more than {MOST_VALUES:,} values; take a larger "
            f"FACTOR than {factor:g}"
        )
    values = [start]
    while values[-1] * factor <= stop * (1 + 1e-9):
        values.append(values[-1] * factor)
    return values


def _value(word: str) -> Any:
    """Return the number, True, False or None that a word means, else the word."""
    if word.lower() in NAMED:
        return NAMED[word.lower()]
    base, caret, exponent = word.partition("^")
    for kind in (int, float):
        try:
            value = float(kind(base)) ** float(exponent) if caret else kind(word)
        except ValueError:
            continue
        except ArithmeticError as error:
            raise click.BadParameter(f"{word!r} is no number: {error}") from error
        if isinstance(value, complex):
            raise click.BadParameter(f"{word!r} is no real number")
        return value
    return word
