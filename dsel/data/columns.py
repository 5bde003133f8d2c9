"""A check of whether a table has the columns that are needed of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Self

from dsel.checks import letters_of, list_columns, listing, nearest_name
from dsel.errors import Correction, UndecidedError, Way
from dsel.option_values import join_names

NOT_NAMED: Final[Mapping[str, str]] = MappingProxyType({})
"""The argument that names a column, where none does."""


class MissingColumnsError(UndecidedError):
    """A table lacks columns. They may be left out of the labeled table, too."""

    def __init__(
        self,
        text: str,
        missing: Sequence[str] = (),
        corrections: Sequence[Correction] = (),
        columns: Sequence[str] = (),
        n_wanted: int = 0,
    ) -> None:
        # A model without most of its features would be useless. Up to two missing
        # columns are no other table: small tables often lack so many.
        self.lacks_most = 2 * len(missing) > max(n_wanted, 4)
        """Whether most of the wanted columns are missing."""
        ways: list[tuple[str, str] | Correction] = [*corrections]
        if missing and not self.lacks_most:
            ways.append(("--drop", join_names(missing)))
        super().__init__(text, ways)
        self.missing = tuple(missing)
        """Names of the columns, without those that an option names."""
        self.corrections = tuple(corrections)
        """Corrections of the option that names columns which are not there."""
        letters = {_letters(name): name for name in missing}
        self.renamed = {
            name: letters[_letters(name)]
            for name in columns
            if _letters(name) in letters
        }
        """Columns of the table that differ from a missing column only by case, blanks
        or signs, with the name of the missing one."""
        self.similar = dict[str, str]()
        """Columns with a similar name as another missing one, which they may be."""
        for name in missing:
            other_columns = [
                c for c in columns if c not in {**self.renamed, **self.similar}
            ]
            near = nearest_name(name, other_columns)
            if near is not None and name not in self.renamed.values():
                self.similar[str(near)] = name
        if self.lacks_most and not (self.renamed or self.similar):
            self.args = (f"{text} Is this the right table?",)

    def with_way(self, way: Way) -> Self:
        """Return the error with another way ahead of its own; () for none."""
        self.ways = tuple(filter(None, (way, *self.ways)))
        return self


def check_columns(
    columns: Iterable[str],
    wanted: Iterable[str],
    where: str,
    whose: str = "",
    way: str = "",
    *,
    used: Iterable[str] = (),
    named: Mapping[str, str] = NOT_NAMED,
) -> None:
    """Raise MissingColumnsError if a table lacks columns; it names all of them.

    `whose` says why they are needed, and `way` is a way out. `used` are names that
    have a meaning already, and `named` has the argument of each that an argument names.

    Examples
    --------
    >>> try:
    ...     check_columns(["age"], ["age", "town"], "'new.csv'", " of `X`")
    ... except ValueError as error:
    ...     print(error)
    'new.csv' lacks the column 'town' of `X`; it has 'age'.
    """
    columns, wanted, used = list(map(str, columns)), [*dict.fromkeys(wanted)], [*used]
    if not (missing := [name for name in wanted if name not in {*columns}]):
        return
    shown = [
        f"{name!r}{f' (of `{named[name]}`)' if name in named else ''}"
        for name in missing
    ]
    lacking = [name for name in missing if name not in named]
    raise MissingColumnsError(
        f"{where} lacks the column{'s' if len(missing) > 1 else ''} "
        f"{listing(shown, 10)}{whose}{list_columns(columns, missing[0], used)}{way}",
        lacking,
        [
            Correction(f"--{named[name]}", name, None if near is None else str(near))
            for name in missing
            if name in named
            and ((near := nearest_name(name, columns)) or named[name] == "id")
        ],
        [name for name in columns if name not in {*wanted, *used}],
        sum(name not in named for name in wanted),
    )


def _letters(name: str) -> str:
    """Return the letters and digits of a name, for all spellings of it."""
    return re.sub(r"[\W_]", "", letters_of(name))
