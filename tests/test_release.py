"""The files by which a release and the site are built name what is there."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from dsel.old_names import NEW_NAMES, warn_of_old_name

ROOT = Path(__file__).parents[1]
SCHEMAS = {
    ".readthedocs.yaml": "vendor.readthedocs",
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/workflows/release.yml": "vendor.github-workflows",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_file__follows_the_schema_of_its_service(name):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    done = subprocess.run(
        [*command, SCHEMAS[name], ROOT / name], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_readthedocs__builds_with_what_the_project_has():
    read = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (ROOT / read["sphinx"]["configuration"]).is_file()
    assert read["sphinx"]["fail_on_warning"]
    [install] = read["python"]["install"]
    assert {*install["extra_requirements"]} <= {*project["optional-dependencies"]}


def test_release__keeps_no_token_and_publishes_what_was_tried():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    commands = [step.get("run", "") for step in jobs["build"]["steps"]]
    tried = next(i for i, text in enumerate(commands) if "dsel demo" in text)
    assert "$GITHUB_REF_NAME" in "".join(commands[:tried])
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert "secrets." not in text


def test_version__is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert citation["version"] == project["version"]
    assert f"## {project['version']} " in changelog
    assert "example.com" not in (ROOT / "pyproject.toml").read_text()


def test_old_names__go_with_the_version_of_their_warning():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with pytest.warns(FutureWarning, match=f"`new`.* goes with dsel {NEW_NAMES}"):
        warn_of_old_name("old", "new")
    assert Version(project["version"]) < Version(NEW_NAMES)


def test_changelog__says_what_is_new_once_and_on_one_screen():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = changelog.partition("\n## ")[2].partition("\n## ")[0]
    assert len(newest.splitlines()) <= 66  # details are in docs/project/from_0_2.md
    beginnings = [line[:40] for line in newest.splitlines() if line.startswith("- ")]
    assert len({*beginnings}) == len(beginnings)
