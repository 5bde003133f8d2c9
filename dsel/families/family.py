"""The interface of a family, which fits groups of candidates that share work."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import get_annotations, signature
from pathlib import Path
from sysconfig import get_path
from textwrap import shorten
from traceback import extract_tb
from typing import Any, ClassVar, Final, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import ArrayLike, Bools, Estimator, Features, Floats, Integers
from dsel.data.cache import ByteCache, LastUseCache
from dsel.data.identity import exact_text
from dsel.data.pool import Pool
from dsel.data.splits import Number_co, Split
from dsel.old_names import OldName
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.typing import SplitNumbers

INSTALLED: Final = (
    "<frozen",
    "<__array",
    str(Path(__file__).parents[1]),
    *(get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
)
"""Prefixes of the files of installed packages, including Python and dsel; any other
file in a traceback is code of the user."""
Cache = ByteCache | LastUseCache
"""Cache of arrays that tasks of one process share, within a limit of bytes."""
N_PARTS: Final = 2
"""Most parts of a split's test rows; see `Split.row_parts`."""
TRACEBACK: Final = "Traceback (most recent call last):"
MOST_LETTERS: Final = 300
"""Most letters of the message of an error that a fit raised."""


@dataclass(frozen=True)
class Candidate:
    """One candidate of the grid."""

    number: int
    """Position in ``ParameterGrid`` order, which is the cube's C order."""
    params: Mapping[str, Any]
    """Parameters that the grid sets; empty for a candidate listed as an estimator."""
    estimator: Any
    """Unfitted scikit-learn classifier or regressor with `params` set."""

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Name what the caller passed in errors about values of the candidate.

        These errors, and those of other libraries, know a parameter or a part alone.
        """
        try:
            yield
        except Exception as error:  # learners of other libraries raise any error
            reason = f"{type(error).__name__}: " if isinstance(error, KeyError) else ""
            reason += shorten(str(error), 200)
            text = f"`param_grid[{self.number}]` cannot be fitted: {reason}"
            if self.params:
                shown = shorten(str(self.params), 60)
                # A pipeline, which the caller need not know of, has no values itself.
                owners = {name.rpartition("__")[0] for name in self.params}
                part = self.all_params.get(owners.pop()) if len(owners) == 1 else None
                owner = part if hasattr(part, "get_params") else self.estimator
                kind = type(owner).__name__
                text = f"`param_grid` sets {shown}, which {kind} refuses: {reason}"
            raise ValueError(text) from error

    @cached_property
    def all_params(self) -> dict[str, Any]:
        """Parameters of the estimator and of all its parts.

        Read once in a process: `get_params` inspects signatures, and takes as long as
        a small fit.
        """
        params: dict[str, Any] = self.estimator.get_params(deep=True)
        return params

    @cached_property
    def last_params(self) -> dict[str, Any]:
        """Parameters of the last step of a pipeline, and of all its parts."""
        params: dict[str, Any] = self.estimator[-1].get_params(deep=True)
        return params

    @cached_property
    def steps_text(self) -> str:
        """A text that identifies the steps before the last one of a pipeline."""
        return exact_text(self.estimator[:-1])


class FitId(NamedTuple, Generic[Number_co]):
    """Numbers of the candidate and the split of one fit.

    Families have a `FitId[int]`, by the splits of one call of `Family.fit`. A search
    has calls with the splits of all candidates, whose fits are a `FitId[SplitIndex]`,
    and calls with an outer split, ``FitId[OuterNumber]``.
    """

    candidate: int
    split_number: Number_co


@dataclass(eq=False)
class FitCounts:
    """Counts of the fits of a group, by candidate and split.

    They accumulate while the group is fitted: a family begins with `empty` ones, and
    its methods `record` and ``record_...`` are the only ones that change them. Later
    `record_failure` alone takes a fit back.
    """

    errors: Integers
    """Errors on each of `Split.row_parts`, candidates x splits x 2 parts; `UNCOUNTED`
    where the fit failed, or there is no second part. For regressors, the number of rows
    whose prediction is not finite."""
    seconds: Floats
    """Time of each fit, candidates x splits; NaN where it was not measured. Shared work
    is divided evenly."""
    messages: dict[FitId[int], FitMessage]
    """Messages of fits with a problem."""

    @classmethod
    def empty(cls, n_candidates: int, n_splits: int) -> "FitCounts":
        """Return counts before any fit, all of which count as failed."""
        shape = n_candidates, n_splits, N_PARTS
        errors = np.full(shape, names.UNCOUNTED, dtype=np.int64)
        return cls(errors, np.full(errors.shape[:2], np.nan), {})

    @property
    def has_failed(self) -> Bools:
        """Whether each fit failed, candidates x splits."""
        # The flag is derived from the errors, so that no failed fit can have errors.
        return np.asarray(self.errors[..., 0] == names.UNCOUNTED)

    def record(
        self, index: tuple[int | slice | Integers, int], *errors: ArrayLike
    ) -> None:
        """Record the errors of successful fits on a split, an argument for each part.

        `index` has the positions of the candidates in the group, and of the split.
        """
        for part_number, n_errors in enumerate(errors):
            self.errors[..., part_number][index] = n_errors

    def record_seconds(self, column: int, seconds: ArrayLike) -> None:
        """Record the time of the fits on a split, of one candidate or of each."""
        self.seconds[:, column] = seconds

    def record_message(self, fit: FitId[int], message: FitMessage) -> None:
        """Record the message of a fit; it replaces an earlier one."""
        self.messages[fit] = message

    def record_error(
        self,
        candidate: int,
        split_number: int,
        error: Exception,
        problem: FitProblem = FitProblem.FAILED,
    ) -> None:
        """Record the message of an exception that `fit` or `predict` raised.

        The run goes on. A fit without recorded errors has failed. Where only `predict`
        raised, the fit is recorded and all rows of the part count as errors.
        """
        message = error_line(error)
        frames = extract_tb(error.__traceback__)
        user_frames = [
            frame for frame in frames if not frame.filename.startswith(INSTALLED)
        ]
        # An error of the user's code may be raised deep inside of a library; the
        # message names the last frame of the user's own code.
        if user_frames:
            where = (
                f"{Path(user_frames[-1].filename).name}, line {user_frames[-1].lineno}"
            )
            message = f"{message.rstrip('.')} ({where})"
        self.record_message(
            FitId(candidate, split_number), FitMessage(problem, message)
        )

    def record_failure(self, index: tuple[int, int], fit: FitId[int], why: str) -> None:
        """Record a successful fit, at `index` of the arrays, as failed."""
        self.errors[index] = names.UNCOUNTED
        self.record_message(fit, FitMessage(FitProblem.FAILED, why))


def error_line(error: Exception) -> str:
    r"""Return the type and the message of an error as one line.

    If all fits of a search of scikit-learn failed, its message has their tracebacks,
    and the line is the last cause in them.

    Examples
    --------
    >>> error_line(ValueError("no\nnumber"))
    'ValueError: no number'
    """
    text = f"{type(error).__name__}: {error}"
    before, is_there, traceback = text.rpartition(TRACEBACK)
    if is_there:
        # Lines of code are indented; the first other one begins with the error's type.
        lines = (line for line in traceback.splitlines()[1:] if line[:1].strip())
        text = next(lines, before)
    line = " ".join(text.split())
    if len(line) <= MOST_LETTERS:
        return line
    # The first sentences say what is wrong, advice of a library follows.
    sentences, end, _ = line[:MOST_LETTERS].rpartition(". ")
    return f"{sentences}." if end else f"{line[:MOST_LETTERS]}..."


class FittedGroup:
    """Models of some candidates, one per split, that predict together.

    Class codes, candidate numbers and split numbers are those of the plan.
    """

    candidate_numbers: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""
    split_numbers: tuple[int, ...]
    """Numbers of the splits, in the order of every split axis."""
    fit_counts: FitCounts
    """Errors of every model on each part of its test rows."""

    def __init_subclass__(cls) -> None:
        """Raise TypeError if it has the counts by their name of 0.2."""
        if "counts" in {*vars(cls), *get_annotations(cls)}:
            raise TypeError(
                f"{cls.__name__} has a name of dsel 0.2: `counts` is now called "
                f"`fit_counts`."
            )

    @property
    def nbytes(self) -> int:
        """Bytes to send the models."""
        raise NotImplementedError

    @property
    def row_nbytes(self) -> int:
        """Bytes that `predict` needs for one row; callers size blocks by it."""
        raise NotImplementedError

    def __sizeof__(self) -> int:
        """Return the size by which Dask moves and spills the models."""
        return self.nbytes

    def predict(self, X: Features, splits: Sequence[SplitNumbers]) -> NDArray[Any]:
        """Predict rows or a `Frame`, (len(splits), n_candidates, n_rows).

        Class codes of classifiers are int64; numbers of regressors are float64, and NaN
        where the fit failed.

        Each item of `splits` names the split whose models predict: one for all, shape
        (), one for each row, (n_rows,), or one for each candidate, (n_candidates, 1). A
        code is `NO_PREDICTION` where the fit failed, and any other one below 0 where a
        prediction is no class. It does not depend on which other rows are in `X`.
        """
        raise NotImplementedError

    def test_predictions(
        self, split_number: int, part_number: int
    ) -> NDArray[Any] | None:
        """Return predictions for one part of a split's test rows, made at the fit.

        (n_candidates, n_rows). None if some candidate has none: then predict them.
        """
        return None

    def forget_test_predictions(self) -> None:
        """Drop these predictions, which are not needed once they are scored."""

    def model(self, candidate: int, split_number: int) -> Any:
        """Return the fitted estimator of a candidate and split; KeyError if none."""
        raise NotImplementedError

    def token(self, candidate: int, split_number: int) -> str:
        """Return a hash of all that the predictions of a model depend on.

        Equal tokens prove that a fit was repeated exactly, so that the counts of one
        model are those of the other. The token is computed once, where the model was
        fitted, since a transferred model may have another pickle. Raises KeyError if
        there is no model.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Family:
    """Base class of families; objects are sent to workers, so they pickle small.

    Estimators are fitted on labels, not on class codes, so that ``class_weight`` works.
    """

    name: ClassVar[str]
    """Name that the plan shows."""
    holds_interpreter: ClassVar[bool] = True
    """Whether fits hold Python's interpreter lock, so that processes are faster than
    threads."""
    takes_single: ClassVar[bool] = True
    """Whether it accepts a candidate that shares work with no other one. If not, the
    next family fits the candidate, and must give the same model."""
    classes: NDArray[Any]
    """Label of each class code, sorted; empty for regressors."""
    seed: int
    """Seed of the plan; a `random_state` that is None gets a hash of it."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of every `fit`; arrays with one value for each row are cut to
    the training rows."""
    group_by_row: NDArray[Any] | None = None
    """Group of each labeled row, for a `fit` that takes groups; None without groups."""
    columns: tuple[str, ...] | None = None
    """Names of the columns, which a family whose `fit` gets numbers gives to its models
    as `feature_names_in_`; None unless the labeled rows are a data frame."""

    row_groups = OldName("group_by_row")

    def __init_subclass__(cls) -> None:
        """Raise TypeError if a method has a name of 0.2, by which nothing calls it."""
        names = {*signature(cls.fit).parameters, *signature(cls.fit_note).parameters}
        names |= signature(cls.shared_nbytes).parameters.keys()
        if hasattr(cls, "check_budget") or names & {"budget", "n_groups"}:
            raise TypeError(
                f"{cls.__name__} has names of dsel 0.2: `fit` takes `cache` in the "
                f"place of `budget`, `check_budget` is now called `check_memory`, and "
                f"`fit_note` and `shared_nbytes` take `candidate_groups` in the place "
                f"of `n_groups`."
            )

    def refusal(self, estimator: Estimator) -> str | None:
        """Return why this family cannot fit a candidate; None if it can.

        The plan prints the reason after the note of the family that takes the
        candidate. An estimator of another kind needs no reason: then the text is empty.
        """
        return None

    def rows_of(self, estimator: Estimator, X: Features) -> Any:
        """Return rows in the form that the estimator's `fit` takes."""
        return X

    def check(self, candidates: Sequence[Candidate], X: Features) -> None:
        """Raise TypeError or ValueError if a candidate cannot be fitted to rows `X`."""

    def group_candidates(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[Candidate, ...]]:
        """Split candidates into groups that share work, by number within."""
        return [(candidate,) for candidate in candidates]

    def fit_note(
        self, candidate_groups: Sequence[Sequence[Candidate]], n_rows: int
    ) -> str:
        """Return a line for the plan on how the candidates are fitted."""
        return "fitted one by one"

    def check_memory(self, n_rows: int, limit: int) -> None:
        """Raise MemoryError where a task's `limit` is too small for any fit."""

    def shared_nbytes(
        self, candidate_groups: Sequence[Sequence[Candidate]], n_rows: int
    ) -> int:
        """Return the bytes that the fits of these groups share in one process."""
        return 0

    def fit(
        self,
        candidates: Sequence[Candidate],
        X: Features,
        y: NDArray[Any],
        splits: Sequence[Split[int]],
        *,
        pool: Pool | None = None,
        cache: Cache,
    ) -> FittedGroup:
        """Fit candidates of one group on every split of the labeled rows and codes.

        A fit that raises is recorded in the counts as failed, and never ends the call.
        The result for a candidate and split does not depend on the others in the call.
        `pool` is the subset for fits, for learners that take one. `cache` has the data
        that fits of this process share, such as kernel matrices; a family that shares
        nothing ignores it. `cache.limit` is the number of bytes that a task may use.
        """
        raise NotImplementedError

    def join(
        self, fitted: Sequence[object], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts for `candidates` only, in their order.

        The groups may differ in candidates and splits, and the result may be packed
        again.
        """
        raise NotImplementedError


class SplitPart(NamedTuple):
    """Part of an item of `FittedGroup.predict` that the models of one split predict."""

    item: int
    split_number: int
    candidates: slice | Integers
    """Positions of the candidates in the group."""
    rows: slice | Integers


def iter_splits(split_numbers: Sequence[SplitNumbers]) -> Iterator[SplitPart]:
    """Yield each item and split with the indices of its candidates and rows.

    `split_numbers` are the `splits` of `FittedGroup.predict`. At least one of the two
    indices is a slice of all.
    """
    every = slice(None)
    for item, chosen in enumerate(split_numbers):
        for split_number in np.unique(chosen).tolist():
            positions = np.flatnonzero(chosen == split_number)
            if np.ndim(chosen) == 1:
                yield SplitPart(item, split_number, every, positions)
            elif len(positions) == np.size(chosen):
                yield SplitPart(item, split_number, every, every)
            else:
                yield SplitPart(item, split_number, positions, every)


def join_order(
    fitted: Sequence[FittedGroup], candidates: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the candidates and splits that `Family.join` packs, in order."""
    if candidates is None:
        candidates = sorted(
            {
                candidate
                for fitted_group in fitted
                for candidate in fitted_group.candidate_numbers
            }
        )
    splits = sorted(
        {
            split_number
            for fitted_group in fitted
            for split_number in fitted_group.split_numbers
        }
    )
    return tuple(candidates), tuple(splits)
