"""One draw of an audit: sample rows of a known population, fit, count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dsel.data.folds import random_folds
from dsel.data.words import (
    AUDIT_STREAM,
    HOLDOUT_STREAM,
    LABELED_DRAW_STREAM,
    POOL_DRAW_STREAM,
    RANDOM_FOLD_STREAM,
    hashed_seed,
    uniform_integers,
    words,
)
from dsel.models.base import Candidate
from dsel.searches.auditing.counts import AuditCounts, join

Codes = NDArray[np.int64]

CERTIFY_SHARE = 0.2


@dataclass(frozen=True)
class Population:
    """Rows from which labeled rows and pools are drawn, each with equal chance.

    Rows are drawn with replacement, so that every draw is i.i.d. and every error is
    known exactly: it is the share of these rows on which a model errs.
    """

    name: str
    """Shown in the results."""
    X: Any
    """Features of every row."""
    y: Codes
    """Class codes of every row."""


@dataclass(frozen=True)
class Replay:
    """What is replayed in every draw."""

    candidates: tuple[Candidate, ...]
    """The user's estimators."""
    population: Population
    """Where rows come from."""
    n_labeled: int
    """Labeled rows of a draw."""
    n_unlabeled: int
    """Pool rows of a draw."""
    cv: Any
    """Number of random folds, or a splitter."""
    seed: int
    """Seed of all draws."""

    def draws(self, start: int, stop: int) -> AuditCounts:
        """Return the counts of some draws; each depends on nothing but its number."""
        return join([self._draw(number) for number in range(start, stop)])

    def _draw(self, number: int) -> AuditCounts:
        seed = int(words(self.seed, AUDIT_STREAM, number, number + 1)[0])
        size = len(self.population.y)
        labeled, pool = (
            uniform_integers(words(seed, stream, 0, rows), size)
            for stream, rows in (
                (LABELED_DRAW_STREAM, self.n_labeled),
                (POOL_DRAW_STREAM, self.n_unlabeled),
            )
        )
        held_out = self._folds(labeled, seed)
        drawn = uniform_integers(
            words(seed, RANDOM_FOLD_STREAM, 0, len(pool)), len(held_out)
        )
        parts = [
            self._judge(candidate, labeled, pool, held_out, drawn)
            for candidate in self.candidates
        ]
        judged = {
            name: np.stack([part[name] for part in parts])[np.newaxis]
            for name in parts[0]
        }
        final = judged.pop("final_answers")[0]
        rows = np.array([[[len(rows) for rows in held_out]]])
        return AuditCounts(
            fold_rows=rows, **judged, **self._certify(labeled, pool, seed, final)
        )

    def _folds(self, labeled: Codes, seed: int) -> list[Codes]:
        """Return the places of each fold's held-out rows among the labeled ones."""
        if not hasattr(self.cv, "split"):
            fold = random_folds(len(labeled), self.cv, seed=seed)
            return [np.flatnonzero(fold == i) for i in range(self.cv)]
        X, y = _safe_indexing(self.population.X, labeled), self.population.y[labeled]
        return [np.asarray(test) for _, test in self.cv.split(X, y)]

    def _judge(
        self,
        candidate: Candidate,
        labeled: Codes,
        pool: Codes,
        held_out: Sequence[Codes],
        drawn: Codes,
    ) -> dict[str, Any]:
        """Fit the fold models and the full one; count on rows and know on all."""
        training = [np.delete(labeled, places) for places in held_out]
        answers = np.stack(
            [self._answers(candidate, rows) for rows in [*training, labeled]]
        )
        wrong = answers != self.population.y
        differs = (answers[:-1] != answers[-1])[:, pool]
        n_folds = len(held_out)
        return {
            "fold_errors": np.array(
                [
                    np.count_nonzero(wrong[i, labeled[places]])
                    for i, places in enumerate(held_out)
                ]
            ),
            "disagreements": np.count_nonzero(differs[drawn, np.arange(len(pool))]),
            "fold_disagreements": np.count_nonzero(differs, axis=1),
            "histogram": np.bincount(differs.sum(axis=0), minlength=n_folds + 1),
            "true_error": wrong[-1].mean(),
            "pool_error": wrong[-1, pool].mean(),
            "first_error": wrong[0].mean(),
            "final_answers": answers[-1],
        }

    def _certify(
        self, labeled: Codes, pool: Codes, seed: int, final: Codes
    ) -> dict[str, Any]:
        """Choose without the certifying rows, by a part held out from the others."""
        order = np.argsort(words(seed, HOLDOUT_STREAM, 0, len(labeled)), kind="stable")
        n_rows = max(1, round(CERTIFY_SHARE * len(labeled)))
        certifying, others = labeled[order[:n_rows]], labeled[order[n_rows:]]
        trial, training = np.split(others, [max(1, len(others) // 4)])
        errors = [
            np.count_nonzero(
                self._answers(candidate, training)[trial] != self.population.y[trial]
            )
            for candidate in self.candidates
        ]
        winner = int(np.argmin(errors))
        answers = self._answers(self.candidates[winner], others)
        wrong = answers != self.population.y
        return {
            "certify_errors": np.array([[np.count_nonzero(wrong[certifying])]]),
            "certify_rows": np.array([[n_rows]]),
            "certify_disagreements": np.array(
                [[np.count_nonzero((answers != final[winner])[pool])]]
            ),
            "certified_error": np.array(
                [[(final[winner] != self.population.y).mean()]]
            ),
        }

    def _answers(self, candidate: Candidate, rows: Codes) -> Codes:
        """Fit on some rows of the population and answer all of them."""
        y = self.population.y[rows]
        if (y == y[0]).all():
            # Many learners refuse a single class; a constant is what they would be.
            return np.full(len(self.population.y), y[0])
        model = clone(candidate.estimator)
        random = [name for name in model.get_params() if _is_random_state(name)]
        seed = hashed_seed(self.seed, candidate.number, rows.tolist())
        model.set_params(**dict.fromkeys(random, seed))
        model.fit(_safe_indexing(self.population.X, rows), y)
        return np.asarray(model.predict(self.population.X))


def _is_random_state(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")
