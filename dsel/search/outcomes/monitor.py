"""Tests on a new table of whether the promises of a search still hold.

There are three kinds of tests, each at its own level: the new rows against the labeled
ones, the disagreement of both models and, if the new rows have labels, their
errors. One pass over the table counts for all of them, and keeps a sample of its rows.

`promises` has the tested promises, `new_labels` and `new_row_counts` the counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING, Final

import numpy as np

from dsel.bounds.duplicates import lower_rate_limits
from dsel.checks import check_level, listing
from dsel.data.labeled import LabeledRows
from dsel.data.targets import notes_on_blanks
from dsel.data.unknown_values import select_unexpected_values
from dsel.families.estimator_kinds import is_regressor
from dsel.losses.by_class import ClassRate
from dsel.losses.calls import name_loss_in_errors
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import FoldCounts, Loss, PoolCounts, RefutableLoss
from dsel.option_values import MONITOR_LEVEL
from dsel.results.certificate import Certificate
from dsel.results.monitoring import KEPT, REFUTED, UNTESTED, MonitorReport, PromiseTest
from dsel.rounded_texts import (
    about_percent,
    confidence,
    floor_percent,
    in_percent,
    shorten_text,
)
from dsel.runtime.clients import resolve_client
from dsel.runtime.progress import OnProgress
from dsel.search.design.assumption_checks import (
    FEWEST_TESTED_ROWS,
    TwoSampleTest,
    count_copies,
    have_copies,
    two_sample_test,
)
from dsel.search.outcomes.column_changes import column_of, describe_change
from dsel.search.outcomes.intervals import tolerance_certificates
from dsel.search.outcomes.new_labels import SEED, NewLabels, draw_rows_of_groups
from dsel.search.outcomes.new_row_counts import (
    COMPARED_ROWS,
    CountSlice,
    MonitorContext,
    Tally,
)
from dsel.search.outcomes.promises import Promises, disagreement_delta
from dsel.search.outcomes.table_rows import TableRows, open_table
from dsel.typing import PoolLike

if TYPE_CHECKING:
    from distributed import Client

SHOWN_COLUMNS: Final = 5
LIKE_LABELED: Final = "The new rows are like the labeled rows"
NO_FRESH: Final = "all of these rows equal labeled rows, which are no fresh draws"
NO_LIMIT: Final = "no limit was certified"
COPIED: Final = (
    "new rows repeat as independent draws cannot, or far more often than labeled rows: "
    "copies; take each record once (drop_duplicates)"
)
IN_GROUPS: Final = "rows come in groups, so they are not independent draws"


def monitor_table(
    promises: Promises,
    new_rows: PoolLike,
    new_labels: NewLabels,
    *,
    level: float = MONITOR_LEVEL,
    client: "Client | None" = None,
    on_progress: OnProgress | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> MonitorReport:
    """Test the promises of a search on a table; see `Outcome.monitor`."""
    level = check_level(level)
    table = open_new_rows(promises, new_rows, new_labels, separator, encoding)
    column = promises.group_column
    is_there = column is not None and column in (*table.unused, *table.ids)
    if promises.are_in_groups and new_labels.groups is None and is_there:
        new_labels = replace(new_labels, groups=column)
        table = open_new_rows(promises, new_rows, new_labels, separator, encoding)
    context = MonitorContext.of(promises, table, new_labels)
    client = resolve_client(client)
    notes = [note for note in [table.taken_by_position.rstrip(".")] if note]
    if new_labels.target is not None:
        notes += notes_on_blanks(context.classes.tolist())
    if new_labels.groups is not None:
        is_counted, group_notes = draw_rows_of_groups(
            promises, table, new_labels, client
        )
        context = replace(context, is_counted=is_counted)
        notes += group_notes
    tally: Tally | None = None
    show_progress = on_progress or (lambda done, total: None)
    for slice_tally in table.run(context, CountSlice(), client):
        tally = slice_tally if tally is None else tally.merge(slice_tally)
        show_progress(tally.n_rows, table.n_rows)
    if tally is None:
        raise ValueError(f"{table.where} must have rows to be tested, got none.")
    if new_labels.y is not None and len(new_labels.y) != tally.n_rows:
        raise ValueError(
            f"`y` must have a label for each new row, got {len(new_labels.y):,} for "
            f"{tally.n_rows:,} rows; write None for a label that is not known."
        )
    if context.is_counted is not None and len(context.is_counted) != tally.n_rows:
        raise ValueError(
            f"{new_labels.groups_option} must have a key for each new row, got "
            f"{len(context.is_counted):,} for {tally.n_rows:,} rows."
        )
    report = read_report(promises, context, tally, level)
    return replace(report, notes=(*notes, *report.notes))


def open_new_rows(
    promises: Promises,
    new_rows: PoolLike,
    new_labels: NewLabels,
    separator: str | None = None,
    encoding: str | None = None,
) -> TableRows:
    """Open a table of new rows with what is tested; raise where a part is missing."""
    input_format = promises.input_format
    if new_labels.target is not None and any(
        map(is_regressor, promises.models.values())
    ):
        input_format = input_format.with_number_column(new_labels.target)
    group_column = new_labels.groups if isinstance(new_labels.groups, str) else None
    arguments = ((new_labels.target, "target"), (group_column, "groups"))
    argument_of = {name: argument for name, argument in arguments if name is not None}
    if new_labels.groups is not None and not promises.are_in_groups:
        raise ValueError(
            f"{new_labels.groups_option} is for a search with groups, and these bounds "
            f"are about independent rows; leave it out if the new rows are such rows."
        )
    return open_table(
        input_format,
        new_rows,
        tuple(argument_of) or None,
        argument_of=argument_of,
        model=next(iter(promises.models.values())),
        with_record_ids=True,
        separator=separator,
        encoding=encoding,
    )


def read_report(
    promises: Promises, context: MonitorContext, tally: Tally, level: float
) -> MonitorReport:
    """Return the tests of all promises by a tally."""
    n_labels, _, n_unknown = tally.n_labels.tolist()
    if n_labels and n_labels == n_unknown:
        shown = listing([repr(label) for label in context.classes.tolist()], 5)
        raise ValueError(
            f"{context.labels.argument} must hold labels of the search, but none of "
            f"the {n_labels:,} labels of {context.model_rows.where} is one of its "
            f"classes, {shown}."
        )
    notes = []
    is_single = context.is_counted is None
    if context.labels.are_there and n_labels < tally.n_rows and is_single:
        notes.append(f"{tally.n_rows - n_labels:,} new rows have no label")
    if n_unknown:
        notes.append(
            f"{n_unknown:,} labels are no class of the search: every model errs there"
        )
    unexpected = select_unexpected_values(tally.unknown, tally.n_rows)
    notes += [column_values.line for column_values in unexpected]
    if promises.labeled is None:
        reason = promises.why_unknown or "the labeled rows are not known"
        notes.append(f"{reason}: new rows that equal a labeled one are counted, too")
    row_tests = [
        _test_rows(promises, tally, level),
        _test_disagreement(promises, tally, level),
    ]
    error_tests = (
        _test_tolerances(promises, context, tally, level)
        if context.exceedances
        else _test_errors(promises, context, tally, level)
    )
    if not promises.are_in_groups and _are_copies(promises, context, tally):
        # The two-sample test needs each row only once.
        row_tests[1:], error_tests = (
            [
                test
                if test.result == UNTESTED
                else replace(test, result=UNTESTED, reason=COPIED)
                for test in tests
            ]
            for tests in (row_tests[1:], error_tests)
        )
    if promises.are_in_groups:
        # Labels of one row of each group are independent draws; labels of all rows are
        # not.
        row_tests = [replace(t, result=UNTESTED, reason=IN_GROUPS) for t in row_tests]
    tests = [*row_tests, *error_tests]
    n_duplicates = None if promises.labeled is None else tally.n_duplicates
    unseen = {each.column: each.n_rows for each in unexpected if each.n_rows}
    return MonitorReport(
        level, tally.n_rows, n_duplicates, tuple(tests), tuple(notes), unseen
    )


def _are_copies(promises: Promises, context: MonitorContext, tally: Tally) -> bool:
    """Return whether new rows that equal no labeled one are copies of one another."""
    labeled, find = promises.labeled, context.find_duplicates
    if have_copies(tally.repeats) or labeled is None or find is None:
        return have_copies(tally.repeats)
    are_fresh = ~find(tally.sample)
    return count_copies(labeled.X, tally.sample, are_fresh, seed=SEED) > 0


def _test_rows(promises: Promises, tally: Tally, level: float) -> PromiseTest:
    """Return the test of the new rows against the labeled ones."""
    test = PromiseTest("rows", UNTESTED, LIKE_LABELED, "")
    labeled = promises.labeled
    if labeled is None:
        return replace(test, reason=promises.why_unknown)
    if tally.n_duplicates == tally.n_rows:
        return replace(test, reason=NO_FRESH)
    fewest = min(labeled.n_rows, tally.n_rows)
    if fewest < FEWEST_TESTED_ROWS:
        kind = "labeled" if fewest == labeled.n_rows else "new"
        why = f"there are {fewest} {kind} rows, and it needs {FEWEST_TESTED_ROWS}"
        return replace(test, reason=why)
    result = two_sample_test(
        labeled.X,
        tally.sample,
        seed=SEED,
        level=level,
        most_rows=COMPARED_ROWS,
        each_column=True,
    )
    columns = tuple(result.column_names(labeled.columns))
    if isnan(result.auc):
        why = "too few different rows are in one of both tables"
        return replace(test, reason=why)
    is_told_apart = result.p_value <= level
    sizes = (
        f"(AUC {result.auc:.2f}, p = {result.p_value:.2g}; compared are "
        f"{min(labeled.n_rows, COMPARED_ROWS):,} and "
        f"{min(tally.n_rows, COMPARED_ROWS):,} rows)"
    )
    p_value = min(result.p_value, result.column_p_value)
    is_refuted = p_value <= level
    changed = _describe_columns(columns, result, labeled, tally)
    if is_told_apart:
        reason = f"a classifier distinguishes new rows from labeled ones {sizes}"
        if columns:
            reason += f"; tested alone, {changed}"
        elif is_refuted:
            reason += "; no column changed by itself, but how they go together"
    elif columns:
        reason = (
            f"{changed}, by a test of each column (p = {result.column_p_value:.2g}); a "
            f"classifier that has all columns sees no difference {sizes}"
        )
    else:
        reason = f"a classifier sees no difference to the labeled rows {sizes}"
    return replace(
        test,
        result=REFUTED if is_refuted else KEPT,
        reason=reason,
        n_rows=tally.n_rows,
        p_value=p_value,
        columns=columns,
    )


def _describe_columns(
    columns: Sequence[str], result: TwoSampleTest, labeled: LabeledRows, tally: Tally
) -> str:
    """Return which columns changed, and how the first of them did."""
    details = []
    for name, position in [*zip(columns, result.columns, strict=True)][:SHOWN_COLUMNS]:
        pair = (column_of(X, position) for X in (labeled.X, tally.sample))
        if change := describe_change(*pair):
            details.append(f"{name}: {change}")
    end = f" ({'; '.join(details)})" if details else ""
    kind = f"column{'s' if len(columns) > 1 else ''}"
    return f"{kind} {listing(columns, SHOWN_COLUMNS)} changed{end}"


def _test_disagreement(promises: Promises, tally: Tally, level: float) -> PromiseTest:
    """Return the test of the disagreement of both models."""
    limit = promises.disagreement
    text = "Both models differ on no more rows than they"
    test = PromiseTest("disagreement", UNTESTED, f"{text} did on the pool", "")
    if any(map(is_regressor, promises.models.values())):
        reason = "predictions are numbers, which differ on nearly every row"
        return replace(test, reason=reason)
    if limit is None:
        reason = "no second model was compared with the deployed one on a pool"
        return replace(test, reason=reason)
    if in_percent(limit) == in_percent(1.0):  # as it is printed
        return replace(test, limit=limit, reason=NO_LIMIT)
    # The last digits of the product are left out; they would show as 99.7499%
    # confidence.
    delta = float(f"{disagreement_delta(promises.choice):.12g}")
    promise = (
        f"Both models differ on at most {in_percent(limit)} of the rows "
        f"({confidence(delta)}% confidence)"
    )
    test = replace(test, limit=limit, promise=promise)
    if tally.n_duplicates == tally.n_rows:
        return replace(test, reason=NO_FRESH)
    differ, duplicates = tally.n_differ.tolist()
    at_least = float(lower_rate_limits(differ, duplicates, tally.n_rows, level))
    n_fresh = tally.n_rows - tally.n_duplicates
    disagreement = (differ - duplicates) / n_fresh
    # A limit below what is promised, and below what was seen, decides nothing.
    proved = f", so the true share is at least {floor_percent(at_least)}"
    return replace(
        test,
        result=REFUTED if at_least > limit else KEPT,
        at_least=at_least,
        n_found=differ - duplicates,
        n_rows=n_fresh,
        seen=disagreement,
        reason=f"seen {about_percent(disagreement)} of {n_fresh:,} rows"
        f"{proved if disagreement > limit else ''}",
    )


def _test_errors(
    promises: Promises, context: MonitorContext, tally: Tally, level: float
) -> list[PromiseTest]:
    """Return the tests of the bounds of the bounded models."""
    n_labels, n_duplicates, _ = tally.n_labels.tolist()
    n_fresh, limits = n_labels - n_duplicates, None
    n_found = [0] * len(promises.models)
    n_rows = [n_fresh] * len(promises.models)
    kind_of_rows = context.kind_of_rows_text
    rates = [nan] * len(promises.models)
    loss = context.loss
    why_no_labels = _reason_without_labels(promises, context, tally)
    if n_labels and isinstance(loss, RefutableLoss):
        counts, duplicates = tally.counts
        new_counts = PoolCounts(counts, duplicates, n_labels, n_duplicates)
        with name_loss_in_errors(loss, "lower_limits"):
            limits = loss.lower_limits(new_counts, level)
        # What is seen is of the other rows: the models may have learned duplicates.
        fresh = FoldCounts(counts - duplicates, np.full(len(counts), n_fresh))
        if n_fresh:
            with name_loss_in_errors(loss, "estimate"):
                rates = [loss.estimate(model) for model in fresh.iter_folds()]
        if loss == ERROR_RATE:
            n_found = fresh.counts.tolist()
        if isinstance(loss, ClassRate):  # it is about a part of the rows
            n_found, n_rows = (n.tolist() for n in loss.count_wrong(fresh.integers))
            kind_of_rows = f"{loss.kind_of_rows_text}{context.of_groups_text}"
    tests = []
    for index, (model_name, certificate) in enumerate(
        promises.choice.certificates.items()
    ):
        bound = certificate.bound
        test = _make_test(model_name, certificate, bound)
        reason = _reason_for_no_test(certificate, loss) or why_no_labels
        if limits is not None and (isnan(limits[index]) or isnan(rates[index])):
            reason = reason or "no new row with a label counts for it"
        if reason or limits is None:
            tests.append(replace(test, reason=reason))
            continue
        at_least = float(limits[index])
        is_cost = certificate.is_cost
        shown = certificate.about(at_least) if is_cost else floor_percent(at_least)
        kind = "error" if loss == ERROR_RATE else "value"
        proved = f", so the true {kind} is at least {shown}"
        tests.append(
            replace(
                test,
                result=REFUTED if at_least > bound else KEPT,
                at_least=at_least,
                n_found=n_found[index],
                n_rows=n_rows[index],
                seen=rates[index],
                reason=f"seen {certificate.about(rates[index])} on {n_rows[index]:,} "
                f"{kind_of_rows}{proved if rates[index] > bound else ''}",
            )
        )
    return tests


def _test_tolerances(
    promises: Promises, context: MonitorContext, tally: Tally, level: float
) -> list[PromiseTest]:
    """Return the tests of the shares of rows that are off by more than a tolerance."""
    n_labels, n_label_duplicates, _ = tally.n_labels.tolist()
    n_fresh = n_labels - n_label_duplicates
    tests = []
    certificates = tolerance_certificates(promises.choice)
    for index, (model_name, certificate) in enumerate(certificates.items()):
        limit = context.exceedances[index].exceeding_fraction
        test = _make_test(model_name, certificate, limit)
        reason = _reason_without_limit(certificate)
        if reason := reason or _reason_without_labels(promises, context, tally):
            tests.append(replace(test, reason=reason))
            continue
        n_off, n_duplicates = (int(n[index]) for n in tally.counts)
        at_least = float(lower_rate_limits(n_off, n_duplicates, n_labels, level))
        kind = "rows" if context.is_counted is None else context.kind_of_rows_text
        n_found = n_off - n_duplicates
        text = f"{n_found:,} of {n_fresh:,} {kind} are off by more"
        proved = f", so their true share is at least {floor_percent(at_least)}"
        tests.append(
            replace(
                test,
                result=REFUTED if at_least > limit else KEPT,
                at_least=at_least,
                n_found=n_found,
                n_rows=n_fresh,
                seen=n_found / n_fresh,
                reason=f"{text}{proved if n_found / n_fresh > limit else ''}",
            )
        )
    return tests


def _make_test(model_name: str, certificate: Certificate, limit: float) -> PromiseTest:
    """Return the test of one model's bound before it is made."""
    if not certificate.certified or certificate.says_nothing:
        what = certificate.title
        if certificate.is_tolerance:
            what = "How far predictions are off"
        promise = f"{what}, {certificate.model_text}"
    else:
        amount = f"{certificate.amount(certificate.bound)}{certificate.on_rows}"
        promise = f"{certificate.says} {amount}, {certificate.model_text}"
    return PromiseTest(f"error of {model_name}", UNTESTED, promise, "", limit)


def _reason_without_labels(
    promises: Promises, context: MonitorContext, tally: Tally
) -> str:
    """Return why the labels of new rows test nothing; "" if they do."""
    n_labels, n_duplicates, _ = tally.n_labels.tolist()
    if promises.are_in_groups and context.is_counted is None:
        option = context.labels.groups_option
        return f"{IN_GROUPS}; {option} names the column of their groups"
    if not context.labels.are_there:
        option = context.labels.option
        return f"the new rows have no labels; {option} names their column"
    if not n_labels:
        return "no new row has a label"
    return NO_FRESH if n_duplicates == n_labels else ""


def _reason_without_limit(certificate: Certificate) -> str:
    """Return why a bound promises nothing; "" if it does."""
    if not certificate.certified:
        gravest = certificate.all_caveats[0]
        return f"it is no guarantee: {gravest.short_text or gravest.text}"
    return NO_LIMIT if certificate.says_nothing else ""


def _reason_for_no_test(certificate: Certificate, loss: Loss | None) -> str:
    """Return why no new rows can refute a bound; "" if some can."""
    reason = _reason_without_limit(certificate)
    if not reason and not isinstance(loss, RefutableLoss):
        reason = f"no test of {shorten_text(certificate.loss)} is known"
    return reason
