"""Messages of fits, each with the problem that it is about."""

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from dsel import names
from dsel.runtime.tasks import keep_filters

_LOCK = threading.Lock()
_FILTERS = ExitStack()
_MESSAGES: dict[int, "list[FitMessage]"] = {}  # warnings of each thread that fits
_FAILED_FITS: Final = re.compile(r"(\d+) fits failed out of a total of (\d+)")
_REASON: Final = re.compile(r"^(?:\w+\.)*\w+: .*(?=\n+(?:-{9}.*)?\Z|\n+-{9})", re.M)
NOT_FINITE: Final = "One or more of the test scores are non-finite"
"""Warning of scikit-learn's searches, which follows the warning about failed fits."""


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


@contextmanager
def collect_warnings() -> Iterator[list[FitMessage]]:
    """Collect warnings that a fit did not converge, or failed in part, unshown.

    Otherwise they would be shown once for each of many fits, or in the log of a worker.
    Warning filters belong to the process: when several threads fit, the first one sets
    the filters and the last one restores them. A fit may contain others in its thread,
    such as those of a search; each collects its own warnings.
    """
    thread = threading.get_ident()
    with keep_filters():
        with _LOCK:
            if not _MESSAGES:
                _FILTERS.enter_context(warnings.catch_warnings())
                for category in (ConvergenceWarning, FitFailedWarning):
                    warnings.simplefilter("always", category)
                warnings.filterwarnings("ignore", NOT_FINITE)
                warnings.showwarning = partial(_notice, warnings.showwarning)
            outer = _MESSAGES.get(thread)
            messages = _MESSAGES[thread] = []
        try:
            yield messages
        finally:
            with _LOCK:
                if outer is None:
                    del _MESSAGES[thread]
                else:
                    _MESSAGES[thread] = outer
                if not _MESSAGES:
                    _FILTERS.close()


def _notice(
    show: Callable[..., None], message: object, category: Any, *where: Any
) -> None:
    messages = _MESSAGES.get(threading.get_ident())
    if messages is not None and issubclass(category, ConvergenceWarning):
        stopped = f"ConvergenceWarning: {message}".splitlines()[0]
        messages.append(FitMessage(FitProblem.STOPPED, stopped))
    elif messages is not None and issubclass(category, FitFailedWarning):
        messages.append(FitMessage(FitProblem.PARTLY, _failed_fits(str(message))))
    else:
        show(message, category, *where)


def _failed_fits(text: str) -> str:
    """Return scikit-learn's text about the failed fits of a search in one line."""
    counts = _FAILED_FITS.search(text)
    reasons = _REASON.findall(text)
    # "sklearn.utils._param_validation.InvalidParameterError: The 'C' parameter ..."
    why = "; ".join(reason.partition(": ")[2].rstrip(".") for reason in reasons[:2])
    n, n_fits = counts.groups() if counts else ("some", "its")
    return f"{n} of {n_fits} fits failed: {why or text.splitlines()[0]}"


def message_of_text(text: str, *, has_failed: bool) -> FitMessage | None:
    """Return the message of a fit of dsel 0.2, which stored a text; None for ""."""
    if not text:
        return None
    if has_failed:
        return FitMessage(FitProblem.FAILED, text)
    # These are the two texts of 0.2 about fits that stopped; new ones do not belong
    # here.
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
    for candidate, text in enumerate(cube[names.MESSAGE].values.ravel()):
        if problems[candidate] is None and isinstance(text, str):
            has_failed = bool(status[candidate] == names.STATUS_FAILED)
            message = message_of_text(text, has_failed=has_failed)
            problems[candidate] = None if message is None else message.problem
    return problems
