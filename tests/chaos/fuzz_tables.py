"""Write random tables as people's programs do, read them back, compare every value.

    python -m tests.chaos.fuzz_tables [--cases 10000] [--seed 0]

A case is a table of columns of all kinds with gaps, written by some program in some
format, perhaps damaged. It passes if every value that the reader gives is the one that
stands in the file, or if the file is refused in one line. What stands in a text file is
told by Python's strict csv module. Case N of a seed is always the same.
"""

import argparse
import bz2
import csv
import gzip
import io
import lzma
import math
import re
import sys
import tempfile
import traceback
import zipfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dsel.data.tables import read_table
from dsel.data.text import open_text
from dsel.data.text_columns.gaps import GAP_WORDS
from dsel.data.text_columns.kinds import TRUTH_PAIRS
from dsel.data.text_tables import text_source
from dsel.data.write import write_pool

WORDS = [
    "Ulm", "New York", "a,b", "a;b", "tab\there", "pipe|d", 'say "hi"', "two\nlines",
    "caf\u00e9", "\u4e2d\u6587", " padded ", "007", "12", "1.50", "NA", "None", "?",
    "-", "now", "today", "1E5", "2020-01-01", "26/09/2023", "1,023", "5 kg", "true",
    "yes", "nan", "inf", "-inf", "0x1F", "1_000", "+5", "=1+2", "'", "\\", "#N/A",
    "12:30", "2834", "9999", "",
]  # fmt: skip
PLAIN_WORDS = ["Ulm", "Bonn", "Kiel", "A1", "north west", "caf\u00e9"]


def draw_column(rng, n):
    """Return the kind of a column, and its values as texts; None is a gap."""
    kind = rng.choice(
        ["whole", "float", "money", "large", "text", "words", "codes", "truth", "date",
         "time", "zoned", "numeric", "mixed", "gaps"]
    )  # fmt: skip
    if kind == "whole":
        values = map(str, rng.integers(-50, 3000, n))
    elif kind == "float":
        values = map(repr, (rng.normal(size=n) * 10.0 ** rng.integers(-8, 9)).tolist())
    elif kind == "money":
        values = (f"{value:.2f}" for value in rng.uniform(-5, 9000, n))
    elif kind == "large":
        values = map(str, rng.integers(2**52, 2**62, n))
    elif kind == "text":
        values = rng.choice(WORDS, n)
    elif kind == "words":
        values = rng.choice(PLAIN_WORDS, n)
    elif kind == "codes":
        values = (
            f"{value:0{rng.integers(1, 6)}d}" for value in rng.integers(0, 999, n)
        )
    elif kind == "truth":
        pair = TRUTH_PAIRS[rng.integers(len(TRUTH_PAIRS))]
        case = (str, str.upper, str.title)[rng.integers(3)]
        values = (case(pair[int(k)]) for k in rng.integers(0, 2, n))
    elif kind in ("date", "time", "zoned", "numeric"):
        seconds = rng.integers(-62_000_000_000, 250_000_000_000, n)
        times = [datetime(1970, 1, 1) + timedelta(seconds=int(s)) for s in seconds]
        if kind == "date":
            values = [f"{t:%Y-%m-%d}".rjust(10, "0") for t in times]
        elif kind == "numeric":
            first, second = (("%d", "%m"), ("%m", "%d"))[rng.integers(2)]
            sign, more = "./-"[rng.integers(3)], ("", " %H:%M")[rng.integers(2)]
            form = f"{first}{sign}{second}{sign}2023{more}"
            values = [t.strftime(form) for t in times]
        else:
            sign = "T "[rng.integers(2)]
            zone = "+05:00" if kind == "zoned" else ""
            values = [
                f"{t:%Y-%m-%d}".rjust(10, "0") + f"{sign}{t:%H:%M:%S}{zone}"
                for t in times
            ]
    elif kind == "mixed":
        values = [rng.choice(["12", "A1", "3.5", "2020-01-01", "no"]) for _ in range(n)]
    else:
        values = [None] * n
    share = rng.choice([0.0, 0.0, 0.1, 0.5])
    return kind, [None if rng.random() < share else str(v) for v in values]


def draw_table(rng):
    """Return columns of texts by name, at least one row and one column."""
    n = int(rng.choice([1, 2, 3, 10, 60]))
    names = [f"c{k}" for k in range(rng.integers(1, 8))]
    if rng.random() < 0.2:
        names[0] = rng.choice(["a b", "caf\u00e9", 'in "x"', "x,y", "2019", "n;m"])
    return {name: draw_column(rng, n)[1] for name in names}


def as_text(rng, table):
    """Return the table as a text file, as some program writes it, and its separator."""
    style = rng.choice(["pandas", "index", "csv", "quoted", "polars", "r", "excel"])
    sep = str(rng.choice([",", ",", ";", "\t", "|"]))
    frame = pd.DataFrame(table, dtype=object)
    if style in ("pandas", "index"):
        text = frame.to_csv(index=style == "index", sep=sep)
    elif style == "polars":
        text = pl.DataFrame(table, schema=dict.fromkeys(table, pl.String)).write_csv(
            separator=sep
        )
    elif style == "r":
        sep = "," if sep == "|" else sep
        gaps = frame.isna()
        quoted = frame.map(lambda v: '"' + str(v).replace('"', '""') + '"')
        body = quoted.mask(gaps, "NA")
        rows = [sep.join(['""', *('"' + n.replace('"', '""') + '"' for n in table)])]
        rows += [
            sep.join([f'"{k + 1}"', *row])
            for k, row in enumerate(body.to_numpy().tolist())
        ]
        text = "\n".join(rows) + "\n"
    else:
        out = io.StringIO(newline="")
        sep = ";" if style == "excel" else sep
        writer = csv.writer(
            out,
            delimiter=sep,
            lineterminator="\r\n",
            quoting=csv.QUOTE_ALL if style == "quoted" else csv.QUOTE_MINIMAL,
        )
        writer.writerow(table)
        rows = list(zip(*table.values(), strict=True))
        writer.writerows([["" if v is None else v for v in row] for row in rows])
        text = out.getvalue()
        if style == "excel" and rng.random() < 0.5:
            text = "sep=;\r\n" + text
    if rng.random() < 0.1:
        text = text.rstrip("\r\n")  # no final newline
    return text, sep


def damaged(rng, text):
    """Return a text with something wrong, or changed."""
    lines = text.split("\n")
    k = int(rng.integers(len(lines)))
    how = rng.choice(["short", "long", "cut", "quote", "blank", "twice", "ends"])
    if how == "short":
        lines[k] = lines[k][: len(lines[k]) // 2]
    elif how == "long":
        lines[k] += ",1"
    elif how == "cut":
        return text[: int(rng.integers(1, len(text) + 1))]
    elif how == "quote":
        place = int(rng.integers(len(lines[k]) + 1))
        lines[k] = lines[k][:place] + '"' + lines[k][place:]
    elif how == "blank":
        lines.insert(k, "")
    elif how == "twice":
        lines.insert(k, lines[k])
    else:
        lines = [line.rstrip("\r") + "," for line in lines]
    return "\n".join(lines)


def write_bytes(rng, folder, text):
    """Write a text in some encoding, compressed or not; return path and encoding."""
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    content = text.encode(encoding)
    more = str(rng.choice(["", "", "", ".gz", ".bz2", ".xz", ".zip", ".zst"]))
    path = folder / f"t{rng.choice(['.csv', '.txt'])}{more}"
    if more == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", content)
    elif more == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(content)
    else:
        compress = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}
        path.write_bytes(compress.get(more, lzma.compress)(content))
    return path


def strict_rows(text, sep):
    """Return header and rows as Python's strict reader has them; None if it cannot."""
    body = text.lstrip("\r\n").removeprefix("sep=;\r\n")
    try:
        lines = list(
            csv.reader(io.StringIO(body, newline=""), delimiter=sep, strict=True)
        )
    except csv.Error:
        return None
    lines = [line for line in lines if line]
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        return None
    return [name.strip() for name in lines[0]], lines[1:]


def order_of(texts):
    """Return the forms of dates of numbers, if the column shows which comes first."""
    found = [re.match(r"([0-9]{1,2})([./-])([0-9]{1,2})\2[0-9]{4}", t) for t in texts]
    days = [m for m in found if m and (m[2] == "." or int(m[1]) > 12)]
    months = [m for m in found if m and m[2] != "." and int(m[3]) > 12]
    if bool(days) == bool(months):
        return ()
    sign = (days or months)[0][2]
    form = sign.join(["%d", "%m", "%Y"] if days else ["%m", "%d", "%Y"])
    return (form, f"{form} %H:%M")


def right_value(got, text, *, comma, forms=()):
    """Whether a value is the one that a cell holds."""
    text = text.strip()
    if got is None or got is pd.NaT or (isinstance(got, float) and math.isnan(got)):
        return text == "" or text in GAP_WORDS
    if isinstance(got, str):
        return got == text
    if isinstance(got, (bool, np.bool_)):
        words = [pair[0 if got else 1] for pair in TRUTH_PAIRS]
        return text.lower() in words
    if isinstance(got, datetime):
        found = None
        for form in forms:
            with suppress(ValueError):
                found = datetime.strptime(text, form)
        found = found or datetime.fromisoformat(text)
        given = got.to_pydatetime() if isinstance(got, pd.Timestamp) else got
        if found.tzinfo is not None:
            return given.astimezone(UTC) == found.astimezone(UTC)
        return given.replace(tzinfo=None) == found
    truths = {word: 1.0 - k for pair in TRUTH_PAIRS for k, word in enumerate(pair)}
    if text.lower() in truths:  # of a table that is an array of numbers
        return got == truths[text.lower()]
    plain = text.replace(",", ".") if comma else text
    zeros = plain.lstrip("-")
    leading = len(zeros) > 1 and zeros[0] == "0" and zeros[1].isdigit()
    return not leading and float(plain) == float(got)


def check_frame(frame, header, rows, facts):
    """Return what is wrong with a frame that was read, if anything."""
    comma = "decimal commas" in facts
    if len(frame) != len(rows):
        return f"{len(frame)} rows of {len(rows)}"
    for name in frame.columns:
        place = header.index(name)
        forms = order_of([row[place].strip() for row in rows])
        for k, got in enumerate(frame[name].tolist()):
            if not right_value(got, rows[k][place], comma=comma, forms=forms):
                return f"row {k} of {name!r}: {got!r} for {rows[k][place]!r}"
        is_text = [isinstance(v, str) for v in frame[name] if not pd.isna(v)]
        if is_text and any(is_text) != all(is_text):
            return f"column {name!r} is mixed"
    return ""


def run_text(rng, folder):
    """Write and read a text file; return what is wrong, or ''."""
    text, sep = as_text(rng, draw_table(rng))
    if rng.random() < 0.3:
        text = damaged(rng, text)
    path = write_bytes(rng, folder, text)
    try:
        if rng.random() < 0.5:
            sep = open_text(str(path)).separator
        known = strict_rows(text, sep)
        table = read_table(path, separator=sep)
    except (ValueError, TypeError) as error:
        return "" if "\n" not in str(error) else f"lines: {error}"
    if known is None:
        return f"read what the strict reader refuses: {text!r}"
    header, rows = known
    frame = pd.DataFrame(table.X, columns=list(table.columns), copy=False)
    wrong = check_frame(frame, header, rows, str(table.notes))
    if wrong:
        return f"{wrong} in {text!r}"
    again = read_table(path, like=table.schema, separator=sep).X
    if not again.equals(frame.astype(again.dtypes)):
        return f"by its own schema other values: {text!r}"
    try:
        source = text_source(str(path), separator=sep)
        write_pool(source, folder / "p.parquet")
    except (ValueError, TypeError) as error:
        return "" if "\n" not in str(error) else f"lines: {error}"
    stored = pd.read_parquet(folder / "p.parquet")
    wrong = check_frame(stored, header, rows, str(table.notes))
    return f"pool: {wrong} in {text!r}" if wrong else ""


def run_typed(rng, folder):
    """Write and read a file of a format that has types; return what is wrong, or ''."""
    frame = pd.DataFrame(
        {
            name: pd.Series(values, dtype="str")
            for name, values in draw_table(rng).items()
        }
    )
    frame["n"] = rng.normal(size=len(frame))
    path = folder / f"t{rng.choice(['.parquet', '.feather', '.jsonl'])}"
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    found = read_table(path).X
    for name in frame:
        for got, value in zip(found[name].tolist(), frame[name].tolist(), strict=True):
            both_gaps = pd.isna(got) and pd.isna(value)
            if both_gaps:
                continue
            near = isinstance(value, float) and math.isclose(
                got, value, rel_tol=1e-14, abs_tol=1e-15
            )
            if not near and (type(got) is not type(value) or got != value):
                return f"{path.name} {name!r}: {got!r} for {value!r}"
    return ""


def fuzz(cases, seed):
    """Run cases; return those that failed, and why."""
    failed = []
    for case in cases:
        rng = np.random.default_rng([seed, case])
        with tempfile.TemporaryDirectory() as folder:
            try:
                run = run_typed if rng.random() < 0.1 else run_text
                wrong = run(rng, Path(folder))
            except Exception:  # whatever it is, it is a failure of this case
                wrong = traceback.format_exc()[-1500:]
        if wrong:
            failed.append((case, wrong))
    return failed


@pytest.mark.parametrize("part", range(4))
def test_read_table__gives_the_values_of_any_file_or_refuses_it(part):
    assert fuzz(range(50 * part, 50 * (part + 1)), seed=0) == []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    wrong = fuzz(range(asked.first, asked.first + asked.cases), asked.seed)
    for number, what in wrong[:20]:
        print(number, what)
    print(f"{asked.cases:,} tables, {len(wrong)} changed or with a traceback")
    sys.exit(bool(wrong))
