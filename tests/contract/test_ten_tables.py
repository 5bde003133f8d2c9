"""Real tables: README's lines with the names of the files changed.

    python -m tests.contract.test_ten_tables

Each ends in a certificate, or in one line before any fit. Those that no package brings
are read from the folder that DSEL_DATA names, where there is one.
"""

import gzip
import json
import os
import re
import tempfile
import time
from contextlib import chdir, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import click
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from click.testing import CliRunner
from sklearn import datasets
from sklearn.svm import SVC

import dsel
from dsel.cli import main as dsel_main

pytestmark = pytest.mark.contract
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
IN_PYTHON = re.search(r"```python\n(search = .*?)```", README, re.DOTALL)[1]
IN_A_SHELL = re.search(r"```sh\n(dsel pool build .*?)```", README, re.DOTALL)[1]
TARGET, FOREST = "--target label", "forest --grid n_estimators=5,10"
DATA = Path(os.environ.get("DSEL_DATA", "nowhere"))


# Tables, with their labels in the column `label`


def own(name):
    """Return one of scikit-learn's."""
    found = getattr(datasets, f"load_{name}")()
    y = found.target_names[found.target] if "target_names" in found else found.target
    return pd.DataFrame(found.data, columns=found.feature_names).assign(label=y)


def with_categories(name):
    frame = own(name)
    size = pd.qcut(frame.iloc[:, 0], 3, labels=["small", "middle", "large"])
    return frame.assign(size=size)


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
    """Return what README's second line prints, or the first one that fails.

    Where there is a pool already, the first is left out. Forests have fewer trees.
    """
    lines = IN_A_SHELL
    for written, other in {**changed, "forest": FOREST}.items():
        lines = re.sub(rf"\b{re.escape(written)}", other, lines)
    build, *others = [line.split()[1:] for line in lines.splitlines()]
    said = []
    for words in others if Path(build[-1]).exists() else [build, *others]:
        found = CliRunner().invoke(dsel_main, words)
        said.append(found.output)
        if found.exit_code:
            assert isinstance(found.exception, SystemExit), found.exception
            assert found.output.count("\n") == 1, found.output
            assert not Path("results").exists()  # no run has begun
            return found.output
    return said[-2]


def csv(labeled, pool, ending="csv", target="pool.zarr"):
    options = {"index": False, "sep": "\t" if "tsv" in ending else ","}
    labeled.to_csv(f"labeled.{ending}", **options)
    pool.to_csv(f"unlabeled.{ending}", **options)
    names = {f"{name}.csv": f"{name}.{ending}" for name in ("labeled", "unlabeled")}
    return in_a_shell({**names, "pool.zarr": target})


def parquet(labeled, pool):
    labeled.to_parquet("labeled.parquet")
    pool.to_parquet("pool.parquet")
    return in_a_shell({"labeled.csv": "labeled.parquet", "pool.zarr": "pool.parquet"})


def folder_of_parquet(labeled, pool):
    labeled.to_parquet("labeled.parquet", index=False)
    Path("pool").mkdir()
    for part in range(3):
        pool[part::3].to_parquet(f"pool/{part}.parquet", index=False)
    return in_a_shell({"labeled.csv": "labeled.parquet", "pool.zarr": "pool"})


def svmlight(labeled, pool):
    y = labeled.pop("label").astype("category").cat.codes
    datasets.dump_svmlight_file(labeled, y, "labeled.svm")
    datasets.dump_svmlight_file(pool, np.zeros(len(pool)), "pool.svm")
    return in_a_shell({f"labeled.csv {TARGET}": "labeled.svm", "pool.zarr": "pool.svm"})


def zarr_arrays(labeled, pool):
    group = zarr.create_group("labeled.zarr")
    y = labeled.pop("label").astype("category").cat.codes
    group.create_array("y", data=y.to_numpy())
    group.create_array("X", data=labeled.to_numpy())
    dsel.write_pool(pool.to_numpy(), "pool.zarr")
    return in_a_shell({f"labeled.csv {TARGET}": "labeled.zarr"})


def frames(labeled, pool, of=lambda rows: rows):
    y = labeled.pop("label").to_numpy()
    known = {"dsel": dsel, "SVC": SVC, "X": of(labeled), "y": y, "pool": of(pool)}
    with redirect_stdout(StringIO()) as said:
        exec(IN_PYTHON, known)
    return said.getvalue()


BOUND = "Error at most "
TABLES = {
    "digits, CSV": (own, "digits", csv, BOUND),
    "digits, svmlight": (own, "digits", svmlight, BOUND),
    "iris, gzipped CSV": (own, "iris", partial(csv, ending="csv.gz"), BOUND),
    "iris, pandas": (own, "iris", frames, BOUND),
    "wine, TSV": (own, "wine", partial(csv, ending="tsv"), BOUND),
    "wine, folder": (own, "wine", folder_of_parquet, BOUND),
    "wine, polars": (own, "wine", partial(frames, of=pl.from_pandas), BOUND),
    "cancer, zarr": (own, "breast_cancer", zarr_arrays, BOUND),
    "cancer, categories": (with_categories, "breast_cancer", parquet, BOUND),
    "diabetes, CSV": (own, "diabetes", csv, "different labels in 221 rows"),
    "adult, CSV": (real, "adult", partial(csv, target="pool.parquet"), BOUND),
    "adult, to zarr": (real, "adult", csv, "a path that ends in .parquet"),
    "letter, CSV": (real, "letter", csv, BOUND),
    "magic, folder": (real, "magic", folder_of_parquet, BOUND),
    "news, Parquet": (documents, "newsgroups5", parquet, "column 'text' holds 300 dif"),
}
"""Who reads it, its name, who writes it and runs README's lines, and their end."""


def ended(name):
    """Return rows, columns, and what README's lines say of a table."""
    read, source, run, _ = TABLES[name]
    frame = read(source).sample(frac=1, random_state=0)
    n_labeled = min(300, len(frame) // 2)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        said = run(frame[:n_labeled], frame[n_labeled:].drop(columns="label"))
    return frame.shape, said


@pytest.mark.parametrize("name", TABLES)
def test_readme__does_with_a_table(name):
    read, source, _, words = TABLES[name]
    if read in (real, documents) and not list(DATA.glob(f"{source}.*")):
        pytest.skip("DSEL_DATA names no folder that has it")
    assert words in ended(name)[1]


def main():
    for name, (read, source, _, words) in TABLES.items():
        if read in (real, documents) and not list(DATA.glob(f"{source}.*")):
            click.echo(f"{name:20} is not there; DSEL_DATA names its folder")
            continue
        began = time.perf_counter()
        (n_rows, n_columns), said = ended(name)
        seconds = time.perf_counter() - began
        line = said.splitlines()[said.count("\n") > 1]
        what = "as it should" if words in said else "WRONG"
        click.echo(
            f"{name:20} {n_rows:6,} x {n_columns:<4} {seconds:5.1f} s {what}: {line}"
        )


if __name__ == "__main__":
    main()
