"""What the cube shows of a pruned search: the same, whoever was dropped when.

A run drops a candidate as soon as its counts prove it beaten, and how far it got by
then depends on the order in which tasks ended. The cube shows of each loser just the
folds, in their order, that prove it beaten by the final winner. Every exact run has
counted those, since the winner's number is the smallest that ever did the pruning; so
killed, resumed and undisturbed runs end with the same cube.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.models.family import FIT_FAILED
from dsel.searches.engine.counts import Board
from dsel.searches.engine.pruning import ROUNDING, Referee


def final_evidence(board: Board, referee: Referee) -> dict[str, NDArray[Any]]:
    """Return the evidence of a finished run, with messages, as the cube shows it."""
    shown, scored = board.in_order, board.scored
    status = board.status
    if referee.prunes:
        shown, scored, status = _trimmed(board, referee)
    evidence = board.evidence(shown, scored)
    messages = [board.message(j, shown[j]) for j in range(board.n_candidates)]
    text = np.array(messages)
    return evidence | {names.STATUS: status, names.MESSAGE: text}


def _trimmed(
    board: Board, referee: Referee
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int8]]:
    """Return the fits shown, whose pool counts are shown, and the status."""
    shown, scored, status = board.in_order, board.scored, board.status
    evidence = board.evidence()
    best = referee.best(evidence)
    undecided = np.ones(board.n_candidates, bool)
    nobody = np.zeros(board.n_candidates, bool)
    for n_folds in range(board.scheme.n_folds + 1):
        first = np.arange(len(board.scheme.trainings)) < n_folds
        evidence = board.evidence(shown & first, nobody)
        fine = np.zeros_like(status)
        lower = referee.lower_bounds({**evidence, names.STATUS: fine})
        undecided &= ~_fails(board, n_folds)
        beaten = undecided & (lower > best + ROUNDING)
        shown[beaten] &= first
        scored[beaten] = False
        status[beaten] = names.STATUS_PRUNED
        undecided &= ~beaten
    return shown, scored, status


def _fails(board: Board, n_folds: int) -> NDArray[np.bool_]:
    """Return the candidates of which one of the first fits failed."""
    failed = (board.fit_status == FIT_FAILED) & board.in_order
    return np.asarray(failed[:, :n_folds].any(axis=1))
