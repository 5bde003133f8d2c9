"""Files of tables: their endings, which one a folder has, and errors that name them."""

import gzip
import lzma
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dask.utils import natural_sort_key

from dsel.checks import check_path, check_url, describe_missing_path
from dsel.data.text import COMPRESSED

_PLAIN_TEXT: Final = (".csv", ".tsv", ".txt")
TEXT_FILES: Final = tuple(
    ending + more for more in ("", *COMPRESSED) for ending in _PLAIN_TEXT
)
PARQUET: Final = (".parquet", ".parq", ".pq")
FEATHER: Final = (".feather", ".arrow")
JSON_LINES: Final = tuple(
    ending + more for more in ("", *COMPRESSED) for ending in (".jsonl", ".ndjson")
)
NPZ: Final = (".npz",)
NPY: Final = (".npy",)
SVMLIGHT: Final = (".svm", ".svmlight", ".libsvm", ".svm.gz", ".svmlight.gz")
ZARR: Final = ".zarr"
ENDINGS: Final = (
    *TEXT_FILES,
    *PARQUET,
    *FEATHER,
    *JSON_LINES,
    *NPZ,
    *NPY,
    *SVMLIGHT,
    ZARR,
)
"""Endings of all files and folders that are read; `tables.FORMATS` has the readers."""
SINGLE_FILES: Final = tuple({*ENDINGS} - {*PARQUET, ZARR})
"""Endings of single files; only a folder of text files may have such a name."""
UNREADABLE: Final = (
    EOFError,
    KeyError,  # from pyarrow, for pandas' metadata about columns
    RuntimeError,  # from the decoders of zarr
    ValueError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    tokenize.TokenError,  # from numpy, for a header
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of readers for files that are cut short or of another kind."""


@contextmanager
def name_file(path: str) -> Iterator[None]:
    """Add the name of the file to error messages that lack it."""
    try:
        yield
    except (*UNREADABLE, OSError) as error:
        if is_of_system(error):
            raise
        text = str(error).strip()
        if path in text:
            raise
        way = "check that the file is whole and of that kind"
        if "allow_pickle" in text:
            way = "save arrays of numbers or text, such as y.astype(str)"
        raise ValueError(
            f"{path!r} cannot be read as the kind of file that its ending names: "
            f"{text.rstrip('.')}; {way}."
        ) from error


@contextmanager
def name_text_file(path: str) -> Iterator[None]:
    """Add the name of the text file to error messages that lack it."""
    try:
        yield
    except (*UNREADABLE, OSError) as error:
        if is_of_system(error):
            raise
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path!r} cannot be read: {text}.") from error


def is_of_system(error: Exception) -> bool:
    """Return whether the system refused the file, with an error that names it.

    Libraries raise OSError without a number for content that they cannot decode.
    """
    return isinstance(error, OSError) and error.errno is not None


def list_formats() -> list[str]:
    """Return the list of endings that are read, for messages."""
    plain = [ending for ending in ENDINGS if not ending.endswith(COMPRESSED)]
    return [*plain, *(f".csv{more}" for more in COMPRESSED)]


def check_source(location: Any, name: str) -> str:
    """Return a path or URL as text; raise where it cannot hold rows.

    Every location that is read is checked here; errors call the argument `name`.
    """
    text = check_path(location, name)
    if "://" in text:
        check_url(text, name)
        return text
    if not os.path.exists(text):
        raise FileNotFoundError(
            f"`{name}` must exist, but {describe_missing_path(text)}"
        )
    lower = text.lower().rstrip("/")
    is_named_as_file = lower.endswith(SINGLE_FILES) and os.path.isdir(text)
    if is_named_as_file and not files_in(text, TEXT_FILES):
        raise IsADirectoryError(
            f"`{name}` {text!r} is a folder, and its name that of a file; name a "
            f"file in it, or rename it."
        )
    return text


def files_in(folder: str, endings: tuple[str, ...]) -> list[str]:
    """Return the visible files of a folder with one of these endings."""
    if not os.path.isdir(folder) or os.path.exists(f"{folder}/zarr.json"):
        return []
    names = [
        name
        for name in sorted(os.listdir(folder))
        if name.lower().endswith(endings) and not name.startswith(("_", "."))
    ]
    return [os.path.join(folder, name) for name in names]


def note_on_file_order(names: Sequence[str]) -> list[str]:
    """Return a note if files are read in another order than their numbers have.

    Dask reads part.2 before part.10, and pandas reads it after that file.
    """
    for name, other in zip(names, sorted(names, key=natural_sort_key), strict=True):
        if name != other:
            return [
                f"the files are read in the order of their names, such as {name} "
                f"before {other}, and their rows have numbers in this order; name a "
                f"column of ids to find them again"
            ]
    return []
