"""Real tables: README's lines with the names of the files changed.

Each ends in a certificate, or in one line before any fit. Those that no package brings
are read from the folder that DSEL_DATA names, where there is one.
"""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from sklearn import datasets
from sklearn.svm import SVC

import dsel
from dsel.cli import main as dsel_main
from tests.tables import NUMERIC, write

pytestmark = pytest.mark.contract
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
IN_PYTHON = re.search(r"```python\n(search = .*?)```", README, re.DOTALL)[1]
SECTION = re.search(r"## From a shell\n(.*?)\n## ", README, re.DOTALL)[1]
IN_A_SHELL = "".join(re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL))
FOREST = "forest --grid n_estimators=5,10"
DATA = Path(os.environ.get("DSEL_DATA", "nowhere"))


# Tables, with their labels in the column `label`


def own(name):
    """Return one of scikit-learn's."""
    found = getattr(datasets, f"load_{name}")()
    y = found.target_names[found.target] if "target_names" in found else found.target
    return pd.DataFrame(found.data, columns=found.feature_names).assign(label=y)


def with_categories(name):
    frame = own(name)
    return frame.assign(size=pd.qcut(frame.iloc[:, 0], 3, labels=["a", "b", "c"]))


def real(name):
    """Return one of DSEL_DATA, with texts for its categories."""
    held = np.load(DATA / f"{name}.npz")
    frame = pd.DataFrame(held["X"], columns=list(map(str, held["feature_names"])))
    for text in held.get("category_values", ()):
        column, _, values = str(text).partition("=")
        frame[column] = frame[column].map(dict(enumerate(values.split("|"))))
    return frame.assign(label=held["classes"][held["y"]]).sample(6000, random_state=0)


def documents(name):
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return pd.DataFrame(map(json.loads, lines))[["text", "label"]]


# Files of them, or frames, and README's lines


def in_a_shell(changed):
    """Return what README's first line prints, or the first line that fails.

    Forests have fewer trees.
    """
    lines, said = IN_A_SHELL, []
    for written, other in {**changed, "forest": FOREST}.items():
        lines = re.sub(rf"\b{re.escape(written)}", other, lines)
    for line in lines.splitlines():
        found = CliRunner().invoke(dsel_main, line.split()[1:])
        said.append(found.output)
        if found.exit_code:
            assert isinstance(found.exception, SystemExit), found.exception
            assert found.output.count("Error") == 1, found.output
            assert not Path("results").exists()  # no run has begun
            return found.output
    assert len(said) == 3
    return said[0]


def in_files(labeled, pool, kind="csv"):
    """Run README's lines on files of some kind."""
    y, name = labeled.pop("label"), "labeled.csv"
    if kind in NUMERIC:
        y, name = y.astype("category").cat.codes, "labeled.csv --target label"
    of_labeled = {"folder": "parquet"}.get(kind, kind)
    of_pool = {"group": "zarr"}.get(kind, kind)
    rows = str(write(of_pool, "unlabeled", pool))
    changed = {name: str(write(of_labeled, "labeled", labeled, y))}
    return in_a_shell(changed | {"unlabeled.csv": rows, "new.csv": rows})


def in_memory(labeled, pool, of):
    y = labeled.pop("label").to_numpy()
    known = {"dsel": dsel, "SVC": SVC, "X": of(labeled), "y": y, "pool": of(pool)}
    exec(IN_PYTHON, known)
    return str(known["search"].choice_)


BOUND = "Error at most "
TABLES = {
    "digits, CSV": (own, "digits", {}, BOUND),
    "digits, svmlight": (own, "digits", {"kind": "svm"}, BOUND),
    "iris, gzipped CSV": (own, "iris", {"kind": "csv.gz"}, BOUND),
    "iris, pandas": (own, "iris", {"of": pd.DataFrame}, BOUND),
    "wine, TSV": (own, "wine", {"kind": "tsv"}, BOUND),
    "wine, folder": (own, "wine", {"kind": "folder"}, BOUND),
    "wine, polars": (own, "wine", {"of": pl.from_pandas}, BOUND),
    "cancer, zarr": (own, "breast_cancer", {"kind": "group"}, BOUND),
    "cancer, categories": (
        with_categories, "breast_cancer", {"kind": "parquet"}, BOUND,
    ),
    "diabetes, CSV": (own, "diabetes", {}, "148 different whole numbers"),
    "adult, CSV": (real, "adult", {}, BOUND),
    "letter, CSV": (real, "letter", {}, BOUND),
    "magic, folder": (real, "magic", {"kind": "folder"}, BOUND),
    "news, Parquet": (
        documents, "newsgroups5", {"kind": "parquet"}, "column 'text' holds 300 dif",
    ),
}  # fmt: skip
"""Who reads it, its name, how README's lines get it, and their end."""


@pytest.mark.parametrize("name", TABLES)
def test_readme__does_with_a_table(name, tmp_path, monkeypatch):
    read, source, given, words = TABLES[name]
    if read in (real, documents) and not list(DATA.glob(f"{source}.*")):
        pytest.skip("DSEL_DATA names no folder that has it")
    frame = read(source).sample(frac=1, random_state=0)
    n_labeled = min(300, len(frame) // 2)
    monkeypatch.chdir(tmp_path)
    rows = frame[:n_labeled].copy(), frame[n_labeled:].drop(columns="label")
    assert words in (in_memory if "of" in given else in_files)(*rows, **given)
