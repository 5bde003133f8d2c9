"""``dsel select``: choose a model from files."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from operator import or_
from typing import Any, Final, NamedTuple

import click
import numpy as np
import pandas as pd

from dsel.arrays import Estimator, Integers, narrow_objects
from dsel.checks import (
    describe_unused_columns,
    list_columns,
    listing,
    nearest_name,
    similar_labels,
)
from dsel.cli.commands.select_command import REPORT, SelectOptions, is_report
from dsel.cli.grids import names_of_models
from dsel.cli.named_models import (
    MODELS,
    REGRESSORS,
    build,
    default_model,
    import_from_here,
    show_failure,
)
from dsel.cli.options import WORDS_OF_SHELL, TextOptions, split_options
from dsel.cli.pool_shift import PoolShift, find_pool_shift
from dsel.cli.run_compare import join_columns, read_all_columns
from dsel.cli.running import (
    columns_in,
    format_names_columns,
    leave_out_lacking_ids,
    numbers_in,
    offer_changed_table,
    print_file_command,
    print_notes,
    print_warning,
    run_plan,
)
from dsel.cli.stops import undecided_words, with_options, without_option
from dsel.data.columns import MissingColumnsError
from dsel.data.frames import native, take_rows
from dsel.data.identifiers import is_name_of_identifier, notes_on_repeats
from dsel.data.labeled import MOST_WHOLE, check_labels, wrap_unlabeled_rows
from dsel.data.like import open_pool_like
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.query_rows import POOL_ROW
from dsel.data.record_ids import RecordIds, check_ids, leave_out_records
from dsel.data.schema import TableSchema
from dsel.data.table_request import (
    Table,
    notes_on_row_numbers,
    step_of_row_numbers,
)
from dsel.data.tables import read_table, rewrite_file
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_tables import is_text, text_source
from dsel.data.unknown_values import (
    check_spellings,
    find_unknown_values,
    known_values_for_pool,
    select_unexpected_values,
)
from dsel.errors import (
    AllFitsFailedError,
    Correction,
    NewFile,
    OtherCommands,
    PoolRowError,
    RowError,
    UndecidedError,
    reword,
    ways_of,
    with_ways,
)
from dsel.families.estimator_kinds import is_classifier, is_regressor
from dsel.losses.texts import (
    UnfitLossError,
    UnknownClassError,
    class_of_text,
    loss_of_name,
)
from dsel.option_values import (
    CLASSIFICATION,
    LARGEST_CLASS,
    REGRESSION,
    RIDGE,
    join_names,
    names_in,
)
from dsel.results.caveats import Effect, make_caveats
from dsel.results.query_files import write_query_rows
from dsel.results.row_hashes import load_row_hashes
from dsel.results.run_tables import RunTables
from dsel.runtime.progress import phase_progress
from dsel.search.design.baseline import check_unseen
from dsel.search.design.search_options import SearchOptions
from dsel.search.outcomes.deployed_model import open_deployed_model
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_caveats import check_possible_bound
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options
from dsel.search.running.execute import check_out
from dsel.typing import AnyArray

MOST_TARGETS: Final = 3
"""Most columns without a counterpart in the pool that are offered as the target."""


@dataclass(frozen=True)
class SelectInputs:
    """The contents of a command's files, and its options in terms of them."""

    table: Table
    X: Any
    """Rows with a label."""
    y: Any
    model: str
    """Name of the model, which is the default where none was named."""
    estimator: Estimator | None
    grid: Any
    """Values of parameters, or a list with a model that has none to be chosen."""
    loss: Any
    report: Any
    pool: Pool | None
    people_pool: Pool | None
    """The pool with the columns that help people to label; None if `pool` does."""
    shown_rows: list[tuple[str, str]]
    notes: tuple[str, ...]
    """Notes on the tables, without those that the plan has, too."""
    shift: PoolShift | None
    """Columns by which the pool is of another population; None if none are known."""

    @property
    def label_column(self) -> str:
        """Name of the column for the labels of queried rows."""
        schema = self.table.schema
        return (None if schema is None else schema.target) or "label"

    @property
    def queried_pool(self) -> Pool | None:
        """The pool of which rows are queried, without a column that has labels."""
        pool = self.people_pool or self.pool
        columns = () if pool is None else pool.columns or ()
        if pool is None or self.label_column not in columns:
            return pool
        # A column like this would reveal the labels.
        return pool.with_columns([c for c in columns if c != self.label_column])


def run(options: SelectOptions) -> None:
    """Choose a model from labeled rows and bound its error."""
    # A large table takes minutes to read.
    with phase_progress(options.output.shows_progress, "Reading the tables"):
        inputs = read_inputs(options)
        plan = make_plan(options, inputs)
    # Notes come after all checks, so that a refusal is a single line, and before a run
    # that may take hours. Findings of the plan are printed with the choice, too.
    known = {caveat.text for caveat in plan.facts.caveats}
    if inputs.shift is not None:
        print_warning(inputs.shift.line, inputs.shift.ways)
    row_groups = plan.search.row_groups
    of_groups = [] if row_groups is None else row_groups.notes_on_spellings()
    print_notes(
        [
            *of_groups,
            *(line for line in inputs.notes if line not in known),
            *plan.notes_on_few_rows,
        ]
    )
    if files := _respell_tables(options, inputs):
        print_file_command(
            files, "If these are one value, write one of them everywhere"
        )
    pool = options.pool
    try:
        run_plan(
            plan,
            shown_rows=inputs.shown_rows,
            schema=inputs.table.schema,
            tables=RunTables(
                os.path.abspath(options.labeled),
                options.target,
                pool if pool is None or "://" in pool else os.path.abspath(pool),
                inputs.model,
                date.today().isoformat(),
                _command_of_report(options, is_regression=inputs.table.is_regression),
                options.groups,
                _whole_command(options),
            ),
            likely_keys=find_likely_keys(inputs.table, options),
            likely_owners=find_likely_owners(inputs.table, options),
            first_line="" if inputs.shift is None else inputs.shift.short_line,
            after=partial(write_rows, options, inputs),
            cluster=options.cluster,
            output=options.output,
            out=options.out,
            only_plan=options.only_plan,
        )
    except AllFitsFailedError:
        if ":" in inputs.model:
            show_failure(
                inputs.model, inputs.estimator, inputs.grid, inputs.X, inputs.y
            )
        raise


def check(options: SelectOptions) -> None:
    """Raise what stops the command before its run."""
    plan = make_plan(options, read_inputs(options))
    if options.out is not None:
        check_out(plan.search, plan.facts, options.out)


def _notes_on_keys(table: Table, keys: Iterable[str]) -> list[str]:
    """Return the notes on a labeled table about keys that count its rows."""
    assert table.schema is not None
    X = pd.DataFrame(table.X, columns=list(table.schema.names), copy=False)
    return [
        note
        for name in keys
        for note in notes_on_row_numbers(
            name, X[name].to_numpy(np.float64, na_value=np.nan)
        )
    ]


def find_likely_keys(table: Table, options: SelectOptions) -> dict[str, str]:
    """Return the features that probably identify rows, with the option for each.

    The option is ``--groups`` if several rows share a value, unless groups are known.
    Columns of ``--text`` are declared to be none.
    """
    if table.schema is None or len(table.schema.names) < 2:
        return {}
    X = pd.DataFrame(table.X, columns=list(table.schema.names))
    names = [
        column.name for column in table.schema.columns if column.kind is Kind.WHOLE
    ]
    numbers = {name: X[name].to_numpy(np.float64, na_value=np.nan) for name in names}
    option_of = {
        name: "--id"
        for name in names
        if is_name_of_identifier(name)
        # Numbers that rise in unequal steps may as well be measured.
        or step_of_row_numbers(numbers[name])
    }
    return option_of | dict.fromkeys(_find_owners(X, options), "--groups")


def find_likely_owners(table: Table, options: SelectOptions) -> list[str]:
    """Return the features of which several rows share each value, as of a customer.

    They have the names of identifiers. None where the groups are known, and no column
    of ``--text``, which is declared to be a category.
    """
    return _find_owners(table.X, options) if isinstance(table.X, pd.DataFrame) else []


def _find_owners(X: pd.DataFrame, options: SelectOptions) -> list[str]:
    """Return the columns of `find_likely_owners`."""
    if options.groups is not None:
        return []
    return [
        name
        for name in map(str, X.columns)
        if name not in options.texts
        if is_name_of_identifier(name) and notes_on_repeats(X[name])
    ]


def _command_of_report(options: SelectOptions, *, is_regression: bool) -> str:
    """Return the command of this run with a report of the classes, or ""."""
    if is_regression or options.out is None or any(map(is_report, options.loss)):
        return ""
    folder = f"{options.out.rstrip('/')}_report"
    # Queried rows bound the error alone.
    words = without_option(click.get_current_context().obj, "--queries")
    changed = with_options(words, [("--loss", "report"), ("--out", folder)])
    return shlex.join(["dsel", *changed])


def _whole_command(options: SelectOptions) -> tuple[str, ...]:
    """Return the words of this command, with absolute paths of the tables."""
    tables = [table for table in (options.labeled, options.pool) if table is not None]
    whole = {table: os.path.abspath(table) for table in tables if "://" not in table}
    words = split_options(click.get_current_context().obj)
    return tuple(whole.get(word, word) for word in words)


def read_inputs(options: SelectOptions) -> SelectInputs:
    """Read the tables, and find what is searched: model, grid and loss."""
    table = read_labeled_table(options)
    X, y, unlabeled, label_notes = take_labeled_rows(table, options)
    model = options.model or default_model(
        options.grid, is_regression=table.is_regression
    )
    for name in names_of_models(model):
        check_named_model(name, y, options, is_regression=table.is_regression)
    classes: list[Any] = []  # numbers have none
    if options.loss and not table.is_regression:
        classes = np.unique(check_labels(y)).tolist()
    loss = parse_loss(options.loss, classes)
    is_unused = options.report_by in options.drop
    estimator, grid, encoder_rows = build(
        model,
        options.grid,
        X,
        table.why_texts,
        options.report_by if is_unused else None,
        is_regression=table.is_regression,
        # The error alone counts each row alike, whichever class it has.
        weighs_classes=loss != "error",
        has_groups=options.groups is not None,
        pool_columns=columns_of_pool(options),
        measured=options.number,
    )
    one_of_them = grid[0] if estimator is None else estimator
    check_kind_of_model(one_of_them, model, options, table)
    report = parse_report(options.loss, classes, is_regression=table.is_regression)
    pools = open_pools(unlabeled, table, options)
    by_default = "" if options.model else " by default; --model names another"
    if by_default and table.is_regression and not options.grid:
        # This note comes before the run, since a choice after its result would break
        # A5.
        by_default = f" by default; --model {model},{RIDGE} compares two"
    shown_rows = [
        ("model", model + by_default),
        *encoder_rows,
        *table.notes,
        *pools.shown_rows,
    ]
    lines = dict.fromkeys((*table.caveats, *label_notes, *pools.caveats))
    if pools.shift is not None:
        for line in _notes_on_keys(table, pools.shift.keys):
            lines.pop(line, None)  # the line on the pool says more
    return SelectInputs(
        table,
        X,
        y,
        model,
        estimator,
        grid,
        loss,
        report,
        pools.pool,
        pools.people_pool,
        shown_rows,
        tuple(lines),
        pools.shift,
    )


def read_labeled_table(options: SelectOptions) -> Table:
    """Read the labeled table; raise if options about its columns contradict."""
    labeled, target, report_by = options.labeled, options.target, options.report_by
    if target is None and format_names_columns(labeled):
        columns: tuple[str, ...] = ()
        # The pool is read later, if at all.
        with suppress(OSError, TypeError, ValueError):
            columns = columns_in(labeled, options.text.arguments) or ()
        raise undecided_words(
            f"name the column of {labeled!r} that has the labels by --target"
            f"{list_columns(columns, 'label') if columns else '.'}",
            *([("--target", name)] for name in find_targets(columns, options)),
        )
    arguments = options.text.arguments | {
        "target": target,
        "drop": [name for name in options.drop if name != report_by],
        "ids": options.ids,
        "groups": options.groups,
        "task": options.task,
        "day_first": options.day_first,
        "number": options.number,
        "text": options.texts,
        "gaps": options.gaps,
        "unlabeled": options.unlabeled_words,
        "gap_classes": options.gap_classes,
    }
    try:
        table = read_table(labeled, **arguments)
    except ValueError as error:
        if only_pool_has_target(options):
            raise UndecidedError(
                f"{error} The pool {options.pool!r} has this column: are LABELED and "
                f"--pool swapped?",
                _swap_tables(options),
            ) from error
        raise
    if table.y is None:
        raise ValueError(
            f"LABELED {labeled!r} holds no labels; name their array by --target."
        )
    return table


def _swap_tables(options: SelectOptions) -> OtherCommands:
    """Return the command with LABELED in the place of --pool, and conversely."""
    other = {options.labeled: str(options.pool), options.pool: options.labeled}
    words = split_options(click.get_current_context().obj)
    return OtherCommands((tuple(other.get(word, word) for word in words),))


def find_targets(columns: Sequence[str], options: SelectOptions) -> list[str]:
    """Return the columns of a labeled table that are probably its target.

    The pool lacks the target, as it may lack identifiers; otherwise the target has a
    usual name of labels.
    """
    in_pool = columns_of_pool(options)
    if in_pool is None:
        near = nearest_name("label", columns)
        return [] if near is None else [str(near)]
    lacking = [name for name in columns if name not in in_pool]
    lacking = [name for name in lacking if not is_name_of_identifier(name)]
    return lacking[::-1] if len(lacking) <= MOST_TARGETS else []


def only_pool_has_target(options: SelectOptions) -> bool:
    """Return whether the pool has the target, and the labeled table does not."""
    has_target = []
    # The labeled table may be unreadable.
    with suppress(OSError, TypeError, ValueError):
        for path in filter(None, (options.labeled, options.pool)):
            names = columns_in(path, options.text.arguments) or ()
            has_target.append(options.target in names)
    return has_target == [False, True]


def columns_of_pool(options: SelectOptions) -> tuple[str, ...] | None:
    """Return the names of the pool's columns; None without a pool, or if unreadable."""
    # Errors of the pool are reported when it is opened.
    with suppress(OSError, TypeError, ValueError):
        if options.pool is not None:
            return columns_in(options.pool, options.text.arguments)
    return None


def make_plan(options: SelectOptions, inputs: SelectInputs) -> Plan:
    """Return the plan of the search, with the caveats of the labeled table."""
    table, report_by = inputs.table, options.report_by
    column: str | int | None = report_by
    if report_by is not None and table.columns is None and report_by.isdecimal():
        column = int(report_by)  # columns of an array have numbers
    caller_settings = CallerSettings(
        caveats=(
            *make_caveats(Effect.WARNS, table.repeat_caveats),
            *make_caveats(Effect.INFO, _notes_on_empty_columns(inputs.X)),
        ),
        has_unique_ids=table.has_unique_ids,
        categories=options.texts,
        queried_pool=inputs.queried_pool if options.queries else None,
    )
    with _name_lines(options.labeled, np.asarray(table.y), options.text):
        plan = plan_with_options(
            inputs.estimator,
            inputs.grid,
            inputs.X,
            inputs.y,
            inputs.pool,
            SearchOptions(
                certificate=options.certificate,
                deploy=options.deploy,
                cv=options.cv,
                delta=options.delta,
                random_state=options.seed,
                groups=table.labeled_groups,
                loss=inputs.loss,
                report=inputs.report,
                report_by=column,
                n_queries=options.queries,
                baseline=open_baseline(options, table.schema, inputs.X),
            ),
            caller_settings,
        )
        # In Python this is a note: a search of few rows may be wanted for its choice.
        check_possible_bound(plan.search)
    return plan


def open_baseline(options: SelectOptions, schema: TableSchema | None, X: Any) -> Any:
    """Return the baseline for `plan_search`; raise if it has other columns, or rows."""
    baseline, trust = options.baseline, options.trust
    if baseline is None or baseline == LARGEST_CLASS:
        return baseline
    import_from_here(trust)
    try:
        opened = open_deployed_model(baseline, trusted=trust)
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"--baseline {baseline!r} cannot be opened: {error} It must be a folder "
            f"or URL of results or of a kept model, or {LARGEST_CLASS!r}."
        ) from error
    learned = opened.input_format.table_schema
    columns = {} if schema is None else {c.name: c for c in schema.columns}
    for column in () if learned is None else learned.columns:
        here = columns.get(column.name, column)
        if here.meaning != column.meaning:
            raise ValueError(
                f"--baseline learned the column {column.name!r} as {column.noun}, and "
                f"LABELED holds it as {here.noun}; give the table as Parquet, with "
                f"types of its own, or with the same --number."
            )
    known = load_row_hashes(baseline)
    option = f"--baseline {baseline!r}"
    check_unseen(known, wrap_unlabeled_rows(X).X, option)
    return opened.model


def _notes_on_empty_columns(X: Any) -> list[str]:
    """Return a note about the columns without a value in any labeled row."""
    if not isinstance(X, pd.DataFrame):
        return []
    empty = [repr(name) for name in X if X[name].isna().all()]
    if not empty:
        return []
    what, has = ("columns", "have") if len(empty) > 1 else ("column", "has")
    return [
        f"{what} {listing(empty, 8)} {has} no value in any labeled row, so the model "
        f"does not depend on {'them' if len(empty) > 1 else 'it'}"
    ]


def check_named_model(
    model: str, y: Iterable[object], options: SelectOptions, *, is_regression: bool
) -> None:
    """Raise if the named model is not for the kind of target, classes or numbers."""
    models_of_kind, models_of_other_kind = (
        (REGRESSORS, MODELS) if is_regression else (MODELS, REGRESSORS)
    )
    if model in models_of_kind or model not in models_of_other_kind:
        return
    kinds = ("classes", "numbers") if is_regression else ("numbers", "classes")
    reason = "because it has fractions"
    if options.task is not None:
        reason = f"by --task {options.task}"
    elif not is_regression:
        is_text = any(isinstance(label, str) for label in y)
        reason = (
            "because it holds texts"
            if is_text
            else f"because it has at most {MOST_WHOLE} different whole numbers"
        )
    other = CLASSIFICATION if is_regression else REGRESSION
    raise ValueError(
        f"--model {model!r} predicts {kinds[0]}, but {options.target or 'y'!r} was "
        f"taken for {kinds[1]}, {reason}; write --task {other}, or name one of "
        f"{', '.join(models_of_kind)}."
    )


def check_kind_of_model(
    estimator: Estimator, model: str, options: SelectOptions, table: Table
) -> None:
    """Raise if a user's model predicts classes of a numeric target, or conversely."""
    fits_numbers = is_regressor(estimator)
    if fits_numbers == table.is_regression or not (
        fits_numbers or is_classifier(estimator)
    ):
        return  # the plan refuses an estimator that is neither
    kinds = ("classes", "a regressor") if fits_numbers else ("numbers", "a classifier")
    raise ValueError(
        f"{options.target or 'y'!r} holds {kinds[0]}, and --model {model} is "
        f"{kinds[1]}; set --task to what it holds, or name another model."
    )


class OpenedPools(NamedTuple):
    """The pool of a command, and what is known of it before the run."""

    pool: Pool | None
    """The pool for models."""
    people_pool: Pool | None = None
    """The pool with the columns that no model uses, too; None if `pool` has all."""
    shown_rows: Sequence[tuple[str, str]] = ()
    caveats: tuple[str, ...] = ()
    shift: PoolShift | None = None


def open_pools(unlabeled: Any, table: Table, options: SelectOptions) -> OpenedPools:
    """Return the pool of a command.

    Without --pool the `unlabeled` rows of the table are the pool, if there are some.
    """
    location, schema, ids = options.pool, table.schema, table.ids
    text, n_queries = options.text.arguments, options.queries
    if location is None and unlabeled is None:
        return OpenedPools(None)
    if location is None:
        shown = None
        if ids is not None:
            ids = ids.iloc[np.flatnonzero(pd.isna(table.y))]
            shown = open_pool(join_columns(unlabeled, ids))
        return OpenedPools(open_pool(unlabeled), shown)
    if schema is None:
        return OpenedPools(open_pool(location))
    schema, notes_on_ids = leave_out_lacking_ids(schema, location, text)
    if "://" in location or not is_text(location):
        with _naming_groups(table, options), offer_changed_table(location, text):
            pool, stored, caveats, unknown = open_pool_like(
                location, schema, why_texts=table.why_texts
            )
        shown = stored if n_queries else None
        names = stored.columns or ()
        keyed: Pool | None = stored
    else:
        names = text_source(location, **text, like=schema).names
        shown = None
        with _naming_groups(table, options), offer_changed_table(location, text):
            if n_queries:
                rows, shown = read_all_columns(location, schema, text)
            else:  # other columns would take memory
                rows = read_table(location, like=schema, **text)
        features = pd.DataFrame(rows.X, columns=list(schema.names), copy=False)
        unknown = find_unknown_values(features, known_values_for_pool(schema))
        pool = open_pool(rows.X)
        caveats = rows.caveats
        keyed = None if rows.ids is None else open_pool(rows.ids)
    check_spellings(unknown, pool.n_rows, partial(_respell_table, location, text))
    known = {*schema.used_names, *schema.dropped}
    unused = describe_unused_columns(names, known)
    unexpected = select_unexpected_values(unknown, pool.n_rows)
    shift = None
    if options.groups is None:  # else no pool is read
        keys = find_likely_keys(table, options)
        keys = {name: option for name, option in keys.items() if option == "--id"}
        shift = find_pool_shift(unexpected, pool.n_rows, keys)
    new_values = [
        values.line
        for values in unexpected
        if shift is None or values not in shift.columns
    ]
    caveats = (*notes_on_ids, *caveats, *new_values)
    is_labeled = ~pd.isna(table.y)
    labeled_ids = None if ids is None else ids[is_labeled]
    known_ids = RecordIds.of(labeled_ids)
    if keyed is not None:
        features = pd.DataFrame(table.X, columns=list(schema.names))
        check_ids(pool, keyed, features[is_labeled], labeled_ids)
        pool, notes = leave_out_records(pool, keyed, [known_ids])
        caveats = (*caveats, *notes)
    not_used = [("not used", unused)] if unused else []
    return OpenedPools(pool, shown, not_used, caveats, shift)


@contextmanager
def _naming_groups(table: Table, options: SelectOptions) -> Iterator[None]:
    """Name groups first where rows may belong together by a column that is missing."""
    try:
        yield
    except MissingColumnsError as error:
        owner = None
        may_have_groups = options.groups is None and not error.lacks_most
        if may_have_groups and isinstance(table.X, pd.DataFrame):
            names = filter(is_name_of_identifier, error.missing)
            owner = next((n for n in names if notes_on_repeats(table.X[n])), None)
        if owner is None:
            raise
        ways = [("--groups", owner)]
        if other_columns := [name for name in error.missing if name != owner]:
            ways.append(("--drop", join_names(other_columns)))
        raise UndecidedError(
            f"{error} If rows of one {owner} belong together, write --groups "
            f"{shlex.quote(owner)}: without it the bound would be too small.",
            ways,
            *error.ways,
        ) from error


def _respell_table(
    location: str, text: Mapping[str, Any], spellings: Mapping[str, Mapping[str, str]]
) -> NewFile | None:
    """Return a table in another file, with other spellings by column and value."""
    if not os.path.isfile(location):
        return None
    strip = ".str.strip()" if is_text(location) else ""
    change = "; ".join(
        f"t[{name!r}] = t[{name!r}]{strip}.replace({dict(meant)})"
        for name, meant in spellings.items()
    )
    return rewrite_file(location, "_respelled", change, **text)


def _respell_tables(options: SelectOptions, inputs: SelectInputs) -> list[NewFile]:
    """Return both tables with the most frequent of spellings that are alike.

    The pool is only among them if it has one of the others. Empty where the notes on
    the labeled table name no column that has such spellings.
    """
    text, pool = options.text.arguments, inputs.pool
    spellings = _find_spellings(inputs.table)
    if options.groups is not None and inputs.table.labeled_groups is not None:
        keys = pd.Series(inputs.table.labeled_groups)
        are_texts = keys.map(lambda key: isinstance(key, str)).astype(bool)
        if usual := _usual_spellings(keys[are_texts]):
            spellings[options.groups] = usual
    if not spellings:
        return []
    locations = [options.labeled]
    if pool is not None and os.path.isfile(options.pool or ""):
        find = partial(_has_values, {n: [*of] for n, of in spellings.items()})
        columns = pool.with_columns([*spellings])
        if columns.reduce(find, or_, allow_nan=True):
            locations.append(str(options.pool))
    files = [_respell_table(location, text, spellings) for location in locations]
    # One that is not rewritten here would differ from the other.
    return [] if None in files else [file for file in files if file is not None]


def _has_values(
    values: Mapping[str, Sequence[str]], X: Any, row_numbers: Integers
) -> bool:
    """Return whether any column of a block has one of its values."""
    rows = native(X)
    return any(bool(rows[name].isin(texts).any()) for name, texts in values.items())


def _find_spellings(table: Table) -> dict[str, dict[str, str]]:
    """Return the most frequent spelling by column of the labeled table and value."""
    if table.schema is None or not isinstance(table.X, pd.DataFrame):
        return {}
    names = [
        column.name
        for column in table.schema.columns
        if column.kind is Kind.TEXT
        and column.categories
        and column.name not in table.why_texts
    ]
    spellings = {name: _usual_spellings(table.X[name]) for name in names}
    return {name: usual for name, usual in spellings.items() if usual}


def _usual_spellings(values: pd.Series) -> dict[str, str]:
    """Return the most frequent spelling of each text that has a more frequent one."""
    n_rows, spellings = values.value_counts().to_dict(), dict[str, str]()
    for alike in similar_labels(n_rows):
        usual = max(alike, key=n_rows.__getitem__)
        spellings |= {text: usual for text in alike if text != usual}
    return spellings


def write_rows(
    options: SelectOptions, inputs: SelectInputs, outcome: Outcome
) -> tuple[str, str]:
    """Write the rows to label, as they stand in a text table; return what is next."""
    out, target, schema = options.out, inputs.label_column, inputs.table.schema
    queries = outcome.choice.queries
    if out is None or outcome.pool_rows is None or queries is None:
        return "", ""
    if queries.labels is not None:  # they have been labeled
        return "", ""
    rows = outcome.query_rows().set_axis(list(queries.rows), axis=0)
    source = None
    numbers = rows.index.to_numpy(dtype=np.int64)
    if options.pool is None:  # rows of the labeled table without a label are the pool
        numbers = np.flatnonzero(pd.isna(inputs.table.y))[numbers]
    place = options.labeled if options.pool is None else options.pool
    if schema is not None and "://" not in place and is_text(place):
        source = text_source(place, **options.text.arguments, like=schema)
    file, is_new = write_query_rows(
        out, rows, target=target, source=source, row_numbers=numbers.tolist()
    )
    what = "" if is_new else " (it existed already and is unchanged)"
    n_rows = len(outcome.pool_rows)
    if not queries.would_help:
        return "", f"{file} has these rows{what}"
    # People find the row that is meant by its number, or by an id.
    counted = ""
    if schema is None or not schema.ids:
        of_pool = place if options.pool else f"{place} without a label"
        counted = f", whose {POOL_ROW} counts the rows of {of_pool} from 0,"
    return "Next", (
        f"label the {n_rows:,} rows of {file}{what}{counted} in their last "
        f"column, {target!r}, then run: dsel label {shlex.quote(out)}"
    )


def take_labeled_rows(
    table: Table, options: SelectOptions
) -> tuple[Any, Any, Any, list[str]]:
    """Return rows with a label, their labels, the other rows, and notes about these.

    Rows with an empty target are the pool if there is no other one.
    """
    X = table.X
    y = np.asarray(table.y)
    unlabeled_rows = None
    notes = list[str]()
    target = options.target
    has_pool = options.pool is not None
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))  # so that names are compared
    missing = pd.isna(y) if y.ndim == 1 else np.zeros(len(y), dtype=np.bool_)
    if missing.any() and missing.all():
        raise ValueError(
            f"{options.labeled!r} must have rows with a label, but every cell of "
            f"{target!r} is empty; name the column of the labels by --target."
        )
    if n_missing := int(missing.sum()):
        use = "are left out, since --pool names others" if has_pool else "are the pool"
        notes.append(
            f"{n_missing:,} of {len(y):,} rows have no label in {target or 'y'!r}: "
            f"they {use}"
        )
        unlabeled_rows = None if has_pool else take_rows(X, np.flatnonzero(missing))
        known = np.flatnonzero(~missing)
        X, y = take_rows(X, known), narrow_objects(y[known])
    if table.schema is not None and all(isinstance(label, str) for label in y):
        # The reader knows which labels were missing: texts such as "None" are classes.
        return X, pd.Series(y, dtype="category"), unlabeled_rows, notes
    return X, y, unlabeled_rows, notes


@contextmanager
def _name_lines(labeled: str, y: AnyArray, text: TextOptions) -> Iterator[None]:
    """Name rows in errors about labeled rows as they are in their table."""
    try:
        yield
    except PoolRowError:
        raise
    except RowError as error:
        in_table = error.renumber(np.flatnonzero(~pd.isna(y)).tolist())
        if not is_text(labeled):
            raise in_table from error
        source = text_source(labeled, **text.arguments)
        raise in_table.in_lines(source.line_of) from error


@contextmanager
def _correct_classes(text: str) -> Iterator[None]:
    """Add the loss with the class that was meant to an error about another one."""
    try:
        yield
    except UnknownClassError as error:
        if (meant := error.meant) is not None:
            # A class begins behind a sign, and other parts may have the same letters.
            named = rf"(?<=[:,>]){re.escape(error.named)}(?=[,>=]|$)"
            corrected = re.sub(named, lambda match: meant, text)
            with_ways(error, [Correction("--loss", text, corrected)])
        raise


def parse_report(
    texts: Sequence[str], classes: Sequence[object], *, is_regression: bool
) -> Any:
    """Return the ``report`` that ``--loss`` requests: True, classes, or fractions."""
    reports = [text for text in texts if is_report(text)]
    if not reports or reports == [REPORT]:
        return bool(reports)
    listed = reports[0].removeprefix(REPORT)
    if listed.startswith("=") != is_regression:
        wanted = (
            "fractions: report=0.5,0.9" if is_regression else "classes: report:yes,no"
        )
        raise ValueError(f"--loss {reports[0]} must name {wanted}.")
    if is_regression:
        return numbers_in(listed[1:], float, "--loss report=")
    with _correct_classes(reports[0]):
        return [class_of_text(text, classes, "--loss") for text in names_in(listed[1:])]


def parse_loss(texts: Sequence[str], classes: Sequence[object]) -> Any:
    """Return the loss that ``--loss`` requests, without the report."""
    named = [text for text in texts if not is_report(text)] or ["error"]
    if named == ["error"]:
        return "error"
    try:
        with _correct_classes(named[0]):
            return loss_of_name(named[0], classes, name="--loss")
    except ValueError as error:
        needs_table = isinstance(error, UnfitLossError)
        kind = ValueError if needs_table else click.UsageError
        text = reword(str(error), WORDS_OF_SHELL)
        raise with_ways(kind(text), *ways_of(error)) from error
