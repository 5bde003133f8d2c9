"""Rows become bytes and come back; nothing else is read."""

import pytest
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dsel.results.keys import canonical, make_key
from dsel.results.records import decode, encode, make_rows

KEY = b"0123456789abcdef"


def test_make_rows__refuses_what_cannot_be_stored():
    with pytest.raises(TypeError, match="must hold numbers or text, got complex128"):
        make_rows("fit", [KEY], {"a": [1j]})
    with pytest.raises(ValueError, match="must have one row for each of 1 keys"):
        make_rows("fit", [KEY], {"a": [1, 2]})
    with pytest.raises(ValueError, match="must have 16 bytes each"):
        make_rows("fit", [b"short"], {"a": [1]})


@pytest.mark.parametrize(
    "payload", [b"", b"\x00\x00\x00\x00", b"\x02\x00\x00\x00[3", b"\xff" * 40]
)
def test_decode__refuses_other_bytes(payload):
    with pytest.raises(ValueError, match=r"payload|JSON|Expecting"):
        decode(payload)


def test_decode__refuses_types_it_does_not_write():
    good = encode([make_rows("fit", [KEY], {"a": [1]})])
    with pytest.raises(ValueError, match=r"column \|O8"):
        decode(good.replace(b'"<i8"', b'"|O8"'))
    with pytest.raises(ValueError, match="must have"):
        decode(good + b"more")


def test_make_key__is_the_same_for_the_same_parameters():
    assert make_key({"a": 1, "b": [0.5]}) == make_key({"b": [0.5], "a": 1})
    assert make_key(SVC(C=2.0)) == make_key(SVC(C=2.0))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", 1),
        (True, 1),
        (0.1, 0.1 + 1e-17 + 1e-16),
        (SVC(C=2.0), SVC(C=3.0)),
        (SVC(), DecisionTreeClassifier()),
        (lambda x: x, lambda x: x + 1),
        (object(), object()),
        (None, "None"),
        (["a", "b"], ["a, b"]),
    ],
)
def test_make_key__differs_where_anything_does(one, other):
    assert make_key(one) != make_key(other)


def test_canonical__names_functions_that_every_process_knows():
    assert canonical(make_key) == "dsel.results.keys.make_key"
    assert canonical(SVC) == "sklearn.svm._classes.SVC"
