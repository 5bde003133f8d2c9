"""What a certificate assumes, and how far each assumption can be trusted.

The list stands in the cube as an attribute in JSON. Whoever loses the attributes of a
cube loses its certificates, never its numbers.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

import pandas as pd
import xarray as xr

from dsel import names
from dsel.checks import check_choice

BY_DESIGN: Final = "by design"
CHECKED: Final = "checked"
DECLARED: Final = "declared"
VIOLATED: Final = "violated"
STATES: Final = (BY_DESIGN, CHECKED, DECLARED, VIOLATED)

STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "labeled rows and pool rows are independent draws from one population",
    "A3": "your code sees only the rows that it is given",
    "A4": "no model depends on the pool rows that are counted",
    "A5": "you did not pick this plan after seeing another's results, nor change "
    "features after a look at the pool",
    "A6": "the model that was fitted anew is the one that was counted: the estimator "
    "is repeatable",
    "A7": "`predict` answers each row by itself",
}
"""What each assumption says. Folds are random by construction (A2 of the theory)."""
ALWAYS: Final = ("A1", "A3", "A5", "A7")
"""What every certificate assumes; A4 comes with a pool, A6 with a model fitted anew."""


@dataclass(frozen=True)
class Assumption:
    """One assumption and how far it can be trusted.

    Examples
    --------
    >>> Assumption("A1", "violated", "the rows come in groups").is_violated
    True
    """

    name: str
    """A key of `STATEMENTS`."""
    state: str = DECLARED
    """``by design``, ``checked`` by dsel, ``declared`` by the user, or ``violated``."""
    reason: str = ""
    """What was checked, who declared it, or what breaks it."""

    def __post_init__(self) -> None:
        check_choice(self.name, "name", tuple(STATEMENTS))
        check_choice(self.state, "state", STATES)
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

    def __str__(self) -> str:
        because = f" ({self.reason})" if self.reason else ""
        return f"{self.name}, {self.state}: {self.statement}{because}"


def full_list(
    known: Iterable[Assumption] = (),
    *,
    has_pool: bool = True,
    is_refitted: bool = False,
) -> tuple[Assumption, ...]:
    """Return all that a certificate assumes, in order; what is not known is declared.

    Parameters
    ----------
    known
        What was found out, each assumption once.
    has_pool
        Whether the number reads the pool, which adds A4.
    is_refitted
        Whether it is about a model that was fitted anew, which adds A6.

    Raises
    ------
    ValueError
        Where an assumption is given twice.

    Examples
    --------
    >>> [each.name for each in full_list([Assumption("A4", "by design")])]
    ['A1', 'A3', 'A4', 'A5', 'A7']
    """
    given = list(known)
    by_name = {each.name: each for each in given}
    if len(by_name) < len(given):
        raise ValueError(f"`known` must name each assumption once, got {given}.")
    wanted = {*ALWAYS, *by_name}
    wanted |= {"A4"} if has_pool else set()
    wanted |= {"A6"} if is_refitted else set()
    return tuple(by_name.get(name, Assumption(name)) for name in sorted(wanted))


def with_assumptions(cube: xr.Dataset, listed: Iterable[Assumption]) -> xr.Dataset:
    """Return the cube with this list in the place of its own."""
    text = json.dumps([asdict(each) for each in listed])
    return cube.assign_attrs({names.ASSUMPTIONS: text})


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the list that stands in the cube; empty where it was lost."""
    stored = json.loads(cube.attrs.get(names.ASSUMPTIONS, "[]"))
    return tuple(Assumption(**each) for each in stored)


def assumption_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return the assumptions of a cube as a table; see `results.dsel.assumptions`."""
    listed = assumptions_of(cube)
    columns = {
        "state": [each.state for each in listed],
        "statement": [each.statement for each in listed],
        "reason": [each.reason for each in listed],
    }
    index = pd.Index([each.name for each in listed], name="assumption")
    return pd.DataFrame(columns, index=index)
