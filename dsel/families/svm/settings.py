"""Parameters of kernel SVMs, resolved for one training set."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight

from dsel.arrays import Features, Floats
from dsel.checks import check_choice, check_integer, check_positive
from dsel.kernels.functions import KERNELS, Kernel, MakeKernel
from dsel.typing import AnyArray

OF_LIBSVM: Final = frozenset({"linear", "poly", "precomputed", "rbf"})
"""Kernels that scikit-learn's SVC knows by name. It is not the list of `KERNELS`: a
kernel that is added there is passed to SVC as a function."""
SYMMETRY: Final = 1e-8  # times the largest entry
PARAMETERS: Final = tuple(SVC().get_params())  # `get_params` of each SVC takes .1 ms


def split_svc(estimator: Any) -> tuple[list[tuple[str, Any]], str, Any]:
    """Return the steps before an SVC, the prefix of its parameters, and the SVC."""
    if type(estimator) is not Pipeline:
        return [], "", estimator
    name, svc = estimator.steps[-1]
    return estimator.steps[:-1], f"{name}__", svc


def check_svc(svc: Any, X: Any) -> None:
    """Raise if a parameter is invalid, by itself or for these rows."""
    check_positive(svc.C, "C")
    check_positive(svc.tol, "tol")
    check_integer(svc.max_iter, "max_iter", at_least=-1)
    if isinstance(svc.gamma, str):
        check_choice(svc.gamma, "gamma", ("auto", "scale"))
    else:
        check_positive(svc.gamma, "gamma")
    if svc.kernel != "poly":
        return
    if svc.degree != 0:
        check_positive(svc.degree, "degree")
    if X is None or float(svc.degree).is_integer():
        return
    lowest = X.min() if X.shape[0] else 0.0
    if lowest < 0 or svc.coef0 < 0:
        raise ValueError(
            f"`degree` must be whole where features or `coef0` are negative, got "
            f"{svc.degree!r} with a smallest feature of {lowest:.6g} and "
            f"coef0={svc.coef0!r}; scale the features to be >= 0."
        )


def check_gram(X: Features) -> None:
    """Raise if the rows are no Gram matrix."""
    if issparse(X):
        raise TypeError("`X` must be a dense Gram matrix for kernel='precomputed'.")
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"`X` must be the square Gram matrix of the labeled rows for "
            f"kernel='precomputed', got shape {X.shape}."
        )
    X = np.asarray(X, dtype=np.float64)
    gap = float(np.abs(X - X.T).max(initial=0.0))
    if not gap <= SYMMETRY * float(np.abs(X).max(initial=0.0)):
        raise ValueError(
            f"`X` must be symmetric for kernel='precomputed', but two entries that "
            f"should be equal differ by {gap:.3g}; pass (X + X.T) / 2 if that is "
            f"rounding."
        )


def resolve_kernel(svc: Any, X: Any, own: Mapping[str, MakeKernel]) -> Kernel:
    """Return the kernel of an SVC that is fitted on these rows, as scikit-learn does.

    ``gamma="scale"`` is 1 / (n_columns variance of all entries), ``"auto"`` is
    1 / n_columns. `own` makes kernels that the user has added to `KERNELS`.
    """
    gamma = svc.gamma
    if gamma == "auto":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale":
        variance = X.multiply(X).mean() - X.mean() ** 2 if issparse(X) else X.var()
        gamma = 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    make = own.get(svc.kernel) or KERNELS[svc.kernel]
    return make(svc, float(gamma))


def weights_of(
    svc: Any, labels: AnyArray, sample_weight: Floats
) -> tuple[Floats, Floats]:
    """Return the factor of C of each class of the labels, ascending, and of each row.

    Raises ValueError where no row of a class has a positive weight.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    class_weight = np.ones(len(classes))
    if svc.class_weight is not None:
        factors = compute_class_weight(svc.class_weight, classes=classes, y=labels)
        class_weight = np.asarray(factors, dtype=np.float64)
    weights = class_weight[codes] * sample_weight
    empty = set(codes.tolist()) - set(codes[weights > 0].tolist())
    if empty:
        label = classes[min(empty)]
        raise ValueError(f"`sample_weight` leaves no training row of class {label}.")
    return class_weight, weights
