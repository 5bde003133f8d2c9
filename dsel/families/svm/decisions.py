"""Winners of one-against-one votes, which are those of the SVC that is deployed.

Votes are counted in float32. Votes that its rounding could change are counted again in
float64, by sums in a fixed order. Where a sum is zero but for rounding, the SVC itself
predicts. So a class code depends neither on the precision nor on the other rows. The
error bounds are proved in docs/theory/svm_votes.md.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import ArrayLike, Floats, Integers, Singles
from dsel.families.svm.machines import Machines, RowsByClass, make_svc
from dsel.kernels.functions import Kernel, errors_of
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows

EPS: Final = float(np.finfo(np.float64).eps)
HALF_EPS_FLOAT32: Final = float(np.finfo(np.float32).eps) / 2
TINY: Final = float(np.finfo(np.float32).tiny)
LEAST: Final = 1e-30
"""Kernel values below it are set to 0: arithmetic on subnormal numbers is slow."""
MOST_DOUBLINGS: Final = {False: 1, True: 4}
"""Number of times that the exponents of a block may be doubled, by
`KernelBlock.less_one`."""
MOST_ROUNDINGS: Final = 1000.0
"""Rounding errors of a decision value up to which libsvm, which rounds otherwise, is
asked. A few do; a row that is asked in vain costs little."""
TERM_ROUNDINGS: Final = 15
"""Roundings of one term in float32, in addition to those of its sum; with these
doublings."""


@dataclass(frozen=True)
class KernelBlock:
    """Kernel values of some rows with all labeled rows, which are sorted by class."""

    kernel: Kernel
    reference: ReferenceRows
    """The labeled rows, one for each column."""
    rows: Any
    """The other rows, as `reference` takes them."""
    values: NDArray[Any]
    """Kernel values in float32, (n_rows, n_columns); minus 1 if `less_one`."""
    peaks: Floats
    """Bound of each row's absolute `values` by class code, (n_classes, n_rows)."""
    errors: Floats
    """Bound of each row's errors except for rounding to float32, (n_rows,)."""
    less_one: bool = False
    """Whether 1 was subtracted from the kernel values."""


def kernel_block(
    kernel: Kernel,
    reference: ReferenceRows,
    rows: ArrayLike,
    values: Singles,
    starts: Integers,
    *,
    less_one: bool = False,
) -> KernelBlock:
    """Return a block of kernel values; a class begins at each column of `starts`.

    Absolute values below `LEAST` are set to 0 in place.
    """
    from dsel.families.svm import votes

    peaks = np.zeros((len(starts) - 1, len(values)))
    votes.flush_to_peaks(values, starts, np.float32(LEAST), peaks)
    largest = 1.0 if less_one else peaks.max(axis=0, initial=LEAST)
    if kernel.base == DISTANCES and not less_one:
        # Exponents may be rounded: their error is the larger the smaller the value.
        peaks *= 1.0 - np.log(np.maximum(peaks, TINY)) / TERM_ROUNDINGS
    relative, absolute = errors_of(kernel, reference, rows)
    errors = (relative + 4.0 * EPS) * largest + absolute
    return KernelBlock(kernel, reference, rows, values, peaks, errors, less_one)


class PairTerms(NamedTuple):
    """Support vectors of some models, for each ordered pair of classes.

    Compiled code reads them by class, then by the other class of the pair.
    """

    columns: Integers
    """Columns of the kernel block, (n_terms,)."""
    weights: Singles
    """Dual coefficients, (n_terms, LANES)."""
    starts: Integers
    """First term of each (class, other class), and the number of terms."""
    bounds: Floats
    """Five numbers for each pair and model, (n_pairs, 5 * LANES): the intercept, the
    factors of the peaks of both classes and of the row's error, which bound the error
    of the decision value, and the constant of this bound."""


@dataclass(frozen=True)
class DecisionWeights:
    """Dual coefficients of binary SVMs over the columns of a kernel block."""

    machines: Machines
    """The binary SVMs."""
    columns: Integers
    """Column of the kernel block for each support vector."""
    terms: tuple[tuple[PairTerms, PairTerms], ...]
    """Terms of every `LANES` models, for kernel values and for values minus 1."""
    labeled: RowsByClass
    """The labeled rows."""
    svc: Any
    """The unfitted SVC of any of the candidates."""
    models: dict[int, Any] = field(default_factory=dict)
    """Fitted SVCs that predict class codes, by number of the model, once needed."""

    def predict(self, rows: Any, model: int) -> Integers:
        """Return the class codes that libsvm predicts with one of the models."""
        labeled, machines = self.labeled, self.machines
        if model not in self.models:
            candidate = machines.candidate_numbers[list(machines.model_of).index(model)]
            self.models[model] = make_svc(
                machines,
                replace(labeled, columns=None),
                np.sort(labeled.row_numbers),
                self.svc,
                candidate,
                np.arange(len(labeled.starts) - 1),
            )
        if labeled.n_values:  # a precomputed kernel has a column for each labeled row
            values = rows
            rows = np.zeros((len(rows), labeled.n_values))
            rows[:, labeled.row_numbers] = values
        return np.asarray(self.models[model].predict(rows), dtype=np.int64)


def arrange_duals(
    machines: Machines, labeled: RowsByClass, svc: Any
) -> DecisionWeights:
    """Arrange dual coefficients over kernel blocks whose columns are labeled rows.

    `svc` is the unfitted SVC of any of the candidates.
    """
    from dsel.families.svm import votes
    from dsel.families.svm.lanes import LANES

    columns = labeled.positions(machines.row_numbers)
    (n_rows, n_others, n_models) = machines.coefs.shape
    i, j = np.triu_indices(n_others + 1, 1)
    terms = []
    for first in range(0, n_models, LANES):
        models = slice(first, min(first + LANES, n_models))
        weights = np.zeros((n_rows * n_others, LANES), dtype=np.float32)
        begins = np.zeros((n_others + 1) * n_others + 1, dtype=np.int64)
        sums = np.zeros((3, n_others + 1, n_others, models.stop - first))
        buffers = PairTerms(
            np.empty(len(weights), dtype=np.int64), weights, begins, np.empty((0, 0))
        )
        end = votes.write_terms(
            machines.coefs, machines.starts, columns, first, buffers, sums
        )
        # A pair has a term for each support vector of any model; those of the other
        # models are 0 there.
        union = np.diff(begins).reshape(n_others + 1, n_others, 1)
        sizes, counts, _ = sums
        added = np.minimum(counts, union / 4 + 3)
        # These are the rounding errors of each class's terms in float64 and in float32,
        # for kernel values of at most 1.
        slack = 4.0 * EPS * (counts + 26) * sizes
        slack += 1.2 * HALF_EPS_FLOAT32 * (added + TERM_ROUNDINGS) * sizes
        sizes, counts, signed = sums[:, i, j - 1] + sums[:, j, i]
        offsets, pair = machines.offsets[:, models], []
        fixed = 8.0 * EPS * np.abs(offsets) + TINY + LEAST * sizes
        # sum_t coef_t (k_t - 1) + (offset + sum_t coef_t) is the same decision value.
        for less_one in (0.0, 1.0):
            off = fixed + less_one * EPS * (counts * sizes + 8.0 * np.abs(signed))
            bounds = np.zeros((len(i), 5, LANES))
            bounds[..., : models.stop - first] = np.stack(
                (offsets + less_one * signed, slack[i, j - 1], slack[j, i], sizes, off),
                axis=1,
            )
            pair.append(
                PairTerms(
                    buffers.columns[:end],
                    weights[:end],
                    begins,
                    bounds.reshape(len(i), 5 * LANES),
                )
            )
        terms.append((pair[0], pair[1]))
    return DecisionWeights(machines, columns, tuple(terms), labeled, svc)


def decide(
    block: KernelBlock,
    duals: DecisionWeights,
    rows: Integers,
    model_numbers: Integers,
    guess: Integers,
) -> Integers:
    """Return the class codes of some rows of a block, (n_models, n_rows).

    `rows` are ascending row numbers of the block. The codes of models that are not in
    `model_numbers` are undefined. `guess` has a class code for each row of the block,
    which is tried first; a good guess saves time and does not change the result.
    """
    from dsel.families.svm import votes
    from dsel.families.svm.lanes import LANES

    present, shape = duals.machines.present, (duals.machines.n_models, len(rows))
    if len(present) == 1:
        return np.broadcast_to(present, shape)
    peaks = block.peaks if len(present) == len(block.peaks) else block.peaks[present]
    # Precomputed kernels may be in Fortran order, which compiled code does not read.
    values = np.ascontiguousarray(block.values)
    codes = np.zeros(shape, dtype=np.int64)
    codes[model_numbers] = -1
    for k, terms in enumerate(duals.terms):
        votes.settle(
            values,
            rows,
            terms[block.less_one],
            peaks,
            block.errors,
            guess,
            present,
            codes[k * LANES : (k + 1) * LANES],
        )
    if codes.min(initial=0) == 0:
        return codes
    pairs = np.triu_indices(len(present), 1)
    is_tied = np.zeros(shape, dtype=np.bool_)
    for i in np.flatnonzero((codes < 0).any(axis=0)):
        undecided = np.flatnonzero(codes[:, i] < 0)
        # The kernel values of the row are computed for this row alone, so that they
        # cannot depend on the other rows of the block.
        base = block.reference.exact_base_of(block.rows[[rows[i]]])
        values = block.kernel.values(base)[np.newaxis]
        decisions, limits = cell_decisions(
            duals, values, np.zeros_like(undecided), undecided
        )
        # Duplicates and symmetric data make exact ties, whose label is a matter of
        # rounding. That of the deployed model counts, however libsvm rounds.
        is_near = np.abs(decisions) <= MOST_ROUNDINGS * limits
        is_tied[undecided, i] = is_near.any(axis=0)
        is_first = decisions > 0.0
        n_won = np.zeros((len(present), len(undecided)), dtype=np.int64)
        for winner, won in zip(pairs, (is_first, ~is_first), strict=True):
            np.add.at(n_won, winner, won)
        # The first class with the most votes wins, as in libsvm.
        codes[undecided, i] = present[n_won.argmax(axis=0)]
    for model in np.flatnonzero(is_tied.any(axis=1)).tolist():
        tied = is_tied[model]
        codes[model, tied] = duals.predict(block.rows[rows[tied]], model)
    return codes


def cell_decisions(
    duals: DecisionWeights, values: Floats, rows: Integers, model_numbers: Integers
) -> tuple[Floats, Floats]:
    """Return decision values of rows and models, and bounds of their rounding.

    Both are (n_pairs, n_cells), with a cell for each row and model. The terms of a cell
    are added in a fixed order.
    """
    from dsel.families.svm import votes

    machines = duals.machines
    n_present = len(machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1, len(rows)))
    values, model_numbers = (
        np.ascontiguousarray(values),
        np.ascontiguousarray(model_numbers),
    )
    votes.add_terms(
        values,
        duals.columns,
        machines.coefs,
        machines.starts,
        rows,
        model_numbers,
        terms,
        limits,
    )
    i, j = np.triu_indices(n_present, 1)
    offsets = machines.offsets[:, model_numbers]
    rounding = limits[i, j - 1] + limits[j, i] + EPS * np.abs(offsets)
    return terms[i, j - 1] + terms[j, i] + offsets, rounding
