"""Whole nested searches, made again by scikit-learn and scipy from the theory's page.

Only the folds, and the pairs of the first round, are taken from the plan. All that
follows, from the fits without two folds to both bounds, is computed here as
docs/theory/nested.md states it, without any other function of dsel.
"""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.model_selection import ParameterGrid
from sklearn.tree import DecisionTreeClassifier

import dsel

GRID = {"max_depth": [1, 2, 4, None], "min_samples_leaf": [1, 8]}
CANDIDATES = [*ParameterGrid(GRID)]
N_POOL, N_COPIES, DELTA = 900, 25, 0.05


def limit(errors, rows, delta):
    """Return the limit of Clopper and Pearson, B(errors, rows, delta)."""
    return 1.0 if errors >= rows else beta.ppf(1 - delta, errors + 1, rows - errors)


def draw(seed, n_labeled=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_labeled + N_POOL, 4)).round(3)
    noise = rng.normal(size=len(X))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + noise > 0.8, "yes", "no")
    X, y, pool = X[:n_labeled], y[:n_labeled], X[n_labeled:]
    pool[:N_COPIES] = X[:N_COPIES]
    return X, y, pool


class Remade:
    """The models of a search, its counts and its bounds."""

    def __init__(self, X, y, pool, folds, first_pairs):
        self.X, self.y, self.folds = X, y, folds
        self.fold_of = np.empty(len(y), int)
        for number, rows in enumerate(folds):
            self.fold_of[rows] = number
        self.pairs = [*combinations(range(len(folds)), 2)]
        # Rates of errors on a fold of the model without this fold and another one, by
        # candidate, search (the other fold) and tested fold.
        self.rates = {}
        for c, pair in product(range(len(CANDIDATES)), self.pairs):
            model = self.fit(c, ~np.isin(self.fold_of, pair))
            for search, tested in (pair, pair[::-1]):
                n_rows = len(folds[tested])
                self.rates[c, search, tested] = self.errors(model, tested) / n_rows
        self.choose(first_pairs)
        self.bound(pool)

    def choose(self, first_pairs):
        """Choose a candidate without each fold, and one by all folds."""
        numbers, searches = range(len(CANDIDATES)), range(len(self.folds))
        kept = [[*numbers] for _ in searches]
        if first_pairs:
            n_kept = max(2, round(len(CANDIDATES) / 4))
            kept = [
                sorted(numbers, key=lambda c, i=i: (self.mean(c, i, first_pairs), c))
                for i in searches
            ]
            kept = [candidates[:n_kept] for candidates in kept]
        self.chosen = [
            min(kept[i], key=lambda c, i=i: (self.mean(c, i, self.pairs), c))
            for i in searches
        ]
        known = {
            c: [
                p
                for p in self.pairs
                if p in first_pairs or any(c in kept[i] for i in p)
            ]
            for c in numbers
        }
        kept_by_any = {c for candidates in kept for c in candidates}
        effects = self.effects({c: known[c] for c in sorted(kept_by_any)})
        self.chosen_of_all = min(effects, key=lambda c: (effects[c], c))

    def effects(self, pairs_of):
        """Return what candidates add to a rate, beside what pair and fold add to it."""
        candidates = [*pairs_of]
        tests = [one for pair in self.pairs for one in (pair, pair[::-1])]
        cells = [
            (c, test)
            for c, pairs in pairs_of.items()
            for pair in pairs
            for test in (pair, pair[::-1])
        ]
        design = np.zeros((len(cells), len(candidates) + len(tests)))
        for row, (c, test) in zip(design, cells, strict=True):
            row[candidates.index(c)] = row[len(candidates) + tests.index(test)] = 1
        rates = [self.rates[c, *test] for c, test in cells]
        found = np.linalg.lstsq(design, rates, rcond=None)[0][: len(candidates)]
        return dict(zip(candidates, found.round(12), strict=True))

    def bound(self, pool):
        """Count the errors of the chosen models, and where they differ on the pool."""
        k, label_delta, pool_delta = len(self.folds), 0.95 * DELTA, 0.05 * DELTA
        models = [self.fit(c, self.fold_of != i) for i, c in enumerate(self.chosen)]
        self.counts = [self.errors(model, i) for i, model in enumerate(models)]
        shares = [*(0.5 ** (i + 1) for i in range(k - 1)), 0.5 ** (k - 1)]
        n_rows = map(len, self.folds)
        deltas = label_delta * np.array(shares)
        self.limits = np.array([*map(limit, self.counts, n_rows, deltas)])
        of_all = self.fit(self.chosen_of_all, slice(None)).predict(pool)
        differ = np.array([model.predict(pool) != of_all for model in models])
        # Pool rows that equal labeled ones count only where the models differ.
        n = N_POOL - N_COPIES + differ[:, :N_COPIES].sum(axis=1)
        pool_limits = map(limit, differ.sum(axis=1), n, [pool_delta / k] * k)
        self.all_rows_bound = min(self.limits + [*pool_limits])

    def fit(self, candidate, rows):
        model = DecisionTreeClassifier(random_state=0, **CANDIDATES[candidate])
        return model.fit(self.X[rows], self.y[rows])

    def errors(self, model, fold):
        rows = self.folds[fold]
        return int((model.predict(self.X[rows]) != self.y[rows]).sum())

    def mean(self, candidate, search, pairs):
        """Return the mean rate of pairs, for the search without a fold."""
        rates = [
            self.rates[candidate, one, other]
            for pair in pairs
            for one, other in (pair, pair[::-1])
            if search == one
        ]
        return np.mean(rates).round(12)


@pytest.mark.parametrize(
    ("k", "prune", "seed"),
    [(3, False, 1), (5, False, 2), (5, "exact", 3), (5, True, 4), (5, True, 5)],
)
def test_search__is_what_the_page_of_its_theory_says(k, prune, seed):
    X, y, pool = draw(seed)
    search = dsel.SemiSupervisedSearchCV(
        DecisionTreeClassifier(random_state=0), GRID, cv=k, prune=prune,
        delta=DELTA, random_state=seed, n_jobs=1, verbose=0,
    ).fit(X, y, pool)  # fmt: skip
    scheme = search.plan_.search.scheme
    folds = [split.test_rows for split in scheme.fold_splits]
    pairs = [split.numbers for split in scheme.splits]
    first = [pairs[number] for number in scheme.first_round] if prune is True else []
    made = Remade(X, y, pool, folds, first)
    choice = search.outcome_.choice
    one_fold, all_rows = (choice.bounded_models[n] for n in ("one_fold", "all_rows"))
    bound = one_fold.certificate
    assert one_fold.candidate == made.chosen[bound.fold]
    assert all_rows.candidate == made.chosen_of_all
    assert bound.bound == pytest.approx(made.limits[bound.fold], rel=1e-9)
    assert bound.bound <= 1.05 * made.limits.min()
    assert all_rows.certificate.bound == pytest.approx(made.all_rows_bound, rel=1e-9)
    assert bound.estimate == pytest.approx(sum(made.counts) / len(y), rel=1e-12)
