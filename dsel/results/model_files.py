"""Fitted models next to results, written by skops and opened without unpickling."""

import json
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from io import BytesIO
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from dsel.arrays import Estimator
from dsel.checks import check_string, check_strings
from dsel.errors import DselWarning, warn
from dsel.kernels import Kernel
from dsel.results.place import (
    MAKE_ANEW,
    MODELS,
    PLAIN,
    Place,
    check_has_results,
    read_head,
    read_outcome,
    replace_folder,
    seal,
    stamp,
    unseal,
)
from dsel.typing import Options, PathLike
from dsel.zarr_stores import BAD_HEADER

MODEL: Final = "model"
"""Name of the only model in a folder that belongs to no plan."""
TRUSTED: Final = (
    "numpy.dtype",  # a fitted SimpleImputer has one
    # Types in the models that `dsel select` knows by name.
    "dsel.data.column_encoders.days_since_1970",
    "dsel.cli.encoders.days_since_1970",  # in results of before 0.3
    # This type is part of models of scikit-learn until 1.6.
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "dsel.families.family.Candidate",
    "dsel.least_squares.estimators.KernelLeastSquares",
    "dsel.least_squares.estimators.KernelLeastSquaresClassifier",
    "dsel.mcpl.estimators.MaximumLikelihoodLDA",
    "dsel.mcpl.estimators.OracleLDA",
    "dsel.mcpl.estimators.SemiSupervisedLDA",
    "dsel.nonconformity.classifier.NonconformityClassifier",
    "dsel.nonconformity.models.ModelSet",
    *(  # an SVC has one as its parameter, where scikit-learn does not know it by name
        f"{kernel.__module__}.{kernel.__qualname__}"
        for kernel in Kernel.__subclasses__()
        if kernel.__module__.startswith("dsel.kernels.")
    ),
    *(  # fitted encoders and SVMs hold some; skops writes no other formats
        f"scipy.sparse._{form}.{form}_{kind}"
        for form in ("bsr", "coo", "csc", "csr", "dia")
        for kind in ("array", "matrix")
    ),
)
"""Types that may be built in addition to those that skops trusts: dsel's own, those in
the models of `dsel select`, and the types of their attributes. Full names only: a
prefix such as ``dsel.`` would trust every name that dsel's modules import, too."""
_OF_SEARCHES: Final = (
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    *(
        f"sklearn.model_selection._split.{name}"
        for name in (
            "GroupKFold", "KFold", "RepeatedKFold", "RepeatedStratifiedKFold",
            "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold",
            "StratifiedShuffleSplit", "TimeSeriesSplit",
        )
    ),
)  # fmt: skip
"""Types in a fitted `GridSearchCV`: its splitter and its scorer, which have plain
values."""
IMPORTABLE: Final = (
    "define functions and classes at the top of a module that can be imported"
)
"""Advice if a model has code that another process cannot import."""


def save_model(
    model: Estimator, place: PathLike, *, storage_options: Options | None = None
) -> None:
    """Save a fitted estimator; it replaces one that is there already.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator.
    place, storage_options
        As for `save_results`; the model is stored next to the cube.

    Raises
    ------
    ValueError
        If skops cannot write the model, or cannot read it back.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.dummy import DummyClassifier
    >>> with TemporaryDirectory() as place:
    ...     save_model(DummyClassifier().fit([[0]], ["a"]), place)
    ...     open_model(place).predict([[1]]).tolist()
    ['a']
    """
    try:
        content = dump_model(model)  # before anything is replaced
    except ValueError as error:
        raise ValueError(f"`model` cannot be kept: {error}") from error
    with replace_folder(place, storage_options, MODELS) as where:
        write_model(where, MODEL, content)


def open_model(
    place: PathLike,
    *,
    name: str | None = None,
    trusted: Sequence[str] = (),
    storage_options: Options | None = None,
) -> Any:
    """Open a model that a run or `save_model` stored.

    Parameters
    ----------
    place, storage_options
        As for `open_results`.
    name
        Name of a model of a run, such as ``all_rows``; by default the deployed one.
    trusted
        Full names of types that may be built in addition to those of numpy, scipy,
        scikit-learn and dsel: those of your own estimators, after you inspected them.

    Returns
    -------
    estimator
        Predicts as the saved one did.

    Raises
    ------
    FileNotFoundError
        If nothing is there, or no model was stored.
    ValueError
        If it is damaged, has types that are not trusted, or was written by a newer
        skops.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> from tempfile import TemporaryDirectory
    >>> from dsel import certify
    >>> with TemporaryDirectory() as folder:
    ...     outcome = certify(SVC(), X, y, out=f"{folder}/results", random_state=0)
    ...     model = open_model(f"{folder}/results")
    >>> model.predict(X[:3]).tolist()
    [0, 0, 0]
    """
    where = Place(place, storage_options=storage_options, name="place")
    if name is not None:
        check_string(name, "name")
    trusted = check_strings(trusted, "trusted")
    check_has_results(where)
    outcome = read_outcome(where)
    if outcome is None:
        files = [name for name in where.files(MODELS) if name.startswith(MODEL)]
        stored = {MODEL: files[-1]} if files else {}
        deployed = MODEL
        reasons = {}
        way_out = "`save_model` keeps one"
        if (read_head(where) or {}).get("kind") != PLAIN:
            way_out = "its run has not ended; run the same command again to go on"
    else:
        stored = outcome["models"]
        deployed = outcome["said"].get("deploy")
        reasons = outcome["said"].get("not_kept", {})
        way_out = (
            "the script or command that searched makes them again; run it with an "
            "`out` of its own to keep them"
        )
    wanted = str(name or deployed)
    if wanted not in stored:
        has = f"it has {', '.join(stored)}" if stored else f"it has none; {way_out}"
        if wanted in reasons:
            has = f"it could not be kept: {reasons[wanted]}; {way_out}"
        raise FileNotFoundError(f"`place` {where} holds no model {wanted!r}; {has}.")
    return read_model(where, stored[wanted], trusted)


def dump_model(model: Any, rows: Any = None) -> bytes:
    """Return a model as skops writes it; raise ValueError if it cannot be stored.

    It is read back at once, and must predict the same for `rows`, if these are passed.
    """
    from skops import io  # takes seconds to import

    try:
        content: bytes = io.dumps(model)
        types = io.get_untrusted_types(data=content)
        unnamed = [name for name in types if "<" in name]  # cannot be read back
        # Trusting all types is safe here: their objects are in this process already.
        same = None if unnamed else io.loads(content, trusted=types)
        is_same = True
        if rows is not None and same is not None:
            # The model may warn about the rows, which is of no interest here.
            with warnings.catch_warnings(action="ignore"):
                first, again = (np.asarray(m.predict(rows)) for m in (model, same))
            is_float = first.dtype.kind == "f"
            is_same = np.array_equal(first, again, equal_nan=is_float)
    # Methods of estimators are called here, and may raise any error.
    except Exception as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"skops cannot write it and read it back ({text})") from error
    if unnamed:
        raise ValueError(
            f"it holds {unnamed[0]}, which has no name in a module; {IMPORTABLE}"
        )
    if not is_same:
        raise ValueError("it predicts something else when it is read back")
    return content


def script_types(content: bytes) -> list[str]:
    """Return the types in a written model that only the running script can import."""
    from skops import io

    types = io.get_untrusted_types(data=content)
    return [name for name in types if name.startswith("__main__.")]


@cache
def _trusted_types() -> frozenset[str]:
    """Return the types that may be built, with the metrics of `scoring` by name."""
    from sklearn.metrics import get_scorer, get_scorer_names

    metrics = [get_scorer(name)._score_func for name in get_scorer_names()]
    names = [f"{metric.__module__}.{metric.__qualname__}" for metric in metrics]
    return frozenset((*TRUSTED, *_OF_SEARCHES, *names))


def untrusted_types(model: Estimator) -> list[str]:
    """Return the types in a model that `open_model` does not trust by default."""
    from skops import io

    types = io.get_untrusted_types(data=io.dumps(model))
    return sorted({*types} - _trusted_types())


def write_model(place: Place, name: str, content: bytes) -> str:
    """Write what `dump_model` returned; return the name of its file."""
    file = f"{name}-{stamp()}.skops"
    place.write({f"{MODELS}/{file}": seal(content)})
    return file


def read_model(place: Place, file: str, trusted: Sequence[str]) -> Any:
    """Return the model in a file; see `open_model`."""
    from skops import io

    may_build = {*_trusted_types(), *trusted}
    payload = unseal(place.read(f"{MODELS}/{file}")) or b""
    try:
        with ZipFile(BytesIO(payload)) as archive:
            written_by = json.loads(archive.read("schema.json"))["_skops_version"]
        unknown = sorted({*io.get_untrusted_types(data=payload)} - may_build)
    except (BadZipFile, *BAD_HEADER) as error:
        if "might need to update skops" in str(error):
            raise ValueError(
                f"the model at {place} was written by skops {written_by}, and this is "
                f"{version('skops')}; pip install 'skops>={written_by}'."
            ) from error
        raise ValueError(
            f"the model {file} at {place} is damaged; {MAKE_ANEW}."
        ) from error
    if unknown:
        options = " ".join(f"--trust {name}" for name in unknown)
        raise ValueError(
            f"the model at {place} has types that are not trusted: "
            f"{', '.join(unknown)}; if you know them, pass trusted={unknown!r}, in a "
            f"shell {options}."
        )
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model = io.loads(payload, trusted=sorted(may_build))
        except (ImportError, *BAD_HEADER) as error:  # not damaged: its checksum matches
            raise ValueError(
                f"the model at {place} cannot be built here: "
                f"{' '.join(str(error).split()).rstrip('.')}; install the packages "
                f"that it was made with, and call from the folder of your own modules."
            ) from error
    other_versions = set()
    for message in (warning.message for warning in caught):
        # Many objects may give this warning, which becomes one message.
        if isinstance(message, InconsistentVersionWarning):
            other_versions.add(message.original_sklearn_version)
        else:
            warnings.warn(message, stacklevel=2)
    if other_versions:
        warn(
            f"the model at {place} was fitted by scikit-learn {min(other_versions)}, "
            f"and this is {version('scikit-learn')}, where it may predict differently "
            f"from the model that was counted; pip install "
            f"scikit-learn=={min(other_versions)}.",
            DselWarning,
        )
    return model


def warn_that_models_are_lost(reason: str, place: object) -> None:
    """Warn that a store does not keep the models of an outcome."""
    warn(
        f"models cannot be kept in `out` {place}: {reason}. Results and certificates "
        f"are kept; predict before this process ends, or change the estimator and "
        f"search in another `out`.",
        DselWarning,
    )
