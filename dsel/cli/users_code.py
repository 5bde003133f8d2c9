"""Errors in modules that a user names on the command line, with their file and line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary

from dsel.errors import UserCodeError

PACKAGE = Path(__file__).parents[1]
IMPORTING = ("<frozen importlib", str(Path("importlib") / "__init__.py"))
"""Files of Python's import system: in tracebacks they precede a user's module."""


def user_frames(error: BaseException) -> list[FrameSummary]:
    """Return the part of a traceback that begins in the user's code."""
    frames = list(traceback.extract_tb(error.__traceback__))
    while frames and (
        PACKAGE in Path(frames[0].filename).parents
        or any(path in frames[0].filename for path in IMPORTING)
    ):
        del frames[0]
    return frames


@contextmanager
def users_code(name: str) -> Iterator[None]:
    """Turn an error that the user's code raises into a UserCodeError.

    Errors of finding or calling that code are not changed.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError):
            where = f" in {error.filename}, line {error.lineno}"
        elif user_frames(error):
            last = user_frames(error)[-1]
            where = f" in {last.filename}, line {last.lineno}"
        else:
            raise
        text = " ".join(str(error).split())
        raise UserCodeError(
            f"`--model` {name} raised {type(error).__name__}{where}: {text}"
        ) from error
