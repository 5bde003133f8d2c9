"""The shape of the code: names of files, imports, and what may not stand in them."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "dsel").rglob("*.py"))
FORBIDDEN = {
    # Written in pieces, so that this file does not match itself.
    "registry hosts": re.compile(
        r"\b(?:pypi|files\.pythonhosted|registry\.npmjs|deb\.debian|anaconda|conda)"
        r"\.(?:org|io|com)\b|\bghcr\.io\b|\bdocker\.io\b|\bquay\.io\b"
    ),
    # The slash comes first, for that is what a pattern is quickly searched by.
    "paths of one machine": re.compile(
        r"""/(?<![\w.$}~/-]/)(?:root|home|work|mnt|srv|opt|Users)/"""
    ),
}


def _relative(path):
    return path.relative_to(ROOT).as_posix()


def test_imports__are_absolute_and_take_no_private_name_of_another_module():
    def takes_private_name(node):
        ours = (node.module or "").split(".")[0] == "dsel"
        return ours and any(alias.name.startswith("_") for alias in node.names)

    assert [
        f"{_relative(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.level > 0 or takes_private_name(node))
    ] == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_tracked_files__name_no(what):
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert [
        f"{_relative(path)}:{number}: {line.strip()[:80]}"
        for path in paths
        if path.suffix not in {".npz", ".png", ".gz"} and path.is_file()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if FORBIDDEN[what].search(line)
    ] == []
