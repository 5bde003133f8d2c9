"""Limits by the values of a column, beside plain counts of the same models."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel import losses
from dsel.data.groups import read_row_groups
from dsel.errors import DselWarning, StoreMismatchError
from dsel.losses.by_value import ValueColumn
from dsel.results import BoundedValues, Choice, ReportByValue
from tests.bounds.test_class_counts import upper

N, SITES = 9000, ["A", "B", "C"]
RNG = np.random.default_rng(3)
SITE = RNG.choice(SITES, N, p=[0.5, 0.4, 0.1])
NUMBERS = RNG.normal(size=(N, 3)).round(1)  # some rows are duplicates of others
NOISE = np.where(SITE == "B", 0.2, 0.02)
Y = np.where((NUMBERS[:, 0] + NUMBERS[:, 1] > 0) ^ (RNG.random(N) < NOISE), "yes", "no")
X = pd.DataFrame(NUMBERS, columns=list("abc")).assign(
    site=SITE.astype(object), sex=np.where(RNG.random(N) < 0.5, "f", "m")
)
POOL, TRUTH = X[600:], Y[600:]
X, Y = X[:600], Y[:600]
COLUMNS = ["site", "sex"]
ENCODER = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), COLUMNS), remainder="passthrough"
)
TREE = make_pipeline(ENCODER, DecisionTreeClassifier(random_state=0))
GRID = {"decisiontreeclassifier__max_depth": [2, 4]}
SHARES = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]
"""Of the folds of a nested search."""


def plan(learner=TREE, grid=GRID, X=X, y=Y, pool=POOL, **options):
    options = {"random_state": 7, "report_by": "site", **options}
    return dsel.plan_search(learner, grid, X, y, pool, **options)


def codes_of(column):
    return X[column].to_numpy(), POOL[column].to_numpy()


def by_hand(outcome, column, values, delta):
    """Return limits of both models by value, at a delta for all of them."""
    cube, m = outcome.results, len(POOL)
    fold = outcome.certificates["one_fold"].fold
    of_folds = cube.outer_value_counts.values
    of_pool = cube.outer_value_differences.values
    equal = cube.outer_duplicate_value_differences.values
    assert of_pool[..., 0].sum() == m * 5
    share = delta / len(values)
    one_fold, all_rows = [], []
    for place in range(len(values)):
        limits = [
            upper(errors, rows, 0.95 * share * w)
            for (rows, errors), w in zip(of_folds[:, place], SHARES, strict=True)
        ]
        sums = []
        for limit, (rows, differ), (e, e_differ) in zip(
            limits, of_pool[:, place], equal[:, place], strict=True
        ):
            fresh = rows - e + e_differ
            sums.append(limit + upper(differ, fresh, 0.05 * share / 5))
        one_fold.append(limits[fold])
        all_rows.append(min(sums))
    return one_fold, all_rows


@pytest.mark.parametrize("column", COLUMNS)
def test_report_by__has_limits_by_the_rows_of_each_value(column):
    made = plan(report_by=column, pool=pd.concat([POOL[:-300], X[:300]]))
    outcome = made.run()
    assert int(outcome.results.equal_rows) >= 300
    values = sorted(set(X[column]))
    one_fold, all_rows = by_hand(outcome, column, values, 0.025)
    for deploy, wanted in (("one_fold", one_fold), ("all_rows", all_rows)):
        found = outcome.report_by_value(deploy).to_dataframe()
        assert found.index.name == column
        assert found.index.tolist() == values
        own = ["error"] * (deploy == "one_fold")
        tests = ["test_rows"] * (deploy == "one_fold")
        pooled = ["pooled_error", "rows", "certified"]
        assert found.columns.tolist() == [*own, "error_at_most", *tests, *pooled]
        assert found.error_at_most.tolist() == pytest.approx(np.minimum(wanted, 1.0))
        assert found.rows.tolist() == [(X[column] == v).sum() for v in values]


def test_report_by__counts_what_the_deployed_models_predict():
    outcome = plan().run()
    fold = outcome.certificates["one_fold"].fold
    rows = plan().search.scheme.outer_splits[fold].test_rows
    one_fold, all_rows = (outcome.models[name] for name in ("one_fold", "all_rows"))
    wrong = one_fold.predict(X.iloc[rows]) != Y[rows]
    differ = one_fold.predict(POOL) != all_rows.predict(POOL)
    cube = outcome.results
    for value in SITES:
        there, in_pool = X.site.iloc[rows] == value, POOL.site == value
        counts = cube.outer_value_counts.sel(fold=fold, column_value=value)
        assert counts.values.tolist() == [there.sum(), wrong[there].sum()]
        counts = cube.outer_value_differences.sel(fold=fold, column_value=value)
        assert counts.values.tolist() == [in_pool.sum(), differ[in_pool].sum()]
    report = outcome.report_by_value("one_fold")
    errors = cube.outer_value_counts.sel(column_count="counted").sum("fold")
    rates = errors.sel(column_value=SITES).values / report.rows
    assert report.numbers.pooled == pytest.approx(rates)
    own = pd.Series(wrong).groupby(X.site.iloc[rows].to_numpy()).mean()
    assert report.numbers.own == pytest.approx(own[list(report.values)].tolist())
    assert (
        outcome.report_by_value("all_rows").numbers.own == ()
    )  # no labeled row tests it
    assert "pooled error" in str(report)
    assert report.pool_rows == tuple((POOL.site == v).sum() for v in SITES)
    # What the pool's own labels say of both models lies below the limits.
    for name, model in outcome.models.items():
        limits = outcome.report_by_value(name).to_dataframe().error_at_most
        is_wrong = pd.Series(model.predict(POOL) != TRUTH, POOL.index)
        assert (is_wrong.groupby(POOL.site).mean() <= limits).all()


def test_main_bound__does_not_depend_on_the_values_and_has_half_of_delta():
    whole = plan(report_by=None, delta=0.025).run()
    for column in COLUMNS:
        found = plan(report_by=column).run()
        for name, certificate in whole.certificates.items():
            assert found.certificates[name].unclipped == certificate.unclipped
            assert found.certificates[name].delta == 0.05


def test_report_by__without_a_pool_is_of_one_model():
    with_pool, without = (plan(pool=each).run() for each in (POOL, None))
    assert list(without.choice.by_model("report_by_value")) == ["one_fold"]
    report = without.report_by_value()
    limits = with_pool.report_by_value().limits
    # Its labels have all of delta.
    assert (np.array(report.limits) < limits).all()
    assert report.pool_rows == ()
    assert "outer_value_differences" not in without.results


def test_report_by__joins_a_loss_and_a_report_of_classes():
    both = plan(loss=losses.recall("yes"), report=True).run()
    alone = plan(loss=losses.recall("yes"), report=True, report_by=None).run()
    assert both.certified_report().classes == ("no", "yes")
    limits = [each.certified_report().error_at_most for each in (both, alone)]
    assert limits[0] > limits[1]
    wanted, _ = by_hand(both, "site", SITES, 0.025)
    assert both.report_by_value("one_fold").limits == pytest.approx(wanted)


def test_pool_rows__of_another_value_or_a_gap_are_told_of():
    pool = POOL.copy()
    pool.iloc[:40, 3] = "Z"
    pool.iloc[40:45, 3] = None
    report = plan(pool=pool).run().report_by_value("all_rows")
    assert report.values == tuple(SITES)
    assert report.other_pool_rows == 45
    assert sum(report.pool_rows) == len(pool) - 45
    line = "45 pool rows have another value of site: nothing is known about such rows"
    assert line in str(report).splitlines()
    # A value without pool rows has no limit of the model of all rows.
    lacking = plan(pool=POOL[POOL.site != "B"]).run()
    assert lacking.report_by_value("one_fold").limits[1] < 1
    assert lacking.report_by_value("all_rows").limits[1] == 1
    assert "At most 100.0%: too few rows" in str(lacking.report_by_value("all_rows"))


def test_gaps__are_a_value_unless_categories_may_become_gaps():
    rows, pool = X.copy(), POOL.copy()
    rows.iloc[::5, 3] = pool.iloc[::5, 3] = None
    found = plan(X=rows, pool=pool).run()
    report = found.report_by_value("all_rows")
    assert report.values == (*SITES, None)
    assert report.rows[-1] == 120
    assert report.limits[-1] < 1
    assert "(missing)" in str(report)
    # Of values that the labeled rows do not declare frames of categories make gaps.
    kind = pd.CategoricalDtype(["C", "B", "A"])
    pool = pool.assign(site=pool.site.where(pool.index % 7 > 0, "Z"))
    found = plan(X=rows.astype({"site": kind}), pool=pool).run()
    assert found.report_by_value("one_fold").values == ("C", "B", "A", None)
    assert found.report_by_value("one_fold").limits[-1] == 1
    assert found.report_by_value("all_rows").limits[-1] == 1
    assert found.report_by_value("all_rows").limits[1] < 1


def numbered(dtype=np.float64):
    """Return rows and a pool of numbers, of which the last column has three values."""
    place = np.searchsorted(SITES, [*X.site, *POOL.site]) / 10
    rows = np.column_stack([np.vstack([X[list("abc")], POOL[list("abc")]]), place])
    return rows[:600].astype(dtype), rows[600:].astype(dtype)


def test_column_of_an_array__is_named_by_its_position():
    rows, pool = numbered()
    tree, grid = DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}
    options = {"learner": tree, "grid": grid, "report_by": 3}
    dense = plan(X=rows, pool=pool, **options).run().report_by_value("all_rows")
    assert dense.values == (0.0, 0.1, 0.2)
    assert dense.column == "column 3"
    assert sum(dense.pool_rows) == len(pool)
    for given, unlabeled in (
        (rows, pool.astype(np.float32)),
        (rows.astype(np.float32), pool),
        (sparse.csr_matrix(rows), sparse.csr_matrix(pool)),
    ):
        found = plan(X=given, pool=unlabeled, **options).run()
        report = found.report_by_value("all_rows")
        assert report.pool_rows == dense.pool_rows
        assert report.rows == dense.rows
    frame = pd.DataFrame(rows)
    found = plan(X=frame, pool=pool, **options).run()
    assert found.report_by_value("all_rows") == dense


def test_values__of_any_type_are_found_in_the_pool():
    polars = pytest.importorskip("polars")
    when = pd.to_datetime(["2026-01-01", "2026-02-01"])
    for kind in ("truth", "time", "polars", "whole"):
        rows, pool = (
            each.assign(
                site={
                    "truth": each.site == "A",
                    "time": when[(each.site == "A").to_numpy(int)],
                    "polars": each.site,
                    "whole": np.searchsorted(SITES, each.site),
                }[kind]
            ).drop(columns="sex")
            for each in (X, POOL)
        )
        if kind == "polars":
            rows, pool = polars.from_pandas(rows), polars.from_pandas(pool)
        encoder = make_column_transformer(("passthrough", list("abc")))
        learner = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
        report = plan(learner, X=rows, pool=pool).run().report_by_value("all_rows")
        assert report.other_pool_rows == 0
        assert sum(report.pool_rows) == len(POOL)
        assert Choice.from_json(plan(learner, X=rows, pool=pool).run().choice.to_json())
    column = ValueColumn("a", 0, (0.1, 0.1 + 1e-9), (3, 2), "float64")
    single = np.array([[0.1], [0.2]], np.float32)
    assert column.codes(single).tolist() == [2, 2]  # nobody knows which it is


def test_column__has_a_number_for_each_value_even_if_no_row_has_the_last_ones():
    column = ValueColumn("a", 0, ("A", "B", "C"), (3, 2, 2))
    rows = np.array([["A"], ["A"]], object)
    assert column.with_rows(rows).rows == (2, 0, 0)
    assert column.with_rows(np.array([["D"], ["B"]], object)).rows == (0, 1, 0)


def test_report__is_text_html_and_a_frame_and_is_read_from_out(tmp_path):
    first, again = (plan().run(out=tmp_path) for _ in range(2))
    report = first.report_by_value()
    assert again.choice == first.choice
    assert again.report_by_value() == report
    assert ReportByValue.from_json(report.to_json()) == report
    opened = dsel.select(dsel.open_results(tmp_path))
    assert opened.report_by_value() == report
    lines = str(report).splitlines()
    assert lines[0] == (
        "Error by site (95% confidence, all limits jointly), "
        "model trained on 80% of the labels"
    )
    assert " ".join(lines[1].split()) == (
        "site error at most rows pooled error all rows"
    )
    assert [line.split()[0] for line in lines[2:5]] == SITES
    page = report._repr_html_()
    assert page.count("<tr>") == 4
    for cell in report.table()[2]:
        assert f">{cell}</td>" in page
    escaped = ReportByValue(0.05, "m", "s", ("<b>",), (1,), BoundedValues((1.0,)))
    assert "&lt;b&gt;" in escaped._repr_html_()


def test_report__resumed_after_a_stop_is_the_same(tmp_path):
    def stop(progress):
        if progress.fits_done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan().run(out=tmp_path, on_progress=stop)
    assert plan().run(out=tmp_path).choice == plan().run().choice
    with pytest.raises(StoreMismatchError, match="report_by"):
        plan(report_by="sex").run(out=tmp_path)


def test_report__of_a_cube_that_was_changed_is_no_guarantee():
    results = plan().run().results
    assert not dsel.select(results).report_by_value().reasons
    turned = results.isel(decisiontreeclassifier__max_depth=slice(None, None, -1))
    found = dsel.select(turned)
    assert str(found.report_by_value()).startswith("No guarantee, since the cube was")


def test_certify__and_the_estimator_report_by_value():
    outcome = dsel.certify(TREE, X, Y, POOL, report_by="site", random_state=0)
    assert outcome.report_by_value("all_rows").values == tuple(SITES)
    search = dsel.SemiSupervisedSearchCV(TREE, GRID, report_by="site", random_state=7)
    report = search.fit(X, Y, pool=POOL).report_by_value("all_rows")
    assert report == plan().run().report_by_value("all_rows")


HEIGHT = pd.concat([X, POOL]).a * 3 + 10 * (SITE == "B") * RNG.standard_cauchy(N)
RIDGE = make_pipeline(ENCODER, Ridge())
REGRESSION = {
    "learner": RIDGE, "grid": {"ridge__alpha": [0.1, 10.0]}, "y": HEIGHT[:600]
}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        REGRESSION,
        REGRESSION | {"loss": losses.beyond(100.0)},
        REGRESSION | {"loss": losses.error_quantile(0.5), "report": [0.8]},
    ],
    ids=["error", "tolerance", "beyond", "with a report"],
)
def test_one_value__has_the_limits_of_all_rows(options):
    rows, pool = (each.assign(site="A") for each in (X, POOL))
    pool = pd.concat([pool, rows[:200]])
    by_value = plan(X=rows, pool=pool, **options).run()
    alone = {**options, "report": False, "report_by": None, "delta": 0.025}
    whole = plan(X=rows, pool=pool, **alone).run()
    one_fold, all_rows = whole.certificates["one_fold"], whole.certificates["all_rows"]
    assert by_value.certificates["one_fold"].fold == one_fold.fold
    assert by_value.report_by_value("one_fold").limits == (one_fold.bound,)
    assert by_value.report_by_value("all_rows").limits == (all_rows.bound,)
    assert by_value.report_by_value("one_fold").numbers.pooled == (one_fold.estimate,)
    assert np.isfinite(all_rows.bound)


def test_regressor__has_a_tolerance_for_each_value():
    options = REGRESSION | {"loss": losses.error_quantile(0.7)}
    outcome = plan(**options).run()
    fold = outcome.certificates["one_fold"].fold
    rows = plan(**options).search.scheme.outer_splits[fold].test_rows
    errors = np.abs(HEIGHT[:600] - outcome.models["one_fold"].predict(X)).iloc[rows]
    report = outcome.report_by_value("one_fold")
    for site, limit in zip(SITES, report.limits, strict=True):
        there = errors[X.site.iloc[rows] == site]
        share = 0.95 * 0.025 / 3 * SHARES[fold]
        fitting = [
            t
            for t in there
            if upper((there > t).sum(), len(there), share) <= 0.3 + 1e-12
        ]
        assert limit == pytest.approx(min(fitting, default=np.inf))
    # Of 60 rows, 12 a fold, nothing can be said.
    assert np.isinf(report.limits[2])
    table = report.to_dataframe()
    assert table.columns.tolist() == [
        "off_by", "off_by_at_most", "test_rows", "pooled_off_by", "rows", "certified",
    ]  # fmt: skip
    assert table.off_by_at_most["A"] < table.off_by_at_most["B"]
    lines = str(report).splitlines()
    assert lines[0].startswith("How far 70% of predictions are off, by site (95% conf")
    assert " ".join(lines[1].split()) == (
        "site off by at most rows pooled off by all rows"
    )
    assert lines[-1].startswith("none: too few rows")
    assert ReportByValue.from_json(report.to_json()) == report
    text = " ".join(str(plan(**options)).split())
    assert "'C' (" in text
    assert "the tolerance would be infinite; a value needs about" in text
    beyond = plan(**REGRESSION | {"loss": losses.beyond(2.0)}).run().report_by_value()
    assert list(beyond.to_dataframe())[:2] == ["share", "share_at_most"]
    assert beyond.headline().startswith(
        "Share of bad predictions (off by more than 2), by "
    )


def test_regressor__whose_model_is_not_kept_is_counted_again(tmp_path):
    encoder = make_column_transformer(("passthrough", list("abc")))
    learner = make_pipeline(encoder, FunctionTransformer(lambda rows: rows), Ridge())
    # Of 601 rows one fold has a row more, so that those of others end with gaps.
    options = REGRESSION | {"learner": learner, "y": HEIGHT[:601]}
    rows = pd.concat([X, POOL[:1]])
    with pytest.warns(DselWarning, match="models cannot be kept"):
        first = plan(X=rows, **options).run(out=tmp_path)
    again = plan(X=rows, **options).run(out=tmp_path)
    assert list(again.models) == ["one_fold", "all_rows"]
    assert again.report_by_value() == first.report_by_value()


@pytest.mark.cluster
def test_report__is_counted_on_two_processes_as_on_threads(processes):
    here, there = plan().run(), plan().run(processes)
    assert here.choice == there.choice
    names = ["outer_value_counts", "outer_value_differences"]
    assert here.results[names].equals(there.results[names])


def test_plan__names_values_of_too_few_rows_and_what_they_need():
    text = " ".join(str(plan()).split())
    assert "errors by site, of 3 values" in text
    rows = X.assign(site=X.site.where(np.arange(600) % 100 > 0, "D"))
    text = " ".join(str(plan(X=rows)).split())
    share = 0.95 * 0.025 / 4 / 2
    needed, of_last_fold = (
        next(n for n in range(1, 99) if upper(0, n, of_fold) <= 0.5)
        for of_fold in (share, share / 8)
    )
    assert (
        f"too few labeled rows to say anything about 'D' (6) of 'site': even without "
        f"an error the limit would be above 50%; a value needs about {5 * needed} "
        f"to {5 * of_last_fold} rows, by the deployed fold"
    ) in text
    assert "too few" not in str(plan())


def many(n):
    return X.assign(site=np.arange(600) % n)


LISTS = X.assign(site=pd.Series([[1]] * 600, dtype=object))
LABEL = pd.Series(Y, name="label")
REFUSED = [
    ({"report_by": "sight"}, ValueError, "`report_by` 'sight' 5 columns mean 'site'?"),
    ({"report_by": 3}, ValueError, "`report_by` 3 mean 'site'?"),
    ({"report_by": True}, TypeError, "`report_by` name True"),
    ({"report_by": ["site", "sex"]}, TypeError, "`report_by` one column several"),
    ({"report_by": "label", "y": LABEL}, ValueError, "'label' labels report=True"),
    ({"X": many(101)}, ValueError, "`report_by` 'site' 100 101 bins fixed before"),
    ({"report_by": "a", "X": X.assign(a=RNG.normal(size=600))}, ValueError, "bins 600"),
    ({"X": LISTS, "pool": None}, TypeError, "`report_by` 'site' [1] texts"),
    ({"X": numbered()[0], "report_by": "site"}, ValueError, "'site' position 0 3"),
    ({"X": numbered()[0], "report_by": 4}, ValueError, "`report_by` 0 3 got 4"),
    ({"certificate": "cv_bound"}, ValueError, "`report_by` 'site' 'cv_bound' nested"),
    ({"certificate": "holdout"}, ValueError, "`report_by` 'site' 'holdout' nested"),
    ({"criterion": "cv_error"}, ValueError, "`report_by` 'site' nested"),
    ({"n_queries": 20}, ValueError, "`n_queries` report_by"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2])
def test_report_by__refuses(case):
    options, kind, words = case
    if "X" in options:
        options = {"pool": None, **options}
    with pytest.raises(kind) as caught:
        plan(**options)
    assert [word for word in words.split() if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [X["site"], SITE[:600], X["sex"].rename("ward")])
def test_report_by__of_values_names_the_column_that_they_need(values):
    with pytest.raises(TypeError, match="must be the name of one column") as caught:
        plan(report_by=values)
    text, rows = str(caught.value), X
    if (code := re.search(r"values, (X\.assign\(.+?\)), and", text)) is not None:
        rows = eval(code[1], {"X": X, "values": values})  # noqa: S307
    assert (code is None) == ("site" in rows and "X.assign" not in text)
    name = re.search("write report_by='(.+)'", text)[1]
    tree = DecisionTreeClassifier(random_state=0)
    model = make_pipeline(dsel.data.make_encoder(rows), tree)
    made = plan(model, X=rows, pool=None, report_by=name).run()
    assert made.report_by_value().values == tuple(sorted({*values}))


def test_few_rows__with_many_values_are_refused():
    few = X[:30].assign(a=np.arange(30.0))
    with pytest.raises(ValueError, match="at most 15 different values in 30 rows"):
        plan(X=few, y=Y[:30], report_by="a")


def test_what_was_not_declared_is_not_certified():
    with pytest.raises(ValueError, match=r"report=True.*report_by_value\(\)"):
        plan(pool=None).run().certified_report()
    with pytest.raises(ValueError, match="report_by='site'"):
        plan(
            SVC(), {"C": [1]}, X=numbered()[0], pool=None, report_by=None
        ).run().report_by_value()


def test_report_by__of_a_regressor_is_infinite_where_a_fold_lacks_the_value():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "site": 0.0})
    X.loc[rng.choice(600, 4, replace=False), "site"] = 1.0
    y = X["a"] + rng.normal(size=600)
    pool = X.sample(2000, replace=True, random_state=0) + 0.01 * np.array([1.0, 0.0])
    search = dsel.SemiSupervisedSearchCV(
        Ridge(), {"alpha": [1.0, 2.0]}, report_by="site", random_state=0
    )
    search.fit(X, y, pool=pool)
    for deploy in ("one_fold", "all_rows"):
        limits = search.report_by_value(deploy).to_dataframe()["off_by_at_most"]
        assert np.isfinite(limits.iloc[0])
        assert np.isinf(limits.iloc[1])


def test_report_by__in_groups_reads_values_of_drawn_rows_alone():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=800), "site": ["A", "B"] * 400})
    y = (X["a"] + rng.normal(size=800) > 0).astype(int)
    groups = np.arange(800) // 4
    # Which rows are drawn depends on seed and groups alone.
    is_drawn = read_row_groups(groups, len(X)).draw_rows(seed=0)
    X["site"] = np.where(is_drawn, X["site"], "only where nothing is counted")
    search = dsel.SemiSupervisedSearchCV(clone(TREE).set_params(
        columntransformer=make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["site"]), remainder="passthrough"
        )
    ), GRID, report_by="site", random_state=0)  # fmt: skip
    report = search.fit(X, y, groups=groups).report_by_value("one_fold")
    assert report.to_dataframe().index.tolist() == ["A", "B"]
    assert sum(report.rows) == 200
