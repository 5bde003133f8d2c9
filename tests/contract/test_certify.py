"""One verb for whatever selects a model, and for a model that is fitted already."""

import inspect
import json
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.results import Choice, PrefitCertificate, save_model

pytestmark = pytest.mark.contract

ROWS, LABELS = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(LABELS))
ROWS, LABELS = ROWS[ORDER], LABELS[ORDER]
X, Y, POOL = ROWS[:200], LABELS[:200], ROWS[200:1000]
NEW_X, NEW_Y = ROWS[1000:], LABELS[1000:]
GRID = {"max_depth": [2, 4, 6, 8]}
SEARCH = GridSearchCV(DecisionTreeClassifier(random_state=0), GRID, cv=3)
FITTED = SVC().fit(X, Y)


def prefit(model=FITTED, rows=NEW_X, labels=NEW_Y, **options):
    return dsel.certify(model, rows, labels, cv="prefit", **options)


def test_certify__is_what_certify_selection_was():
    options = {"cv": 3, "random_state": 0}
    new = dsel.certify(SEARCH, X, Y, POOL, **options)
    with pytest.warns(FutureWarning, match="now called `certify`"):
        old = dsel.certify_selection(SEARCH, X, Y, POOL, **options)
    assert new.choice == old.choice


@pytest.mark.parametrize("deploy", ["one_fold", "all_rows"])
def test_certify__names_the_deployed_model_if_the_other_one_has_a_bound(deploy):
    rows, labels = make_classification(
        2300, 5, weights=[0.98], flip_y=0.05, random_state=0
    )
    outcome = dsel.certify(
        DecisionTreeClassifier(random_state=0), rows[:300], labels[:300], rows[300:],
        loss=dsel.losses.recall(1), deploy=deploy, random_state=0,
    )  # fmt: skip
    bounds = outcome.certificates
    assert bounds["all_rows"].says_nothing
    assert not bounds["one_fold"].says_nothing
    line = "Deployed  the first model (the second with deploy='one_fold')"
    assert (line in str(outcome).splitlines()) == (deploy == "all_rows")


def test_certify__names_what_the_search_has_chosen():
    outcome = dsel.certify(SEARCH, X, Y, POOL, cv=3, random_state=0)
    depth = outcome.model.best_params_["max_depth"]
    of_all = outcome.models["all_rows"].best_params_["max_depth"]
    other = f"; on all labels: max_depth={of_all}" if of_all != depth else ""
    line = f"Chosen    max_depth={depth} (by GridSearchCV{other})"
    assert line in str(outcome).splitlines()
    assert "\nDeployed  the first model (" in str(outcome)
    assert outcome.choice.params == {"max_depth": depth}
    chosen = [params["max_depth"] for params in outcome.choice.fold_params]
    assert len(chosen) == 3
    assert set(chosen) <= set(GRID["max_depth"])
    assert f"max_depth={chosen[0]} (" in outcome.choice.choices_of_folds


def test_certify__names_the_choice_of_a_function_and_of_a_single_model():
    outcome = dsel.certify(lambda X, y: SEARCH.fit(X, y), X, Y, cv=3, random_state=0)
    assert "(by GridSearchCV)" in str(outcome)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    outcome = dsel.certify(pipeline, X, Y, cv=3, random_state=0)
    assert "\nChosen    Pipeline, as it is\n" in str(outcome)
    kind = outcome.results.attrs["fold_error_kind"]
    assert kind == "the model trained without this fold"


def test_certify__what_was_chosen_is_kept_with_the_results(tmp_path):
    def run():
        return dsel.certify(SEARCH, X, Y, cv=3, random_state=0, out=tmp_path)

    first = run()
    assert run().choice == first.choice
    assert dsel.select(dsel.open_results(tmp_path)) == first.choice
    assert Choice.from_json(first.choice.to_json()) == first.choice


def test_certify__says_that_a_fitted_model_is_fitted_anew(tmp_path):
    def certified(model):
        return dsel.certify(model, X, Y, cv=3, random_state=0, out=tmp_path)

    outcome = certified(SVC().fit(X, Y))
    [note] = [line for line in str(outcome).splitlines() if line.startswith("Cavea")]
    assert "SVC was fitted already" in note
    assert "cv='prefit'" in note
    assert certified(SVC().fit(X, Y)).choice == outcome.choice
    for model in (SVC(), lambda X, y: SVC().fit(X, y)):
        outcome = dsel.certify(model, X, Y, cv=3, random_state=0)
        assert "fitted already" not in str(outcome)


def test_certify__says_what_is_bounded_where_a_search_ranks_by_something_else():
    X, y = make_classification(100, 5, random_state=0)
    for scoring, loss, is_named in (
        ("f1", None, True), ("accuracy", None, False), ("f1", "recall:1", False),
    ):  # fmt: skip
        search = GridSearchCV(SVC(), {"C": [1]}, scoring=scoring)
        outcome = dsel.certify(search, X, y, loss=loss or "error", random_state=0)
        text = " ".join(str(outcome.choice).split())
        words = "GridSearchCV ranks by scoring='f1', and the bound is about the error"
        assert (words in text) is is_named
        assert ("loss='balanced'" in text) is is_named
    plain = GridSearchCV(SVC(), {"C": [1]})
    balanced = GridSearchCV(SVC(), {"C": [1]}, scoring="balanced_accuracy")
    for search, loss, is_named in (
        (plain, "recall:1", True), (plain, "error", False),
        (balanced, "recall:1", False), (SVC(), "recall:1", False),
    ):  # fmt: skip
        text = str(dsel.certify(search, X, y, loss=loss, random_state=0).choice)
        words = "GridSearchCV ranks by the accuracy, and the bound is about the misses"
        assert (words in " ".join(text.split())) is is_named


def test_plan__names_every_search_that_ranks_by_something_else_than_is_bounded():
    X, y = make_classification(60, 5, random_state=0)

    def notes(loss, *searches):
        grid = [{"model": [search]} for search in searches]
        steps = Pipeline([("model", SVC())])
        plan = dsel.plan_search(steps, grid, X, y, loss=loss, random_state=0)
        return [note for note in plan.remarks if " ranks by " in note]

    def search(scoring):
        return GridSearchCV(SVC(), {"C": [1]}, scoring=scoring)

    for loss, scoring, what in (
        ("recall:1", "roc_auc", "misses of 1"), ("balanced", "f1", "balanced error"),
        ("balanced", "precision", "balanced error"), ("recall:1", "recall", ""),
        ("recall:1", "precision", "misses of 1"), ("balanced", "recall_macro", ""),
        ("precision:1", "precision", ""), ("balanced", "balanced_accuracy", ""),
        ("precision:1", "roc_auc", "false among predictions 1"),
        ("cost:0>1=2,1>0=1", "roc_auc", "mean cost"),
        ("recall:1", make_scorer(f1_score), ""),
    ):  # fmt: skip
        found = notes(loss, SVC(), search(scoring))  # the second candidate
        assert len(found) == bool(what), (loss, scoring, found)
        if what:
            begin = f"GridSearchCV ranks by scoring={scoring!r}, and the bound is about"
            assert found[0].startswith(f"{begin} the {what}")
    several = notes("error", search("f1"), search("accuracy"), search("roc_auc"))
    assert [note.split(",")[0] for note in several] == [
        "GridSearchCV ranks by scoring='f1'",
        "GridSearchCV ranks by scoring='roc_auc'",
    ]


def test_certify__of_texts_names_the_type_that_histogram_boosting_takes():
    frame = pd.DataFrame({"a": np.arange(100.0), "device": ["web", "app"] * 50})
    model, y = HistGradientBoostingClassifier(max_iter=3), np.arange(100) > 49
    with pytest.raises(TypeError, match="takes categories only; pass columns of this"):
        dsel.certify(model, frame, y, random_state=0)
    ready = frame.astype({"device": "category"})
    assert dsel.certify(model, ready, y, random_state=0).certificate.certified
    # A column of two values is no identifier, whatever its name.
    with pytest.raises(TypeError, match="put an encoder in front of it"):
        dsel.certify(LogisticRegression(), frame, y, random_state=0)


def test_certify__names_encoders_of_all_columns_which_run_as_printed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "km": rng.normal(size=120)})
    frame = frame.assign(claim=[f"c{n}" for n in range(120)])
    frame["region"] = rng.choice(["north", "south"], 120)
    frame["day"] = pd.date_range("2024-01-01", periods=120)
    frame.loc[[3, 5], "km"], y = np.nan, np.where(frame["x"] > 0, "a", "b")
    with pytest.raises(ValueError, match="column 'km' is NaN") as found:
        dsel.certify(LogisticRegression(), frame, y, random_state=0)
    line, _, rest = str(found.value).partition(" write ")[2].partition(", and the same")
    assert line == "X = X.drop(columns=['claim'])"
    assert "('claim' has another value in nearly every row" in rest
    code = rest.partition(" in front of it, ")[2].partition(" (rows")[0]
    scope = {"X": frame, "make_pipeline": make_pipeline, "dsel": dsel}
    exec(line, scope | {"estimator": LogisticRegression()}, scope)
    model = eval(code, scope | {"estimator": LogisticRegression()})  # noqa: S307
    outcome = dsel.certify(model, scope["X"], y, random_state=0)
    assert outcome.certificate.bound < 0.5
    names = [names for _, _, names in model[0].transformers]
    assert names == [["x", "km"], ["day"], ["region"]]


def test_certify__refuses_labels_that_differ_by_case_only():
    X, y = make_classification(100, 5, random_state=0)
    words = np.array(["no", "yes", "Yes"])[y + (np.arange(100) % 9 == 0) * y]
    for labels in (words, pd.Series(words, dtype="category"), words.tolist()):
        with pytest.raises(ValueError, match="'Yes' and 'yes' differ by blanks") as e:
            dsel.certify(SVC(), X, labels, random_state=0)
    line = str(e.value).partition("everywhere: ")[2]
    scope = {"pandas": pd, "y": words}
    exec(line, scope)
    assert {*scope["y"]} == {"no", "yes"}
    assert dsel.certify(SVC(), X, scope["y"], random_state=0).certificates


def test_certify__shows_all_options_and_explains_unknown_ones():
    shown = inspect.signature(dsel.certify).parameters
    assert shown["delta"].default == 0.05
    assert shown["out"].kind is inspect.Parameter.KEYWORD_ONLY
    assert all(each.kind is not each.VAR_KEYWORD for each in shown.values())
    with pytest.raises(TypeError, match=r"no argument `pools`.*did you mean 'pool'\?"):
        dsel.certify(SVC(), X, Y, pools=POOL)


def test_certify__says_why_a_pool_of_the_labeled_rows_gives_no_bound():
    for pool in (X, np.vstack([X, X])):
        text = str(dsel.certify(SVC(), X, Y, pool, cv=3, random_state=0))
        assert (
            "No bound below 100% for the error: no new rows in the pool, model" in text
        )
        assert f"Caveat    all {len(pool)} pool rows equal labeled rows" in text
        assert text.count("equal labeled rows") == 1


def test_certify_prefit__has_the_names_of_an_outcome():
    made = prefit()
    assert made.certificate is made
    assert str(made.choice) == str(made)
    assert dict(made.certificates) == {"as_given": made}


def test_certify_prefit__is_the_exact_binomial_limit():
    certificate = prefit(delta=0.1)
    n_errors, n_rows = int((FITTED.predict(NEW_X) != NEW_Y).sum()), len(NEW_Y)
    assert certificate.estimate == n_errors / n_rows
    exact = beta.ppf(0.9, n_errors + 1, n_rows - n_errors)
    assert certificate.bound == pytest.approx(exact, abs=1e-9)
    assert certificate.certified


def test_certify_prefit__says_what_it_is_about():
    lines = str(prefit()).splitlines()
    assert lines[0].endswith(
        "% (95% confidence, if the model has not seen these 797 rows), model as given"
    )
    assert lines[1].startswith("Estimate  error about ")
    names = [line.rpartition("(")[2] for line in lines[2:]]
    assert names == ["A1)", "A3)", "A5)", "A7)"]
    assert "the model has not seen these rows" in lines[3]


def test_certify_prefit__fits_nothing():
    before = FITTED.support_vectors_.copy()
    prefit()
    np.testing.assert_array_equal(FITTED.support_vectors_, before)


def test_certify_prefit__takes_losses_by_class():
    certificate = prefit(loss=dsel.losses.recall(8))
    is_eight = NEW_Y == 8
    missed = int((FITTED.predict(NEW_X)[is_eight] != 8).sum())
    exact = beta.ppf(0.95, missed + 1, is_eight.sum() - missed)
    assert certificate.bound == pytest.approx(exact, abs=1e-9)
    assert certificate.headline().startswith("Misses of 8 at most ")


def test_certify_prefit__takes_costs():
    rows, labels = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(rows[::2], labels[::2])
    loss = dsel.losses.cost({(0, 1): 20, (1, 0): 1})
    certificate = prefit(model, rows[1::2], labels[1::2], loss=loss)
    assert certificate.estimate < certificate.bound < 20
    assert "%" not in certificate.headline().partition("(")[0]


class Counting(SVC):
    """Notes how many rows each call of `predict` has."""

    def predict(self, rows):
        self.calls_ = [*getattr(self, "calls_", []), len(rows)]
        return super().predict(rows)


def test_certify_prefit__has_limits_by_value_and_a_report():
    ward = np.arange(len(NEW_Y)) % 3 == 0
    model = Counting().fit(np.column_stack([X, np.zeros(len(X))]), Y)
    rows = np.column_stack([NEW_X, ward])
    certificate = prefit(model, rows, report=[8], report_by=64)
    assert model.calls_ == [len(NEW_Y)]  # predicted once for all of it
    wrong = model.predict(rows) != NEW_Y
    table = certificate.report_by_value().to_dataframe()
    for value, (_, limit, n_rows, _) in table.iterrows():
        mine = wrong[ward == value]
        assert n_rows == len(mine)
        share = 1 - 0.05 / 2 / 2  # half for the values, of which there are two
        exact = beta.ppf(share, mine.sum() + 1, (~mine).sum())
        assert limit == pytest.approx(exact, abs=1e-9)
    # The other half is for three numbers: error, recall and precision.
    exact = beta.ppf(1 - 0.05 / 2 / 3, wrong.sum() + 1, (~wrong).sum())
    assert certificate.bound == pytest.approx(exact, abs=1e-9)
    assert certificate.certified_report().error_at_most == certificate.bound
    assert "model as given, if it has not seen these 797 rows" in str(
        certificate.report_by_value()
    )
    assert PrefitCertificate.from_json(certificate.to_json()) == certificate


def test_certify_prefit__has_tolerances_by_value_in_groups():
    frame = pd.DataFrame(X).add_prefix("x").assign(ward=np.where(Y > 4, "a", "b"))
    new = pd.DataFrame(NEW_X).add_prefix("x").assign(ward="a")
    new.loc[::3, "ward"] = "b"
    features = make_column_transformer(("drop", ["ward"]), remainder="passthrough")
    model = make_pipeline(features, LinearRegression()).fit(frame, Y)
    certificate = prefit(
        model, new, NEW_Y, report=True, report_by="ward", groups=np.arange(797) // 2
    )
    assert certificate.n_groups == 399
    report = certificate.report_by_value()
    assert sum(report.rows) == 399
    assert list(report.to_dataframe())[1] == "off_by_at_most"
    assert "on a random row of a new group" in report.headline()
    assert max(report.limits) < np.inf
    shares = certificate.certified_report().to_dataframe().off_by_at_most
    assert shares[0.9] == certificate.bound
    with pytest.raises(ValueError, match="report_by='site'"):
        prefit().report_by_value()
    with pytest.raises(ValueError, match="report=True"):
        prefit().certified_report()


def test_certify_prefit__predictions_of_no_class_are_errors():
    class Odd:
        def predict(self, rows):
            return np.full(len(rows), "none of them")

    labels = np.array(["a", "b"])[NEW_Y % 2]
    certificate = prefit(Odd(), labels=labels)
    assert certificate.bound == 1.0
    assert certificate.headline().startswith(
        "No bound below 100% for the error: no prediction was right"
    )


def test_certify_prefit__takes_frames_and_kept_models(tmp_path):
    frame = pd.DataFrame(X).add_prefix("x")
    model = SVC().fit(frame, Y)
    wanted = prefit(model, pd.DataFrame(NEW_X).add_prefix("x")).to_json()
    save_model(model, tmp_path / "model")
    found = prefit(tmp_path / "model", pd.DataFrame(NEW_X).add_prefix("x"))
    assert found.to_json() == wanted
    assert found.bound == prefit().bound


def test_certify_prefit__mentions_duplicates_among_the_rows():
    assert not prefit().remarks
    again = np.arange(len(NEW_Y) + 100) % len(NEW_Y)
    [remark] = prefit(rows=NEW_X[again], labels=NEW_Y[again]).remarks
    assert remark.startswith("100 of 897 rows are duplicates of another row")


def test_certify_prefit__is_kept_as_json():
    certificate = prefit()
    text = certificate.to_json()
    assert json.loads(text)["kind"] == "PrefitCertificate"
    assert PrefitCertificate.from_json(text) == certificate


class Masked(DecisionTreeClassifier):
    """A tree that masks one of its predictions."""

    def predict(self, X):
        predicted = super().predict(X)
        return np.ma.masked_array(predicted, np.arange(len(predicted)) == 0)


REFUSED = [
    (
        lambda: prefit(KMeans(2, n_init=1).fit(X)),
        TypeError,
        "`model` must be a classifier or a regressor, got KMeans",
    ),
    (
        lambda: prefit(make_pipeline(GaussianMixture()).fit(X)),
        TypeError,
        "`model` must be a classifier or a regressor, got Pipeline",
    ),
    (lambda: prefit(Masked().fit(X, Y)), ValueError, "`predict` of Masked must"),
    (lambda: prefit(pool=POOL), TypeError, "`pool` cv='prefit' leave it out"),
    (lambda: prefit(deploy="all_rows"), TypeError, "`deploy` cv='prefit'"),
    (lambda: prefit(SVC()), Exception, "SVC not fitted"),
    (
        lambda: prefit(LinearRegression().fit(X, Y), loss=dsel.losses.recall(1)),
        ValueError,
        "`loss` regressors",
    ),
    (lambda: prefit(lambda X, y: FITTED), TypeError, "`model` fitted `predict`"),
    (lambda: prefit(labels=NEW_Y[1:]), ValueError, "`y` 796 797"),
    (lambda: prefit(labels=NEW_Y.astype(str)), TypeError, "`y` `model` convert"),
    (lambda: prefit(loss="f1"), ValueError, "`loss` 'f1'"),
    (lambda: prefit(delta=0.95), ValueError, "`delta` 0.95"),
    (lambda: prefit(report_by=64), ValueError, "`report_by` position 63 64"),
    (lambda: prefit(report=["eight"]), ValueError, "`report` 'eight' classes"),
    (lambda: prefit(n_queries=5), TypeError, "`n_queries` cv='prefit'"),
    (lambda: dsel.certify(FITTED, X, Y, cv="refit"), ValueError, "`cv` 'refit'"),
    (
        lambda: dsel.certify(SVC(), X, Y, cv=StratifiedKFold(3)),
        TypeError,
        "`cv` StratifiedKFold(n_splits=3 random folds write cv=5 `groups`",
    ),
    (lambda: dsel.certify(SVC(), X, Y, alpha=0.1), TypeError, "'alpha' is `delta`"),
    (lambda: dsel.certify(SVC(), X, Y, unlabeled=X), TypeError, "is `pool` here"),
    (lambda: dsel.certify(SVC(), X, Y, n_folds=3), TypeError, "'n_folds' is `cv`"),
    (lambda: dsel.certify(SVC(), X, Y, seed=3), TypeError, "is `random_state` here"),
    (lambda: dsel.certify(SVC(), X, Y, sample_weight=Y), TypeError, "`fit_params`"),
    (lambda: dsel.certify(SVC(), X, Y, scoring="f1"), TypeError, "`scoring` `loss`"),
    (lambda: dsel.certify(3, X, Y), TypeError, "`model` 3 function"),
    (lambda: dsel.certify(X, Y, SVC()), TypeError, "`model` ndarray swap arguments?"),
    (lambda: dsel.certify(SVC, X, Y), TypeError, "`model` class add () SVC()"),
    (lambda: dsel.certify(SVC(), X, Y, grid={}), TypeError, "`certify` `grid` delta"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED)
def test_certify__refuses_in_one_line(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words.split() if word not in message] == []


def test_certify_prefit__takes_the_random_state_that_a_search_takes():
    assert prefit(random_state=3) == prefit()  # without groups nothing is drawn


TOWNS = pd.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 4, "Bonn", "Ulm"),
                      "job": np.where(X[:, 2] > 4, "a", "b")})  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_certify__of_a_search_whose_fits_all_fail_has_the_cause_and_its_column():
    encoder = make_column_transformer(
        (OneHotEncoder(), ["town"]), (FunctionTransformer(), ["age", "job"])
    )
    pipeline = make_pipeline(encoder, SVC())
    for model in (pipeline, GridSearchCV(pipeline, {"svc__C": [1, 2]})):
        with pytest.raises(dsel.errors.AllFitsFailedError) as caught:
            dsel.certify(model, TOWNS, Y, random_state=0)
        text = str(caught.value)
        assert re.fullmatch(
            r"the model cannot be fitted: without fold 0: ValueError: could not "
            r"convert string to float: '[ab]' \(column 'job'\)", text
        )  # fmt: skip


def test_certify__of_text_with_gaps_advises_what_works_on_text():
    gaps = TOWNS.assign(age=TOWNS.age.where(TOWNS.index != 3))
    with pytest.raises(ValueError, match="column 'age' is NaN") as caught:
        dsel.certify(SVC(), gaps, Y)
    advised = (
        "put an encoder in front of it, "
        "make_pipeline(dsel.data.make_encoder(X), estimator) (rows"
    )
    assert advised in str(caught.value)
    model = make_pipeline(dsel.data.make_encoder(gaps), SVC())
    assert dsel.certify(model, gaps, Y, random_state=0).certificate.certified


def test_certify__of_a_search_suggests_the_name_that_was_meant():
    model = Pipeline([("m", SVC())])
    for search, name in (
        (GridSearchCV(SVC(), {"c": [1, 2]}), "C"),
        (RandomizedSearchCV(SVC(), {"c": [1, 2]}), "C"),
        (GridSearchCV(model, [{"m__C": [1]}, {"m__c": [1, 2]}]), "m__C"),
    ):
        words = rf"which SVC lacks.*did you mean '{name}'\?"
        with pytest.raises(ValueError, match=words):
            dsel.certify(search, X, Y)
    with pytest.raises(ValueError, match=r"did you mean 'm__C'\?"):
        dsel.plan_search(model, {"m__c": [1, 2]}, X, Y)
    with pytest.raises(ValueError, match=r"which Pipeline lacks.*mean 'svm__C'\?"):
        dsel.plan_search(Pipeline([("svm", SVC())]), {"svn__C": [1, 2]}, X, Y)
    steps = {"m": [KNeighborsClassifier()], "m__n_neighbors": [1, 3]}
    search = GridSearchCV(Pipeline([("m", SVC())]), steps, cv=2)
    assert dsel.certify(search, X, Y, random_state=0).certificate.certified


@pytest.mark.parametrize("learner", [LogisticRegression(), Ridge()])
def test_certify__keeps_what_a_function_returns_without_a_warning(tmp_path, learner):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3))
    y = rows[:, 0] if isinstance(learner, Ridge) else rows[:, 0] > 0
    with warnings.catch_warnings(action="error", category=dsel.errors.DselWarning):
        made = dsel.certify(
            lambda X, y: clone(learner).fit(X, y), rows, y, out=tmp_path, random_state=0
        )
    kept = dsel.open_outcome(tmp_path)
    assert (kept.predict(rows) == made.predict(rows)).all()


SEARCH_OF_LEAVES = GridSearchCV(
    DecisionTreeClassifier(random_state=0), {"max_leaf_nodes": [4, 8]}, cv=3
)
INSIDE = {
    "pipeline": (
        make_pipeline(StandardScaler(), SEARCH),
        {"max_depth"},
        "GridSearchCV",
    ),
    "two steps": (
        make_pipeline(
            SelectFromModel(
                SEARCH_OF_LEAVES,
                importance_getter="best_estimator_.feature_importances_",
            ),
            SEARCH,
        ),
        {"selectfrommodel__estimator__max_leaf_nodes", "gridsearchcv__max_depth"},
        "Pipeline",
    ),
    "calibrated": (
        CalibratedClassifierCV(SEARCH, ensemble=False, cv=3),
        {"max_depth"},
        "GridSearchCV",
    ),
    "vote": (
        VotingClassifier([("one", SEARCH), ("other", SEARCH)]),
        {"estimators0__max_depth", "estimators1__max_depth"},
        "VotingClassifier",
    ),
}


@pytest.mark.parametrize(
    ("model", "chosen", "name"), INSIDE.values(), ids=INSIDE.keys()
)
def test_certify__names_what_searches_inside_a_model_have_chosen(model, chosen, name):
    outcome = dsel.certify(model, X, Y, cv=3, random_state=0)
    assert set(outcome.choice.params) == chosen
    assert [set(params) for params in outcome.choice.fold_params] == [chosen] * 3
    assert f"(by {name})" in str(outcome)


def cubes(y):
    return y**3


def test_certify__names_what_a_search_for_transformed_targets_has_chosen():
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3)
    model = TransformedTargetRegressor(search, func=np.cbrt, inverse_func=cubes)
    outcome = dsel.certify(model, X, X[:, 0] ** 3, cv=3, random_state=0)
    assert set(outcome.choice.params) == {"alpha"}


def test_certify__keeps_the_place_of_a_fold_whose_fit_failed(recwarn):
    def select(rows, labels):
        if not (rows == X[0]).all(axis=1).any():
            raise ValueError("the first row is missing")
        return SEARCH.fit(rows, labels)

    choice = dsel.certify(select, X, Y, cv=5, random_state=0).choice
    assert len(choice.fold_params) == 5
    [failed] = [fold for fold, params in enumerate(choice.fold_params) if not params]
    assert choice.fold_params[failed] is None
    assert failed != choice.certificates["one_fold"].fold
    assert "of 5 times" in choice.choices_of_folds
    record = json.loads(json.dumps(choice.to_json()))
    assert Choice.from_json(record).fold_params == choice.fold_params


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"C": [0.1, -1]}, "5 of 10 fits failed: The 'C' parameter .*Got -1 instead$"),
        ({"l1_ratio": [0, 1]}, "5 of 10 fits failed: Solver lbfgs supports only"),
    ],
)
def test_certify__says_once_which_fits_of_a_search_failed(grid, words):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3] / 100
    search = GridSearchCV(LogisticRegression(max_iter=1000), grid)
    outcome = dsel.certify(search, X, y, random_state=0)
    (note,) = (each for each in outcome.choice.remarks if "fits failed" in each)
    assert re.search(words, note)
    assert "\n" not in note


@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: lambda X, y: s.fit(X, y)])
def test_certify__says_where_a_search_had_no_score_to_rank_by(wrap):
    labels = np.where(Y > 4, "yes", "no")
    for scoring, ranks in [("f1", False), ("f1_macro", True)]:
        search = GridSearchCV(DecisionTreeClassifier(), GRID, cv=3, scoring=scoring)
        outcome = dsel.certify(wrap(search), X, labels, POOL, random_state=0)
        warned = [str(c) for c in outcome.choice.all_caveats if "has ranked" in str(c)]
        assert outcome.certificate.certified  # of whatever it took
        if ranks:
            assert not warned
            continue
        assert warned[0].startswith(
            "GridSearchCV has ranked no candidate, and took the first one: all of its "
            "scores are NaN; correct scoring='f1', which fails (ValueError: pos_label="
        )
        assert str(outcome).startswith(f"Warning   {warned[0]}")
        assert len(warned) == 1


class SearchWithoutScore(DecisionTreeClassifier):
    """A search of the user's own, whose score raises when it is read."""

    @property
    def best_params_(self):
        return {"max_depth": 3}

    @property
    def best_score_(self):
        raise RuntimeError("no score was kept")


def test_caveat_that_fails__is_named_and_loses_no_fits():
    tree = SearchWithoutScore(max_depth=3, random_state=0)
    outcome = dsel.certify(tree, X, Y, POOL, random_state=0)
    assert outcome.certificate.certified
    assert len(outcome.model.predict(NEW_X)) == len(NEW_X)
    (warned,) = (str(c) for c in outcome.choice.all_caveats if "dsel failed" in str(c))
    assert warned.startswith("`caveats_of_unranked_searches` of dsel failed")
    assert "(RuntimeError: no score was kept)" in warned
    assert f"Warning   {warned}" in str(outcome)


@pytest.mark.parametrize("short", [np.float16, np.float32])
def test_options__of_short_floats_are_the_numbers_that_were_written(short):
    tree = DecisionTreeClassifier(random_state=0)
    made, wanted = (
        dsel.certify(tree, X, Y, delta=delta, random_state=0).choice
        for delta in (short(0.1), 0.1)
    )
    assert made == wanted
    assert " (90% confidence)" in str(made)
    assert dsel.losses.error_quantile(short(0.9)) == dsel.losses.error_quantile(0.9)
    assert dsel.losses.beyond(short(2.1)) == dsel.losses.beyond(2.1)
    costs = [
        dsel.losses.cost({("a", "b"): cost, ("b", "a"): 1})
        for cost in (short(0.3), 0.3)
    ]
    assert costs[0] == costs[1]
    deltas = np.array([0.1, 0.05])
    limits = [
        dsel.bounds.binomial_tail_inversion(3, 100, delta=each)
        for each in (deltas.astype(short), deltas)
    ]
    assert (limits[0] == limits[1]).all()


def test_certify__assumes_that_nothing_was_fitted_to_all_rows_before():
    outcome = dsel.certify(DecisionTreeClassifier(), X, Y, random_state=0)
    assert "rows that it is given: no scaler or selection" in str(outcome.certificate)


def test_out__of_a_run_with_another_loss_names_the_loss_alone(tmp_path):
    model, out = LogisticRegression(), tmp_path / "out"
    dsel.certify(model, X, Y, cv=2, random_state=0, out=out)
    with pytest.raises(dsel.errors.StoreMismatchError) as caught:
        dsel.certify(model, X, Y, cv=2, random_state=0, out=out, loss="balanced")
    found = str(caught.value).partition(" holds another plan: ")[2]
    assert found.startswith("loss is error there and balanced([")
    assert found.endswith(" now; choose another place, one for each plan.")
    assert "candidates" not in found


def test_certify__names_the_columns_that_an_estimator_cannot_take():
    rng = np.random.default_rng(0)
    n = 80
    X = pd.DataFrame({
        "age": rng.normal(size=n), "job": rng.choice(["clerk", "nurse"], n),
        "town": rng.choice(["Bonn", "Ulm"], n), "since": pd.Timestamp("2020-01-01"),
    })  # fmt: skip
    y = X.age > 0
    # One call for all of them, and not one stop after the other.
    way = re.escape("make_pipeline(dsel.data.make_encoder(X), estimator)")
    with pytest.raises(TypeError, match=f"column 'job' holds text.*{way}"):
        dsel.certify(LogisticRegression(), X, y)
    encode = OneHotEncoder(handle_unknown="ignore"), ["town", "job"]
    passing = make_column_transformer(encode, remainder="passthrough")
    words = "column 'since' holds time such as .*, which ColumnTransformer passes on"
    with pytest.raises(TypeError, match=f"{words}; put an encoder.*{way}"):
        dsel.certify(make_pipeline(passing, LogisticRegression()), X, y)
    # What a function does with columns is known only when it runs.
    others = FunctionTransformer(), ["age", "since"]
    model = make_pipeline(make_column_transformer(encode, others), LogisticRegression())
    message = rf"\(column 'since'; put an encoder in front of it, {way}\)"
    with pytest.raises(dsel.errors.AllFitsFailedError, match=message):
        dsel.certify(model, X, y)
    encoded = make_pipeline(dsel.data.make_encoder(X), LogisticRegression())
    assert dsel.certify(encoded, X, y, random_state=0).certificate.bound < 0.5


def test_outcome__names_the_way_to_what_it_does_not_have():
    X, y = make_classification(60, random_state=0)
    outcome = dsel.certify(LogisticRegression(), X, y, random_state=0)
    way = re.escape("print(outcome) has it")
    with pytest.raises(AttributeError, match=f"no attribute 'summary'; {way}"):
        _ = outcome.summary
    with pytest.raises(AttributeError, match=r"it is `choice\.criterion_value` here"):
        _ = outcome.best_score_
    assert 0 <= outcome.choice.criterion_value <= 1


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("fit", "`plan.run()` fits all candidates, and returns the outcome."),
        ("predict", "its outcome has it: `plan.run().predict`."),
        ("choice", "its outcome has it: `plan.run().choice`."),
        (
            "best_score_",
            "its outcome has it: `plan.run().choice.criterion_value`, or "
            "`plan.run().model.best_score_` if that is a search.",
        ),
        ("best_estimator_", "its outcome has it: `plan.run().model`."),
        ("runn", "did you mean 'run'?"),
        ("_private", "."),
    ],
)
def test_plan__names_the_way_to_what_it_does_not_have(name, way):
    X, y = make_classification(60, random_state=0)
    plan = dsel.plan_search(LogisticRegression(), {"C": [1.0]}, X, y, random_state=0)
    with pytest.raises(AttributeError) as caught:
        getattr(plan, name)
    start = f"a plan has no attribute {name!r}"
    assert str(caught.value) == (f"{start}{way}" if way == "." else f"{start}; {way}")
    if "plan.run" in way:
        code = way.partition("`")[2].partition("`")[0]
        eval(code, {"plan": plan})  # noqa: S307
    assert not hasattr(plan, name)
    assert str(pickle.loads(pickle.dumps(plan))) == str(plan)


def test_outcome_save__is_opened_with_models_and_never_replaces_another(tmp_path):
    X, y = make_classification(100, random_state=0)
    first, second = (
        dsel.certify(LogisticRegression(), X, y, random_state=seed) for seed in (0, 1)
    )
    first.save(tmp_path / "saved")
    first.save(tmp_path / "saved")  # the same once more
    again = dsel.open_outcome(tmp_path / "saved")
    assert str(again) == str(first)
    assert (again.predict(X) == first.predict(X)).all()
    again.save(tmp_path / "copy")  # without its labeled rows
    copy = dsel.open_outcome(tmp_path / "copy")
    assert copy.choice == first.choice
    assert not copy.monitor(X + 0.5, labeled=X).tests[0].result.startswith("no")
    with pytest.raises(ValueError, match=r"`out`.*another outcome"):
        second.save(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"`out`.* holds .*outcome"):
        dsel.certify(LogisticRegression(), X, y, random_state=0, out=tmp_path / "saved")
    dsel.certify(LogisticRegression(), X, y, random_state=0, out=tmp_path / "run")
    with pytest.raises(ValueError, match="`out`"):
        first.save(tmp_path / "run")


@pytest.mark.parametrize("other", ["rows", "labels", "parameters"])
def test_outcome_save__outcomes_with_equal_counts_are_no_equal_outcomes(
    other, tmp_path
):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] > 0
    learner = DecisionTreeClassifier(max_depth=1, random_state=0)
    changed = {
        "rows": (learner, X + 10, y),
        "labels": (learner, X, ~y),
        "parameters": (clone(learner).set_params(criterion="entropy"), X, y),
    }
    one = dsel.certify(learner, X, y, random_state=0)
    two = dsel.certify(*changed[other], random_state=0)
    assert one.choice.bound == two.choice.bound
    one.save(tmp_path / "one")
    with pytest.raises(ValueError, match=r"`out`.*holds"):
        two.save(tmp_path / "one")
    opened = dsel.open_outcome(tmp_path / "one")
    opened.save(tmp_path / "one")  # it is there already
    one.save(tmp_path / "one")
    pickle.loads(pickle.dumps(one)).save(tmp_path / "one")
    opened.save(tmp_path / "copy")
    one.save(tmp_path / "copy")
    with pytest.raises(ValueError, match=r"`out`.*holds"):
        two.save(tmp_path / "copy")
    assert (opened.predict(X) == y).mean() > 0.9


def test_certify__does_not_take_the_default_of_scoring_for_another_criterion():
    class Ranks(LogisticRegression):
        """A learner with inner folds, whose default is a sentinel of scikit-learn."""

        cv, scoring = 3, "warn"

    X, y = make_classification(60, random_state=0)
    assert "ranks by" not in str(dsel.certify(Ranks(), X, y, random_state=0))


@pytest.mark.parametrize(
    ("svc", "values", "seed"),
    [
        (SVC(), [-1, 0, 1], 0),
        (SVC(C=100, tol=1e-8), [-2, -1, 0, 1, 2], 6),
        (SVC(C=100, tol=1e-8), [-1, 0, 1], 0),
    ],
)
def test_certify__counts_what_the_deployed_svc_predicts_where_classes_are_tied(
    svc, values, seed
):
    # In the middle a decision value is zero but for rounding: which label a model
    # predicts there, for a fifth of all rows or more, is what libsvm makes of it.
    rng = np.random.default_rng(seed)
    atoms = np.array(values, float)[:, np.newaxis]
    rows = rng.integers(len(atoms), size=100)
    share = (atoms[rows, 0] / 2 / max(values) + 0.5).clip(0, 1)
    y = (rng.random(100) < share).astype(int)
    pool = atoms[rng.integers(len(atoms), size=300)]
    outcome = dsel.certify(svc, atoms[rows], y, pool, random_state=seed)
    one, every = (outcome.models[name].predict(pool) for name in outcome.models)
    fold = outcome.bounded_models["one_fold"].fold
    counted = outcome.results.outer_disagreements.to_numpy().ravel()[fold]
    assert counted == (one != every).sum()
