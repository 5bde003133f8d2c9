"""Count the house: lines, names, options, and what one fit enters, by room.

    python -m tests.benchmarks.house [FOLDER]

FOLDER is another checkout, to compare with. Functions are those with a name of their
own, methods too. The fit is ``SemiSupervisedSearchCV(SVC(), grid).fit(X, y, pool=)``
with defaults, the second in its process, so that imports and compilation do not count.
"""

import ast
import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS = ("lines", "modules", "classes", "functions")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def count_rooms(root):
    """Return the counts of every room of dsel, of the papers, and of the tests."""
    rooms = defaultdict(Counter)
    for top in ("dsel", "examples/papers", "tests"):
        for path in sorted((root / top).rglob("*.py")):
            source, parts = path.read_text(), path.relative_to(root).parts
            nodes = list(ast.walk(ast.parse(source)))
            functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
            rooms["/".join(parts[:-1][:2])] += Counter(
                lines=len(source.splitlines()),
                modules=1,
                classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
                functions=len(functions),
                tests=sum(each.name.startswith("test_") for each in functions),
            )
    return rooms


def public_names(root):
    """Return the names in `__all__` of dsel, and those of its rooms."""
    found = {}
    for path in sorted((root / "dsel").rglob("__init__.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
                found[path.parent] = {each.value for each in node.value.elts}
    return found.pop(root / "dsel"), set().union(*found.values())


def told_of(root, names):
    """Return the names that README, a page or an example shows."""
    texts = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts += (root / "examples").rglob("*.py")
    words = {w for path in texts for w in re.findall(r"\w+", path.read_text())}
    return names & words


def entered(call):
    """Return the code of all functions that a call enters, in order, tasks' too."""
    found, before = {}, (sys.getprofile(), threading.getprofile())

    def enter(frame, event, _):
        if event == "call":
            found.setdefault(frame.f_code)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    return list(found)


def one_fit():
    """Print options, and functions and files of dsel that one default fit enters."""
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    import dsel
    from dsel.cli.select import command

    package = os.path.dirname(dsel.__file__) + os.sep
    X, y = load_digits(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [1.0, 10.0, 100.0], "gamma": [1e-3, 1e-2]}, random_state=0
    )
    search.fit(X[:300], y[:300], pool=X[300:])
    found = entered(lambda: search.fit(X[:300], y[:300], pool=X[300:]))
    named = {
        (code.co_filename, code.co_firstlineno, code.co_name)
        for code in found
        if code.co_filename.startswith(package) and code.co_name[0] != "<"
    }
    parameters = set(search.get_params(deep=False))
    print(json.dumps({
        "functions that one default fit enters": len(named),
        "files that it enters": len({file for file, *_ in named}),
        "options of SemiSupervisedSearchCV": len(
            parameters - {"estimator", "param_grid", "unknown"}
        ),
        "options of dsel select": sum(
            each.param_type_name == "option" for each in command.params
        ),
    }))  # fmt: skip


def show(title, counts):
    print(f"| {title} | {' | '.join(f'{counts[name]:,}' for name in COLUMNS)} |")


def main(folder=ROOT):
    root = Path(folder).resolve()
    rooms = count_rooms(root)
    print(f"| room | {' | '.join(COLUMNS)} |")
    print(f"| --- | {' | '.join('---:' for _ in COLUMNS)} |")
    tests = {room: counts for room, counts in rooms.items() if room[:5] == "tests"}
    house = {room: counts for room, counts in rooms.items() if room not in tests}
    for room, counts in house.items():
        show(room, counts)
    for title, some in (("dsel and examples/papers", house), ("tests", tests)):
        show(f"**{title}**", sum(some.values(), Counter()))
    first, others = public_names(root)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    fit = subprocess.run(
        [sys.executable, __file__, "--one-fit"], capture_output=True, check=True,
        cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    facts = {
        "test functions": sum(counts["tests"] for counts in tests.values()),
        "of them through public names only": rooms["tests/contract"]["tests"],
        "public names of dsel": len(first),
        "public names of dsel and its rooms": len(first | others),
        "of them told of": len(told_of(root, first | others)),
        **json.loads(fit.stdout.splitlines()[-1]),
        "runtime dependencies": len(project["dependencies"]),
    }
    print("\n| | |\n| --- | ---: |")
    for name, number in facts.items():
        print(f"| {name} | {number:,} |")


if __name__ == "__main__":
    one_fit() if "--one-fit" in sys.argv else main(*sys.argv[1:])
