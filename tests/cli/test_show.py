import json
import re

import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from dsel.cli.show import show
from dsel.searches import execute, plan_search

X, y = make_classification(90, 4, random_state=0)


def shown(capsys, as_json=False, **options):
    options = {"criterion": "cv_bound", "cv": 3, "random_state": 0} | options
    plan = plan_search(SVC(), {"C": [1.0, 10.0]}, X[:60], y[:60], X[60:], **options)
    outcome = execute(plan, n_jobs=1)
    show(plan, outcome, n_labeled=60, n_unlabeled=30, as_json=as_json, out=None)
    return capsys.readouterr().out


def test_show__says_in_four_lines_what_was_chosen_and_how_wrong_it_can_be(capsys):
    lines = shown(capsys).splitlines()
    names = [line.split()[0] for line in lines[:5]]
    assert names == ["Chosen", "Error", "Why", "Smaller", "From"]
    assert re.search(
        r"at most .* % \(95 % sure\); cross-validation says .* %", lines[1]
    )
    assert "(A1)" in "\n".join(lines[6:])


@pytest.mark.parametrize(
    "criterion",
    ["cv_error", "disagreement", "dis_error", "max_dt_e", "train_error", "two_fold_cv"],
)
def test_show__calls_no_estimate_a_bound(capsys, criterion):
    text = shown(capsys, criterion=criterion)
    assert "at most" not in text
    assert "NO guarantee" in text.splitlines()[1]
    assert f"by {criterion}: " in text.splitlines()[2]


def test_show__as_json_has_no_estimate_that_was_not_counted(capsys):
    facts = json.loads(shown(capsys, criterion="disagreement", as_json=True))
    assert facts["cv_error"] is None


def test_show__as_json_has_the_estimate_of_the_text(capsys):
    options = {"criterion": "cv_error", "certificate": "nested", "cv": 5}
    estimate = json.loads(shown(capsys, as_json=True, **options))["estimate"]
    assert f"cross-validation says {100 * estimate:.1f} %" in shown(capsys, **options)
