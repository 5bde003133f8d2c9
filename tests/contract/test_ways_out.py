"""What a message says first is what its reader can do."""

import inspect
import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

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
    assert f"Note     the model makes {asks.format(right.sum())}" in str(made)
    assert made.certified
    assert "trained on these" not in str(dsel.certify(model, X, Y, cv="prefit"))


@pytest.mark.parametrize(("read", "end"), [
    (lambda _: dsel.plot, "'plot'; did you mean 'plots'?"),
    (lambda _: dsel.losses.recal, "'recal'; did you mean 'recall'?"),
    (lambda made: made.bound, "'bound'; it is `choice.bound` here."),
    (lambda made: made.best_params_, "'best_params_'; it is `choice.params` here."),
    (lambda made: made.estimate, "'estimate'; it is `certificate.estimate` here."),
    (lambda made: made.modl, "'modl'; did you mean 'model'?"),
    (lambda made: made.report("x.html"),
     "; dsel.report.write_report(outcome, path) writes a page, and `certified_report` "
     "has the limits of each class."),
    (lambda made: made.score, "'score'; it is `model.score` here."),
    (lambda made: made.choice.predict, "'predict'; it is `outcome.predict`."),
    (lambda made: made.choice.best_score_, "it is `choice.criterion_value`."),
    (lambda made: made.choice.parms, "'parms'; did you mean 'params'?"),
])  # fmt: skip
def test_unknown_attribute__names_what_is_meant(read, end):
    made = certify(LogisticRegression())
    with pytest.raises(AttributeError) as caught:
        read(made)
    assert str(caught.value).endswith(end)


@pytest.mark.parametrize(("options", "text"), [
    ({"deploy": "all"}, "got 'all'; did you mean 'all_rows'?"),
    ({"seed": 3}, "`certify` has no argument `seed`: 'seed' is `random_state` here."),
    ({"scoring": "f1"}, "`scoring`: set scoring in your GridSearchCV, which chooses"),
    ({"loss": "f1_macro"}, "`loss` 'f1_macro' has no bound here; report=True bounds r"),
    ({"loss": "accuracy"}, "`loss` 'accuracy' is 1 minus the error: write error."),
    ({"loss": "roc_auc"}, "since it ranks scores: write balanced."),
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
    (lambda: certify(MODEL).monitor(X, Y), "by name: target=, y=, "),
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


def test_name_of_a_model__that_is_unknown_is_answered_with_those_that_there_are():
    outcome = certify(MODEL)
    for by_name in (outcome.certificates, outcome.models, outcome.bounded_models):
        with pytest.raises(KeyError, match="no model 'all'; it has 'one_fold'"):
            by_name["all"]


def test_completion__offers_what_users_need():
    choice = certify(MODEL).choice
    assert {"bound", "params", "certificates"} <= {*dir(choice)}
    assert not {"facts", "with_caveats", "held_out_fifth", "estimate"} & {*dir(choice)}


def test_prompt__shows_what_to_call_next_and_a_print_does_not():
    outcome = certify(MODEL)
    result, _, steps = repr(outcome).rpartition("\nNext")
    assert result == str(outcome) == str(outcome.choice)
    names = re.findall(r"`(\w+)`", steps)
    assert "monitor" in names
    assert all(name in dir(outcome) for name in names)


def test_plot__lists_its_figures():
    plot = certify(MODEL).plot
    assert repr(plot).startswith(
        "<figures: plot(), plot.surface(), plot.certificates()"
    )
    assert "with_pairs" not in repr(plot)


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
    text = "your function raised an error when called without fold 1: ZeroDivisionError"
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
@pytest.mark.parametrize("rows", [(X, Y), TWICE])
def test_choice__advises_only_what_its_maker_takes(front, make, rows):
    made = make(*rows, np.random.default_rng(0).normal(size=(300, X.shape[1])))
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
