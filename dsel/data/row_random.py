"""Counter-based random numbers addressed by row, and seeds made of values."""

import json
import secrets
from collections.abc import Mapping, Set
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Integers, RandomState
from dsel.checks import check_integer, show

FOLD_STREAM: Final = 0  # assignment of labeled rows to folds
RANDOM_FOLD_STREAM: Final = 1  # the fold whose model predicts a pool row (f_rand)
TIE_STREAM: Final = 2  # ties of nonconformity selection, by the content of rows
FITTING_STREAM: Final = 3  # the subset of a pool that learners get
HOLDOUT_STREAM: Final = 4
BLOCK_STREAM: Final = 5  # blocks of labeled rows for independent models
SUBSET_STREAM: Final = 10  # the subset of a pool that is used
ACTIVE_STREAM: Final = 11  # random start and ties of active learning
SHIFT_STREAM: Final = 12  # pool rows that are compared with the labeled ones
QUERY_STREAM: Final = 13  # pool rows that a person is asked to label
GROUP_STREAM: Final = 14  # the labeled row of each group that is counted
HALVING_STREAM: Final = 16  # repetition r uses this + r
_NUMBERS_A_COUNTER: Final = 4


def row_random(seed: int, stream: int, start: int, stop: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each row, from numpy's Philox of (seed, stream)."""
    # The words are an array, because numpy converts a list of large integers to
    # float64.
    key = np.array([seed % 2**64, stream], dtype=np.uint64)
    counter, skipped = divmod(start, _NUMBERS_A_COUNTER)
    generator = np.random.Philox(key=key, counter=counter)
    raw: NDArray[np.uint64] = generator.random_raw(skipped + stop - start)
    return raw[skipped:]


def row_random_at(seed: int, stream: int, row_numbers: Integers) -> NDArray[np.uint64]:
    """Return the random numbers of sorted row numbers, fast if these are close."""
    if not len(row_numbers):
        return np.empty(0, dtype=np.uint64)
    first = int(row_numbers[0])
    return row_random(seed, stream, first, int(row_numbers[-1]) + 1)[
        row_numbers - first
    ]


def mix_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words by a fixed permutation.

    The finalizer of SplitMix64, Steele, Lea and Flood (2014).
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def uniform_integers(random_words: NDArray[np.uint64], k: int) -> Integers:
    """Map 64-bit numbers to integers that are uniform on 0..k-1."""
    # Floats are used, since k times the word overflows 64 bits from k = 2049.
    scaled = (random_words >> np.uint64(11)).astype(np.float64)
    scaled *= 2.0**-53
    scaled *= k
    # Truncation is the floor, as nothing is negative.
    integers = scaled.astype(np.int64)
    return np.minimum(integers, k - 1, out=integers)


def seed_from(random_state: RandomState) -> int:
    """Return an integer seed for `random_state`; None and generators draw one."""
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, int | np.integer):
        return check_integer(
            random_state, "random_state", at_least=0, at_most=2**64 - 1
        )
    raise TypeError(
        "`random_state` must be None, an integer, a numpy RandomState or a Generator, "
        f"got {show(random_state)}."
    )


def derive_seed(seed: int, *parts: Any) -> int:
    """Return a learner's seed in ``[0, 2**31)``: a fixed hash of (seed, parts)."""
    text = canonical_text([seed, *parts]).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % 2**31


def canonical_text(value: Any) -> str:
    """Return a text that is the same in every process, and for equal numbers.

    Estimators are identified by class and parameters, other objects by name or class.
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return json.dumps(value)
    # Most values are floats, and tests of abstract classes are slow.
    if type(value) is not float and isinstance(value, Integral):
        return str(int(value))
    if type(value) is float or isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Mapping):
        texts = {canonical_text(key): canonical_text(value[key]) for key in value}
        return "{" + ",".join(f"{key}:{texts[key]}" for key in sorted(texts)) + "}"
    if isinstance(value, np.ndarray):
        return canonical_text(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    if isinstance(value, Set):
        return "{" + ",".join(sorted(map(canonical_text, value))) + "}"
    named: Any = value if hasattr(value, "__qualname__") else type(value)
    has_params = named is not value and hasattr(value, "get_params")
    params = canonical_text(value.get_params(deep=False)) if has_params else ""  # type: ignore[union-attr]
    return f"<{named.__module__}.{named.__qualname__}{params}>"
