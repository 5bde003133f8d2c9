"""Active learning from a pool of any size, with estimates of the error at intervals.

Rows that are picked by uncertainty are no random sample, so no certificate holds for
models trained on them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import clone

from dsel import names
from dsel.arrays import ArrayLike, Estimator, Floats, Integers, RandomState
from dsel.candidates import takes_nan
from dsel.checks import check_integer, explain_unknown, show
from dsel.co_validation.covalidate import HALVED, covalidate
from dsel.data.frames import concatenate_rows, native
from dsel.data.open import open_pool
from dsel.data.query_rows import merge_smallest, smallest_rows
from dsel.data.row_random import ACTIVE_STREAM, row_random_at, seed_from
from dsel.families.predictions import class_scores
from dsel.families.prefixes import first_step, set_missing_seeds
from dsel.typing import PoolLike

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class ActiveStep:
    """The rows labeled so far, and error estimates of a model trained on them."""

    rows: Integers
    """Row numbers in the pool, in the order in which they were picked."""
    X: Any
    """Features of the rows, dense, CSR or a data frame."""
    y: NDArray[Any]
    results: xr.Dataset
    """Cube of `covalidate` on the labeled rows and the rest of the pool. Its
    assumptions explain why nothing can be certified."""

    def __repr__(self) -> str:
        return f"ActiveStep({len(self.rows)} labeled rows)"

    @property
    def estimates(self) -> dict[str, float]:
        """Every estimate of co-validation by the name of its criterion."""
        by_criterion = self.results[names.CRITERION_VALUE].squeeze(drop=True)
        criteria = by_criterion[names.CRITERION].values.tolist()
        return dict(zip(criteria, by_criterion.values.tolist(), strict=True))


@explain_unknown(HALVED)
def learn_actively(
    estimator: Estimator,
    pool: PoolLike,
    label_of: Callable[[Integers], ArrayLike],
    *,
    n_rows: int,
    every: int = 25,
    n_start: int = 10,
    batch: int = 1,
    random_state: RandomState = 0,
    repeats: int = 30,
    leave_one_out: bool = False,
    client: "Client | None" = None,
) -> Iterator[ActiveStep]:
    """Label rows of a pool by uncertainty sampling; estimate the error at intervals.

    After a random start the model is trained on the labeled rows, and the rows with the
    smallest gap between its two best scores are labeled next. At regular intervals
    co-validation estimates the error; stop when it is low enough.

    Parameters
    ----------
    estimator
        Unfitted classifier with `decision_function` or `predict_proba`.
    pool
        Unlabeled rows: anything that `open_pool` takes. Each batch is one pass.
    label_of
        Function that takes the numbers of picked rows and returns their labels.
    n_rows
        Largest number of rows to label, including the random start.
    every
        Number of labels between two estimates; the last estimate is at `n_rows`.
    n_start
        Random rows to start with. While they have one class only, rows are drawn at
        random until a second one appears.
    batch
        Rows to label before the model is trained again; it divides `every`.
    random_state
        Seed of the start, of ties, of the halvings and of the learner.
    repeats, leave_one_out, client
        As `covalidate` takes them.

    Returns
    -------
    iterator of ActiveStep
        One step after every `every` labels. Labels are queried while it is iterated
        over.

    Raises
    ------
    TypeError, ValueError
        Where an argument is invalid, before the first label is queried; later where a
        label is missing, or all `n_rows` rows are of one class.

    See Also
    --------
    dsel.covalidate : The estimates.
    sample_uncertain : The rows only.

    Notes
    -----
    Rows that are picked by uncertainty are no random sample, so no bound holds for
    models trained on them. In the experiments of Madani, Pennock and Flake (2004)
    disagreement is then nearer to the true error than cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> steps = learn_actively(SVC(), X, y.__getitem__, n_rows=40, every=15, repeats=5)
    >>> [(len(step.rows), "disagreement" in step.estimates) for step in steps]
    [(25, True), (40, True)]
    """
    check_integer(repeats, "repeats", at_least=1)
    labeling = _Labeling(estimator, pool, label_of, random_state)
    labeling.check(n_rows, n_start, batch, least=2)
    check_integer(every, "every", at_least=1)
    due = [*range(n_start + every, n_rows, every), n_rows]

    def steps() -> Iterator[ActiveStep]:
        """Yield a step for each number of labels once there are two classes."""
        for n_labeled in labeling.grow(due, n_start, batch):
            if len(set(labeling.y)) > 1:
                yield labeling.step(repeats, leave_one_out, client)
            elif n_labeled == n_rows:
                raise ValueError(
                    f"`label_of` returned the label {labeling.y[0]!r} for all {n_rows} "
                    f"rows, and a classifier needs two classes; raise `n_rows`."
                )

    # The generator is an inner function, so that the checks above run in the call, not
    # in the first `next`.
    return steps()


def sample_uncertain(
    estimator: Estimator,
    pool: PoolLike,
    label_of: Callable[[Integers], ArrayLike],
    *,
    n_rows: int,
    n_start: int = 10,
    batch: int = 1,
    random_state: RandomState = 0,
) -> Integers:
    """Pick rows to label as `learn_actively` does, without estimates.

    Parameters
    ----------
    estimator, pool, label_of, n_start, batch, random_state
        As `learn_actively` takes them.
    n_rows
        Number of rows to pick, including the random start.

    Returns
    -------
    ndarray
        Row numbers in the order of picking. The first k of them, k a multiple of
        ``batch``, are those that a run with ``n_rows=k`` would pick.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> sample_uncertain(SVC(), X, y.__getitem__, n_rows=40).shape
    (40,)
    """
    labeling = _Labeling(estimator, pool, label_of, random_state)
    labeling.check(n_rows, n_start, batch, least=1)
    for _ in labeling.grow([n_rows], n_start, batch):
        pass
    return labeling.rows


class _Labeling:
    """The rows labeled so far, and the search for the next ones."""

    def __init__(
        self,
        estimator: Estimator,
        pool: PoolLike,
        label_of: Callable[[Integers], ArrayLike],
        random_state: RandomState,
    ) -> None:
        methods = ("decision_function", "predict_proba")
        has_scores = any(hasattr(estimator, method) for method in methods)
        if isinstance(estimator, type) or not has_scores:
            raise TypeError(
                f"`estimator` must be an unfitted classifier with `decision_function` "
                f"or `predict_proba`, such as SVC(), got {show(estimator)}."
            )
        if not callable(label_of):
            raise TypeError(
                f"`label_of` must be a function of row numbers that returns their "
                f"labels, such as y.__getitem__, got {type(label_of).__name__}."
            )
        self.estimator, self.label_of = estimator, label_of
        self.seed = seed_from(random_state)
        opened = open_pool(pool)
        names_columns = hasattr(first_step(estimator), "transformers")
        if opened.frames is not None and (names_columns or opened.dtype.kind == "O"):
            opened = opened.with_schema(opened.frames)
        self.pool = opened
        self.allow_nan = takes_nan([estimator])
        self.rows = np.empty(0, dtype=np.int64)
        self.X: Any = None
        self.y: list[Any] = []

    def check(self, n_rows: int, n_start: int, batch: int, *, least: int) -> None:
        check_integer(n_rows, "n_rows", at_least=least, at_most=self.pool.n_rows)
        check_integer(n_start, "n_start", at_least=1, at_most=n_rows)
        check_integer(batch, "batch", at_least=1)

    def grow(self, due: Sequence[int], n_start: int, batch: int) -> Iterator[int]:
        """Label rows, and yield each number of rows at which an estimate is due."""
        self.add(n_start)
        for n_rows in due:
            while (done := len(self.y)) < n_rows:
                self.add(min(batch, n_rows - done))
            yield n_rows

    def add(self, n_rows: int) -> None:
        """Label the next rows: one pass over the pool."""
        model, known, seed = None, np.sort(self.rows), self.seed
        if len(set(self.y)) > 1:
            # Seeds of the learner depend on the seed and the number of labeled rows.
            model = set_missing_seeds(clone(self.estimator), seed, len(self.y))
            model.fit(native(self.X), np.array(self.y))

        def pick_uncertain(X: Any, row_numbers: Integers) -> Picks:
            unlabeled = np.flatnonzero(~np.isin(row_numbers, known, assume_unique=True))
            gaps = np.zeros(len(unlabeled))  # without a model all rows are equal
            if model is not None and len(unlabeled):
                gaps = score_gaps(model, X[unlabeled])
            order = row_random_at(seed, ACTIVE_STREAM, row_numbers)[unlabeled]
            columns = gaps, order, row_numbers[unlabeled], X[unlabeled]
            return Picks._make(smallest_rows(columns, n_rows))

        picks: Picks = self.pool.reduce(
            pick_uncertain,
            lambda first_picks, second_picks: Picks._make(
                merge_smallest(first_picks, second_picks, n_rows)
            ),
            keep=True,
            allow_nan=self.allow_nan,
        )
        try:
            labels = np.asarray(self.label_of(picks.rows))
        except TypeError as error:
            raise TypeError(
                f"`label_of` must take an array of row numbers, as y.__getitem__ does, "
                f"but {show(self.label_of)} raised: {error}"
            ) from error
        if labels.shape != picks.rows.shape:
            raise ValueError(
                f"`label_of` must return one label for each of the {len(picks.rows)} "
                f"queried rows, got shape {labels.shape}."
            )
        if (missing := np.flatnonzero(pd.isna(labels))).size:
            raise ValueError(
                f"`label_of` must return a label for each queried row, but that of row "
                f"{picks.rows[missing[0]]} is missing; leave such rows out of the pool."
            )
        self.y.extend(labels)
        self.rows = np.concatenate([self.rows, picks.rows])
        self.X = picks.X if self.X is None else concatenate_rows([self.X, picks.X])

    def step(
        self, repeats: int, leave_one_out: bool, client: "Client | None"
    ) -> ActiveStep:
        """Estimate the error from the rows labeled so far and all other rows."""
        X, y = native(self.X), np.array(self.y)
        unlabeled = self.pool.excluding(self.rows)
        results = covalidate(
            self.estimator,
            None,
            X,
            y,
            unlabeled,
            repeats=repeats,
            leave_one_out=leave_one_out,
            picked=True,
            random_state=self.seed,
            client=client,
        )
        return ActiveStep(self.rows, X, y, results)


class Picks(NamedTuple):
    """The best rows of a part of the pool."""

    gaps: Floats
    """Gap between the two best scores of each row, ascending."""
    order: NDArray[np.uint64]
    """Random number of each row, which breaks ties between equal gaps."""
    rows: Integers
    X: Any
    """The rows, dense, CSR or a `Frame`."""


def score_gaps(model: Any, X: Any) -> Floats:
    """Return the gap between the two best scores of each row, shape (n_rows,).

    Gaps are >= 0. A row with gap 0 is the most uncertain; all gaps are infinite where
    the model knows one class only.
    """
    if hasattr(model, "coef_") and model.coef_.shape[0] == 1:
        # This is one product with the coefficients; a linear SVC would use its support
        # vectors. They are made dense, since products with a sparse vector are much
        # slower.
        coef = model.coef_
        coef = np.ravel(coef.toarray() if hasattr(coef, "toarray") else coef)
        return np.asarray(2.0 * np.abs(X @ coef + model.intercept_))
    scores = class_scores(model, X, model.classes_)
    if scores.shape[1] < 2:
        return np.full(X.shape[0], np.inf)
    top = np.partition(scores, scores.shape[1] - 2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])
