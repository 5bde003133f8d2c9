"""The chosen model in the store: written with skops, opened without unpickling."""

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import zarr
from zarr.abc.store import Store

from dsel.results.log import create_log, open_log, read_log, write_payload
from dsel.results.store import (
    make_root,
    naming_damage,
    naming_place,
    open_store,
    read_root,
)

GROUP: Final = "model"
POINTER: Final = "log"
KEY: Final = "key"
WAY_OUT: Final = (
    "delete model in it and run the same command again, which fits it from what is kept"
)
OURS: Final = ("dsel.models.", "dsel.kernels.", "dsel.searches.")
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
    place
        Directory, fsspec URL or zarr store.
    key
        What tells this model from others; `model_key` gives it back.
    storage_options
        Passed to fsspec with a URL.

    Raises
    ------
    ModuleNotFoundError
        Where skops is not installed.
    """
    payload = _skops().dumps(model)
    store = open_store(place, storage_options=storage_options)
    with naming_place(store), naming_damage(store, way_out=WAY_OUT):
        group = make_root(store).require_group(GROUP)
        before = group.attrs.get(POINTER)
        fresh = "skops-2" if before == "skops-1" else "skops-1"
        write_payload(create_log(group, fresh), payload, at=0)
        group.attrs.put({POINTER: fresh, KEY: key})
        if before is not None:
            del group[str(before)]


def open_model(
    place: str | os.PathLike[str] | Store,
    *,
    trusted: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Open the model that `save_model` or a run kept.

    Parameters
    ----------
    place
        Directory, fsspec URL or zarr store.
    trusted
        Full names of types, beside those of numpy, scipy, scikit-learn and dsel, that
        may be built: those of your own estimators, after a look at them.
    storage_options
        Passed to fsspec with a URL.

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
    payload = _payload(store)
    found = skops.get_untrusted_types(data=payload)
    ours = [name for name in found if _is_ours(name)]
    unknown = sorted(set(found) - {*ours, *trusted})
    if unknown:
        raise ValueError(
            f"the model at {store} has types that nobody said to trust: "
            f"{', '.join(unknown)}; if you know them, pass trusted={unknown!r}."
        )
    return skops.loads(payload, trusted=[*ours, *trusted])


def model_key(
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> str | None:
    """Return the key of the model kept at a place; None where none is."""
    store = open_store(place, storage_options=storage_options, read_only=True)
    attributes = _attributes(store)
    return str(attributes.get(KEY, "")) if POINTER in attributes else None


def _attributes(store: Store) -> dict[str, Any]:
    """Return what is noted of the model; empty where there is none."""
    read_root(store)
    with naming_damage(store, way_out=WAY_OUT):
        root = zarr.open_group(store, mode="r", zarr_format=3)
        return dict(root[GROUP].attrs) if GROUP in root else {}


def _payload(store: Store) -> bytes:
    name = _attributes(store).get(POINTER)
    if name is None:
        raise FileNotFoundError(
            f"{store} holds no model; run the search again with this `out`, which "
            f"takes the counts from there."
        )
    with naming_damage(store, way_out=WAY_OUT):
        group = zarr.open_group(store, path=GROUP, mode="r", zarr_format=3)
        payloads = read_log(open_log(group, str(name))).payloads
    if not payloads:
        raise ValueError(f"the model at {store} is damaged; {WAY_OUT}.")
    return payloads[0]


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
