"""Fitting the machines of one training set for every C of a kernel."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from dsel.models.arrays import Bools, Floats, Integers
from dsel.models.svm.decisions import (
    DecisionWeights,
    Machines,
    count_votes,
    decide_exactly,
)
from dsel.models.svm.labeled_kernel import LabeledKernel
from dsel.solvers.smo import Path, solve_path, solve_path_by_rows
from dsel.solvers.smo_rows import RowCache

MARGIN_UNIT: Final = 2.0**-21
"""Margins come from float32 kernel values; eight times their rounding is safe."""


@dataclass(frozen=True)
class Task:
    """What one training set is to be fitted for."""

    training: int
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


@dataclass(frozen=True)
class Fitted:
    """Machines and what fitting them showed, per candidate of the task."""

    machines: Machines
    """The machines."""
    train_errors: Integers
    """Errors on the training rows, (n_candidates,)."""
    test_errors: Integers
    """Errors on the test rows, (n_candidates,)."""
    messages: tuple[str, ...]
    """What is to be said of each candidate; empty where nothing."""


@dataclass
class PairResults:
    """What is gathered pair by pair, per class of the training set.

    `same` says for each C whether all machines so far equal those of the C before.
    """

    coefs: list[Floats]
    offsets: Floats
    steps: Integers
    gaps: Floats
    wins: list[Integers]
    same: Bools


def fit_training(
    kernel: LabeledKernel,
    task: Task,
    train: Integers,
    test: Integers,
    weights: Floats,
    caches: dict[tuple[int, int], RowCache],
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
        Kernel rows of each pair, shared by the trainings where there is no Gram
        matrix.
    """
    used = train[weights[train] > 0]
    codes = _codes_at(kernel, used)
    present = np.unique(codes)
    places = [used[codes == code] for code in present]
    results = _solve_pairs(kernel, task, present, places, weights, caches)
    machines = _pack(kernel, task, present, places, results)
    labeled = kernel.labeled
    duals = DecisionWeights.from_machines(machines, labeled.numbers, labeled.starts)
    test_errors = _count_errors(kernel, duals, test, None)[machines.model_of]
    train_errors = _count_train_errors(kernel, duals, results, places, train)
    return Fitted(machines, train_errors, test_errors, _messages(task, results))


def _codes_at(kernel: LabeledKernel, places: Integers) -> Integers:
    """Return the class codes of places among them."""
    return np.searchsorted(kernel.labeled.starts, places, side="right") - 1


def _solve_pairs(
    kernel: LabeledKernel,
    task: Task,
    present: Integers,
    places: list[Integers],
    weights: Floats,
    caches: dict[tuple[int, int], RowCache],
) -> PairResults:
    n_present, n_C = len(present), len(task.C_values)
    others = max(n_present - 1, 0)
    n_pairs = n_present * others // 2
    results = PairResults(
        [np.zeros((len(mine), others, n_C)) for mine in places],
        np.zeros((n_pairs, n_C)),
        np.zeros((n_pairs, n_C), dtype=np.int64),
        np.zeros((n_pairs, n_C)),
        [np.zeros((n_C, len(mine)), dtype=np.int64) for mine in places],
        np.arange(n_C) > 0,
    )
    for p, (i, j) in enumerate(combinations(range(n_present), 2)):
        pair = (places[i], places[j])
        if kernel.gram is None:
            key = (int(present[i]), int(present[j]))
            path = _solve_by_rows(kernel, task, key, pair, weights, caches)
        else:
            path = _solve_in_gram(kernel, task, pair, weights)
        _enter(results, path, (p, i, j), kernel.largest)
    return results


def _solve_in_gram(
    kernel: LabeledKernel, task: Task, pair: tuple[Integers, Integers], weights: Floats
) -> Path:
    members = np.concatenate(pair)
    y = np.repeat([1.0, -1.0], [len(pair[0]), len(pair[1])])
    assert kernel.gram is not None
    solution = solve_path(
        kernel.gram, members, y, weights[members], diagonal=kernel.diagonal,
        C_values=task.C_values, tol=task.tol, max_iter=task.max_iter,
    )  # fmt: skip
    path: Path = solution.value
    return path


def _solve_by_rows(
    kernel: LabeledKernel,
    task: Task,
    key: tuple[int, int],
    pair: tuple[Integers, Integers],
    weights: Floats,
    caches: dict[tuple[int, int], RowCache],
) -> Path:
    """Solve over all labeled rows of the pair; those left out have weight 0."""
    starts = kernel.labeled.starts
    members = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in key])
    if key not in caches:
        caches.clear()  # the budget is for one pair at a time
        caches[key] = kernel.rows_of(members)
    among = np.searchsorted(members, np.concatenate(pair))
    own = np.zeros(len(members))
    own[among] = weights[members[among]]
    n_first = starts[key[0] + 1] - starts[key[0]]
    y = np.where(np.arange(len(members)) < n_first, 1.0, -1.0)
    solution = solve_path_by_rows(
        caches[key], y, own,
        C_values=task.C_values, tol=task.tol, max_iter=task.max_iter,
    )  # fmt: skip
    whole: Path = solution.value
    return Path(
        whole.beta[:, among], whole.margins[:, among], whole.offset, whole.steps,
        whole.gap,
    )  # fmt: skip


def _enter(
    results: PairResults, path: Path, where: tuple[int, int, int], largest: float
) -> None:
    """Write a pair's path; a class's rows win where the sign is beyond doubt."""
    p, i, j = where
    n_first = len(results.coefs[i])
    results.coefs[i][:, j - 1] = path.beta[:, :n_first].T
    results.coefs[j][:, i] = path.beta[:, n_first:].T
    results.offsets[p], results.steps[p], results.gaps[p] = (
        path.offset,
        path.steps,
        path.gap,
    )
    results.same[1:] &= (path.beta[1:] == path.beta[:-1]).all(axis=1)
    results.same[1:] &= path.offset[1:] == path.offset[:-1]
    size = np.abs(path.beta).sum(axis=1) * largest + np.abs(path.offset) + 1.0
    doubt = MARGIN_UNIT * size[:, np.newaxis]
    results.wins[i] += path.margins[:, :n_first] > doubt
    results.wins[j] += path.margins[:, n_first:] < -doubt


def _pack(
    kernel: LabeledKernel,
    task: Task,
    present: Integers,
    places: list[Integers],
    results: PairResults,
) -> Machines:
    """Keep support vectors only, and equal solutions once."""
    changed = ~results.same
    kept = [coefs.any(axis=(1, 2)) for coefs in results.coefs]
    models = np.flatnonzero(changed)
    coefs = [
        coefs[mine][:, :, models]
        for coefs, mine in zip(results.coefs, kept, strict=True)
    ]
    numbers = [
        kernel.labeled.numbers[place[mine]]
        for place, mine in zip(places, kept, strict=True)
    ]
    starts = np.concatenate(([0], np.cumsum([len(mine) for mine in numbers])))
    return Machines(
        task.training, kernel.labeled.training, kernel.kernel, task.candidates,
        np.cumsum(changed) - 1, present, np.concatenate(numbers), starts,
        np.concatenate(coefs), results.offsets[:, models], results.steps,
        np.asarray((results.gaps >= task.tol).any(axis=0)), task.class_weight,
    )  # fmt: skip


def _count_errors(
    kernel: LabeledKernel,
    duals: DecisionWeights,
    places: Integers,
    models: Integers | None,
) -> Integers:
    """Return the errors of models on labeled rows, (n_models,)."""
    which = np.arange(duals.n_models) if models is None else models
    errors = np.zeros(len(which), dtype=np.int64)
    for start in range(0, len(places), kernel.block_rows):
        rows = places[start : start + kernel.block_rows]
        codes = _codes_of(kernel, duals, rows, kernel.block(rows), which)
        errors += (codes != _codes_at(kernel, rows)[:, np.newaxis]).sum(axis=0)
    return errors


def _codes_of(
    kernel: LabeledKernel,
    duals: DecisionWeights,
    rows: Integers,
    values: Floats,
    models: Integers,
) -> Integers:
    relative, absolute = kernel.rounding(rows)
    peaks = np.full(len(rows), kernel.largest)
    chosen = None if len(models) == duals.n_models else models
    codes, doubtful = count_votes(
        duals, values, peaks, relative * peaks + absolute, chosen
    )
    if doubtful.any():
        decide_exactly(
            duals, codes, doubtful, lambda r: kernel.exact_row(int(rows[r])), models
        )
    return codes


def _count_train_errors(
    kernel: LabeledKernel,
    duals: DecisionWeights,
    results: PairResults,
    places: list[Integers],
    train: Integers,
) -> Integers:
    """Return the errors on the training rows, (n_candidates,).

    A row whose class wins all its own pairs is right whatever the other pairs say, and
    the solver knows these margins; all other rows are voted on.
    """
    model_of = duals.machines.model_of
    if kernel.labeled.rows_at_predict is not kernel.labeled.rows or len(places) < 2:
        return _count_errors(kernel, duals, train, None)[model_of]
    # Equal models have equal margins: the first candidate of each speaks for it.
    first = np.flatnonzero(np.diff(model_of, prepend=-1))
    used = np.concatenate(places)
    right = np.concatenate([wins[first] for wins in results.wins], axis=1)
    open_rows = right < len(places) - 1
    left_out = np.setdiff1d(train, used)
    rows = np.concatenate((used, left_out))
    unknown = np.concatenate(
        (open_rows, np.ones((len(first), len(left_out)), dtype=np.bool_)), axis=1
    )
    return _count_open(kernel, duals, rows, unknown)[model_of]


def _count_open(
    kernel: LabeledKernel, duals: DecisionWeights, rows: Integers, unknown: Bools
) -> Integers:
    """Return each model's errors among the rows that are unknown for it."""
    errors = np.zeros(len(unknown), dtype=np.int64)
    some = np.flatnonzero(unknown.any(axis=0))
    for start in range(0, len(some), kernel.block_rows):
        mine = some[start : start + kernel.block_rows]
        values = kernel.block(rows[mine])
        truth = _codes_at(kernel, rows[mine])
        for model in range(len(unknown)):
            asked = np.flatnonzero(unknown[model, mine])
            if len(asked) == 0:
                continue
            codes = _codes_of(
                kernel, duals, rows[mine[asked]], values[asked], np.array([model])
            )
            errors[model] += np.count_nonzero(codes[:, 0] != truth[asked])
    return errors


def _messages(task: Task, results: PairResults) -> tuple[str, ...]:
    """Say which candidates stopped at `max_iter`, and how far from the solution."""
    messages = []
    for gaps in results.gaps.T:
        gap = gaps.max(initial=0.0)
        messages.append(
            ""
            if gap < task.tol
            else f"The solver stopped at max_iter={task.max_iter} with a KKT gap of "
            f"{gap:.3g}, above tol={task.tol:g}; scale the features or raise max_iter."
        )
    return tuple(messages)
