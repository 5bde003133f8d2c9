"""``dsel compare``: compare two models on a pool, and draw rows to label."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
import pandas as pd

from dsel.cli.models import import_from_here
from dsel.cli.options import ClusterOptions, OutputOptions, TextOptions
from dsel.cli.printing import say
from dsel.cli.running import (
    format_names_columns,
    open_client,
    print_facts,
    print_json,
    print_notes,
)
from dsel.data.frames import Frame
from dsel.data.like import convert_pool
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.schema import TableSchema
from dsel.data.table_request import Table
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.errors import naming
from dsel.results.query_files import check_new_place, check_target, write_comparison
from dsel.search.certifying.compare_models import compare_fitted_models
from dsel.search.outcomes.deployed_model import Deployed, open_deployed_model


def run(
    old: str,
    new: str,
    pool: str,
    queries: int,
    out: str,
    target: str,
    seen: str | None,
    delta: float,
    seed: int,
    trust: tuple[str, ...],
    text: TextOptions,
    cluster: ClusterOptions,
    output: OutputOptions,
) -> None:
    """Compare the errors of two models, OLD and NEW, by where they differ on a pool."""
    check_new_place(out, "--out")
    import_from_here(trust)
    deployed = [open_deployed_model(place, trusted=trust) for place in (old, new)]
    rows = open_rows(pool, deployed, text.arguments)
    check_target(target, rows.columns or ())
    known = None if seen is None else seen_table(seen, deployed, text.arguments)
    naming_models = naming({"`old`": "OLD", "`new`": "NEW"})
    with open_client(cluster) as client, naming_models:
        comparison = compare_fitted_models(
            deployed[0].model,
            deployed[1].model,
            rows,
            places=(old, new),
            n_queries=queries,
            X_seen=known,
            delta=delta,
            random_state=seed,
            client=client,
        )
    has_texts = "://" not in pool and is_text(pool)
    source = None
    if has_texts:
        schema = joint_schema(deployed, pool)
        source = text_source(pool, **text.arguments, like=schema)
    file = write_comparison(out, comparison, target=target, source=source)
    if output.as_json:
        print_json("compare", comparison=comparison, results=out, query_rows=file)
        return
    print_facts(comparison.facts()[: 1 if output.quiet else None])
    if file is not None and not output.quiet:
        way = (
            f"Label the {len(comparison.rows):,} rows of {file} in their last column, "
            f"{target!r}, then run: dsel label {out} {file}"
        )
        click.echo()
        say(way)
    if queries and file is None:
        print_notes(["the models differ on no row that may be labeled"])


def open_rows(location: str, deployed: list[Deployed], text: dict[str, Any]) -> Any:
    """Open the pool with all of its columns, converted as the models' training rows."""
    if "://" not in location and is_text(location):
        table, pool = read_all_columns(location, joint_schema(deployed, location), text)
        print_notes(table.caveats)
        return pool
    pool = open_pool(location)
    schemas = [each.input_format.table_schema for each in deployed]
    if pool.frames is None or any(schema is None for schema in schemas):
        return pool
    columns, schema = pool.columns or (), joint_schema(deployed, location)
    schema.check_columns(columns, repr(location), ())
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
    schemas = [each.input_format.table_schema for each in deployed]
    for name, schema in zip(("OLD", "NEW"), schemas, strict=True):
        if schema is None:
            raise ValueError(
                f"{location!r} is a text file, but {name} has no types of columns: its "
                f"labeled rows had no names; give the pool as Parquet or npy."
            )
    old, new = (schema for schema in schemas if schema is not None)
    columns = {each.name: each for each in new.columns}
    for each in old.columns:
        other = columns.setdefault(each.name, each)
        orders = {each.form.day_first, other.form.day_first} - {None}
        if each.meaning != other.meaning or len(orders) > 1:
            raise ValueError(
                f"OLD learned the column {each.name!r} as {each.noun}, NEW as "
                f"{other.noun}; give the pool as Parquet, with types of its own."
            )
        # Each order accepts dates of ISO, and digits in groups plain numbers.
        has_more = each.form.is_amount and not other.form.is_amount
        form = each.form if has_more else other.form
        form = replace(form, day_first=next(iter(orders), None))
        columns[each.name] = replace(other, form=form)
    return replace(
        new,
        columns=tuple(columns.values()),
        ids=(),
        separator=new.separator or old.separator,
        encoding=new.encoding or old.encoding,
    )


def seen_table(location: str, deployed: list[Deployed], text: dict[str, Any]) -> Any:
    """Return rows on which a model was trained, with the columns that models use."""
    is_known = all(each.input_format.table_schema is not None for each in deployed)
    if format_names_columns(location) and (is_known or is_text(location)):
        schema = joint_schema(deployed, location)
        return read_table(location, like=schema, **text).X
    table = read_table(location, **text)
    if table.columns is None:
        return table.X
    frame = table.X
    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame(frame, columns=list(table.columns))
    used = {n for each in deployed for n in each.input_format.columns or ()}
    return frame[[name for name in frame.columns if name in used or not used]]


def join_columns(X: Any, ids: pd.DataFrame | None) -> pd.DataFrame:
    """Return rows with further columns, row by row."""
    frame = X.given if isinstance(X, Frame) else X
    if ids is None or not len(ids.columns):
        return frame
    return pd.concat([frame, ids.set_axis(frame.index, axis=0)], axis=1)
