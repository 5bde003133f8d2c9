"""Caveats, which void, weaken or explain a number; the gravest come first."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from dsel.cards import ShownRow
from dsel.typing import Options


class Effect(Enum):
    """Effect of a caveat on its number, the gravest first."""

    VOIDS = 0
    """The number is no guarantee."""
    WARNS = 1
    """The number holds, but should not be read before the warning: its model misses a
    class, or labeled rows may be copies or belong together, and there is no pool to
    test this."""
    WEAKENS = 2
    """The number is doubtful, though no assumption is known to be broken."""
    INFO = 3
    """Information about the number, which is as good as without it."""
    PLAN = 4
    """Information about how a plan will run; no number of it repeats this."""


@dataclass(frozen=True)
class Caveat:
    """A fact that voids, weakens or explains a number."""

    effect: Effect
    text: str
    model: str = ""
    """Description of the model that the caveat is about, with which `text` begins: "the
    model trained on all labels". Empty if it is not about a single model."""
    condition: str = ""
    """A condition of the number, which nothing tests; its line says it, too."""
    infinite_loss: str = ""
    """Text of the loss, as in a certificate, whose bound is infinite since labeled rows
    are too few; `text` then has the number of rows that it needs. Empty for other
    caveats."""
    short_text: str = ""
    """The text without its details; empty if there are none to leave out."""
    is_about_labels: bool = False
    """Whether the caveat advises to plan more labels, which `plan_bound` counts."""
    advice: str = ""
    """How a search of other labeled rows avoids it; a choice prints all such advice as
    one next step. Empty if there is none."""

    def __str__(self) -> str:
        return self.text


FOLD_MODELS: Final = "models of all folds"
POOLED: Final = f"{FOLD_MODELS}, pooled"
"""The subject of an estimate that belongs to no single model: each fold tests one."""
MAY_RUN_AGAIN: Final = (
    "the bound above is then void and was no ground for this, so that these labeled "
    "rows may be searched again"
)
"""Reason why a second search of the same labeled rows is allowed."""
IF_COPIES: Final = (
    "if they are copies of the same records, bound and estimate may be too small: "
    "take each record once (drop_duplicates), or pass `groups`"
)
"""Advice if equal labeled rows may be one record."""
NO_COPIES: Final = "duplicates are no copies"
"""Condition of a number if nothing tests whether they are."""
OF_NUMBER: Final = (Effect.VOIDS, Effect.WARNS)
"""Effects of caveats that a certificate shows; others are shown by the choice only."""
NAMES: Final[Mapping[Effect, str]] = {
    Effect.VOIDS: "Caveat",
    Effect.WARNS: "Warning",
    Effect.WEAKENS: "Caveat",
    Effect.INFO: "Caveat",
    Effect.PLAN: "Note",
}
"""First word of the line of a caveat, by its effect: a warning stands above the bound,
all others below it. More different words would be ranks that a reader must learn."""


class LimitsWithCaveats:
    """Limits that are a guarantee unless a caveat voids them."""

    caveats: tuple[Caveat, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why the limits are no guarantee, as texts; empty if they are one."""
        return texts_of(self.caveats, Effect.VOIDS)

    @property
    def certified(self) -> bool:
        """Whether the limits are a guarantee."""
        return not self.reasons


def make_caveats(effect: Effect, texts: Iterable[str]) -> list[Caveat]:
    """Return caveats of one effect."""
    return [Caveat(effect, text) for text in texts]


def for_other_rows(advice: str) -> str:
    """Return advice to search otherwise, which says that it is not for these rows.

    A search that is changed after a look at a result is chosen by that result,
    which no bound takes into account. Errors word such advice here; the print of a
    choice has all of it in one line, by `join_advice`.

    Examples
    --------
    >>> for_other_rows("cv=3 has the smaller bound")
    'cv=3 has the smaller bound (for a search of other labeled rows: a second one of these proves nothing)'
    """  # noqa: E501
    return (
        f"{advice} (for a search of other labeled rows: a second one of these proves "
        f"nothing)"
    )


def join_advice(advice: Iterable[str]) -> str:
    """Return several pieces of advice for other rows as one; "" without any.

    Examples
    --------
    >>> join_advice(["take cv=3", "scale the features", "take cv=3"])
    'for other labeled rows (a second search of these proves nothing): take cv=3; scale the features'
    """  # noqa: E501
    texts = "; ".join(dict.fromkeys(filter(None, advice)))
    if not texts:
        return ""
    return f"for other labeled rows (a second search of these proves nothing): {texts}"


def collect_caveats(*groups: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return caveats of all groups, the gravest first, each text once.

    A text that has two effects keeps the graver one.

    Examples
    --------
    >>> some = [Caveat(Effect.INFO, "a"), Caveat(Effect.VOIDS, "b")]
    >>> [c.text for c in collect_caveats(some, [Caveat(Effect.WEAKENS, "a")])]
    ['b', 'a']
    """
    caveats = [caveat for group in groups for caveat in group]
    # Sorting is stable: caveats of one effect keep the order in which they were found.
    by_text: dict[str, Caveat] = {}
    for caveat in sorted(caveats, key=lambda caveat: caveat.effect.value):
        by_text.setdefault(caveat.text, caveat)
    return tuple(by_text.values())


def caveats_of_identifiers(notes: Mapping[str, str]) -> list[Caveat]:
    """Return caveats of columns whose equal values may be rows of one group.

    `notes` are those of `dsel.data.groups.notes_on_identifiers`.
    """
    return [
        Caveat(
            Effect.WARNS, note, condition=f"rows of one {name} do not belong together"
        )
        for name, note in notes.items()
    ]


def merge_models(caveats: Iterable[Caveat]) -> dict[str, Caveat]:
    """Return the caveat to print for each text: one for texts that only name models.

    Examples
    --------
    >>> both = [Caveat(Effect.WARNS, f"{m} found none", m) for m in ("one", "two")]
    >>> {caveat.text for caveat in merge_models(both).values()}
    {'one and two found none'}
    """
    models: dict[tuple[Effect, str], dict[str, str]] = {}
    caveats = list(caveats)
    for caveat in caveats:
        end = caveat.text.removeprefix(caveat.model)
        models.setdefault((caveat.effect, end), {})[caveat.text] = caveat.model
    merged = {
        text: Caveat(effect, " and ".join(dict.fromkeys(texts.values())) + end)
        for (effect, end), texts in models.items()
        for text in texts
    }
    return {caveat.text: merged[caveat.text] for caveat in caveats}


def texts_of(caveats: Iterable[Caveat], *effects: Effect) -> tuple[str, ...]:
    """Return the texts of the caveats that have one of these effects."""
    return tuple(caveat.text for caveat in caveats if caveat.effect in effects)


def texts_that_void_nothing(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Return the texts of the caveats that leave a number a guarantee."""
    return texts_of(caveats, *(set(Effect) - {Effect.VOIDS}))


def caveat_rows(
    caveats: Iterable[Caveat], *, printed: Container[str] = ()
) -> list[ShownRow]:
    """Return a line for each caveat, except for texts that were printed before."""
    new_caveats = (caveat for caveat in caveats if caveat.text not in printed)
    return [(NAMES[caveat.effect], caveat.text) for caveat in new_caveats]


def warnings_first(
    shown_rows: Sequence[ShownRow], caveats: Iterable[Caveat]
) -> list[ShownRow]:
    """Return rows of texts that begin with the warnings about a model.

    A reader must know them before the bound, however small it is.
    """
    warnings = texts_of(caveats, Effect.WARNS)
    other_rows = [row for row in shown_rows if row[-1] not in warnings]
    return [*((NAMES[Effect.WARNS], text) for text in warnings), *other_rows]


def upgrade_texts(record: Options, name: str, effect: Effect) -> dict[str, Any]:
    """Return a record with the texts of an older field `name` as caveats.

    If the field is no list of texts, it stays, and is refused as an unknown field.
    """
    texts = record.get(name)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return dict(record)
    upgraded = {key: value for key, value in record.items() if key != name}
    older = [{"effect": effect.name, "text": text} for text in texts]
    newer = upgraded.get("caveats", [])
    caveats = [*older, *newer] if isinstance(newer, list) else newer
    return {**upgraded, "caveats": caveats}
