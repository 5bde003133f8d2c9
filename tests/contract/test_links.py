"""No writer follows a symbolic link: what it points to is not ours."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.co_validation import write_row_disagreement
from dsel.report import write_report
from dsel.results import save_model
from dsel.search import predict_pool
from tests.shell import run as run_command

ROWS = np.random.default_rng(0).normal(size=(200, 3))
X, POOL = ROWS[:60], ROWS[60:]
Y = (X[:, 0] > 0).astype(int)


def plan(depths=(1, 2)):
    return dsel.plan_search(
        DecisionTreeClassifier(), {"max_depth": [*depths]}, X, Y, POOL, cv=2,
        random_state=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    return plan().run(out=out, n_jobs=1), out


def csv_of_texts(folder):
    path = folder / "texts.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    return path


def report_of_the_shell(out, path):
    found = run_command("report", out, "--out", path)
    if found.exit_code:
        raise ValueError(found.stderr)


WRITERS = {
    "run": lambda path, _: plan().run(out=path, n_jobs=1),
    "save_results": lambda path, run: dsel.save_results(run[0].results, path),
    "save_model": lambda path, run: save_model(run[0].model, path),
    "write_pool": lambda path, _: dsel.write_pool(POOL, path),
    "write_pool to Parquet": lambda path, _: dsel.write_pool(
        csv_of_texts(path.parent), path.with_suffix(".parquet")
    ),
    "predict_pool": lambda path, run: predict_pool(run[0].model, POOL, path),
    "write_row_disagreement": lambda path, _: write_row_disagreement(
        DecisionTreeClassifier(), X, Y, POOL, path, n_models=2
    ),
    "write_report": lambda path, run: write_report(run[0].results, path),
    "dsel report": lambda path, run: report_of_the_shell(run[1], path),
}
REFUSED = "`(out|place|path|--out)` .* is a symbolic link to .*theirs"


def content(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(params=["empty", "with files", "missing"])
def theirs(request, tmp_path):
    folder = tmp_path / "theirs"
    if request.param != "missing":
        folder.mkdir()
    if request.param == "with files":
        (folder / "cube").mkdir()
        (folder / "cube" / "notes.txt").write_text("theirs")
    return folder


@pytest.mark.parametrize("writer", WRITERS)
def test_writers__refuse_a_destination_that_is_a_link(writer, run, theirs, tmp_path):
    before = content(tmp_path)
    for name in ("link", "link.parquet"):
        (tmp_path / name).symlink_to(theirs)
    with pytest.raises(ValueError, match=REFUSED):
        WRITERS[writer](tmp_path / "link", run)
    (tmp_path / "texts.csv").unlink(missing_ok=True)
    for name in ("link", "link.parquet"):
        assert (tmp_path / name).is_symlink()
        (tmp_path / name).unlink()
    assert content(tmp_path) == before


@pytest.mark.parametrize("writer", WRITERS)
def test_writers__take_a_place_below_a_link(writer, run, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    WRITERS[writer](tmp_path / "link" / "out", run)
    assert content(tmp_path / "real")


SAVERS = {
    "save_results": (WRITERS["save_results"], ["cube", "cube/*.zarr", "cube/*.json",
                                               "cube/*.zarr/status", "dsel.json"]),
    "save_model": (WRITERS["save_model"], ["models", "models/*.skops"]),
}  # fmt: skip


@pytest.mark.parametrize("saver", SAVERS)
def test_savers__refuse_a_link_inside_of_their_place(saver, run, tmp_path):
    save, members = SAVERS[saver]
    for number, pattern in enumerate(members):
        out, theirs = tmp_path / str(number), tmp_path / f"theirs-{number}"
        save(out, run)
        [member] = out.glob(pattern)
        member.rename(theirs)  # as where somebody has moved it to a larger disk
        member.symlink_to(theirs)
        before = content(tmp_path)
        with pytest.raises(ValueError, match=REFUSED):
            save(out, run)
        assert content(tmp_path) == before
        assert member.is_symlink()


@pytest.mark.parametrize("member", ["journal", "cube", "models", "outcome.json"])
def test_run__refuses_a_link_inside_of_its_place(member, tmp_path):
    out, theirs = tmp_path / "out", tmp_path / "theirs"
    plan().run(out=out, n_jobs=1)
    (out / "outcome.json").rename(tmp_path / "outcome.json")  # it has not ended
    if member == "outcome.json":
        (tmp_path / member).rename(theirs)
    else:
        (out / member).rename(theirs)
    (out / member).symlink_to(theirs)
    before = content(tmp_path)
    with pytest.raises(ValueError, match=REFUSED):
        plan().run(out=out, n_jobs=1)
    for path, text in before.items():
        assert (tmp_path / path).read_bytes() == text


def test_open_results__reads_through_a_link(run, tmp_path):
    (tmp_path / "latest").symlink_to(run[1])
    assert dsel.open_results(tmp_path / "latest").identical(run[0].results)


@pytest.mark.parametrize(
    "writer", [w for w in WRITERS if "report" not in w and "Parquet" not in w]
)
@pytest.mark.parametrize("below", ["", "below"])
def test_writers__leave_a_file_that_is_where_their_folder_should_be(
    writer, below, run, tmp_path
):
    theirs = tmp_path / "theirs"
    theirs.write_text("mine")
    with pytest.raises(OSError, match=r"`(out|place|path|--out)` .*theirs.*; "):
        WRITERS[writer](theirs / below, run)
    assert theirs.read_text() == "mine"
