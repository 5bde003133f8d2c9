import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsel.bounds import (
    leading_shares,
    prior_shares,
    uniform_shares,
)


@given(st.integers(1, 3000), st.floats(1e-12, 0.999))
def test_uniform_shares__spend_delta(n_candidates, delta):
    shares = uniform_shares(n_candidates, delta=delta)
    assert shares.shape == (n_candidates,)
    assert shares.sum() == pytest.approx(delta)


@pytest.mark.parametrize("prior", [[0.5, 0.6], [0.0, 0.5], [-0.1, 0.5], []])
def test_prior_shares__refuse_weights_that_are_no_prior(prior):
    with pytest.raises(ValueError, match="`prior` must hold positive weights"):
        prior_shares(prior, delta=0.1)


@pytest.mark.parametrize("terms", [[], 0.3])
def test_leading_shares__refuse_no_row_of_candidates(terms):
    with pytest.raises(ValueError, match="`label_terms` must be"):
        leading_shares(terms, delta=0.1, n_leaders=2)
