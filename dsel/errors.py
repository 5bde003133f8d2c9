"""The exceptions and warnings that a caller may want to catch, and how to warn."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

T = TypeVar("T")

STORAGE_LIBRARIES: Final = (
    "adlfs",
    "aiobotocore",
    "aiohttp",
    "azure",
    "botocore",
    "gcsfs",
    "google",
)
"""Packages that reach object stores, each with exceptions of its own."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of errors of a place that has no room."""
ONLY_WRITING: Final = (*FULL, errno.EROFS)
"""Numbers of errors that only writing has."""


class DselError(Exception):
    """Base of the errors of dsel that a caller may want to catch.

    Each is one of Python's own kinds, too. An argument that is not as it must be is a
    plain ``TypeError`` or ``ValueError`` whose message names it.
    """


class StoreMismatchError(DselError, ValueError):
    """A results store holds another run: other data, folds, estimator or versions."""


class PoolChangedError(DselError, ValueError):
    """A pool's files were written after it was opened, or its graph gives other rows.

    Some rows may have been read before, others after: no number is about either.
    """


class ClusterLostError(DselError, RuntimeError):
    """The scheduler or every worker is gone; what was finished is in the store."""


class VersionMismatchError(DselError, RuntimeError):
    """A worker has another version of a package that decides results."""


class AllFitsFailedError(DselError, ValueError, RuntimeError):
    """No candidate could be fitted; the message holds the first failure.

    A ValueError, as what scikit-learn raises then.
    """


class NewerRecordError(DselError, ValueError):
    """A record was written by a version of dsel that is newer than this one."""


class UserCodeError(DselError, RuntimeError):
    """Code of the user's that a command was told to run has raised.

    It is the cause of this error, and commands show the user's part of its traceback.
    """


class DselWarning(UserWarning):
    """Base of all warnings of dsel."""


class GuaranteeWarning(DselWarning):
    """Something that the number rests on deserves a look."""


class FitFailedWarning(DselWarning):
    """Some candidates failed and were recorded as such."""


@contextmanager
def reaching(place: object) -> Iterator[None]:
    """Say in one line that a place at a URL cannot be reached, by a ConnectionError."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in STORAGE_LIBRARIES:
            raise
        told = without_queries(str(error))
        shown = error if told == str(error) else None  # else no traceback tells it
        raise ConnectionError(f"{place} cannot be reached: {told}") from shown


def reach_and_read(place: object, read: Callable[[], T]) -> T:
    """Return what `read` returns; like `reaching`, for tasks on other machines.

    Errors of libraries may not survive the way from a worker, not even as a cause.
    """
    try:
        with reaching(place):
            return read()
    except ConnectionError as error:
        told = str(error)
    raise ConnectionError(told)


@contextmanager
def writing(place: object, name: str, *, also_reads: bool = False) -> Iterator[None]:
    """Say in one line, by an OSError, that the place of an argument takes nothing.

    Where other places are read, too, only errors that are about this one are told so.
    """
    try:
        yield
    except Exception as error:
        number = getattr(error, "errno", None)
        if also_reads and not (number in ONLY_WRITING or _is_in(error, str(place))):
            raise
        told = getattr(error, "strerror", None) or without_queries(str(error))
        if number in FULL:
            way = "make room there"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS):
            way = "let it be written to"
        else:
            way = "make room there or let it be written to"
        text = (
            f"cannot write to `{name}` {place}: {told}; {way}, then run the same "
            f"command again, or choose another place."
        )
        raise (OSError(number, text) if number else OSError(text)) from error


def _is_in(error: Exception, place: str) -> bool:
    """Whether an error of the system names a file of a place."""
    file = getattr(error, "filename", None)
    if not isinstance(error, OSError) or not isinstance(file, (str, bytes)):
        return False
    return os.path.abspath(os.fsdecode(file)).startswith(os.path.abspath(place))


def without_queries(text: str) -> str:
    """Return a text with what stands behind the ? of URLs left out: it may be a key.

    Examples
    --------
    >>> without_queries("403, url='https://host/pool/zarr.json?sig=123'")
    "403, url='https://host/pool/zarr.json?...'"
    """
    return re.sub(r"""(://[^\s?'"]*\?)[^\s'"]*""", r"\1...", text)


def warn_of_old_name(old: str, new: str) -> None:
    """Warn from where the user called dsel by a name of 0.2."""
    text = f"`{old}` is now called `{new}`; the old name goes with dsel 0.4."
    warn(text, FutureWarning)


def warn(message: str, category: type[DselWarning | FutureWarning]) -> None:
    """Warn from where the user called dsel."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dsel"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
