"""Arguments of a shell command, stored next to its results: tables and the model."""

from dataclasses import dataclass, replace
from typing import Final

from dsel.results import records
from dsel.results.place import Place, check_has_results, seal, stamp
from dsel.typing import PathLike

INPUTS: Final = "inputs"
"""Folder of these records in a results folder; the last one counts."""


@dataclass(frozen=True)
class RunInputs:
    """The tables and the model of `dsel select`.

    Examples
    --------
    >>> inputs = RunInputs("/data/labeled.csv", "label", model="svm")
    >>> inputs.to_json()  # doctest: +ELLIPSIS
    '{"version": 3, "kind": "RunInputs", "labeled": "/data/labeled.csv", ...}'
    """

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

    def to_json(self) -> str:
        """Return all fields."""
        return records.to_json(self)


def save_inputs(place: PathLike, inputs: RunInputs) -> None:
    """Store the record next to results, unless the last one differs in its date only.

    Raises FileNotFoundError if there are no results of dsel.
    """
    where = Place(place)
    check_has_results(where)
    before = load_inputs(place)
    if before is None or replace(before, date=inputs.date) != inputs:
        where.write({f"{INPUTS}/{stamp()}.json": seal(inputs.to_json().encode())})


def load_inputs(place: PathLike) -> RunInputs | None:
    """Return the record that was stored last; None if there is none."""
    where = Place(place, name="place")
    check_has_results(where)
    body = where.read_last(INPUTS)
    return None if body is None else records.from_json(RunInputs, body.decode())
