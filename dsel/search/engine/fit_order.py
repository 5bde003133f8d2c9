"""The order in which needed fits are submitted, and the slot in which each task runs.

If counts decide which fits are needed, candidates with the smallest lower bound are
fitted first. Otherwise as many groups as there are slots are fitted side by side, then
the next ones.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from dsel.arrays import Bools, Floats
from dsel.data.splits import SplitIndex
from dsel.search.engine.counts import FitTable
from dsel.search.engine.jobs import FitStatus


def order_by_group(
    table: FitTable, waiting_fits: Bools, n_slots: int
) -> Iterator[tuple[int, SplitIndex]]:
    """Yield group and split of the waiting fits, a few groups side by side.

    `waiting_fits` are flags of fits, (n_candidates, n_splits).
    """
    n_submitted = (table.fit_status == FitStatus.SUBMITTED).sum(axis=1)
    waits = waiting_fits.any(axis=1)
    group_numbers = list(dict.fromkeys(table.group_of_candidate[waits].tolist()))
    # Slots work at different groups, so that none waits for data that another one
    # makes.
    group_numbers[:n_slots] = sorted(
        group_numbers[:n_slots],
        key=lambda number: n_submitted[table.candidates_of_group[number]].sum(),
    )
    for group_number in group_numbers:
        candidates = table.candidates_of_group[group_number]
        waiting_splits = waiting_fits[candidates].any(axis=0)
        yield from (
            (group_number, SplitIndex(int(split_number)))
            for split_number in np.flatnonzero(waiting_splits)
        )


def order_best_first(
    table: FitTable, waiting_fits: Bools, lower_bounds: Floats, first_bounds: Floats
) -> Iterator[tuple[int, SplitIndex]]:
    """Yield group and split of waiting fits, those of the best candidate first.

    `waiting_fits` are flags of fits, (n_candidates, n_splits). `lower_bounds` are the
    lower bounds of the candidates by the counts so far, and `first_bounds` those
    when this run began, (n_candidates,).
    """
    unknown = ~table.finished_fits
    n_submitted = (table.fit_status == FitStatus.SUBMITTED).sum(axis=1)
    # The value is extrapolated: each submitted fold is expected to add the mean of the
    # known ones. Candidates without a known fold are in order of those submitted.
    n_known = np.maximum((~unknown).sum(axis=1), 1)
    # A failed candidate has an infinite limit, and waits for no fold.
    growth = np.subtract(
        lower_bounds,
        first_bounds,
        out=np.zeros_like(lower_bounds),
        where=np.isfinite(lower_bounds),
    )
    expected = lower_bounds + n_submitted * growth / n_known
    candidates = np.flatnonzero(waiting_fits.any(axis=1))
    order = np.lexsort((candidates, n_submitted[candidates], expected[candidates]))
    scheme = table.scheme
    for candidate in candidates[order]:
        split_number = SplitIndex(int(np.argmax(waiting_fits[candidate])))
        # Until all folds are counted they may still prune the fit on all rows.
        waits_for_folds = unknown[candidate, : scheme.n_folds].any()
        is_all_rows = scheme.splits[split_number].is_all_rows
        if not (is_all_rows and waits_for_folds):
            yield int(table.group_of_candidate[candidate]), split_number


@dataclass(eq=False)
class TaskSlots:
    """The slots of tasks that fit; the executor maps a slot to a thread or a worker."""

    slot_of_task: dict[str, int] = field(init=False, default_factory=dict)
    """Slot of each task that has got one, by its key."""
    slots_of_group: dict[int, list[int]] = field(init=False, default_factory=dict)
    """Slots that have the shared data of each candidate group."""

    def choose(
        self,
        task_key: str,
        group_number: int,
        running_keys: Collection[str],
        n_slots: int,
    ) -> int:
        """Return the slot of a new task: that of its group's tasks, unless it is busy.

        Data that a group shares, such as its kernel matrix, is there already.
        `running_keys` are the keys of the tasks that run, and `n_slots` is the number
        of slots at this time.
        """
        load = Counter(dict.fromkeys(range(n_slots), 0))
        load.update(
            self.slot_of_task[key] for key in running_keys if key in self.slot_of_task
        )
        best = min(range(n_slots), key=load.__getitem__)
        # A Gram matrix takes longer to compute than a small fit, and is cached in one
        # process.
        warm = self.slots_of_group.setdefault(group_number, [best])
        slot = min(warm, key=load.__getitem__)
        # Waiting for one more task is faster than making the shared data again.
        if load[slot] > load[best] + 1:
            warm.append(best)
            slot = best
        self.slot_of_task[task_key] = slot
        return slot
