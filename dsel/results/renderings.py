"""Results as lines, as HTML and as JSON, all made from the same rows of texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, Self

from dsel.cards import Fact, render_card
from dsel.errors import OldName, reword
from dsel.results import records
from dsel.rounded_texts import terminal_width, wrap_line

REPR_LINES: Final = 3
"""First lines of a text that its `repr` has: of a choice both bounds, and what was
chosen."""
INTERNAL: Final = frozenset(
    (
        "about",
        "amount",
        "assumption",
        "details",
        "estimate_where_fitted",
        "facts",
        "has_failed_folds",
        "headline_after",
        "holdout_text",
        "is_below_estimate",
        "model_on_rows",
        "most",
        "name_in_reports",
        "needs_no_copies",
        "no_tolerance",
        "note_on_equal_rows",
        "note_on_estimate",
        "notes",
        "on_rows",
        "origins",
        "pooled_line",
        "pooled_table",
        "upgrade_record",
        "why_nothing",
        "why_useless",
        "with_baseline",
        "with_caveats",
        "with_labels",
        "with_loss",
        "with_loss_of",
        "with_report",
    )
)
"""Names that only dsel calls: completion does not offer them, nor old names."""


class Renderable:
    """A result that is shown as lines, HTML or JSON; two are equal if their JSON is."""

    def facts(self) -> Sequence[Fact]:
        """Return the rows of texts that all renderings show: a name, then its texts."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return all fields, with all digits."""
        return records.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; TypeError or ValueError if it is not that."""
        return records.from_json(cls, text)

    # JSON is compared, and not the fields: NaN does not equal NaN as a float.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __dir__(self) -> list[str]:
        kind = type(self)
        return [
            name
            for name in super().__dir__()
            if name not in INTERNAL
            and not isinstance(getattr(kind, name, None), OldName)
        ]

    def __str__(self) -> str:
        return render_lines(self.facts(), terminal_width())

    def __repr__(self) -> str:
        # A row with more texts belongs to a table, which one line has no place for.
        lines = [fact[1] for fact in self.facts() if len(fact) == 2]
        return f"{type(self).__name__}({'; '.join(lines[:REPR_LINES])})"

    def _repr_html_(self) -> str:
        return render_card(self.facts())


def reword_facts(facts: Iterable[Fact], words: Mapping[str, str]) -> list[Fact]:
    """Return rows of texts in the words of their reader, by the words of dsel."""
    return [tuple(reword(text, words) for text in fact) for fact in facts]


def render_lines(
    facts: Iterable[Fact],
    width: int | None = None,
    style: Callable[[Fact, str], str] = lambda fact, lines: lines,
) -> str:
    """Return rows of texts as lines: a text follows its name, tables have columns.

    A name that does not fit its column ends with a colon. Lines are wrapped at `width`
    columns; a table is not. Rows that follow each other
    are one table. `style` gets each fact that is no row, and its lines.
    """
    lines = []
    for is_table, rows in groupby(facts, key=lambda row: len(row) > 2):
        if is_table:
            table = list(rows)
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            for name, *texts in table:
                cells = map(str.rjust, texts, widths[1:])
                lines.append("  ".join([name.ljust(widths[0] + 1), *cells]))
            continue
        for name, text in rows:
            line, indent = f"{name:8} {text}", 9
            if len(name) > 8 or not name:
                line, indent = f"{name}: {text}" if name else text, 2
            line = line if width is None else wrap_line(line, indent, width)
            lines.append(style((name, text), line))
    return "\n".join(lines)
