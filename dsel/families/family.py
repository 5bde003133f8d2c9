"""The seam by which the candidates of a grid are fitted and predict together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.data.splits import Split

INSTALLED: Final = (
    "<frozen", "<__array", str(Path(__file__).parents[1]),
    *(get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
)  # fmt: skip
"""What the files of packages begin with, those of Python and dsel included."""
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
    """What was counted when a group was fitted; arrays are candidates x splits."""

    test_errors: Integers
    """Errors on the first part of `Split.tests`; -1 where the fit failed."""
    train_errors: Integers
    """Errors on the second part; -1 where the fit failed, or there is no such part."""
    status: NDArray[np.int8]
    """``FIT_DONE`` or ``FIT_FAILED``."""
    seconds: Floats
    """Time of each fit, NaN where none was taken; shared work is divided evenly."""
    messages: dict[tuple[int, int], str]
    """Candidate number and split number to what went wrong (or a remark)."""

    @classmethod
    def empty(cls, n_candidates: int, n_splits: int) -> "FitCounts":
        """Return counts with nothing recorded yet: every fit counts as failed."""
        shape = (n_candidates, n_splits)
        return cls(
            np.full(shape, -1, dtype=np.int64),
            np.full(shape, -1, dtype=np.int64),
            np.full(shape, FIT_FAILED, dtype=np.int8),
            np.full(shape, np.nan),
            {},
        )

    def record(self, places: Any, test_errors: Any, train_errors: Any = -1) -> None:
        """Write the errors of fits that were done, at `places` of the arrays."""
        self.test_errors[places] = test_errors
        self.train_errors[places] = train_errors
        self.status[places] = FIT_DONE

    def failed(self, candidate: int, split: int, error: Exception) -> None:
        """Keep what `fit` or `predict` raised: failure is data, not the end of a run.

        A fit that is not recorded has failed. Where `predict` raised it is recorded,
        and all rows of the part are errors.
        """
        said = f"{type(error).__name__}: {error}"
        called = [
            each
            for each in extract_tb(error.__traceback__)
            if not each.filename.startswith(INSTALLED)
        ]
        if called:  # code of the user's own
            name, line = Path(called[-1].filename).name, called[-1].lineno
            said = f"{said.rstrip('.')} ({name}, line {line})"
        self.messages[candidate, split] = said

    def refuse(self, place: tuple[int, int], key: tuple[int, int], why: str) -> None:
        """Count a fit that was done as failed; `key` as in `messages`."""
        self.test_errors[place] = self.train_errors[place] = -1
        self.status[place] = FIT_FAILED
        self.messages[key] = why

    def select(self, places: Any, split: int | None = None) -> "FitCounts":
        """Return the counts at `places` of the arrays, one split's messages."""
        kept = {
            key: text
            for key, text in self.messages.items()
            if split is None or key[1] == split
        }
        return FitCounts(
            self.test_errors[places],
            self.train_errors[places],
            self.status[places],
            self.seconds[places],
            kept,
        )


class FittedGroup(Protocol):
    """Models of some candidates, one per split, that predict together.

    Class codes and numbers of candidates and splits are those of the plan.
    """

    @property
    def candidates(self) -> tuple[int, ...]:
        """Numbers of the candidates, in the order of every candidate axis."""

    @property
    def splits(self) -> tuple[int, ...]:
        """Numbers of the splits, in the order of every split axis."""

    @property
    def counts(self) -> FitCounts:
        """Errors of every model on its test and training rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of the models.

        `__sizeof__` of the members returns the same: Dask uses it to move and spill.
        """

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row, so that callers size blocks."""

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return the class codes that the chosen splits give to each row.

        Parameters
        ----------
        X
            Rows to predict, shape (n_rows, n_columns), dense, CSR, or a `Frame`.
        which
            Split numbers: each entry broadcasts to (n_candidates, n_rows), so
            one asks for one split, for one per row, or for one per candidate.

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
        as the pair (-f, f). Classes that a split has not seen score -inf.

        Raises
        ------
        TypeError
            Where the models have no real-valued scores.
        """

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted scikit-learn estimator of one candidate and split."""


class Cache(Protocol):
    """Arrays that tasks of one process share, within a limit of bytes."""

    @property
    def limit(self) -> int:
        """Bytes that cached arrays and a task's own work arrays may take."""

    def get(self, key: str, make: Any) -> Any:
        """Return what is stored under `key`, or make it, keep it if it fits."""


class Family(Protocol):
    """How candidates are fitted and predict together.

    Members are frozen dataclasses that pickle small. They are made of what all fits
    need beside the rows: ``classes`` (label of each class code, sorted), ``seed`` (of
    the plan) and ``fit_params`` (keyword arguments of every `fit`). Learners see
    labels, not codes, so that ``class_weight`` works.
    """

    @property
    def name(self) -> str:
        """Short name, shown by the plan."""

    @property
    def fit_params(self) -> Mapping[str, Any]:
        """Keyword arguments of every `fit`."""

    @property
    def fits_splits_together(self) -> bool:
        """Whether all splits of a group share work, so that one task fits them."""

    @property
    def holds_interpreter(self) -> bool:
        """Whether two threads fit no faster than one, so that processes are wanted."""

    @property
    def takes_frames(self) -> bool:
        """Whether `fit` gets data frames, as a `Frame`, where labeled rows are one."""

    def refusal(self, estimator: Any) -> str | None:
        """Return why an estimator is left to the next family; None if it is taken.

        The text is empty where the family is for other estimators altogether; any
        other text is shown by the plan.
        """

    def assign(self, candidates: Sequence[Candidate], X: Any) -> "Assignment":
        """Group candidates that were not refused; raise where one cannot work on `X`.

        Raises
        ------
        TypeError, ValueError
            Naming the parameter, its rule, its value and the way out.
        """

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise where a task's `limit` of bytes is too small for any fit of `n_rows`.

        Raises
        ------
        MemoryError
            With the bytes that are needed and that there are.
        """

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes of what the fits of some groups share in one process.

        Where its memory does not hold them, less of it is kept.
        """

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Split candidates into groups that share work; order by number within."""

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit every candidate of the group on every split.

        A candidate that raises is recorded in the counts as failed; it never ends
        the call. The result for one candidate and split does not depend on which
        other candidates and splits are in the call.

        Parameters
        ----------
        group
            One of the groups that `groups` made, or some of it.
        X, y
            All labeled rows and their class codes; splits index into them.
        splits
            Named sets of training and test rows.
        pool
            The fitting part of the unlabeled pool, for learners that take one.
        budget
            Byte limit and the process-wide cache of shared arrays.
        """

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups of this family so that they predict in as few products as can be.

        The groups may differ in candidates and in splits. With `candidates` only these
        are packed, in the order given. What is returned can be joined again.
        """


@dataclass(frozen=True)
class Assignment:
    """Candidates that one family fits."""

    family: Family
    candidates: tuple[Candidate, ...]
    """In the order of their numbers."""
    groups: tuple[tuple[Candidate, ...], ...]
    """The same, those that share work together."""
    remark: str
    """How they are fitted, for the plan."""
    breaks_independence: str = ""
    """Why fold models depend on their held-out rows (A3), empty if they do not."""


def group_by(
    candidates: Iterable[Candidate], key: Callable[[Candidate], str]
) -> list[tuple[Candidate, ...]]:
    """Return candidates of equal key together, each group in the order of numbers."""
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(key(candidate), []).append(candidate)
    return [tuple(sorted(group, key=lambda c: c.number)) for group in found.values()]


def joined_numbers(
    fitted: Sequence[FittedGroup], candidates: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the candidates and the splits of what `Family.join` packs, in order."""
    if candidates is None:
        candidates = sorted({number for each in fitted for number in each.candidates})
    splits = sorted({number for each in fitted for number in each.splits})
    return tuple(candidates), tuple(splits)
