"""Forms of texts: what is told by bytes is what the patterns say."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsel.data.text_columns.arrow_texts import matches
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.conversion import convert
from dsel.data.text_columns.gaps import trim
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.numbers import NUMBER, WHOLE, number_forms
from dsel.data.text_columns.text_reasons import text_reason

SIGNS = st.text("0011259.-+eE", min_size=1, max_size=9)
REALS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
ROUNDED = st.tuples(st.floats(-1e9, 1e9), st.integers(0, 9)).map(
    lambda pair: f"{pair[0]:.{pair[1]}f}"
)
NUMBERS = st.one_of(SIGNS, REALS, ROUNDED, st.integers().map(str))

# Up to 15 digits survive conversion to float64 and back; trailing zeros do not, and
# below 0.0001 Python writes an exponent.
SHORT_DECIMAL = (
    r"^-?(?:(?:0|[1-9][0-9]{0,7})\.0|[1-9][0-9]{0,7}\.[0-9]{0,6}[1-9]"
    r"|0\.(?:[1-9](?:[0-9]{0,5}[1-9])?|0[1-9](?:[0-9]{0,4}[1-9])?"
    r"|00[1-9](?:[0-9]{0,3}[1-9])?|000[1-9](?:[0-9]{0,2}[1-9])?))$"
)


def mask(texts, pattern):
    return matches(pa.array(texts), pattern).to_numpy(zero_copy_only=False)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
@settings(max_examples=500)
def test_number_forms__are_those_of_the_patterns(texts):
    forms = number_forms(pa.array(texts))
    if forms is None:
        # What is left to the patterns is no number, infinite, or 0e5 and its like.
        some = [text for text in texts if "e" not in text.lower()]
        are_numbers = len(some) == len(texts) and mask(texts, NUMBER).all()
        if are_numbers:
            floats = pc.cast(pa.array(texts), pa.float64()).to_numpy()
            assert not np.isfinite(floats).all()
        return
    assert mask(texts, NUMBER).all()
    assert forms.is_whole.tolist() == mask(texts, WHOLE).tolist()
    assert forms.is_short.tolist() == mask(texts, SHORT_DECIMAL).tolist()
    assert forms.floats.to_pylist() == [float(text) for text in texts]


def test_number_forms__of_many_rows_and_of_a_part_of_an_array():
    texts = pa.array([f"{number / 8:.3f}" for number in range(100_000)])
    forms = number_forms(texts.slice(7, 90_000))
    np.testing.assert_array_equal(forms.floats, np.arange(7, 90_007) / 8)
    assert mask(texts[7:90_007], SHORT_DECIMAL).tolist() == forms.is_short.tolist()


@pytest.mark.parametrize(
    "text",
    ["007", "-01.5", "+5", "inf", "NaN", "-0x1", "1e999", "9007199254740993"],
)
def test_convert__refuses_what_arrow_would_read(text):
    typed, bad = convert(pa.array(["1.5", text]), Kind.NUMBERS)
    if text == "NaN":  # a word for a gap
        assert typed.to_pylist() == [1.5, None]
    else:
        assert typed is None
        assert bad == (1, text, ())


def test_trim__keeps_what_has_no_blanks_and_empties_what_is_blank():
    whole = pa.array(["a", "b~", "!"])
    assert trim(whole) is whole
    texts = ["\u00a0a b\t", "", " ", "\x7f", "é"]
    assert trim(pa.array(texts)).to_pylist() == ["a b", None, None, "\x7f", "é"]
    assert trim(pa.array(["x", *texts]).slice(1, 2)).to_pylist() == ["a b", None]


@given(
    st.lists(st.sampled_from(["Bonn", "Ulm", "NA", "7 kg", "1,5", "7", "", "x", "é"])),
    st.integers(1, 5),
)
def test_scan__does_not_depend_on_batches(texts, size):
    together, apart = ColumnScan(), ColumnScan()
    together.add(trim(pa.array(texts, pa.string())))
    for start in range(0, len(texts), size):
        apart.add(trim(pa.array(texts[start : start + size], pa.string())))
    assert together.kind() == apart.kind()
    for name in ("n_values", "n_commas", "n_like_numbers", "n_numbers", "gap_words"):
        assert getattr(together, name) == getattr(apart, name)


@pytest.mark.parametrize("blank", ["", " ", "\u00a0"])
def test_trim__makes_empty_texts_null_where_they_stand(blank):
    texts = pa.array(["", f"a{blank}", "", "bc", blank, "d", ""])
    for start in range(4):
        found = trim(texts.slice(start, 4))
        found.validate(full=True)
        expected = [None, "a", None, "bc", None, "d", None][start : start + 4]
        assert found.to_pylist() == expected
        assert found.null_count == expected.count(None)
        assert found.drop_null().to_pylist() == [x for x in expected if x]


def test_text_reason__is_none_on_codes_of_which_few_are_large_numbers():
    scan = ColumnScan()
    scan.add(pa.array(["a3f9c2", "12e456", "c0ffee", "9007199254740993", "bad0e1"]))
    assert scan.kind() is Kind.TEXT
    assert text_reason(scan, "code") is None
