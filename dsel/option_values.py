"""Names and defaults that options take, in Python and in the shell.

Each is written here only. The module imports nothing of dsel, so that `dsel COMMAND
--help` prints them without what they name: scikit-learn's models, or methods of
certificates.
"""

import csv
import io
import shlex
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

CERTIFICATES: Final = ("nested", "cv_bound", "best_fold", "holdout")
"""Values of ``certificate``; `dsel.search.design.certificate_methods` has the methods.
"""

ONE_FOLD: Final = "one_fold"
"""Name of the model that was trained without one of the folds."""
ALL_ROWS: Final = "all_rows"
"""Name of the model that was trained on all labeled rows."""


class Pruning(StrEnum):
    """How a search drops candidates before all of their fits are made."""

    EXACT = "exact"
    """A candidate is dropped when its counts prove that it cannot win."""
    HALVING = "halving"
    """After a first round each inner search keeps its best quarter of candidates."""
    NONE = ""
    """No candidate is dropped: ``prune=False``."""


PREDICTION_ENDINGS: Final = (".parquet", ".csv", ".zarr")
"""Endings of files of predictions; `dsel.results.prediction_files` writes them."""
SPREADSHEETS: Final = (".xlsx", ".xls", ".xlsm", ".ods")
"""Endings of files that are not read: a sheet may be saved as CSV."""

CLASSIFICATION: Final = "classification"
REGRESSION: Final = "regression"
TASKS: Final = (CLASSIFICATION, REGRESSION)

SVM: Final = "svm"
LOGISTIC: Final = "logistic"
RIDGE: Final = "ridge"
FOREST: Final = "forest"
BOOSTING: Final = "boosting"
CLASSIFIERS: Final = (SVM, LOGISTIC, FOREST, BOOSTING)
REGRESSORS: Final = (SVM, RIDGE, FOREST, BOOSTING)
"""Values of ``--model``; `dsel.cli.named_models` has the models."""
DEFAULT_MODELS: Final = f"{FOREST},{LOGISTIC}", BOOSTING
"""The default classifiers, in one search, and the default regressor.

With some hundred labels of mixed columns forests err less than boosting on average, and
no more than SVMs; unlike these they have probabilities, and scale to many labels. Where
classes are separated by a plane a forest needs far more labels than logistic
regression, which takes a fraction of its time.
"""
MODELS_OF_GRID: Final = FOREST, SVM
"""Classifiers of a grid without a model: the first one that has its parameters."""

DEFAULT_FOLDS: Final = 5
"""Default of ``cv``."""
DEFAULT_DELTA: Final = 0.05
"""Default of ``delta``."""

LOSS_FORMS: Final = (
    "error, recall:CLASS, precision:CLASS, balanced, or cost:TRUE>PREDICTED=5,...; for "
    "a regression error_quantile=0.9 (how far off 90% of predictions are at most) or "
    "beyond=2.0 (how many are off by more)"
)
"""Values of ``loss``, as they are described to users."""

LARGEST_CLASS: Final = "largest class"
"""Value of ``baseline`` that is no model."""
FORGOTTEN_GROUPS: Final = (
    ", no two of one customer (else this bound is void: run again with `groups`)"
)
"""End of an assumption: its violation, and why a second search is allowed then."""
MONITOR_LEVEL: Final = 0.01
"""Default of ``level``: probability that a test refutes a promise that holds."""


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names of columns in an option; a name with a comma has quotes."""
    if text is None:
        return ()
    return tuple(name.strip() for name in next(csv.reader([text])) if name.strip())


def join_names(names: Iterable[str]) -> str:
    """Return names as the value of an option that lists them.

    Examples
    --------
    >>> join_names(["town", "name, first"])
    'town,"name, first"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def quote_names(*names: str) -> str:
    """Return names as a word of the shell that is the value of an option.

    Examples
    --------
    >>> print(quote_names("town"), quote_names("name, first"))
    town '"name, first"'
    """
    return shlex.quote(join_names(names))
