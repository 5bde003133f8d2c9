"""The print of a plan: rows, folds, fits, memory, certificate, caveats."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from dask.utils import format_bytes

from dsel import names
from dsel.bounds.queried_differences import QUERY_SHARES
from dsel.cards import ShownRow
from dsel.checks import listing
from dsel.data.cache import nbytes_of
from dsel.losses.baseline_difference import BaselineDifference
from dsel.option_values import ONE_FOLD, Pruning
from dsel.results.caveats import Effect, collect_caveats, make_caveats
from dsel.results.params_texts import short_names
from dsel.rounded_texts import count_of, fraction_in_percent, wrap_line
from dsel.search.engine.inner_searches import count_survivors
from dsel.search.engine.jobs import CandidateGroup
from dsel.search.planned_search import PlanFacts, PlannedSearch
from dsel.search.planning.possible_bounds import (
    describe_bound,
    describe_queries,
    describe_rare_class,
    describe_small_pool,
    describe_targets,
)

EMPTY_WORKER_NBYTES: Final = 400 * 2**20
"""Bytes of a worker process that has imported all libraries, and read no rows."""
RARE_CLASS: Final = "rare class"
"""Name of the row about a class that the error hardly shows."""
BEFORE: Final = "Notes on this run, before its fits begin:"
"""Title of the lines that are shown before a run."""
UNREAD_POOL: Final = (
    "`pool` is not read: its rows are taken to come in groups, too, and bounds from "
    "pool rows need independent draws; the bound is about the model trained without "
    "one of the folds"
)
"""Caveat of a plan with groups and a pool."""


def plan_lines(shown_rows: Iterable[ShownRow]) -> str:
    """Return a title, names with texts, and caveats as lines, wrapped at words."""
    (_, title), *other_rows = shown_rows
    paragraphs = [
        (title, 4),
        *((f"  {name:<14} {text}", 17) for name, text in other_rows if name),
        *((f"  {text}", 4) for name, text in other_rows if not name),
    ]
    return "\n".join(wrap_line(text, indent) for text, indent in paragraphs)


def plan_rows(
    search: PlannedSearch, facts: PlanFacts, *, in_short: bool = False
) -> list[ShownRow]:
    """Return rows of texts: a title, names with texts, and caveats.

    The short form has rows, pool, number of fits, the bound to expect, a rare class,
    and the caveats that void the bound, for which somebody may stop the run. The
    choice has the other caveats.
    """
    n, d = search.labeled.X.shape
    pool = "none"
    if any(caveat.text == UNREAD_POOL for caveat in facts.caveats):
        pool = "not read, since rows come in groups"
    if search.pool is not None:
        n_tasks = len(search.slices)
        size = format_bytes(search.pool.nbytes)
        tasks = f"read by {count_of(n_tasks, 'task')}"
        pool = f"{search.pool.n_rows:,} rows" + (
            f", {size}, {tasks}" if not in_short else ""
        )
        pool = "; ".join(filter(None, [pool, describe_small_pool(search)]))
    folds, fits, pruning = _folds_and_fits(search)
    what = f"{len(search.classes)} classes"
    if search.is_regression:
        what = describe_targets(search)
    labeled = f"{n:,} x {d}, {what}"
    if search.row_groups is not None:
        column = search.row_groups.column
        by_column = f" by {column!r}" if column else ""
        labeled += (
            f"; {search.row_groups.n_groups:,} groups{by_column}, one row of each is "
            f"counted"
        )
    if search.method.is_nested and search.scheme.is_plain_random:
        k = search.scheme.n_folds
        n_rows = [len(split.train_rows) for split in search.scheme.fold_splits]
        part, rows = fraction_in_percent(1 - 1 / k), count_of(n_rows[0], "row")
        if search.row_groups is not None:  # which may have any number of rows
            part += " of the groups"
            rows = count_of(max(n_rows), "row")
            if min(n_rows) < max(n_rows):
                rows = f"{min(n_rows):,} to {rows}"
        labeled += f"; {k - 1} of {k} folds ({part}) are {rows}"
    possible = {
        "bound": describe_bound(search),
        "queries": describe_queries(search),
        RARE_CLASS: describe_rare_class(search),
    }
    shown_rows = {"labeled rows": labeled, "pool": pool, "fits": fits}
    shown_rows |= {name: text for name, text in possible.items() if text}
    if not in_short:
        shown_rows |= pruning | {
            "folds": folds,
            "memory": (
                f"at least {format_bytes(_worker_nbytes(search))} for each worker "
                f"process with one thread"
            ),
            "certificate": _certificate_text(search),
            **_baseline_rows(search.context.losses.baseline_difference, search.delta),
            "seed": str(search.seed),
        }
    differing = [name for name, size in search.axes.sizes.items() if size > 1]
    if differing == [names.CANDIDATE]:  # a list of several grids
        differing = sorted(
            {name for params in search.axes.candidates for name in params}
        )
    candidates = count_of(search.n_candidates, "candidate")
    if differing:
        short = short_names(differing)
        differing = [short[name] for name in differing]
        candidates += f" that differ in {listing(differing, 5)}"
    return [
        ("", f"Plan of {candidates}"),
        *shown_rows.items(),
        *_caveat_rows(search.fit_notes, facts, in_short=in_short),
    ]


def _caveat_rows(
    fit_notes: Sequence[str], facts: PlanFacts, *, in_short: bool = False
) -> list[ShownRow]:
    """Return the caveats of a plan; in short only those that void the bound."""
    violated = [
        assumption.reason for assumption in facts.assumptions if assumption.is_violated
    ]
    caveats = collect_caveats(
        make_caveats(Effect.PLAN, fit_notes),
        facts.caveats,
        make_caveats(Effect.VOIDS, violated),
    )
    return [
        ("", f"{'NOT CERTIFIED: ' if caveat.effect is Effect.VOIDS else ''}{caveat}")
        for caveat in caveats
        if caveat.effect is Effect.VOIDS or not in_short
    ]


def notes_before_fits(search: PlannedSearch, facts: PlanFacts) -> str:
    """Return the lines of a plan for which somebody may stop a run; "" without any.

    They are for runs whose plan nobody has printed.
    """
    rare_class = describe_rare_class(search)
    shown_rows: list[ShownRow] = [(RARE_CLASS, rare_class)] if rare_class else []
    shown_rows += [
        row
        for row in _caveat_rows(search.fit_notes, facts)
        if row[1] not in search.fit_notes
    ]
    return f"{plan_lines([('', BEFORE), *shown_rows])}\n" if shown_rows else ""


def _folds_and_fits(search: PlannedSearch) -> tuple[str, str, dict[str, str]]:
    """Return texts about folds, fits, and how candidates are pruned, if they are."""
    scheme = search.scheme
    k = scheme.n_folds
    splits = len(scheme.splits)
    whole = " of whole groups" if search.row_groups is not None else ""
    name = f"{k}{whole}"
    if scheme.n_halvings:
        folds = f"{scheme.n_halvings} random halvings"
    elif scheme.is_holdout:
        and_all_rows = " and all rows" if scheme.all_rows is not None else ""
        folds = f"1{whole}, of {scheme.fold_rows[0]:,} labeled rows{and_all_rows}"
    elif search.method.is_nested:
        folds = f"{name}; "
        if splits:
            folds += f"candidates are fitted without each of {splits} pairs of folds, "
            folds += "and "
        folds += "the chosen ones without each fold"
        folds += " and on all rows" if search.pool is not None else ""
    else:
        folds = f"{name}{' and all rows' if scheme.all_rows is not None else ''}"
    least, most = search.fits_range()
    if search.is_halved:
        n = search.n_candidates
        pruning = (
            f"after a first round of fits each search keeps the best "
            f"{count_survivors(n):,} of its {n:,} candidates, and may miss the one "
            f"that is best on all folds; prune='exact' never does"
        )
        return folds, f"{least:,} to {most:,}", {"pruning": pruning}
    count = f"{most:,} {search.fit_unit}" if search.fitted_search else f"{most:,}"
    if search.prune != Pruning.EXACT:
        return folds, count, {}
    return (
        folds,
        f"{count} at most",
        {"pruning": "candidates that cannot win are dropped"},
    )


def _worker_nbytes(search: PlannedSearch) -> int:
    """Return the estimated bytes of a worker process, with all imports."""
    reading_nbytes = 0
    candidate_groups = search.context.candidate_groups
    # Families are compared by identity: the groups of one family object share its
    # matrices.
    groups_of_family: dict[int, list[CandidateGroup]] = {}
    for candidate_group in candidate_groups:
        key = id(candidate_group.family)
        groups_of_family.setdefault(key, []).append(candidate_group)
    shared_nbytes = sum(
        groups[0].family.shared_nbytes(
            [group.candidates for group in groups], search.labeled.n_rows
        )
        for groups in groups_of_family.values()
    )
    if search.pool is not None:  # three copies of a chunk: stored, decoded, as rows
        most_rows = int(np.diff(search.pool.boundaries).max(initial=0))
        reading_nbytes = 3 * most_rows * search.pool.row_nbytes
    # Three times the labeled rows: the rows themselves, those of a fit, and models.
    rows_nbytes = 3 * nbytes_of(search.labeled.X)
    return EMPTY_WORKER_NBYTES + rows_nbytes + shared_nbytes + reading_nbytes


def _certificate_text(search: PlannedSearch) -> str:
    """Return the entry of the certificate: its delta, losses and models."""
    if search.method_name is None:
        return f"none: {search.criterion.name} is an estimate"
    text = f"{search.method_name} at delta={search.delta:g}"
    k = search.scheme.n_folds
    text += ", divided by `prior`" if search.prior_shares is not None else ""
    if of_losses := search.context.losses.plan_text:
        text += f"; {of_losses}"
    if not search.method.is_nested:
        return text
    unit = "labels" if search.row_groups is None else "groups"
    part = fraction_in_percent(1 - 1 / k)
    models = [f"trained on {part} of the {unit}", f"trained on all {unit}"]
    if search.pool is None:
        return f"{text}, of the model {models[0]}"
    if search.deploy != ONE_FOLD:
        models.reverse()
    text += f", of the model {models[0]}, which is deployed, and of that {models[1]}"
    if search.n_queries:
        n = search.n_queries
        text += (
            f"; labels of {count_of(n, 'pool row')} on which they differ will be "
            f"queried; {QUERY_SHARES.queries:.0%} of delta is for them"
        )
    return text


def _baseline_rows(
    difference: BaselineDifference | None, delta: float
) -> dict[str, str]:
    """Return a text about the baseline by its name; empty without a baseline."""
    if difference is None:
        return {}
    what, *other_texts = dict.fromkeys(difference.described)
    what = "always predicting the largest class" if other_texts else what
    return {
        "baseline": f"whether the models err less than {what}, at delta="
        f"{delta:g} of its own"
    }
