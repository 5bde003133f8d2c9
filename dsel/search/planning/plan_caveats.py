"""Caveats and assumptions of a plan's numbers, known before it runs."""

from collections.abc import Sequence
from math import nan
from typing import Any, Final

import numpy as np

from dsel.arrays import Floats
from dsel.candidates import caveats_of_parameters
from dsel.checks import show
from dsel.data.duplicates import duplicate_finder
from dsel.data.frames import take_rows
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.targets import notes_on_similar_labels
from dsel.losses.base import FoldCounts, Rows, stack_folds
from dsel.losses.calls import count_rows, naming_loss
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import DECLARED, LARGE, VIOLATED, Assumption, full_list
from dsel.rounded_texts import count_of, in_percent
from dsel.search.design.assumptions import (
    DuplicatesAcrossFolds,
    caveats_of_rows,
    caveats_of_sizes,
)
from dsel.search.design.folds import CVScheme
from dsel.search.planning.plan_inputs import PoolParts, SearchInputs
from dsel.search.running.planned_search import SearchDesign

GIVEN_FOLDS: Final = "the folds are not plain random: `cv` gave them"
IN_GROUPS: Final = (
    "labeled rows come in groups, so they are not independent, and these folds are no "
    "random folds of groups; for a bound pass a number of folds as `cv`, and `groups`"
)
WITHOUT_POOL: Final = (
    "labeled rows and the rows that the model will meet are independent draws from one "
    "population"
)
"""Text of A1 without a pool."""
OF_GROUPS: Final = (
    "groups are independent draws from one population, and the labeled rows of a group "
    "are all of its rows or a random part of them"
)
"""Text of A1 if rows come in groups."""
UNREAD_POOL: Final = (
    "`pool` is not read: the groups of its rows are not known, so its rows may not be "
    "independent draws; the bound is about the model trained without one of the folds"
)
OTHER_RECORDS: Final = (
    "the pool, of which learners get a part, was declared to hold other records than "
    "the labeled rows"
)


def notes_on_scoring(inputs: SearchInputs, losses: DeclaredLosses) -> list[str]:
    """Return a note about a search that ranks by something else than is bounded."""
    if losses.main != ERROR_RATE:
        return []
    parts = [
        part
        for candidate in inputs.candidates[:1]
        for part in (candidate.estimator, *candidate.estimator.get_params().values())
        if hasattr(part, "fit") and not isinstance(part, type)
        # Only learners with inner folds choose by `scoring`; others, such as
        # HistGradientBoostingClassifier, merely decide by it when to stop.
        if hasattr(part, "cv")
    ]
    scorings = {
        type(part).__name__: part.scoring
        for part in parts
        if getattr(part, "scoring", None) not in (None, "accuracy")
    }
    return [
        f"{kind} ranks by scoring={show(scoring)}, and the bound is about the error, "
        f"the share of wrong predictions; for another bound pass loss='balanced', "
        f"'recall:CLASS' or 'precision:CLASS'"
        for kind, scoring in scorings.items()
    ]


def plan_caveats(
    design: SearchDesign,
    inputs: SearchInputs,
    parts: PoolParts,
    duplicates: DuplicatesAcrossFolds,
) -> tuple[Caveat, ...]:
    """Return the caveats of a design, the gravest first."""
    scheme, labeled, groups = design.scheme, design.labeled, design.groups
    losses = design.context.losses
    given_folds = [] if scheme.is_plain_random else [GIVEN_FOLDS]
    group_caveats = [] if groups is None else groups.caveats()
    if groups is not None and parts.counted is not None:
        group_caveats.append(UNREAD_POOL)
    loss_caveats: list[str] = []
    if design.method.is_guarantee:  # else rows cannot be too few for a bound
        counted = labeled.y[scheme.counted_rows]
        label_delta = design.planned_delta.label_delta
        loss_caveats = losses.caveats(counted, scheme.n_folds, label_delta)
    texts = (label for label in labeled.classes.tolist() if isinstance(label, str))
    similar = notes_on_similar_labels(texts)
    return collect_caveats(
        make_caveats(Effect.VOIDS, given_folds),
        inputs.caveats,
        parts.caveats,
        make_caveats(
            Effect.WEAKENS,
            group_caveats + caveats_of_parameters(inputs.estimator, inputs.candidates),
        ),
        duplicates.caveats(
            has_classes=not design.is_regression, has_pool=design.pool is not None
        ),
        caveats_of_rows(labeled, scheme),
        make_caveats(
            Effect.INFO,
            notes_on_scoring(inputs, losses) + notes_on_names(labeled, design.pool),
        ),
        make_caveats(Effect.WARNS, similar),
        make_caveats(Effect.PLAN, _of_prior(design.prior_shares)),
        make_caveats(Effect.PLAN, filter(None, [note_on_possible_bound(design)])),
        caveats_of_sizes(
            scheme,
            design.pool,
            "row" if groups is None else "group",
            is_guarantee=design.method.is_guarantee,
        ),
        make_caveats(Effect.PLAN, name_counted_rows(loss_caveats, scheme, groups)),
    )


def notes_on_names(labeled: LabeledRows, pool: Pool | None) -> list[str]:
    """Return a note where only one of `X` and the pool has names of columns."""
    if pool is None or bool(labeled.columns) == bool(pool.columns):
        return []
    named, other = ("`X`", pool.where) if labeled.columns else (pool.where, "`X`")
    return [
        f"{named} has names of columns and {other} has none: columns are taken by "
        f"position"
    ]


def _of_prior(prior: Floats | None) -> list[str]:
    """Return a note about candidates without a share of delta, if there are some."""
    n_without = 0 if prior is None else int((prior == 0.0).sum())
    if prior is None or not n_without:
        return []
    return [
        f"`prior` gives {n_without} of {len(prior)} candidates the weight 0: they have "
        f"no bound and are not chosen"
    ]


def name_counted_rows(
    texts: Sequence[str], scheme: CVScheme, groups: RowGroups | None
) -> list[str]:
    """Return texts about labeled rows, which name those that a bound counts."""
    where = " and ".join(
        ["the hold-out set"] * scheme.is_holdout
        + ["one row of each group"] * (groups is not None)
    )
    return [f"of {where}: {text}" if where else text for text in texts]


def known_assumptions(
    design: SearchDesign, inputs: SearchInputs
) -> tuple[Assumption, ...]:
    """Return the assumptions of a certificate, as far as known before the run."""
    known, has_pool = list[Assumption](), design.pool is not None
    fitting = design.context.fitting_pool
    if inputs.groups is not None and design.scheme.is_plain_random:
        known.append(Assumption("A1", DECLARED, says=OF_GROUPS))
    elif inputs.groups is not None or "groups" in inputs.fit_params:
        known.append(Assumption("A1", VIOLATED, IN_GROUPS))
    elif not has_pool:
        known.append(Assumption("A1", says=WITHOUT_POOL))
    if fitting is not None:  # never the rows that are counted
        part = "learners see a part of the pool that is not counted"
        known.append(Assumption("A4", DECLARED, part))
        if fitting.other_records:
            known.append(Assumption("A3", DECLARED, OTHER_RECORDS))
    return full_list(known, has_pool=has_pool)


USELESS: Final = 0.9
"""Part of the largest loss from which on a bound says nothing of use."""
MOST_TIMES: Final = 100
"""Most multiples of the labeled rows that are tried in the search for enough rows."""


def smallest_limit(design: SearchDesign, times: int = 1) -> float:
    """Return the limit of the best fold if no model makes any error, part of `largest`.

    `times` as many rows are assumed. NaN if the loss is of numbers.
    """
    losses, labeled = design.context.losses, design.labeled
    main, folds = losses.main, [split.test_rows for split in design.scheme.held_out]
    if design.is_regression or main.statistic.fold_shape is None:
        return nan
    perfect = stack_folds(
        [
            count_rows(
                main.statistic,
                Rows(take_rows(labeled.X, rows), labeled.y[rows]),
                labeled.y[rows],
            )
            for rows in folds
        ]
    )
    counts = FoldCounts(times * perfect, times * np.array([len(f) for f in folds]))
    delta = losses.divide_delta(design.planned_delta.label_delta).main
    with naming_loss(main, "limits"):
        return float(np.min(main.limits(counts, delta))) / main.largest


def note_on_possible_bound(design: SearchDesign, above: float = LARGE) -> str:
    """Return a note if the bound is above a limit whatever the models are, else "".

    It says how many rows are enough for a bound of `LARGE`.
    """
    has_bound = design.method.is_guarantee and design.scheme.is_plain_random
    limit = smallest_limit(design) if has_bound else nan
    if not limit > above:  # NaN is not
        return ""
    main, y = design.context.losses.main, design.labeled.y[design.scheme.counted_rows]
    n_rows, unit = len(y), "labeled row" if design.groups is None else "group"
    classes: tuple[Any, ...] = getattr(main, "classes", ())
    of_class = ""
    if len(classes) == 1:
        n_rows = int((y == design.classes.tolist().index(classes[0])).sum())
        of_class = f" of the class {classes[0]!r}"
    times = range(2, MOST_TIMES)
    enough = next((n for n in times if smallest_limit(design, n) <= LARGE), None)
    if enough is None:  # more rows do not help, as where correct answers have a cost
        return ""
    return (
        f"with {count_of(n_rows, unit)}{of_class} in {design.scheme.n_folds} folds the "
        f"bound is {in_percent(limit)} or more even if no model makes an error; "
        f"about {enough * n_rows:,} are enough for 50%"
    )


def check_possible_bound(design: SearchDesign) -> None:
    """Raise ValueError if the bound of a plan cannot say anything of use.

    That is, if rows are too few, or if every row of a pool equals a labeled row.
    """
    # Other certificates bound no single fold, and may have folds of one row.
    bounds_folds = design.method.is_nested or design.scheme.is_holdout
    if bounds_folds and (note := note_on_possible_bound(design, USELESS)):
        what = design.context.losses.main.label
        name = "`y` has" if design.groups is None else "`groups` have"
        raise ValueError(f"{name} too few rows for a bound of {what!r}: {note}.")
    pool = design.pool
    # A larger pool is compared in the pass that reads it, next to the fits.
    has_bound = design.method.is_guarantee and design.scheme.is_plain_random
    if pool is None or not has_bound or pool.n_rows > design.labeled.n_rows:
        return
    if pool.other_records:
        return
    find = duplicate_finder(pool, design.labeled)
    n_equal = pool.reduce(
        lambda X, rows: int(find(X).sum()),
        lambda earlier, later: earlier + later,
        allow_nan=design.context.reading.allow_nan,
    )
    if n_equal == pool.n_rows:
        raise ValueError(
            f"`pool` must hold new rows: all {n_equal:,} of its rows equal labeled "
            f"rows, so they do not show how often models differ on new ones; pass "
            f"other rows, or leave `pool` out."
        )
