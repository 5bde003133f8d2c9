"""`dsel select --queries` and `dsel label`: rows for people, and a smaller bound."""

import html
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

import dsel
from dsel.rounded_texts import in_percent
from tests.shell import run, succeed

ROWS, TRUTH = make_classification(
    2300, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=2
)
WORDS = np.where(TRUTH == 1, "yes", "no")
COLUMNS = [f"p{n}" for n in range(5)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A labeled table, and pools with a column of notes and an old target."""
    folder = tmp_path_factory.mktemp("tables")
    frame = pd.DataFrame(ROWS, columns=COLUMNS)
    frame[:300].assign(answer=WORDS[:300]).to_csv(folder / "labeled.csv", index=False)
    pool = frame[300:].reset_index(drop=True)
    pool["note"] = [f'row {n}; "quoted"' for n in range(len(pool))]
    pool["answer"] = "secret"
    pool.to_csv(folder / "pool.csv", index=False)
    pool.to_parquet(folder / "pool.parquet", index=False)
    everything = frame.assign(
        answer=np.where(np.arange(len(frame)) < 300, WORDS, ""),
        note=[f"line {n}" for n in range(len(frame))],
    )
    everything.to_csv(folder / "all.csv", index=False)
    return folder


def select(out, labeled, *more, model="sklearn.tree:DecisionTreeClassifier"):
    return run(
        *("select", labeled, "--target", "answer", "--model", model),
        *("--grid", "max_depth=2,6", "--queries", 40, "--out", out, *more),
    )


@pytest.fixture
def place(tables, tmp_path):
    pool = ("--pool", tables / "pool.parquet")
    done = select(tmp_path / "out", tables / "labeled.csv", *pool)
    assert done.exit_code == 0, done.output
    return tmp_path / "out", done.output


def filled(place, name="back.csv"):
    rows = pd.read_csv(place / "query_rows.csv")
    rows["answer"] = WORDS[300:][rows.pool_row]
    rows[::-1].to_csv(place.parent / name, index=False)
    return place.parent / name


@pytest.mark.parametrize("pool", ["pool.parquet", "pool.csv"])
def test_select__writes_rows_with_an_empty_last_column(tables, tmp_path, pool):
    done = select(tmp_path / "out", tables / "labeled.csv", "--pool", tables / pool)
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(tmp_path / "out" / "query_rows.csv")
    assert list(rows.columns) == ["pool_row", *COLUMNS, "note", "answer"]
    assert rows.answer.isna().all()
    assert len(rows) == 40
    np.testing.assert_allclose(rows[COLUMNS], ROWS[300:][rows.pool_row])
    assert rows.note.tolist() == [f'row {n}; "quoted"' for n in rows.pool_row]
    text = " ".join(done.output.split())
    assert f"whose pool_row counts the rows of {tables / pool} from 0, in their" in text
    text = " ".join(done.output.split())
    assert "with labels of 40 pool rows on which both models differ the bound" in text
    after = f"their last column, 'answer', then run: dsel label {tmp_path / 'out'}"
    assert text.endswith(after)


def test_select__hands_out_rows_with_an_empty_target(tables, tmp_path):
    done = select(tmp_path / "out", tables / "all.csv", "--id", "note")
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(tmp_path / "out" / "query_rows.csv")
    assert list(rows.columns) == ["pool_row", *COLUMNS, "note", "answer"]
    assert rows.note.tolist() == [f"line {300 + n}" for n in rows.pool_row]


def test_label__prints_both_bounds_and_keeps_the_answer(place):
    folder, _ = place
    back = filled(folder)
    done = succeed("label", folder, back)
    text = " ".join(done.output.split())
    assert "from the pool alone" in text
    assert "from the pool alone, and both hold at once" in text
    assert run("label", folder, back).output == done.output
    (folder / "query_rows.csv").write_bytes(back.read_bytes())
    assert run("label", folder).output == done.output
    short = run("label", folder, back, "--quiet").output
    assert short.count("\n") == 1
    assert "model trained on all labels" in short
    choice = dsel.select(dsel.open_results(folder))
    rows = pd.read_csv(back).set_index("pool_row")["answer"]
    printed, _, _ = str(choice.certify_with_labels(rows)).partition("\nCaveat ")
    printed = printed.replace("deploy='all_rows'", "--deploy all_rows")
    step = (
        f"Next      dsel predict {folder} NEW --out FILE --deploy all_rows predicts by "
        f"the second model, whose bound is smaller by these labels"
    )
    labeled = choice.certify_with_labels(rows)
    first, second = (labeled.certificates[n].bound for n in ("one_fold", "all_rows"))
    end = ", but not below that of the first model, which predicts without it"
    end *= second >= first
    step += f"{end}\n"
    is_smaller = labeled.queries.queried < choice.queries.pool_only
    assert done.output.startswith(f"{printed}\nCaveat ")
    assert done.output.endswith(
        f"\nNext      dsel report {folder}\n{step * is_smaller}"
    )
    pd.read_csv(back).assign(answer="no").to_csv(back, index=False)
    other = run("label", folder, back)
    assert other.exit_code == 1
    assert "a result is final" in other.output
    assert "were wrong, such as those of other rows, write --corrected" in other.output
    first = (folder / "answer.json").read_bytes()
    corrected = succeed("label", folder, back, "--corrected").output
    n_other = int((rows != "no").sum())
    note = f"other labels of {n_other} rows were passed before, and corrected"
    assert note in " ".join(corrected.split())
    # The last result counts, and the one that it replaces is kept.
    assert (folder / "answer.json").read_bytes() == first
    assert dsel.open_outcome(folder).choice.queries.n_corrected == n_other
    assert run("label", folder, back).output == corrected
    again = run("label", folder, filled(folder, "again.csv"))
    assert "a result is final" in again.output


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b"a note of mine"])
def test_label__a_damaged_correction_is_named_and_labels_before_it_do_not_count(
    place, damage
):
    folder, _ = place
    back = filled(folder)
    succeed("label", folder, back)
    pd.read_csv(back).assign(answer="no").to_csv(back, index=False)
    succeed("label", folder, back, "--corrected")
    (folder / "corrections" / ".DS_Store").write_bytes(b"of a file browser")
    assert dsel.open_outcome(folder).choice.queries.n_corrected > 0
    [file] = (folder / "corrections").glob("*.json")
    file.write_bytes(damage(file.read_bytes()))
    words = f"corrections/{file.name} in .* is damaged, or not what dsel wrote there"
    with pytest.raises(ValueError, match=words):
        dsel.open_outcome(folder)
    for arguments in (("report", folder), ("label", folder, back, "--corrected")):
        done = run(*arguments)
        assert done.exit_code == 1
        assert file.name in done.output
    file.unlink()
    assert dsel.open_outcome(folder).choice.queries.n_corrected == 0


def test_select__again_has_the_numbers_with_the_labels_that_were_stored(tables, place):
    folder, _ = place
    again = ("--pool", tables / "pool.parquet")
    before = select(folder, tables / "labeled.csv", *again).output
    assert "(it existed already and is unchanged)" in " ".join(before.split())
    succeed("label", folder, filled(folder))
    labeled = dsel.open_outcome(folder).choice
    done = select(folder, tables / "labeled.csv", *again)
    text = " ".join(done.output.split())
    assert f"are with the labels of 40 queried rows in {folder}" in text
    bound = labeled.certificates["all_rows"].bound
    assert bound < dsel.select(dsel.open_results(folder)).certificates["all_rows"].bound
    assert f"Error at most {in_percent(bound)} (95% confidence that both" in text
    assert "this result is final" in text
    # Nothing is left to be labeled.
    assert "query_rows.csv" not in text
    assert "would hardly help" not in text
    shown = json.loads(select(folder, tables / "labeled.csv", *again, "--json").stdout)
    assert (
        shown["bounds"]["all_rows"]["bound"] == labeled.certificates["all_rows"].bound
    )


@pytest.mark.parametrize("folder", ["schema", "inputs", "queries", "row_hashes"])
@pytest.mark.parametrize("has_older", [False, True])
def test_results__with_a_damaged_last_file_are_refused_by_its_name(
    place, folder, has_older
):
    results, _ = place
    [file] = (results / folder).iterdir()
    if has_older:  # it must not be read in the place of the last one
        file.with_name(f"0{file.name[1:-1]}").write_bytes(file.read_bytes())
    (results / folder / ".DS_Store").write_bytes(b"of a file browser")
    dsel.open_outcome(results)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"{folder}/{file.name} in .* is damaged"):
        dsel.open_outcome(results)


def test_label__corrects_only_what_was_stored(place):
    folder, _ = place
    done = run("label", folder, filled(folder), "--corrected")
    assert done.exit_code == 1
    assert "has no labels to correct; leave out --corrected" in done.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.assign(answer=None), "all 40 labels are missing; fill them"),
        (lambda rows: rows.assign(answer=rows.answer.str.upper()), "did you mean"),
        (lambda rows: rows.assign(answer="oui"), "none of 40 labels is one"),
        (
            lambda rows: rows[:30],
            "10 of 40 rows have none; fill them in, or pass --part",
        ),
    ],
)
def test_label__stores_no_labels_that_are_not_finished(place, change, words):
    folder, _ = place
    back = filled(folder)
    before = sorted(folder.rglob("*"))
    change(pd.read_csv(back)).to_csv(folder.parent / "bad.csv", index=False)
    done = run("label", folder, folder.parent / "bad.csv")
    assert done.exit_code == 1
    error, *commands = done.output.splitlines()
    assert all(line.startswith("Run: ") for line in commands)
    assert words in error
    assert f"column 'answer' of '{folder.parent}/bad.csv'" in done.output
    assert sorted(folder.rglob("*")) == before
    done = succeed("label", folder, back)  # labels that were paid for are not lost
    assert "this result is final" in done.output


def test_label__prints_the_command_that_goes_on(place):
    folder, _ = place
    rows = pd.read_csv(filled(folder), dtype=str)
    file = folder / "query_rows.csv"  # which is read by default

    def commands(changed):
        changed.to_csv(file, index=False)
        done = run("label", folder)
        assert done.exit_code == 1
        assert not (folder / "answer.json").exists()
        return done.stderr.splitlines()[1:]

    [line] = commands(rows.rename(columns={"answer": "Answer"}))
    assert line == f"Run: dsel label {folder} --target Answer"
    rows.loc[3, "answer"] = "dunno"
    assert commands(rows) == []  # --allow-unknown would be final
    rows.loc[3, "answer"] = " YES"
    label, rows.loc[5, "answer"] = rows.loc[5, "answer"], ""
    assert commands(rows) == []  # and so would be --partial
    said = run("label", folder).stderr
    assert "Also: column 'answer' of" in said
    assert "1 of 40 rows have none; fill them in" in said
    assert "respelled" not in said  # no such file is there
    rows.loc[5, "answer"] = label
    [line] = commands(rows)
    write, _, command = line.removeprefix("Run: ").partition(" && ")
    new = folder / "query_rows_respelled.csv"
    assert command == f"dsel label {folder} {new}"
    subprocess.run([sys.executable, *shlex.split(write)[1:]], check=True)
    succeed(*shlex.split(command)[1:])


def test_report__has_what_labels_have_proved(place):
    folder, _ = place
    labeled = run("label", folder, filled(folder)).output
    assert run("report", folder).exit_code == 0
    page = (folder / "report.html").read_text("utf-8")
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    bounds = [line for line in labeled.splitlines() if line.startswith("Error at most")]
    assert len(bounds) == 2
    assert [line for line in bounds if line not in text] == []
    assert "if each model is right on half" not in text


def test_labels__are_those_of_a_class_but_for_the_blanks_that_text_tables_lose(
    tables, tmp_path
):
    frame = pd.DataFrame(ROWS, columns=COLUMNS)
    typed = frame.assign(answer=np.where(TRUTH == 1, "\u00a0yes ", "no"))
    typed[:300].to_parquet(tmp_path / "labeled.parquet", index=False)
    typed[300:].to_parquet(tmp_path / "next.parquet", index=False)
    frame[300:].assign(answer=WORDS[300:]).to_csv(tmp_path / "next.csv", index=False)
    out, plain = tmp_path / "out", tmp_path / "plain"
    options = (
        "--target", "answer", "--pool", tables / "pool.parquet", "--loss", "recall:yes",
        "--model", "sklearn.tree:DecisionTreeClassifier", "--grid", "max_depth=2,6",
        "--out",
    )  # fmt: skip
    done = succeed("select", tmp_path / "labeled.parquet", *options, out)
    note = "a label without these blanks is taken for the class"
    assert note in " ".join(done.output.split())
    succeed("select", tables / "labeled.csv", *options, plain)
    reports = [
        json.loads(succeed("monitor", *words, "--target", "answer", "--json").stdout)
        for words in (
            (out, tmp_path / "next.csv", "--labeled", tables / "labeled.csv"),
            (out, tmp_path / "next.parquet"),
            (plain, tmp_path / "next.csv"),
        )
    ]
    found, typed_found, expected = (
        [(test["seen"], test["at_least"]) for test in each["report"]["tests"]]
        for each in reports
    )
    assert found == typed_found == expected
    assert [note in str(each["report"]["notes"]) for each in reports] == [1, 1, 0]


def test_label__takes_the_labels_of_a_class_with_blanks(tables, tmp_path):
    frame = pd.DataFrame(ROWS[:300], columns=COLUMNS)
    frame["answer"] = np.where(TRUTH[:300] == 1, " yes ", "no")
    frame.to_json(tmp_path / "l.jsonl", orient="records", lines=True)
    bounds = []
    for place, labeled in (
        (tmp_path / "blanks", tmp_path / "l.jsonl"),
        (tmp_path / "plain", tables / "labeled.csv"),
    ):
        select(place, labeled, "--pool", tables / "pool.parquet")
        done = succeed("label", place, filled(place, f"{place.name}.csv"), "--quiet")
        bounds.append(done.stdout)
        assert ("is taken for the class" in done.stderr) is (place.name == "blanks")
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_select__refuses_classes_that_differ_by_blanks_around_them(name, tmp_path):
    frame = pd.DataFrame({"x": range(9), "answer": ["a", "b", "a "] * 3})
    if name == "t.jsonl":
        frame.to_json(tmp_path / name, orient="records", lines=True)
    else:
        frame.to_parquet(tmp_path / name, index=False)
    done = select(tmp_path / "out", tmp_path / name)
    assert done.exit_code == 1
    assert "labels 'a' and 'a ' differ by blanks or case only" in done.output


def test_select__leaves_a_file_of_rows_that_is_there(place, tables):
    folder, output = place
    filled(folder).rename(folder / "query_rows.csv")
    before = (folder / "query_rows.csv").read_bytes()
    again = select(folder, tables / "labeled.csv", "--pool", tables / "pool.parquet")
    assert again.exit_code == 0
    assert "is unchanged" in " ".join(again.output.split())
    assert (folder / "query_rows.csv").read_bytes() == before
    assert "is unchanged" not in output


def test_select__needs_a_folder_for_the_rows(tables):
    done = run("select", tables / "labeled.csv", "--target", "answer", "--queries", 5)
    assert done.exit_code == 2
    assert "--out" in done.output


def test_label__says_where_nothing_is_to_be_labeled(tables, tmp_path):
    out = tmp_path / "out"
    succeed(
        *(
            "select",
            tables / "labeled.csv",
            "--target",
            "answer",
            "--model",
            "sklearn.tree:DecisionTreeClassifier",
        ),
        *("--grid", "max_depth=2", "--out", out),
    )
    (tmp_path / "rows.csv").write_text("pool_row,answer\n1,yes\n")
    found = run("label", out, tmp_path / "rows.csv")
    assert found.exit_code == 1
    assert "--queries 50" in found.output


def test_predict__names_the_bound_that_labels_have_given(place, tables):
    folder, _ = place
    options = ("predict", folder, tables / "pool.parquet", "--deploy", "all_rows")
    before = succeed(*options, "--out", folder.parent / "before.csv")
    quiet = run("label", folder, filled(folder), "--quiet").output.strip()
    after = run(*options, "--out", folder.parent / "after.csv")
    assert quiet not in before.output
    assert " ".join(quiet.split()) in " ".join(after.output.split())


def test_label_and_predict__print_one_json_object(place, tables):
    folder, _ = place
    record = json.loads(run("label", folder, filled(folder), "--json").stdout)
    assert record["kind"] == "dsel label"
    out = folder.parent / "p.csv"
    options = ("--deploy", "all_rows", "--out", out, "--json")
    made = json.loads(run("predict", folder, tables / "pool.parquet", *options).stdout)
    assert (made["kind"], made["file"]) == ("dsel predict", str(out))
    assert made["n_rows"] == len(pd.read_csv(out))
    assert made["bound"] == record["bounds"]["all_rows"]["bound"]


def german_tables(folder, encoding):
    """Write a labeled table, a pool and all in one, as a German spreadsheet would."""
    frame = pd.DataFrame(ROWS, columns=COLUMNS).map(
        lambda x: f"{x:.2f}".replace(".", ",")
    )
    frame["vom"] = [f"{n % 28 + 1:02}.03.2022" for n in range(len(frame))]
    frame["Größe"] = np.where(np.arange(len(frame)) % 2, "ja", "nein")
    answer = pd.Series(WORDS)
    form = {"sep": ";", "index": False, "encoding": encoding}
    frame[:300].assign(answer=answer[:300]).to_csv(folder / "labeled.csv", **form)
    frame[300:].to_csv(folder / "pool.csv", **form)
    unknown = answer.where(answer.index < 300, "")
    frame.assign(answer=unknown).to_csv(folder / "all.csv", **form)
    return frame[300:].reset_index(drop=True)


@pytest.mark.parametrize("pool", ["pool.csv", "all.csv"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_select__writes_rows_as_they_stand_in_the_pool(tmp_path, pool, encoding):
    rows, place = german_tables(tmp_path, encoding), tmp_path / "out"
    tables = (tmp_path / "all.csv",)
    if pool == "pool.csv":
        tables = (tmp_path / "labeled.csv", "--pool", tmp_path / "pool.csv")
    done = select(place, *tables, "--encoding", encoding, "--id", "vom,Größe")
    assert done.exit_code == 0, done.output
    content = (place / "query_rows.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf") == (encoding != "utf-8")
    found = pd.read_csv(
        place / "query_rows.csv", sep=";", dtype=str, encoding="utf-8-sig"
    )
    numbers = found.pool_row.astype(int)
    pd.testing.assert_frame_equal(
        found.drop(columns=["pool_row", "answer"]),
        rows.loc[numbers].reset_index(drop=True),
        check_dtype=False,
    )
    found["answer"] = WORDS[300:][numbers]
    form = {"sep": ";", "index": False, "encoding": encoding}
    found.to_csv(place / "query_rows.csv", **form)
    done = succeed("label", place, place / "query_rows.csv")  # knows the encoding
    assert "with these labels" in " ".join(done.output.split())


def test_select__keeps_the_encoding_and_the_separator_for_later_tables(tmp_path):
    rows = german_tables(tmp_path, "latin-1").assign(**{"a,b": "1"})
    rows.to_csv(tmp_path / "new.csv", sep=";", index=False, encoding="latin-1")
    known = pd.read_csv(tmp_path / "labeled.csv", sep=";", encoding="latin-1")
    known = known.assign(**{"a,b": 1})
    known.to_csv(tmp_path / "labeled.csv", sep=";", index=False, encoding="latin-1")
    done = select(
        tmp_path / "out", tmp_path / "labeled.csv", "--pool", tmp_path / "new.csv",
        "--encoding", "latin-1", "--sep", ";", "--id", "vom,Größe",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    results, new = tmp_path / "out", tmp_path / "new.csv"
    succeed("predict", results, new, "--out", tmp_path / "p.csv")
    assert "Größe" in (tmp_path / "p.csv").read_text("utf-8-sig")
    assert run("monitor", results, new).exit_code == 0
    pool = ("--pool", new, "--out", tmp_path / "compared", "--queries", 3)
    succeed("compare", results, results, *pool)
    # A file in UTF-8 is read as such.
    rows.to_csv(tmp_path / "utf8.csv", sep=";", index=False)
    succeed("predict", results, tmp_path / "utf8.csv", "--out", tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().startswith("vom;Größe;")
