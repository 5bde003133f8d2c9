"""Caveats and assumptions of a plan's numbers, known before it runs."""

from collections.abc import Sequence
from typing import Final

from dsel.arrays import Floats
from dsel.candidates import caveats_of_parameters
from dsel.checks import show
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.targets import notes_on_similar_labels
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import DECLARED, VIOLATED, Assumption, full_list
from dsel.search.design.assumptions import caveats_of_rows, caveats_of_sizes
from dsel.search.design.folds import CVScheme
from dsel.search.planning.plan_inputs import PoolParts, SearchInputs
from dsel.search.planning.possible_bound import note_on_possible_bound
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
    design: SearchDesign, inputs: SearchInputs, parts: PoolParts
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
        caveats_of_rows(labeled, scheme, has_pool=design.pool is not None),
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
