import ast
import json
import re
import shlex
import signal
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock

import click
import numpy as np
import pandas as pd
import pytest
import zarr

import dsel
from dsel import option_values
from dsel.cli.commands.select_command import SECTIONS
from dsel.cli.exit_status import ExitStatus
from dsel.cli.group import COMMANDS, LazyGroup
from dsel.cli.named_models import MODELS, REGRESSORS
from dsel.cli.option_types import Fraction
from dsel.cli.options import WORDS_OF_SHELL, shell_names
from dsel.errors import ClusterLostError, DselWarning
from dsel.search.design.certificate_methods import METHODS
from tests.shell import run


def test_main__lists_every_command():
    found = run("--help")
    for name in ("audit", "demo", "plan-bound", "pool", "report", "select"):
        assert f"\n  {name} " in found.output


def test_select__has_a_help_of_sections_and_each_option_once():
    text = run("select", "--help").output
    titles = [line for line in text.splitlines() if re.fullmatch(r"\w.*:", line)]
    assert titles == [*(f"{title}:" for title in SECTIONS)]
    # What a newcomer needs comes first.
    first = text.partition("\nModel:\n")[0]
    assert re.findall(r"\n  (--[\w-]+) ", first) == [
        *("--target", "--pool", "--id", "--groups", "--out"),
    ]
    command = import_module("dsel.cli.commands.select_command").command
    options = [p.opts[0] for p in command.params if p.param_type_name == "option"]
    assert [text.count(f"\n  {name} ") for name in options] == [1] * len(options)
    assert "Examples:\n    dsel select labeled.csv" in text


def test_main__suggests_a_command_and_without_any_shows_the_help_once():
    found = run("selct")
    assert found.exit_code == 2
    assert found.output.endswith("No such command 'selct'; did you mean 'select'?\n")
    alone = run()
    assert alone.exit_code == 2
    assert alone.output == run("--help").output


WRONG_WORDS = [
    (
        "plan-bound 600 10000 --error 6",
        "--error must be strictly between 0 and 1, got 6.0",
    ),
    ("plan-bound 5% 100", "write a number of rows, such as 600."),
    ("plan-bound 600 10000 --error 6%", "6% is written 0.06."),
    ("plan-bound 600 10000 --wanted 12.5%", "12.5% is written 0.125."),
    ("plan-bound 600 10000 --error 150%", "between 0 and 1, got 1.5"),
    ("plan-bound 600 10000 --delta 95", "did you mean 0.05, which is 95% confidence?"),
    ("plan-bound 600 10000 --delta 95%", "did you mean 0.05, which is 95% confidence?"),
    ("plan-bound 600 10000 --delta 5%", "5% is written 0.05."),
    ("plan-bound 600 10000 --delta 5", "5% is written 0.05."),
    ("compare --delta 0.7 old new --pool pool --out c", "did you mean 0.3, which"),
    ("monitor results new.csv --level x", "'x' is no number"),
    ("monitor results new.csv --level 0.01%", "--level must be between 0.001, the"),
    ("monitor results new.csv --level 70%", "and 0.5, got 0.7; 5% is written 0.05."),
    ("monitor results new.csv --level 12.5", "12.5% is written 0.125."),
    ("predict results new.csv --out p.xlsx", "write p.csv."),
    ("predict . .", "Missing option '--out'. File to write, which ends in"),
    ("predict results new.csv --out p.cvs", "did you mean '.csv'?"),
]


OF_TEXTS = [
    (name, option)
    for name in COMMANDS
    for option in import_module(
        f"dsel.cli.commands.{name.replace('-', '_')}_command"
    ).command.params
    if option.param_type_name == "option" and option.type.name in ("text", "path")
]


@pytest.mark.parametrize(
    ("name", "option"), OF_TEXTS, ids=[f"{name} {o.opts[0]}" for name, o in OF_TEXTS]
)
def test_main__refuses_an_empty_value_of_every_option_by_its_name(
    name, option, tmp_path
):
    arguments = {"plan-bound": (9, 9), "audit": (), "demo": ()}
    required = {
        "predict": ("--out", "p.csv"),
        "compare": ("--pool", tmp_path, "--out", "c"),
    }
    paths = (tmp_path,) * {"select": 1, "report": 1}.get(name, 2)
    words = (*arguments.get(name, paths), *required.get(name, ()))
    found = run(name, *words, option.opts[0], "")
    assert found.exit_code == ExitStatus.NOT_UNDERSTOOD
    last = " ".join(found.output.split()).partition("Error: ")[2]
    assert last.startswith(f"Invalid value for '{option.opts[0]}': ")
    assert "''" in last


REPEATS = [
    ("predict r n --out a.csv --out=b.csv", "--out takes one value, got 'a.csv' and"),
    ("select t --groups a --groups=b", "--groups takes one value, got 'a' and 'b'"),
    ("select t --dayfirst --monthfirst", "--dayfirst and --monthfirst contradict"),
    ("plan-bound 9 9 --error 0.1 --error 0.1", "--error takes one value, got"),
    ("demo --seed 1 --seed 2", "--seed takes one value, got '1' and '2'; leave out"),
]


@pytest.mark.parametrize(
    "words",
    [
        "--id a,b --drop c --drop d --number e,f --text g --text h --model svm,forest",
        "--id a --id=b --drop c,d --number e --number f --text g,h --model svm "
        "--model forest",
        "--id=a,b --drop 'c, d' --number=e,f --text 'g ,h' --model 'svm, forest'",
    ],
)
def test_lists__have_commas_or_are_given_several_times(words, tmp_path):
    names = list("abcdefgh")
    row = {**dict.fromkeys(names, "1.10"), "e": "$1.50", "f": "$2", "x": 1}
    frame = pd.DataFrame([{**row, "label": k} for k in ("no", "yes") * 40])
    frame.assign(x=range(80)).to_csv(tmp_path / "t.csv", index=False)
    done = run("select", tmp_path / "t.csv", "--target", "label", "--plan", "--json",
               *shlex.split(words))  # fmt: skip
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)["plan"]
    assert plan["model"] == "svm,forest"
    assert plan["columns"] == "3 of numbers (e, f, x), 2 of values (g, h)"


@pytest.mark.parametrize(("words", "message"), REPEATS)
def test_main__refuses_two_values_of_an_option_that_takes_one(
    words, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in "rnt":
        Path(name).write_text("a\n")
    found = run(*words.split())
    assert found.exit_code == ExitStatus.NOT_UNDERSTOOD
    assert message in " ".join(found.output.split())


def texts_of_messages():
    root = Path(dsel.__file__).parent
    for path in root.rglob("*.py"):
        if path != root / "cli/options.py":
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_names__each_is_in_a_message_so_that_no_rule_outlives_it():
    texts = "\n".join(texts_of_messages())
    composed = {  # where they are raised or printed
        "model__regressor__", "model__", "deploy='all_rows'",
        "numbers of certified_report()", "numbers of report_by_value()",
        "and report_by_value() share",
    }  # fmt: skip
    assert [word for word in {*WORDS_OF_SHELL} - composed if word not in texts] == []


@pytest.mark.parametrize("columns", [50, 60, 70, 80])
def test_help__ends_no_line_inside_of_an_option_or_a_command(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in COMMANDS:
        for line in run(name, "--help").output.splitlines():
            assert not line.endswith(("-", " dsel", "--loss", "--out", "--grid"))


@pytest.mark.parametrize("name", [n for n in COMMANDS if n != "pool"])
def test_shell_names__has_the_option_of_each_argument(name):
    command = LazyGroup().get_command(None, name)
    known = shell_names(command)
    for option in command.params:
        if isinstance(option, click.Option):
            assert known[f"`{option.name}`"].startswith("--")


def test_select__a_second_table_without_option_names_pool(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n")
    found = run("select", tmp_path / "t.csv", tmp_path / "t.csv", "--target", "y")
    assert found.exit_code == ExitStatus.NOT_UNDERSTOOD
    assert "name the unlabeled rows by --pool" in " ".join(found.output.split())


def test_main__refuses_a_list_of_no_names_but_takes_a_comma_as_separator(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n")
    found = run("select", tmp_path / "t.csv", "--target", "y", "--drop", " ,")
    assert "Invalid value for '--drop': ' ,' is empty" in found.output
    found = run("select", tmp_path / "t.csv", "--target", "y", "--sep", ",")
    assert "is empty" not in found.output


@pytest.mark.parametrize(("words", "message"), WRONG_WORDS)
def test_main__ends_with_2_where_no_table_is_needed_to_refuse(words, message):
    found = run(*words.split())
    assert found.exit_code == ExitStatus.NOT_UNDERSTOOD
    assert message in " ".join(found.output.split())


FRACTIONS = [
    param
    for name in COMMANDS
    for param in import_module(
        f"dsel.cli.commands.{name.replace('-', '_')}_command"
    ).command.params
    if isinstance(param.type, Fraction)
]
PERCENTAGES = ["x", "0.01%", "5", "5%", "45%", "70%", "95", "95%", "99.99999", "1e-7%"]


@pytest.mark.parametrize("text", [*PERCENTAGES, "99.99999999999999%", "1e9999999"])
def test_fractions__an_advice_can_be_typed(text):
    assert {param.opts[0] for param in FRACTIONS} >= {"--level", "--delta", "--wanted"}
    for param in FRACTIONS:
        with pytest.raises(click.BadParameter) as refused:
            param.type.convert(text, param, None)
        advice = re.findall(
            "(?:is written|did you mean) ([^,;]*[0-9])", refused.value.message
        )
        for written in advice:
            assert 0 < param.type.convert(written, param, None) < 1


def test_main__lists_every_exit_status_as_the_page_does():
    page = Path(__file__).parents[2] / "docs/using/two_tables.md"
    table = page.read_text("utf-8").partition("## Exit status")[2]
    rows = [f"| {int(status)} | {status.meaning} |" for status in ExitStatus]
    assert re.findall(r"^\| \d+ \|.*$", table, re.MULTILINE) == rows
    shown = " ".join(run("--help").output.split())
    for status in ExitStatus:
        assert f" {int(status)} {status.meaning}" in shown


def test_main__prints_no_traceback_of_a_read_that_zarr_left(tmp_path):
    group = zarr.create_group(tmp_path / "g")
    for name in "Xy":
        group.create_array(name, data=np.zeros(3))
    (tmp_path / "g" / "X" / "zarr.json").unlink()
    (tmp_path / "g" / "y" / "zarr.json").write_text("{")
    command = [sys.executable, "-m", "dsel", "select", str(tmp_path / "g")]
    done = subprocess.run(command, capture_output=True, text=True)
    # Which of the two is read first is chance; zarr may warn of the other before.
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")


def calling(monkeypatch, does):
    """Return how `dsel report` ends that does something else."""
    monkeypatch.setattr("dsel.cli.run_report.run", does)
    return run("report", "memory://results")


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (DselWarning, "Warning: two lines\n"),
        (UserWarning, "two lines (UserWarning of "),
    ],
)
def test_main__shows_a_warning_in_one_line(monkeypatch, kind, shown):
    def command(**_):
        warnings.warn("two\nlines", kind, stacklevel=2)

    with warnings.catch_warnings(action="default"):
        found = calling(monkeypatch, command)
    assert shown in found.stderr
    assert found.output.count("\n") == 1


def test_main__is_interrupted_while_a_class_is_made(monkeypatch):
    class Descriptor:
        def __set_name__(self, owner, name):
            signal.raise_signal(signal.SIGTERM)

    def make_class(**options):
        type("Made", (), {"attribute": Descriptor()})

    found = calling(monkeypatch, make_class)
    assert (found.exit_code, found.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ModuleNotFoundError("a report needs matplotlib"), 1, "needs matplotlib"),
        (ValueError("two\nlines"), 1, "Error: two lines\n"),
        (ClusterLostError("all workers are gone"), 4, "all workers are gone"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_main__ends_with_one_line_and_a_code(monkeypatch, error, code, message):
    found = calling(monkeypatch, Mock(side_effect=error))
    assert found.exit_code == code
    assert message in found.output
    assert len(found.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("select rows.csv --random-state 0", "--seed is the seed of all random draws."),
        ("select rows.csv --n-jobs=2", "--workers starts processes."),
        ("select rows.csv --test-size 0.2", "each of the folds (--cv) tests a model."),
        ("select rows.csv --scoring f1", "--loss names what is ranked and bounded."),
        ("plan-bound 400 --confidence 0.99", "--delta 0.05 is 95% confidence."),
        ("plan-bound 400 --groups who", "N_LABELED is the number of groups."),
    ],
)
def test_main__names_its_own_option_for_one_of_other_programs(words, way):
    done = run(*words.split())
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].endswith(f" {way}")


def test_main__names_no_option_that_the_command_lacks():
    assert run("report", "results", "--random-state", "0").stderr.endswith(
        "Error: No such option '--random-state'.\n"
    )


HEAVY = ("dask", "pandas", "scipy", "sklearn", "xarray", "zarr")
WAYS = [
    *([name, "--help"] for name in COMMANDS),
    *([name, "--hlp"] for name in COMMANDS),
    ["pool", "build", "--help"],
    ["pool", "info", "--help"],
]


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
def test_main__loads_nothing_heavy_for_help_and_misspelled_options(words):
    done, loaded = in_a_process(*words)
    assert done.returncode == (0 if "--help" in words else 2)
    assert ("No such option" in done.stderr) == ("--hlp" in words)
    assert not loaded & {*HEAVY}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--labeled 400", "plan-bound 400"),
        ("--unlabeled=90 --labeled 400 --error 0.2", "plan-bound 400 90 --error 0.2"),
        ("400 --unlabeled 90", "plan-bound 400 90"),
    ],
)
def test_main__offers_the_command_whose_arguments_were_written_as_options(words, line):
    done = run("plan-bound", *words.split())
    assert done.exit_code == 2
    assert f"written without an option.\nRun: dsel {line}\n" in done.stderr


def test_main__says_how_groups_are_planned():
    found = run("plan-bound", "400", "--groups", "80")
    assert "Of rows in groups N_LABELED is the number of groups." in found.output


def test_main__says_what_options_of_other_programs_are_here():
    found = run("select", "t.csv", "--confidence", "0.9")
    assert "'--confidence'. --delta 0.05 is 95% confidence." in found.output


MISSING = [
    ["select", "old.cvs", "--target", "y"],
    ["select", "old.csv", "--target", "y", "--pool", "old.cvs"],
    ["select", "old.csv", "--target", "y", "--baseline", "old.cvs"],
    ["report", "old.cvs"],
    ["predict", "old.cvs", "old.csv", "--out", "p.csv"],
    ["predict", "old.csv", "old.cvs", "--out", "p.csv"],
    ["monitor", "old.cvs", "old.csv"],
    ["monitor", "old.csv", "old.cvs"],
    ["monitor", "old.csv", "old.csv", "--labeled", "old.cvs"],
    ["label", "old.cvs", "old.csv"],
    ["label", "old.csv", "old.cvs"],
    ["compare", "old.cvs", "old.csv", "--pool", "old.csv", "--out", "c"],
    ["compare", "old.csv", "old.cvs", "--pool", "old.csv", "--out", "c"],
    ["compare", "old.csv", "old.csv", "--pool", "old.cvs", "--out", "c"],
    [
        "compare",
        *2 * ["old.csv"],
        "--pool",
        "old.csv",
        "--out",
        "c",
        "--seen",
        "old.cvs",
    ],
    ["pool", "build", "old.cvs", "p.zarr"],
    ["pool", "build", "old.csv", "p.zarr", "--like", "old.cvs"],
    ["pool", "info", "old.cvs"],
]


@pytest.mark.parametrize("words", MISSING, ids=" ".join)
def test_main__names_the_path_that_was_meant(words, tmp_path, monkeypatch):
    (tmp_path / "old.csv").touch()
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.exit_code == 2
    end = "there is nothing at 'old.cvs'; did you mean 'old.csv'?\n"
    assert done.stderr.endswith(end)


@pytest.mark.parametrize("words", [["report", "x"], ["select", "x", "--target", "y"]])
def test_main__loads_nothing_heavy_for_a_missing_path(words, tmp_path):
    done, loaded = in_a_process(*words, cwd=tmp_path)
    assert done.stderr.endswith("there is nothing at 'x'.\n")
    assert not loaded & {*HEAVY}


def in_a_process(*words, cwd=None):
    """Run `dsel` in a process; return how it ended, and the packages that it loaded."""
    script = (
        "import atexit, sys\n"
        "names = lambda: {name.partition('.')[0] for name in sys.modules}\n"
        "atexit.register(lambda: print(*names()))\n"
        "from dsel.cli import main\n"
        "main(sys.argv[1:], prog_name='dsel')\n"
    )
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    return done, {*done.stdout.splitlines()[-1].split()}


def test_option_values__are_those_of_models_and_methods():
    assert [*METHODS] == [*option_values.CERTIFICATES]
    assert [*MODELS] == [*option_values.CLASSIFIERS]
    assert [*REGRESSORS] == [*option_values.REGRESSORS]


def test_main__knows_a_comparison_a_swap_and_a_folder_of_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compared").mkdir()
    (tmp_path / "compared" / "comparison.json").write_text("{}")
    (tmp_path / "tables").mkdir()
    for name, header in (("a", "x,y"), ("b", "x,z")):
        (tmp_path / "tables" / f"{name}.csv").write_text(f"{header}\n1,2\n")
    for words, line in (
        ("predict compared tables/a.csv --out p.csv", "holds a comparison of two mod"),
        ("predict tables/a.csv compared --out p.csv", "are the arguments swapped?"),
        ("select tables --target y", "'tables' is a folder, whose 2 files are read as"),
        ("pool info nowhere.csv", "there is nothing at 'nowhere.csv'."),
    ):
        done = run(*words.split())
        assert done.exit_code != 0
        assert line in done.output
        assert "`place`" not in done.output
