"""What released versions of dsel kept is opened, and what newer ones keep is refused.

The archives in `kept` were written by the version in their names: a search of four
candidates on 100 rows of iris, with the other 50 as the pool, one of them by a loss and
with a report.
"""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import dsel
from dsel.results import open_model, open_results

pytestmark = pytest.mark.contract
KEPT = Path(__file__).parent / "kept"
OPTIONS = {
    "search-0.2": {},
    "report-0.2": {"loss": dsel.losses.balanced(), "report": True},
}
BOUNDS = {
    "search-0.2": {"one_fold": 0.20770634075774025, "all_rows": 0.35139431942703914},
    "report-0.2": {"one_fold": 0.6294993311956587, "all_rows": 1.680150033308033},
}


@pytest.fixture(params=sorted(OPTIONS))
def kept(request, tmp_path):
    """Return the name and the place of one archive."""
    with tarfile.open(KEPT / f"{request.param}.tar.gz") as archive:
        # Python 3.11 before 3.11.4 has no filter; the archive is our own.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path, **safe)
    return request.param, tmp_path / request.param


def plan_of(name):
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)
    X, y, grid = X[rows], y[rows], {"C": [0.5, 8.0], "gamma": [0.25]}
    return dsel.plan_search(
        SVC(), grid, X[:100], y[:100], X[100:], random_state=7, **OPTIONS[name]
    )


def test_kept__results_say_what_they_said(kept):
    name, place = kept
    choice = dsel.select(open_results(place))
    assert choice.params == {"C": 8.0, "gamma": 0.25}
    certificates = choice.certificates
    assert {n: each.unclipped for n, each in certificates.items()} == BOUNDS[name]
    assert all(each.certified for each in certificates.values())
    if name == "report-0.2":
        assert choice.report().recall_at_least[0] == 0.33273942430884973
        assert choice.certificate.loss == "balanced([0, 1, 2])"


def test_kept__models_have_one_record_each(kept):
    name, place = kept
    choice = dsel.select(open_results(place))
    assert list(choice.bounded_models) == ["one_fold", "all_rows"]
    for deploy, each in choice.bounded_models.items():
        assert each.name == deploy
        assert each.certificate.unclipped == BOUNDS[name][deploy]
        assert each.params == choice.params
        assert each.candidate == choice.candidate
        assert (each.report is not None) == (name == "report-0.2")
    assert choice.from_json(choice.to_json()) == choice


def test_kept__models_predict(kept):
    X, y = load_iris(return_X_y=True)
    for deploy in ("one_fold", "all_rows"):
        assert np.mean(open_model(kept[1], name=deploy).predict(X) == y) > 0.95


def test_kept__the_same_plan_reads_it_or_says_in_a_line_why_not(kept):
    name, place = kept
    plan, why = plan_of(name), ""
    try:
        found = plan.run(out=place).certificates
    except ValueError as error:
        why = str(error)
    if why:
        assert "holds another plan: " in why
        assert "\n" not in why
    else:
        assert {n: each.unclipped for n, each in found.items()} == BOUNDS[name]


def test_results__of_a_newer_dsel_are_refused_by_their_number(tmp_path):
    outcome = plan_of("search-0.2").run(out=tmp_path / "out")
    record = json.loads(outcome.choice.to_json())
    newer = json.dumps(record | {"version": 99, "new": 1})
    with pytest.raises(ValueError, match=r"the choice is of version 99 and this dsel"):
        dsel.select(outcome.results.assign_attrs(choice=newer))
    later = outcome.results.assign_attrs(dsel_schema_version=99)
    dsel.save_results(later, tmp_path / "cube")
    with pytest.raises(ValueError, match=r"the cube is of version 99"):
        open_results(tmp_path / "cube")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Certificate"},
        {"candidate": "3"},
        {"candidate": True},
        {"params": [1]},
        {"estimate": None},
        {"deploy": 3},
        {"certificates": {"one_fold": {"kind": "Choice"}}},
        {"certificates": 1},
        {"deployed": {"one_fold": {"kind": "Choice"}}},
        {"deployed": {"all_rows": {"certificate": 1}}},
        {"deployed": {}},
        {"deployed": 1},
        {"deploy": "best"},
        {"unheard_of": 1},
        {"version": "old"},
    ],
    ids=str,
)
def test_results__of_a_forged_choice_are_refused(change):
    outcome = plan_of("search-0.2").run()
    record = json.loads(outcome.choice.to_json())
    forged = outcome.results.assign_attrs(choice=json.dumps(record | change))
    with pytest.raises(ValueError, match="has the attribute choice"):
        dsel.select(forged)
