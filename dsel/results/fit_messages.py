"""Messages of fits, each with the problem that it is about."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names


class FitProblem(Enum):
    """A problem of one fit, by its number in a cube; see `names.PROBLEMS`."""

    FAILED = 1
    """There is no model: `fit` raised, or the fit was given up."""
    STOPPED = 2
    """`fit` ended before it converged. The model is used."""
    UNPREDICTED = 3
    """`predict` raised on test rows, which count as errors. The model is used."""
    PARTLY = 4
    """`fit` of an inner search could not fit some candidates. The model is used."""


@dataclass(frozen=True)
class FitMessage:
    """A message of a fit, in addition to its counts."""

    problem: FitProblem
    text: str


def message_of_text(text: str, *, has_failed: bool) -> FitMessage | None:
    """Return the message of a fit of dsel 0.2, which stored a text; None for ""."""
    if not text:
        return None
    if has_failed:
        return FitMessage(FitProblem.FAILED, text)
    # The two texts of 0.2 about fits that stopped. This is no place for new ones.
    is_stopped = "ConvergenceWarning" in text or "The solver stopped" in text
    problem = FitProblem.STOPPED if is_stopped else FitProblem.UNPREDICTED
    return FitMessage(problem, text)


def problems_of_cube(cube: xr.Dataset) -> NDArray[np.object_]:
    """Return the problem that each candidate's message is about, or None."""
    status = cube[names.STATUS].values.ravel()
    problems = np.full(status.size, None, object)
    if names.MESSAGE not in cube:
        return problems
    if names.FIT_PROBLEM in cube:
        known = {problem.value: problem for problem in FitProblem}
        values = cube[names.FIT_PROBLEM].values.ravel()
        # NaN where candidates were joined whose cube has no messages.
        problems[:] = [known.get(value) for value in values]
    # Cubes of 0.2, which may have been joined with newer ones, have only the texts.
    for number, text in enumerate(cube[names.MESSAGE].values.ravel()):
        if problems[number] is None and isinstance(text, str):
            has_failed = bool(status[number] == names.STATUS_FAILED)
            message = message_of_text(text, has_failed=has_failed)
            problems[number] = None if message is None else message.problem
    return problems
