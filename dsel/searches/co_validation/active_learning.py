"""Active learning from a pool of any size, with estimates of the error at intervals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.bounds import MeanInterval, progressive_risk
from dsel.checks import check_integer, check_probability
from dsel.data.blocks import stacked
from dsel.data.collection import Partitions
from dsel.data.frames import frame_of, native, pandas_of
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.row_random import ACTIVE_STREAM, hashed_seed, row_random_at, seed_from
from dsel.families.prefixes import first_step
from dsel.searches.candidates import takes_nan
from dsel.searches.co_validation.active import (
    check_asked,
    fitted_on,
    labels_of,
    sure_margins,
)
from dsel.searches.co_validation.covalidate import check_options, covalidate

OPTIONS: Final = ("repeats", "leave_one_out", "pool_labels", "client")
"""Those of `covalidate` that active learning takes, too."""


@dataclass(frozen=True)
class ActiveStep:
    """The rows labeled so far, and estimates of the error of a model of them."""

    rows: NDArray[np.int64]
    """Row numbers in the pool, in the order in which they were picked."""
    X: Any
    """Their features, dense, CSR or a data frame."""
    y: NDArray[Any]
    results: xr.Dataset
    """Cube of `covalidate` on them and the rest of the pool. Its assumptions say that
    nothing can be certified, and why."""
    log: NDArray[np.float64]
    """One row for each pick after the random start: loss of the model that picked it,
    probability of the pick, errors of that model on the rows labeled before, and number
    of rows that were left."""
    least: float | None
    """As `learn_actively` takes it; None where picks were greedy."""

    def __repr__(self) -> str:
        return f"ActiveStep({len(self.rows)} labeled rows, least={self.least})"

    def risk(self, *, delta: float = 0.05) -> MeanInterval:
        """Return the mean error on the pool of all models so far, with an interval.

        The losses are weighted by the probabilities of the picks, so it holds although
        rows were not drawn uniformly. The model of all labels is usually better than
        the mean of those before it.

        Parameters
        ----------
        delta
            Probability with which the interval of this step may fail, in (0, 1).

        Raises
        ------
        ValueError
            Where rows were picked greedily: pass ``least`` to `learn_actively`.
        """
        if self.least is None or not len(self.log):
            raise ValueError(
                "`risk` needs rows that were picked with known chances, after the "
                "random start; call learn_actively with least=0.2, for example."
            )
        losses, chances, earlier, left = self.log.T
        # Of the cube's pool a learner may have taken a part.
        n_pool = int(left[0]) + len(self.rows) - len(left)
        return progressive_risk(
            losses, chances, earlier, left, n_pool, least=self.least, delta=delta
        )

    @property
    def estimates(self) -> dict[str, float]:
        """Every estimate of co-validation by the name of its criterion."""
        found = self.results[names.ESTIMATE]
        return {
            str(name): float(found.sel({names.CRITERION: name}).squeeze())
            for name in found[names.CRITERION].values
        }


class Picks(NamedTuple):
    """The best rows of a part of the pool."""

    gaps: NDArray[np.float64]
    """Gap between the two best scores of each, or a random number that is small with
    the chance of the row; ascending."""
    order: NDArray[np.uint64]
    """Random number of each row, which decides between equal gaps."""
    rows: NDArray[np.int64]
    X: Any
    """The rows, dense, CSR or a `Frame`."""
    weights: NDArray[np.float64]
    """Chance of each, but for a factor."""
    total: float
    """Sum over all rows of the part."""

    def first(self, n_rows: int) -> "Picks":
        """Return the `n_rows` rows of smallest gap, then smallest random number."""
        best = np.lexsort((self.order, self.gaps))[:n_rows]
        *parts, total = self
        return Picks._make([*(part[best] for part in parts), total])

    def joined(self, other: "Picks") -> "Picks":
        """Return the rows of both."""
        (*mine, total), (*theirs, more) = self, other
        parts = map(stacked, zip(mine, theirs, strict=True))
        return Picks._make([*parts, total + more])


def learn_actively(
    estimator: Any,
    pool: Any,
    label_of: Callable[[NDArray[np.int64]], ArrayLike],
    *,
    n_rows: int,
    every: int = 25,
    n_start: int = 10,
    batch: int = 1,
    least: float | None = None,
    random_state: Any = 0,
    **options: Any,
) -> Iterator[ActiveStep]:
    """Label rows of a pool by uncertainty sampling; estimate the error at intervals.

    After a random start the model is trained on what is labeled, and the rows with
    the smallest gap between its two best scores are labeled next. At regular
    intervals co-validation estimates the error; stop when it is low enough.

    Parameters
    ----------
    estimator
        Unfitted classifier with `decision_function` or `predict_proba`.
    pool
        Unlabeled rows: anything that `open_pool` takes. Each batch is one pass.
    label_of
        Called with the numbers of picked rows; returns their labels.
    n_rows
        Rows to label at most, the start included.
    every
        Labels between two estimates; the last one is at `n_rows`.
    n_start
        Random rows to start with. While they have one class only, rows are drawn at
        random until a second one appears.
    batch
        Rows to label before the model is trained again; it divides `every`.
    least
        None picks the rows of the smallest gaps. A number in (0, 1] draws rows with
        known probabilities: that of the least sure row is at most ``1 / least`` times
        that of the surest one. Then each step has a `risk`.
    random_state
        Seed of the start, of ties, of the halvings and of the learner.
    **options
        As `covalidate` takes them: ``repeats``, ``leave_one_out``, ``pool_labels``,
        ``client``.

    Returns
    -------
    iterator of ActiveStep
        One after every `every` labels from the start on. Labels are asked for as it
        goes on.

    Raises
    ------
    TypeError, ValueError
        Where an argument is not what it must be, before a label is asked for; where a
        label is missing, or all `n_rows` rows are of one class.

    See Also
    --------
    dsel.covalidate : The estimates.
    sample_uncertain : The rows only.

    Notes
    -----
    Rows so picked are no random sample, so no bound holds for what is trained on
    them. In the paper's experiments disagreement is then nearer to the true error
    than cross-validation is. With `least` there is an interval all the same, from
    `ActiveStep.risk`: the loss at each row, of the model before it was labeled, is
    weighted by the probability of the pick.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> steps = learn_actively(SVC(), X, y.__getitem__, n_rows=40, every=15, repeats=5)
    >>> [(len(step.rows), sorted(step.estimates)[:2]) for step in steps]
    [(25, ['dis_error', 'disagreement']), (40, ['dis_error', 'disagreement'])]
    >>> *_, last = learn_actively(
    ...     SVC(), X, y.__getitem__, n_rows=150, every=140, batch=5, least=0.5,
    ...     repeats=2)
    >>> found = last.risk(delta=0.1)
    >>> round(found.lower, 2), round(found.mean, 2), round(found.upper, 2)
    (0.0, 0.06, 0.18)
    """
    check_asked(estimator, label_of)
    check_options(options, OPTIONS, "learn_actively")
    check_integer(options.get("repeats", 1), "repeats", at_least=1)
    opened = open_pool(pool)
    check_integer(n_rows, "n_rows", at_least=2, at_most=opened.n_rows)
    check_integer(n_start, "n_start", at_least=1, at_most=n_rows)
    check_integer(batch, "batch", at_least=1)
    check_integer(every, "every", at_least=1)
    if least is not None and least != 1:
        check_probability(least, "least")
    seed = seed_from(random_state)
    due = {*range(n_start + every, n_rows, every), n_rows}
    labeling = _Labeling(estimator, opened, label_of, seed, least)
    # A generator of its own: what is above is checked by the call, not by `next`.
    return _steps(labeling, n_start, batch, sorted(due), options)


def _steps(
    labeling: "_Labeling", n_start: int, batch: int, due: list[int], options: Any
) -> Iterator[ActiveStep]:
    """Label rows, and yield a step at each number of them that is due."""
    labeling.add(n_start)
    while True:
        done = len(labeling.y)
        if done in due and len(set(labeling.y)) > 1:
            yield labeling.step(**options)
        if done >= due[-1]:
            break
        next_due = min(number for number in due if number > done)
        labeling.add(min(batch, next_due - done))
    if len(set(labeling.y)) < 2:
        raise ValueError(
            f"`label_of` gave all {done} rows the label {labeling.y[0]!r}, and nothing "
            f"is learned of one class; raise `n_rows`."
        )


class _Labeling:
    """The rows labeled so far, and how the next ones are found."""

    def __init__(
        self,
        estimator: Any,
        pool: Any,
        label_of: Callable[[NDArray[np.int64]], ArrayLike],
        seed: int,
        least: float | None,
    ) -> None:
        self.estimator, self.seed = estimator, seed
        self.pool = _as_taken(pool, estimator)
        self.allow_nan = takes_nan([estimator])
        self.label_of, self.least = label_of, least
        self.log = np.empty((0, 4))
        self.rows = np.empty(0, dtype=np.int64)
        self.X: Any = None
        self.y: list[Any] = []

    def add(self, n_rows: int) -> None:
        """Label the next rows: one pass over the pool."""
        model = self._model()
        count = partial(
            least_sure,
            model=model,
            taken=np.sort(self.rows),
            n_rows=n_rows,
            seed=self.seed,
        )
        if model is not None and self.least is not None:
            # Rows that were passed over before have large numbers: draw new ones.
            fresh = hashed_seed(self.seed, len(self.y))
            gaps = sure_margins(model, self.X)
            usual = float(np.median(gaps)) or 1.0
            count = partial(count, seed=fresh, least=self.least, usual=usual)
        picks: Picks = self.pool.reduce(
            count,
            lambda one, other: one.joined(other).first(n_rows),
            keep=True,
            allow_nan=self.allow_nan,
        )
        labels = labels_of(self.label_of, picks.rows)
        if model is not None and self.least is not None:
            self.log = np.concatenate([self.log, self._noted(model, picks, labels)])
        self.y.extend(labels)
        self.rows = np.concatenate([self.rows, picks.rows])
        self.X = picks.X if self.X is None else stacked([self.X, picks.X])

    def _noted(self, model: Any, picks: Picks, labels: NDArray[Any]) -> Any:
        """Return what is logged of picks and of the model that picked them."""
        losses = (model.predict(native(picks.X)) != labels).astype(float)
        earlier = np.sum(model.predict(native(self.X)) != np.array(self.y))
        drawn = np.cumsum(picks.weights) - picks.weights
        chances = picks.weights / (picks.total - drawn)
        n_left = self.pool.n_rows - len(self.y) - np.arange(len(losses))
        passed = earlier + np.cumsum(losses) - losses
        return np.column_stack([losses, chances, passed, n_left])

    def _model(self) -> Any:
        """Return the model of the labeled rows; None while they are of one class."""
        if len(set(self.y)) < 2:
            return None
        return fitted_on(self.estimator, native(self.X), np.array(self.y), self.seed)

    def step(self, **options: Any) -> ActiveStep:
        """Estimate the error from the rows labeled so far and all others."""
        X, y = native(self.X), np.array(self.y)
        results = covalidate(
            self.estimator,
            None,
            X,
            y,
            self.pool.excluding(self.rows),
            random_state=self.seed,
            picked=True,
            # The labeled records are excluded above, so equal rows are other records.
            duplicates="keep",
            **options,
        )
        return ActiveStep(self.rows, X, y, results, self.log, self.least)


def _as_taken(pool: Pool, estimator: Any) -> Pool:
    """Return the pool with blocks of frames where it has text, or columns are named."""
    rows = pool.collection
    if rows.frames is not None and hasattr(first_step(estimator), "transformers"):
        rows = rows.frames()
    schema = rows.array.schema if isinstance(rows.array, Partitions) else None
    if schema is not None and type(schema.empty).__module__ == "pyarrow.lib":
        # A ColumnTransformer takes no tables of Arrow, which Parquet files give, and
        # without rows such a table does not know its categories.
        empty = pandas_of(schema.empty)
        encoded = empty.select_dtypes("category")
        kinds = {name: encoded[name].cat.categories.dtype for name in encoded}
        schema = frame_of(empty.astype(kinds)).schema
    return replace(pool, collection=rows, schema=schema)


def least_sure(
    X: Any,
    rows: NDArray[np.int64],
    *,
    model: Any,
    taken: NDArray[np.int64],
    n_rows: int,
    seed: int,
    least: float | None = None,
    usual: float = 1.0,
) -> Picks:
    """Return the rows of a block that a model is least sure of; any without a model.

    With `least` they are drawn, with chances in proportion to weights from `least` to
    1, halfway at the gap `usual`.
    """
    free = np.flatnonzero(~np.isin(rows, taken, assume_unique=True))
    gaps, weights = np.zeros(len(free)), np.ones(len(free))
    if model is not None and len(free):
        gaps = sure_margins(model, X[free])
    order = row_random_at(seed, ACTIVE_STREAM, rows)[free]
    if least is not None:
        weights = least + (1.0 - least) / (1.0 + gaps / usual)
        # The smallest of exponential numbers over weights is each with its chance, then
        # the second smallest among the others, and so on (Efraimidis and Spirakis).
        gaps = -np.log((order + 0.5) * 2.0**-64) / weights
    total = float(weights.sum())
    return Picks(gaps, order, rows[free], X[free], weights, total).first(n_rows)
