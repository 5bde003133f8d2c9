"""Passes of the exact solver of MCPL and of the paper's heuristic, on one draw."""

import time
import warnings
from typing import Any

from dsel.errors import GuaranteeWarning
from dsel.experiments.loog2015.protocol import Table, draw_rows, needed_ridge
from dsel.mcpl import SemiSupervisedLDA
from dsel.models import AlternatingGradientLDA


def heuristic_passes(
    table: Table, repeat: int, *, seed: int, step: float = 1e-3
) -> dict[str, dict[str, float]]:
    """Compare the exact solver with the paper's heuristic on one draw.

    Parameters
    ----------
    table
        The set, preprocessed.
    repeat, seed
        As for `draw_rows`.
    step
        First step length of the heuristic.

    Returns
    -------
    dict of dict
        ``passes``, ``seconds``, ``gap`` and ``contrast`` (the certificate) of
        ``exact``, solved to 1e-6, of ``heuristic``, and of ``matched``, solved to the
        gap that the heuristic has left.
    """
    draw = draw_rows(table, repeat, seed=seed)
    labeled = table.X[draw.labeled], table.y[draw.labeled]
    ridge = needed_ridge(*labeled)
    pool = table.X[draw.unlabeled]
    exact = _timed(SemiSupervisedLDA(ridge=ridge), labeled, pool)
    heuristic = _timed(AlternatingGradientLDA(ridge=ridge, step=step), labeled, pool)
    wanted = max(heuristic["gap"], 1e-6)
    matched = _timed(SemiSupervisedLDA(ridge=ridge, tol=wanted), labeled, pool)
    return {"exact": exact, "heuristic": heuristic, "matched": matched}


def _timed(model: Any, labeled: tuple[Any, Any], pool: Any) -> dict[str, float]:
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model.fit(*labeled, pool=pool)
    return {
        "seconds": time.perf_counter() - started,
        "passes": getattr(model, "n_passes_", None) or model.n_iter_,
        "gap": model.duality_gap_,
        "contrast": model.contrast_lower_,
    }
