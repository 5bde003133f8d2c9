import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

from dsel.data.row_random import (
    canonical_text,
    derive_seed,
    row_random,
    row_random_at,
    seed_from,
    uniform_integers,
)


@given(
    seed=st.integers(0, 2**64 - 1),
    stream=st.integers(0, 100),
    start=st.integers(0, 10_000),
    length=st.integers(0, 50),
)
def test_words__are_a_function_of_the_row(seed, stream, start, length):
    whole = row_random(seed, stream, 0, start + length)
    assert (row_random(seed, stream, start, start + length) == whole[start:]).all()
    rows = np.arange(start, start + length, 3)
    assert (row_random_at(seed, stream, rows) == whole[rows]).all()


def test_words__are_those_of_philox():
    # Philox4x64-10 with key (1, 0): pinned, so that no release changes a result.
    raw = np.random.Philox(key=np.array([1, 0], dtype=np.uint64)).random_raw(6)
    assert (row_random(1, 0, 0, 6) == raw).all()
    assert raw[:2].tolist() == [5599841837815857887, 15655913098571550255]
    assert (row_random(2**64 - 1, 1, 0, 4) != row_random(0, 1, 0, 4)).all()
    assert (row_random(2**63, 1, 0, 4) != row_random(2**63 + 1, 1, 0, 4)).all()


@pytest.mark.parametrize("k", [2, 7, 5000])
def test_uniform_integers__cover_the_range_evenly(k):
    counts = np.bincount(
        uniform_integers(row_random(11, 1, 0, 200 * k), k), minlength=k
    )
    assert len(counts) == k
    assert ((counts - 200) ** 2 / 200).sum() < k + 5 * np.sqrt(2 * k)


def test_seed_from__takes_what_scikit_learn_takes():
    assert seed_from(np.int64(9)) == 9
    assert seed_from(None) != seed_from(None)
    assert seed_from(np.random.RandomState(1)) == seed_from(np.random.RandomState(1))
    assert seed_from(np.random.default_rng(1)) == seed_from(np.random.default_rng(1))


def test_derive_seed__is_the_same_in_every_process():
    assert derive_seed(7, {"C": 1.0, "kernel": "rbf"}, "fold-3") == 316827923


def test_canonical_text__is_equal_for_equal_values():
    assert canonical_text(np.float32(2)) == canonical_text(2) == "2"
    assert canonical_text(True) == "true"
    assert canonical_text([0.1, None, float("inf")]) == "[0.1,null,inf]"
    text = canonical_text(SVC(C=3))
    assert text.startswith("<sklearn.svm._classes.SVC{")
    assert '"C":3,' in text
    assert "0x" not in canonical_text([object(), len, SVC, lambda x: x])
