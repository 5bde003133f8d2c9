"""Caveats and assumptions of a plan's numbers, known before it runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import sparse

from dsel.arrays import Features
from dsel.candidates import caveats_of_parameters
from dsel.checks import listing, show
from dsel.data.duplicate_rows import duplicate_finder
from dsel.data.frames import Frame
from dsel.data.groups import RowGroups, notes_on_identifiers
from dsel.data.identity import is_of_dsel
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.targets import notes_on_copies, notes_on_similar_labels
from dsel.errors import Correction, ShellOptions, UndecidedError
from dsel.families.family import Candidate
from dsel.losses.by_class import Precision, Recall
from dsel.losses.declared import DeclaredLosses, FewRows
from dsel.losses.protocols import Loss
from dsel.losses.regression import ErrorQuantile, largest_fraction
from dsel.results.assumptions import DECLARED, VIOLATED, Assumption, full_list
from dsel.results.caveats import (
    Caveat,
    Effect,
    caveats_of_identifiers,
    collect_caveats,
    make_caveats,
)
from dsel.results.certificate import LARGE, ONE_OF_EACH
from dsel.rounded_texts import about_percent, count_of, in_percent
from dsel.search.design.assumption_checks import DuplicatesAcrossFolds
from dsel.search.design.baseline import note_on_positions
from dsel.search.design.cv_schemes import CVScheme
from dsel.search.planned_search import PlannedSearch
from dsel.search.planning.plan_inputs import DividedPool, SearchInputs
from dsel.search.planning.plan_text import UNREAD_POOL
from dsel.search.planning.possible_bounds import (
    MOST_TIMES,
    note_on_constant,
    smallest_limit,
)
from dsel.typing import AnyArray

MOST_CLASSES_NAMED: Final = 5
"""Most classes that a caveat names."""
RARE_ROWS: Final = 5
"""Most rows of a class whose name may be a misspelling ..."""
LARGE_TIMES: Final = 20
"""... of another class that has at least this many times its rows."""
MOST_RARE: Final = 20
"""Most rare classes whose names are compared; where more are rare, that is normal."""
SMALL_POOL: Final = 1_000
FEW_ROWS: Final = 20
"""With fewer rows the limit of a fold is too large to be useful."""
_FEW_VALUES: Final = 10
_TOLERANCE: Final = {np.dtype(np.float32): 1e-4}
"""Tolerance of a scaled column's moments by type; otherwise 1e-5, for four decimals."""
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
    "groups{} are independent draws from one population, and the labeled rows of a "
    "group are all of its rows or a random part of them"
)
"""Text of A1 if rows come in groups; the end of the name is that of their column."""
OTHER_RECORDS: Final = (
    "the pool, of which learners get a part, was declared to hold other records than "
    "the labeled rows"
)


BY_ACCURACY: Final = (None, "accuracy", "warn")
"""Values of `scoring` that rank classifiers by accuracy; "warn" is the default of
LogisticRegressionCV in scikit-learn 1.9."""


BY_CLASS: Final = ("balanced_accuracy", "recall_macro")
"""Values of `scoring` that give all classes the same weight, which suits a loss by
class."""
BY_LOSS: Final[Mapping[type[Loss], str]] = {Recall: "recall", Precision: "precision"}
"""The value of `scoring` that ranks by a loss of one class."""


def notes_on_scoring(search_inputs: SearchInputs, losses: DeclaredLosses) -> list[str]:
    """Return notes about searches that rank by something else than is bounded."""
    if losses.main.is_regression:
        return []
    what = losses.main.title[:1].lower() + losses.main.title[1:]
    notes = list[str]()
    for kind, scoring in _scorings(search_inputs.candidates):
        is_accuracy = isinstance(scoring, str | None) and scoring in BY_ACCURACY
        shown = "the accuracy" if is_accuracy else f"scoring={show(scoring)}"
        if losses.is_about_error and not is_accuracy:
            notes.append(
                f"{kind} ranks by {shown}, and the bound is about the error, the share "
                f"of wrong predictions; for another bound pass loss='balanced', "
                f"'recall:CLASS' or 'precision:CLASS'"
            )
        # Nobody knows what a scorer of a user's own ranks by.
        suits = not isinstance(scoring, str | None) or scoring in (
            *BY_CLASS,
            BY_LOSS.get(type(losses.main)),
        )
        if not (losses.is_about_error or (suits and not is_accuracy)):
            note = f"{kind} ranks by {shown}, and the bound is about the {what}"
            if not losses.main.is_cost:
                note += (
                    f"; scoring='balanced_accuracy' in {kind} gives all classes the "
                    f"same weight"
                )
            notes.append(note)
    return notes


def _scorings(candidates: Iterable[Candidate]) -> list[tuple[str, Any]]:
    """Return the kinds of searches inside of candidates, with their `scoring`."""
    scorings = dict[tuple[str, str], tuple[str, Any]]()
    seen = set[tuple[Any, ...]]()
    for candidate in candidates:
        # A grid may list searches, set them as a part, or set their scoring. Other
        # values, of which there may be thousands, change none of this.
        settings = map(_part_of_search, candidate.params.items())
        parts = type(candidate.estimator), *settings
        if candidate.params and parts in seen:
            continue
        seen.add(parts)
        for estimator in (
            candidate.estimator,
            *candidate.estimator.get_params().values(),
        ):
            # Only learners with inner folds choose by `scoring`; others, such as
            # HistGradientBoostingClassifier, merely decide by it when to stop.
            is_estimator = hasattr(estimator, "fit") and not isinstance(estimator, type)
            if is_estimator and hasattr(estimator, "cv"):
                kind = type(estimator).__name__
                scoring = getattr(estimator, "scoring", None)
                scorings[kind, repr(scoring)] = kind, scoring
    return [*scorings.values()]


def _part_of_search(item: tuple[str, Any]) -> tuple[str, Any]:
    """Return what of a parameter may change which search a candidate is."""
    name, value = item
    if name.endswith("scoring"):
        return name, repr(value)
    return name, id(value) if hasattr(value, "fit") else None


def plan_caveats(
    search: PlannedSearch,
    search_inputs: SearchInputs,
    divided_pool: DividedPool,
    duplicates: DuplicatesAcrossFolds,
    categories: Collection[str] = (),
) -> tuple[Caveat, ...]:
    """Return the caveats of a search, the gravest first.

    `categories` are features that are declared to be some.
    """
    scheme, labeled, row_groups = search.scheme, search.labeled, search.row_groups
    losses = search.context.losses
    given_folds = [] if scheme.is_plain_random else [GIVEN_FOLDS]
    group_caveats, in_groups = list[str](), list[Caveat]()
    if row_groups is None:
        identifiers = notes_on_identifiers(
            search_inputs.given_rows, labeled.columns, categories
        )
        in_groups = caveats_of_identifiers(identifiers)
    else:
        group_caveats = row_groups.caveats() + [UNREAD_POOL] * (
            divided_pool.counted is not None
        )
    few_rows = list[FewRows]()
    of_prior = list[str]()
    if search.prior_shares is not None and (search.prior_shares == 0.0).any():
        of_prior = [
            f"`prior` gives {int((search.prior_shares == 0.0).sum())} of "
            f"{len(search.prior_shares)} candidates the weight 0: they have no bound "
            f"and are not chosen"
        ]
    if search.method.is_guarantee:  # otherwise rows cannot be too few for a bound
        counted = labeled.y[scheme.counted_rows]
        label_delta = search.planned_delta.model_label_delta
        few_rows = losses.caveats(counted, scheme.n_folds, label_delta)
    texts = (label for label in labeled.classes.tolist() if isinstance(label, str))
    similar = notes_on_similar_labels(texts)
    return collect_caveats(
        make_caveats(Effect.VOIDS, given_folds),
        search_inputs.caveats,
        divided_pool.caveats,
        make_caveats(
            Effect.WEAKENS,
            group_caveats
            + caveats_of_parameters(search_inputs.estimator, search_inputs.candidates),
        ),
        duplicates.caveats(
            has_classes=not search.is_regression, has_pool=search.pool is not None
        ),
        caveats_of_rows(labeled, scheme),
        caveats_of_copies(
            search_inputs.given_rows, labeled.y, labeled.columns, search_inputs.target
        ),
        make_caveats(Effect.INFO, notes_on_inputs(search, search_inputs)),
        [*in_groups, *make_caveats(Effect.WARNS, similar)],
        make_caveats(Effect.PLAN, of_prior),
        make_caveats(Effect.PLAN, notes_on_possible_bound(search)),
        caveats_of_sizes(
            scheme,
            search.pool,
            "row" if row_groups is None else "group",
            is_guarantee=search.method.is_guarantee,
        ),
        # A run repeats how many rows it lacks for any bound.
        (
            Caveat(
                Effect.INFO if caveat.infinite_loss else Effect.PLAN,
                caveat.text,
                infinite_loss=caveat.infinite_loss,
            )
            for caveat in name_counted_rows(few_rows, scheme, row_groups)
        ),
    )


def notes_on_inputs(search: PlannedSearch, search_inputs: SearchInputs) -> list[str]:
    """Return notes on scores, columns that are taken by position, and proofs."""
    losses, labeled = search.context.losses, search.labeled
    notes = notes_on_scoring(search_inputs, losses)
    if search.pool is not None and bool(labeled.columns) != bool(search.pool.columns):
        named, other = "`X`", search.pool.where
        if not labeled.columns:
            named, other = other, named
        notes.append(note_on_positions(named, other))
    if search.context.baseline is not None and search.context.baseline.takes_positions:
        notes.append(note_on_positions("`X`", "`baseline`"))
    notes += notes_on_proofs(losses.main, search.criterion, search.method)
    return notes


def caveats_of_copies(
    X: Features, y: AnyArray, columns: Sequence[str] | None, target: object
) -> list[Caveat]:
    """Return a caveat for each column that alone determines the label.

    `columns` and `target` are their names, None without names.
    """
    if sparse.issparse(X):  # many columns of words or counts have few values each
        return []
    frame = X.given if isinstance(X, Frame) else pd.DataFrame(X, copy=False)
    if columns is not None:
        frame = frame.set_axis(list(columns), axis=1)
    name = "`y`" if target is None else repr(target)
    notes = notes_on_copies(frame, y, name, has_options=False)
    return make_caveats(Effect.WEAKENS, notes)


def notes_on_proofs(main: Loss, *other_objects: object) -> list[str]:
    """Return a note about a bound of which parts are of users, as are their proofs."""
    objects = [
        part for part in (main, main.statistic, *other_objects) if not is_of_dsel(part)
    ]
    names = list(dict.fromkeys(type(part).__name__ for part in objects))
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    return [f"{' and '.join(names)} {verb} not of dsel, nor is the proof of this bound"]


def name_counted_rows(
    few_rows: Sequence[FewRows], scheme: CVScheme, row_groups: RowGroups | None
) -> list[FewRows]:
    """Return caveats about few rows, which name those that a bound counts."""
    where = " and ".join(
        ["the hold-out set"] * scheme.is_holdout
        + [ONE_OF_EACH] * (row_groups is not None)
    )
    if not where:
        return [*few_rows]
    # Only the number of groups counts where targets are numbers.
    counts_groups = row_groups is not None and not scheme.is_holdout
    return [
        caveat._replace(
            text=caveat.text.replace("labeled rows", "groups")
            if counts_groups and caveat.infinite_loss
            else f"of {where}: {caveat.text}"
        )
        for caveat in few_rows
    ]


def known_assumptions(
    search: PlannedSearch,
    search_inputs: SearchInputs,
    duplicates: DuplicatesAcrossFolds,
    violation: str = "",
) -> tuple[Assumption, ...]:
    """Return the assumptions of a certificate, as far as they are known before the run.

    `violation` is the reason why labeled rows are known to be no random sample, or "".
    """
    known = list[Assumption]()
    has_pool = search.pool is not None
    fitting = search.context.fitting_pool
    if violation:
        known.append(Assumption("A1", VIOLATED, violation))
    elif search_inputs.row_groups is not None and search.scheme.is_plain_random:
        column = None if search.row_groups is None else search.row_groups.column
        says = OF_GROUPS.format(f" by {column!r}" if column else "")
        known.append(Assumption("A1", DECLARED, says=says))
    elif search_inputs.row_groups is not None or "groups" in search_inputs.fit_params:
        known.append(Assumption("A1", VIOLATED, IN_GROUPS))
    else:
        copied = duplicates.violation_without_pool
        state = VIOLATED if copied else DECLARED
        says = "" if has_pool else WITHOUT_POOL
        known.append(Assumption("A1", state, copied, says))
    if fitting is not None:  # never the rows that are counted
        part = "learners see a part of the pool that is not counted"
        known.append(Assumption("A4", DECLARED, part))
        if fitting.other_records:
            known.append(Assumption("A3", DECLARED, OTHER_RECORDS))
    return full_list(known, has_pool=has_pool)


USELESS: Final = 0.9
"""Part of the largest loss from which on a bound says nothing of use."""


def caveats_of_rows(labeled: LabeledRows, scheme: CVScheme) -> list[Caveat]:
    """Return caveats about rows that weaken a number, but for duplicates."""
    X = labeled.X.float_columns if isinstance(labeled.X, Frame) else labeled.X
    texts = [_caveat_of_scaling(X)]
    if len(labeled.classes):
        texts += [
            _caveat_of_absent_classes(labeled, scheme),
            *_caveats_of_spelling(labeled),
        ]
    return make_caveats(Effect.WEAKENS, filter(None, texts))


def _caveat_of_absent_classes(labeled: LabeledRows, scheme: CVScheme) -> str:
    """Return a caveat if some models are trained without any row of a class."""
    class_codes = np.arange(len(labeled.classes))
    lacking = [
        np.setdiff1d(class_codes, labeled.y[split.train_rows])
        for split in scheme.splits or scheme.outer_splits
    ]
    n_lacking = sum(len(absent) > 0 for absent in lacking)
    if not n_lacking:
        return ""
    classes = [
        f"{show(labeled.classes[code].item())} ({_rows_text(labeled, code)})"
        for code in np.unique(np.concatenate(lacking))
    ]
    return (
        f"{n_lacking} of {len(lacking)} trainings lack a class, which their models "
        f"never predict: {listing(classes, MOST_CLASSES_NAMED)}"
    )


def _caveats_of_spelling(labeled: LabeledRows) -> list[str]:
    """Return caveats about rare classes named like a large one, but for one letter."""
    rows = np.bincount(labeled.y, minlength=len(labeled.classes))
    names = [n if isinstance(n, str) else "" for n in labeled.classes.tolist()]
    # A slip of spelling is rare. Two large classes may well differ by a letter.
    rare = [code for code, n in enumerate(rows) if n <= RARE_ROWS and names[code]]
    texts = []
    for code in rare[:MOST_RARE]:
        large = [
            n
            for n in np.flatnonzero(rows >= LARGE_TIMES * rows[code]).tolist()
            if names[n]
        ]
        near = [n for n in large if is_one_letter_off(names[code], names[n])]
        if near:
            other = max(near, key=lambda n: rows[n])
            texts.append(
                f"class {show(names[code])} ({_rows_text(labeled, code)}) differs by "
                f"one letter from {show(names[other])} ({_rows_text(labeled, other)}): "
                f"rename it if it is a slip"
            )
    return texts[:MOST_CLASSES_NAMED]


def is_one_letter_off(text: str, other: str) -> bool:
    """Return whether two texts differ by one letter that is added or replaced.

    Examples
    --------
    >>> is_one_letter_off("okk", "ok"), is_one_letter_off("cat", "bat")
    (True, True)
    >>> is_one_letter_off("Q1", "Q2"), is_one_letter_off("no", "yes")
    (False, False)
    """
    if abs(len(text) - len(other)) > 1 or min(len(text), len(other)) < 2:
        return False
    edits = [
        edit
        for edit in SequenceMatcher(None, text, other).get_opcodes()
        if edit[0] != "equal"
    ]
    if len(edits) != 1:
        return False
    _, start, stop, other_start, other_stop = edits[0]
    changed = text[start:stop], other[other_start:other_stop]
    return max(map(len, changed)) == 1 and "".join(changed).isalpha()


def _rows_text(labeled: LabeledRows, class_code: int) -> str:
    n = int((labeled.y == class_code).sum())
    return count_of(n, "row")


def caveats_of_sizes(
    scheme: CVScheme, pool: Pool | None, unit: str, *, is_guarantee: bool
) -> list[Caveat]:
    """Return caveats about folds with too few rows, or groups, for a small bound.

    `unit` is the counted unit, ``row`` or ``group``.
    """
    texts = []
    if pool is not None and pool.n_rows < SMALL_POOL:
        texts.append(
            f"`pool` has {pool.n_rows:,} rows: with fewer than {SMALL_POOL:,} the part "
            f"of the bound that comes from the pool is large"
        )
    smallest = min(map(len, (split.test_rows for split in scheme.fold_splits)))
    if is_guarantee and smallest < FEW_ROWS:
        texts.append(
            f"a fold has {count_of(smallest, unit)}: with fewer than {FEW_ROWS} its "
            f"limit says almost nothing; ask for fewer folds"
        )
    if scheme.is_nested and scheme.n_folds == 2:
        texts.append("of 2 folds, each model has seen half of the labels")
    return make_caveats(Effect.PLAN, texts)


def _caveat_of_scaling(X: Any) -> str:
    """Return why the rows seem scaled with the held-out ones, or ""."""
    if sparse.issparse(X) or X.dtype.kind != "f" or np.isnan(X).any():
        return ""
    # Columns of few values, such as 0 and 1, are often left as they are.
    many = [len(np.unique(column)) > _FEW_VALUES for column in X.T]
    if not any(many):
        return ""
    columns = X[:, many]
    near = _TOLERANCE.get(X.dtype, 1e-5)
    spread = columns.std(axis=0)
    if (np.abs(columns.mean(axis=0)) <= near * spread).all() and any(
        (np.abs(deviation - 1.0) <= near).all()
        for deviation in (spread, columns.std(axis=0, ddof=1))
    ):
        return (
            "every column of the labeled rows has mean 0 and variance 1: if they were "
            "scaled with the held-out rows, put the scaler into a pipeline (A3)"
        )
    return ""


def note_on_possible_bound(search: PlannedSearch, most: float = LARGE) -> str:
    """Return a note if the bound is above a limit whatever the models are, else "".

    It says how many rows are enough for a bound of `LARGE`.
    """
    has_bound = search.method.is_guarantee and search.scheme.is_plain_random
    # Another seed draws other folds: it must not decide whether a plan is refused.
    limit_of = partial(smallest_limit, search, is_even=True)
    limit = limit_of() if has_bound else nan
    if not limit > most:  # NaN is not
        return ""
    main = search.context.losses.main
    y = search.labeled.y[search.scheme.counted_rows]
    n_rows = len(y)
    unit = "labeled row" if search.row_groups is None else "group"
    classes: tuple[Any, ...] = getattr(main, "classes", ())
    of_class = ""
    if len(classes) == 1:
        n_rows = int((y == search.classes.tolist().index(classes[0])).sum())
        of_class = f" of the class {classes[0]!r}"
    times = range(2, MOST_TIMES)
    enough = next((n for n in times if limit_of(n) <= LARGE), None)
    # More rows do not help, for example where correct predictions have a cost.
    if enough is None:
        return ""
    fewer = ""
    k = min(3, search.scheme.n_folds)
    of_fewer = limit_of(n_folds=k)
    # How many rows of a class a fold has depends on the draw.
    if of_fewer < limit and search.context.losses.is_about_error:
        fewer = f", and with fewer folds, cv={k}, about {about_percent(of_fewer)}"
    size = f"about {about_percent(limit)}"
    if search.context.losses.is_about_error:  # folds of any seed have as many rows
        size = f"{in_percent(limit)} or more"
    return (
        f"with {count_of(n_rows, unit)}{of_class} in {search.scheme.n_folds} folds the "
        f"bound is {size} even if no model makes an error{fewer}; "
        f"about {enough * n_rows:,} are enough for 50%"
    )


def notes_on_possible_bound(search: PlannedSearch) -> list[str]:
    """Return a note on a bound that is large, or above the loss of a constant, if any.

    Both would say that rows are too few. A mean cost is compared with a constant: a
    part of the largest cost says little.
    """
    notes = [note_on_possible_bound(search), note_on_constant(search)]
    if search.context.losses.main.is_cost:
        notes.reverse()
    return [note for note in notes if note][:1]


def _fewer_folds(n_folds: int, is_enough: Callable[[int], bool]) -> list[ShellOptions]:
    """Return the option for the most folds, fewer than now, whose rows are enough."""
    folds = [k for k in (3, 2) if k < n_folds and is_enough(k)]
    return [[("--cv", str(k))] for k in folds[:1]]


def _check_finite_tolerance(search: PlannedSearch) -> None:
    """Raise UndecidedError if the rows are too few for any finite tolerance."""
    losses, scheme = search.context.losses, search.scheme
    main = losses.main
    if not isinstance(main, ErrorQuantile):
        return
    y = search.labeled.y[scheme.counted_rows]
    delta = losses.main_division(search.planned_delta).label_delta
    few_rows = FewRows.of(main, main.caveats(y, scheme.n_folds, delta))
    named = name_counted_rows(few_rows, scheme, search.row_groups)
    if not named:
        return
    ways = _fewer_folds(scheme.n_folds, lambda k: not main.caveats(y, k, delta))
    if fraction := largest_fraction(len(y), scheme.n_folds, delta):
        smaller = f"error_quantile={fraction:g}"
        # One of both applies: the loss is the default, or it was named.
        before = f"error_quantile={main.fraction:g}"
        ways += [[Correction("--loss", before, smaller)], [("--loss", smaller)]]
    raise UndecidedError(f"{named[0].text}.", *ways)


def check_possible_bound(search: PlannedSearch) -> None:
    """Raise UndecidedError if the bound of a plan cannot say anything of use.

    This is so if rows are too few, or if every row of a pool equals a labeled row.
    """
    # Other certificates bound no single fold, and may have folds of one row.
    bounds_folds = search.method.is_nested or search.scheme.is_holdout
    if bounds_folds and (note := note_on_possible_bound(search, USELESS)):
        what = search.context.losses.main.title
        name = "`y` has" if search.row_groups is None else "`groups` have"
        raise UndecidedError(
            f"{name} too few rows for a bound of {what!r}: {note}.",
            *_fewer_folds(
                search.scheme.n_folds,
                lambda k: smallest_limit(search, n_folds=k, is_even=True) <= USELESS,
            ),
        )
    if search.method.is_nested:
        _check_finite_tolerance(search)
    pool = search.pool
    # A larger pool is compared in the pass that reads it, next to the fits.
    has_bound = search.method.is_guarantee and search.scheme.is_plain_random
    if pool is None or not has_bound or pool.n_rows > search.labeled.n_rows:
        return
    if pool.other_records:
        return
    find = duplicate_finder(pool, search.labeled)
    n_duplicates = pool.reduce(
        lambda X, rows: int(find(X).sum()),
        lambda earlier, later: earlier + later,
        allow_nan=search.context.reading.allow_nan,
    )
    if n_duplicates == pool.n_rows:
        raise ValueError(
            f"`pool` must hold new rows: all {n_duplicates:,} of its rows equal "
            f"labeled rows, so they do not show how often models differ on new ones; "
            f"pass other rows, or leave `pool` out."
        )
