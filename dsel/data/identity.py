"""What values are told by: the same text or hash in every process.

Stores find counts again by them. Two values that differ in anything must differ here;
that equal values may differ too costs counting again and no more. Dask's `tokenize`
tells an own class of a script from itself in the next run, and an edited function of
an imported module not at all: code is told here by what it does.
"""

import io
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
_AT_ONCE: Final = 2**24
_HASH_SEED: Final = 0x64_73_65_6C
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_OF_CLASSES: Final = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "_abc_impl", "__firstlineno__"),
        "__slotnames__",
    )
)
"""Entries of a class that say nothing of what it does; pickling adds the last one."""
_ADDED_LATER: Final = ("_metadata_request", "_sklearn_output_config")
"""Attributes that estimators keep when they are cloned, beside their parameters."""


def exact_text(value: Any) -> str:
    """Return a text of a value that tells 1 from 1.0 and from "1".

    The values of a grid mean what they are: ``max_features=1`` is one column,
    ``max_features=1.0`` all of them. Estimators are told by class and parameters, any
    other object by the hash of its content.

    Examples
    --------
    >>> exact_text({"b": [1, 1.0], "a": None})
    "{'a': None, 'b': [1, 1.0]}"
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
            name += _version_of(kind)
            return f"<{name} {_Content().digest(told).hex()[:16]} {params}>"
        return f"<{name} {_Content().digest(value).hex()}>"
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
            for rows in _slices(np.asarray(part)):
                if rows.size:
                    digest.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return digest.hexdigest()[:32]


def _slices(array: NDArray[Any]) -> Iterable[NDArray[Any]]:
    """Cut an array into pieces: one that is not contiguous is not copied whole."""
    if array.ndim == 0:
        return (array[np.newaxis],)
    row_nbytes = max(array.nbytes // max(len(array), 1), 1)
    step = max(_AT_ONCE // row_nbytes, 1)
    return (array[first : first + step] for first in range(0, len(array), step))


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """Hash each row to 64 bits; a dense row and its CSR form have the same hash."""
    factors = row_random(_HASH_SEED, 0, 0, X.shape[1]) | np.uint64(1)
    if not sparse.issparse(X):
        dense: NDArray[np.uint64] = mixed_bits(X) @ factors
        return dense
    products = mixed_bits(X.data) * factors[X.indices]
    # Unsigned sums wrap, so differences of running sums are right.
    running = np.append(np.uint64(0), np.cumsum(products, dtype=np.uint64))
    hashes: NDArray[np.uint64] = running[X.indptr[1:]] - running[X.indptr[:-1]]
    return hashes


def mixed_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of each value as 64 well-mixed ones; zero stays zero.

    Small whole numbers as floats differ in few, high bits: without mixing, products
    modulo 2**64 would keep only those.
    """
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    bits = values.view(unsigned).astype(np.uint64)
    bits *= _MIX
    bits ^= bits >> np.uint64(32)
    return bits


class _Content(cloudpickle.Pickler):  # type: ignore[misc]
    """Walks through what cloudpickle would send, and hashes it.

    The bytes themselves will not do: they depend on the order of sets, on which equal
    constants are one object, and hold file names, line numbers and random names of
    classes.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the number of one

    def digest(self, value: Any) -> bytes:
        """Return the hash of a value; what was met before is named by its turn."""
        if type(value) not in _CONSTANTS:
            if id(value) in self._seen:
                return b"met before, number %d" % self._seen[id(value)]
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        kind, parts = self._parts(value)
        digest = blake2b(kind.encode(errors="surrogatepass"), digest_size=16)
        for part in parts:
            digest.update(self.digest(part))
        return digest.digest()

    def _parts(self, value: Any) -> tuple[str, Iterable[Any]]:
        """Return a text that tells what a value is, and what it holds."""
        kind = type(value)
        if kind in _SCALARS:
            return f"{kind.__name__} {value!r}", ()
        if kind in (list, tuple):
            return f"{kind.__name__} {len(value)}", value
        if kind is dict:
            return f"dict {len(value)}", [x for item in value.items() for x in item]
        if kind in (set, frozenset):
            return kind.__name__, sorted(_Content().digest(each) for each in value)
        if _is_plain_generic(value):
            return "scalar", (value.item(),)
        if _is_plain_array(value):
            return "array", (content_hash(value),)
        return self._parts_of_code(value) or self._parts_of_object(value)

    def _parts_of_code(self, value: Any) -> tuple[str, Iterable[Any]] | None:
        if type(value) is CodeType:
            return "code", _of_code(value)
        if type(value) is CellType:  # methods share one until cloudpickle made them
            try:
                return "cell", (value.cell_contents,)
            except ValueError:
                return "empty cell", ()
        if isinstance(value, type):
            return self._parts_of_class(value)
        if type(value) is FunctionType:
            return self._parts_of_function(value)
        if type(value) is ModuleType and getattr(value, "__file__", None):
            return f"module {value.__name__} {_source_of(value)}", ()
        return None

    def _parts_of_class(self, value: type) -> tuple[str, Iterable[Any]]:
        is_sent = self.reducer_override(value) is not NotImplemented
        source = "" if is_sent else _source_of(value)
        if not is_sent and not source:
            return _by_name(value), ()
        own = {k: v for k, v in vars(value).items() if k not in _OF_CLASSES}
        return f"class {_by_name(value)} {source}", (value.__bases__, own)

    def _parts_of_function(self, value: FunctionType) -> tuple[str, Iterable[Any]]:
        found = self.reducer_override(value)
        source = _source_of(value) if found is NotImplemented else ""
        if found is NotImplemented and not source:
            return _by_name(value), ()
        if found is not NotImplemented:
            return "function", (value.__code__, found[2])
        # The file may have been changed since it was imported.
        held = (value.__defaults__, value.__kwdefaults__, value.__closure__)
        return f"function {_by_name(value)} {source}", (value.__code__, held)

    def _parts_of_object(self, value: Any) -> tuple[str, Iterable[Any]]:
        reducer = self.dispatch_table.get(type(value))
        found = value.__reduce_ex__(4) if reducer is None else reducer(value)
        if isinstance(found, str):
            return f"global {getattr(value, '__module__', '')}.{found}", ()
        builder, arguments, *more = found
        state, items, pairs = (*more[:3], None, None, None)[:3]
        parts = (builder, arguments, state, list(items or ()), list(pairs or ()))
        return f"object of {type(value).__qualname__}", parts


def _of_code(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does, without where it stands."""
    return (
        code.co_code,
        code.co_consts,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_exceptiontable,
    )


def _by_name(value: Any) -> str:
    return f"import {value.__module__}.{value.__qualname__}{_version_of(value)}"


def _version_of(value: Any) -> str:
    """Return the version of the package of a class or function, as of xgboost.

    It is empty for those whose versions every store holds.
    """
    package = str(value.__module__).partition(".")[0]
    if package in ("sklearn", *PACKAGES) or package in sys.stdlib_module_names:
        return ""
    version = getattr(sys.modules.get(package), "__version__", "")
    return f" {version}" if version else ""


def _source_of(value: Any) -> str:
    """Return the hash of the source file of what is imported.

    It is empty for installed packages, whose versions are told elsewhere: a module of
    one's own has none.
    """
    module = value if isinstance(value, ModuleType) else sys.modules[value.__module__]
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "dsel":
        return ""
    path = Path(file)
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    if installed or path.is_relative_to(sysconfig.get_path("stdlib")):
        return ""
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


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
