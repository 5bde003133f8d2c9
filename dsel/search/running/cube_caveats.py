"""Caveats of a search: from its plan and its pool, and from its counts.

A choice at the end of a search gets them from its counts; one that is made later, by
`select`, from the cube.
"""

import json
import re
from ast import literal_eval
from collections.abc import Iterable
from contextlib import suppress
from math import floor
from typing import TYPE_CHECKING, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Integers
from dsel.bounds import pair_error_bound
from dsel.data.frames import Frame
from dsel.data.labeled import LabeledRows
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.losses.error_rate import ERROR
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import attribute, params_text
from dsel.results.cube import read_counts
from dsel.results.fit_messages import FitProblem, problems_of_cube
from dsel.results.records import from_record
from dsel.search.engine.counts import SearchCounts
from dsel.typing import AnyArray

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

CAVEAT_DELTA: Final = 0.05
"""Probability that the limit in a caveat about disagreements is wrong; its text says
95% confidence, whatever the delta of the search is."""


def run_caveats(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of a cube that come from the plan and the pool."""

    def read(text: str) -> tuple[Caveat, ...]:
        return tuple(from_record(Caveat, each) for each in json.loads(text))

    def read_texts(text: str) -> tuple[Caveat, ...]:
        return tuple(make_caveats(Effect.VOIDS, map(str, json.loads(text))))

    return collect_caveats(
        attribute(cube, names.CAVEATS, read, ()),
        attribute(cube, "objections", read_texts, ()),  # cubes of 0.2 have texts
    )


def voiding_caveats(cube: xr.Dataset) -> list[Caveat]:
    """Return the caveats of a run that void all numbers of its cube."""
    return [each for each in run_caveats(cube) if each.effect is Effect.VOIDS]


def caveats_of(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of any choice from a cube."""
    counts, problems = read_counts(cube), problems_of_cube(cube)
    errors, differ = (
        counts.get(name) for name in (names.OUTER_ERRORS, names.OUTER_DISAGREEMENTS)
    )
    added = caveats_of_fits(counts[names.STATUS], problems)
    if errors is not None and differ is not None:
        duplicates = counts.get(names.OUTER_DUPLICATE_DISAGREEMENTS, 0)
        fresh, n_pool_rows = differ - duplicates, int(counts[names.N_UNLABELED])
        added += caveats_of_disagreements(
            errors, counts[names.FOLD_ROWS], fresh, n_pool_rows
        )
    return join_caveats(run_caveats(cube), added)


def join_caveats(*groups: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return the caveats of a choice, without those that void its numbers."""
    caveats = collect_caveats(*groups)
    return tuple(each for each in caveats if each.effect is not Effect.VOIDS)


def caveats_of_search(counts: SearchCounts) -> list[Caveat]:
    """Return the caveats that come from the counts of a search."""
    problems = np.full(len(counts.status), None, object)
    for number, message in counts.messages.items():
        problems[number] = message.problem
    caveats, evidence = caveats_of_fits(counts.status, problems), counts.evidence
    if evidence is not None and ERROR.statistic in evidence.pool:
        folds, pool = evidence.folds[ERROR.statistic], evidence.pool[ERROR.statistic]
        caveats += caveats_of_disagreements(
            folds.integers, folds.n_rows, pool.counts - pool.duplicates, pool.n_rows
        )
    return caveats


def caveats_of_fits(status: AnyArray, problems: NDArray[np.object_]) -> list[Caveat]:
    """Return a caveat for each kind of problem, with the number of its candidates."""
    caveats: list[Caveat] = []
    has_failed = status == names.STATUS_FAILED
    has_raised = (problems == FitProblem.UNPREDICTED) & ~has_failed
    has_stopped = problems == FitProblem.STOPPED
    unscaled = "stopped before they converged; scale the features, or raise `max_iter`"
    for has_problem, text in (
        (has_failed, "{} failed"),
        (has_raised, "{} raised in `predict`, so rows count as errors: see `message`"),
        (has_stopped, "fits of {} " + unscaled),
    ):
        if n := int(has_problem.sum()):
            candidates = f"{n} candidate{'s' * (n > 1)}"
            caveats.append(Caveat(Effect.INFO, text.format(candidates)))
    return caveats


def caveats_of_disagreements(
    errors: Integers, fold_rows: Integers, differ: Integers, n_pool_rows: int
) -> list[Caveat]:
    """Return a caveat if the models differ more often than their errors explain.

    `errors` are those of the models without a fold, (n_folds,); `differ` the pool rows
    on which they differ from that of all rows, without duplicates of labeled rows.
    """
    # Two models that differ on a row cannot both be right there: half of the lower
    # limit of their disagreement is one of the mean of their errors, and needs no
    # label. It is no limit for either of them alone. Rows that equal labeled ones may
    # be records that one of both was trained on.
    delta = CAVEAT_DELTA / len(differ)
    at_least = float(pair_error_bound(differ, n_pool_rows, delta=delta).mean())
    error_rate = float(np.mean(errors / fold_rows))
    if round(at_least, 3) <= round(error_rate, 3):  # as they are printed
        return []
    text = (
        f"the models trained without a fold err on {100 * error_rate:.1f}% of the "
        f"labeled rows that they have not seen, but differ so often from the model "
        f"trained on all labels that, of pool rows, the mean of their error and its "
        f"error is at least {floor(1000 * at_least) / 10:.1f}% (95% confidence): its "
        f"error is far larger, or the labeled rows are few, unlike the pool, or not "
        f"independent"
    )
    return [Caveat(Effect.WEAKENS, text)]


def check_failures(
    plan: "Plan", counts: SearchCounts, unpredicting: NDArray[np.bool_]
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
    warn(
        f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be "
        f"chosen; the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )


def name_column(text: str, labeled: LabeledRows) -> str:
    """Return the message of a fit with the column that it is about, if one is found.

    Learners see arrays, so what they raise has the value alone.
    """
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
