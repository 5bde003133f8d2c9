"""Projection on the simplex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dsel.solvers.simplex import project_to_simplex

ROWS = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 6)),
    elements=st.floats(-1e3, 1e3),
)


@given(ROWS)
def test_project_to_simplex__lands_on_the_simplex(values):
    projected = project_to_simplex(values)
    assert (projected >= 0.0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1.0, atol=1e-12)


@given(ROWS)
def test_project_to_simplex__is_idempotent(values):
    once = project_to_simplex(values)
    np.testing.assert_allclose(project_to_simplex(once), once, atol=1e-12)


@given(ROWS, st.floats(-1e6, 1e6))
def test_project_to_simplex__ignores_shifts_of_a_row(values, shift):
    np.testing.assert_allclose(
        project_to_simplex(values + shift), project_to_simplex(values), atol=1e-8
    )


@given(ROWS)
def test_project_to_simplex__is_nearest(values):
    projected = project_to_simplex(values)
    corners = np.eye(values.shape[1])
    gaps = (values - projected)[:, None, :] * (corners - projected[:, None, :])
    assert gaps.sum(axis=2).max() <= 1e-8


def test_project_to_simplex__keeps_digits_of_large_values():
    projected = project_to_simplex([[1e15 + 0.25, 1e15]])
    np.testing.assert_allclose(projected, [[0.625, 0.375]])


@pytest.mark.parametrize("bad", [[[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_project_to_simplex__refuses_what_is_not_finite(bad):
    with pytest.raises(ValueError, match="`values` must be finite"):
        project_to_simplex(bad)


def test_project_to_simplex__refuses_a_vector():
    with pytest.raises(ValueError, match="got shape"):
        project_to_simplex([1.0, 2.0])
