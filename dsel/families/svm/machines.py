"""Fitted binary SVMs, and scikit-learn estimators made from them.

A certificate speaks of the very models that were counted. Libsvm leaves rows out on a
schedule of its own, which at the usual tolerance can move a label, so refitting an SVC
might give another model. The state of a fitted SVC is therefore filled in: a real `fit`
on a few rows sets up everything that scikit-learn's version wants, then support
vectors, coefficients and constants are replaced.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

from dsel.arrays import Bools, Floats, Integers
from dsel.families.svm.rows import RowsByClass
from dsel.families.svm.settings import OF_LIBSVM, split_svc
from dsel.kernels.functions import Kernel, Polynomial, Rbf

ROWS_OF_CLASS: Final = 3  # scikit-learn warns where classes are over half of the rows


@dataclass(frozen=True)
class Machines:
    """Binary SVMs of all pairs of classes of one training set, for every C."""

    split: int
    """Number of the split."""
    rows_of: str
    """`RowsByClass.origin` of the rows."""
    kernel: Kernel
    """With gamma resolved on the training rows."""
    candidates: tuple[int, ...]
    """Candidate numbers, in ascending order of C."""
    model_of: Integers
    """Place of each candidate's model; equal solutions are kept once."""
    present: Integers
    """Class codes of the training rows, ascending; a lone class is always predicted."""
    numbers: Integers
    """Labeled row numbers of the support vectors of any model, class by class."""
    starts: Integers
    """Where each class begins in `numbers`, and the end, (n_present + 1,)."""
    coefs: Floats
    """Dual coefficients in libsvm's layout, (n_rows, n_present - 1, n_models)."""
    offsets: Floats
    """Constants of the decisions, (n_pairs, n_models)."""
    steps: Integers
    """Solver steps of each pair, (n_pairs, n_candidates)."""
    stopped: Bools
    """Whether the solver took all its steps in some pair, (n_candidates,)."""
    class_weight: Floats
    """Factor of C of each class, (n_present,)."""

    @property
    def n_models(self) -> int:
        """Number of distinct models."""
        return int(self.coefs.shape[2])

    def of(self, candidates: Collection[int]) -> "Machines":
        """Return the SVMs of some candidates, with only their support vectors."""
        places = [i for i, n in enumerate(self.candidates) if n in candidates]
        if len(places) == len(self.candidates):
            return self
        models, model_of = np.unique(self.model_of[places], return_inverse=True)
        coefs = np.ascontiguousarray(self.coefs[:, :, models])
        used = coefs.any(axis=(1, 2))
        return replace(
            self,
            candidates=tuple(self.candidates[place] for place in places),
            model_of=model_of,
            numbers=self.numbers[used],
            starts=np.concatenate(([0], np.cumsum(used)))[self.starts],
            coefs=coefs[used],
            offsets=self.offsets[:, models],
            steps=self.steps[:, places],
            stopped=self.stopped[places],
        )


def svc_of(
    machines: Machines,
    labeled: RowsByClass,
    rows: Integers,
    estimator: Any,
    candidate: int,
    classes: NDArray[Any],
) -> Any:
    """Return the fitted SVC or pipeline of one candidate, by number.

    Of one class it is a classifier that always gives its label. `labeled` holds the
    support vectors, and `rows` are the labeled rows of the split, ascending:
    ``support_`` counts them, and all labeled rows where the kernel is precomputed.
    """
    n_columns = labeled.n_values or labeled.rows.shape[1]
    if len(machines.present) < 2:
        dummy = DummyClassifier(strategy="most_frequent")
        dummy.fit(np.zeros((1, 1)), classes[machines.present])
        dummy.n_features_in_ = n_columns
        return dummy
    place = machines.candidates.index(candidate)
    model = int(machines.model_of[place])
    coefs, offsets = machines.coefs[:, :, model], machines.offsets[:, model]
    used = np.asarray(coefs.any(axis=1))
    numbers, coefs = machines.numbers[used], np.ascontiguousarray(coefs[used].T)
    vectors = labeled.rows[labeled.places_of(numbers)]  # no column of precomputed ones
    svc = clone(split_svc(estimator)[2])
    is_fractional = svc.kernel == "poly" and not float(svc.degree).is_integer()
    if is_fractional or svc.kernel not in OF_LIBSVM:
        # scikit-learn takes whole degrees only, but any function as the kernel.
        svc.set_params(kernel=machines.kernel, degree=3)
    else:
        svc.set_params(degree=int(svc.degree))  # 2.0 is not whole to it
    # Fitted to made-up rows it has all attributes, of the right kind. On equal rows
    # libsvm steps by 2e12 up to C: for long, where features are tiny.
    labels = np.repeat(classes[machines.present], ROWS_OF_CLASS)
    kind: Any = sparse.csr_array if sparse.issparse(labeled.rows) else np.zeros
    made_up = kind((len(labels), labeled.rows.shape[1]))
    given, svc.C = svc.C, 1.0
    svc.fit(np.eye(len(labels)) if labeled.n_values else made_up, labels)
    svc.C = given
    if isinstance(machines.kernel, (Rbf, Polynomial)):
        svc._gamma = machines.kernel.gamma if not callable(svc.kernel) else 0.0
    support = np.searchsorted(rows, numbers)
    svc.n_features_in_, svc.shape_fit_ = n_columns, (len(rows), n_columns)
    if labeled.n_values:  # also a fold's model gets the values of all labeled rows
        support, svc.shape_fit_ = numbers, (n_columns, n_columns)
    if callable(svc.kernel):  # it calls its kernel on rows that it keeps
        support, svc.shape_fit_ = np.arange(len(numbers)), vectors.shape
        svc._BaseLibSVM__Xfit, vectors = vectors, vectors[:0, :0]
    svc.support_, svc.support_vectors_ = support.astype(np.int32), vectors
    n_before = np.concatenate(([0], np.cumsum(used)))[machines.starts]
    svc._n_support = np.diff(n_before).astype(np.int32)
    svc.class_weight_ = machines.class_weight
    svc._num_iter = svc.n_iter_ = machines.steps[:, place].astype(np.int32)
    svc.fit_status_ = int(machines.stopped[place])
    internal: Any = coefs
    if sparse.issparse(svc._dual_coef_):
        # Every entry is kept: libsvm reads a full row per pair of classes.
        internal = type(svc._dual_coef_)(np.ones_like(coefs))
        internal.data = coefs.ravel()
    # Two classes show them with the other sign.
    sign = -1.0 if len(svc.classes_) == 2 else 1.0
    svc._dual_coef_, svc._intercept_ = internal, offsets.copy()
    svc.dual_coef_, svc.intercept_ = sign * internal, sign * offsets
    if type(estimator) is not Pipeline:
        return svc
    steps = [*labeled.steps, (estimator.steps[-1][0], svc)]
    return clone(estimator).set_params(steps=steps)
