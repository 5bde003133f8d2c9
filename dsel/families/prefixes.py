"""The steps before the last one of a pipeline, fitted once for all candidates.

Where the candidates of a grid differ only in the last step, the steps before it are
equal on every split. A process caches these fitted steps and the transformed rows.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from hashlib import blake2b
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from dsel.arrays import Estimator, Features, Integers
from dsel.data.frames import native, read_only_rows
from dsel.data.identity import content_hash, exact_text
from dsel.data.labeled import labels_of
from dsel.data.row_random import derive_seed
from dsel.data.splits import Split
from dsel.families.estimator_kinds import is_fitted
from dsel.families.family import Cache
from dsel.typing import AnyArray, Options


def has_prefix(estimator: Any) -> bool:
    """Return whether an estimator is a plain pipeline of several steps."""
    return type(estimator) is Pipeline and len(estimator.steps) > 1


def split_params(
    estimator: Any, params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters of the first steps of a plain pipeline, and of the last one.

    The seeds of the last step have the names that this step gives them. All parameters
    of another estimator are of its last step.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> split_params(make_pipeline(PCA(), SVC()), {"pca__whiten": True, "svc__C": 8})
    ({'pca__whiten': True}, {'C': 8})
    """
    if not has_prefix(estimator):
        return {}, dict(params)
    start = f"{estimator.steps[-1][0]}__"
    is_last = {name: name.startswith(start) for name in params}
    return (
        {name: params[name] for name in params if not is_last[name]},
        {name[len(start) :]: params[name] for name in params if is_last[name]},
    )


def first_step(estimator: Any) -> Any:
    """Return the first step of a pipeline that is not skipped, or the estimator.

    For an estimator that fits another one, as GridSearchCV does, it is the first step
    of the inner one.
    """
    return flat_steps(estimator)[0]


def flat_steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline that are not skipped, those of inner ones, too.

    An estimator that fits another one stands for the steps of the inner one.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> flat_steps(GridSearchCV(make_pipeline("passthrough", SVC()), {}))
    [SVC()]
    """
    if hasattr(estimator, "steps"):
        return [
            inner_step
            for _, step in estimator.steps
            if step is not None and not isinstance(step, str)  # "passthrough"
            for inner_step in flat_steps(step)
        ]
    inner = getattr(estimator, "estimator", None)
    return flat_steps(inner) if hasattr(inner, "fit") else [estimator]


class FittedPrefix(NamedTuple):
    """The fitted steps before the last one of a pipeline, and the rows from them."""

    key: str
    """Cache key for these steps and rows."""
    steps: Sequence[tuple[str, Any]]
    train_rows: Any
    """The training rows that `fit_transform` returned."""
    tests: tuple[Any, ...]
    """Each part of the test rows, transformed: None for an empty part, the exception
    where a step raised one."""


def fit_prefix(
    make_front: Callable[[], Pipeline],
    X: Features,
    y: AnyArray,
    labels: AnyArray,
    split: Split[int],
    *,
    content: str,
    text: str,
    cache: Cache,
) -> FittedPrefix:
    """Fit the steps before the last one, or take the fitted steps from the cache.

    `make_front` returns these steps, unfitted and with their seeds, and `text`
    identifies them; `content` is the `content_hash` of `X` and `y`, which all splits
    share. The steps are fitted on the training rows of `split`. Without room in the
    cache they are fitted for each candidate.
    """
    rows = content_hash(split.train_rows, *split.row_parts)
    # The labels are part of the key, too: a step such as SelectKBest reads them.
    identity = f"{content}-{rows}-{text}-{exact_text(labels)}"
    key = blake2b(identity.encode(), digest_size=16)

    def transform(steps: Sequence[tuple[str, Any]], rows: Integers) -> Any:
        # An exception is a result here: it must not fail the fit, which depends on the
        # training rows alone.
        try:
            return transform_rows(steps, native(X[rows])) if len(rows) else None
        except Exception as error:
            return error

    def fit() -> Any:
        front, train = make_front(), split.train_rows
        rows = front.fit_transform(native(X[train]), labels_of(y[train], labels))
        tests = tuple(
            transform(front.steps, test_rows) for test_rows in split.row_parts
        )
        return front.steps, read_only_rows(rows), tests

    results: Any = cache.get(f"prefix-{key.hexdigest()}", fit)
    return FittedPrefix(key.hexdigest(), *results)


def transform_rows(steps: Sequence[tuple[str, Any]], X: Features) -> Any:
    """Return rows transformed by fitted steps.

    `Pipeline.transform` would raise for a last step without fitted attributes, and
    stateless transformers have none.
    """
    for _, step in steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            X = step.transform(X)
    return X


def clone_value(value: Any) -> Any:
    """Return a copy in which estimators, also those of lists and dicts, are unfitted.

    Estimators are cloned as scikit-learn does. Where a constructor copies a list, as
    CatBoost's do, `clone` refuses it, and the unfitted estimator is copied as it is.
    """
    if type(value) is dict:
        return {name: clone_value(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(clone_value, value))
    try:
        return clone(value, safe=False)
    except RuntimeError:
        if is_fitted(value):
            raise
        return deepcopy(value)


def clone_estimator(estimator: Estimator, params: Options | None = None) -> Any:
    """Return a clone in which frozen estimators have wrappers of their own.

    `clone` returns frozen parts themselves, and scikit-learn sets an attribute of each
    part during `fit`, so fits on several threads would write to the same object.
    `params` are those of `get_params`, if they are known.
    """
    model = clone_value(estimator)
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(model.estimator)
    params = estimator.get_params(deep=True) if params is None else params
    frozen = {
        name: FrozenEstimator(value.estimator)
        for name, value in params.items()
        if isinstance(value, FrozenEstimator)
    }
    return model.set_params(**frozen) if frozen else model


def clone_with_seeds(
    estimator: Estimator, seeds: Mapping[str, int], params: Options | None = None
) -> Any:
    """Return a clone whose `random_state` parameters are `seeds`."""
    model = clone_estimator(estimator, params)
    return model.set_params(**seeds) if seeds else model


def set_missing_seeds(estimator: Estimator, seed: int, *behind: Any) -> Any:
    """Set each `random_state` that is None to a hash of the seed and its name.

    `behind` are further texts that are hashed, such as the name of a split.
    """
    missing = {
        name: derive_seed(seed, name, *behind)
        for name in names_of_missing_seeds(estimator.get_params())
    }
    return estimator.set_params(**missing) if missing else estimator


def names_of_missing_seeds(params: Options) -> list[str]:
    """Return the names of the `random_state` parameters that are None.

    Examples
    --------
    >>> names_of_missing_seeds({"pca__random_state": None, "svc__random_state": 3})
    ['pca__random_state']
    """
    return [
        name
        for name, value in params.items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
