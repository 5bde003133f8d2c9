"""`dsel predict` as a user has it: results, a new table, a file of predictions."""

import codecs
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from pyarrow import parquet
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import dsel
from dsel.data.tables import read_table
from dsel.errors import GuaranteeWarning
from dsel.results import open_model, save_model, save_results
from dsel.results.cube import grid_axes, make_cube
from tests.clusters import wait_until
from tests.shell import OWN_CODE, run, succeed

N_LABELED = 150


def customers(n_rows, seed=0):
    """Return a table of text, numbers, truth values, dates and gaps; and labels."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 3000, n_rows), unit="D")
    frame = pd.DataFrame({
        "customer_id": [f"{number:05d}" for number in rng.permutation(n_rows)],
        "age": rng.normal(45, 15, n_rows).round(2),
        "visits": rng.poisson(3, n_rows),
        "city": rng.choice(["Ulm", "Bonn", "Kiel"], n_rows),
        "member": rng.choice(["yes", "no"], n_rows),
        "since": (pd.Timestamp("2015-01-01") + days).strftime("%Y-%m-%d"),
    })  # fmt: skip
    labels = np.where((frame["age"] > 45) | (frame["city"] == "Ulm"), "good", "bad")
    for name in ("age", "city", "since"):
        frame.loc[rng.random(n_rows) < 0.05, name] = None
    return frame, labels


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of a search on a CSV table of customers."""
    folder = tmp_path_factory.mktemp("searched")
    frame, labels = customers(N_LABELED)
    frame = frame.drop(columns="customer_id")
    frame.assign(label=labels).to_csv(folder / "labeled.csv", index=False)
    succeed(
        "select", folder / "labeled.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1,10", "--cv", 3, "--out", folder / "results", "--quiet",
    )  # fmt: skip
    return folder / "results"


@pytest.fixture
def new(tmp_path):
    """A new table: other order, more columns, the labels, and a town never seen."""
    frame, labels = customers(90, seed=1)
    frame.loc[2, "city"] = "Mars"
    frame = frame[[*reversed(frame.columns)]].assign(label=labels, note="x")
    frame.to_csv(tmp_path / "new.csv", index=False)
    return frame


def opened(path):
    if path.suffix == ".zarr":
        return xr.open_zarr(path).to_dataframe().reset_index(drop=True)
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype={"customer_id": str})
    return pd.read_parquet(path)


def rows_of(results, frame):
    """Return a table of texts as the model of the results takes it."""
    frame = frame[[*open_model(results).feature_names_in_]]
    return frame.assign(
        member=frame["member"] == "yes", since=pd.to_datetime(frame["since"])
    )


@pytest.mark.parametrize("ending", ["parquet", "csv", "zarr"])
def test_predict__writes_what_the_model_predicts_in_the_order_of_the_table(
    results, new, tmp_path, ending
):
    out = tmp_path / f"p.{ending}"
    found = succeed(
        "predict", results, tmp_path / "new.csv", "--out", out, "--id", "customer_id"
    )
    bound, predicted, unused, wrote, after = found.stdout.splitlines()
    assert predicted.startswith("Predicted: ")
    assert after.startswith(f"Next      dsel monitor {results} {tmp_path / 'new.csv'}")
    assert bound.startswith("Error at most ")
    assert unused == "Not used of NEW: label (the target), note"
    assert wrote.startswith(f"Wrote 90 rows to {out}: customer_id, label")
    model, X = open_model(results), rows_of(results, new)
    got = opened(out)
    assert [*got.columns] == [
        "customer_id", "label", "probability_bad", "probability_good",
    ]  # fmt: skip
    assert (got["customer_id"].astype(str) == new["customer_id"]).all()
    assert (got["label"].astype(str) == model.predict(X)).all()
    np.testing.assert_allclose(got.iloc[:, 2:].astype(float), model.predict_proba(X))
    assert sorted(os.listdir(tmp_path)) == ["new.csv", out.name]


def test_predict__counts_the_rows_of_each_class_in_all_blocks(
    results, new, tmp_path, monkeypatch
):
    monkeypatch.setattr("dsel.search.outcomes.table_rows.BLOCK_ROWS", (7, 7))
    words = ("predict", results, tmp_path / "new.csv", "--out")
    found = run(*words, tmp_path / "p.csv")
    counts = opened(tmp_path / "p.csv")["label"].value_counts()
    text = ", ".join(f"{n} {name}" for name, n in counts.items())
    assert f"\nPredicted: {text}\n" in found.stdout
    made = json.loads(run(*words, tmp_path / "q.csv", "--json").stdout)
    assert made["predicted"] == counts.to_dict()


def test_predict__gives_row_numbers_where_no_column_is_carried(results, new, tmp_path):
    found = run(
        "predict", results, tmp_path / "new.csv", "--out", tmp_path / "p.csv", "--quiet"
    )
    assert found.stdout.count("\n") == 1
    assert opened(tmp_path / "p.csv")["row"].tolist() == [*range(90)]
    found = run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "q.csv")
    assert found.stdout.splitlines()[-2] == (
        "Its column row is the number of the row in NEW, from 0; to join by a key of "
        "NEW instead, write --id customer_id"
    )


@pytest.mark.parametrize("chunks", ["one row group", "many", "a folder"])
def test_predict__of_parquet_is_that_of_the_same_csv(results, new, tmp_path, chunks):
    path = tmp_path / "new.parquet"
    if chunks == "a folder":
        path = tmp_path / "new"
        path.mkdir()
        new[:40].to_parquet(path / "a.parquet", index=False)
        new[40:].to_parquet(path / "b.parquet", index=False)
    else:
        new.to_parquet(path, index=False, row_group_size=90 if chunks[0] == "o" else 7)
    for source in (tmp_path / "new.csv", path):
        out = tmp_path / f"{source.suffix[1:] or 'folder'}.csv"
        succeed("predict", results, source, "--out", out, "--id", "customer_id")
    csv, other = (opened(each) for each in sorted(tmp_path.glob("*[!w].csv")))
    assert csv.equals(other)


def test_predict__predicts_as_the_same_table_in_blocks(results, tmp_path, monkeypatch):
    frame, _ = customers(500, seed=2)
    frame.to_csv(tmp_path / "new.csv", index=False)
    run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "a.parquet")
    monkeypatch.setattr("dsel.search.outcomes.table_rows.BLOCK_ROWS", (7, 7))
    run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "b.parquet")
    one, many = (opened(tmp_path / f"{name}.parquet") for name in "ab")
    assert len(many) == 500
    pd.testing.assert_frame_equal(one, many, rtol=1e-9)  # sums are rounded otherwise


def test_predict__writes_a_table_without_rows_for_one(results, new, tmp_path):
    new[:0].to_csv(tmp_path / "new.csv", index=False)
    new[:0].to_parquet(tmp_path / "new.parquet", index=False)
    succeed(
        "predict", results, tmp_path / "new.parquet", "--out", tmp_path / "p.parquet"
    )
    assert len(opened(tmp_path / "p.parquet")) == 0
    found = run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert found.exit_code == 1 or len(opened(tmp_path / "p.csv")) == 0
    assert found.exit_code == 0 or found.output.count("\n") == 1


WRONG = [
    ({}, ["--out", "new.csv"], "--out must be free, but "),
    ({}, ["--out", "s3://a/p.csv"], "--out must be a path of this machine"),
    ({}, ["--id", "number"], "lacks the column 'number' (of --id); it has "),
    ({}, ["--id", "label"], "--id names 'label', as a column of predictions is called"),
    ({}, ["--deploy", "all_rows"], "holds no model 'all_rows'; it has one_fold"),
    ({"age": "old"}, [], "column 'age' of {new} has 'old' in line 6; it holds numbers"),
    ({"since": "soon"}, [], "column 'since' of {new} has 'soon' in line 6; it holds "),
    ({"member": "perhaps"}, [], "column 'member' of {new} has 'perhaps' in line 6"),
    ({"age": None, "city": None}, [], "{new} lacks the columns 'age', 'city' of the"),
]  # fmt: skip


def test_predict__tells_all_unknown_words_of_a_table_in_one_stop(
    results, new, tmp_path
):
    frame = new.astype(object)
    frame.loc[[3, 4, 5], "age"] = "old", "young", "older"
    frame.loc[6, "since"] = "soon"
    frame.to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert done.exit_code == 1
    assert "has 'old' in line 5, and 'young', 'older' in other rows" in done.output
    assert "column 'since'" in done.output
    assert "--drop" not in done.output
    [_, command] = done.output.splitlines()
    words = shlex.split(command.removeprefix("Run: dsel "))
    given = [words[k + 1] for k, word in enumerate(words) if word == "--gap"]
    assert given == ["old", "young", "older", "soon"]
    succeed(*words)
    frame.loc[[3, 4, 5], "age"] = frame.loc[6, "since"] = None
    frame.to_csv(tmp_path / "clean.csv", index=False)
    succeed("predict", results, tmp_path / "clean.csv", "--out", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


@pytest.mark.parametrize(("changes", "words", "message"), WRONG)
def test_predict__refuses_in_one_line_and_writes_nothing(
    results, new, tmp_path, monkeypatch, changes, words, message
):
    monkeypatch.chdir(tmp_path)
    frame = new.astype(object)
    for name, value in changes.items():
        if value is None:
            frame = frame.drop(columns=name)
        else:
            frame.loc[4, name] = value
    frame.to_csv("new.csv", index=False)
    out = [] if "--out" in words else ["--out", "p.csv"]
    found = run("predict", results, "new.csv", *out, *words)
    assert found.exit_code == 1
    assert message.format(new="'new.csv'") in " ".join(found.output.split())
    error, *commands = found.output.splitlines()
    assert error.startswith("Error: ")
    assert all(line.startswith(("Run: dsel ", "Run: python ")) for line in commands)
    assert os.listdir() == ["new.csv"]


def test_predict__refuses_what_holds_no_model(new, tmp_path):
    (tmp_path / "empty").mkdir()
    cube = make_cube(grid_axes({"C": [1, 10]}), {"fold": 5}, {})
    save_results(cube, tmp_path / "cube")
    for place, message in (
        ("empty", "there are no results at "),
        ("cube", "it has none; `save_model` keeps one"),
    ):
        found = run(
            "predict",
            tmp_path / place,
            tmp_path / "new.csv",
            "--out",
            tmp_path / "p.csv",
        )
        assert found.exit_code == 1
        assert message in found.output
        assert found.output.count("\n") == 1
    found = run("predict", tmp_path / "cube", tmp_path / "new.csv")
    assert found.exit_code == 2


@pytest.mark.parametrize("certificate", ["cv_bound", "holdout", "best_fold"])
def test_predict__takes_the_results_of_other_certificates(tmp_path, certificate):
    frame, labels = customers(N_LABELED)
    X = frame[["visits"]].assign(age=frame["age"].fillna(0))
    pool = X.sample(frac=1, random_state=0).reset_index(drop=True)
    plan = dsel.plan_search(
        SVC(), {"C": [1.0, 10.0], "gamma": [0.01]}, X, labels, pool,
        certificate=certificate, random_state=0, cv=3,
    )  # fmt: skip
    outcome = plan.run(out=tmp_path / "results")
    pool[["age", "visits"]].to_csv(tmp_path / "new.csv", index=False)
    found = run(
        "predict", tmp_path / "results", tmp_path / "new.csv",
        "--out", tmp_path / "p.csv",
    )  # fmt: skip
    certificate = outcome.certificate
    assert found.exit_code == (3 if certificate.says_nothing else 0)
    assert found.stdout.split("\n")[0] == str(certificate.headline())
    labels = outcome.model.predict(pool)  # the file has its columns in another order
    assert (opened(tmp_path / "p.csv")["label"] == labels).all()


def test_predict__of_a_saved_model_says_that_it_has_no_bound(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    save_model(LinearRegression().fit(X, X[:, 0]), tmp_path / "kept")
    np.save(tmp_path / "new.npy", X)
    found = run(
        "predict", tmp_path / "kept", tmp_path / "new.npy", "--out", tmp_path / "p.csv"
    )
    assert found.stdout.startswith(
        "No error bound: the model was stored by `save_model`"
    )
    np.testing.assert_allclose(opened(tmp_path / "p.csv")["prediction"], X[:, 0])
    np.save(tmp_path / "new.npy", X[:, :1])
    found = run(
        "predict", tmp_path / "kept", tmp_path / "new.npy", "--out", tmp_path / "q.csv"
    )
    assert found.exit_code == 1
    assert "has 1 column but" in found.output


@pytest.fixture
def own(tmp_path, rng):
    """A folder with a module, results of its model, and a new table of numbers."""
    (tmp_path / "mine.py").write_text(OWN_CODE)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    X[:200].assign(label=X["a"] > 0).to_csv(tmp_path / "labeled.csv", index=False)
    X[200:].to_csv(tmp_path / "new.csv", index=False)
    done = dsel_in(
        tmp_path, "select", "labeled.csv", "--target", "label", "--model",
        "mine:pipeline", "--out", "results", "--quiet", "--cv", "3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tmp_path


def dsel_in(folder, *words):
    # -P leaves the folder out of the path, as the installed command does.
    command = [sys.executable, "-P", "-m", "dsel", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_predict__builds_types_of_the_user_where_they_are_trusted(own):
    done = dsel_in(own, "predict", "results", "new.csv", "--out", "p.csv")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("in a shell --trust mine.Own --trust mine.halved.")
    done = dsel_in(
        own, "predict", "results", "new.csv", "--out", "p.csv", "--trust", "mine.Own",
        "--trust", "mine.halved",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(opened(own / "p.csv")) == 200
    done = dsel_in(
        own, "predict", "results", "new.csv", "--out", "q.csv", "--trust", "no.Own"
    )
    assert done.returncode == 2
    assert "'no.Own' cannot be imported" in done.stderr


@pytest.mark.cluster
def test_predict__works_on_processes(own):
    done = dsel_in(
        own, "predict", "results", "new.csv", "--out", "p.csv", "--trust", "mine.Own",
        "--trust", "mine.halved",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for source, out in (("new.csv", "q.csv"), ("new.parquet", "r.csv")):
        pd.read_csv(own / "new.csv").to_parquet(own / "new.parquet", row_group_size=50)
        done = dsel_in(
            own, "predict", "results", source, "--out", out, "--trust", "mine.Own",
            "--trust", "mine.halved", "--workers", "2",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (own / out).read_bytes() == (own / "p.csv").read_bytes()


SLOW = """
import time
from pathlib import Path
from sklearn.naive_bayes import GaussianNB

class Slow(GaussianNB):
    def predict(self, X):
        if len(X) > 500:
            Path("began").touch()
            time.sleep(3)
        return super().predict(X)

def model():
    return Slow()
"""


@pytest.mark.parametrize(
    ("ending", "number"), [("csv", signal.SIGINT), ("zarr", signal.SIGTERM)]
)
def test_predict__that_is_interrupted_leaves_nothing(tmp_path, rng, ending, number):
    (tmp_path / "mine.py").write_text(SLOW)
    X = pd.DataFrame(rng.normal(size=(1000, 2)), columns=["a", "b"])
    X[:90].assign(label=X["a"] > 0).to_csv(tmp_path / "labeled.csv", index=False)
    X.to_csv(tmp_path / "new.csv", index=False)
    done = dsel_in(
        tmp_path, "select", "labeled.csv", "--target", "label", "--model",
        "mine:model", "--out", "results", "--quiet", "--cv", "3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {*os.listdir(tmp_path)}
    command = [
        sys.executable, "-P", "-m", "dsel", "predict", "results", "new.csv", "--out",
        f"p.{ending}", "--trust", "mine.Slow",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        wait_until((tmp_path / "began").exists)
        process.send_signal(number)
        _, error = process.communicate(timeout=100)
    assert process.returncode == 130, error
    assert b"Interrupted. Nothing is at p." in error
    assert {*os.listdir(tmp_path)} == names | {"began"}


def test_predict__says_which_values_no_labeled_row_has(results, tmp_path):
    frame, _ = customers(90, seed=1)
    frame.loc[[2, 40, 41, 80], "city"] = ["Mars", "Rome", "Mars", "Oslo"]
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet", index=False, row_group_size=20)
    for name in ("new.csv", "new.parquet"):
        out = tmp_path / f"{name}.csv"
        found = succeed("predict", results, tmp_path / name, "--out", out, "--json")
        said = {"column": "city", "n_rows": 4, "values": ["Mars", "Rome", "Oslo"]}
        said |= {"n_gaps": 0, "n_alike": 0, "alike": None, "limits": None}
        content = json.loads(found.stdout)
        assert content["unknown_values"] == [said]
        assert content["note_on_bound"] == (
            "The bound says nothing about 4 of these 90 rows: they hold values that "
            "no labeled row has"
        )
        assert found.stderr == (
            "Note: in 4 rows column 'city' has values that no labeled row has, such as "
            "'Mars', 'Rome', 'Oslo': the models have learned nothing about them.\n"
        )


def test_predict__new_texts_are_no_news_where_each_labeled_row_has_its_own(tmp_path):
    # A pipeline that reads words was tested on rows whose texts were all new to it.
    frame, labels = customers(240)
    frame["note"] = [f"{label} {n} pears" for n, label in enumerate(labels)]
    model = make_pipeline(
        make_column_transformer((CountVectorizer(), "note")), LogisticRegression()
    )
    results = tmp_path / "results"
    outcome = dsel.certify(model, frame[:150], labels[:150], out=results)
    for name in ("new.csv", "new.parquet"):
        new = frame[150:].assign(city="Mars")
        getattr(new, f"to_{name[4:]}")(tmp_path / name, index=False)
        with pytest.warns(GuaranteeWarning, match="column 'city' has values") as told:
            made = outcome.predict_table(tmp_path / name, out=tmp_path / f"p{name}.csv")
        assert len(told) == 1
        assert [(each.column, each.n_rows) for each in made.unknown] == [("city", 90)]
    report = dsel.open_outcome(results).monitor(frame[150:])
    assert not [note for note in report.notes if "'note'" in note]


def test_predict_table__knows_no_category_that_is_in_no_labeled_row(tmp_path):
    frame, labels = customers(200)
    cities = pd.Categorical(frame.city.fillna("Ulm"), ["Bonn", "Kiel", "Mars", "Ulm"])
    frame = frame[["age"]].fillna(45).assign(city=cities)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression())
    outcome = dsel.certify(model, frame[:150], labels[:150])
    frame[150:].assign(city="Mars").to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(GuaranteeWarning, match="column 'city' has values that no"):
        made = outcome.predict_table(tmp_path / "new.csv", out=tmp_path / "p.csv")
    assert made.n_unlike == 50


def test_predict__knows_values_of_labeled_rows_only(tmp_path):
    frame, labels = customers(200)
    unlabeled = frame[150:].assign(city="Mars", label=None)
    frame = pd.concat([frame[:150].assign(label=labels[:150]), unlabeled])
    frame.drop(columns="customer_id").to_csv(tmp_path / "both.csv", index=False)
    selected = run(
        "select", tmp_path / "both.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--out", tmp_path / "results", "--quiet",
    )  # fmt: skip
    assert selected.exit_code == 3, selected.output  # the pool has another city
    frame[100:].to_csv(tmp_path / "new.csv", index=False)
    found = run(
        "predict", tmp_path / "results", tmp_path / "new.csv", "--quiet", "--out",
        tmp_path / "p.csv",
    )  # fmt: skip
    assert "in 50 rows column 'city' has values" in found.stderr
    assert found.exit_code == 3  # nothing was certified, so no bound is about any row


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding", "words"),
    [
        (";", ",", "utf-8-sig", " (separated by ';', decimal commas)"),
        (";", ".", "utf-8", " (separated by ';')"),
        ("\t", ".", "utf-16", " (separated by tab)"),
        (",", ".", "utf-8-sig", ""),
    ],
)
def test_predict__writes_text_as_the_table_was_written(
    results, new, tmp_path, separator, decimal, encoding, words
):
    form = {"sep": separator, "decimal": decimal, "encoding": encoding}
    new.to_csv(tmp_path / "people.csv", index=False, **form)
    for name in ("new.csv", "people.csv"):
        out = tmp_path / f"of-{name}"
        found = succeed(
            "predict", results, tmp_path / name, "--out", out, "--id", "customer_id"
        )
    assert f"people.csv{words}:" in " ".join(found.stdout.split())
    assert (out.read_bytes()[:3] == codecs.BOM_UTF8) == (encoding != "utf-8")
    got = pd.read_csv(out, sep=separator, decimal=decimal, dtype={"customer_id": str})
    assert got.equals(opened(tmp_path / "of-new.csv"))


def test_predict__writes_decimal_commas_where_nothing_tells(tmp_path):
    # A spreadsheet program that separates by semicolons reads 1.5 as the first of May.
    frame, labels = customers(200)
    whole = frame[["visits", "city"]].assign(label=labels)
    whole.to_csv(tmp_path / "t.csv", index=False, sep=";")
    results = tmp_path / "results"
    succeed(
        "select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--out", results, "--quiet",
    )  # fmt: skip
    succeed("predict", results, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    got = pd.read_csv(tmp_path / "p.csv", sep=";", decimal=",")
    assert got["probability_good"].between(0, 1).all()


def test_predict__writes_decimal_points_where_amounts_of_money_have_them(tmp_path):
    frame, labels = customers(200)
    paid = [f"${1000 + 10 * visits:,.2f}" for visits in frame["visits"]]
    table = pd.DataFrame({"paid": paid, "label": labels})
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    results = tmp_path / "results"
    succeed(
        "select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--number", "paid", "--out", results, "--quiet",
    )  # fmt: skip
    found = succeed("predict", results, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert "(separated by ';')" in found.stdout
    got = pd.read_csv(tmp_path / "p.csv", sep=";")
    assert got.filter(like="probability").to_numpy().dtype == np.float64


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_predict__takes_fractions_where_labeled_rows_have_whole_numbers(
    results, tmp_path, ending
):
    frame, _ = customers(40, seed=8)
    frame["since"] = frame["since"].where(frame["since"].notna(), "2015-01-01")
    frame["visits"] = frame["visits"].astype(float)
    frame.loc[16, "visits"] = 3.5
    path, out = tmp_path / f"new.{ending}", tmp_path / "out.parquet"
    if ending == "parquet":
        typed = frame.assign(member=frame["member"] == "yes")
        typed.assign(since=pd.to_datetime(frame["since"])).to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    succeed("predict", results, path, "--out", out)
    expected = open_model(results).predict(rows_of(results, frame))
    assert pd.read_parquet(out)["label"].tolist() == expected.tolist()


@pytest.mark.parametrize("labeled", ["l.csv", "l.parquet"])
@pytest.mark.parametrize("new", ["n.csv", "n.parquet"])
def test_predict__names_gaps_of_a_column_that_had_none(labeled, new, tmp_path):
    frame, labels = customers(N_LABELED)
    frame = frame.drop(columns=["customer_id", "since"]).fillna({"city": "Ulm"})
    others = frame.assign(city=[None, "Mars", *frame["city"][2:]])
    for table, name in ((frame.assign(label=labels), labeled), (others, new)):
        write = table.to_csv if name.endswith("csv") else table.to_parquet
        write(tmp_path / name, index=False)
    succeed(
        "select", tmp_path / labeled, "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--out", tmp_path / "results", "--quiet",
    )  # fmt: skip
    for command in ("predict", "monitor"):
        out = ("--out", tmp_path / "p.csv") if command == "predict" else ()
        found = run(command, tmp_path / "results", tmp_path / new, *out)
        said = " ".join(found.output.split())
        assert (
            "in 1 row column 'city' has values that no labeled row has, such as "
            "'Mars', and in 1 row it is empty, as in no labeled row: the models have "
            "learned nothing about them"
        ) in said


def test_predict__names_lines_above_the_header(results, tmp_path):
    frame, _ = customers(30, seed=1)
    for title in ("Customers of today\n", "# of today\n"):
        (tmp_path / "new.csv").write_text(title + frame.to_csv(index=False))
        out = tmp_path / "p.csv"
        found = run("predict", results, tmp_path / "new.csv", "--out", out)
        if title.startswith("#"):
            assert found.exit_code == 0, found.output
            assert "that begins with # is left out: '# of today'" in found.stderr
        else:
            assert found.exit_code == 1
            assert "If line 2 is the header, remove the lines above it" in found.stderr


def test_predict__reads_dates_in_the_order_that_select_was_given(tmp_path):
    days = pd.Series(pd.date_range("2020-01-01", periods=300).to_numpy())
    days = days[days.dt.day <= 12].reset_index(drop=True)  # no date shows the order
    label = np.where(days.dt.month > 5, "late", "early")
    ask = ("--target", "label", "--model", "logistic", "--grid", "C=1", "--cv", 3)
    for name, form in (("iso", "%Y-%m-%d"), ("day", "%d/%m/%Y"), ("month", "%m/%d/%Y")):
        frame = pd.DataFrame({"x": days.dt.day})
        frame = frame.assign(seen=days.dt.strftime(form))
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        known = frame.assign(label=label)[np.arange(len(frame)) % 8 > 0]
        known.to_csv(tmp_path / f"l_{name}.csv", index=False)
    refused = run("select", tmp_path / "l_day.csv", *ask)
    assert "write --dayfirst or --monthfirst" in " ".join(refused.output.split())
    for name, option in (("iso", ()), ("day", ["--dayfirst"]),
                         ("month", ["--monthfirst"])):  # fmt: skip
        pool, labeled = tmp_path / f"{name}.csv", tmp_path / f"l_{name}.csv"
        succeed("pool", "build", pool, tmp_path / f"{name}.parquet", "--like",
                    labeled, "--target", "label", *option)  # fmt: skip
        succeed("select", labeled, *ask, *option, "--pool", pool, "--out",
                   tmp_path / name)  # fmt: skip
        for source in (pool, tmp_path / f"{name}.parquet"):
            out = tmp_path / f"{name}_{source.suffix[1:]}.parquet"
            succeed("predict", tmp_path / name, source, "--out", out)
            expected = tmp_path / "iso_csv.parquet"
            pd.testing.assert_frame_equal(
                pd.read_parquet(out), pd.read_parquet(expected)
            )
    succeed("predict", tmp_path / "day", tmp_path / "l_iso.csv", "--out",
                tmp_path / "p.csv")  # fmt: skip
    refused = run("pool", "build", tmp_path / "day.csv", tmp_path / "d.parquet",
                  "--dayfirst")  # fmt: skip
    assert refused.exit_code == 2
    assert "the labeled table of --like" in " ".join(refused.output.split())


def test_predict__gives_no_text_back_of_a_pool_that_another_table_converted(tmp_path):
    lines = [f"{k}.50,{'ab'[k % 2]}\n" for k in range(40)]
    (tmp_path / "pool.csv").write_text("code,z\n" + "".join(lines))
    (tmp_path / "numbers.csv").write_text("code,z\n1.5,a\n2,b\n")
    texts = [f"A{k % 3},{'ab'[k % 2]},{'uv'[k % 2]}\n" for k in range(60)]
    (tmp_path / "texts.csv").write_text("code,z,label\n" + "".join(texts))
    pool = tmp_path / "pool.parquet"
    assert run("pool", "build", tmp_path / "pool.csv", pool, "--like",
               tmp_path / "numbers.csv").exit_code == 0  # fmt: skip
    refused = run("select", tmp_path / "texts.csv", "--target", "label", "--pool", pool)
    assert refused.exit_code == 1
    assert "'code' holds text in the labeled table and numbers in" in refused.output


IDS = {
    "date": ([date(2020, 1, 2)] * 3, "2020-01-02"),
    "decimal": ([Decimal("1.50")] * 3, "1.50"),
    "time": ([time(1, 2)] * 3, "01:02:00"),
    "large": ([2**60 + 1, None, 2**60 + 3], 2**60 + 1),
    "text": (["007", None, 'a\n"b"'], "007"),
}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", IDS)
def test_predict__copies_columns_of_any_type_as_they_are(
    results, tmp_path, kind, ending
):
    values, first = IDS[kind]
    frame = customers(3, seed=1)[0].drop(columns="customer_id")
    frame = frame.assign(
        member=frame.member == "yes", since=pd.to_datetime(frame.since)
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column("key", pa.array(values))
    parquet.write_table(table, tmp_path / "new.parquet")
    out = tmp_path / f"p.{ending}"
    new = tmp_path / "new.parquet"
    found = run("predict", results, new, "--out", out, "--id", "key")
    assert found.exit_code == 0, found.output
    if ending == "csv":
        assert pd.read_csv(out, dtype=str)["key"][0] == str(first)
    else:
        assert parquet.read_table(out)["key"][0].as_py() == first
        assert parquet.read_table(out)["key"].null_count == values.count(None)


def test_predict__refuses_to_copy_lists(results, tmp_path):
    frame = customers(3, seed=1)[0].drop(columns="customer_id")
    frame = frame.assign(
        member=frame.member == "yes", since=pd.to_datetime(frame.since)
    )
    frame.assign(key=[[1], [2], [3]]).to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "p.csv"
    found = run(
        "predict", results, tmp_path / "new.parquet", "--out", out, "--id", "key"
    )
    assert found.exit_code == 1
    assert "column 'key' cannot be written with predictions" in found.output
    assert not out.exists()


def test_predict__names_codes_that_lost_their_zeros(tmp_path):
    frame, labels = customers(N_LABELED)
    codes = [("04109", "10115", "20095")[row % 3] for row in range(N_LABELED)]
    frame = pd.DataFrame({"age": frame["age"], "zip": codes, "label": labels})
    frame.to_csv(tmp_path / "t.csv", index=False)
    succeed(
        "select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--out", tmp_path / "results", "--quiet",
    )  # fmt: skip
    new = frame.drop(columns="label")
    for name, rows in (("all", 49), ("one", 1)):
        some = new[:49].assign(zip=["4109"] * rows + ["10115"] * (49 - rows))
        some = pd.concat([some, *[new.assign(zip="10115")] * (2 * (rows == 1))])
        some.to_csv(tmp_path / f"{name}.csv", index=False)
        found = run(
            "predict", tmp_path / "results", tmp_path / f"{name}.csv", "--out",
            tmp_path / f"p_{name}.csv",
        )  # fmt: skip
        # The bound is about hardly any row of one table, and about most of the other.
        assert found.exit_code == (3 if name == "all" else 0), found.output
        assert (tmp_path / f"p_{name}.csv").exists()
        said = " ".join(found.output.split())
        assert (
            "labeled rows have '04109', so zeros at the beginning may be lost" in said
        )
        assert ("The bound says nothing about 49 of these 49 rows" in said) == (
            rows == 49
        )
        # A bound below this note would be a promise about these rows.
        assert ("Error at most" in said) == ("Next dsel monitor" in said) == (rows == 1)


def test_predict__says_that_rows_are_those_of_the_search(results, new, tmp_path):
    frame, labels = customers(N_LABELED)
    frame.assign(label=labels).to_csv(tmp_path / "old.csv", index=False)
    frame.to_parquet(tmp_path / "old.parquet", index=False)
    said = f"{N_LABELED:,} of these {N_LABELED:,} rows equal labeled rows of the search"
    for name in ("old.csv", "old.parquet"):
        out = tmp_path / f"p_{name}.csv"
        assert said in succeed("predict", results, tmp_path / name, "--out", out).stderr
    found = succeed(
        "predict", results, tmp_path / "new.csv", "--out", tmp_path / "p.csv"
    )
    assert "equal labeled rows" not in found.output


def test_predict__quotes_only_texts_that_need_it(results, tmp_path):
    frame, _ = customers(90, seed=1)
    names = [f"K{n}" for n in range(89)]
    for last, written in (("K89", "K89"), ('K"8,9', '"K""8,9"')):
        table = frame.assign(customer_id=[*names, last])
        table.to_csv(tmp_path / "n.csv", index=False)
        out = tmp_path / f"{len(last)}.csv"
        succeed("predict", results, tmp_path / "n.csv", "--out", out, "--id",
                "customer_id")  # fmt: skip
        text = out.read_text()
        assert text.splitlines()[-1].startswith(f"{written},")
        assert ('"' in text) == ('"' in last)
        assert pd.read_csv(out)["customer_id"].tolist() == [*names, last]


def test_predict__names_values_that_differ_in_capital_letters(results, tmp_path):
    frame, _ = customers(90, seed=1)
    frame = frame.fillna({"city": "Ulm"})
    frame.assign(city=frame.city.str.upper()).to_csv(tmp_path / "n.csv", index=False)
    out = tmp_path / "p.csv"
    found = run("predict", results, tmp_path / "n.csv", "--out", out, "--quiet")
    assert found.exit_code == 3
    said = " ".join(found.output.split())
    assert re.search("labeled rows have '.*', which differs only in capital", said)
    assert "Error at most" not in said


@pytest.mark.parametrize("header", ['""', "Unnamed: 0"])
def test_predict__keeps_names_of_rows_that_no_model_uses(header, tmp_path):
    """R's `write.csv` and pandas' `to_csv` write them into a column without a name."""
    frame, labels = customers(N_LABELED)
    frame = frame.drop(columns="customer_id")
    lines = frame.assign(label=labels).to_csv(index=False).split("\n", 1)
    lines[1] = "".join(
        f'"Car {n}",{line}\n' for n, line in enumerate(lines[1].splitlines())
    )
    (tmp_path / "l.csv").write_text(f"{header},{lines[0]}\n{lines[1]}")
    done = succeed(
        "select", tmp_path / "l.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--out", tmp_path / "r",
    )  # fmt: skip
    said = " ".join(done.output.split())
    assert "has the numbers or names of rows: no model uses it" in said
    assert "(kept for predictions)" in said
    names = [f"Car {n}" for n in range(N_LABELED)]
    for ending in ("csv", "parquet", "zarr"):
        out = tmp_path / f"p.{ending}"
        succeed("predict", tmp_path / "r", tmp_path / "l.csv", "--out", out)
        if ending == "zarr":
            name = "row" if header == '""' else header
            found = xr.open_zarr(out)[name].values.tolist()
        else:
            read = getattr(pd, f"read_{ending}")(out)
            assert read.columns[1] == "label"
            found = read.iloc[:, 0].tolist()
        assert found == names
    # Another table need not have them, and --id names other columns.
    frame.to_csv(tmp_path / "u.csv", index=False)
    succeed("predict", tmp_path / "r", tmp_path / "u.csv", "--out", tmp_path / "u2.csv")
    assert pd.read_csv(tmp_path / "u2.csv").columns[0] == "row"
    succeed("predict", tmp_path / "r", tmp_path / "l.csv", "--out",
            tmp_path / "a.csv", "--id", "age")  # fmt: skip
    assert list(pd.read_csv(tmp_path / "a.csv").columns[:2]) == ["age", "label"]
    frame.assign(x=names).set_axis([*frame.columns, "Unnamed: 0"], axis=1)[
        ["Unnamed: 0", *frame.columns]
    ].to_parquet(tmp_path / "u.parquet")
    succeed("predict", tmp_path / "r", tmp_path / "u.parquet", "--out",
            tmp_path / "b.csv")  # fmt: skip
    assert pd.read_csv(tmp_path / "b.csv")["Unnamed: 0"].tolist() == names


def test_read_table__takes_names_of_rows_in_options(tmp_path):
    (tmp_path / "l.csv").write_text("Unnamed: 0,x,label\n0,1,a\n1,2,b\n")
    for options in ({"drop": ["Unnamed: 0"]}, {"ids": ["Unnamed: 0"]}):
        table = read_table(tmp_path / "l.csv", target="label", **options)
        assert table.columns == ("x",)
    assert table.ids["Unnamed: 0"].tolist() == ["0", "1"]
    (tmp_path / "l.csv").write_text(",x,label\n0,1,a\n1,2,b\n")
    with pytest.raises(ValueError, match="its first column has no name, and no model"):
        read_table(tmp_path / "l.csv", target="label", drop=["Unnamed: 0"])
    table = read_table(tmp_path / "l.csv", target="label", ids=[""])
    assert table.ids[""].tolist() == ["0", "1"]
    pd.DataFrame(
        {"Unnamed: 0": [5, 6], "x": [1.0, 2.0], "label": ["a", "b"]}
    ).to_parquet(tmp_path / "l.parquet")
    table = read_table(tmp_path / "l.parquet", target="label")
    assert (table.columns, table.schema.dropped) == (("x",), ("Unnamed: 0",))
    assert "names of rows" in table.caveats[0]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "feather"])
def test_predict__names_the_row_of_a_text_that_is_no_number(results, tmp_path, ending):
    """In JSON lines numbers and texts stand in one column."""
    frame, _ = customers(90, seed=1)
    ages = frame["age"].astype(object)
    ages[17] = "pending"
    frame["age"] = ages if ending == "jsonl" else ages.astype(str)
    new = tmp_path / f"new.{ending}"
    if ending == "jsonl":
        frame.to_json(new, orient="records", lines=True, date_format="iso")
    else:
        getattr(frame, f"to_{ending}")(new)
    refused = run("predict", results, new, "--out", tmp_path / "p.csv")
    said = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert "column 'age' of the table" in said
    assert "has 'pending' in row 17" in said
    assert "damaged" not in said


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "+05:00"])
def test_select__takes_a_pool_with_times_of_any_zone(zone, tmp_path, rng):
    paths = []
    for n_rows, ending in ((120, "csv"), (120, "parquet"), (300, "pool.parquet")):
        times = pd.Timestamp("2020-03-01 10:00", tz=zone)
        times = times + pd.to_timedelta(rng.integers(0, 300, n_rows), unit="D")
        frame = pd.DataFrame({"x": rng.normal(size=n_rows), "seen": times})
        frame["label"] = np.where(frame.x > 0, "yes", "no")
        paths.append(tmp_path / f"t.{ending}")
        if ending == "csv":
            frame.to_csv(paths[-1], index=False)
        else:
            frame.drop(columns="label" if "pool" in ending else []).to_parquet(
                paths[-1], index=False
            )
    for labeled in paths[:2]:
        succeed(
            "select", labeled, "--target", "label", "--pool", paths[2], "--model",
            "logistic", "--grid", "C=1", "--quiet",
        )  # fmt: skip


NULLABLE = pd.array([None, True, False], dtype="boolean")
DATES = pd.Series([date(2001, 1, 1), date(2002, 2, 2), date(9999, 12, 31)])


@pytest.mark.parametrize("values", [NULLABLE, DATES])
@pytest.mark.parametrize(
    ("labeled", "pool", "new"),
    [("csv", "parquet", "feather"), ("parquet", "csv", "feather"),
     ("feather", "parquet", "csv")],
)  # fmt: skip
def test_predict__of_dates_and_truth_values_is_the_same_in_all_formats(
    values, labeled, pool, new, tmp_path
):
    codes = np.random.default_rng(0).integers(0, 3, 200)
    frame = pd.DataFrame({"x": np.linspace(0, 1, 200), "value": values[codes]})
    frame = frame.reset_index(drop=True)
    label = np.where(codes == 0, "yes", "no")
    paths = [tmp_path / f"{n}.{end}" for n, end in enumerate((labeled, pool, new))]
    for path in paths:
        table = frame.assign(label=label) if path == paths[0] else frame.assign(x=codes)
        if path.suffix == ".csv":
            table.to_csv(path, index=False)
        else:
            getattr(table, f"to_{path.suffix[1:]}")(path)
    results, predictions = tmp_path / "results", tmp_path / "predictions.parquet"
    done = run(
        "select", paths[0], "--target", "label", "--pool", paths[1], "--model",
        "logistic", "--grid", "C=1000", "--out", results, "--quiet",
    )  # fmt: skip
    assert done.exit_code in (0, 3), done.output
    done = run("predict", results, paths[2], "--out", predictions)
    assert done.exit_code == 3, done.output  # the pool's x is another one
    assert (pd.read_parquet(predictions).label == label).all()


def test_predict__of_texts_for_dates_fails_above_scikit_learn(tmp_path):
    days = pd.date_range("2020-01-01", periods=60)
    rows = pd.DataFrame({"x": np.arange(60.0), "day": days})
    path = tmp_path / "t.csv"
    rows.assign(label=np.where(rows.x > 30, "p", "q")).to_csv(path, index=False)
    out = str(tmp_path / "run")
    succeed("select", str(path), "--target", "label", "--model", "logistic",
            "--out", out, "--quiet")  # fmt: skip
    outcome = dsel.open_outcome(out)
    texts = rows.assign(day=rows["day"].astype(str))
    with pytest.raises(TypeError, match=r"column 'day' of `X` must hold dates") as made:
        outcome.predict(texts)
    assert not [entry for entry in made.traceback if "sklearn" in str(entry.path)]
    right = texts.assign(day=pd.to_datetime(texts["day"]))
    np.testing.assert_array_equal(outcome.predict(right), outcome.predict(rows))


def dated(n_rows, first, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp(first) + pd.to_timedelta(rng.integers(0, 360, n_rows), "D")
    frame = pd.DataFrame({"age": rng.normal(45, 15, n_rows).round(2)})
    return frame.assign(opened=days.strftime("%Y-%m-%d"))


def test_predict__says_how_many_rows_are_beyond_the_labeled_ones(tmp_path):
    labeled, new = dated(300, "2023-01-01"), dated(200, "2026-01-01", 1)
    labels = np.where(labeled["age"] > 45, "good", "bad")
    labeled.assign(label=labels).to_csv(tmp_path / "l.csv", index=False)
    new["age"] = new["age"].clip(20.0, 70.0)
    new.loc[:79, "age"] += 500.0
    new.to_csv(tmp_path / "new.csv", index=False)
    same = dated(200, "2023-01-01", 2)
    same.loc[0, "age"] = 900.0  # a single extreme value is no finding
    same.to_csv(tmp_path / "same.csv", index=False)
    results = tmp_path / "r"
    succeed(
        "select", tmp_path / "l.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--out", results, "--quiet",
    )  # fmt: skip
    done = run("predict", results, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    notes = " ".join(done.stderr.split())
    assert "in 80 rows column 'age' is beyond the labeled rows, which have " in notes
    assert "in 200 rows column 'opened' is beyond the labeled rows, which" in notes
    assert "The bound says nothing about at least 200 of these 200 rows" in done.stdout
    words = ("predict", results, tmp_path / "same.csv", "--out")
    record = json.loads(succeed(*words, tmp_path / "s.csv", "--json").stdout)
    assert record["unknown_values"] == []
    with pytest.warns(GuaranteeWarning):
        made = dsel.open_outcome(results).predict_table(
            tmp_path / "new.csv", out=tmp_path / "p2.csv"
        )
    counts = {each.column: each.n_rows for each in made.unknown}
    assert counts == {"age": 80, "opened": 200}


def test_predict_table__in_python_says_which_numbers_are_beyond_the_labeled_ones():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(), {"C": [1.0]}, random_state=0
    )
    search.fit(X, (X["a"] > 0).astype(int))
    with pytest.warns(GuaranteeWarning) as told:
        search.outcome_.predict_table(X.assign(b=X["b"] + 9.0))
    texts = [str(each.message) for each in told]
    assert len([text for text in texts if "column 'b' is beyond the lab" in text]) == 1
    assert not [text for text in texts if "column 'a'" in text]
