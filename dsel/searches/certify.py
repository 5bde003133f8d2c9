"""Search with some labeled rows, certify with the others: the tightest valid bound.

Any selection is allowed, adaptive ones too, because it never sees the certifying rows.
The winner trained without them is tested on them. What is deployed is the same
configuration trained on all labeled rows, and its disagreement with the winner on the
pool limits how far their errors differ. Delta is not divided among candidates or folds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import xarray as xr
from scipy import sparse
from zarr.abc.store import Store

from dsel.candidates import Grid
from dsel.checks import check_probability
from dsel.data.frames import is_frame, taken
from dsel.data.labeled import check_labels
from dsel.data.row_random import seed_from
from dsel.data.splits import Split, full_split, holdout_split
from dsel.families.fit_arguments import check_pool_learners, cut_to_rows
from dsel.results import save_results
from dsel.results.files import find_results
from dsel.results.store import open_store
from dsel.searches.engine.comparisons import RandomFold
from dsel.searches.engine.scheme import Scheme
from dsel.searches.execute import Outcome, execute
from dsel.searches.plan import Plan, plan_search
from dsel.searches.select import CERTIFIED_APART, with_certificate

CERTIFICATE = "select_then_certify"
SEARCHING: Final = (
    "criterion", "certificate", "cv", "prune", "random_state", "prior",
)  # fmt: skip
"""Options of the search alone: the certifying part has its own."""


def search_and_certify(
    estimator: Any,
    param_grid: Grid,
    X: Any,
    y: Any,
    pool: Any,
    *,
    certify_rows: float,
    running: Mapping[str, Any],
    client: Any = None,
    **options: Any,
) -> tuple[Plan, Outcome, xr.Dataset]:
    """Search on some labeled rows, then certify the winner by the others.

    `running` are options of `execute` for both parts. Its ``out`` is the store of the
    search, whose cube also gets the certificate; the certifying part has a store of its
    own, in its folder ``certificate``. All other options are those of `plan_search`.

    Returns the plan of the search, its outcome with the certificate and the model of
    all labeled rows, and the cube of the certifying part.
    """
    _check_certificate(options.get("certificate"))
    seed = seed_from(options.get("random_state"))
    split = certifying_split(len(check_labels(y)), certify_rows, seed=seed)
    if pool is None:
        raise ValueError(
            "`certify_rows` needs a pool to compare the winner with its final model, "
            "but `pool` is None; pass the pool, or search without `certify_rows`."
        )
    within = _within(running)
    plan = plan_search(
        estimator,
        param_grid,
        _rows(X, split.train_rows),
        _rows(y, split.train_rows),
        **_searching(options, split, seed),
    )
    candidates = map(plan.candidate, range(plan.n_candidates))
    params = options.get("fit_params") or {}
    check_pool_learners((each.estimator for each in candidates), params)
    given = {name: value for name, value in options.items() if name not in SEARCHING}
    certifying: dict[str, Any] = {"split": split, "seed": seed, **given}
    # Candidate 0 stands for the winner, so that options that the certifying part does
    # not take are refused before the search.
    _certifying_plan(plan.candidate(0).estimator, X, y, pool, **certifying)
    found = execute(plan, client, **running)
    number = found.choice.candidate
    last = _certifying_plan(plan.candidate(number).estimator, X, y, pool, **certifying)
    ended = execute(last, client, with_model=True, **within)
    certificate = ended.choice.certificate
    results = with_certificate(
        found.results, number, certificate, reserve=options.get("reserve", 0.0)
    )
    _keep(results, running)
    choice = replace(found.choice, certificate=certificate)
    return plan, Outcome(results, choice, ended.model), ended.results


def _searching(options: Mapping[str, Any], split: Split, seed: int) -> dict[str, Any]:
    """Return the options of a search that sees neither the pool nor the other rows."""
    n_rows = len(split.train_rows) + len(split.test_rows)
    params, groups = options.get("fit_params") or {}, options.get("groups")
    return {
        **options,
        "groups": None if groups is None else _rows(groups, split.train_rows),
        "criterion": options.get("criterion") or "cv_error",
        "certificate": None,
        "random_state": seed,
        "fit_params": cut_to_rows(params, split.train_rows, n_rows),
        # These two belong to the certificate, so only the certifying part gets them.
        "reserve": 0.0,
        "pool_labels": None,
    }


def _check_certificate(certificate: str | None) -> None:
    """Raise where another certificate is named than that of certifying rows."""
    if certificate not in (None, CERTIFICATE):
        raise ValueError(
            f"`certificate` must be None or {CERTIFICATE!r} beside `certify_rows`, got "
            f"{certificate!r}; leave one of the two out."
        )


def _keep(results: xr.Dataset, running: Mapping[str, Any]) -> None:
    """Save the cube of the search again, now that its winner is certified."""
    if running.get("out") is None:
        return
    place = open_store(running["out"], storage_options=running.get("storage_options"))
    earlier = find_results(place)
    stored = None if earlier is None else earlier.attrs.get(CERTIFIED_APART)
    if stored != results.attrs[CERTIFIED_APART]:
        save_results(results, place)


def _certifying_plan(
    chosen: Any, X: Any, y: Any, pool: Any, *, split: Split, seed: int, **options: Any
) -> Plan:
    """Return the plan of one candidate and one fold, whose model f_rand always is."""
    n_rows = len(split.train_rows) + len(split.test_rows)
    splits = (split, full_split(n_rows, number=1))
    scheme = Scheme(splits, 1, (RandomFold(seed, 1),), is_plain_random=True)
    fixed: dict[str, Any] = {"criterion": CERTIFICATE, "random_state": seed}
    return plan_search(None, [chosen], X, y, pool, cv=scheme, **fixed, **options)


def _within(running: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the certifying part: its store is inside the search's."""
    out = running.get("out")
    if isinstance(out, Store):
        raise TypeError(
            f"`out` must be a path or a URL beside `certify_rows`, got {out!r}."
        )
    place = None if out is None else f"{str(out).rstrip('/')}/certificate"
    return {**running, "out": place}


def certifying_split(n_rows: int, certify_rows: Any, *, seed: int) -> Split:
    """Return the split: training rows select, test rows certify; none may be empty."""
    share = check_probability(certify_rows, "certify_rows")
    n_certify = round(share * n_rows)
    if not 0 < n_certify < n_rows:
        raise ValueError(
            f"`certify_rows` must leave rows in both parts, but {share:g} of {n_rows} "
            f"rows are {n_certify}."
        )
    split = holdout_split(n_rows, n_certify, seed=seed)
    return Split(0, "fold-0", split.train_rows, split.test_rows)


def _rows(table: Any, rows: Any) -> Any:
    if hasattr(table, "to_dask_array"):
        table = table.compute()
    if sparse.issparse(table):
        return table.tocsr()[rows]
    if is_frame(table) or hasattr(table, "iloc"):
        return taken(table, rows) if is_frame(table) else table.iloc[rows]
    return np.asanyarray(table)[rows]  # masked labels stay so, and are refused
