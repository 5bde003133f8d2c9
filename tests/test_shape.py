"""The shape of the code: names of files, imports, and what may not stand in them."""

import ast
import importlib
import re
import subprocess
import tomllib
from pathlib import Path

import numpy as np
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


def _layers(container):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(each["layers"] for each in contracts
                if each.get("containers") == [container])  # fmt: skip


def test_inside_md__has_the_layers_that_are_checked():
    text = (ROOT / "docs/project/inside.md").read_text("utf-8")
    block = re.search(r"## The packages\n+```text\n(.*?)```", text, re.DOTALL)[1]
    lines = [
        re.split(r"\s{2,}", line.rstrip() + "  ")[:2] for line in block.splitlines()
    ]
    assert [name for name, _ in lines if name] == _layers("dsel")
    inner = [part for name, part in lines if not name]
    assert inner == _layers("dsel.search")


def _named_in_code(text):
    """Return the dotted names in quoted code and maps of calls, without examples."""
    text = "\n".join(line for line in text.splitlines()
                     if not line.lstrip().startswith((">>>", "...")))  # fmt: skip
    quoted = re.findall(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)`", text)
    maps = re.findall(r"::\n\n((?: +.*\n|\n)+)", text + "\n")
    name = r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?![\w(=])"
    return {*quoted, *(found for each in maps for found in re.findall(name, each))}


def _classes():
    """Yield the names of the classes of dsel, each with its module."""
    for path in MODULES:
        module = _relative(path).removesuffix(".py").removesuffix("/__init__")
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, importlib.import_module(module.replace("/", "."))


def _is_there(name, classes):
    """Return whether ``file.function`` or ``Class.member`` names something of dsel."""
    parts = name.removesuffix(".py").split(".")
    values = [(getattr(module, parts[0]), parts[1:])
              for class_name, module in classes if class_name == parts[0]]  # fmt: skip
    for end in range(1, len(parts) + 1):
        tail = "/".join(parts[:end]).removeprefix("dsel/")
        for path in MODULES:
            place = _relative(path)
            if place.endswith((f"/{tail}.py", f"/{tail}/__init__.py")):
                module = place.removesuffix(".py").removesuffix("/__init__")
                found = importlib.import_module(module.replace("/", "."))
                values.append((found, parts[end:]))
    return any(_has(value, rest) for value, rest in values)


def _has(value, names):
    for name in names:
        if hasattr(value, name):
            value = getattr(value, name)
        else:  # a field without a default, or a file that nothing has imported
            fields = getattr(value, "__annotations__", {})
            files = [
                Path(each) / f"{name}.py" for each in getattr(value, "__path__", [])
            ]
            return name in fields or any(each.exists() for each in files)
    return True


NOT_OURS = {  # of another library, a member of a value in an example, or another file
    "distributed.Client", "inputs.kept", "inputs.sources", "outcome.choice", "plan.run",
    "pool.zarr", "pyproject.toml", "report.html.j2", "results.dsel", "rows.y",
    "test_criteria_of_cubes.py", "xarray.Dataset",
}  # fmt: skip


def test_maps_of_calls__name_what_exists():
    texts = {_relative(path): ast.get_docstring(ast.parse(path.read_text("utf-8")))
             for path in MODULES}  # fmt: skip
    for page in ("inside", "extending"):
        text = (ROOT / f"docs/project/{page}.md").read_text("utf-8")
        texts[page] = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = {(place, name) for place, text in texts.items()
             for name in _named_in_code(text or "")}  # fmt: skip
    classes = list(_classes())
    known = {pair: _is_there(pair[1], classes)
             for pair in named if pair[1] not in NOT_OURS}  # fmt: skip
    assert sum(known.values()) > 30
    assert [pair for pair, is_there in sorted(known.items()) if not is_there] == []


def test_shares__are_fractions_of_delta_and_never_amounts_of_it():
    def names_in(node, pattern):
        found = {getattr(part, "id", getattr(part, "attr", "")) for part in walk(node)}
        return any(re.fullmatch(rf"(\w+_)?{pattern}s?", name) for name in found)

    def is_amount(node):
        return any(
            isinstance(part, ast.BinOp)
            and isinstance(part.op, ast.Mult | ast.Div)
            and names_in(part, "delta")
            for part in walk(node)
        )

    walk = ast.walk
    # An amount is called ..._delta, by the vocabulary of `dsel.search`.
    assert [
        f"{_relative(path)}:{node.lineno}"
        for path in MODULES
        for node in walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        and any(names_in(target, "share") for target in node.targets)
        and is_amount(node.value)
    ] == []


def test_loops__give_no_parameter_another_value_before_they_read_it():
    # Such a name was meant for something else, and what comes after the loop reads it.
    def lines_of(loop, name, context):
        return [
            part.lineno
            for part in ast.walk(loop)
            if isinstance(part, ast.Name)
            and part.id == name
            and isinstance(part.ctx, context)
        ]

    def replaced(function):
        arguments = function.args
        every = *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs
        for loop in ast.walk(function):
            if isinstance(loop, ast.For | ast.While):
                for argument in every:
                    name = argument.arg
                    stored = lines_of(loop, name, ast.Store)
                    read = lines_of(loop, name, ast.Load)
                    if stored and min(stored) < min(read, default=np.inf):
                        yield name

    assert [
        f"{_relative(path)}:{node.lineno} {name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for name in replaced(node)
    ] == []
