"""The texts of ``--model`` and ``--grid``, whose errors need no table and no model."""

import math
from collections.abc import Sequence
from typing import Any, Final

import click

from dsel.checks import did_you_mean
from dsel.option_values import CLASSIFIERS, REGRESSORS

MOST_VALUES: Final = 10_000
"""Most values of one parameter that a range may have."""
NAMED: Final = {"true": True, "false": False, "none": None}


def names_of_models(text: str) -> list[str]:
    """Return the names in ``--model``: one, or several that are separated by commas."""
    if ":" in text:
        return [text]
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def check_models(model: str | None, grid: Sequence[str]) -> None:
    """Raise the error of click if no table could make sense of these texts."""
    values = parse_grid(grid)
    named = [] if model is None or ":" in model else names_of_models(model)
    known = list(dict.fromkeys((*CLASSIFIERS, *REGRESSORS)))
    if unknown := [name for name in named if name not in known]:
        raise click.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(known)}; models of other packages "
            f"are MODULE:OBJECT, such as xgboost:XGBClassifier"
            f"{did_you_mean(unknown[0], known)}",
            param_hint="--model",
        )
    if len(named) > 1 and values:
        raise click.BadParameter(
            f"--model {model} names several models, and the values of --grid are those "
            f"of one; leave --grid out, or name one model.",
            param_hint="--grid",
        )


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
