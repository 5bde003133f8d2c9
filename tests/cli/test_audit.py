"""The audit's command."""

from tests.shell import run, succeed


def test_audit_command__prints_a_table_and_a_verdict():
    settings = ("luckiest fold", "holdout, lucky folds")
    shown = succeed("audit", *settings, "--draws", 30, "--delta", 0.5)
    lines = shown.output.splitlines()
    assert lines[0] == "Every certificate held in 30 draws of each setting."
    assert lines[2].split() == ["certified", "failures", "p_value"]
    assert [line.split()[-3] for line in lines[4:6]] == ["30", "30"]


def test_audit_command__ends_with_1_where_a_control_is_not_caught():
    shown = run("audit", "luckiest fold", "--draws", 1, "--delta", 0.2)
    assert shown.exit_code == 3
    assert "was not caught, in 1 draws" in " ".join(shown.output.split())
