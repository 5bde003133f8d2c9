"""Models that raise on many pool rows lose one bound, however slices are cut."""

import numpy as np
import pytest

from dsel.search.engine import count_batch
from tests.contract.test_unpredicted_rows import MOST, POOL, Raises, certify


@pytest.mark.parametrize("block_nbytes", [count_batch.BLOCK_NBYTES, 4_096])
def test_models__that_raise_on_most_rows_of_a_slice_lose_the_bound_in_any_blocks(
    block_nbytes, monkeypatch
):
    # The memory of a machine decides the size of blocks.
    monkeypatch.setattr(count_batch, "BLOCK_NBYTES", block_nbytes)
    far = np.r_[POOL, POOL[:1_500] * [0.0, 1.0, 1.0] + [MOST + 1.0, 0.0, 0.0]]
    assert set(certify(Raises(), far).certificates) == {"one_fold"}
