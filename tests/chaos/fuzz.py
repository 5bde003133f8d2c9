"""Hand the command line thousands of spoilt files and options, and see what it says.

    python -m tests.chaos.fuzz --cases 5000

A case is a table or a pool of some format, spoilt in some way, and a command. It passes
if the command ends with an error of one line, or with a success that is right: a pool
then holds the values that were written, and a search all of its labeled rows. A
traceback, a hang, or a success that is wrong fails it. Case N of a seed is always the
same; with ``--only N`` it runs alone. Everything runs in this process, on threads.
"""

import argparse
import faulthandler
import json
import re
import shutil
import sys
import tempfile
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import zarr
from click.testing import CliRunner
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import dsel
from dsel.cli import main as dsel_main

FORMATS = ("npz", "npy", "csv", "svm", "parquet", "zarr", "group")
TARGET = {"csv": ["--target", "label"], "parquet": ["--target", "label"]}
MOST_SECONDS = 60
VERDICT = re.compile("^(?:Error at most|No guarantee|The bound says)", re.MULTILINE)
VALUES = [np.nan, np.inf, -np.inf, 1e39, -1e39, 1e308, 5e-324, 0.0, 2.0**53]
HEADS = [None, -1, 0, 3, 1.5, 1e300, 2**70, True, "x", "", [], [1], {}, {"a": 1}]
GRIDS = [
    *("C=2^10000", "C=0^-1", "C=-8^0.5", "C=1..0", "C=nan", "C=inf", "C=-1", "C=0"),
    *("C=", "=1", "C=1,,2", "C=a", "C=1..2:1", "C=1e400", "C=true", "C=none", "D=1"),
    *("C=1..1e300:1.0000001", "gamma=2^-3..2^3:4", "\u03b3=1", "C=0.1,1"),
]
OPTIONS = [
    *(["--delta", v] for v in ("0", "1", "-1", "nan", "1e-320", "0.2", "x")),
    *(["--cv", v] for v in ("0", "1", "-3", "2", "41", "1000000000", "x")),
    *(["--seed", v] for v in ("-1", "4294967296", "99999999999999999999")),
    *(["--target", v] for v in ("", "a", "\u00fc", "X", "y")),
    *(["--certificate", v] for v in ("cv_bound", "holdout", "cv_error", "magic")),
    *(["--deploy", v] for v in ("one_fold", "all_rows", "magic")),
]


def write(kind, place, X, y, names):
    """Write rows in some format; return the path."""
    path = Path(f"{place}.{kind}")
    if kind in ("csv", "parquet"):
        frame = pd.DataFrame(X).set_axis(names, axis=1).assign(label=y)
        save = frame.to_csv if kind == "csv" else frame.to_parquet
        save(path, **({"index": False} if kind == "csv" else {}))
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    elif kind == "npy":
        np.save(path, X)
    elif kind == "svm":
        dump_svmlight_file(X, y, str(path), zero_based=False)
    elif kind == "group":
        group = zarr.create_group(path)
        group.create_array("X", data=X)
        group.create_array("y", data=y)
    else:
        dsel.write_pool(X, path, chunk_rows=25)
    return path


def spoil_values(rng, X, y):
    """Return other rows, and whether they can be written as a pool as they are."""
    X, y = X.copy(), y.copy()
    how = rng.choice(["none", "value", "label", "few", "constant", "integers"])
    row, column = rng.integers(len(X)), rng.integers(X.shape[1])
    if how == "value":
        X[row, column] = rng.choice(VALUES)
    elif how == "label":
        y[row] = rng.choice([-1, 7, 2**40])
    elif how == "few":
        n = int(rng.choice([1, 2, 5]))
        X, y = X[:n], y[:n]
    elif how == "constant":
        X[:, column] = rng.choice([0.0, 1e30])
    elif how == "integers":
        X = X.round()
    return X, y


def spoil_bytes(rng, path):
    """Damage one file, or leave one out; return whether anything was done."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) or [path]
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    how = rng.choice(["cut", "flip", "empty", "head", "more", "text"])
    if how == "cut":
        content = content[: rng.integers(len(content) + 1)]
    elif how == "flip" and content:
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] ^= 1 << int(rng.integers(8))
    elif how == "empty":
        content = b""
    elif how == "more":
        content += bytes(rng.integers(0, 256, 20, dtype=np.uint8))
    elif how == "text":
        content = "\u00fc,\u4e2d\n\U0001f600,1\n".encode()
    elif how == "head":
        return spoil_head(rng, path)
    file.write_bytes(content)
    return True


def spoil_head(rng, path):
    """Put something else into the head of a pool or group."""
    heads = sorted(path.rglob("zarr.json"))
    if not heads:
        return False
    file = heads[rng.integers(len(heads))]
    head = json.loads(file.read_text())
    inside = head["attributes"] if rng.random() < 0.7 and head["attributes"] else head
    key = sorted(inside)[rng.integers(len(inside))]
    if rng.random() < 0.2:
        del inside[key]
    else:
        inside[key] = HEADS[rng.integers(len(HEADS))]
    file.write_text(json.dumps(head))
    return True


def invoke(arguments):
    """Run a command here; return what it printed, its exit code and what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CliRunner().invoke(dsel_main, arguments)
    error = found.exception
    if error is not None and not isinstance(error, SystemExit):
        return found, "".join(traceback.format_exception(error))
    said = [line for line in found.stderr.splitlines() if "Error:" in line]
    if found.exit_code and (len(said) != 1 or not said[0].partition("Error:")[2]):
        return found, f"no error of one line: {found.stderr!r}"
    return found, None


def run_case(number, seed, folder):
    """Run one case; return the arguments, whether it succeeded, and what is wrong."""
    rng = np.random.default_rng([seed, number])
    X = rng.normal(size=(45, 3)).round(3)
    y = (X[:, 0] > 0).astype(int)
    names = list(["abc", "aab", "\u00fc\u4e2d ", "012"][rng.integers(4)])
    X, y = spoil_values(rng, X, y)
    kind = FORMATS[rng.integers(len(FORMATS))]
    try:
        path = write(kind, folder / "rows", X, y, names)
    except (TypeError, ValueError):  # no writer of that format takes such rows
        return [], False, None
    damaged = rng.random() < 0.5 and spoil_bytes(rng, path)
    what = rng.choice(["build", "info", "select"], p=[0.4, 0.2, 0.4])
    if what == "info":
        arguments = ["pool", "info", str(path)]
    elif what == "build":
        target = TARGET.get(kind, [])
        out = str(folder / "out.zarr")
        arguments = ["pool", "build", str(path), out, *target]
    else:
        arguments = select_arguments(rng, kind, path, folder)
    found, wrong = invoke(arguments)
    is_done = wrong is None and found.exit_code == 0
    if is_done and not damaged:
        wrong = misread(what, found, X, y, folder)
    return arguments, is_done, wrong


def select_arguments(rng, kind, path, folder):
    """Return a search with the rows as its labels or as its pool."""
    beside = np.random.default_rng(1)
    X = beside.normal(size=(60, 3))
    if kind in ("npy", "zarr"):
        labeled = write("npz", folder / "labeled", X, (X[:, 0] > 0).astype(int), "abc")
        pool, target = path, []
    else:
        pool = write(rng.choice(["npy", "zarr"]), folder / "pool", X, None, "abc")
        labeled, target = path, TARGET.get(kind, [])
    model = rng.choice(["logistic", "forest"])
    grid = ["--grid", "C=1" if model == "logistic" else "n_estimators=2"]
    if rng.random() < 0.2:
        model, grid = "logistic", ["--grid", GRIDS[rng.integers(len(GRIDS))]]
    extra = OPTIONS[rng.integers(len(OPTIONS))] if rng.random() < 0.5 else []
    return [
        *("select", str(labeled), "--pool", str(pool), "--model", model, *grid),
        *("--cv", "2", *target, *extra),
    ]


def misread(what, found, X, y, folder):
    """Return what is wrong with a success of files that nobody damaged."""
    if what == "build":
        pool = dsel.open_pool(folder / "out.zarr")
        blocks = [pool.reduce(lambda X, _: [X], lambda a, b: a + b, allow_nan=True)]
        parts = [x.toarray() if sparse.issparse(x) else x for x in blocks[0]]
        held = np.concatenate(parts)
        wide = np.zeros(X.shape)
        wide[:, : held.shape[1]] = held  # svmlight has no zeros at the end of all rows
        if not np.array_equal(wide, X, equal_nan=True):
            return "the pool holds other values than the source"
    if what == "select" and VERDICT.search(found.stdout) is None:
        return f"no verdict: {found.stdout!r}"
    return None


def fuzz(cases, seed, say=lambda _: None, most_seconds=None):
    """Run cases; return how many succeeded, and what failed; one that hangs ends it."""
    n_done, failed = 0, []
    for number in cases:
        folder = Path(tempfile.mkdtemp())
        if most_seconds:
            faulthandler.dump_traceback_later(most_seconds, exit=True)
        try:
            arguments, is_done, wrong = run_case(number, seed, folder)
        finally:
            if most_seconds:
                faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(folder)
        n_done += is_done
        if wrong is not None:
            failed.append(f"case {number}: dsel {' '.join(arguments)}\n{wrong}")
            say(failed[-1])
    return n_done, failed


def main():
    parser = argparse.ArgumentParser(description="Spoil files for the command line.")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    cases = range(given.cases) if given.only is None else [given.only]
    say = partial(print, flush=True)
    n_done, failed = fuzz(cases, given.seed, say, most_seconds=MOST_SECONDS)
    say(f"{len(cases)} cases: {n_done} succeeded, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
