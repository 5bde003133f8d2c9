import pickle
import sys
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, NuSVC

import dsel
from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import Split
from dsel.families.family import FIT_DONE, FIT_FAILED, Candidate
from dsel.families.svm.family import KernelSVMFamily

N_FOLDS = 3
FULL = N_FOLDS
TOL = 1e-6


def splits_of(n_rows):
    rows = np.arange(n_rows)
    fold = rows % N_FOLDS
    parts = [
        Split(k, f"fold-{k}", rows[fold != k], rows[fold == k]) for k in range(N_FOLDS)
    ]
    return [*parts, Split(FULL, "full", rows, rows[:0])]


def candidates_of(estimators):
    return [Candidate(i, {}, estimator) for i, estimator in enumerate(estimators)]


def svcs(C_values=(0.1, 1.0, 100.0), gammas=(0.02, 0.04, 0.5), **parameters):
    parameters = {"tol": TOL, **parameters}
    return [SVC(C=C, gamma=g, **parameters) for C, g in product(C_values, gammas)]


def fit(estimators, X, y, *, classes=None, limit=2**28, **settings):
    classes = np.unique(y) if classes is None else classes
    family = KernelSVMFamily(classes, 7, **settings)
    codes = np.searchsorted(classes, y)
    splits = splits_of(len(y))
    pieces = [
        family.fit(group, X, codes, splits, budget=ByteCache(limit))
        for group in family.groups(candidates_of(estimators))
    ]
    return family, pieces


def reference(estimator, X, y, split, **fit_params):
    rows = split.train_rows
    own = {name: value[rows] for name, value in fit_params.items()}
    with np.errstate(all="ignore"):
        return clone(estimator).fit(X[rows], y[rows], **own)


@pytest.fixture
def table():
    X, y = make_classification(
        150, 6, n_informative=4, n_classes=4, n_clusters_per_class=1, random_state=1
    )
    labels = np.array(["a", "b", "c", "d"])
    return X, labels[y], X[::2] * 1.1 + 0.05


def assert_equals_svc(estimators, X, y, pool, *, fit_params=None, **settings):
    """Compare counts, codes, decisions and support with fits of scikit-learn."""
    fit_params = fit_params or {}
    family, pieces = fit(estimators, X, y, fit_params=fit_params, **settings)
    joined = family.join(pieces)
    drawn = np.arange(pool.shape[0]) % N_FOLDS
    codes = joined.predict(pool, [np.array(FULL), drawn])
    for piece in pieces:
        for row, number in enumerate(piece.candidates):
            for column, split in enumerate(splits_of(len(y))):
                svc = reference(estimators[number], X, y, split, **fit_params)
                for counted, rows in (
                    (piece.counts.train_errors, split.train_rows),
                    (piece.counts.test_errors, split.test_rows),
                ):
                    errors = (svc.predict(X[rows]) != y[rows]).sum() if len(rows) else 0
                    assert counted[row, column] == errors
                assert piece.counts.status[row, column] == FIT_DONE
                expected = svc.predict(pool)
                asked = slice(None) if split.number == FULL else drawn == column
                found = family.classes[codes[int(column != FULL), number]]
                np.testing.assert_array_equal(found[asked], expected[asked])
                model = joined.model(number, split.number)
                assert type(model) is type(svc)
                np.testing.assert_array_equal(model.predict(pool), expected)
                scale = np.abs(svc.decision_function(pool)).max()
                np.testing.assert_allclose(
                    model.decision_function(pool),
                    svc.decision_function(pool),
                    atol=1e-4 * max(1.0, scale),
                )


def test_fit__rbf_equals_svc_for_many_classes(table):
    assert_equals_svc(svcs(), *table)


def test_fit__rbf_equals_svc_for_two_classes(table):
    X, y, pool = table
    assert_equals_svc(svcs(), X, np.where(y > "b", "yes", "no"), pool)


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "poly", "degree": 3, "coef0": 0.5},
        {"class_weight": "balanced"},
        {"class_weight": {"a": 3.0, "c": 0.2}},
        {"decision_function_shape": "ovo"},
    ],
)
def test_fit__equals_svc_for_other_parameters(table, parameters):
    assert_equals_svc(svcs((0.1, 1.0), (0.02, 0.1), **parameters), *table)


def test_fit__equals_svc_where_all_rows_end_at_balanced_bounds(rng):
    # Rounding alone then tells whether a row is free, and a free row sets the constant.
    y = np.repeat(list("abcdefg"), (8, 9, 12, 15, 24, 32, 40))
    X, pool = rng.normal(size=(len(y), 3)), rng.normal(size=(300, 3))
    estimators = svcs(2.0 ** np.arange(-8, 0), (0.05, 0.5), class_weight="balanced")

    assert_equals_svc(estimators, X, y, pool)


def test_fit__the_sigmoid_equals_svc_where_it_is_nearly_linear(table):
    # Elsewhere it is not positive semidefinite and has several local solutions.
    assert_equals_svc(svcs((0.1, 1.0), (0.001, 0.002), kernel="sigmoid"), *table)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_fit__resolves_gamma_for_each_split(table, gamma):
    X, y, pool = table
    X[::3] *= 2.0  # the first fold's variance differs
    assert_equals_svc(svcs((0.1, 10.0), (gamma,)), X, y, pool)


@pytest.mark.parametrize("filled", [1e9, 1e12, 1e20, 1e37])
def test_fit__equals_svc_where_a_row_holds_a_fill_value(table, filled):
    X, y, pool = table
    X = X.copy()
    X[7, 1] = filled
    assert_equals_svc(svcs((1.0, 1e3), (1e-3, 0.5)), X, y, pool)


def test_fit__equals_svc_for_sparse_rows(table):
    X, y, pool = table
    X, pool = (sparse.csr_array(np.where(rows > 0, rows, 0)) for rows in (X, pool))
    assert_equals_svc(svcs((0.1, 10.0), (0.1, 0.2)), X, y, pool)


def test_fit__equals_svc_for_a_precomputed_kernel(table):
    X, y, pool = table
    gram = np.exp(-0.1 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    values = np.exp(-0.1 * ((pool[:, np.newaxis] - X) ** 2).sum(axis=2))
    estimators = [SVC(C=C, kernel="precomputed", tol=TOL) for C in (0.1, 1.0, 50.0)]
    family, pieces = fit(estimators, gram, y)
    joined, which = family.join(pieces), [np.array(FULL), np.array(1)]
    codes = joined.predict(values, which)
    again = joined.predict(sparse.csr_matrix(values), which)
    np.testing.assert_array_equal(again, codes)
    for number, estimator in enumerate(estimators):
        for place, split in enumerate(splits_of(len(y))[i] for i in (FULL, 1)):
            rows = split.train_rows
            svc = clone(estimator).fit(gram[np.ix_(rows, rows)], y[rows])
            expected = svc.predict(values[:, rows])
            found = family.classes[codes[place, number]]
            np.testing.assert_array_equal(found, expected)
            model = pieces[0].model(number, split.number)
            np.testing.assert_array_equal(model.predict(values), expected)


def test_fit__takes_sample_weights_as_svc_does(table):
    X, y, pool = table
    weights = np.linspace(0.0, 2.0, len(y))
    assert_equals_svc(
        svcs((1.0, 10.0)), X, y, pool, fit_params={"sample_weight": weights}
    )


def test_fit__a_pipeline_is_fitted_on_each_split(table):
    X, y, pool = table
    estimators = [
        make_pipeline(MinMaxScaler(), PCA(4, random_state=0), svc)
        for svc in svcs((0.1, 10.0), (0.5, 1.0, "scale"))
    ]
    assert_equals_svc(estimators, X * [1, 10, 100, 1, 1, 1], y, pool)


def test_fit__digits_equal_svc():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    pool = np.clip(X[:200] + 0.1 * np.sin(np.arange(64)), 0, 1)
    assert_equals_svc(svcs((1.0, 64.0), (2.0**-6, 2.0**-5, 4.0)), X, y, pool)


def test_fit__does_not_depend_on_other_splits(table):
    X, y, _ = table
    family, (whole,) = fit(svcs(gammas=(0.1,), tol=1e-3), X, y)
    group = candidates_of(svcs(gammas=(0.1,), tol=1e-3))
    codes = np.searchsorted(family.classes, y)
    for column, split in enumerate(splits_of(len(y))):
        alone = family.fit(group, X, codes, [split], budget=ByteCache(2**28))
        np.testing.assert_array_equal(
            alone.machines[0].coefs, whole.machines[column].coefs
        )
        np.testing.assert_array_equal(
            alone.counts.test_errors[:, 0], whole.counts.test_errors[:, column]
        )


def test_fit__held_out_labels_leave_no_trace(table):
    X, y, _ = table
    other = y.copy()
    other[::N_FOLDS] = "a"
    estimators = svcs(gammas=(0.1,), tol=1e-3)
    classes = np.unique(y)
    _, (first,) = fit(estimators, X, y, classes=classes)
    _, (second,) = fit(estimators, X, other, classes=classes)
    mine, yours = first.machines[0], second.machines[0]
    np.testing.assert_array_equal(mine.coefs, yours.coefs)
    np.testing.assert_array_equal(mine.numbers, yours.numbers)


def test_fit__a_class_that_a_split_has_not_seen_is_never_predicted(table):
    X, y, pool = table
    y[np.arange(len(y)) % N_FOLDS != 0] = np.where(
        y[np.arange(len(y)) % N_FOLDS != 0] == "d", "a", "b"
    )
    y[::N_FOLDS] = np.where(np.arange(len(y[::N_FOLDS])) % 2, "c", "a")
    assert_equals_svc(svcs((1.0,)), X, y, pool)


def test_fit__one_class_is_always_predicted(table):
    X, _, pool = table
    y = np.where(np.arange(len(X)) % N_FOLDS == 0, "b", "a")
    _, (piece,) = fit(svcs((1.0,), (0.1,)), X, y)
    assert piece.counts.status.tolist() == [[FIT_DONE] * 4]
    assert piece.counts.test_errors[0, 0] == 50
    assert piece.counts.train_errors[0, 0] == 0
    assert (piece.predict(pool, [np.array(0)]) == 0).all()
    assert isinstance(piece.model(0, 0), DummyClassifier)
    np.testing.assert_array_equal(piece.model(0, 0).predict(pool), "a")


def test_fit__a_stop_at_max_iter_is_told_with_its_gap(table):
    X, y, _ = table
    _, (piece,) = fit(svcs((100.0,), (0.1,), max_iter=2), X, y)
    assert piece.counts.status.tolist() == [[FIT_DONE] * 4]
    assert "max_iter=2 with a KKT gap of" in piece.counts.messages[0, 0]


@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize(
    ("kernel", "value", "words"),
    [
        ("rbf", np.nan, "must be finite"),
        ("rbf", 1e160, "squared lengths of rows must be below 4.5e+307"),
        ("linear", 1e25, "squared lengths of rows must be below 3.4e+38"),
    ],
)
def test_fit__a_row_that_cannot_be_used_fails_where_it_is_read(
    table, kernel, value, words, sparse_rows
):
    X, y, pool = table
    _, (usual,) = fit(svcs((1.0,), (0.1,), kernel=kernel), X, y)
    X = X.copy()
    X[0, 0] = value  # held out by the first fold, in the training rows of others
    rows = sparse.csr_array(X) if sparse_rows else X
    _, (piece,) = fit(svcs((1.0,), (0.1,), kernel=kernel), rows, y)
    assert piece.counts.status.tolist() == [[FIT_DONE] + [FIT_FAILED] * 3]
    assert piece.counts.test_errors.tolist() == [[50, -1, -1, -1]]
    assert all(words in text for text in piece.counts.messages.values())
    codes = piece.predict(pool, [np.array(0), np.array(FULL)])
    np.testing.assert_array_equal(codes[0], usual.predict(pool, [np.array(0)])[0])
    assert (codes[1] == -1).all()


def test_fit__a_budget_below_the_kernel_matrix_fails_and_is_recorded(table):
    X, y, _ = table
    _, (piece,) = fit(svcs((1.0,), (0.1,)), X, y, limit=4 * len(y) ** 2)
    assert piece.counts.status.tolist() == [[FIT_FAILED] * 4]
    assert "150,000 bytes, got 90,000" in piece.counts.messages[0, 0]


def test_fit__a_class_without_weight_fails_and_is_recorded(table):
    X, y, _ = table
    weights = (y != "a").astype(float)
    _, (piece,) = fit(svcs((1.0,), (0.1,)), X, y, fit_params={"sample_weight": weights})
    assert "leaves no training row of class" in piece.counts.messages[0, 0]


def test_fit__a_real_degree_works_on_nonnegative_features(table):
    X, y, pool = table
    X, pool = np.abs(X), np.abs(pool)
    estimators = svcs((1.0,), (0.5,), kernel="poly", degree=1.5)
    family, (piece,) = fit(estimators, X, y)
    rows = np.arange(len(y)) % N_FOLDS != 0
    gram, values = ((0.5 * other @ X[rows].T) ** 1.5 for other in (X[rows], pool))
    svc = SVC(C=1.0, kernel="precomputed", tol=TOL).fit(gram, y[rows])
    codes = piece.predict(pool, [np.array(0)])[0, 0]
    np.testing.assert_array_equal(family.classes[codes], svc.predict(values))
    np.testing.assert_array_equal(piece.model(0, 0).predict(pool), svc.predict(values))


def test_fit__a_real_degree_on_negative_features_fails_and_is_recorded(table):
    X, y, _ = table
    estimators = [make_pipeline(StandardScaler(), SVC(kernel="poly", degree=1.5))]
    _, (piece,) = fit(estimators, X, y)
    assert piece.counts.status.tolist() == [[FIT_FAILED] * 4]
    assert "`degree` must be whole where" in piece.counts.messages[0, 0]


def test_predict__a_real_degree_refuses_negative_features(table):
    X, y, pool = table
    _, (piece,) = fit([SVC(kernel="poly", degree=1.5)], np.abs(X), y)
    with pytest.raises(ValueError, match="the pool's too, to be >= 0"):
        piece.predict(-np.abs(pool), [np.array(FULL)])


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("limit", [2**28, 2 * 10**5])
def test_fit__values_beyond_float32_fail_and_are_recorded(table, limit):
    X, y, _ = table
    estimators = [SVC(kernel="poly", degree=9, gamma=1.0)]
    _, (piece,) = fit(estimators, 1e5 * X, y, limit=limit)
    assert "kernel values must be below 3.4e38" in piece.counts.messages[0, 0]


def test_groups__candidates_of_one_kernel_share_a_group():
    family = KernelSVMFamily(np.array([0, 1]), 0)
    mixed = [*svcs((1.0, 2.0), (0.1, 0.2)), SVC(C=3.0, gamma=0.1, tol=TOL)]
    groups = family.groups(candidates_of(mixed))
    assert [[c.number for c in group] for group in groups] == [[0, 2, 4], [1, 3]]


def test_groups__other_steps_of_a_pipeline_tell_groups_apart():
    family = KernelSVMFamily(np.array([0, 1]), 0)
    estimators = [
        make_pipeline(StandardScaler(with_mean=with_mean), SVC(C=C))
        for with_mean in (True, False)
        for C in (1.0, 2.0)
    ]
    groups = family.groups(candidates_of(estimators))
    assert [[c.number for c in group] for group in groups] == [[0, 1], [2, 3]]


def test_predict__does_not_depend_on_blocks_or_on_what_is_joined(table, rng):
    X, y, pool = table
    pool = np.concatenate((pool, X, pool[:10]))
    family, pieces = fit(svcs(tol=1e-3), X, y)
    joined = family.join(pieces)
    drawn = rng.integers(0, N_FOLDS, len(pool))
    whole = joined.predict(pool, [np.array(FULL), drawn])
    for start in (0, 1, 57, len(pool) - 1):
        rows = slice(start, start + 23)
        part = joined.predict(pool[rows], [np.array(FULL), drawn[rows]])
        np.testing.assert_array_equal(whole[:, :, rows], part)
    for piece in pieces:
        alone = piece.predict(pool, [np.array(FULL), drawn])
        np.testing.assert_array_equal(whole[:, list(piece.candidates)], alone)


def test_predict__takes_one_split_for_each_candidate_or_for_each_cell(table, rng):
    X, y, pool = table
    family, pieces = fit(svcs(), X, y)
    joined = family.join(pieces)
    every = [joined.predict(pool, [np.array(t)])[0] for t in range(FULL + 1)]
    by_candidate = rng.integers(0, FULL + 1, (9, 1))
    by_cell = rng.integers(0, FULL + 1, (9, len(pool)))
    found = joined.predict(pool, [by_candidate, by_cell])
    for codes, asked in zip(found, (by_candidate, by_cell), strict=True):
        expected = np.choose(np.broadcast_to(asked, codes.shape), every)
        np.testing.assert_array_equal(codes, expected)


def test_predict__no_reading_gives_no_codes(table):
    X, y, pool = table
    _, (piece, *_) = fit(svcs((1.0,)), X, y)
    assert piece.predict(pool, []).shape == (0, 1, len(pool))


def near_the_border(model, rows, steps=40):
    """Halve the way between rows of different codes until a rounding is left."""
    low, high = rows, np.roll(rows, 1, axis=0)
    first = model.predict(low)
    for _ in range(steps):
        middle = (low + high) / 2
        same = (model.predict(middle) == first)[:, np.newaxis]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate((low, high))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_predict__rounding_to_float32_changes_no_code(table, kernel):
    X, y, pool = table
    family, pieces = fit(svcs((1.0, 1e3), (0.02, 0.5), kernel=kernel, tol=1e-3), X, y)
    border = near_the_border(pieces[0].model(pieces[0].candidates[0], FULL), pool)
    pool = np.concatenate((pool, X, border))
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    joined = family.join(pieces)
    # Scores come from float64: votes, and less than a half that breaks ties.
    expected = np.rint(joined.scores(pool, which)).argmax(axis=-1)
    np.testing.assert_array_equal(joined.predict(pool, which), expected)


@pytest.mark.parametrize("exponent", [-500, -70, 66, 490])
def test_predict__does_not_depend_on_the_unit_of_the_features(table, exponent):
    X, y, pool = table
    scale = 2.0**exponent
    found = []
    for unit in (1.0, scale):
        gammas = [gamma / unit / unit for gamma in (1e-4, 0.02, 0.5)]
        family, pieces = fit(svcs((1.0, 1e3), gammas), X * unit, y)
        found.append(family.join(pieces).predict(pool * unit, [np.array(FULL)]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("filled", [1e6, 1e20, 1e37, 1e150, 1e200])
def test_predict__rows_of_fill_values_change_no_code_of_others(table, filled):
    X, y, pool = table
    family, pieces = fit(svcs((1.0, 1e3), (1e-4, 0.02, 0.5)), X, y)
    joined, which = family.join(pieces), [np.array(FULL)]
    beside = np.concatenate((pool, np.full((1, X.shape[1]), filled)))
    np.testing.assert_array_equal(
        joined.predict(beside, which)[..., :-1], joined.predict(pool, which)
    )


def test_predict__a_decision_within_rounding_of_zero_counts_as_zero():
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.1, 0.3], [1.1, 0.3]])
    y = np.array([0, 1, 0, 1])
    family = KernelSVMFamily(np.array([0, 1]), 0)
    split = [Split(0, "full", np.arange(4), np.arange(0))]
    group = candidates_of(svcs((0.1, 1.0, 100.0), (0.3,), tol=1e-10))
    piece = family.fit(group, X, y, split, budget=ByteCache(2**20))
    middle = np.column_stack((np.zeros(1000), np.linspace(-3, 3, 1000)))
    # Zero is no vote for the first class, as in libsvm.
    assert (piece.predict(middle, [np.array(0)]) == 1).all()


def test_join__keeps_chosen_candidates_in_the_order_given(table):
    X, y, pool = table
    family, pieces = fit(svcs(), X, y)
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    whole = family.join(pieces).predict(pool, which)
    some = family.join(pieces, [5, 0, 7])
    assert some.candidates == (5, 0, 7)
    np.testing.assert_array_equal(some.predict(pool, which), whole[:, [5, 0, 7]])


def test_join__of_some_is_a_piece_with_their_support_vectors_alone(table):
    X, y, pool = table
    family, pieces = fit(svcs(tol=1e-3), X, y)
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    whole = family.join(pieces)
    some = [family.join([piece], piece.candidates[-1:]) for piece in pieces]
    for small, piece in zip(some, pieces, strict=True):
        assert sys.getsizeof(small) < sys.getsizeof(piece)
        for machines in small.machines:
            assert machines.coefs.any(axis=(1, 2)).all()
    numbers = [piece.candidates[-1] for piece in pieces]
    again = family.join(some, numbers)
    np.testing.assert_array_equal(
        again.predict(pool, which), whole.predict(pool, which)[:, numbers]
    )
    for number in numbers:
        found, expected = (m.model(number, 1) for m in (again, whole))
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
        np.testing.assert_array_equal(found.n_iter_, expected.n_iter_)


def test_join__takes_pieces_of_different_splits(table):
    X, y, pool = table
    estimators = [make_pipeline(StandardScaler(), svc) for svc in svcs((1.0, 5.0))]
    family, pieces = fit(estimators, X, y)
    codes = np.searchsorted(family.classes, y)
    parts = [
        family.fit(group, X, codes, [split], budget=ByteCache(2**28))
        for split in splits_of(len(y))
        for group in family.groups(candidates_of(estimators))
    ]
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    np.testing.assert_array_equal(
        family.join(pieces).predict(pool, which),
        family.join(parts).predict(pool, which),
    )


@pytest.mark.parametrize("n_columns", [(3, 3), (2, 3)])
def test_join__pipelines_with_other_steps_keep_their_own_rows(table, n_columns):
    estimators = [
        make_pipeline(PCA(n, whiten=whiten, random_state=0), SVC(C=C, tol=TOL))
        for n, whiten in zip(n_columns, (False, True), strict=True)
        for C in (1.0, 10.0)
    ]
    assert_equals_svc(estimators, *table)


def test_join__survives_pickling(table):
    X, y, pool = table
    family, pieces = fit(svcs(), X, y)
    joined = family.join(pieces)
    which = [np.array(FULL)]
    before = joined.predict(pool, which)
    again = pickle.loads(pickle.dumps(joined))
    np.testing.assert_array_equal(again.predict(pool, which), before)
    assert joined.nbytes >= sum(m.coefs.nbytes for m in joined.machines)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores__equal_the_decision_function(table, n_classes):
    X, y, pool = table
    y = y if n_classes == 4 else np.where(y > "b", "yes", "no")
    family, pieces = fit(svcs((1.0,), (0.1,)), X, y)
    scores = family.join(pieces).scores(pool, [np.array(FULL)])[0, 0]
    decision = pieces[0].model(0, FULL).decision_function(pool)
    if n_classes == 2:
        decision = np.column_stack((-decision, decision))
    np.testing.assert_allclose(scores, decision, atol=1e-10)


def test_model__has_the_attributes_of_a_fitted_svc(table):
    X, y, _ = table
    estimators = svcs((1.0,), (0.1,), class_weight="balanced")
    _, (piece,) = fit(estimators, X, y)
    split = splits_of(len(y))[0]
    model, svc = piece.model(0, 0), reference(estimators[0], X, y, split)
    for name in ("support_", "n_support_", "classes_", "class_weight_", "shape_fit_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(svc, name))
    np.testing.assert_array_equal(model.support_vectors_, svc.support_vectors_)
    np.testing.assert_allclose(model.dual_coef_, svc.dual_coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-4)
    assert vars(model).keys() == vars(svc).keys()


def test_model__of_many_classes_comes_without_warnings(rng):
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 30
    _, (piece,) = fit(svcs((1.0,), (0.1,)), X, y)
    svc = SVC(C=1.0, gamma=0.1, tol=TOL).fit(X, y)
    np.testing.assert_array_equal(piece.model(0, FULL).predict(X), svc.predict(X))


def test_model__of_an_unknown_split_is_an_error(table):
    X, y, _ = table
    _, (piece,) = fit(svcs((1.0,), (0.1,)), X, y)
    with pytest.raises(KeyError, match="no model of split 9"):
        piece.model(0, 9)


def test_search__keeps_no_gram_matrix_of_a_gamma_that_is_done(rng):
    X, n_gammas = rng.normal(size=(400, 3)), 12
    grid = {"gamma": np.linspace(0.1, 1, n_gammas).tolist()}
    plan = dsel.plan_search(
        SVC(), grid, X, X[:, 0] > 0, criterion="cv_error", cv=2, prune=False
    )
    before = process_cache().held

    plan.run(n_jobs=1)

    assert process_cache().held - before < n_gammas * 4 * len(X) ** 2


def test_search__models_of_folds_take_the_kernel_values_of_all_labeled_rows(table):
    X, y, pool = table
    values = pool @ X.T
    grid = {"C": [0.01, 0.1]}
    for deploy in ("one_fold", "all_rows"):
        search = dsel.SemiSupervisedSearchCV(
            SVC(kernel="precomputed"), grid, deploy=deploy, cv=3, random_state=0
        ).fit(X @ X.T, y, pool=values)  # fmt: skip
        linear = clone(search).set_params(estimator=SVC(kernel="linear"))
        expected = linear.fit(X, y, pool=pool).predict(pool)
        np.testing.assert_array_equal(search.predict(values), expected)


def test_search__names_learners_whose_square_matrices_are_not_cut(table):
    X, y, _ = table
    learner = NuSVC(kernel="precomputed")
    with pytest.raises(ValueError, match=r"but NuSVC\(.* takes kernel values"):
        dsel.plan_search(learner, {"nu": [0.1]}, X @ X.T, y)


def test_search__takes_a_gram_matrix_of_truth_values(table):
    _, y, _ = table
    same = y[:, np.newaxis] == y
    plan = dsel.plan_search(SVC(kernel="precomputed"), {"C": [1.0]}, same, y, cv=3)
    assert int(plan.run().results.fold_errors.sum()) == 0
