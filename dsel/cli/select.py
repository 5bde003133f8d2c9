"""``dsel select``: choose a model from files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Final

import click
import numpy as np
import pandas as pd

from dsel.arrays import Estimator, narrow_objects
from dsel.checks import describe_unused, listing
from dsel.cli.compare import join_columns, read_all_columns
from dsel.cli.models import (
    MODELS,
    REGRESSORS,
    build,
    default_model,
    import_from_here,
    show_failure,
)
from dsel.cli.options import ClusterOptions, RunOutput, TextOptions
from dsel.cli.running import format_names_columns, names_in, notes, numbers_in, run_plan
from dsel.data.frames import take_rows
from dsel.data.labeled import MOST_WHOLE, check_labels
from dsel.data.like import open_pool_like
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.schema import TableSchema
from dsel.data.table_request import Table
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.data.unknown_values import (
    describe_alike,
    find_unknown_values,
    known_values,
)
from dsel.errors import AllFitsFailedError, RowError
from dsel.families.kinds import is_classifier, is_regressor
from dsel.losses.texts import class_of_text, loss_of_name
from dsel.option_values import CLASSIFICATION, LARGEST_CLASS, LOSS_FORMS, REGRESSION
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.inputs import RunInputs
from dsel.results.query_files import write_query_rows
from dsel.search.design.assumptions import IF_COPIES
from dsel.search.outcomes.deployed_model import open_deployed_model
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan_search import plan_search
from dsel.typing import AnyArray

REPORT: Final = "report"


def run(
    labeled: str,
    target: str | None,
    pool: str | None,
    drop: str | None,
    ids: str | None,
    groups: str | None,
    text: TextOptions,
    day_first: bool | None,
    number: tuple[str, ...],
    unlabeled_words: tuple[str, ...],
    gap_classes: tuple[str, ...],
    task: str | None,
    model: str | None,
    grid: tuple[str, ...],
    loss: tuple[str, ...],
    report_by: str | None,
    queries: int,
    baseline: str | None,
    trust: tuple[str, ...],
    seed: int,
    cluster: ClusterOptions,
    output: RunOutput,
    out: str | None,
    **of_plan: Any,
) -> None:
    """Choose a model from labeled rows and bound its error."""
    if target is None and format_names_columns(labeled):
        raise click.UsageError(
            f"any column of {labeled!r} may hold the labels; name it by --target."
        )
    if queries and not out:
        raise click.UsageError(
            f"--queries {queries} writes rows to label; name a folder by --out."
        )
    dropped, kept = names_in(drop), names_in(ids)
    if report_by is not None and report_by in (*kept, target, groups):
        option = "--id" if report_by in kept else "--groups"
        what = "the target" if report_by == target else f"no feature, by {option}"
        raise click.UsageError(
            f"--report-by {report_by!r} is {what}; name a column that new rows have, "
            f"too."
        )
    table = read_table(
        labeled,
        target=target,
        drop=[name for name in dropped if name != report_by],
        ids=kept,
        groups=groups,
        **text.arguments,
        task=task,
        day_first=day_first,
        number=number,
        unlabeled=unlabeled_words,
        gap_classes=gap_classes,
    )
    if table.y is None:
        raise click.UsageError(
            f"LABELED {labeled!r} holds no labels; name their array by --target."
        )
    X, y, unlabeled, words = take_labeled_rows(
        table, labeled, target, has_pool=pool is not None
    )
    unused = report_by if report_by in dropped else None
    by_default = "" if model else " by default; --model names another"
    model = model or default_model(grid, is_regression=table.is_regression)
    check_named_model(model, target, y, task, is_regression=table.is_regression)
    classes: list[Any] = []  # numbers have none
    if loss and not table.is_regression:
        classes = np.unique(check_labels(y)).tolist()
    ranked = parse_loss(loss, classes)
    estimator, values, used = build(
        model,
        grid,
        X,
        table.why_texts,
        unused,
        is_regression=table.is_regression,
        # The error alone counts each row alike, whichever class it has.
        weighs_classes=ranked != "error",
    )
    check_kind_of_model(
        values[0] if estimator is None else estimator, model, target, table
    )
    rows, shown, facts, caveats = open_pools(
        pool, unlabeled, table, text.arguments, queries
    )
    with _name_lines(labeled, table.y, text):
        plan = plan_search(
            estimator,
            values,
            X,
            y,
            rows,
            report=parse_report(loss, classes, is_regression=table.is_regression),
            loss=ranked,
            report_by=_column(report_by, table.columns),
            random_state=seed,
            n_queries=queries,
            groups=table.labeled_groups,
            baseline=open_baseline(baseline, table.schema, trust),
            **of_plan,
        )
    repeats = make_caveats(Effect.WEAKENS, table.repeats)
    found = _caveats_with_ids(plan.caveats, table)
    empty = make_caveats(Effect.INFO, _notes_on_empty_columns(X))
    plan = replace(plan, caveats=collect_caveats(found, repeats, empty))
    column = (None if table.schema is None else table.schema.target) or "label"
    if plan.source is not None:
        source = shown or plan.source
        if column in (source.columns or ()):  # it would reveal the labels
            names = [name for name in source.columns or () if name != column]
            source = source.with_columns(names)
        plan = replace(plan, source=source)
    # Notes come after all checks, so that a refusal is a single line, and before a run
    # that may take hours. What the plan found, too, is printed with the choice.
    known = {caveat.text for caveat in plan.caveats}
    lines = dict.fromkeys((*table.caveats, *words, *caveats))
    notes([*(line for line in lines if line not in known), *plan.few_rows])
    try:
        run_plan(
            plan,
            facts=[("model", model + by_default), *used, *table.notes, *facts],
            schema=table.schema,
            inputs=RunInputs(
                os.path.abspath(labeled),
                target,
                pool if pool is None or "://" in pool else os.path.abspath(pool),
                model,
                date.today().isoformat(),
                text.sep,
                text.encoding,
            ),
            after=partial(write_rows, out, column, queries),
            cluster=cluster,
            output=output,
            out=out,
        )
    except AllFitsFailedError:
        if ":" in model:
            show_failure(model, estimator, values, X, y)
        raise


def open_baseline(
    baseline: str | None, schema: TableSchema | None, trust: tuple[str, ...]
) -> Any:
    """Return the baseline for `plan_search`; raise if it has other columns."""
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
            raise click.UsageError(
                f"--baseline learned the column {column.name!r} as {column.noun}, and "
                f"LABELED holds it as {here.noun}; give the table as Parquet, with "
                f"types of its own, or with the same --number."
            )
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
        Caveat(Effect.INFO, caveat.text.removesuffix(IF_COPIES) + differ)
        if caveat.text.endswith(IF_COPIES)
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
    model: str,
    target: str | None,
    y: Sequence[object] | AnyArray,
    task: str | None,
    *,
    is_regression: bool,
) -> None:
    """Raise where a model is named that predicts what the target was not taken for."""
    here, others = (REGRESSORS, MODELS) if is_regression else (MODELS, REGRESSORS)
    if model in here or model not in others:
        return
    kinds = ("classes", "numbers") if is_regression else ("numbers", "classes")
    why = "because it has fractions"
    if task is not None:
        why = f"by --task {task}"
    elif not is_regression:
        is_text = any(isinstance(label, str) for label in y)
        why = (
            "because it holds texts"
            if is_text
            else f"because it has at most {MOST_WHOLE} different whole numbers"
        )
    other = CLASSIFICATION if is_regression else REGRESSION
    raise click.BadParameter(
        f"{model!r} predicts {kinds[0]}, but {target or 'y'!r} was taken for "
        f"{kinds[1]}, {why}; write --task {other}, or name one of {', '.join(here)}.",
        param_hint="--model",
    )


def check_kind_of_model(
    estimator: Estimator, model: str, target: str | None, table: Table
) -> None:
    """Raise if a user's model predicts classes of a numeric target, or conversely."""
    fits_numbers = is_regressor(estimator)
    if fits_numbers == table.is_regression or not (
        fits_numbers or is_classifier(estimator)
    ):
        return  # the plan refuses an estimator that is neither
    kinds = ("classes", "a regressor") if fits_numbers else ("numbers", "a classifier")
    raise click.UsageError(
        f"{target or 'y'!r} holds {kinds[0]}, and --model {model} is {kinds[1]}; set "
        f"--task to what it holds, or name another model."
    )


def _column(report_by: str | None, columns: Sequence[str] | None) -> str | int | None:
    """Return a column for `plan_search`: its name, or its number in an array."""
    if report_by is None or columns is not None or not report_by.isdecimal():
        return report_by
    return int(report_by)


def open_pools(
    location: str | None,
    unlabeled: Any,
    table: Table,
    text: Mapping[str, Any],
    n_queries: int,
) -> tuple[Pool | None, Pool | None, list[tuple[str, str]], tuple[str, ...]]:
    """Return the pool for models, that for people who label, facts, and caveats.

    The one for people also has the columns that no model uses; it is None where the
    models' is as good. Without a `location` the `unlabeled` rows of the table are the
    pool, if there are some.
    """
    schema, ids = table.schema, table.ids
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
    if "://" in location or not is_text(location):
        pool, stored, caveats = open_pool_like(location, schema)
        shown, names = (stored if n_queries else None), stored.columns or ()
    else:
        names, shown = text_source(location, **text).names, None
        if n_queries:
            rows, shown = read_all_columns(location, schema, text)
        else:  # other columns would take memory
            rows = read_table(location, like=schema, **text)
        unknown = find_unknown_values(rows.X, known_values(schema))
        pool, caveats = open_pool(rows.X), (*rows.caveats, *describe_alike(unknown))
    known = {*schema.used_names, *schema.dropped}
    unused = describe_unused(names, known)
    return pool, shown, [("not used", unused)] * bool(unused), caveats


def write_rows(out: str | None, target: str, n_queries: int, outcome: Outcome) -> str:
    """Write the rows to label; return a line of advice."""
    if out is None or outcome.pool_rows is None:
        return ""
    file, is_new = write_query_rows(out, outcome.query_rows(), target=target)
    what = "" if is_new else " (it existed already and is unchanged)"
    n_rows = len(outcome.pool_rows)
    are_all = ""
    if n_rows < n_queries:
        are_all = f", all on which both models differ (--queries was {n_queries:,})"
    return (
        f"Label the {n_rows:,} rows of {file}{what} in their last "
        f"column, {target!r}{are_all}, then run: dsel label {out} {file}"
    )


def take_labeled_rows(
    table: Table, labeled: str, target: str | None, *, has_pool: bool
) -> tuple[Any, Any, Any, list[str]]:
    """Return rows with a label, their labels, the other rows, and notes about these.

    Rows with an empty target are the pool if there is no other one.
    """
    X, y, others, remarks = table.X, np.asarray(table.y), None, list[str]()
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))  # so that names are compared
    missing = pd.isna(y) if y.ndim == 1 else np.zeros(len(y), dtype=np.bool_)
    if missing.any() and missing.all():
        raise ValueError(
            f"{labeled!r} must have rows with a label, but every cell of {target!r} "
            f"is empty; name the column of the labels by --target."
        )
    if n_missing := int(missing.sum()):
        use = "are left out, since --pool names others" if has_pool else "are the pool"
        remarks.append(
            f"{n_missing:,} of {len(y):,} rows have no label in {target or 'y'!r}: "
            f"they {use}"
        )
        others = None if has_pool else take_rows(X, np.flatnonzero(missing))
        known = np.flatnonzero(~missing)
        X, y = take_rows(X, known), narrow_objects(y[known])
    if table.schema is not None and all(isinstance(label, str) for label in y):
        # The reader knows which labels were missing: texts such as "None" are classes.
        return X, pd.Series(y, dtype="category"), others, remarks
    return X, y, others, remarks


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
        raise click.UsageError(f"--loss {reports[0]} must name {wanted}.")
    if is_regression:
        return numbers_in(listed[1:], float, "--loss report=")
    try:
        named = names_in(listed[1:])
        return [class_of_text(text, classes, "--loss") for text in named]
    except ValueError as error:
        raise click.UsageError(str(error)) from error


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
        raise click.UsageError(str(error)) from error
