"""The print of a plan: rows, folds, fits, memory, certificate, caveats."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
from dask.utils import format_bytes

from dsel.bounds.queries import QUERY_SHARES
from dsel.cards import Fact
from dsel.data.cache import nbytes_of
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.option_values import ONE_FOLD, Pruning
from dsel.results.caveats import Effect, collect_caveats, make_caveats
from dsel.rounded_texts import shorten_text, wrap_line
from dsel.search.running.planned_search import PlannedSearch

GRAVE: Final = (Effect.VOIDS, Effect.WARNS, Effect.WEAKENS)
"""Effects of caveats for which somebody may stop a run before it begins."""


def plan_lines(facts: Iterable[Fact]) -> str:
    """Return a title, names with texts, and caveats as lines, wrapped at words."""
    (_, title), *others = facts
    paragraphs = [
        (title, 4),
        *((f"  {name:<14} {text}", 17) for name, text in others if name),
        *((f"  {text}", 4) for name, text in others if not name),
    ]
    return "\n".join(wrap_line(text, indent) for text, indent in paragraphs)


def plan_facts(plan: PlannedSearch, *, in_short: bool = False) -> list[Fact]:
    """Return rows of texts: a title, names with texts, and caveats.

    In short they are rows, pool, number of fits, and the caveats that are grave.
    """
    n, d = plan.labeled.X.shape
    pool = "none"
    if plan.pool is not None:
        n_tasks, size = len(plan.slices), format_bytes(plan.pool.nbytes)
        tasks = f"read as {n_tasks} slice{'s' * (n_tasks != 1)}"
        pool = f"{plan.pool.n_rows:,} rows, {size}, {tasks}"
    folds, fits, pruning = _folds_and_fits(plan)
    what = f"{len(plan.classes)} classes"
    if plan.is_regression:
        least, most = plan.labeled.y.min(), plan.labeled.y.max()
        what = f"targets from {least:.4g} to {most:.4g}"
    labeled = f"{n:,} x {d}, {what}"
    if plan.groups is not None:
        labeled += f"; {plan.groups.n_groups:,} groups, one row of each is counted"
    facts = {"labeled rows": labeled, "pool": pool, "fits": fits}
    if not in_short:
        facts |= pruning | {
            "folds": folds,
            "memory": f"{format_bytes(_memory(plan))} for each worker of one thread",
            "certificate": _certificate_text(plan),
            **_baseline(plan),
            "seed": str(plan.seed),
        }
    violated = [
        assumption.reason for assumption in plan.assumptions if assumption.is_violated
    ]
    caveats = collect_caveats(
        make_caveats(Effect.PLAN, plan.fit_notes),
        plan.caveats,
        make_caveats(Effect.VOIDS, violated),
    )
    candidates = f"{plan.n_candidates} candidate{'s' * (plan.n_candidates != 1)}"
    return [
        ("", f"Plan of {candidates} over ({', '.join(plan.axes.sizes)})"),
        *facts.items(),
        *(
            ("", f"{'NOT CERTIFIED: ' * (caveat.effect is Effect.VOIDS)}{caveat}")
            for caveat in caveats
            if caveat.effect in GRAVE or not in_short
        ),
    ]


def _folds_and_fits(plan: PlannedSearch) -> tuple[str, str, dict[str, str]]:
    """Return texts about folds, fits, and how candidates are pruned, if they are."""
    scheme = plan.scheme
    k, splits = scheme.n_folds, len(scheme.splits)
    whole = " of whole groups" * (plan.groups is not None)
    name = f"{k}{whole}"
    if scheme.n_halvings:
        folds = f"{scheme.n_halvings} random halvings"
    elif scheme.is_holdout:
        every = " and all rows" * (scheme.all_rows is not None)
        folds = f"1{whole}, of {scheme.fold_rows[0]:,} labeled rows{every}"
    elif plan.method.is_nested:
        every = f"candidates are fitted without each of {splits} pairs of folds, and "
        folds = f"{name}; {every * bool(splits)}the chosen ones without each fold"
        folds += " and on all rows" * (plan.pool is not None)
    else:
        folds = f"{name}{' and all rows' * (scheme.all_rows is not None)}"
    least, most = plan.fits_range()
    if plan.is_halved:
        pruning = (
            "after a first round of fits each search keeps the best third of its "
            "candidates, and may miss the one that is best on all folds; "
            "prune='exact' never does"
        )
        return folds, f"{least:,} to {most:,}", {"pruning": pruning}
    unit = plan.fit_unit.removeprefix("fits")
    count = f"{most:,}{unit and f' {unit}'}"
    if plan.prune != Pruning.EXACT:
        return folds, count, {}
    return (
        folds,
        f"{count} at most",
        {"pruning": "candidates that cannot win are dropped"},
    )


def _memory(plan: PlannedSearch) -> int:
    """Return the estimated bytes of a worker process, with all imports."""
    read, groups = 0, plan.context.candidate_groups
    n_groups = Counter(id(group.family) for group in groups)
    families = {id(group.family): group.family for group in groups}
    shared = sum(
        families[key].shared_nbytes(n, len(plan.labeled.y))
        for key, n in n_groups.items()
    )
    if plan.pool is not None:  # three copies of a chunk: stored, decoded, as rows
        longest = int(np.diff(plan.pool.boundaries).max(initial=0))
        read = 3 * longest * plan.pool.row_nbytes
    # Imports, and three times the labeled rows: themselves, those of a fit, and models.
    return 400 * 2**20 + 3 * nbytes_of(plan.labeled.X) + shared + read


def _certificate_text(plan: PlannedSearch) -> str:
    """Return the entry of the certificate: its delta, losses and models."""
    if not plan.certificate:
        return f"none: {plan.criterion.name} is an estimate"
    text, k = f"{plan.certificate} at delta={plan.delta:g}", plan.scheme.n_folds
    text += ", divided by `prior`" * (plan.prior_shares is not None)
    losses = plan.context.losses
    if plan.is_regression:
        text += f"; of {shorten_text(repr(losses.main))}"
        n = len(losses.tolerances)
        text += f" and a report of {n} share{'s' * (n > 1)}" * (n > 0)
    elif replace(losses, baseline=None) != DeclaredLosses():
        is_error = losses.main == ERROR_RATE
        text += f"; of {'the ' * is_error}{shorten_text(repr(losses.main))}"
        n = len(losses.report_classes)
        text += f" and a report of {n} classes" * (n > 0)
    if losses.by_value is not None:
        column, n = losses.by_value.column, len(losses.by_value.column.values)
        what = "limits" if plan.is_regression else "errors"
        text += f"; {what} by {column.name}, of {n} value{'s' * (n != 1)}"
    if not plan.method.is_nested:
        return text
    models = [f"trained on {1 - 1 / k:.0%} of the labels", "trained on all labels"]
    if plan.pool is None:
        return f"{text}, of the model {models[0]}"
    if plan.deploy != ONE_FOLD:
        models.reverse()
    text += f", of the model {models[0]}, which is deployed, and of that {models[1]}"
    if plan.n_queries:
        n = plan.n_queries
        text += (
            f"; labels of {n:,} pool row{'s' * (n > 1)} on which they differ will "
            f"be queried; {QUERY_SHARES.queries:.0%} of delta is for them"
        )
    return text


def _baseline(plan: PlannedSearch) -> dict[str, str]:
    """Return a text about the baseline by its name; empty without a baseline."""
    difference = plan.context.losses.baseline
    if difference is None:
        return {}
    what, *others = dict.fromkeys(difference.described)
    what = "always predicting the largest class" if others else what
    return {
        "baseline": f"whether the models err less than {what}, at delta="
        f"{plan.delta:g} of its own"
    }
