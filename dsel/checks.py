"""Input checks, one for each kind of quantity; messages name argument and value.

Each raises TypeError for a value of the wrong kind, ValueError for one out of range;
`check_choice`, whose range is a list of texts, raises ValueError for both.
"""

import functools
import inspect
import math
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from enum import Enum
from numbers import Integral, Number, Real
from typing import Any, Final, NoReturn, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "delta": ("alpha", "confidence", "confidence_level", "level"),
    "pool": ("unlabeled", "unlabelled", "X_unlabeled", "X_pool", "X_test"),
    "cv": ("n_folds", "folds", "n_splits", "k"),
    "model": ("estimator", "base_estimator", "clf", "classifier", "procedure"),
    "estimator": ("model", "base_estimator", "clf", "classifier"),
    "param_grid": ("grid", "params", "parameters"),
    "random_state": ("seed", "random_seed", "rng"),
    "loss": ("scoring", "metric", "score"),
    "n_jobs": ("n_workers", "workers", "n_threads", "threads"),
    "out": ("path", "folder", "directory", "output"),
    "fit_params": ("sample_weight", "weights"),
    "n_queries": ("queries",),
    "report_by": ("by", "groupby"),
    "verbose": ("progress", "quiet"),
    "trusted": ("trust", "trusted_types"),
    "source": ("pool", "X", "X_new", "table"),
    "cv_error": ("accuracy", "error", "score"),
}
"""Names that other libraries, or the shell, have for an argument."""
MEANINGS: Final[Mapping[str, str]] = {
    "delta": ", the probability that a bound fails, such as 0.05",
    "fit_params": ", a dict such as {'sample_weight': weights}",
}
"""The argument in words, where another name may stand for something else."""
SHORTEST_START: Final = 3
"""Fewest letters of a beginning that stands for a whole name."""
MOST_CHARACTERS: Final = 100
"""Most characters of a value in a message."""
MOST_COLUMNS_NAMED: Final = 5
"""Most wrong columns in a message."""
MOST_AXES: Final = 16
"""Most axes of an argument; numpy broadcasts 32, and results have more axes."""
MOST_LISTED: Final = 20
"""Most choices in a message."""
MOST_WITH_SUGGESTION: Final = 8
"""Most choices that a message lists next to the one that is likely meant."""
MOST_INTEGER: Final = 2**63 - 1
"""Largest integer of int64."""
SMALLEST_LEVEL: Final = 0.001
"""The smallest p-value that the two-sample test of `monitor` can have."""
PLAIN_TYPES: Final = (str, bytes, Number, list, tuple, dict, set, frozenset, type)
"""Types whose values a message shows, cut where they are long."""
LOCAL: Final = ("", "file", "local", "memory")
"""Protocols of local files; their paths may contain any character."""


def show(value: object) -> str:
    """Return any value as one short line for a message.

    Only a value that reads well on one line is shown itself. Arrays, frames and results
    print tables; the message has their type and shape instead. The `repr` of a user's
    class may raise: then its error would replace the message.

    Examples
    --------
    >>> show("a"), show(np.arange(2)), show(np.eye(2))
    ("'a'", 'array([0, 1])', 'ndarray of shape (2, 2)')
    """
    try:
        whole = repr(value)
    except Exception:  # a `repr` of a user's class may raise any error
        return describe_type(value)
    # The repr of a call, as of estimators, is cut rather than left out, since it begins
    # with the class.
    is_call = whole.startswith(f"{type(value).__name__}(")
    is_readable = is_call or isinstance(value, PLAIN_TYPES)
    text = " ".join(whole.split())
    if not is_readable and (len(text) > MOST_CHARACTERS or "\n" in whole):
        return describe_type(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def describe_type(value: object) -> str:
    """Return the type of a value, with its shape if it has one, for a message.

    Examples
    --------
    >>> describe_type(np.eye(2)), describe_type({})
    ('ndarray of shape (2, 2)', 'dict')
    """
    shape = getattr(value, "shape", None)
    # A delayed object of Dask has any attribute, but its `shape` is no tuple.
    end = f" of shape {shape}" if isinstance(shape, tuple) else ""
    return f"{type(value).__name__}{end}"


def show_model(value: object) -> str:
    """Return what was passed in the place of a model, for a message.

    Examples
    --------
    >>> show_model(dict)
    'the class dict: add (), as in dict()'
    """
    if isinstance(value, type):
        return f"the class {value.__name__}: add (), as in {value.__name__}()"
    return show(value)


def as_array(values: Any, name: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return an argument as an array of numpy, or raise TypeError.

    Lazy frames, rows of different lengths, values too large for memory and others raise
    errors of many types: all become TypeError.
    """
    is_array = hasattr(values, "__array__") or isinstance(values, Sequence | Number)
    is_text = isinstance(values, str | bytes)  # numpy would convert it to a number
    if not is_array or (is_text and dtype is not None):
        raise TypeError(f"`{name}` must be an array or a list, got {show(values)}.")
    try:
        array = np.asarray(values, dtype=dtype)
        if array.dtype.kind == "T":  # numpy's StringDType, which few libraries take
            array = array.astype(object)
        if array.ndim > MOST_AXES:
            raise ValueError(f"it has {array.ndim} axes")
        return array
    except Exception as error:  # objects of any library may raise anything
        reason = " ".join(str(error).split())[:MOST_CHARACTERS] or type(error).__name__
        raise TypeError(
            f"`{name}` must be an array or a list, got {type(values).__name__} that "
            f"numpy makes no array of: {reason}"
        ) from error


def _check_real(value: object, name: str, kind: str) -> float:
    """Return a value as a float; `kind` says in errors what it must be."""
    if isinstance(value, np.floating):
        return float(_as_written(value))
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be {kind}, got {show(value)}.")
    try:
        return float(value)
    except OverflowError:  # of an int beyond the largest float
        raise ValueError(
            f"`{name}` must be {kind} below 1e308, got {show(value)}."
        ) from None


def _as_written(values: Any) -> Any:
    """Return numbers of numpy as float64; 0.1 of a shorter type is 0.1 there, too.

    `float(np.float32(0.1))` is 0.10000000149, a number that nobody wrote.
    """
    is_short = values.dtype.kind == "f" and values.dtype.itemsize < 8
    return (values.astype(str) if is_short else values).astype(np.float64)


def check_probability(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1, or raise."""
    number = _check_real(value, name, "a number in (0, 1)")
    return float(check_probabilities(number, name))


def check_delta(value: object, name: str = "delta") -> float:
    """Return `delta`, the probability that a bound fails, as a float, or raise.

    A value above 1/2 is refused as a confused confidence; only formulas in
    `dsel.bounds` accept it.
    """
    delta = _check_real(value, name, "a number in (0, 0.5]")
    level = delta / 100 if 1.0 < delta < 100.0 else delta  # a percentage, as 95
    if 0.5 < level < 1.0:
        raise ValueError(
            f"`{name}` must be at most 0.5, got {delta:g}: it is the probability that "
            f"a bound fails; did you mean {1.0 - level:.6g}, which is "
            f"{100 * level:.12g}% confidence?"
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(
            f"`{name}` must be above 0 and at most 0.5, got {delta!r}; 5% is written "
            f"0.05."
        )
    return delta


def check_level(value: object, name: str = "level") -> float:
    """Return the level of the tests of `monitor` as a float, or raise."""
    level = _check_real(value, name, f"a number in [{SMALLEST_LEVEL:g}, 0.5]")
    if not SMALLEST_LEVEL <= level <= 0.5:
        percent = level if 1.0 < level <= 50.0 else 5.0
        raise ValueError(
            f"`{name}` must be between {SMALLEST_LEVEL:g}, the smallest p-value that "
            f"the two-sample test can have, and 0.5, got {level:g}; {percent:.12g}% is "
            f"written {percent / 100:.12g}."
        )
    return level


def check_probabilities(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return an array of floats strictly between 0 and 1, or raise."""
    array = as_array(values, name)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must hold numbers in (0, 1), got {array.dtype}.")
    probabilities: NDArray[np.float64] = _as_written(array)
    outside = ~((probabilities > 0.0) & (probabilities < 1.0))
    if outside.any():
        wrong = float(probabilities[outside].flat[0])
        percent = wrong if 1.0 < wrong < 99.9 else 5.0
        raise ValueError(
            f"`{name}` must be strictly between 0 and 1, got {wrong!r}; {percent:.6g}% "
            f"is written {percent / 100:.6g}."
        )
    return probabilities


def check_between(
    values: ArrayLike, name: str, least: float, most: float, *, end: str = "."
) -> NDArray[np.float64]:
    """Return an array of floats in [least, most], or raise; NaN is outside.

    `end` is how the message of a number outside ends.
    """
    floats = as_array(values, name, np.float64)
    outside = ~((floats >= least) & (floats <= most))
    if outside.any():
        raise ValueError(
            f"`{name}` must be in [{least:g}, {most:g}], got "
            f"{float(floats[outside].flat[0])!r}{end}"
        )
    return floats


def check_axes(array: NDArray[Any], name: str, n_axes: int, what: str) -> None:
    """Raise ValueError if an array has another number of axes than this."""
    if array.ndim != n_axes:
        raise ValueError(f"`{name}` must be {what}, got shape {array.shape}.")


def check_integer(
    value: object, name: str, *, at_least: int, at_most: int | None = None
) -> int:
    """Return `value` as an int within the limits, or raise."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {show(value)}.")
    number = int(value)
    if number < at_least or number > (MOST_INTEGER if at_most is None else at_most):
        is_huge = at_most is None and number > MOST_INTEGER
        limits = f">= {at_least}" if at_most is None else f"in [{at_least}, {at_most}]"
        limits = f"at most {MOST_INTEGER}" if is_huge else limits
        raise ValueError(f"`{name}` must be {limits}, got {show(number)}.")
    return number


def check_count(value: Any, name: str, *, at_least: int) -> int:
    """Return one count as an int; whole floats, as in cubes, are counts, too."""
    n_axes = getattr(value, "ndim", None)  # may be any object if it is no array
    item = value.item() if isinstance(n_axes, int) and n_axes == 0 else value
    is_whole = isinstance(item, float) and item.is_integer()
    return check_integer(int(item) if is_whole else item, name, at_least=at_least)


def check_positive(value: object, name: str) -> float:
    """Return `value` as a finite float above 0, or raise."""
    number = _check_real(value, name, "a positive number")
    if not 0.0 < number < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {show(value)}.")
    return number


def check_nonnegative(value: object, name: str) -> float:
    """Return `value` as a finite float of 0 or more, or raise."""
    number = _check_real(value, name, "a number >= 0")
    if not 0.0 <= number < math.inf:
        raise ValueError(f"`{name}` must be >= 0 and finite, got {show(value)}.")
    return number


def check_counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return integer counts as int64, or raise; rates are refused, never rounded.

    Whole floats are counts, too: a results cube has them, with NaN where it has none.
    """
    array = as_array(values, name)
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise ValueError(
                f"`{name}` is NaN where nothing was counted, as of candidates that "
                f"were pruned; leave these out, as "
                f"results.where(results.status == 0, drop=True) does for one parameter."
            )
        if (array == np.rint(array)).all() and (np.abs(array) < 2.0**53).all():
            array = array.astype(np.int64)
    # Nullable integers of pandas become an array of objects: integers if none is NA.
    if array.dtype == object and all(
        isinstance(count, Integral) and abs(int(count)) < 2**63 for count in array.flat
    ):
        array = np.asarray(array.tolist())
    if array.dtype.kind not in "iu":
        first = show(array.ravel().tolist()[0]) if array.size else "none"
        raise TypeError(
            f"`{name}` must hold integer counts, got {array.dtype} (first value "
            f"{first}); pass the number of rows, not a rate."
        )
    counts = array.astype(np.int64)
    if counts.size and counts.min() < 0:
        raise ValueError(f"`{name}` must not be negative, got {counts.min()}.")
    return counts


def check_counts_of(
    n_counted: ArrayLike, n_rows: ArrayLike, counted_name: str, rows_name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return counts and the numbers of their rows, broadcast, or raise."""
    counted = check_counts(n_counted, counted_name)
    rows = check_counts(n_rows, rows_name)
    counted, rows = broadcast(**{counted_name: counted, rows_name: rows})
    if (above := counted > rows).any():
        limit, value = rows[above].flat[0], counted[above].flat[0]
        raise ValueError(
            f"`{counted_name}` must be between 0 and {limit} (`{rows_name}`), "
            f"got {value}."
        )
    return counted, rows


def broadcast(**arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays, passed by the names of their arguments, in one shape; or raise."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = " and ".join(f"{array.shape} (`{n}`)" for n, array in arrays.items())
        raise ValueError(
            f"`{next(iter(arrays))}` must fit the other counts, got the shapes "
            f"{shapes}."
        ) from None


def did_you_mean(
    value: object, choices: Iterable[object], used: Iterable[object] = ()
) -> str:
    """Return the end of a message about a name that is none of `choices`.

    It suggests the nearest of them, or is a full stop where none is near. A name of
    `used` means something else already, and is not suggested.

    Examples
    --------
    >>> did_you_mean("pools", ["X", "y", "pool"]), did_you_mean("Pool", ["pool"])
    ("; did you mean 'pool'?", "; did you mean 'pool'?")
    >>> did_you_mean("abc", ["pool"]), did_you_mean("all", ["one_fold", "all_rows"])
    ('.', "; did you mean 'all_rows'?")
    >>> did_you_mean("outcome", ["income", "age"], used=["income"])
    '.'
    """
    near = nearest_name(value, choices, used)
    return "." if near is None else f"; did you mean {near!r}?"


def nearest_name(
    value: object, choices: Iterable[object], used: Iterable[object] = ()
) -> object:
    """Return the nearest of `choices` but for those `used`; None if none is near."""
    used_names = {*map(str, used)}
    known = {str(choice): choice for choice in choices if str(choice) not in used_names}
    by_case = {text.casefold(): text for text in known}
    if (same := by_case.get(str(value).casefold())) is not None:
        return known[same]
    near = get_close_matches(str(value), known, 1)
    if not near and len(str(value)) >= SHORTEST_START:
        starts = [text for text in known if text.startswith(str(value))]
        near = starts if len(starts) == 1 else []
    if not near:
        near = get_close_matches(str(value).casefold(), by_case, 1)
        near = [by_case[text] for text in near]
    return known[near[0]] if near else None


def suggest_argument(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown argument: the one that is meant.

    It is the one that means the same, or the nearest by its letters.

    Examples
    --------
    >>> suggest_argument("seed", ["random_state"]), suggest_argument("Cv", ["cv"])
    ("; 'seed' is `random_state` here.", "; did you mean 'cv'?")
    """
    known = list(known)
    for argument in known:
        if name in OTHER_NAMES.get(argument, ()):
            return f"; {name!r} is `{argument}` here{MEANINGS.get(argument, '')}."
    return did_you_mean(name, known)


def attribute_error(
    owner: str, name: str, known: Iterable[str], why: str = ""
) -> AttributeError:
    """Return the error about an unknown attribute; `why`, or the nearest name, ends it.

    Python and notebooks look for many private names: these need no suggestion.

    Examples
    --------
    >>> str(attribute_error("an outcome", "modl", ["model"]))
    "an outcome has no attribute 'modl'; did you mean 'model'?"
    >>> str(attribute_error("an outcome", "modl", ["_model"]))
    "an outcome has no attribute 'modl'."
    """
    public = [attribute for attribute in known if not attribute.startswith("_")]
    end = why or ("." if name.startswith("_") else did_you_mean(name, public))
    return AttributeError(f"{owner} has no attribute {name!r}{end}")


def describe_missing_path(location: str) -> str:
    """Return the end of a message about a missing path, with one near it if there is.

    Every message about a path that is not there ends so.

    Examples
    --------
    >>> describe_missing_path("/nowhere/labeled.csv")
    "there is nothing at '/nowhere/labeled.csv'."
    """
    folder, name = os.path.split(location.rstrip("/"))
    there = []
    with suppress(OSError):
        there = sorted(os.listdir(folder or "."))
    # Equal endings alone do not make names similar.
    stem = os.path.splitext(name)[0]
    alike = (n for n in there if get_close_matches(stem, [os.path.splitext(n)[0]]))
    near = get_close_matches(name, alike, 1)
    end = f"; did you mean {os.path.join(folder, near[0])!r}?" if near else "."
    return f"there is nothing at {location!r}{end}"


def letters_of(label: object) -> str:
    """Return a label as text, without blanks, case and Unicode forms.

    People mean one class by labels of the same letters.

    Examples
    --------
    >>> letters_of(" Not  sure"), letters_of("not sure"), letters_of(1)
    ('notsure', 'notsure', '1')
    """
    # Zero-width signs and soft hyphens cannot be seen either.
    text = re.sub("[\u00ad\u200b-\u200f\u2060\ufeff]", "", str(label))
    return "".join(unicodedata.normalize("NFKC", text).split()).casefold()


def similar_labels(labels: Iterable[object]) -> list[list[str]]:
    """Return the texts among labels that have the same letters, in sorted order.

    Examples
    --------
    >>> similar_labels(["basic", "Basic", "plus", 1])
    [['Basic', 'basic']]
    """
    by_letters: dict[str, list[str]] = {}
    for text in sorted(label for label in labels if isinstance(label, str)):
        by_letters.setdefault(letters_of(text), []).append(text)
    return [texts for texts in by_letters.values() if len(texts) > 1]


def class_without_blanks(text: str, classes: Iterable[Any]) -> Any:
    """Return the class that is this text, without the blanks around the class, or None.

    Text tables lose these blanks; `notes_on_blanks` of `dsel.data.targets` refuses
    classes that differ by nothing else.
    """
    return next((label for label in classes if str(label).strip() == text), None)


def class_of_same_letters(label: object, classes: Iterable[Any]) -> Any:
    """Return the class that a label means which differs by blanks or case, or None."""
    letters = letters_of(label)
    return next((known for known in classes if letters_of(known) == letters), None)


def explain_unknown(
    reasons: Mapping[str, str] | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that explains calls with other arguments than there are.

    It is for functions, and for classes with their methods. `reasons` say what takes
    the place of names that other libraries have; else the nearest name is suggested.
    The signature stays as it was: completion and scikit-learn, which takes no ``**``,
    read it.
    """

    def decorate(function: Function) -> Function:
        if isinstance(function, type):
            for name, method in [*vars(function).items()]:
                is_public = name == "__init__" or not name.startswith("_")
                is_explained = hasattr(method, "__is_explained__")  # with reasons
                if is_public and inspect.isfunction(method) and not is_explained:
                    setattr(function, name, decorate(method))
            return function
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **params: Any) -> Any:
            try:
                return function(*args, **params)
            except TypeError:
                reason = ""
                try:
                    signature.bind(*args, **params)
                except TypeError as error:  # nothing has run
                    reason = _explain_call(function, signature, args, params, reasons)
                    reason = reason or f"{error}."
                if reason:
                    raise TypeError(reason) from None
                raise

        call.__is_explained__ = True  # type: ignore[attr-defined]
        return cast(Function, call)

    return decorate


def explain_public(
    package: dict[str, Any], why_not: Callable[[str], str] = lambda name: ""
) -> None:
    """Explain wrong calls of all that a package lists in `__all__`, and wrong names.

    `package` are its `globals()`. A function is replaced in its own module, too, where
    pickles look it up. `why_not` returns the end of the message about a name that the
    package does not have, "" for the nearest one.
    """

    def explain_name(name: str) -> NoReturn:
        owner = f"module {package['__name__']!r}"
        raise attribute_error(owner, name, package["__all__"], why_not(name))

    package["__getattr__"] = explain_name
    offer_public(package)
    for name in package["__all__"]:
        subject = package[name]
        home = sys.modules.get(getattr(subject, "__module__", ""))
        is_ours = home is not None and home.__name__.startswith("dsel.")
        if not is_ours or hasattr(subject, "__is_explained__"):
            continue
        if inspect.isfunction(subject):
            package[name] = explain_unknown()(subject)
            setattr(home, name, package[name])
        elif inspect.isclass(subject) and not issubclass(subject, Enum):
            explain_unknown()(subject)


def offer_public(package: dict[str, Any]) -> None:
    """Let `dir` and completion list what is in `__all__`, without what was imported."""

    def list_names() -> list[str]:
        hidden = {name for name in package if name[:2] == name[-2:] == "__"}
        return sorted({*hidden, *package["__all__"]})

    package["__dir__"] = list_names


def _explain_call(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    params: Mapping[str, Any],
    reasons: Mapping[str, str] | None,
) -> str:
    """Return why a call does not fit a signature, and what does; "" if unknown."""
    kinds, owner = inspect.Parameter, f"`{function.__name__}`"
    known = [p for p in signature.parameters.values() if p.name != "self"]
    called, what = function.__name__, "argument `{}`"
    if called == "__init__":
        owner = called = type(args[0]).__name__
        what = "parameter {!r}"
    args = args[len(signature.parameters) - len(known) :]
    passed_on = (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    names = [p.name for p in known if p.kind not in passed_on]
    # Other arguments are checked by the function that receives them.
    if len(names) == len(known):
        for name in params:
            if name in names:
                continue
            end = suggest_argument(name, names)
            # A user who misspelled a name needs the correction, not the list.
            reason = end.removeprefix("; ")
            if end == ".":
                reason = f"it has {', '.join(sorted(names))}."
            if reasons is not None and name in reasons:
                reason = f"{reasons[name]}."
            return f"{owner} has no {what.format(name)}: {reason}"
    ordered = [p for p in known if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    shown = ", ".join(p.name for p in ordered)
    if len(args) > len(ordered):
        keyword_names = [p.name for p in known if p.kind is p.KEYWORD_ONLY]
        named = ", ".join(f"{name}=" for name in keyword_names if name not in params)
        if not known:
            return f"{owner} takes no arguments, got {len(args)}."
        return (
            f"{owner} takes {shown or 'nothing'} by position, got {len(args)} values; "
            f"pass the others by name{': ' if named else ''}{named}."
        )
    needed = [p for p in known if p.default is p.empty and p.name in names]
    passed = {*params, *(p.name for p in ordered[: len(args)])}
    if missing := [f"`{p.name}`" for p in needed if p.name not in passed]:
        call = ", ".join(p.name + ("=..." if p not in ordered else "") for p in needed)
        if need := (reasons or {}).get(missing[-1].strip("`")):
            return f"{owner} needs {', '.join(missing)}, {need}."
        return f"{owner} needs {', '.join(missing)}: {called}({call})."
    return ""


def check_truth(value: object, name: str) -> bool:
    """Return a truth value, or raise TypeError; 0 and 1 are accepted, too."""
    is_one = isinstance(value, bool | np.bool_) or (
        isinstance(value, Integral) and int(value) in (0, 1)
    )
    if not is_one:
        raise TypeError(f"`{name}` must be True or False, got {show(value)}.")
    return bool(value)


def check_string(value: object, name: str) -> str:
    """Return `value` if it is a text, or raise TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a text, got {show(value)}.")
    return str(value)


def is_single(values: Any) -> bool:
    """Return whether an argument is one value, such as a text, and not a list."""
    # A delayed object of Dask has any attribute, but its `shape` is no tuple.
    shape = getattr(values, "shape", None)
    is_shape = shape is None or isinstance(shape, tuple)
    return isinstance(values, str) or not is_shape or shape == ()


def check_strings(values: Any, name: str) -> list[str]:
    """Return a list of texts, or raise TypeError; one text is no list."""
    if is_single(values) or not isinstance(values, Collection):
        raise TypeError(f"`{name}` must be a list of texts, got {show(values)}.")
    return [check_string(value, name) for value in values]


def check_kind(value: object, kind: type, name: str, maker: str) -> None:
    """Raise TypeError if an argument does not have the type that `maker` returns."""
    if not isinstance(value, kind):
        raise TypeError(
            f"`{name}` must be a {kind.__name__} from {maker}, got {show(value)}."
        )


def raise_first(*problems: tuple[Any, str]) -> None:
    """Raise ValueError with the text of the first pair whose condition is true."""
    for is_wrong, text in problems:
        if is_wrong:
            raise ValueError(text)


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`, or raise ValueError."""
    if not isinstance(value, str) or value not in choices:
        shown = listing([repr(choice) for choice in choices], MOST_LISTED)
        end = suggest_argument(value, choices) if isinstance(value, str) else "."
        if end != "." and len(choices) > MOST_WITH_SUGGESTION:
            raise ValueError(f"`{name}` {show(value)} is not known{end}")
        raise ValueError(f"`{name}` must be one of {shown}, got {show(value)}{end}")
    return str(value)


def listing(names: Sequence[str], most: int) -> str:
    """Return the first names, separated by commas, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def list_columns(columns: Iterable[str], missing: str, used: Iterable[str] = ()) -> str:
    """Return the end of a message about a column that a table lacks.

    `used` are names that mean something else already.

    Examples
    --------
    >>> list_columns(["age", "town"], "towns")
    "; it has 'age', 'town'; did you mean 'town'?"
    >>> list_columns(["age;town"], "town")
    "; it has 'age;town'; if ';' separates its values, leave --sep out."
    """
    names, hint = [name for name in map(str, columns) if name], ""
    if len(names) == 1 and (separator := re.search(r"\S([;,|\t])\S", names[0])):
        hint = f"; if {separator[1]!r} separates its values, leave --sep out"
    elif len(names) == 1 and re.search(r"\S[ :]+\S", names[0]):
        sign = ":" if ":" in names[0] else " "
        hint = (
            f"; if this is a title, remove the lines above the header; if {sign!r} "
            f"separates its values, write --sep {sign!r}"
        )
    shown = listing([*map(repr, names)], MOST_LISTED) or "no names"
    end = f"{hint}." if hint else did_you_mean(missing, names, used)
    return f"; it has {shown}{end}"


def describe_unused_columns(columns: Iterable[str], used: Iterable[str]) -> str:
    """Return a text about the columns of a pool that are not used, or "".

    Examples
    --------
    >>> describe_unused_columns(["age", "site"], ["age"])
    "column 'site' of the pool, which is not in the labeled table"
    """
    used = {*used}
    unused = [repr(name) for name in columns if name not in used]
    is_one = len(unused) == 1
    what = f"{'column' if is_one else 'columns'} {listing(unused, 8)} of the pool"
    text = f"{what}, which {'is' if is_one else 'are'} not in the labeled table"
    return text if unused else ""


def check_url(url: str, name: str) -> None:
    """Raise if a URL may contain a secret, or its protocol needs a missing package.

    The message does not show the secret.
    """
    from fsspec import get_filesystem_class  # slow, and needed for URLs only

    try:
        urlsplit(url)
    except ValueError as error:  # such as brackets that are no IPv6 address
        raise ValueError(
            f"`{name}` must be a path or a URL such as s3://..., got {show(url)}, "
            f"which is none: {error}."
        ) from error
    for part in url.split("::"):  # chains such as simplecache::s3://
        protocol, _, location = part.rpartition("://")
        if protocol in LOCAL:
            continue
        host = re.split("[/?]", location, maxsplit=1)[0]
        _, colon, port = host.partition(":")
        user_is_key = protocol in ("http", "https") and "@" in host
        # A password with a slash looks like a port that is no number.
        if user_is_key or (colon and not port.isdecimal()):
            raise ValueError(
                f"`{name}` must not hold a password, since URLs are kept and logged; "
                "pass it in `storage_options` or by the environment."
            )
        if "?" in location:  # names of chunks would be appended to the query
            raise ValueError(
                f"`{name}` must not hold a query (the ? and what follows it), "
                "since URLs are kept and logged; pass it in `storage_options`, for "
                "http as {'params': {NAME: VALUE}}, or keys by the environment."
            )
    for protocol in url.split("://")[0].split("::"):
        try:
            get_filesystem_class(protocol)
        except ImportError as error:
            raise ModuleNotFoundError(
                f"`{name}` {url!r} needs a package that is not installed ({error}); "
                "for object stores pip install 'dsel[cloud]'."
            ) from error
        except ValueError as error:
            raise ValueError(
                f"`{name}` must be a path or a URL such as s3://..., got {show(url)}, "
                f"whose protocol {protocol!r} is not known."
            ) from error


def check_path(place: Any, name: str) -> str:
    """Return a path or URL to write to as text, or raise.

    ``Path("s3://...")`` is refused, since it has lost a slash of the URL.
    """
    if not isinstance(place, (str, os.PathLike)):
        raise TypeError(f"`{name}` must be a path or a URL, got {show(place)}.")
    path = str(os.fspath(place))
    if not path:
        raise ValueError(f"`{name}` must name a place, got ''; '.' is this folder.")
    # File systems refuse high surrogates and NUL; a line break is a mistake.
    if any(sign < " " or "\ud800" <= sign <= "\udbff" for sign in path):
        raise ValueError(
            f"`{name}` must name a place, got {path[:80]!r} with a character that no "
            f"file name has; leave it out."
        )
    if "://" not in path and max(map(len, map(_encode_name, path.split("/")))) > 255:
        raise ValueError(
            f"`{name}` {path[:60]!r}... has a name of more than 255 bytes, which no "
            f"file system takes; choose a shorter one."
        )
    if "://" not in path and len(_encode_name(path)) > 4000:
        raise ValueError(
            f"`{name}` {path[:60]!r}... is longer than 4,000 bytes, which no system "
            f"takes; choose a shorter path."
        )
    if re.match(r"[a-z][a-z0-9+.-]+:/(?!/)", path):
        protocol, _, location = path.partition(":/")
        raise ValueError(
            f"`{name}` {path!r} looks like a URL that lost a slash, as it does in a "
            f"Path; write '{protocol}://{location}', or './{path}' for a folder here."
        )
    return path


def _encode_name(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def check_storage_options(options: Any) -> dict[str, Any]:
    """Return options for fsspec as a dict, or raise TypeError."""
    is_dict = isinstance(options, Mapping) and all(isinstance(k, str) for k in options)
    if options is not None and not is_dict:
        raise TypeError(
            f"`storage_options` must be a dict of options for fsspec, such as "
            f"{{'anon': True}}, got {type(options).__name__}."
        )
    return dict(options or {})
