"""The check of the pool next to the fits of a run.

The check counts rows that equal labeled ones, and makes a two-sample test.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from dsel.arrays import Integers
from dsel.data.duplicate_rows import duplicate_finder
from dsel.data.pool_parts import SampledRows
from dsel.results.fit_messages import collect_warnings
from dsel.results.records import from_record, to_record
from dsel.results.run_store import Store
from dsel.runtime.clients import current_worker
from dsel.runtime.tasks import is_task
from dsel.search.design.assumption_checks import PoolFacts, PoolFindings, compare_pool
from dsel.search.planned_search import PlannedSearch
from dsel.search.running.run import refuse_unreadable_store

if TYPE_CHECKING:
    from distributed import Client

POOL_FACTS_KEY: Final = "pool/facts"
"""Key of the record of the pass that checks the pool."""
SAMPLE_KEY: Final = "pool/sample"
"""Key of the record of the sampled rows, with which a resumed run compares its own."""
MOST_VALUES: Final = 2**15
"""Most numbers of the sampled rows that are stored; at least one row is."""
STOP_SECONDS: Final = 1.0
"""Longest wait for the check to end, after the search has failed."""


@dataclass(frozen=True)
class StoredSample:
    """Sampled rows of a pool whose files and graph do not show a change, in a store."""

    row_numbers: tuple[int, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    """The rows as numbers; NaN for a gap."""

    @classmethod
    def of(cls, sampled_rows: SampledRows) -> Self:
        """Return the rows to store, fewer ones of a wide pool."""
        numbers = sampled_rows.numbers
        n_rows = min(len(numbers), max(1, MOST_VALUES // max(1, numbers.shape[1])))
        places = np.unique(np.linspace(0, len(numbers) - 1, n_rows).astype(np.int64))
        rows = tuple(tuple(row) for row in numbers[places].tolist())
        return cls(tuple(sampled_rows.row_numbers[places].tolist()), rows)

    @property
    def sampled_rows(self) -> SampledRows:
        """The rows, for the passes of a resumed run."""
        row_numbers: Integers = np.array(self.row_numbers, np.int64)
        return SampledRows(row_numbers, np.array(self.values))


def check_pool(
    search: PlannedSearch,
    store: Store | None,
    *,
    client: "Client | None",
    on_turn: Callable[[], object] | None = None,
) -> PoolFindings:
    """Compare the pool with the labeled rows, unless an earlier run has done it.

    `on_turn` is called at least every half second; an exception in it ends the check.
    """
    context, pool = search.context, search.pool
    is_guarantee = search.method.is_guarantee  # if so, a bound is read from the pool
    fitting, allow_nan = context.fitting_pool, context.reading.allow_nan
    if pool is None or not (is_guarantee or fitting):
        return PoolFindings()
    if store is not None:
        record = store.records.get(POOL_FACTS_KEY)
        # That of another version has other fields: then the pool is checked again.
        if record is not None and {"kind", *record} == to_record(PoolFacts()).keys():
            with refuse_unreadable_store(store):
                stored = store.records.get(SAMPLE_KEY)
                sampled_rows = None
                if stored is not None:
                    sampled_rows = from_record(StoredSample, stored).sampled_rows
                return PoolFindings(from_record(PoolFacts, record), sampled_rows)
    n_fitting_duplicates = 0
    if fitting is not None and fitting.n_rows:
        find = duplicate_finder(fitting, context.labeled)
        n_fitting_duplicates = fitting.reduce(
            lambda X, rows: int(find(X).sum()),
            add,
            client=client,
            allow_nan=allow_nan,
            on_turn=on_turn,
        )
    pool_findings = PoolFindings(PoolFacts(n_fitting_duplicates=n_fitting_duplicates))
    if is_guarantee:
        pool_findings = compare_pool(
            pool,
            context.labeled,
            seed=search.seed,
            allow_nan=allow_nan,
            n_fitting_duplicates=n_fitting_duplicates,
            client=client,
            on_turn=on_turn,
        )
    if on_turn is not None:
        on_turn()  # the store may be closed by now
    if store is not None:
        if pool_findings.sampled_rows is not None:
            sample = StoredSample.of(pool_findings.sampled_rows)
            store.append(SAMPLE_KEY, to_record(sample))
        store.append(POOL_FACTS_KEY, to_record(pool_findings.pool_facts))
    return pool_findings


@contextmanager
def start_pool_check(
    check: Callable[..., PoolFindings],
) -> "Iterator[Future[PoolFindings]]":
    """Check the pool in a thread next to the fits, which do not depend on the result.

    `check` is `check_pool` with all arguments but `on_turn`. The future has its
    findings, or its error. If the search fails or is interrupted,
    the check stops. Its error, or Ctrl-C, does not wait for slices of the pool that are
    being read.
    """
    if is_task() or current_worker() is not None:
        # A new thread does not inherit the context that marks it as part of a task.
        finished: Future[PoolFindings] = Future()
        finished.set_result(check())
        yield finished
        return
    is_over = threading.Event()

    def stop() -> None:
        if is_over.is_set():
            raise CancelledError

    def make_check() -> PoolFindings:
        # Warning filters belong to the process. The code that is called here may set
        # and restore them; fits, which set them as well, must not end in between.
        with collect_warnings():
            return check(on_turn=stop)

    # A check before the fits took a third of the time of a small search.
    thread = ThreadPoolExecutor(1)
    pending = thread.submit(make_check)
    try:
        yield pending
    except BaseException:
        is_over.set()
        # It usually ends, and restores warning filters.
        wait([pending], STOP_SECONDS)
        raise
    finally:
        thread.shutdown(wait=not is_over.is_set(), cancel_futures=True)
