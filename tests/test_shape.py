"""The shape of the code: names of files, imports, and what may not stand in them."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "dsel").rglob("*.py"))

# Written in pieces, so that this file does not match itself.
HOSTS = re.compile(
    r"\b(?:pypi|files\.pythonhosted|registry\.npmjs|deb\.debian|anaconda|conda)"
    r"\.(?:org|io|com)\b|\bghcr\.io\b|\bdocker\.io\b|\bquay\.io\b"
)
# The slash comes first, for that is what a pattern is quickly searched by.
MACHINE_PATHS = re.compile(
    r"""/(?<![\w.$}~/-]/)(?:root|home|work|mnt|srv|opt|Users)/"""
)


def _relative(path):
    return path.relative_to(ROOT).as_posix()


def _tracked_text():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix not in {".npz", ".png", ".gz"} and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def _lines_matching(pattern):
    return [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in _tracked_text()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_modules__are_never_named_utils():
    assert [_relative(p) for p in MODULES if p.stem in {"utils", "helpers"}] == []


def test_imports__are_absolute_and_take_no_private_name_of_another_module():
    found = [
        f"{_relative(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.level > 0 or _takes_private_name(node))
    ]
    assert found == []


def _takes_private_name(node):
    ours = (node.module or "").split(".")[0] == "dsel"
    return ours and any(alias.name.startswith("_") for alias in node.names)


def test_rooms__say_what_they_are_in_under_25_lines():
    rooms = [path for path in MODULES if path.name == "__init__.py"]
    lengths = {
        _relative(p): len(
            (ast.get_docstring(ast.parse(p.read_text())) or "").split("\n")
        )
        for p in rooms
        if p.parent.name != "dsel"
    }
    assert {p: n for p, n in lengths.items() if n >= 25} == {}


def test_tracked_files__name_no_registry_host():
    assert _lines_matching(HOSTS) == []


def test_tracked_files__name_no_path_of_one_machine():
    assert _lines_matching(MACHINE_PATHS) == []
