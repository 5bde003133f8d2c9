"""The interface of a family, which fits groups of candidates that share work."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.data.cache import ByteCache, LastUse
from dsel.data.identity import exact_text
from dsel.data.splits import Split

INSTALLED: Final = (
    "<frozen", "<__array", str(Path(__file__).parents[1]),
    *(get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
)  # fmt: skip
"""What the files of packages begin with, those of Python and dsel included."""
Cache = ByteCache | LastUse
"""Arrays that tasks of one process share, within a limit of bytes."""
FIT_DONE: Final = 0
FIT_FAILED: Final = 1


@dataclass(frozen=True)
class Candidate:
    """One candidate of the grid."""

    number: int
    """Place in ``ParameterGrid`` order, which is the cube's C order."""
    params: Mapping[str, Any]
    """What the grid sets; empty for a candidate given as an estimator."""
    estimator: Any
    """Unfitted scikit-learn classifier or regressor with `params` set."""

    @cached_property
    def all_params(self) -> dict[str, Any]:
        """Parameters of the estimator and of all its parts.

        Read once in a process: `get_params` inspects signatures, and takes as long as
        a small fit.
        """
        params: dict[str, Any] = self.estimator.get_params(deep=True)
        return params

    @cached_property
    def steps_text(self) -> str:
        """What tells the steps before the last one, of a pipeline, from other steps."""
        return exact_text(self.estimator[:-1])


@dataclass(frozen=True)
class FitCounts:
    """Counts of the fits of a group; arrays are candidates x splits."""

    test_errors: Integers
    """Errors on the first part of `Split.tests`; -1 where the fit failed. Of
    regressors, rows whose prediction is no finite number."""
    train_errors: Integers
    """Errors on the second part; -1 where the fit failed, or there is no such part."""
    seconds: Floats
    """Time of each fit, NaN where none was taken; shared work is divided evenly."""
    messages: dict[tuple[int, int], str]
    """Candidate number and split number to what went wrong (or a remark)."""

    @classmethod
    def empty(cls, n_candidates: int, n_splits: int) -> "FitCounts":
        """Return counts before any fit: every fit counts as failed."""
        none = np.full((n_candidates, n_splits), -1, dtype=np.int64)
        return cls(none, none.copy(), np.full(none.shape, np.nan), {})

    @property
    def status(self) -> Integers:
        """``FIT_DONE`` or ``FIT_FAILED`` of each fit."""
        return np.where(self.test_errors < 0, FIT_FAILED, FIT_DONE)

    def record(self, places: Any, test_errors: Any, train_errors: Any = -1) -> None:
        """Record the errors of successful fits at `places` of the arrays."""
        self.test_errors[places] = test_errors
        self.train_errors[places] = train_errors

    def failed(self, candidate: int, split: int, error: Exception) -> None:
        """Record an error that `fit` or `predict` raised; it does not end the run.

        A fit that is not recorded has failed. Where `predict` raised it is recorded,
        and all rows of the part are errors.
        """
        said = f"{type(error).__name__}: {error}"
        frames = extract_tb(error.__traceback__)
        own = [each for each in frames if not each.filename.startswith(INSTALLED)]
        if own:  # code of the user's own
            where = f"{Path(own[-1].filename).name}, line {own[-1].lineno}"
            said = f"{said.rstrip('.')} ({where})"
        self.messages[candidate, split] = said

    def refuse(self, place: tuple[int, int], key: tuple[int, int], why: str) -> None:
        """Record a successful fit as failed; `key` as in `messages`."""
        self.test_errors[place] = self.train_errors[place] = -1
        self.messages[key] = why


class FittedGroup:
    """Models of some candidates, one per split, that predict together.

    Class codes and numbers of candidates and splits are those of the plan.
    """

    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""
    splits: tuple[int, ...]
    """Numbers of the splits, in the order of every split axis."""
    counts: FitCounts
    """Errors of every model on each part of its test rows."""

    @property
    def nbytes(self) -> int:
        """Bytes to send the models."""
        raise NotImplementedError

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row, so that callers size blocks."""
        raise NotImplementedError

    def __sizeof__(self) -> int:
        """Return the size by which Dask moves and spills the models."""
        return self.nbytes

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes, (len(which), n_candidates, n_rows), of rows or a `Frame`.

        Of regressors these are float64, and NaN where the fit failed.

        Each item asks for a split (), for one per row (n_rows,), or for one per
        candidate (n_candidates, 1). A code is -1 where the fit failed, and below that
        for what is no class. It does not depend on which other rows are in `X`.
        """
        raise NotImplementedError

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator of a candidate and split; KeyError if none."""
        raise NotImplementedError


@dataclass(frozen=True)
class Family:
    """How candidates are fitted and predict together; members pickle small.

    Learners see labels, not codes, so that ``class_weight`` works.
    """

    name: ClassVar[str]
    """Shown by the plan."""
    holds_interpreter: ClassVar[bool] = True
    """Whether two threads fit no faster than one, so that processes are wanted."""
    classes: NDArray[Any]
    """Label of each class code, sorted; of regressors there are none."""
    seed: int
    """Of the plan; a `random_state` that is None gets a hash of it."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of every `fit`; arrays of one value a row are cut to rows."""
    row_groups: NDArray[Any] | None = None
    """Key of each labeled row's group, for a `fit` that wants them; None without."""

    def refusal(self, estimator: Any) -> str | None:
        """Return why this family cannot fit a candidate; None if it can."""
        return None

    def rows_of(self, estimator: Any, X: Any) -> Any:
        """Return rows as an estimator's fit reads them: a `Frame`, or numbers."""
        return X

    def check(self, candidates: Sequence[Candidate], X: Any) -> None:
        """Raise TypeError or ValueError where a candidate cannot work on rows `X`."""

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Split candidates into groups that share work, by number within."""
        return [(candidate,) for candidate in candidates]

    def remark(self, n_groups: int, n_rows: int) -> str:
        """Return a line for the plan on how the candidates are fitted."""
        return "fitted one by one"

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise MemoryError where a task's `limit` is too small for any fit."""

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes that the fits of some groups share in one process."""
        return 0

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: NDArray[Any],
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit candidates of one group on every split of the labeled rows and codes.

        One that raises is recorded in the counts as failed, and never ends the call.
        What is found of a candidate and split does not depend on the others in the
        call. `pool` is the fitting part of the pool, for learners that take one.
        """
        raise NotImplementedError

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts for `candidates` only, in their order.

        They may differ in candidates and splits, and be packed again.
        """
        raise NotImplementedError


def iter_splits(
    which: Sequence[Integers], n_candidates: int
) -> Iterator[tuple[int, int, Any, Any]]:
    """Yield each item and split with the indices of its candidates and rows.

    `which` as `FittedGroup.predict` takes it. One of the indices is of all at least.
    """
    for item, chosen in enumerate(which):
        for split in np.unique(chosen).tolist():
            if np.ndim(chosen) == 1:
                yield item, split, slice(None), np.flatnonzero(chosen == split)
            elif np.all(chosen == split):
                yield item, split, slice(None), slice(None)
            else:
                yield item, split, np.flatnonzero(chosen == split), slice(None)


def joined_order(
    fitted: Sequence[FittedGroup], candidates: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the candidates and splits that `Family.join` packs, in order."""
    if candidates is None:
        candidates = sorted({number for each in fitted for number in each.candidates})
    splits = sorted({number for each in fitted for number in each.splits})
    return tuple(candidates), tuple(splits)
