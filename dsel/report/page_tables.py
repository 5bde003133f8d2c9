"""Tables of the page: classes, candidates, and what is known of the run."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Integers
from dsel.criteria import CRITERIA
from dsel.losses.by_class import OTHERS
from dsel.option_values import ONE_FOLD
from dsel.plots.spread import has_single_fold, is_squared
from dsel.results import Choice
from dsel.results.candidate_tables import (
    CV_ERROR,
    PARTLY_PRUNED,
    all_params,
    candidate_table,
    class_rows,
)
from dsel.results.certificate import ONE_OF_EACH
from dsel.results.params_texts import short_params_text
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import about_percent, in_percent
from dsel.search.design.expected_tolerances import MeasuredDistances
from dsel.search.running.select import evaluate, first_criterion

PARTLY_TEXT: Final = " (dropped early by some searches, so counted on fewer rows)"
"""Text after the parameters of a candidate whose status is `PARTLY_PRUNED`."""
N_ROWS: Final = 10
"""Rows of a table of candidates."""
MOST_CLASSES: Final = 50
"""Classes of a table."""
SHARES: Final = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Fractions of predictions in the table of distances."""
MOST_PREDICTED: Final = 20
"""Classes of a confusion matrix."""
SHOWN_ELSEWHERE: Final = (
    names.ASSUMPTIONS,
    names.CAVEATS,
    names.CONSTANT,
    "choice",
    names.CLASS_GROUPS,
    names.CLASS_ROWS,
    "creation_library",  # dsel, whose version is shown
    "creation_library_version",
)
"""Attributes that are left out of the provenance: other sections show them."""

FOLD_ERROR_KIND: Final = "fold_error_kind"
NAMES_OF_ATTRIBUTES: Final = {
    names.COPIED_ROWS: "labeled rows that equal rows of other folds",
    "content_token": "fingerprint of the counts",
    "created_at": "time",
    "deploy": "deployed model",
    "dsel_schema_version": "version of the format of results",
    "estimators": "kinds of learners",
    FOLD_ERROR_KIND: "errors on a fold were counted with",
}
"""Words for attributes whose key does not say what they are."""


def class_table(results: xr.Dataset) -> list[list[str]]:
    """Return heads, then rows, of the table of classes, the largest one first."""
    rows = class_rows(results)
    if not rows or len(rows) > MOST_CLASSES:
        return []
    groups = class_rows(results, names.CLASS_GROUPS)
    counted = groups or rows
    columns = {
        "labeled rows": {c: f"{n:,}" for c, n in rows.items()},
        "of all rows": _shares(rows),
    }
    if groups:  # the numbers of the page are about these
        columns[f"of {ONE_OF_EACH}"] = _shares(groups)
    ordered = sorted(rows, key=lambda name: (-counted[name], -rows[name]))
    return [["class", *columns]] + [
        [name, *(texts[name] for texts in columns.values())] for name in ordered
    ]


def _shares(rows: Mapping[str, int]) -> dict[str, str]:
    """Return the share of each class among rows, as text."""
    total = sum(rows.values())
    return {name: about_percent(n / total) for name, n in rows.items()}


def confusion_table(results: xr.Dataset, fold: int | None = None) -> list[list[str]]:
    """Return a confusion matrix, with recalls, as texts with heads.

    It is that of the model without a fold, on its rows, or the sum over all folds.
    Empty where the search has no report.
    """
    if names.OUTER_CONFUSION not in results:
        return []
    counts = results[names.OUTER_CONFUSION]
    whole = counts.sum(names.FOLD)
    counts = whole if fold is None else counts.isel({names.FOLD: fold})
    order = names.TRUE_CLASS, names.PREDICTED_CLASS
    cells, all_cells = (
        counts_of_rows.transpose(*order).values.astype(int)
        for counts_of_rows in (counts, whole)
    )
    labels = [str(label) for label in counts[names.TRUE_CLASS].values]
    n_others = int(results[names.N_CLASSES]) - (len(labels) - 1)
    return _show_confusion(labels, cells, all_cells, n_others=n_others)


def fold_confusion_table(results: xr.Dataset, choice: Choice) -> list[list[str]]:
    """Return the confusion matrix of the model trained without one fold, on it.

    It is that of the deployed model, if this is not the model of all rows.
    """
    if names.OUTER_CONFUSION in results:
        return [] if choice.fold is None else confusion_table(results, choice.fold)
    model = choice.bounded_models.get(ONE_FOLD)
    if model is None or not model.confusion:
        return []
    cells = np.array(model.confusion)
    labels = [*map(str, class_rows(results)), OTHERS]
    return _show_confusion(labels, cells, cells)


def _show_confusion(
    labels: Sequence[str], cells: Integers, all_cells: Integers, *, n_others: int = 0
) -> list[list[str]]:
    """Return a confusion matrix as texts, of the classes that occur in all cells.

    `n_others` classes have the last entry together.
    """
    # The last entry, for other classes, has no counts if every class has a name.
    used = np.flatnonzero(all_cells.sum(axis=0) + all_cells.sum(axis=1)).tolist()
    if len(used) > MOST_PREDICTED:
        return []
    n_rows = cells.sum(axis=1)
    recalls = [
        about_percent(cells[n, n] / n_rows[n]) if n_rows[n] else "" for n in used
    ]
    # Joined classes may be exchanged in their cell, where nothing shows it.
    if n_others > 1 and used[-1] == len(labels) - 1:
        recalls[-1] = ""
    return [["true \u2193 predicted \u2192", *(labels[n] for n in used), "recall"]] + [
        [labels[n], *(f"{cells[n, other]:,}" for other in used), recall]
        for n, recall in zip(used, recalls, strict=True)
    ]


def distance_table(results: xr.Dataset) -> list[list[str]]:
    """Return heads, then rows, of how far fractions of the predictions are off.

    Empty for classes, and where no residuals were stored.
    """
    if names.OUTER_RESIDUALS not in results:
        return []
    residuals = MeasuredDistances.of_cube(results).residuals
    limits = np.quantile(residuals, SHARES, method="inverted_cdf")
    return [["share of predictions", "off by at most about"]] + [
        [f"{share:.0%}", amount_about(float(limit))]
        for share, limit in zip(SHARES, limits, strict=True)
    ]


def provenance_table(results: xr.Dataset) -> list[tuple[str, str]]:
    """Return names and texts of what else is known about the run, without raw keys."""
    rows, attribute_names = [], dict(NAMES_OF_ATTRIBUTES)
    if has_single_fold(results):
        attribute_names[FOLD_ERROR_KIND] = (
            "errors on the held-out rows were counted with"
        )
    for key, value in results.attrs.items():
        name, text = str(key), str(value)
        if key in SHOWN_ELSEWHERE or text in ("", "[]"):  # classes of a regression
            continue
        if text.startswith("["):
            with suppress(ValueError):
                text = ", ".join(map(str, json.loads(text)))
        if name.startswith("version_"):
            name = f"version of {name.removeprefix('version_')}"
        rows.append((attribute_names.get(name, name.replace("_", " ")), text))
    return sorted(rows)


def best_table(results: xr.Dataset, choice: Choice) -> list[list[Any]]:
    """Return heads, then rows, of the table of the best candidates."""
    table, loss = candidate_table(results), choice.certificate
    params, criterion = all_params(results), first_criterion(results)
    is_bound = evaluate(results).criterion.is_guarantee
    texts: dict[str, Callable[[float], str]]
    texts = {CV_ERROR: about_percent, criterion: in_percent if is_bound else loss.about}
    columns = [name for name in dict.fromkeys([criterion, CV_ERROR]) if name in table]
    # Numbers that are counted on fewer rows come last: they compare with no others.
    table["is_partly"] = table[names.STATUS] == PARTLY_PRUNED
    shown = table[np.isfinite(table[criterion])].sort_values(["is_partly", criterion])
    # The heading of the table has the kind of cross-validation.
    titles = ["error" if n == CV_ERROR else CRITERIA[n].title for n in columns]
    if is_squared(results):
        texts[criterion] = root_text
        titles[0] = f"root {titles[0]}"
    titles = [loss.title if name == "mean loss" else name for name in titles]
    return [["candidate", "parameters", *titles]] + [
        [n, short_params_text(params[n]) + PARTLY_TEXT * bool(row["is_partly"])]
        + [texts[name](row[name]) if row[name] >= 0 else "" for name in columns]
        for n, row in shown.head(N_ROWS).iterrows()
    ]


def root_text(squared: float) -> str:
    """Return the root of a mean squared error as text, in units of the target."""
    return amount_about(squared**0.5)
