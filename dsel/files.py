"""Writing of local files: whole or not at all, and never through a symbolic link.

A file is written under a temporary name, synced to the disk, and renamed. Therefore a
full disk or a killed process leaves the old file or none, never a partial one. Symbolic
links are refused, since their targets may not be dsel's.
"""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dsel.checks import check_path, did_you_mean, show
from dsel.errors import explain_write_errors
from dsel.option_values import PREDICTION_ENDINGS, SPREADSHEETS

if TYPE_CHECKING:  # its imports take seconds, and commands are refused before them
    from dsel.typing import PathLike

HEAD: Final = "dsel.json"
"""File that identifies the plan to which a results folder belongs."""
COMPARISON: Final = "comparison.json"
"""File of `dsel compare`, whose folders have no results of a search."""
PARTIAL: Final = re.compile(r"[^/\\]+\.[0-9a-f]{32}\.partial$")
"""Names of files that dsel or zarr is writing, or whose writer was killed."""
NO_HARD_LINKS: Final = (
    errno.EPERM,
    errno.ENOSYS,
    errno.EMLINK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
)
"""Error numbers of file systems without hard links."""
TRIES: Final = 5
"""Attempts to write a file, if another run removes the temporary one."""


def check_results_folder(folder: Path, *, or_comparison: bool = False) -> None:
    """Raise FileNotFoundError if a folder has no results, nor perhaps a comparison.

    It imports nothing that takes seconds, so that a command is refused at once.
    """
    is_comparison = (folder / COMPARISON).is_file()
    if (folder / HEAD).is_file() or (is_comparison and or_comparison):
        return
    if is_comparison:
        raise FileNotFoundError(
            f"{folder} holds a comparison of two models, and no results of a search; "
            f"`dsel label {folder}` reads its labels."
        )
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there are no results at {folder}: it is a file, and results are a "
            f"folder; are the arguments swapped?"
        )
    raise FileNotFoundError(
        f"there are no results at {folder}: this folder holds nothing of dsel; name "
        f"the place that `out` named."
    )


def check_no_link(path: "PathLike", name: str, *, below: "PathLike" = "") -> None:
    """Raise ValueError if a path is a symbolic link, or passes through one.

    Only folders inside of `below` are checked: those above a destination may be links
    (such as ``/tmp`` on macOS), and without `below` all parents may be. Errors name the
    argument `name`.
    """
    parts = Path(os.path.relpath(path, below)).parts if below else ()
    # The destination is checked first, then every folder from it to the file.
    step = Path(below or path)
    for part in ("", *parts):
        step = step / part
        if step.is_symlink():
            raise ValueError(
                f"`{name}` {step} is a symbolic link to {os.readlink(step)}, and what "
                f"a link points to is never changed; name that place itself, or remove "
                f"the link."
            )


def check_free(path: Path, name: str, begins: bytes | None = None) -> None:
    """Raise FileExistsError if a path exists and is not a file of dsel.

    A file of dsel begins with the bytes `begins`; by default every file is foreign.
    """
    if not os.path.lexists(path):
        return
    if begins is not None and path.is_file():  # reading a pipe would wait
        with path.open("rb") as file:
            if file.read(len(begins)) == begins:
                return
    whose = "" if begins is None else ", and dsel has not written it"
    raise FileExistsError(
        f"`{name}` must be free, but {str(path)!r} is there{whose}; choose another "
        f"path, or remove it."
    )


def check_no_links_inside(folder: "PathLike", name: str) -> None:
    """Raise ValueError if a folder, or anything in it, is a symbolic link."""
    check_no_link(folder, name)
    for parent, folders, files in os.walk(folder):
        for member in (*folders, *files):
            check_no_link(os.path.join(parent, member), name)


def check_new_file(path: "PathLike") -> Path:
    """Return the path of predictions; raise if it exists or its ending is unknown."""
    text = check_path(path, "out")
    if "://" in text:
        raise ValueError(
            f"`out` must be a path of this machine, got the URL {text!r}; write here, "
            f"then copy the file."
        )
    check_ending(text)
    check_no_link(text, "out")
    check_free(Path(text), "out")
    return Path(text)


def check_ending(text: str) -> None:
    """Raise ValueError if no file of predictions has this ending."""
    if text.lower().endswith(PREDICTION_ENDINGS):
        return
    stem, ending = os.path.splitext(text)
    way = did_you_mean(ending, PREDICTION_ENDINGS)
    if ending.lower() in SPREADSHEETS:
        way = f"; spreadsheet programs open .csv: write {stem}.csv."
    endings = ", ".join(PREDICTION_ENDINGS)
    raise ValueError(f"`out` must end in one of {endings}, got {show(text)}{way}")


def check_folder(path: "PathLike", name: str) -> None:
    """Raise if a path is a file or a symbolic link, or a folder with a link in it.

    The check is needed since dsel may remove the folder again, with its contents.
    """
    check_no_links_inside(path, name)
    if os.path.exists(path) and not os.path.isdir(path):
        raise FileExistsError(
            errno.EEXIST,
            f"`{name}` {os.fspath(path)} is a file, and must be a folder or free; "
            f"choose another path.",
        )


@contextmanager
def whole_file(path: "PathLike", name: str) -> Iterator[Path]:
    """Yield a temporary path, whose file is renamed to `path` after the block.

    If anything fails the temporary file is removed, and an earlier file is unchanged.
    Raises OSError if the disk is full or cannot be written to, ValueError if the path
    is a link or no regular file; both name the argument `name`.
    """
    target = Path(path)
    check_no_link(target, name)
    if target.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, f"`{name}` {target} is a folder; name a file in it."
        )
    if target.exists() and not target.is_file():  # a device would be replaced
        raise ValueError(f"`{name}` {target} is no regular file; name another path.")
    partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")
    with explain_write_errors(target, name):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with explain_write_errors(target, name, also_reads=True):
            yield partial
        with explain_write_errors(target, name):
            _sync(partial)
            os.replace(partial, target)
            _sync(target.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file, which replaces an earlier one; OSErrors are not changed.

    Its folder is not synced to the disk: `sync_folders` does that for many files.
    """
    _write_and_name(path, content, os.replace)


def create_file(path: Path, content: bytes) -> bool:
    """Write a whole file unless it exists; return whether it was written."""
    try:
        # Unlike `rename`, `link` fails if the file exists.
        _write_and_name(path, content, os.link)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        return _create_here(path, content)
    sync_folders([path.parent])
    return True


def _write_and_name(
    path: Path, content: bytes, give_name: Callable[[Path, Path], None]
) -> None:
    """Write a temporary file, sync it to the disk, and let `give_name` rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for last in range(1 - TRIES, 1):
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
        try:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            give_name(partial, path)
            return
        except FileNotFoundError:  # another run removed it as a leftover
            if not last:
                raise
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _create_here(path: Path, content: bytes) -> bool:
    """Create a file under its final name, for file systems without hard links."""
    try:
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:  # a partial file would look like a damaged one
                path.unlink(missing_ok=True)
                raise
    except FileExistsError:
        return False
    return True


def sync_folders(folders: list[Path]) -> None:
    """Sync folders, with the names of their new files, to the disk if possible."""
    for folder in dict.fromkeys(folders):
        _sync(folder)


def _sync(path: Path) -> None:
    # Windows opens no folders, and some network file systems do not sync them.
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def remove(path: "PathLike", name: str) -> None:
    """Remove a file, or a folder with its contents; links are refused."""
    check_no_links_inside(path, name)
    try:
        if os.path.isdir(path):
            shutil.rmtree(path)  # never follows links
        else:
            os.unlink(path)
    except FileNotFoundError:  # another run is removing it, too
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(folder: "PathLike") -> None:
    """Remove temporary files of killed writers; an active one writes its file again."""
    for parent, _, files in os.walk(folder):
        for file in filter(PARTIAL.match, files):
            with suppress(OSError):
                os.unlink(os.path.join(parent, file))
