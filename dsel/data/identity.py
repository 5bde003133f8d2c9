"""Texts and hashes that identify values, the same in every process.

Stores look up counts by these texts. Values that differ in any way must have different
texts; equal values may have different texts, which only costs counting again.
`tokenize` of Dask is no substitute: the token of a class of a script changes in each
run, and the token of a function of an imported module stays when it is edited. Here a
user's Python code is identified by its content, an installed package by its version.
Data that code reads elsewhere, such as a file, are not part of the hash.
"""

import sys
import sysconfig
import uuid
from collections.abc import Iterable
from hashlib import blake2b, sha256
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from dsel.data.frames import Frame, encode_rows
from dsel.data.row_random import row_random
from dsel.runtime.versions import PACKAGES

NEVER_AGAIN: Final = "of this plan only"
"""Text of a value that cannot be pickled; no other plan has the same text."""

_SCALARS: Final = (type(None), bool, int, float, complex, str, bytes)
_CONSTANTS: Final = (*_SCALARS, tuple, frozenset, CodeType, CellType)
_HASH_SEED: Final = 0x64_73_65_6C
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_OF_CLASSES: Final = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "_abc_impl",
        "__firstlineno__",
        "__slotnames__",
    }
)
"""Entries of a class that do not affect what it does; pickling adds the last one."""
_OF_CODE: Final = (
    *("code", "consts", "names", "varnames", "freevars", "cellvars", "argcount"),
    *("posonlyargcount", "kwonlyargcount", "flags", "exceptiontable"),
)
"""Attributes of code objects that affect what they do, without file and line."""
_STDLIB: Final = sysconfig.get_path("stdlib")
_ADDED_LATER: Final = ("_metadata_request", "_sklearn_output_config")
"""Attributes that clones of estimators keep in addition to their parameters."""


def exact_text(value: object) -> str:
    """Return a text of a value that differs between 1, 1.0 and "1"."""
    try:
        return _digest(value, {}).hex()
    except Exception:  # pickling runs the user's code, which may raise anything
        return f"{NEVER_AGAIN} {uuid.uuid4().hex}"


def is_of_dsel(value: object) -> bool:
    """Return whether a value holds code of dsel and its requirements only.

    Every store has the versions of these, so that no text of their code is needed.
    """
    waiting, visited = [value], dict[int, Any]()
    while waiting:
        item = waiting.pop()
        if id(item) not in visited:
            visited[id(item)] = item  # kept, so that no other object gets its id
            try:
                kind, parts = _parts(item)
            except Exception:  # as in `exact_text`
                return False
            # The version of another package follows the name of the imported object.
            if kind.startswith(("class ", "function", "module ")) or (
                kind.startswith("import ") and kind.count(" ") > 1
            ):
                return False
            waiting += parts
    return True


def _digest(value: object, visited: dict[int, tuple[int, Any]]) -> bytes:
    """Return the hash of a value and everything that it contains; cycles are allowed.

    A hash of the pickle cannot be used: pickles depend on the order of sets and on
    which equal constants are one object, and contain file names and line numbers.
    """
    if type(value) not in _CONSTANTS:
        if id(value) in visited:
            return b"met before, number %d" % visited[id(value)][0]
        # Keeping the value prevents that a new object gets the same id.
        visited[id(value)] = len(visited), value
    kind, parts = _parts(value)
    digest = blake2b(kind.encode(errors="surrogatepass"), digest_size=16)
    for part in parts:
        digest.update(_digest(part, visited))
    return digest.digest()


def _parts(value: Any) -> tuple[str, Iterable[Any]]:
    """Return a text that identifies a value without its parts, and these parts."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
        item = value.item()
        value = item if type(item) in _SCALARS else value
    kind = type(value)
    if kind in _SCALARS:
        return f"{kind.__name__} {value!r}", ()
    if kind in (list, tuple):
        return f"{kind.__name__} {len(value)}", value
    if kind is dict:
        items = sorted(value.items(), key=lambda item: _digest(item[0], {}))
        return f"dict {len(value)}", [part for item in items for part in item]
    if kind in (set, frozenset):
        return kind.__name__, sorted(_digest(member, {}) for member in value)
    if kind in (np.ndarray, np.memmap) and value.dtype.kind in "biufcSUM":
        return f"array {value.shape}", (value.dtype.str, content_hash(value))
    if kind is CodeType:
        return "code", [getattr(value, f"co_{name}") for name in _OF_CODE]
    if kind is CellType:
        return "cell", () if value == CellType() else (value.cell_contents,)
    if isinstance(value, (type, FunctionType, ModuleType)):
        return _parts_of_code(value)
    if hasattr(kind, "get_params"):
        clones = getattr(kind, "__sklearn_clone__", BaseEstimator.__sklearn_clone__)
        # Frozen estimators have another clone method and keep their fitted state, so
        # their parameters do not identify them.
        if clones is BaseEstimator.__sklearn_clone__:
            added = [getattr(value, name, None) or None for name in _ADDED_LATER]
            return "estimator", (kind, value.get_params(deep=False), added)
    reducer = cloudpickle.Pickler.dispatch_table.get(kind)
    reduced = value.__reduce_ex__(4) if reducer is None else reducer(value)
    if isinstance(reduced, str):
        return f"global {getattr(value, '__module__', '')}.{reduced}", ()
    builder, arguments, *more = reduced
    state, items, pairs = (*more[:3], None, None, None)[:3]
    parts = (builder, arguments, state, list(items or ()), list(pairs or ()))
    return f"object of {kind.__qualname__}", parts


def _parts_of_code(value: Any) -> tuple[str, Iterable[Any]]:
    """Identify a class, function or module: the user's by content, others by name."""
    name = str(getattr(value, "__module__", None) or value.__name__)
    module = value if isinstance(value, ModuleType) else sys.modules.get(name)
    file = Path(getattr(module, "__file__", None) or "")
    is_own = bool(file.name) and not is_installed(name, file)
    if isinstance(value, ModuleType):
        full_name = value.__name__
        if is_own:
            return f"module {full_name}", (file.read_bytes(),)
    else:
        full_name = f"{name}.{value.__qualname__}"
        is_own |= name == "__main__" or "<" in value.__qualname__ or module is None
    if not is_own:
        # The versions of these packages are recorded in every store.
        package = name.partition(".")[0]
        if package in ("sklearn", *PACKAGES) or package in sys.stdlib_module_names:
            return f"import {full_name}", ()
        version = getattr(sys.modules.get(package), "__version__", "")
        return f"import {full_name} {version}", ()
    if isinstance(value, type):
        members = {k: v for k, v in vars(value).items() if k not in _OF_CLASSES}
        return f"class {full_name}", (value.__bases__, members)
    return "function", (
        value.__code__,
        value.__defaults__,
        value.__kwdefaults__,
        value.__closure__,
        _globals_of(value.__code__, value.__globals__),
    )


def is_installed(module_name: str, file: Path) -> bool:
    """Return whether a module is a package's, Python's or dsel's, not the user's own.

    The folder does not tell: environments often lie in the folder of the user's code.
    """
    return (
        not {"site-packages", "dist-packages"}.isdisjoint(file.parts)
        or file.is_relative_to(_STDLIB)
        or module_name.partition(".")[0] == "dsel"
    )


def _globals_of(code: CodeType, known: dict[str, Any]) -> dict[str, Any]:
    """Return the global names that a function uses, with their values."""
    used = {name: known[name] for name in code.co_names if name in known}
    for inner in code.co_consts:
        if type(inner) is CodeType:
            used |= _globals_of(inner, known)
    return used


def content_hash(*tables: Any) -> str:
    """Return a hash of the values of arrays, CSR or frames, in their order."""
    digest = sha256()  # hardware support makes it twice as fast as blake2b
    for table in tables:
        if isinstance(table, Frame):
            digest.update(table.schema.text.encode())
        array = encode_rows(table)
        is_sparse = sparse.issparse(array)
        parts = [array.data, array.indices, array.indptr] if is_sparse else [array]
        types = [part.dtype.str for part in parts]
        digest.update(f"{array.shape} {types}".encode())
        for part in parts:
            if part.size:
                rows = np.ascontiguousarray(np.atleast_1d(part))
                digest.update(rows.view(np.uint8).data)
    return digest.hexdigest()[:32]


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """Hash each row to 64 bits; a dense row and its CSR form have the same hash."""
    factors = row_random(_HASH_SEED, 0, 0, X.shape[1]) | np.uint64(1)
    values = X.data if sparse.issparse(X) else X
    # Small integers as floats differ only in a few high bits, of which products modulo
    # 2**64 would lose most, so bits are mixed first. Zero stays zero, as sparse rows
    # need.
    bits = values.view(np.dtype(f"u{values.dtype.itemsize}")).astype(np.uint64)
    bits *= _MIX
    bits ^= bits >> np.uint64(32)
    if not sparse.issparse(X):
        dense: NDArray[np.uint64] = bits @ factors
        return dense
    # Unsigned sums wrap around, so differences of running sums are exact.
    sums = np.cumsum(bits * factors[X.indices], dtype=np.uint64)
    running = np.append(np.uint64(0), sums)
    hashes: NDArray[np.uint64] = running[X.indptr[1:]] - running[X.indptr[:-1]]
    return hashes
