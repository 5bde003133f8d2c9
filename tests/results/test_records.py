"""Records become bytes and come back; nothing else is read."""

import numpy as np
import pytest

from dsel.results.records import blocks_of, decode, encode, storable

VALUES = {
    "number": 3,
    "flag": True,
    "rate": 0.1,
    "nothing": float("nan"),
    "word": "caf\u00e9",
    "words": ["a", ""],
    "no_words": np.array([], dtype="U1"),
    "codes": np.array([[1, 2], [3, 4]], dtype=np.int8),
    "big_endian": np.array([1, 2], dtype=">i4"),
    "none": np.zeros((0, 3)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_encode__comes_back(value):
    about, records = decode(encode([("k", storable({"value": value}))], about={"a": 1}))
    assert about == {"a": 1}
    assert list(records) == ["k"]
    np.testing.assert_array_equal(records["k"]["value"], value)


def test_storable__copies():
    counts = np.array([1, 2])
    record = storable({"counts": counts})
    counts[0] = 9
    assert record["counts"].tolist() == [1, 2]


@pytest.mark.parametrize("value", [1j, object(), np.array([["a"]]), b"bytes"])
def test_storable__refuses_what_cannot_be_written(value):
    with pytest.raises(
        TypeError, match=r"`record\['a'\]` must hold numbers or strings"
    ):
        storable({"a": value})


GOOD = encode([("k", storable({"a": [1]}))], about={})


@pytest.mark.parametrize(
    "payload", [b"", b"\xff" * 40, GOOD[:-1], GOOD + b"x", GOOD.replace(b"k", b"l")]
)
def test_blocks_of__refuses_what_is_not_as_it_was_written(payload):
    with pytest.raises(ValueError, match="the object has"):
        blocks_of(payload)


def test_blocks_of__takes_apart_what_was_joined():
    other = encode([("l", storable({"a": [2.5]}))], about={})
    assert blocks_of(GOOD + other + GOOD) == [GOOD, other, GOOD]
    with pytest.raises(ValueError, match="the object has"):
        blocks_of(GOOD + other[:-1])


def test_decode__makes_no_python_objects():
    record = {"a": np.array([print], dtype=object)}
    with pytest.raises(ValueError, match="OBJECT array"):
        decode(encode([("k", record)], about={}))
