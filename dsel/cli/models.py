"""Models by name, and grids written on the command line."""

import importlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import cloudpickle
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from dsel.cli.encoders import encoders


@dataclass(frozen=True)
class BuiltIn:
    """A model that a command can name."""

    make: Callable[[], Any]
    grid: tuple[str, ...]
    """Its grid where none is given."""
    is_scaled: bool = False
    """Whether numbers are scaled before it."""


MODELS: Final = {
    "svm": BuiltIn(SVC, ("C=2^-2..2^12:4", "gamma=2^-10..2^4:4"), is_scaled=True),
    "logistic": BuiltIn(
        lambda: LogisticRegression(max_iter=1000), ("C=2^-8..2^4:4",), is_scaled=True
    ),
    "forest": BuiltIn(RandomForestClassifier, ("max_features=0.1,0.3,1.0",)),
    "boosting": BuiltIn(
        HistGradientBoostingClassifier,
        ("learning_rate=0.03,0.1,0.3", "max_leaf_nodes=7,31"),
    ),
}

MOST_VALUES: Final = 10_000
"""How many values of one parameter a range may stand for."""


def build(
    name: str, grid: Sequence[str], X: Any
) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Return estimator and grid for rows `X`, and what is done with their columns."""
    values = _once(map(parse_values, grid))
    if ":" in name:
        estimator = imported(name)
        return (estimator, values, []) if values else (None, [estimator], [])
    if name not in MODELS:
        raise click.BadParameter(
            f"{name!r} is none of {', '.join(MODELS)}, and no MODULE:OBJECT that can "
            f"be imported.",
            param_hint="--model",
        )
    model = MODELS[name]
    if name == "boosting" and sparse.issparse(X):
        raise click.BadParameter(
            "boosting takes no sparse rows; the other models do.", param_hint="--model"
        )
    steps, facts = encoders(X, is_scaled=model.is_scaled)
    values = values or _once(map(parse_values, model.grid))
    params = {
        key if "__" in key else f"model__{key}": listed
        for key, listed in values.items()
    }
    return Pipeline([*steps, ("model", model.make())]), params, facts


def imported(name: str) -> Any:
    """Return the estimator that ``module:object`` names, here or as installed.

    The object is an estimator, or a function or class that makes one when it is called.
    Processes that are started here import what lies in this folder. Workers of a
    cluster that runs get the module by value, but nothing that it imports from here.
    """
    module_name, _, object_name = name.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, object_name)
    except (ImportError, AttributeError) as error:
        raise click.BadParameter(
            f"{name!r} cannot be imported: {error}.", param_hint="--model"
        ) from error
    if (getattr(module, "__file__", None) or "").startswith(os.path.join(here, "")):
        # Distributed asks cloudpickle only for what pickle cannot find by its name.
        cloudpickle.register_pickle_by_value(module)
        del sys.modules[module_name]
    return found() if callable(found) else found


def _once(pairs: Iterable[tuple[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return a dict of pairs, refusing a name that comes twice."""
    values: dict[str, list[Any]] = {}
    for name, listed in pairs:
        if name in values:
            raise click.BadParameter(
                f"--grid names {name!r} twice; write {name}=A,B with all its values."
            )
        values[name] = listed
    return values


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Read ``name=a,b,c`` or ``name=start..stop:factor``; ``2^-3`` is a power.

    Examples
    --------
    >>> parse_values("C=2^-1..2^3:4")
    ('C', [0.5, 2.0, 8.0])
    >>> parse_values("kernel=rbf,linear")
    ('kernel', ['rbf', 'linear'])
    """
    name, equals, listed = text.partition("=")
    if not (equals and name and all(listed.split(","))):
        raise click.BadParameter(f"{text!r} is not NAME=VALUES, such as C=0.1,1,10")
    start, dots, rest = listed.partition("..")
    if not dots:
        return name, [_value(word) for word in listed.split(",")]
    stop, colon, factor = rest.partition(":")
    ends = _value(start), _value(stop), _value(factor) if colon else 2.0
    if not all(isinstance(end, int | float) for end in ends):
        raise click.BadParameter(f"{text!r} is not NAME=START..STOP:FACTOR")
    return name, _powers(text, *map(float, ends))


def _powers(text: str, start: float, stop: float, factor: float) -> list[float]:
    """Return start, start * factor, ... up to stop."""
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
    """Return a number, True, False or None where the word is one, else the word."""
    base, caret, exponent = word.partition("^")
    named = {"true": True, "false": False, "none": None}
    if word.lower() in named:
        return named[word.lower()]
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
