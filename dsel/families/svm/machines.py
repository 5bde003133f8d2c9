"""Labeled rows by class, the fitted binary SVMs, and the SVCs that are made of them.

`smo` solves a grid, and users get what scikit-learn would have fitted: an `SVC`, which
predicts by its own code, and which other libraries know. An SVC has no public way to
set its solution. So `make_svc` fits a clone to a few made-up rows of zeros, with the
right classes: this sets all attributes that this version of scikit-learn has. Then it
replaces those that depend on the rows, such as `support_` and `_dual_coef_`, by the
solution that was counted. Decision values and votes are computed from these by
scikit-learn itself.

Two alternatives lost. A class of dsel would be no SVC for code that tests the type. A
second fit by libsvm takes as long as the first one, and gives another model than the
counted one, as both stop at a tolerance. `tests/families/svm/test_models.py` compares
all attributes with those of a fitted SVC, and fails where scikit-learn adds, renames or
retypes one; CI runs it with the lowest supported version, too.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

from dsel.arrays import Bools, Features, Floats, Integers, as_floats
from dsel.data.frames import read_only_rows
from dsel.families.prefixes import transform_rows
from dsel.kernels.functions import Kernel
from dsel.kernels.reference_rows import squared_lengths

OF_LIBSVM: Final = frozenset({"linear", "poly", "precomputed", "rbf"})
"""Kernels that scikit-learn's SVC knows by name. It is not the list of `KERNELS`: a
kernel that is added there is passed to SVC as a function."""
MAX_SQUARED_NORM: Final[Mapping[str, float]] = {
    "linear": float(np.finfo(np.float32).max)
}
"""Largest squared norm of a row by kernel; libsvm keeps kernel values in float32."""
MAX_SQUARED_NORM_OTHERWISE: Final = float(np.finfo(np.float64).max) / 4
"""Largest squared norm for other kernels: squared distances are up to four times as
large, and computed in float64."""


def split_svc(estimator: Any) -> tuple[list[tuple[str, Any]], str, Any]:
    """Return the steps before an SVC, the prefix of its parameters, and the SVC.

    An SVC that is no pipeline has no steps before it, and no prefix.
    """
    if type(estimator) is not Pipeline:
        return [], "", estimator
    name, svc = estimator.steps[-1]
    return estimator.steps[:-1], f"{name}__", svc


@dataclass(frozen=True)
class RowsByClass:
    """Labeled rows sorted by class, as input of the SVMs of one split or of all."""

    origin: str
    """Cache key of these rows and the steps that transformed them."""
    steps: Sequence[tuple[str, Any]]
    """Fitted steps before the SVC."""
    row_numbers: Integers
    """Labeled row numbers, ascending within each class."""
    starts: Integers
    """Where each class code begins, and the end, (n_classes + 1,)."""
    rows: Any
    """The rows, float64, dense or CSR; for a precomputed kernel the kernel values."""
    n_values: int = 0
    """Number of columns of a precomputed kernel, one for each labeled row; 0 for other
    kernels."""
    takes_frames: bool = False
    """Whether the steps turn data frames into numbers."""
    columns: tuple[str, ...] | None = None
    """Names of the columns, if the rows that an SVC would get are a data frame."""

    def positions(self, row_numbers: Integers) -> Integers:
        """Return the positions of labeled rows in `rows`, by their row numbers."""
        order = np.argsort(self.row_numbers)
        return order[np.searchsorted(self.row_numbers, row_numbers, sorter=order)]

    def transform(self, X: Features) -> Any:
        """Transform other rows as input of the SVMs."""
        if self.n_values:
            values = as_floats(X)[:, self.row_numbers]
            return values.toarray() if sparse.issparse(values) else values
        return as_floats(
            transform_rows(self.steps, read_only_rows(X)) if self.steps else X
        )


def rows_by_class(
    y: Integers, n_classes: int, row_numbers: Integers, X: Features, **fields: Any
) -> RowsByClass:
    """Return rows `X` of class codes `y` and ascending labeled row numbers."""
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], np.arange(n_classes + 1))
    return RowsByClass(
        row_numbers=row_numbers[order], starts=starts, rows=X[order], **fields
    )


def check_row_norms(rows: Any, kernel: str) -> Any:
    """Return rows in float64; raise if one is not finite, or its norm is too large."""
    rows = as_floats(rows)
    with np.errstate(over="ignore"):
        largest = float(squared_lengths(rows).max(initial=0.0))
    most = MAX_SQUARED_NORM.get(kernel, MAX_SQUARED_NORM_OTHERWISE)
    if kernel != "precomputed" and not largest <= most:
        raise ValueError(
            f"squared lengths of rows in `X` and `pool` must be below {most:.2g} for "
            f"kernel={kernel!r}, got {largest:.3g}; scale the features."
        )
    return rows


ROWS_PER_CLASS: Final = 3  # scikit-learn warns if there are classes for half the rows


@dataclass(frozen=True)
class Machines:
    """Binary SVMs of all pairs of classes of one training set, for every C."""

    split_number: int
    """Number of the split."""
    rows_of: str
    """`RowsByClass.origin` of the rows."""
    kernel: Kernel
    """The kernel, with gamma resolved on the training rows."""
    candidate_numbers: tuple[int, ...]
    """Candidate numbers, in ascending order of C."""
    model_of: Integers
    """Index of each candidate's model; equal solutions are kept once."""
    present: Integers
    """Class codes of the training rows, ascending; a single class is always
    predicted."""
    row_numbers: Integers
    """Labeled row numbers of the support vectors of any model, class by class."""
    starts: Integers
    """Where each class begins in `row_numbers`, and the end, (n_present + 1,)."""
    coefs: Floats
    """Dual coefficients in libsvm's layout, (n_rows, n_present - 1, n_models)."""
    offsets: Floats
    """Intercepts of the decision values, (n_pairs, n_models)."""
    steps: Integers
    """Solver steps of each pair, (n_pairs, n_candidates)."""
    stopped: Bools
    """Whether the solver stopped at `max_iter` in some pair, (n_candidates,)."""
    class_weight: Floats
    """Factor of C of each class, (n_present,)."""

    @property
    def n_models(self) -> int:
        """Number of distinct models."""
        return int(self.coefs.shape[2])

    def of(self, candidates: Collection[int]) -> "Machines":
        """Return the SVMs of some candidates, with only their support vectors."""
        positions = [i for i, n in enumerate(self.candidate_numbers) if n in candidates]
        if len(positions) == len(self.candidate_numbers):
            return self
        models, model_of = np.unique(self.model_of[positions], return_inverse=True)
        coefs = np.ascontiguousarray(self.coefs[:, :, models])
        used = coefs.any(axis=(1, 2))
        return replace(
            self,
            candidate_numbers=tuple(self.candidate_numbers[i] for i in positions),
            model_of=model_of,
            row_numbers=self.row_numbers[used],
            starts=np.concatenate(([0], np.cumsum(used)))[self.starts],
            coefs=coefs[used],
            offsets=self.offsets[:, models],
            steps=self.steps[:, positions],
            stopped=self.stopped[positions],
        )


def make_svc(
    machines: Machines,
    labeled: RowsByClass,
    row_numbers: Integers,
    estimator: Any,
    candidate: int,
    classes: NDArray[Any],
) -> Any:
    """Make the fitted SVC or pipeline of one candidate, by its number.

    Where the training rows have a single class, it is a classifier that always predicts
    this class. `labeled` holds the support vectors, and `row_numbers` are those of the
    split's training rows, ascending: ``support_`` has positions among them, or among
    all labeled rows where the kernel is precomputed.
    """
    n_columns = labeled.n_values or labeled.rows.shape[1]
    if len(machines.present) < 2:
        dummy = DummyClassifier(strategy="most_frequent")
        dummy.fit(np.zeros((1, 1)), classes[machines.present])
        dummy.n_features_in_ = n_columns
        if labeled.columns is not None and not labeled.steps:
            dummy.feature_names_in_ = np.array(labeled.columns, dtype=object)
        return dummy
    position = machines.candidate_numbers.index(candidate)
    model = int(machines.model_of[position])
    coefs, offsets = machines.coefs[:, :, model], machines.offsets[:, model]
    used = np.asarray(coefs.any(axis=1))
    support_rows, coefs = (
        machines.row_numbers[used],
        np.ascontiguousarray(coefs[used].T),
    )
    vectors = labeled.rows[labeled.positions(support_rows)]  # precomputed: no columns
    svc = clone(split_svc(estimator)[2])
    is_fractional = svc.kernel == "poly" and not float(svc.degree).is_integer()
    if is_fractional or svc.kernel not in OF_LIBSVM:
        # scikit-learn accepts only whole degrees, but any function as the kernel.
        svc.set_params(kernel=machines.kernel, degree=3)
    else:
        svc.set_params(degree=int(svc.degree))  # scikit-learn refuses 2.0
    # A fit on made-up rows sets all attributes, with the right types. It uses C=1: on
    # equal rows libsvm steps by 2e12 up to C, which takes long for a huge C.
    labels = np.repeat(classes[machines.present], ROWS_PER_CLASS)
    kind: Any = sparse.csr_array if sparse.issparse(labeled.rows) else np.zeros
    made_up = kind((len(labels), labeled.rows.shape[1]))
    C, svc.C = svc.C, 1.0
    svc.fit(np.eye(len(labels)) if labeled.n_values else made_up, labels)
    svc.C = C
    # The fit has computed gamma from the made-up rows, not from the training rows.
    svc._gamma = getattr(machines.kernel, "gamma", svc._gamma)
    if callable(svc.kernel):
        svc._gamma = 0.0
    support = np.searchsorted(row_numbers, support_rows)
    svc.n_features_in_, svc.shape_fit_ = n_columns, (len(row_numbers), n_columns)
    if labeled.columns is not None:
        svc.feature_names_in_ = np.array(labeled.columns, dtype=object)
    if labeled.n_values:
        # A fold's model, too, predicts from kernel values of all labeled rows.
        support, svc.shape_fit_ = support_rows, (n_columns, n_columns)
    if callable(svc.kernel):  # SVC keeps the rows on which it calls the function
        support, svc.shape_fit_ = np.arange(len(support_rows)), vectors.shape
        svc._BaseLibSVM__Xfit, vectors = vectors, vectors[:0, :0]
    svc.support_, svc.support_vectors_ = support.astype(np.int32), vectors
    n_before = np.concatenate(([0], np.cumsum(used)))[machines.starts]
    svc._n_support = np.diff(n_before).astype(np.int32)
    svc.class_weight_ = machines.class_weight
    svc._num_iter = svc.n_iter_ = machines.steps[:, position].astype(np.int32)
    svc.fit_status_ = int(machines.stopped[position])
    internal: Any = coefs
    if sparse.issparse(svc._dual_coef_):
        # Zeros are stored explicitly: libsvm reads a full row for each pair of classes.
        internal = type(svc._dual_coef_)(np.ones_like(coefs))
        internal.data = coefs.ravel()
    # For two classes scikit-learn shows them with the opposite sign.
    sign = -1.0 if len(svc.classes_) == 2 else 1.0
    svc._dual_coef_, svc._intercept_ = internal, offsets.copy()
    svc.dual_coef_, svc.intercept_ = sign * internal, sign * offsets
    if type(estimator) is not Pipeline:
        return svc
    steps = [*labeled.steps, (estimator.steps[-1][0], svc)]
    return clone(estimator).set_params(steps=steps)
