"""Least-squares families: closed forms against refits, one decomposition a width."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dsel.data.cache import ByteCache
from dsel.data.splits import Split, fold_splits, random_folds
from dsel.families.family import FIT_DONE, FIT_FAILED, Candidate
from dsel.models.least_squares.estimators import KernelLeastSquaresClassifier
from dsel.models.least_squares.family import (
    KernelLeastSquaresFamily,
)

N_FOLDS = 4


def candidates_of(estimator, grid):
    return tuple(
        Candidate(number, params, clone(estimator).set_params(**params))
        for number, params in enumerate(ParameterGrid(grid))
    )


GRID = {"width": [0.4, 1.0], "regularization": [1e-4, 1e-2, 1.0]}


@pytest.fixture(params=[2, 3])
def table(request, rng):
    n_classes = request.param
    X = rng.uniform(-2, 2, (53, 2))
    y = (np.arctan2(X[:, 1], X[:, 0]) + np.pi) / (2 * np.pi + 1e-9) * n_classes
    noisy = rng.random(53) < 0.15
    codes = np.where(noisy, rng.integers(0, n_classes, 53), y.astype(int))
    return X, codes, np.array(["a", "b", "c"][:n_classes])


def fit_all(table, estimator, splits=None, grid=None, budget=None):
    """Fit as the driver does: one call a group and split."""
    X, y, classes = table
    if splits is None:
        splits = fold_splits(random_folds(len(y), N_FOLDS, seed=1))
    family = pickle.loads(pickle.dumps(KernelLeastSquaresFamily(classes)))
    budget = budget or ByteCache(2**28)
    return family, [
        family.fit(group, X, y, [split], budget=budget)
        for group in family.groups(candidates_of(estimator, grid or GRID))
        for split in splits
    ]


def every_split(n_splits):
    return [np.array(number) for number in range(n_splits)]


settings = pytest.mark.parametrize(
    "estimator",
    [
        KernelLeastSquaresClassifier(penalty="rkhs"),
        KernelLeastSquaresClassifier(penalty="rkhs", fit_intercept=True),
        KernelLeastSquaresClassifier(centers=np.linspace(-2, 2, 12).reshape(6, 2)),
        KernelLeastSquaresClassifier(
            penalty="rkhs",
            fit_intercept=True,
            centers=np.linspace(-2, 2, 12).reshape(6, 2),
        ),
    ],
    ids=["rkhs", "rkhs-intercept", "centers", "rkhs-centers-intercept"],
)


@settings
def test_fit__equals_refitted_estimators(table, estimator, rng):
    X, y, classes = table
    splits = fold_splits(random_folds(len(y), N_FOLDS, seed=1))
    family, fitted = fit_all(table, estimator, splits)
    models = family.join(fitted)
    fresh = rng.uniform(-2.5, 2.5, (31, 2))
    codes = models.predict(fresh, every_split(N_FOLDS + 1))
    for place, number in enumerate(models.candidates):
        candidate = candidates_of(estimator, GRID)[number]
        for split in splits:
            refit = clone(candidate.estimator)
            refit.fit(X[split.train_rows], classes[y[split.train_rows]])
            expected = refit.predict(fresh)
            np.testing.assert_array_equal(classes[codes[split.number, place]], expected)
            errors = refit.predict(X) != classes[y]
            column = models.splits.index(split.number)
            counts = models.counts
            assert counts.test_errors[place, column] == errors[split.test_rows].sum()
            assert counts.train_errors[place, column] == errors[split.train_rows].sum()
    assert (models.counts.status == FIT_DONE).all()


@settings
def test_fit__left_out_halves_equal_refits(table, estimator, rng):
    X, y, classes = table
    rows = np.sort(rng.permutation(len(y))[:25])
    others = np.setdiff1d(np.arange(len(y)), rows)
    split = Split(0, "repeat-0-half-0", rows, others)
    family, fitted = fit_all(table, estimator, [split])
    models = family.join(fitted)
    codes = models.predict(X, [np.array(0)])[0]
    for place, number in enumerate(models.candidates):
        refit = clone(candidates_of(estimator, GRID)[number].estimator)
        expected = refit.fit(X[rows], classes[y[rows]]).predict(X)
        np.testing.assert_array_equal(classes[codes[place]], expected)
        assert (
            models.counts.test_errors[place, 0]
            == (expected != classes[y])[others].sum()
        )


def test_fit__centers_at_rows_keep_the_held_out_basis(table):
    X, y, classes = table
    estimator = KernelLeastSquaresClassifier(regularization=0.1)
    family, fitted = fit_all(table, estimator, grid={"width": [0.5]})
    models = family.join(fitted)
    fold = fold_splits(random_folds(len(y), N_FOLDS, seed=1))[0]
    fixed = clone(estimator).set_params(width=0.5, centers=X)
    fixed.fit(X[fold.train_rows], classes[y[fold.train_rows]])
    np.testing.assert_array_equal(
        classes[models.predict(X, [np.array(0)])[0, 0]], fixed.predict(X)
    )
    assert "held-out rows" in family.breaks_independence(
        candidates_of(estimator, {"width": [0.5]})
    )


@settings
def test_breaks_independence__is_empty_otherwise(table, estimator):
    family = KernelLeastSquaresFamily(table[2])
    assert family.breaks_independence(candidates_of(estimator, GRID)) == ""


def test_fit__decomposes_once_a_width(table):
    made = []

    class CountedCache(ByteCache):
        def get(self, key, make):
            return super().get(key, lambda: made.append(key) or make())

    fit_all(
        table,
        KernelLeastSquaresClassifier(penalty="rkhs"),
        budget=CountedCache(2**28),
    )
    assert len(made) == 2


def test_fit__ignores_held_out_labels_to_the_last_bit(table):
    X, y, classes = table
    estimator = KernelLeastSquaresClassifier(penalty="rkhs", fit_intercept=True)
    split = Split(0, "fold-0", np.arange(10, 53), np.arange(10))
    changed = y.copy()
    changed[:10] = (changed[:10] + 1) % len(classes)
    _, fitted = fit_all((X, y, classes), estimator, [split])
    _, other = fit_all((X, changed, classes), estimator, [split])
    for one, two in zip(fitted, other, strict=True):
        np.testing.assert_array_equal(
            one.widths[0].coefficients, two.widths[0].coefficients
        )


def test_fit__a_class_outside_the_split_is_never_predicted(rng):
    X, y = rng.uniform(-1, 1, (30, 1)), np.repeat([0, 1, 2], 10)
    split = Split(0, "fold-0", np.arange(20), np.arange(20, 30))
    far = np.array([[1e6]])
    for y_ in (y, 2 - y):  # the lowest class would win a tie of zero scores
        _, fitted = fit_all(
            (X, y_, np.array(["a", "b", "c"])),
            KernelLeastSquaresClassifier(penalty="rkhs"),
            [split],
        )
        missing = y_[25]
        codes = fitted[0].predict(np.concatenate([X, far]), [np.array(0)])
        assert not (codes == missing).any()
        assert (fitted[0].counts.test_errors == 10).all()
        scores = fitted[0].scores(far, [np.array(0)])
        assert (scores[..., missing] == -np.inf).all()
        assert np.isfinite(np.delete(scores, missing, axis=-1)).all()


def test_fit__one_class_in_the_split_is_a_constant(table):
    X, y, classes = table
    rows = np.flatnonzero(y == 1)
    split = Split(0, "fold-0", rows, np.flatnonzero(y != 1))
    _, fitted = fit_all(table, KernelLeastSquaresClassifier(penalty="rkhs"), [split])
    assert (fitted[0].predict(X, [np.array(0)]) == 1).all()
    assert fitted[0].model(0, 0).predict(X[:2]).tolist() == [classes[1]] * 2


def test_fit__records_regularizations_that_cannot_be_used(table):
    X, y, classes = table
    X = np.concatenate([X, X])
    y = np.concatenate([y, y])
    grid = {"width": [5.0], "regularization": [0.0, -1.0, 1e-15, 0.1]}
    estimator = KernelLeastSquaresClassifier(penalty="rkhs")
    _, fitted = fit_all((X, y, classes), estimator, grid=grid)
    counts = fitted[0].counts
    assert counts.status[:, 0].tolist() == [FIT_FAILED] * 3 + [FIT_DONE]
    assert counts.test_errors[:3].tolist() == [[-1]] * 3
    assert "singular" in counts.messages[0, 0]
    assert (
        "ValueError: `regularization` must be >= 0 and finite" in counts.messages[1, 0]
    )
    assert "below the kernel's rounding" in counts.messages[2, 0]
    codes = fitted[0].predict(X, [np.array(0)])
    assert (codes[0, :3] == -1).all()
    assert (codes[0, 3] >= 0).all()
    with pytest.raises(ValueError, match="`candidate` 0 has no model of split 0"):
        fitted[0].model(0, 0)


def test_join__takes_a_group_that_failed_as_a_whole_with_others(table):
    X, y, classes = table
    family = KernelLeastSquaresFamily(classes)
    estimator = KernelLeastSquaresClassifier(penalty="rkhs")
    group = family.groups(candidates_of(estimator, {"width": [1.0]}))[0]
    _, other = fold_splits(random_folds(len(y), N_FOLDS, seed=1))[:2]
    budget = ByteCache(2**28)
    broken = Split(0, "fold-0", np.array([10**6]), np.array([0]))
    pieces = [
        family.fit(group, X, y, [split], budget=budget) for split in (broken, other)
    ]
    models = family.join(pieces)
    assert models.counts.status.tolist() == [[FIT_FAILED, FIT_DONE]]
    codes = models.predict(X, [np.array(0), np.array(1)])
    assert (codes[0] == -1).all()
    np.testing.assert_array_equal(codes[1], pieces[1].predict(X, [np.array(1)])[0])


def test_fit__records_a_width_that_cannot_be_used(table):
    grid = {"width": [-1.0], "regularization": [0.1]}
    _, fitted = fit_all(table, KernelLeastSquaresClassifier(), grid=grid)
    assert fitted[0].counts.messages[0, 0].startswith("ValueError: `width` must be")
    assert (fitted[0].counts.status == FIT_FAILED).all()


def test_predict__takes_one_split_per_row_and_per_candidate(table, rng):
    X, y, _ = table
    family, fitted = fit_all(table, KernelLeastSquaresClassifier(penalty="rkhs"))
    models = family.join(fitted)
    single = models.predict(X, every_split(N_FOLDS + 1))
    per_row = rng.integers(0, N_FOLDS, len(y))
    per_candidate = rng.integers(0, N_FOLDS, (6, 1))
    codes = models.predict(X, [per_row, per_candidate])
    rows = np.arange(len(y))
    for candidate in range(6):
        np.testing.assert_array_equal(
            codes[0, candidate], single[per_row, candidate, rows]
        )
        np.testing.assert_array_equal(
            codes[1, candidate], single[per_candidate[candidate, 0], candidate]
        )


def test_predict__does_not_depend_on_the_other_rows(table):
    X, _, _ = table
    family, fitted = fit_all(table, KernelLeastSquaresClassifier(penalty="rkhs"))
    models = family.join(fitted)
    which = every_split(N_FOLDS + 1)
    whole = models.predict(X, which)
    parts = [models.predict(X[i : i + 7], which) for i in range(0, len(X), 7)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=2), whole)


def test_join__keeps_the_order_of_the_candidates_asked_for(table):
    X, _, _ = table
    family, fitted = fit_all(table, KernelLeastSquaresClassifier(penalty="rkhs"))
    whole = family.join(fitted)
    some = family.join(fitted, [4, 1, 3])
    assert some.candidates == (4, 1, 3)
    places = [whole.candidates.index(number) for number in some.candidates]
    np.testing.assert_array_equal(
        some.predict(X, [np.array(2)]), whole.predict(X, [np.array(2)])[:, places]
    )
    np.testing.assert_array_equal(
        some.counts.test_errors, whole.counts.test_errors[places]
    )
    assert some.nbytes < whole.nbytes


def test_join__takes_pieces_with_fewer_candidates(table):
    X, y, classes = table
    family = KernelLeastSquaresFamily(classes)
    group = family.groups(
        candidates_of(KernelLeastSquaresClassifier(penalty="rkhs"), GRID)
    )[0]
    splits = fold_splits(random_folds(len(y), N_FOLDS, seed=1))
    budget = ByteCache(2**28)
    pieces = [
        family.fit(group[:2], X, y, splits[:1], budget=budget),
        family.fit(group, X, y, splits[1:], budget=budget),
        family.fit(group, X, y, splits[:1], budget=budget),
    ]
    whole = family.fit(group, X, y, splits, budget=budget)
    which = every_split(N_FOLDS + 1)
    np.testing.assert_array_equal(
        family.join(pieces).predict(X, which), whole.predict(X, which)
    )


def test_model__is_the_fitted_estimator(table, rng):
    classes = table[2]
    estimator = KernelLeastSquaresClassifier(penalty="rkhs", fit_intercept=True)
    family, fitted = fit_all(table, estimator)
    models = family.join(fitted)
    fresh = rng.uniform(-2, 2, (9, 2))
    codes = models.predict(fresh, [np.array(1)])[0]
    for place, number in enumerate(models.candidates):
        model = models.model(number, 1)
        assert model.get_params() | GRID == estimator.get_params() | GRID
        np.testing.assert_array_equal(model.predict(fresh), classes[codes[place]])


def test_scores__of_two_classes_are_the_margin_and_its_negative(rng):
    X, y = rng.uniform(-1, 1, (20, 1)), np.arange(20) % 2
    split = Split(0, "full", np.arange(20), np.array([], np.int64))
    _, fitted = fit_all(
        (X, y, np.array([0, 1])), KernelLeastSquaresClassifier(), [split]
    )
    scores = fitted[0].scores(X, [np.array(0)])[0, 0]
    margin = fitted[0].model(0, 0).decision_function(X)
    np.testing.assert_allclose(scores, np.column_stack([-margin, margin]), atol=1e-9)


def test_groups__hold_one_width_each():
    family = KernelLeastSquaresFamily(np.array([0, 1]))
    groups = family.groups(candidates_of(KernelLeastSquaresClassifier(), GRID))
    assert [[c.number for c in group] for group in groups] == [[0, 2, 4], [1, 3, 5]]


def test_refusal__is_of_centers_that_are_drawn_and_of_other_estimators():
    family = KernelLeastSquaresFamily(np.array([0, 1]))
    assert family.refusal(KernelLeastSquaresClassifier()) is None
    assert family.refusal(KernelLeastSquaresClassifier(n_centers=5)) == ""
    assert family.refusal("something else") == ""


def test_fit__asks_the_budget_for_the_decomposition(table):
    estimator = KernelLeastSquaresClassifier(0.7, penalty="rkhs")
    needed = 4 * 8 * len(table[1]) ** 2
    for limit, is_refused in ((needed - 1, True), (needed, False)):
        _, fitted = fit_all(table, estimator, budget=ByteCache(limit))
        messages = "".join(m for each in fitted for m in each.counts.messages.values())
        assert ("a task may use" in messages) is is_refused
