"""The page says first what holds, and holds all that it needs itself."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pytest
from dsel.results.rounding import at_most
from dsel.searches.ledger import with_ledger
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel.bounds import DeltaLedger, read_out
from dsel.cli.group import main
from dsel.report import report_html, write_report
from dsel.results import Assumption, add_criterion, fold_axes, grid_axes, make_cube

N = 4


def make(*, ledger=(), status=(0, 0, 0, 2), with_pool=True, grid=None):
    rng = np.random.default_rng(5)
    complete = np.array(status) == 0
    folds = np.where(complete[:, None], rng.integers(1, 9, (N, 5)), -1)
    pool = np.where(complete[:, None] & with_pool, 400, -1) * np.ones((1, 5), int)
    cube = make_cube(
        grid_axes(grid or {"C": [1.0, 10.0], "kernel": ["<rbf>", "linear"]}),
        fold_axes(5),
        {
            "fold_errors": folds,
            "fold_rows": np.full(5, 60),
            "train_rows": np.full(5, 240),
            "disagreements": np.where(pool > 0, 7, -1),
            "pool_rows": pool,
            "status": np.array(status),
            "message": ["", "", "", "<script>alert(1)</script>"],
            "fit_seconds": np.full((N, 5), 0.1),
            "n_labeled": 300,
            "n_unlabeled": 2000 if with_pool else 0,
            "n_classes": 2,
        },
        assumptions=ledger,
        attributes={"seed": 7, "versions": {"numpy": "2.1"}},
    )
    empty = np.full(N, np.nan)
    nothing = SimpleNamespace(estimate=empty, label_term=empty, disagreement_term=empty)
    name = "cv_bound" if with_pool else "cv_error"
    declared = {"delta": 0.05, "label_share": 0.5}
    shares = np.full(N, 0.05 / N)
    judged = add_criterion(cube, name, nothing, delta_shares=shares, **declared)
    paid = DeltaLedger(0.05)
    if with_pool:
        paid = paid.read(read_out(name, **declared))
    return with_ledger(judged, paid)


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_report_html__shows_what_a_nested_search_can_hand_over():
    X, y = load_iris(return_X_y=True)
    plan = dsel.plan_search(
        GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, X, y, random_state=0,
        certificate="nested_fold_model",
    )  # fmt: skip
    results = plan.run(n_jobs=1)
    page = words(report_html(results))
    choice = dsel.select(results)
    assert "Which model to hand over" in page
    assert "Each point is a candidate" in page
    bound, estimate = choice.bound, choice.certificate.estimate
    assert f"best fold nested_fold_model {at_most(bound)} {estimate:.4f}" in page
    for _, fact in choice.facts():
        assert fact in html.unescape(page)
    assert "hand over" not in words(report_html(make()))
    assert "Each cell is a candidate" in words(report_html(make()))


def test_report_html__of_rows_set_aside_tells_both_parts():
    X, y = load_iris(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, certify_rows=0.4,
        duplicates="keep", random_state=0,
    )  # fmt: skip
    search.fit(X[::2], y[::2], pool=X[1::2])
    page = words(report_html(search.results_))
    assert "labeled rows that chose 45 rows in the pool 75" in page


def test_report_html__says_what_is_guaranteed():
    cube = make()
    page = report_html(cube)
    bound = dsel.select(cube).bound
    assert f"Error at most {at_most(bound, decimals=1, percent=True)} %" in page
    assert "With probability at least 95 %" in words(page)


def test_report_html__puts_the_reason_first_where_nothing_is_guaranteed():
    page = report_html(make(ledger=[Assumption("A2", "violated", "stratified folds")]))
    text = words(page[page.index("<main>") :])
    assert text.index("No guarantee") < text.index("Chosen")
    assert text.index("A2 is violated: stratified folds") < text.index("Chosen")
    assert "Error at most" not in text


def test_report_html__loads_nothing_from_elsewhere():
    page = report_html(make())
    assert not re.findall(
        r'(?:src|href)="(?!#|data:)[^"]*"', page.replace("xlink:", "")
    )
    assert "<script" not in page
    assert "@import" not in page
    assert "url(" not in re.sub(r"url\(#", "", page)


def test_report_html__escapes_what_comes_from_outside():
    page = report_html(make())
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;rbf&gt;" in page


def test_report_html__is_the_same_each_time():
    cube = make()
    assert report_html(cube) == report_html(cube)


def test_report_html__tells_of_a_search_without_a_pool():
    text = words(report_html(make(with_pool=False)))
    assert "No guarantee" in text
    assert "cv_error is an estimate" in text
    assert "What the bound is made of" not in text


def test_report_html__shows_a_list_of_candidates():
    grid = [{"C": [1.0, 2.0]}, {"kernel": ["a", "b"]}]
    assert "kernel=a" in words(report_html(make(grid=grid)))


def test_report_html__answers_for_another_delta():
    assert "With probability at least 96 %" in words(report_html(make(), delta=0.04))


def test_write_report__writes_the_page(tmp_path):
    path = write_report(make(), tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_command__writes_a_page_about_a_saved_run(tmp_path, capsys):
    dsel.save_results(make(), tmp_path / "run")
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as ended:
        main.main(["report", str(tmp_path / "run"), "--out", str(page)])
    assert ended.value.code in (0, None)
    assert capsys.readouterr().out == f"Wrote {page}\n"
    assert "Error at most" in page.read_text(encoding="utf-8")


def test_command__says_where_there_is_no_run(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["report", str(tmp_path / "nothing")])
    assert ended.value.code == 1
    assert "there is no results store at" in capsys.readouterr().err


def test_report__figures_are_told_to_those_who_do_not_see_them():
    page = report_html(make())

    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert len(labels) == page.count("<figure>") > 0
