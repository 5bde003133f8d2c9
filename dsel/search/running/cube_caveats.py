"""Caveats that the cube of a search gives to any choice from it."""

import json
from collections.abc import Iterable
from math import floor
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds import pair_error_bound
from dsel.criteria.base import CandidateCounts
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import attribute
from dsel.results.cube import read_counts
from dsel.results.fit_messages import FitProblem, problems_of_cube
from dsel.results.records import from_record

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


def caveats_of(cube: xr.Dataset, others: Iterable[Caveat] = ()) -> tuple[Caveat, ...]:
    """Return the caveats of any choice from a cube, together with `others`."""
    caveats = collect_caveats(run_caveats(cube), others, caveats_of_counts(cube))
    return tuple(each for each in caveats if each.effect is not Effect.VOIDS)


def caveats_of_counts(cube: xr.Dataset) -> list[Caveat]:
    """Return the caveats of a choice that come from the counts of its search."""
    counts = read_counts(cube)
    return [*_caveats_of_fits(cube, counts), *_caveats_of_disagreements(counts)]


def _caveats_of_fits(cube: xr.Dataset, counts: CandidateCounts) -> list[Caveat]:
    """Return a caveat for each kind of problem, with the number of its candidates."""
    caveats: list[Caveat] = []
    has_failed = counts[names.STATUS] == names.STATUS_FAILED
    problems = problems_of_cube(cube)
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


def _caveats_of_disagreements(counts: CandidateCounts) -> list[Caveat]:
    """Return a caveat if the models differ more often than their errors explain."""
    if not {names.OUTER_ERRORS, names.OUTER_DISAGREEMENTS} <= counts.keys():
        return []
    # Two models that differ on a row cannot both be right there: half of the lower
    # limit of their disagreement is one of the mean of their errors, and needs no
    # label. It is no limit for either of them alone. Rows that equal labeled ones may
    # be records that one of both was trained on.
    pairs, errors = counts[names.OUTER_DISAGREEMENTS], counts[names.OUTER_ERRORS]
    pairs = pairs - counts.get(names.OUTER_DUPLICATE_DISAGREEMENTS, 0)
    delta = CAVEAT_DELTA / len(pairs)
    limits = pair_error_bound(pairs, counts[names.N_UNLABELED], delta=delta)
    at_least = float(limits.mean())
    error_rate = float(np.mean(errors / counts[names.FOLD_ROWS]))
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
