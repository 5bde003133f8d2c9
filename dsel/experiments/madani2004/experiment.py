"""Madani, Pennock and Flake (2004): estimates and choices by disagreement.

Labeled rows are drawn at random or picked by uncertainty sampling. `ESTIMATION` follows
Figures 1 and 2: linear SVMs, 20 % of the other rows for testing, disagreement on the
rest. `SELECTION` follows Figure 3: twenty polynomial degrees, labeled rows of one
active run, or of one draw, errors and disagreement on all other rows.

`docs/project/papers.md` says what was found; `tests/reference/madani2004.json` has
every number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC
from xarray import Dataset

from dsel import names
from dsel.candidates import make_candidates
from dsel.data.labeled import labeled_rows
from dsel.experiments.base import Experiment
from dsel.experiments.madani2004.figures import choice_figures, estimate_figures
from dsel.experiments.madani2004.machines import (
    ESTIMATES,
    Floats,
    half_estimates,
    halves_of,
    inner_products,
    machine_counts,
)
from dsel.experiments.madani2004.sets import (
    FILES,
    MODULES,
    PROBLEMS,
    Problem,
    load_problem,
)
from dsel.experiments.madani2004.tables import (
    DEPARTURES,
    ERRORS,
    SAMPLINGS,
    compare_choices,
    compare_estimates,
)
from dsel.kernels.functions import Linear, Polynomial
from dsel.searches.co_validation.active_learning import sample_uncertain
from dsel.searches.leave_one_out import count_leave_one_out

LINEAR: Final = Linear()
MEASURED: Final = (*ESTIMATES, "loo_error")


@dataclass(frozen=True)
class Scale:
    """How much of the paper is run."""

    sets: tuple[str, ...] = tuple(PROBLEMS)
    sizes: tuple[int, ...] = (25, 50, 100, 200)
    """Labeled rows."""
    repetitions: int = 30
    """Trials of the estimation; shuffles of the selection."""
    halvings: int = 30
    """Halvings inside each."""
    degrees: tuple[float, ...] = tuple(np.linspace(0.25, 5.0, 20).tolist())
    """Polynomial degrees of the selection."""
    batch: int = 1
    """Rows that active learning labels at once."""
    seed: int = 0


SCALES: Final[Mapping[str, Scale]] = {
    "paper": Scale(),
    "small": Scale(
        sets=("votes",), sizes=(25, 50), repetitions=3, halvings=4,
        degrees=(0.5, 1.0, 2.0), batch=5,
    ),
}  # fmt: skip


def measure_estimates(
    problem: Problem, trials: Sequence[int], scale: Scale
) -> list[dict[str, Floats]]:
    """Return every estimate of some trials, over sampling and n_labeled."""
    pieces = []
    for seed in (scale.seed + trial for trial in trials):
        cells = [
            [_estimate_cell(problem, order[:n], scale, seed) for n in scale.sizes]
            for order in _orders(problem, scale, seed)
        ]
        pieces.append(
            {
                name: np.array([[float(cell[name]) for cell in row] for row in cells])
                for name in MEASURED
            }
        )
    return pieces


def _estimate_cell(
    problem: Problem, rows: NDArray[np.int64], scale: Scale, seed: int
) -> Dataset:
    """Set 20 % of the other rows aside for testing, compare on the rest."""
    others = np.setdiff1d(np.arange(len(problem.y)), rows)
    others = np.random.default_rng([seed, len(rows)]).permutation(others)
    n_test = len(others) // 5
    test, pool = np.sort(others[:n_test]), np.sort(others[n_test:])
    X, y = problem.X[rows], problem.y[rows]
    halves = halves_of(len(y), scale.halvings, [seed])
    compared, tested = (
        machine_counts(
            inner_products(X, problem.X[part]), y, problem.y[part], halves, [LINEAR],
            C=10.0,
        )[0]
        for part in (pool, test)
    )  # fmt: skip
    truth = (names.HALF_TEST_ERRORS, names.FULL_TEST_ERRORS, names.TEST_ROWS)
    evidence = {**compared, **{name: tested[name] for name in truth}}
    found = half_estimates(evidence).isel(candidate=0)
    svc = make_candidates(SVC(kernel="linear", C=10.0, gamma="auto"), {"C": [10.0]})
    left_out = count_leave_one_out(svc, labeled_rows(X, y), seed)
    return found.assign(loo_error=left_out[0] / len(y))


def random_order(problem: Problem, n_rows: int, seed: int) -> NDArray[np.int64]:
    """Draw rows at random; the first ten hold both classes, as a start must."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(problem.y))[:n_rows]
        if len(set(problem.y[order[:10]])) == 2:
            return order


def _orders(problem: Problem, scale: Scale, seed: int) -> list[NDArray[np.int64]]:
    """Return labeled rows in their order, for each of `SAMPLINGS`."""
    picked = sample_uncertain(
        SVC(kernel="linear", C=10.0, gamma="auto"),
        problem.X,
        problem.y.__getitem__,
        n_rows=max(scale.sizes),
        batch=scale.batch,
        random_state=seed,
    )
    return [random_order(problem, max(scale.sizes), seed), picked]


def measure_choices(
    problem: Problem, trials: Sequence[int], scale: Scale
) -> list[dict[str, Floats]]:
    """Return every estimate of some trials, over sampling, n_labeled and degree.

    ``loo_error`` and ``true_error`` are the same in all of them.
    """
    cells = [
        [_select_size(problem, order[:n], trials, scale) for n in scale.sizes]
        for order in _orders(problem, scale, scale.seed)
    ]
    return [
        {
            name: np.array([[cell[name][place] for cell in row] for row in cells])
            for name in MEASURED
        }
        for place in range(len(trials))
    ]


def _select_size(
    problem: Problem, rows: NDArray[np.int64], trials: Sequence[int], scale: Scale
) -> dict[str, Floats]:
    """Halve the same rows anew in every trial; count on all other rows."""
    svc = SVC(kernel="poly", C=10.0, gamma=problem.gamma, coef0=0.0)
    candidates = make_candidates(svc, {"degree": list(scale.degrees)})
    others = np.setdiff1d(np.arange(len(problem.y)), rows)
    X, y = problem.X[rows], problem.y[rows]
    evidence = machine_counts(
        inner_products(X, problem.X[others]),
        y,
        problem.y[others],
        halves_of(len(y), scale.halvings, [scale.seed + trial for trial in trials]),
        [Polynomial(problem.gamma, 0.0, degree) for degree in scale.degrees],
        C=10.0,
    )
    found = [half_estimates(each) for each in evidence]
    errors = count_leave_one_out(candidates, labeled_rows(X, y), scale.seed) / len(y)
    return {
        "loo_error": np.tile(errors, (len(trials), 1)),
        **{
            name: np.array(
                [np.broadcast_to(each[name].values, errors.shape) for each in found]
            )
            for name in ESTIMATES
        },
    }


ESTIMATION: Final = Experiment(
    name="madani2004-estimation",
    paper="Madani, Pennock and Flake (2004), co-validation",
    shows="Figures 1 and 2: estimates of the error, with rows drawn and picked",
    duration="about a quarter of an hour",
    scales=SCALES,
    files=FILES,
    modules=MODULES,
    measured=dict.fromkeys(MEASURED, ("sampling", "n_labeled")),
    axes=lambda scale: {"sampling": tuple(SAMPLINGS), "n_labeled": scale.sizes},
    load=load_problem,
    measure=measure_estimates,
    compare=compare_estimates,
    figures=estimate_figures,
    errors=ERRORS,
    departures=DEPARTURES,
)

SELECTION: Final = Experiment(
    name="madani2004-selection",
    paper="Madani, Pennock and Flake (2004), co-validation",
    shows="Figure 3 and the record of section 3.2: who chooses the degree of a kernel",
    duration="a few minutes",
    scales=SCALES,
    files=FILES,
    modules=MODULES,
    measured=dict.fromkeys(MEASURED, ("sampling", "n_labeled", "degree")),
    axes=lambda scale: {
        "sampling": tuple(SAMPLINGS),
        "n_labeled": scale.sizes,
        "degree": scale.degrees,
    },
    load=load_problem,
    measure=measure_choices,
    compare=compare_choices,
    figures=choice_figures,
    errors=ERRORS,
    departures=DEPARTURES,
    block=30,  # trials share most of their products
)
