"""Caveats: one list, the gravest first, each text once; older results have texts."""

import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Caveat, Effect, collect_caveats
from dsel.results.class_report import CertifiedReport

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 2)), np.arange(120) % 2
SHIFTED = RNG.normal(size=(400, 2)) + 3.0
VOID, WARN, WEAK, INFO, PLAN = (Caveat(effect, effect.name) for effect in Effect)


def search(pool=SHIFTED, **options):
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, Y, pool, random_state=0,
        **options,
    )  # fmt: skip
    return plan, plan.run()


def test_caveats__stand_in_the_order_of_their_effects_and_once():
    expected = (VOID, WARN, WEAK, INFO, PLAN)
    assert collect_caveats([PLAN, INFO, WEAK], [VOID, WARN, INFO]) == expected
    graver = Caveat(Effect.VOIDS, INFO.text)
    assert collect_caveats([INFO], [graver]) == (graver,)


def test_reason__that_voids_both_bounds_is_printed_once():
    _, outcome = search()
    [reason] = outcome.certificate.reasons
    start = "classifier distinguishes labeled rows from pool rows, most by column "
    assert re.search(
        rf"{start}\S+( then by .+)? \(AUC [\d.]+, p = [\d.e-]+\)", reason
    ), reason
    finding = reason.removeprefix(
        "A1 is violated (independent draws from one population): "
    )
    assert [each.reasons for each in outcome.certificates.values()] == [(reason,)] * 2
    for shown in (outcome.choice, *outcome.certificates.values()):
        head, line, *_ = str(shown).splitlines()
        assert str(shown).count(finding[1:]) == 1
        assert line[1:] == finding[1:]
        assert re.search(
            r"population\): the computed [\d.]+% is no bound, model tr", head
        )
    text = str(outcome.choice)
    assert text.count(" is no bound") == 2
    assert "No guarantee, for the reason above: the computed " in text
    assert "violated: labeled rows and pool" in str(outcome.certificate)
    # The rows that void these bounds would void that of a hold-out set.
    assert "hold-out" not in text
    assert np.isnan(outcome.choice.expected_holdout)


def test_choice__says_what_voids_then_what_weakens_then_what_is_good_to_know():
    second = Caveat(Effect.VOIDS, "second")
    made = Certificate(0.1, 0.05, "nested", "one_fold", caveats=(VOID, second))
    models = {"one_fold": BoundedModel("one_fold", 0, {"C": 1.0}, made)}
    choice = Choice("cv_error", 0.1, models, "one_fold", caveats=(WEAK, INFO))
    names = [name for name, _ in choice.shown_rows() if name]
    assert names == ["Chosen", "Caveat", "Caveat", "Caveat"]
    assert choice.remarks == ("WEAKENS", "INFO")
    assert choice.certificate.reasons == ("VOIDS", "second")


def test_what_weakens_a_plan__is_said_by_every_choice_from_its_cube():
    copies = np.repeat(X[:40], 3, axis=0)
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 5]}, copies, Y, random_state=0
    )
    outcome = plan.run()
    [copied] = [each for each in plan.facts.caveats if each.effect is Effect.WARNS]
    assert "equal rows of other folds" in copied.text
    for choice in (outcome.choice, dsel.select(outcome, "cv_error")):
        assert copied in choice.caveats
        assert str(choice).startswith("Warning   ")
    assert "by nearest" not in str(outcome.choice)  # what is about the plan stays there


def test_folds_that_were_given__void_numbers_of_plan_and_choice():
    plan, outcome = search(None, cv=KFold(3), criterion="cv_error")
    text = "the folds are not plain random: `cv` gave them"
    assert plan.facts.caveats[0] == Caveat(Effect.VOIDS, text)
    assert f"NOT CERTIFIED: {text}" in " ".join(str(plan).split())
    assert text in outcome.certificate.reasons


CERTIFICATE = {"unclipped": 0.1, "delta": 0.05, "criterion": "nested",
               "deploy": "one_fold"}  # fmt: skip
REPORT = {"delta": 0.05, "model": "m", "classes": ["a"], "rows": [3], "recall": [0.5],
          "recall_at_least": [0.1], "precision": [0.5], "precision_at_least": [0.1],
          "error": 0.1, "error_at_most": 0.2}  # fmt: skip
CHOICE = {"candidate": 0, "params": {}, "criterion": "cv_error", "estimate": 0.1,
          "certificates": {"one_fold": CERTIFICATE}, "deploy": "one_fold"}  # fmt: skip
OLDER = [
    (Certificate, CERTIFICATE, "objections", "reasons"),
    (CertifiedReport, REPORT, "remarks", "reasons"),
    (Choice, CHOICE, "remarks", "remarks"),
]


@pytest.mark.parametrize(("kind", "record", "field", "view"), OLDER)
def test_texts_of_older_records__become_caveats(kind, record, field, view):
    made = kind.from_json(json.dumps({**record, field: ["first", "second"]}))
    assert getattr(made, view) == ("first", "second")
    assert kind.from_json(made.to_json()) == made


def test_reports_of_older_records__say_whose_their_estimates_are():
    made = CertifiedReport.from_json(json.dumps(REPORT))
    assert (made.recall.pooled, made.precision.pooled) == ((0.5,), (0.5,))
    assert made.error.pooled == (0.1,)
    assert (made.recall.own, made.precision.own, made.error.own) == ((), (), ())
    assert (made.recall_at_least, made.error_at_most) == ((0.1,), 0.2)
    assert "recall" not in made.to_dataframe()
    assert CertifiedReport.from_json(made.to_json()) == made
    # A record without limits is no report.
    forged = {k: v for k, v in REPORT.items() if k != "error_at_most"}
    with pytest.raises(TypeError):
        CertifiedReport.from_json(json.dumps(forged))


@pytest.mark.parametrize(("kind", "record", "field", "view"), OLDER)
@pytest.mark.parametrize("forged", [7, "text", [1], {"a": 1}, None])
def test_forged_texts__are_refused(kind, record, field, view, forged):
    with pytest.raises(TypeError, match="has no"):
        kind.from_json(json.dumps({**record, field: forged}))


@pytest.mark.parametrize("forged", [[{"effect": "ALL", "text": "a"}], [7], "text"])
def test_forged_caveats__are_refused(forged):
    with pytest.raises(TypeError):
        Certificate.from_json(json.dumps({**CERTIFICATE, "caveats": forged}))


def test_choice__says_where_a_bound_does_not_beat_a_constant():
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(200, 2)), np.arange(200) % 5 == 0
    outcome = dsel.certify(LogisticRegression(C=1e-9), rows, labels, random_state=0)
    assert outcome.certificate.bound >= 0.2
    words = "better than always predicting False (20.0%)"
    assert words in str(outcome.choice)
    assert "; baseline='largest class' tests" in str(outcome.choice)
    easy = dsel.certify(LogisticRegression(), rows, rows[:, 0] > 0, random_state=0)
    assert "always predicting" in str(easy.choice)  # the line of the comparison
    assert "better than always predicting False" not in str(easy.choice)


def test_choice__compares_with_the_same_hold_out_set_whatever_is_reported():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 2))
    model, labels = LogisticRegression(), rows[:, 0] > 0
    plain, reported = (
        dsel.certify(model, rows, labels, random_state=0, report=report)
        for report in (False, True)
    )
    assert reported.choice.expected_holdout == plain.choice.expected_holdout
    assert reported.certificate.bound > plain.certificate.bound
    text = " ".join(str(reported.choice).split())
    assert "computed with 99%, and would be smaller without a report" in text
    assert "a 20% hold-out set without a report would give a bound of about" in text
    assert "hold-out set would give a bound of about" in str(plain.choice)
    assert "without a report they are smaller" not in str(plain.choice)


def test_caveats_of_a_plan__are_repeated_but_those_about_how_it_runs():
    regressor = dsel.plan_search(
        KNeighborsRegressor(), {"n_neighbors": [1, 5]}, X, Y * 1.0, random_state=0
    )
    information = [
        each for each in regressor.facts.caveats if each.effect is Effect.INFO
    ]
    assert information
    assert {*information} <= {*regressor.run().choice.caveats}
    [note] = regressor.search.fit_notes
    assert "2 candidates by scikit-learn" in note
    assert note in " ".join(str(regressor).split())
    assert note not in str(regressor.run().choice)


def test_a_model_that_predicts_one_class_only__is_the_first_thing_said():
    X, y = RNG.normal(size=(200, 2)), np.repeat(["ok", "fraud"], [180, 20])
    for C, is_told in ((1e-6, True), (1.0, False)):
        X_apart = X + 3 * (y == "fraud")[:, None]
        outcome = dsel.plan_search(
            LogisticRegression(), {"C": [C]}, X_apart, y, report=True, random_state=0
        ).run()
        fitted = LogisticRegression(C=C).fit(X_apart, y)
        given = dsel.certify(fitted, X_apart, y, cv="prefit", report=True)
        whole = Choice.from_json(outcome.choice.to_json())
        for shown, model in (
            (outcome.choice, "model trained on 80% of the labels"),
            (whole, "model trained on 80% of the labels"),
            (outcome.certificate, "model trained on 80% of the labels"),
            (outcome.certified_report(), "model trained on 80% of the labels"),
            (given, "model as given"),
            (given.certified_report(), "model as given"),
        ):
            first = f"Warning   the {model} predicted 'ok' for all of 200 labeled rows"
            assert str(shown).startswith(first) == is_told
            assert str(shown).count("predicted 'ok'") == is_told


@pytest.mark.parametrize("is_copied", [False, True])
@pytest.mark.parametrize("learner", [LogisticRegression(), Ridge()])
def test_frames_of_reports__say_whether_their_limits_are_a_guarantee(
    learner, is_copied
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    X[:, 0] = np.round(X[:, 0]).clip(-1, 1)
    y = X.sum(axis=1) + rng.normal(size=150)
    if is_copied:  # then labeled rows are no independent draws
        X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    outcome = dsel.certify(
        learner, X, y > 0 if isinstance(learner, LogisticRegression) else y,
        rng.normal(size=(300, 3)) if is_copied else None,
        report=True, report_by=0, random_state=0,
    )  # fmt: skip
    for report in (outcome.certified_report(), outcome.report_by_value()):
        assert report.certified != is_copied
        assert report.to_dataframe().certified.tolist() == (
            [not is_copied] * len(report.to_dataframe())
        )
        assert str(report).startswith("No guarantee, since") == is_copied
    # A number without a guarantee has no confidence to share.
    shares = "share the 95% confidence" in " ".join(str(outcome.choice).split())
    assert shares != is_copied


def test_caveats_of_both_models__are_one_line_and_of_rare_classes_one_note():
    rare = np.repeat(["ok", "a", "b", "c"], [170, 10, 10, 10])
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [1e-6, 1e-7]}, RNG.normal(size=(200, 2)), rare,
        RNG.normal(size=(400, 2)), random_state=0,
    )  # fmt: skip
    choice = plan.run().choice
    notes = [
        text for name, text in choice.shown_rows() if name in ("Warning", "Caveat")
    ]
    models = (
        "the model trained on 80% of the labels and the model trained on all labels"
    )
    assert notes[0].startswith(f"{models} predicted 'ok' for all of 200 labeled rows")
    assert sum("predicted 'ok'" in text for text in notes) == 1
    [found] = [text for text in notes if "the models of all folds found" in text]
    assert found.count("of 10 rows of the class") == 3
    assert found.endswith("(an estimate)")
    [advice] = [text for name, text in choice.shown_rows() if name == "Next"]
    assert "): loss='balanced' chooses for classes 'a', 'b', 'c'" in advice
    assert Choice.from_json(choice.to_json()).shown_rows() == choice.shown_rows()


def test_a_rare_class_that_is_mostly_missed__is_named_with_the_way_out():
    rng = np.random.default_rng(0)
    fraud = np.arange(1000) % 14 == 0
    rows = rng.normal(size=(1000, 1)) + 1.45 * fraud[:, np.newaxis]
    y = np.where(fraud, "fraud", "ok")
    model = LogisticRegression()
    plans = {
        loss: dsel.plan_search(model, {"C": [1.0, 10.0]}, rows, y, loss=loss,
                               random_state=0)
        for loss in ("error", "balanced")
    }  # fmt: skip
    outcome = plans["error"].run()
    fold = plans["error"].search.scheme.outer_splits[outcome.certificate.fold].test_rows
    there = fold[fraud[fold]]
    right = int((outcome.model.predict(rows[there]) == "fraud").sum())
    assert 2 * right < len(there)
    said = " ".join(str(outcome.choice).split())
    assert (
        f"(of its {len(there)} the model trained on 80% of the labels found {right})"
    ) in said
    way = "loss='balanced' or 'recall:fraud' chooses for class 'fraud'"
    assert said.count(f"(a second search of these proves nothing): {way}") == 1
    assert "chooses for class" not in str(plans["balanced"].run().choice)
    # One candidate is chosen by no loss: its own parameters have the way.
    grid = GridSearchCV(model, {"C": [1.0, 10.0]})
    scored = GridSearchCV(model, {"C": [1.0, 10.0]}, scoring="neg_log_loss")
    for alone, way in (
        (
            grid,
            "scoring='balanced_accuracy' of the search inside chooses for class "
            "'fraud'",
        ),
        (scored, "label more rows of class 'fraud'"),
        (model, "class_weight='balanced' of the model finds more of class 'fraud'"),
        (KNeighborsClassifier(40), ""),
    ):
        choice = dsel.certify(alone, rows, y, random_state=0).choice
        assert "(an estimate)\n" in str(choice)
        [advice] = [c.advice for c in choice.caveats if "(an estimate)" in c.text]
        assert advice == way
        assert way in str(choice)


def test_a_candidate_that_some_searches_dropped__is_chosen_if_it_is_better():
    # Rankings by few rows of a class differ from fold to fold, and some searches drop
    # the best candidate in their first round.
    rng = np.random.default_rng(38)
    y = np.where(rng.random(600) < 0.015, "fraud", "ok")
    rows = rng.normal(size=(600, 4)) + 1.2 * (y == "fraud")[:, np.newaxis]
    grid = {"C": [0.01, 0.1, 1, 10], "class_weight": [None, "balanced"]}
    pool = rng.normal(size=(500, 4))
    halved, whole = (
        dsel.plan_search(
            LogisticRegression(), grid, rows, y, pool, loss="balanced",
            random_state=38, prune=prune,
        ).run(n_jobs=1)
        for prune in (True, False)
    )  # fmt: skip
    best = {"C": 0.01, "class_weight": "balanced"}
    assert "partly pruned" in halved.results.dsel.table().status.to_list()
    for outcome in (halved, whole):
        assert outcome.bounded_models["all_rows"].params == best


def test_a_rare_class__has_the_rows_that_the_models_of_all_folds_found():
    rng = np.random.default_rng(0)
    fraud = np.arange(1000) % 14 == 0
    rows = rng.normal(size=(1000, 1)) + 2.5 * fraud[:, np.newaxis]
    y = np.where(fraud, "fraud", "ok")
    said, n = {}, int(fraud.sum())
    for loss in ("error", "recall:fraud"):
        plan = dsel.plan_search(
            LogisticRegression(), {"C": [1.0]}, rows, y, loss=loss, random_state=0
        )
        said[loss] = " ".join(str(plan.run().choice).split())
        found = [
            LogisticRegression().fit(rows[s.train_rows], y[s.train_rows]).predict(
                rows[s.test_rows]) for s in plan.search.scheme.fold_splits
        ]  # fmt: skip
        truth = np.concatenate([y[s.test_rows] for s in plan.search.scheme.fold_splits])
        predicted = np.concatenate(found) == "fraud"
        right = int((predicted & (truth == "fraud")).sum())
        text = f"of {n} rows of the class 'fraud' the models of all folds found {right}"
        assert text in said[loss]
    share = f"{100 * right / predicted.sum():.1f}%"
    assert (
        f"; where they predict it ({predicted.sum()} rows), {share} are right"
        in said[loss]
    )
    assert "where they predict it" not in said["error"]
    assert "the models of all folds found" not in str(search()[1].choice)


def test_pool_rows_that_equal_labeled_ones__are_noted_once():
    _, outcome = search(np.vstack([X[:30], RNG.normal(size=(400, 2))]))
    note = "Caveat 30 of 430 pool rows equal labeled rows; bounds allow for it"
    for shown in (outcome.choice, outcome.certificate):
        assert " ".join(str(shown).split()).count(note) == 1
    assert "equal labeled rows; bounds" not in str(search(RNG.normal(size=(400, 2)))[1])


def test_a_class_that_a_model_never_finds__is_the_first_thing_said():
    rows = np.array([[0.0]] * 90 + [[1.0]] * 60 + [[2.0]] * 50)
    y = np.array(["a"] * 90 + ["b"] * 60 + ["c"] * 50)
    # A tree with two leaves predicts two of three classes.
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    said = str(dsel.certify(tree, rows, y, random_state=0).choice)
    assert said.startswith(
        "Warning   the model trained on 80% of the labels found none of "
        "50 rows of the class 'c'"
    )
    # One that knows its training rows alone finds none that it has not seen.
    noise = RNG.normal(size=(300, 1))
    labels = np.where(np.arange(300) % 4 == 0, "fraud", "ok")

    class Memory(KNeighborsClassifier):
        def predict(self, X):
            distances, _ = self.kneighbors(X)
            found = super().predict(X)
            return np.where(distances[:, 0] == 0, found, "ok")

    known = str(dsel.certify(Memory(1), noise, labels, random_state=0).choice)
    assert re.match(
        r"Warning .* found none of \d+ rows of the class 'fraud' that it had not seen",
        known,
    )


def test_the_other_model__is_named_where_it_finds_the_class_that_one_misses():
    class NeedsMany(DecisionTreeClassifier):
        """A tree that predicts one class until it has 200 rows."""

        def fit(self, X, y):
            is_small = len(y) < 200
            return super().fit(X, np.full(len(y), y[0]) if is_small else y)

    pool = RNG.normal(size=(300, 2))
    X, y = RNG.normal(size=(200, 2)), np.repeat(["ok", "fraud"], [150, 50])
    X[:, 0] += 3 * (y == "fraud")
    outcome = dsel.certify(NeedsMany(random_state=0), X, y, pool, random_state=0)
    said = str(outcome.choice)
    assert said.startswith("Warning   the model trained on 80% of the labels predicted")
    assert "; deploy='all_rows' deploys it" in said
    assert "the warning above is about the deployed model alone: the model tra" in said


def test_choice__has_all_caveats_in_its_json():
    _, outcome = search()
    texts = [each.text for each in outcome.choice.all_caveats]
    stored = json.loads(outcome.choice.to_json())["all_caveats"]
    assert [each["text"] for each in stored] == texts != []
    assert Choice.from_json(outcome.choice.to_json()) == outcome.choice
