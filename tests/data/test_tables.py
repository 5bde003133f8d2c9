import bz2
import gzip
import json
import lzma
import os
import re
import shlex
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from pyarrow import feather, parquet
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.data import open_pool, write_pool
from dsel.data.frames import native
from dsel.data.labeled import check_labels
from dsel.data.like import open_pool_like
from dsel.data.schema import ColumnSchema, TableSchema
from dsel.data.table_files import ENDINGS
from dsel.data.tables import FORMATS, read_table
from dsel.data.text_columns.kinds import Form, Kind
from dsel.data.text_tables import text_source
from dsel.errors import NewerRecordError, UndecidedError

X = np.array([[1.0, 0.0, 2.5], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.5, 0.0, 1.0]])
LABELS = np.array(["no", "yes", "yes", "no"])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=LABELS)


def read_to_write(path, *, target):
    return write_pool(path, f"{path}.zarr", target=target)


def to_npz(path):
    names, codes = np.array(["no", "yes"]), np.array([0, 1, 1, 0])
    np.savez(path, X=X, y=codes, classes=names, feature_names=np.array(list("abc")))


def to_zarr(path):
    group = zarr.create_group(path, attributes={"columns": list("abc")})
    group.create_array("X", data=X)
    group.create_array("label", data=np.array([0, 1, 1, 0]))


@pytest.mark.parametrize(
    ("name", "write", "target"),
    [
        ("t.csv", lambda path: FRAME.to_csv(path, index=False), "label"),
        ("t.csv", lambda path: FRAME.to_csv(path), "label"),
        ("t.tsv.gz", lambda path: FRAME.to_csv(path, index=False, sep="\t"), "label"),
        ("t.parquet", FRAME.to_parquet, "label"),
        ("t.npz", to_npz, None),
        ("t.zarr", to_zarr, "label"),
    ],
)
def test_read_table__takes(name, write, target, tmp_path):
    write(tmp_path / name)
    table = read_table(tmp_path / name, target=target)
    assert (table.X == X).all()
    assert (table.y == ((LABELS == "yes") if name == "t.zarr" else LABELS)).all()
    assert table.columns == ("a", "b", "c")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_read_table__keeps_a_frame_where_a_column_is_no_number(tmp_path, ending):
    path, towns = tmp_path / f"t.{ending}", ["Ulm", "Bonn", "Bonn", "Kiel"]
    frame = FRAME.assign(label=towns)
    getattr(frame, f"to_{ending}")(path, index=False)
    pd.testing.assert_frame_equal(read_table(path).X, frame, check_dtype=False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("ragged.csv", b"a,label\n1,x\n1,2,3\n"),
        ("named.csv", b"a,label\nfirst,1,x\nsecond,2,y\n"),
        ("ends.csv", b"label,a,b\nx,1,2,\ny,3,4,\n"),
        ("latin.csv", b"a,label\n1,gr\xfcn\n"),
        ("cut.npz", b"PK\x03\x04 and no more"),
        ("text.npz", b"hello"),
        ("cut.parquet", b"PAR1 and no more"),
        ("text.svm", b"hello world\n"),
        ("text.csv.gz", b"hello"),
        ("cut.csv.gz", gzip.compress(b"a,label\n1,x\n" * 50, mtime=0)[:30]),
        ("cut.jsonl.zst", pa.compress(b"[1]\n" * 50, "zstd", asbytes=True)[:15]),
    ],
)
@pytest.mark.parametrize("read", [read_table, read_to_write])
def test_read_table__names_the_file_that_cannot_be_read(name, content, read, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name):
        read(str(path), target="label" if ".csv" in name else None)


def test_read_table__takes_minus_one_as_a_label_where_there_are_no_classes(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=np.array([-1, 1, 1, -1]))
    assert read_table(tmp_path / "t.npz").y.tolist() == [-1, 1, 1, -1]


def text_table(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def kinds_of(folder, *columns):
    """Return the kinds of columns, each of which is given by its values."""
    lines = [",".join(f"c{k}" for k in range(len(columns)))]
    lines += [",".join(row) for row in zip(*columns, strict=True)]
    path = text_table(folder, "\n".join([*(f"{line},x" for line in lines)]))
    schema = read_table(path, target="x").schema
    return [str(column.kind) for column in schema.columns]


KINDS = [
    (["1", "-2", "0"], Kind.WHOLE),
    (["1", "?", "NA"], Kind.WHOLE),
    (["1.5", "-2e-3", ".5"], Kind.NUMBERS),
    (["1.5", " ", "N/A"], Kind.NUMBERS),
    (["007", "7", "1"], Kind.TEXT),
    (["1", "A1", "2"], Kind.TEXT),
    (["1", "inf", "2"], Kind.TEXT),
    (["1e999", "1", "2"], Kind.TEXT),
    (["9007199254740993", "1", "2"], Kind.TEXT),
    (["1_000", "1", "2"], Kind.TEXT),
    (["0x1F", "1", "2"], Kind.TEXT),
    (["yes", "NO", "Yes"], Kind.TRUTH),
    (["T", "f", "None"], Kind.TRUTH),
    (["yes", "yes", "yes"], Kind.TEXT),
    (["yes", "false", "yes"], Kind.TEXT),
    (["yes", "no", "maybe"], Kind.TEXT),
    (["2020-01-31", "9999-12-31", "null"], Kind.DATES),
    (["2020-01-31", "2020-01-31 10:00", "-"], Kind.TIMES),
    (["2020-01-31T10:00:00.25", "1066-10-14 09:00:00", ""], Kind.TIMES),
    (["2020-01-31T10:00:00Z", "2020-01-31 10:00+05:00", ""], Kind.ZONED_TIMES),
    (["2020-01-31T10:00:00Z", "2020-01-31 10:00", ""], Kind.TEXT),
    (["2020-02-30", "2020-01-01", ""], Kind.TEXT),
    (["0000-01-01", "2020-01-01", ""], Kind.TEXT),
    (["2020-1-31", "2020-01-01", ""], Kind.TEXT),
    (["now", "today", "2020-01-01"], Kind.TEXT),
    (["2834", "7372", "6022"], Kind.WHOLE),
    (["31/01/2020", "01/02/2020", ""], Kind.DATES),
    (["NA", "?", ""], Kind.GAPS),
]


@pytest.mark.parametrize(("values", "kind"), KINDS)
def test_read_table__gives_a_column_a_kind_by_all_of_its_values(values, kind, tmp_path):
    assert kinds_of(tmp_path, values, ["1", "2", "3"]) == [kind, Kind.WHOLE]
    # Wherever the odd value stands, and in large files, too.
    filled = [*values] * 3
    assert kinds_of(tmp_path, filled[::-1], ["1"] * 9)[0] == kind


def test_read_table__takes_gap_words_in_text_for_values_and_an_empty_cell_for_a_gap(
    tmp_path,
):
    path = text_table(tmp_path, "x,town\n1,None\n2,\n3, Ulm \n")
    town = read_table(path).X["town"]
    assert town.isna().tolist() == [False, True, False]
    assert town.dropna().tolist() == ["None", "Ulm"]


TARGETS = [
    (["7", "12", ""], [7, 12, None]),
    (["7.0", "12.0", ""], [7, 12, None]),
    (["7", "7.0", "12"], ["7", "7.0", "12"]),
    (["007", "7", "12"], ["007", "7", "12"]),
    (["1E5", "2E6", "3E2"], ["1E5", "2E6", "3E2"]),
    (["None", "NA", "null"], ["None", "NA", "null"]),
    (["1.5", "2", "3"], ["1.5", "2", "3"]),
    (["ckd\t", " ckd", "no"], ["ckd", "ckd", "no"]),
    (["true", "false", "true"], ["true", "false", "true"]),
    (["9223372036854775808", "1", "2"], ["9223372036854775808", "1", "2"]),
]


@pytest.mark.parametrize(("written", "labels"), TARGETS)
def test_read_table__takes_the_target_as_text_or_whole_numbers(
    written, labels, tmp_path
):
    text = "x,label\n" + "".join(f"{k},{label}\n" for k, label in enumerate(written))
    assert read_table(text_table(tmp_path, text), target="label").y.tolist() == labels


TEXT = "a;b\r\n1,5;caf\u00e9\r\n2;\r\n"


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("t.csv", lambda content, _: content),
        ("t.txt.gz", lambda content, _: gzip.compress(content)),
        ("t.csv.bz2", lambda content, _: bz2.compress(content)),
        ("t.csv.xz", lambda content, _: lzma.compress(content)),
        ("t.tsv.zst", lambda content, _: pa.compress(
            content, "zstd", asbytes=True)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_read_table__reads_compressed_text_of_any_encoding(
    name, pack, encoding, tmp_path
):
    (tmp_path / name).write_bytes(pack(TEXT.encode(encoding), None))
    table = read_table(tmp_path / name)
    assert table.X["a"].tolist() == [1.5, 2.0]
    assert table.X["b"].fillna("gap").tolist() == ["caf\u00e9", "gap"]
    assert ("decimal commas" in dict(table.notes)["read as"]) is True


def test_read_table__reads_latin_1_where_it_is_named(tmp_path):
    path = text_table(tmp_path, "a;b\n1;gr\u00fcn\n2;rot\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"byte 0xfc in line 2; .* --encoding"):
        read_table(path)
    assert read_table(path, encoding="latin-1").X["b"].tolist() == ["gr\u00fcn", "rot"]


def test_read_table__reads_the_one_file_of_a_zip_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", "a,b\n1,2\n")
    assert read_table(tmp_path / "t.csv.zip").X.tolist() == [[1, 2]]
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "a") as archive:
        archive.writestr("u.csv", "a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"must hold one file, got 2: t\.csv, u\.csv"):
        read_table(tmp_path / "t.csv.zip")


RIGHT = [
    ('a,b\n1,"x,y"\n2,"say ""hi"""\n3,"two\nlines"', ["x,y", 'say "hi"', "two\nlines"]),
    ("sep=;\na;b\n1;x\n", ["x"]),
    ('"",a,b\n"1",1,x\n"2",2,y\n', ["x", "y"]),
    (",Unnamed: 0,a,b\n0,0,1,x\n1,1,2,y\n", ["x", "y"]),
    ("a,b,\n1,x,\n2,y,\n", ["x", "y"]),
    ("a,, ,b\n1,,,x\n2, ,,y\n", ["x", "y"]),
    ("\n a , b \n1,x\n\n2,y\n\n", ["x", "y"]),
    ('a,b\n1,5" pipe\n2,y\n', ['5" pipe', "y"]),
    ("a|b\n1|x,y;z\n", ["x,y;z"]),
    ('"a","b"\n1,"two\nlines"\n', ["two\nlines"]),
    ("a,b\r1,x\r2,y\r", ["x", "y"]),
]


@pytest.mark.parametrize(("text", "values"), RIGHT)
def test_read_table__reads_what_programs_write(text, values, tmp_path):
    table = read_table(text_table(tmp_path, text))
    assert table.columns == ("a", "b")
    assert table.X["b"].tolist() == values


WRONG = [
    ("", "it is empty"),
    ("a,b\n", "has a header, but no rows"),
    ("a,b\n1,2\n\n3\n", "line 4 has 1 value, but the header has 2"),
    ("a,b\n1,2\n3,4,5\n", "line 3 has 3 values, but the header has 2"),
    ('a,"b\n1,2\n', "header has a quote that is not closed"),
    ('a;b\n1;"x",y\n', "line 2 has a quote that is not closed, or goes on"),
    ('a,b\n1,"2\n3,4\n', "line 2 has a quote that is not closed"),
    ('a,b\n1,"2"x\n3,4\n', "line 2 has a quote that is not closed, or goes on"),
    ("a,b\n1,\x002\n", "zero bytes"),
    ("a,a\n1,2\n", "column name 'a' is there twice"),
    ("a,,b\n1,,3\n1,2,3\n", "column 2 has no name, but line 3 has '2' there"),
    (
        "Report,,\na,b,c\n1,2,3\n",
        "line 2 has 'b' there; .* remove that if it is a title",
    ),
    ("x,l\n1,2,a\n", "if lines begin with a row name, as R writes them, name that"),
    ("x,l\n1,a,\n", "this line ends in a separator, and the header does not"),
    ('[{"a": 1}]\n', "it is JSON: write an object in each line"),
    ('{"a": 1}\n', "it is JSON: let its name end in .jsonl"),
    ("a,b,\n1,2,\n1,2,3\n", "column 3 has no name, but line 3 has '3'"),
    ("0.12,0.4\n1,2\n", "no header: the first line is 0.12,0.4"),
    ("a;b,c\n1;2,3\n", "has ',' and ';', .* --sep"),
    ("a;b\n1,5;1.234\n2,5;2.345\n", "'a' has decimal commas .*'b' decimal points"),
    ("a\n1\n\n2\n", "one column and lines that are empty"),
    ("Report\n\na,b\n1,2\n", "line 3 has 2 values, .* if line 3 is the header"),
    ("x z label\n1 2 a\n3 4 b\n", "' ' separates each line, .* into 3 parts; .*--sep"),
    ("x label\n1.5 a\n3 b\n", "' ' separates each line"),
    ("x  label\n1.5  a\n3   b\n", "write it as CSV if these are its values"),
    (
        '"x" "z"\n"1" 1 "a b"\n"2" 2 "c"\n',
        "names of rows, .* column and write --sep ' '",
    ),
    ('"x" "z"\n1 "a"\n2 "c"\n', "' ' separates each line, .* write --sep ' ' if these"),
    ("'x','z'\n'1','a'\n", "its header has the name 'x', in quotes as all others"),
    ("x^z\n1^2\n3^4\n", r"write --sep '\^' if these"),
    ("PK\x03\x04\x14", "a zip archive, as .xlsx files are: save the sheet"),
    ("%PDF-1.4\n1,2\n", "a PDF file"),
    ("<!DOCTYPE html>\n<html>\n", "a web page"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_read_table__refuses_in_one_line_that_names_file_and_place(
    text, words, tmp_path
):
    path = text_table(tmp_path, text)
    with pytest.raises(ValueError, match=words) as caught:
        read_table(path)
    assert "t.csv' cannot be read: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "t.xlsx",
            r"is a spreadsheet: save the sheet as CSV UTF-8 .*read_excel\('.*t.xlsx'.*"
            r"needs openpyxl",
        ),
        ("t.rds", "write it as CSV or Parquet"),
        ("t.doc", r"must end in one of \.csv, \.tsv, \.txt"),
    ],
)
@pytest.mark.parametrize("read", [read_table, open_pool])
def test_read_table__lists_the_formats_where_one_is_not_read(
    name, words, read, tmp_path
):
    (tmp_path / name).write_bytes(b"PK and more")
    with pytest.raises(ValueError, match=words):
        read(tmp_path / name)


def test_formats__have_a_reader_for_each_ending():
    assert {*FORMATS} == {*ENDINGS}


def test_read_table__stops_where_the_file_is_being_written(tmp_path):
    path = text_table(tmp_path, "a,b\n" + "1,2\n" * 10)
    [file_of_rows] = text_source(str(path)).files  # without reading ahead
    batches = file_of_rows.batches(["a"])
    next(batches)
    with open(path, "a") as file:
        file.write("3,4\n")
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match="has changed while it was read"):
        list(batches)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_read_table__reads_a_folder_of_files_with_the_same_columns(ending, tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    for k, names in enumerate((["a", "b"], ["b", "a"])):
        getattr(frame[names], f"to_{ending}")(tmp_path / f"{k}.{ending}", index=False)
    assert read_table(tmp_path).X["a"].tolist() == [1, 2, 1, 2]
    getattr(frame[["a"]], f"to_{ending}")(tmp_path / f"2.{ending}", index=False)
    with pytest.raises(ValueError, match="lacks the column 'b' that"):
        read_table(tmp_path)


@pytest.mark.parametrize("first", [[1, 2], [0.5, 2]])
def test_read_table__joins_the_types_of_the_files_of_a_folder(first, tmp_path):
    for k, values in enumerate((first, [1.5, 3] if first == [1, 2] else [1, 3])):
        pd.DataFrame({"a": values}).to_parquet(tmp_path / f"{k}.parquet")
    table = read_table(tmp_path)
    pooled = open_pool(tmp_path).as_array().compute()
    np.testing.assert_array_equal(table.X, pooled)
    assert table.X[:2, 0].tolist() == first
    pd.DataFrame({"a": ["x"]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(TypeError, match=r"2\.parquet' holds other types than .*a has"):
        read_table(tmp_path)


def test_read_table__says_that_values_are_in_quotes_of_their_own(tmp_path):
    path = text_table(tmp_path, "a,b\n'1',x\n'2',z\nNA,z\n")
    [caveat] = read_table(path).caveats
    assert caveat == (
        "column 'a' is read as text with the quotes of its values, such as '1'; only "
        "double quotes without blanks before them are left out"
    )


def test_read_table__takes_5000_columns_and_names_of_300_letters(tmp_path, rng):
    names = [f"gene {k}" for k in range(5000)]
    frame = pd.DataFrame(rng.normal(size=(20, 5000)), columns=names)
    labels = ["a" * 300, "b" * 300] * 10
    frame.assign(label=labels).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", target="label")
    assert (frame.to_numpy() == table.X).all()
    assert table.y.tolist() == labels


def test_read_table__refuses_a_target_of_many_different_labels(tmp_path):
    text = "x,label\n" + "".join(f"{k},name {k}\n" for k in range(20_000))
    with pytest.raises(ValueError, match="20,000 different labels in 20,000 rows"):
        read_table(text_table(tmp_path, text), target="label")


def test_read_table__names_labels_with_blanks_and_words_for_gaps(tmp_path):
    path = text_table(tmp_path, "x,label\n1,Yes\n3, no\n4,NA\n")
    table = read_table(path, target="label", gap_classes=["NA"])
    told = " ".join(table.caveats)
    assert "1 labels have blanks around them, such as ' no'" in told
    assert "'NA' is a class of 'label'" in told


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["\u00e9", "e\u0301", "x"], "differ by Unicode forms, blanks or case only"),
        (["1", "1.0", "x"], "labels '1' and '1.0' are one number, and 2 classes"),
        (["yes", "Yes ", "no"], "differ by blanks or case only"),
    ],
)
@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_read_table__names_labels_of_typed_formats_that_are_alike(
    labels, words, name, tmp_path
):
    frame = pd.DataFrame({"x": [1.5, 2, 3], "label": labels})
    if name == "t.jsonl":
        frame.to_json(tmp_path / name, orient="records", lines=True)
    else:
        frame.to_parquet(tmp_path / name)
    if "differ" in words:
        with pytest.raises(ValueError, match=words):
            read_table(tmp_path / name, target="label")
        return
    table = read_table(tmp_path / name, target="label")
    assert table.y.tolist() == labels
    assert words in " ".join(table.caveats)


def test_read_table__takes_whole_decimals_for_whole_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    decimals = pa.array([Decimal(3), None, Decimal(12)], pa.decimal128(20, 2))
    parquet.write_table(pa.table({"x": [1, 2, 3], "label": decimals}), path)
    assert read_table(path, target="label").y.tolist() == [3, None, 12]


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_read_table__refuses_labels_that_are_no_single_values(value, tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": [1, 2], "label": [value] * 2}), path)
    with pytest.raises(ValueError, match="`target` 'label' must hold a label for each"):
        read_table(path, target="label")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".jsonl"])
def test_read_table__keeps_large_whole_numbers_where_one_is_missing(ending, tmp_path):
    path, large = tmp_path / f"t{ending}", [2**53 + 1, 2**53, None]
    frame = pd.DataFrame({"x": [1.0, 2.5, 4.0], "n": pd.array(large, "Int64")})
    rows = pa.table(frame).replace_schema_metadata()  # as other programs write it
    if ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif ending == ".feather":
        feather.write_feather(rows, path)
    else:
        parquet.write_table(rows, path)
    assert read_table(path, target="n").y.tolist() == large
    [note] = read_table(path).caveats
    assert "'n' holds whole numbers that are too large to be held exactly" in note


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_read_table__makes_no_numbers_of_times(unit, tmp_path):
    times = pa.array([1, 2, 1, 2, None], pa.timestamp(unit))
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": [1.0, 2, 3, 4, 5], "label": times}), path)
    known = [label for label in read_table(path, target="label").y if label is not None]
    with pytest.raises(TypeError, match="must hold labels that are texts"):
        check_labels(known)


LOOKS = [
    (["1,023", "1,200", "2,000"], "all of its values are numbers written as text"),
    (["5%", "7%", "8%"], "such as '5%'"),
    (["(5)", "(1,200)", "7"], "all of its values are numbers written as text"),
    (["\u22125", "\u22127", "8"], "such as '\u22125'"),
    (["12 kg", "13 kg", "x"], "66% of its values are numbers written as text"),
    (["01/02/2023", "3/4/2020"],
     "'01/02/2023' may be 2023-02-01 or 2023-01-02; write --dayfirst or --monthfirst"),
    (["26/09/2023", "09/26/2023"],
     "the day comes first in '26/09/2023' in line 2 and the month in '09/26/2023' in"),
    (["26/09/2023", "27/09/2023", "soon"], "looks like dates, but 'soon' in line 4 is"),
    (["26/09/2023", "31/02/2023"], "looks like dates, but '31/02/2023' in line 3 is"),
    (["26.09.2023", "09.26.2023"], "looks like dates, but '09.26.2023' in line 3 is"),
    (["26/09/23", "05/09/23"], "looks like dates ('26/09/23')"),
    (["26/09/2023", "26.09.2023"], "'26/09/2023' in line 2 and '26.09.2023' in line 3"),
    (["26/09/2023", "2023-09-26"], "in several formats"),
    (["26/09/2023 25:00"], "looks like dates, but '26/09/2023 25:00' in line 2"),
    (["2023/09/26", "2020/1/2"], "looks like dates ('2023/09/26')"),
    (["2023-09", "2020-01"], "looks like dates ('2023-09')"),
    (["Tue, 26 Sep 2023", "Wed, 1 Jan 2020"], "looks like dates ('Tue, 26 Sep 2023')"),
    (["2023\u5e749\u670826\u65e5"], "looks like dates ('2023\u5e749\u670826\u65e5')"),
    (["26 Sep 2023", "1 Jan 2020", "26SEP2023"], "several formats, such as '26 Sep"),
    (["2020-1-5", "2020-1-6", "2020-10-10"], "looks like dates ('2020-1-5')"),
    (["2020-01-05T10:00:00 CET"], "looks like dates ('2020-01-05T10:00:00 CET')"),
    (["2020-01-05 10:00:00.123456789"], "a second may have six digits behind the poi"),
    (["20200101T1200", "20200102T1200"], "looks like dates ('20200101T1200')"),
    (["0x1f", "0xFF"], "such as '0x1f'"),
    (["1_000", "2_000", "999"], "such as '1_000'"),
    (["\uff11\uff12", "\uff13"], "all of its values are numbers written as text"),
    (["1.5D+03", "2D0"], "such as '1.5D+03'"),
    (["1.#INF", "-1.#IND", "1"], "such as '1.#INF'"),
    (["<0.1", "~5", ">9"], "such as '<0.1'"),
    (["CHF 12", "CHF 3.50"], "such as 'CHF 12'"),
    (["EUR 5", "EUR5"], "such as 'EUR 5'"),
    (["#1", "#2"], "such as '#1'"),
    (["No. 5", "Nr 7"], "such as 'No. 5'"),
    (["R$ 5", "kr 7"], "such as 'R$ 5'"),
    (["5mmol/l", "7.5mmol/l"], "such as '5mmol/l'"),
    (["3 Std.", "5 Jahre", "10+"], "such as '3 Std.'"),
    (["26. September 2023", "1 März 2020"], "looks like dates ('26. September 2023')"),
    (["Sep 26, 2023", "Oct. 1, 2023"], "looks like dates ('Sep 26, 2023')"),
    (["12-", "13-", "5*"], "such as '12-'"),
    (["1,00,000", "2,50,000"], "such as '1,00,000'"),
    (["9007199254740993", "1"], "too large, or too near to 0, to be held exactly"),
    (["1e-400", "0.5", "0"], "too large, or too near to 0, to be held exactly"),
    (["2020-01-01", "2020-01-02", "pending"], "looks like dates, but 'pending'"),
    (["1", "2", "many"], "66% of its values are numbers, but not 'many' in line 4"),
    (["3 kg", "5 kg", "n.v."], "; --number q --gap n.v. reads it as numbers"),
    (["3E5", "12"], "'3E5' may be a code, or the number 300000; --number q reads it"),
]  # fmt: skip
OTHER_CODES = [
    ["192.168.100.200", "192.168.100.201"],
    ["8020-67-3", "7732-18-5", "7440-05-3"],
    ["20-45-67", "40-47-84"],
    ["1.1.0", "1.10.0"],
]
"""Addresses, CAS numbers, sort codes and versions, which are no numbers or dates."""


@pytest.mark.parametrize(("values", "words"), LOOKS)
def test_read_table__says_what_a_column_of_text_looks_like(values, words, tmp_path):
    text = "q|x\n" + "".join(f"{value}|1\n" for value in values)
    (line,) = read_table(text_table(tmp_path, text)).caveats
    assert line.startswith("column 'q' ")
    assert words in line


@pytest.mark.parametrize("values", OTHER_CODES)
def test_read_table__takes_codes_for_nothing_else(values, tmp_path):
    table = read_table(text_table(tmp_path, "q|x\n" + "|1\n".join([*values, ""])))
    assert table.X["q"].tolist() == values
    assert not table.caveats


@pytest.mark.parametrize("values", [["0xff", "0x1f"], ["12A", "14C", "7B"]])
def test_read_table__offers_no_numbers_for_codes_with_letters(values, tmp_path):
    path = text_table(tmp_path, "q|x\n" + "|1\n".join([*values, ""]))
    assert not any("--number" in note for note in read_table(path).caveats)


def test_read_table__keeps_codes_with_exponents_apart(tmp_path):
    """1E2 and 10E1 are two codes and one number."""
    path = text_table(tmp_path, "q|x\n1E2|1\n10E1|2\n100|3\n")
    assert read_table(path).X["q"].tolist() == ["1E2", "10E1", "100"]
    assert read_table(path, number=["q"]).X[:, 0].tolist() == [100.0] * 3
    whole = read_table(text_table(tmp_path, "q|x\n12|1\n13|2\n", "w.csv")).schema
    words = "column 'q' of .* has '1E2' in line 2.*; it holds whole numbers"
    with pytest.raises(ValueError, match=words):
        read_table(path, like=whole)
    with pytest.raises(ValueError, match=words):
        write_pool(text_source(str(path), like=whole), tmp_path / "p.parquet")


@pytest.mark.parametrize(
    ("values", "n_notes"),
    [(["1.234", "12"], 1), (["1.234", "0.5"], 0), (["1.234", "1.5"], 0)],
)
def test_read_table__says_where_points_may_separate_thousands(
    values, n_notes, tmp_path
):
    path = text_table(tmp_path, "q;x\n" + ";1\n".join([*values, ""]))
    caveats = read_table(path).caveats
    assert len(caveats) == n_notes
    assert all("'1.234'; if its points separate thousands" in c for c in caveats)


def test_read_table__says_that_the_index_of_a_data_frame_is_left_out(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.0]}, pd.Index([7, 9], name="customer"))
    frame.to_parquet(tmp_path / "t.parquet")
    [caveat] = read_table(tmp_path / "t.parquet").caveats
    assert caveat.startswith("'customer', the index of the data frame in ")


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        (["1.1", "1.2", "1.10"], "'1.1' and '1.10'"),
        (["1E2", "0.5", "10E1"], "'1E2' and '10E1'"),
        (["0", "0.0", "2.5"], None),
        (["1.50", "2.25", "NA"], None),
        (["1.50", "2.5", "2.75"], "'1.50' ends with 0 and '2.5' has fewer digits"),
        (["1.9", "1.10", "1.11"], "'1.10' ends with 0 and '1.9' has fewer digits"),
        (["1.9", "1.11", "2.005"], None),
        (["1.50", "10.0", "2.50", "12"], "'1.50' ends with 0 and '10.0' has"),
    ],
)
def test_read_table__says_where_numbers_may_be_versions(values, pair, tmp_path):
    path = text_table(tmp_path, "q|x\n" + "|1\n".join([*values, ""]))
    caveats = read_table(path).caveats
    assert len(caveats) == (pair is not None)
    assert all(f"of which {pair}" in c for c in caveats)
    assert all("write --text q if they are codes" in c for c in caveats)
    kept = read_table(path, text=["q"])
    assert kept.X["q"].tolist() == values
    assert not kept.caveats
    again = read_table(path, like=kept.schema)
    assert again.X["q"].tolist() == values


def test_read_table__blames_a_wrong_value_and_not_the_decimal_mark(tmp_path):
    """The only column that shows the mark is the one with the wrong value."""
    schema = read_table(text_table(tmp_path, "q;x\n1,5;1\n2,5;2\n", "l.csv")).schema
    other = text_table(tmp_path, "q;x\n1,5;1\n0,25;2\nbroken;3\n", "n.csv")
    with pytest.raises(ValueError, match=r"'q' of .* has 'broken' in line 4"):
        read_table(other, like=schema)


def test_read_table__refuses_a_number_that_would_become_0(tmp_path):
    for number in ("1e-400", "0." + 400 * "0" + "1"):
        path = text_table(tmp_path, f"q|x\n0.5|1\n{number}|2\n0|2\n", "n.csv")
        assert read_table(path).X["q"].tolist() == ["0.5", number, "0"]
        schema = read_table(text_table(tmp_path, "q|x\n0.5|1\n0e0|1\n")).schema
        with pytest.raises(ValueError, match=f"has '{number}' in line 3"):
            read_table(path, like=schema)


def test_read_table__refuses_a_line_of_units_below_the_header(tmp_path):
    text = "id,a,b,c\n,s,kg,1\nx,1,2.5,3\ny,2,3.5,4\n"
    words = "line 2 of .* has units, or a second header: 's' in 'a', 'kg' in 'b', where"
    with pytest.raises(ValueError, match=words):
        read_table(text_table(tmp_path, text))
    # One word is a wrong value, or a category.
    for other in (text.replace("s,kg", "5,kg"), text.replace("2,3.5", "NA,x")):
        assert read_table(text_table(tmp_path, other)).X["b"].tolist()[0] == "kg"


def test_read_table__takes_texts_that_are_named_for_texts_alone(tmp_path):
    path = text_table(tmp_path, "q|x|y\n1.1|1|a\n1.10|2|b\n")
    for words, options in (
        ("both name 'q'", {"number": ["q"]}),
        ("--text names 'q', which another option", {"drop": ["q"]}),
        ("--text names 'q', the target", {"target": "q"}),
    ):
        with pytest.raises(ValueError, match=words):
            read_table(path, text=["q"], **options)
    pd.DataFrame({"q": [1.1, 2.5]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="--text names 'q', which holds no texts in"):
        read_table(tmp_path / "t.parquet", text=["q"])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_read_table__says_which_feature_is_a_copy_of_the_target(name, tmp_path):
    n = np.arange(60)
    frame = pd.DataFrame(
        {
            "label_id": n % 3 * 10,
            "word": np.array(["uno", "due", "tre"])[n % 3],
            "half": n % 6 // 3,
            "unique": n * 1.5,
            "label": np.array(["a", "b", "c"])[n % 3],
        }
    )
    frame.loc[50:, "label"] = None  # without a label nothing is compared
    frame.loc[50:, "label_id"] = 7
    path = tmp_path / name
    if name == "t.csv":
        frame.to_csv(path, index=False)
    elif name == "t.parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    copies = [c for c in read_table(path, target="label").caveats if "alone gives" in c]
    assert [copy.split("'")[1] for copy in copies] == ["label_id", "word"]
    assert "leave it out by --drop label_id, unless" in copies[0]
    cents = frame.assign(cents=150 * n + 7, other=(n * 37) % 61)
    numbers = cents.drop(columns="label").iloc[:40]
    numbers.to_csv(tmp_path / "r.csv", index=False)
    table = read_table(tmp_path / "r.csv", target="unique", task="regression")
    copies = [c for c in table.caveats if "alone gives" in c]
    assert [copy.split("'")[1] for copy in copies] == ["cents"]


def test_read_table__says_which_feature_alone_gives_the_target(tmp_path):
    n = np.arange(600)
    label = np.where(n < 350, "no", "yes")  # sorted: the first rows have one label
    status = np.where(n < 350, n % 3, 7 + n % 2)
    status[[0, 400]] = [7, 1]
    frame = pd.DataFrame({"status": status, "x": n % 50, "label": label})
    frame["mostly"] = np.where(n % 20 == 0, "yes", label)
    frame.to_csv(tmp_path / "t.csv", index=False)
    [note] = read_table(tmp_path / "t.csv", target="label").caveats
    assert note.startswith(
        "column 'status' alone gives 'label' in 99.6% of the labeled"
    )
    # One row of a class has a value of its own by chance.
    frame["label"] = np.where(n == 3, "yes", "no")
    frame["x"] = n == 3
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert not read_table(tmp_path / "t.csv", target="label").caveats


def test_read_table__offers_amounts_only_where_the_decimal_mark_fits(tmp_path):
    text = "q;x\n€65.01;1,5\n€7.50;2,5\n"
    path = text_table(tmp_path, text)
    [note] = read_table(path).caveats
    assert "once this is mended: its column 'x' has decimal commas ('1,5')" in note
    schema = read_table(text_table(tmp_path, "q;x\n0,5;1,5\n", "l.csv")).schema
    words = "has '44.0' in line 2; it holds numbers .numbers of this table have decimal"
    other = text_table(tmp_path, "q;x\n0,5;44.0\n2,5;1,5\n", "n.csv")
    with pytest.raises(ValueError, match=f"{words} commas"):
        read_table(other, like=schema)
    other = text_table(tmp_path, "q,x\n1,44.0\n2,'1,5'\n".replace("'", '"'), "m.csv")
    with pytest.raises(ValueError, match=r"'1,5' in line 3.*have decimal points"):
        read_table(other, like=schema)


def test_read_table__names_a_column_that_a_feather_file_has_twice(tmp_path):
    names = ["a", "a", "label"]
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["x"])], names)
    feather.write_feather(rows, tmp_path / "t.feather")
    with pytest.raises(ValueError, match="has the column 'a' twice; rename one"):
        read_table(tmp_path / "t.feather", target="label")


def test_read_table__leaves_out_what_spreadsheets_add(tmp_path):
    path = text_table(tmp_path, "a,,b,label,\n1,,2,x,\n,,,,\n3,,4,y,\n, ,,,\n")
    table = read_table(path, target="label")
    assert table.columns == ("a", "b")
    assert table.y.tolist() == ["x", None, "y", None]
    left_out = "column 2 (no name, no values), column 5 (no name, no values)"
    assert ("left out", left_out) in table.notes
    [note] = table.caveats
    assert note.startswith(f"2 rows of {str(path)!r} have no value in any column")
    pool = write_pool(path, tmp_path / "p.zarr", target="label")
    assert pool.n_rows == 4


def test_read_table__says_what_labels_look_like(tmp_path):
    text = "x|label\n" + "".join(f"{n * n}.5|{n % 4},5\n" for n in range(40))
    [note] = read_table(text_table(tmp_path, text), target="label", task=None).caveats
    assert "as text, such as '0,5'; --number label reads it as numbers once" in note
    assert "its column 'x' decimal points" in note
    path = text_table(tmp_path, text.replace(".5|", "|"))
    note, *_ = read_table(path, target="label", task=None).caveats
    assert note.endswith("as text, such as '0,5'; --number label reads it as numbers")


DATES = [
    (["31/01/2020", "", "1/2/2020"], None, True, ["2020-01-31", "NaT", "2020-02-01"]),
    (["09/26/2023", "01/02/2023"], None, False, ["2023-09-26", "2023-01-02"]),
    (["1.2.2023", "NA", "03.04.2020"], None, True, ["2023-02-01", "NaT", "2020-04-03"]),
    (["13-01-2020 9:05"], None, True, ["2020-01-13 09:05:00"]),
    (["9/26/2023 2:30 PM", "1/2/2023 12:05 am"], None, False,
     ["2023-09-26 14:30:00", "2023-01-02 00:05:00"]),
    (["26/09/2023, 14:30:01.5"], None, True, ["2023-09-26 14:30:01.500000"]),
    (["01/02/2023"], True, True, ["2023-02-01"]),
    (["01/02/2023"], False, False, ["2023-01-02"]),
    (["31/01/2020"], False, True, ["2020-01-31"]),  # shown by the column itself
    (["1.2.2023"], False, True, ["2023-02-01"]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "named", "day_first", "times"), DATES)
def test_read_table__reads_dates_of_numbers_in_an_order_that_is_shown(
    texts, named, day_first, times, tmp_path
):
    path = text_table(tmp_path, "q|x\n" + "".join(f"{text}|1\n" for text in texts))
    table = read_table(path, day_first=named)
    assert table.schema.columns[0].form.day_first is day_first
    assert [str(value).removesuffix(" 00:00:00") for value in table.X["q"]] == times
    order = "day" if day_first else "month"
    assert ("dates", f"{order} first in q") in table.notes
    assert table.caveats == ()
    # Without the schema its dates stay text in a pool, since that is what comes back.
    write_pool(path, tmp_path / "p.parquet")
    stored = pd.read_parquet(tmp_path / "p.parquet")["q"].fillna("")
    assert [text.replace("NA", "") for text in stored] == [
        text.replace("NA", "") for text in texts
    ]
    pool, *_ = open_pool_like(str(tmp_path / "p.parquet"), table.schema)
    rows = pool.reduce(lambda X, rows: native(X), lambda *both: None, allow_nan=True)
    assert rows["q"].tolist() == table.X["q"].tolist()


def test_schema__reads_dates_of_other_tables_in_its_order(tmp_path):
    shown = text_table(tmp_path, "q|x\n26/09/2023|1\n")
    schema = TableSchema.from_json(read_table(shown).schema.to_json())
    other = text_table(tmp_path, "q|x\n1/2/2020|1\n2020-02-03|2\n", "u.csv")
    found = read_table(other, like=schema).X["q"]
    assert found.dt.strftime("%Y-%m-%d").tolist() == ["2020-02-01", "2020-02-03"]
    for text, pool in (("09/26/2023", "u.csv"), ("31/02/2020", "v.csv")):
        wrong = text_table(tmp_path, f"q|x\n01/02/2023|1\n{text}|1\n", pool)
        with pytest.raises(ValueError, match=f"has '{text}' .*; it holds dates, day f"):
            read_table(wrong, like=schema)
        with pytest.raises(ValueError, match=f"has '{text}' .*; it holds dates, day f"):
            write_pool(text_source(str(wrong), like=schema), tmp_path / "w.parquet")
    iso = read_table(text_table(tmp_path, "q|x\n2023-09-26|1\n")).schema
    every = text_table(tmp_path, "q|x\n26/09/2023|1\n", "w.csv")
    with pytest.raises(ValueError, match=r"it holds dates \(YYYY-MM-DD\)"):
        read_table(every, like=iso)
    with pytest.raises(ValueError, match=r"it holds dates \(YYYY-MM-DD\)"):
        write_pool(text_source(str(every), like=iso), tmp_path / "w.parquet")


def test_schema__converts_other_tables_and_names_every_wrong_value(tmp_path):
    text = "age,when,ok,code\n1,2020-01-01,yes,A1\n2,,no,07\n"
    schema = read_table(text_table(tmp_path, text)).schema
    assert TableSchema.from_json(schema.to_json()) == schema
    other = text_table(tmp_path, "code,ok,when,age,more\n7,YES,NA,?,1\n", "u.csv")
    frame = read_table(other, like=schema).X
    assert list(frame.columns) == ["age", "when", "ok", "code"]
    assert frame.isna().to_numpy().tolist() == [[True, True, False, False]]
    assert frame["code"].tolist() == ["7"]
    wrong = text_table(
        tmp_path, "age,when,ok,code\n1,2020-01-01,no,\nold,pending,true,x\n", "w.csv"
    )
    with pytest.raises(
        ValueError, match=r"column 'age' of .* has 'old' in line 3"
    ) as told:
        read_table(wrong, like=schema)
    assert "'when' of" in str(told.value)
    assert "has 'pending' in line 3; it holds dates" in str(told.value)
    assert "has 'true' in line 3; it holds 'yes' and 'no'" in str(told.value)
    with pytest.raises(ValueError, match="lacks the columns 'when', 'ok'"):
        read_table(text_table(tmp_path, "age,code\n1,x\n", "l.csv"), like=schema)


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "other", "version": 1}'])
def test_schema__that_is_damaged_is_refused(text):
    with pytest.raises(ValueError, match="schema is damaged; run `dsel select` again"):
        TableSchema.from_json(text)


def test_schema__of_dsel_0_2_is_read():
    columns = [
        {"name": name, "kind": kind, "words": words, "categories": None,
         "has_gaps": None, "day_first": day_first}
        for name, kind, words, day_first in (
            ("member", "true/false", ["yes", "no"], None),
            ("since", "dates", None, True),
        )
    ]  # fmt: skip
    others = {"target": "y", "classes": [0, 1], "ids": [], "dropped": []}
    record = {"columns": columns, **others, "gap_words": ["NA"], "is_typed": False}
    text = json.dumps(record | {"kind": "dsel table schema", "version": 1})
    assert TableSchema.from_json(text) == TableSchema(
        (
            ColumnSchema("member", Kind.TRUTH, Form(words=("yes", "no"))),
            ColumnSchema("since", Kind.DATES, Form(day_first=True)),
        ),
        "y",
        (0, 1),
        gap_words=("NA",),
    )


def test_schema__of_a_newer_version_is_refused():
    text = TableSchema(()).to_json().replace('"version": 2', '"version": 99')
    with pytest.raises(NewerRecordError, match="written in version 99"):
        TableSchema.from_json(text)


def test_read_table__keeps_the_types_of_formats_that_have_them(tmp_path):
    frame = pd.DataFrame({"a": ["1", "", "NA"], "b": [1.0, None, 3.0]})
    for name, write in (
        ("t.parquet", frame.to_parquet),
        ("t.feather", frame.to_feather),
        ("t.jsonl", lambda path: frame.to_json(path, orient="records", lines=True)),
    ):
        write(tmp_path / name)
        table = read_table(tmp_path / name, target="b")
        assert table.X["a"].tolist() == ["1", "", "NA"]
        assert table.y.tolist() == [1, None, 3]


def test_write_pool__keeps_as_text_what_would_not_come_back(tmp_path):
    text = "a,b,c,d\n1.50,1.5,007,2020-01-01\n2.25,2.0,7,2020-01-02\n"
    write_pool(text_table(tmp_path, text), tmp_path / "p.parquet")
    stored = pd.read_parquet(tmp_path / "p.parquet")
    assert stored["a"].tolist() == ["1.50", "2.25"]
    assert stored["b"].tolist() == [1.5, 2.0]
    assert stored["c"].tolist() == ["007", "7"]
    assert stored["d"].tolist() == [pd.Timestamp(f"2020-01-0{k}") for k in (1, 2)]


def test_read_table__loses_no_row_to_a_quote_in_a_name(tmp_path):
    table = read_table(text_table(tmp_path, 'a,5"\n1,"x\ny"\n2,z\n'))
    assert table.columns == ("a", '5"')
    assert table.X['5"'].tolist() == ["x\ny", "z"]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.feather"])
@pytest.mark.parametrize("column", ["row number", "nr"])
def test_read_table__names_running_whole_numbers_in_every_format(
    name, column, tmp_path
):
    shuffled = [(7 * k) % 20 for k in range(20)]
    steps = (range(5, 45, 2), range(190, -10, -10), [k / 10 for k in range(20)])
    squares = [k * k for k in range(20)]  # which rise from row to row
    others = [[k * k for k in shuffled], [k // 2 for k in range(20)]]
    for numbers in (range(5, 25), shuffled, range(20, 0, -1), *steps, squares, *others):
        frame = pd.DataFrame({"x": 0.5, column: numbers, "label": ["a", "b"] * 10})
        path = tmp_path / name
        write = {
            ".csv": lambda at, of=frame: of.to_csv(at, index=False),
            ".tsv": lambda at, of=frame: of.to_csv(at, index=False, sep="\t"),
            ".parquet": frame.to_parquet,
            ".feather": frame.to_feather,
        }[path.suffix]
        write(path)
        caveats = read_table(path, target="label").caveats
        if numbers in others:
            assert not caveats
        else:
            (line,) = caveats
            assert repr(column) in line
            assert ("that rise from row to row" in line) == (numbers is squares)
            assert f"--id {shlex.quote(column)}," in line
            assert line.endswith(f"--drop {shlex.quote(column)}")  # as a shell takes it


@pytest.mark.parametrize("twice", ["a", "label"])
def test_a_column_that_a_parquet_file_has_twice_is_named(twice, tmp_path):
    names = ["a", "b", "label", twice]
    wrong = pa.table([pa.array(list("uv")) for _ in names], names=names)
    (tmp_path / "parts").mkdir()
    parquet.write_table(wrong.select([0, 1, 2]), tmp_path / "parts" / "0.parquet")
    for path in (tmp_path / "t.parquet", tmp_path / "parts" / "1.parquet"):
        parquet.write_table(wrong, path)
    where = f"has the column {twice!r} twice; rename one"
    for path in (tmp_path / "t.parquet", tmp_path / "parts"):
        with pytest.raises(ValueError, match=where):
            read_table(path, target="label")
    with pytest.raises(ValueError, match=where):
        open_pool(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=where):
        open_pool(tmp_path / "parts")


def test_read_table__names_whole_numbers_that_look_like_dates(tmp_path):
    for days, is_named in ((["20200131", "19991231"], True), (["20201301"] * 2, False)):
        path = text_table(tmp_path, f"d,x\n{days[0]},0.5\n{days[1]},0.7\n")
        told = " ".join(read_table(path).caveats)
        assert ("'d' looks like dates (20200131)" in told) is is_named


COMMENTS = [
    ('# made by a tool\n# "5\n\na,b\n1,2\n', ("a", "b"), 2),
    ("# one, two, three\na;b\n1;2\n", ("a", "b"), 1),
    ("##format=1\n#chrom\tpos\nx\t2\n", ("#chrom", "pos"), 1),
    ("# a,b\n1,2\n", ("# a", "b"), 0),  # numpy.savetxt
    ("#a\n1\n2\n", ("#a",), 0),
    ("#1\r#2\ra,b\r1,2\r", ("a", "b"), 2),
]


@pytest.mark.parametrize(("text", "columns", "n_comments"), COMMENTS)
def test_read_table__leaves_out_comments_above_the_header(
    text, columns, n_comments, tmp_path
):
    path = text_table(tmp_path, text)
    table = read_table(path)
    assert table.columns == columns
    assert len(table.X) == (2 if text.startswith("#a") else 1)
    notes = [note for note in table.caveats if "begin" in note]
    assert len(notes) == (n_comments > 0)
    if n_comments > 1:
        assert f"{n_comments} lines above the header of" in notes[0]
    write_pool(path, tmp_path / "pool.parquet")
    assert open_pool(tmp_path / "pool.parquet").n_rows == len(table.X)


def test_read_table__names_the_line_that_may_be_the_header(tmp_path):
    path = text_table(tmp_path, "a,b\n\nx,label\n1,yes\n2,no\n")
    with pytest.raises(ValueError, match="If line 3 is the header, remove the lines"):
        read_table(path, target="label")
    with pytest.raises(ValueError, match=r"it has 'a', 'b'\.$"):
        read_table(path, target="yes")  # line 4 has a number, so it is no header


def test_read_table__takes_names_of_two_words_for_one_column(tmp_path):
    path = text_table(tmp_path, "full name\nJohn Smith\nAnn Lee\n")
    assert read_table(path).X["full name"].tolist() == ["John Smith", "Ann Lee"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": 1, "a": 2}', "line 2: an object has the name 'a' twice; rename one"),
        ('{"a": {"b": 1, "b": 1}}', "line 2: an object has the name 'b' twice"),
        ('{"a": 9007199254740993}\n{"a": 1.5}', "'a' has 9007199254740993, which is"),
        ('{"a": 1', "line 2: "),
    ],
)
def test_read_table__names_the_line_of_json_that_is_wrong(line, words, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"a": 0}}\n{line}\n')
    with pytest.raises(ValueError, match=words):
        read_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_read_table__reads_a_file_with_a_byte_order_mark(name, tmp_path):
    text = '{"a": 1.5}\n' if name.endswith("jsonl") else "a\n1.5\n"
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert read_table(tmp_path / name).columns == ("a",)


@pytest.mark.parametrize("dtype", ["i2", "f8"])
def test_open_pool__names_a_fill_value_that_xarray_cannot_decode(dtype, tmp_path):
    array = zarr.create_array(tmp_path / "p.zarr", data=X.astype(dtype))
    array.attrs["_FillValue"] = "NaN"
    with pytest.raises(ValueError, match="_FillValue 'NaN', which xarray cannot"):
        open_pool(tmp_path / "p.zarr")


PLAIN_LINES = "1, a\n2.5,\n-3,\u00e4\n" * 90_000  # more than what is read at once
QUOTED_LINES = '1,"a, b"\n"","say ""x"""\n3,"two\nlines"\n' * 50_000


@pytest.mark.parametrize(
    ("lines", "are_all_split"),
    [
        (PLAIN_LINES, True),
        (PLAIN_LINES.rstrip("\n"), True),
        (PLAIN_LINES.replace("\n", "\r\n"), True),
        (QUOTED_LINES + PLAIN_LINES, True),
        (PLAIN_LINES + "\n" + QUOTED_LINES, False),  # an empty line is no row
        (QUOTED_LINES + '4,b"c\n' + PLAIN_LINES, False),  # a quote inside of a value
        (QUOTED_LINES.replace("\n", "\r"), False),
    ],
)
def test_text_file__gives_tasks_the_same_rows_as_other_readers(
    tmp_path, lines, are_all_split
):
    (tmp_path / "t.csv").write_bytes(f"x,town\n{lines}".encode())
    [file] = text_source(str(tmp_path / "t.csv")).files
    parts = list(file.parts(["town", "x"], 30_000))
    assert all(isinstance(part.content, bytes) for part in parts) == are_all_split
    assert [part.n_rows for part in parts] == [part.texts().num_rows for part in parts]
    found = pa.Table.from_batches([part.texts() for part in parts])
    expected = pa.Table.from_batches(list(file.batches(["town", "x"])))
    assert found.combine_chunks().equals(expected.combine_chunks())


@pytest.mark.parametrize("name", ["t.feather", "t.jsonl"])
def test_write_pool__writes_files_with_types_as_parquet(name, tmp_path):
    frame = pd.DataFrame({
        "n": [2**60, 2**60 + 1, 3], "code": ["007", "", None], "label": list("aba"),
    })  # fmt: skip
    if name.endswith("feather"):
        frame.to_feather(tmp_path / name)
    else:
        frame.to_json(tmp_path / name, orient="records", lines=True)
    pool = write_pool(tmp_path / name, tmp_path / "p.parquet", target="label")
    assert pool.columns == ("n", "code")
    found = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert found == {"n": [2**60, 2**60 + 1, 3], "code": ["007", "", None]}
    with pytest.raises(FileExistsError, match="`path` must be free"):
        write_pool(tmp_path / name, tmp_path / "p.parquet")


def test_write_pool__refuses_json_lines_of_several_types(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": "x"}\n')
    with pytest.raises(ValueError, match=r"values of several types.*column a"):
        write_pool(tmp_path / "t.jsonl", tmp_path / "p.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_read_table__names_whole_numbers_that_floats_round(name, tmp_path):
    frame = pd.DataFrame({"n": [2**60 + 1, 5], "x": [0.5, 0.7], "label": ["a", "b"]})
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_json(tmp_path / name, orient="records", lines=True)
    (line,) = read_table(tmp_path / name, target="label").caveats
    assert line.startswith("column 'n' holds whole numbers that are too large")
    assert line.endswith("--drop n")


def test_read_table__refuses_labels_of_two_types(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1, "y": 1}\n{"a": 2, "y": "x"}\n')
    with pytest.raises(ValueError, match=r"`target` 'y' .* one type, got 1 and 'x'"):
        read_table(tmp_path / "t.jsonl", target="y")


def test_read_table__takes_whole_floats_of_npz_for_whole_numbers(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=[0.0, 1.0, np.nan, 1.0])
    assert read_table(tmp_path / "t.npz").y.tolist() == [0, 1, None, 1]


def test_read_table__says_of_both_formats_which_columns_predictions_have(tmp_path):
    frame = pd.DataFrame({"vertrag": ["a", "b"], "x": [1.5, 2.5], "y": ["n", "m"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for name in ("t.csv", "t.parquet"):
        table = read_table(tmp_path / name, target="y", ids=["vertrag"])
        assert dict(table.notes)["left out"] == "vertrag (kept for predictions)"


def test_read_table__takes_a_title_for_what_it_may_be(tmp_path):
    (tmp_path / "t.csv").write_text("Claims of 2025\nx\n1\n2\n")
    with pytest.raises(ValueError, match="if this is a title, remove the lines above"):
        read_table(tmp_path / "t.csv", target="label")


@pytest.mark.parametrize(
    ("labels", "word", "rows"),
    [
        (["0", "1", "NULL", "NULL"], "NULL", "2 of 4"),
        (["yes", "No", "?"], "?", "1 of 3"),
        (["007", "1.5", "n/a"], "n/a", "1 of 3"),
        (["cat", "dog", "?"], "?", "1 of 3"),
        (["good", "bad", "NA", "NA"], "NA", "2 of 4"),
    ],
)
def test_read_table__asks_whether_a_gap_word_is_a_class(tmp_path, labels, word, rows):
    lines = [f"{'NA' if k == 0 else k},{label}\n" for k, label in enumerate(labels)]
    path = text_table(tmp_path, "x,label\n" + "".join(lines))
    with pytest.raises(
        ValueError, match=f"has '{re.escape(word)}' in {rows} rows"
    ) as e:
        read_table(path, target="label")
    assert f"--unlabeled {shlex.quote(word)} if" in str(e.value)
    assert f"--class {shlex.quote(word)} if" in str(e.value)
    kept = read_table(path, target="label", gap_classes=[word])
    assert kept.y.tolist() == labels
    some = read_table(path, target="label", unlabeled=[word])
    assert [y is None for y in some.y.tolist()] == [word == label for label in labels]


@pytest.mark.parametrize("labels", [["-1", "0", "1"], ["-1.0", "a"]])
def test_read_table__asks_what_minus_one_means_as_plans_do(tmp_path, labels):
    lines = "".join(f"{k},{label}\n" for k, label in enumerate(labels))
    path = text_table(tmp_path, f"x,label\n{lines}")
    with pytest.raises(ValueError, match=f"write --unlabeled {labels[0]}, or give"):
        read_table(path, target="label")
    assert read_table(path, target="label", unlabeled=labels[:1]).y[0] is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["town,n,label", "Ulm,1,a", "Grand Total:,1,"], ["in column 'town', as no o"]),
        (["n,town,label", "1,Ulm,a", "2,Ulm,b", "Total,,"], ["line 4; remove that li"]),
        (["town,n,label", "Total,1,a", "Total,2,b"], []),
    ],
)
def test_read_table__names_a_last_row_of_sums(rows, words, tmp_path):
    path = text_table(tmp_path, "\n".join(rows))
    notes = [n for n in read_table(path, target="label").caveats if "has sums" in n]
    assert all(word in " ".join(notes) for word in words)
    assert bool(notes) == bool(words)


@pytest.mark.parametrize(
    "labels", [["None", "Some", "Marked"], ["NA", "NA", "EU"], ["-", "+", "+"]]
)
def test_read_table__takes_gap_words_among_names_as_classes(tmp_path, labels):
    lines = [f"{k},{label}\n" for k, label in enumerate(labels)]
    path = text_table(tmp_path, "x,label\n" + "".join(lines))
    assert read_table(path, target="label").y.tolist() == labels


def test_read_table__refuses_words_that_no_target_has(tmp_path):
    path = text_table(tmp_path, "x,label\n1,yes\n2,no\n")
    with pytest.raises(
        ValueError, match="--unlabeled 'NULL' must be a text of 'label'"
    ):
        read_table(path, target="label", unlabeled=["NULL"])
    pd.DataFrame({"x": [1, 2], "label": ["a", "b"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'NULL' must be a text of 'label'"):
        read_table(tmp_path / "t.parquet", target="label", unlabeled=["NULL"])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather", ".jsonl"])
@pytest.mark.parametrize(
    ("labels", "word"),
    [(["yes", "no", "nan"], "nan"), (["a", "b", "?"], "?"),
     (["1", "0", "NULL"], "NULL"), (["1", "0", "-1"], "-1")],
)  # fmt: skip
def test_read_table__asks_what_a_word_for_a_gap_means_in_every_format(
    ending, labels, word, tmp_path
):
    path = tmp_path / f"t{ending}"
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5] * 4, "label": labels * 4})
    if ending == ".csv":
        frame.to_csv(path, index=False)
    elif ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        getattr(frame, f"to_{ending[1:]}")(path)
    with pytest.raises(UndecidedError, match=f"has {re.escape(repr(word))} in 4 of 12"):
        read_table(path, target="label")
    table = read_table(path, target="label", unlabeled=[word])
    assert [str(label) for label in table.y] == [*labels[:2], "None"] * 4
    assert [str(label) for label in table.schema.classes] == sorted(labels[:2])
    if word != "-1":
        kept = read_table(path, target="label", gap_classes=[word])
        assert [*kept.y] == labels * 4


def test_read_table__takes_typed_whole_numbers_for_rows_without_a_label(tmp_path):
    pd.DataFrame({"x": [1, 2, 3], "y": [1, 0, -1]}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="y", unlabeled=["-1"])
    assert [*table.y] == [1, 0, None]
    assert table.schema.classes == (0, 1)


@pytest.mark.parametrize("ending", [".ndjson", ".jsonl.gz", ".ndjson.xz", ".jsonl.zip"])
def test_read_table__reads_compressed_json_lines(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    lines = '{"a": 1, "label": "x"}\n{"a": 2.5, "label": "y"}\n'
    if ending.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.jsonl", lines)
    else:
        opened = {"gz": gzip.open, "xz": lzma.open}.get(ending[-2:], open)
        with opened(path, "wt") as file:
            file.write(lines)
    table = read_table(path, target="label")
    assert (table.X.tolist(), list(table.y)) == ([[1], [2.5]], ["x", "y"])
    assert open_pool(path, columns=["a"]).n_rows == 2
    assert write_pool(path, tmp_path / "p.parquet", target="label").columns == ("a",)
    cut = tmp_path / f"cut{ending}"
    cut.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"cut.* cannot be read"):
        read_table(cut)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,q,label\n1,a,y\nx,q,label\n2,b,n\n", 3),  # joined by cat
        ("q,x,label\na,1,y\nb,2,n\n\nq,x,label\n", 5),
        ('"q",x,"label"\n"a\nb",1,"y"\n"q",x,label\n', 4),
    ],
)
def test_read_table__refuses_a_header_among_the_rows(text, line, tmp_path):
    """Else its name for the labels would be a class."""
    path = text_table(tmp_path, text)
    for read in (read_table, read_to_write):
        with pytest.raises(ValueError, match=f"its line {line} is its header again"):
            read(path, target="label")


def test_read_table__says_that_blanks_before_quotes_keep_them(tmp_path):
    path = text_table(tmp_path, 'x,q,label\n1, "a", y\n2, "b", n\n')
    table = read_table(path, target="label")
    assert table.X["q"].tolist() == ['"a"', '"b"']
    assert any("with the quotes of its values" in note for note in table.caveats)


@pytest.mark.parametrize("names", [["a", "a"], ["a"], ["a", "b", "c"]])
def test_read_table__refuses_other_names_than_there_are_columns(names, tmp_path):
    np.savez(tmp_path / "t.npz", X=X[:, :2], y=[0, 1, 1, 0], feature_names=names)
    group = zarr.create_group(tmp_path / "t.zarr", attributes={"columns": names})
    group.create_array("X", data=X[:, :2])
    group.create_array("y", data=np.array([0, 1, 1, 0]))
    for name in ("t.npz", "t.zarr"):
        with pytest.raises(ValueError, match=f"of .*{name}' must") as refused:
            read_table(tmp_path / name)
        assert "names" in str(refused.value)


def test_read_table__keeps_labels_apart_that_floats_round(tmp_path):
    labels = [Decimal(10**19 + 1), Decimal(10**19 + 2), None, Decimal(10**19 + 1)]
    table = pa.table({"x": [1, 2, 3, 4], "label": pa.array(labels, pa.decimal128(30))})
    parquet.write_table(table, tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet", target="label").y.tolist()
    assert read == [10**19 + 1, 10**19 + 2, None, 10**19 + 1]


def test_read_table__says_of_json_that_large_whole_numbers_are_rounded(tmp_path):
    lines = [json.dumps({"n": 2**64 + k, "label": "a"}) for k in range(30)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    [note] = read_table(tmp_path / "t.jsonl", target="label").caveats
    assert note.startswith("column 'n' holds whole numbers that are too large")


def test_read_table__reads_no_coordinates_of_zarr(tmp_path):
    """They may be times, which arrays of features cannot be."""
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-05", "2021-01-01"], "M8[ns]")
    data = {"X": (("row", "column"), X), "y": ("row", [0, 1, 1, 0])}
    stored = xr.Dataset(data, coords={"row": days})
    stored.to_zarr(tmp_path / "t.zarr", consolidated=False)
    table = read_table(tmp_path / "t.zarr")
    assert table.X.tolist() == X.tolist()
    assert table.y.tolist() == [0, 1, 1, 0]


def test_read_table__names_labels_that_look_equal(tmp_path):
    path = text_table(tmp_path, "x,label\n1,Ulm\n2,Ulm\u200b\n3,Bonn\n")
    with pytest.raises(ValueError, match="differ by Unicode forms, blanks or case"):
        read_table(path, target="label")


def test_read_table__reads_labels_of_svmlight_as_those_of_other_formats(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:2\nnan 1:3\n-1 1:4\n")
    assert read_table(path).y.tolist() == [1, None, -1]
    path.write_text(f"{2**53 + 1} 1:2\n{2**53} 1:3\n")  # floats make one class of them
    with pytest.raises(ValueError, match="it has a label above 9007199254740991"):
        read_table(path)


def test_read_table__says_of_every_format_which_row_names_predictions_keep(tmp_path):
    X = pd.DataFrame({"": [1, 2, 3], "a": [4, 5, 7], "label": ["x", "y", "x"]})
    X.to_parquet(tmp_path / "t.parquet", index=False)
    X.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        table = read_table(tmp_path / name, target="label")
        kept = "column 1, without a name (kept for predictions)"
        assert dict(table.notes)["left out"] == kept


def test_read_table__decodes_bytes_of_npz(tmp_path):
    names = {"feature_names": np.array([b"a", b"b"]), "classes": np.array([b"x", b"y"])}
    np.savez(tmp_path / "t.npz", X=X[:, :2], y=[0, 1, 1, 0], **names)
    table = read_table(tmp_path / "t.npz")
    assert (table.columns, table.y.tolist()) == (("a", "b"), ["x", "y", "y", "x"])
    np.savez(tmp_path / "v.npz", X=X, y=np.array([b"no", b"yes", b"yes", b"no"]))
    assert read_table(tmp_path / "v.npz").y.tolist() == ["no", "yes", "yes", "no"]
    np.savez(tmp_path / "w.npz", X=X, y=np.zeros(4, [("a", int), ("b", int)]))
    with pytest.raises(
        ValueError, match=r"one label for each row in 'y', got .* a, b;"
    ):
        read_table(tmp_path / "w.npz")


def test_repr__of_a_wide_table_and_its_formats_is_short(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 300))).add_prefix("c")
    X.assign(label=np.where(X.c0 > 0, "yes", "no")).to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv", target="label")
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, X, table.y, random_state=0
    )
    search, outcome = plan.search, plan.run(n_jobs=1)
    assert repr(table).startswith("<Table: 60 rows x 300 columns>\ncolumns   c0, c1, ")
    # Fields of every column, or of every row, fill a screen.
    for shown in (
        table,
        table.schema,
        outcome.input_format,
        outcome.labeled,
        search.labeled.schema,
        search.scheme,
        search.scheme.splits[0],
    ):
        assert len(repr(shown)) < 400


def test_read_table__gives_types_of_pyarrow_the_common_ones(tmp_path):
    days = pd.date_range("2024-01-01", periods=4, tz="Europe/Berlin")
    columns = {
        "known": ([True, False, True, True], pa.bool_(), "bool"),
        "gap": ([True, None, True, False], pa.bool_(), "object"),
        "zoned": (days, pa.timestamp("us", "Europe/Berlin"), "datetime64[us, UTC]"),
        "day": (days.date, pa.date32(), "datetime64[us]"),
    }
    frame = pd.DataFrame(
        {
            name: pd.array(values, dtype=pd.ArrowDtype(kind))
            for name, (values, kind, _) in columns.items()
        }
    ).assign(label=LABELS)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    read = native(read_table(tmp_path / "t.parquet", target="label").X)
    assert {name: str(kind) for name, kind in read.dtypes.items()} == {
        name: kind for name, (_, _, kind) in columns.items()
    }
    assert read["gap"].tolist() == [True, None, True, False]
    assert read["zoned"].tolist() == days.tolist()
