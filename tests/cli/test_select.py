import inspect
import json
import re
import subprocess
import sys
import warnings
from contextlib import ExitStack

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from distributed import LocalCluster
from sklearn.datasets import dump_svmlight_file, load_digits

import dsel
from dsel.cli import main
from dsel.cli.models import build, parse_values
from dsel.cli.select import command
from dsel.errors import DselWarning


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("table") / "digits.npz"
    # At random: the digits stand in the order of their writers.
    split = (np.random.default_rng(0).permutation(len(y)) >= 500).astype(int)
    np.savez(path, X=X, y=y, split=split)
    return str(path)


NOBODY = "tcp://127.0.0.1:1"


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_select__a_dry_run_prints_the_plan_and_runs_nothing(table):
    found = run("select", table, "--split", "--dry-run", "--grid", "C=1,10")
    assert found.exit_code == 0, found.output
    assert "Plan of 2 candidates" in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "--grid", "D=1"], "sets 'D', which SVC lacks"),
        (["--split", "--grid", "nothing"], "is not NAME=VALUES"),
        (["--split", "--grid", "C=2^10000"], "'2^10000' is no number"),
        (["--split", "--grid", "C=0^-1"], "'0^-1' is no number"),
        (["--split", "--grid", "C=-8^0.5"], "'-8^0.5' is no real number"),
        (["--pool", "no.zarr"], "no.zarr"),
        (["--split", "--scheduler", NOBODY], "127.0.0.1:1"),
        # What is wrong is said before any worker is started or asked for.
        (["--split", "--scheduler", NOBODY, "--delta", "2"], "between 0 and 1"),
        (
            ["--split", "--scheduler", NOBODY, "--out", "s3://me:secret@bucket/out"],
            "`out` must not hold a password",
        ),
        (["--split", "--criterion", "magic"], "`criterion` must be one of"),
        (["--split", "--certificate", "magic"], "`certificate` must be one of"),
        (["--split", "--reserve", ".1", "--certify-rows", ".2"], "leave out one"),
        (["--split", "--label-share", "1"], "got 1.0; 5 % is written 0.05"),
        (["--split", "--cluster", "no.yaml"], "'no.yaml' does not exist"),
        (
            ["--split", "--cluster", __file__, "--workers", "2"],
            "--cluster stands alone",
        ),
    ],
)
def test_select__bad_input_is_one_line_and_an_exit_code(table, arguments, message):
    found = run("select", table, "--quiet", *arguments)
    assert found.exit_code in (1, 2)
    assert message in found.output
    assert "Traceback" not in found.output


@pytest.mark.cluster
def test_select__of_a_place_that_was_seen_keeps_its_account(table, tmp_path):
    def certify(grid, *options):
        place = ["--out", tmp_path / "run", "--workers", 1, "--cv", 2, "--json"]
        place += ["--criterion", "cv_bound"]
        found = run(
            *("select", table, "--split", "--model", "neighbors", *place, *options),
            *("--grid", f"n_neighbors={grid}"),
        )
        assert found.exit_code == 0, found.output
        return json.loads(found.output)

    assert certify("1,3,5,9", "--reserve", 0.05)["certified"]
    for _ in range(2):
        winner = certify("1")
        assert not winner["certified"]
        assert "1 candidate (n_neighbors=1) got a larger share" in winner["reasons"][0]
        assert "needed `reserve` = 0.15 in the first run" in winner["reasons"][0]


def test_select__has_the_defaults_of_plan_search():
    typed = {each.name: each.default for each in command.params}
    options = inspect.signature(dsel.plan_search).parameters
    for name in ("delta", "label_share", "reserve", "cv", "duplicates"):
        assert typed[name] == options[name].default
    assert typed["n_stages"] == dsel.PoolReading().n_stages


def test_parse_values__reads_lists_and_ranges_of_powers():
    assert parse_values("C=2^-2..2^4:4") == ("C", [0.25, 1.0, 4.0, 16.0])
    assert parse_values("kernel=rbf,linear") == ("kernel", ["rbf", "linear"])
    assert parse_values("shrinking=true,false") == ("shrinking", [True, False])


@pytest.mark.cluster
@pytest.mark.parametrize("certify", [[], ["--certify-rows", "0.25"]])
def test_select__runs_on_local_workers_and_prints_json(table, certify, tmp_path):
    found = run(
        *("select", table, "--split", "--json", "--workers", 2, "--cv", 5),
        *("--grid", "C=1,10", "--grid", "gamma=0.001", "--out", tmp_path / "run"),
        *certify,
    )
    assert found.exit_code == 0, found.output
    facts = json.loads(found.stdout)
    assert facts["chosen"]["gamma"] == 0.001
    assert facts["certified"] is True
    assert facts["observed_error"] <= facts["bound"] < 0.3
    assert facts["results"] == str(tmp_path / "run")


@pytest.mark.cluster
def test_select__calls_the_number_of_certifying_rows_a_bound(table, tmp_path):
    found = run(
        *("select", table, "--split", "--quiet", "--workers", 1, "--cv", 3),
        *("--grid", "gamma=0.001,0.01", "--certify-rows", "0.25"),
        *("--out", tmp_path / "run"),
    )
    assert "With probability at least 95 %" in found.output
    assert re.search(r"\nError    at most .* % \(95 % sure\)", found.output)
    assert "NO guarantee" not in found.output
    told = run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert told.exit_code == 0, told.output
    assert "Error at most" in (tmp_path / "page.html").read_text()


@pytest.mark.cluster
def test_demo__says_what_was_chosen_and_what_is_guaranteed():
    found = run("demo", "--quiet", "--workers", 2)
    assert found.exit_code == 0, found.output
    assert "With probability at least 95 %" in found.output
    assert "Chosen" in found.output


@pytest.mark.parametrize(
    "text", ["C=0..8:2", "C=-1..8:2", "C=8..1:2", "C=1..8:1", "C=1..1e300:1.0001"]
)
def test_parse_values__refuses_ranges_without_end(text):
    with pytest.raises(click.BadParameter, match=r"START|FACTOR"):
        parse_values(text)


def test_build__refuses_a_parameter_that_is_named_twice():
    with pytest.raises(click.BadParameter, match="names 'C' twice"):
        build("svm", None, ["C=1", "C=2"])


def test_select__says_that_target_names_the_labels(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,y\n")
    found = run("select", tmp_path / "t.csv")
    assert found.exit_code == 2
    assert "name it by --target" in found.output


@pytest.mark.parametrize(
    ("split", "message"),
    [([0, 0, 0, 0], "found 4 and 0"), ([0, 1], r"found shape \(2,\)")],
)
def test_select__refuses_a_split_without_two_parts(split, message, tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=[0, 1, 0, 1], split=split)
    found = run("select", tmp_path / "t.npz", "--split")
    assert found.exit_code == 2
    assert re.search(message, found.output)


def test_select__refuses_codes_and_names_that_are_no_class(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "minus.npz", X=X, y=y - 1, classes=np.arange(10))
    np.savez(tmp_path / "twice.npz", X=X, y=y, classes=np.arange(10) // 2)

    for name, message in [("minus", "has -1)"), ("twice", "got 0 twice")]:
        found = run("select", tmp_path / f"{name}.npz", "--dry-run")
        assert found.exit_code != 0
        assert message in found.output
        assert len(found.output.strip().splitlines()) == 1


def test_select__warns_in_one_line_where_no_label_can_help(tmp_path):
    frame = pd.DataFrame({"a": np.sqrt(np.arange(60.0)), "label": [0, 1] * 30})
    frame.to_csv(tmp_path / "labeled.csv", index=False)
    np.save(tmp_path / "pool.npy", np.arange(100.0, 600.0)[:, np.newaxis])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other libraries may warn, too
        warnings.simplefilter("always", DselWarning)
        found = run(
            "select", tmp_path / "labeled.csv", "--target", "label", "--dry-run",
            "--pool", tmp_path / "pool.npy", "--criterion", "cv_bound",
        )  # fmt: skip
    assert found.exit_code == 0
    assert found.stderr.startswith("Warning: cv_bound cannot be below 0.")
    assert found.stderr.count("\n") == 1


def test_select__says_what_svmlight_files_lack(tmp_path):
    dump_svmlight_file(np.eye(20), np.arange(20) % 2, str(tmp_path / "t.svm"))
    found = run("select", tmp_path / "t.svm", "--scale", "standard", "--dry-run")
    assert found.exit_code == 2
    assert "--scale would fill sparse rows" in found.output
    np.save(tmp_path / "pool.npy", np.eye(21))
    found = run("select", tmp_path / "t.svm", "--pool", tmp_path / "pool.npy")
    assert found.exit_code == 2
    assert "LABELED has 20 columns and the pool 21" in found.output


OWN_CODE = """
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

class Own(GaussianNB):
    pass

def halved(X):
    return X / 2

def pipeline():
    return make_pipeline(FunctionTransformer(halved), Own())
"""


@pytest.mark.cluster
@pytest.mark.parametrize("is_running", [False, True])
def test_select__takes_code_of_the_folder_to_workers(table, tmp_path, is_running):
    (tmp_path / "mine.py").write_text(OWN_CODE)
    # -P leaves the folder out of the path, as the installed command does.
    command = [sys.executable, "-P", "-m", "dsel", "select", table, "--split"]
    command += ["--model", "mine:pipeline", "--json", "--out", str(tmp_path / "out")]
    with ExitStack() as stack:
        where = ["--workers", "1"]
        if is_running:
            cluster = LocalCluster(n_workers=1, dashboard_address=None)
            where = ["--scheduler", stack.enter_context(cluster).scheduler_address]
        for _ in range(2):  # the second time counts are found again
            done = subprocess.run(
                [*command, *where], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["certified"]


def test_select__takes_the_columns_of_x_of_a_pool_that_holds_more(tmp_path):
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"] * 8, "label": [0, 1] * 8})
    frame = pd.concat([frame] * 10, ignore_index=True)
    frame.to_parquet(tmp_path / "labeled.parquet", index=False)
    (tmp_path / "pool").mkdir()
    frame.to_parquet(tmp_path / "pool" / "one.parquet", index=False)
    asked = ("select", tmp_path / "labeled.parquet", "--target", "label")
    asked += ("--pool", tmp_path / "pool", "--cv", 2, "--dry-run")

    found = run(*asked, "--model", "sklearn.dummy:DummyClassifier")
    assert "160 rows" in found.output
    found = run(*asked, "--model", "svm")
    assert "column 'city' holds text such as 'Ulm'" in found.output
    found = run(*asked[:4], "--match-columns")
    assert "--match-columns needs a --pool of Parquet files" in found.output


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("magic", "'magic' is none of forest, linear-svm, logistic, neighbors, svm"),
        ("no.module:object", "'no.module:object' cannot be imported"),
        ("sklearn.svm:None", "has no attribute 'None'"),
    ],
)
def test_select__says_what_a_model_may_be(table, model, message):
    found = run("select", table, "--split", "--dry-run", "--model", model)
    assert found.exit_code == 2
    assert message in found.output
