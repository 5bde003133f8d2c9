"""Passes over labeled rows in chunks: moments first, then leave-one-out losses.

The rows are a pool whose last columns are the targets. Each span of it is a task. Sums
of spans are added in row order, so they do not depend on workers or the order of tasks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsel.data.blocks import Span, read_blocks
from dsel.data.identity import content_hash
from dsel.data.pool import Pool
from dsel.kernels.eigen import gaussian_kernel
from dsel.runtime.submission import in_order
from dsel.runtime.tasks import Executor, Task
from dsel.searches.checkpoint import Checkpoint
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
"""Kernel values of one block of rows; a constant, so that sums are rounded alike."""
STRETCH_SPANS = 256
"""Spans whose sum is stored: a run that ends early loses some minutes of work."""


@dataclass(frozen=True)
class StreamedWork:
    """What every task of a pass needs; sent to the cluster once."""

    centers: Floats
    """z, shape (n_centers, n_columns)."""
    n_targets: int
    """Last columns of the rows that are targets."""


@dataclass(frozen=True)
class Basis:
    """The design of one width: X = K(rows, z) W."""

    width: float
    root: Floats | None
    """W for the RKHS penalty, shape (n_centers, b); None for the identity."""

    def design(self, rows: Floats, centers: Floats) -> Floats:
        """Return rows of X."""
        kernel = gaussian_kernel(rows, centers, width=self.width)
        return kernel if self.root is None else kernel @ self.root


@dataclass(frozen=True)
class Passes:
    """Passes over the rows of one search; their sums are stored as they grow."""

    pool: Pool
    """Rows, targets last."""
    executor: Executor
    checkpoint: Checkpoint
    """Where sums of stretches of spans are stored."""

    def moments(self, basis: Basis) -> Moments:
        """Pass 1: X'X, X'y and their like over all rows."""
        key = f"moments/{basis.width!r}"
        return self._sum(key, Moments, basis, count_moments)

    def losses(self, basis: Basis, solution: ThinSolution) -> Losses:
        """Pass 2: leave-one-out and split losses over all rows."""
        key = f"losses/{basis.width!r}/{content_hash(solution.regularizations)}"
        return self._sum(key, Losses, basis, partial(count_losses, solution))

    def _sum(
        self, name: str, kind: type[Sum], basis: Basis, count: Callable[..., Sum]
    ) -> Sum:
        """Add up the spans, stretch by stretch, in row order."""
        spans = self.pool.spans(SPAN_ROWS)
        stretches = []
        for start in range(0, len(spans), STRETCH_SPANS):
            stretch = spans[start : start + STRETCH_SPANS]
            # Sums under other keys, not about the means, are of an earlier release.
            key = f"centred/{name}/{stretch[0].start}-{stretch[-1].stop}"
            found = self.checkpoint.find(key, kind)
            if found is None:
                found = self._stretch(key, stretch, basis, count)
                self.checkpoint.keep(key, found)
            stretches.append(found)
        return reduce(add, stretches)

    def _stretch(
        self, name: str, spans: Sequence[Span], basis: Basis, count: Callable[..., Any]
    ) -> Any:
        tasks = (
            Task(
                f"{name}-{span.start}",
                sum_of_span,
                (basis, count),
                partial(self.pool.sources, span),
            )
            for span in spans
        )
        return reduce(
            add, in_order(self.executor, tasks, on_turn=self.checkpoint.check)
        )


def sum_of_span(
    work: StreamedWork,
    payloads: Sequence[Any],
    sources: list[Any],
    basis: Basis,
    count: Callable[[Floats, Floats], Sum],
) -> tuple[Sum, None]:
    """Add up what is counted on the design and the targets of one span."""
    del payloads  # a span needs no other
    parts = (
        count(basis.design(rows, work.centers), targets)
        for rows, targets in _blocks(work, sources)
    )
    return reduce(add, parts), None


def _blocks(work: StreamedWork, sources: list[Any]) -> Iterator[tuple[Floats, Floats]]:
    """Yield rows and targets as copies, which are aligned in memory.

    Rows that came over a network may start at any byte, and sums over values that are
    not at multiples of 8 bytes are rounded otherwise.
    """
    block_rows = max(1, BLOCK_NBYTES // (8 * len(work.centers)))
    for block in read_blocks(sources, block_rows):
        parts = np.split(block.X, [-work.n_targets], axis=1)
        rows, targets = (np.array(part, np.float64, order="C") for part in parts)
        yield rows, targets
