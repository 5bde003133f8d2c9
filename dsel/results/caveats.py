"""What a reader should know about a number: one list, the gravest first, each once."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from dsel.cards import Fact


class Effect(Enum):
    """What a caveat does to the number that it is about, the gravest first."""

    VOIDS = 0
    """The number is no guarantee."""
    WEAKENS = 1
    """The number is doubtful, though no assumption is known to be broken."""
    INFO = 2
    """Good to know; the number is as good as without it."""


@dataclass(frozen=True)
class Caveat:
    """A fact that voids, weakens or explains a number."""

    effect: Effect
    text: str

    def __str__(self) -> str:
        return self.text


NAMES: Final[Mapping[Effect, str]] = {
    Effect.VOIDS: "But",
    Effect.WEAKENS: "Caveat",
    Effect.INFO: "Note",
}
"""How the line of a caveat begins."""


class LimitsWithCaveats:
    """Limits that are a guarantee unless a caveat voids them."""

    caveats: tuple[Caveat, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why limits are no guarantee, as texts; empty where they are one."""
        return texts_of(self.caveats, Effect.VOIDS)

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2, in which reasons were texts, in today's fields."""
        return upgrade_texts(record, "remarks", Effect.VOIDS)


def make_caveats(effect: Effect, texts: Iterable[str]) -> list[Caveat]:
    """Return caveats of one effect."""
    return [Caveat(effect, text) for text in texts]


def collect_caveats(*groups: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return caveats of all groups, the gravest first, each text once.

    Of a text with two effects the graver one stays.

    Examples
    --------
    >>> some = [Caveat(Effect.INFO, "a"), Caveat(Effect.VOIDS, "b")]
    >>> [str(each) for each in collect_caveats(some, [Caveat(Effect.WEAKENS, "a")])]
    ['b', 'a']
    """
    listed = [caveat for group in groups for caveat in group]
    by_text: dict[str, Caveat] = {}
    for caveat in sorted(listed, key=lambda each: each.effect.value):
        by_text.setdefault(caveat.text, caveat)
    return tuple(by_text.values())


def texts_of(caveats: Iterable[Caveat], *effects: Effect) -> tuple[str, ...]:
    """Return the texts of the caveats that have one of these effects."""
    return tuple(each.text for each in caveats if each.effect in effects)


def remarks_of(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Return the texts of the caveats that leave a number a guarantee."""
    return texts_of(caveats, Effect.WEAKENS, Effect.INFO)


def caveat_facts(
    caveats: Iterable[Caveat], *, known: Container[str] = ()
) -> list[Fact]:
    """Return a line for each caveat, but for those whose text a reader knows."""
    unknown = (each for each in caveats if each.text not in known)
    return [(NAMES[each.effect], each.text) for each in unknown]


def upgrade_texts(
    record: Mapping[str, object], name: str, effect: Effect
) -> dict[str, Any]:
    """Return a record with the texts of an older field `name` as caveats.

    What is no list of texts stays as it is, and is refused as an unknown field.
    """
    texts = record.get(name)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return dict(record)
    own = {key: value for key, value in record.items() if key != name}
    older = [{"effect": effect.name, "text": text} for text in texts]
    known = own.get("caveats", [])
    return {**own, "caveats": [*older, *known] if isinstance(known, list) else known}
