"""Coverage audit: how often certificates fail where the truth is known."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from dsel import names
from dsel.bounds import binomial_tail_inversion, binomial_tail_inversion_lower
from dsel.checks import check_integer, check_probabilities, check_probability
from dsel.data.clients import resolve_client
from dsel.data.labeled import labeled_rows
from dsel.data.words import seed_from, uniform_integers, words
from dsel.searches.auditing.claims import CLAIMS, Claims, pooled_binomial
from dsel.searches.auditing.controls import EqualClassifiers, repeated_looks
from dsel.searches.auditing.counts import AuditCounts, join
from dsel.searches.auditing.replay import Population, Replay
from dsel.searches.executing.executors import make_executor
from dsel.searches.executing.jobs import Job, completed
from dsel.searches.grid import Grid, make_candidates

CONFIDENCE: Final = 0.99
"""Of the intervals for how often a certificate fails."""

CONTROL_DELTA: Final = 0.1
"""At which broken bounds are known to fail."""

ERROR_RATES_WITH_POWER: Final = (0.05, 0.4)
"""Outside, almost every bound holds, and an audit shows little."""

NOISE: Final = 0.15
"""Share of labels of the synthetic population that no model can get right."""

_DRAWS_A_TASK: Final = 25
_STRATIFIED: Final = (
    "the folds come from a splitter: unless it assigns rows at random without looking "
    "at them, errors on a fold are not binomial, and dsel certifies nothing"
)


def audit(
    estimator: Any,
    grid: Grid,
    X: Any,
    y: Any,
    *,
    n_labeled: int = 100,
    n_unlabeled: int = 500,
    cv: Any = 5,
    delta: float | Sequence[float] = (0.1, 0.3, 0.5),
    label_share: float = 0.5,
    n_draws: int = 2000,
    random_state: Any = None,
    client: Any = None,
) -> xr.Dataset:
    """Replay a pipeline where the truth is known, and count how often bounds fail.

    In every draw labeled rows and a pool are sampled from a population, all candidates
    are fitted on folds and on all labeled rows, and each certificate is compared with
    the true error of what it is about. A certificate fails in a draw if it does for
    any candidate.

    Parameters
    ----------
    estimator, grid
        The user's candidates, as for `plan_search`.
    X, y
        Labeled rows. They are the first population; the second has the same features
        and labels from a known rule, 15 % of them flipped.
    n_labeled, n_unlabeled
        Rows of each draw.
    cv
        Number of random folds, or a scikit-learn splitter.
    delta
        Probability with which a certificate may fail, in ``(0, 1)``; several are
        audited on the same draws. Below 0.1 most bounds are so conservative that an
        audit shows little.
    label_share
        Part of ``delta`` for the label term, in ``(0, 1)``.
    n_draws
        Draws from each population, at least 1.
    random_state
        Seed of all draws.
    client
        A `distributed.Client`; None means the current one, else local threads.

    Returns
    -------
    xarray.Dataset
        Over (`population`, `certificate`, `delta`): `failures` of `n_draws`,
        `failure_rate` with its exact 99 % interval (`failure_low`, `failure_high`),
        `holds` (False where even the lower end is above ``delta``), and `slack`, by
        how much the bound, at most 1, exceeds the truth on average. Over `population`:
        `mean_error` and `has_power`, whether it lies in [0.05, 0.4]. Over `control`:
        broken bounds on populations made to expose them, at delta 0.1, with
        `control_failure_rate` and `control_caught`. `refused` says why dsel would not
        certify such a search; empty where it would.

    Raises
    ------
    TypeError
        Where something is no classifier, no grid, or no number.
    ValueError
        Where a number is out of range or a parameter unknown.

    Notes
    -----
    `transductive` is compared with the error on the draw's own pool, `holdout_bound`
    with that of the model trained without the first fold, the others with the error
    of models trained on all labeled rows. `select_then_certify` holds out a fifth.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> found = audit(None, [GaussianNB()], X[:, :2], y, n_draws=20, random_state=0)
    >>> bool(found.holds.all()), bool(found.control_caught.all())
    (True, True)
    """
    shares = np.atleast_1d(check_probabilities(delta, "delta"))
    gamma = check_probability(label_share, "label_share")
    draws = check_integer(n_draws, "n_draws", at_least=1)
    seed = seed_from(random_state)
    labeled = labeled_rows(X, y)
    replays = [
        Replay(
            candidates=make_candidates(estimator, grid),
            population=population,
            n_labeled=check_integer(n_labeled, "n_labeled", at_least=5),
            n_unlabeled=check_integer(n_unlabeled, "n_unlabeled", at_least=1),
            cv=_check_cv(cv, n_labeled),
            seed=seed,
        )
        for population in _populations(labeled.X, labeled.y, seed)
    ]
    counts = _run(replays, draws, resolve_client(client))
    tables = [_tabulate(each, shares, gamma) for each in counts]
    report: xr.Dataset = xr.concat(tables, dim="population")
    report = report.assign_coords(
        population=[replay.population.name for replay in replays]
    )
    refused = _STRATIFIED if hasattr(cv, "split") else ""
    return report.merge(controls(seed)).assign(refused=refused, n_draws=draws)


def _check_cv(cv: Any, n_labeled: int) -> Any:
    if hasattr(cv, "split"):
        return cv
    return check_integer(cv, "cv", at_least=2, at_most=n_labeled)


def _populations(X: Any, y: NDArray[np.int64], seed: int) -> list[Population]:
    codes = np.asarray(y, dtype=np.int64)
    return [
        Population("labeled rows", X, codes),
        Population("synthetic", X, synthetic_labels(X, seed)),
    ]


def synthetic_labels(X: Any, seed: int) -> NDArray[np.int64]:
    """Return two classes on either side of a random plane, some of them flipped.

    Parameters
    ----------
    X
        Features, (n_rows, n_features), dense or sparse.
    seed
        Seed of the plane and of the flips.
    """
    n_rows, n_features = X.shape
    spread = StandardScaler(with_mean=False).fit(X).scale_
    plane = uniform_integers(words(seed, 1, 0, n_features), 2001) / 1000 - 1.0
    side = np.nan_to_num(np.asarray(X @ (plane / spread)).ravel())
    is_flipped = uniform_integers(words(seed, 0, 0, n_rows), 1000) < 1000 * NOISE
    above: NDArray[np.bool_] = side > np.median(side)
    return (above ^ is_flipped).astype(np.int64)


def _run(replays: Sequence[Replay], n_draws: int, client: Any) -> list[AuditCounts]:
    """Run all draws as tasks of a few each, and put them in order."""
    order = [
        (f"audit-{number}-{start}", number, start)
        for number in range(len(replays))
        for start in range(0, n_draws, _DRAWS_A_TASK)
    ]
    jobs = (
        Job(key, _count_draws, (number, start, min(start + _DRAWS_A_TASK, n_draws)))
        for key, number, start in order
    )
    with closing(make_executor(tuple(replays), client)) as executor:
        parts = {each.key: each.result() for each in completed(executor, jobs)}
    return [
        join([parts[key] for key, number, _ in order if number == wanted])
        for wanted in range(len(replays))
    ]


def _count_draws(
    work: tuple[Replay, ...], payloads: Any, number: int, start: int, stop: int
) -> tuple[AuditCounts, None]:
    del payloads  # draws need no other task
    return work[number].draws(start, stop), None


def _tabulate(counts: AuditCounts, shares: NDArray[np.float64], gamma: float) -> Any:
    claims = [
        [claim(counts, float(share), gamma) for share in shares]
        for claim in CLAIMS.values()
    ]
    failures = np.array([[_failures(each) for each in row] for row in claims])
    slack = np.array([[_slack(each) for each in row] for row in claims])
    low, high = failure_interval(failures, counts.n_draws)
    mean_error = float(counts.true_error.mean())
    least, most = ERROR_RATES_WITH_POWER
    table = (names.CERTIFICATE, names.DELTA)
    return xr.Dataset(
        {
            "failures": (table, failures),
            "failure_rate": (table, failures / counts.n_draws),
            "failure_low": (table, low),
            "failure_high": (table, high),
            "holds": (table, low <= shares),
            "slack": (table, slack),
            "mean_error": mean_error,
            "has_power": least <= mean_error <= most,
        },
        coords={names.CERTIFICATE: list(CLAIMS), names.DELTA: shares},
    )


def _failures(claims: Claims) -> int:
    return int(claims.has_failed.sum())


def _slack(claims: Claims) -> float:
    return float((np.minimum(claims.bound, 1.0) - claims.truth).mean())


def failure_interval(
    failures: NDArray[np.int64], n_draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact interval in which the chance of failure lies."""
    side = (1.0 - CONFIDENCE) / 2.0
    low = binomial_tail_inversion_lower(failures, n_draws, delta=side)
    return low, binomial_tail_inversion(failures, n_draws, delta=side)


def controls(seed: int, n_draws: int = 2000) -> xr.Dataset:
    """Return how often broken bounds fail on populations made to expose them.

    Parameters
    ----------
    seed
        Seed of the draws.
    n_draws
        Draws of each control.
    """
    hard = EqualClassifiers(
        error_rate=0.3,
        n_classifiers=20,
        n_candidates=1,
        n_labeled=100,
        n_unlabeled=500,
        n_folds=20,
    )
    broken = {
        "pooled_binomial": pooled_binomial(
            hard.draw(n_draws, seed), CONTROL_DELTA, 0.95
        ),
        "repeated_looks": repeated_looks(
            n_draws, seed, disagreement=0.2, n_unlabeled=400, delta=CONTROL_DELTA
        ),
    }
    failures = np.array([_failures(claims) for claims in broken.values()])
    low, _ = failure_interval(failures, n_draws)
    return xr.Dataset(
        {
            "control_failure_rate": ("control", failures / n_draws),
            "control_caught": ("control", low > CONTROL_DELTA),
        },
        coords={"control": list(broken)},
    )
