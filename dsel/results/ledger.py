"""What a certificate rests on: assumptions, and what delta was spent on.

Both stand in the cube as attributes in JSON. Whoever loses attributes of a cube loses
its certificates, never the numbers.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd
import xarray as xr

from dsel import names
from dsel.checks import check_choice

CHECKED: Final = "checked"
DECLARED: Final = "declared"
VIOLATED: Final = "violated"

STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "labeled rows and pool rows are independent draws from one population, "
    "and no row is in both",
    "A2": "which fold a row is in was decided without looking at the row",
    "A3": "a fold's model, preprocessing included, saw nothing of the rows it is "
    "tested on",
    "A4": "the models do not depend on the pool rows that are counted",
    "A5": "candidates, delta, its shares and the seeds were fixed before looking at "
    "the data",
    "A6": "the random draws are independent of the data",
}
"""What each assumption of the ledger says."""


@dataclass(frozen=True)
class Assumption:
    """One assumption and how far it can be trusted.

    Examples
    --------
    >>> Assumption("A2", "violated", "the folds are stratified").is_violated
    True
    """

    name: str
    """``A1`` to ``A6``."""
    state: str = DECLARED
    """``checked`` by dsel, ``declared`` by the user, or ``violated``."""
    reason: str = ""
    """What was checked, who declared it, or what breaks it."""

    def __post_init__(self) -> None:
        check_choice(self.name, "name", tuple(STATEMENTS))
        check_choice(self.state, "state", (CHECKED, DECLARED, VIOLATED))
        if self.is_violated and not self.reason:
            raise ValueError(
                f"`reason` must say what violates {self.name}, got an empty one."
            )

    @property
    def statement(self) -> str:
        """What is assumed, in words."""
        return STATEMENTS[self.name]

    @property
    def is_violated(self) -> bool:
        """Whether it is known not to hold."""
        return self.state == VIOLATED


def full_ledger(known: Iterable[Assumption] = ()) -> tuple[Assumption, ...]:
    """Return all of A1 to A6 in order; what is not in `known` counts as declared.

    Raises ValueError where one is given twice.

    Examples
    --------
    >>> [each.state for each in full_ledger([Assumption("A2", "checked", "random")])]
    ['declared', 'checked', 'declared', 'declared', 'declared', 'declared']
    """
    given = list(known)
    by_name = {each.name: each for each in given}
    if len(by_name) < len(given):
        raise ValueError(f"`known` must name each assumption once, got {given}.")
    return tuple(by_name.get(name, Assumption(name)) for name in STATEMENTS)


def with_assumptions(cube: xr.Dataset, ledger: Iterable[Assumption]) -> xr.Dataset:
    """Return the cube with this ledger in the place of its own."""
    return _with_json(cube, names.ASSUMPTIONS, [asdict(each) for each in ledger])


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the ledger that stands in the cube; empty where it was lost."""
    return tuple(Assumption(**each) for each in _json_of(cube, names.ASSUMPTIONS, []))


def with_spent(cube: xr.Dataset, spent: Mapping[str, Any]) -> xr.Dataset:
    """Return the cube with this record of delta: a `DeltaLedger` as a dict."""
    return _with_json(cube, names.SPENT, spent)


def spent_of(cube: xr.Dataset) -> dict[str, Any] | None:
    """Return what `with_spent` was given; None where it was lost or never there."""
    found: dict[str, Any] | None = _json_of(cube, names.SPENT, None)
    return found


def assumption_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return the assumptions of a cube as a table; see `results.dsel.assumptions`."""
    entries = assumptions_of(cube)
    columns = {
        "state": [each.state for each in entries],
        "statement": [each.statement for each in entries],
        "reason": [each.reason for each in entries],
    }
    index = pd.Index([each.name for each in entries], name="assumption")
    return pd.DataFrame(columns, index=index)


def spent_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return what delta was spent on as a table; see `results.dsel.spent`."""
    spent = spent_of(cube) or {"read_outs": []}
    rows = [
        (read["certificate"], event, share)
        for read in spent["read_outs"]
        for event, share in read["spends"].items()
    ]
    table = pd.DataFrame(rows, columns=["certificate", "event", "delta"])
    table.attrs = {key: spent[key] for key in ("delta", "reserve") if key in spent}
    return table


def _with_json(cube: xr.Dataset, name: str, value: Any) -> xr.Dataset:
    return cube.assign_attrs({name: json.dumps(value)})


def _json_of(cube: xr.Dataset, name: str, missing: Any) -> Any:
    return json.loads(cube.attrs[name]) if name in cube.attrs else missing
