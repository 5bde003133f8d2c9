"""Texts about tables name arguments in Python, and options in a shell."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dsel
from dsel.data import make_encoder, open_pool, read_table, write_pool
from tests.shell import run

ROWS = range(1, 61)
FILES = {
    "colons.csv": ["a:b:label", *(f"{n}:{n % 7}:x" for n in ROWS)],
    "ids.csv": ["id,a,label", *(f"{n},{n % 7}.5,{'xy'[n % 2]}" for n in ROWS)],
    "gaps.csv": [
        "a,v,label",
        *(f"{-999 if n % 9 == 0 else n % 7},${n},{'xy'[n % 2]}" for n in ROWS),
    ],
    "dates.csv": [
        "a,d,label",
        *(f"{n % 7},{1 + n % 9:02}/{1 + n % 12:02}/2024,{'xy'[n % 2]}" for n in ROWS),
    ],
}


@pytest.fixture
def folder(tmp_path):
    for name, lines in FILES.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("name", "advised"), [
    ("ids.csv", {"ids": ["id"]}),
    ("ids.csv", {"drop": ["id"]}),
    ("gaps.csv", {"gaps": ["-999"]}),
    ("gaps.csv", {"number": ["v"]}),
    ("dates.csv", {"day_first": True}),
    ("dates.csv", {"day_first": False}),
])  # fmt: skip
def test_read_table__advises_arguments_that_it_takes(folder, name, advised):
    printed = repr(read_table(folder / name, target="label"))
    [(argument, value)] = advised.items()
    code = f"{argument}={value!r}"
    assert code in printed
    assert "--" not in printed
    changed = repr(read_table(folder / name, target="label", **advised))
    assert code not in changed


def test_read_table__names_arguments_in_errors(folder):
    with pytest.raises(ValueError, match=re.escape("write separator=':' if")) as error:
        read_table(folder / "colons.csv", target="label")
    assert "--" not in str(error.value)
    table = read_table(folder / "colons.csv", target="label", separator=":")
    assert table.columns == ("a", "b")
    with pytest.raises(ValueError, match="`drop` names 'q'"):
        read_table(folder / "ids.csv", target="label", drop=["q"])


@pytest.mark.parametrize("read", [
    open_pool,
    lambda path: write_pool(path, path.with_suffix(".zarr")),
    lambda path: dsel.plan_search(
        LogisticRegression(), {"C": [1]}, np.eye(9), np.arange(9) % 2, path
    ),
])  # fmt: skip
def test_functions_of_pools__say_which_function_takes_the_arguments(folder, read):
    with pytest.raises(ValueError, match=re.escape("separator=':'")) as error:
        read(folder / "colons.csv")
    assert "`dsel.data.read_table`, whose `X` may be the pool" in str(error.value)
    assert "--" not in str(error.value)


def test_command__names_options(folder):
    done = run("select", folder / "colons.csv", "--target", "label", "--plan")
    assert "--sep" in done.output
    assert "separator=" not in done.output


def test_plan_search__takes_a_pool_whose_column_has_no_value():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "plan": rng.choice(["x", "y"], 200)})
    y = (X.a > 0).to_numpy()
    model = make_pipeline(make_encoder(X), LogisticRegression())
    pool = X.iloc[:50].assign(a=rng.normal(size=50), plan=np.nan)
    assert pool.plan.dtype == float  # as a library reads such a column
    grid = {"logisticregression__C": [1.0]}
    outcome = dsel.plan_search(model, grid, X, y, pool, random_state=0).run(n_jobs=1)
    assert outcome.certificates["all_rows"].n_unlabeled == 50
    with pytest.raises(TypeError, match="`X` has no value there, so leave the column"):
        dsel.plan_search(
            model, grid, X.assign(plan=np.nan), y, pool.assign(plan="x"),
            random_state=0,
        )  # fmt: skip
