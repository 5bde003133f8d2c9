"""Hand the command line thousands of odd files and options, and see what it says.

    python -m tests.chaos.fuzz FIRST LAST [SEED]

A case is a command, files of some format, odd or spoilt in some way, and options. It
passes if the command ends with an error of one line, or with a success that is right: a
pool then holds the values that were written, a search has read all rows, and nothing
that cannot be done was asked for. A traceback, a hang or a wrong success fails it. Case
N of a seed is always the same. Everything runs in this process, on threads.
"""

import json
import logging.handlers
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from contextlib import chdir
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner
from scipy import sparse

import dsel
from dsel.cli import main as dsel_main
from dsel.option_values import CERTIFICATES
from tests.tables import NUMERIC, TABLES, write

FEW, GRID = ["--model", "logistic", "--cv", "2"], ["--grid", "C=1"]
MOST_SECONDS = 60
VERDICT = re.compile("^(?:Error at most|No guarantee|The bound says)", re.MULTILINE)
ROWS = re.compile(r"^  labeled rows   ([\d,]+) x (\d+), ", re.MULTILINE)
VALUES = [np.nan, np.inf, -np.inf, 1e39, -1e39, 1e308, 5e-324, 0.0, 2.0**53]
HEADS = [None, -1, 0, 3, 1.5, 1e300, 2**70, True, "x", "", [], [1], {}, {"a": 1}]
NAMES = ["abc", "aab", "\u00f6\u4e2d\u00a0", "012", ["b", "", "nan"], ["x y", ",", "'"]]
NUMBERS = ["0", "-1", "nan", "inf", "1e400", "x", "", "\u0663", "0x1", "1_0"]
COUNTS = ["0", "-1", "1.5", "9" * 30, "x", "", "2,", "1e2"]
ODD = ["", " ", "\u00fc", "-", "--", "/", "a\nb", "x" * 300, "/dev/null", "*"]
# What each option takes, and what it must not take.
OPTIONS = {
    "select": {
        "--grid": (
            ["C=0.1,1", "C=2^-3..2^3:4", "C=1e-300"],
            ["C=2^10000", "C=0^-1", "C=-8^0.5", "C=1..0", "C=", "=1", "C=1..2:1"]
            + ["C=nan", "C=-1", "C=a", "C=1,,2", "D=1", "C=1..1e300:1.0000001", *ODD],
        ),
        "--model": (["logistic"], ["magic", "a:b", "sklearn.svm:SVR", "os:sep", *ODD]),
        "--certificate": ([*CERTIFICATES], ["x", ""]),
        "--deploy": (["one_fold"], ["magic", ""]),
        "--cv": (["2", "3"], ["1", "46", "1000000000", *COUNTS]),
        "--delta": (["0.2", "1e-320"], ["1", "1.0", *NUMBERS]),
        "--seed": (["0", "7", "4294967295"], ["-1", "1.5", "x", ""]),
        "--target": ([], ["other", *ODD]),
        "--pool": ([], ["nowhere", "http://[", "s4://b/p", "file:///nowhere", *ODD]),
        "--out": (["OUT"], ["FILE", "FULL", "FILE/under", "s4://a/b"]),
        "--scheduler": ([], ["nowhere.yaml", "FILE", "tcp://", "tcp://a:b", *ODD[:5]]),
        "--workers": ([], ["0", "-1", "x", "1.5"]),
        "--quiet": ([None], []),
        "--magic": ([], [None, "1"]),
    },
    "pool build": {
        "--target": ([], ["other", *ODD]),
        "--dtype": (["float64", "<f8", "int8"], ["U3", "O", "complex", "x", *ODD]),
        "--chunk-rows": (["1", "7", "100000", "9" * 15], ["1e3", *COUNTS[:3]]),
        "--workers": ([], ["0", "x"]),
        "--quiet": ([None], []),
    },
    "plan-bound": {
        "--candidates": (["1", "1000000"], COUNTS[:3]),
        "--delta": (["0.2", "1e-300"], NUMBERS),
        "--error": (["0.3", "1e-9", "0.999"], NUMBERS),
        "--disagreement": (["0.3", "1e-9"], NUMBERS),
        "--folds": (["2", "2,3", "1000"], ["1", "0,2", "2,x", "", "-3", "2.5"]),
        "--wanted": (["0.3", "0.05", "1e-9"], ["x", "nan", "-1", ""]),
    },
    "pool info": {},
    "report": {"--out": (["page.html"], ["FULL", "FILE/under"])},
}


# Tables


def draw_table(rng, what=None):
    """Return numbers and labels, and what of them no search can use, if anything."""
    X = rng.normal(size=(45, 3)).round(3)
    frame = pd.DataFrame(X).set_axis(list(NAMES[rng.integers(len(NAMES))]), axis=1)
    y = pd.Series((X[:, 0] > 0).astype(int))
    kinds = ["value", "label", "few", "same", "whole", "one", "no"]
    what, wrong = what or rng.choice(kinds), ""
    row, column = rng.integers(45), rng.integers(3)
    if what == "value":
        frame.iloc[row, column] = value = rng.choice(VALUES)
        wrong = "infinite" if np.isinf(value) else ""
    elif what == "label":
        y[row] = rng.choice([-1, 7, 2**40])
    elif what == "few":
        n = int(rng.choice([0, 1, 2, 5]))
        frame, y, wrong = frame[:n], y[:n], ["none", "one row"][n] if n < 2 else ""
    elif what == "same":
        frame.iloc[:, column] = rng.choice([0.0, 1e30])
    elif what == "whole":
        frame = frame.round()
    elif what == "one":
        y, wrong = y * 0, "class"
    return frame, y, wrong


def with_texts(rng, frame, y):
    """Return a table with columns and labels that are no numbers, and what is wrong."""
    n, wrong = len(frame), ""
    columns = {
        "text": rng.choice(["u", "v w", "\u00fc,\"'"], n),
        "truth": rng.random(n) < 0.5,
        "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n), unit="D"),
        "category": pd.Categorical(rng.choice(["p", "q"], n)),
        "gaps": np.where(rng.random(n) < 0.3, np.nan, 1.0),
        "nothing": np.full(n, np.nan),
        "free": [f"{k} words" for k in range(n)],
    }
    for name in rng.choice(sorted(columns), rng.integers(3), replace=False):
        frame = frame.assign(**{name: columns[name]})
        wrong = "free" if name == "free" and n > 2 else wrong
    what = rng.choice(["text", "gaps", "truth", "no", "no"])
    if what == "text":
        y = y.map(lambda label: f"\u00fc {label}")
    elif what == "truth":
        y = y == 1
    elif what == "gaps" and n:  # rows without a label are left out, or are the pool
        y = y.astype(object).where(np.arange(n) != n - 1)
    return frame, y, wrong


# Damage


def spoil(rng, path):
    """Damage one file, or leave one out; return whether anything was done."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) or [path]
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    junk = bytes(rng.integers(0, 256, 20, dtype=np.uint8))
    how = rng.choice(["flip", "head", "away", "other"])
    if how == "head":
        return spoil_head(rng, path)
    if how == "away":
        file.unlink()
        if rng.random() < 0.5:
            file.mkdir()
        return True
    if how == "flip" and content:
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] ^= 1 << int(rng.integers(8))
    else:
        cut, text = rng.integers(len(content) + 1), "\u00fc,\u4e2d\n\U0001f600,1\n"
        others = [content[:cut], b"", content + junk, junk, text.encode()]
        content = others[rng.integers(len(others))]
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


# Commands


def draw_options(rng, command):
    """Return options, and those of them that must be refused."""
    Path("FULL").mkdir()
    for path in (Path("FILE"), Path("FULL") / "notes"):
        path.write_text("mine")
    words, refused = [], []
    known = OPTIONS[command]
    number = min(len(known), rng.choice([0, 1, 2, 3], p=[0.4, 0.3, 0.2, 0.1]))
    for name in rng.choice(sorted(known), number, replace=False):
        good, bad = known[name]
        at = int(rng.integers(len(good) + len(bad)))
        if good and rng.random() < 0.5:
            at = int(rng.integers(len(good)))
        value = [*good, *bad][at]
        words += [str(name)] if value is None else [str(name), value]
        refused += [words[-1]] if at >= len(good) else []
    return words, refused


def run_case(number, seed):
    """Run one case here; return its words, whether it succeeded, and what is wrong."""
    rng = np.random.default_rng([seed, number])
    command = str(rng.choice(list(OPTIONS), p=[0.55, 0.2, 0.1, 0.1, 0.05]))
    options, refused = draw_options(rng, command)
    places, wrong, check = ["500", "1000"], "", None
    if command == "report":
        places[0] = str(shutil.copytree(finished_run(), "run"))
        if rng.random() < 0.8:
            spoil(rng, Path("run"))
    elif command != "plan-bound":
        made = files_of(rng, command, options)
        if made is None:
            return [], False, None
        places, wrong, check = made
    refused += [wrong] if wrong else []
    arguments = [*command.split(), *places, *options]
    found, fault = invoke(arguments)
    is_done = fault is None and found.exit_code == 0
    if is_done:
        fault = f"took {refused}" if refused else check and check(found)
    return arguments, is_done, fault


@cache
def finished_run():
    """Return the folder of a search that has ended."""
    place = Path(tempfile.mkdtemp())
    rows = write("npz", place / "t", *draw_table(np.random.default_rng(1), "no")[:2])
    found, fault = invoke(["select", str(rows), *FEW, *GRID, "--out", str(place / "r")])
    assert (fault, found.exit_code) == (None, 0), found.output
    return place / "r"


def files_of(rng, command, options):
    """Write the files of a case: arguments, what is wrong with them, and a check."""
    kind = str(rng.choice([*NUMERIC, *TABLES]))
    frame, y, wrong = draw_table(rng)
    if kind in TABLES:
        frame, y, fault = with_texts(rng, frame, y)
        wrong = wrong or fault
    try:
        path = write(kind, "rows", frame, y)
    except (TypeError, ValueError):  # no writer of that format takes such rows
        return None
    is_damaged = bool(rng.random() < 0.4) and spoil(rng, path)
    target = ["--target", "label"] * (kind in TABLES)
    if command == "pool build":
        out = f"out.{rng.choice(['zarr', 'parquet'])}"
        is_known = not is_damaged and "--dtype" not in options
        check = partial(miswritten, frame, out) if is_known else None
        return [str(path), out, *target], "", check
    if command == "pool info":
        return [str(path)], "", None
    few = FEW + GRID * ("--grid" not in options)
    if kind in ("npy", "zarr", "folder"):
        labeled = write("npz", "labeled", *draw_table(rng, "no")[:2])
        wrong = wrong if wrong in ("infinite", "none") and not is_damaged else ""
        return [str(labeled), "--pool", str(path), *few], wrong, misread
    pool = [[], ["--pool", str(path)]][rng.integers(2)]  # the labeled rows themselves
    check = misread if is_damaged else partial(misread, n_rows=int(y.notna().sum()))
    return [str(path), *pool, *target, *few], wrong * (not is_damaged), check


def invoke(arguments):
    """Run a command here; return what it printed, its exit code and what is wrong."""
    with warnings.catch_warnings(action="ignore"):
        found = CliRunner().invoke(dsel_main, arguments)
    error = found.exception
    if error is not None and not isinstance(error, SystemExit):
        return found, "".join(traceback.format_exception(error))
    said = [line for line in found.stderr.splitlines() if "Error:" in line]
    if found.exit_code == 3 and VERDICT.search(found.stdout):
        return found, None  # the search has ended, and certifies nothing
    if found.exit_code and (len(said) != 1 or not said[0].partition("Error:")[2]):
        return found, f"no error of one line: {found.stderr!r}"
    return found, None


def misread(found, n_rows=None):
    """Return what is wrong with a verdict about so many rows."""
    if VERDICT.search(found.stdout) is None:
        return f"no verdict: {found.stdout!r}"
    told = ROWS.search(found.stdout)
    is_wrong = n_rows and told and int(told[1]) != n_rows
    return f"{n_rows} rows were written: {told[0]}" if is_wrong else None


def miswritten(frame, out, _):
    """Return what is wrong with the pool that was made of a whole file."""
    pool = dsel.open_pool(out)
    if pool.n_rows != len(frame):
        return f"{len(frame)} rows became {pool.n_rows}"
    if len(frame.select_dtypes("number").columns) < frame.shape[1]:
        return None
    blocks = pool.reduce(lambda X, _: [X], lambda a, b: a + b, allow_nan=True)
    parts = [x.toarray() if sparse.issparse(x) else np.asarray(x) for x in blocks]
    held, wide = np.concatenate(parts), np.zeros(frame.shape)
    wide[:, : held.shape[1]] = held  # svmlight has no zeros at the end of all rows
    is_equal = np.array_equal(wide, frame.to_numpy(), equal_nan=True)
    return None if is_equal else "the pool holds other values than the source"


class SlowError(BaseException):
    """A case takes too long; no command foresees it."""


def interrupt(*_):
    raise SlowError


def fuzz(cases, seed=0, say=lambda _: None):
    """Run cases; return how many succeeded, and what failed."""
    before = signal.signal(signal.SIGALRM, interrupt)
    logged = logging.handlers.BufferingHandler(1000)
    logging.getLogger().addHandler(logged)
    n_done, failed = 0, []
    base = Path(tempfile.mkdtemp())  # processes may live on in the folder of a case
    for number in cases:
        signal.alarm(MOST_SECONDS)
        (base / str(number)).mkdir()
        with chdir(base / str(number)):
            try:
                arguments, is_done, wrong = run_case(number, seed)
            except SlowError:
                arguments, is_done, wrong = [], False, traceback.format_exc()
        signal.alarm(0)
        n_done += is_done
        wrong = wrong or "\n".join(map(logged.format, logged.buffer))
        logged.flush()
        if wrong:
            failed.append(f"case {number}: dsel {arguments}\n{wrong}")
            say(failed[-1])
    signal.signal(signal.SIGALRM, before)
    logging.getLogger().removeHandler(logged)
    shutil.rmtree(base)
    return n_done, failed


if __name__ == "__main__":
    first, last, seed = (*map(int, sys.argv[1:]), 0)[:3]
    n_done, failed = fuzz(range(first, last), seed, partial(print, flush=True))
    print(f"{last - first} cases: {n_done} succeeded, {len(failed)} failed")
    sys.exit(bool(failed))
