"""`dsel compare` and `dsel label`: models, rows for a spreadsheet, and one answer."""

import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.results import ModelComparison, save_model
from dsel.results.place import unseal
from dsel.results.query_files import as_label
from tests.shell import run, succeed

N_POOL = 2000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two models, a pool with a column that neither reads, and the hidden truth."""
    folder, rng = tmp_path_factory.mktemp("compare"), np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_POOL + 300, 3)), columns=["a", "b", "c"])
    truth = np.where(frame.a + frame.b > 0, "yes", "no")
    known = frame[:300]
    for name, C, columns in (("old", 1e-4, ["a", "c"]), ("new", 1.0, ["a", "b"])):
        model = LogisticRegression(C=C).fit(known[columns], truth[:300])
        save_model(model, folder / name)
    pool = frame[300:].reset_index(drop=True)
    pool = pool.assign(note=[f'Zürich; row {n}, "quoted"' for n in range(N_POOL)])
    pool.to_parquet(folder / "pool.parquet", index=False)
    known.assign(label=truth[:300]).to_parquet(folder / "seen.parquet", index=False)
    return folder, truth[300:]


@pytest.fixture
def place(made, tmp_path):
    """A comparison of which the rows are not labeled yet."""
    folder, truth = made
    done = succeed(
        *("compare", folder / "old", folder / "new"),
        *("--pool", folder / "pool.parquet", "--queries", 60, "--out", tmp_path / "c"),
    )
    return tmp_path / "c", truth, done.output


def labeled(place, truth):
    rows = pd.read_csv(place / "query_rows.csv")
    return rows.assign(label=truth[rows.pool_row])


def test_compare__writes_rows_with_an_empty_last_column(place):
    folder, _, output = place
    rows = pd.read_csv(folder / "query_rows.csv")
    assert list(rows.columns) == ["pool_row", "a", "b", "c", "note", "label"]
    assert len(rows) == 60
    assert rows.label.isna().all()
    assert rows.note.tolist() == [f'Zürich; row {n}, "quoted"' for n in rows.pool_row]
    assert "differ by at most" in output
    assert f"dsel label {folder}" in output.replace("\n", " ")
    kept = ModelComparison.from_json((folder / "comparison.json").read_text())
    assert kept.rows == tuple(rows.pool_row)


def stored_answer(folder):
    text = unseal((folder / "answer.json").read_bytes()).decode()
    return ModelComparison.from_json(text)


def test_label__says_what_python_says(place, made):
    folder, truth, _ = place
    labeled(folder, truth).to_csv(folder / "query_rows.csv", index=False)
    done = succeed("label", folder, folder / "query_rows.csv")
    assert "percentage points less than the old one (95% confidence)" in done.output
    question = dsel.compare_models(
        *(made[0] / name for name in ("old", "new")), made[0] / "pool.parquet",
        n_queries=60, random_state=0,
    )  # fmt: skip
    answer = question.certify_with_labels(truth[list(question.rows)])
    kept = stored_answer(folder)
    assert (kept.lower, kept.upper) == (answer.lower, answer.upper)
    short = run("label", folder, folder / "query_rows.csv", "--quiet")
    assert short.output == f"{answer.headline()}\n"


def test_report__of_a_comparison_is_a_page_with_its_verdict(place):
    folder, truth, _ = place
    for _ in range(2):
        record = json.loads(run("report", folder, "--json").stdout)
        page = (folder / "report.html").read_text(encoding="utf-8")
        kept = ModelComparison.from_json(json.dumps(record["comparison"]))
        shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
        # The page shows what is between backticks as code.
        lines = [text for name, text in kept.shown_rows() if name != "Assumes"]
        lines += [assumption.statement for assumption in kept.assumptions]
        said = [text.replace("`", " ").split() for text in lines]
        assert [text for text in map(" ".join, said) if text not in shown] == []
        assert "Is new better than old, target label?" in shown
        parts = (
            "old model old class of the old model ",
            "new model new class of the new model ",
            "pool pool.parquet",
            "date 20",
        )
        assert [part for part in parts if part not in shown] == []
        assert kept.headline() in shown
        assert page.count("<svg") == 1
        assert "<script" not in page
        labeled(folder, truth).to_csv(folder / "query_rows.csv", index=False)
        succeed("label", folder, folder / "query_rows.csv")
    assert kept.labels is not None


def test_compare_and_label__print_one_json_object(place, made, tmp_path):
    models = [made[0] / name for name in ("old", "new")]
    options = ["--pool", made[0] / "pool.parquet", "--queries", 60, "--json"]
    record = json.loads(
        run("compare", *models, *options, "--out", tmp_path / "d").stdout
    )
    assert (record["kind"], record["version"]) == ("dsel compare", 1)
    assert record["comparison"]["kind"] == "dsel model comparison"
    folder, truth, _ = place
    labeled(folder, truth).to_csv(record["query_rows"], index=False)
    answer = json.loads(
        run("label", tmp_path / "d", record["query_rows"], "--json").stdout
    )
    assert answer["kind"] == "dsel label"
    assert answer["comparison"]["upper"] < record["comparison"]["upper"]


def excel(rows):
    """Another order, other columns, a semicolon, a mark, 12.0 for 12, commas."""
    rows = rows.sample(frac=1, random_state=0).assign(who="Ann")
    rows["pool_row"] = rows.pool_row.map("{:.1f}".format)
    numbers = rows[["a", "b"]].map(lambda x: str(x).replace(".", ","))
    columns = ["who", "label", "note", "pool_row"]
    text = (
        rows[columns].join(numbers).to_csv(index=False, sep=";", lineterminator="\r\n")
    )
    return b"\xef\xbb\xbf" + text.encode()


def german(rows):
    """Row numbers with decimal commas."""
    rows = rows.assign(pool_row=[f"{n},0" for n in rows.pool_row])
    return rows.to_csv(index=False, sep=";").encode()


def alone(rows):
    """The two columns alone, tabs, UTF-16, with blanks and lines that are empty."""
    lines = [f" {n} \t {label} " for n, label in rows[["pool_row", "label"]].values]
    return "\n".join(["pool_row\tlabel", *lines, "\t", ""]).encode("utf-16")


def twice(rows):
    """Some rows twice, with one label."""
    return pd.concat([rows, rows[:5]]).to_csv(index=False).encode()


def numbered(rows):
    """With row numbers of pandas."""
    return rows.to_csv().encode()


@pytest.mark.parametrize("write", [excel, german, alone, twice, numbered])
def test_label__joins_by_the_row_number_whatever_a_spreadsheet_does(
    place, tmp_path, write
):
    folder, truth, _ = place
    rows = labeled(folder, truth)
    (tmp_path / "back.csv").write_bytes(write(rows))
    succeed("label", folder, tmp_path / "back.csv")
    kept = stored_answer(folder)
    assert kept.labels == tuple(truth[list(kept.rows)])


def test_label__rows_without_a_label_count_against_what_is_proved(place, tmp_path):
    folder, truth, _ = place
    rows = labeled(folder, truth)
    rows.loc[:4, "label"] = None
    rows.loc[5, "label"] = "maybe"
    rows[:50].to_csv(tmp_path / "some.csv", index=False)
    for options, words in (
        ((), "got 'maybe' in 1 row; correct them, or pass --allow-unknown"),
        (
            ["--allow-unknown"],
            "15 of 60 rows have none; fill them in, or pass --partial",
        ),
    ):
        done = run("label", folder, tmp_path / "some.csv", *options)
        assert done.exit_code == 1
        assert words in done.output
        assert "column 'label' of" in done.output
        assert not (folder / "answer.json").exists()
    done = run("label", folder, tmp_path / "some.csv", "--partial", "--allow-unknown")
    assert "16 rows have no label, or one that is no class" in " ".join(
        done.output.split()
    )


def test_label__takes_words_for_a_label_that_is_missing(place, tmp_path):
    folder, truth, _ = place
    rows = labeled(folder, truth)
    found = []
    for word, options in (("", ()), ("unsure", ("--gap", "unsure"))):
        copy = tmp_path / f"copy{word}"
        shutil.copytree(folder, copy)
        rows.assign(label=rows.label.where(rows.index > 2, word)).to_csv(
            copy / "query_rows.csv", index=False
        )
        refused = run("label", copy, *options)
        assert "--partial" in refused.output
        found.append(succeed("label", copy, *options, "--partial", "--quiet").stdout)
    assert found[0] == found[1]


def test_compare__reads_further_words_as_gaps_of_the_pool(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"]).round(3)
    labels = np.where(frame.a > 0, "yes", "no")
    frame[:200].assign(label=labels[:200]).to_csv(tmp_path / "t.csv", index=False)
    pool = frame[200:].astype(str)
    pool.loc[pool.index[:3], "a"] = "pending"
    pool.to_csv(tmp_path / "pool.csv", index=False)
    for name in ("a", "b"):
        succeed("select", tmp_path / "t.csv", "--target", "label", "--drop", name,
                "--model", "logistic", "--grid", "C=1", "--out", tmp_path / name,
                "--quiet")  # fmt: skip
    words = ("compare", tmp_path / "a", tmp_path / "b", "--pool", tmp_path / "pool.csv")
    refused = run(*words, "--out", tmp_path / "c")
    assert "'pending'" in refused.output
    assert refused.exit_code == 1
    succeed(*words, "--out", tmp_path / "c", "--gap", "pending")


def test_label__an_answer_is_final(place, tmp_path):
    folder, truth, _ = place
    rows = labeled(folder, truth)
    rows.to_csv(tmp_path / "first.csv", index=False)
    first = run("label", folder, tmp_path / "first.csv")
    again = run("label", folder, tmp_path / "first.csv")
    assert (again.exit_code, again.output) == (0, first.output)
    kept = (folder / "answer.json").read_bytes()
    rows.loc[0, "label"] = "no" if rows.label[0] == "yes" else "yes"
    rows.to_csv(tmp_path / "second.csv", index=False)
    other = run("label", folder, tmp_path / "second.csv")
    assert other.exit_code == 1
    assert "a result is final" in other.output
    assert "(1 of 60 rows differ)" in other.output
    assert (folder / "answer.json").read_bytes() == kept
    (folder / "answer.json").write_bytes(kept[:-9])
    damaged = run("label", folder, tmp_path / "first.csv")
    assert damaged.exit_code == 1
    assert "answer.json in" in damaged.output
    assert "is damaged, or not what dsel wrote there" in damaged.output


def with_stranger(rows):
    return pd.concat([rows, rows[:1].assign(pool_row=N_POOL + 7)])


def with_two_labels(rows):
    return pd.concat(
        [rows, rows[:1].assign(label=["no", "yes"][rows.label[0] == "no"])]
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_stranger, f"pool row {N_POOL + 7}, which was not queried"),
        (with_two_labels, "one label for each pool row"),
        (lambda rows: rows.drop(columns="pool_row"), "query_rows.csv."),
        (lambda rows: rows.drop(columns="label"), "lacks the column 'label'"),
        (lambda rows: rows.assign(pool_row=rows.pool_row + 0.5), "whole number"),
        (lambda rows: rows.assign(pool_row="1,000"), "whole number"),
        (lambda rows: rows.assign(pool_row=None), "whole number"),
    ],
)  # fmt: skip
def test_label__refuses_what_is_not_its_rows(place, tmp_path, change, words):
    folder, truth, _ = place
    change(labeled(folder, truth)).to_csv(tmp_path / "bad.csv", index=False)
    done = run("label", folder, tmp_path / "bad.csv")
    assert done.exit_code == 1
    assert words in done.output
    assert done.output.count("\n") == 1
    assert not (folder / "answer.json").exists()


def test_label__refuses_places_that_are_no_comparison(place, tmp_path):
    folder, truth, _ = place
    labeled(folder, truth).to_csv(tmp_path / "rows.csv", index=False)
    done = run("label", tmp_path, tmp_path / "rows.csv")
    assert (done.exit_code, "there are no results at" in done.output) == (1, True)
    assert "nothing at" in run("label", folder, tmp_path / "gone.csv").output
    record = json.loads((folder / "comparison.json").read_text())
    record["n_differ"] += 100
    (folder / "comparison.json").write_text(json.dumps(record))
    done = run("label", folder, tmp_path / "rows.csv")
    assert (done.exit_code, "was changed" in done.output) == (1, True)


def test_label__understands_numbers_as_classes(tmp_path, rng):
    X = rng.normal(size=(1200, 2))
    y = np.where(X[:, 0] > 0, 12, 5) + np.where(X[:, 1] > 1, 100, 0)
    for name, C in (("old", 1e-4), ("new", 10.0)):
        save_model(LogisticRegression(C=C).fit(X[:200], y[:200]), tmp_path / name)
    np.save(tmp_path / "pool.npy", X[200:])
    succeed(
        *("compare", tmp_path / "old", tmp_path / "new", "--queries", 40, "--quiet"),
        *("--pool", tmp_path / "pool.npy", "--out", tmp_path / "c"),
        *("--target", "true digit"),
    )
    rows = pd.read_csv(tmp_path / "c" / "query_rows.csv")
    assert rows.columns[-1] == "true digit"
    rows["true digit"] = [f"{n},0" for n in y[200:][rows.pool_row]]
    rows.to_csv(tmp_path / "back.csv", index=False, sep=";")
    assert run("label", tmp_path / "c", tmp_path / "back.csv").exit_code == 0
    kept = stored_answer(tmp_path / "c")
    assert kept.labels == tuple(y[200:][list(kept.rows)].tolist())
    assert kept.unusable_labels == 0


def test_compare__rows_that_were_seen_are_not_drawn(made, tmp_path):
    folder, _ = made
    seen = pd.read_parquet(folder / "seen.parquet")
    pool = pd.read_parquet(folder / "pool.parquet").drop(columns="note")
    both = pd.concat([pool, seen.drop(columns="label")], ignore_index=True)
    both.to_parquet(tmp_path / "both.parquet", index=False)
    succeed(
        *("compare", folder / "old", folder / "new", "--queries", 60),
        *("--pool", tmp_path / "both.parquet", "--seen", folder / "seen.parquet"),
        *("--out", tmp_path / "c"),
    )
    kept = ModelComparison.from_json((tmp_path / "c" / "comparison.json").read_text())
    assert kept.n_duplicates == 300
    assert max(kept.rows) < N_POOL


def test_compare__models_of_select_and_text_files(made, tmp_path):
    folder, truth = made
    frame = pd.read_parquet(folder / "pool.parquet")
    frame = frame.assign(label=truth)
    frame[:200].drop(columns="note").to_csv(tmp_path / "labeled.csv", index=False)
    form = {"sep": ";", "decimal": ",", "encoding": "utf-8-sig"}  # of a German Excel
    frame[200:].to_csv(tmp_path / "pool.csv", index=False, **form)
    for name, C in (("old", "0.0001"), ("new", "1")):
        succeed(
            *("select", tmp_path / "labeled.csv", "--target", "label"),
            *("--model", "logistic", "--grid", f"C={C}", "--cv", 3, "--quiet"),
            *("--out", tmp_path / name),
        )
    succeed(
        *("compare", tmp_path / "old", tmp_path / "new", "--queries", 10),
        *("--pool", tmp_path / "pool.csv", "--out", tmp_path / "c"),
        *("--seen", tmp_path / "labeled.csv"),
    )
    file = tmp_path / "c" / "query_rows.csv"
    assert file.read_bytes().startswith(b"\xef\xbb\xbfpool_row;a;b;c;note;label")
    rows = pd.read_csv(file, **form)
    assert list(rows.columns) == ["pool_row", "a", "b", "c", "note", "label"]
    np.testing.assert_array_equal(rows.a, frame.a[200:].to_numpy()[rows.pool_row])
    assert rows.label.isna().all()  # those of the file are not shown


@pytest.mark.parametrize("is_old", [True, False])
def test_compare__reads_gap_words_of_either_model(tmp_path, rng, is_old):
    frame = pd.DataFrame({"x": rng.normal(size=600).round(3).astype(str)})
    frame["town"] = rng.choice(["unknown", "Ulm"], 600)
    labels = np.where(np.arange(600) % 2, "a", "b")
    for name, words in (("clean", ()), ("gaps", ("--gap", "unknown"))):
        rows = frame[["x"]].copy()
        if words:
            rows.loc[::9, "x"] = "unknown"
        rows[:200].assign(y=labels[:200]).to_csv(tmp_path / "rows.csv", index=False)
        rows[200:].to_csv(tmp_path / "pool.csv", index=False)
        succeed(
            *("select", tmp_path / "rows.csv", "--target", "y", "--quiet", "--cv", 3),
            *("--model", "logistic", "--grid", "C=1", "--out", tmp_path / name, *words),
        )
    places = [tmp_path / name for name in ("gaps", "clean")[:: 1 if is_old else -1]]
    pool = ("--pool", tmp_path / "pool.csv", "--out")
    shown = succeed("compare", *places, *pool, tmp_path / "c").output
    assert "400" in shown
    # A word that is a value for one model is no gap for both.
    frame[:200].assign(y=labels[:200]).to_csv(tmp_path / "rows.csv", index=False)
    frame[200:].to_csv(tmp_path / "pool.csv", index=False)
    succeed(
        *("select", tmp_path / "rows.csv", "--target", "y", "--quiet", "--cv", 3),
        *("--model", "logistic", "--grid", "C=1", "--out", tmp_path / "town"),
    )
    places = [tmp_path / name for name in ("gaps", "town")[:: 1 if is_old else -1]]
    refused = run("compare", *places, *pool, tmp_path / "d").output
    assert "'unknown' in the column 'town' is a value for one of OLD and NEW" in refused


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_compare__reads_the_pool_in_the_kinds_that_were_learned(tmp_path, rng, suffix):
    frame = pd.DataFrame({
        "age": rng.integers(18, 90, 900),
        "member": rng.choice(["yes", "no"], 900),
        "city": rng.choice(["Ulm", "Bonn"], 900),
        "since": pd.Series(pd.date_range("2015-01-01", periods=900)).astype(str),
    })  # fmt: skip
    frame["left"] = np.where((frame.age > 50) | (frame.city == "Ulm"), "l", "s")
    frame[:200].to_csv(tmp_path / "labeled.csv", index=False)
    pool = frame[200:].assign(note="call back")
    # Texts where the labeled table has truth values and dates, in another order.
    pool = pool[["note", *reversed(frame.columns)]]
    for name, rows in (("pool", pool), ("seen", pool[:50])):
        if suffix == "csv":
            rows.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            rows.to_parquet(tmp_path / f"{name}.parquet", index=False)
    for name, model in (("old", "logistic"), ("new", "forest")):
        grid = "C=0.0001" if model == "logistic" else "max_features=0.5"
        succeed(
            *("select", tmp_path / "labeled.csv", "--target", "left", "--quiet"),
            *("--model", model, "--grid", grid, "--cv", 3, "--out", tmp_path / name),
        )
    succeed(
        *("compare", tmp_path / "old", tmp_path / "new", "--queries", 20),
        *("--pool", tmp_path / f"pool.{suffix}", "--out", tmp_path / "c"),
        *("--target", "left", "--seen", tmp_path / f"seen.{suffix}"),
    )
    kept = ModelComparison.from_json((tmp_path / "c" / "comparison.json").read_text())
    assert kept.n_duplicates >= 50
    rows = pd.read_csv(tmp_path / "c" / "query_rows.csv")
    assert {"age", "city", "note", "left"} <= {*rows.columns}
    assert rows.left.isna().all()
    assert (rows.note == "call back").all()
    hidden = frame.left[200:].to_numpy()
    rows.assign(left=hidden[rows.pool_row]).to_csv(tmp_path / "b.csv", index=False)
    answer = run("label", tmp_path / "c", tmp_path / "b.csv")
    assert "less than the old one" in answer.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "note"], "'note' is a column of the pool"),
        (["--target", "pool_row"], "no name for a column"),
    ],
)
def test_compare__refuses_options_before_work(made, tmp_path, options, words):
    folder, _ = made
    done = run(
        *("compare", folder / "old", folder / "new", "--queries", 5, *options),
        *("--pool", folder / "pool.parquet", "--out", tmp_path / "c"),
    )
    assert done.exit_code == 1
    assert words in done.output
    assert done.output.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_compare__takes_no_place_that_holds_something(made, place, tmp_path):
    folder, _ = made
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for out, words in (
        (place[0], "holds a comparison already"),
        (tmp_path / "full", "must be an empty folder"),
    ):
        before = sorted((each.name, each.read_bytes()) for each in out.iterdir())
        done = run(
            *("compare", folder / "old", folder / "new", "--queries", 5),
            *("--pool", folder / "pool.parquet", "--out", out),
        )
        assert (done.exit_code, words in done.output) == (1, True)
        after = sorted((each.name, each.read_bytes()) for each in out.iterdir())
        assert after == before


def test_compare__models_that_never_differ_have_no_rows(made, tmp_path):
    folder, _ = made
    done = run(
        *("compare", folder / "old", folder / "old", "--queries", 5),
        *("--pool", folder / "pool.parquet", "--out", tmp_path / "c"),
    )
    assert done.exit_code == 0
    assert "differ on no row" in done.output
    assert "OLD and NEW are the same folder" in done.stderr
    assert not (tmp_path / "c" / "query_rows.csv").exists()
    rows = tmp_path / "rows.csv"
    rows.write_text("pool_row,label\n1,yes\n")
    found = run("label", tmp_path / "c", rows)
    assert (found.exit_code, "no rows to be labeled" in found.output) == (1, True)


def test_label__reads_the_rows_as_the_pool_was_read(tmp_path, rng):
    """Their file has the separator of the pool, which only `--sep` had said."""

    def write(name, n_rows):
        frame = pd.DataFrame(rng.normal(size=(n_rows, 2)).round(3), columns=["a", "b"])
        frame["label"] = np.where(frame.a + frame.b > 0, "yes", "no")
        frame.to_csv(tmp_path / name, index=False, sep=":")
        return frame["label"]

    write("l.txt", 150)
    truth = write("p.txt", 600)
    for C in (0.001, 1):
        succeed(
            "select", tmp_path / "l.txt", "--target", "label", "--sep", ":", "--model",
            "logistic", "--grid", f"C={C}", "--out", tmp_path / f"m{C}", "--quiet",
        )  # fmt: skip
    folder = tmp_path / "c"
    succeed(
        "compare", tmp_path / "m0.001", tmp_path / "m1", "--pool", tmp_path / "p.txt",
        "--sep", ":", "--queries", 20, "--out", folder,
    )  # fmt: skip
    rows = pd.read_csv(folder / "query_rows.csv", sep=":")
    rows["label"] = truth[rows["pool_row"]].to_numpy()
    rows.to_csv(tmp_path / "done.csv", index=False, sep=":")
    said = succeed("label", folder, tmp_path / "done.csv").output
    assert "percentage points less than the old one" in said


@pytest.mark.parametrize(
    ("text", "known", "label"),
    [
        ("12.0", (2, 12), 12),
        ("12,00", (2, 12), 12),
        ("1E+05", ("1E5", "x"), "1E5"),
        ("0,125", ("0.125", "0.25"), "0.125"),
        ("1000.0", (1, 1000), 1000),
        ("1,000", (1, 1000), "1,000"),  # may be 1 or a thousand
        ("1.000", ("1", "2"), "1.000"),
        ("1_000", (1, 1000), "1_000"),
        ("007", (7, 8), "007"),
        ("\u0663", (3, 4), "\u0663"),
        ("nan", (1, 2), None),
        ("inf", (1, 2), "inf"),
    ],
)
def test_as_label__takes_a_number_for_a_class_where_it_can_be_no_other(
    text, known, label
):
    assert as_label(text, known) == label


def test_compare__takes_pool_and_target_from_both_runs(made, tmp_path):
    folder, truth = made
    frame = pd.read_parquet(folder / "pool.parquet").drop(columns="note")
    frame[400:].to_csv(tmp_path / "pool.csv", index=False)
    frame[400:].drop(columns="a").to_csv(tmp_path / "less.csv", index=False)
    labeled = frame[:200].assign(outcome=truth[:200])
    labeled.to_csv(tmp_path / "labeled.csv", index=False)
    for name, C, pool in (("old", 1e-4, "pool"), ("new", 1, "pool"), ("x", 1, "less")):
        succeed(
            *("select", tmp_path / "labeled.csv", "--target", "outcome", "--quiet"),
            *("--model", "logistic", "--grid", f"C={C}", "--cv", 3),
            *("--pool", tmp_path / f"{pool}.csv", "--out", tmp_path / name),
            *(["--drop", "a"] if pool == "less" else []),
        )
    both = (tmp_path / "old", tmp_path / "new")
    succeed("compare", *both, "--queries", 5, "--out", tmp_path / "c")
    assert pd.read_csv(tmp_path / "c" / "query_rows.csv").columns[-1] == "outcome"
    alone = succeed("compare", *both, "--out", tmp_path / "pool only").stdout
    assert (
        "\nNext      the same with --queries 60 and another --out draws rows" in alone
    )
    others = ("compare", tmp_path / "x", tmp_path / "new", "--out", tmp_path / "d")
    done = run(*others)
    assert (done.exit_code, "do not come from runs with one pool" in done.output) == (
        *(2, True),
    )
    # The refusal says which of both models needs the column.
    done = run(*others, "--pool", tmp_path / "less.csv")
    needs = f"lacks the column 'a' that NEW, '{tmp_path / 'new'}', was trained on"
    assert needs in " ".join(done.output.split())


def test_compare__refuses_models_of_different_targets_first(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    for target, words in (("left", ["yes", "no"]), ("plan", ["basic", "plus"])):
        table = frame.assign(**{target: np.where(frame.a > 0, *words)})
        table.to_csv(tmp_path / f"{target}.csv", index=False)
        succeed("select", tmp_path / f"{target}.csv", "--target", target, "--quiet",
                "--model", "logistic", "--grid", "C=1", "--cv", 3,
                "--out", tmp_path / target)  # fmt: skip
    done = run("compare", tmp_path / "left", tmp_path / "plan", "--out", tmp_path / "c")
    text = " ".join(done.output.split())
    assert done.exit_code == 2
    assert "predicts 'left', and NEW" in text
    assert "Name two models of one target" in text
    assert "--pool" not in text
