"""The assumptions of a certificate: declared by the user, or known to be violated."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import xarray as xr

from dsel import names
from dsel.cards import ShownRow
from dsel.results import records

STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "labeled rows and pool rows are independent draws from one population",
    "A3": "your code sees only the rows that it is given: no scaler or selection of "
    "features was fitted to all rows before",
    "A4": "no model was trained or chosen with the pool rows that are counted",
    "A5": "you did not pick this plan after seeing another's results, nor change "
    "features after a look at the pool",
    "A7": "`predict` treats each row by itself",
}
"""Text of each assumption. A2 of the theory holds by construction, and A6 because the
deployed model is the one whose errors were counted."""
IN_SHORT: Final[Mapping[str, str]] = {
    "A1": "independent draws from one population",
    "A3": "code that sees only its own rows",
    "A4": "a pool that no model was trained on",
    "A5": "a plan made before any result",
    "A7": "predictions row by row",
}
"""Each assumption in a few words, where only its violation is reported."""
ALWAYS: Final = ("A1", "A3", "A5", "A7")
"""Assumptions of every certificate; A4 is added to one whose bound reads a pool."""
LOST: Final = (
    "the results lost their attribute `assumptions`, which lists what was checked; "
    "select from what the run or `open_results` returned"
)
DECLARED: Final = "declared"
VIOLATED: Final = "violated"


@dataclass(frozen=True)
class Assumption:
    """One assumption and how far it can be trusted."""

    name: str
    """A key of `STATEMENTS`."""
    state: str = DECLARED
    """``declared`` by the user, or ``violated``."""
    reason: str = ""
    """The finding that violates it, or a finding that does not."""
    says: str = ""
    """Its text here, if that is not the one of `STATEMENTS`."""
    shifted_by: tuple[str, ...] | None = None
    """Columns by which pool rows come from another population than labeled ones; the
    one that differs most comes first. None if no such difference violates the
    assumption."""
    shared_column: str = ""
    """The first of these columns by which labeled rows may come in groups, "" if none
    is."""
    has_lost_groups: bool = False
    """Whether labeled rows seem to come in groups that were not passed."""
    has_test: bool = False
    """Whether its reason has the result of a test of labeled rows against the pool."""

    @property
    def statement(self) -> str:
        """Text of the assumption."""
        return self.says or STATEMENTS[self.name]

    @property
    def is_violated(self) -> bool:
        """Whether it is known not to hold."""
        return self.state == VIOLATED

    @property
    def text(self) -> str:
        """The assumption in one line, without what violates it: a caveat shows that."""
        return str(replace(self, reason="")) if self.is_violated else str(self)

    def __str__(self) -> str:
        because = ""
        if self.reason:
            because = f". {self.reason[0].upper()}{self.reason[1:]}"
        # The name is for readers of the theory, since not all names occur in each list.
        violated = "violated: " if self.is_violated else ""
        return f"{violated}{self.statement} ({self.name}){because}"


def assumption_rows(assumptions: Sequence[Assumption]) -> list[ShownRow]:
    """Return a line for each assumption."""
    return [("Assumes", assumption.text) for assumption in assumptions]


def full_list(
    checked: Iterable[Assumption] = (), *, has_pool: bool = True
) -> tuple[Assumption, ...]:
    """Return all assumptions of a certificate; those not `checked` are declared."""
    by_name = {assumption.name: assumption for assumption in checked}
    wanted = {*ALWAYS, *by_name, *["A4"] * has_pool}
    return tuple(by_name.get(name, Assumption(name)) for name in sorted(wanted))


def without_pool(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return the assumptions of a bound that reads no pool, as that of ``one_fold``.

    Its model is fixed when its fold is counted, whichever pool rows it has seen.
    """
    return tuple(assumption for assumption in assumptions if assumption.name != "A4")


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the assumptions stored in a cube; empty if its attributes were lost."""

    def read(text: str) -> tuple[Assumption, ...]:
        stored = (
            records.from_record(Assumption, record) for record in json.loads(text)
        )
        return tuple(assumption for assumption in stored if assumption.statement)

    return records.read_attribute(cube, names.ASSUMPTIONS, read, ())
