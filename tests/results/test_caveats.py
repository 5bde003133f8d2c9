"""Caveats: one list, the gravest first, each text once; older results have texts."""

import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import dsel
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Caveat, Effect, collect_caveats
from dsel.results.certificate import CertifiedReport
from dsel.results.prefit import PrefitCertificate

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 2)), np.arange(120) % 2
SHIFTED = RNG.normal(size=(400, 2)) + 3.0
VOID, WEAK, INFO, PLAN = (Caveat(effect, effect.name) for effect in Effect)


def search(pool=SHIFTED, **options):
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 5]}, X, Y, pool, random_state=0,
        **options,
    )  # fmt: skip
    return plan, plan.run()


def test_caveats__stand_in_the_order_of_their_effects_and_once():
    expected = (VOID, WEAK, INFO, PLAN)
    assert collect_caveats([PLAN, INFO, WEAK], [VOID, INFO]) == expected
    graver = Caveat(Effect.VOIDS, INFO.text)
    assert collect_caveats([INFO], [graver]) == (graver,)


def test_reason__that_voids_both_bounds_is_printed_once():
    _, outcome = search()
    [reason] = outcome.certificate.reasons
    start = "classifier distinguishes labeled rows from pool rows, most by column "
    assert re.search(rf"{start}\S+ \(AUC [\d.]+, p = [\d.e-]+\)", reason), reason
    finding = reason.removeprefix("A1 is violated: ")
    assert [each.reasons for each in outcome.certificates.values()] == [(reason,)] * 2
    for shown in (outcome.choice, *outcome.certificates.values()):
        assert str(shown).count(finding) == 1
    assert "No guarantee, for the reason above: about" in str(outcome.choice)
    assert "A1, violated: labeled rows" in str(outcome.certificate)


def test_choice__says_what_voids_then_what_weakens_then_what_is_good_to_know():
    second = Caveat(Effect.VOIDS, "second")
    made = Certificate(0.1, 0.05, "nested", "one_fold", caveats=(VOID, second))
    models = {"one_fold": BoundedModel("one_fold", 0, {"C": 1.0}, made)}
    choice = Choice("cv_error", 0.1, models, "one_fold", caveats=(WEAK, INFO))
    names = [name for name, _ in choice.facts() if name]
    assert names == ["But", "Caveat", "Note"]
    assert choice.remarks == ("WEAKENS", "INFO")
    assert choice.certificate.reasons == ("VOIDS", "second")


def test_what_weakens_a_plan__is_said_by_every_choice_from_its_cube():
    copies = np.repeat(X[:40], 3, axis=0)
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 5]}, copies, Y, random_state=0
    )
    outcome = plan.run()
    [weak] = [each for each in plan.caveats if each.effect is Effect.WEAKENS]
    assert "equal rows of other folds" in weak.text
    for choice in (outcome.choice, dsel.select(outcome, "cv_error")):
        assert weak in choice.caveats
    assert "by nearest" not in str(outcome.choice)  # what is about the plan stays there


def test_folds_that_were_given__void_numbers_of_plan_and_choice():
    plan, outcome = search(None, cv=KFold(3), criterion="cv_error")
    text = "the folds are not plain random: `cv` gave them"
    assert plan.caveats[0] == Caveat(Effect.VOIDS, text)
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
    (PrefitCertificate, CERTIFICATE, "remarks", "remarks"),
    (CertifiedReport, REPORT, "remarks", "remarks"),
    (Choice, CHOICE, "remarks", "remarks"),
]


@pytest.mark.parametrize(("kind", "record", "field", "view"), OLDER)
def test_texts_of_older_records__become_caveats(kind, record, field, view):
    made = kind.from_json(json.dumps({**record, field: ["first", "second"]}))
    assert getattr(made, view) == ("first", "second")
    assert kind.from_json(made.to_json()) == made


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
    assert "not show that the model is better than always predicting False" in str(
        outcome.choice
    )
    easy = dsel.certify(LogisticRegression(), rows, rows[:, 0] > 0, random_state=0)
    assert "always predicting" in str(easy.choice)  # the line of the comparison
    assert "not show that the model is better" not in str(easy.choice)


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
    assert "without a report they are smaller" in str(reported.choice)
    assert "without a report they are smaller" not in str(plain.choice)


def test_caveats_of_a_plan__are_repeated_but_those_about_how_it_runs():
    regressor = dsel.plan_search(
        KNeighborsRegressor(), {"n_neighbors": [1, 5]}, X, Y * 1.0, random_state=0
    )
    information = [each for each in regressor.caveats if each.effect is Effect.INFO]
    assert information
    assert {*information} <= {*regressor.run().choice.caveats}
    [note] = regressor.fit_notes
    assert "2 candidates by scikit-learn" in note
    assert note in " ".join(str(regressor).split())
    assert note not in str(regressor.run().choice)


def test_choice__says_that_its_model_predicts_one_class_only():
    X, y = RNG.normal(size=(200, 2)), np.repeat(["ok", "fraud"], [180, 20])
    for C, n_notes in ((1e-6, 1), (1.0, 0)):
        outcome = dsel.plan_search(
            LogisticRegression(), {"C": [C]}, X + 3 * (y == "fraud")[:, None], y,
            random_state=0,
        ).run()  # fmt: skip
        note = "predicts ok for all of 200 labeled rows"
        assert str(outcome.choice).count(note) == n_notes
