"""The eight problems of the co-validation paper, with nonnegative features."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from dsel.datasets import load_documents, load_set


@dataclass(frozen=True, eq=False)
class Problem:
    """A two-class problem."""

    name: str
    X: Any
    """Nonnegative features: an array, or CSR for text."""
    y: NDArray[np.int64]
    """0 or 1."""
    gamma: float
    """Factor of inner products in polynomial kernels: 1 / n_columns, for text 1."""


def one_hot(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0/1 columns for every value of every column; NaN has none."""
    table = pd.DataFrame(codes)
    found = pd.get_dummies(table, columns=list(table), dtype=float)
    return np.ascontiguousarray(found)


def text_features(texts: list[str]) -> sparse.csr_matrix:
    """Return l2-normalised counts of stems and of up to three stems in a row.

    scikit-learn's English stop words are dropped before Porter's stems are taken, as
    the paper's library does it.
    """
    import snowballstemmer  # an extra

    words = CountVectorizer(stop_words="english").build_analyzer()
    stem = cache(snowballstemmer.stemmer("porter").stemWord)
    counts = CountVectorizer(
        tokenizer=lambda text: [stem(word) for word in words(text)],
        token_pattern=None,
        ngram_range=(1, 3),
        dtype=np.float64,
    ).fit_transform(texts)
    return sparse.csr_matrix(normalize(counts))


def load_problem(name: str, *, folder: str | Path | None = None) -> Problem:
    """Load one of `PROBLEMS`.

    Raises
    ------
    KeyError
        Where the paper has no such problem.
    """
    file, load = PROBLEMS[name]
    X, y = load(file, folder)
    gamma = 1.0 if sparse.issparse(X) else 1.0 / X.shape[1]
    return Problem(name, X, y.astype(np.int64), gamma)


_Loaded = tuple[Any, NDArray[Any]]


def _categorical(file: str, folder: Any) -> _Loaded:
    table = load_set(file, folder=folder)
    return one_hot(table.X.astype(float)), table.y


def _adult(file: str, folder: Any) -> _Loaded:
    table = load_set(file, folder=folder)
    assert table.categorical is not None
    assert table.split is not None
    rows = table.split == 0
    X = table.X[rows].astype(float)
    numbers = X[:, ~table.categorical]
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    scaled = (numbers - low) / np.where(high > low, high - low, 1.0)
    return np.hstack([one_hot(X[:, table.categorical]), scaled]), table.y[rows]


def _optics(file: str, folder: Any) -> _Loaded:
    """Take the 1,797 official test digits, odd against even: a guess."""
    table = load_set(file, folder=folder)
    assert table.split is not None
    rows = table.split == 1
    odd = np.array([int(label) % 2 for label in table.classes])
    return table.X[rows] / 16.0, odd[table.y[rows]]


def _documents(
    file: str, folder: Any, *, positive: str, among: tuple[str, ...] = ()
) -> _Loaded:
    texts, labels = load_documents(file, folder=folder)
    kept = [i for i, label in enumerate(labels) if not among or label in among]
    X = text_features([texts[i] for i in kept])
    return X, np.array([labels[i] == positive for i in kept])


_Load = Callable[[str, Any], _Loaded]
PROBLEMS: Final[Mapping[str, tuple[str, _Load]]] = {
    "votes": ("votes", _categorical),
    "chess": ("chess", _categorical),
    "adult": ("adult", _adult),
    "optics": ("optdigits", _optics),
    "baseball": (
        "newsgroups5",
        partial(
            _documents,
            positive="rec.sport.baseball",
            among=("rec.sport.baseball", "rec.sport.hockey"),
        ),
    ),
    "atheism": (
        "newsgroups5",
        partial(
            _documents,
            positive="alt.atheism",
            among=("alt.atheism", "soc.religion.christian", "talk.religion.misc"),
        ),
    ),
    "earn": ("reuters10", partial(_documents, positive="earn")),
    "acq": ("reuters10", partial(_documents, positive="acq")),
}
"""File of each problem, and what loads it."""

FILES: Final[Mapping[str, str]] = {name: file for name, (file, _) in PROBLEMS.items()}

MODULES: Final[Mapping[str, str]] = dict.fromkeys(
    ("baseball", "atheism", "earn", "acq"), "snowballstemmer"
)
