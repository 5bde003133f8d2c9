"""What a pickle holds: models and counts, and no labeled row unless it says so."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

import dsel
from dsel.least_squares import LeastSquaresSearch, StreamedLeastSquaresSearch
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

_RNG = np.random.default_rng(0)
X, POOL = _RNG.normal(size=(120, 4)), _RNG.normal(size=(300, 4))
X[:, 3], POOL[:, 3] = np.sign(X[:, 3]), np.sign(POOL[:, 3])
NUMBERS = X @ np.arange(4.0) + 0.1 * _RNG.normal(size=120)
Y = (X[:, 0] > 0).astype(int)
KEYS = np.array([f"patient-{row // 2:03}" for row in range(120)])
CS, ALPHAS = {"C": [0.1, 1.0]}, {"alpha": [0.1, 1.0]}
SEARCH, LOGISTIC = dsel.SemiSupervisedSearchCV, LogisticRegression()


def fit_logistic(X, y):
    return LogisticRegression().fit(X, y)


def rows_in(content):
    """Return how many of the labeled rows stand in these bytes, by their first two."""
    return sum(row[:2].tobytes() in content for row in X)


def joblib_bytes(value):
    stream = io.BytesIO()
    joblib.dump(value, stream)
    return stream.getvalue()


def search(**options):
    return SEARCH(LOGISTIC, CS, random_state=0, **options)


def compare():
    old, new = (LogisticRegression(C=c).fit(X[:20], Y[:20]) for c in (0.1, 1.0))
    return dsel.compare_models(old, new, POOL, n_queries=3, X_seen=X)


WITHOUT_ROWS = {
    "search": lambda: search().fit(X, Y, POOL),
    "search, report and baseline": lambda: search(report=True, report_by=3).fit(
        X, Y, POOL, baseline="largest class"
    ),
    "search in groups": lambda: search().fit(X, Y, groups=KEYS),
    "search with queries": lambda: search(n_queries=5).fit(X, Y, POOL),
    "search by cv_bound": lambda: search(certificate="cv_bound").fit(X, Y, POOL),
    "search of regressors": lambda: SEARCH(Ridge(), ALPHAS, random_state=0).fit(
        X, NUMBERS, POOL
    ),
    "outcome": lambda: dsel.plan_search(LOGISTIC, CS, X, Y, POOL, random_state=0).run(),
    "outcome in groups": lambda: dsel.plan_search(
        LOGISTIC, CS, X, Y, groups=KEYS, random_state=0
    ).run(),
    "certify": lambda: dsel.certify(LOGISTIC, X, Y, POOL, random_state=0),
    "certify a function": lambda: dsel.certify(fit_logistic, X, Y, POOL),
    "certify a nameless function": lambda: dsel.certify(
        lambda X, y: LogisticRegression().fit(X, y), X, Y, POOL
    ),
    "certify prefit": lambda: dsel.certify(
        LogisticRegression().fit(X[:20], Y[:20]), X[20:], Y[20:], cv="prefit"
    ),
    "comparison": compare,
    "covalidate": lambda: dsel.covalidate(LOGISTIC, CS, X, Y, POOL, repeats=2),
    "contrastive LDA": lambda: SemiSupervisedLDA().fit(X, Y, POOL),
    "nonconformity": lambda: NonconformityClassifier(LOGISTIC, CS, random_state=0).fit(
        X, Y
    ),
}
WITH_ROWS = {  # the docstrings of these say so
    "plan": lambda: dsel.plan_search(LOGISTIC, CS, X, Y, POOL, random_state=0),
    "support vectors": lambda: SEARCH(SVC(), CS, random_state=0).fit(X, Y, POOL),
    "centers": lambda: LeastSquaresSearch([1.0], [0.1]).fit(X, NUMBERS),
    "some centers": lambda: StreamedLeastSquaresSearch([1.0], [0.1], n_centers=10).fit(
        X, NUMBERS
    ),
}


@pytest.mark.parametrize("made", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS)
def test_pickle__has_no_labeled_row(made):
    value = made()
    for content in (pickle.dumps(value), joblib_bytes(value)):
        assert rows_in(content) == 0
        assert b"patient-" not in content


@pytest.mark.parametrize("made", WITH_ROWS.values(), ids=WITH_ROWS)
def test_pickle__has_rows_where_the_class_says_so(made):
    assert rows_in(pickle.dumps(made())) > 0


def test_pickle__of_a_stored_outcome_has_no_labeled_row(tmp_path):
    def run():
        plan = dsel.plan_search(LOGISTIC, CS, X, Y, POOL, random_state=0)
        return plan.run(out=tmp_path / "out")

    first, again = run(), run()
    opened = dsel.open_outcome(tmp_path / "out")
    dsel.save_results(first.results, tmp_path / "cube")
    for outcome in (first, again, opened):
        assert rows_in(pickle.dumps(outcome)) == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not any(rows_in(path.read_bytes()) for path in files)


def read_back(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, read_back])
def test_copy__predicts_and_monitors_as_before(copied):
    outcome = dsel.plan_search(LOGISTIC, CS, X, Y, POOL, random_state=0).run()
    other = copied(outcome)
    assert other.choice == outcome.choice
    assert (
        other.bounded_models["one_fold"].model.C
        == outcome.bounded_models["one_fold"].model.C
    )
    assert (other.predict(POOL) == outcome.predict(POOL)).all()
    with pytest.raises(ValueError, match=r"3 columns, but .* 4"):
        other.predict(POOL[:, :3])
    rows, disagreement, *_ = other.monitor(POOL).tests
    assert (rows.result, disagreement.result) == ("cannot be tested", "kept")
    assert rows.reason == (
        "the outcome has no labeled rows; pass the X of the search as `labeled`"
    )
    assert other.monitor(POOL, labeled=X) == outcome.monitor(POOL)
    with pytest.raises(ValueError, match="but 1 of the passed rows are not among them"):
        other.monitor(POOL, labeled=np.concatenate([X[1:], POOL[:1]]))


def test_pickle__without_models_says_why(tmp_path):
    plan = dsel.plan_search(LOGISTIC, CS, X, Y, random_state=0)
    plan.run(out=tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.skops"):
        path.unlink()
    opened = pickle.loads(pickle.dumps(dsel.open_outcome(tmp_path / "out")))
    assert opened.certificate.certified
    with pytest.raises(RuntimeError, match="has no models: "):
        opened.predict(X)
