import shlex
from functools import partial

import numpy as np
import pandas as pd
import pytest
import zarr

from tests.shell import run as run_command

run = partial(run_command, "pool")


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(250, 2)), columns=["len", "width"])
    frame.assign(label="x").to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_build__writes_a_pool_that_info_describes(table, tmp_path):
    asked = ("build", table, tmp_path / "p.zarr", "--target=label")
    built, shown = run(*asked), run("info", tmp_path / "p.zarr")
    assert built.exit_code == 0
    assert shown.stdout == built.stdout
    about = f"{tmp_path / 'p.zarr'}: 250 rows x 2 columns, float64, 1 chunk, 3.91 kiB"
    assert shown.stdout.startswith(f"{about}\n")
    assert "columns: len, width\n" in shown.stdout
    quiet = run(*asked[:2], tmp_path / "q.zarr", "--target=label", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


@pytest.mark.cluster
def test_build__writes_on_workers(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(2e5).reshape(-1, 2))
    files = tmp_path / "x.npy", tmp_path / "p.zarr"
    result = run("build", *files, "--chunk-rows=9000", "--workers=2")
    assert "12 chunks" in result.stdout


def test_build__leaves_out_an_index_that_pandas_saved(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(9, 2)), columns=["a", "b"])
    frame.index = 2 * frame.index
    frame.to_parquet(tmp_path / "t.parquet")
    result = run("build", tmp_path / "t.parquet", tmp_path / "p.zarr")
    assert "columns: a, b\n" in result.stdout
    assert (zarr.open_array(tmp_path / "p.zarr")[:] == frame.to_numpy()).all()


def test_build__like_a_labeled_table_says_how_to_name_the_labels(table, tmp_path):
    pd.read_csv(table).drop(columns="label").to_csv(tmp_path / "new.csv", index=False)
    asked = ("build", tmp_path / "new.csv", tmp_path / "p.zarr", "--like", table)
    refused = run(*asked)
    assert refused.exit_code == 1
    line, *commands = refused.stderr.splitlines()
    assert "lacks the column 'label'" in line
    written = shlex.join(map(str, ("dsel", "pool", *asked)))
    assert commands == [
        f"Run: {written} --target label",
        "('label' has the labels)",
        f"Or: {written} --drop label",
        "(used by no model: 'label')",
    ]
    assert line.endswith("If 'label' holds the labels, write --target label.")
    assert run(*asked, "--target", "label").exit_code == 0


def test_build__like_a_labeled_table_leaves_out_what_is_dropped(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(30, 2)).round(3), columns=["a", "b"])
    frame.assign(note="x y", label="u").to_csv(tmp_path / "t.csv", index=False)
    frame.assign(note="z", seen="later").to_csv(tmp_path / "new.csv", index=False)
    asked = ("build", tmp_path / "new.csv", tmp_path / "p.zarr")
    asked += ("--like", tmp_path / "t.csv", "--target", "label")
    refused = run(*asked, "--drop", "nota")
    assert refused.exit_code == 1
    assert "--drop names 'nota', which is no column" in refused.stderr
    assert not (tmp_path / "p.zarr").exists()
    built = run(*asked, "--drop", "note,seen")
    assert built.exit_code == 0, built.output
    assert "columns: a, b\n" in built.stdout


def test_build__says_which_columns_stay_text_and_what_they_look_like(tmp_path):
    lines = [f"{n}.50,CHF {n},{n % 9 + 1}/{n % 7 + 1}/2023,Ulm\n" for n in range(30)]
    (tmp_path / "t.csv").write_text("price,amount,day,town\n" + "".join(lines))
    built = run("build", tmp_path / "t.csv", tmp_path / "p.parquet")
    assert built.exit_code == 0, built.output
    said = " ".join(built.stderr.split())
    assert "'price' stays text, because not every value would come back" in said
    assert "'amount' is read as text: all of its values are numbers" in said
    assert "'day' holds dates, and is read as text" in said
    assert "town" not in said
    labeled = "price,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(30))
    (tmp_path / "l.csv").write_text(labeled)
    (tmp_path / "u.csv").write_text("price\n1.50\n2.5\n")
    like = ("--like", tmp_path / "l.csv", "--target", "label")
    built = run("build", tmp_path / "u.csv", tmp_path / "u.parquet", *like)
    assert (built.exit_code, built.stderr) == (0, "")


def test_build__of_numbers_is_no_pool_for_words_of_truth(tmp_path):
    (tmp_path / "u.csv").write_text(
        "ok,x\n" + "".join(f"{n % 2},{n}\n" for n in range(9))
    )
    rows = [f"{('yes', 'no')[n % 2]},{n},{'ab'[n // 30]}\n" for n in range(60)]
    (tmp_path / "l.csv").write_text("ok,x,label\n" + "".join(rows))
    assert run("build", tmp_path / "u.csv", tmp_path / "u.parquet").exit_code == 0
    found = run_command("select", tmp_path / "l.csv", "--target", "label", "--pool",
                        tmp_path / "u.parquet")  # fmt: skip
    assert found.exit_code == 1
    assert "'ok' holds 'yes' and 'no' in the labeled table and numbers" in found.output


def test_build__like_a_labeled_table_says_what_it_leaves_out_or_keeps_as_text(tmp_path):
    """These are the notes of `dsel select` on both tables."""
    labeled, pool = tmp_path / "l.csv", tmp_path / "p.csv"
    rows = "".join(f"{n},${n}.5,{'yn'[n % 2]}\n" for n in range(40))
    labeled.write_text(f"x,paid,label\n{rows}")
    pool.write_text("x,paid,site\n1,$7.5,Ulm\n2,$2.5,Bonn\n")
    like = ("--like", labeled, "--target", "label")
    built = run("build", pool, tmp_path / "p.parquet", *like)
    assert built.exit_code == 0, built.output
    said = " ".join(built.stderr.split())
    assert "column 'paid' is read as text" in said
    assert "--number paid reads it as numbers" in said
    assert "column 'site' of the pool, which is not in the labeled table" in said


def test_pool__a_forgotten_command_is_guessed_by_what_follows(table, tmp_path):
    found = run(table, tmp_path / "p.zarr")
    assert found.exit_code == 2
    end = f"did you mean 'build {table}'?"
    assert " ".join(found.stderr.split()).endswith(end)
    assert "did you mean 'info " in " ".join(run(table).stderr.split())
    assert "did you mean 'build'?" in run("biuld", table, "p.zarr").stderr


def test_info__names_the_command_that_makes_a_pool_of_a_table(tmp_path):
    (tmp_path / "run").mkdir()
    text = " ".join(run("info", tmp_path / "run").stderr.split())
    assert text.endswith("Convert tables with `dsel pool build`.")
