"""A folder or URL that holds results: whole files that never change.

What is written has a name that no other writer uses, and begins with its checksum, so
that a file which is torn, or of which something was changed, is known. Two files have
fixed names, and are created by whoever comes first: the head, which says whose place it
is, and the outcome of a run.
"""

import json
import os
import shutil
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fsspec.core import url_to_fs

from dsel.checks import check_path, check_url
from dsel.errors import StoreMismatchError, reaching, without_queries

HEAD: Final = "dsel.json"
"""Says which plan a place belongs to."""
JOURNAL: Final = "journal"
"""Folder of records; each file of it says whose they are, as the head does."""
FORMAT: Final = 3
"""Raised whenever a reader of old files could misread new ones."""
OLD_HEAD: Final = "zarr.json"
"""What results of dsel 0.1 have."""
READERS: Final = 16
"""Files that are read at once; what takes time is the way to an object store."""
AT_WORK_SECONDS: Final = 0.2
"""How long a writer may need from creating a file to its bytes."""
GO_ON: Final = "the same command goes on from there"


class Place:
    """A folder or URL; errors call the argument that named it `name`.

    Raises
    ------
    TypeError
        Where `out` is neither a path nor a URL.
    ValueError
        Where it is empty, holds a password, or nothing here knows its protocol.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        name: str = "out",
    ) -> None:
        if not isinstance(out, (str, os.PathLike)):
            raise TypeError(f"`{name}` must be a path or a URL, got {out!r}.")
        text, self.name = os.fspath(out), name
        if not text:
            raise ValueError(f"`{name}` must name a place, got ''; '.' is this folder.")
        check_path(text, name)
        if "://" in text:
            check_url(text, name)
        is_local = "://" not in text or text.startswith(("file://", "local://"))
        options = {"auto_mkdir": True} if is_local else dict(storage_options or {})
        self._fs, root = url_to_fs(text, **options)
        self._root = root.rstrip("/")
        self.folder = Path(root) if is_local else None
        """Where it is one of this machine."""
        self._text = str(self.folder or text)

    def __str__(self) -> str:
        return self._text

    def files(self, folder: str = "") -> list[str]:
        """Return the names of what lies in a folder, in order."""
        path = f"{self._root}/{folder}" if folder else self._root
        self._fs.invalidate_cache()  # others may have written since
        with reaching(self):
            try:
                found = self._fs.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        # A file lists itself, and so do some folders of object stores.
        inside = (name for name in map(_bare, found) if name != _bare(path))
        return sorted(name.rpartition("/")[2] for name in inside)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None where there is none."""
        with reaching(self):
            try:
                content: bytes = self._fs.cat_file(f"{self._root}/{name}")
            except (FileNotFoundError, NotADirectoryError):
                return None
        return content

    def read_all(self, names: Iterable[str]) -> dict[str, bytes | None]:
        """Return the bytes of several files by name."""
        listed = list(names)
        with ThreadPoolExecutor(READERS) as pool:
            return dict(zip(listed, pool.map(self.read, listed), strict=True))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files, in the place of those that have the same name.

        Raises
        ------
        OSError
            Where the place takes no more; it is named, with the way out.
        """
        with self._writing():
            self._fs.pipe(
                {f"{self._root}/{name}": body for name, body in files.items()}
            )

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless somebody did before; return whether it was written."""
        path = f"{self._root}/{name}"
        with self._writing():
            while not self._is_created(path, content):
                if self.read(name):
                    return False
                time.sleep(AT_WORK_SECONDS)
                if self.read(name) == b"":  # its writer was killed
                    with suppress(FileNotFoundError):
                        self._fs.rm_file(path)
        return True

    def _is_created(self, path: str, content: bytes) -> bool:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with Path(path).open("xb") as file:
                    file.write(content)
            except FileExistsError:
                return False
            return True
        self._fs.invalidate_cache()
        if self._fs.exists(path):
            return False
        try:
            self._fs.pipe_file(path, content, mode="create")
        except Exception:
            self._fs.invalidate_cache()
            if self._fs.exists(path):
                return False
            self._fs.pipe_file(path, content)  # some object stores cannot create
        return True

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all files in it."""
        path = f"{self._root}/{name}"
        with self._writing():
            for file in self._fs.find(path):  # one by one, since paths may hold a *
                self._fs.rm_file(file)
        if self.folder is not None:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            told = getattr(error, "strerror", None) or without_queries(str(error))
            text = (
                f"cannot write to `{self.name}` {self}: {told}; make room there or "
                f"let it be written to, then {GO_ON}."
            )
            number = getattr(error, "errno", None)
            raise (OSError(number, text) if number else OSError(text)) from error


def _bare(path: str) -> str:
    return path.strip("/")


def seal(body: bytes) -> bytes:
    """Return a body behind its checksum."""
    return b"%08x\n" % zlib.crc32(body) + body


def unseal(content: bytes | None) -> bytes | None:
    """Return what `seal` was given; None where it is not there, torn or changed.

    Examples
    --------
    >>> unseal(seal(b"counts")), unseal(seal(b"counts")[:-1])
    (b'counts', None)
    """
    checksum, _, body = (content or b"").partition(b"\n")
    return body if checksum == b"%08x" % zlib.crc32(body) else None


def stamp() -> str:
    """Return a name that no other has; names sort as they were made."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex}"


def owner(kind: str, plan: Mapping[str, str]) -> dict[str, Any]:
    """Return what says whose a file is: the kind of results and the plan's tokens."""
    texts = {name: str(token) for name, token in plan.items()}
    return {"format": FORMAT, "kind": kind, "plan": texts}


def read_owner(place: Place) -> dict[str, Any] | None:
    """Return whose a place is, by its journal if the head was lost; None if nobody's.

    Raises
    ------
    ValueError
        Where another version of dsel wrote there.
    """
    head = unseal(place.read(HEAD))
    found = None if head is None else json.loads(head)
    if found is None:
        found = next((about for about, _ in read_journal(place)), None)
    if found is None:
        old = place.read(OLD_HEAD)
        if old is not None and b"dsel_schema_version" in old:
            raise ValueError(
                f"`{place.name}` {place} was written by dsel 0.1, which this version "
                f"does not read; choose another place and run the search again."
            )
    elif found["format"] != FORMAT:
        raise ValueError(
            f"`{place.name}` {place} has format {found['format']} and this dsel reads "
            f"{FORMAT}; open it by the version that wrote it."
        )
    return found


def claim(place: Place, kind: str, plan: Mapping[str, str]) -> None:
    """Make a place that of a plan, or see that it is.

    Raises
    ------
    StoreMismatchError
        Where it is that of another plan.
    ValueError
        Where anything else is there, which is left as it is.
    OSError
        Where nothing can be written.
    """
    ours = owner(kind, plan)
    theirs = read_owner(place)
    if theirs is None and (names := _files_of_others(place)):
        time.sleep(AT_WORK_SECONDS)  # another run may be claiming it
        theirs = read_owner(place)
        if theirs is None:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(
                f"`{place.name}` {place} must be an empty place or hold dsel's own, "
                f"but {', '.join(names[:3])}{more} is there; choose another place."
            )
    if theirs is None:
        is_ours = place.create(HEAD, seal(json.dumps(ours).encode()))
        theirs = ours if is_ours else read_owner(place) or ours
    _check_owner(place, theirs, ours)
    if unseal(place.read(HEAD)) is None:  # it was lost
        place.write({HEAD: seal(json.dumps(ours).encode())})


def _files_of_others(place: Place) -> list[str]:
    # A head without bytes is what is left where its writer was killed.
    return [name for name in place.files() if name != HEAD or place.read(HEAD)]


def _check_owner(
    place: Place, theirs: Mapping[str, Any], ours: Mapping[str, Any]
) -> None:
    if theirs == ours:
        return
    there, now = theirs["plan"], ours["plan"]
    if theirs["kind"] != ours["kind"]:
        there, now = {"kind": theirs["kind"]}, {"kind": ours["kind"]}
    differing = [
        f"{name} is {_short(there.get(name))} there and {_short(now.get(name))} now"
        for name in {**there, **now}
        if there.get(name) != now.get(name)
    ]
    raise StoreMismatchError(
        f"`{place.name}` {place} holds another plan: {', '.join(differing)}; choose "
        f"another place, one for each plan."
    )


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= 40 else f"{text[:37]}..."


def read_journal(place: Place) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield whose the records are and their lines, of each whole file in order."""
    names = [f"{JOURNAL}/{name}" for name in place.files(JOURNAL)]
    for content in place.read_all(names).values():
        body = unseal(content)
        if body is not None:
            head, *lines = body.decode().split("\n")
            yield json.loads(head), lines
