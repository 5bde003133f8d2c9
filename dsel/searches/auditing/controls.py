"""Populations made to be hard, on which broken bounds must be caught.

An audit that no bound can fail shows nothing. Here the true errors are known by
construction, lie far from 0, and a bound that pools the folds, or reads the pool
until it likes what it sees, fails far more often than it says.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.bounds.binomial import upper_limits
from dsel.data.words import AUDIT_STREAM, words
from dsel.searches.auditing.claims import Claims
from dsel.searches.auditing.counts import AuditCounts, join

_BLOCK = 100
_CERTIFY_SHARE = 0.2


@dataclass(frozen=True)
class EqualClassifiers:
    """Learners that pick, among classifiers equally bad, the one that fits best.

    Every classifier errs on its own random rows, all at the same rate; whichever is
    picked, the true error is that rate. Fold models mostly agree on the luckiest
    classifier, whose errors are then few in every fold at once.
    """

    error_rate: float
    """Error of every classifier."""
    n_classifiers: int
    """Classifiers that a learner picks from."""
    n_candidates: int
    """Learners, each with classifiers of its own."""
    n_labeled: int
    """Labeled rows."""
    n_unlabeled: int
    """Pool rows."""
    n_folds: int
    """Folds."""

    def draw(self, n_draws: int, seed: int) -> AuditCounts:
        """Return the counts of many draws, the same for the same seed."""
        starts = range(0, n_draws, _BLOCK)
        return join(
            [self._block(start, min(start + _BLOCK, n_draws), seed) for start in starts]
        )

    def _block(self, start: int, stop: int, seed: int) -> AuditCounts:
        n_rows = self.n_labeled + self.n_unlabeled
        shape = (stop - start, self.n_candidates, n_rows, self.n_classifiers)
        a_draw = int(np.prod(shape[1:]))
        units = _units(seed, start * a_draw, stop * a_draw)
        errs = (units < self.error_rate).reshape(shape)
        labeled, pool = errs[:, :, : self.n_labeled], errs[:, :, self.n_labeled :]
        fold = np.arange(self.n_labeled) % self.n_folds
        by_fold = np.stack(
            [labeled[:, :, fold == i].sum(axis=2) for i in range(self.n_folds)], axis=2
        )
        total = by_fold.sum(axis=2)
        picked = (total[:, :, np.newaxis] - by_fold).argmin(axis=-1)
        full = total.argmin(axis=-1)
        errors = np.take_along_axis(by_fold, picked[..., np.newaxis], -1)[..., 0]
        # With two classes, two models differ where exactly one of them errs.
        answers = np.take_along_axis(pool, picked[:, :, np.newaxis], -1)
        final = np.take_along_axis(pool, full[:, :, np.newaxis, np.newaxis], -1)
        differs = answers != final
        drawn = np.arange(self.n_unlabeled) % self.n_folds
        apart = np.take_along_axis(differs, drawn[np.newaxis, np.newaxis, :, None], -1)
        known = np.full(full.shape, self.error_rate)
        return AuditCounts(
            fold_errors=errors,
            fold_rows=np.broadcast_to(
                np.bincount(fold), (stop - start, 1, self.n_folds)
            ),
            disagreements=apart[..., 0].sum(axis=2),
            fold_disagreements=differs.sum(axis=2),
            histogram=_histogram(differs),
            true_error=known,
            pool_error=final[..., 0].mean(axis=2),
            first_error=known,
            **self._certify(labeled, pool, full),
        )

    def _certify(
        self,
        labeled: NDArray[np.bool_],
        pool: NDArray[np.bool_],
        full: NDArray[np.intp],
    ) -> dict[str, Any]:
        """Choose the learner without the last rows, and certify it with them."""
        n_rows = round(_CERTIFY_SHARE * self.n_labeled)
        seen = labeled[:, :, :-n_rows].sum(axis=2)
        winner = seen.min(axis=-1).argmin(axis=1)
        each = np.arange(len(winner))
        classifier = seen[each, winner].argmin(axis=-1)
        held_out = labeled[each, winner, -n_rows:, classifier]
        before = pool[each, winner, :, classifier]
        after = pool[each, winner, :, full[each, winner]]
        return {
            "certify_errors": held_out.sum(axis=1)[:, np.newaxis],
            "certify_rows": np.full((len(each), 1), n_rows),
            "certify_disagreements": (before != after).sum(axis=1)[:, np.newaxis],
            "certified_error": np.full((len(each), 1), self.error_rate),
        }


def repeated_looks(
    n_draws: int, seed: int, *, disagreement: float, n_unlabeled: int, delta: float
) -> Claims:
    """Read the pool row by row and report the smallest limit seen: BROKEN.

    The final model errs exactly where it differs from a fold model without errors, so
    the disagreement is the whole error.

    Parameters
    ----------
    n_draws, seed
        How many pools are read, and from which words.
    disagreement
        True rate.
    n_unlabeled
        Rows of each pool.
    delta
        What each look claims to fail with.
    """
    units = _units(seed, 0, n_draws * n_unlabeled).reshape(n_draws, n_unlabeled)
    seen = (units < disagreement).cumsum(axis=1)
    limits = upper_limits(seen, np.arange(1, n_unlabeled + 1), delta)
    truth = np.full((n_draws, 1), disagreement)
    return Claims(limits.min(axis=1)[:, np.newaxis], truth)


def _units(seed: int, start: int, stop: int) -> NDArray[np.float64]:
    raw = words(seed, AUDIT_STREAM, start, stop) >> np.uint64(11)
    return np.asarray(raw.astype(np.float64) * 2.0**-53)


def _histogram(differs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the rows on which 0 to k fold models differ, folds on the last axis."""
    how_many = differs.sum(axis=-1)
    values = np.arange(differs.shape[-1] + 1)
    return np.asarray((how_many[..., np.newaxis] == values).sum(axis=2))
