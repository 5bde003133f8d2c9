"""Columns that identify rows, or the groups in which rows come.

Nothing in a table shows for certain whether a number is measured or names a customer.
The name of a column and the number of rows of each value decide.
"""

import re
from typing import Final

import pandas as pd

from dsel.arrays import as_plain
from dsel.checks import show

MOST_CATEGORIES: Final = 20
"""Values up to which a column holds categories, and no identifiers."""
MOST_REPEATS: Final = 50
"""Rows of a value, on average, above which a column holds categories."""
_IDENTIFIERS: Final = (
    "guid", "id", "idx", "ids", "key", "no", "nr", "num", "number", "nummer", "uuid",
)  # fmt: skip
"""Last words of names of identifiers."""
_ENDS: Final = ("nr", "nummer")
"""Ends of longer German words for identifiers."""
_OWNERS: Final = (
    "account", "case", "client", "customer", "device", "employee", "household", "kunde",
    "kunden", "member", "patient", "patienten", "person", "personen", "proband",
    "probanden", "session", "student", "subject", "user",
)  # fmt: skip
"""Nouns of things to which several rows may belong; a longer name is another one."""
_WORD: Final = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+")
"""A word of a name, as in customerIDs, customer_id and CUSTOMER1."""
_OWNER: Final = re.compile(f"(?:{'|'.join(_OWNERS)})s?(?:{'|'.join(_IDENTIFIERS)})?")
"""One word for an owner or its identifier: patient, patients and patientid, but not
personality."""


def is_name_of_identifier(name: str) -> bool:
    """Return whether a name of a column says that it identifies persons or things.

    Examples
    --------
    >>> names = ["customerID", "patient", "Auftragsnr", "customer age", "personality"]
    >>> [is_name_of_identifier(name) for name in names]
    [True, True, True, False, False]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    is_owner = len(words) == 1 and _OWNER.fullmatch(words[0]) is not None
    is_last = bool(words) and words[-1] in _IDENTIFIERS
    return is_owner or is_last or (bool(words) and words[-1].endswith(_ENDS))


def is_name_of_count(name: str) -> bool:
    """Return whether numbers with this name count owners, such as patients of a day.

    Examples
    --------
    >>> is_name_of_count("Patients"), is_name_of_count("patient"), is_name_of_count("x")
    (True, False, False)
    """
    noun = name.strip().lower().removesuffix("s")
    return noun in _OWNERS and noun != name.strip().lower()


def holds_categories(values: pd.Series) -> bool:
    """Return whether a column has few values, or each of them in very many rows."""
    n_values, n_known = int(values.nunique()), int(values.notna().sum())
    return n_values <= MOST_CATEGORIES or n_known > MOST_REPEATS * n_values


def holds_sentences(values: pd.Series) -> bool:
    """Return whether most texts have at least three words, as few names have."""
    return bool(
        values.dropna().astype(str).str.contains(r"\S(?:\s+\S+){2}").mean() > 0.5
    )


def notes_on_repeats(values: pd.Series, *, is_feature: bool = False) -> list[str]:
    """Return a caveat where rows with one identifier may be no independent rows.

    A column is not meant if it has few values, or values with very many rows, which are
    ordinary categories such as towns; if most values have one row, so that they
    identify rows; if it has numbers with decimals, which are measured; or sentences,
    which are free text; or if its type declares categories. The caveat about a feature
    says so.

    Examples
    --------
    >>> notes_on_repeats(pd.Series([f"K{n // 4}" for n in range(120)], name="kunde"))
    ["kunde has 30 values in 120 rows; if rows of one kunde belong together, pass groups='kunde'"]
    >>> notes_on_repeats(pd.Series([f"V{n}" for n in range(120)], name="contract"))
    []
    """  # noqa: E501
    if isinstance(values.dtype, pd.CategoricalDtype):
        return []
    n_rows = values.dropna().value_counts()
    n_values, n_known = len(n_rows), int(n_rows.sum())
    if holds_categories(values) or 2 * int(n_rows[n_rows > 1].sum()) <= n_known:
        return []
    numbers = pd.to_numeric(n_rows.index.to_series(), errors="coerce")
    if (numbers % 1 > 0).any() or holds_sentences(values):
        return []
    name = show(as_plain(values.name))
    declare = f"if it is only a category, write X.astype({{{name}: 'category'}}) first"
    return [
        f"{values.name} has {n_values:,} values in {n_known:,} rows; if rows of one "
        f"{values.name} belong together, pass groups={name}"
        f"{f'; {declare}' if is_feature else ''}"
    ]
