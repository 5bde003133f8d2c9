"""The tables of a shell command and their schema, stored next to its results."""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from dsel.results import records
from dsel.results.place import Place, check_has_results, seal, stamp
from dsel.typing import Options, PathLike

INPUTS: Final = "inputs"
"""Folder of these records in a results folder; the last one counts."""
SCHEMA: Final = "schema"
"""Folder of the schema of the labeled table, of which the last one counts, too."""


@dataclass(frozen=True)
class RunTables:
    """The tables and the model of `dsel select`.

    Examples
    --------
    >>> tables = RunTables("/data/labeled.csv", "label", model="svm")
    >>> tables.to_json()  # doctest: +ELLIPSIS
    '{"version": 3, "kind": "RunInputs", "labeled": "/data/labeled.csv", ...}'
    """

    record_kind: ClassVar[str] = "RunInputs"
    labeled: str
    """Path of the labeled table."""
    target: str | None = None
    """Its column of labels."""
    pool: str | None = None
    """Path or URL of the pool; None without one, or if the labeled table has it."""
    model: str = ""
    """Argument `--model`."""
    date: str = ""
    """Day on which the run ended, such as 2026-11-27."""
    command_of_report: str = ""
    """Command of the same run with a report of the classes; "" if the run has one."""
    groups: str | None = None
    """Column of the labeled table with the key of each row's group; None without."""
    command: tuple[str, ...] = ()
    """Words of the command, with whole paths; none before dsel 0.3."""

    def to_json(self) -> str:
        """Return all fields."""
        return records.to_json(self)


def save_run_tables(place: PathLike, tables: RunTables) -> None:
    """Store the record next to results, unless the last one differs in its date only.

    Raises FileNotFoundError if there are no results of dsel.
    """
    before = load_run_tables(place)
    if before is None or replace(before, date=tables.date) != tables:
        _save_last(place, INPUTS, tables.to_json())


def load_run_tables(
    place: PathLike, *, storage_options: Options | None = None
) -> RunTables | None:
    """Return the record that was stored last; None if there is none."""
    text = _load_last(place, INPUTS, storage_options)
    return None if text is None else records.from_json(RunTables, text)


def save_schema(place: PathLike, schema: str) -> None:
    """Store the schema of the labeled table next to results, as JSON text.

    Raises FileNotFoundError if there are no results of dsel.
    """
    if load_schema(place) != schema:
        _save_last(place, SCHEMA, schema)


def load_schema(
    place: PathLike, *, storage_options: Options | None = None
) -> str | None:
    """Return the schema that `save_schema` stored; None if there is none."""
    return _load_last(place, SCHEMA, storage_options)


def _save_last(place: PathLike, folder: str, text: str) -> None:
    Place(place).write({f"{folder}/{stamp()}.json": seal(text.encode())})


def _load_last(
    place: PathLike, folder: str, storage_options: Options | None = None
) -> str | None:
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    body = where.read_last(folder)
    return None if body is None else body.decode()
