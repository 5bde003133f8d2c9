"""Words in a target that mark rows without a label, in tables of every format."""

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dsel.data.text_columns.arrow_texts import matches
from dsel.data.text_columns.gaps import GAP_WORDS, trim
from dsel.data.text_columns.kinds import TRUTH_PAIRS
from dsel.data.text_columns.numbers import NUMBER
from dsel.errors import UndecidedError

MINUS_ONE: Final = ("-1", "-1.0")
"""Texts of scikit-learn's mark of rows without a label."""
_NO_CLASSES: Final = ("?", "#N/A", "NaN", "nan")
"""Words for a missing value that no class is called without a second thought."""
_NUMBER_OR_CODE: Final = r"^[+-]?[0-9]+(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]+)?$"


def without_words(
    cells: pa.Array, words: Sequence[str], target: str, location: str
) -> pa.Array:
    """Return labels as texts, null where one is among `words` but for blanks.

    Raises ValueError for a word that no row has.
    """
    if not words:
        return cells
    trimmed = trim(cells)
    for word in words:
        if not pc.any(pc.equal(trimmed, word), min_count=0).as_py():
            way = f"; write --pool {shlex.quote(word)}" if os.path.exists(word) else ""
            raise ValueError(
                f"--unlabeled {word!r} must be a text of {target!r}, but {location!r} "
                f"has it in no row{way}."
            )
    is_word = pc.is_in(trimmed, value_set=pa.array(words, cells.type))
    return pc.if_else(is_word, None, cells)


class GapWordError(UndecidedError):
    """A word for a missing value that is hardly a class of the target."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message, [("--unlabeled", word)], [("--class", word)])
        self.word = word


def check_gap_words(
    cells: pa.Array,
    target: str,
    gap_classes: Collection[str],
    gaps: Mapping[str, str],
) -> None:
    """Raise GapWordError if a word is hardly a class of the target.

    `gaps` has, by the words that are gaps in a feature, the name of a feature. A class
    may be called None, but not among numbers or truth values. The largest class
    is none where features have the same word as a gap. UndecidedError for -1, which
    plans take for a class only where the one other label is a number.
    """
    counted = pc.value_counts(cells.drop_null())
    n_rows_of = dict(
        zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    )
    marks = (*GAP_WORDS, *MINUS_ONE)
    words = [word for word in n_rows_of if word in marks]
    other_texts = pa.array(
        [text for text in n_rows_of if text not in marks], pa.string()
    )
    if not words or not len(other_texts):
        return
    are_numbers = pc.all(matches(other_texts, NUMBER)).as_py()
    minus = [word for word in words if word in MINUS_ONE]
    if minus and not (len(n_rows_of) == 2 and are_numbers):
        raise UndecidedError(
            f"`target` {target!r} has {minus[0]!r} in {n_rows_of[minus[0]]:,} of "
            f"{len(cells):,} rows, which marks rows without a label: write --unlabeled "
            f"{minus[0]}, or give the class another name in the table.",
            [("--unlabeled", minus[0])],
        )
    is_value = pc.or_(
        pc.match_substring_regex(other_texts, _NUMBER_OR_CODE),
        pc.is_in(pc.utf8_lower(other_texts), value_set=pa.array(sum(TRUTH_PAIRS, ()))),
    )
    are_values = pc.all(is_value).as_py()
    largest_class = max(n_rows_of.values())
    for word in words:
        if word in (*gap_classes, *MINUS_ONE):
            continue
        n_rows = n_rows_of[word]
        gap_of = gaps.get(word)
        if are_values:
            reason = "all its other labels are numbers or truth values"
        elif word in _NO_CLASSES:
            reason = "programs mark rows without a value by it"
        elif gap_of is not None and n_rows == largest_class:
            reason = f"{gap_of!r} has it as a gap"
        else:
            continue
        raise GapWordError(
            word,
            f"`target` {target!r} has {word!r} in {n_rows:,} of {len(cells):,} rows, "
            f"and {reason}: write --unlabeled {shlex.quote(word)} if these rows have "
            f"no label, or --class {shlex.quote(word)} if it is a class.",
        )
