"""What each criterion would choose from the same evidence, and how pairs differ.

The rows of the pool on which two candidates disagree limit, without any label, how far
their errors can differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np
import xarray as xr
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import pair_facts
from dsel.checks import check_counts, check_integer, check_probability
from dsel.criteria import CRITERIA
from dsel.criteria.base import is_nested
from dsel.families.family import FittedGroup
from dsel.results import Choice, add_pairs, fold_axes, make_cube
from dsel.results.choice import candidate_labels
from dsel.searches.pool_checks import as_counted
from dsel.searches.refits import fitted_again
from dsel.searches.select import select
from dsel.searches.spec import SearchSpec


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


def compare_pairs(
    results: xr.Dataset,
    plan: SearchSpec,
    candidates: Sequence[int] | None = None,
    *,
    n_best: int = 4,
    delta: float = 0.05,
    client: Any = None,
) -> xr.Dataset:
    """Bound the errors of pairs of candidates by how often they disagree on the pool.

    The full models of a few candidates are fitted again and compared in one pass over
    the pool. No label is used.

    Parameters
    ----------
    results
        Cube of a search.
    plan
        The plan that it came from.
    candidates
        Numbers of the candidates to compare; by default the `n_best` best by the
        search's criterion.
    n_best
        How many candidates to compare by default, at least 2.
    delta
        Probability with which any of the bounds may fail, over all pairs, in (0, 1). It
        is spent in addition to that of the search.
    client
        A `distributed.Client` for the pass; None means the current one, else
        local threads.

    Returns
    -------
    xarray.Dataset
        Over (``candidate``, ``other``): ``differing_rows``, the pool rows on which the
        two models differ; ``difference``, an upper bound on the difference of their
        error rates; ``larger_error``, a lower bound on the larger of the two.
        ``params`` names the candidates.

    Raises
    ------
    ValueError
        Where there is no pool, the search trains no model of all labeled rows, the cube
        is not that of the plan, a number is no candidate, or one that failed, or there
        are fewer than two.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the bounds hold for all pairs of
    the search's candidates at once, so also for pairs picked after seeing results.
    Assumes: pool rows are independent draws, and no model depends on them.
    Source: `dsel.bounds.pair_facts`, delta divided by the number of pairs.
    """
    _check_plan(results, plan)
    level = check_probability(delta, "delta")
    numbers = _best(results, n_best) if candidates is None else candidates
    chosen = check_counts(np.atleast_1d(numbers), "candidates")
    n = plan.n_candidates
    if len(np.unique(chosen)) < 2 or chosen.max() >= n:
        raise ValueError(
            f"`candidates` must be two or more different numbers below {n}, got "
            f"{chosen.tolist()}."
        )
    failed = results[names.STATUS].values.ravel()[chosen] == names.STATUS_FAILED
    if failed.any():
        raise ValueError(
            f"`candidates` must be fitted ones, but {chosen[failed].tolist()} failed; "
            f"`results.message` says why."
        )
    plan = as_counted(plan, client)
    count = _DifferingRows(tuple(_full_model(plan, int(j)) for j in chosen))
    counts = plan.pool.reduce(count, add, client=client, allow_nan=plan.work.allow_nan)
    share = level / (n * (n - 1) / 2)
    facts = pair_facts(counts, plan.pool.n_rows, delta=share)
    differ = ~np.eye(len(chosen), dtype=bool)
    axes = (names.CANDIDATE, names.OTHER)
    texts = np.array(candidate_labels(results), dtype=object)[chosen]
    return xr.Dataset(
        {
            "differing_rows": (axes, counts),
            "difference": (axes, np.where(differ, facts.difference, 0.0)),
            "larger_error": (axes, np.where(differ, facts.larger_error, 0.0)),
            "params": (names.CANDIDATE, texts.astype(str)),
        },
        coords={names.CANDIDATE: chosen, names.OTHER: chosen},
        attrs={names.DELTA: level, names.N_UNLABELED: plan.pool.n_rows},
    )


def count_pairs(
    results: xr.Dataset, plan: SearchSpec, *, client: Any = None
) -> xr.Dataset:
    """Return the cube with the disagreement of all pairs of full models.

    `select` then answers by ``tri`` and ``adj``, which compare each candidate with
    those before it: list the grid from the simplest model to the most complex one.

    Parameters
    ----------
    results
        Cube of a search.
    plan
        The plan that it came from, with a pool and ``train_errors=True``, which both
        criteria read; its full models are fitted again.
    client
        A `distributed.Client` for the pass; None means the current one, else
        local threads.

    Returns
    -------
    xarray.Dataset
        With ``pair_disagreements`` on the pool and ``labeled_pair_disagreements``, over
        the grid and ``other``, NaN in the rows of candidates that failed.

    Raises
    ------
    ValueError
        Where there is no pool, the search trains no model of all labeled rows, or the
        cube is not of all candidates of the plan.

    Notes
    -----
    Guarantee: none; ``tri`` and ``adj`` are estimates.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: D. Schuurmans and F. Southey, Machine Learning 48, 2002.
    """
    _check_plan(results, plan)
    failed = results[names.STATUS].values.ravel() == names.STATUS_FAILED
    kept = np.flatnonzero(~failed)
    plan = as_counted(plan, client)
    count = _DifferingRows(tuple(_full_model(plan, int(j)) for j in kept))
    rows = np.arange(len(plan.work.y))
    counts = {
        names.PAIR_DISAGREEMENTS: plan.pool.reduce(
            count, add, client=client, allow_nan=plan.work.allow_nan
        ),
        names.LABELED_PAIR_DISAGREEMENTS: count(plan.work.X, rows),
    }
    return add_pairs(results, counts, kept)


def _check_plan(results: xr.Dataset, plan: SearchSpec) -> None:
    """Raise where there is no pool, or a number stands for two candidates."""
    if plan.pool is None:
        raise ValueError("`plan` must have a pool to compare candidates on.")
    own = candidate_labels(make_cube(plan.axes, fold_axes(1), {}))
    if (given := candidate_labels(results)) != own:
        raise ValueError(
            f"`results` must be all results of `plan` in their order, but their "
            f"{len(given)} candidates begin with {', '.join(given[:1])}, and the "
            f"{len(own)} of the plan with {own[0]}, or go on otherwise; pass the cube "
            f"as it was made, not sorted, transposed or cut."
        )


def _best(results: xr.Dataset, n_best: int) -> NDArray[np.int64]:
    """Return the numbers of the candidates with the smallest known estimates."""
    wanted = check_integer(n_best, "n_best", at_least=2)
    first = results[names.ESTIMATE].isel({names.CRITERION: 0}).values.ravel()
    order = np.argsort(first, kind="stable")[:wanted]
    known = np.asarray(order[np.isfinite(first[order])])
    if len(known) < 2:
        raise ValueError(
            f"`candidates` must be named: only {len(known)} of {len(first)} have an "
            f"estimate, others failed or were pruned; pass numbers of fitted ones, or "
            f"search with prune=False."
        )
    return known


@dataclass(frozen=True)
class _DifferingRows:
    """Counts the rows of a block on which models differ, pair by pair."""

    models: tuple[tuple[FittedGroup, int, int], ...]
    """Fitted groups, with the split and the place of the wanted candidate."""

    def __call__(self, X: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        del rows
        answers = np.stack(
            [
                models.predict(X, [np.array(split)])[0][place]
                for models, split, place in self.models
            ]
        )
        return np.array(
            [np.count_nonzero(answers != one, axis=1) for one in answers], np.int64
        )


def _full_model(plan: SearchSpec, number: int) -> tuple[FittedGroup, int, int]:
    """Fit one candidate on all labeled rows; return group, split and place in it."""
    split = plan.scheme.full
    if split is None:
        raise ValueError(
            f"`plan` must train models of all labeled rows, which are compared, but "
            f"{plan.certificate.name!r} needs none; plan with criterion='cv_bound'."
        )
    models = fitted_again(plan, number, split)
    return models, split, models.candidates.index(number)
