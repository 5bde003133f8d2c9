"""Records become bytes and come back; nothing else is read."""

import numpy as np
import pytest

from dsel.results.records import decode, encode, storable

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
    key, record = decode(encode([("k", storable({"value": value}))]))[0]
    assert key == "k"
    np.testing.assert_array_equal(record["value"], value)


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


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x00\x00\x00\x00", b"\x02\x00\x00\x00[]", b"\xff" * 40],
)
def test_decode__refuses_other_bytes(payload):
    with pytest.raises(ValueError, match=r"payload|Expecting|decode"):
        decode(payload)


def test_decode__refuses_types_it_does_not_write():
    good = encode([("k", storable({"a": [1]}))])
    with pytest.raises(ValueError, match=r"numbers of type \|O8"):
        decode(good.replace(b'"<i8"', b'"|O8"'))
    with pytest.raises(ValueError, match="must have"):
        decode(good + b"more")
