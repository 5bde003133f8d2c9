"""What `dsel select`, `demo` and `report` print, through the command."""

import gzip
import html
import json
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster
from sklearn.datasets import dump_svmlight_file, load_digits

import dsel
from dsel.cli.named_models import parse_grid
from dsel.search.planning.plan import Plan
from tests.shell import OWN_CODE, run, succeed

ASKED = ("--target", "label", "--cv", 3)


def customers(n_rows, rng):
    """Return a table of all kinds of columns, with gaps, and its labels."""
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 15, n_rows),
            "visits": rng.poisson(3, n_rows),
            "city": rng.choice(["Ulm", "Bonn", "Kiel"], n_rows),
            "kind": pd.Categorical(rng.choice(list("ab"), n_rows)),
            "member": rng.random(n_rows) < 0.5,
            "since": pd.Timestamp("2015-01-01")
            + pd.to_timedelta(rng.integers(0, 3000, n_rows), unit="D"),
        }
    )
    labels = np.where((frame["age"] > 45) | (frame["city"] == "Ulm"), "yes", "no")
    for name, missing in (("age", np.nan), ("city", None), ("since", pd.NaT)):
        frame.loc[rng.random(n_rows) < 0.05, name] = missing
    return frame, labels


@pytest.fixture
def folder(tmp_path, rng):
    frame, labels = customers(900, rng)
    labeled = frame[:150].assign(label=labels[:150])
    labeled.to_csv(tmp_path / "labeled.csv", index=False)
    labeled.to_parquet(tmp_path / "labeled.parquet", index=False)
    # More columns, in another order.
    pool = frame[150:].assign(label="?", number=1)[
        ["number", *reversed(frame.columns), "label"]
    ]
    pool.to_parquet(tmp_path / "pool.parquet", index=False)
    return tmp_path


@pytest.fixture
def numbers(tmp_path, rng):
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    np.savez(tmp_path / "t.npz", X=X[:300], y=y[:300])
    np.save(tmp_path / "pool.npy", X[300:])
    return (
        *("select", tmp_path / "t.npz", "--pool", tmp_path / "pool.npy", "--cv", 3),
        *("--grid", "C=1,10", "--grid", "gamma=0.01"),
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("model", "grid"),
    [
        ("svm", ("--grid", "C=1,10", "--grid", "gamma=0.1")),
        ("logistic", ("--grid", "C=1,10")),
        ("forest", ("--grid", "max_features=0.5")),
        ("boosting", ("--grid", "max_leaf_nodes=7")),
    ],
)
def test_select__encodes_text_categories_dates_and_gaps(folder, suffix, model, grid):
    found = succeed(
        "select", folder / f"labeled.{suffix}", *ASKED, "--model", model, *grid,
        "--pool", folder / "pool.parquet", "--verbose",
    )  # fmt: skip
    assert "\nError at most" in found.stdout
    scaled = ", scaled" if model in ("svm", "logistic") else ""
    for line in (
        f"numbers        age, visits: gaps filled by the median{scaled}",
        f"dates          since: as days, gaps filled by the median{scaled}",
        "values         city, kind, member: a column for each value",
    ):
        assert line in found.stdout


def test_select__names_the_columns_of_each_kind_and_those_not_used(folder):
    pool = pd.read_parquet(folder / "pool.parquet").assign(more=1)
    pool.to_parquet(folder / "more.parquet", index=False)
    found = succeed(
        "select", folder / "labeled.parquet", *ASKED, "--model", "logistic",
        "--grid", "C=1", "--pool", folder / "more.parquet",
    )  # fmt: skip
    plan = " ".join(found.stdout.partition("\n\n")[0].split())
    assert " columns 2 of numbers (age, visits), 1 of dates (since), 3 of" in plan
    assert " not used columns 'number', 'more' of the pool, " in plan


GAPS = pd.Series([None] * 150, dtype=object)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("mine", "pools"),
    [([True, False] * 75, [True, False] * 75), (GAPS, ["a", "b"] * 75)],
)
def test_select__takes_truths_among_numbers_and_columns_of_gaps(
    tmp_path, rng, suffix, mine, pools
):
    frame = pd.DataFrame({"x": rng.normal(size=150)})
    labeled = frame.assign(more=mine, label=frame.x > 0)
    labeled.to_csv(tmp_path / "t.csv", index=False)
    labeled.to_parquet(tmp_path / "t.parquet", index=False)
    pool = frame.assign(x=rng.normal(size=150), more=pools)
    pool.to_parquet(tmp_path / "pool.parquet", index=False)
    done = run(
        "select", tmp_path / f"t.{suffix}", *ASKED, "--pool", tmp_path / "pool.parquet",
        "--grid", "C=1", "--quiet",
    )  # fmt: skip
    # Values of the pool alone violate A1, and then nothing is certified.
    assert done.exit_code == (3 if "No guarantee" in done.stdout else 0), done.output


def test_select__says_the_plan_first_then_the_verdict_then_assumptions(numbers):
    text = run(*numbers).stdout
    plan, verdict = (part.splitlines() for part in text.split("\n\n"))
    assert plan[0].startswith("Plan of 2 candidates")
    assert len(plan) <= 8
    [possible] = [line for line in plan if line.startswith("  bound")]
    assert re.search(
        "bound +about [0-9.]+ / [0-9.]+ / [0-9.]+% if models err", possible
    )
    planned = " ".join(" ".join(plan).split())
    call = r"other rates: dsel plan-bound \d+ \d+ --candidates 2 --error 0\.15"
    assert re.search(call, planned)
    begins = [*["Error at most "] * 2, "Chosen ", "Deployed ", "Estimate  error "]
    begins += ["Compare   a 20% hold-out"]
    assert all(map(str.startswith, verdict, begins))
    assert "; always predicting the largest class, " in verdict[5]
    assert verdict[3].endswith("the first model (the second with --deploy all_rows)")
    assert verdict[6:8] == [
        "Assumes   labeled rows and pool rows are independent draws from one "
        "population, no two of one customer (else this bound is void: run again with "
        "--groups); --verbose lists all",
        "Next      the same command with --out FOLDER keeps the model for dsel predict",
    ]
    assert verdict[8].startswith(
        "Next      for other labeled rows (a second search of these proves nothing): "
        "--queries 50 and labels of 50 pool rows"
    )
    assert max(map(len, plan)) <= 80
    assert run(*numbers, "--quiet").output.splitlines() == verdict[:6]
    n_wrong = round(10 * float(re.search(r"[\d.]+", verdict[0])[0]))
    meaning = run(*numbers, "--verbose").stdout.split("\n\n")[1].splitlines()[1]
    assert meaning.startswith(f"Of 1,000 new rows the model gets at most {n_wrong} wro")


def test_select__with_plan_says_what_it_would_do_and_fits_nothing(
    numbers, tmp_path, monkeypatch
):
    def refuse(plan, *args, **kwargs):
        raise AssertionError("a plan was run")

    asked = [*numbers, "--out", tmp_path / "results"]
    whole = run(*asked).stdout.split("\n\n")[0]
    monkeypatch.setattr(Plan, "run", refuse)
    asked[-1] = tmp_path / "other"
    text = run(*asked, "--plan").stdout
    planned, end = text.rstrip("\n").rsplit("\n", 1)
    assert planned == whole
    assert end == "Nothing was fitted; the same line without --plan makes the run."
    content = json.loads(run(*asked, "--plan", "--json").stdout)["plan"]
    assert content["search"].startswith("Plan of 2 candidates")
    command = content["bound"].rpartition("other rates: dsel ")[2].split()
    assert run(*command, "--quiet").exit_code == 0
    assert not asked[-1].exists()


def test_select__says_all_with_verbose(numbers):
    text = run(*numbers, "--seed", 5, "--verbose").stdout
    lines = text.splitlines()
    assert "  seed           5" in lines
    assert any(
        line.startswith("  certificate    nested at delta=0.05") for line in lines
    )
    assert text.index("Chosen") < text.index("Origin    from ")
    assumed = [line for line in lines if line.startswith("Assumes   ")]
    assert [
        f"(A{n})" in line for n, line in zip((1, 3, 4, 5, 7), assumed, strict=True)
    ] == ([True] * 5)
    assert max(map(len, text.partition("\n\n")[0].splitlines())) <= 80


def test_select__says_which_model_is_the_default(numbers):
    text = run(*numbers[:6]).stdout
    default = "forest,logistic by default; --model names another"
    assert f"  model          {default}\n" in text
    assert "Plan of 10 candidates that differ in model, C, max_features\n" in text
    assert "  model          svm by default; --model names another\n" in (
        run(*numbers).stdout
    )
    assert "  model          svm\n" in run(*numbers, "--model", "svm").stdout


def test_select__goes_on_from_out_and_report_reads_it(numbers, tmp_path):
    first = succeed(*numbers, "--out", tmp_path / "run")
    assert f"Next      dsel predict {tmp_path / 'run'} NEW --out FILE" in first.stdout
    again = run(*numbers, "--out", tmp_path / "run")
    assert again.stdout == first.stdout
    assert "has this run already" in again.stderr
    assert "has this run already" not in first.stderr
    short = run("report", tmp_path / "run", "--out", tmp_path / "page.html", "--quiet")
    assert short.output == f"{tmp_path / 'page.html'}\n"
    told = run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert told.output == f"Wrote {tmp_path / 'page.html'}\n"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    verdict = first.stdout.partition("\n\n")[2].splitlines()[:4]
    shown = re.sub("<[^>]+>", "", page)
    # The page says in plain words which model is deployed.
    texts = [re.sub("^(Chosen|Deployed) +", "", line) for line in verdict]
    assert all(text in shown for text in texts if "--deploy" not in text)
    assert "Deployed: the first of these two models" in shown
    # The command on the page can be pasted, and makes what it says.
    [command] = commands_of_classes(page)
    succeed(*shlex.split(html.unescape(command))[1:])
    succeed("report", tmp_path / "run_report", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "true class" in page
    assert commands_of_classes(page) == []


def commands_of_classes(page):
    """Commands of a page that make a report of the classes."""
    # A span keeps an option on one line, and a paste has its text alone.
    shown = re.sub("</?(?:span|wbr)[^>]*>", "", page)
    found = re.findall("<pre[^>]*>(.*?)</pre>", shown, re.DOTALL)
    return [command for command in found if "--loss report" in command]


def test_select__repeats_with_the_bound_that_a_column_gives_the_target(tmp_path):
    leak = pd.DataFrame({"a": range(120), "b": [0, 1] * 60, "yes": ["n", "y"] * 60})
    leak.to_csv(tmp_path / "t.csv", index=False)
    asked = ("select", tmp_path / "t.csv", "--target", "yes", "--grid", "C=1")
    done = succeed(*asked, "--model", "logistic")
    assert "'b' alone gives 'yes' in all labeled rows; leave it out by --drop b" in (
        done.stderr
    )
    _, verdict = done.stdout.split("\n\n")
    assert "Caveat    column 'b' alone gives the target in all labeled rows" in verdict
    measured = leak.assign(yes=leak["a"].map("x{}".format))
    measured.to_csv(tmp_path / "t.csv", index=False)
    refused = run(*asked, "--model", "logistic", "--task", "classification")
    assert "--target must hold classes" in " ".join(refused.output.split())


def test_report__command_for_the_classes_leaves_out_the_queries(numbers, tmp_path):
    succeed(*numbers, "--queries=5", "--out", tmp_path / "run", "--quiet")
    page = tmp_path / "page.html"
    succeed("report", tmp_path / "run", "--out", page, "--quiet")
    [command] = commands_of_classes(page.read_text(encoding="utf-8"))
    assert "--queries" not in command
    succeed(*shlex.split(html.unescape(command))[1:])


@pytest.mark.parametrize("drop", [(), ("--drop", "city")])
def test_select__reports_by_a_column_that_may_be_no_feature(folder, drop):
    asked = [
        "select",
        folder / "labeled.csv",
        *ASKED,
        "--pool",
        folder / "pool.parquet",
    ]
    asked += ["--model", "logistic", "--grid", "C=1", "--out", folder / "run", *drop]
    told = succeed(*asked, "--report-by", "city", "--verbose")
    table = told.stdout[told.stdout.index("Error by city (95% confidence, all") :]
    assert "Note: too few labeled rows to say anything about" in told.stderr
    names = [line.split()[0] for line in table.splitlines()[2:6]]
    assert names == ["Bonn", "Kiel", "Ulm", "(missing)"]
    [used] = [x for x in told.stdout.splitlines() if x.startswith("  values  ")]
    assert ("city" in used) == (not drop)
    labels = []
    for place, city in enumerate(("Ulm", "Bonn")):
        table = pd.read_parquet(folder / "pool.parquet").assign(city=city)
        table.to_parquet(folder / f"{place}.parquet")
        out = folder / f"{place}.csv"
        succeed("predict", folder / "run", folder / f"{place}.parquet", "--out", out)
        labels.append(pd.read_csv(out).label)
    assert labels[0].equals(labels[1]) == bool(drop)


def test_select__reports_by_the_number_of_a_column_without_a_name(tmp_path, rng):
    X = rng.integers(3, size=(200, 2)).astype(float)
    np.savez(tmp_path / "rows.npz", X=X, y=X[:, 0] > 0)
    asked = ("select", tmp_path / "rows.npz", "--model", "logistic", "--grid", "C=1")
    text = run(*asked, "--report-by", 1, "--loss", "report").stdout
    assert "Error by column 1 (95%" in text
    lines = " ".join(text.split())
    together = "the bounds and all numbers of the report and the limits by value share"
    assert together in lines
    told = run(*asked, "--report-by", 2)
    assert told.exit_code == 1
    assert "--report-by must be the position of a column" in told.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--report-by", "label"), "'label' is the target"),
        (("--report-by", "city", "--id", "city"), "'city' is no feature, by --id"),
        (("--report-by", "town"), "--report-by must name one of the 6 columns"),
        (("--report-by", "age"), "--report-by 'age' must have at most 75 different"),
        (
            ("--report-by", "city", "--drop", "city", "--model", "sklearn.svm:SVC"),
            "--drop: 'city' is named by --report-by, too",
        ),
    ],
)
def test_select__refuses_a_column_that_it_cannot_report_by(folder, words, told):
    shown = run("select", folder / "labeled.csv", *ASKED, *words)
    assert shown.exit_code != 0
    assert told in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("losses", "begins"),
    [
        (["recall:3"], "Misses of 3 at most"),
        (["balanced"], "Balanced error at most"),
        (["cost:0>1=1,1>0=2"], "Mean cost"),
        ([], "Error at most"),
    ],
)
def test_select__certifies_a_loss_and_the_report_of_classes(numbers, losses, begins):
    asked = [word for loss in (*losses, "report") for word in ("--loss", loss)]
    text = run(*numbers, *asked, "--quiet").stdout
    assert text.splitlines()[0].startswith(begins)
    assert "Certified report (95% confidence, all limits jointly)" in text
    rows = [line for line in text.splitlines() if line[:1].isdigit() and "%  " in line]
    assert len(rows) == 20  # of this model, then of the models of all folds


def test_select__reports_the_classes_that_it_names(numbers):
    text = run(*numbers, "--loss", "report:3,8", "--quiet").stdout
    rows = [line.split()[0] for line in text.splitlines() if line[:2].strip().isdigit()]
    assert rows == 2 * ["3", "8"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--deploy", "all_rows"), "model trained on all labels\n"),
        (("--certificate", "holdout", "--verbose"), "\nOrigin    holdout"),
    ],
)
def test_select__takes_other_certificates(numbers, words, told):
    found = succeed(*numbers, *words)
    assert told in found.stdout


def test_select__takes_sparse_rows(tmp_path, rng):
    X = rng.random((60, 5)) * (rng.random((60, 5)) < 0.5)
    dump_svmlight_file(X, np.arange(60) % 2, str(tmp_path / "t.svm"))
    asked = ("select", tmp_path / "t.svm", "--cv", 3, "--grid", "C=1,4")
    found = succeed(*asked, "--verbose")
    assert "numbers        scaled by the largest" in found.stdout


def test_demo__says_what_was_chosen_and_how_wrong_it_can_be():
    lines = run("demo", "--quiet").output.splitlines()
    assert lines[0].startswith("Error at most 5.6% (95% confidence)")
    assert lines[2] == "Chosen    C=2.0, gamma=0.0009765625"
    assert lines[6].startswith("Observed error on the pool: 2.2%, ")


@pytest.mark.cluster
@pytest.mark.parametrize("is_running", [False, True])
def test_select__takes_code_of_the_folder_to_workers(numbers, tmp_path, is_running):
    (tmp_path / "mine.py").write_text(OWN_CODE)
    # -P leaves the folder out of the path, as the installed command does.
    command = [sys.executable, "-P", "-m", "dsel", *map(str, numbers[:6])]
    command += ["--model", "mine:pipeline", "--quiet", "--out", str(tmp_path / "out")]
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
            assert "Error at most" in done.stdout


COLUMNS = ("age", "visits", "city", "kind", "member", "since")
REFUSED = [
    (["--model", "magic"], {}, 2, "'magic' is none of svm, logistic, forest, boosting"),
    (["--model", "forrest"], {}, 2, "did you mean 'forest'?"),
    (["--model", "xgboost"], {}, 2, "MODULE:OBJECT, such as xgboost:XGBClassifier"),
    (["--model", "svm", "--grid", "gama=1,2"], {}, 1, "--grid sets 'gama', which SVC"),
    (["--certificate", "nestd"], {}, 2, "did you mean 'nested'?"),
    (["--drop", "vists"], {}, 1, "did you mean 'visits'?"),
    (["--groups", "Citty"], {}, 1, "did you mean 'city'?"),
    (["--model", "svm", "--grid", "Cc=1"], {}, 1, "did you mean 'C'?"),
    (["--model", "no.module:object"], {}, 2, "'no.module:object' cannot be imported"),
    (["--model", "sklearn.svm:None"], {}, 2, "has no attribute 'None'"),
    (["--grid", "C"], {}, 2, "'C' is not NAME=VALUES"),
    (["--grid", "C=1,,2"], {}, 2, "value 2 of 'C=1,,2' is empty"),
    (["--grid", "C=1", "--grid", "C=2"], {}, 2, "names 'C' twice"),
    *((["--grid", f"C={endless}"], {}, 2, "FACTOR") for endless in (
        "0..8:2", "-1..8:2", "8..1:2", "1..8:1", "1..1e300:1.0001", "1..a")),
    (["--certificate", "magic"], {}, 2, "'magic' is not one of"),
    (["--loss", "f1"], {}, 2, "--loss 'f1' has no bound here; --loss report bounds"),
    (["--loss", "recal:yes"], {}, 2, "did you mean 'recall:yes'?"),
    (["--loss", "error:2"], {}, 2, "--loss must be error, recall:CLASS"),
    (["--loss", "error", "--loss", "balanced"], {}, 2, "got 'error' and 'balanced'"),
    (["--loss", "report:maybe"], {}, 1, "'maybe', which is not a class (no, yes)"),
    (["--loss", "report=0.5"], {}, 1, "must name classes: report:yes,no"),
    (["--loss", "report", "--loss", "report:yes"], {}, 2, "are two reports"),
    (["--loss", "recall:maybe"], {}, 1,
     "--loss recall:maybe names 'maybe', which is not a class (no, yes)"),
    (["--loss", "recall:yes"], {"label": [None, *149 * ["yes"]]}, 1, "one class only"),
    (["--loss", "cost:yes>no"], {}, 2, "needs parts such as"),
    (["--loss", "cost:yes>no=-1,no>yes=1"], {}, 2, "must be >= 0"),
    (["--loss", "cost:yes>no=1,yes>no=7"], {}, 2, "got 'yes>no' twice"),
    (["--loss", "recall:yes", "--certificate", "holdout"], {}, 1, "for certificate="),
    (["--grid", "n_trees=9"], {}, 1, "; did you mean 'n_estimators'?"),
    (["--deploy", "all_rows"], {}, 1, "there is no --pool"),
    (["--delta", "2"], {}, 2, "--delta must be above 0 and at most 0.5, got 2.0"),
    (["--delta", "95%"], {}, 2, "did you mean 0.05, which is 95% confidence?"),
    (["--delta", "5%"], {}, 2, "5% is written 0.05"),
    (["--delta", "0.95"], {}, 2, "did you mean 0.05, "),
    (["--task", "classification"], {"label": [n / 7 for n in range(150)]}, 1,
     "; write --task regression, or cut"),
    (["--cv", "1"], {}, 2, "1 is not in the range"),
    (["--seed", "-1"], {}, 2, "-1 is not in the range"),
    (["--workers", "0"], {}, 2, "0 is not in the range"),
    (["--workers", "1", "--scheduler", "tcp://a:1"], {}, 2, "leave --workers out"),
    (["--target", "other"], {}, 1, "--target must be a column"),
    ([], dict.fromkeys(COLUMNS), 1, "no column holds a value: age, visits, city"),
    ([], {"note": [f"note {n}" for n in range(150)]}, 1, "holds 150 different texts"),
    ([], {"note": [f"note-{n}" for n in range(150)]}, 1,
     "by --drop note (or --id note to copy it to predictions), or name"),
    ([], {"note": [f"note {n}" for n in range(150)]}, 1,
     "Leave it out by --drop note, or name a pipeline that encodes them"),
    ([], {"list": [[1, 2]] * 150}, 1, "column 'list' holds "),
]  # fmt: skip


@pytest.mark.parametrize(("words", "columns", "code", "message"), REFUSED)
def test_select__refuses_in_one_line(folder, rng, words, columns, code, message):
    frame, labels = customers(150, rng)
    path = folder / "labeled.parquet"
    if columns:
        frame.assign(**{"label": labels} | columns).to_parquet(path, index=False)
    target = () if "--target" in words else ("--target", "label")
    found = run(
        "select", path, *(() if "--cv" in words else ("--cv", 3)), *target, *words
    )
    assert found.exit_code == code
    assert message in found.output
    if code == 1:  # and a command in a line of its own for each way out
        error, *lines = found.output.splitlines()
        assert error.startswith("Error: ")
        commands = [line for line in lines if not line.startswith("(")]
        assert all(line.startswith(("Run: dsel ", "Or: dsel ")) for line in commands)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:-8] * 2])
def test_select__names_a_damaged_file(folder, damage):
    content = gzip.compress((folder / "labeled.csv").read_bytes())
    (folder / "t.csv.gz").write_bytes(damage(content))
    found = run("select", folder / "t.csv.gz", "--target", "label")
    assert (found.exit_code, found.output.count("\n")) == (1, 1)
    assert "t.csv.gz' cannot be read: " in found.output


def test_select__names_a_file_beside_a_missing_one(folder):
    path = folder / "labeled.csv"
    found = run("select", folder / "labled.csv", "--target", "label")
    assert found.exit_code == 2
    assert f"did you mean '{path}'?" in "".join(found.output.splitlines())
    (folder / "gen.py").write_text("print(1)")
    found = run("select", folder / "gen.py", "--target", "label")
    assert "gen.py'; this is no table." in " ".join(found.output.split())
    assert "the table must end in one of" in " ".join(found.output.split())
    (folder / "rows.json").write_text('[{"a": 1}]')
    found = run("select", folder / "rows.json", "--target", "label")
    way = f"open('{folder}/rows.jsonl', 'w').writelines("
    assert way in " ".join(found.output.split())


def test_select__never_suggests_a_name_that_is_used_already(tmp_path, rng):
    frame = pd.DataFrame({"outcome": rng.normal(size=60), "age": rng.normal(size=60)})
    frame["income"] = rng.choice(["high", "low"], 60)
    frame.to_csv(tmp_path / "labeled.csv", index=False)
    frame.drop(columns="outcome").to_csv(tmp_path / "pool.csv", index=False)
    found = run("select", tmp_path / "labeled.csv", "--target", "income",
                "--pool", tmp_path / "pool.csv")  # fmt: skip
    assert found.exit_code == 1
    assert "lacks the column 'outcome'" in found.output
    assert "did you mean" not in found.output


def test_select__refuses_a_used_place_before_it_shows_the_plan(folder):
    words = ["select", folder / "labeled.csv", "--target", "label", "--grid", "C=1",
             "--out", folder / "results"]  # fmt: skip
    assert run(*words).exit_code == 0
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("mine")
    words[-1] = folder / "other"
    another_plan = [*words[:-1], folder / "results", "--seed", 1]
    for given, begins in ((another_plan, ["Error:", "Run: d"]), (words, ["Error:"])):
        found = run(*given)
        assert found.exit_code == 1
        assert "--out" in found.output
        assert [line[:6] for line in found.output.splitlines()] == begins
    assert run(*words[:-1], folder / "results").exit_code == 0


def test_select__asks_for_the_column_of_labels(folder):
    found = run("select", folder / "labeled.csv")
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert "that has the labels by --target; it has 'age', " in said
    assert "; did you mean 'label'? Run: dsel select " in said
    assert said.endswith(" --target label")


def test_parse_grid__reads_lists_and_ranges_of_powers():
    found = parse_grid(["C=2^-2..2^4:4", "d=1..4", "shrinking=true,false,none,auto"])
    assert found == {
        "C": [0.25, 1.0, 4.0, 16.0],
        "d": [1.0, 2.0, 4.0],
        "shrinking": [True, False, None, "auto"],
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, ()) for name in ("None", "NaT", "NA", "<NA>")),
        ("nan", ("--class", "nan")),
    ],
)
def test_select__takes_classes_whose_names_look_missing(tmp_path, name, words):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    table["label"] = np.where(table.a > 0, name, "EU")
    table.to_csv(tmp_path / "t.csv", index=False)
    found = succeed(
        "select", str(tmp_path / "t.csv"), "--target", "label", "--model", "logistic",
        "--grid", "C=1,10", "--quiet", *words,
    )  # fmt: skip
    assert "\nChosen" in found.output


@pytest.mark.parametrize("queries", [(), ("--queries", 5, "--out", "run")])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_select__says_which_columns_of_the_pool_are_not_used(
    tmp_path, rng, monkeypatch, ending, queries
):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"x": rng.normal(size=200), "key": range(200)})
    rows["y"] = np.where(rows["x"] + rng.normal(size=200) > 0, "a", "b")
    rows[:150].to_csv("t.csv", index=False)
    words = ("select", "t.csv", "--target", "y", "--id", "key", "--model", "logistic")
    for more, shown in (
        ({"site": "Ulm"}, "column 'site' of the pool, which is not in the labeled"),
        ({}, None),
    ):
        pool = rows.drop(columns="y").assign(**more)
        getattr(pool, f"to_{ending}")(f"p.{ending}", index=False)
        more_words = ("--verbose", *(queries if more else ()))
        found = succeed(*words, "--pool", f"p.{ending}", *more_words)
        assert found.stdout.count("not used  ") == (shown is not None)
        assert shown is None or shown in found.stdout


@pytest.mark.parametrize("command", ["select", "report"])
def test_commands__print_one_json_object_and_nothing_else(numbers, tmp_path, command):
    found = run(*numbers, "--out", tmp_path / "run", "--json")
    if command == "report":
        page = tmp_path / "page.html"
        found = run("report", tmp_path / "run", "--out", page, "--json")
    record = json.loads(found.stdout)
    assert (record["kind"], record["version"]) == (f"dsel {command}", 1)
    assert record["choice"]["kind"] == "Choice"
    for name, bound in record["bounds"].items():
        assert bound["certified"]
        assert (
            bound["bound"]
            == record["choice"]["deployed"][name]["certificate"]["unclipped"]
        )
    assert "NaN" not in found.stdout


@pytest.mark.parametrize("form", [{"sep": ";"}, {"encoding": "utf-8-sig"}, None])
def test_select__prints_the_command_that_spells_labels_in_one_way(
    form, tmp_path, rng, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    a = rng.normal(size=90).round(6)
    y = np.where(a > 0, np.where(a > 1, "Yes", "yes"), "no")
    table, path = pd.DataFrame({"y": y, "a": a, "note": list(map(str, a))}), "t.csv"
    table["note"] = "at " + table["note"]
    if form is None:
        path = "t.parquet"
        table.to_parquet(path, index=False)
    else:  # blanks around a label of a text file are no part of it
        blanks = table["y"].replace({"Yes": " Yes"})
        table.assign(y=blanks).to_csv(path, index=False, **form)
    words = ("select", path, "--target=y", "--model", "logistic", "--grid", "C=1")
    before = {each: each.read_bytes() for each in Path().iterdir()}
    done = run(*words, "--quiet")
    assert done.exit_code == 1
    assert "labels 'Yes' and 'yes' differ by blanks or case only" in done.stderr
    assert "different texts in 90 rows" in done.stderr
    assert "Fitting" not in done.output
    # A stop writes nothing, not even what its command writes.
    assert {each: each.read_bytes() for each in Path().iterdir()} == before
    [line] = [each for each in done.stderr.splitlines() if each.startswith("Run: ")]
    write, _, select = line.removeprefix("Run: ").partition(" && dsel ")
    subprocess.run([sys.executable, *shlex.split(write)[1:]], check=True)
    new = path.replace("t.", "t_respelled.")
    assert {*Path().iterdir()} == {*before, Path(new)}
    read = pd.read_parquet(new) if form is None else pd.read_csv(new, **form)
    spelled = table.assign(y=table["y"].replace({"Yes": "yes"}))
    pd.testing.assert_frame_equal(read, spelled, check_dtype=False)
    assert shlex.split(select)[:4] == ["select", new, "--target", "y"]
    assert shlex.split(select)[-2:] == ["--drop", "note"]
    succeed(*shlex.split(select))


def insured(n_rows=360, n_customers=90):
    """Return a table of contracts, with several rows of most customers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(45, 15, n_rows)})
    frame["city"] = rng.choice(["Ulm", "Bonn", "Kiel"], n_rows)
    frame["kunde"] = [f"K{n % n_customers:04d}" for n in range(n_rows)]
    frame["label"] = np.where(
        frame["age"] + rng.normal(0, 9, n_rows) > 62, "ja", "nein"
    )
    return frame


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_select__asks_whether_many_texts_of_few_rows_are_classes(tmp_path, name):
    frame, file = insured(), tmp_path / name
    frame.to_csv(file, index=False) if name.endswith("csv") else frame.to_parquet(file)
    text = " ".join(run("select", file, "--target", "kunde").output.split())
    assert "--target 'kunde' has 90 different texts in 360 rows" in text
    assert "--task classification" in text
    assert (
        run("select", file, "--target", "city", "--loss", "recall:Rome").exit_code == 1
    )


IDS = [("kunde", True), ("contract,city", False)]


@pytest.mark.parametrize(("ids", "has_note"), IDS)
def test_select__names_an_identifier_whose_rows_may_belong_together(
    tmp_path, ids, has_note
):
    rows = insured(120, 30).assign(contract=[f"V{n}" for n in range(120)])
    left_out = [name for name in ("kunde", "contract", "city") if name not in ids]
    rows.drop(columns=left_out).to_csv(tmp_path / "rows.csv", index=False)
    found = succeed(
        "select", tmp_path / "rows.csv", "--target", "label", "--id", ids,
        "--model", "logistic", "--grid", "C=1", "--cv", 2,
    )  # fmt: skip
    note = "kunde has 30 values in 120 rows; if rows of one kunde belong together"
    text = " ".join(found.output.split())
    assert (note in text) == has_note
    # The last line names it, too, whatever the table holds.
    assert (text.count("--groups") > 1) == has_note


@pytest.mark.parametrize("option", ["--id", "--drop", None])
def test_select__records_that_rows_of_an_identifier_may_belong_together(
    tmp_path, option
):
    insured(120, 30).to_csv(tmp_path / "rows.csv", index=False)
    insured(120, 30).to_parquet(tmp_path / "rows.parquet")
    words = () if option is None else (option, "kunde")
    note = "kunde has 30 values in 120 rows; if rows of one kunde belong together"
    for file in ("rows.csv", "rows.parquet"):
        found = run(
            "select", tmp_path / file, "--target", "label", *words, "--json",
            "--model", "logistic", "--grid", "C=1", "--cv", 2,
        )  # fmt: skip
        assert found.exit_code == 0, found.output
        caveats = json.loads(found.stdout)["choice"]["caveats"]
        [effect] = [each["effect"] for each in caveats if each["text"].startswith(note)]
        assert effect == "WARNS"


@pytest.mark.parametrize("kunde", [str, int])
def test_select__text_says_that_a_feature_is_a_category_and_no_key(tmp_path, kunde):
    rows = insured(120, 30)
    rows["kunde"] = [f"K{n // 4}" if kunde is str else n // 4 for n in range(120)]
    rows = rows.rename(columns={"kunde": "agent_no"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = (
        "select", tmp_path / "rows.csv", "--target", "label",
        "--model", "logistic", "--grid", "C=1", "--cv", 2,
    )  # fmt: skip
    found = " ".join(succeed(*words).output.split())
    assert "if it is only a category, write --text 'agent_no'" in found
    assert "if rows of one agent_no do not belong together)" in found
    found = " ".join(succeed(*words, "--text", "agent_no").output.split())
    assert "belong together" not in found
    assert "--groups agent_no" not in found


LOSSES = [
    ((), 10, False), (("balanced",), 20, True), (("error", "report"), 10, False),
]  # fmt: skip


@pytest.mark.parametrize(("losses", "n_candidates", "weighs"), LOSSES)
def test_select__weighs_classes_where_the_loss_is_not_the_error(
    tmp_path, losses, n_candidates, weighs
):
    insured().drop(columns="kunde").to_csv(tmp_path / "rows.csv", index=False)
    options = [word for loss in losses for word in ("--loss", loss)]
    found = succeed(
        "select", tmp_path / "rows.csv", "--target", "label", "--cv", 2, *options,
        "--out", tmp_path / "results",
    )  # fmt: skip
    assert ("class_weight" in found.output) == weighs
    assert dsel.open_outcome(tmp_path / "results").results.status.size == n_candidates


def test_select__names_columns_of_gaps_and_counts_rows_of_other_ids(tmp_path, rng):
    table = pd.DataFrame({"x": np.arange(200) % 4, "note": np.nan})
    table["label"] = np.where(table.x + rng.normal(size=200) > 1.5, "yes", "no")
    table["key"] = [f"k{row}" for row in range(200)]
    table.to_csv(tmp_path / "t.csv")
    words = (
        "select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", "3",
    )  # fmt: skip
    told = " ".join(succeed(*words, "--id", "key").output.split())
    assert "column 1, without a name" in told
    assert "Caveat column 'note' has no value in any labeled row" in told
    assert "their ids differ, so they are counted as records of their own" in told
    assert "take each record once" not in told
    content = succeed(*words, "--drop", "key", "--json").stdout
    assert "column 'note' has no value in any labeled row" in content
    assert "take each record once" in content
    quiet = " ".join(succeed(*words, "--id", "key", "--quiet").output.split())
    assert "column 'note' has no value in any labeled row" in quiet


def test_select__takes_several_models_as_one_search(numbers, tmp_path):
    words = numbers[:6]
    found = succeed(*words, "--model", "forest, logistic", "--out", tmp_path / "both")
    assert "Plan of 10 candidates that differ in model, " in found.output
    assert re.search("\nChosen .*model=", found.output)
    models = {str(text).partition("(")[0] for text in
              dsel.open_results(tmp_path / "both").dsel.table()["model"]}  # fmt: skip
    assert models == {"RandomForestClassifier", "LogisticRegression"}
    refused = run(*words, "--model", "forest,logistic", "--grid", "C=1")
    assert "the values of --grid are those of one" in " ".join(refused.output.split())
    refused = run(*words, "--model", "forest,ridge")
    assert "'ridge' predicts numbers" in " ".join(refused.output.split())
    refused = run(*words, "--model", "forest,logisti")
    assert "did you mean 'logistic'?" in " ".join(refused.output.split())


def test_select__takes_the_default_model_that_has_the_parameters(numbers, tmp_path):
    text = run(*numbers[:6], "--grid", "max_features=0.3").stdout
    assert "  model          forest by default" in text
    refused = run(*numbers, "--loss", "error_quantile=0.9")
    assert refused.exit_code == 1
    assert run(*numbers, "--loss", "recal:1").exit_code == 2
    assert "is for numbers; of classes there are error, recall:CLASS" in refused.output
    (tmp_path / "d_lab.csv").write_text("x\n1\n")
    refused = run(*numbers, "--out", tmp_path / "d_lab.csv")
    assert "is a file; name a folder" in " ".join(refused.output.split())
    (tmp_path / "empty").mkdir()
    refused = run(
        "predict", tmp_path / "empty", tmp_path / "d_lab.csv", "--out", "p.csv"
    )
    assert "this folder holds nothing of dsel" in " ".join(refused.output.split())


def test_select__names_values_of_the_pool_that_have_lost_zeros(tmp_path, rng):
    """Spreadsheet programs write 01067 as 1067."""
    codes = ["01067", "04109", "10115"]

    def table(n_rows, name, change):
        frame = pd.DataFrame({"x": rng.normal(size=n_rows)})
        frame["code"] = [change(code) for code in rng.choice(codes, n_rows)]
        frame["town"] = rng.choice(["Ulm", "Bonn"], n_rows)
        frame["label"] = np.where(frame.x > 0, "yes", "no")
        frame.to_csv(tmp_path / name, index=False)

    table(150, "l.csv", str)
    table(300, "u.csv", lambda code: code.lstrip("0"))
    select = ["select", tmp_path / "l.csv", "--target", "label", "--model", "logistic",
              "--grid", "C=1", "--quiet"]  # fmt: skip
    line = "so zeros at the beginning may be lost here"
    for name, like in (("a", ()), ("b", ("--like", tmp_path / "l.csv"))):
        pool = tmp_path / f"{name}.parquet"
        options = ("--target", "label", *like)
        built = succeed("pool", "build", tmp_path / "u.csv", pool, *options)
        assert (line in " ".join(built.stderr.split())) == bool(like)
        assert line in " ".join(run(*select, "--pool", pool).output.split())
    assert line in " ".join(run(*select, "--pool", tmp_path / "u.csv").output.split())
    table(300, "same.csv", str)
    said = succeed(*select, "--pool", tmp_path / "same.csv").stderr
    assert "no labeled row has" not in said
    table(150, "l.csv", lambda code: code.lstrip("0"))  # they became numbers
    refused = " ".join(run(*select, "--pool", tmp_path / "same.csv").output.split())
    assert "whole numbers (the labeled table may have lost zeros at the" in refused
    table(150, "l.csv", str)
    text = (tmp_path / "same.csv").read_text().replace("Ulm", "ULM", 2)
    (tmp_path / "other.csv").write_text(text)
    said = succeed(*select, "--pool", tmp_path / "other.csv").stderr
    assert "such as 'ULM'" in said
    assert "labeled rows have 'Ulm'" in " ".join(said.split())


@pytest.mark.parametrize("formats", ["csv parquet", "parquet csv", "csv jsonl"])
@pytest.mark.parametrize(
    ("labeled", "pool", "words"),
    [
        ("NA", None, "is empty, as in no labeled row"),
        (None, "n/a", "such as 'n/a': the models have learned nothing about them; "
         "labeled rows have gaps"),
        ("ja", "JA", "labeled rows have 'ja'"),
        ("caf\u00e9", "cafe\u0301", "labeled rows have 'caf\u00e9'"),
        ("a b", "a\u00a0b", "labeled rows have 'a b'"),
        ("0815", "815", "so zeros at the beginning may be lost here"),
    ],
)  # fmt: skip
def test_select__refuses_a_pool_that_spells_a_value_in_another_way(
    labeled, pool, words, formats, tmp_path, rng
):
    """Models would have learned nothing about these rows of the pool."""
    paths, how = [], formats.split()
    for n_rows, value, ending in zip((150, 400), (labeled, pool), how, strict=True):
        frame = pd.DataFrame({"x": rng.normal(size=n_rows), "town": "Ulm"})
        frame.loc[::5, "town"] = value
        frame["label"] = np.where(frame.x > 0, "yes", "no")
        path = tmp_path / f"{n_rows}.{ending}"
        if ending == "csv":
            frame.to_csv(path, index=False)
        elif ending == "parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=True)
        paths.append(path)
    refused = run("select", paths[0], "--target", "label", "--pool", paths[1])
    said = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert "in 80 rows column 'town'" in said
    assert words in said
    assert "leave the columns out by --drop town" in said


@pytest.mark.parametrize("formats", ["csv csv", "csv parquet", "parquet csv"])
def test_select__says_that_the_tables_may_be_swapped(formats, tmp_path, rng):
    paths = []
    for name, ending in zip(("labeled", "pool"), formats.split(), strict=True):
        frame = pd.DataFrame({"x": rng.normal(size=60)})
        if name == "labeled":
            frame["label"] = np.where(frame.x > 0, "yes", "no")
        paths.append(tmp_path / f"{name}.{ending}")
        if ending == "csv":
            frame.to_csv(paths[-1], index=False)
        else:
            frame.to_parquet(paths[-1], index=False)
    labeled, pool = paths
    hint = "are LABELED and --pool swapped?"
    refused = run("select", pool, "--target", "label", "--pool", labeled)
    assert hint in " ".join(refused.output.split())
    refused = run("select", labeled, "--target", "lable", "--pool", pool)
    assert "did you mean 'label'?" in refused.output
    assert hint not in " ".join(refused.output.split())


def test_select__ends_a_stop_with_the_command_that_goes_on(tmp_path, rng):
    """The command can be pasted; it drops what was dropped before, too."""
    frame = pd.DataFrame({"x": rng.normal(size=90), "site": 1, "note": "a-b"})
    frame["customer no"] = [f"K{row * 7}" for row in range(90)]
    frame["note"] += frame["customer no"]
    frame["label"] = np.where(frame.x > 0, "yes", "no")
    path = tmp_path / "my table.csv"
    frame.to_csv(path, index=False)
    words = ["select", path, "--target", "label", "--drop", "site", "--model",
             "logistic", "--grid", "C=1", "--quiet"]  # fmt: skip
    refused = run(*words)
    assert refused.exit_code == 1
    _, _, command = " ".join(refused.output.split()).partition(" Run: dsel ")
    assert "--drop site" in command
    assert "--id 'note,customer no'" in command
    assert "Error at most" in succeed(*shlex.split(command)).stdout
    misspelled = run(*("lable" if word == "label" else word for word in words))
    _, _, command = " ".join(misspelled.output.split()).partition(" Run: dsel ")
    # What comes next is decided, too.
    assert command == shlex.join([*map(str, words), "--id", "note,customer no"])
    number = run(*words, "--number", "label", "--task", "classification")
    assert "write --task regression for a target of numbers" in number.output
    # Each of several ways out has its command.
    paid, days = (
        [f"${row}.5" for row in range(90)],
        [f"0{1 + k % 9}/{1 + k // 9:02}/2023" for k in range(90)],
    )
    for column, ways in (
        (paid, [["--number", "new"], ["--drop", "site,new"]]),
        (days, [["--dayfirst"], ["--monthfirst"], ["--drop", "site,new"]]),
        (
            ["not yet", "unknown", *(f"{row}.5" for row in range(88))],
            [["--gap", "not yet", "--gap", "unknown"], ["--drop", "site,new"]],
        ),
    ):
        frame.assign(new=column).to_csv(path, index=False)
        lines = run(*words).stderr.splitlines()[1:]
        commands = [
            shlex.split(line.partition(" dsel ")[2])
            for line in lines
            if not line.startswith("(")
        ]
        assert len(commands) == len(ways)
        for command, way in zip(commands, ways, strict=True):
            assert shlex.join(way) in shlex.join(command)
        assert "Error at most" in succeed(*commands[0]).stdout


@pytest.mark.parametrize("gap", ["unknown", "-"])  # "-" is one among numbers anyway
def test_gap__is_one_in_every_later_table(tmp_path, rng, gap):
    values = rng.normal(size=1_000).round(3)
    texts = pd.DataFrame(
        {"x": values.astype(str), "town": rng.choice(["A", "B"], 1_000)}
    )
    found = []
    for word in (gap, ""):
        texts.loc[::9, "x"] = texts.loc[::7, "town"] = word
        rows, pool = (tmp_path / f"{name}{word}.csv" for name in ("rows", "pool"))
        out = tmp_path / f"results{word}"
        labels = np.where(values[:120] > 0, "known", "unknown")
        texts[:120].assign(label=labels).to_csv(rows, index=False)
        texts[120:].to_csv(pool, index=False)
        succeed(
            "select", rows, "--target", "label", "--pool", pool, "--model", "logistic",
            "--grid", "C=1", "--cv", 2, "--out", out, "--gap", gap, "--quiet",
        )  # fmt: skip
        succeed("predict", out, pool, "--out", tmp_path / f"{word}.csv")
        succeed("pool", "build", pool, tmp_path / f"{word}.parquet", "--like", out)
        bound = dsel.open_outcome(out).certificate.bound
        predictions = (tmp_path / f"{word}.csv").read_text()
        read = pd.read_parquet(tmp_path / f"{word}.parquet")
        found.append((bound, predictions, read.isna().sum().tolist()))
    assert found[0] == found[1]
    assert "\nunknown," in re.sub(
        "\n[0-9]+,", "\n", found[0][1]
    )  # the label of that name
    assert min(found[0][2]) > 90


def test_select__names_groups_first_where_rows_of_one_client_may_belong_together(
    tmp_path, rng
):
    frame = pd.DataFrame({"x": rng.normal(size=300)})
    frame["client"] = [f"C{row // 2}" for row in range(300)]
    frame["loan"] = [f"L{row}" for row in range(300)]
    frame["label"] = np.where(frame.x > 0, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
             "--grid", "C=1", "--quiet")  # fmt: skip
    error, *commands = run(*words).output.splitlines()
    assert "If rows of one client belong together, write --groups client: " in error
    # Nothing in the table shows which meaning the keys have, so both have a command.
    command = f"{shlex.join(map(str, words))} --groups client --id loan"
    other = f"{shlex.join(map(str, words))} --drop client --id loan"
    lines = [line for line in commands if not line.startswith("(")]
    assert lines == [f"Run: dsel {command}", f"Or: dsel {other}"]
    assert commands[1].startswith("(rows of one 'client' belong together, and the bou")
    assert commands[3].startswith("(used by no model: 'client'; ")
    assert "on a random row of a new group" in succeed(*shlex.split(command)).stdout
    other = run(*words, "--groups", "loan").output
    assert "belong together" not in other
    assert other.endswith(" --drop client\n")


@pytest.mark.parametrize("begin", ["", "K"])
def test_select__after_a_pool_of_other_customers_names_the_groups(tmp_path, rng, begin):
    keys = np.r_[rng.integers(0, 100, 400), rng.integers(100, 2_000, 2_000)]
    names = rng.permutation(2_000)  # in no order, so that keys of both tables are mixed
    frame = pd.DataFrame({"customer": [f"{begin}{names[key]}" for key in keys]})
    frame["x"] = rng.normal(size=2_000)[keys] + 0.3 * rng.normal(size=len(keys))
    frame["y"] = np.where(frame.x > 0, "yes", "no")
    frame[:400].to_csv(tmp_path / "t.csv", index=False)
    frame[400:].drop(columns="y").to_csv(tmp_path / "pool.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "y", "--model", "logistic",
             "--grid", "C=1", "--pool", tmp_path / "pool.csv")  # fmt: skip
    found = run(*words)
    assert found.exit_code == 3
    said = " ".join(found.output.split())
    assert "most by column customer (AUC" in said
    assert "Next one of the commands below: the first one if rows of one cust" in said
    command = f"{shlex.join(map(str, words))} --groups customer"
    other = f"{shlex.join(map(str, words))} --id customer"
    assert f"Run: dsel {command}" in found.output.splitlines()
    assert f"Or: dsel {other}" in found.output.splitlines()
    assert "on a random row of a new group" in succeed(*shlex.split(command)).stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_select__offers_no_id_that_the_pool_lacks(tmp_path, rng, ending):
    frame = pd.DataFrame({"x": rng.normal(size=300)})
    frame["client_id"] = [f"L{row}" for row in range(300)]
    frame["label"] = np.where(frame.x > 0, "yes", "no")
    frame[:100].to_csv(tmp_path / "t.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "label", "--model", "logistic",
             "--grid", "C=1", "--pool", tmp_path / f"pool.{ending}")  # fmt: skip
    for columns, way in (
        (["x"], "--drop client_id"),
        (["x", "client_id"], "--id client_id"),
    ):
        write = frame[100:][columns]
        if ending == "csv":
            write.to_csv(tmp_path / "pool.csv", index=False)
        else:
            write.to_parquet(tmp_path / "pool.parquet", index=False)
        [command] = run(*words).output.splitlines()[1:]
        assert command.endswith(f" {way}")
        succeed(*shlex.split(command.removeprefix("Run: dsel ")))


def test_select__ends_with_3_where_nothing_is_certified(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(700, 3)), columns=list("abc")).round(6)
    frame["label"] = np.where(frame["a"] > 0, "yes", "no")
    frame[200:].drop(columns="label").to_csv(tmp_path / "pool.csv", index=False)
    rows = frame[:200]
    copied = pd.concat([rows, rows[rows["label"] == "yes"]])
    copied.to_csv(tmp_path / "copied.csv", index=False)
    words = ("--target", "label", "--model", "logistic", "--grid", "C=1", "--quiet")
    pool = ("--pool", tmp_path / "pool.csv")
    for more in ((), ("--json",)):
        done = run("select", tmp_path / "copied.csv", *words[:-1], *pool, *more)
        assert done.exit_code == 3, done.output
    assert not json.loads(done.stdout)["bounds"]["one_fold"]["certified"]


def test_select__names_columns_and_options_that_another_plan_had(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    frame["label"] = np.where(frame["a"] > 0, "yes", "no")
    frame[:100].to_csv(tmp_path / "t.csv", index=False)
    frame[100:].drop(columns="label").to_csv(tmp_path / "pool.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "label", "--grid", "C=1")
    words += ("--out", tmp_path / "results", "--quiet")
    pool = ("--pool", tmp_path / "pool.csv")
    logistic = (*words, "--model", "logistic", *pool)
    succeed(*logistic, "--queries", 5)
    text = " ".join(run(*logistic, "--drop", "b").output.split())
    assert (
        "holds another plan: 'b' is a column there and not now, --queries is 5 there "
        "and nothing now; choose another place"
    ) in text
    text = " ".join(run(*words, "--model", "svm").output.split())
    assert "--queries is 5 there and nothing now" in text
    assert f"It was run with --pool {pool[1]}, --model logistic." in text


def test_select__a_bound_that_excludes_nothing_has_the_status_of_no_bound(tmp_path):
    rows = "".join(f"{n % 7},{'ab'[n % 4 == 0]}\n" for n in range(40))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}")
    words = ("--target", "y", "--model", "logistic", "--grid", "C=1", "--cv", 2)
    found = run("select", tmp_path / "t.csv", *words, "--loss", "recall:b", "--quiet")
    assert "No bound below 100% for the misses of" in " ".join(found.output.split())
    assert found.exit_code == 3


def test_select__messages_name_nothing_that_the_shell_does_not_have(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=list("ab"))
    frame["name"] = [f"n{number}" for number in range(300)]
    frame["label"] = np.where(frame["a"] > 0, "yes", "no")
    frame[:100].to_csv(tmp_path / "t.csv", index=False)
    frame[100:].drop(columns="label").to_csv(tmp_path / "pool.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--model", "logistic")
    target = ("--target", "label", "--pool", tmp_path / "pool.csv")
    out = ("--out", tmp_path / "r", "--quiet")

    text = " ".join(
        run(*words, *target, "--drop", "name", "--grid", "C=a").stderr.split()
    )
    assert "which LogisticRegression refuses" in text
    text = " ".join(run(*words, "--target", "name", *out).stderr.split())
    assert "different labels in 100 rows, such as 'n0'; label more rows" in text
    assert "regression" not in text
    frame[:3].to_csv(tmp_path / "few.csv", index=False)
    few = ("select", tmp_path / "few.csv", "--target", "label", "--drop", "name")
    text = " ".join(run(*few, *out).stderr.split())
    assert "3 labeled rows are too few for 5 folds; label more rows" in text
    frame[:12].to_csv(tmp_path / "few.csv", index=False)
    text = " ".join(run(*few, *out).stderr.split())
    assert "5 are too many for 12 rows; label at least 20 rows" in text

    succeed(*words, *target, "--id", "name", "--grid", "C=1", *out)
    text = " ".join(
        run(*words, *target, "--drop", "name", "--grid", "C=1", *out).stderr.split()
    )
    assert "the pool is known to hold other records there and not now" in text


def test_select__advises_on_no_texts_that_only_a_tried_option_has_made(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300)).round(4)
    labeled = pd.DataFrame({"a": a, "b": b, "y": np.where(a > 0, "p", "q")})
    labeled.to_csv(tmp_path / "labeled.csv", index=False)
    pool = labeled[["a", "b"]].assign(a=[f"w{n}" for n in range(300)])
    pool.to_csv(tmp_path / "pool.csv", index=False)
    done = run(
        "select", tmp_path / "labeled.csv", "--target", "y", "--model", "logistic",
        "--pool", tmp_path / "pool.csv",
    )  # fmt: skip
    assert done.exit_code == 1
    # It has texts where --text reads it, which no command does.
    text = " ".join(done.output.split())
    assert "it holds numbers. Correct the values" in text
    assert "different texts" not in text
    assert "--text" not in text
