"""Fitted models beside results: written with skops, opened without unpickling."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zipfile import BadZipFile

from dsel.results.place import (
    MAKE_ANEW,
    MODELS,
    Place,
    check_kept,
    read_outcome,
    replacing,
    seal,
    stamp,
    unseal,
)
from dsel.stores import BAD_HEADER

MODEL: Final = "model"
"""Name of the only model of a place without a plan."""
TRUSTED: Final = (
    "numpy.dtype",  # a fitted SimpleImputer has one
    "dsel.families.family.Candidate",
    "dsel.kernels.functions.Polynomial",
    "dsel.least_squares.estimators.KernelLeastSquares",
    "dsel.least_squares.estimators.KernelLeastSquaresClassifier",
    "dsel.mcpl.estimators.MaximumLikelihoodLDA",
    "dsel.mcpl.estimators.OracleLDA",
    "dsel.mcpl.estimators.SemiSupervisedLDA",
    "dsel.nonconformity.classifier.NonconformityClassifier",
    "dsel.nonconformity.models.ModelSet",
    *(  # fitted encoders and SVMs hold some; skops writes no other formats
        f"scipy.sparse._{form}.{form}_{kind}"
        for form in ("bsr", "coo", "csc", "csr", "dia")
        for kind in ("array", "matrix")
    ),
)
"""What may be built beside what skops trusts of itself: our own estimators and what
they hold, each by its full name, so that no name that our modules import is one."""


def save_model(
    model: Any,
    place: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted estimator, in the place of one already there.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator.
    place, storage_options
        As `save_results` takes them; the model lies beside the cube.

    Raises
    ------
    ModuleNotFoundError
        Where skops is not installed.
    """
    with replacing(place, storage_options, MODELS) as where:
        write_model(where, MODEL, model)


def open_model(
    place: str | os.PathLike[str],
    *,
    name: str | None = None,
    trusted: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Open a model that a run or `save_model` kept.

    Parameters
    ----------
    place, storage_options
        As `open_results` takes them.
    name
        Which model of a run, such as ``all_rows``; by default the one that was handed
        over.
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
        Where nothing is there, or no model was kept.
    ModuleNotFoundError
        Where skops is not installed.
    ValueError
        Where it is damaged, or has types that are not trusted.
    """
    where = Place(place, storage_options=storage_options, name="place")
    check_kept(where)
    outcome, way_out = read_outcome(where), "`save_model` keeps one"
    if outcome is None:
        files = [each for each in where.files(MODELS) if each.startswith(MODEL)]
        kept, handed_over = {MODEL: files[-1]} if files else {}, MODEL
    else:
        kept, handed_over = outcome["models"], outcome["said"].get("deploy")
        way_out = (
            "it was searched without skops, or skops does not take them: the same line "
            "makes them again; with pip install 'dsel[models]' `save_model` keeps one"
        )
    wanted = str(name or handed_over)
    if wanted not in kept:
        has = f"it has {', '.join(kept)}" if kept else f"it has none; {way_out}"
        raise FileNotFoundError(f"{where} holds no model {wanted!r}; {has}.")
    return read_model(where, kept[wanted], trusted)


def write_model(place: Place, name: str, model: Any) -> str:
    """Write a model; return the name of its file."""
    file = f"{name}-{stamp()}.skops"
    place.write({f"{MODELS}/{file}": seal(_skops().dumps(model))})
    return file


def read_model(place: Place, file: str, trusted: Sequence[str]) -> Any:
    """Return the model of a file; see `open_model`."""
    skops, may_build = _skops(), {*TRUSTED, *trusted}
    payload = unseal(place.read(f"{MODELS}/{file}")) or b""
    try:
        unknown = sorted({*skops.get_untrusted_types(data=payload)} - may_build)
        if not unknown:
            return skops.loads(payload, trusted=sorted(may_build))
    except (BadZipFile, *BAD_HEADER) as error:
        raise ValueError(
            f"the model {file} at {place} is damaged; {MAKE_ANEW}."
        ) from error
    raise ValueError(
        f"the model at {place} has types that nobody said to trust: "
        f"{', '.join(unknown)}; if you know them, pass trusted={unknown!r}."
    )


def _skops() -> Any:
    try:
        from skops import io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "keeping models needs skops, which is not installed; pip install "
            "'dsel[models]'."
        ) from error
    return io
