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
from sklearn.svm import SVC

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


def two_classes(X, y, pool):
    return X, np.where(y > "b", "yes", "no"), pool


def first_fold_varies(X, y, pool):
    return X * np.where(np.arange(len(X)) % N_FOLDS, 1.0, 2.0)[:, np.newaxis], y, pool


def sparse_rows(X, y, pool):
    X, pool = (sparse.csr_array(np.where(rows > 0, rows, 0)) for rows in (X, pool))
    return X, y, pool


def classes_of_one_fold(X, y, pool):
    held = np.arange(len(y)) % N_FOLDS == 0
    seen = np.where(held, np.where(y > "b", "c", "a"), np.where(y == "d", "a", "b"))
    return X, seen, pool


def balanced_bounds(X, y, pool):
    """All rows end at a bound: rounding alone tells whether one is free."""
    rng = np.random.default_rng(0)
    y = np.repeat(list("abcdefg"), (8, 9, 12, 15, 24, 32, 40))
    return rng.normal(size=(len(y), 3)), y, rng.normal(size=(300, 3))


def digits(X, y, pool):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    return X, y, np.clip(X[:200] + 0.1 * np.sin(np.arange(64)), 0, 1)


def filled(value):
    def with_a_fill_value(X, y, pool):
        X = X.copy()
        X[7, 1] = value
        return X, y, pool

    return with_a_fill_value


def behind(*steps, svcs):
    return [make_pipeline(*clone(steps), svc) for svc in svcs]


FEW = {"C_values": (0.1, 1.0), "gammas": (0.02, 0.1)}
EQUAL = [
    (svcs(), None),
    (behind(svcs=svcs((0.1, 1.0))), two_classes),
    (svcs(**FEW, kernel="linear"), None),
    (svcs(**FEW, kernel="poly", degree=2, coef0=1.0), None),
    (svcs(**FEW, kernel="poly", degree=3, coef0=0.5), None),
    (svcs(**FEW, class_weight="balanced"), None),
    (svcs(**FEW, class_weight={"a": 3.0, "c": 0.2}), None),
    (svcs(**FEW, decision_function_shape="ovo"), None),
    (svcs(2.0 ** np.arange(-8, 0), (0.05, 0.5), class_weight="balanced"),
     balanced_bounds),
    # Elsewhere it is not positive semidefinite and has several local solutions.
    (svcs((0.1, 1.0), (0.001, 0.002), kernel="sigmoid"), None),
    (svcs((0.1, 10.0), ("scale", "auto")), first_fold_varies),
    *((svcs((1.0, 1e3), (1e-3, 0.5)), filled(v)) for v in (1e9, 1e12, 1e20, 1e37)),
    (svcs((0.1, 10.0), (0.1, 0.2)), sparse_rows),
    (svcs((1.0,)), classes_of_one_fold),
    (behind(MinMaxScaler(), PCA(4, random_state=0),
            svcs=svcs((0.1, 10.0), (0.5, 1.0, "scale"))),
     lambda X, y, pool: (X * [1, 10, 100, 1, 1, 1], y, pool)),
    (behind(PCA(3, random_state=0), svcs=svcs((1.0, 10.0), (0.1,)))
     + behind(PCA(2, whiten=True, random_state=0), svcs=svcs((1.0, 10.0), (0.1,))),
     None),
    (svcs((1.0, 64.0), (2.0**-6, 2.0**-5, 4.0)), digits),
]  # fmt: skip


@pytest.mark.parametrize(("estimators", "change"), EQUAL)
def test_fit__counts_codes_and_models_equal_svc(table, estimators, change):
    assert_equals_svc(estimators, *(change(*table) if change else table))


def test_fit__takes_sample_weights_as_svc_does(table):
    weights = {"sample_weight": np.linspace(0.0, 2.0, len(table[1]))}
    assert_equals_svc(svcs((1.0, 10.0)), *table, fit_params=weights)


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


POLY = {"kernel": "poly", "degree": 1.5}
MESSAGES = [
    (svcs((100.0,), (0.1,), max_iter=2), {}, FIT_DONE, "max_iter=2 with a KKT gap of"),
    (svcs((1.0,), (0.1,)), {"limit": 90_000}, FIT_FAILED, "150,000 bytes, got 90,000"),
    (svcs((1.0,), (0.1,)), {"fit_params": {"sample_weight": np.arange(150.0) < 1}},
     FIT_FAILED, "leaves no training row of class"),
    (behind(StandardScaler(), svcs=svcs((1.0,), (0.1,), **POLY)), {}, FIT_FAILED,
     "`degree` must be whole where"),
    (behind(MinMaxScaler((0, 1e160)), svcs=svcs((1.0,), (0.1,))), {}, FIT_FAILED,
     "squared lengths of rows must be below 4.5e+307"),
    *(([SVC(kernel="poly", degree=9, gamma=1e10)], {"limit": limit}, FIT_FAILED,
      "kernel values must be below 3.4e38") for limit in (2**28, 2 * 10**5)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("estimators", "options", "status", "words"), MESSAGES)
def test_fit__says_what_went_wrong(table, estimators, options, status, words):
    X, y, _ = table
    _, (piece,) = fit(estimators, X, y, **options)
    assert piece.counts.status.tolist() == [[status] * 4]
    assert words in piece.counts.messages[0, 0]


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
    with pytest.raises(ValueError, match="the pool's too, to be >= 0"):
        piece.predict(-pool, [np.array(FULL)])


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


def test_predict__takes_one_split_for_each_candidate_or_for_each_row(table, rng):
    X, y, pool = table
    family, pieces = fit(svcs(), X, y)
    joined = family.join(pieces)
    every = [joined.predict(pool, [np.array(t)])[0] for t in range(FULL + 1)]
    by_candidate = rng.integers(0, FULL + 1, (9, 1))
    by_row = rng.integers(0, FULL + 1, len(pool))
    found = joined.predict(pool, [by_candidate, by_row])
    for codes, asked in zip(found, (by_candidate, by_row), strict=True):
        expected = np.choose(np.broadcast_to(asked, codes.shape), every)
        np.testing.assert_array_equal(codes, expected)


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


def test_join__of_some_has_their_support_vectors_alone_in_the_order_given(table):
    X, y, pool = table
    family, pieces = fit(svcs(tol=1e-3), X, y)
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    whole = family.join(pieces)
    some = [family.join([piece], piece.candidates[-1:]) for piece in pieces]
    for small, piece in zip(some, pieces, strict=True):
        assert sys.getsizeof(small) < sys.getsizeof(piece)
        for machines in small.machines:
            assert machines.coefs.any(axis=(1, 2)).all()
    numbers = [piece.candidates[-1] for piece in pieces][::-1]
    again = pickle.loads(pickle.dumps(family.join(some, numbers)))
    assert again.candidates == tuple(numbers)
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
    estimators = behind(StandardScaler(), svcs=svcs((1.0, 5.0)))
    family, pieces = fit(estimators, X, y)
    codes = np.searchsorted(family.classes, y)
    parts = [
        family.fit(group, X, codes, [split], budget=ByteCache(2**28))
        for split in splits_of(len(y))
        for group in family.groups(candidates_of(estimators))
    ]
    which = [np.array(FULL), np.arange(len(pool)) % N_FOLDS]
    found, expected = (
        family.join(each).predict(pool, which) for each in (parts, pieces)
    )
    np.testing.assert_array_equal(found, expected)


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


def test_search__takes_a_gram_matrix_of_truth_values(table):
    _, y, _ = table
    same = y[:, np.newaxis] == y
    plan = dsel.plan_search(SVC(kernel="precomputed"), {"C": [1.0]}, same, y, cv=3)
    assert int(plan.run().results.fold_errors.sum()) == 0
