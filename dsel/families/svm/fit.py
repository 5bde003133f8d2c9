"""Fitting the machines of one training set for every C of a kernel."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from dsel.families.arrays import Bools, Floats, Integers
from dsel.families.svm.decisions import DecisionWeights, Machines
from dsel.families.svm.labeled_kernel import LabeledKernel
from dsel.families.svm.smo import solve_path_by_rows
from dsel.families.svm.smo_pairs import PairPaths, solve_pairs
from dsel.families.svm.smo_rows import RowCache
from dsel.families.svm.votes import decide

KNOWS_LITTLE: Final = 0.25  # share of unknown rows


@dataclass(frozen=True)
class Task:
    """What one training set is to be fitted for."""

    split: int
    """Its number."""
    candidates: tuple[int, ...]
    """Candidate numbers in ascending order of C."""
    C_values: Floats
    """Their C, ascending."""
    tol: float
    """As of ``SVC``."""
    max_iter: int
    """As of ``SVC``."""
    class_weight: Floats
    """Factor of C of each class of the training rows, ascending."""
    counts_train: bool
    """Whether errors on the training rows are counted."""


@dataclass(frozen=True)
class Fitted:
    """Machines and what fitting them showed, per candidate of the task."""

    machines: Machines
    """The machines."""
    train_errors: Integers
    """Errors on the training rows, or on the second rows, (n_candidates,); -1 where
    they are not counted."""
    test_errors: Integers
    """Errors on the test rows, (n_candidates,)."""
    messages: tuple[str, ...]
    """What is to be said of each candidate; empty where nothing."""


def fit_split(
    kernel: LabeledKernel,
    task: Task,
    train: Integers,
    test: Integers,
    weights: Floats,
    caches: dict[tuple[int, int], RowCache],
    second: Integers | None = None,
) -> Fitted:
    """Fit all pairs of classes for every C, and count errors.

    Parameters
    ----------
    kernel
        Kernel over the labeled rows.
    task
        Values of C and when to stop.
    train, test
        Places of training and test rows in the kernel's rows, ascending.
    weights
        Factor of C for every place of them; 0 for rows left out.
    caches
        Kernel rows of each pair, shared by the splits where there is no Gram
        matrix.
    second
        Places of the split's second rows, if it has any.
    """
    used = train[weights[train] > 0]
    codes = _codes_at(kernel, used)
    present = np.unique(codes)
    starts = np.append(np.searchsorted(codes, present), len(used))
    if kernel.gram is None:
        paths = _solve_by_rows(kernel, task, present, used, starts, weights, caches)
    else:
        paths = solve_pairs(
            kernel.gram, kernel.labeled.starts, weights, diagonal=kernel.diagonal,
            C_values=task.C_values, tol=task.tol, max_iter=task.max_iter,
            largest=kernel.largest,
        )  # fmt: skip
    machines = _pack(kernel, task, present, used, paths)
    labeled = kernel.labeled
    duals = DecisionWeights.from_machines(machines, labeled.numbers, labeled.starts)
    test_errors = _count_all_errors(kernel, duals, test)
    train_errors = np.full_like(test_errors, -1)
    if second is not None:
        train_errors = _count_all_errors(kernel, duals, second)
    elif task.counts_train:
        train_errors = _count_train_errors(kernel, duals, paths, used, train)
    return Fitted(machines, train_errors, test_errors, _messages(task, paths))


def _codes_at(kernel: LabeledKernel, places: Integers) -> Integers:
    """Return the class codes of places among them."""
    return np.searchsorted(kernel.labeled.starts, places, side="right") - 1


def _solve_by_rows(
    kernel: LabeledKernel,
    task: Task,
    present: Integers,
    used: Integers,
    starts: Integers,
    weights: Floats,
    caches: dict[tuple[int, int], RowCache],
) -> PairPaths:
    """Solve over all labeled rows of each pair; those left out have weight 0."""
    paths = PairPaths.empty(starts, len(task.C_values))
    bounds = kernel.labeled.starts
    for p, (i, j) in enumerate(combinations(range(len(present)), 2)):
        key = (int(present[i]), int(present[j]))
        members = np.concatenate([np.arange(bounds[c], bounds[c + 1]) for c in key])
        if key not in caches:
            caches.clear()  # the budget is for one pair at a time
            caches[key] = kernel.rows_of(members)
        mine = np.r_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        among = np.searchsorted(members, used[mine])
        own = np.zeros(len(members))
        own[among] = weights[used[mine]]
        n_first = bounds[key[0] + 1] - bounds[key[0]]
        y = np.where(np.arange(len(members)) < n_first, 1.0, -1.0)
        path = solve_path_by_rows(
            caches[key], y, own,
            C_values=task.C_values, tol=task.tol, max_iter=task.max_iter,
        ).value  # fmt: skip
        rows = np.full(len(members), -1)
        rows[among] = mine
        paths.enter((p, i, j), path, rows, int(n_first), kernel.largest)
    return paths


def _pack(
    kernel: LabeledKernel,
    task: Task,
    present: Integers,
    used: Integers,
    paths: PairPaths,
) -> Machines:
    """Keep support vectors only, and equal solutions once."""
    kept, models = paths.coefs.any(axis=(1, 2)), np.flatnonzero(~paths.same)
    coefs = paths.coefs if kept.all() else paths.coefs[kept]
    if len(models) < len(task.candidates):
        coefs = np.ascontiguousarray(coefs[:, :, models])
    return Machines(
        task.split, kernel.labeled.origin, kernel.kernel, task.candidates,
        np.cumsum(~paths.same) - 1, present, kernel.labeled.numbers[used[kept]],
        np.concatenate(([0], np.cumsum(kept)))[paths.starts],
        coefs, paths.offsets[:, models], paths.steps,
        np.asarray((paths.gaps >= task.tol).any(axis=0)), task.class_weight,
    )  # fmt: skip


def _count_all_errors(
    kernel: LabeledKernel, duals: DecisionWeights, places: Integers
) -> Integers:
    """Return the errors on rows of which nothing is known, (n_candidates,)."""
    unknown = np.ones((duals.n_models, len(places)), dtype=np.bool_)
    return _count_errors(kernel, duals, places, unknown)[duals.machines.model_of]


def _count_train_errors(
    kernel: LabeledKernel,
    duals: DecisionWeights,
    paths: PairPaths,
    used: Integers,
    train: Integers,
) -> Integers:
    """Return the errors on the training rows, (n_candidates,).

    A row whose class wins all its own pairs is right whatever the other pairs say, and
    the solver knows these margins; all other rows are voted on.
    """
    model_of = duals.machines.model_of
    # Equal models have equal margins: the first candidate of each speaks for it.
    first = np.flatnonzero(np.diff(model_of, prepend=-1))
    unknown = np.ones((len(first), len(train)), dtype=np.bool_)
    if kernel.labeled.rows_at_predict is kernel.labeled.rows:
        n_others = len(paths.starts) - 2
        among = np.searchsorted(train, used)
        unknown[:, among] = paths.wins[first] < n_others
    return _count_errors(kernel, duals, train, unknown)[model_of]


def _count_errors(
    kernel: LabeledKernel, duals: DecisionWeights, places: Integers, unknown: Bools
) -> Integers:
    """Return each model's errors among the labeled rows that are unknown for it.

    All models asked together answer for a row that is unknown for one of them, so those
    that know little are asked apart from those that know much.
    """
    errors = np.zeros(len(unknown), dtype=np.int64)
    knows_little = unknown.mean(axis=1) > KNOWS_LITTLE if len(places) else []
    for models in map(np.flatnonzero, (knows_little, np.logical_not(knows_little))):
        some = np.flatnonzero(unknown[models].any(axis=0))
        for start in range(0, len(some), kernel.block_rows):
            mine = some[start : start + kernel.block_rows]
            rows = places[mine]
            own = _codes_at(kernel, rows)
            block, all_rows = kernel.block(rows), np.arange(len(rows))
            codes = decide(block, duals, all_rows, models, guess=own)
            wrong = codes[models] != own
            asked = unknown[np.ix_(models, mine)]
            errors[models] += np.count_nonzero(wrong & asked, axis=1)
    return errors


def _messages(task: Task, paths: PairPaths) -> tuple[str, ...]:
    """Say which candidates stopped at `max_iter`, and how far from the solution."""
    messages = []
    for gaps in paths.gaps.T:
        gap = gaps.max(initial=0.0)
        messages.append(
            ""
            if gap < task.tol
            else f"The solver stopped at max_iter={task.max_iter} with a KKT gap of "
            f"{gap:.3g}, above tol={task.tol:g}; scale the features or raise max_iter."
        )
    return tuple(messages)
