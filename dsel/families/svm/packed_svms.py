"""Kernel SVMs of many candidates and splits that predict from shared kernels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Features, Floats, Integers, Singles
from dsel.data.cache import nbytes_of
from dsel.data.frames import number_matrix
from dsel.data.identity import content_hash, row_hashes
from dsel.families.ensemble_sizes import hash_pickle
from dsel.families.family import FitCounts, FittedGroup, iter_splits
from dsel.families.svm.decisions import (
    LEAST,
    MOST_DOUBLINGS,
    DecisionWeights,
    KernelBlock,
    arrange_duals,
    decide,
    kernel_block,
)
from dsel.families.svm.fit import KERNEL_BLOCK_NBYTES
from dsel.families.svm.machines import Machines, RowsByClass, make_svc, split_svc
from dsel.kernels.functions import Kernel
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows
from dsel.losses.protocols import no_predictions
from dsel.typing import SplitNumbers


@dataclass(frozen=True)
class SharedSupport:
    """Models that predict from the same support rows, arranged for one kernel block."""

    labeled: RowsByClass
    """The support rows."""
    by_kernel: Mapping[Kernel, Sequence[DecisionWeights]]
    """Machines of each kernel. Kernels that decay are in ascending order of it:
    neighbors mostly predict the same label for a row, which is then tried first."""
    reference: Mapping[str, ReferenceRows]
    """The support rows as reference rows, by the base of the kernels."""
    split_numbers: Sequence[int]
    """Numbers of the splits whose machines are among them."""

    def blocks(
        self, X: Features, row_numbers: Integers
    ) -> Iterator[tuple[Integers, Any]]:
        """Yield blocks of row numbers, and of `X` transformed for the SVMs.

        Data frames are transformed in one piece, since each call takes milliseconds.
        """
        labeled = self.labeled
        in_one = labeled.takes_frames and len(row_numbers)
        whole = labeled.transform(X[row_numbers]) if in_one else None
        # The float32 values of a block take 4 MiB. Blocks of twice the size are as fast
        # on one thread, and 10% slower on two that share a cache. With many classes a
        # block needs enough rows that four of them share a guess (`lanes.ROWS`).
        n_classes, n_columns = len(labeled.starts) - 1, len(labeled.row_numbers)
        step = max(128, 8 * n_classes, KERNEL_BLOCK_NBYTES // (8 * max(1, n_columns)))
        for start in range(0, len(row_numbers), step):
            block = slice(start, start + step)
            if whole is None:
                yield (
                    row_numbers[block],
                    labeled.transform(number_matrix(X)[row_numbers[block]]),
                )
            else:
                yield row_numbers[block], whole[block]

    def kernels(self, rows: Any) -> Iterator[KernelBlock]:
        """Yield the kernel values of some rows; each block overwrites the last one."""
        from dsel.families.svm import votes

        bases = {kind: ref.base_of(rows) for kind, ref in self.reference.items()}
        far = float(bases[DISTANCES].max(initial=0.0)) if DISTANCES in bases else 0.0
        starts = self.labeled.starts
        values = np.empty((rows.shape[0], starts[-1]), dtype=np.float32)
        # These are base, decay and kind of the values, and the number of times that
        # their exponents were doubled since an exponential was computed.
        before, n_doublings = ("", 0.0, False), 0
        for kernel in self.by_kernel:
            base, decay = bases[kernel.base], kernel.decay
            less_one = decay is not None and bool(decay * far <= 1.0)
            if decay is None:
                values[:] = kernel.values(base)
                before = "", 0.0, False
            elif (
                before == (kernel.base, decay / 2, less_one)
                and n_doublings < MOST_DOUBLINGS[less_one]
            ):
                # Grids of gamma are mostly powers of 2, and a product takes a tenth of
                # the time of an exponential.
                least = np.float32(0.0 if less_one else np.sqrt(LEAST))
                votes.double_exponents(values, least, np.float32(less_one))
                before, n_doublings = (kernel.base, decay, less_one), n_doublings + 1
            else:
                _write_exponentials(base, decay, values, less_one=less_one)
                before, n_doublings = (kernel.base, decay, less_one), 0
            yield kernel_block(
                kernel,
                self.reference[kernel.base],
                rows,
                values,
                starts,
                less_one=less_one,
            )


def _write_exponentials(
    base: Floats, decay: float, values: Singles, *, less_one: bool
) -> None:
    """Write exp(-decay base), or this minus 1, in float32."""
    from dsel.families.svm import votes

    if less_one:
        # Where all values are close to 1, the differences between rows are in their
        # last digits. The values minus 1 keep these digits in float32.
        votes.exponentials_less_one(base, decay, values)
        return
    with np.errstate(over="ignore"):  # exp of an overflow to -inf is 0
        np.multiply(base, -decay, out=values, casting="same_kind")
    np.exp(values, out=values)


@dataclass(frozen=True)
class PackedSVMs(FittedGroup):
    """Kernel SVMs of some candidates, one per split."""

    candidate_numbers: tuple[int, ...]
    split_numbers: tuple[int, ...]
    fit_counts: FitCounts
    row_sets: Mapping[str, RowsByClass]
    """Support vectors, by their `RowsByClass.origin`."""
    machines: tuple[Machines, ...]
    """One for each kernel and split that could be fitted."""
    estimators: Mapping[int, Any]
    """Unfitted estimator of each candidate."""
    train_rows: Mapping[int, Integers]
    """Training rows of each split."""
    classes: NDArray[Any]
    """Label of each class code."""

    @property
    def nbytes(self) -> int:
        """Bytes to send the models."""
        return nbytes_of([self.train_rows, self.row_sets, self.machines])

    @property
    def row_nbytes(self) -> int:
        """Bytes of `predict` for one row: two items of codes, and the row itself."""
        columns = max((f.rows.shape[1] for f in self.row_sets.values()), default=0)
        return 8 * (2 * len(self.candidate_numbers) + 4 * columns + 4)

    @cached_property
    def shared_supports(self) -> tuple[SharedSupport, ...]:
        """The models, arranged over the kernel blocks that they read."""

        def order(machines: Machines) -> tuple[str, float, str]:
            kernel = machines.kernel
            return type(kernel).__name__, kernel.decay or 0.0, repr(kernel)

        supports = []
        for origin, labeled in self.row_sets.items():
            by_kernel: dict[Kernel, list[DecisionWeights]] = {}
            same_rows = [m for m in self.machines if m.rows_of == origin]
            for machines in sorted(same_rows, key=order):
                estimator = self.estimators[machines.candidate_numbers[0]]
                duals = arrange_duals(machines, labeled, split_svc(estimator)[2])
                by_kernel.setdefault(machines.kernel, []).append(duals)
            kinds = {kernel.base for kernel in by_kernel}
            reference = {kind: reference_rows(labeled.rows, kind) for kind in kinds}
            split_numbers = [machines.split_number for machines in same_rows]
            supports.append(SharedSupport(labeled, by_kernel, reference, split_numbers))
        return tuple(supports)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out arrays that are computed again after unpickling."""
        remade = ("shared_supports", "_hashes")
        return {name: v for name, v in self.__dict__.items() if name not in remade}

    def predict(self, X: Features, splits: Sequence[SplitNumbers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        n_rows = X.shape[0]
        shape = len(splits), len(self.candidate_numbers), n_rows
        codes = no_predictions(shape, np.int64)
        by_row = [
            split_numbers for split_numbers in splits if np.ndim(split_numbers) == 1
        ]
        # Rows that are predicted by the models of one split come in one block.
        order = np.argsort(by_row[0], kind="stable") if by_row else np.arange(n_rows)
        for support in self.shared_supports:
            is_needed = np.zeros(n_rows, dtype=np.bool_)
            for split_numbers in splits:
                is_needed |= np.isin(
                    np.atleast_2d(split_numbers), support.split_numbers
                ).any(axis=0)
            for rows, transformed in support.blocks(X, order[is_needed[order]]):
                self._predict_block(support, transformed, splits, rows, codes)
        return codes

    def _predict_block(
        self,
        support: SharedSupport,
        transformed: Features,
        splits: Sequence[SplitNumbers],
        row_numbers: Integers,
        codes: Integers,
    ) -> None:
        """Write the class codes of some rows; memory is reused for the next ones."""
        # The last prediction is the guess: it is mostly that of a neighboring gamma or
        # training set, which predicts the same class for most rows.
        guess = np.zeros(len(row_numbers), dtype=np.int64)
        every, numbered = (
            np.arange(len(self.candidate_numbers)),
            np.arange(len(row_numbers)),
        )
        index_of = dict(zip(self.candidate_numbers, every.tolist(), strict=True))
        splits = [n[row_numbers] if np.ndim(n) == 1 else n for n in splits]
        requests: dict[int, list[tuple[int, Integers, Integers]]] = {}
        for item, split, positions, at in iter_splits(splits):
            requests.setdefault(split, []).append(
                (item, every[positions], numbered[at])
            )
        for block in support.kernels(transformed):
            for duals in support.by_kernel[block.kernel]:
                machines = duals.machines
                indices = np.array(
                    [index_of[candidate] for candidate in machines.candidate_numbers]
                )
                for item, positions, at in requests.get(machines.split_number, ()):
                    is_wanted = np.isin(indices, positions)
                    if not is_wanted.any():
                        continue
                    models = machines.model_of[is_wanted]
                    block_codes = decide(block, duals, at, models, guess)
                    guess[at] = block_codes[models[len(models) // 2]]
                    target_rows, target = row_numbers[at], codes[item]
                    for index, model in zip(indices[is_wanted], models, strict=True):
                        target[index, target_rows] = block_codes[model]

    def model(self, candidate: int, split_number: int) -> Any:
        """Return the fitted estimator, which predicts as the group does."""
        machines = self._machines_of(candidate, split_number)
        return make_svc(
            machines,
            self.row_sets[machines.rows_of],
            self.train_rows[split_number],
            self.estimators[candidate],
            candidate,
            self.classes,
        )

    def _machines_of(self, candidate: int, split_number: int) -> Machines:
        for machines in self.machines:
            if (
                machines.split_number == split_number
                and candidate in machines.candidate_numbers
            ):
                return machines
        raise KeyError(f"candidate {candidate} has no model of split {split_number}")

    @cached_property
    def _hashes(self) -> dict[str, tuple[str, NDArray[np.uint64]]]:
        """Hashes of the steps and of each support row, by origin; none if no steps."""
        return {
            origin: (hash_pickle(labeled.steps), row_hashes(labeled.rows))
            for origin, labeled in self.row_sets.items()
            if labeled.steps
        }

    def token(self, candidate: int, split_number: int) -> str:
        """Return a hash of the steps and the machine; see `FittedGroup.token`.

        Without steps support rows are labeled rows, which their numbers identify.
        """
        machines = self._machines_of(candidate, split_number)
        model = machines.model_of[machines.candidate_numbers.index(candidate)]
        coefs = machines.coefs[:, :, model]
        used = coefs.any(axis=1)
        row_numbers, steps = machines.row_numbers[used], ""
        state = [machines.present, row_numbers, coefs[used], machines.offsets[:, model]]
        if machines.rows_of in self._hashes:
            steps, rows = self._hashes[machines.rows_of]
            # `fit_transform` may have used random numbers that no step has kept.
            state.append(rows[self.row_sets[machines.rows_of].positions(row_numbers)])
        text = f"{machines.kernel!r} {steps} {content_hash(*state)}"
        return blake2b(text.encode(), digest_size=12).hexdigest()
