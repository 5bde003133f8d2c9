"""Held-out residuals of models trained again, in exact products of the kernel matrix.

A solution in double precision is corrected by its residual until nothing is left of it.
Vectors are integers over 2**160. The matrix and the vectors are cut into numbers of 20
bits: sums of up to 4,096 of their products are whole numbers below 2**53, which double
precision adds exactly.
"""

import numpy as np

POINT = 160  # bits of a vector behind the point
SLICE = 20
N_SLICES = 5  # of the matrix: what is below 2**-101 is dropped
N_DIGITS = 11  # of a vector: its entries are below 2**59
N_STEPS = 60
SETTLED = 1e-20  # of the targets


class ExactRefits:
    """All models of one kernel matrix and one target with entries of usual size."""

    def __init__(self, gram, y, penalty):
        self.y, self.is_squared = y, penalty == "coefficients"
        kappa, self.vectors = np.linalg.eigh(gram)
        self.mu = kappa**2 if self.is_squared else kappa
        self.slices, rest = [], gram.copy()
        for _ in range(N_SLICES):
            rest = rest * 2.0**SLICE
            self.slices.append(np.rint(rest))
            rest = rest - self.slices[-1]

    def residuals(self, rows, lam):
        """Residuals on `rows` of the model trained on the others."""
        others = np.setdiff1d(np.arange(len(self.y)), rows)
        solve = self._rough_solver(rows, lam)
        numerator, denominator = float(lam).as_integer_ratio()
        target = integers(self.y)
        solution = integers(np.zeros(len(self.y)))
        for _ in range(N_STEPS):
            residual = target - self._fitted(solution)
            left = residual - solution * numerator // denominator
            error = np.where(np.isin(np.arange(len(left)), others), floats(left), 0.0)
            if abs(error).max() < SETTLED:
                return floats(residual[rows])
            solution = solution + integers(solve(error))
        raise AssertionError("the refit has not converged")

    def _rough_solver(self, rows, lam):
        """Return an approximate inverse of the others' system, in double precision."""
        inverse = 1.0 / np.maximum(self.mu + lam, lam / 2)
        columns = self.vectors @ (inverse * self.vectors[rows]).T
        block = np.linalg.inv(columns[rows])

        def solve(error):
            full = self.vectors @ (inverse * (self.vectors.T @ error))
            full = full - columns @ (block @ full[rows])
            full[rows] = 0.0
            return full

        return solve

    def _fitted(self, solution):
        once = self._product(solution)
        return self._product(once) if self.is_squared else once

    def _product(self, vector):
        """Return K times a vector, both and the product integers over 2**160."""
        digits = digits_of(vector)[:, ::-1]
        sums = np.zeros((N_DIGITS + N_SLICES - 1, len(vector)), np.int64)
        for place, part in enumerate(self.slices[::-1]):
            sums[place : place + N_DIGITS] += (part @ digits).T.astype(np.int64)
        shifts = range(0, SLICE * len(sums), SLICE)
        total = sum(
            part.astype(object) << k for part, k in zip(sums, shifts, strict=True)
        )
        return total >> (SLICE * N_SLICES)


def digits_of(vector):
    """Return digits of 20 bits in [-2**19, 2**19], highest first, as floats."""
    digits = []
    for _ in range(N_DIGITS):
        low = (vector + 2 ** (SLICE - 1)) % 2**SLICE - 2 ** (SLICE - 1)
        digits.append(low.astype(np.float64))
        vector = (vector - low) >> SLICE
    assert not vector.any(), "the vector has more digits"
    return np.column_stack(digits[::-1])


def integers(vector):
    """Return floats as integers over 2**160."""
    return np.array([int(np.ldexp(value, POINT)) for value in vector], dtype=object)


def floats(vector):
    """Return integers over 2**160 as the nearest floats."""
    return np.array([value / 2**POINT for value in vector])
