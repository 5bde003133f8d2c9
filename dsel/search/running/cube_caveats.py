"""Caveats of a choice from the plan, the pool and the counts.

A choice at the end of a search gets them from its counts; a later choice, by `select`,
gets them from the cube. Where no candidate is left, `check_failures` ends the run.
"""

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import floor
from typing import Final, ParamSpec, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Bools, Integers
from dsel.bounds import pair_error_bound
from dsel.checks import listing, show
from dsel.data.frames import Frame
from dsel.data.labeled import LabeledRows
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.families.family import error_line
from dsel.results.candidate_tables import all_params
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.cube import read_counts
from dsel.results.fit_messages import FitProblem, problems_of_cube
from dsel.results.params_texts import params_text
from dsel.results.records import from_record, read_attribute
from dsel.rounded_texts import count_of, shorten_text
from dsel.search.engine.counts import SearchCounts
from dsel.typing import AnyArray, Options

P = ParamSpec("P")
T = TypeVar("T")
MOST_CANDIDATES_NAMED: Final = 3
"""Most candidates that a note names."""
CAVEAT_DELTA: Final = 0.05
"""Probability that the limit in a caveat about disagreements is wrong. The text says
95% confidence, whatever the delta of the search is."""


class Advice:
    """Caveats and forecasts about fits that are made already, which no error may lose.

    Models of the user's and rare data reach this code after hours of fits. A function
    that raises becomes a warning with its name, in the place of what it would say.
    """

    def __init__(self) -> None:
        self.caveats: list[Caveat] = []

    def add(
        self,
        function: Callable[P, Iterable[Caveat]],
        *args: P.args,
        **params: P.kwargs,
    ) -> None:
        """Add the caveats that a function returns.

        Those that void a number are found by functions that are called directly: here
        an exception would leave the number certified, with only a warning.
        """
        self.caveats += self.call_safely(function, *args, **params) or ()

    def call_safely(
        self, function: Callable[P, T], *args: P.args, **params: P.kwargs
    ) -> T | None:
        """Return what a function returns; None, with a warning, if it raises."""
        try:
            return function(*args, **params)
        except Exception as error:
            text = (
                f"`{function.__name__}` of dsel failed ({error_line(error)}): what it "
                f"checks is not known, and no bound depends on it"
            )
            self.caveats.append(Caveat(Effect.WARNS, text))
            return None


def run_caveats(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of a cube that come from the plan and the pool."""

    def read(text: str) -> tuple[Caveat, ...]:
        return tuple(from_record(Caveat, record) for record in json.loads(text))

    def read_texts(text: str) -> tuple[Caveat, ...]:
        return tuple(make_caveats(Effect.VOIDS, map(str, json.loads(text))))

    return collect_caveats(
        read_attribute(cube, names.CAVEATS, read, ()),
        read_attribute(cube, "objections", read_texts, ()),  # cubes of 0.2 have texts
    )


def caveats_of(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of any choice from a cube."""
    counts = read_counts(cube)
    texts = cube[names.MESSAGE].values.ravel() if names.MESSAGE in cube else ()
    advice, candidates = Advice(), all_params(cube)
    advice.add(
        caveats_of_fits,
        counts[names.STATUS],
        problems_of_cube(cube),
        texts,
        candidates,
    )
    if names.OUTER_ERRORS in counts and names.OUTER_DISAGREEMENTS in counts:
        duplicates = counts.get(names.OUTER_DUPLICATE_DISAGREEMENTS, 0)
        advice.add(
            caveats_of_disagreements,
            counts[names.OUTER_ERRORS],
            counts[names.FOLD_ROWS],
            counts[names.OUTER_DISAGREEMENTS] - duplicates,
            int(counts[names.N_UNLABELED]),
        )
    return caveats_of_choice(run_caveats(cube), advice.caveats)


def caveats_of_choice(*caveat_lists: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return the caveats of a choice, without those that void its numbers."""
    caveats = collect_caveats(*caveat_lists)
    return tuple(c for c in caveats if c.effect is not Effect.VOIDS)


def caveats_of_fits(
    status: AnyArray,
    problems: NDArray[np.object_],
    texts: Sequence[str] | AnyArray,
    candidate_params: Sequence[Options],
) -> list[Caveat]:
    """Return a caveat for each kind of problem, which names the first candidates.

    `problems` and `texts` are those of the candidates' messages.
    """
    caveats: list[Caveat] = []
    has_failed = status == names.STATUS_FAILED
    has_raised = (problems == FitProblem.UNPREDICTED) & ~has_failed
    has_stopped = problems == FitProblem.STOPPED
    for has_problem, text, advice in (
        (has_failed, "{} failed{examples}", ""),
        (
            has_raised,
            "{} raised in `predict`{examples}, so rows count as errors: see `message`",
            "",
        ),
        (
            has_stopped,
            "fits of {} stopped before they converged",
            "scale the features, or raise `max_iter`",
        ),
    ):
        if n := int(has_problem.sum()):
            named = np.array(candidate_params, object)[has_problem.ravel()]
            examples = ""
            if len(candidate_params) > 1:
                shown = [f"({params_text(params)})" for params in named]
                examples = " " + shorten_text(
                    listing(shown, MOST_CANDIDATES_NAMED), 200
                )
            text = text.format(count_of(n, "candidate"), examples=examples)
            caveats.append(Caveat(Effect.INFO, text, advice=advice))
    failed_in_part = np.flatnonzero(problems == FitProblem.PARTLY)
    if len(failed_in_part):
        text = (
            f"a candidate that is a search could not fit all of its own grid, and "
            f"chose among the others: {texts[failed_in_part[0]]}"
        )
        caveats.append(Caveat(Effect.INFO, text.rstrip(".")))
    return caveats


def caveats_of_disagreements(
    errors: Integers, fold_rows: Integers, differ: Integers, n_pool_rows: int
) -> list[Caveat]:
    """Return a caveat if the models differ more often than their errors explain.

    `errors` are those of the models without a fold, (n_folds,), and `differ` are the
    pool rows on which these differ from the model of all rows, without duplicates of
    labeled rows.
    """
    # Two models that differ on a row cannot both be right there: half of the lower
    # limit of their disagreement is one of the mean of their errors, and needs no
    # label. It is no limit for either of them alone. Rows that equal labeled ones may
    # be records on which one of the models was trained.
    delta = CAVEAT_DELTA / len(differ)
    at_least = float(pair_error_bound(differ, n_pool_rows, delta=delta).mean())
    error_rate = float(np.mean(errors / fold_rows))
    if round(at_least, 3) <= round(error_rate, 3):  # compared as they are printed
        return []
    text = (
        f"the models trained without a fold err on {100 * error_rate:.1f}% of the "
        f"labeled rows that they have not seen. On the pool they differ so often from "
        f"the model trained on all labels that the mean of their error and its error "
        f"is at least {floor(1000 * at_least) / 10:.1f}% (95% confidence). So its "
        f"error is far larger, or the labeled rows are few, unlike the pool, or not "
        f"independent"
    )
    return [Caveat(Effect.WEAKENS, text)]


def check_failures(
    search_counts: SearchCounts,
    candidate_params: Sequence[Options],
    labeled: LabeledRows,
    *,
    unpredicting: Bools,
    is_nested: bool,
) -> None:
    """Warn of failed candidates; raise AllFitsFailedError if none is left.

    `unpredicting` are flags of the candidates whose `predict` raised in every call.
    """
    has_failed = search_counts.status == names.STATUS_FAILED
    failed = np.flatnonzero(has_failed)
    if unpredicting.any() and (has_failed | unpredicting).all():
        candidate = int(np.argmax(unpredicting))
        raise AllFitsFailedError(
            f"no candidate can predict; `predict` of candidate {candidate} "
            f"({params_text(candidate_params[candidate])}) raised on all rows: "
            f"{name_column(search_counts.message_of(candidate), labeled)}"
        )
    if not len(failed):
        return
    candidate = int(failed[0])
    message = name_column(search_counts.message_of(candidate), labeled).rstrip(".")
    first = f"candidate {candidate} ({candidate_params[candidate]}): {message}"
    n_candidates = len(candidate_params)
    if len(failed) == n_candidates:
        several = f"all {len(failed)} candidates failed; the first was {first}"
        alone = f"the only candidate failed: {message}"
        raise AllFitsFailedError(f"{alone if len(failed) == 1 else several}.")
    # The searches that do not read the failed fit may still choose its candidate.
    where = " by all folds" if is_nested else ""
    warn(
        f"{len(failed)} of {n_candidates} candidates failed and cannot be chosen"
        f"{where}; the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )


def name_column(text: str, labeled: LabeledRows) -> str:
    """Return the message of a fit, with the column or class that it is about, if known.

    Learners get arrays and class codes, so their messages have only the value.
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
    frame = X.given
    name = None
    word = re.search(r"could not convert string to float: ('[^']*'|\"[^\"]*\")", text)
    if word:
        with suppress(SyntaxError, ValueError):
            value = literal_eval(word[1])
            has_value = ((n, (frame[n] == value).any()) for n in frame.columns)
            name = next((n for n, is_there in has_value if is_there), None)
    elif re.search(r"\b(NaN|infinity|missing values)\b", text):
        gaps = frame.columns[np.asarray(frame.isna().any())]
        name = next(iter(gaps), None)
    elif re.search(r"Timestamp|Timedelta|datetime64|DatetimeArray", text):
        times = (column for column in X.schema.columns if column.is_time)
        if (column := next(times, None)) is not None:
            return f"{text.rstrip('.')} (column {column.name!r}; {X.way_to_encode})"
    return text if name is None else f"{text.rstrip('.')} (column {name!r})"
