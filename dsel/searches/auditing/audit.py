"""Coverage audit: how often certificates fail where the truth is known."""

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.parallel import Parallel, delayed

from dsel import names
from dsel.checks import check_choice, check_integer, check_probabilities
from dsel.data.row_random import seed_from
from dsel.runtime.tasks import as_task
from dsel.searches.auditing.catalogue import SETTINGS
from dsel.searches.auditing.settings import Claim, Setting, draw_of

SIGNIFICANCE: Final = 0.001
"""The p-value below which a setting fails: one false alarm in 1000 cells."""

_DRAWS_A_TASK: Final = 10


def audit(
    settings: str | Setting | Sequence[str | Setting] | None = None,
    *,
    delta: float | Sequence[float] = (0.5, 0.2, 0.05),
    n_draws: int = 500,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> xr.Dataset:
    """Search where the truth is known, and count how often certificates are wrong.

    In every draw of a setting labeled rows and a pool are drawn from a law on finitely
    many cells, a search runs on them through public names, and each certificate is
    compared with the exact error of the model that it is about.

    Parameters
    ----------
    settings
        Names of settings, or settings of your own, one or more; None for all of dsel.
    delta
        Probability with which a certificate may fail, in ``(0, 1)``; one or more.
    n_draws
        Draws of each setting, at least 1.
    random_state
        None, an integer or a numpy generator: the seed of all draws.
    n_jobs
        Number of processes; None means one, -1 one for each core.

    Returns
    -------
    xarray.Dataset
        Over (`setting`, `delta`): `certified`, how many of the `n_draws` claims were
        called certified; `failures`, how many of these were wrong; `p_value`, the
        chance of as many failures or more if each draw failed with probability
        `delta`; `slack`, by how much certified bounds exceed the truth on average.
        Over `setting`: `is_control`, whether it is a broken bound; `holds`, False
        where a p-value is below 0.001, as it must be for controls.

    Raises
    ------
    TypeError
        Where `delta` or `n_draws` is no number.
    ValueError
        Where there is no setting of a name, or `delta` or `n_draws` is out of range.

    See Also
    --------
    plan_bound : How large bounds are.

    Notes
    -----
    A number that is not certified cannot fail. Draws are independent, and none shares
    labeled rows with another, as the binomial p-value requires.

    Examples
    --------
    >>> names = ["holdout_bound, lucky folds", "luckiest fold"]
    >>> found = audit(names, delta=0.2, n_draws=30, random_state=0)
    >>> found.holds.values
    array([ True, False])
    """
    given = [settings] if isinstance(settings, str | Setting) else settings
    chosen = [_setting(each) for each in (SETTINGS if given is None else given)]
    deltas = tuple(sorted(np.atleast_1d(check_probabilities(delta, "delta")))[::-1])
    if not (chosen and deltas):
        raise ValueError(
            f"`settings` and `delta` must hold one or more, got {settings!r} and "
            f"{delta!r}; leave them out for all."
        )
    draws = check_integer(n_draws, "n_draws", at_least=1)
    seed = seed_from(random_state)
    work = [
        (number, start, min(start + _DRAWS_A_TASK, draws))
        for number in range(len(chosen))
        for start in range(0, draws, _DRAWS_A_TASK)
    ]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_claims)(chosen[number], deltas, seed, start, stop)
        for number, start, stop in work
    )
    by_setting: list[list[Claim]] = [[] for _ in chosen]
    for (number, _, _), claims in zip(work, found, strict=True):
        by_setting[number] += claims
    return _table(chosen, deltas, draws, by_setting)


def _setting(wanted: str | Setting) -> Setting:
    if isinstance(wanted, Setting):
        return wanted
    known = {each.name: each for each in SETTINGS}
    return known[check_choice(wanted, "settings", list(known))]


@as_task()
def _claims(
    setting: Setting, deltas: tuple[float, ...], seed: int, start: int, stop: int
) -> list[Claim]:
    """Return the claims of some draws; each depends only on seed and number."""
    claims: list[Claim] = []
    for number in range(start, stop):
        draw = draw_of(setting, deltas, [seed, crc32(setting.name.encode()), number])
        # A search refuses labeled rows of one class, so such a draw claims nothing.
        if len(np.unique(draw.y)) == setting.law.chances.shape[1]:
            claims += setting.steps(draw)
    return claims


def _table(
    settings: Sequence[Setting],
    deltas: tuple[float, ...],
    n_draws: int,
    claims: Sequence[Sequence[Claim]],
) -> xr.Dataset:
    cells = [
        [[c for c in each if c.delta == delta and c.certified] for delta in deltas]
        for each in claims
    ]
    certified = np.array([[len(cell) for cell in row] for row in cells])
    failures = np.array([[sum(c.has_failed for c in x) for x in row] for row in cells])
    p_values = stats.binom.sf(failures - 1, n_draws, np.array(deltas))
    axes = ("setting", names.DELTA)
    return xr.Dataset(
        {
            "certified": (axes, certified),
            "failures": (axes, failures),
            "p_value": (axes, p_values),
            "slack": (axes, np.array([[_slack(cell) for cell in x] for x in cells])),
            "is_control": ("setting", [each.is_control for each in settings]),
            "holds": ("setting", (p_values >= SIGNIFICANCE).all(axis=1)),
            "n_draws": n_draws,
        },
        coords={
            "setting": [each.name for each in settings],
            names.DELTA: np.array(deltas),
        },
    )


def _slack(claims: Sequence[Claim]) -> float:
    return float(np.mean([c.bound - c.truth for c in claims])) if claims else np.nan


def verdicts(report: xr.Dataset) -> NDArray[np.str_]:
    """Return one word for each setting of a report."""
    found = np.where(report["holds"], "holds", "FAILS")
    found = np.where(report["certified"].sum(names.DELTA) == 0, "claims nothing", found)
    controls = np.where(report["holds"], "NOT CAUGHT", "caught")
    verdict: NDArray[np.str_] = np.where(report["is_control"], controls, found)
    return verdict


def is_sound(report: xr.Dataset) -> bool:
    """Return whether every certificate holds and every control is caught."""
    return bool((report["holds"] != report["is_control"]).all())
