"""Tables as lines of text, for commands."""

from collections.abc import Collection, Iterator, Sequence


def text_table(
    rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()
) -> Iterator[str]:
    r"""Yield the rows, the head first, as lines of equally wide columns.

    Columns at the places `numbers` end at the right.

    Examples
    --------
    >>> print(*text_table([["row", "error"], ["a", "0.5"]], numbers={1}), sep="\n")
      row  error
      a      0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()
