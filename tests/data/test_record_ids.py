"""Ids that tell records apart whose features are equal."""

import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.data.record_ids import RecordIds
from tests.shell import run, succeed


@pytest.mark.parametrize(
    ("known", "asked", "may_be"),
    [
        (["007", "C1"], ["7", "8", " c1 ", None], [True, False, True, True]),
        ([7, 12], [7.0, 1e15, np.nan], [True, False, True]),
        (["a", None], ["b"], [True]),  # the row without an id may be any record
    ],
)
def test_ids__are_of_one_record_if_they_may_be(known, asked, may_be):
    ids = RecordIds.of(pd.DataFrame({"id": known}))
    assert ids.may_have(pd.DataFrame({"id": asked})).tolist() == may_be


def test_ids__of_several_columns_are_compared_together():
    ids = RecordIds.of(pd.DataFrame({"site": ["a", "b"], "nr": [1, 2]}))
    asked = pd.DataFrame({"nr": [1, 1], "site": ["a", "b"]})
    assert ids.may_have(asked).tolist() == [True, False]


def categories(n_rows, first_id):
    """Return rows of twelve different ones, which are equal by chance."""
    rng = np.random.default_rng(first_id)
    town, visits = (
        rng.choice(["Ulm", "Kiel", "Bonn"], n_rows),
        rng.integers(4, size=n_rows),
    )
    is_yes = rng.random(n_rows) < 0.05 + 0.8 * ((town == "Ulm") & (visits > 1))
    return pd.DataFrame(
        {
            "id": first_id + np.arange(n_rows),
            "town": town,
            "visits": visits,
            "label": np.where(is_yes, "yes", "no"),
        }
    )


def test_select__takes_numbers_of_rows_in_each_file_for_no_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labeled = categories(300, 1).assign(age=np.arange(300) % 50)
    pool = categories(900, 2).assign(age=np.arange(900) % 47)
    pool["id"] = labeled["id"][:200].tolist() + [*range(5_000, 5_700)]
    same = labeled.copy()
    same.loc[3:150, "visits"] = 3  # newer values of the same records
    same = pd.concat([same[:200], pool[200:]])
    labeled.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "label", "--model", "logistic", "--grid",
             "C=1", "--id", "id", "--pool"]  # fmt: skip
    for ending in ("csv", "parquet"):
        for frame, name in ((pool, "u"), (same, "same")):
            frame = frame.drop(columns="label")
            path = f"{name}.{ending}"
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(
                path
            )
        done = run(*words, f"u.{ending}")
        assert done.exit_code == 1
        assert "200 pool rows have ids of labeled rows, but " in done.stderr
        assert "looks like the number of a row in each file" in done.stderr
        [line] = done.stderr.splitlines()[1:]
        assert line.endswith(f" --pool u.{ending} --drop id")
        assert "--id" not in line
        said = succeed(*words, f"same.{ending}").stderr
        assert "200 pool rows have ids of labeled rows: left out" in said
    succeed(*shlex.split(line)[2:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("categories")
    categories(300, 1_000).to_csv(folder / "labeled.csv", index=False)
    pool = categories(2_000, 5_000).drop(columns="label")
    pool.to_csv(folder / "pool.csv", index=False)
    pool.assign(id=pool["id"].astype(float)).to_parquet(folder / "pool.parquet")
    pool.loc[7, "id"] = 1_003
    pool.to_csv(folder / "known.csv", index=False)
    pool.to_parquet(folder / "known.parquet")
    pool.assign(id=1_003).to_csv(folder / "one.csv", index=False)
    pool["id"] = pool["id"].astype("Int64")
    pool.loc[8, "id"] = None
    pool.to_csv(folder / "gap.csv", index=False)
    return folder


def select(folder, pool, *words):
    return (
        "select", folder / "labeled.csv", "--target", "label", "--id", "id",
        "--pool", folder / pool, "--model", "logistic", "--grid", "C=1", *words,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pool", "n_rows"),
    [
        ("pool.csv", 2_000),
        ("pool.parquet", 2_000),
        ("known.csv", 1_999),
        ("known.parquet", 1_999),
        ("one.csv", None),  # more rows than the one labeled record can have
        ("gap.csv", None),  # a row without an id may be of any record
    ],
)
def test_select__counts_equal_rows_of_other_ids(folder, pool, n_rows):
    text = " ".join(succeed(*select(folder, pool)).output.split())
    assert ("% (95% confidence that both bounds hold)" in text) == bool(n_rows)
    counted = f"{n_rows or 0:,} pool rows equal labeled rows: they are counted as rec"
    assert (counted in text) == bool(n_rows)
    left_out = "1 pool row has the id of labeled rows: left out"
    assert (left_out in text) == (n_rows == 1_999)


def test_compare__counts_equal_rows_of_other_ids(folder, tmp_path):
    for name, values in (("old", "C=1"), ("new", "C=0.001")):
        words = select(folder, "pool.csv", "--out", tmp_path / name, "--quiet")
        succeed(*(values if word == "C=1" else word for word in words))
    compare = ("compare", tmp_path / "old", tmp_path / "new", "--out", tmp_path / "c")
    text = succeed(*compare).output
    assert "equal rows on which a model was trained" not in text
    text = succeed(*compare[:-1], tmp_path / "d", "--pool", folder / "known.csv").output
    assert "1 pool row has the id of labeled rows: left out" in text
    text = succeed(*compare[:-1], tmp_path / "e", "--pool", folder / "gap.csv").output
    assert "2,000 pool rows equal rows on which a model was trained" in text


def test_monitor__counts_equal_rows_of_other_ids(folder, tmp_path):
    succeed(*select(folder, "pool.csv", "--out", tmp_path / "results", "--quiet"))
    new = categories(500, 20_000)
    new.loc[:99, "id"] = 1_000 + np.arange(100)
    new.to_csv(tmp_path / "new.csv", index=False)
    asked = ("monitor", tmp_path / "results", tmp_path / "new.csv", "--target", "label")
    text = succeed(*asked).stdout
    assert text.count("\nKept ") == 4
    assert "100 of 500 new rows equal labeled rows and may be the same records" in text
    new.drop(columns="id").to_csv(tmp_path / "new.csv", index=False)
    assert run(*asked).exit_code == 1


@pytest.mark.parametrize("certificate", ["nested", "cv_bound", "best_fold"])
def test_declaration__lets_equal_rows_count_in_every_bound(certificate):
    rows = pd.get_dummies(categories(2_300, 1)[["town", "visits"]]).to_numpy(float)
    y, made = categories(2_300, 1)["label"][:300], []
    for other_records in (True, False):
        pool = dsel.open_pool(rows[300:], other_records=other_records)
        outcome = dsel.plan_search(
            LogisticRegression(), {"C": [1.0]}, rows[:300], y, pool, random_state=0,
            certificate=certificate,
        ).run(n_jobs=1)  # fmt: skip
        made.append(list(outcome.certificates.values())[-1])
        n_allowed = outcome.results.equal_rows
        assert int(n_allowed) == (0 if other_records else 2_000)
        assert n_allowed.long_name.endswith("; 0 if other records were declared")
    declared, plain = made
    assert declared.certified
    assert declared.bound < 0.3
    assert plain.says_nothing
