"""The best constant prediction, for each loss that has one."""

import json

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.losses.calls import best_constant
from dsel.losses.error_rate import ERROR_RATE
from dsel.report.page import report_html

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = np.where(RNG.random(400) < 0.1, "ja", "nein")
GRID = {"min_samples_leaf": [1, 5]}
DEAR = dsel.losses.cost({("ja", "nein"): 50, ("nein", "ja"): 1})

CONSTANTS = [
    (ERROR_RATE, ("nein", np.mean(Y == "ja"))),
    (dsel.losses.balanced(["ja", "nein"]), ("nein", 0.5)),
    (DEAR, ("ja", np.mean(Y == "nein"))),
    (dsel.losses.recall("ja"), None),
    (dsel.losses.precision("ja"), None),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "expected"), CONSTANTS)
def test_best_constant__has_the_smallest_loss_on_the_rows(loss, expected):
    codes = np.unique(Y, return_inverse=True)[1]
    found = best_constant(loss, codes, ["ja", "nein"])
    if expected is None:
        assert found is None
    else:
        assert found == (expected[0], pytest.approx(expected[1]))


def search(loss):
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    plan = dsel.plan_search(model, GRID, X, Y, loss=loss, random_state=0)
    return plan.run(n_jobs=1)


SHOWN = [
    ("balanced", "No better than always predicting nein (50.0%), as far as these rows"),
    (DEAR, f"No better than always predicting ja ({np.mean(Y == 'nein'):.3f}), as far"),
]


@pytest.mark.parametrize(("loss", "line"), SHOWN)
def test_choice__compares_every_loss_of_all_rows_with_a_constant(loss, line):
    outcome = search(loss)
    choice = outcome.choice
    assert str(choice).count("always predicting") == str(choice).count(line) == 1
    assert "always predicting" in choice._repr_html_()
    stored = json.loads(outcome.results.attrs["constant_prediction"])
    assert stored == [choice.constant, choice.constant_loss]
    assert "always predicting" in report_html(outcome.results)
    record = json.loads(choice.to_json())
    assert record["constant_loss"] == choice.constant_loss
    del record["constant"], record["constant_loss"]  # as older versions wrote it
    older = type(choice).from_json(json.dumps(record))
    assert "Compare   always" not in str(older)
    assert older.certificates == choice.certificates


def test_choice__of_a_recall_has_no_constant():
    assert "always predicting" not in str(search(dsel.losses.recall("ja")).choice)


def test_choice__by_a_bound_of_all_candidates_has_the_note_too():
    plan = dsel.plan_search(
        DecisionTreeClassifier(max_depth=1), GRID, X, Y, X + 0.1,
        certificate="cv_bound", random_state=0,
    )  # fmt: skip
    assert " better than always predicting " in str(plan.run().choice)
