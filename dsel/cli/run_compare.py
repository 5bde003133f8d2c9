"""``dsel compare``: compare two models on a pool, and draw rows to label."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click
import numpy as np
import pandas as pd

from dsel.cli.named_models import import_from_here
from dsel.cli.new_run import combine_missing_columns
from dsel.cli.options import ClusterOptions, OutputOptions, TextOptions
from dsel.cli.running import (
    columns_in,
    format_names_columns,
    next_rows,
    open_client,
    print_json,
    print_notes,
    print_rows,
)
from dsel.data.columns import MissingColumnsError, check_columns
from dsel.data.frames import Frame
from dsel.data.like import convert_pool
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.record_ids import RecordIds, leave_out_records
from dsel.data.schema import TableSchema
from dsel.data.table_request import Table
from dsel.data.tables import read_table
from dsel.data.text_columns.gaps import GAP_WORDS
from dsel.data.text_tables import is_text, text_source
from dsel.errors import rename_in_errors
from dsel.families.estimator_kinds import is_regressor
from dsel.results.comparison import ModelComparison
from dsel.results.query_files import check_new_place, check_target, write_comparison
from dsel.results.row_hashes import RowHashes, load_row_hashes
from dsel.results.run_tables import load_run_tables
from dsel.search.certifying.compare_models import compare_fitted_models
from dsel.search.outcomes.deployed_model import Deployed, open_deployed_model
from dsel.search.outcomes.promises import read_labeled_rows


def run(
    old: str,
    new: str,
    pool: str | None,
    queries: int,
    out: str,
    target: str | None,
    seen: str | None,
    delta: float,
    seed: int,
    trust: tuple[str, ...],
    text: TextOptions,
    gaps: tuple[str, ...],
    cluster: ClusterOptions,
    output: OutputOptions,
) -> None:
    """Compare the errors of two models, OLD and NEW, by where they differ on a pool."""
    check_new_place(out, "--out")
    import_from_here(trust)
    places = old, new
    deployed = [model.with_gap_words(gaps) for model in open_models(places, trust)]
    pool = pool_of_both(places) if pool is None else pool
    check_columns_of_both(pool, deployed, places, text.arguments)
    rows = open_rows(pool, deployed, text.arguments)
    target = target or common_target(deployed)
    check_target(target, rows.columns or ())
    known = None if seen is None else read_seen_rows(seen, deployed, text.arguments)
    if known is None:
        ids = [
            ids_of_run(place, model, text.arguments)
            for place, model in zip(places, deployed, strict=True)
        ]
        rows, notes = leave_out_records(rows, rows, ids)
        print_notes(notes)
    naming_models = rename_in_errors({"`old`": "OLD", "`new`": "NEW"})
    with open_client(cluster) as client, naming_models:
        comparison = compare_fitted_models(
            deployed[0].model,
            deployed[1].model,
            rows,
            places=places,
            n_queries=queries,
            X_seen=known,
            delta=delta,
            random_state=seed,
            client=client,
        )
    comparison = name_sources(comparison, places, pool, target)
    if os.path.realpath(old) == os.path.realpath(new):
        print_notes(["OLD and NEW are the same folder, so no row can differ"])
    source = None
    if "://" not in pool and is_text(pool):
        schema = joint_schema(deployed, pool)
        source = text_source(pool, **text.arguments, like=schema)
    file = write_comparison(out, comparison, target=target, source=source)
    if output.as_json:
        print_json("compare", comparison=comparison, results=out, query_rows=file)
        return
    steps = []
    if file is not None:
        steps.append(
            f"label the {len(comparison.rows):,} rows of {file} in their last column, "
            f"{target!r}, then run: dsel label {shlex.quote(out)}"
        )
    elif not queries and comparison.n_differ and not output.quiet:
        steps.append(
            "the same with --queries 60 and another --out draws rows, whose labels say "
            "which model is better"
        )
    shown_rows = comparison.shown_rows()
    if output.quiet:  # this is the only line that names the file to label
        print_rows([shown_rows[0], *next_rows(*steps)])
    else:
        print_rows([*shown_rows, *next_rows(*steps)])
    if queries and file is None:
        print_notes(["the models differ on no row that may be labeled"])


def open_models(places: tuple[str, str], trust: tuple[str, ...]) -> list[Deployed]:
    """Open both models; raise UsageError unless they predict classes of one target."""
    deployed = [open_deployed_model(place, trusted=trust) for place in places]
    for name, place, model in zip(("OLD", "NEW"), places, deployed, strict=True):
        if is_regressor(model.model):
            raise click.UsageError(
                f"{name}, {place!r}, predicts numbers, and regressors are not "
                f"compared; name two models that predict classes. To choose among "
                f"regressors by their errors, name all of them in one `dsel select`, "
                f"as in --model forest,ridge."
            )
    refuse_other_targets(deployed, places)
    return deployed


def common_target(deployed: Sequence[Deployed]) -> str:
    """Return the name of the target that both models were trained for, or "label"."""
    learned = [model.input_format.table_schema for model in deployed]
    names = {None if schema is None else schema.target for schema in learned}
    return (names.pop() if len(names) == 1 else None) or "label"


def name_sources(
    comparison: ModelComparison, places: tuple[str, str], pool: str, target: str
) -> ModelComparison:
    """Return a comparison with the names of files, the target and the date."""
    models = dict[str, str]()
    for (name, kind), place in zip(comparison.sources.items(), places, strict=False):
        file = os.path.basename(place.rstrip("/"))
        models |= {name: file, f"class of the {name}": kind}
    pool_and_rows = {
        "pool": os.path.basename(pool.rstrip("/")),
        "rows in the pool": f"{comparison.n_unlabeled:,}",
        "target": target,
    }
    # The date and the version are printed last.
    return replace(
        comparison, sources=models | pool_and_rows | comparison.sources | models
    )


def refuse_other_targets(deployed: Sequence[Deployed], places: Sequence[str]) -> None:
    """Raise UsageError if two models have no class in common."""
    schemas = [model.input_format.table_schema for model in deployed]
    targets = [None if schema is None else schema.target for schema in schemas]
    classes = [{*map(str, model.model.classes_)} for model in deployed]
    if None in targets or targets[0] == targets[1] or classes[0] & classes[1]:
        return
    raise click.UsageError(
        f"OLD, {places[0]!r}, predicts {targets[0]!r}, and NEW, {places[1]!r}, "
        f"{targets[1]!r}, with other classes: where they differ says nothing about "
        f"which is better. Name two models of one target; `dsel select` with its "
        f"--target makes one."
    )


def check_columns_of_both(
    location: str,
    deployed: Sequence[Deployed],
    places: Sequence[str],
    text: Mapping[str, Any],
) -> None:
    """Raise UndecidedError that names each model whose columns the pool lacks."""
    errors = {}
    for name, place, model in zip(("OLD", "NEW"), places, deployed, strict=True):
        schema = model.input_format.table_schema
        if schema is None or place in errors:
            continue
        columns = columns_in(location, text, schema)
        if columns is not None:
            model_text = f" that {name}, {place!r}, was trained on"
            try:
                check_columns(columns, schema.names, repr(location), model_text)
            except MissingColumnsError as error:
                errors[place] = error
    if errors:
        raise combine_missing_columns(errors)


def pool_of_both(places: Sequence[str]) -> str:
    """Return the pool that the runs of both models had; raise if they had none."""
    pools = set()
    for place in places:
        tables = None
        with suppress(FileNotFoundError):  # a kept model is no run
            tables = load_run_tables(place)
        pools.add(None if tables is None else tables.pool)
    if len(pools) > 1 or (pool := pools.pop()) is None:
        raise click.UsageError(
            "OLD and NEW do not come from runs with one pool; name the unlabeled rows "
            "by --pool."
        )
    return pool


def ids_of_run(place: str, deployed: Deployed, text: Mapping[str, Any]) -> RecordIds:
    """Return the ids of the labeled rows of a model; none if they are unknown.

    The labeled table must still have the rows that the model was trained on.
    """
    tables = None
    schema = deployed.input_format.table_schema
    with suppress(FileNotFoundError):  # a kept model is no run
        tables = load_run_tables(place)
    hashes = load_row_hashes(place)
    if not (tables and hashes and schema and schema.ids):
        return RecordIds.of(None)
    if not os.path.exists(tables.labeled):
        return RecordIds.of(None)
    labeled, _, ids = read_labeled_rows(
        tables.labeled,
        schema,
        tables.target,
        text["separator"],
        text["encoding"],
        has_ids=True,
    )
    hashes_now = RowHashes.of(labeled).by_type
    is_same = all(
        np.array_equal(values, hashes_now.get(name, values))
        for name, values in hashes.by_type.items()
    )
    return RecordIds.of(None) if ids is None or not is_same else ids


def open_rows(location: str, deployed: list[Deployed], text: dict[str, Any]) -> Any:
    """Open the pool with all of its columns, converted as the models' training rows."""
    if "://" not in location and is_text(location):
        table, pool = read_all_columns(location, joint_schema(deployed, location), text)
        print_notes(table.caveats)
        return pool
    pool = open_pool(location)
    schemas = [deployed_model.input_format.table_schema for deployed_model in deployed]
    if pool.frames is None or any(schema is None for schema in schemas):
        return pool
    columns = pool.columns or ()
    schema = joint_schema(deployed, location)
    like = replace(schema, ids=other_columns(columns, schema))
    pool = pool.with_columns((*schema.names, *like.ids))
    return convert_pool(pool, like, location, where=repr(location))


def read_all_columns(
    location: str, schema: TableSchema, text: Mapping[str, Any]
) -> tuple[Table, Pool]:
    """Read a text file by a schema; return it, and a pool with its other columns, too.

    These help people to label rows.
    """
    ids = other_columns(text_source(location, **text, like=schema).names, schema)
    table = read_table(location, like=replace(schema, ids=ids), **text)
    return table, open_pool(join_columns(table.X, table.ids))


def other_columns(columns: Sequence[str], schema: TableSchema) -> tuple[str, ...]:
    """Return the columns that no model uses, without the target, which has labels."""
    return tuple(n for n in columns if n not in (*schema.names, schema.target))


def joint_schema(deployed: list[Deployed], location: str) -> TableSchema:
    """Return the columns of both models; raise if they cannot be read from one file."""
    schemas = [column_schema.input_format.table_schema for column_schema in deployed]
    for name, schema in zip(("OLD", "NEW"), schemas, strict=True):
        if schema is None:
            raise ValueError(
                f"{location!r} is a text file, but {name} has no types of columns: its "
                f"labeled rows had no names; give the pool as Parquet or npy."
            )
    old, new = (schema for schema in schemas if schema is not None)
    for with_words, without in ((old, new), (new, old)):
        words = {*with_words.extra_gap_words} - {*without.extra_gap_words}
        for column in without.columns:
            if shared := words & {*(column.categories or ())}:
                raise ValueError(
                    f"{shared.pop()!r} in the column {column.name!r} is a value for "
                    f"one of OLD and NEW, and a gap (--gap) for the other one; give "
                    f"the pool as Parquet, with gaps of its own."
                )
    columns = {column_schema.name: column_schema for column_schema in new.columns}
    for column_schema in old.columns:
        other = columns.setdefault(column_schema.name, column_schema)
        orders = {column_schema.form.day_first, other.form.day_first} - {None}
        if column_schema.meaning != other.meaning or len(orders) > 1:
            raise ValueError(
                f"OLD learned the column {column_schema.name!r} as "
                f"{column_schema.noun}, NEW as "
                f"{other.noun}; give the pool as Parquet, with types of its own."
            )
        # Each order of day and month accepts ISO dates, and a table with digits in
        # groups accepts plain numbers.
        has_more = column_schema.form.is_amount and not other.form.is_amount
        form = column_schema.form if has_more else other.form
        form = replace(form, day_first=next(iter(orders), None))
        columns[column_schema.name] = replace(other, form=form)
    return replace(
        new,
        columns=tuple(columns.values()),
        ids=(),
        gap_words=(
            *GAP_WORDS,
            *dict.fromkeys((*old.extra_gap_words, *new.extra_gap_words)),
        ),
        separator=new.separator or old.separator,
        encoding=new.encoding or old.encoding,
    )


def read_seen_rows(
    location: str, deployed: list[Deployed], text: dict[str, Any]
) -> Any:
    """Return rows on which a model was trained, with the columns that models use."""
    is_known = all(model.input_format.table_schema is not None for model in deployed)
    if format_names_columns(location) and (is_known or is_text(location)):
        schema = joint_schema(deployed, location)
        return read_table(location, like=schema, **text).X
    table = read_table(location, **text)
    if table.columns is None:
        return table.X
    frame = table.X
    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame(frame, columns=list(table.columns))
    used = {n for model in deployed for n in model.input_format.columns or ()}
    return frame[[name for name in frame.columns if name in used or not used]]


def join_columns(X: Any, ids: pd.DataFrame | None) -> pd.DataFrame:
    """Return rows with further columns, row by row."""
    frame = X.given if isinstance(X, Frame) else X
    if ids is None or not len(ids.columns):
        return frame
    return pd.concat([frame, ids.set_axis(frame.index, axis=0)], axis=1)
