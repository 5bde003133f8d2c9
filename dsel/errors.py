"""Exceptions and warnings that a caller may want to catch, and functions to warn."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

from typing_extensions import TypeAliasType

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
__all__ = [
    "AllFitsFailedError",
    "ClusterLostError",
    "DselError",
    "DselWarning",
    "FitFailedWarning",
    "GuaranteeWarning",
    "LossError",
    "NewerRecordError",
    "PoolChangedError",
    "StoreMismatchError",
    "UserCodeError",
    "VersionMismatchError",
]

STORAGE_LIBRARIES: Final = (
    "adlfs",
    "aiobotocore",
    "aiohttp",
    "azure",
    "botocore",
    "gcsfs",
    "google",
)
"""Packages for object stores, each of which has its own exceptions."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk or quota."""
ONLY_WRITING: Final = (*FULL, errno.EROFS)
"""Error numbers that only writing can cause."""


def __dir__() -> list[str]:
    return __all__  # errors that a caller may want to catch


class DselError(Exception):
    """Base of the errors of dsel that a caller may want to catch.

    Each is also one of Python's own kinds. A wrong argument raises a plain
    ``TypeError`` or ``ValueError`` whose message names it.
    """


class StoreMismatchError(DselError, ValueError):
    """A results folder belongs to another run: other data, folds, or estimator."""


class PoolChangedError(DselError, ValueError):
    """A pool's files changed after it was opened, or its graph returns other rows.

    Some rows may have been read before and others after the change, so that no number
    is valid for either version.
    """


class ClusterLostError(DselError, RuntimeError):
    """The scheduler or every worker is gone; finished work is in the store."""


class VersionMismatchError(DselError, RuntimeError):
    """A worker has another version of a package that affects results."""


class AllFitsFailedError(DselError, ValueError, RuntimeError):
    """No candidate could be fitted; the message has the first failure.

    It is a ValueError, too, as in scikit-learn.
    """


class LossError(DselError, ValueError):
    """A loss of the user's own raised an error, or returned no number, on some rows.

    It ends a search: if it failed the candidate instead, rows on which one model is
    tested would decide which candidates other models are chosen from.
    """


class NewerRecordError(DselError, ValueError):
    """A record was written by a version of dsel that is newer than this one."""


class Correction(NamedTuple):
    """Another value for an option of a command, or for one name in its list."""

    option: str
    old: str
    """The value, or one of the names in a list."""
    new: str | None
    """None leaves it out, and the option if it has no other value."""


ShellOptions = Sequence[tuple[str, str] | Correction]
"""Options of the shell with their values, and corrections of those of a command."""


class OtherCommands(NamedTuple):
    """Commands in the place of one that stopped; of several the last needs others."""

    words: tuple[tuple[str, ...], ...]


class NewFile(NamedTuple):
    """A file that takes the place of one that a command names, and code to write it."""

    old: str
    new: str
    """A path that no file has yet."""
    code: str
    """Code of Python in one line, which names both files by their `repr`."""


Way = ShellOptions | OtherCommands | NewFile
"""How a command is changed so that it goes on."""


class UndecidedError(ValueError):
    """A table needs a decision by options of the shell."""

    def __init__(self, text: str, *ways: Way, in_short: str = "") -> None:
        super().__init__(text)
        self.in_short = in_short
        """What is to be decided, without the options: for a message below which whole
        commands stand. "" where the text is short enough."""
        self.ways = tuple(way for way in ways if way)
        """Ways for each of the possible decisions; a flag has the value ""."""


def with_ways(error: E, *ways: Way) -> E:
    """Return an error of any kind with ways that end it, which `ways_of` reads."""
    error.ways = tuple(filter(None, ways))  # type: ignore[attr-defined]
    return error


def ways_of(error: BaseException | None) -> tuple[Way, ...]:
    """Return the ways for each decision that ends an error; () where none does.

    An error that was raised from another one, to say more, has the ways of that one.
    """
    while error is not None:
        if ways := getattr(error, "ways", ()):
            return tuple(ways)
        error = error.__cause__
    return ()


def short_text_of(error: BaseException | None) -> str:
    """Return what an error says above the commands of its ways; "" for its text.

    It stands in the place of the notes of the error, too.
    """
    return getattr(error, "in_short", "")


def notes_of(error: BaseException | None) -> list[str]:
    """Return the notes that were added to an error, and to the ones it came from."""
    notes = list[str]()
    while error is not None:
        notes += getattr(error, "__notes__", ())
        error = error.__cause__
    return notes


def forget_frames(error: BaseException | None) -> None:
    """Remove the traceback of an error and its causes, whose frames hold tables."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


ROWS_FROM_0: Final = "rows are counted from 0"
"""How messages count rows that are no lines, as arrays and data frames do."""


class RowError(ValueError):
    """A row of a table holds a wrong value; the message says how rows are counted.

    Arguments are texts and numbers of rows, from 0. A reader of text files, whose users
    see lines, names these in their place.

    Examples
    --------
    >>> error = RowError("column 'd' has 'x' in ", 16, "; it holds dates.")
    >>> str(error)
    "column 'd' has 'x' in row 16; it holds dates (rows are counted from 0)."
    >>> str(error.in_lines(lambda row: f"line {row + 2}"))
    "column 'd' has 'x' in line 18; it holds dates."
    """

    def __init__(self, *parts: str | int, ways: Sequence[Way] = ()) -> None:
        super().__init__(*parts)
        self.ways = tuple(ways)
        """Ways of the shell that end the error, as those of `UndecidedError`."""

    def __str__(self) -> str:
        text = self._text(lambda row: f"row {row}").removesuffix(".")
        return f"{text} ({ROWS_FROM_0})."

    def in_lines(self, name_line: Callable[[int], str]) -> ValueError:
        """Return the error with the line of each row, as `name_line` calls it."""
        return UndecidedError(self._text(name_line), *self.ways)

    def renumber(self, row_numbers: Sequence[int]) -> "RowError":
        """Return the error with `rows[n]` in the place of row `n`."""
        parts = (p if isinstance(p, str) else int(row_numbers[p]) for p in self.args)
        return RowError(*parts, ways=self.ways)

    def _text(self, name_row: Callable[[int], str]) -> str:
        parts = (p if isinstance(p, str) else name_row(int(p)) for p in self.args)
        return "".join(parts)


class PoolRowError(RowError):
    """A row of a pool holds a wrong value; its number is no row of a labeled table."""


class UserCodeError(DselError, RuntimeError):
    """Code of the user, which a command was asked to run, raised an error.

    That error is the cause of this one; commands print the part of its traceback that
    is in the user's code.
    """


class DselWarning(UserWarning):
    """Base of all warnings of dsel, but those of old names, which are FutureWarning."""


class GuaranteeWarning(DselWarning):
    """An assumption of a bound may not hold, and should be checked."""


class FitFailedWarning(DselWarning):
    """Some candidates failed and were recorded as such."""


@contextmanager
def explain_store_errors(place: object) -> Iterator[None]:
    """Turn errors of object stores into a ConnectionError of one line."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in STORAGE_LIBRARIES:
            raise
        text = hide_url_queries(str(error))
        # A cause would show the URL's query, which may be a key, in the traceback.
        cause = error if text == str(error) else None
        raise ConnectionError(f"{place} cannot be reached: {text}") from cause


Words = TypeAliasType("Words", Mapping[str, str])
"""Words for another reader of a text, by the words of dsel; entries apply in order.

Each text is written for callers of `plan_search`: an argument stands in backticks, a
value as in ``delta=0.1``, and advice is a phrase of its own. Other callers have one
table each: that of the shell names its options, that of `certify` its arguments, and
that of least squares leaves out advice that it cannot follow. `reword` alone applies
them, so that a text is written once, and names what its reader wrote.
"""


def reword(text: str, words: Words) -> str:
    """Return a text in the words of its reader."""
    for word, known in words.items():
        text = text.replace(word, known)
    return text


@contextmanager
def rename_in_errors(words: Words) -> Iterator[None]:
    """Change words of errors about arguments to those that the caller knows.

    A function that fills in arguments of another one has other names for them, and a
    message must name what the user wrote.
    """
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        rename_parts(error, lambda part: reword(part, words))
        raise


def rename_parts(error: Exception, reword_part: Callable[[str], str]) -> None:
    """Change the texts of an error about an argument."""
    if isinstance(error, RowError) or len(error.args) == 1:
        error.args = tuple(
            reword_part(part) if isinstance(part, str) else part for part in error.args
        )


@contextmanager
def explain_interrupt(text: str) -> Iterator[None]:
    """Add what is kept, and how to continue, to a KeyboardInterrupt as a note.

    Python prints it below the traceback, and it still ends the program as ever.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(text)
        raise


def reach_and_read(place: object, read: Callable[[], T]) -> T:
    """Call `read` and return its value; `explain_store_errors` for tasks elsewhere.

    Errors of libraries may fail to unpickle at the client, even as the cause of another
    error. Therefore the new error has no cause.
    """
    try:
        with explain_store_errors(place):
            return read()
    except ConnectionError as error:
        text = str(error)
    raise ConnectionError(text)


@contextmanager
def explain_write_errors(
    place: object, name: str, *, also_reads: bool = False
) -> Iterator[None]:
    """Turn errors of writing to the argument `name` into an OSError of one line.

    With `also_reads` the block reads other files, too: then only errors that name a
    file of this place, or that only writing can cause, are changed.
    """
    try:
        yield
    except Exception as error:
        number = getattr(error, "errno", None)
        if also_reads and not (number in ONLY_WRITING or _is_in(error, str(place))):
            raise
        reason = getattr(error, "strerror", None) or hide_url_queries(str(error))
        if number in FULL:
            way = "make room there"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS):
            way = "let it be written to"
        else:
            way = "make room there or let it be written to"
        text = (
            f"cannot write to `{name}` {place}: {reason}; {way}, then run the same "
            f"command again, or choose another place."
        )
        raise (OSError(number, text) if number else OSError(text)) from error


def _is_in(error: Exception, place: str) -> bool:
    """Return whether an error of the system names a file in a folder."""
    file = getattr(error, "filename", None)
    if not isinstance(error, OSError) or not isinstance(file, (str, bytes)):
        return False
    return os.path.abspath(os.fsdecode(file)).startswith(os.path.abspath(place))


def hide_url_queries(text: str) -> str:
    """Return a text without the queries of its URLs, which may contain keys.

    Examples
    --------
    >>> hide_url_queries("403, url='https://host/pool/zarr.json?sig=123'")
    "403, url='https://host/pool/zarr.json?...'"
    """
    return re.sub(r"""(://[^\s?'"]*\?)[^\s'"]*""", r"\1...", text)


def warn(message: str, category: type[DselWarning | FutureWarning]) -> None:
    """Warn at the line where the user called dsel."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dsel"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
