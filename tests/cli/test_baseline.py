"""`dsel select --baseline`: is the new model better than the one in production?"""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.results import save_model
from tests.shell import run, succeed

ASKED = ("--target", "label", "--model", "logistic", "--grid", "C=0.1,1")


def table(rng, n=400):
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = np.where(X[:, 1] > 0.5, "new", "old")
    return frame.assign(label=np.where(X[:, 0] + X[:, 1] > 0, "yes", "no"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, and results of a weak model that was trained on other rows."""
    folder, rng = tmp_path_factory.mktemp("baseline"), np.random.default_rng(0)
    table(rng).to_csv(folder / "labeled.csv", index=False)
    table(rng, 300).drop(columns="a").to_csv(folder / "older.csv", index=False)
    succeed("select", folder / "older.csv", *ASKED, "--out", folder / "old")
    return folder


def select(place, *more):
    return run("select", place / "labeled.csv", *ASKED, *more)


def test_select__says_whether_the_model_is_better_than_the_one_of_a_folder(
    place, tmp_path
):
    words = ("--baseline", place / "old", "--verbose", "--out", tmp_path / "out")
    done = select(place, *words)
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "Better than the baseline (Pipeline with LogisticRegression): errs" in text
    assert "baseline whether the models err less than the baseline" in text
    made = dsel.select(dsel.open_results(tmp_path / "out"))
    assert made.baseline.is_better
    assert made.baseline.headline() in text
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "out", "--out", page).exit_code == 0
    assert made.baseline.headline() in " ".join(page.read_text().split())


def test_select__compares_with_the_largest_class_and_prints_json(place):
    done = select(place, "--baseline", "largest class", "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    found = record["baseline"]["one_fold"]
    assert found["is_better"]
    assert found["upper"] < 0
    assert found["line"].startswith("Better than always predicting '")
    assert "baseline" not in json.loads(select(place, "--json").stdout)


def test_select__opens_a_kept_model_of_numbers(place, tmp_path):
    rows = np.random.default_rng(1).normal(size=(400, 3))
    y = (rows[:, 0] > 0).astype(int)
    np.savez(tmp_path / "labeled.npz", X=rows, y=y)
    save_model(LogisticRegression().fit(-rows[:50], y[:50]), tmp_path / "kept")
    done = succeed(
        "select", tmp_path / "labeled.npz", "--model", "logistic", "--baseline",
        tmp_path / "kept", "--quiet",
    )  # fmt: skip
    assert "Better than the baseline (LogisticRegression): errs" in done.output


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--baseline", "nowhere"], "'--baseline': there is nothing at 'nowhere'"),
        (["--baseline", "OLD", "--drop", "b"], "the column 'b', which LABELED lacks"),
        (["--baseline", "OLD", "--loss", "balanced"], "loss=balanced"),
        (
            ["--baseline", "largest class", "--certificate", "holdout"],
            "--baseline 'largest class' is compared with",
        ),
    ],
)
def test_baseline__is_refused_in_one_line(more, words, place):
    more = [place / "old" if each == "OLD" else each for each in more]
    done = select(place, *more)
    assert done.exit_code != 0
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_baseline__that_learned_a_column_as_another_kind_is_refused(place, tmp_path):
    frame = pd.read_csv(place / "labeled.csv").assign(kind=1.5)
    frame["kind"] += np.arange(len(frame))
    frame.to_csv(tmp_path / "other.csv", index=False)
    done = run("select", tmp_path / "other.csv", *ASKED, "--baseline", place / "old")
    assert done.exit_code != 0
    assert "--baseline learned the column 'kind' as" in " ".join(done.output.split())


def test_baseline__that_knows_these_rows_is_refused(place, tmp_path):
    older, labeled = (
        pd.read_csv(place / name) for name in ("older.csv", "labeled.csv")
    )
    older["a"] = 0.0  # of this column the baseline knows nothing
    both = pd.concat([labeled, older[::-1]])
    both.to_parquet(tmp_path / "both.parquet", index=False)
    done = run(
        *("select", tmp_path / "both.parquet", *ASKED, "--baseline", place / "old")
    )
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "/old' was trained on 300 of these 700 labeled rows, so it would" in text
    assert "Chosen" not in text


@pytest.mark.filterwarnings("always")
def test_baseline__of_few_different_rows_is_told_by_all_of_them(tmp_path, rng):
    rows = pd.DataFrame(rng.integers(0, 4, size=(300, 3)), columns=list("abc"))
    rows["label"] = np.where(rows.sum(axis=1) > 4, "yes", "no")
    rows.to_csv(tmp_path / "old.csv", index=False)
    rows.assign(c=rng.integers(0, 5, 300)).to_csv(tmp_path / "new.csv", index=False)
    succeed("select", tmp_path / "old.csv", *ASKED, "--out", tmp_path / "old")
    words = ("--baseline", tmp_path / "old", "--quiet")
    done = run("select", tmp_path / "old.csv", *ASKED, *words)
    assert done.exit_code == 1
    assert "300 of these 300 labeled rows" in " ".join(done.output.split())
    done = succeed("select", tmp_path / "new.csv", *ASKED, *words)
    assert "of these 300 labeled rows equal rows that --baseline" in done.stderr
