"""Errors of code that a user names on the command line: whose they are, and where."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary

from dsel.errors import UserCodeError

PACKAGE = Path(__file__).parents[1]
IMPORTING = ("<frozen importlib", str(Path("importlib") / "__init__.py"))
"""Of Python's import system: what stands between a command and a user's module."""


def user_frames(error: BaseException) -> list[FrameSummary]:
    """Return the part of a traceback that begins in code of the user's."""
    frames = list(traceback.extract_tb(error.__traceback__))
    while frames and not _is_users(frames[0]):
        del frames[0]
    return frames


def _is_users(frame: FrameSummary) -> bool:
    is_ours = PACKAGE in Path(frame.filename).parents
    return not is_ours and not any(each in frame.filename for each in IMPORTING)


@contextmanager
def users_code(name: str) -> Iterator[None]:
    """Tell errors that code of the user's raises from those of reaching it."""
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
        told = " ".join(str(error).split())
        raise UserCodeError(
            f"`--model` {name} raised {type(error).__name__}{where}: {told}"
        ) from error
