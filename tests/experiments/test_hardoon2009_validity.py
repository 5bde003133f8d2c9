"""Regions and threshold bounds fail as rarely as they promise."""

import numpy as np
import pytest

from tests.experiments.hardoon2009_validity import miss_rates, threshold_failures


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_miss_rates__of_a_fixed_model_are_at_most_epsilon():
    found = miss_rates(100)
    fixed = found.sel(model="fixed", region="smoothed")
    allowed = fixed.epsilon + 3 * fixed.standard_error
    assert (fixed.miss_rate <= allowed).all()
    # What is not promised: the chosen model misses more often, and printed regions.
    chosen = found.sel(model="chosen", region="smoothed")
    assert (chosen.miss_rate > fixed.miss_rate).all()
    printed = found.sel(model="fixed", region="printed")
    assert (printed.miss_rate >= fixed.miss_rate).all()


@pytest.mark.parametrize("n_models", [1, 20])
def test_threshold_failures__stay_below_delta(n_models):
    found = threshold_failures(500, n_models=n_models, delta=0.1)
    assert found <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 500)


def test_threshold_failures__show_that_the_bound_is_sharp():
    assert abs(threshold_failures(2000, delta=0.1) - 0.067) < 0.02
