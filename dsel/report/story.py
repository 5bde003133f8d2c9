"""What a report tells, worked out once from the cube."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.results import Choice, evidence
from dsel.searches.compare import compare
from dsel.searches.evaluate import Evaluation, evaluate
from dsel.searches.select import select


@dataclass(frozen=True)
class Story:
    """The cube, what was chosen from it, and what goes with it."""

    results: xr.Dataset
    """The cube, loaded."""
    choice: Choice
    judged: Evaluation
    """What the criterion says of every candidate."""
    comparison: xr.Dataset
    """What other criteria would choose."""
    facts: dict[str, int]
    """Rows, candidates and what became of them."""
    provenance: dict[str, str]
    """Versions, seeds and fingerprint."""


def make_story(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    certificate: str | None = None,
) -> Story:
    """Work out what a report on this cube tells; the options are those of `select`."""
    results = results.load()
    return Story(
        results=results,
        choice=select(results, criterion, delta=delta, certificate=certificate),
        judged=evaluate(results, criterion, delta=delta),
        comparison=compare(results, delta=delta),
        facts=_facts(results),
        provenance={
            str(key): _text(value)
            for key, value in results.attrs.items()
            if key not in (names.ASSUMPTIONS, names.SPENT)  # told in words
        },
    )


def _facts(results: xr.Dataset) -> dict[str, int]:
    counts = evidence(results)
    status = counts[names.STATUS]
    return {
        "labeled rows": int(counts[names.N_LABELED]),
        "rows in the pool": max(0, int(counts[names.N_UNLABELED])),
        "classes": int(counts[names.N_CLASSES]),
        "folds": counts[names.FOLD_ROWS].size,
        "candidates": int(counts[names.N_CANDIDATES]),
        "counted in full": int(np.sum(status == names.STATUS_DONE)),
        "shown not to win": int(np.sum(status == names.STATUS_PRUNED)),
        "failed": int(np.sum(status == names.STATUS_FAILED)),
        "not counted": int(np.sum(status == names.STATUS_MISSING)),
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    if isinstance(parsed, dict):
        return ", ".join(f"{name} {entry}" for name, entry in parsed.items())
    if isinstance(parsed, list):
        return "; ".join(map(str, parsed))
    return value
