"""Results folders, local or remote, whose files never change and belong to one plan.

The name of a file is used by no other writer, and its content begins with a checksum,
so that a partly written or changed file is recognized. Two files have fixed names and
are created by the first writer: the head, which identifies the plan, and the outcome of
a run.
"""

import json
import re
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fsspec.core import url_to_fs

from dsel.checks import (
    check_path,
    check_storage_options,
    check_url,
    describe_missing_path,
    listing,
)
from dsel.errors import StoreMismatchError, explain_store_errors, explain_write_errors
from dsel.files import (
    HEAD,
    PARTIAL,
    check_no_link,
    check_no_links_inside,
    check_results_folder,
    create_file,
    remove,
    remove_leftovers,
    sync_folders,
    write_file,
)
from dsel.typing import Options, PathLike
from dsel.zarr_stores import check_empty

FORMAT: Final = 3
"""Version of the format, which is raised whenever a reader of old files could misread
new ones."""
JOURNAL: Final = "journal"
"""Folder of records; the first line of each file repeats the head."""
PLAIN: Final = "results"
"""Kind of a results folder without a plan."""
OUTCOME: Final = "outcome.json"
CUBE: Final = "cube"
PAIRS: Final = "pairs"
MODELS: Final = "models"
QUERIES: Final = "queries"
ROW_HASHES: Final = "row_hashes"
OWN_NAMES: Final = (
    HEAD, JOURNAL, OUTCOME, CUBE, PAIRS, MODELS, QUERIES, ROW_HASHES,
)  # fmt: skip
"""Names of the files and folders of dsel; all others in a folder are left alone."""
MAKE_ANEW: Final = "run the same command again with the same `out`, which makes it anew"
READERS: Final = 16
"""Number of files that are read in parallel, since reading from an object store waits
for the network."""
AT_WORK_SECONDS: Final = 0.2
"""Time that another writer gets between creating a file and writing its bytes."""
ARGUMENTS: Final[Mapping[str, str]] = {"n_queries": "`n_queries`", "splits": "`cv`"}
"""Arguments of the caller, by the parts of a plan's identity."""
STATEMENTS: Final = {
    "other_records": "the pool is known to hold other records (`other_records`)",
}
"""Statements, by the parts of a plan's identity that only say whether they hold."""
WORDS: Final = {
    "estimator": "another estimator",
    "candidates": "other candidates (the grid)",
    "splits": "other folds (`cv`)",
    "labeled": "other labeled rows",
    "targets": "other targets `y`",
    "pool": "another pool",
    "fitting_pool": "other pool rows for fits",
    "fit_params": "other arguments of `fit`",
    "outcome": "another outcome",
}
"""Descriptions of differences in keys whose value is a hash."""
NO_VALUE: Final = "nothing"
"""Value of a part that the identity of a plan lacks."""
FOLLOWS: Final = {"splits", "prune", "deploy", "fitting_pool"}
"""Keys that usually differ because another key differs; they are reported only if no
other key differs."""
FOLLOWS_LOSS: Final = {"candidates", "certificate"}
"""Keys that always differ if the loss differs, which scores and ranks candidates."""

POOL_KEYS: Final = {"pool", "fitting_pool"}
"""Keys whose value may need a pass over the pool."""
ROW_KEYS: Final = {"estimator", "candidates", "labeled", *POOL_KEYS}
"""Keys that differ where the columns do."""


class Place:
    """A local or remote folder; errors name the argument `name` that set it."""

    def __init__(
        self,
        out: PathLike,
        *,
        storage_options: Options | None = None,
        name: str = "out",
    ) -> None:
        text = check_path(out, name)
        self.name = name
        options = check_storage_options(storage_options)
        if "://" in text:
            check_url(text, name)
        is_local = "://" not in text or text.startswith(("file://", "local://"))
        self._fs, root = url_to_fs(
            text, **({"auto_mkdir": True} if is_local else options)
        )
        self._root = root.rstrip("/")
        self.folder = Path(root) if is_local else None
        """The folder, if it is on this machine."""
        self._text = str(self.folder or text)

    def __str__(self) -> str:
        return self._text

    def files(self, folder: str = "") -> list[str]:
        """Return the sorted names of the files and folders in a folder."""
        path = f"{self._root}/{folder}".rstrip("/")
        self._fs.invalidate_cache()  # other processes may have written since
        with explain_store_errors(f"`{self.name}` {self}"):
            try:
                paths = self._fs.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        # `ls` of a file lists the file, and that of a folder of some object stores
        # lists the folder itself.
        inside = {name.strip("/") for name in paths} - {path.strip("/")}
        names = sorted(name.rpartition("/")[2] for name in inside)
        return [name for name in names if not PARTIAL.match(name)]

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if there is none."""
        where = f"`{self.name}` {self}"
        with (
            explain_store_errors(where),
            suppress(FileNotFoundError, NotADirectoryError),
        ):
            content: bytes = self._fs.cat_file(f"{self._root}/{name}")
            return content
        return None

    def read_all(self, names: Iterable[str]) -> list[bytes | None]:
        """Return the bytes of several files."""
        with ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(self.read, names))

    def read_last(self, folder: str) -> bytes | None:
        """Return the body of the last file in a folder; None if there is none.

        Raises ValueError if it is damaged: an older one may have another content.
        """
        # A file browser may have left hidden files.
        names = [name for name in self.files(folder) if name[0] != "."]
        if not names:
            return None
        file = f"{folder}/{names[-1]}"
        if (body := unseal(self.read(file))) is None:
            raise error_of_damaged_file(self, file)
        return body

    def check_no_links(self, *names: str) -> None:
        """Raise ValueError if the folder, or one of these files, is a symbolic link."""
        if self.folder is not None:
            for name in ("", *names):
                file = self.folder / name
                check_no_link(file, self.name, below=self.folder)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files, which replace those of the same name.

        If one cannot be written, those that did not exist before are removed from a
        folder; an object store keeps what it has, since each object there is whole.
        """
        self.check_no_links(*files)
        with explain_write_errors(self, self.name):
            if self.folder is None:
                self._fs.pipe({f"{self._root}/{name}": files[name] for name in files})
                return
            paths = {self.folder / name: body for name, body in files.items()}
            new = [path for path in paths if not path.exists()]
            try:
                for path, content in paths.items():
                    write_file(path, content)
                sync_folders([path.parent for path in paths])
            except BaseException:
                for path in new:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
                raise

    def create(self, name: str, content: bytes) -> None:
        """Write a file unless another writer did before."""
        self.check_no_links(name)
        with explain_write_errors(self, self.name):
            for seconds in (AT_WORK_SECONDS, 0.0):
                if self._create(name, content) or self.read(name):
                    return
                time.sleep(seconds)
        # Still without bytes after the pause: its writer was killed after creating it.
        self.write({name: content})

    def _create(self, name: str, content: bytes) -> bool:
        """Create a file; return False where it exists already."""
        if self.folder is not None:
            return create_file(self.folder / name, content)
        # Object stores without exclusive creation raise errors of many types.
        with suppress(Exception), self._fs.open(f"{self._root}/{name}", "xb") as file:
            file.write(content)
            file.close()
            return True
        return False

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all files in it."""
        if self.folder is not None:
            self.check_no_links(name)
            check_no_links_inside(self.folder / name, self.name)
        with explain_write_errors(self, self.name):
            if self.folder is not None:
                remove(self.folder / name, self.name)
                return
            for file in self._fs.find(f"{self._root}/{name}"):
                self._fs.rm_file(file)  # one by one, since paths may hold a *


def seal(body: bytes) -> bytes:
    """Return a body with its CRC-32 checksum in front."""
    return b"%08x\n" % zlib.crc32(body) + body


def unseal(content: bytes | None) -> bytes | None:
    """Return the body of `seal`; None if it is missing, written in part or changed.

    Examples
    --------
    >>> unseal(seal(b"counts")), unseal(seal(b"counts")[:-1])
    (b'counts', None)
    """
    checksum, _, body = (content or b"").partition(b"\n")
    return body if checksum == b"%08x" % zlib.crc32(body) else None


def stamp() -> str:
    """Return a unique name; names sort by the time at which they were made."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex}"


def read_journal(place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield head and records of each intact file; lost records are computed again."""
    files = [f"{JOURNAL}/{name}" for name in place.files(JOURNAL)]
    for body in filter(None, map(unseal, place.read_all(files))):
        head, *lines = body.decode().split("\n")
        yield head, dict(map(json.loads, lines))


def read_head(place: Place) -> dict[str, Any] | None:
    """Return the head of a results folder, also from its journal; None without one."""
    text: str | bytes | None = unseal(place.read(HEAD))
    text = text or next(
        (text_of_journal for text_of_journal, _ in read_journal(place)), None
    )
    if text is not None:
        head = _read_json(place, HEAD, text)
    elif b"dsel_schema_version" in (place.read("zarr.json") or b""):
        head = {"format": "2 (it was written by dsel 0.1)"}
    else:
        return None
    if head.get("format") != FORMAT:
        raise ValueError(
            f"`{place.name}` {place} has format {head.get('format')} and this dsel "
            f"reads {FORMAT}; open it with the version that wrote it, or choose "
            f"another place."
        )
    return head


def claim(
    place: Place, kind: str, identity: Mapping[str, str], columns: Sequence[str] = ()
) -> str:
    """Mark a results folder as that of a plan, or raise; return its head.

    `columns` are the features of the plan, for messages.
    Raises StoreMismatchError if it belongs to another plan.
    """
    new: dict[str, Any] = {"format": FORMAT, "kind": kind, **identity}
    head = json.dumps(new)
    stored = _read_own_head(place)
    if stored is None:
        place.create(HEAD, seal(head.encode()))
        stored = read_head(place) or new
    _check_plan(place, stored, new, {**stored, **new}, columns)
    if unseal(place.read(HEAD)) is None:  # it was lost
        place.write({HEAD: seal(head.encode())})
    if place.folder is not None:
        remove_leftovers(place.folder)
    return head


def check_claim(
    place: Place, kind: str, identity: Mapping[str, str], columns: Sequence[str] = ()
) -> None:
    """Raise if a results folder belongs to another plan, and write nothing.

    `identity` may lack the tokens that need a pass over the pool.
    """
    if (stored := _read_own_head(place)) is not None:
        new: dict[str, Any] = {"format": FORMAT, "kind": kind, **identity}
        compared = {**stored, **new}.keys() - (POOL_KEYS - new.keys())
        _check_plan(place, stored, new, compared, columns)


def _read_own_head(place: Place) -> dict[str, Any] | None:
    """Return the head of a results folder, None if empty; raise if it is not dsel's."""
    place.check_no_links(*OWN_NAMES)
    if (head := read_head(place)) is not None:
        return head
    if place.folder is not None and place.folder.is_file():
        raise NotADirectoryError(
            f"`{place.name}` {place} is a file; name a folder, which is made if it "
            f"does not exist."
        )
    # A head without bytes remains if its writer was killed.
    strangers = [n for n in place.files() if n != HEAD or place.read(HEAD)]
    # The head is read again: another run may have claimed the folder in the meantime.
    if strangers and (head := read_head(place)) is None:
        check_empty(strangers, place, place.name)
    return head


def _check_plan(
    place: Place,
    stored: Mapping[str, Any],
    new: Mapping[str, Any],
    compared: Iterable[str],
    columns: Sequence[str],
) -> None:
    """Raise StoreMismatchError, which names the difference, if a key differs."""
    differing = [key for key in compared if stored.get(key) != new.get(key)]
    if "kind" in differing:
        differing = ["kind"]  # in that case everything else differs, too
    if "loss" in differing:
        differing = [key for key in differing if key not in FOLLOWS_LOSS]
    if differing:
        shown = _column_differences(place, columns)
        if shown:  # rows, pool and encoders follow, and so may some other keys
            differing = [key for key in differing if key not in FOLLOWS | ROW_KEYS]
        shown += (
            _difference(key, stored.get(key, NO_VALUE), new.get(key, NO_VALUE))
            for key in sorted({*differing} - FOLLOWS or differing)
        )
        more = ""
        if {*differing} - FOLLOWS == {"seed"} and "seed" in stored:
            more = f"pass random_state={stored['seed']} to go on with it, or "
        raise StoreMismatchError(
            f"`{place.name}` {place} holds another plan: {', '.join(shown)}; {more}"
            f"choose another place, one for each plan."
        )


def _column_differences(place: Place, columns: Sequence[str]) -> list[str]:
    """Return the columns that only a finished run has, and those of the plan alone."""
    statements = (read_outcome(place) or {}).get("said", {})
    there = statements.get("input_format", {}).get("columns") or ()
    if not there or not columns:
        return []
    lost, new = (
        [repr(name) for name in some if name not in other_names]
        for some, other_names in ((there, columns), (columns, there))
    )
    return [
        f"{listing(names, 5)} {'is a column' if len(names) == 1 else 'are columns'} "
        f"{where}"
        for names, where in ((lost, "there and not now"), (new, "now and not there"))
        if names
    ]


def _difference(key: str, there: object, now: object) -> str:
    """Return a difference of two plans in words, without hashes.

    Examples
    --------
    >>> _difference("seed", 0, 7), _difference("pool", "none", "rows-" + 32 * "a")
    ('seed is 0 there and 7 now', 'another pool')
    """
    if key in STATEMENTS:
        where = "now and not there" if there == NO_VALUE else "there and not now"
        return f"{STATEMENTS[key]} {where}"
    # A hash has a hexadecimal letter: long numbers, such as seeds, stay. The token of
    # splits is a number of folds, followed by a hash.
    a, b = (
        re.sub(r"(, )?(\w+-)*(?=\w*[a-f])[0-9a-f]{16,}", "", str(value))[:40]
        for value in (there, now)
    )
    if a and b and a != b:
        # A word in backticks is an argument, for which a shell has its own name.
        name = ARGUMENTS.get(key, key)
        return f"{name} is {a} there and {b} now"
    return WORDS.get(key, f"other {key}")


def check_has_results(place: Place) -> None:
    """Raise FileNotFoundError if a folder has no results of dsel."""
    if read_head(place) is not None:
        return
    if place.folder is not None and not place.folder.exists():
        raise FileNotFoundError(
            f"`{place.name}` must have results of dsel, but "
            f"{describe_missing_path(str(place))}"
        )
    if place.folder is not None:
        check_results_folder(place.folder)
    raise FileNotFoundError(
        f"there are no results at {place}: it does not exist, or holds nothing of "
        f"dsel; name the place that `out` named."
    )


@contextmanager
def replace_folder(
    place: PathLike, storage_options: Mapping[str, object] | None, folder: str
) -> Iterator[Place]:
    """Yield a results folder without a plan; new files then replace the old ones."""
    where = Place(place, storage_options=storage_options, name="place")
    claim(where, PLAIN, {})
    before = where.files(folder)
    if where.folder is not None:  # before anything is written
        check_no_links_inside(where.folder / folder, where.name)
    yield where
    for old in before:
        where.remove(f"{folder}/{old}")


def read_outcome(place: Place) -> dict[str, Any] | None:
    """Return the outcome of a run; None if it has not ended."""
    content = place.read(OUTCOME)  # the file is empty where a run was killed
    return _read_json(place, OUTCOME, unseal(content)) if content else None


def _read_json(place: Place, file: str, text: str | bytes | None) -> dict[str, Any]:
    """Return the object in `text`, which is the content of `file`."""
    with suppress(ValueError):
        record = json.loads(text or "")
        if isinstance(record, dict):
            return record
    raise error_of_damaged_file(place, file)


def error_of_damaged_file(place: Place, file: str) -> ValueError:
    """Return the error of a file that is not as it was written."""
    return ValueError(
        f"{file} in `{place.name}` {place} is damaged, or not what dsel wrote there; "
        f"restore it from a copy, since final results are not made again, or choose "
        f"another place."
    )
