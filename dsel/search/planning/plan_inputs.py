"""Labeled rows, candidates and pool of a plan, read and checked.

Candidates get a family, and a pool is divided where learners are fitted on some rows.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from dsel.arrays import (
    Estimator,
    Features,
    Floats,
)
from dsel.candidates import (
    Grid,
    candidate_key,
    candidate_texts,
    check_text,
    make_candidates,
    read_grid,
    takes_nan,
)
from dsel.checks import describe_unused_columns, listing
from dsel.data.frames import (
    Frame,
    number_matrix,
)
from dsel.data.groups import RowGroups, read_row_groups
from dsel.data.identity import NEVER_AGAIN
from dsel.data.labeled import MOST_WHOLE, LabeledRows, labeled_rows, match_pool
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.row_random import SUBSET_STREAM, seed_from
from dsel.errors import Words
from dsel.families.assignment import assign_families, name_group
from dsel.families.estimator_kinds import is_classifier, reader_of_labels, reads_marks
from dsel.families.family import Candidate
from dsel.families.fit_arguments import (
    check_fit_params,
    check_fit_takes,
    check_groups_reach,
    check_pool_learners,
    groups_arguments,
    takes_pool,
)
from dsel.losses.by_value import ValueColumn, find_column
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.cube import GridAxes, grid_axes
from dsel.rounded_texts import count_of
from dsel.search.design.search_options import SearchOptions
from dsel.search.engine.jobs import CandidateGroup
from dsel.typing import AnyArray, LabelsLike, Options, PoolLike, RowsLike

FITTING_FRACTION: Final = 0.5
"""Fraction of the pool for learners that want one; the other half is counted."""


@dataclass(frozen=True, kw_only=True)
class CallerSettings:
    """Settings of a system built on the search, which no search option expresses.

    They are passed to the plan, so that a plan is complete when it is made.
    """

    axes: GridAxes | None = None
    """Axes of candidates that a closed form ranks; None if families fit them."""
    leave_one_out: bool = False
    """Whether leave-one-out errors are counted, too."""
    violation: str = ""
    """Why the labeled rows are no random sample; "" if nothing is known against it."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats that the caller knows, next to those of the plan."""
    has_unique_ids: bool = False
    """Whether each labeled row has an id of its own, so that equal rows are different
    records."""
    categories: tuple[str, ...] = ()
    """Features that the caller has declared to be categories, and no keys of groups."""
    queried_pool: Pool | None = None
    """The pool from which queried rows are read; None for that of the search."""
    renamings: Words = field(default_factory=dict)
    """Words of the caller, for all texts of the search."""


@dataclass(frozen=True)
class SearchInputs:
    """Labeled rows and candidates, checked and read."""

    seed: int
    estimator: Estimator | None
    """The argument `estimator`; None if the grid lists estimators."""
    candidates: tuple[Candidate, ...]
    candidate_groups: tuple[CandidateGroup, ...]
    """The candidates in groups that share work."""
    axes: GridAxes
    labeled: LabeledRows
    """Labeled rows for the candidates: numbers, if none of them reads a data frame."""
    given_rows: Features
    """The labeled rows before this conversion: array, CSR matrix or `Frame`."""
    takes_pool: bool
    """Whether a learner is also fitted on a subset of the pool."""
    allow_nan: bool
    """Whether every candidate accepts missing values."""
    fit_params: Mapping[str, Any]
    row_groups: RowGroups | None
    """Groups of the labeled rows; None without ``groups=``."""
    column: ValueColumn | None
    """The column of ``report_by=``."""
    target: Hashable | None
    """Name of `y`; None if it has none."""
    fit_notes: tuple[str, ...]
    """How families will fit the candidates."""
    caveats: tuple[Caveat, ...]
    """Caveats about the order of the rows, stored keys, and targets."""


@dataclass(frozen=True)
class DividedPool:
    """A pool, and its subsets for counts and for fits; all None without a pool."""

    whole: Pool | None = None
    """All rows and columns."""
    counted: Pool | None = None
    """Rows on which models are compared."""
    fitting: Pool | None = None
    """Rows for learners that are fitted on pool rows, too; never counted rows."""
    caveats: tuple[Caveat, ...] = ()
    """Notes about the columns of the pool."""


def read_inputs(
    estimator: Estimator | None,
    param_grid: Grid,
    X: RowsLike,
    y: LabelsLike,
    search_options: SearchOptions,
) -> SearchInputs:
    """Check and read labeled rows and candidates; see `plan_search`."""
    seed = seed_from(search_options.random_state)
    # The grid is read here and nowhere else, since a generator gives its candidates
    # only once.
    grid = read_grid(param_grid, seed)
    candidates = make_candidates(estimator, grid, allows_regression=True)
    estimators = [candidate.estimator for candidate in candidates]
    original = read_labeled_rows(X, y, estimators)
    params = check_fit_params(search_options.fit_params, original.n_rows)
    check_fit_takes(params, estimators)
    row_groups = None
    if search_options.groups is not None:
        row_groups = read_row_groups(search_options.groups, original.n_rows)
    target = getattr(y, "name", None)
    column = None
    if search_options.report_by is not None:
        rows = original.X
        # With groups one row of each is counted. Values of other rows must not decide
        # which values are reported: given these, the counted rows would be no fresh
        # draws.
        if row_groups is not None:
            rows = rows[row_groups.draw_rows(seed)]
        column = find_column(search_options.report_by, rows, original.columns, target)
    texts = candidate_texts(candidates)
    candidate_groups, fit_notes = group_candidates(
        candidates, texts, original, seed, params, row_groups
    )
    kind = type(estimators[0]).__name__
    order = [caveat_of_order(X, y), caveat_of_order(X, search_options.groups, "groups")]
    on_targets = note_on_targets(original.y, kind) if original.is_regression else ""
    wants_pool = any(map(takes_pool, estimators))
    return SearchInputs(
        seed=seed,
        estimator=estimator,
        candidates=candidates,
        candidate_groups=candidate_groups,
        axes=grid_axes(grid),
        labeled=rows_for_fits(original, candidate_groups, takes_pool=wants_pool),
        given_rows=original.X,
        takes_pool=wants_pool,
        allow_nan=takes_nan(estimators),
        fit_params=params,
        row_groups=row_groups,
        column=column,
        target=target,
        fit_notes=tuple(fit_notes),
        caveats=collect_caveats(
            make_caveats(Effect.WARNS, filter(None, order)),
            make_caveats(Effect.INFO, filter(None, [on_targets])),
            make_caveats(Effect.PLAN, _notes_of_keys(texts)),
        ),
    )


def read_labeled_rows(
    X: RowsLike, y: LabelsLike, estimators: Sequence[Estimator]
) -> LabeledRows:
    """Return the labeled rows; raise where every fit would, each with its own error."""
    labeled = labeled_rows(
        X,
        y,
        allow_nan=takes_nan(estimators),
        as_frame=True,
        as_numbers=not is_classifier(estimators[0]),
    )
    check_text(estimators, labeled.X)
    check_takes_labels(estimators, labeled.classes)
    return labeled


def rows_for_fits(
    original: LabeledRows,
    candidate_groups: Sequence[CandidateGroup],
    *,
    takes_pool: bool,
) -> LabeledRows:
    """Return the labeled rows as candidates get them: numbers, if none reads a frame.

    Learners that are also fitted on rows of the pool get no names of columns.
    """
    reads_frame = any(
        isinstance(
            candidate_group.family.rows_of(candidate.estimator, original.X), Frame
        )
        for candidate_group in candidate_groups
        for candidate in candidate_group.candidates
    )
    if reads_frame and not takes_pool:
        return original
    schema = None if takes_pool else original.schema
    return replace(original, X=number_matrix(original.X), schema=schema)


def check_takes_labels(estimators: Iterable[Estimator], classes: AnyArray) -> None:
    """Raise ValueError for labels that an estimator would not accept as classes.

    Classifiers of XGBoost need 0, 1, ..., and -1 is no class for semi-supervised
    learners; classifiers of other libraries code labels themselves.
    """
    if np.array_equal(classes, np.arange(len(classes))):
        return
    for estimator in estimators:
        last = reader_of_labels(estimator)
        if reads_marks(last) and -1 in classes.tolist():
            raise ValueError(
                f"`y` has the class -1, which marks rows without a label for "
                f"{type(last).__name__}; rename it, y = numpy.where(y == -1, 0, 1)."
            )
        if type(last).__module__.startswith("xgboost.") and is_classifier(last):
            shown = listing([repr(label) for label in classes.tolist()], 3)
            raise ValueError(
                f"`y` must have the labels 0 to {len(classes) - 1} for "
                f"{type(last).__name__}, got {shown}; encode them, "
                f"y = sklearn.preprocessing.LabelEncoder().fit_transform(y)."
            )


def divide_pool(
    pool: PoolLike, search_inputs: SearchInputs, max_rows: int | None
) -> DividedPool:
    """Open a pool with the labeled rows' columns, and divide it.

    At most about `max_rows` rows are counted.
    """
    if pool is None:
        return DividedPool()
    check_pool_learners(candidate.estimator for candidate in search_inputs.candidates)
    rows = search_inputs.given_rows
    if isinstance(pool, np.ndarray) and isinstance(rows, Frame):
        schema = rows.schema
        if not schema.is_numeric:
            raise TypeError(
                f"`pool` must be a data frame, as `X` is, with its columns "
                f"{listing(schema.names, 8)}, of which some hold no numbers, got "
                f"{type(pool).__name__}."
            )
    whole = open_pool(pool)
    counted, fitting = match_pool(whole, search_inputs.labeled), None
    caveats = _caveats_of_columns(whole, counted, search_inputs)
    if search_inputs.takes_pool:
        # Rows are divided by random words, not by order: both subsets must have one
        # distribution.
        fitting = counted.subset(0.0, FITTING_FRACTION, seed=search_inputs.seed)
        counted = counted.subset(FITTING_FRACTION, 1.0, seed=search_inputs.seed)
    if max_rows is not None:
        counted = _sample_rows(counted, max_rows, search_inputs.seed)
    if counted.n_rows == 0:
        raise ValueError(
            "`pool` must have rows to be counted, got none; pass more, or None to go "
            "without it."
        )
    return DividedPool(whole, counted, fitting, caveats)


def _caveats_of_columns(
    whole: Pool, counted: Pool, search_inputs: SearchInputs
) -> tuple[Caveat, ...]:
    """Return how columns of the pool are found, and which of them are left out."""
    whole_names, counted_names = whole.columns or (), counted.columns or ()
    # With groups nothing of the pool is read, and a column may hold their keys.
    if whole_names == counted_names or search_inputs.row_groups is not None:
        return ()
    columns = list[str]()
    if unused := describe_unused_columns(whole_names, counted_names):
        columns = [f"not used: {unused}"]
    if search_inputs.target in {*whole_names} - {*counted_names}:
        columns = [
            f"column {search_inputs.target!r} of `pool` has the name of `y`, and is "
            f"left out: rows with a label are labeled rows, and no pool"
        ]
    notes = ["columns of `pool` are found by their names"]
    return (*make_caveats(Effect.INFO, columns), *make_caveats(Effect.PLAN, notes))


def _sample_rows(pool: Pool, max_rows: int, seed: int) -> Pool:
    """Return about `max_rows` rows of a pool; ValueError if chance has drawn none."""
    n_rows = pool.n_rows
    if max_rows >= n_rows:
        return pool
    # The rows are drawn at random, since the first rows may be those of one day, and
    # they are fixed in advance.
    sample = pool.subset(0.0, max_rows / n_rows, seed=seed, stream=SUBSET_STREAM)
    if sample.n_rows == 0:
        raise ValueError(
            f"`max_pool_rows` must be large enough for a random part of the "
            f"{n_rows:,} pool rows, got {max_rows:,}, of which chance has drawn "
            f"none; pass a larger one."
        )
    return sample


def group_candidates(
    candidates: tuple[Candidate, ...],
    texts: Mapping[int, str],
    labeled: LabeledRows,
    seed: int,
    fit_params: Options,
    row_groups: RowGroups | None,
) -> tuple[tuple[CandidateGroup, ...], list[str]]:
    """Return the candidates in groups that share work, and notes about their fits.

    `texts` identify the candidates, by number.
    """
    are_wanted = False
    if row_groups is not None:
        for candidate in candidates:
            check_groups_reach(candidate.estimator)
        # In other cases the keys, which may be long texts, are not sent to workers.
        are_wanted = any(
            groups_arguments(candidate.estimator) for candidate in candidates
        )
    assignments = assign_families(
        candidates,
        labeled.X,
        classes=labeled.classes,
        seed=seed,
        fit_params=fit_params,
        group_by_row=row_groups.by_row
        if row_groups is not None and are_wanted
        else None,
    )
    candidate_groups: list[CandidateGroup] = []
    notes = []
    for assigned in assignments:
        family = assigned.family
        for members in assigned.candidate_groups:
            keys = tuple(
                candidate_key(family.name, member, texts[member.number])
                for member in members
            )
            short_name = name_group(members, len(candidate_groups))
            candidate_groups.append(
                CandidateGroup(len(candidate_groups), family, members, keys, short_name)
            )
        n = sum(map(len, assigned.candidate_groups))
        plural = "s" if n != 1 else ""
        notes.append(f"{n} candidate{plural} by {family.name}: {assigned.fit_note}")
    return tuple(candidate_groups), notes


def _notes_of_keys(texts: Mapping[int, str]) -> tuple[str, ...]:
    """Return a note if another run cannot recognize some candidates."""
    n = sum(NEVER_AGAIN in text for text in texts.values())
    if not n:
        return ()
    return (
        f"{count_of(n, 'candidate', 'holds', 'hold')} what cannot be pickled: another "
        f"run with the same `out` counts {'it' if n == 1 else 'them'} again",
    )


def caveat_of_order(X: RowsLike, y: LabelsLike | None, name: str = "y") -> str:
    """Return a caveat where rows and labels have one index in two orders, or "".

    `name` is that of the argument `y`, which may also be the keys of groups, or None.
    """
    rows, labels = (getattr(table, "index", None) for table in (X, y))
    # Lists have a method `index`, which is no pandas index.
    if not (isinstance(rows, pd.Index) and isinstance(labels, pd.Index)):
        return ""
    if rows.equals(labels) or len(rows) != len(labels):
        return ""
    if not (rows.is_unique and labels.is_unique) or len(rows.difference(labels)):
        return ""
    what = "label" if name == "y" else "key"
    return (
        f"`X` and `{name}` have the same index in another order: the first {what} is "
        f"taken for the first row and so on, as scikit-learn does; "
        f"{name}.loc[X.index] sorts them"
    )


def note_on_targets(y: Floats, estimator: str) -> str:
    """Return a note where the numbers of a regression may be classes, or ""."""
    if (y != np.rint(y)).any():
        return ""
    n_values = len(np.unique(y))
    if n_values > MOST_WHOLE:
        return ""
    return (
        f"`y` has {n_values} different whole numbers, and {estimator} predicts "
        f"numbers: if they are classes, pass a classifier"
    )
