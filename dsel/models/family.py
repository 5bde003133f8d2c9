"""The seam by which the candidates of a grid are fitted and predict together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.data.trainings import Training
from dsel.models.arrays import Floats, Integers

FIT_DONE: Final = 0
FIT_FAILED: Final = 1


@dataclass(frozen=True)
class Candidate:
    """One model of the grid."""

    number: int
    """Place in ``ParameterGrid`` order, which is the cube's C order."""
    params: Mapping[str, Any]
    """What the grid sets; empty for a candidate given as an estimator."""
    estimator: Any
    """Unfitted scikit-learn classifier with `params` set."""


@dataclass(frozen=True)
class FitCounts:
    """What fitting a group showed; every array is candidates x trainings."""

    test_errors: Integers
    """Errors on the test rows of the training; -1 where the fit failed."""
    train_errors: Integers
    """Errors on its own training rows; -1 where the fit failed."""
    status: NDArray[np.int8]
    """``FIT_DONE`` or ``FIT_FAILED``."""
    seconds: Floats
    """Time of each fit, NaN where none was taken; shared work is divided evenly."""
    messages: dict[tuple[int, int], str]
    """Candidate number and training number to what went wrong (or a remark)."""

    @classmethod
    def empty(cls, n_candidates: int, n_trainings: int) -> "FitCounts":
        """Return counts of which nothing is known: every fit failed, so far."""
        shape = (n_candidates, n_trainings)
        return cls(
            np.full(shape, -1, dtype=np.int64),
            np.full(shape, -1, dtype=np.int64),
            np.full(shape, FIT_FAILED, dtype=np.int8),
            np.full(shape, np.nan),
            {},
        )

    def record(self, places: Any, test_errors: Any, train_errors: Any) -> None:
        """Write the errors of fits that were done, at `places` of the arrays."""
        self.test_errors[places] = test_errors
        self.train_errors[places] = train_errors
        self.status[places] = FIT_DONE

    def failed(self, candidate: int, training: int, error: Exception) -> None:
        """Keep what a fit raised: a failed fit is data, not the end of a run."""
        self.messages[candidate, training] = f"{type(error).__name__}: {error}"

    def copy(self, places: Any, source: "FitCounts") -> None:
        """Write the counts of other arrays to `places` of these, and all messages."""
        self.test_errors[places] = source.test_errors
        self.train_errors[places] = source.train_errors
        self.status[places] = source.status
        self.seconds[places] = source.seconds
        self.messages.update(source.messages)

    def select(self, places: Any, training: int | None = None) -> "FitCounts":
        """Return the counts at `places` of the arrays, one training's messages."""
        kept = {
            key: text
            for key, text in self.messages.items()
            if training is None or key[1] == training
        }
        return FitCounts(
            self.test_errors[places],
            self.train_errors[places],
            self.status[places],
            self.seconds[places],
            kept,
        )


class FittedGroup(Protocol):
    """Models of some candidates, one per training, that predict together.

    Class codes and numbers of candidates and trainings are those of the plan.
    """

    @property
    def candidates(self) -> tuple[int, ...]:
        """Numbers of the candidates, in the order of every candidate axis."""

    @property
    def trainings(self) -> tuple[int, ...]:
        """Numbers of the trainings, in the order of every training axis."""

    @property
    def counts(self) -> FitCounts:
        """Errors of every model on its test and training rows."""

    @property
    def nbytes(self) -> int:
        """What moving the models costs.

        The members' `__sizeof__` says the same: Dask goes by it in moving and spilling.
        """

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row, so that callers size blocks."""

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return the class codes that the chosen trainings give to each row.

        Parameters
        ----------
        X
            Rows to predict, shape (n_rows, n_columns), dense or CSR.
        which
            Training numbers: each entry broadcasts to (n_candidates, n_rows), so
            one asks for one training, for one per row, or for one per candidate.

        Returns
        -------
        ndarray
            Class codes, shape (len(which), n_candidates, n_rows); -1 where the fit
            failed, below that for what is no class. A row's codes do not depend on
            which other rows are in `X`.
        """

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Return real scores, shape (len(which), n_candidates, n_rows, n_classes).

        The larger a score the more likely the class; two-class margins f are given
        as the pair (-f, f). Classes that a training has not seen score -inf.

        Raises
        ------
        TypeError
            Where the models have no real-valued scores.
        """

    def model(self, candidate: int, training: int) -> Any:
        """Return the fitted scikit-learn estimator of one candidate and training."""


class Cache(Protocol):
    """Arrays that tasks of one process share, within a limit of bytes."""

    @property
    def limit(self) -> int:
        """Bytes that cached arrays and a task's own work arrays may take."""

    def get(self, key: str, make: Any) -> Any:
        """Return what is stored under `key`, or make it, keep it if it fits."""


class Family(Protocol):
    """How candidates are fitted and predict together.

    Members are frozen dataclasses that pickle small. They hold what all fits need
    beside the rows: ``classes`` (label of each class code), ``seed`` and
    ``fit_params``. Learners see labels, not codes, so that ``class_weight`` works.
    """

    @property
    def name(self) -> str:
        """Short name, shown by the plan."""

    @property
    def fit_params(self) -> Mapping[str, Any]:
        """Keyword arguments of every `fit`."""

    @property
    def fits_trainings_together(self) -> bool:
        """Whether all trainings of a group share work, so that one task fits them."""

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise where a task's `limit` of bytes is too small for any fit of `n_rows`.

        Raises
        ------
        MemoryError
            With the bytes that are needed and that there are.
        """

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Split candidates into groups that share work; order by number within."""

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        trainings: Sequence[Training],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit every candidate of the group on every training.

        A candidate that raises is recorded in the counts as failed; it never ends
        the call. The result for one candidate and training does not depend on which
        other candidates and trainings are in the call.

        Parameters
        ----------
        group
            One of the groups that `groups` made, or some of it.
        X, y
            All labeled rows and their class codes; trainings index into them.
        trainings
            Named sets of training and test rows.
        pool
            The fitting part of the unlabeled pool, for learners that want one.
        budget
            Byte limit and the process-wide cache of shared arrays.
        """

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups of this family so that they predict in as few products as can be.

        Pieces may differ in candidates and in trainings. With `candidates` only these
        are packed, in the order given; the others are left out. What it returns is a
        piece as well.
        """
