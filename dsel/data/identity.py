"""What values are told by: the same text or hash in every process.

Stores find counts again by them. Two values that differ in anything must differ here;
that equal values may differ too costs counting again and no more. Dask's `tokenize`
tells an own class of a script from itself in the next run, and an edited function of
an imported module not at all: code is told here by what it does.
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

from dsel.data.frames import Frame, encoded
from dsel.data.row_random import row_random
from dsel.runtime.versions import PACKAGES

NEVER_AGAIN: Final = "of this plan only"
"""Stands in the text of what cannot be pickled: no other plan has it."""

_SCALARS: Final = (type(None), bool, int, float, complex, str, bytes)
_PLAIN: Final = "biufcSUM"
_CONSTANTS: Final = (*_SCALARS, tuple, frozenset, CodeType, CellType)
_HASH_SEED: Final = 0x64_73_65_6C
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_OF_CLASSES: Final = frozenset({
    "__dict__", "__weakref__", "__doc__", "_abc_impl", "__firstlineno__",
    "__slotnames__",
})  # fmt: skip
"""Entries of a class that say nothing of what it does; pickling adds the last one."""
_OF_CODE: Final = (
    *("code", "consts", "names", "varnames", "freevars", "cellvars", "argcount"),
    *("posonlyargcount", "kwonlyargcount", "flags", "exceptiontable"),
)
"""Attributes of code that tell what it does, without where it stands."""
_STDLIB: Final = sysconfig.get_path("stdlib")
_ADDED_LATER: Final = ("_metadata_request", "_sklearn_output_config")
"""Attributes that estimators keep when they are cloned, beside their parameters."""


def exact_text(value: Any) -> str:
    """Return a text of a value that tells 1 from 1.0 and from "1".

    The values of a grid mean what they are: ``max_features=1`` is one column,
    ``max_features=1.0`` all of them. Estimators are told by class and parameters, any
    other object by the hash of its content.
    """
    if _is_plain_generic(value):
        return exact_text(value.item())
    if type(value) in _SCALARS:
        return repr(value)
    if type(value) is dict:
        entries = sorted((exact_text(key), exact_text(value[key])) for key in value)
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in entries) + "}"
    if _is_plain_array(value):
        return f"array({value.dtype.str}, {value.shape}, {content_hash(value)})"
    if type(value) in (list, tuple):
        listed = ", ".join(map(exact_text, value))
        return f"[{listed}]" if type(value) is list else f"({listed})"
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        if _is_told_by_parameters(value):
            added = {name: getattr(value, name, None) for name in _ADDED_LATER}
            told = [kind, {name: state for name, state in added.items() if state}]
            params = exact_text(value.get_params(deep=False))
            return f"<{name} {_digest(told, {}).hex()[:16]} {params}>"
        return f"<{name} {_digest(value, {}).hex()}>"
    except Exception:  # whatever a class of the user's raises where it is pickled
        return f"<{name} {NEVER_AGAIN} {uuid.uuid4().hex}>"


def content_hash(*tables: Any) -> str:
    """Return a hash of the values of arrays, CSR or frames, in their order."""
    digest = sha256()  # with the processor's help twice as fast as blake2b
    for table in tables:
        if isinstance(table, Frame):
            digest.update(table.schema.text.encode())
        array = encoded(table)
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        if sparse.issparse(array):
            parts = [array.data, array.indices, array.indptr]
            digest.update(f"{[part.dtype.str for part in parts]}".encode())
        else:
            parts = [array]
        for part in parts:
            if part.size:
                rows = np.ascontiguousarray(np.atleast_1d(part))
                digest.update(rows.view(np.uint8).data)
    return digest.hexdigest()[:32]


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """Hash each row to 64 bits; a dense row and its CSR form have the same hash."""
    factors = row_random(_HASH_SEED, 0, 0, X.shape[1]) | np.uint64(1)
    if not sparse.issparse(X):
        dense: NDArray[np.uint64] = _mixed_bits(X) @ factors
        return dense
    products = _mixed_bits(X.data) * factors[X.indices]
    # Unsigned sums wrap, so differences of running sums are right.
    running = np.append(np.uint64(0), np.cumsum(products, dtype=np.uint64))
    hashes: NDArray[np.uint64] = running[X.indptr[1:]] - running[X.indptr[:-1]]
    return hashes


def _mixed_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of each value as 64 well-mixed ones; zero stays zero.

    Small whole numbers as floats differ in few, high bits: without mixing, products
    modulo 2**64 would keep only those.
    """
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    bits = values.view(unsigned).astype(np.uint64)
    bits *= _MIX
    bits ^= bits >> np.uint64(32)
    return bits


def _digest(value: Any, seen: dict[int, tuple[int, Any]]) -> bytes:
    """Return the hash of a value and all it holds; what was met is named by its turn.

    What cloudpickle would send will not do: it depends on the order of sets, on which
    equal constants are one object, and holds file names and line numbers.
    """
    if type(value) not in _CONSTANTS:
        if id(value) in seen:
            return b"met before, number %d" % seen[id(value)][0]
        # It is kept, so that no other object gets its number.
        seen[id(value)] = len(seen), value
    kind, parts = _parts(value)
    digest = blake2b(kind.encode(errors="surrogatepass"), digest_size=16)
    for part in parts:
        digest.update(_digest(part, seen))
    return digest.digest()


def _parts(value: Any) -> tuple[str, Iterable[Any]]:
    """Return a text that tells what a value is, and what it holds."""
    kind = type(value)
    if kind in _SCALARS:
        return f"{kind.__name__} {value!r}", ()
    if kind in (list, tuple):
        return f"{kind.__name__} {len(value)}", value
    if kind is dict:
        return f"dict {len(value)}", [each for item in value.items() for each in item]
    if kind in (set, frozenset):
        return kind.__name__, sorted(_digest(each, {}) for each in value)
    if _is_plain_generic(value):
        return "scalar", (value.item(),)
    if _is_plain_array(value):
        return "array", (content_hash(value),)
    if kind is CodeType:
        return "code", [getattr(value, f"co_{name}") for name in _OF_CODE]
    if kind is CellType:
        is_filled = value != CellType()
        return "cell", (value.cell_contents,) if is_filled else ()
    if isinstance(value, (type, FunctionType)) and not _is_own(value):
        return f"import {value.__module__}.{value.__qualname__}", _version_of(value)
    if isinstance(value, type):
        held = {k: v for k, v in vars(value).items() if k not in _OF_CLASSES}
        return f"class {value.__module__}.{value.__qualname__}", (value.__bases__, held)
    if kind is FunctionType:
        return "function", (
            value.__code__, value.__defaults__, value.__kwdefaults__,
            value.__closure__, _globals_of(value.__code__, value.__globals__),
        )  # fmt: skip
    if kind is ModuleType and _is_of_user(value):
        return f"module {value.__name__}", (Path(value.__file__ or "").read_bytes(),)
    if kind is ModuleType:
        return f"module {value.__name__}", _version_of(value)
    reducer = cloudpickle.Pickler.dispatch_table.get(kind)
    found = value.__reduce_ex__(4) if reducer is None else reducer(value)
    if isinstance(found, str):
        return f"global {getattr(value, '__module__', '')}.{found}", ()
    builder, arguments, *more = found
    state, items, pairs = (*more[:3], None, None, None)[:3]
    parts = (builder, arguments, state, list(items or ()), list(pairs or ()))
    return f"object of {kind.__qualname__}", parts


def _globals_of(code: CodeType, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a function reads of its module, in the order of the names."""
    found = {name: known[name] for name in sorted(code.co_names) if name in known}
    for inner in code.co_consts:
        if type(inner) is CodeType:
            found |= _globals_of(inner, known)
    return found


def _is_own(value: Any) -> bool:
    """Whether a class or function is the user's: told by its code, not by its name."""
    module = sys.modules.get(value.__module__)
    unnamed = value.__module__ == "__main__" or "<" in value.__qualname__
    return unnamed or module is None or _is_of_user(module)


def _is_of_user(module: ModuleType) -> bool:
    """Whether a module lies in a file that belongs to no installed package."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "dsel":
        return False
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return not installed and not Path(file).is_relative_to(_STDLIB)


def _version_of(value: Any) -> tuple[str, ...]:
    """Return the version of the package of a class or function, as of xgboost.

    There is none for those whose versions every store holds.
    """
    name = getattr(value, "__module__", None) or value.__name__
    package = str(name).partition(".")[0]
    if package in ("sklearn", *PACKAGES) or package in sys.stdlib_module_names:
        return ()
    version = getattr(sys.modules.get(package), "__version__", "")
    return (str(version),) if version else ()


def _is_told_by_parameters(value: Any) -> bool:
    """Whether `clone` makes an equal estimator from class and parameters.

    Those that clone in their own way, as a frozen one, keep what they have learned.
    """
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return False
    own = getattr(type(value), "__sklearn_clone__", None)
    return own in (None, BaseEstimator.__sklearn_clone__)


def _is_plain_generic(value: Any) -> bool:
    is_plain = isinstance(value, np.generic) and value.dtype.kind in "biufcSU"
    return is_plain and type(value.item()) in _SCALARS


def _is_plain_array(value: Any) -> bool:
    return type(value) in (np.ndarray, np.memmap) and value.dtype.kind in _PLAIN
