"""The decimal mark of a text file, which its columns show together."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from dsel.data.text_columns.column_scan import ColumnScan
from dsel.errors import UndecidedError
from dsel.option_values import join_names


def decimal_mark(
    scans: Mapping[str, ColumnScan],
    separator: str,
    amounts: Mapping[str, str | None] = MappingProxyType({}),
) -> str:
    """Return the decimal mark of a file; ValueError where it uses both.

    `amounts` are the columns of amounts, with the decimal mark that they have if
    nothing in the file shows it; None if it is unknown.
    """
    shown: dict[str, tuple[str, str]] = {}
    for name, scan in scans.items():
        for mark, value in scan.decimal_marks(
            separator, is_amount=name in amounts
        ).items():
            shown.setdefault(mark, (name, value))
    if len(shown) > 1:
        by_comma, comma = shown[","]
        # Leaving out one of the columns would decide by itself what the other one
        # means.
        names = dict.fromkeys((by_comma, shown["."][0]))
        raise UndecidedError(
            f"its column {by_comma!r} has decimal commas ({comma!r}) and its column "
            f"{shown['.'][0]!r} decimal points, so that one of them separates "
            f"thousands; write one decimal mark",
            [("--drop", join_names(names))],
        )
    if shown:
        return next(iter(shown))
    # A wrong value in the one column that shows the mark does not hide it.
    marks = {scan.mark_of_most(separator) for scan in scans.values()} - {None}
    if len(marks) == 1:
        return str(marks.pop())
    for name, known in amounts.items():
        if known is not None:
            return known
        either = scans[name].amounts.ambiguous
        # Files with decimal commas usually separate values by semicolons.
        if either is not None and ("." in either or separator == ";"):
            digits = re.sub("[^0-9.,]", "", either)
            raise ValueError(
                f"its column {name!r} has {either!r}, which may be "
                f"{re.sub('[.,]', '', digits)} or {digits.replace(',', '.')}, and no "
                f"number shows which mark is the decimal one; write the column as "
                f"plain numbers, such as {re.sub('[.,]', '', digits)}"
            )
    return "."
