"""The bounds to expect of a plan, and the smallest that it can have.

The smallest ones are computed as if no model made any error.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, isfinite, isnan, log, log1p, nan
from typing import Final

import numpy as np

from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import allowed_exceedances
from dsel.data.frames import take_rows
from dsel.data.splits import random_folds
from dsel.losses.by_class import Recall, TableLoss
from dsel.losses.calls import (
    best_constant,
    bound_of_all_rows,
    count_rows,
    limits_of_folds,
)
from dsel.losses.protocols import FoldCounts, PoolCounts, Rows, Statistic, stack_folds
from dsel.losses.regression import ErrorQuantile
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results.certificate import ONE_OF_EACH
from dsel.results.plan_calls import PlanBoundCall
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import (
    about_percent,
    count_of,
    fraction_in_percent,
    in_percent,
)
from dsel.search.design.expected_bounds import Case, expected_terms
from dsel.search.planned_search import PlannedSearch
from dsel.search.planning.plan_bound import (
    DISAGREEMENT_OF_ERROR,
    PLAIN_HOLDOUT,
    table_rows,
)

ASSUMED_ERRORS: Final = 0.05, 0.1, 0.2
"""Error rates for which a plan says the bound to expect."""
ASSUMED_MISSES: Final = 0.1, 0.3, 0.5
"""Rates at which a class is missed, of which a plan says the same."""
ASKED_ERROR: Final = 0.15
"""Error rate in the call that computes the bound for another one."""
RARE: Final = 0.2
"""Part of the average number of rows of a class, below which a class is rare."""
MOST_OF_POOL: Final = 0.5
"""Ratio of the pool's part of a bound to that of labeled rows, above which the pool is
small; both are those of models that neither err nor differ."""
FEWER_FOLDS: Final = 3
"""Folds of a search that is named where rows are few; its models learn from 67%."""
LARGE_LIMIT: Final = 0.2
"""Smallest limit for which a plan names fewer folds.

Where the limit is smaller, three folds gain little: on ten public data sets with 120 to
300 labels their bound is .95 of that of five, and the models err 1.08 times as often.
"""
MUCH_SMALLER: Final = 0.8
"""Largest ratio of the limit, or bound, by fewer folds to that of the plan, to be
named."""
NO_BOUND: Final = 0.999
"""A limit above this would be printed as 100.0%."""
MOST_TIMES: Final = 100
"""Most multiples of the labeled rows that are tried in the search for enough rows."""


WITHOUT_POOL: Final = "without a pool the first bound is smaller"


def smallest_limit(
    search: PlannedSearch,
    factor: float = 1.0,
    *,
    n_folds: int | None = None,
    is_even: bool = False,
) -> float:
    """Return the limit of the best fold if no model makes any error, part of `largest`.

    The number of rows is multiplied by `factor`, and rounded down. The folds are
    replaced by `n_folds`, which are drawn as that search would draw them; with
    `is_even` by folds that have as many rows of each class, which depend on no seed.
    NaN if the loss is a tolerance.
    """
    losses = search.context.losses
    main = losses.main
    if main.statistic.fold_shape is None:
        return nan
    perfect = _perfect_counts(search, main.statistic, n_folds, is_even=is_even)
    counts = FoldCounts(
        *(
            np.floor(factor * n).astype(n.dtype)
            for n in (perfect.counts, perfect.n_rows)
        )
    )
    label_delta = losses.main_division(search.planned_delta).label_delta
    limits = limits_of_folds(main, counts, label_delta)
    return float(np.min(limits)) / main.largest


def _perfect_counts(
    search: PlannedSearch,
    statistic: Statistic,
    n_folds: int | None = None,
    *,
    is_even: bool = False,
) -> FoldCounts:
    """Return the counts of folds if no model makes any error.

    A limit is computed from them, not by a formula, so that for any loss it is the one
    that the run itself will compute.
    """
    labeled = search.labeled
    folds = [split.test_rows for split in search.scheme.fold_splits]
    k = n_folds or search.scheme.n_folds
    if is_even and len(folds) > 1:  # a hold-out set is one fold
        rows = np.concatenate(folds)
        rows = rows[np.argsort(labeled.y[rows], kind="stable")]
        folds = [np.sort(rows[fold::k]) for fold in range(k)]
    elif n_folds not in (None, search.scheme.n_folds):
        rows = np.sort(np.concatenate(folds))
        numbers = random_folds(len(rows), n_folds, seed=search.seed)
        folds = [rows[numbers == fold] for fold in range(n_folds)]
    counts = [
        count_rows(
            statistic,
            Rows(take_rows(labeled.X, rows), labeled.y[rows]),
            labeled.y[rows],
        )
        for rows in folds
    ]
    return FoldCounts(stack_folds(counts), np.array([len(fold) for fold in folds]))


def describe_bound(search: PlannedSearch) -> str:
    """Return the bound to expect of a nested search; "" for another one.

    Where that is not known, as for a mean cost, it is the smallest possible one.
    """
    losses = search.context.losses
    main = losses.main
    if not (search.method.is_nested and search.scheme.is_plain_random):
        return ""
    if isinstance(main, ErrorQuantile):
        return _describe_tolerance(search, main)
    limit = smallest_limit(search)
    if isnan(limit):
        return ""
    fewer = _describe_fewer_folds(search, limit) if not main.is_cost else ""
    if (call := plan_bound_call(search)) is not None:
        end = f"; no bound below {in_percent(limit)} ({fewer})" if fewer else ""
        return f"{_describe_expected_bounds(search)}{end}; other rates: {call}"
    title = main.title[:1].lower() + main.title[1:]
    end = f" ({fewer})" if fewer else ""
    return f"{_limit_text(search, limit)} or more ({title}), even if no model errs{end}"


def _limit_text(search: PlannedSearch, limit: float) -> str:
    """Return a part of the largest loss as text: a mean cost is a number."""
    main = search.context.losses.main
    return f"{limit * main.largest:.3g}" if main.is_cost else in_percent(limit)


def _expected_case(search: PlannedSearch, rate: float) -> Case | None:
    """Return the case of `plan_bound` for a plan; None for a loss without one.

    It has the losses that are binomial: the error, and the misses of a class.
    """
    losses = search.context.losses
    y = search.labeled.y[search.scheme.counted_rows]
    fraction = 1.0
    if isinstance(losses.main, Recall):
        code = search.classes.tolist().index(losses.main.classes[0])
        fraction = float(np.mean(y == code))
    elif not losses.is_about_error:
        return None
    return Case(
        len(y),
        0 if search.pool is None else search.pool.n_rows,
        search.n_candidates,
        losses.main_division(search.planned_delta).delta,
        rate,
        rate,  # only the model of all rows depends on it
        fraction,
        search.n_queries,
    )


def _expected_texts(cases: Iterable[Case], row: str, n_folds: int) -> str:
    """Return the bounds of a row of `plan_bound` in these cases, in percent."""
    terms = [expected_terms(case, table_rows()[row], n_folds) for case in cases]
    texts = [about_percent(min(1.0, sum(both))).removesuffix("%") for both in terms]
    return f"{' / '.join(texts)}%"


def _describe_expected_bounds(search: PlannedSearch) -> str:
    """Return the expected bounds of one fold and of a hold-out set at some rates."""
    main = search.context.losses.main
    of_class = isinstance(main, Recall)
    rates = ASSUMED_MISSES if of_class else ASSUMED_ERRORS
    listed = f"{' / '.join(f'{100 * rate:g}' for rate in rates)}%"
    condition = f"if models err on {listed}"
    if isinstance(main, Recall):
        condition = f"if models miss {listed} of {main.classes[0]!r}"
    cases = [*filter(None, (_expected_case(search, rate) for rate in rates))]
    # A hold-out set has no report, and spends all of delta.
    of_holdout = [replace(case, delta=search.delta) for case in cases]
    k = search.scheme.n_folds
    holdout = _expected_texts(of_holdout, PLAIN_HOLDOUT, k)
    losses = search.context.losses
    has_report = bool(losses.report_classes) or losses.value_loss is not None
    plain = " without a report" if has_report else ""
    return (
        f"about {_expected_texts(cases, ONE_FOLD, k)} {condition} (a 20% hold-out "
        f"set{plain}: about {holdout}{_describe_expected_by_fewer_folds(cases, k)})"
    )


def _describe_expected_by_fewer_folds(cases: Sequence[Case], n_folds: int) -> str:
    """Return the expected bounds of fewer folds where these are much smaller, or "".

    That depends on the smallest rate, where the number of rows of a fold counts most.
    """
    if n_folds <= FEWER_FOLDS:
        return ""
    now, fewer = (
        sum(expected_terms(cases[0], table_rows()[ONE_FOLD], k))
        for k in (n_folds, FEWER_FOLDS)
    )
    if not fewer <= MUCH_SMALLER * now:  # NaN is not
        return ""
    part = fraction_in_percent(1 - 1 / FEWER_FOLDS)
    texts = _expected_texts(cases, ONE_FOLD, FEWER_FOLDS)
    return (
        f"; cv={FEWER_FOLDS}: about {texts}, if models trained on {part} err as often"
    )


def plan_bound_call(search: PlannedSearch) -> PlanBoundCall | None:
    """Return the call that says the bound to expect at another rate; None without."""
    case = _expected_case(search, ASKED_ERROR)
    nested = search.method.is_nested and search.scheme.is_plain_random
    if case is None or not nested:
        return None
    return PlanBoundCall(
        n_labeled=case.n_labeled,
        n_unlabeled=case.n_unlabeled,
        n_candidates=case.n_candidates,
        error=ASKED_ERROR,
        class_share=None if case.is_error else case.class_fraction,
        cv=search.scheme.n_folds,
        delta=case.delta,
        n_queries=case.n_queries,
    )


def describe_queries(search: PlannedSearch) -> str:
    """Return what labels of pool rows cost the first bound; "" without them."""
    case = _expected_case(search, error := ASSUMED_ERRORS[1])
    if not search.n_queries or case is None:
        return ""
    with_queries, without = (
        _expected_texts([each], ONE_FOLD, search.scheme.n_folds)
        for each in (case, replace(case, n_queries=0))
    )
    return (
        f"{count_of(search.n_queries, 'pool row')} to label, which may make the bound "
        f"of the model trained on all labels smaller; that of the other one becomes "
        f"about {with_queries} instead of {without}, if models err on "
        f"{100 * error:g}%"
    )


def _describe_fewer_folds(search: PlannedSearch, limit: float) -> str:
    """Return the limit of larger folds where it is much smaller than `limit`, or ""."""
    if limit < LARGE_LIMIT or search.scheme.n_folds <= FEWER_FOLDS:
        return ""
    fewer = smallest_limit(search, n_folds=FEWER_FOLDS)
    if fewer > MUCH_SMALLER * limit:
        return ""
    part = fraction_in_percent(1 - 1 / FEWER_FOLDS)
    return f"{in_percent(fewer)} with cv={FEWER_FOLDS}, whose models learn from {part}"


def _describe_tolerance(search: PlannedSearch, main: ErrorQuantile) -> str:
    """Return which residual of a fold a tolerance is at best."""
    division = search.context.losses.main_division(search.planned_delta)
    # The first fold has the largest share of delta.
    delta = float(fold_deltas(division.label_delta, search.scheme.n_folds)[0])
    n_rows = int(search.scheme.fold_rows[0])
    n_beyond = int(allowed_exceedances(n_rows, level=main.level, delta=delta))
    if n_beyond < 0:
        return ""  # a caveat says how many rows are needed
    unit = "row" if search.row_groups is None else "group"
    rank = f"{_ordinal(n_beyond + 1)} largest" if n_beyond else "largest"
    return (
        f"how far off {100 * main.fraction:g}% of new predictions are at most: about "
        f"the {rank} error on a fold of {count_of(n_rows, unit)}"
    )


def _ordinal(n: int) -> str:
    """Return a number as 2nd, 3rd, 4th, 11th, 21st."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{n:,}{'th' if n % 100 in (11, 12, 13) else ends.get(n % 10, 'th')}"


def _constant_loss(search: PlannedSearch) -> tuple[str, float]:
    """Return the best constant prediction as text, and its loss; "" without one."""
    rows = search.scheme.counted_rows
    labeled = search.labeled
    constant = best_constant(
        search.context.losses.main,
        labeled.y[rows],
        search.classes.tolist(),
        take_rows(labeled.X, rows),
    )
    if constant is None:
        return "", nan
    prediction = constant.prediction
    return (
        prediction if isinstance(prediction, str) else f"{prediction:.6g}"
    ), constant.loss


def describe_targets(search: PlannedSearch) -> str:
    """Return the range, the median and the spread of numeric targets."""
    y, main = search.labeled.y[search.scheme.counted_rows], search.context.losses.main
    text = f"targets from {y.min():,.6g} to {y.max():,.6g}, median {np.median(y):,.6g}"
    _, loss = _constant_loss(search)
    if isinstance(main, ErrorQuantile) and isfinite(loss):
        # The loss of this constant, in units of the target: a bound is of use below it.
        text += f", {100 * main.fraction:g}% of them within {amount_about(loss)} of it"
    return text


def note_on_constant(search: PlannedSearch) -> str:
    """Return that no run can prove a model better than a constant, or ""."""
    has_bound = search.method.is_nested and search.scheme.is_plain_random
    main = search.context.losses.main
    limit = smallest_limit(search) if has_bound else nan
    # A comparison with a baseline may prove what two bounds cannot.
    if isnan(limit) or search.context.losses.baseline_difference is not None:
        return ""
    prediction, loss = _constant_loss(search)
    if not limit * main.largest >= loss:  # NaN is not
        return ""
    verb = "costs" if main.is_cost else "errs on"
    if not (main.is_cost or search.context.losses.is_about_error):
        verb = f"has a {main.title[:1].lower() + main.title[1:]} of"
    amount = f"{loss:.3g}" if main.is_cost else about_percent(loss)
    unit = "row" if search.row_groups is None else "group"
    enough = _count_rows_below(search, loss)
    more = f"; that needs about {enough:,} {unit}s or more" if enough else ""
    folds = min(FEWER_FOLDS, search.scheme.n_folds)
    if smallest_limit(search, n_folds=folds) * main.largest < loss:
        more += f", or fewer folds, cv={folds}"
    return (
        f"always predicting {prediction} {verb} {amount}, and the bound is "
        f"{_limit_text(search, limit)} or more even if no model errs: this run cannot "
        f"prove a model to be better than that{more}"
    )


def _count_rows_below(search: PlannedSearch, loss: float) -> int:
    """Return about how many rows give a bound below `loss` if no model errs.

    0 if even `MOST_TIMES` as many do not.
    """
    largest, times = search.context.losses.main.largest, range(2, MOST_TIMES)
    high = next((n for n in times if smallest_limit(search, n) * largest < loss), 0)
    if not high:
        return 0
    n_rows = len(search.scheme.counted_rows)
    numbers = range((high - 1) * n_rows, high * n_rows)
    return numbers[0] + bisect_left(
        numbers, True, key=lambda n: smallest_limit(search, n / n_rows) * largest < loss
    )


def _smallest_limit_of_all_rows(search: PlannedSearch) -> float:
    """Return the bound of the model of all rows if no model errs or differs.

    It is a part of `largest`; NaN for a loss of the user's own, and for numbers.
    """
    losses, pool, labeled = search.context.losses, search.pool, search.labeled
    main = losses.main
    if pool is None or not (isinstance(main, TableLoss) or losses.is_about_error):
        return nan
    statistic = main.statistic
    counts = _perfect_counts(search, statistic)
    y = labeled.y
    rows = Rows(labeled.X, y)
    of_rows = statistic.count_pair(rows, y, y, counts.counts[0])
    # The pool has each class as often as the labeled rows do.
    of_pool = np.int64(of_rows * (pool.n_rows / len(y)))
    if total := int(of_rows.sum()):  # counts of differences are all 0
        of_pool.flat[int(of_rows.argmax())] += (
            round(pool.n_rows * total / len(y)) - of_pool.sum()
        )
    by_fold = np.stack([of_pool] * len(counts.n_rows))
    pool_counts = PoolCounts(by_fold, np.zeros_like(by_fold), pool.n_rows, 0)
    division = losses.main_division(search.planned_delta)
    limits = limits_of_folds(main, counts, division.label_delta)
    terms = bound_of_all_rows(main, counts, pool_counts, division, limits)
    return float(terms[0]) / main.largest


def describe_small_pool(search: PlannedSearch) -> str:
    """Return that a pool is too small to help, and how many rows would; or ""."""
    losses, pool = search.context.losses, search.pool
    if pool is None or not search.method.is_nested:
        return ""
    if not losses.is_about_error:
        return _describe_useless_pool(search)
    if search.n_queries:  # with their labels the bound may be smaller
        return ""
    fold_delta = losses.main_division(search.planned_delta).pool_delta
    fold_delta /= search.scheme.n_folds
    limit = smallest_limit(search)
    # Rows on which no model differs have this limit: delta ** (1 / n_rows) = 1 - limit.
    n_needed = ceil(log(fold_delta) / log1p(-MOST_OF_POOL * limit))
    if pool.n_rows >= n_needed:
        return ""
    of_pool = 1.0 - fold_delta ** (1.0 / max(1, pool.n_rows))
    least = "no bound below 100%"
    if (whole := limit + of_pool) < NO_BOUND:
        least = f"{in_percent(whole)} or more"
    return (
        f"too few to help: the bound of the model trained on all labels is {least}, "
        f"even if no model errs or differs; from about {n_needed:,} rows on they help"
    )


def _describe_useless_pool(search: PlannedSearch) -> str:
    """Return that the model of all rows can have no useful bound by a loss; or ""."""
    main = search.context.losses.main
    limit, largest = _smallest_limit_of_all_rows(search), main.largest
    prediction, loss = _constant_loss(search)
    if isinstance(main, Recall) and limit < NO_BOUND:
        return _describe_useless_pool_of_class(search)
    if not limit * largest >= min(NO_BOUND * largest, loss):
        return ""
    least = "no bound below 100%"
    if main.is_cost or limit < NO_BOUND:
        least = f"no bound below {_limit_text(search, limit)}"
        if limit * largest >= loss:
            least += f", and always predicting {prediction} has {loss:.3g}"
    return (
        f"of no use: the model trained on all labels can have {least}, even if no "
        f"model errs or differs, where the pool has each class as often as the labels "
        f"do; {WITHOUT_POOL}"
    )


def _describe_useless_pool_of_class(search: PlannedSearch) -> str:
    """Return that the misses of a class will hardly have a bound by the pool; or ""."""
    case = _expected_case(search, rate := ASSUMED_MISSES[1])
    if case is None:
        return ""
    case = replace(case, five_fold_disagreement=rate * DISAGREEMENT_OF_ERROR)
    of_class = _expected_texts([case], ALL_ROWS, search.scheme.n_folds)
    if of_class != "100.0%":
        return ""
    return (
        f"hardly of use: if models miss {100 * rate:g}% of the class, the model "
        f"trained on all labels is likely to have no bound below 100%; {WITHOUT_POOL}"
    )


def describe_rare_class(search: PlannedSearch) -> str:
    """Return that the error hardly shows a rare class, and what bounds it; or ""."""
    losses, classes = search.context.losses, search.classes.tolist()
    is_nested = search.method.is_nested
    if search.is_regression or not (is_nested and losses.is_about_error):
        return ""
    labeled = search.labeled
    of_groups = "" if search.row_groups is None else f" ({ONE_OF_EACH})"
    rows = search.scheme.independent_rows(np.arange(labeled.n_rows))
    n_rows = np.bincount(labeled.y[rows], minlength=len(classes))
    n_rarest = int(n_rows.min())
    if n_rarest >= RARE * n_rows.mean():
        return ""
    label = classes[int(n_rows.argmin())]
    text = (
        f"{label!r}, {count_of(n_rarest, 'row')} of {n_rows.sum():,}{of_groups}: never "
        f"to find it adds only {about_percent(n_rarest / n_rows.sum())} to the error"
    )
    if losses.report_classes:
        return f"{text}; the report has the part of it that is found"
    if search.n_queries or not search.scheme.is_plain_random:
        return text  # bounds of classes are not for such a search
    n_folds = search.scheme.n_folds
    case = Case(
        int(n_rows.sum()),
        0 if search.pool is None else search.pool.n_rows,
        search.n_candidates,
        losses.main_division(search.planned_delta).delta,
        rate := ASSUMED_MISSES[1],
        rate,  # only the model of all rows depends on it
        n_rarest / int(n_rows.sum()),
    )
    # An average, which does not depend on the folds that the seed draws.
    expected = sum(expected_terms(case, table_rows()[ONE_FOLD], n_folds))
    if not expected < NO_BOUND:  # NaN with fewer rows than folds
        return f"{text}; its rows are too few for a bound of its misses"
    text += (
        f"; loss='recall:{label}' bounds its misses: about {about_percent(expected)} "
        f"if models miss {100 * rate:g}% of it"
    )
    fewer = nan
    if n_folds > FEWER_FOLDS:
        fewer = sum(expected_terms(case, table_rows()[ONE_FOLD], FEWER_FOLDS))
    if fewer <= MUCH_SMALLER * expected:
        part = fraction_in_percent(1 - 1 / FEWER_FOLDS)
        text += (
            f", or {about_percent(fewer)} with cv={FEWER_FOLDS}, whose models learn "
            f"from {part}"
        )
    return text
