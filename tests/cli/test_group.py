from click.testing import CliRunner

from dsel.cli import main
from dsel.cli.group import COMMANDS


def test_main__tells_of_a_missing_package_in_one_line(monkeypatch):
    def command(**_):
        raise ModuleNotFoundError("a report needs matplotlib, which is not installed")

    monkeypatch.setattr("dsel.cli.report.command.callback", command)
    found = CliRunner().invoke(main, ["report", "results"])

    assert found.exit_code == 1
    assert found.output == (
        "Error: a report needs matplotlib, which is not installed\n"
    )


def test_main__lists_every_command():
    found = CliRunner().invoke(main, ["--help"])
    assert all(name in found.output for name in COMMANDS)
