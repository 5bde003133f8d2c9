"""The page says first what holds, and holds all that it needs itself."""

import html
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import dsel
from dsel import names
from dsel.cli.commands.select_command import command as select_command
from dsel.cli.options import shell_names
from dsel.report.page import BEGINS, report_html, write_report
from dsel.report.sentences import next_steps
from dsel.results.caveats import Caveat, Effect
from dsel.results.comparison import ModelComparison
from dsel.results.run_tables import RunTables, save_run_tables
from dsel.results.tolerances import amount_about
from tests.shell import run as run_command
from tests.shell import succeed


class Sign(ClassifierMixin, BaseEstimator):
    """Answers with the sign of a column; one way of it fails."""

    def __init__(self, way="<plain>", column=0):
        self.way, self.column = way, column

    def fit(self, X, y):
        if self.way == "fails":
            raise ValueError("<script>alert(1)</script>")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, self.column] > 0).astype(int)]


GRID = {"way": ["<plain>", "fails"], "column": [0, 1]}


@pytest.mark.filterwarnings("ignore:2 of 4 candidates failed")
def run(with_pool=True, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:200, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    given = {"random_state": 0, "prune": False} | options
    pool = X[200:] if with_pool else None
    return dsel.plan_search(Sign(), GRID, X[:200], y, pool, **given).run(n_jobs=1)


@pytest.fixture(scope="module", params=["nested", "cv_bound"])
def outcome(request):
    with pytest.warns(dsel.errors.FitFailedWarning):
        return run(certificate=request.param)


@pytest.fixture(scope="module")
def outcome_page(outcome):
    return report_html(outcome.results)


def words(page):
    whole = re.sub(r"</?(?:span|code|wbr)[^>]*>", "", page[page.index("<main>") :])
    shown = re.sub(r"<[^>]+>", " ", whole)
    return html.unescape(re.sub(r"\s+", " ", shown))


def test_report_html__says_what_is_guaranteed_as_the_choice_does(outcome, outcome_page):
    text = words(outcome_page)
    shown_rows = [row for row in outcome.choice.shown_rows() if row[0] != "Assumes"]
    options = [row for name, row in shown_rows if name == "Deployed"]
    assert [row for _, row in shown_rows if row not in text] == options
    is_said = "Deployed: the first of these two models" in text
    assert is_said == bool(options)
    assert "Error at most" in text
    has_terms = outcome.choice.certificate.method == "cv_bound"
    assert ("Parts of the bounds" in text) == has_terms


def test_report_html__warns_in_its_box_where_a_constant_may_be_as_good(
    outcome, outcome_page
):
    warned = '<div class="verdict warning">'
    assert warned not in outcome_page
    useless = replace(outcome.choice, constant="yes", constant_loss=0.0)
    results = outcome.results.assign_attrs({names.CHOICE: useless.to_json()})
    page = report_html(results)
    assert warned in page
    text = words(page)
    line = "No better than always predicting yes (0.0%), as far as these rows tell"
    assert text.count(line) == 1
    assert text.index(line) < text.index("Of 1,000 new rows")
    # As on cards, a warning colors the box, too.
    caveats = (Caveat(Effect.WARNS, "5 of 50 fits failed"),)
    doubtful = replace(outcome.choice, caveats=caveats)
    results = outcome.results.assign_attrs({names.CHOICE: doubtful.to_json()})
    assert warned in report_html(results)


def test_report_html__names_learner_rows_and_date_of_a_run_in_python(
    outcome, outcome_page
):
    text = words(outcome_page)
    date = outcome.results.attrs["created_at"][:10]
    n_rows = int(outcome.results.n_labeled)
    title = f" How wrong this Sign can be: {n_rows} labeled rows, {date} "
    assert text.startswith(title)
    old = outcome.results.drop_attrs(deep=False).assign_attrs(
        {k: v for k, v in outcome.results.attrs.items() if k != "learners"}
    )
    assert " How wrong this model can be: " in words(report_html(old))


def test_report_html__begins_with_sections_open_and_comparisons_at_the_figure(
    outcome, outcome_page
):
    page = outcome_page
    opened = re.findall(r'<details class="part" open><summary><h2>([^<]*)', page)
    is_nested = outcome.choice.certificate.method == "nested"
    more = ", and more labels" if is_nested else ""  # of others this is not drawn
    assert opened[:2] == [f"What the bound assumes{more}", "The classes"]
    text = words(page)
    compared = [text for name, text in outcome.choice.shown_rows() if name == "Compare"]
    assert compared
    # On a phone, which shows a page in this order, the figure follows the verdict.
    at_figure = text.index("A bar is the bound"), text.index(" labeled rows 200")
    assert text.index("Estimate: ") < at_figure[0]
    places = [text.index(line) for line in compared]
    assert at_figure[0] < min(places) <= max(places) < at_figure[1]
    assert at_figure[1] < text.index("What now") < text.index("What the bound assumes")
    assert "What is not listed is not needed here." in text
    assert f"Dashed, only to compare: {'; '.join(compared)}." in text
    assert all(text.count(line) == 1 for line in compared)
    pale = "Its pale part is for the pool rows on which the model trained on all"
    assert (pale in text) == ("all_rows" in outcome.choice.bounded_models)


@pytest.mark.parametrize(("changes", "step"), [
    ({}, "Keep the old model, or query rows"),
    ({"rows": (1, 2)}, "Let somebody who does not see the predictions label"),
    ({"labels": (0,), "upper": -0.1}, "Let the new model predict rows from"),
    ({"labels": (0,), "lower": 0.1}, "Keep the old model."),
    ({"labels": (0,)}, "Further labels, asked for until the answer is the one"),
])  # fmt: skip
def test_next_steps__follow_from_the_verdict(changes, step):
    limits = {"labels": None, "rows": (), "lower": -0.2, "upper": 0.2} | changes
    comparison = SimpleNamespace(
        is_better=limits["upper"] < 0, is_worse=limits["lower"] > 0, **limits
    )
    assert any(text.startswith(step) for text in next_steps(comparison))


def test_report_html__names_the_model_of_a_function():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    outcome = dsel.certify(
        lambda X, y: Sign().fit(X, y), X, (X[:, 0] > 0).astype(int), random_state=0
    )
    text = words(report_html(outcome.results))
    assert text.startswith(" How wrong this Sign can be: 60 labeled ")
    assert "folds 5" in text
    assert "candidate" not in text.partition("Versions, seed")[0]  # there is no grid
    assert "trained without a fold, on this fold, a large one that of all" in text


def test_report_html__says_that_candidates_were_ranked_only_where_dsel_ranked_some():
    X, y = np.random.default_rng(0).normal(size=(2, 120, 1))
    grid = {"alpha": [1.0, 10.0]}
    by_itself = GridSearchCV(Ridge(), grid, scoring="neg_mean_absolute_error")
    asked = dsel.certify(by_itself, X, y.ravel(), cv=2)
    ranked = dsel.SemiSupervisedSearchCV(Ridge(), grid, cv=2).fit(X, y.ravel()).outcome_
    pages = [report_html(found.results) for found in (asked, ranked)]
    sentence = "ranked by the mean squared error"
    assert [sentence in " ".join(page.split()) for page in pages] == [False, True]


def test_report_html__names_the_learner_inside_of_a_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    steps = make_pipeline(StandardScaler(), Sign())
    grid = {"pipeline__sign__column": [0, 1]}
    search = GridSearchCV(make_pipeline(StandardScaler(), steps), grid, cv=2)
    outcome = dsel.certify(search, X, (X[:, 0] > 0).astype(int), random_state=0)
    title = " How wrong this Sign can be: chosen by GridSearchCV, 60 labeled rows, "
    assert words(report_html(outcome.results)).startswith(title)


def test_report_html__says_why_a_bound_is_below_the_estimate():
    with pytest.warns(dsel.errors.FitFailedWarning):
        results = run(with_pool=False).results
    assert "is above the bound" not in words(report_html(results))
    record = json.loads(results.attrs["choice"])
    for model in record["deployed"].values():
        model["certificate"]["estimate"] = 0.9
    results.attrs["choice"] = json.dumps(record)
    text = words(report_html(results))
    assert "Below the estimate, 90.0%: the rows that gave this bound were" in text


def test_report_html__puts_the_reason_first_where_nothing_is_guaranteed():
    with pytest.warns(dsel.errors.FitFailedWarning):
        estimated = run(with_pool=False, criterion="cv_error")
    text = words(report_html(estimated.results))
    assert text.index("cv_error is an estimate") < text.index("What the bound assumes")
    assert "Error at most" not in text
    assert "wrong on average" not in text
    assert "About the two-sample test" not in text


def test_report_html__tells_a_loss_and_the_certified_report_of_both_models():
    costs = dsel.losses.cost({(1, 0): 50, (0, 1): 1})
    with pytest.warns(dsel.errors.FitFailedWarning):
        outcome = run(loss=costs, report=True)
    text = words(report_html(outcome.results))
    assert outcome.choice.certificate.headline() in text
    assert "candidates, by inner cross-validation candidate parameters" in text
    assert "parameters Mean cost error" in text
    assert f" {outcome.choice.criterion_value:.3f} " in text
    assert "Error at most" not in text.partition("Recall and precision")[0]
    for deploy in ("one_fold", "all_rows"):
        report = outcome.certified_report(deploy)
        cells = [*report.table(), *report.pooled_table()]
        assert [row for row in cells if " ".join(row).strip() not in text] == []
        assert report.pooled_line() in text
    # The numbers of the deployed model stand above those of all folds.
    own, pooled = text.index("(deployed)"), text.index("Models of all folds, pooled (")
    assert own < pooled
    assert "All limits of these tables hold at once (95% confidence)" in text
    cut = words(report_html(outcome.results.isel(column=[0])))
    assert "These limits are not guaranteed" in cut
    assert "All limits of these tables hold" not in cut


def test_report_html__has_limits_by_the_values_of_a_column_of_both_models():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=600), rng.integers(3, size=600)])
    y = (X[:200, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    plan = dsel.plan_search(
        Sign(), {"column": [0]}, X[:200], y, X[200:], report_by=1, random_state=0
    )
    outcome = plan.run(n_jobs=1)
    page = report_html(outcome.results)
    text = words(page)
    assert "Error by column 1 Each row is about the rows that have this value." in text
    for deploy in ("one_fold", "all_rows"):
        cells = outcome.report_by_value(deploy).table()[1:]
        assert [row for row in cells if " ".join(row) not in text] == []
    assert "and together with the bounds above (95% confidence)" in text
    assert page.count("<svg") == 4
    cut = words(report_html(outcome.results.isel(fold=slice(0, 5), column=[0, 0])))
    assert "These limits are not guaranteed" in cut


def test_report_html__stands_alone_and_escapes_what_comes_from_outside(
    outcome, outcome_page
):
    page = report_html(outcome.results)
    assert page == outcome_page
    links = r'(?:src|href)="(?!#|data:)[^"]*"|@import|url\((?!#)'
    assert re.findall(links, page.replace("xlink:", "")) == []
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;plain&gt;" in page
    assert "<plain>" not in page
    told = re.findall(r'<div role="img" aria-label="([^"]+)"', page)
    assert len(told) == page.count("<svg") > 0  # for those who do not see them
    assert not [label for label in told if f"<figcaption>{label}" in page]
    above, _, folded = page.partition("<details")
    assert above.count("<svg") == 1
    assert "About the two-sample test" in folded
    assert "only you can know; the two-sample test of the first can show that" in folded
    assert not re.search("</details>[^<]*<(?!details|/main)", folded)


def test_command__writes_a_page_about_a_saved_run(outcome, outcome_page, tmp_path):
    dsel.save_results(outcome.results, tmp_path / "run")
    page = tmp_path / "page.html"
    done = succeed("report", tmp_path / "run", "--out", page)
    assert str(page) in done.output
    of_python = page.read_text(encoding="utf-8")
    assert of_python == outcome_page
    tables = RunTables("rows.csv", "bought")  # as `dsel select` stores them
    save_run_tables(tmp_path / "run", tables)
    succeed("report", tmp_path / "run", "--out", page)
    of_shell = page.read_text(encoding="utf-8")
    names = shell_names(select_command)
    assert of_shell == report_html(outcome.results, tables, names)
    with pytest.warns(FutureWarning, match="`inputs` is now called `tables`"):
        write_report(
            outcome.results, tmp_path / "old.html", inputs=tables,
            names_of_options=names,
        )  # fmt: skip
    assert (tmp_path / "old.html").read_text(encoding="utf-8") == of_shell
    # A page has the words of those who made the run.
    for shown, own, other in (
        (of_shell, "--loss report", "report=True"),
        (of_python, "report=True", "--loss report"),
    ):
        assert own in shown
        assert other not in shown
    done = run_command("report", tmp_path / "nothing")
    assert done.exit_code == 2
    assert "nothing" in done.output


def test_command__writes_into_the_results_and_replaces_its_own_page_alone(
    outcome, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    dsel.save_results(outcome.results, tmp_path / "run")
    for _ in range(2):
        done = run_command("report", "run")
        assert (done.exit_code, done.output) == (0, "Wrote run/report.html\n")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    assert dsel.open_results("run").identical(outcome.results)
    done = run_command("report", f"file://{tmp_path}/run")
    assert done.output == f"Wrote {tmp_path}/run/report.html\n"


def test_write_report__writes_no_page_under_the_ending_of_another_format(
    outcome, tmp_path
):
    with pytest.raises(ValueError, match=r"`path` must end in \.html.*print it"):
        write_report(outcome.results, tmp_path / "report.pdf")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", ["page", "folder", "link", "empty"])
def test_write_report__changes_nothing_that_dsel_has_not_written(
    outcome, tmp_path, kind
):
    path, own = tmp_path / "report.html", tmp_path / "own.html"
    own.write_text("<!DOCTYPE html>\n<p>mine</p>")
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        own.write_text(BEGINS)
        path.symlink_to(own)
    else:
        path.write_text(own.read_text() if kind == "page" else "")
    before = own.read_text()
    with pytest.raises((FileExistsError, ValueError), match="`path`"):
        write_report(outcome.results, path)
    assert own.read_text() == before
    assert path.is_dir() or path.read_text() in (before, "")
    assert len(list(tmp_path.iterdir())) == 2


def test_report_html__names_tables_baseline_classes_and_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:200, 0] + 0.5 * rng.normal(size=200) > 0.5, "yes", "no")
    plan = dsel.plan_search(
        Sign(), {"column": [0, 1]}, X[:200], y, X[200:], random_state=0, report=True
    )
    outcome = plan.run(n_jobs=1)
    tables = RunTables("/data/<rows>.csv", "bought", "s3://bucket/pool/", "svm")
    text = words(report_html(outcome.results, tables))
    title = " How wrong predictions of bought can be: <rows>.csv, 200 labeled rows "
    assert text.startswith(title)
    n_wrong = int(np.ceil(1000 * outcome.certificate.bound))
    plain = f"the chosen model (svm) gets at most {n_wrong} wrong on average"
    assert text.index(plain) < text.index("A bar is the bound of a model")
    assert "from the same source as those of <rows>.csv" in text
    assert "labeled table <rows>.csv target bought pool pool model svm" in text
    share = f"{100 * np.mean(y == 'yes'):.1f}%"
    assert text.count(f"always predicting no ({share})") == 1
    heads = "class labeled rows of all rows"
    assert f"{heads} no {(y == 'no').sum()}" in text
    fold = outcome.choice.fold
    own = outcome.results.outer_confusion.isel(fold=fold).values.astype(int)
    whose = "The deployed model, on the fold that it had not seen true \u2193 predicted"
    assert f"{whose} \u2192 no yes recall no {own[0, 0]}" in text
    table = outcome.results.outer_confusion.sum("fold").values
    for name, counts in zip(("no", "yes"), table, strict=False):
        cells = " ".join(str(int(n)) for n in counts[:2])
        assert f"{name} {cells} {100 * max(counts) / counts.sum():.1f}%" in text
    off = table[0, 1] + table[1, 0]
    estimate = outcome.choice.certificate.estimate
    assert off == pytest.approx(estimate * len(y))  # the estimate at the top
    bound = outcome.certificate
    assert f"The {bound.about(bound.estimate)} at the top is about models that" in text
    assert f"can promise is the bound, {bound.amount(bound.bound)} (95% conf" in text
    how = "inner cross-validation"
    assert f"The candidates Error in {how}: column=0 has " in text
    assert f"The criterion of every candidate, from {how}; the chosen" in text
    assert f"{how[:1].upper()}{how[1:]} ranks candidates, with models that" in text
    assert "on average over the folds, from" in text
    outcome = dsel.plan_search(
        Sign(), {"column": [0]}, X[:200], y, random_state=0,
        loss=dsel.losses.recall("yes"),
    ).run(n_jobs=1)  # fmt: skip
    text = words(report_html(outcome.results))
    assert "What more labels would give is not drawn for this loss" in text
    most = int(np.ceil(100 * outcome.certificate.bound))
    assert f"Of 100 new rows of 'yes' the chosen model misses at most {most} on" in text


def test_report_html__has_words_where_results_have_keys(outcome, outcome_page):
    text = words(outcome_page).partition("fingerprints")[2]
    keys = ("content_token", "dsel_schema_version", "created_at", "version_numpy")
    assert [key for key in keys if key in text] == []
    assert "learners Sign " in text
    assert "version of numpy " in text
    assert outcome.results.attrs["content_token"] in text


def test_report_html__says_why_a_holdout_set_may_have_the_smaller_bound():
    with pytest.warns(dsel.errors.FitFailedWarning):
        outcome = run(report=True)
    choice = outcome.choice
    why = "here the tests of all folds and the report share these 5%"
    assert choice.expected_holdout < choice.certificate.bound
    assert why in words(report_html(outcome.results))


@pytest.mark.parametrize("learner", [KNeighborsClassifier(), KNeighborsRegressor()])
def test_report_html__of_a_holdout_set_names_no_folds_and_no_dropped_candidates(
    learner,
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X.sum(axis=1) + rng.normal(size=300)
    outcome = dsel.plan_search(
        learner, {"n_neighbors": [1, 5, 20]}, X,
        y > 0 if isinstance(learner, KNeighborsClassifier) else y,
        certificate="holdout", random_state=0,
    ).run()  # fmt: skip
    # One fit tests a candidate, so that nothing was left out for any of them.
    assert outcome.results.status.values.tolist() == [0, 0, 0]
    text = words(report_html(outcome.results)).partition("fingerprints")[0]
    assert "held-out rows 60 " in text
    assert "on the hold-out set: n_neighbors=" in text.replace(" has ", " ")
    assert "The best 3 candidates, by the hold-out set" in text
    for word in ("fold", "dropped", "cross-validation"):
        assert not re.search(rf"\b{word}", text.replace("hold-out", "")), word


def test_plain_sentences__need_that_equal_rows_are_no_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 2)).astype(float)
    y = (X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
    plan = dsel.plan_search(Sign(), {"column": [0]}, X, y, random_state=0)
    outcome = plan.run(n_jobs=1)
    condition = "below hold, and duplicates are no copies, at most 5%"
    assert outcome.certificate.conditions == ["duplicates are no copies"]
    assert condition in words(report_html(outcome.results))


@pytest.mark.parametrize("grouped", [True, False])
def test_pages__show_names_of_python_as_code_and_no_backticks(grouped, tmp_path):
    if grouped:
        rng = np.random.default_rng(0)
        X, groups = rng.normal(size=(200, 2)), np.repeat(np.arange(100), 2)
        y, pool = (X[:, 0] > 0).astype(int), rng.normal(size=(50, 2))
        plan = dsel.plan_search(
            Sign(), {"column": [0]}, X, y, pool, groups=groups, random_state=0
        )
        results, code = plan.run(n_jobs=1), "<code>pool</code> is not read"
    else:
        results = ModelComparison(0.05, 10_000, n_differ=200)
        code = "<code>predict</code> treats each row by itself"
    page = write_report(results, tmp_path / "page.html").read_text(encoding="utf-8")
    assert code in page
    assert "`" not in words(page)


def test_report_html__explains_an_auc_only_where_it_has_one():
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(100, 2)), rng.normal(size=(400, 2))
    X = np.concatenate([X, X])  # copies alone violate A1
    y = (X[:, 0] > 0).astype(int)
    plan = dsel.plan_search(Sign(), {"column": [0]}, X, y, pool, random_state=0)
    outcome = plan.run(n_jobs=1)
    [reason] = [a.reason for a in outcome.certificate.assumptions if a.name == "A1"]
    assert "copies" in reason
    assert "AUC" not in reason
    assert "About the two-sample test" not in words(report_html(outcome.results))


def test_pages__break_no_line_inside_of_an_option(outcome):
    page = report_html(outcome.results, names_of_options={"report=True": "--loss a"})
    assert "<code>--loss a</code>" in page
    assert "code { display: inline-block;" in page


def test_report_html__cuts_no_name_no_number_and_no_option_on_a_phone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    models = [KNeighborsClassifier(n_neighbors=n) for n in (9, 15)]
    plan = dsel.plan_search(
        Pipeline([("model", models[0])]), {"model": models}, X,
        (X[:, 0] > 0).astype(int), random_state=0,
    )  # fmt: skip
    command = ("dsel", "select", "rows.csv", "--out", "run")
    tables = RunTables("/data/rows.csv", "bought", command=command)
    page = report_html(plan.run(n_jobs=1).results, tables)
    assert "model=<wbr>KNeighborsClassifier(<wbr>n_neighbors=<wbr>" in page
    assert "<pre>dsel predict run NEW <span" in page
    for option in re.findall(r"--[a-z]+", words(page)):
        assert f'<span style="white-space:nowrap">{option}' in page


def test_report_html__says_in_numbers_of_rows_what_a_tolerance_and_groups_mean():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 1)), np.repeat(np.arange(100), 3)
    y = X.ravel() + 0.1 * rng.normal(size=300)
    of_numbers = dsel.certify(Ridge(), X, y, random_state=0)
    bound = of_numbers.certificate
    text = words(report_html(of_numbers.results))
    assert (
        f"Of 1,000 new rows the chosen model predicts at least 900 to within "
        f"{bound.amount(bound.bound)} of the true value on average." in text
    )
    of_groups = dsel.certify(
        Sign(), X, (X.ravel() > 0).astype(int), groups=groups, random_state=0
    )
    n_wrong = int(np.ceil(1000 * of_groups.certificate.bound))
    text = words(report_html(of_groups.results))
    assert (
        f"Of 1,000 rows, each of a new group, the chosen model gets at most {n_wrong} "
        f"wrong on average. This is about new groups of rows that come from" in text
    )


def test_report_html__of_groups_says_that_one_row_of_each_was_counted():
    X = np.random.default_rng(0).normal(size=(90, 1))
    options = {"groups": np.arange(90) // 3, "random_state": 0}
    for model, y, text in (
        (Ridge(), X[:, 0], "measured on labeled rows, one of each group, each"),
        (Sign(), X[:, 0] > 0, "Labeled rows, one of each group, by true class"),
    ):
        outcome = dsel.certify(model, X, y.astype(float), **options)
        assert text in words(report_html(outcome.results))


def test_report_html__names_the_step_of_a_pipeline_that_predicts():
    X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    outcome = dsel.certify(
        make_pipeline(StandardScaler(), "passthrough", Ridge()), X, y.ravel()
    )
    title = " How wrong this Ridge can be: 60 labeled rows"
    assert words(report_html(outcome.results)).startswith(title)


@pytest.mark.parametrize("grouped", [True, False])
def test_write_report__of_a_fitted_model_has_bound_assumptions_and_reports(
    grouped, tmp_path
):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(2, size=300)])
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    options = {"groups": np.repeat(np.arange(150), 2)} if grouped else {}
    made = dsel.certify(
        Sign().fit(X, y), X, y, cv="prefit", report=True, report_by=2, **options
    )
    page = write_report(made, tmp_path / "page.html").read_text(encoding="utf-8")
    text = words(page)
    assert made.headline() in text
    stated = [a.statement.replace("`", "") for a in made.assumptions_in_words]
    assert [statement for statement in stated if statement not in text] == []
    n_wrong = int(np.ceil(1000 * made.bound))
    rows = "1,000 rows, each of a new group," if grouped else "1,000 new rows"
    assert f"Of {rows} the model gets at most {n_wrong} wrong" in text
    for report in (made.certified_report(), made.report_by_value()):
        cells = [" ".join(row).strip() for row in report.table()]
        assert [row for row in cells if row not in text] == []
    assert page.count("<svg") == 3
    assert "fold" not in text.partition("Recall and precision")[0]


def test_write_report__of_a_fitted_regressor_has_its_tolerances(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(2, 200, 1))
    model = Ridge().fit(X[:100], y[:100].ravel())
    made = dsel.certify(model, X[100:], y[100:].ravel(), cv="prefit", report=True)
    text = words(write_report(made, tmp_path / "page.html").read_text("utf-8"))
    cells = [" ".join(row) for row in made.certified_report().table()]
    assert [row for row in cells if row not in text] == []


def test_report_html__of_a_regression_draws_residuals_and_more_labels():
    X, y = np.random.default_rng(0).normal(size=(2, 300, 1))
    outcome = dsel.certify(Ridge(), X, y.ravel(), random_state=0)
    page = report_html(outcome.results)
    assert "How far off predictions are" in words(page)
    assert "A line shows which share of the predictions is off by" in words(page)
    off = np.quantile(outcome.results.outer_residuals, 0.9, method="inverted_cdf")
    assert f"90% {amount_about(float(off))} 95%" in words(page)
    assert "for models that are as far off as these are. The other" in words(page)
    assert page.count("<svg") == 4  # those of the bound and of the folds, too


@pytest.mark.parametrize("deploy", ["one_fold", "all_rows"])
def test_report_html__has_the_confusion_matrix_of_one_fold_without_a_report(deploy):
    outcome = run_of_texts(deploy=deploy)
    [own] = [m for m in outcome.bounded_models.values() if m.name == "one_fold"]
    cells = np.array(own.confusion)
    with_report = run_of_texts(deploy=deploy, report=True)
    assert with_report.bounded_models["one_fold"].confusion == ()
    counted = with_report.results.outer_confusion.isel(fold=own.fold)
    assert np.array_equal(cells, counted)  # the same as a report counts
    text = words(report_html(outcome.results))
    model = {
        "one_fold": "The deployed model",
        "all_rows": "The model trained on a part of the labels",
    }[deploy]
    heads = (
        "on the fold that it had not seen true \u2193 predicted \u2192 no yes recall"
    )
    assert f"{model}, {heads} no {cells[0, 0]} {cells[0, 1]} " in text
    assert "need report=True in the first run, before any result is seen" in text


def run_of_texts(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:200, 0] + 0.5 * rng.normal(size=200) > 0.5, "yes", "no")
    plan = dsel.plan_search(
        Sign(), {"column": [0, 1]}, X[:200], y, X[200:], random_state=0, **options
    )
    return plan.run(n_jobs=1)


def test_write_report__names_models_of_python_the_date_and_the_version(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    old, new = Sign(column=1).fit(X, y), Sign().fit(X, y)
    compared = dsel.compare_models(old, new, X, random_state=0)
    fitted = dsel.certify(new, X, y, cv="prefit")
    pages = []
    for number, result in enumerate((compared, fitted)):
        path = dsel.write_report(result, tmp_path / f"{number}.html")
        pages.append(words(path.read_text(encoding="utf-8")))
        for text in (compared.sources["date"], f" dsel {dsel.__version__} "):
            assert text in pages[-1]
    # Models of one class are told apart by the parameters in which they differ.
    assert pages[0].startswith(" Is Sign(column=0) better than Sign(column=1)? ")
    assert pages[1].startswith(" How wrong this Sign can be, by 300 rows ")
    assert "if the model has not seen these 300 rows" in pages[1]


def test_report_html__has_the_commands_to_copy_and_words_in_place_of_codes(outcome):
    command = ("dsel", "select", "rows.csv", "--out", "my run", "--seed", "3")
    tables = RunTables("/data/rows.csv", "bought", command=command)
    page = re.sub("</?span[^>]*>|<wbr>", "", report_html(outcome.results, tables))
    above = page.partition("What the bound assumes")[0]
    for line in (
        "dsel predict 'my run' NEW --out predictions.csv",
        "dsel monitor 'my run' NEXT_MONTH",
    ):
        assert f"<pre>{line}</pre>" in html.unescape(above)
    assert "<pre>outcome.monitor(" in report_html(outcome.results)
    text = words(page)
    # A code stands once, next to its assumption: sentences have words.
    codes = [a.name for a in outcome.choice.assumptions]
    assert [text.count(f" {code} ") for code in codes] == [1] * len(codes)
    assert not [code for code in codes if f"({code})" in text]


def test_report_html__has_no_recall_of_several_classes_together(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0.9, "hi", np.where(X[:, 1] > 0, "lo", "mid"))

    class Exchanges(KNeighborsClassifier):
        """A model that takes each of two classes for the other one."""

        def predict(self, X):
            other = {"hi": "hi", "lo": "mid", "mid": "lo"}
            return np.array([other[label] for label in super().predict(X)])

    def rows_of_others(model, y):
        outcome = dsel.certify(
            model, X, y, loss=dsel.losses.recall("hi"), random_state=0
        )
        page = re.sub(r"<[^>]*>|\s+", " ", report_html(outcome.results))
        return re.findall(r"hi +[\d, ]+ +(\S+%) +others +([\d, ]+)(\S*%|)", page)

    joined = rows_of_others(Exchanges(), y)
    assert joined
    assert all(recall == "" for _, _, recall in joined)
    single = rows_of_others(KNeighborsClassifier(), np.where(y == "mid", "lo", y))
    assert single
    assert all(recall.endswith("%") for _, _, recall in single)
