"""Fitting the machines of one training set for every C of a kernel."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.families.svm.decisions import DecisionWeights, decide
from dsel.families.svm.kernel import LabeledKernel
from dsel.families.svm.machines import Machines

if TYPE_CHECKING:
    from dsel.families.svm.smo import Paths


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


@dataclass(frozen=True)
class Fitted:
    """Machines and what fitting them showed, per candidate of the task."""

    machines: Machines
    """The machines."""
    errors: tuple[Integers, ...]
    """Errors on each part of the test rows, (n_candidates,)."""
    remarks: tuple[str, ...]
    """What is to be said of each candidate; empty where nothing."""


def fit_split(
    kernel: LabeledKernel, task: Task, weights: Floats, tests: tuple[Integers, ...]
) -> Fitted:
    """Fit all pairs of classes for every C, and count errors.

    `weights` are factors of C of each of the kernel's rows, 0 for rows left out, and
    `tests` the places of each part of the test rows among them, ascending.
    """
    used = np.flatnonzero(weights > 0)
    codes = _codes_at(kernel, used)
    present = np.unique(codes)
    starts = np.append(np.searchsorted(codes, present), len(used))
    paths = solve_pairs(
        kernel.gram, used, starts, weights[used], kernel.diagonal[used],
        C_values=task.C_values, tol=task.tol, max_iter=task.max_iter,
    )  # fmt: skip
    machines = _pack(kernel, task, present, used, starts, paths)
    labeled = kernel.labeled
    duals = DecisionWeights.from_machines(machines, labeled.numbers, labeled.starts)
    errors = tuple(_count_errors(kernel, duals, places) for places in tests)
    remarks = tuple(
        f"The solver stopped at max_iter={task.max_iter} with a KKT gap of {gap:.3g}, "
        f"above tol={task.tol:g}; scale the features or raise max_iter."
        if gap >= task.tol
        else ""
        for gap in paths.gaps.max(axis=0, initial=0.0)
    )
    return Fitted(machines, errors, remarks)


def solve_pairs(
    gram: NDArray[np.float32],
    members: Integers,
    starts: Integers,
    weights: Floats,
    diagonal: Floats,
    *,
    C_values: Floats,
    tol: float,
    max_iter: int,
) -> "Paths":
    """Solve for ascending C, for every two classes; see `smo.solve_pairs`."""
    from dsel.families.svm import smo

    n_others, n_C = max(len(starts) - 2, 0), len(C_values)
    n_pairs = (n_others + 1) * n_others // 2
    paths = smo.Paths(
        np.zeros((len(members), n_others, n_C)),
        np.zeros((n_pairs, n_C)),
        np.zeros((n_pairs, n_C), dtype=np.int64),
        np.zeros((n_pairs, n_C)),
    )
    if n_pairs:
        stops = float(tol), int(max_iter)
        smo.solve_pairs(
            gram, members, starts, weights, diagonal, C_values, stops, paths
        )
    return paths


def _codes_at(kernel: LabeledKernel, places: Integers) -> Integers:
    """Return the class codes of places among the kernel's rows."""
    return np.searchsorted(kernel.labeled.starts, places, side="right") - 1


def _pack(
    kernel: LabeledKernel,
    task: Task,
    present: Integers,
    used: Integers,
    starts: Integers,
    paths: "Paths",
) -> Machines:
    """Keep support vectors only, and equal solutions once."""
    coefs, offsets = paths.coefs, paths.offsets
    is_new = np.ones(len(task.candidates), dtype=np.bool_)
    is_new[1:] = (coefs[..., 1:] != coefs[..., :-1]).any(axis=(0, 1))
    is_new[1:] |= (offsets[:, 1:] != offsets[:, :-1]).any(axis=0)
    kept = coefs.any(axis=(1, 2))
    coefs = np.ascontiguousarray(coefs[kept][:, :, is_new])
    return Machines(
        split=task.split,
        rows_of=kernel.labeled.origin,
        kernel=kernel.kernel,
        candidates=task.candidates,
        model_of=np.cumsum(is_new) - 1,
        present=present,
        numbers=kernel.labeled.numbers[used[kept]],
        starts=np.concatenate(([0], np.cumsum(kept)))[starts],
        coefs=coefs,
        offsets=offsets[:, is_new],
        steps=paths.steps,
        stopped=np.asarray((paths.gaps >= task.tol).any(axis=0)),
        class_weight=task.class_weight,
    )


def _count_errors(
    kernel: LabeledKernel, duals: DecisionWeights, places: Integers
) -> Integers:
    """Return the errors on some of the kernel's rows, (n_candidates,)."""
    errors, models = np.zeros(duals.n_models, np.int64), np.arange(duals.n_models)
    for start in range(0, len(places), kernel.block_rows):
        rows = places[start : start + kernel.block_rows]
        own = _codes_at(kernel, rows)
        codes = decide(
            kernel.block(rows), duals, np.arange(len(rows)), models, guess=own
        )
        errors += np.count_nonzero(codes != own, axis=1)
    return errors[duals.machines.model_of]
