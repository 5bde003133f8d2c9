"""The ledger of assumptions that every guarantee rests on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dsel.checks import check_choice
from dsel.results.schema import ASSUMPTION_STATES, DECLARED, VIOLATED

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
        check_choice(self.state, "state", ASSUMPTION_STATES)
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

    Parameters
    ----------
    known
        Entries of the ledger, each assumption at most once.

    Raises
    ------
    ValueError
        Where one is given twice.

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
