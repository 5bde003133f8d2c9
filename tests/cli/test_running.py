"""How commands print what an object has to say."""

import click
import pytest
from click.testing import CliRunner

from dsel.cli.running import print_rows

FACTS = [
    ("Warning", "a class is missed"),
    ("", "Error at most 4.2%"),
    ("", "Folds of a line without a name are not dim"),
    ("Compare", "a hold-out set"),
    ("Assumes", "random draws"),
    ("Next", "dsel predict"),
]


@click.command
def command():
    print_rows(FACTS)
    print_rows(FACTS[-2:])


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}])
def test_print_facts__has_the_number_in_bold_and_the_rest_dim(variables):
    shown = CliRunner().invoke(command, color=True, env=variables).output
    plain = CliRunner().invoke(command).output
    assert click.unstyle(shown) == plain
    assert plain.splitlines()[1] == "Error at most 4.2%"
    by_weight = {code: shown.count(f"\x1b[{code}m") for code in (1, 2, 22)}
    assert by_weight == ({1: 0, 2: 0, 22: 0} if variables else {1: 1, 2: 3, 22: 0})
    assert variables or "\x1b[1mError at most 4.2%\x1b[0m" in shown
