"""Kernel SVMs of a grid count, answer and look like scikit-learn's."""

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
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import Split, SplitKind
from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.families.svm.svm_family import KernelSVMFamily

N_FOLDS = FULL = 3
TOL = 1e-6


def splits_of(n_rows):
    rows = np.arange(n_rows)
    fold = rows % N_FOLDS
    parts = [(rows[fold != k], rows[fold == k]) for k in range(N_FOLDS)]
    parts.append((rows, rows[:0]))
    return [
        Split(number, SplitKind.FOLD, (number,), *rows, counts_train=True)
        for number, rows in enumerate(parts)
    ]


def candidates_of(*estimators):
    return [Candidate(i, {}, estimator) for i, estimator in enumerate(estimators)]


def svcs(C_values=(0.1, 1.0, 100.0), gammas=(0.02, 0.04, 0.5), **parameters):
    parameters = {"tol": TOL, **parameters}
    return [SVC(C=C, gamma=g, **parameters) for C, g in product(C_values, gammas)]


def behind(*steps, svcs):
    return [make_pipeline(*clone(steps), svc) for svc in svcs]


def fit(estimators, X, y, *, limit=2**28, one_by_one=False, fit_params=None):
    """Fit each group, on one split at a time if asked; join the pieces, too."""
    classes, codes = np.unique(y, return_inverse=True)
    family = KernelSVMFamily(classes, 7, fit_params or {})
    splits = splits_of(len(y))
    pieces = [
        family.fit(group, X, codes, some, cache=ByteCache(limit))
        for group in family.group_candidates(candidates_of(*estimators))
        for some in ([[split] for split in splits] if one_by_one else [splits])
    ]
    return family, pieces, family.join(pieces)


def drawn_for(pool):
    """Queries of all rows for the full model, and of each row for a fold's."""
    return [np.array(FULL), np.arange(pool.shape[0]) % N_FOLDS]


@pytest.fixture
def table():
    X, y = make_classification(
        150, 6, n_informative=4, n_classes=4, n_clusters_per_class=1, random_state=1
    )
    labels = np.array(["a", "b", "c", "d"])
    return X, labels[y], X[::2] * 1.1 + 0.05


def assert_equals_svc(estimators, X, y, pool, fit_params=None):
    """Compare counts, codes, decisions and support with fits of scikit-learn."""
    family, pieces, joined = fit(estimators, X, y, fit_params=fit_params)
    codes = joined.predict(pool, drawn_for(pool))
    for piece, (column, split) in product(pieces, enumerate(splits_of(len(y)))):
        train, test = split.train_rows, split.test_rows
        own = {name: value[train] for name, value in (fit_params or {}).items()}
        for row, number in enumerate(piece.candidate_numbers):
            with np.errstate(all="ignore"):
                svc = clone(estimators[number]).fit(X[train], y[train], **own)
            counts = piece.fit_counts
            for part, rows in enumerate((test, train)):
                errors = (svc.predict(X[rows]) != y[rows]).sum() if len(rows) else 0
                assert counts.errors[row, column, part] == errors
            assert not counts.has_failed[row, column]
            expected, values = svc.predict(pool), svc.decision_function(pool)
            asked = slice(None) if column == FULL else drawn_for(pool)[1] == column
            found = family.classes[codes[int(column != FULL), number]]
            np.testing.assert_array_equal(found[asked], expected[asked])
            model = joined.model(number, split.number)
            assert type(model) is type(svc)
            np.testing.assert_array_equal(model.predict(pool), expected)
            atol = 1e-4 * max(1.0, np.abs(values).max())
            np.testing.assert_allclose(model.decision_function(pool), values, atol=atol)


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
        X[7, 1] = value
        return X, y, pool

    return with_a_fill_value


FEW = {"C_values": (0.1, 1.0), "gammas": (0.02, 0.1)}
EQUAL = [
    (svcs(), None),
    (behind(svcs=svcs((0.1, 1.0))),
     lambda X, y, pool: (X, np.where(y > "b", "yes", "no"), pool)),
    (svcs(**FEW, kernel="linear"), None),
    (svcs(**FEW, kernel="poly", degree=2, coef0=1.0), None),
    (svcs(**FEW, kernel="poly", degree=3, coef0=0.5), None),
    (svcs(**FEW, class_weight="balanced"), None),
    (svcs(**FEW, class_weight={"a": 3.0, "c": 0.2}), None),
    (svcs(**FEW, decision_function_shape="ovo"), None),
    (svcs(2.0 ** np.arange(-8, 0), (0.05, 0.5), class_weight="balanced"),
     balanced_bounds),
    (svcs((0.1, 10.0), ("scale", "auto")), first_fold_varies),
    *((svcs((1.0, 1e3), (1e-3, 0.5)), filled(v)) for v in (1e9, 1e12, 1e20, 1e37)),
    (svcs((0.1, 10.0), (0.1, "scale")), sparse_rows),
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
    assert_equals_svc(svcs((1.0, 10.0)), *table, weights)


def test_fit__one_class_is_always_predicted(table):
    X, _, pool = table
    y = np.where(np.arange(len(X)) % N_FOLDS == 0, "b", "a")
    _, (piece,), _ = fit(svcs((1.0,), (0.1,)), X, y)
    counts = piece.fit_counts
    assert not counts.has_failed.any()
    assert counts.errors[0, 0].tolist() == [50, 0]
    assert (piece.predict(pool, [np.array(0)]) == 0).all()
    assert isinstance(piece.model(0, 0), DummyClassifier)
    np.testing.assert_array_equal(piece.model(0, 0).predict(pool), "a")


ONE = {"C_values": (1.0,), "gammas": (0.1,)}
MESSAGES = [
    (svcs((100.0,), (0.1,), max_iter=2), {}, False, "max_iter=2 with a KKT gap of"),
    (svcs(**ONE), {"limit": 90_000}, True, "150,000 bytes, got 90,000"),
    (svcs(**ONE), {"fit_params": {"sample_weight": np.arange(150.0) < 1}}, True,
     "leaves no training row of class"),
    (behind(StandardScaler(), svcs=svcs(**ONE, kernel="poly", degree=1.5)), {},
     True, "`degree` must be whole where"),
    (behind(MinMaxScaler((0, 1e160)), svcs=svcs(**ONE)), {}, True,
     "squared lengths of rows in `X` and `pool` must be below 4.5e+307"),
    *(([SVC(kernel="poly", degree=9, gamma=1e10)], {"limit": limit}, True,
      "kernel values must be below 3.4e38") for limit in (2**28, 2 * 10**5)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("estimators", "options", "fails", "words"), MESSAGES)
def test_fit__says_what_went_wrong(table, estimators, options, fails, words):
    _, (piece,), _ = fit(estimators, *table[:2], **options)
    assert piece.fit_counts.has_failed.tolist() == [[fails] * 4]
    assert words in piece.fit_counts.messages[0, 0].text


def test_fit__a_row_with_too_large_values_fails_no_split_that_leaves_it_out(table):
    X, y, _ = table
    X = np.array(X)
    X[0] *= 1e15
    model = SVC(kernel="poly", gamma=1.0)
    outcome = dsel.plan_search(model, {"C": [1.0]}, X, y, random_state=0).run()
    n_folds = outcome.results.sizes["fold"]
    assert f"{n_folds - 1} of {n_folds} fits failed" in str(outcome.choice)
    assert "kernel values must be below 3.4e38" in str(outcome.choice)
    fold_rows = outcome.results.fold_rows.values
    assert (outcome.results.fold_errors.values[0] == fold_rows).sum() == n_folds - 1


@pytest.mark.parametrize(
    "estimators", [svcs(tol=1e-3), behind(StandardScaler(), svcs=svcs(tol=1e-3))]
)
def test_predict__does_not_depend_on_blocks_or_on_what_is_joined(
    table, estimators, rng
):
    X, y, pool = table
    pool = np.concatenate((pool, X, pool[:10]))
    _, pieces, joined = fit(estimators, X, y)
    which = [
        np.array(FULL), rng.integers(0, FULL + 1, (9, 1)),
        rng.integers(0, FULL + 1, len(pool)),
    ]  # fmt: skip
    whole = joined.predict(pool, which)
    every = [joined.predict(pool, [np.array(t)])[0] for t in range(FULL + 1)]
    for codes, asked in zip(whole, which, strict=True):
        expected = np.choose(np.broadcast_to(asked, codes.shape), every)
        np.testing.assert_array_equal(codes, expected)
    for start in (0, 1, 57, len(pool) - 1):
        rows = slice(start, start + 23)
        part = joined.predict(pool[rows], [*which[:2], which[2][rows]])
        np.testing.assert_array_equal(whole[:, :, rows], part)
    for piece in pieces:
        mine = list(piece.candidate_numbers)
        alone = piece.predict(pool, [which[0], which[1][mine], which[2]])
        np.testing.assert_array_equal(whole[:, mine], alone)
    _, _, again = fit(estimators, X, y, one_by_one=True)
    np.testing.assert_array_equal(whole, again.predict(pool, which))


def near_the_border(model, rows, steps=30):
    """Halve the way between rows of different codes: float32 tells nothing there."""
    low, high = rows, np.roll(rows, 1, axis=0)
    first = model.predict(low)
    for _ in range(steps):
        middle = (low + high) / 2
        same = (model.predict(middle) == first)[:, np.newaxis]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate((low, high))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_predict__rounding_to_float32_changes_no_code(table, kernel):
    X, y, pool = table
    estimators = svcs((1.0, 1e3), (0.02, 0.5), kernel=kernel, tol=1e-3)
    _, _, joined = fit(estimators, X, y)
    pool = np.concatenate((pool, X, near_the_border(joined.model(0, FULL), pool)))
    for split in (FULL, 0):
        for place, codes in enumerate(joined.predict(pool, [np.array(split)])[0]):
            expected = joined.model(place, split).predict(pool)
            np.testing.assert_array_equal(np.unique(y)[codes], expected)


@pytest.mark.parametrize("exponent", [-500, -70, 66, 490])
def test_predict__does_not_depend_on_the_unit_of_the_features(table, exponent):
    X, y, pool = table
    found = []
    for unit in (1.0, 2.0**exponent):
        gammas = [gamma / unit / unit for gamma in (1e-4, 0.02, 0.5)]
        _, _, joined = fit(svcs((1.0, 1e3), gammas), X * unit, y)
        found.append(joined.predict(pool * unit, [np.array(FULL)]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("filled", [1e6, 1e20, 1e37, 1e150, 1e200])
def test_predict__rows_of_fill_values_change_no_code_of_others(table, filled):
    X, y, pool = table
    _, _, joined = fit(svcs((1.0, 1e3), (1e-4, 0.02, 0.5)), X, y)
    beside = np.concatenate((pool, np.full((1, X.shape[1]), filled)))
    found, alone = (joined.predict(rows, [np.array(FULL)]) for rows in (beside, pool))
    np.testing.assert_array_equal(found[..., :-1], alone)


def test_predict__a_decision_within_rounding_of_zero_is_that_of_the_model():
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.1, 0.3], [1.1, 0.3]] * 3)
    _, _, joined = fit(svcs((0.1, 1.0, 100.0), (0.3,), tol=1e-10), X, np.arange(12) % 2)
    middle = np.column_stack((np.zeros(1000), np.linspace(-3, 3, 1000)))
    [codes] = joined.predict(middle, [np.array(FULL)])
    for candidate, predicted in enumerate(codes):
        model = joined.model(candidate, FULL)
        assert (predicted == model.predict(middle)).all()


def test_join__of_some_has_their_support_vectors_alone_in_the_order_given(table):
    X, y, pool = table
    family, pieces, whole = fit(svcs(tol=1e-3), X, y)
    some = [family.join([piece], piece.candidate_numbers[-1:]) for piece in pieces]
    for small, piece in zip(some, pieces, strict=True):
        assert sys.getsizeof(small) < sys.getsizeof(piece)
        for machines in small.machines:
            assert machines.coefs.any(axis=(1, 2)).all()
    numbers = [piece.candidate_numbers[-1] for piece in pieces][::-1]
    again = pickle.loads(pickle.dumps(family.join(some, numbers)))
    assert again.candidate_numbers == tuple(numbers)
    found, expected = (each.predict(pool, drawn_for(pool)) for each in (again, whole))
    np.testing.assert_array_equal(found, expected[:, numbers])
    for number in numbers:
        found, expected = (m.model(number, 1) for m in (again, whole))
        for name in ("support_", "dual_coef_", "n_iter_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_model__has_the_attributes_of_a_fitted_svc(table):
    X, y, _ = table
    estimators = svcs((1.0,), (0.1,), class_weight="balanced")
    rows = splits_of(len(y))[0].train_rows
    svc = clone(estimators[0]).fit(X[rows], y[rows])
    model = fit(estimators, X, y)[2].model(0, 0)
    assert vars(model).keys() == vars(svc).keys()
    for name in ("support_", "n_support_", "classes_", "class_weight_", "shape_fit_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(svc, name))
    np.testing.assert_array_equal(model.support_vectors_, svc.support_vectors_)
    for name in ("dual_coef_", "intercept_"):
        np.testing.assert_allclose(getattr(model, name), getattr(svc, name), atol=1e-4)


def test_search__keeps_no_gram_matrix_of_a_gamma_that_is_done(rng):
    X, n_gammas = rng.normal(size=(400, 3)), 12
    grid = {"gamma": np.linspace(0.1, 1, n_gammas).tolist()}
    plan = dsel.plan_search(
        SVC(), grid, X, X[:, 0] > 0, criterion="cv_error", cv=2, prune=False
    )
    before = process_cache().held
    plan.run(n_jobs=1)
    assert process_cache().held - before < n_gammas * 4 * len(X) ** 2


@pytest.mark.parametrize("deploy", ["one_fold", "all_rows"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_search__of_kernel_values_equals_that_of_the_linear_kernel(table, deploy, kind):
    X, y, pool = table
    search = dsel.SemiSupervisedSearchCV(
        SVC(kernel="precomputed"), {"C": [0.01, 0.1]}, deploy=deploy, cv=3,
        random_state=0,
    ).fit(X @ X.T, y, pool=kind(pool @ X.T))  # fmt: skip
    linear = clone(search).set_params(estimator=SVC(kernel="linear"))
    linear.fit(X, y, pool=pool)
    for name in ("fold_errors", "outer_disagreements"):
        np.testing.assert_array_equal(search.results_[name], linear.results_[name])
    # Models of folds, too, take the values of all labeled rows.
    expected = linear.predict(pool)
    np.testing.assert_array_equal(search.predict(pool @ X.T), expected)


def test_search__takes_a_gram_matrix_of_truth_values(table):
    _, y, _ = table
    same = y[:, np.newaxis] == y
    plan = dsel.plan_search(SVC(kernel="precomputed"), {"C": [1.0]}, same, y, cv=3)
    assert int(plan.run().results.fold_errors.sum()) == 0


SCALED = make_pipeline(StandardScaler(), SVC())
REASONS = [
    (SVC(), {}, None),
    (SVC(kernel="poly", degree=2.5), {}, None),
    (SCALED, {}, None),
    (SVC(kernel=np.dot), {}, "the kernel is a function"),
    (SVC(kernel="sigmoid"), {}, "the kernel 'sigmoid' is fitted by scikit-learn"),
    (SVC(break_ties=True), {}, "break_ties=True predicts by confidences"),
    (SVC(probability=True), {}, "needs libsvm's own fit"),
    (make_pipeline(StandardScaler(), SVC(kernel="precomputed")), {}, "pipeline"),
    (SCALED, {"sample_weight": 1}, "fit parameter"),
]


@pytest.mark.parametrize(("estimator", "fit_params", "reason"), REASONS)
def test_refusal__says_why(estimator, fit_params, reason):
    found = KernelSVMFamily(np.arange(2), 0, fit_params).refusal(estimator)
    assert found is None if reason is None else reason in found


def test_assign_families__splits_a_mixed_list():
    mixed = candidates_of(SVC(C=2.0), LogisticRegression(), SVC(break_ties=True))
    machines, others = assign_families(
        mixed, np.eye(4), classes=np.array([0, 1]), seed=0, fit_params={}
    )
    assert machines.family.name == "kernel SVM"
    assert [[c.number for c in group] for group in machines.candidate_groups] == [[0]]
    assert "one kernel matrix for all C of a training set;" in machines.fit_note
    assert [[c.number for c in group] for group in others.candidate_groups] == [
        [1],
        [2],
    ]
    assert "break_ties" in others.fit_note


class RecordingCache(ByteCache):
    """A cache that remembers for which keys it was asked."""

    def __init__(self):
        super().__init__(2**28)
        self.keys = set()

    def get(self, key, make, *, scan_name=""):
        self.keys.add(key)
        return super().get(key, make, scan_name=scan_name)


@pytest.mark.parametrize(
    ("estimator", "of_each_split"),
    [
        (SVC(gamma=0.1), False),
        (SVC(gamma="auto"), False),
        (SVC(kernel="linear"), False),
        (SVC(), True),
        (SVC(kernel="poly"), True),
        (make_pipeline(StandardScaler(), SVC(gamma=0.1)), True),
    ],
)
def test_fit_note__tells_the_kernel_matrices_that_are_made(
    table, estimator, of_each_split
):
    X, y, _ = table
    candidates = candidates_of(estimator, clone(estimator))
    [assigned] = assign_families(
        candidates, X, classes=np.unique(y), seed=0, fit_params={}
    )
    note, cache, splits = assigned.fit_note, RecordingCache(), splits_of(len(X))
    codes = np.unique(y, return_inverse=True)[1]
    assigned.family.fit(assigned.candidate_groups[0], X, codes, splits, cache=cache)
    n_made = sum("svm-gram" in key for key in cache.keys)
    assert n_made == (len(splits) if of_each_split else 1)
    what = "of a training set" if of_each_split else "and folds, 1 in all"
    size = 4 * len(X) ** 2 / 2**20
    assert note == (
        f"one kernel matrix for all C {what}; a matrix of all rows has {size:.3g} MiB"
    )


GRAM = SVC(kernel="precomputed")
FRACTIONAL = SVC(kernel="poly", degree=1.5)
EYE = np.eye(3)
REFUSED = [
    (SVC(C=0.0), EYE, "`C` must be positive"),
    (SVC(C=-1.0), EYE, "`C` must be positive"),
    (SVC(tol=0.0), EYE, "`tol` must be positive"),
    (SVC(max_iter=-2), EYE, "`max_iter` must be >= -1"),
    (SVC(gamma=0.0), EYE, "`gamma` must be positive"),
    (SVC(gamma="large"), EYE, "`gamma` must be one of 'auto', 'scale'"),
    (SVC(kernel="poly", degree=-1), EYE, "`degree` must be positive"),
    (make_pipeline(StandardScaler(), SVC(C=0.0)), EYE, "`C` must be positive"),
    (FRACTIONAL, -EYE, "`degree` must be whole where features"),
    (SVC(kernel="poly", degree=1.5, coef0=-1.0), EYE, "`degree` must be whole"),
    (GRAM, np.ones((3, 2)), "must be the square Gram matrix"),
    (GRAM, np.triu(np.ones((3, 3))), "`X` must be symmetric"),
    (GRAM, sparse.eye_array(3).tocsr(), "must be a dense Gram matrix"),
    (SVC(), EYE * np.nan, "must be finite"),
    (
        SVC(),
        EYE * 1e160,
        "squared lengths of rows in `X` and `pool` must be below 4.5e+307",
    ),
    (SVC(kernel="linear"), EYE * 1e25, "must be below 3.4e+38"),
]


@pytest.mark.parametrize(("estimator", "X", "message"), REFUSED)
def test_check__refuses_what_cannot_work(estimator, X, message):
    family = KernelSVMFamily(np.arange(2), 0)
    family.check(candidates_of(SVC(), make_pipeline(SVC()), GRAM, FRACTIONAL), EYE)
    with pytest.raises((TypeError, ValueError)) as refused:
        family.check(candidates_of(SVC(), estimator), X)
    assert message in str(refused.value)
