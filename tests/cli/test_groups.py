"""`dsel select --groups`: the column is no feature, and is not needed again."""

import shlex

import numpy as np
import pandas as pd
import pytest

import dsel
from dsel.cli.exit_status import ExitStatus
from tests.shell import run, succeed

ASKED = ("--target", "label", "--model", "logistic", "--grid", "C=0.1,1")


@pytest.fixture
def table(rng):
    keys = np.repeat(np.arange(50), 4)
    X = rng.normal(size=(50, 3))[keys] + 0.2 * rng.normal(size=(200, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["customer"] = [f"c{key:02}" for key in keys]
    return frame.assign(label=np.where(X[:, 0] > 0, "yes", "no"))


@pytest.fixture(params=["csv", "parquet", "feather", "jsonl"])
def labeled(request, table, tmp_path):
    path = tmp_path / f"t.{request.param}"
    write = {
        "csv": lambda: table.to_csv(path, index=False),
        "parquet": lambda: table.to_parquet(path),
        "feather": lambda: table.to_feather(path),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True),
    }
    write[request.param]()
    return path


def test_select__counts_one_row_of_each_group(labeled, table, tmp_path):
    out = tmp_path / "results"
    done = succeed("select", labeled, *ASKED, "--groups", "customer", "--out", out)
    assert "on a random row of a new group (95% confidence)" in done.output
    assert "50 groups, one row of each is counted" in done.output
    assert dsel.open_results(out)["n_groups"] == 50
    page = tmp_path / "page.html"
    assert run("report", out, "--out", page).exit_code == 0
    text = " ".join(page.read_text().split())
    assert "on a random row of a new group" in text
    assert "groups" in text
    # Neither a table with the column nor one without needs anything else.
    for name, columns in (("new", ["a", "b", "c"]), ("all", list(table))):
        table[columns].to_csv(tmp_path / f"{name}.csv", index=False)
        made = succeed("predict", out, tmp_path / f"{name}.csv", "--out",
                   tmp_path / f"{name}-p.csv")  # fmt: skip
        assert "on a random row of a new group" in " ".join(made.output.split())
    one, other = (pd.read_csv(tmp_path / f"{name}-p.csv") for name in ("new", "all"))
    pd.testing.assert_frame_equal(one, other)


def test_select__takes_the_column_as_an_id_too(labeled, tmp_path):
    out, p = tmp_path / "results", tmp_path / "p.csv"
    words = ("--groups", "customer", "--id", "customer")
    assert run("select", labeled, *ASKED, *words, "--out", out).exit_code == 0
    assert run("predict", out, labeled, "--out", p).exit_code == 0
    assert pd.read_csv(p)["customer"][0] == "c00"


def test_select__leaves_the_pool_of_rows_without_a_label_unread(table, tmp_path):
    table.loc[:39, "label"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    done = succeed("select", tmp_path / "t.csv", *ASKED, "--groups", "customer")
    assert "40 groups" in done.output
    # Once, with the number that it is about; there is no --pool.
    assert done.output.count("the pool is not read") == 1


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (None, ("--groups", "client"), "--groups names 'client' column customer"),
        (None, ("--groups", "label"), "--groups names 'label' target"),
        ({3: ""}, ("--groups", "customer"), "--groups line 5 missing own"),
        (None, ("--groups", "customer", "--deploy", "all_rows"), "--deploy --groups"),
        (None, ("--groups", "customer", "--queries", 5, "--out", "o"),
         "--queries --groups"),
    ],
)  # fmt: skip
def test_select__refuses_groups_in_one_line(table, tmp_path, change, words, message):
    for row, key in (change or {}).items():
        table.loc[row, "customer"] = key
    table.to_csv(tmp_path / "t.csv", index=False)
    table.drop(columns="customer").to_csv(tmp_path / "pool.csv", index=False)
    words = [tmp_path / word if word == "o" else word for word in words]
    pool = ("--pool", tmp_path / "pool.csv")
    done = run("select", tmp_path / "t.csv", *ASKED, *words, *pool)
    [error] = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    assert done.exit_code != 0
    assert [word for word in message.split() if word not in error] == [], error


def test_select__says_that_a_word_for_a_gap_is_a_group(table, tmp_path):
    table.loc[:2, "customer"] = "NA"
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("select", tmp_path / "t.csv", *ASKED, "--groups", "customer")
    assert "'NA' is one group of 'customer'" in " ".join(done.output.split())


def test_select__needs_names_of_columns(tmp_path, rng):
    np.savez(tmp_path / "t.npz", X=rng.normal(size=(40, 2)), y=rng.integers(2, size=40))
    done = run("select", tmp_path / "t.npz", "--groups", "customer")
    assert "feature_names" in done.output


def test_select__of_customers_without_their_column_says_how_to_go_on(tmp_path):
    rng = np.random.default_rng(0)
    # 100 customers with 4 rows are labeled, and one row each of 800 others is not.
    of = np.append(np.repeat(np.arange(100), 4), np.arange(100, 900))
    X = rng.normal(size=(900, 6))[of] + 0.1 * rng.normal(size=(1_200, 6))
    rows = pd.DataFrame(X, columns=list("abcdef"))
    rows["label"] = np.where(X[:, 0] > 0, "yes", "no")
    rows[:400].to_csv(tmp_path / "labeled.csv", index=False)
    rows[400:].drop(columns="label").to_csv(tmp_path / "pool.csv", index=False)
    tables = tmp_path / "labeled.csv", "--pool", tmp_path / "pool.csv"
    found = run("select", *tables, *ASKED)
    assert found.exit_code == ExitStatus.REFUTED
    text = " ".join(found.stdout.split())
    assert "have another labeled row as their nearest one" in text
    assert "so run again with --groups 'customer'" in text
    assert "Next the same command with --groups and the column that says " in text
    # It is a second run of the same rows: a reason allows it.
    assert "the bound above is then void and was no ground for this" in text


def test_select__names_groups_beside_a_shift_of_a_column_that_they_share(tmp_path):
    rng = np.random.default_rng(1)
    customer = np.repeat(np.arange(300), 4)
    area = rng.permutation(10_000)[:300] / 10
    u = rng.normal(size=300)[customer] + 0.5 * rng.normal(size=1_200)
    label = np.where(u + rng.normal(size=1_200) > 0, "yes", "no")
    rows = pd.DataFrame({"area": area[customer], "u": u, "label": label})
    rows[:160].to_csv(tmp_path / "labeled.csv", index=False)
    rows[160:].drop(columns="label").to_csv(tmp_path / "pool.csv", index=False)
    words = ("select", tmp_path / "labeled.csv", *ASKED)
    done = run(*words, "--pool", tmp_path / "pool.csv")
    text = " ".join(done.stdout.split())
    assert "so these may be groups: if rows of one area belong" in text
    assert "so run again with --groups 'area'" in text
    assert "Next the same command with --groups area, if rows of one area" in text
    succeed(*words, "--groups", "area", "--delta", "0.2")


def test_select__names_the_groups_before_a_run_whose_features_have_them(tmp_path, rng):
    keys = np.repeat(np.arange(60), 5)
    frame = pd.DataFrame({"x": rng.normal(size=60)[keys] + rng.normal(size=300) / 9})
    frame["client"] = [f"K{key}" for key in keys]  # few enough to be categories
    frame["label"] = np.where(frame.x > 0, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("select", tmp_path / "t.csv", *ASKED)
    done = succeed(*words, "--plan")
    note, command = done.stderr.splitlines()[:2]
    assert "each value of column 'client'" in note
    assert "A1 is violated (independent draws) and the bound is void" in note
    assert command.startswith("Run: dsel select ")
    assert command.endswith(" --plan --groups client")
    again = succeed(*shlex.split(command)[2:])
    assert "60 groups, one row of each is counted" in again.stdout
    assert "belong together" not in again.stderr


def test_select__offers_groups_first_where_texts_of_any_name_repeat(tmp_path, rng):
    rows = rng.integers(0, 150, 600)
    x = rng.normal(size=600)
    pd.DataFrame(
        {
            "machine": [f"M-{row:03}" for row in rows],
            "x": x,
            "label": np.where(x + rng.normal(size=600) > 0, "ok", "bad"),
        }
    ).to_csv(tmp_path / "t.csv", index=False)
    words = ["select", tmp_path / "t.csv", *ASKED]
    lines = run(*words).stderr.splitlines()
    assert "If rows of one machine belong together, write --groups machine" in lines[0]
    assert [line for line in lines if line.startswith(("Run: ", "Or: "))] == [
        f"{start} dsel {shlex.join([*map(str, words), option, 'machine'])}"
        for start, option in (("Run:", "--groups"), ("Or:", "--drop"))
    ]
