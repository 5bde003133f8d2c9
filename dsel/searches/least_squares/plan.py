"""The plan of a search over kernel widths and regularizations, and its run."""

from contextlib import closing
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import xarray as xr
from dask.utils import format_bytes
from numpy.typing import ArrayLike, NDArray

from dsel.checks import check_choice, check_integer, check_nonnegative, check_positive
from dsel.criteria import LOSS_CRITERIA
from dsel.data.identity import content_hash
from dsel.data.row_random import seed_from
from dsel.data.splits import Split, fold_splits, given_splits, random_folds
from dsel.kernels.eigen import check_memory
from dsel.models.least_squares.coefficients import PENALTIES
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Executor, Task
from dsel.searches.checkpoint import Checkpoint, open_checkpoint
from dsel.searches.least_squares.cube import REFITS, make_loss_cube
from dsel.searches.least_squares.tasks import (
    LeastSquaresWork,
    WidthRecord,
    evaluate_width,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LeastSquaresPlan:
    """A search that has not run; print it to see what it will do."""

    widths: tuple[float, ...]
    """c of each decomposition."""
    work: LeastSquaresWork
    criterion: str
    seed: int

    def run(
        self, client: Any = None, *, out: Any = None, n_jobs: int | None = None
    ) -> xr.Dataset:
        """Run the search and return its cube.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else local threads.
        out
            Directory or URL of the results store: finished widths are written there,
            and a later run of the same plan continues from them.
        n_jobs
            Local threads; None means one for each core.

        Raises
        ------
        AllFitsFailedError
            Where no width could be evaluated.
        ClusterLostError
            Where the scheduler or all workers are gone.
        StoreMismatchError
            Where `out` holds a run of other rows, folds or models.
        """
        work = self.work
        fingerprint = {**work.fingerprint, "seed": str(self.seed)}
        with (
            open_checkpoint(out, fingerprint) as checkpoint,
            closing(make_executor(work, resolve_client(client), n_jobs)) as executor,
        ):
            records, messages = self._evaluate(executor, checkpoint)
            cube = self._cube(records, messages)
            checkpoint.save_results(cube)
        return cube

    def _evaluate(
        self, executor: Executor, checkpoint: Checkpoint
    ) -> tuple[dict[int, WidthRecord], dict[int, str]]:
        """Return records by the place of the width, and messages of those that fail."""
        grid = content_hash(self.work.regularizations)
        places = {f"width/{c!r}/{grid}": place for place, c in enumerate(self.widths)}
        records, messages = {}, {}
        for key, place in places.items():
            record = checkpoint.find(key, WidthRecord)
            if record is not None:
                records[place] = record
        tasks = [
            Task(key, evaluate_width, (self.widths[place],))
            for key, place in places.items()
            if place not in records
        ]
        for finished in completed(executor, tasks, on_turn=checkpoint.check):
            place, error = places[finished.key], finished.error
            if error is not None:
                messages[place] = f"{type(error).__name__}: {error}"
                continue
            records[place] = finished.record
            checkpoint.keep(finished.key, finished.record)
        return records, messages

    def _cube(
        self, records: dict[int, WidthRecord], messages: dict[int, str]
    ) -> xr.Dataset:
        return make_loss_cube(
            self.widths,
            self.work.regularizations,
            records,
            messages,
            criterion=self.criterion,
            folds=self.work.folds,
            n_rows=len(self.work.y),
            attributes={
                "penalty": self.work.penalty,
                "fit_intercept": self.work.fit_intercept,
                "seed": str(self.seed),
            },
        )

    def __repr__(self) -> str:
        n, n_lam = len(self.work.y), len(self.work.regularizations)
        n_folds = len(self.work.folds)
        size = format_bytes(8 * n**2)
        how = "trained again" if self.work.by_refits else "in closed form"
        lines = [
            f"LeastSquaresPlan: {len(self.widths)} widths x {n_lam} regularizations "
            f"= {len(self.widths) * n_lam} candidates, penalty {self.work.penalty!r}",
            f"  {n} rows, {self.work.X.shape[1]} columns, "
            f"{self.work.y.shape[1]} outputs",
            f"  {len(self.widths)} tasks: one decomposition of {n} x {n} each "
            f"({size}; a task holds about 4 of them)",
            f"  leave-one-out and GCV in closed form; {n_folds} folds {how}",
            f"  chooses by {self.criterion!r}, an estimate; seed {self.seed}",
        ]
        return "\n".join(lines)


def plan_least_squares(
    X: Any,
    y: Any,
    widths: ArrayLike,
    regularizations: ArrayLike,
    *,
    penalty: str = "coefficients",
    criterion: str = "loo",
    cv: Any = 10,
    fit_intercept: bool = False,
    extra: tuple[Any, Any] | None = None,
    random_state: Any = None,
) -> LeastSquaresPlan:
    """Plan a search; everything is checked, nothing is computed.

    Takes validated rows and what `LeastSquaresSearch` takes; `extra` are fresh rows and
    their targets.
    """
    check_choice(penalty, "penalty", PENALTIES)
    check_choice(criterion, "criterion", [*LOSS_CRITERIA, REFITS])
    checked, lams = check_grid(widths, regularizations)
    check_memory(X.shape[0])
    targets = _columns(y)
    if extra is None and criterion == "extra_sample":
        raise ValueError(
            "`criterion` 'extra_sample' needs fresh labeled rows; pass them to `fit` "
            "as `X_extra` and `y_extra`, or use criterion='loo'."
        )
    seed = seed_from(random_state)
    folds = _folds(cv, X, y, criterion, seed)
    if fit_intercept and len(targets) < 3:
        raise ValueError(f"`fit_intercept` needs at least 3 rows, got {len(targets)}.")
    work = LeastSquaresWork(
        X,
        targets,
        lams,
        penalty,
        fit_intercept,
        folds,
        by_refits=criterion == REFITS,
        extra=None if extra is None else (extra[0], _columns(extra[1])),
    )
    return LeastSquaresPlan(checked, work, criterion, seed)


def check_grid(
    widths: ArrayLike, regularizations: ArrayLike
) -> tuple[tuple[float, ...], Floats]:
    """Return the values of both axes of the grid, at least one of each, each once.

    Raises TypeError where a value is no number, ValueError where it is out of range.
    """
    lams = [
        check_nonnegative(value, "regularizations")
        for value in _values(regularizations, "regularizations")
    ]
    checked = (check_positive(c, "widths") for c in _values(widths, "widths"))
    return tuple(dict.fromkeys(checked)), np.array(list(dict.fromkeys(lams)))


def _values(values: ArrayLike, name: str) -> list[Any]:
    array = np.atleast_1d(np.asarray(values, dtype=object))
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"`{name}` must be a list of at least one number, got {values!r}."
        )
    return list(array.tolist())


def _columns(y: Any) -> Floats:
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`y` must hold numbers, got {shorten(repr(y), 60)}; for classes search "
            f"with dsel.models.KernelLeastSquaresClassifier()."
        ) from error
    return values[:, np.newaxis] if values.ndim == 1 else values


def _folds(cv: Any, X: Any, y: Any, criterion: str, seed: int) -> tuple[Split, ...]:
    """Return the fold splits, only the first for a hold-out, none for None."""
    needs_folds = criterion in ("kfold", "holdout", REFITS)
    if cv is None:
        if needs_folds:
            raise ValueError(
                f"`cv` must be a number of folds for criterion={criterion!r}, got None."
            )
        return ()
    if hasattr(cv, "split") or np.iterable(cv):
        splits = given_splits(cv, X, y)
    else:
        n_folds = check_integer(cv, "cv", at_least=2, at_most=X.shape[0])
        splits = fold_splits(random_folds(X.shape[0], n_folds, seed=seed))
    return splits[:1] if criterion == "holdout" else splits[:-1]
