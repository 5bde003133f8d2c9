"""Warnings about a model that never finds a class, whatever bound it has.

The error of such a model is small where the class is rare, and so is its bound.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Integers
from dsel.checks import listing
from dsel.data.frames import native, take_rows
from dsel.families.answers import predict_codes
from dsel.families.generic import collect_warnings
from dsel.losses.error_rate import ERROR
from dsel.results import Certificate
from dsel.results.caveats import Caveat, Effect, make_caveats
from dsel.rounded_texts import count_of
from dsel.typing import AnyArray, Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

MOST_PREDICTED: Final = 1_000
"""Labeled rows that are predicted to find out which classes a model misses."""
FEWEST_UNSEEN: Final = 5
"""Rows of a class that a model had not seen, from which it is said to miss all; with
fewer, a model that finds half of the class may miss all by chance."""
MOST_CLASSES_NAMED: Final = 3
"""Most classes that a warning names."""


def sample_each_class(y: Integers) -> Integers:
    """Return row numbers, at most about `MOST_PREDICTED`, with rows of each class.

    They are spread evenly, since rows may be sorted by date.
    """
    classes = np.unique(y)
    most = max(1, MOST_PREDICTED // len(classes))
    parts = []
    for code in classes:
        rows = np.flatnonzero(y == code)
        n = min(most, len(rows))
        parts.append(rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)])
    return np.sort(np.concatenate(parts))


def warn_of_missed_classes(
    model: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    unseen: NDArray[np.bool_],
) -> list[Caveat]:
    """Return warnings if a model predicts one class only, or never finds some class.

    Parameters
    ----------
    model
        Description of the model.
    y, predicted
        Class codes of some labeled rows, and those that the model predicts.
    classes
        Labels of the classes.
    unseen
        Whether the model was trained without the row.
    """
    names = classes.tolist()
    is_right = predicted == y
    some = np.unique(predicted)
    if len(some) == 1 and some[0] >= 0 and len(np.unique(y)) > 1:
        text = f"the {model} predicts {names[some[0]]!r} for all of {len(y):,} labeled "
        return [Caveat(Effect.WARNS, f"{text}rows, and finds no other class")]
    missed = {}
    for code in np.unique(y):
        of_class = y == code
        if not is_right[of_class].any():
            missed[names[code]] = count_of(int(of_class.sum()), "labeled row")
            continue
        # A model may know the rows that it was trained on, and no others.
        of_class &= unseen
        if of_class.sum() >= FEWEST_UNSEEN and not is_right[of_class].any():
            n = count_of(int(of_class.sum()), "labeled row")
            missed[names[code]] = f"{n} that it had not seen"
    if not missed:
        return []
    each = [f"{label!r} (none of {n})" for label, n in missed.items()]
    which = listing(each, MOST_CLASSES_NAMED)
    return [Caveat(Effect.WARNS, f"the {model} never finds the class {which}")]


def note_rarely_found_classes(
    model: str,
    y: Integers,
    predicted: Integers,
    classes: AnyArray,
    is_rare: NDArray[np.bool_],
    way_out: str,
) -> list[Caveat]:
    """Return a note if a model finds less than half of a class of few rows.

    A small error does not show it. Arguments are as for `warn_of_missed_classes`;
    `is_rare`: whether the row has such a class, and was not seen by the model. The
    option `way_out`, with ``{label}`` for the class, chooses a model that finds more of
    it.
    """
    notes = []
    for code, label in enumerate(classes.tolist()):
        of_class = (y == code) & is_rare
        n, n_right = int(of_class.sum()), int((predicted[of_class] == code).sum())
        if n >= FEWEST_UNSEEN and 2 * n_right < n:
            notes.append(
                f"the {model} finds {n_right:,} of {count_of(n, 'row')} of the class "
                f"{label!r} that it had not seen: {way_out.format(label=label)}"
            )
    return make_caveats(Effect.INFO, notes[:MOST_CLASSES_NAMED])


def caveats_of_missed_classes(
    plan: "Plan", certificates: Mapping[str, Certificate], models: Mapping[str, Model]
) -> dict[str, list[Caveat]]:
    """Return caveats about classes that each model misses, by its name.

    The deployed model's fold may be one with few rows of a rare class, and its search
    may have chosen a model that never predicts this class.
    """
    labeled = plan.labeled
    if len(labeled.classes) < 2:
        return {}
    rows, warnings = sample_each_class(labeled.y), {}
    # Of a class with its full part of the rows, the error itself shows misses.
    n_rows = np.bincount(labeled.y, minlength=len(labeled.classes))
    rare = np.flatnonzero(2 * len(labeled.classes) * n_rows < len(labeled.y))
    # A search inside of a model ranks by its own `scoring`, whatever `loss` is.
    way_out = "loss='balanced' or 'recall:{label}' chooses for it"
    if plan.n_candidates == 1:
        way_out = (
            "scoring='balanced_accuracy' of a search inside of the model chooses for it"
        )
    X, y = native(take_rows(labeled.X, rows)), labeled.y[rows]
    for name, model in models.items():
        bound, unseen = certificates[name], np.zeros(len(rows), bool)
        if bound.fold is not None:
            unseen = np.isin(rows, plan.scheme.held_out[bound.fold].test_rows)
        with collect_warnings(), suppress(Exception):  # what raises is noted elsewhere
            codes = predict_codes(model, X, labeled.classes)
            warnings[name] = warn_of_missed_classes(
                bound.model, y, codes, labeled.classes, unseen
            )
            if not warnings[name] and plan.context.losses.main == ERROR:
                is_rare = unseen & np.isin(y, rare)
                warnings[name] = note_rarely_found_classes(
                    bound.model, y, codes, labeled.classes, is_rare, way_out
                )
    return {name: texts for name, texts in warnings.items() if texts}
