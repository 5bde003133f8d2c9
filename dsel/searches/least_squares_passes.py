"""Passes over labeled rows in chunks: moments first, then leave-one-out losses.

The rows are a pool whose last columns are the targets. Spans of it are tasks; their
sums are added in row order, so workers and order of completion change no digit.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsel.data.blocks import read_blocks
from dsel.data.pool import Pool
from dsel.kernels.eigen import gaussian_kernel
from dsel.searches.executors import Executor
from dsel.searches.least_squares_run import error_message
from dsel.solvers.least_squares_streamed import (
    Losses,
    Moments,
    ThinSolution,
    count_losses,
    count_moments,
)

Floats = NDArray[np.float64]
Sum = TypeVar("Sum", Moments, Losses)

SPAN_ROWS = 2**16
"""Rows of a task: about a second of work for 500 centres."""
BLOCK_NBYTES = 2**24
"""Kernel values of one block of rows; a constant, so that sums are grouped alike."""
BEAT_SECONDS = 1.0


@dataclass(frozen=True)
class StreamedWork:
    """What every task of a pass needs; enters the cluster once."""

    centers: Floats
    """z, shape (n_centers, n_columns)."""
    n_targets: int
    """Last columns of the rows that are targets."""


@dataclass(frozen=True)
class Basis:
    """The design of one width: X = K(rows, z) W."""

    width: float
    """c."""
    root: Floats | None
    """W for the RKHS penalty, shape (n_centers, b); None for the identity."""

    def design(self, rows: Floats, centers: Floats) -> Floats:
        """Return rows of X."""
        kernel = gaussian_kernel(rows, centers, width=self.width)
        return kernel if self.root is None else kernel @ self.root


def sum_moments(pool: Pool, executor: Executor, basis: Basis) -> Moments:
    """Pass 1: X'X, X'y and their like over all rows."""
    return _ordered_sum(pool, executor, moments_of_span, basis)


def sum_losses(
    pool: Pool, executor: Executor, basis: Basis, solution: ThinSolution
) -> Losses:
    """Pass 2: leave-one-out and training losses over all rows."""
    return _ordered_sum(pool, executor, losses_of_span, basis, solution)


def moments_of_span(
    work: StreamedWork, payloads: Sequence[Any], sources: list[Any], basis: Basis
) -> tuple[Moments, None]:
    """Add up the moments of one span, block by block."""
    del payloads  # a span needs no other
    parts = (
        count_moments(basis.design(rows, work.centers), targets)
        for rows, targets in _blocks(work, sources)
    )
    return reduce(add, parts), None


def losses_of_span(
    work: StreamedWork,
    payloads: Sequence[Any],
    sources: list[Any],
    basis: Basis,
    solution: ThinSolution,
) -> tuple[Losses, None]:
    """Add up the losses of one span, block by block."""
    del payloads  # a span needs no other
    parts = (
        count_losses(solution, basis.design(rows, work.centers), targets)
        for rows, targets in _blocks(work, sources)
    )
    return reduce(add, parts), None


def _blocks(work: StreamedWork, sources: list[Any]) -> Iterator[tuple[Floats, Floats]]:
    block_rows = max(1, BLOCK_NBYTES // (8 * len(work.centers)))
    for block in read_blocks(sources, block_rows):
        values = np.asarray(block.X, np.float64)
        yield values[:, : -work.n_targets], values[:, -work.n_targets :]


def _ordered_sum(
    pool: Pool,
    executor: Executor,
    task: Callable[..., tuple[Sum, None]],
    basis: Basis,
    *arguments: Any,
) -> Sum:
    """Run a task on every span, a few ahead of those that run; add in row order."""
    waiting = deque(enumerate(pool.spans(SPAN_ROWS)))
    n_spans = len(waiting)
    client = getattr(executor, "client", None)
    done: dict[int, Sum] = {}
    running: dict[str, int] = {}
    total: Sum | None = None
    added = 0
    while added < n_spans:
        while waiting and len(running) < 2 * executor.n_slots:
            number, span = waiting.popleft()
            key = f"{task.__name__}-{basis.width!r}-{number}"
            running[key] = number
            sources = pool.sources(span, client)
            executor.submit(key, task, sources, basis, *arguments)
        for finished in executor.wait(BEAT_SECONDS):
            executor.forget(finished.key)
            if finished.error is not None:
                error_message(finished)  # raises where the cluster is gone
                raise finished.error
            done[running.pop(finished.key)] = finished.record
        while added in done:
            part = done.pop(added)
            total = part if total is None else total + part
            added += 1
    assert total is not None
    return total
