"""What README and the site's pages show runs, and prints what they show."""

import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.criteria import CRITERIA
from dsel.kernels import KERNELS
from dsel.rounded_texts import in_percent
from dsel.search.design.certificate_methods import METHODS
from dsel.search.planning.possible_bounds import smallest_limit

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CLUSTER = ROOT / "docs/using/cluster.md"
PAGES = sorted(
    path
    for path in (README, *(ROOT / "docs").rglob("*.md"))
    if "```python" in path.read_text("utf-8") and "_build" not in path.parts
)
EXTRAS = {
    "dsel report": "report",
    "examples/papers": "papers",
    "s3://": "cloud",
}
"""What needs an extra in a shell."""


def _blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def _outputs(page):
    """Return the blocks of Python, each with the text that stands right behind it."""
    text = page.read_text("utf-8")
    pair = r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?"
    return re.findall(pair, text, re.DOTALL)


@pytest.fixture
def registries():
    """Remove what a page adds to dsel."""
    known = [(registry, dict(registry)) for registry in (CRITERIA, KERNELS, METHODS)]
    yield
    for registry, entries in known:
        registry.clear()
        registry.update(entries)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != CLUSTER], ids=lambda page: page.stem
)
@pytest.mark.usefixtures("registries")
def test_page__runs_and_prints_as_it_stands(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reader = {"__name__": "__main__"}
    for block, shown in _outputs(page):
        exec(block, reader)  # a warning is an error
        printed = capsys.readouterr().out
        if shown:
            assert printed == shown


@pytest.mark.cluster
def test_cluster_page__runs_and_prints_as_it_stands(tmp_path):
    [(block, shown)] = _outputs(CLUSTER)
    (tmp_path / "script.py").write_text(block)
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path, env=variables, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, shown), done.stderr
    assert "Warning" not in done.stderr  # on a busy machine there is progress


LINKS = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
BUILT = {ROOT / "docs" / name for name in ("guides", "gallery", "_build")}


@pytest.mark.parametrize(
    "page",
    [README, *(p for p in (ROOT / "docs").rglob("*.md") if not BUILT & {*p.parents})],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_page__links_to_files_of_a_clone(page):
    targets = [page.parent / link for link in LINKS.findall(page.read_text("utf-8"))]
    assert [
        target
        for target in targets
        if not target.exists() or BUILT & {*target.resolve().parents}
    ] == []


def test_pages__write_to_places_of_their_own():
    # A reader runs several pages in one folder, and nothing written is replaced.
    writes = re.compile(r"""(?:to_csv\(|\bout=)"([^"]+)"|--out ([\w./]+)""")
    pages = {}
    for page in (README, *(ROOT / "docs/using").glob("*.md")):
        code = "\n".join([*_blocks(page), *_blocks(page, "sh")])
        pages[page.stem] = {a or b for a, b in writes.findall(code)}
    for (one, its), (other, theirs) in itertools.combinations(pages.items(), 2):
        if "tables" not in (one, other):  # its commands are for tables of readers
            assert not its & theirs, (one, other)


def test_readme__begins_with_what_a_reader_has():
    first = README.read_text("utf-8").partition("## Install")[0]
    block, shown = _outputs(README)[0]
    assert block in first
    assert len(block.splitlines()) <= 12
    assert shown in first
    assert "\n```sh\ndsel select " in "\n".join(first.splitlines()[:40])


@pytest.mark.parametrize(
    "page", [README, *(ROOT / "docs/using").glob("*.md")], ids=lambda p: p.stem
)
def test_page__names_extras_before_the_command_that_needs_them(page):
    text = page.read_text("utf-8")
    for block in _blocks(page, "sh"):
        before = text[: text.index(block)]
        for words, extra in EXTRAS.items():
            assert words not in block or f'".[{extra}]"' in before


@pytest.mark.parametrize(
    ("page", "n_shown"),
    [
        ("two_tables", 4),
        ("regression", 2),
        ("monitor", 1),
        ("rare_class", 1),
        ("better", 2),
    ],
)
def test_page__is_a_session_that_runs(page, n_shown, tmp_path, monkeypatch):
    path = ROOT / f"docs/using/{page}.md"
    monkeypatch.chdir(tmp_path)
    exec(next(block for block in _blocks(path) if ".to_csv(" in block), {})
    dsel_here = f"{shlex.quote(sys.executable)} -m dsel "
    commands = "".join(["set -e\n", *_blocks(path, "sh")])
    script = re.sub(r"^dsel ", dsel_here, commands, flags=re.M)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    session = path.read_text("utf-8").partition("```sh\n")[2]
    shown = re.findall(r"```text\n(.*?)```", session, re.DOTALL)[:n_shown]
    assert len(shown) == n_shown
    for text in shown:
        after = done.stdout.partition(text.rstrip("\n"))[2]
        assert after
        assert not re.match(r"\n(Warning|Caveat)\b", after)  # no line is cut


def test_page_why__has_the_bounds_of_plan_bound():
    row = r"^\| ([\d,]+) \| (0\.\d+) \| (0\.\d+ \| .*) \|$"
    shown = re.findall(row, (ROOT / "docs/why.md").read_text(), re.MULTILINE)
    certificates = ["one_fold", "all_rows", "cv_bound", "holdout_20_percent"]
    assert len(shown) == 3
    for labels, error, cells in shown:
        sizes = (int(labels.replace(",", "")), 100_000)
        plan = dsel.plan_bound(*sizes, n_candidates=100, error=float(error))
        bounds = plan.bound.sel(certificate=certificates, n_folds=5).values
        found = [float(cell) for cell in cells.split(" | ")]
        assert found == pytest.approx(bounds, abs=5e-4)


def test_page_defaults__has_the_numbers_of_plan_bound():
    page = " ".join((ROOT / "docs/using/defaults.md").read_text().split())
    ends = [(300, 0.02), (10_000, 0.2)]
    assert "from 300 labels and an error of 2% to 10,000 labels and an error of" in page

    def ratios(certificate="one_fold", **options):
        """Return how much larger than by default the bound is, at both ends."""
        found = []
        for n_labeled, error in ends:
            case = {"n_candidates": 100, "error": error}
            other = dsel.plan_bound(n_labeled, 100_000, **case, **options).bound
            default = dsel.plan_bound(n_labeled, 100_000, **case).bound
            ratio = other.sel(certificate=certificate) / default.sel(
                certificate="one_fold", n_folds=5, drop=True
            )
            found.append(float(ratio.item()))
        return sorted(found)

    def percent(**options):
        least, most = (f"{100 * ratio - 100:.0f}" for ratio in ratios(**options))
        return f"{least} to {most}%"

    # The error and a report of n classes are 1 + 2 n limits, at equal shares of delta.
    assert f"take 0.01: the bound gets {percent(delta=0.01)} larger" in page
    assert f"by {percent(delta=0.05 / 5)} with two classes" in page
    assert f"by {percent(delta=0.05 / 21)} with ten" in page
    assert f"the bound is {percent(cv=10)} larger" in page
    least, most = ratios("cv_bound")
    assert f"it is {least:.1f} to {most:.1f} times as large" in page


def test_page_folds__has_the_numbers_of_plan_bound():
    page = (ROOT / "docs/using/folds.md").read_text()
    folds = [2, 3, 5, 10, 20]
    assert f"| | {' | '.join(f'`cv={k}`' for k in folds)} |" in page
    for n_labeled in (300, 1_000, 5_000):
        plan = dsel.plan_bound(
            n_labeled, 100_000, n_candidates=100, error=0.1, cv=folds
        )
        for name, certificate in (("first", "one_fold"), ("second", "all_rows")):
            bounds = plan.bound.sel(certificate=certificate).values
            cells = " | ".join(f"{100 * bound:.1f}%" for bound in bounds)
            assert f"| {name} bound, {n_labeled:,} labels | {cells} |" in page
        seen = plan.seen.sel(certificate="one_fold").values
        cells = " | ".join(f"{share:.0%}" for share in seen)
        assert f"| labels that each of these models learns from | {cells} |" in page


def test_page_defaults__has_the_numbers_of_plans():
    page = " ".join((ROOT / "docs/using/defaults.md").read_text().split())
    X, y = make_classification(300, random_state=0)

    def plan(**options):
        grid = {"max_depth": [*range(1, 11)]}  # ten candidates
        model = DecisionTreeClassifier()
        return dsel.plan_search(model, grid, X, y, random_state=0, **options)

    def least_bound(**options):
        return in_percent(smallest_limit(plan(**options).search))

    default = plan()
    assert f"without any error has a bound of {least_bound()}" in page
    assert least_bound(report=True) == least_bound(delta=0.05 / 5)
    pairs = [len(each.search.scheme.splits) for each in (default, plan(cv=10))]
    assert "without {} pairs of folds; with `cv=10` without {}".format(*pairs) in page
    _, n_all = plan(prune=False).search.fits_range()
    most, least = (100 - 100 * n / n_all for n in default.search.fits_range())
    assert f"saves {least:.0f} to {most:.0f}% of the fits of ten candidates" in page


@pytest.mark.parametrize("n_labeled", [300, 10_000])
@pytest.mark.parametrize(("n_unlabeled", "n_equal"), [(0, 0.85), (10**6, 0.96)])
def test_pages_on_hold_out_sets__have_the_numbers_of_plan_bound(
    n_labeled, n_unlabeled, n_equal
):
    ratios = []
    for n_errors in (1e-3, n_equal - 0.04, n_equal + 0.04):  # on the rows of a fold
        bound = dsel.plan_bound(
            n_labeled, n_unlabeled, n_candidates=10, error=n_errors / (n_labeled / 5)
        ).bound.isel(n_folds=0)
        holdout = bound.sel(certificate="holdout_20_percent")
        ratios.append(float(holdout / bound.sel(certificate="one_fold")))
    assert 0.8 <= ratios[0] < 0.82
    assert ratios[1] < 1 < ratios[2]
    for page in ("using/holdout.md", "theory/nested.md"):
        text = " ".join((ROOT / "docs" / page).read_text("utf-8").split())
        assert "fewer than .85 errors" in text
        assert "(.96 with a pool)" in text
        assert "smaller by up to 20%" in text


def test_page_on_groups__has_the_numbers_of_plan_bound():
    text = " ".join((ROOT / "docs/theory/groups.md").read_text("utf-8").split())
    found = []
    for n_groups in (100, 400, 1_000):
        plan = dsel.plan_bound(n_groups, n_candidates=10, error=0.1)
        found.append(f"{100 * plan.bound.sel(certificate='one_fold').item():.0f}%")
    words = "about {} with 100 groups, {} with 400, {} with 1,000"
    assert words.format(*found) in text


@pytest.mark.cluster
def test_readme__shows_what_the_demo_prints(tmp_path):
    demo = [sys.executable, "-m", "dsel", "demo", "--workers", "1"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path)
    shown = README.read_text("utf-8").partition("<!-- demo -->")[2]
    assert shown.partition("```text\n")[2].partition("```")[0] in done.stdout
