"""A run that has ended is opened from its place alone."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dsel
from dsel.results.query_files import keep_labeled_result


class Squares(FunctionTransformer):
    """An estimator that only its author knows."""


@pytest.fixture
def rows(rng):
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    return X[:150], np.where(X.a[:150] > 0, "yes", "no"), X[150:]


def plan_of(rows):
    grid = {"C": [0.1, 1.0, 10.0]}
    return dsel.plan_search(
        LogisticRegression(), grid, *rows, n_queries=5, random_state=0
    )


@pytest.fixture
def run(rows, tmp_path):
    return plan_of(rows).run(out=tmp_path / "run")


def test_open_outcome__is_the_outcome_of_the_run(run, rows, tmp_path):
    opened = dsel.open_outcome(tmp_path / "run")
    assert opened.choice == run.choice
    assert str(opened) == str(run)
    assert opened.certificates == run.certificates
    assert opened.results.identical(dsel.open_results(tmp_path / "run"))
    assert opened.pair_results.equals(run.pair_results)
    for name, model in run.models.items():
        there = opened.bounded_models[name]
        assert there.params == run.bounded_models[name].params
        assert (there.model.predict(rows[2]) == model.predict(rows[2])).all()
    # Columns are found by their names, as the run found them.
    assert (opened.predict(rows[2]) == run.predict(rows[2])).all()
    with pytest.raises(ValueError, match="lacks the column 'a' of the labeled"):
        opened.predict(rows[2].rename(columns={"a": "z"}))
    table = opened.predict_table(rows[2], out=tmp_path / "p.csv")
    assert table.n_rows == 450
    pd.testing.assert_frame_equal(opened.query_rows(), run.query_rows())
    text = rows[2].astype({"b": object})
    text.iloc[3, 1] = "old"
    search = dsel.SemiSupervisedSearchCV(LogisticRegression(), {"C": [1.0]})
    for model in (run, opened, search.fit(*rows[:2])):
        with pytest.raises(ValueError, match="column 'b' of `X` has 'old' in row 3"):
            model.predict(text)
        assert (model.predict(rows[2].astype(str)) == model.predict(rows[2])).all()
    report = opened.monitor(rows[2], labeled=rows[0].assign(more=1)[::-1])
    assert report.tests[0].result == "kept"
    with pytest.raises(
        ValueError, match="150 labeled rows of the search, its X, got 9"
    ):
        opened.monitor(rows[2], labeled=rows[0][:9])
    with pytest.raises(ValueError, match="but 150 of the passed rows are not among"):
        opened.monitor(rows[2], labeled=rows[2][:150])
    with pytest.raises(
        TypeError, match="`labeled` must hold rows of features, got str"
    ):
        opened.monitor(rows[2], labeled="labeled.csv")


def test_open_outcome__needs_nothing_but_the_place(run, tmp_path):
    code = "import sys, dsel; print(dsel.open_outcome(sys.argv[1]).choice)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(run.choice)


def test_open_outcome__has_the_bound_that_labels_gave(run, rows, tmp_path):
    place = tmp_path / "run"
    labels = pd.Series("yes", run.query_rows().index)
    labeled = run.certify_with_labels(labels)
    keep_labeled_result(place, labeled.choice)
    assert dsel.open_outcome(place).choice == labeled.choice
    # So has the plan that is run again, and its search.
    again = plan_of(rows).run(out=place)
    assert again.choice == labeled.choice
    assert again.results.attrs["choice"] == labeled.results.attrs["choice"]
    assert (again.predict(rows[2]) == labeled.predict(rows[2])).all()
    with pytest.raises(ValueError, match="`labels` are known already"):
        again.certify_with_labels(labels)


def test_open_outcome__opens_no_model_that_nobody_trusts(rows, tmp_path):
    model = make_pipeline(Squares(), LogisticRegression())
    made = dsel.certify(model, *rows, random_state=0, out=tmp_path / "own")
    opened = dsel.open_outcome(tmp_path / "own")
    assert opened.certificate == made.certificate
    with pytest.raises(ValueError, match="not trusted"):
        _ = opened.model
    trusted = [f"{Squares.__module__}.Squares"]
    opened = dsel.open_outcome(tmp_path / "own", trusted=trusted)
    assert (opened.predict(rows[2]) == made.predict(rows[2])).all()


def test_open_outcome__refuses_what_has_no_outcome(run, tmp_path):
    dsel.save_results(run.results, tmp_path / "cube")
    with pytest.raises(FileNotFoundError, match=r"`place` .* holds no search"):
        dsel.open_outcome(tmp_path / "cube")
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        dsel.open_outcome(tmp_path / "nothing")
    with pytest.raises(TypeError, match="`trusted`"):
        dsel.open_outcome(tmp_path / "run", trusted="mine.Model")
    with pytest.raises(TypeError, match=r"`trust`.*is `trusted` here"):
        dsel.open_outcome(tmp_path / "run", trust=["mine.Model"])
