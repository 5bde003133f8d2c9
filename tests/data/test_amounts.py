"""Columns of amounts, such as $1,234.50 and 18%, that are read as numbers."""

import numpy as np
import pandas as pd
import pytest

from dsel.data import write_pool
from dsel.data.frames import native
from dsel.data.like import open_pool_like
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.data.text_columns.kinds import Form, Kind
from dsel.data.text_tables import text_source


def written(folder, values, name="t.csv", sep=";", more=()):
    """Write a table with a column of amounts and one of text, and further lines."""
    lines = [sep.join(["a", "x"]), *(f'"{value}"{sep}k' for value in values), *more]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


READ = [
    (["$900.89", "$1,234.50", "", "-$5", "($12)", "$ -3.5"], ",",
     ("$", "."), [900.89, 1234.5, np.nan, -5, -12, -3.5]),
    (["1.234,50 €", "12 €", "NA", "-3 €"], ";", ("€", ","), [1234.5, 12, np.nan, -3]),
    (["1.234,50 €", "0,99 €"], ",", ("€", ","), [1234.5, 0.99]),
    (["CHF 12", "CHF 1'234.50"], ";", ("CHF", "."), [12, 1234.5]),
    (["18%", "2.5 %", "+0.1%"], ",", ("%", "."), [18, 2.5, 0.1]),
    (["£1,200", "£3"], ",", ("£", "."), [1200, 3]),
    (["1,200", "3", "4.5"], ",", ("", "."), [1200, 3, 4.5]),
    (["1.234", "1.234.567", "12"], ";", ("", ","), [1234, 1234567, 12]),
    (["1\u202f234,5\u00a0€", "7\u00a0€"], ";", ("€", ","), [1234.5, 7]),
    (["₹12,34,567.5", "₹5"], ",", ("₹", "."), [1234567.5, 5]),
    (["R$ 10", "R$ 2,5"], ";", ("R$", ","), [10, 2.5]),
    (["12 km", "3.5 km"], ",", ("km", "."), [12, 3.5]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "sep", "amounts", "numbers"), READ)
def test_read_table__reads_amounts_of_one_sign_as_numbers(
    values, sep, amounts, numbers, tmp_path
):
    path = written(tmp_path, values, sep=sep)
    table = read_table(path, number=["a"])
    column = table.schema.columns[0]
    form = None if amounts is None else Form(sign=amounts[0], decimal=amounts[1])
    assert (column.kind, column.form) == (Kind.NUMBERS, form)
    np.testing.assert_array_equal(table.X["a"], numbers)
    assert not table.caveats
    assert ("amounts", f"{column.noun} in a") in table.notes
    [note] = read_table(path).caveats
    assert note.endswith("; --number a reads it as numbers")
    schema = TableSchema.from_json(table.schema.to_json())
    assert schema == table.schema
    # Other tables are read in the same way, whichever shows its decimal mark.
    np.testing.assert_array_equal(read_table(path, like=schema).X["a"], numbers)
    frame = pd.DataFrame({"a": values, "x": "k"}).replace("", None)
    for name in ("p.parquet", "p.feather"):
        getattr(frame, f"to_{name[2:]}")(tmp_path / name)
        typed = read_table(tmp_path / name, number=["a"])
        assert typed.schema.columns[0].form == form
        np.testing.assert_array_equal(typed.X["a"], numbers)
        found = read_table(tmp_path / name, like=schema).X["a"]
        np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize("is_like", [False, True])
def test_pools__keep_amounts_as_texts_that_a_schema_converts(is_like, tmp_path):
    schema = read_table(written(tmp_path, ["$1", "$2.50"]), number=["a"]).schema
    rows = written(tmp_path, ["$1,000", "", "-$7"], "u.csv")
    pool = tmp_path / "p.parquet"
    write_pool(text_source(str(rows), like=schema if is_like else None), pool)
    assert pd.read_parquet(pool)["a"].fillna("").tolist() == ["$1,000", "", "-$7"]
    opened, *_ = open_pool_like(str(pool), schema)
    found = opened.reduce(lambda X, rows: native(X), lambda *both: None, allow_nan=True)
    np.testing.assert_array_equal(found["a"], [1000, np.nan, -7])
    with pytest.raises(TypeError, match=r"'a' holds '\$1,000'.*ends in .parquet"):
        write_pool(text_source(str(rows), like=schema), tmp_path / "p.zarr")


WRONG = [
    (["$1", "$2", "€3"], "has '€3' in line 4; it holds numbers with '\\$'"),
    (["$1", "$2", "3"], "has '3' in line 4"),
    (["$1", "$2", "free"], "has 'free' in line 4"),
    (["$1", "$2.5", "$1.234,50"], "'\\$1.234,50'.* decimal commas|decimal commas"),
    (["18%", "2%", "0.3"], "has '0.3' in line 4; it holds numbers with '%'"),
    (["$1", "$1,23,4.5", "$2.5"], "has '\\$1,23,4.5' in line 3"),
    (["$007", "$8"], "has '\\$007' in line 2"),
    (["$99999999999999999999", "$8"], "has '\\$9999"),
    (["1.234 €", "5 €"], "'1.234 €', which may be 1234 or 1.234"),
    (["town", "city"], "'city' in other rows; it holds numbers without a sign"),
    (["-$-5", "$1"], "has '-\\$-5'"),
    (["($5", "$1"], "has '\\(\\$5'"),
]


@pytest.mark.parametrize(("values", "words"), WRONG)
def test_read_table__refuses_what_is_no_amount_of_the_column(values, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_table(written(tmp_path, values), number=["a"])


def test_schema__refuses_other_amounts_in_other_tables(tmp_path):
    schema = read_table(written(tmp_path, ["18%", "2.5%"]), number=["a"]).schema
    for value in ("18", "18 €", "soon"):
        path = written(tmp_path, ["1%", value], "u.csv")
        with pytest.raises(ValueError, match=f"has '{value}' in line 3.* with '%'"):
            read_table(path, like=schema)
        with pytest.raises(ValueError, match=f"has '{value}' in line 3.* with '%'"):
            write_pool(text_source(str(path), like=schema), tmp_path / "p.parquet")
        frame = pd.DataFrame({"a": ["1%", value], "x": "k"})
        frame.to_parquet(tmp_path / "q.parquet")
        with pytest.raises(ValueError, match=f"has '{value}' in row 1.* with '%'"):
            read_table(tmp_path / "q.parquet", like=schema)
        with pytest.raises(ValueError, match=f"has '{value}' in row 1.* with '%'"):
            open_pool_like(str(tmp_path / "q.parquet"), schema)
    frame.assign(a=0.18).to_parquet(tmp_path / "n.parquet")
    for read in (
        lambda path: read_table(path, like=schema),
        lambda path: open_pool_like(str(path), schema),
    ):
        with pytest.raises(ValueError, match="with '%' in the labeled table, and pla"):
            read(tmp_path / "n.parquet")


def test_schema__takes_the_mark_of_the_labeled_table_where_none_is_shown(tmp_path):
    schema = read_table(written(tmp_path, ["1.234,50 €"]), number=["a"]).schema
    path = written(tmp_path, ["1.234 €"], "u.csv")
    assert read_table(path, like=schema).X["a"].tolist() == [1234]
    path = written(tmp_path, ["1,234 €", "1.50 €"], "u.csv")  # shows another one
    assert read_table(path, like=schema).X["a"].tolist() == [1234, 1.5]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_read_table__reads_amounts_as_targets(name, tmp_path):
    path = written(tmp_path, ["$1,234.50", "", "$3"])
    if name == "t.parquet":
        frame = pd.read_csv(path, sep=";")
        path = tmp_path / name
        frame.to_parquet(path)
    table = read_table(path, target="a", number=["a"], task=None)
    np.testing.assert_array_equal(table.y, [1234.5, np.nan, 3])
    assert table.schema.target_form == Form(sign="$", decimal=".")
    with pytest.raises(ValueError, match="--number names 'a', the target"):
        read_table(path, target="a", number=["a"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"number": ["b"]}, "--number names 'b', which is no column"),
        ({"number": ["a"], "drop": ["a"]}, "--number names 'a', which another option"),
        ({"number": ["a"], "ids": ["a"]}, "--number names 'a', which another option"),
    ],
)
def test_read_table__refuses_names_of_no_feature_as_amounts(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_table(written(tmp_path, ["$1"]), **options)


@pytest.mark.parametrize(
    ("values", "end"),
    [
        (["$1", "$2", "free"], " --gap free reads it as numbers"),
        (
            ["$1", "$2", "€3"],
            " reads it as numbers once '€3' in line 4 is corrected; --gap '€3' reads "
            "it as a gap",
        ),
        (
            ["$1", "$2", "€3", "€4", "$4", "$5"],
            " reads it as numbers once '€3' in line 4 is corrected",
        ),
        (["$1", "$2", "3"], " reads it as numbers once '3' in line 4 is corrected"),
    ],
)
def test_read_table__says_what_keeps_a_column_from_being_amounts(values, end, tmp_path):
    [note] = read_table(written(tmp_path, values)).caveats
    assert note.endswith(f"; --number a{end}")


def test_read_table__reads_amounts_that_are_categories(tmp_path):
    """Parquet keeps the categories of pandas, and dictionaries of Arrow."""
    frame = pd.DataFrame({"a": ["$1", "$2.50", "$1", None], "x": "k"})
    frame.astype({"a": "category"}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", number=["a"])
    np.testing.assert_array_equal(table.X["a"], [1, 2.5, 1, np.nan])
    again = read_table(tmp_path / "t.parquet", like=table.schema)
    np.testing.assert_array_equal(again.X["a"], table.X["a"])
    pool, *_ = open_pool_like(str(tmp_path / "t.parquet"), table.schema)
    found = pool.reduce(lambda X, rows: native(X), lambda *both: None, allow_nan=True)
    np.testing.assert_array_equal(found["a"], table.X["a"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "time"),
        ([True, False], "truth value"),
        ([[1], [2]], "mixed values such as array"),
    ],
)
def test_read_table__refuses_other_types_as_amounts(values, kind, tmp_path):
    pd.DataFrame({"a": values, "x": "k"}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=f"--number names 'a', which holds {kind}"):
        read_table(tmp_path / "t.parquet", number=["a"])
