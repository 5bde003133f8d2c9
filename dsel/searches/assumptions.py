"""Findings, in the labeled rows and the estimators, that an assumption may not hold.

Some preprocessing can be seen in the rows: where all columns have mean 0 and variance 1
to the last digit, they were scaled with all rows, the held-out ones included.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from dsel.data.columns import NUMBER
from dsel.data.equal_rows import comparable
from dsel.data.frames import Frame, encoded
from dsel.data.identity import row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.splits import Split
from dsel.families.family import Candidate
from dsel.results import Assumption
from dsel.results.ledger import CHECKED, DECLARED, VIOLATED
from dsel.searches.engine.scheme import Scheme
from dsel.searches.known_rows import rows_given, rows_inside

FEW_ROWS: Final = 20
"""Folds with fewer rows bound almost nothing."""
FEW_COPIES: Final = 100
"""One labeled row in so many may have a copy in another fold."""
_COPIES: Final = (
    "are copies of rows of other folds, equal in columns in which hardly any others "
    "are, so rows are not independent: take each once; to balance classes, oversample "
    "inside the pipeline or use class_weight; rows that belong together are `groups`"
)
_FEW_VALUES: Final = 10
_BESIDE: Final = 5  # values on each side, of which a density is computed
_BALANCED: Final = (
    "weighs classes by their sizes among all labeled rows, held-out ones included: use "
    "class_weight='balanced', which each fit computes from its own rows"
)
_PRIOR: Final = ("priors", "class_prior")  # names in scikit-learn
_PRIORS: Final = (
    "are the class frequencies among all labeled rows, held-out ones included: leave "
    "them out, so that each fit takes those of its own rows"
)
_GROUPS: Final = (
    "labeled rows come in groups, so they are not independent: cross-validation by "
    "groups is an estimate, and no bound is known to hold"
)
_TOLERANCE: Final = {np.dtype(np.float32): 1e-4}
"""By how much a scaled column's moments may differ; else 1e-5, as of four decimals."""


def standardised(X: Any) -> str:
    """Return why the rows must have been scaled with all of them; empty if not so."""
    columns = _continuous(X)
    if columns is None:
        return ""
    near = _TOLERANCE.get(X.dtype, 1e-5)
    spread = columns.std(axis=0)
    if (np.abs(columns.mean(axis=0)) <= near * spread).all() and (
        (np.abs(spread - 1.0) <= near).all()
        or (np.abs(columns.std(axis=0, ddof=1) - 1.0) <= near).all()
    ):
        return (
            "every column of the labeled rows has mean 0 and variance 1: they were "
            "scaled with the held-out rows; put the scaler into a pipeline"
        )
    return ""


def scaled_by_range(X: Any) -> str:
    """Return why the rows look scaled by their own range; empty if they do not."""
    columns = _continuous(X)
    if columns is None or columns.shape[1] < 2:
        return ""
    least, most = columns.min(axis=0), columns.max(axis=0)
    # Scalers multiply and add: their ends are 1 but for rounding.
    ends = np.abs(most - 1.0), np.minimum(np.abs(least), np.abs(least + 1.0))
    if (np.stack(ends) <= np.finfo(X.dtype).eps * 1e4).all():
        return (
            "every column of the labeled rows just fills a range up to 1: if a scaler "
            "was fitted on them, put it into a pipeline"
        )
    return ""


def row_numbers(X: Any, columns: Sequence[str] | None = None) -> str:
    """Return which column numbers the labeled rows, in any order; empty if none.

    In any unit: with 1, 2, 3, by day, or from 0 to 1 where the numbers were scaled.
    `columns` are the names of those of `X`.
    """
    if sparse.issparse(X) or len(X) < FEW_ROWS:
        return ""
    for place, values in enumerate(np.asarray(X).T):
        column = np.sort(values.astype(np.float64))
        low, high = column[0], column[-1]
        step = (high - low) / (len(column) - 1)
        rounding = np.finfo(column.dtype if X.dtype.kind != "f" else X.dtype).eps
        if (np.abs(np.diff(column) - step) <= 1e-3 * step).all() and (
            step > 0 and step > 1e3 * rounding * max(abs(low), abs(high))
        ):
            name = repr(columns[place]) if columns else place
            return (
                f"column {name} numbers the labeled rows from {low:g} to {high:g} in "
                f"equal steps, which no random draws do, and new rows have other "
                f"numbers: leave it out"
            )
    return ""


def frozen_parts(candidates: Iterable[Candidate]) -> str:
    """Return a remark where an estimator holds a part that was fitted before."""
    from sklearn.frozen import FrozenEstimator

    if any(
        # Or its method, as the function of a FunctionTransformer.
        isinstance(value, FrozenEstimator)
        or isinstance(getattr(value, "__self__", None), BaseEstimator)
        for candidate in candidates
        for value in [
            candidate.estimator,
            *candidate.estimator.get_params(deep=True).values(),
        ]
    ):
        return "the estimator holds a frozen part, said to have seen none of these rows"
    return ""


def weights_of_all(
    labeled: LabeledRows, candidates: Iterable[Candidate], fit_params: Mapping[str, Any]
) -> str:
    """Return which parameters come from all rows or their labels; empty if none.

    Weights that balance the classes of all labeled rows, n / (K n_c) up to a factor,
    depend on the labels of held-out rows, and so do priors n_c / n: every fold's fit
    then does. Where all classes have the same size this cannot be found.
    """
    if held := rows_given(labeled.X, fit_params):
        return held
    counts = np.bincount(labeled.y)
    if (counts == counts[0]).all():
        return ""
    given = [
        *fit_params.items(),
        *(each for c in candidates for each in c.estimator.get_params().items()),
    ]
    for name, value in given:
        is_prior = _last(name) in _PRIOR and np.shape(value) == counts.shape
        if is_prior and _proportional(value, counts):
            return f"`{name}` {_PRIORS}"
        if _proportional(_per_class(name, value, labeled), 1.0 / counts):
            return f"`{name}` {_BALANCED}"
    return ""


def given_weights(fit_params: Mapping[str, Any]) -> str:
    """Return what is declared about given weights; empty where there are none."""
    given = [
        f"`{name}`"
        for name, value in fit_params.items()
        if _last(name) == "sample_weight" and value is not None
    ]
    if not given:
        return ""
    return f"{', '.join(given)} was not computed from the labels of all rows"


def copies(X: Any, y: NDArray[Any], splits: Sequence[Split]) -> tuple[str, bool]:
    """Return how many labeled rows equal one that another fold holds out.

    And whether they cannot be so by chance: more than one row in `FEW_COPIES`, and
    more than a measured column makes equal by chance, equal a row of another fold and
    have its label.
    """
    values = encoded(X)
    hashes = row_hashes(comparable(values, values.dtype))
    _, first, content = np.unique(hashes, return_index=True, return_inverse=True)
    fold = np.full(len(content), -1)
    for split in splits:
        fold[split.test_rows] = split.number
    in_folds = _n_different(content, fold)
    copied = in_folds > 1
    n_rows, n = int(copied[content].sum()), len(content)
    if not n_rows:
        return "", False
    one_label = _n_different(content, y) == 1
    if n_rows * FEW_COPIES > n and one_label[copied].mean() > 0.9:
        of_numbers = X.float_columns if isinstance(X, Frame) else X
        for sure, chance in _measured(of_numbers, first):
            n_sure = int((copied & one_label & sure)[content].sum())
            if n_sure > max(n / FEW_COPIES, 4 + 3 * n**2 * chance):
                return f"{n_sure:,} of {n:,} labeled rows {_COPIES}", True
    return (
        f"{n_rows:,} labeled rows equal a row of another fold: if they are copies of "
        f"one record, rows are not independent"
    ), False


def _n_different(content: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many different values go with each content."""
    pairs = np.unique(np.stack([content, values], axis=1), axis=0)
    return np.bincount(pairs[:, 0])


def _measured(X: Any, first: NDArray[Any]) -> Iterator[tuple[NDArray[np.bool_], float]]:
    """Yield, of each measured column, which of the different rows it tells apart.

    Those rows, among `first`, have a value that no other has, as half of all have. And
    how often chance makes two rows equal in this column: its density, integrated over
    its square, times the step between values; 0 where they have no common step.
    """
    rows = X[first].tocsc() if sparse.issparse(X) else X[first]
    n = len(first)
    for place in range(rows.shape[1]):
        if sparse.issparse(rows) and rows[:, [place]].nnz < n / 2:
            continue
        column = rows[:, [place]]
        column = column.toarray() if sparse.issparse(rows) else column
        column = np.asarray(column, dtype=np.float64)[:, 0]
        if np.isnan(column).all():
            continue
        low, middle, high = np.nanquantile(column, [0.1, 0.5, 0.9])
        # Values that differ by rounding alone are one, whatever unit and origin are.
        column = np.round((column - middle) / ((high - low) or 1.0), 9)
        values, of_row, times = np.unique(
            column, return_inverse=True, return_counts=True
        )
        single = (times == 1) & np.isfinite(values)
        if single.sum() < max(FEW_ROWS, n / 2):
            continue
        gaps = np.diff(values[single])
        steps = np.sort(gaps)[:FEW_ROWS] / gaps.min()  # of these few digits are lost
        is_lattice = (np.abs(steps - np.rint(steps)) < 0.1).all()
        wide = values[single][2 * _BESIDE :] - values[single][: -2 * _BESIDE]
        density = float(np.mean(2 * _BESIDE / (len(gaps) + 1) / wide))
        yield single[of_row], float(gaps.min()) * density if is_lattice else 0.0


def few_rows(splits: Sequence[Split]) -> str:
    """Return a remark where folds are so small that their limits say little."""
    sizes = [len(each.test_rows) for each in splits if len(each.test_rows)]
    if not sizes or min(sizes) >= FEW_ROWS:
        return ""
    return (
        f"a fold has {min(sizes)} rows: with fewer than {FEW_ROWS} its limit says "
        f"almost nothing; ask for fewer folds"
    )


def _last(name: str) -> str:
    """Return the parameter's own name, without the steps that lead to it."""
    return name.rpartition("__")[2]


def _per_class(name: str, value: Any, labeled: LabeledRows) -> ArrayLike:
    """Return the weight of each class; zeros where rows of a class have several."""
    if isinstance(value, Mapping) and _last(name) == "class_weight":
        return [value.get(label, 1.0) for label in labeled.classes.tolist()]
    weights = np.zeros(labeled.n_classes)
    if _last(name) == "sample_weight" and value is not None:
        given = np.asarray(value, dtype=float)
        weights[labeled.y] = given
        if not np.allclose(given, weights[labeled.y], rtol=1e-6, atol=0.0):
            weights[:] = 0.0
    return weights


def _proportional(values: ArrayLike, others: NDArray[Any]) -> bool:
    """Return whether positive values are the others times one factor."""
    ratio = np.asarray(values, dtype=float) / others
    return bool(ratio[0] > 0 and np.allclose(ratio, ratio[0], rtol=1e-6, atol=0.0))


def _continuous(X: Any) -> NDArray[Any] | None:
    """Return the columns that have many values; None where there are none."""
    if sparse.issparse(X) or X.dtype.kind != "f" or np.isnan(X).any():
        return None
    many = [len(np.unique(column)) > _FEW_VALUES for column in X.T]
    return X[:, many] if any(many) else None


def plan_ledger(
    labeled: LabeledRows,
    scheme: Scheme,
    candidates: Sequence[Candidate],
    fit_params: Mapping[str, Any],
    *,
    cv: Any,
    has_pool: bool,
    pool_is_fitted: bool,
    breaks_independence: str = "",
    shuffled: bool = False,
    in_groups: bool = False,
) -> tuple[Assumption, ...]:
    """Return the ledger of a plan, A1 to A6, with what rows and estimators show.

    `cv` are the folds as they were given; `pool_is_fitted` says whether learners see
    the fitting part of the pool, which is never the counted one; `breaks_independence`
    why a fold's model is known to depend on its held-out rows; `shuffled` whether the
    first pool rows are read in place of a random part.
    """
    X, columns = labeled.X, labeled.columns
    if isinstance(X, Frame):
        columns = tuple(each.name for each in X.schema.columns if each.kind == NUMBER)
        X = X.float_columns
    frozen = frozen_parts(candidates)
    equal, are_copies = copies(labeled.X, labeled.y, scheme.held_out)
    inside, unseen_inside = rows_inside(X, candidates, fit_params)
    given = repr(cv) if hasattr(cv, "split") else "they were given as a list"
    found = {
        "A1": _violated(
            _GROUPS if in_groups else "",
            equal if are_copies else "",
            row_numbers(X, columns),
        )
        or _declared(
            "rows were drawn at random",
            "the pool's rows stand in random order" if shuffled else "",
            equal,
        ),
        "A2": (CHECKED, "plain random folds from the seed")
        if scheme.is_plain_random
        else (VIOLATED, f"the folds are not plain random: {given}"),
        "A3": _violated(
            breaks_independence,
            inside,
            standardised(X),
            weights_of_all(labeled, candidates, fit_params),
        )
        or _declared(
            "all preprocessing is inside the estimator, fitted per fold",
            given_weights(fit_params),
            unseen_inside,
            scaled_by_range(X),
            frozen,
        ),
        "A4": _about_pool(frozen, is_fitted=pool_is_fitted)
        if has_pool
        else (CHECKED, "there is no pool"),
        "A5": (DECLARED, "the grid, delta and the seed came before the data"),
        "A6": (CHECKED, "random numbers of the seed by row, whatever the rows hold"),
    }
    return tuple(Assumption(name, *state) for name, state in found.items())


def _about_pool(frozen: str, *, is_fitted: bool) -> tuple[str, str]:
    # Declared, since what was done to the rows before is not known.
    return _declared(
        "learners see a part of the pool that is not counted"
        if is_fitted
        else "no learner of this search sees the pool",
        "no scaler, PCA or other step was fitted on counted pool rows beforehand",
        frozen,
    )


def _violated(*reasons: str) -> tuple[str, str] | None:
    return (VIOLATED, "; ".join(filter(None, reasons))) if any(reasons) else None


def _declared(*reasons: str) -> tuple[str, str]:
    return DECLARED, "; ".join(filter(None, reasons))
