"""The nonconformity classifier: against the definition, and its promises."""

import dask.array as da
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array, csr_matrix, save_npz
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC

from dsel.bounds import holdout_bound
from dsel.data import open_pool
from dsel.data.splits import holdout_split
from dsel.errors import AllFitsFailedError, FitFailedWarning, GuaranteeWarning
from dsel.nonconformity import NonconformityClassifier
from tests.tables import in_two_entries

GRID = {"C": [0.1, 10.0], "gamma": [0.01, 1.0, 100.0]}


def table(n_classes=2, n=240, flip=0.2, seed=0):
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes,
        flip_y=flip, random_state=seed,
    )  # fmt: skip


def fitted(n_classes=2, **options):
    X, y = table(n_classes)
    options = {"random_state": 3, **options}
    return NonconformityClassifier(SVC(), GRID, **options).fit(X[:140], y[:140]), X, y


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_nonconformity_classifier__chooses_by_the_definition(n_classes):
    model, X, y = fitted(n_classes)
    rows = holdout_split(140, 28, seed=3)
    svms = model.models_.models()
    assert [svm.C for svm in svms] == [params["C"] for params in model.params_]
    test, held = X[140:], rows.test_rows
    counts = np.array(
        [definition(margins(svm, X[held]), y[held], margins(svm, test)) for svm in svms]
    )
    second = np.sort(counts, axis=2)[..., -2]
    chosen, n = model.chosen_model(test), len(test)
    np.testing.assert_array_equal(
        model.critical_epsilon(test) * len(held), second.min(axis=0)
    )
    assert (second[chosen, np.arange(n)] == second.min(axis=0)).all()
    best = [margins(svm, test).argmax(axis=1) for svm in svms]
    np.testing.assert_array_equal(model.predict(test), np.array(best)[chosen, range(n)])
    np.testing.assert_allclose(
        model.p_values(test) * (len(held) + 1) - 1, counts[chosen, np.arange(n)]
    )


def margins(svm, X):
    """Conformity of every label: score less the best other score."""
    scores = svm.decision_function(X)
    if scores.ndim == 1:
        scores = np.column_stack((-scores, scores))
    rivals = [np.delete(scores, c, axis=1).max(axis=1) for c in range(scores.shape[1])]
    return scores - np.column_stack(rivals)


def definition(held, labels, test):
    own = held[np.arange(len(labels)), labels]
    return (own[np.newaxis, np.newaxis] <= test[..., np.newaxis] + 1e-9).sum(axis=2)


LEARNERS = {
    "machines": (SVC(), GRID),
    "logistic": (LogisticRegression(), {"C": [0.01, 1.0, 100.0]}),
    "neighbors": (KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}),
    "bayes": (MultinomialNB(), {"alpha": [1e-9, 1.0]}),
}


def answers(model, X):
    return np.array(
        [model.predict(X), model.critical_epsilon(X), model.chosen_model(X)]
    )


@pytest.mark.parametrize("ties", ["random", "literal"])
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_predict__depends_on_the_row_alone(kind, ties, make, rng):
    X, y = table(3)
    # Numbers of float32; rows that fit got tie with themselves as validation rows.
    X = np.abs(np.round(X, 1).astype(np.float32).astype(np.float64))
    X[X < 0.4] = 0.0
    model = NonconformityClassifier(*LEARNERS[kind], ties=ties, random_state=3)
    model.fit(make(X[:140]), y[:140])
    whole, order = answers(model, X), rng.permutation(len(X))
    np.testing.assert_array_equal(answers(model, X[order]), whole[:, order])
    for number in range(0, 240, 3):
        [one] = answers(model, X[[number]]).T
        np.testing.assert_array_equal(one, whole[:, number])
    single, signed = X.astype(np.float32), np.where(X == 0, -0.0, X)
    lazy, entries = da.from_array(X, chunks=(7, -1)), in_two_entries(X)
    for rows in (single, signed, lazy, entries, csr_array(X), csr_matrix(single)):
        np.testing.assert_array_equal(answers(model, rows), whole)
    other = model.set_params(random_state=4).fit(make(X[:140]), y[:140])
    assert (other.chosen_model(X) != whole[2]).any()  # ties are drawn


def test_ties__random_takes_every_tied_model_equally_often(rng):
    model, X, _ = fitted()
    scores = model.models_.scores(X)
    runner_up = -np.abs(scores[..., 1] - scores[..., 0])
    pairs = zip(model.validation_scores_, runner_up, strict=True)
    counts = np.array([np.searchsorted(*pair, side="right") for pair in pairs])
    most_tied = np.argmax((counts == counts.min(axis=0)).sum(axis=0))
    near = X[most_tied] + rng.normal(scale=1e-9, size=(6000, 5))
    shares = np.bincount(model.chosen_model(near), minlength=6) / 6000
    tied = shares > 0
    assert tied.sum() > 1
    np.testing.assert_allclose(shares[tied], 1 / tied.sum(), atol=0.03)


def test_ties__literal_flips_a_coin_where_a_model_cannot_tell_labels(rng):
    y = np.repeat([0, 1], 20)
    X = (np.arange(40.0) + 20 * y)[:, np.newaxis]
    with pytest.warns(GuaranteeWarning, match="no model errs"):
        literal = NonconformityClassifier(
            LogisticRegression(), {"C": [100.0]}, ties="literal", random_state=0
        ).fit(X, y)
    near = rng.uniform(29.0, 31.0, (4000, 1))  # nearer to the cut than any held row
    assert 0.45 < literal.predict(near).mean() < 0.55


def test_fit__a_list_of_different_classifiers_is_a_grid_too():
    X, y = table(3)
    listed = [LogisticRegression(), GaussianNB(), SVC(gamma=0.1)]
    model = NonconformityClassifier(None, listed, random_state=0).fit(X[:140], y[:140])
    assert model.score(X[140:], y[140:]) > 0.5
    assert set(model.chosen_model(X)) == {0, 1, 2}


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_fit__one_model_answers_by_its_scores_of_classes(shape):
    X, y = table(3)
    svc, names = SVC(decision_function_shape=shape), np.array(["a", "b", "c"])[y]
    model = NonconformityClassifier(svc, {"C": [1.0]}, random_state=0).fit(X, names)
    (only,), found = model.models_.models(), model.predict(X)
    only.set_params(decision_function_shape="ovr", break_ties=True)
    np.testing.assert_array_equal(found, only.predict(X))


def test_fit__a_validation_part_without_one_class_is_no_error():
    X, y = table()
    y[:] = 0
    y[:3] = 1
    model = NonconformityClassifier(SVC(), GRID, validation_size=5, random_state=1)
    with pytest.warns(GuaranteeWarning, match="no model errs"):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape


class ScoresNaN(LogisticRegression):
    def decision_function(self, X):
        return super().decision_function(X) * (np.nan if self.C < 1 else 1.0)


class RaisesBelow1(LogisticRegression):
    def fit(self, X, y):
        if self.C < 1:
            raise ValueError("C is below 1")
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("learner", "bad", "words"),
    [
        (RaisesBelow1(), 0.1, "1 of 2 candidates failed"),
        (ScoresNaN(), 0.1, "scores NaN on validation rows"),
    ],
)
def test_fit__candidates_without_scores_take_no_part(learner, bad, words):
    X, y = table()
    model = NonconformityClassifier(learner, {"C": [bad, 1.0]}, random_state=0)
    with pytest.warns(FitFailedWarning, match=words):
        model.fit(X, y)
    assert list(model.failures_) == [0]
    assert (model.n_candidates_, model.params_) == (2, [{"C": 1.0}])
    model.set_params(param_grid={"C": [bad, bad / 2]})
    with pytest.raises(AllFitsFailedError, match="2 of 2 candidates failed"):
        model.fit(X, y)


MASKED = np.ma.masked_array(np.arange(240) % 2, mask=np.arange(240) == 4)
REFUSED = [
    (SVC(), {"validation_size": 0.2}, None, "`validation_size` must be"),
    (SVC(), {}, np.zeros(240), "at least two classes"),
    (SVC(), {}, MASKED, "row 4 is masked"),
    (SVC(), {}, MASKED.astype(float).filled(np.nan), "row 4 is nan"),
    (NearestCentroid(), {"param_grid": {"metric": ["manhattan"]}}, None,
     "has no real-valued scores|decision_function"),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "options", "labels", "words"), REFUSED)
def test_fit__refuses(estimator, options, labels, words):
    X, y = table()
    model = NonconformityClassifier(estimator, **{"param_grid": GRID} | options)
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(X, y if labels is None else labels)


CALLS = [
    (lambda model, X: model.certify(X, MASKED[:240]), "row 4 is masked"),
    (lambda model, X: model.certify(X, [0, 1, 1]), "label for each of the 240 rows"),
    (
        lambda model, X: model.certify(X, np.ones(240)),
        "140 of 240 rows equal rows that it got.*`fit`.*allow_equal_rows=True",
    ),
    (lambda model, X: model.certify(X[139:], np.ones(101)), "1 of 101 rows equal"),
    (
        lambda model, X: model.certify(X.astype(np.float32)[139:], np.ones(101)),
        "1 of 101",
    ),
    (lambda model, X: model.certify(csr_array(X[139:]), np.ones(101)), "1 of 101"),
    (lambda model, X: model.predict_pool(X[:, :4], "none"), "4 columns but `X` has 5"),
    (lambda model, X: model.p_values(X, model=6), "`model` must be in"),
    (lambda model, X: model.predict_set(X, 1.5), "`epsilon` must be strictly"),
]


def test_methods__refuse():
    model, X, _ = fitted()
    for call, words in CALLS:
        with pytest.raises(ValueError, match=words):
            call(model, X)


def test_certify__does_not_count_on_rows_that_fit_got():
    model, X, y = fitted()
    wrong = (model.predict(X) != y).astype(int)
    for rows in (slice(100, 240), slice(140, 240), slice(0, 140)):
        found = model.certify(X[rows], y[rows], allow_equal_rows=True)
        errors, equal = wrong[rows], np.arange(240)[rows] < 140
        expected = holdout_bound(
            errors.sum(), (errors | ~equal).sum(), delta=found.delta
        )
        assert found.certified
        assert found.n_duplicates == equal.sum()
        assert found.unclipped == pytest.approx(float(expected))
    assert found.unclipped == 1.0  # of rows that fit got alone nothing is known
    assert "140 of 140 rows equal rows that the model was fitted to" in str(found)
    fresh = model.certify(X[140:], y[140:])
    assert fresh == model.certify(X[140:], y[140:], allow_equal_rows=True)


def test_certify__knows_rows_of_fit_in_any_type_of_numbers():
    X, y = table()
    single, whole = X.astype(np.float32), np.rint(10 * X).astype(int)
    for fit_rows, rows in ((single, X), (whole, whole.astype(np.float32))):
        model = NonconformityClassifier(SVC(), GRID, random_state=3)
        model.fit(fit_rows[:140], y[:140])
        with pytest.raises(ValueError, match="of 30 rows equal rows that it got"):
            model.certify(rows[110:140], y[110:140])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_predict_set__of_a_fixed_model_covers_what_it_says(epsilon):
    missed, n_draws, n_test = 0, 60, 100
    for draw in range(n_draws):
        X, y = table(n=n_test + 150, seed=draw, flip=0.3)
        model = NonconformityClassifier(
            LogisticRegression(), {"C": [1.0]}, validation_size=50, random_state=draw
        ).fit(X[:150], y[:150])
        region = model.predict_set(X[150:], epsilon, model=0)
        missed += (~region[np.arange(n_test), y[150:]]).sum()
    # Draws share a validation part for 100 rows each: allow for its variance.
    allowed = epsilon + 3 * np.sqrt(epsilon / (50 * n_draws))
    assert missed / (n_draws * n_test) <= allowed


@pytest.mark.parametrize("kind", ["array", "zarr", "sparse", "filtered"])
def test_predict_pool__writes_what_predict_says(tmp_path, kind):
    X, y = table()
    X[np.abs(X) < 0.7] = 0.0
    make = csr_array if kind == "sparse" else np.asarray
    model = NonconformityClassifier(SVC(), GRID, random_state=3)
    model.fit(make(X[:140]), y[:140])
    pool, left = X, np.arange(240)
    if kind == "zarr":
        pool = zarr.create_array(tmp_path / "pool.zarr", data=X, chunks=(37, 5))
    elif kind == "sparse":
        pool = tmp_path / "pool.npz"
        save_npz(pool, csr_matrix(X))
    elif kind == "filtered":
        pool, left = open_pool(X).excluding([0, 5]), np.delete(left, [0, 5])
    model.predict_pool(pool, tmp_path / "answers.zarr")
    answers = zarr.open_group(tmp_path / "answers.zarr", mode="r")
    expected = {
        "label": np.searchsorted(model.classes_, model.predict(make(X))),
        "model": model.chosen_model(make(X)),
        "critical_count": np.rint(28 * model.critical_epsilon(make(X))),
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(answers[name][:][left], values[left])
        assert (np.delete(answers[name][:], left) == -1).all()
    with pytest.raises(FileExistsError, match="choose another one"):
        model.predict_pool(pool, tmp_path / "answers.zarr")


def test_fit__unknown_labels_of_the_split_part_conform_least():
    X, y = table(3, n=60)
    model = NonconformityClassifier(
        KNeighborsClassifier(), {"n_neighbors": [3]}, validation_size=50, random_state=0
    )
    y[holdout_split(60, 50, seed=0).train_rows] = [0, 1] * 5
    model.fit(X, y)
    assert np.isneginf(model.validation_scores_).any()
    assert not (model.predict(X) == 2).any()


@pytest.mark.cluster
def test_nonconformity_classifier__answers_alike_on_a_cluster(tmp_path, processes):
    local, X, y = fitted()
    remote = clone(local).fit(X[:140], y[:140], client=processes)
    remote.predict_pool(X, tmp_path / "answers.zarr", client=processes)
    labels = zarr.open_group(tmp_path / "answers.zarr", mode="r")["label"][:]
    np.testing.assert_array_equal(remote.validation_scores_, local.validation_scores_)
    np.testing.assert_array_equal(local.classes_[labels], local.predict(X))


def test_fit__sums_entries_of_one_place():
    X, y = make_classification(200, random_state=0)
    X[np.abs(X) < 0.4] = 0.0
    model = NonconformityClassifier(KNeighborsClassifier(), {"n_neighbors": [5, 9]})
    model.set_params(random_state=0)
    few = csr_matrix(X[:100]), in_two_entries(X[:100])
    once, twice = (clone(model).fit(rows, y[:100]) for rows in few)
    fresh = in_two_entries(X[100:])
    np.testing.assert_array_equal(twice.predict(fresh), once.predict(X[100:]))
    np.testing.assert_array_equal(twice.p_values(fresh), once.p_values(X[100:]))
