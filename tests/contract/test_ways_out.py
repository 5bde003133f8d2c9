"""What a message says first is what its reader can do."""

import inspect
import pickle
import re
from functools import partial

import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.least_squares import LeastSquaresSearch

X, Y = make_classification(200, 10, n_informative=5, class_sep=3, random_state=0)


def certify(model, **options):
    return dsel.certify(model, X, Y, random_state=0, **options)


def test_prefit__without_an_error_asks_whether_it_was_trained_on_these_rows():
    model = LogisticRegression().fit(X[:150], Y[:150])
    right = model.predict(X) == Y
    assert not right.all()
    asks = "no error on {} rows: was it trained on these rows?"
    made = dsel.certify(model, X[right], Y[right], cv="prefit")
    assert f"Caveat    the model makes {asks.format(right.sum())}" in str(made)
    assert made.certified
    assert "trained on these" not in str(dsel.certify(model, X, Y, cv="prefit"))


@pytest.mark.parametrize(("read", "end"), [
    (lambda _: dsel.plot, "'plot'; did you mean 'plots'?"),
    (lambda _: dsel.losses.recal, "'recal'; did you mean 'recall'?"),
    (lambda _: dsel.losses.f1_score,
     "'f1_score': it has no bound here; report=True bounds recall and precision of "
     "each class."),
    (lambda _: dsel.losses.accuracy, "it is 1 minus the error: write loss='error'."),
    (lambda _: dsel.bounds.cv_bund, "'cv_bund'; did you mean 'cv_bound'?"),
    (lambda made: made.certificate.bnd, "no attribute 'bnd'; did you mean 'bound'?"),
    (lambda made: made.delta, "'delta'; it is `choice.delta` here."),
    (lambda made: made.choice.best_estimator_,
     "'best_estimator_'; it is `outcome.model`."),
    (lambda made: made.estimate, "'estimate'; it is `certificate.estimate` here."),
    (lambda made: made.modl, "'modl'; did you mean 'model'?"),
    (lambda made: made.report("x.html"),
     "; dsel.write_report(outcome, path) writes a page, and `certified_report` "
     "has the limits of each class."),
    (lambda made: made.choice.score, "'score'; it is `outcome.score`."),
    (lambda made: made.choice.predict, "'predict'; it is `outcome.predict`."),
    (lambda made: made.choice.best_score_,
     "it is `choice.criterion_value`, or `outcome.model.best_score_` if that is a "
     "search."),
    (lambda made: made.choice.best_index_,
     "it is `outcome.model.best_index_` if that is a search."),
    (lambda made: made.cv_results_, "'cv_results_'; it is `results` here."),
    (lambda made: made.choice.parms, "'parms'; did you mean 'params'?"),
])  # fmt: skip
def test_unknown_attribute__names_what_is_meant(read, end):
    made = certify(LogisticRegression())
    with pytest.raises(AttributeError) as caught:
        read(made)
    assert str(caught.value).endswith(end)


SEARCH = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3)


@pytest.mark.parametrize("name", ["cv_results_", "best_score_", "best_index_", "coef_"])
@pytest.mark.parametrize(
    "model",
    [SEARCH, make_pipeline(StandardScaler(), SEARCH), lambda X, y: SEARCH.fit(X, y)],
)
def test_attribute_of_a_certified_search__is_named_where_it_is(model, name):
    made = certify(model)
    with pytest.raises(AttributeError, match=r"it is `model.*` here") as caught:
        getattr(made, name)
    code = re.search("it is `(.*)` here", str(caught.value))[1]
    there = eval(f"outcome.{code}", {"outcome": made})  # noqa: S307 - it runs
    if name == "cv_results_":
        assert len(there["params"]) == 2
    assert there is not None


def test_attribute_of_a_fitted_model__is_read_of_the_model_itself():
    model = SEARCH.fit(X[:100], Y[:100])
    made = dsel.certify(model, X[100:], Y[100:], cv="prefit")
    way = "no attribute 'cv_results_'; it has no model: read `cv_results_` of the model"
    with pytest.raises(AttributeError, match=way):
        _ = made.cv_results_


@pytest.mark.parametrize(("options", "text"), [
    ({"deploy": "all"}, "got 'all'; did you mean 'all_rows'?"),
    ({"seed": 3}, "`certify` has no argument `seed`: 'seed' is `random_state` here."),
    ({"scoring": "f1"}, "`scoring`: set scoring in your GridSearchCV, which chooses"),
    ({"refit": True}, "`refit`: the model that was counted is deployed, see `deploy`;"),
    ({"loss": "f1_macro"}, "`loss` 'f1_macro' has no bound here; report=True bounds r"),
    ({"loss": "accuracy"}, "'accuracy' is 1 minus the error: write loss='error'."),
    ({"loss": "roc_auc"}, "since it ranks scores: write loss='balanced'."),
    ({"loss": "recall:b"}, "which is not a class (0, 1); name one of these."),
    ({"loss": dsel.losses.recall("b")}, "classes of `y` (0, 1); name one of these."),
    ({"pool": (X, Y)}, "must be rows without labels, got a tuple of 2 arrays; pass th"),
    ({"pool": X.astype(str)}, "pass pool.astype('float64') if they are numbers."),
    ({"pool": X[:, :, np.newaxis]}, "pass pool.reshape(len(pool), -1)."),
    ({"xyz": 3}, "`certify` has no argument `xyz`: it has X, "),
    ({"loss": dsel.losses.error_quantile(0.8)},
     "error_quantile(0.8) is for regressors, and the model is a classifier"),
])  # fmt: skip
def test_wrong_argument__gets_the_answer_first(options, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        dsel.certify(LogisticRegression(), X, Y, **options)
    assert text in str(caught.value)


MODEL = LogisticRegression()
FRAME = pd.DataFrame(X).add_prefix("c")
TEXTS = FRAME.assign(c1="a", c2="b")


@pytest.mark.parametrize(("call", "text"), [
    (lambda: dsel.certify(MODEL, X[:, :, np.newaxis], Y),
     "`X` must be a table, rows by columns, got 3 dimensions, shape (200, 10, 1); pass "
     "X.reshape(len(X), -1)."),
    (lambda: dsel.certify("svm", X, Y), "with `fit`, such as `SVC()`, or a function"),
    (lambda: dsel.certify(MODEL, FRAME, "c0"),
     "got 'c0'; for a column of `X` pass y=X['c0'] and X.drop(columns='c0')."),
    (lambda: dsel.certify(MODEL, FRAME, Y, TEXTS),
     "in column 'c1', where `X` holds number (float64), and so in 'c2'; convert one of "
     "them, such as by astype({'c1': 'float64'})."),
    (lambda: dsel.losses.error_quantile(80), "got 80.0; 80% is written 0.8."),
    (lambda: certify(MODEL).monitor(pool=X), "`pool`: 'pool' is `source` here."),
    (lambda: certify(MODEL).monitor(X[:, :3]), "`source` has 3 columns but `X` has 10"),
    (lambda: certify(MODEL).monitor((X, Y)), "`source` must be rows without labels"),
    (lambda: certify(MODEL).monitor(X, y=Y[:5]), "got 5, and there are more rows."),
    (lambda: certify(MODEL).monitor(X, target="t"), "pass the labels as y=."),
    (lambda: dsel.select(certify(MODEL), "accuracy"),
     "`criterion` 'accuracy' is not known; 'accuracy' is `cv_error` here."),
    (lambda: certify(MODEL).certified_report(), "pass report=True to certify, and an"),
    (lambda: dsel.SemiSupervisedSearchCV(MODEL, {"C": [1]}).fit(X, Y)
     .certified_report(), "pass report=True to the search, and an `out`"),
])  # fmt: skip
def test_slip__is_answered_with_what_to_write(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(("rows", "pool", "note"), [
    (FRAME, X + 1, "`X` has names of columns and `pool` has none: columns are taken "),
    (X, FRAME + 1, "`pool` has names of columns and `X` has none: columns are taken "),
    (FRAME, FRAME + 1, None),
    (X, X + 1, None),
])  # fmt: skip
def test_names_of_one_side__are_noted_in_the_plan_and_the_choice(rows, pool, note):
    plan = dsel.plan_search(MODEL, {"C": [1.0]}, rows, Y, pool, random_state=0)
    for text in (str(plan), str(plan.run().choice)):
        assert ("by position" in text) == (note is not None)
        assert (note or "") in " ".join(text.split())


@pytest.mark.parametrize(("call", "text"), [
    (lambda: dsel.certify(MODEL, X), "`certify` needs `y`: certify(model, X, y)."),
    (lambda: dsel.certify(X, Y), "`certify` needs `y`: certify(model, X, y)."),
    (lambda: dsel.certify(MODEL, X, Y, X, Y),
     "`certify` takes model, X, y, pool by position, got 5 values; pass the others by "
     "name: "),
    (lambda: certify(MODEL).monitor(X, Y, X), "by name: target=, labeled=, groups=, "),
    (lambda: dsel.SemiSupervisedSearchCV(MODEL), "SemiSupervisedSearchCV needs `p"),
    (lambda: dsel.SemiSupervisedSearchCV(MODEL, {}).fit(X), "`fit` needs `y`: fit(X"),
    (lambda: dsel.plan_bound(), "plan_bound(n_labeled, n_candidates=...)"),
    (lambda: dsel.bounds.holdout_bound(1, 9, dlta=0.1), "did you mean 'delta'?"),
    (lambda: dsel.losses.recall(lable=1), "`lable`: did you mean 'label'?"),
    (lambda: dsel.audit(setings=[]), "did you mean 'settings'?"),
    (lambda: certify(MODEL).predict(X, deply=1), "did you mean 'deploy'?"),
    (lambda: certify(MODEL).plot.certificates(axx=1), "did you mean 'ax'?"),
    (lambda: dsel.least_squares.KernelLeastSquares(wdth=1), "did you mean 'width'?"),
])  # fmt: skip
def test_wrong_call__names_what_is_missing_or_meant(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_public_function__is_the_one_that_pickles_find():
    for subject in (dsel.certify, dsel.bounds.cv_bound, dsel.losses.recall):
        assert pickle.loads(pickle.dumps(subject)) is subject


def test_public_function__leaves_a_type_error_of_users_code_alone():
    def fit(X, y):
        return len(X) + "x"

    with pytest.raises(dsel.errors.AllFitsFailedError, match="unsupported operand"):
        dsel.certify(fit, X, Y)


@pytest.mark.parametrize("values", [Y, np.ones(len(Y))])
def test_pool__that_is_a_column_is_named(values):
    with pytest.raises(ValueError, match="`pool` must be two-dimensional, unlabeled r"):
        dsel.certify(MODEL, X, Y, pool=values)


def test_score_of_regressors__gets_the_loss_that_takes_its_place():
    with pytest.raises(ValueError, match=r"no bound here; loss=.error_quantile="):
        dsel.certify(Ridge(), X, X[:, 0], loss="neg_mean_absolute_error")


def test_name_of_a_model__that_is_unknown_is_answered_with_those_that_there_are():
    outcome = certify(MODEL)
    for by_name in (outcome.certificates, outcome.models, outcome.bounded_models):
        with pytest.raises(KeyError, match="no model 'all'; it has 'one_fold'"):
            by_name["all"]


def test_completion__offers_what_users_need():
    choice = certify(MODEL).choice
    assert {"bound", "params", "certificates"} <= {*dir(choice)}
    assert not {"shown_rows", "with_caveats", "held_out_fifth", "estimate"} & {
        *dir(choice)
    }


def test_prompt__shows_calls_that_run_and_a_print_does_not(monkeypatch, tmp_path):
    outcome = certify(MODEL)
    printed, shown = str(outcome).splitlines(), repr(outcome).splitlines()
    steps = [line for line in shown if line not in printed]
    assert {*shown} == {*printed, *steps}
    # Next steps stand together, at the end.
    names = [line.partition(" ")[0] for line in shown]
    assert names[names.index("Assumes") + 1 :] == ["Next"] * names.count("Next")
    calls = [call for step in steps for call in re.findall(r"`([^`]+)`", step)]
    assert "monitor(X_new)" in calls
    monkeypatch.chdir(tmp_path)
    names = {"outcome": outcome, "X_new": X}
    for call in calls:
        exec(f"outcome.{call}", names)


def test_prompt__shows_no_fields_of_results(tmp_path):
    outcome = certify(MODEL)
    table = outcome.predict_table(X, out=tmp_path / "p.csv")
    assert repr(table).startswith(outcome.certificate.headline())
    assert f"\nWrote 200 rows to {tmp_path / 'p.csv'}: row, label, " in repr(table)
    assert repr(outcome.certificates) == (
        f"{{'one_fold': {outcome.certificate.headline()}}}"
    )
    for made in (outcome.bounded_models["one_fold"], outcome.monitor(X).tests[0]):
        assert repr(made) == str(made)
        assert type(made).__name__ not in repr(made)


def test_plan__names_what_its_candidates_differ_in_and_how_to_run_it():
    grid = [{"C": [1.0]}, {"C": [2.0], "tol": [1e-3]}]
    plan = dsel.plan_search(MODEL, grid, X, Y, random_state=0)
    assert str(plan).startswith("Plan of 2 candidates that differ in C, tol\n")
    assert " MiB for each worker process with one thread" in (
        " ".join(str(plan).split())
    )
    assert repr(plan).startswith(f"{plan}\n  Next: `run()`, or `run(out=")
    assert repr(dsel.open_pool(X)).splitlines()[1] == (
        "Next      `dsel.certify(model, X, y, pool)`"
    )


@pytest.mark.filterwarnings("error")
def test_labels__may_be_a_column():
    polars = pytest.importorskip("polars")
    column = Y[:, np.newaxis]
    columns = [column, pd.DataFrame({"y": Y}), polars.DataFrame({"y": Y})]
    expected = certify(MODEL)
    fitted = LogisticRegression().fit(X, Y)
    for y in columns:
        made = dsel.certify(MODEL, X, y, random_state=0, verbose=False)
        assert made.choice == expected.choice
        assert dsel.certify(fitted, X, y, cv="prefit").certified
        assert expected.monitor(X, y=y) == expected.monitor(X, y=Y)


@pytest.mark.parametrize(("make", "way"), [
    (lambda: X.astype(str), "pass numpy.asarray(X).astype(float)."),
    (lambda: X.astype(str).tolist(), "pass numpy.asarray(X).astype(float)."),
    (lambda: pd.DataFrame(X.astype(str)).add_prefix("c"), "pass X.astype(float)."),
    (lambda: pd.DataFrame(X).add_prefix("c").astype({"c1": str}),
     "column 'c1' holds text such as '{}'; they are texts of numbers: pass X.astype({{"
     "'c1': float}})."),
])  # fmt: skip
def test_texts_of_numbers__get_the_call_that_makes_numbers(make, way):
    with pytest.raises((TypeError, ValueError)) as caught:
        dsel.certify(MODEL, make(), Y)
    assert str(caught.value).endswith(way.format(X[0, 1]))


def test_column_that_gives_the_label__is_a_caveat_as_in_the_shell():
    frame = pd.DataFrame(X).add_prefix("c").assign(leak=np.where(Y == 1, 7, 8))
    says = "column 'leak' alone gives {} in all labeled rows; leave it out, unless"
    made = dsel.certify(MODEL, frame, pd.Series(Y, name="ill"), random_state=0)
    assert f"\nCaveat    {says.format(repr('ill'))}" in str(made)
    fitted = LogisticRegression().fit(frame[::2], Y[::2])
    made = dsel.certify(fitted, frame[1::2], Y[1::2], cv="prefit")
    assert says.format("`y`") in str(made)
    plan = dsel.plan_search(MODEL, {"C": [1.0]}, frame.to_numpy(), Y)
    assert "column 10 alone gives `y` in all" in " ".join(str(plan).split())
    assert "alone gives" not in str(certify(MODEL))


def test_column_of_texts__that_is_called_an_identifier_may_hold_groups():
    frame = pd.DataFrame(X).add_prefix("c").assign(
        patient_id=[f"P{n // 4}" for n in range(len(X))])  # fmt: skip
    way = "rows of one patient_id belong together, pass groups='patient_id'"
    with pytest.raises(TypeError, match=way):
        dsel.certify(MODEL, frame, Y)
    options = {"groups": "patient_id", "random_state": 0, "verbose": False}
    made = dsel.certify(MODEL, frame, Y, frame, **options)
    assert "`pool` is not read" in str(made)
    assert "not used: column" not in str(made)


@pytest.mark.parametrize("form", ["number", "text", "polars"])
def test_category__is_no_key_of_groups_once_its_type_says_so(form):
    frame = pd.DataFrame(X).add_prefix("c").assign(agent_no=np.arange(len(X)) // 4)
    if form != "number":
        frame["agent_no"] = "A" + frame["agent_no"].astype(str)
    polars = pytest.importorskip("polars") if form == "polars" else None
    given = polars.from_pandas(frame) if polars else frame

    def text_of(rows):
        model = make_pipeline(dsel.data.make_encoder(rows), LogisticRegression())
        made = dsel.certify(model, rows, Y, random_state=0)
        assert made.predict(rows).shape == Y.shape
        return str(made)

    text = text_of(given)
    assert "if rows of one agent_no do not belong together)" in text
    call = re.search("if it is only a category, write (.*) first", text)[1]
    declared = eval(call, {"X": given})  # noqa: S307 - what it says runs
    for rows in (declared, polars.from_pandas(declared)) if polars else (declared,):
        text = text_of(rows)
        assert "agent_no" not in text
        assert "(95% confidence), model" in text
    # An encoder takes it, where it was left out before.
    assert dsel.data.make_encoder(declared).fit_transform(declared).shape[1] > 20


def test_category_of_many_values__is_neither_dropped_nor_a_group():
    codes = [f"P{n // 2}" for n in range(240)]
    frame = pd.DataFrame({"age": np.arange(240.0), "client_id": codes})
    with pytest.raises(TypeError, match=r"X.drop\(columns=\['client_id'\]\)"):
        dsel.certify(MODEL, frame, np.arange(240) % 2)
    frame = frame.astype({"client_id": "category"})
    with pytest.raises(TypeError, match=r"make_encoder\(X, categories=\['client_id'"):
        dsel.certify(MODEL, frame, np.arange(240) % 2)


def test_column_that_the_pool_alone_has__is_noted():
    frame = pd.DataFrame(X).add_prefix("c")
    made = dsel.certify(MODEL, frame, Y, frame.assign(d=1) + 0.1, random_state=0)
    assert "not used: column 'd' of the pool, which is not in the lab" in str(made)


def test_number_without_a_guarantee__is_named_where_the_bound_is_nan():
    other = X + np.arange(len(X))[:, np.newaxis]
    made = dsel.certify(MODEL, X, Y, other, random_state=0, verbose=False)
    assert np.isnan(made.certificate.bound)
    assert np.isnan(made.bound)
    number = made.certificate.amount(made.certificate.number)
    assert f"the computed {number} is no bound" in str(made)
    assert "\nNumber    `certificate.number` has it, and `certif" in str(made)
    assert "Number " not in str(certify(MODEL))


def test_lazy_frame__is_to_be_collected():
    polars = pytest.importorskip("polars")
    rows, labels = polars.LazyFrame(X), polars.LazyFrame({"y": Y})
    for arguments in ((rows, Y), (X, labels), (X, Y, rows)):
        with pytest.raises(TypeError, match=r"got LazyFrame; call its collect\(\)"):
            dsel.certify(MODEL, *arguments)


def test_comparison__shows_how_labels_are_brought():
    models = [LogisticRegression(C=C).fit(X[:, :2], Y) for C in (1e-3, 1.0)]
    rows = np.random.default_rng(0).normal(size=(500, 2))
    made = dsel.compare_models(*models, rows, n_queries=9, random_state=0)
    calls = "`query_rows()`; label these, then `certify_with_labels(labels)`"
    assert repr(made) == f"{made}\nNext      {calls}"
    assert str(made).endswith(
        "Seed      random_state=0 draws the same rows to label again"
    )
    labeled = made.certify_with_labels(np.zeros(len(made.query_rows())))
    assert repr(labeled) == str(labeled)
    with pytest.raises(TypeError, match="`query_rows` takes no arguments, got 1"):
        made.query_rows(rows)


def test_seed_that_was_drawn__is_kept_and_repeats_the_run():
    outcome = dsel.certify(MODEL, X, Y, verbose=False)
    assert str(outcome) == str(outcome.choice)
    again = dsel.certify(MODEL, X, Y, random_state=outcome.seed, verbose=False)
    assert again.choice == outcome.choice


def test_plot__lists_the_figures_of_a_procedure():
    plot = certify(MODEL).plot
    names = ("certificates", "folds", "bound_by_labels")
    calls = ", ".join(f"plot.{name}()" for name in names)
    assert repr(plot) == f"<figures: plot(), {calls}>"
    assert [name for name in dir(plot) if name[0] != "_"] == sorted(names)
    for name in names:
        getattr(plot, name)()


def test_monitor__takes_labels_as_either_argument():
    outcome = certify(MODEL)
    assert outcome.monitor(X, target=Y) == outcome.monitor(X, y=Y)
    advice = "the new rows have no labels; `y` has them, or `target` names their column"
    assert advice in str(outcome.monitor(X))


def test_pool__with_another_spelling_of_a_column_gets_the_name_that_is_meant():
    frame = pd.DataFrame(X).add_prefix("mean ")
    pool = frame.rename(columns={"mean 3": "Mean 3"})
    with pytest.raises(ValueError, match=r"lacks the column 'mean 3'.*mean 'Mean 3'"):
        dsel.certify(MODEL, frame, Y, pool)


def test_function__that_raises_is_called_the_users():
    with pytest.raises(dsel.errors.AllFitsFailedError) as caught:
        dsel.certify(lambda X, y: 1 / 0, X, Y)
    text = "your function failed when called without fold 0: ZeroDivisionError"
    assert str(caught.value).startswith(text)


def test_search_that_stops_early_by_a_score__gets_no_note_on_ranks():
    boosted = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=80)
    assert "ranks by" not in str(certify(boosted).choice)


def test_another_seed_in_a_folder__names_the_seed_that_goes_on(tmp_path):
    first = dsel.certify(MODEL, X, Y, out=tmp_path / "out")
    with pytest.raises(dsel.errors.StoreMismatchError) as caught:
        dsel.certify(MODEL, X, Y, out=tmp_path / "out")
    advice = f"pass random_state={first.results.attrs['seed']} to go on with it, or "
    assert advice in str(caught.value)


def arguments_of(front):
    """Return the names of arguments of a function, or of a search and its `fit`."""
    calls = [front, front.fit] if isinstance(front, type) else [front]
    return {name for call in calls for name in inspect.signature(call).parameters}


TWICE = np.repeat(X, 2, axis=0), np.repeat(Y, 2)  # copies: a caveat with advice
SHARED = np.column_stack([X, np.sin(np.arange(200) // 10)]), Y
"""Rows of which ten share a value, as those of one customer do."""
LEAST = partial(
    LeastSquaresSearch, [0.5, 1.0], [1e-3, 0.1], penalty="rkhs", certificate="nested"
)


@pytest.mark.parametrize(("front", "make"), [
    (dsel.certify,
     lambda X, y, pool: dsel.certify(LogisticRegression(), X, y, pool).choice),
    (dsel.SemiSupervisedSearchCV,
     lambda *rows: dsel.SemiSupervisedSearchCV(
         LogisticRegression(), {"C": [1.0]}).fit(*rows).choice_),
    (LeastSquaresSearch,
     lambda X, y, pool: LEAST().fit(X, 1.0 * y, pool=pool).choice_),
])  # fmt: skip
@pytest.mark.parametrize("rows", [(X, Y), TWICE, SHARED])
def test_choice__advises_only_what_its_maker_takes(front, make, rows):
    made = make(*rows, np.random.default_rng(0).normal(size=(300, rows[0].shape[1])))
    assert ("these may be groups" in str(made)) == (rows is SHARED)
    texts = [str(made), *(str(bound) for bound in made.certificates.values())]
    for ask in (made.report, made.report_by_value):
        with pytest.raises(ValueError, match="declared") as caught:
            ask()
        texts.append(str(caught.value).partition("; search KernelLeast")[0])
    advised = re.findall(r"pass `(\w+)`|\b([a-z_]+)=", " ".join(texts))
    names = {name for pair in advised for name in pair if name} - set(made.params)
    assert names <= arguments_of(front)


def test_folds_of_groups__are_advised_only_where_groups_can_be_passed():
    for certificate in ("nested", None):
        search = LEAST(cv=GroupKFold(3)).set_params(certificate=certificate)
        with pytest.raises(ValueError, match=r"`cv`|folds") as caught:
            search.fit(X, 1.0 * Y)
        assert "`groups`" not in str(caught.value)


def test_arrays__in_the_place_of_frames_with_texts_get_the_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=120), "town": rng.choice(["x", "y"], 120)})
    y = (X.a > 0).astype(int)
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="drop")
    model = make_pipeline(encoder, GaussianNB())
    outcome = dsel.certify(model, X, y, random_state=0)
    array = X.to_numpy()
    for name, call in (
        ("pool", lambda: dsel.certify(model, X, y, array)),
        ("X", lambda: outcome.predict(array)),
    ):
        words = f"`{name}` must be a data frame.* columns.* a, town, .*got ndarray"
        with pytest.raises(TypeError, match=words):
            call()
    lazy = dask.dataframe.from_pandas(X, npartitions=2)
    assert outcome.predict(lazy).compute().tolist() == outcome.predict(X).tolist()
    with pytest.raises(TypeError, match=r"the class SVC: add \(\), as in SVC\(\)"):
        dsel.plan_search(SVC, {"C": [1]}, X, y)


@pytest.mark.filterwarnings("ignore::dsel.errors.GuaranteeWarning")
def test_errors_about_a_table__name_what_python_has(tmp_path):
    rows = pd.DataFrame(X[:, :2], columns=["a", "b"])
    rows["code"] = np.where(np.arange(len(rows)) % 3, "007", "01")
    model = make_pipeline(dsel.data.make_encoder(rows), LogisticRegression())
    made = dsel.certify(model, rows, Y, random_state=0, verbose=False)
    with pytest.raises(ValueError, match=r"text.*numbers.*astype\(str\)") as caught:
        made.predict_table(rows.assign(code=7))
    assert "dsel pool" not in str(caught.value)
    with pytest.raises(ValueError, match="leave the cell of a gap empty") as caught:
        made.monitor(rows.assign(a="x"), Y, labeled=rows)
    assert "--drop" not in str(caught.value)
    words = rows.assign(code="Köln")
    words.to_csv(tmp_path / "latin.csv", index=False, encoding="latin-1")
    with pytest.raises(ValueError, match="with its encoding, such as cp1252") as caught:
        made.predict_table(tmp_path / "latin.csv")
    assert "--encoding" not in str(caught.value)
    # What it says runs.
    frame = pd.read_csv(tmp_path / "latin.csv", dtype=str, encoding="cp1252")
    predicted = made.predict_table(frame)
    assert (predicted["label"] == made.predict(words)).all()
    rows.rename(columns={"a": "a,x"}).to_csv(tmp_path / "signs.csv", sep=";")
    with pytest.raises(
        ValueError, match=r"read it by pandas.read_csv\(.*sep="
    ) as caught:
        made.predict_table(tmp_path / "signs.csv")
    assert "--sep" not in str(caught.value)
