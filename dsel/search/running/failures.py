"""Failed candidates: when they end a run, and what their messages are about."""

import re
from ast import literal_eval
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.checks import show
from dsel.data.frames import Frame
from dsel.data.labeled import LabeledRows
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results.certificate import params_text
from dsel.rounded_texts import count_of
from dsel.search.engine.counts import SearchCounts
from dsel.search.running.planned_search import PlannedSearch


def check_failures(
    plan: PlannedSearch, counts: SearchCounts, unpredicting: NDArray[np.bool_]
) -> None:
    """Warn of failed candidates; raise AllFitsFailedError if none is left."""
    has_failed = counts.status == names.STATUS_FAILED
    failed = np.flatnonzero(has_failed)
    if unpredicting.any() and (has_failed | unpredicting).all():
        number = int(np.argmax(unpredicting))
        raise AllFitsFailedError(
            f"no candidate can predict; `predict` of candidate {number} "
            f"({params_text(plan.axes.candidates[number])}) raised on all rows: "
            f"{name_column(counts.message_of(number), plan.labeled)}"
        )
    if not len(failed):
        return
    number = int(failed[0])
    message = name_column(counts.message_of(number), plan.labeled).rstrip(".")
    first = f"candidate {number} ({plan.axes.candidates[number]}): {message}"
    if len(failed) == plan.n_candidates:
        several = f"all {len(failed)} candidates failed; the first was {first}"
        alone = f"the only candidate failed: {message}"
        raise AllFitsFailedError(f"{alone if len(failed) == 1 else several}.")
    # The searches that do not read the failed fit may still choose its candidate.
    where = " by all folds" * plan.method.is_nested
    warn(
        f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be chosen"
        f"{where}; the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )


def name_column(text: str, labeled: LabeledRows) -> str:
    """Return the message of a fit with the column or class that it is about, if known.

    Learners see arrays and class codes, so what they raise has the value alone.
    """
    if "Invalid classes inferred" in text and len(labeled.classes):  # by XGBoost
        n_rows = np.bincount(labeled.y).tolist()
        label = show(labeled.classes.tolist()[n_rows.index(min(n_rows))])
        return (
            f"{text.rstrip('.')} (class {label} has only {count_of(min(n_rows), 'row')}"
            f", and this learner fits no rows without it; label more rows of it, or "
            f"leave out its rows)"
        )
    X = labeled.X
    if not isinstance(X, Frame):
        return text
    frame, name = X.given, None
    word = re.search(r"could not convert string to float: ('[^']*'|\"[^\"]*\")", text)
    if word:
        with suppress(SyntaxError, ValueError):
            value = literal_eval(word[1])
            has_value = ((n, (frame[n] == value).any()) for n in frame.columns)
            name = next((n for n, is_there in has_value if is_there), None)
    elif re.search(r"\b(NaN|infinity|missing values)\b", text):
        gaps = frame.columns[np.asarray(frame.isna().any())]
        name = next(iter(gaps), None)
    return text if name is None else f"{text.rstrip('.')} (column {name!r})"
