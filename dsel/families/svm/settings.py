"""What a kernel SVM's parameters mean on one training set, and who is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight

from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer, check_positive
from dsel.data.identity import exact_text
from dsel.families.family import Candidate
from dsel.kernels.functions import Kernel, Linear, Polynomial, Precomputed, Rbf, Sigmoid
from dsel.kernels.reference_rows import is_sparse

KERNELS: Final[dict[str, Callable[[Any, float], Kernel]]] = {
    "linear": lambda svc, gamma: Linear(),
    "poly": lambda svc, gamma: Polynomial(gamma, float(svc.coef0), float(svc.degree)),
    "precomputed": lambda svc, gamma: Precomputed(),
    "rbf": lambda svc, gamma: Rbf(gamma),
    "sigmoid": lambda svc, gamma: Sigmoid(gamma, float(svc.coef0)),
}
"""What `kernel=` of an SVC names: from the SVC, and its gamma as a number."""
OF_LIBSVM: Final = frozenset(KERNELS)
"""Those that scikit-learn's SVC knows by name; it is handed the others as functions."""
SYMMETRY: Final = 1e-8  # times the largest entry
PARAMETERS: Final = tuple(SVC().get_params())  # asking each object takes .1 ms


def last_step(estimator: Any) -> Any:
    """Return the estimator itself, or the last step of a pipeline."""
    return estimator.steps[-1][1] if type(estimator) is Pipeline else estimator


def steps_before(estimator: Any) -> list[tuple[str, Any]]:
    """Return the named steps before the last one; none where it is no pipeline."""
    return estimator.steps[:-1] if type(estimator) is Pipeline else []


def step_prefix(estimator: Any) -> str:
    """Return what the last step's parameters begin with: nothing, or ``svc__``."""
    return f"{estimator.steps[-1][0]}__" if type(estimator) is Pipeline else ""


def group_key(candidate: Candidate) -> str:
    """Return a text that candidates have in common if they differ in C alone."""
    svc = last_step(candidate.estimator)
    parameters = {name: getattr(svc, name) for name in PARAMETERS if name != "C"}
    return exact_text([steps_before(candidate.estimator), parameters])


def refusal(estimator: Any, fit_params: Mapping[str, Any]) -> str | None:
    """Return why an estimator cannot be done exactly; nothing is said of no SVC."""
    svc = last_step(estimator)
    if type(svc) is not SVC:
        return ""
    if callable(svc.kernel):
        return "the kernel is a function that only SVC can call"
    if svc.kernel not in KERNELS:
        return f"the kernel {svc.kernel!r} is not known"
    if svc.probability is True:
        return "probability=True needs libsvm's own fit"
    if svc.break_ties:
        return "break_ties=True predicts by confidences, not by votes"
    if svc.kernel == "precomputed" and type(estimator) is Pipeline:
        return "a precomputed kernel inside a pipeline is changed by its other steps"
    others = set(fit_params) - {f"{step_prefix(estimator)}sample_weight"}
    if others:
        return f"the fit parameter {min(others)!r} is not for the SVC"
    return None


def check_candidates(candidates: Sequence[Candidate], X: Any) -> None:
    """Raise where parameters cannot work, alone or on the rows `X` of bare SVCs."""
    kernels = set()
    for candidate in candidates:
        svc = last_step(candidate.estimator)
        check_positive(svc.C, "C")
        check_positive(svc.tol, "tol")
        check_integer(svc.max_iter, "max_iter", at_least=-1)
        if isinstance(svc.gamma, str):
            check_choice(svc.gamma, "gamma", ("auto", "scale"))
        else:
            check_positive(svc.gamma, "gamma")
        kernels.add(svc.kernel)
        if svc.kernel != "poly":
            continue
        if svc.degree != 0:
            check_positive(svc.degree, "degree")
        if type(candidate.estimator) is Pipeline or float(svc.degree).is_integer():
            continue
        lowest = X.min() if X.shape[0] else 0.0
        if lowest < 0 or svc.coef0 < 0:
            raise ValueError(
                f"`degree` must be whole where features or `coef0` are negative, got "
                f"{svc.degree!r} with a smallest feature of {lowest:.6g} and "
                f"coef0={svc.coef0!r}; scale the features to be >= 0."
            )
    if "precomputed" in kernels:
        _check_gram(X)


def _check_gram(X: Any) -> None:
    if is_sparse(X):
        raise TypeError("`X` must be a dense Gram matrix for kernel='precomputed'.")
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
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


def resolve_kernel(svc: Any, X: Any) -> Kernel:
    """Return the kernel of an SVC that is fitted on these rows, as scikit-learn does.

    ``gamma="scale"`` is 1 / (n_columns variance of all entries), ``"auto"`` is
    1 / n_columns.
    """
    gamma = svc.gamma
    if gamma == "auto":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale":
        sparse = is_sparse(X)
        variance = X.multiply(X).mean() - X.mean() ** 2 if sparse else X.var()
        gamma = 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    return KERNELS[svc.kernel](svc, float(gamma))


def weights_of(
    svc: Any, labels: NDArray[Any], sample_weight: Floats | None
) -> tuple[Floats, Floats]:
    """Return the factor of C of each class of the labels, ascending, and of each row.

    Raises ValueError where no row of a class has a positive weight.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    of_classes = np.ones(len(classes))
    if svc.class_weight is not None:
        given = compute_class_weight(svc.class_weight, classes=classes, y=labels)
        of_classes = np.asarray(given, dtype=np.float64)
    weights = of_classes[codes]
    if sample_weight is not None:
        weights = weights * sample_weight
    lost = set(codes.tolist()) - set(codes[weights > 0].tolist())
    if lost:
        label = classes[min(lost)]
        raise ValueError(f"`sample_weight` leaves no training row of class {label}.")
    return of_classes, weights
