"""Coverage audit: how often certificates fail where the truth is known."""

from collections.abc import Sequence
from typing import Final
from zlib import crc32

import numpy as np
import xarray as xr
from scipy import stats
from sklearn.utils.parallel import Parallel, delayed

from dsel import names
from dsel.arrays import Integers, RandomState
from dsel.auditing.settings import SETTINGS
from dsel.checks import (
    check_choice,
    check_delta,
    check_integer,
    check_probabilities,
    check_strings,
    explain_unknown,
)
from dsel.data.row_random import seed_from
from dsel.errors import AllFitsFailedError
from dsel.runtime.clients import count_threads
from dsel.runtime.tasks import hide_inner_progress

SIGNIFICANCE: Final = 0.001
"""The p-value below which a setting fails: one false alarm in 1000 cells."""
ROUNDING: Final = 1e-12
"""Difference by which two equal numbers may differ."""

_DRAWS_PER_TASK: Final = 10


@explain_unknown()
def audit(
    settings: str | Sequence[str] | None = None,
    *,
    delta: float | Sequence[float] = (0.5, 0.2, 0.05),
    n_draws: int = 500,
    random_state: RandomState = 0,
    n_jobs: int | None = 1,
) -> xr.Dataset:
    """Search where the truth is known, and count how often certificates are wrong.

    In every draw of a setting labeled rows and a pool are drawn from a population of
    finitely many cells, a search runs on them through public names, and its certified
    bounds are compared with the exact error of the models that it returns. A draw fails
    if any of its certified numbers is too small, because the numbers of a nested search
    hold at once.

    Parameters
    ----------
    settings
        Names of settings, one or more; None for all.
    delta
        Probability with which a certificate may fail, in ``(0, 1)``; one or more.
    n_draws
        Draws of each setting, at least 1.
    random_state
        None, an integer, a RandomState or a Generator: the seed of all draws.
    n_jobs
        Number of processes; None means one, -1 one for each core.

    Returns
    -------
    xarray.Dataset
        Over (`setting`, `delta`): `certified`, the number of the `n_draws` in which
        something was certified; `failures`, the number of these in which it was wrong;
        `p_value`, the probability of as many failures or more if each draw failed with
        probability `delta`. Over `setting`: `is_control`, whether it is a broken bound;
        `holds`, False where a p-value is below 0.001, as it must be for controls.

    Raises
    ------
    TypeError
        Where `delta` or `n_draws` is no number.
    ValueError
        Where a name is not that of a setting, or `delta` or `n_draws` is out of range.

    See Also
    --------
    plan_bound : Computes how large bounds are to be expected.

    Notes
    -----
    A number that is not certified cannot fail. Draws are independent, and none shares
    labeled rows with another, as the binomial p-value requires.

    Examples
    --------
    >>> found = audit(
    ...     ["holdout, lucky folds", "luckiest fold"], delta=0.2, n_draws=30)
    >>> found.holds.values
    array([ True, False])
    """
    if settings is None:
        settings = list(SETTINGS)
    wanted = check_strings(
        [settings] if isinstance(settings, str) else settings, "settings"
    )
    for name in wanted:
        check_choice(name, "settings", list(SETTINGS))
    values = np.atleast_1d(check_probabilities(delta, "delta")).tolist()
    deltas = sorted(map(check_delta, values), reverse=True)
    draws = check_integer(n_draws, "n_draws", at_least=1)
    count_threads(n_jobs)  # raises an error if it is no number of processes
    seed = seed_from(random_state)
    starts = range(0, draws, _DRAWS_PER_TASK)
    counts = Parallel(n_jobs=n_jobs)(
        delayed(_counts)(name, deltas, seed, range(start, draws)[:_DRAWS_PER_TASK])
        for name in wanted
        for start in starts
    )
    by_setting = np.reshape(counts, (len(wanted), len(starts), len(deltas), 2))
    certified, failures = np.moveaxis(by_setting.sum(axis=1), -1, 0)
    p_values = stats.binom.sf(failures - 1, draws, np.array(deltas))
    axes = ("setting", names.DELTA)
    return xr.Dataset(
        {
            "certified": (axes, certified),
            "failures": (axes, failures),
            "p_value": (axes, p_values),
            "is_control": ("setting", [SETTINGS[n].is_control for n in wanted]),
            "holds": ("setting", (p_values >= SIGNIFICANCE).all(axis=1)),
            "n_draws": draws,
        },
        coords={"setting": wanted, names.DELTA: deltas},
    )


@hide_inner_progress()
def _counts(
    name: str, deltas: Sequence[float], seed: int, draw_numbers: range
) -> Integers:
    """Count by delta the draws that were certified, and those that failed.

    A draw depends only on the setting's name, the seed and its number, so counts do not
    depend on how draws are divided among processes.
    """
    setting = SETTINGS[name]
    counts = np.zeros((len(deltas), 2), dtype=np.int64)
    for draw_number in draw_numbers:
        draw = setting.draw([seed, crc32(name.encode()), draw_number])
        # A search refuses labels that miss a class, so nothing is certified.
        if setting.population.misses_class(draw.y):
            continue
        for column, delta in enumerate(deltas):
            try:
                claims = setting.steps(draw, delta)
            except AllFitsFailedError:  # the search is refused
                claims = []
            is_wrong = any(truth > bound + ROUNDING for bound, truth in claims)
            counts[column] += bool(claims), is_wrong
    return counts


def is_sound(report: xr.Dataset) -> bool:
    """Return whether every certificate holds and every control is caught."""
    return bool((report["holds"] != report["is_control"]).all())
