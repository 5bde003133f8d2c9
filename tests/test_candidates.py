"""Candidates are what the grid says, each with estimators and a key of its own."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.candidates import candidate_key, candidate_texts, make_candidates
from dsel.data.identity import exact_text
from dsel.errors import GuaranteeWarning
from dsel.families.family import Candidate
from dsel.nonconformity import NonconformityClassifier
from dsel.search import predict_pool, read_rows

LONG = np.arange(5000.0)
TWO = ([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        (True, 1),
        (None, "None"),
        (["a", "b"], ["a', 'b"]),
        (LONG, LONG + (LONG == 2500)),
        (SVC(C=1), SVC(C=2)),
        (SVC(), DecisionTreeClassifier()),
        (make_pipeline(StandardScaler(), SVC()), make_pipeline(SVC())),
        (make_pipeline(SVC(C=1)), make_pipeline(SVC(C=2))),
        (slice(0, 1), slice(0, 2)),
        (partial(np.add, 1), partial(np.add, 2)),
        (lambda x: x, lambda x: -x),
        (pd.Series([1.0, 2.0]), pd.Series([1.0, 3.0])),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
        (np.datetime64(5, "ns"), 5),
        (np.random.RandomState(1), np.random.RandomState(2)),
        (FrozenEstimator(SVC().fit(*TWO)), FrozenEstimator(SVC(C=9).fit(*TWO))),
        (StandardScaler(), StandardScaler().set_output(transform="pandas")),
    ],
)
def test_exact_text__differs_where_anything_does(one, other):
    assert exact_text(one) != exact_text(other)


def test_exact_text__does_not_depend_on_how_a_value_was_written():
    assert exact_text({"a": np.float64(0.5), "b": 1}) == exact_text({"b": 1, "a": 0.5})
    assert exact_text(SVC(C=np.int64(2))) == exact_text(SVC(C=2))


def key_of(family, estimator, **params):
    one = Candidate(0, params, estimator)
    return candidate_key(family, one, candidate_texts([one])[0])


def test_candidate_key__differs_by_family_kind_and_values():
    made = [(SVC(C=1.0), 1.0), (SVC(C=2.0), 2.0), (LinearSVC(C=1.0), 1.0)]
    keys = {key_of(family, each, C=C) for family in "ab" for each, C in made}
    assert len(keys) == 6


SCRIPT = """
import numpy as np
from sklearn.base import BaseEstimator
from dsel.data.identity import exact_text
NAMES = {"a", "b", "c", "d"}
def helper(x):
    return own(x) if x in {"u", "v", "w"} else len(NAMES)
def own(x):
    return helper(x) + 1
class Own(BaseEstimator):
    def __init__(self, function=own):
        super().__init__()
        self.function = function
    def fit(self, X, y):
        return Own(lambda x: x + STEP)
print(exact_text([Own(), own, np.random.default_rng(3)]))
"""


def text_of(script, seed="1", **changed):
    """Return what a script prints in a process of its own."""
    environment = os.environ | {"PYTHONHASHSEED": seed, **changed}
    return subprocess.check_output(
        [sys.executable, "-c", script], text=True, env=environment
    ).strip()


def test_exact_text__of_own_code_is_the_same_wherever_it_stands():
    script = SCRIPT.replace("STEP", "1")
    text = text_of(script)
    assert text == text_of("\n\n# moved\n" + script, "2")
    assert text != text_of(SCRIPT.replace("STEP", "2"))


def test_exact_text__changes_with_a_module_of_ones_own(tmp_path):
    script = (
        "from dsel.data.identity import exact_text; import own_module as m; "
        "print(exact_text([m.function, m.Class()]))"
    )
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    changed = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    found = set()
    for by in (1, 2, 1):
        source = f"def function(x):\n    return {by} * x\nclass Class:\n    pass\n"
        (tmp_path / "own_module.py").write_text(source)
        found.add(text_of(script, **changed))
    assert len(found) == 2


X, Y = make_classification(150, 6, n_informative=4, flip_y=0.1, random_state=0)
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))
TREE = DecisionTreeClassifier(random_state=0)
SCALED = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
DEPTHS = [1, 3, 8]


def errors_of(search):
    """Return the errors of each candidate on each fold."""
    errors = search.results_["fold_errors"].transpose(..., "fold").values
    return errors.reshape(-1, len(SPLITS)).astype(int).tolist()


def searched(estimator, grid, **options):
    search = dsel.SemiSupervisedSearchCV(
        estimator, grid, cv=SPLITS, prune=False, random_state=0, n_jobs=1, **options
    )
    with pytest.warns(GuaranteeWarning, match="no bound: the folds"):
        return search.fit(X, Y)


def errors_by_scikit_learn(estimator, grid):
    """Return the same, by the loop that `GridSearchCV` makes."""
    errors = []
    for params in ParameterGrid(grid):
        errors.append([])
        for train, test in SPLITS:
            model = clone(estimator).set_params(**clone(params, safe=False))
            predicted = model.fit(X[train], Y[train]).predict(X[test])
            errors[-1].append(int((predicted != Y[test]).sum()))
    return errors


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (SCALED, {"clf": [TREE], "clf__max_depth": DEPTHS}),
        (SCALED, [{"clf": [TREE], "clf__max_depth": [n]} for n in DEPTHS]),
        (SCALED, [{"clf": [TREE], "clf__max_depth": DEPTHS}, {"clf": [TREE, SVC()]}]),
        (SCALED, {"scale": ["passthrough", StandardScaler()], "clf__C": [0.1, 1]}),
        (SCALED, {"steps": [[("a", TREE)], [("b", StandardScaler()), ("c", TREE)]]}),
        (
            BaggingClassifier(SVC(), n_estimators=3, random_state=0),
            {"estimator": [TREE], "estimator__max_depth": DEPTHS},
        ),
        (
            BaggingClassifier(SCALED, n_estimators=3, random_state=0),
            {"estimator__clf": [TREE], "estimator__clf__max_depth": DEPTHS},
        ),
        (
            VotingClassifier([("a", TREE), ("b", SVC())]),
            {"estimators": [[("a", TREE), ("b", TREE)]], "a__max_depth": DEPTHS},
        ),
        (
            make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1])]), TREE),
            {
                "columntransformer__transformers": [
                    [("s", SCALED[0], [0, 1, 2])],
                    [("t", "passthrough", [3, 4])],
                ],
                "decisiontreeclassifier__max_depth": [1, 1.0, 4][::2],
            },
        ),
        (TREE, {"max_features": [1, 1.0, None, "sqrt"], "max_depth": [2, 2]}),
    ],
    ids=str,
)
def test_estimators_of_a_grid__are_cloned_for_each_candidate(estimator, grid):
    before = repr([estimator, grid, TREE.get_params()])
    search = searched(estimator, grid)
    assert errors_of(search) == errors_by_scikit_learn(estimator, grid)
    assert repr([estimator, grid, TREE.get_params()]) == before
    assert not hasattr(TREE, "tree_")
    deployed = search.best_estimator_.get_params(deep=True)
    for name, value in search.best_params_.items():
        if not hasattr(value, "get_params") and not isinstance(value, list):
            assert repr(deployed[name]) == repr(value)
    assert repr(dsel.select(search.results_).params) == repr(search.choice_.params)


def test_estimators_of_a_list__are_cloned_where_one_stands_twice():
    meta = BaggingClassifier(TREE, n_estimators=2, random_state=0)
    search = searched(None, [meta, meta, TREE])
    errors = errors_of(search)
    assert errors[0] == errors[1]
    assert not hasattr(meta, "estimators_")
    assert not hasattr(TREE, "tree_")


def test_nonconformity_classifier__clones_estimators_of_its_grid():
    grid = {"clf": [TREE], "clf__max_depth": DEPTHS}
    model = NonconformityClassifier(SCALED, grid, random_state=0).fit(X, Y)
    depths = [each[-1].max_depth for each in model.models_.models()]
    assert depths == [each["clf__max_depth"] for each in model.params_] == DEPTHS
    assert TREE.max_depth is None


def test_certify__leaves_the_procedure_and_its_grid_as_they_are():
    grid = {"clf": [TREE], "clf__max_depth": DEPTHS}
    procedure = GridSearchCV(SCALED, grid, cv=3)
    outcome = dsel.certify(procedure, X, Y, cv=3, random_state=0)
    assert outcome.model.best_estimator_[-1].max_depth in DEPTHS
    assert TREE.max_depth is None
    assert not hasattr(procedure, "best_params_")


def test_plan__is_not_changed_with_what_the_grid_holds():
    tree = DecisionTreeClassifier(random_state=0)
    plan = dsel.plan_search(
        SCALED, {"clf": [tree], "clf__max_depth": DEPTHS}, X, Y, prune=False, cv=3,
        random_state=0,
    )  # fmt: skip
    tree.set_params(min_samples_leaf=70)
    assert plan.model(2)[-1].min_samples_leaf == 1
    kept = [
        c.params["clf"]
        for group in plan.search.context.candidate_groups
        for c in group.candidates
    ]
    assert {each.min_samples_leaf for each in kept} == {1}


class Hidden(ClassifierMixin, BaseEstimator):
    """Takes an alias of its parameter, as learners of other libraries do."""

    def __init__(self, **options):
        self.options = options

    def get_params(self, deep=True):
        return dict(self.options)

    def set_params(self, **params):
        self.options.update(params)
        return self

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        depth = self.options.get("depth")
        self.tree_ = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


@pytest.mark.parametrize("prefix", ["", "hidden__", "estimator__"])
def test_parameter__that_only_set_params_knows_is_taken_with_a_caveat(prefix):
    outer = {
        "": Hidden(),
        "hidden__": make_pipeline(StandardScaler(), Hidden()),
        "estimator__": BaggingClassifier(Hidden(), n_estimators=2, random_state=0),
    }
    grid = {f"{prefix}depth": [1, 8]}
    search = searched(outer[prefix], grid)
    assert errors_of(search) == errors_by_scikit_learn(outer[prefix], grid)
    note = f"`{prefix}depth` is not listed by get_params of Hidden; it was passed"
    assert sum(note in remark for remark in search.choice_.remarks) == 1
    assert note in " ".join(str(search.plan_).split())
    assert note not in " ".join(
        searched(Hidden(depth=3), {"depth": [1]}).choice_.remarks
    )


@pytest.mark.parametrize(
    ("package", "learner", "grid"),
    [
        ("catboost", "CatBoostClassifier", {"depth": [2, 4]}),
        ("catboost", "CatBoostClassifier", {"class_weights": [[1, 1], [1, 9]]}),
        ("lightgbm", "LGBMClassifier", {"num_iterations": [2, 4]}),
        ("xgboost", "XGBClassifier", {"eta": [0.1, 0.9]}),
    ],
)
def test_aliases__of_other_libraries_are_taken(package, learner, grid):
    kind = getattr(pytest.importorskip(package), learner)
    options = {"allow_writing_files": False} if package == "catboost" else {}
    quiet = {"verbosity": 0} if package == "xgboost" else {"verbose": -1}
    quiet = {"verbose": 0} if package == "catboost" else quiet
    model = (
        kind(n_estimators=3, random_state=0, n_jobs=1, **quiet, **options)
        if (package != "catboost")
        else kind(iterations=3, random_seed=0, thread_count=1, **quiet, **options)
    )
    search = searched(model, grid)
    assert errors_of(search) == errors_by_scikit_learn(model, grid)
    [name] = grid
    assert any(f"`{name}` is not listed" in each for each in search.choice_.remarks)
    inner = dsel.certify(GridSearchCV(model, grid, cv=2), X, Y, cv=2, random_state=0)
    assert all(each[name] in grid[name] for each in inner.choice.fold_params)


class Copying(ClassifierMixin, BaseEstimator):
    """Copies a list in its constructor, which `clone` refuses."""

    def __init__(self, depths=(1,)):
        self.depths = list(depths)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.tree_ = DecisionTreeClassifier(max_depth=max(self.depths), random_state=0)
        self.tree_.fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def test_learner__whose_constructor_copies_a_list_is_copied_unfitted():
    model = Copying()
    found = searched(Pipeline([("c", model)]), {"c__depths": [[1], [1, 3]]})
    depths = [{"max_depth": [n], "random_state": [0]} for n in (1, 3)]
    assert errors_of(found) == errors_by_scikit_learn(TREE, depths)
    assert not hasattr(model, "tree_")
    with pytest.raises(TypeError, match="`estimator` must hold what can be copied"):
        dsel.plan_search(model.fit(X, Y), {"depths": [[1]]}, X, Y)


class Late(BaseEstimator, ClassifierMixin):
    """Names its mixin last, as most code does."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize(
    "estimator",
    [
        Late(),
        make_pipeline(StandardScaler(), Late()),
        GridSearchCV(Late(), {}, cv=2),
        make_pipeline(StandardScaler(), GridSearchCV(make_pipeline(Late()), {}, cv=2)),
        BaggingClassifier(Late(), n_estimators=2, random_state=0),
    ],
    ids=str,
)
def test_classifier__is_one_whatever_the_order_of_its_bases(estimator, tmp_path):
    outcome = dsel.certify(estimator, X, Y, cv=3, random_state=0)
    assert outcome.certificate.certified
    predict_pool(outcome.model, X, tmp_path / "labels")
    parts = [values for _, values in read_rows(tmp_path / "labels", "label")]
    codes = np.concatenate(parts)
    assert outcome.model.classes_[codes].tolist() == outcome.model.predict(X).tolist()


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (
            RandomForestClassifier(),
            {"n_estimators": ["a", "b"]},
            r"`param_grid` sets .*'a'.* refuses: The 'n_estimators' parameter of "
            "RandomForestClassifier must be an int",
        ),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"logisticregression__C": [-1.0, 0.0]},
            r"`param_grid` sets .* which LogisticRegression refuses: The 'C' parameter",
        ),
        (None, [LogisticRegression(C=-1)], r"`param_grid\[0\]` cannot be fitted: The"),
        (
            SVC(),
            {"C": [-1, 1]},
            r"`param_grid` sets {'C': -1}, which SVC refuses: `C` must be positive",
        ),
        (
            SVC(),
            {"probability": [5]},
            r"`param_grid` sets {'probability': 5}, which SVC refuses: The 'probabil",
        ),
        (
            SCALED,
            {"clf__gamma": [-1.0]},
            r"`param_grid` sets {'clf__gamma': -1.0}, which SVC refuses: `gamma`",
        ),
        (
            None,
            [SVC(C=-1)],
            r"`param_grid\[0\]` cannot be fitted: `C` must be positive",
        ),
        (
            SCALED,
            {"clf": [KMeans()]},
            r"the candidate {'clf': KMeans\(\)} of `param_grid` must be a classifier",
        ),
        (
            SCALED,
            {"scale": [SVC]},
            r"the candidate {.*} of `param_grid` holds the class SVC in the place of",
        ),
        (
            SCALED,
            {"scale": [SVC()]},
            r"the candidate {'scale': SVC\(\)} of `param_grid` has the step 'scale'",
        ),
        (
            SCALED,
            {"clf": [GridSearchCV(SVC(), {"D": [1]})]},
            r"grid of the GridSearchCV of the candidate .* of `param_grid` sets 'D'",
        ),
        (
            SCALED,
            {"steps": [3]},
            r"the candidate {'steps': 3} of `param_grid` must list the steps",
        ),
        (
            BaggingClassifier(),
            {"estimator": [SVC]},
            r"`param_grid` sets {'estimator': .*SVC'>}, which BaggingClassifier refus",
        ),
    ],
)
def test_plan__names_the_grid_whose_values_cannot_be_fitted(estimator, grid, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dsel.plan_search(estimator, grid, X, Y, random_state=0)


def test_make_candidates__checks_values_as_they_are_fitted():
    search = GridSearchCV(LogisticRegression(C=-1), {"C": [1, 10]})
    assert len(make_candidates(None, [search])) == 1
    assert len(make_candidates(LogisticRegression(C=-1), {"C": [-1, 10]})) == 2
    with config_context(skip_parameter_validation=True):
        assert len(make_candidates(None, [LogisticRegression(C=-1)])) == 1


@pytest.mark.parametrize(
    ("steps", "accepts"),
    [
        ([StandardScaler(), LogisticRegression()], False),
        (["passthrough", StandardScaler(), LogisticRegression()], False),
        ([StandardScaler(), SimpleImputer(), LogisticRegression()], True),
        ([StandardScaler(), DecisionTreeClassifier()], True),
        ([make_pipeline(SimpleImputer(), StandardScaler()), SVC()], True),
    ],
)
def test_plan__knows_before_a_fit_whether_gaps_reach_a_step_that_refuses_them(
    steps, accepts
):
    X, y = make_classification(60, random_state=0)
    X[7, 3] = np.nan
    if not accepts:
        with pytest.raises(ValueError, match=r"row 7, column 3 is NaN.*SimpleImputer"):
            dsel.plan_search(None, [make_pipeline(*steps)], X, y, random_state=0)
    else:
        dsel.plan_search(None, [make_pipeline(*steps)], X, y, random_state=0)
