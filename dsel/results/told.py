"""What is told by facts, which are rows of texts: as lines, as HTML and as JSON."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

from dsel.cards import Fact, as_card
from dsel.results import records
from dsel.rounded_texts import terminal_width, wrap_line


class Told:
    """What is told by facts in several renderings; equal where its JSON is."""

    n_heads: ClassVar[int] = 1
    """Lines of a card that are in bold."""

    def facts(self) -> Sequence[Fact]:
        """Return the rows of texts that all renderings show."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return all fields, with all digits."""
        return records.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote; TypeError or ValueError where it is other."""
        return records.from_json(cls, text)

    # Parts that are NaN are equal; as floats they would not be.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        return as_lines(self.facts(), terminal_width())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(t for _, t in self.facts()[:2])})"

    def _repr_html_(self) -> str:
        return as_card(self.facts(), n_heads=self.n_heads)


def as_lines(facts: Iterable[Fact], width: int | None = None) -> str:
    """Return facts as lines: texts behind their names, tables in columns.

    Lines are wrapped at `width` columns; a table stays as it is.
    """
    facts = list(facts)
    table = [row for row in facts if len(row) > 2]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *texts in facts:
        if len(texts) > 1:
            cells = map(str.rjust, texts, widths[1:])
            lines.append("  ".join([name.ljust(widths[0] + 1), *cells]))
        else:
            line, indent = (f"{name:8} {texts[0]}", 9) if name else (texts[0], 2)
            lines.append(line if width is None else wrap_line(line, indent, width))
    return "\n".join(lines)
