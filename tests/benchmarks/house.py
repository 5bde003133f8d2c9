"""Count the package: lines, names, options, and what one fit enters, by subpackage.

    python -m tests.benchmarks.house [FOLDER]
    python -m tests.benchmarks.house --private

FOLDER is another checkout, to compare with. With --private there is only a list of the
private functions that are mentioned once, with their lengths. Functions are those with
a name of their own, methods too. The fit is
``SemiSupervisedSearchCV(SVC(), grid).fit(X, y, pool=)`` with defaults, the second in
its process, so that imports and compilation do not count.
A switch is a call into another file on the main thread, a return one into a file that
was left before.
A name with several types is an annotated argument, field, variable or property that
has another type elsewhere; None in addition to a type makes no other one.

All of these are signs, and no goals: a number that is reached by density, or by empty
comments, is a loss.
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
STATES = re.compile(
    r"_*(?!is_|n_)(\w+_)*([a-z]{2,}(?<!e)ed(?<!nested)|drawn|taken|made|kept|given|seen|"
    r"known)"
)
"""Names of functions whose last word is a participle, which says no action.

Predicates, ``is_fitted``, and numbers, ``n_compared``, are claims and quantities. The
nested search has its name.
"""
PUBLIC = {"balanced", "most_disputed"}
"""Public names of 0.2 that match nevertheless."""


def count_rooms(root):
    """Return the counts of every room of dsel, of the papers, and of the tests."""
    rooms = defaultdict(Counter)
    for top in ("dsel", "examples/papers", "tests"):
        for path in sorted((root / top).rglob("*.py")):
            source, parts = path.read_text(), path.relative_to(root).parts
            nodes = list(ast.walk(ast.parse(source)))
            functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
            depth = 3 if top == "dsel" else 2
            rooms["/".join(parts[:-1][:depth])] += Counter(
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


def style(root):
    """Return what the text of dsel's modules shows of names, types and comments."""
    n_any = n_arguments = n_comments = n_lines = n_skipped = 0
    by_state, private, words = [], {}, Counter()
    types = defaultdict(set)
    for path in sorted((root / "dsel").rglob("*.py")):
        source = path.read_text()
        lines = source.splitlines()
        n_lines += len(lines)
        n_comments += sum(line.lstrip().startswith("#") for line in lines)
        n_skipped += source.count("# fmt: skip")
        words.update(re.findall(r"\w+", source))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.AnnAssign):
                name = node.target
                name = name.id if isinstance(name, ast.Name) else name.attr
                types[name].add(plain_type(node.annotation))
            if not isinstance(node, FUNCTIONS):
                continue
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            typed = [ast.unparse(each.annotation) for each in given if each.annotation]
            n_arguments += len(typed)
            n_any += sum(re.search(r"\bAny\b", each) is not None for each in typed)
            for each in given:
                if each.annotation:
                    types[each.arg].add(plain_type(each.annotation))
            is_property = any("property" in ast.unparse(d) for d in node.decorator_list)
            if is_property and node.returns:
                types[node.name].add(plain_type(node.returns))
            is_state = STATES.fullmatch(node.name) and node.name not in PUBLIC
            if not is_property and is_state:
                by_state.append(node.name)
            if re.fullmatch(r"_[a-z]\w*", node.name):
                private[node.name] = node.end_lineno - node.lineno + 1
    once = [name for name in private if words[name] == 2]  # its definition, one call
    if "--private" in sys.argv:
        for name in sorted(once, key=private.__getitem__):
            print(f"{private[name]:4} {name}")
    n_types = [len(several) for several in types.values() if len(several) > 1]
    return {
        "`Any` in annotated arguments, %": 100 * n_any / n_arguments,
        "comment lines, %": 100 * n_comments / n_lines,
        "`# fmt: skip`": n_skipped,
        "functions named by a participle": len(by_state),
        "private functions mentioned once": len(once),
        "their lines": sum(private[name] for name in once),
        "names with several types": len(n_types),
        "types of these": sum(n_types),
    }


def plain_type(annotation):
    """Return the text of an annotation, without quotes and without None."""
    kinds = ast.unparse(annotation).strip("'").split(" | ")
    return " | ".join(kind for kind in kinds if kind != "None")


def documented_names(root, names):
    """Return the names that README, a page or an example shows."""
    texts = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts += (root / "examples").rglob("*.py")
    words = {w for path in texts for w in re.findall(r"\w+", path.read_text())}
    return names & words


def trace_functions(call, *, on_all_threads=True):
    """Return the code of all functions that a call enters, in order, tasks' too.

    Without `on_all_threads` only those on this thread.
    """
    found, before = {}, (sys.getprofile(), threading.getprofile())

    def enter(frame, event, _):
        if event == "call":
            found.setdefault(frame.f_code)

    if on_all_threads:
        threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    return list(found)


def count_switches(call, package):
    """Return file switches of a call on this thread, and returns to a file left.

    Of functions in the order in which each is entered first, as a reader meets them.
    """
    codes = trace_functions(call, on_all_threads=False)
    files = [
        code.co_filename
        for code in codes
        if code.co_filename.startswith(package) and code.co_name[0] != "<"
    ]
    path = [file for at, file in enumerate(files) if not at or file != files[at - 1]]
    n_returns = sum(file in path[:at] for at, file in enumerate(path))
    return len(path), n_returns


def one_fit():
    """Print options, and functions and files of dsel that one default fit enters."""
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    import dsel
    from dsel.cli.commands.select_command import command

    package = os.path.dirname(dsel.__file__) + os.sep
    X, y = load_digits(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [1.0, 10.0, 100.0], "gamma": [1e-3, 1e-2]}, random_state=0
    )
    search.fit(X[:300], y[:300], pool=X[300:])
    found = trace_functions(lambda: search.fit(X[:300], y[:300], pool=X[300:]))
    named = {
        (code.co_filename, code.co_firstlineno, code.co_name)
        for code in found
        if code.co_filename.startswith(package) and code.co_name[0] != "<"
    }
    parameters = set(search.get_params(deep=False))
    switches, returns = count_switches(
        lambda: search.fit(X[:300], y[:300], pool=X[300:]), package
    )
    print(json.dumps({
        "functions that one default fit enters": len(named),
        "files that it enters": len({file for file, *_ in named}),
        "file switches on its main thread": switches,
        "returns to a file left before": returns,
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
        "lines of dsel": sum(c["lines"] for r, c in house.items() if r[:4] == "dsel"),
        **style(root),
        "test functions": sum(counts["tests"] for counts in tests.values()),
        "of them through public names only": rooms["tests/contract"]["tests"],
        "public names of dsel": len(first),
        "public names of dsel and its rooms": len(first | others),
        "of them told of": len(documented_names(root, first | others)),
        **json.loads(fit.stdout.splitlines()[-1]),
        "runtime dependencies": len(project["dependencies"]),
    }
    print("\n| | |\n| --- | ---: |")
    for name, number in facts.items():
        print(f"| {name} | {number:,.4g} |" if isinstance(number, float)
              else f"| {name} | {number:,} |")  # fmt: skip


if __name__ == "__main__":
    if "--one-fit" in sys.argv:
        one_fit()
    elif "--private" in sys.argv:
        style(ROOT)
    else:
        main(*sys.argv[1:])
