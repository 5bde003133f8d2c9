"""``dsel select``: choose a model from files."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Final

import click
import numpy as np
import pandas as pd

from dsel.arrays import Estimator, narrow_objects
from dsel.checks import describe_unused_columns, listing
from dsel.cli.commands.select import SelectOptions
from dsel.cli.compare import join_columns, read_all_columns
from dsel.cli.encoders import encoders
from dsel.cli.group import with_options
from dsel.cli.models import (
    MODELS,
    REGRESSORS,
    build,
    default_model,
    import_from_here,
    names_of_models,
    show_failure,
)
from dsel.cli.options import NAMES, TextOptions
from dsel.cli.running import (
    format_names_columns,
    names_in,
    numbers_in,
    print_notes,
    run_plan,
)
from dsel.data.frames import take_rows
from dsel.data.labeled import MOST_WHOLE, check_labels, seen_rows
from dsel.data.like import open_pool_like
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.record_ids import RecordIds
from dsel.data.schema import TableSchema
from dsel.data.table_files import TEXT_FILES, files_in
from dsel.data.table_request import Table
from dsel.data.tables import read_table
from dsel.data.text_tables import GapWordError, is_text, is_utf8, text_source
from dsel.data.unknown_values import (
    check_spellings,
    describe_alike,
    find_unknown_values,
    known_values,
)
from dsel.errors import AllFitsFailedError, RowError, join_stops, reword
from dsel.families.kinds import is_classifier, is_regressor
from dsel.losses.texts import UnfitLossError, class_of_text, loss_of_name
from dsel.option_values import (
    CLASSIFICATION,
    FOREST,
    LARGEST_CLASS,
    LOGISTIC,
    LOSS_FORMS,
    REGRESSION,
)
from dsel.results.caveats import (
    IF_COPIES,
    Caveat,
    Effect,
    collect_caveats,
    make_caveats,
)
from dsel.results.query_files import write_query_rows
from dsel.results.row_hashes import load_row_hashes
from dsel.results.run_tables import RunTables
from dsel.search.design.baseline import check_unseen
from dsel.search.outcomes.deployed_model import open_deployed_model
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_caveats import check_possible_bound
from dsel.search.planning.plan_search import plan_search
from dsel.typing import AnyArray

REPORT: Final = "report"


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
    facts: list[tuple[str, str]]
    notes: tuple[str, ...]
    """Notes on the tables, without those that the plan has, too."""

    @property
    def label_column(self) -> str:
        """Name of the column for the labels of queried rows."""
        schema = self.table.schema
        return (None if schema is None else schema.target) or "label"


def run(options: SelectOptions) -> None:
    """Choose a model from labeled rows and bound its error."""
    inputs = read_inputs(options)
    plan = make_plan(options, inputs)
    # Notes come after all checks, so that a refusal is a single line, and before a run
    # that may take hours. What the plan found, too, is printed with the choice.
    known = {caveat.text for caveat in plan.caveats}
    print_notes(
        [*(line for line in inputs.notes if line not in known), *plan.notes_on_few_rows]
    )
    pool = options.pool
    try:
        run_plan(
            plan,
            facts=inputs.facts,
            schema=inputs.table.schema,
            tables=RunTables(
                os.path.abspath(options.labeled),
                options.target,
                pool if pool is None or "://" in pool else os.path.abspath(pool),
                inputs.model,
                date.today().isoformat(),
                _command_of_report(options, is_regression=inputs.table.is_regression),
                options.groups,
            ),
            after=partial(write_rows, options, inputs),
            cluster=options.cluster,
            output=options.output,
            out=options.out,
        )
    except AllFitsFailedError:
        if ":" in inputs.model:
            show_failure(
                inputs.model, inputs.estimator, inputs.grid, inputs.X, inputs.y
            )
        raise


def _command_of_report(options: SelectOptions, *, is_regression: bool) -> str:
    """Return the command of this run with a report of the classes, or ""."""
    if is_regression or options.out is None or any(map(_is_report, options.loss)):
        return ""
    folder = f"{options.out.rstrip('/')}_report"
    words = click.get_current_context().obj
    return with_options(words, [("--loss", "report"), ("--out", folder)])


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
    is_unused = options.report_by in names_in(options.drop)
    estimator, grid, encoder_facts = build(
        model,
        options.grid,
        X,
        table.why_texts,
        options.report_by if is_unused else None,
        is_regression=table.is_regression,
        # The error alone counts each row alike, whichever class it has.
        weighs_classes=loss != "error",
    )
    one_of_them = grid[0] if estimator is None else estimator
    check_kind_of_model(one_of_them, model, options, table)
    report = parse_report(options.loss, classes, is_regression=table.is_regression)
    pool, people_pool, pool_facts, caveats = open_pools(unlabeled, table, options)
    by_default = "" if options.model else " by default; --model names another"
    if by_default and not options.grid and not table.is_regression:
        # It is said before the run: a choice after its result would break A5.
        by_default = f" by default; --model {FOREST},{LOGISTIC} compares two"
    facts = [("model", model + by_default), *encoder_facts, *table.notes, *pool_facts]
    lines = dict.fromkeys((*table.caveats, *label_notes, *caveats))
    return SelectInputs(
        table,
        X,
        y,
        model,
        estimator,
        grid,
        loss,
        report,
        pool,
        people_pool,
        facts,
        tuple(lines),
    )


def read_labeled_table(options: SelectOptions) -> Table:
    """Read the labeled table; raise if options about its columns contradict."""
    labeled, target, report_by = options.labeled, options.target, options.report_by
    if target is None and format_names_columns(labeled):
        raise click.UsageError(
            f"name the column of {labeled!r} that has the labels by --target."
        )
    if options.queries and not options.out:
        raise click.UsageError(
            f"--queries {options.queries} writes rows to label; name a folder by --out."
        )
    ids = names_in(options.ids)
    if report_by is not None and report_by in (*ids, target, options.groups):
        option = "--id" if report_by in ids else "--groups"
        what = "the target" if report_by == target else f"no feature, by {option}"
        raise click.UsageError(
            f"--report-by {report_by!r} is {what}; name a column that new rows have, "
            f"too."
        )
    arguments = options.text.arguments | {
        "target": target,
        "drop": [name for name in names_in(options.drop) if name != report_by],
        "ids": ids,
        "groups": options.groups,
        "task": options.task,
        "day_first": options.day_first,
        "number": options.number,
        "text": options.texts,
        "unlabeled": options.unlabeled_words,
        "gap_classes": options.gap_classes,
    }
    try:
        table = read_table(labeled, **arguments)
    except ValueError as error:
        if only_pool_has_target(options):
            raise ValueError(
                f"{error} The pool {options.pool!r} has this column: are LABELED and "
                f"--pool swapped?"
            ) from error
        also = find_next_stop(error, options, arguments)
        if also is None:
            raise
        raise join_stops(error, also) from error
    if table.y is None:
        raise ValueError(
            f"LABELED {labeled!r} holds no labels; name their array by --target."
        )
    return table


def only_pool_has_target(options: SelectOptions) -> bool:
    """Return whether the pool has the target, and the labeled table does not."""
    has_target = []
    with suppress(
        OSError, TypeError, ValueError
    ):  # the labeled table may be unreadable
        for path in filter(None, (options.labeled, options.pool)):
            if "://" not in path and is_text(path):
                names = text_source(path, **options.text.arguments).names
            else:
                names = open_pool(path).columns or ()
            has_target.append(options.target in names)
    return has_target == [False, True]


def find_next_stop(
    error: Exception, options: SelectOptions, arguments: Mapping[str, Any]
) -> Exception | None:
    """Return the error that the table has next, once `error` is decided; else None.

    The table is read as if the encoding or the word was decided: else a user mends
    one thing, and meets the other in the next run.
    """
    decided: dict[str, Any]
    if isinstance(error, GapWordError):
        decided = {"gap_classes": (*options.gap_classes, error.word)}
    elif (
        arguments["encoding"] is None
        and is_text(options.labeled)
        and has_other_encoding(options.labeled)
    ):
        decided = {"encoding": "latin-1"}
    else:
        return None
    arguments = {**arguments, **decided}
    try:
        table = read_table(options.labeled, **arguments)
        if ":" not in (options.model or ""):  # a pipeline may encode more
            encoders(table.X, is_scaled=False, why_texts=table.why_texts)
    except (TypeError, ValueError) as other:
        further = None
        if decided.keys() != {"gap_classes"}:
            further = find_next_stop(other, options, arguments)
        return other if further is None else join_stops(other, further)
    return None


def has_other_encoding(labeled: str) -> bool:
    """Return whether a file of a text table is whole, but not UTF-8."""
    paths = files_in(labeled, TEXT_FILES) or [labeled]
    with suppress(ValueError):  # a damaged file is already the error
        return not all(map(is_utf8, paths))
    return False


def make_plan(options: SelectOptions, inputs: SelectInputs) -> Plan:
    """Return the plan of the search, with the caveats of the labeled table."""
    table, report_by = inputs.table, options.report_by
    column: str | int | None = report_by
    if report_by is not None and table.columns is None and report_by.isdecimal():
        column = int(report_by)  # columns of an array have numbers
    with _name_lines(options.labeled, np.asarray(table.y), options.text):
        plan = plan_search(
            inputs.estimator,
            inputs.grid,
            inputs.X,
            inputs.y,
            inputs.pool,
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
        )
        # In Python this is a note: a search of few rows may be wanted for its choice.
        check_possible_bound(plan)
    caveats = collect_caveats(
        _caveats_with_ids(plan.caveats, table),
        make_caveats(Effect.WEAKENS, table.repeats),
        make_caveats(Effect.INFO, _notes_on_empty_columns(inputs.X)),
    )
    source = plan.source
    if source is not None:
        source = inputs.people_pool or source
        columns = source.columns or ()
        if inputs.label_column in columns:  # it would reveal the labels
            kept = [name for name in columns if name != inputs.label_column]
            source = source.with_columns(kept)
    return replace(plan, caveats=caveats, source=source)


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
    known, given = load_row_hashes(baseline), f"--baseline {baseline!r}"
    check_unseen(known, seen_rows(X).X, given)
    return opened.model


def _caveats_with_ids(caveats: Sequence[Caveat], table: Table) -> list[Caveat]:
    """Return caveats that take equal rows with different ids for several records."""
    if table.ids is None or table.y is None:
        return list(caveats)
    ids = table.ids[~pd.isna(table.y)]
    if ids.duplicated().any() or ids.isna().to_numpy().any():
        return list(caveats)
    differ = "their ids differ, so they are counted as records of their own"
    return [
        Caveat(Effect.INFO, caveat.text.partition(IF_COPIES)[0] + differ)
        if IF_COPIES in caveat.text
        else caveat
        for caveat in caveats
    ]


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
    """Raise where a model is named that predicts what the target was not taken for."""
    here, others = (REGRESSORS, MODELS) if is_regression else (MODELS, REGRESSORS)
    if model in here or model not in others:
        return
    kinds = ("classes", "numbers") if is_regression else ("numbers", "classes")
    why = "because it has fractions"
    if options.task is not None:
        why = f"by --task {options.task}"
    elif not is_regression:
        is_text = any(isinstance(label, str) for label in y)
        why = (
            "because it holds texts"
            if is_text
            else f"because it has at most {MOST_WHOLE} different whole numbers"
        )
    other = CLASSIFICATION if is_regression else REGRESSION
    raise ValueError(
        f"--model {model!r} predicts {kinds[0]}, but {options.target or 'y'!r} was "
        f"taken for {kinds[1]}, {why}; write --task {other}, or name one of "
        f"{', '.join(here)}."
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


def open_pools(
    unlabeled: Any, table: Table, options: SelectOptions
) -> tuple[Pool | None, Pool | None, list[tuple[str, str]], tuple[str, ...]]:
    """Return the pool for models, that for people who label, facts, and caveats.

    The one for people also has the columns that no model uses; it is None where the
    models' is as good. Without --pool the `unlabeled` rows of the table are the pool,
    if there are some.
    """
    location, schema, ids = options.pool, table.schema, table.ids
    text, n_queries = options.text.arguments, options.queries
    if location is None and unlabeled is None:
        return None, None, [], ()
    if location is None:
        shown = None
        if ids is not None:
            ids = ids.iloc[np.flatnonzero(pd.isna(table.y))]
            shown = open_pool(join_columns(unlabeled, ids))
        return open_pool(unlabeled), shown, [], ()
    if schema is None:
        return open_pool(location), None, [], ()
    known_ids = RecordIds.of(None if ids is None else ids[~pd.isna(table.y)])
    if "://" in location or not is_text(location):
        pool, stored, caveats, unknown = open_pool_like(location, schema)
        shown, names = (stored if n_queries else None), stored.columns or ()
        are_others = known_ids.lack(stored)
    else:
        names, shown = text_source(location, **text, like=schema).names, None
        if n_queries:
            rows, shown = read_all_columns(location, schema, text)
        else:  # other columns would take memory
            rows = read_table(location, like=schema, **text)
        unknown = find_unknown_values(rows.X, known_values(schema))
        pool, caveats = open_pool(rows.X), rows.caveats
        are_others = rows.ids is not None and not known_ids.may_have(rows.ids).any()
    check_spellings(unknown, pool.n_rows)
    known = {*schema.used_names, *schema.dropped}
    unused = describe_unused_columns(names, known)
    caveats = (*caveats, *describe_alike(unknown))
    pool = open_pool(pool, other_records=are_others)
    return pool, shown, [("not used", unused)] * bool(unused), caveats


def write_rows(options: SelectOptions, inputs: SelectInputs, outcome: Outcome) -> str:
    """Write the rows to label, as they stand in a text table; return advice."""
    out, target, schema = options.out, inputs.label_column, inputs.table.schema
    if out is None or outcome.pool_rows is None:
        return ""
    rows, source = outcome.query_rows(), None
    numbers = rows.index.to_numpy(dtype=np.int64)
    if options.pool is None:  # rows of the labeled table without a label are the pool
        numbers = np.flatnonzero(pd.isna(inputs.table.y))[numbers]
    place = options.labeled if options.pool is None else options.pool
    if schema is not None and "://" not in place and is_text(place):
        source = text_source(place, **options.text.arguments, like=schema)
    file, is_new = write_query_rows(
        out, rows, target=target, source=source, numbers=numbers.tolist()
    )
    what = "" if is_new else " (it existed already and is unchanged)"
    n_rows, queries = len(outcome.pool_rows), outcome.choice.queries
    if queries is not None and not queries.would_help:
        return f"{file} has these rows{what}"
    are_all = ""
    if queries is not None and n_rows < (n := queries.n_planned):
        are_all = f", all on which both models differ (--queries was {n:,})"
    return (
        f"Label the {n_rows:,} rows of {file}{what} in their last "
        f"column, {target!r}{are_all}, then run: dsel label {out} {file}"
    )


def take_labeled_rows(
    table: Table, options: SelectOptions
) -> tuple[Any, Any, Any, list[str]]:
    """Return rows with a label, their labels, the other rows, and notes about these.

    Rows with an empty target are the pool if there is no other one.
    """
    X, y, others, notes = table.X, np.asarray(table.y), None, list[str]()
    target, has_pool = options.target, options.pool is not None
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
        others = None if has_pool else take_rows(X, np.flatnonzero(missing))
        known = np.flatnonzero(~missing)
        X, y = take_rows(X, known), narrow_objects(y[known])
    if table.schema is not None and all(isinstance(label, str) for label in y):
        # The reader knows which labels were missing: texts such as "None" are classes.
        return X, pd.Series(y, dtype="category"), others, notes
    return X, y, others, notes


@contextmanager
def _name_lines(labeled: str, y: AnyArray, text: TextOptions) -> Iterator[None]:
    """Name rows in errors about labeled rows as they are in their table."""
    try:
        yield
    except RowError as error:
        if "`pool`" in str(error):
            raise
        in_table = error.renumber(np.flatnonzero(~pd.isna(y)).tolist())
        if not is_text(labeled):
            raise in_table from error
        source = text_source(labeled, **text.arguments)
        raise in_table.in_lines(source.line_of) from error


def _is_report(text: str) -> bool:
    """Return whether a text of ``--loss`` asks for a report."""
    return text == REPORT or text.startswith((f"{REPORT}:", f"{REPORT}="))


def parse_report(
    texts: Sequence[str], classes: Sequence[object], *, is_regression: bool
) -> Any:
    """Return the ``report`` that ``--loss`` requests: True, classes, or shares."""
    reports = [text for text in texts if _is_report(text)]
    if len(reports) > 1:
        raise click.UsageError(
            f"--loss {' and '.join(reports)} are two reports; name all in one."
        )
    if not reports or reports == [REPORT]:
        return bool(reports)
    listed = reports[0].removeprefix(REPORT)
    if listed.startswith("=") != is_regression:
        wanted = "shares: report=0.5,0.9" if is_regression else "classes: report:yes,no"
        raise ValueError(f"--loss {reports[0]} must name {wanted}.")
    if is_regression:
        return numbers_in(listed[1:], float, "--loss report=")
    return [class_of_text(text, classes, "--loss") for text in names_in(listed[1:])]


def parse_loss(texts: Sequence[str], classes: Sequence[object]) -> Any:
    """Return the loss that ``--loss`` requests, without the report."""
    named = [text for text in texts if not _is_report(text)] or ["error"]
    if len(named) > 1:
        raise click.UsageError(
            f"--loss must be {LOSS_FORMS}, optionally with another --loss report, got "
            f"{' and '.join(map(repr, named))}."
        )
    if named == ["error"]:
        return "error"
    try:
        return loss_of_name(named[0], classes, name="--loss")
    except ValueError as error:
        needs_table = isinstance(error, UnfitLossError)
        kind = ValueError if needs_table else click.UsageError
        raise kind(reword(str(error), NAMES)) from error
