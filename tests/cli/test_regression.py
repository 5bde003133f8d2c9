"""`dsel select` and `dsel predict` of a table whose target is a number."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from tests.shell import run, succeed


def houses(n_rows=700, seed=0):
    X, y = make_friedman1(n_rows, noise=1.0, random_state=seed)
    frame = pd.DataFrame(X[:, :6]).add_prefix("size_").round(3)
    frame["town"] = np.where(X[:, 6] > 0.5, "Ulm", "Bonn")
    return frame.assign(price=(100 * y).round(2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    frame = houses()
    frame[:400].to_csv(folder / "t.csv", index=False)
    frame[:400].to_parquet(folder / "t.parquet", index=False)
    frame[400:].drop(columns="price").to_csv(folder / "pool.csv", index=False)
    frame[400:].to_csv(folder / "new.csv", index=False)
    frame[:400].assign(price=(frame.price[:400]).round()).to_csv(
        folder / "whole.csv", index=False, float_format="%g"
    )
    return folder


@pytest.fixture(scope="module")
def results(folder):
    made = succeed(
        *("select", folder / "t.csv", "--target", "price", "--model", "ridge"),
        *("--grid", "alpha=0.1,1", "--pool", folder / "pool.csv"),
        *("--out", folder / "results", "--loss", "report"),
    )
    return made.output


def test_select__of_numbers_with_fractions_says_how_far_off_they_are(results):
    assert "Chosen    alpha=" in results
    assert re.search(
        r"90% of predictions are off by at most \d+ \(95% confidence\), model trained "
        r"on 80% of the labels", results
    )  # fmt: skip
    assert "Tolerances (95% confidence, all at once)" in results


def test_select__reports_the_fractions_that_it_names_by_a_hold_out_set(folder):
    made = succeed("select", folder / "t.csv", "--target", "price", "--model", "ridge",
               "--loss", "report=0.5,0.75", "--loss", "error_quantile=0.8", "--quiet",
               "--certificate", "holdout", "--report-by", "town")  # fmt: skip
    rows = [line.split()[0] for line in made.stdout.splitlines() if line]
    assert rows.index("50%") == rows.index("75%") - 1
    assert "80% of predictions are off by at most" in made.stdout
    assert {"Bonn", "Ulm"} < set(rows)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("report=0.5,a", "'0.5,a' is no list of numbers"),
        ("report=50,90", "`report` must be strictly between 0 and 1"),
        ("report:a", "must name fractions: report=0.5,0.9"),
    ],
)
def test_select__refuses_shares_that_are_none(folder, loss, words):
    made = run("select", folder / "t.csv", "--target", "price", "--loss", loss)
    assert made.exit_code != 0
    assert words in " ".join(made.output.split())


@pytest.mark.parametrize("deploy", ["one_fold", "all_rows"])
def test_predict__writes_the_ends_between_which_targets_are(folder, results, deploy):
    out = folder / f"{deploy}.csv"
    made = run("predict", folder / "results", folder / "new.csv", "--out", out,
               "--deploy", deploy)  # fmt: skip
    assert made.exit_code == (0 if deploy == "one_fold" else 3)  # nothing is certified
    line = {
        "one_fold": "90% of predictions are off by at most",
        # Folds of 80 rows are too few for it and for the tolerance of one fold at once.
        "all_rows": "No finite bound of how far 90% of predictions are off: too few",
    }
    assert line[deploy] in made.output
    table = pd.read_csv(out)
    assert table.columns.tolist() == ["row", "prediction", "lower", "upper"]
    true = houses().price[400:].to_numpy()
    assert ((table.lower <= true) & (true <= table.upper)).mean() >= 0.9
    widths = (table.upper - table.lower).round(6)
    assert (widths.nunique() == 1) == (deploy == "one_fold")


def test_predict__says_of_which_rows_the_targets_lie_between(folder, results, tmp_path):
    new = houses()[400:].drop(columns="price")
    new.loc[new.index[:80], "town"] = "Kiel"
    new.to_csv(tmp_path / "new.csv", index=False)
    made = run(
        "predict", folder / "results", tmp_path / "new.csv", "--out", tmp_path / "p.csv"
    )
    assert "The bound says nothing about 80 of these 300 rows" in made.output
    assert "; of the other 220 rows at least 90% of targets lie" in made.output
    new.loc[new.index[100:115], "size_0"] = None
    new.to_csv(tmp_path / "gaps.csv", index=False)
    made = run(
        *("predict", folder / "results", tmp_path / "gaps.csv"),
        *("--out", tmp_path / "q.csv", "--json"),
    )
    numbers = pd.read_csv(tmp_path / "q.csv").prediction
    record = json.loads(made.stdout)["predicted"]
    expected = [numbers.median(), numbers.min(), numbers.max()]
    assert [*record] == ["median", "min", "max"]
    np.testing.assert_allclose([*record.values()], expected)


def test_select__says_which_two_models_of_numbers_can_be_compared(folder):
    asked = ("select", folder / "t.csv", "--target", "price", "--cv", 2)
    two = "boosting by default; --model boosting,ridge compares two"
    assert f"  model          {two}\n" in succeed(*asked).stdout


@pytest.mark.parametrize(
    ("model", "grid"),
    [("svm", "C=1,4"), ("forest", "max_features=0.5"),
     ("boosting", "learning_rate=0.1"), (None, "max_leaf_nodes=7")],
)  # fmt: skip
def test_select__has_models_of_numbers(folder, model, grid):
    named = () if model is None else ("--model", model)
    made = succeed("select", folder / "t.parquet", "--target", "price", *named,
               "--grid", grid, "--cv", 3, "--quiet")  # fmt: skip
    assert "90% of predictions are off by at most" in made.output


@pytest.mark.parametrize(
    ("loss", "words"),
    [("error_quantile=0.8", "80% of predictions are off by at most"),
     ("beyond=400", "Share of bad predictions (off by more than 400) at most")],
)  # fmt: skip
def test_select__takes_losses_of_numbers(folder, loss, words):
    made = succeed("select", folder / "t.csv", "--target", "price", "--model", "ridge",
               "--grid", "alpha=1", "--loss", loss, "--quiet")  # fmt: skip
    assert words in made.output


def test_compare__says_before_it_asks_for_a_pool_that_a_model_predicts_numbers(
    folder, results, tmp_path
):
    place = folder / "results"
    refused = run("compare", place, place, "--out", tmp_path / "c")
    assert refused.exit_code == 2
    text = " ".join(refused.output.split())
    assert f"OLD, '{place}', predicts numbers, and regressors are not compared" in text


def test_select__asks_what_many_whole_numbers_are(folder):
    asked = ("select", folder / "whole.csv", "--target", "price", "--quiet")
    made = run(*asked)
    assert made.exit_code != 0
    said = " ".join(made.output.split())
    assert "--task classification or --task regression. Run: dsel select " in said
    # As classes they would stop again: hundreds of labels of few rows each.
    assert said.endswith(" --target price --quiet --task regression")
    assert said.count("dsel select") == 1
    ridge = ("--model", "ridge", "--grid", "alpha=1")
    made = succeed(*asked, "--task", "regression", *ridge)
    assert "90% of predictions" in made.output


def test_select__takes_few_whole_numbers_for_classes_unless_told(folder):
    frame = houses()[:400]
    codes = pd.cut(frame.price, 4, labels=False)
    frame.assign(price=codes).to_csv(folder / "few.csv", index=False)
    asked = ("select", folder / "few.csv", "--target", "price", "--quiet")
    made = succeed(*asked, "--model", "logistic", "--grid", "C=1")
    assert "Error at most" in made.output
    made = run(*asked, "--task", "regression", "--model", "ridge", "--grid", "alpha=1")
    assert "90% of predictions" in made.output


def test_select__takes_rows_without_a_number_for_the_pool(folder):
    frame = houses()
    frame.loc[400:, "price"] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    made = succeed(
        "select", folder / "gaps.csv", "--target", "price", "--model", "ridge",
        "--grid", "alpha=1", "--quiet",
    )  # fmt: skip
    assert "model trained on all labels" in made.output


def test_select__says_before_the_run_how_many_rows_a_tolerance_needs(folder):
    houses()[:90].to_csv(folder / "short.csv", index=False)
    made = run(
        "select", folder / "short.csv", "--target", "price", "--model", "ridge",
        "--grid", "alpha=1", "--quiet",
    )  # fmt: skip
    assert made.exit_code == 1  # no tolerance could be certified
    assert re.search(r"it needs \d+ with 5 folds", " ".join(made.output.split()))
    commands = [line for line in made.output.splitlines() if "dsel select" in line]
    assert commands[0].endswith(" --cv 2")
    assert re.search(r" --loss error_quantile=0\.\d+$", commands[-1])
    done = succeed(*shlex.split(commands[0])[2:])
    assert "90% of predictions are off by at most" in done.stdout


REFUSED = [
    (("t.csv", "--model", "logistic"),
     "'logistic' predicts classes 'price' numbers, fractions; --task ridge"),
    (("t.csv", "--task", "classification", "--model", "ridge"),
     "'ridge' predicts numbers, 'price' classes, --task logistic"),
    (("t.csv", "--loss", "recall:1"), "--loss class"),
    (("t.csv", "--loss", "error_quantile=x"), "error_quantile needs a number 'x'"),
    (("t.csv", "--certificate", "cv_bound", "--pool", "pool.csv"), "for classifiers"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_select__refuses_in_one_line(folder, options, words):
    given = [folder / each if each.endswith(".csv") else each for each in options]
    made = run("select", *given, "--target", "price")
    assert made.exit_code != 0
    text = " ".join(made.output.split())
    assert [word for word in words.split() if word not in text] == []
    assert "Traceback" not in text


def test_select__of_texts_as_a_regression_names_the_value(folder):
    frame = houses()[:100].astype({"price": str})
    frame.loc[7, "price"] = "much"
    frame.to_csv(folder / "texts.csv", index=False)
    made = run("select", folder / "texts.csv", "--target", "price", "--task",
               "regression")  # fmt: skip
    assert made.exit_code != 0
    said = " ".join(made.output.split())
    assert "'much' in line 9" in said


def test_select__names_doubtful_columns_with_a_target_that_it_asks_about(folder):
    frame = houses()[:100].assign(price=range(100), sold="24/12/25")
    frame.to_csv(folder / "whole.csv", index=False)
    made = run("select", folder / "whole.csv", "--target", "price")
    said = " ".join(made.output.split())
    assert made.exit_code != 0
    assert "--task classification or --task regression" in said
    assert "Also, column 'sold' looks like dates ('24/12/25')" in said


GERMAN = {"sep": ";", "decimal": ",", "index": False}


@pytest.mark.parametrize("name", ["german.csv", "texts.parquet"])
def test_monitor__reads_targets_as_select_does(folder, results, tmp_path, name):
    del results
    frame = pd.read_csv(folder / "new.csv")
    expected = run(
        "monitor", folder / "results", folder / "new.csv", "--target", "price"
    ).stdout
    assert "of 300 rows are off by more" in " ".join(expected.split())
    frame.to_csv(tmp_path / "german.csv", **GERMAN)
    frame.astype({"price": str}).to_parquet(tmp_path / "texts.parquet")
    found = run("monitor", folder / "results", tmp_path / name, "--target", "price")
    assert found.stdout == expected


def test_monitor__names_a_target_that_is_no_number(folder, results, tmp_path):
    del results
    frame = pd.read_csv(folder / "new.csv", dtype={"price": object})
    frame.loc[7, "price"] = "much"
    frame.to_csv(tmp_path / "n.csv", index=False)
    found = run("monitor", folder / "results", tmp_path / "n.csv", "--target", "price")
    assert found.exit_code == 1
    assert "column 'price' of" in found.output
    assert "has 'much' in line 9" in found.output


def test_select__reads_a_target_that_has_the_only_decimal_commas(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv")
    frame = frame[["price"]].assign(size=(100 * frame.size_0).round().astype(int))
    tables = {"t.csv": {"index": False}, "german.csv": GERMAN}
    made = []
    for name, form in tables.items():
        frame.to_csv(tmp_path / name, **form)
        made.append(run(
            "select", tmp_path / name, "--target", "price", "--model", "ridge",
            "--grid", "alpha=1", "--quiet",
        ))  # fmt: skip
    assert made[0].exit_code == 0, made[0].output
    assert made[1].stdout == made[0].stdout
