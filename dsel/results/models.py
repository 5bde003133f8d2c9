"""The chosen model in the store: written with skops, opened without unpickling."""

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from zarr.abc.store import Store
from zarr.core.sync import sync

from dsel.results.records import (
    blocks_of,
    decode,
    encode,
    read_object,
    storable,
    write_object,
)
from dsel.results.store import (
    make_root,
    naming_damage,
    naming_place,
    open_store,
    read_root,
)

OBJECT: Final = "model/skops.records"
KEY: Final = "key"
MODEL: Final = "model"
BYTES: Final = "bytes"
WAY_OUT: Final = "run the same command again, which fits the model anew"
SAFE: Final = ("numpy.dtype",)
"""What skops does not trust of itself, though a fitted SimpleImputer has it."""
OURS: Final = (
    "dsel.families.", "dsel.mcpl.", "dsel.kernels.",
    "dsel.nonconformity.", "dsel.searches.",
)  # fmt: skip
"""Our own estimators and what they are made of: arrays, and safe to build."""


def save_model(
    model: Any,
    place: str | os.PathLike[str] | Store,
    *,
    key: str = "",
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted estimator beside the cube, in the place of one already there.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator.
    place, storage_options
        As :func:`save_results` takes them.
    key
        What tells this model from others; `model_key` gives it back.

    Raises
    ------
    ModuleNotFoundError
        Where skops is not installed.
    """
    record = storable({BYTES: np.frombuffer(_skops().dumps(model), dtype=np.uint8)})
    store = open_store(place, storage_options=storage_options)
    with naming_place(store):
        make_root(store)
        write_object(store, OBJECT, encode([(MODEL, record)], about={KEY: key}))


def open_model(
    place: str | os.PathLike[str] | Store,
    *,
    trusted: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Open the model that `save_model` or a run kept.

    Parameters
    ----------
    place, storage_options
        As :func:`save_results` takes them.
    trusted
        Full names of types, beside those of numpy, scipy, scikit-learn and dsel, that
        may be built: those of your own estimators, after a look at them.

    Returns
    -------
    estimator
        Predicts as the saved one did.

    Raises
    ------
    FileNotFoundError
        Where no model was kept.
    ModuleNotFoundError
        Where skops is not installed.
    ValueError
        Where the model has types that are not trusted.
    """
    skops = _skops()
    store = open_store(place, storage_options=storage_options, read_only=True)
    kept = _read(store)
    if kept is None:
        raise FileNotFoundError(
            f"{store} holds no model; run the search again with this `out`, which "
            f"takes the counts from there."
        )
    _, payload = kept
    found = skops.get_untrusted_types(data=payload)
    ours = [name for name in found if name in SAFE or _is_ours(name)]
    unknown = sorted(set(found) - {*ours, *trusted})
    if unknown:
        raise ValueError(
            f"the model at {store} has types that nobody said to trust: "
            f"{', '.join(unknown)}; if you know them, pass trusted={unknown!r}."
        )
    return skops.loads(payload, trusted=[*ours, *trusted])


def model_key(place: str | os.PathLike[str] | Store) -> str | None:
    """Return the key of the model kept at a place; None where none is."""
    found = _read(open_store(place, read_only=True))
    return None if found is None else found[0]


def _read(store: Store) -> tuple[str, bytes] | None:
    """Return the key and the bytes of the model; None where there is none."""
    read_root(store)
    with naming_damage(store, way_out=WAY_OUT):
        payload = sync(read_object(store, OBJECT))
        if payload is None:
            return None
        [block] = blocks_of(payload)
        about, records = decode(block)
        return str(about[KEY]), records[MODEL][BYTES].tobytes()


def _is_ours(name: str) -> bool:
    """Whether a full name is that of a class of dsel, not of what its files import."""
    if not name.startswith(OURS):
        return False
    module, _, last = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__.startswith(OURS)


def _skops() -> Any:
    try:
        from skops import io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "keeping models needs skops, which is not installed; pip install "
            "'dsel[models]'."
        ) from error
    return io
