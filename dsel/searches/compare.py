"""What each criterion would choose from the same evidence."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import CRITERIA
from dsel.criteria.base import is_nested
from dsel.results import Choice
from dsel.searches.select import select


def compare(results: xr.Dataset, *, delta: float | None = None) -> xr.Dataset:
    """Return the choice of every criterion, or why it has none.

    See `results.dsel.compare`, which this is.
    """
    answers = {name: _answer(results, name, delta) for name in CRITERIA}
    rows = [_row(name, answer) for name, answer in answers.items()]
    data = {
        "candidate": np.array([row[0] for row in rows]),
        "params": _text([row[1] for row in rows]),
        "estimate": np.array([row[2] for row in rows]),
        "bound": np.array([row[3] for row in rows]),
        "is_guarantee": np.array([rule.is_guarantee for rule in CRITERIA.values()]),
        "message": _text([row[4] for row in rows]),
    }
    return xr.Dataset(
        {name: (names.CRITERION, column) for name, column in data.items()},
        coords={names.CRITERION: _text(list(answers))},
    )


def _answer(results: xr.Dataset, name: str, delta: float | None) -> Choice | str:
    try:
        return select(results, name, delta=delta)
    except ValueError as error:
        return str(error)


def _row(name: str, answer: Choice | str) -> tuple[int, str, float, float, str]:
    if isinstance(answer, str):
        return -1, "", np.nan, np.nan, answer
    # A nested certificate does not rank: the choice's own number is the inner one.
    estimate = answer.bound if is_nested(CRITERIA[name]) else answer.estimate
    params = ", ".join(f"{name}={value}" for name, value in answer.params.items())
    bound = answer.bound if answer.certificate.certified else np.nan
    return answer.candidate, params, estimate, bound, ""


def _text(lines: list[str]) -> NDArray[Any]:
    return np.array(lines, dtype=StringDType())
