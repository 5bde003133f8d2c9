"""Results as lines, as HTML and as JSON, all made from the same rows of texts."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NoReturn, Self

from dsel.cards import NAME_WIDTH, ShownRow, render_card
from dsel.checks import attribute_error
from dsel.errors import Words, reword
from dsel.old_names import OldName, names_of
from dsel.results import records
from dsel.rounded_texts import terminal_width, wrap_line

INTERNAL: Final = frozenset(
    (
        "about",
        "amount",
        "assumptions_in_words",
        "by_model",
        "conditions",
        "constant",
        "constant_loss",
        "counted_rows",
        "details",
        "estimate_where_fitted",
        "fold_choices",
        "fold_forecast",
        "forecast",
        "fraction",
        "has_failed_folds",
        "has_old_rows_alone",
        "headline_after",
        "in_numbers_of_rows",
        "is_below_estimate",
        "largest_class",
        "largest_class_error",
        "median",
        "median_loss",
        "model_on_rows",
        "most",
        "name_in_reports",
        "notes",
        "on_rows",
        "pooled_line",
        "pooled_table",
        "renamings",
        "shown_rows",
        "statement",
        "upgrade_record",
        "with_baseline",
        "with_caveats",
        "with_labels",
    )
)
"""Names that only dsel calls: completion does not offer them, nor old names."""


class Shown:
    """An object that is shown as lines at a prompt, and as a card in a notebook."""

    def shown_rows(self) -> Sequence[ShownRow]:
        """Return the rows of texts that all renderings show: a name, then its texts."""
        raise NotImplementedError

    def __str__(self) -> str:
        return render_lines(self.shown_rows(), terminal_width())

    # A prompt shows the same lines as `print`.
    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return render_card(self.shown_rows())


class Renderable(Shown):
    """A result that is shown as lines, HTML or JSON; two are equal if their JSON is."""

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

    if not TYPE_CHECKING:  # mypy would otherwise accept any name as an attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise attribute_error(type(self).__name__, name, names_of(type(self)))


def reword_rows(shown_rows: Iterable[ShownRow], words: Words) -> list[ShownRow]:
    """Return rows of texts in the words of their reader, by the words of dsel."""
    return [tuple(reword(text, words) for text in row) for row in shown_rows]


def render_lines(
    shown_rows: Iterable[ShownRow],
    width: int | None = None,
    style: Callable[[ShownRow, str], str] = lambda row, lines: lines,
) -> str:
    """Return rows of texts as lines: a text follows its name, tables have columns.

    A name that does not fit its column ends with a colon. Lines are wrapped at `width`
    columns, and then a name is not repeated by the next row; a table is not wrapped.
    Rows that follow each other are one table. `style` gets each name with its text, and
    its lines.

    Examples
    --------
    >>> print(render_lines([("Assumes", "one thing"), ("Assumes", "another")], 60))
    Assumes   one thing
              another
    """
    lines = []
    for is_table, rows in groupby(shown_rows, key=lambda row: len(row) > 2):
        if is_table:
            table = list(rows)
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            for name, *texts in table:
                cells = map(str.rjust, texts, widths[1:])
                lines.append("  ".join([name.ljust(widths[0] + 1), *cells]))
            continue
        before = ""
        for name, text in rows:
            # A file or a pipe gets a name with each line, by which tools find it.
            shown = "" if width is not None and name == before else name
            before = name
            indent = NAME_WIDTH + 2
            line = f"{shown:{indent}}{text}"
            if len(name) > NAME_WIDTH or not name:
                line = f"{name}: {text}" if name else text
                indent = 2
            line = line if width is None else wrap_line(line, indent, width)
            lines.append(style((name, text), line))
    return "\n".join(lines)
