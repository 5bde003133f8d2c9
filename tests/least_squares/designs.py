"""Spectra of linear models, to hold the closed forms to."""

import numpy as np

from dsel.least_squares.kernel import Spectrum


def spectrum_of(design):
    """Factor M = X X' of a design; complete also where it has few columns."""
    vectors, singular, _ = np.linalg.svd(design, full_matrices=True)
    values = np.zeros(len(design))
    values[: len(singular)] = singular**2
    return Spectrum(vectors, values)
