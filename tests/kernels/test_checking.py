"""The check of a kernel: ours pass, and each member is refused that is wrong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import dsel
from dsel.kernels import KERNELS, Kernel, check_kernel
from dsel.kernels.functions import Linear, Polynomial, Precomputed, Rbf
from dsel.kernels.reference_rows import DISTANCES


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Rbf(0.5), Polynomial(0.3, 1.0, 3.0), Polynomial(0.3, 0.0, 0.5),
     Precomputed()],
    ids=repr,
)  # fmt: skip
def test_check_kernel__takes_those_of_dsel(kernel):
    check_kernel(kernel)


def gaussian(**members):
    """Return a Gaussian kernel of which some members do something else."""

    @dataclass(frozen=True)
    class Gaussian(Rbf):
        base: ClassVar[str] = DISTANCES
        gamma: float = 0.5

    for name, member in members.items():
        setattr(Gaussian, name, member)
    return Gaussian()


def spoils(self, base):
    base *= -self.gamma
    return np.exp(base, out=base)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"diagonal": lambda self, base: base}, "diagonal"),
        ({"values": lambda self, base: np.exp(-base.astype(float))}, "type and shape"),
        ({"values": spoils}, "change the base"),
        ({"values": lambda self, base: base / base.dtype.type(0)}, "finite"),
        ({"rounding": lambda self, e, s: (0 * e, 0 * e)}, "rounding"),
        ({"base": "angles"}, "one of the bases"),
        ({"__call__": lambda self, X, Z: X @ Z.T}, "two tables"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_check_kernel__refuses(members, words):
    with pytest.raises(ValueError, match=words):
        check_kernel(gaussian(**members))


def test_plan__tries_a_kernel_before_it_is_fitted(monkeypatch):
    kernel = gaussian(diagonal=lambda self, base: base)
    monkeypatch.setitem(KERNELS, "own", lambda svc, gamma: kernel)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"Gaussian.diagonal must give the kernel"):
        dsel.plan_search(SVC(kernel="own"), {"C": [1.0, 2.0]}, X, y, random_state=0)


def test_check_kernel__refuses_what_is_no_kernel():
    with pytest.raises(TypeError, match="inherits from Kernel"):
        check_kernel(object())
    assert issubclass(Rbf, Kernel)
