"""Figures show the cube's numbers, and say what is a bound and what is not."""

import inspect
import itertools
from dataclasses import replace
from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.criteria import CRITERIA
from dsel.least_squares import LeastSquaresSearch
from dsel.plots import (
    plot_audit_failures,
    plot_bound_by_labels,
    plot_bound_plan,
    plot_certificates,
    plot_certified_report,
    plot_comparison,
    plot_folds,
    plot_loss_curves,
    plot_report_by_value,
    plot_surface,
    plot_terms,
)
from dsel.plots.bars import FROM_POOL, plot_timing
from dsel.plots.by_labels import COLORS
from dsel.plots.style import ACCENT, INK, TO_COMPARE
from dsel.report import write_report
from dsel.report.page import report_html
from dsel.results import BoundedValues, ModelComparison, ReportByValue
from dsel.results.caveats import Caveat, Effect
from dsel.results.choice_texts import holdout_text
from dsel.rounded_texts import about_percent, in_percent
from dsel.search.design.certificate_methods import METHODS
from dsel.search.planning.plan_bound import describe_row, name_row

MIN_MAX = (np.min, np.max)
GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"]}


@pytest.fixture(autouse=True)
def off_screen():
    mpl.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def run(grid=GRID, **options):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1200, 3))
    y = (X[:200, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    given = {"cv": 3, "random_state": 0} | options
    plan = dsel.plan_search(KNeighborsClassifier(), grid, X[:200], y, X[200:], **given)
    return plan.run(n_jobs=1).results


@pytest.fixture(scope="module")
def nested():
    return run()


@pytest.fixture(scope="module")
def bounded():
    return run(certificate="cv_bound", prune=False)


@pytest.fixture(scope="module")
def reported():
    return run(report=True)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def are_hatched(ax):
    """Return whether all filled bars are hatched; those of the legend are."""
    bars = [bar for bars in ax.containers for bar in bars if bar.get_fill()]
    return {bar.get_hatch() for bar in bars} == {"////"}


def texts(ax):
    return [each.get_text() for each in ax.texts]


def test_plot_surface__has_a_cell_for_each_candidate_and_marks_the_chosen(bounded):
    ax = plot_surface(bounded)
    ax.figure.canvas.draw()
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), bounded.dsel.bound())
    assert [each.get_text() for each in ax.get_yticklabels()] == ["1", "3", "9", "27"]
    place = np.unravel_index(bounded.dsel.select().candidate, (4, 2))
    frame = ax.patches[-1]
    assert (frame.get_y() + 0.5, frame.get_x() + 0.5) == place
    assert "Error at most" in ax.get_title(loc="left")
    label = f"bound on the error ({bounded.attrs['certificate']}), %"
    assert image.colorbar.ax.get_ylabel() == label


def test_plot_surface__of_a_nested_search_shows_estimates(nested):
    ax = plot_surface(nested)
    ax.figure.canvas.draw()
    (image,) = ax.images
    # It is not the cross-validated error that is printed next to a bound.
    label = "error (inner cross-validation, an estimate), %"
    assert image.colorbar.ax.get_ylabel() == label
    assert np.isfinite(image.get_array()).all()


@pytest.mark.parametrize(
    "grid",
    [{"n_neighbors": [1, 3, 9]}, [{"n_neighbors": [1, 3]}, {"weights": ["distance"]}],
     {"n_neighbors": [1], "p": [1.0, 2.0]}],
    ids=["line", "list", "one row"],
)  # fmt: skip
def test_plot_surface__draws_any_grid(grid):
    results = run(grid, certificate="cv_bound")
    for y in (None, results["status"].dims[-1]):
        ax = plot_surface(results, y=y)
        ax.figure.canvas.draw()
        assert ax.get_title(loc="left")


def test_plot_certificates__has_both_models_beside_a_hold_out_set(nested):
    ax = plot_certificates(nested)
    choice = nested.dsel.select()
    one_fold, all_rows = choice.certificates.values()
    is_far = choice.largest_class_error > 2 * max(
        all_rows.bound, choice.expected_holdout
    )
    assert texts(ax) == [
        f"{one_fold.model_text}: at most {in_percent(one_fold.bound)}",
        f"{all_rows.model_text}: at most {in_percent(all_rows.bound)}",
        f"20% hold-out set: about {holdout_text(choice)} on average",
        f"always predicting {choice.largest_class}: about "
        f"{100 * choice.largest_class_error:.1f}%"
        + (", beyond this axis" if is_far else ""),
    ]
    # Its bar is cut at the edge: on its scale the bounds would look alike.
    assert (ax.get_xlim()[1] < choice.largest_class_error) == is_far
    dot = f"estimate (cross-validated: about {100 * one_fold.estimate:.1f}%)"
    dots = ax.lines[0].get_xdata()
    np.testing.assert_array_equal(dots, [one_fold.estimate, *[np.nan] * 3])
    title = ax.get_title(loc="left")
    assert f"{title}, {one_fold.model_text}" == one_fold.headline()
    shown = [" ".join(text.split()) for text in legend_texts(ax)]  # lines may wrap
    assert shown == ["bound, from labeled rows", FROM_POOL, TO_COMPARE, dot]


def test_plot_certificates__shows_no_labeled_part_where_the_pools_is_above_all(nested):
    choice = nested.dsel.select()
    models = dict(choice.bounded_models)
    certificate = replace(
        models["all_rows"].certificate, unclipped=2.4, label_term=1.0,
        disagreement_term=1.4,
    )  # fmt: skip
    models["all_rows"] = replace(models["all_rows"], certificate=certificate)
    changed = replace(choice, bounded_models=models)
    ax = plot_certificates(nested.assign_attrs(choice=changed.to_json()))
    assert any("no bound below 100%" in text for text in texts(ax))
    parts = [bar.get_width() for bars in ax.containers for bar in bars]
    n = len(texts(ax))  # the first parts of all bars, then the second ones
    assert (parts[1], parts[n + 1]) == (0.0, 1.0)


def test_plots__of_long_parameters_show_what_differs_and_cut_nothing():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    model = Pipeline([("scale", StandardScaler()), ("model", KNeighborsClassifier())])
    grid = {"model__n_neighbors": [1, 3, 9], "model__weights": ["uniform", "distance"],
            "model__leaf_size": [30], "model__algorithm": ["ball_tree"]}  # fmt: skip
    plan = dsel.plan_search(model, grid, X, y, cv=3, random_state=0, prune=False)
    cube = plan.run(n_jobs=1).results
    for plot in (plot_certificates, plot_surface, plot_folds):
        figure = Figure(figsize=(4.6, 3.6), layout="constrained")  # as in the page
        ax = plot(cube, ax=figure.add_subplot())
        figure.canvas.draw()
        shown = drawn_texts(ax)
        cut = [t.get_text() for t in shown if t.get_window_extent().x1 > 462]
        assert not cut
        assert not any("model__" in t.get_text() for t in shown)
        if plot is plot_folds:
            labels = texts(ax)
            assert len({*labels}) == 6
            assert "n_neighbors=3, weights='uniform'" in labels


def test_plot_certified_report__has_bars_of_limits_and_dots_of_the_model(reported):
    report = reported.dsel.select().report()
    # No row tests the model of all labels.
    pooled = plot_certified_report(reported.dsel.select().report("all_rows"))
    assert legend_texts(pooled)[-1] == "estimate (models of all folds, pooled)"
    dots = list(pooled.lines[0].get_xdata())
    assert dots[:2] == list(report.recall.pooled)
    ax = plot_certified_report(report)
    bounds = [
        "recall at least (upper bar)",
        "precision at least (lower bar)",
        "error at most",
    ]
    assert legend_texts(ax) == [*bounds, "estimate (this model)"]
    limits = report.recall_at_least, report.precision_at_least, [report.error_at_most]
    for bars, numbers in zip(ax.containers, limits, strict=True):
        assert [bar.get_width() for bar in bars] == list(numbers)
    dots = list(ax.lines[0].get_xdata())
    assert dots == [*report.recall.own, *report.precision.own, *report.error.own]
    name, _, found, _, right, _ = report.table()[1]
    assert (
        texts(ax)[0] == f"{name}: recall at least {found}, precision at least {right}"
    )
    assert "95% confidence" in ax.get_title(loc="left")
    named = replace(report, classes=("a" * 70, "b"))  # or it would leave no bars
    assert texts(plot_certified_report(named))[0].startswith("a" * 21 + "...: recall")
    doubted = replace(report, caveats=(Caveat(Effect.VOIDS, "A1 is violated"),))
    ax = plot_certified_report(doubted)
    assert ax.get_title(loc="left").startswith("No guarantee, model trained")
    assert are_hatched(ax)


def test_plot_report_by_value__has_bars_of_limits_and_dots_of_errors():
    values, rows = ("north", "s" * 40, None), (800, 90, 31)
    report = ReportByValue(
        0.05,
        "the model",
        "site",
        values,
        rows,
        BoundedValues((0.06, 0.3, 1.0), pooled=(0.04, 0.1, 0.2)),
    )
    ax = plot_report_by_value(report)
    [bars] = ax.containers
    assert [bar.get_width() for bar in bars] == list(report.limits)
    assert list(ax.lines[0].get_xdata()) == list(report.numbers.pooled)
    assert legend_texts(ax) == ["at most", "estimate (models of all folds, pooled)"]
    assert texts(ax) == [
        "north: at most 6.0%, about 4.0% on 800 labeled rows",
        f"{'s' * 21}...: at most 30.0%, about 10.0% on 90 labeled rows",
        "(missing): no limit, about 20.0% on 31 labeled rows",
    ]
    assert ax.get_title(loc="left") == "Error by site (95% confidence), the model"
    doubted = replace(report, caveats=(Caveat(Effect.VOIDS, "A1 is violated"),))
    hatched = plot_report_by_value(doubted)
    assert hatched.get_title(loc="left") == "No guarantee: Error by site, the model"
    assert (are_hatched(ax), are_hatched(hatched)) == (False, True)
    with pytest.raises(TypeError, match="`report`"):
        plot_report_by_value(None)
    limits = (2.0, np.inf, np.inf)
    numbers = BoundedValues(limits, pooled=report.numbers.pooled)
    off = replace(report, quantity="off_by", what="How far", numbers=numbers)
    ax = plot_report_by_value(off)
    assert texts(ax)[0].startswith("north: at most 2.00, about 0.0400 on")
    assert texts(ax)[1].startswith(f"{'s' * 21}...: no limit, about")
    assert ax.get_xlim()[1] == pytest.approx(2.1)
    assert ax.get_xlabel() == "Off by, in units of the target"
    assert ax.xaxis.get_major_formatter()(12_500) == "12,500"


@pytest.mark.parametrize(
    ("loss", "label", "says"),
    [
        (
            dsel.losses.recall(1),
            "Misses of 1 ({how}), %",
            "Misses of 1 (100% minus recall), %",
        ),
        (
            dsel.losses.cost([[0, 9], [1, 0]], [0, 1]),
            "Mean cost ({how})",
            "Mean cost",
        ),
    ],
    ids=["recall", "cost"],
)
def test_plots__name_the_declared_loss(loss, label, says):
    results = run({"n_neighbors": [1, 3, 9]}, loss=loss)
    ax = plot_surface(results)
    how = "inner cross-validation, an estimate"
    assert " ".join(ax.get_ylabel().split()) == label.format(how=how)
    line, folds, *_ = (each.get_ydata() for each in ax.lines)
    assert np.isfinite(line).sum() == 3  # dropped ones too
    np.testing.assert_allclose(np.reshape(folds, (3, -1)).mean(1), line)
    assert plot_certificates(results).get_xlabel() == says
    # Of the loss alone, read again, nothing is a percent that is none.
    whole = run({"n_neighbors": [1, 3, 9]}, loss=loss, prune=False)
    told = whole.dsel.select("mean_loss").certificate
    assert told.title == label.partition(" (")[0]
    assert ("%" in told.amount(told.bound)) == ("%" in label)


def test_plot_terms__adds_up_best_first(bounded):
    ax = plot_terms(bounded, n_best=3)
    ends = [
        first.get_width() + second.get_width()
        for first, second in zip(*ax.containers, strict=True)
    ]
    best = np.sort(bounded.dsel.bound().values.ravel())[:3]
    np.testing.assert_allclose(ends, best)


def test_plot_timing__sums_the_seconds(bounded):
    ax = plot_timing(bounded)
    (bars,) = ax.containers
    names = ("fit_seconds", "full_fit_seconds", "score_seconds")
    sums = [float(bounded[name].sum()) for name in names if name in bounded]
    assert [bar.get_width() for bar in bars] == sums


def test_plot_bound_plan__has_a_line_for_each_certificate():
    several = dsel.plan_bound(500, 100_000, n_candidates=225, error=0.1, cv=[2, 5, 10])
    ax = plot_bound_plan(several)
    names = several["certificate"].values.tolist()
    shown = [" ".join(text.split()) for text in texts(ax)]
    assert sorted(shown) == sorted(map(describe_row, names))
    assert all(f"({name})" in describe_row(name) for name in ("cv_bound", "best_fold"))
    smallest = several.bound.isel(certificate=names.index("one_fold"))
    n_folds = several.n_folds.values[np.argmin(smallest.values)]
    assert " ".join(ax.get_title(loc="left").split()) == (
        f"Smallest bound to expect: {about_percent(float(smallest.min()))} with "
        f"{n_folds} folds (chosen model, trained without a fold)"
    )
    narrow = Figure(figsize=(3.8, 3.6)).add_subplot()
    assert sorted(texts(plot_bound_plan(several, ax=narrow))) == sorted(
        map(name_row, names)
    )
    one = several.sel(n_folds=[5])  # of which there is nothing to connect
    ax = plot_bound_plan(one)
    widths = [bar.get_width() for bar in ax.containers[0]]
    assert widths == sorted(one.bound.values.ravel())
    assert (
        texts(ax)[0] == f"chosen model, trained without a fold: {in_percent(widths[0])}"
    )
    assert "with 5 folds" in ax.get_xlabel()
    # A bar in the color of texts would not be seen on a dark ground.
    assert INK not in [to_hex(bar.get_facecolor()) for bar in ax.patches]


def test_legends__are_above_the_data_in_a_grid_of_small_axes(nested):
    figure, axes = plt.subplots(2, 2, layout="constrained")
    cube = run({"n_neighbors": [1, 3, 9, 27, 41, 61, 81]})
    drawn = [
        plot_bound_by_labels(cube, ax=axes[0, 0]),
        plot_surface(cube, ax=axes[0, 1]),
    ]
    few = plot_folds(cube, ax=axes[1, 0])
    figure.canvas.draw()
    for ax in drawn:
        assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1
    # Labels and dots of candidates are apart: there are as many as have room.
    assert 3 <= len(texts(few)) < len(texts(plot_folds(cube)))


def test_plot_loss_curves__draws_every_estimate(rng):
    X = rng.uniform(-2, 2, (30, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    search = LeastSquaresSearch([0.3, 1.0], [10.0, 1e-3, 1e-1], cv=5, random_state=0)
    cube = search.fit(X, y).results_
    ax = plot_loss_curves(cube, criterion="gcv")
    # Curves are in the order of the cube, and named by words.
    assert [line.get_label() for line in ax.lines[: cube.sizes["criterion"]]] == [
        "leave-one-out", "generalized cross-validation", "first fold, held out",
        "mean of 5 folds"
    ]  # fmt: skip
    assert "by generalized cross-validation" in " ".join(ax.get_title("left").split())
    assert "bound" not in ax.get_title("left")
    assert ax.lines[0].get_xdata().tolist() == [1e-3, 1e-1, 10.0]


def test_plot__of_a_least_squares_search_draws_curves_and_has_no_bounds(rng):
    X = rng.uniform(-2, 2, (30, 1))
    cube = LeastSquaresSearch([0.3], [1e-3, 1e-1]).fit(X, np.sin(X[:, 0])).results_
    assert cube.dsel.plot().get_ylabel().startswith("estimated squared error")
    for name in ("surface", "certificates", "terms"):
        with pytest.raises(ValueError, match="of a least-squares search"):
            getattr(cube.dsel.plot, name)()


def test_plots__say_of_estimates_that_nothing_is_guaranteed():
    estimated = run(criterion="cv_error")
    estimate = estimated.dsel.select().criterion_value
    ax = plot_certificates(estimated)
    text, constant = texts(ax)
    assert text.endswith(f": about {100 * estimate:.1f}%")
    assert constant.startswith("always predicting ")
    assert legend_texts(ax) == ["no guarantee", TO_COMPARE]
    assert are_hatched(ax)
    assert ax.get_title("left") == f"No guarantee: error about {100 * estimate:.1f}%"
    end = f"No guarantee; estimate about {100 * estimate:.1f}%"
    assert plot_surface(estimated).get_title("left").endswith(end)


def test_plots__mark_candidates_that_were_dropped_by_triangles():
    grid = {"n_neighbors": [1, 9, 99, 159], "weights": ["uniform", "distance"]}
    cube = run(grid, cv=5)
    status = cube.dsel.table().status
    assert {"pruned", "partly pruned"} < set(status)
    n_dropped = int((status != "done").sum())
    is_mark = [line.get_marker() == "^" for line in plot_surface(cube).lines]
    assert sum(is_mark) == n_dropped + 1  # and that of the legend
    for ax in (plot_surface(cube), plot_folds(cube)):
        assert "dropped early, from fewer fits" in legend_texts(ax)
    drawn = [line for line in plot_folds(cube).lines if line.get_marker() == "^"]
    assert all(line.get_fillstyle() == "none" for line in drawn)


def test_plot_audit_failures__shows_the_shares():
    settings = ["folds pooled", "luckiest fold"]
    report = dsel.audit(settings, delta=(0.5, 0.2), n_draws=20, random_state=0)
    ax = plot_audit_failures(report)
    assert len(ax.get_yticks()) == 2 * len(settings)
    (shown,) = [each for each in ax.lines if each.get_marker() == "o"]
    np.testing.assert_array_equal(
        shown.get_xdata() * 20, report.failures.values.ravel()
    )


def test_plots__draw_on_new_axes_or_on_those_of_a_part_of_a_figure(bounded):
    figures = {
        "surface": plot_surface,
        "certificates": plot_certificates,
        "terms": plot_terms,
        "timing": plot_timing,
        "folds": plot_folds,
    }
    whole = Figure(figsize=(20, 12))
    parts = whole.subfigures(1, len(figures))
    for part, (name, plot) in zip(parts, figures.items(), strict=True):
        method = getattr(bounded.dsel.plot, name)
        taken = [*inspect.signature(plot).parameters][1:]
        assert [*inspect.signature(method).parameters] == taken
        assert method.__doc__
        own = part.add_subplot()
        assert getattr(bounded.dsel.plot, name)(ax=own) is own
        new = plot(bounded)
        titles = [axes.get_title(loc="left").split() for axes in (own, new)]
        assert titles[0] == titles[1] != []
    whole.canvas.draw()


def test_plot__of_an_outcome_draws_each_figure_that_its_search_has():
    X, y = make_classification(300, 5, random_state=0)
    search = dsel.SemiSupervisedSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3, 9]}, random_state=0
    )
    with pytest.raises(NotFittedError):
        _ = search.plot
    outcome = search.fit(X, y).plan_.run()
    for plots in (outcome.plot, search.plot):
        assert "n_neighbors" in plots().get_xlabel()
        for name in ("certificates", "folds", "timing"):
            assert getattr(plots, name)().get_title("left") != ""
        # A search whose bounds are of models only says which figures there are.
        with pytest.raises(ValueError, match=r"plot.certificates\(\).* plot.folds\(\)"):
            plots.terms()
        with pytest.raises(AttributeError, match=r"did you mean 'timing'\?"):
            plots.timings()


def test_plot__of_an_outcome_draws_its_reports_and_more_labels(reported, nested):
    for name in ("one_fold", "all_rows"):
        report = reported.dsel.select().report(name)
        assert reported.dsel.plot.report(name).get_title("left") == (
            plot_certified_report(report).get_title("left")
        )
    assert nested.dsel.plot.bound_by_labels().get_xlabel() == "labeled rows"
    for figure, words in (("report", "report=True"), ("report_by_value", "report_by=")):
        with pytest.raises(ValueError, match=words):
            getattr(nested.dsel.plot, figure)()


def test_plot_bound_by_labels__of_groups_counts_groups():
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(400, 3)), np.arange(400) // 2
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [5]}, X, y, groups=groups,
        random_state=0,
    )  # fmt: skip
    ax = plot_bound_by_labels(plan.run(n_jobs=1).results)
    assert ax.get_xlabel() == "groups of labeled rows"
    squares = [line.get_xdata() for line in ax.lines if line.get_marker() == "s"]
    assert {at for xs in squares for at in xs} == {200}


REFUSED = [
    (lambda cube, _: plot_surface(cube, x="fold"), ValueError,
     "`x` must be one of .* got 'fold'"),
    (lambda _, nested: plot_terms(nested), ValueError, "has no two terms to show"),
    (lambda _, nested: nested.dsel.plot.timing(), ValueError,
     r"outcome.pair_results.dsel.plot.timing\(\)"),
    (lambda cube, _: plot_loss_curves(cube), ValueError, "those of a LeastSquaresSear"),
    (lambda *_: plot_loss_curves(5), TypeError, "an xarray.Dataset .* got int"),
    (lambda cube, _: cube.dsel.plot.errors(), AttributeError,
     "no attribute 'errors'; it has surface"),
]  # fmt: skip


@pytest.mark.parametrize(("draw", "error", "words"), REFUSED)
def test_plots__refuse(bounded, nested, draw, error, words):
    with pytest.raises(error, match=words):
        draw(bounded, nested)


def test_plot_comparison__draws_limits_and_the_verdict():
    question = ModelComparison(
        0.05, 10_000, n_differ=300, n_queries=4, classes=(0, 1), rows=(1, 2, 3, 4),
        old_predictions=(0,) * 4, new_predictions=(1,) * 4,
    )  # fmt: skip
    for comparison, ends in (
        (question, [question.disagreement]),
        (answer := question.certify_with_labels([1] * 4), [answer.upper]),
    ):
        ax = plot_comparison(comparison)
        drawn = [bars[0].get_bbox().x1 for bars in ax.containers]
        assert drawn[: len(ends)] == pytest.approx(ends)
        assert texts(ax)[-1].startswith("from the pool alone: -")
        assert len(texts(ax)) == len(ax.containers)  # each bar has its name
        assert ax.get_title(loc="left").replace("\n", " ") == comparison.headline()


@pytest.mark.parametrize("labels", [[1] * 40, [0] * 40], ids=["less", "more"])
def test_plot_comparison__has_one_direction_whichever_model_is_better(labels):
    question = ModelComparison(
        0.05, 10_000, n_differ=3_000, n_queries=40, classes=(0, 1),
        rows=tuple(range(40)), old_predictions=(0,) * 40, new_predictions=(1,) * 40,
    )  # fmt: skip
    answer = question.certify_with_labels(labels)
    ax = answer.plot()
    drawn = ax.containers[0][0].get_bbox()
    assert [drawn.x0, drawn.x1] == pytest.approx([answer.lower, answer.upper])
    is_less = "less than the old" in ax.get_title(loc="left").replace("\n", " ")
    assert is_less == (drawn.x1 < 0) == (sum(labels) > 0)
    assert ax.get_xlabel().endswith("← new better · old better →")
    left, right = ax.get_xlim()
    assert left < right  # new is better at the left
    words = texts(ax)[0].split(": ")[1].split(" to ")
    assert [float(word) for word in words] == pytest.approx(
        [100 * drawn.x0, 100 * drawn.x1], abs=0.1
    )
    axes = Figure().add_subplot()
    assert answer.plot(ax=axes) is axes


def test_plot_certificates__prints_no_label_through_the_bar_of_another():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2))
    y = 250_000 + 100_000 * X[:500, 0] + 9_000 * rng.normal(size=500)
    plan = dsel.plan_search(
        Ridge(), {"alpha": [0.1, 1.0]}, X[:500], y, X[500:], random_state=0
    )
    # As wide and high as in a card, where the last label has two lines.
    figure = Figure(figsize=(3.8, 3.5), dpi=300, layout="constrained")
    ax = plot_certificates(plan.run(n_jobs=1).results, ax=figure.add_subplot())
    figure.canvas.draw()
    rows = ax.texts
    assert "\n" in rows[-1].get_text()
    assert "beyond this axis" in rows[-1].get_text().replace("\n", " ")
    # Its bar ends before the edge, and an arrow goes on: nothing looks cut off.
    assert ax.containers[0][-1].get_width() < ax.get_xlim()[1]
    assert [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    bars = [bar.get_window_extent() for bars in ax.containers for bar in bars]
    for row in rows:
        box = row.get_window_extent()
        assert not any(box.y0 < bar.y1 and bar.y0 < box.y1 for bar in bars), row
    assert not ax.get_yticks().size


def test_plot_certificates__of_a_certificate_of_users_names_the_tested_model(
    monkeypatch,
):
    mine = replace(METHODS["holdout"], name="mine", ranks_by="mine")
    monkeypatch.setitem(METHODS, "mine", mine)
    monkeypatch.setitem(CRITERIA, "mine", replace(CRITERIA["holdout"], name="mine"))
    for name in ("holdout", "mine"):
        ax = plot_certificates(run({"n_neighbors": [1, 3]}, certificate=name))
        assert "estimate (this model: about" in " ".join(legend_texts(ax))


def test_plots__show_dollars_as_they_are_written():
    grid = {"n_neighbors": [1, 3], "weights": ["uniform", "distance"]}
    names = {"n_neighbors": "$n_1$", "weights": r"w$^2$"}
    cube = run(grid, certificate="cv_bound", prune=False).rename(names)
    for draw in (plot_surface, plot_terms):
        ax = draw(cube)
        ax.figure.canvas.draw()
        shown = [text for text in ax.figure.findobj(mpl.text.Text) if text.get_text()]
        with_dollars = [text for text in shown if "$" in text.get_text()]
        assert with_dollars
        assert not any(text.get_parse_math() for text in with_dollars)
    labels = ("$a$", "b$^{$")
    report = dsel.results.CertifiedReport(
        0.05, "the model", labels, (8, 19),
        *[BoundedValues((0.7, 0.9), (0.8, 0.9))] * 2, BoundedValues((0.03,), (0.01,)),
    )  # fmt: skip
    ax = plot_certified_report(report)
    ax.figure.canvas.draw()  # mathematics that is not closed would raise
    assert texts(ax)[0].startswith("$a$: recall")


def test_plot_folds__has_a_dot_for_each_fold_and_a_line_at_the_mean():
    cube = run({"n_neighbors": [1, 3, 9]}, prune=False)
    ax = plot_folds(cube)
    rates = cube.error.transpose("n_neighbors", "fold")
    order = rates.mean("fold").values.argsort(kind="stable")
    drawn = [line for line in ax.lines if len(line.get_xdata())]  # not of the legend
    for number, folds, mean in zip(order, drawn[1::3], drawn[2::3], strict=True):
        np.testing.assert_allclose(folds.get_xdata(), rates.values[number])
        np.testing.assert_allclose(mean.get_xdata(), rates.values[number].mean())
    chosen = dsel.select(cube).params["n_neighbors"]
    at = [int(n) for n in cube.n_neighbors.values[order]].index(chosen)
    colors = [line.get_color() for line in drawn[2::3]]
    assert [color == ACCENT for color in colors] == [n == at for n in range(3)]
    assert legend_texts(ax) == ["a fold", "mean of folds", "chosen"]
    mean = 100 * rates.isel(n_neighbors=order[at]).mean().item()
    # Two numbers are cross-validated: one ranks candidates, one is of the search.
    whole = dsel.select(cube).certificate.estimate
    least, most = (100 * f(rates.isel(n_neighbors=order[at]).values) for f in MIN_MAX)
    assert " ".join(ax.get_title(loc="left").split()) == (
        f"Chosen: n_neighbors={chosen} Error about {mean:.1f}%, {least:.1f}% to "
        f"{most:.1f}% on single folds"
    )
    what = " ".join(ax.get_legend().get_title().get_text().split())
    estimate = f"The whole search: {100 * whole:.1f}% (cross-validation)"
    assert what.startswith(f"{estimate}. Inner cross-validation, from ")


@pytest.fixture(scope="module")
def with_smaller():
    """A search whose choice has a larger mean over the folds than another candidate."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] + rng.normal(size=100) > 0).astype(int)
    grid = {"n_neighbors": [1, 3, 5, 9, 15]}
    plan = dsel.plan_search(
        KNeighborsClassifier(), grid, X, y, prune=False, random_state=3
    )
    return plan.run(n_jobs=1).results


def test_figures__say_why_a_chosen_candidate_is_not_the_lowest(with_smaller):
    for plot in (plot_folds, plot_surface):
        shown = [" ".join(text.split()) for text in legend_texts(plot(with_smaller))]
        assert "chosen: the best on the folds that do not test it" in shown
    caption = "Another candidate has a smaller mean over all folds"
    assert caption in report_html(with_smaller)


def test_plot_surface__shows_differences_of_dots_on_an_axis_that_need_not_begin_at_0():
    cube = run({"n_neighbors": [1, 3, 9]}, prune=False)
    ax = plot_surface(cube)
    values = [y for line in ax.lines for y in np.asarray(line.get_ydata(), float)]
    low, high = ax.get_ylim()
    least, most = np.nanmin(values), np.nanmax(values)
    assert low <= least <= most <= high
    assert most - least > 0.8 * (high - low)


@pytest.mark.parametrize("options", [{"report": True}, {"report_by": 1}])
def test_plot_bound_by_labels__gives_reports_their_part_of_delta(options):
    grid = {"n_neighbors": [3]}
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=1200), rng.integers(2, size=1200)])
    y = (X[:200, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)

    def lines(**options):
        plan = dsel.plan_search(
            KNeighborsClassifier(), grid, X[:200], y, X[200:], random_state=0, **options
        )
        return [
            np.asarray(line.get_ydata())
            for line in plot_bound_by_labels(plan.run(n_jobs=1).results).lines[:3]
        ]

    for name, alone, shared in zip(COLORS, lines(), lines(**options), strict=True):
        has_report = name != "holdout_20_percent"
        assert ((shared > alone) | (alone == 1.0)).all() == has_report


def test_criteria__have_words_on_the_axes_of_figures():
    rng = np.random.default_rng(0)
    X, grid = rng.normal(size=(200, 2)), {"n_neighbors": [1, 3]}
    y = (X[:40, 0] > 0).astype(int)
    results = dsel.covalidate(
        KNeighborsClassifier(), grid, X[:40], y, X[40:], repeats=2, random_state=0
    )
    ax = plot_surface(results, "dis_error")
    assert ax.get_ylabel() == "error by disagreement (estimate), %"


def test_plot_bound_by_labels__falls_and_marks_the_run():
    cube = run({"n_neighbors": [1, 3, 9]})
    ax = plot_bound_by_labels(cube)
    for line in ax.lines:
        if len(line.get_xdata()) > 2:
            assert (np.diff(np.asarray(line.get_ydata(), float)) <= 0).all()
    certificates = dsel.select(cube).certificates
    here = [line for line in ax.lines if len(line.get_xdata()) == 1]
    *bounds, estimate = (float(line.get_ydata()[0]) for line in here)
    assert bounds == [each.bound for each in certificates.values()]
    assert estimate == certificates["one_fold"].estimate
    # The marks of both models have the color of their line and entries of their own,
    # and stand side by side: nearly equal bounds would cover each other.
    part = certificates["one_fold"].model_text.split()[3]  # such as 80%
    labels = [f"bound of this run (trained on {which})" for which in (part, "all")]
    squares = [line for line in ax.lines if line.get_label() in labels]
    assert [line.get_color() for line in squares] == [*COLORS.values()][:2]
    assert [text for text in legend_texts(ax) if text in labels] == labels
    left, right = (
        line.get_transform().transform((line.get_xdata()[0], 0.1))[0]
        for line in squares
    )
    assert (right - left) * 72 / ax.figure.dpi > squares[0].get_markersize()
    assert {float(line.get_xdata()[0]) for line in here} == {int(cube.n_labeled)}
    first = next(line for line in ax.lines if len(line.get_xdata()) > 2)
    now, later = (
        first.get_ydata()[first.get_xdata() == factor * int(cube.n_labeled)].item()
        for factor in (1, 4)
    )
    assert ax.get_title(loc="left").replace("\n", " ") == (
        f"Bound to expect: {about_percent(now)} with {int(cube.n_labeled):,} labels, "
        f"{about_percent(later)} with {4 * int(cube.n_labeled):,}"
    )
    with pytest.raises(ValueError, match="off predictions are, got 'Misses of 1'"):
        plot_bound_by_labels(run({"n_neighbors": [1]}, loss=dsel.losses.recall(1)))


def test_plot_bound_by_labels__ends_above_the_highest_line():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    grid = {"n_neighbors": [1, 3]}
    plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    ax = plot_bound_by_labels(plan.run(n_jobs=1).results)
    drawn = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
    assert 0.6 < np.nanmax(drawn) <= 1.0
    assert ax.get_ylim()[1] <= min(1.0, 1.1 * np.nanmax(drawn)) + 1e-9


def test_plot_folds__shows_none_as_it_is_in_the_grid():
    X, y = make_classification(300, 5, random_state=0)
    grid = {"class_weight": [None, "balanced"], "C": [0.1, 1.0]}
    results = dsel.plan_search(SVC(), grid, X, y, random_state=0).run().results
    labels = {text.get_text() for text in results.dsel.plot.folds().texts}
    assert {"C=0.1, class_weight=None", "C=1.0, class_weight=None"} & labels
    assert not any("nan" in label for label in labels)


def test_plots__of_a_certified_procedure_name_it_and_what_it_chose(tmp_path):
    X, y = make_classification(300, 5, random_state=0)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 15]}, cv=3)
    outcome = dsel.certify(search, X, y, random_state=0)
    (text,) = outcome.plot.folds().texts
    shown = text.get_text().splitlines()
    assert shown[0] == "GridSearchCV chose"
    # Each choice is in a line of its own.
    assert all(line.startswith("n_neighbors=") for line in shown[1:])
    assert sum(int(line.split("(")[1][0]) for line in shown[1:]) == 5
    (text,) = dsel.certify(KNeighborsClassifier(3), X, y).plot.folds().texts
    assert text.get_text() == "KNeighborsClassifier"
    by_labels = outcome.plot.bound_by_labels()  # there is no grid to draw
    assert outcome.plot().get_title("left") == by_labels.get_title("left") != ""
    for name in ("folds", "certificates"):
        with pytest.raises(ValueError, match=rf"a figure; write plot\.{name}\(\)\."):
            outcome.plot(name)
        getattr(outcome.plot, name)()
    for figure, words in (
        (outcome.plot.terms, r"no two terms .*plot.certificates\(\)"),
        (outcome.plot.surface, "no grid"),
        (outcome.plot.timing, "not timed"),
    ):
        with pytest.raises(ValueError, match=rf"{words}.*plot.folds\(\)"):
            figure()
    page = write_report(outcome.results, tmp_path / "page.html")
    assert "The criterion of every candidate" not in page.read_text("utf-8")


def tick_labels(axis):
    """Return the tick labels of an axis that are drawn."""
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_visible()
    ]


def drawn_texts(ax):
    """Return the texts of axes and their color bar that are drawn."""
    axes = [part for one in (ax, *ax.child_axes) for part in (one.xaxis, one.yaxis)]
    ticks = {id(label) for axis in axes for label in tick_labels(axis)}
    every = {
        id(label)
        for axis in axes
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for label in (tick.label1, tick.label2)
    }
    return [
        text
        for text in ax.findobj(mpl.text.Text)
        if text.get_text() and (id(text) not in every or id(text) in ticks)
    ]


@pytest.mark.parametrize("size", [(4.0, 3.0), (12.8, 5.0)], ids=["narrow", "wide"])
def test_plots__cut_no_text_and_no_tick_in_somebodys_axes(
    nested, bounded, reported, size
):
    many = run({"n_neighbors": [*range(1, 60, 3)], "weights": ["uniform"]}, cv=2)
    one, report = run({"n_neighbors": [3]}), reported.dsel.select().report()
    labels = dsel.audit(["folds pooled"], delta=(0.5, 0.2), n_draws=20, random_state=0)
    drawings = [
        *((plot, nested) for plot in (plot_surface, plot_certificates, plot_folds)),
        (plot_bound_by_labels, nested),
        (plot_terms, bounded),
        (plot_timing, bounded),
        (plot_surface, many),
        (partial(plot_surface, x="weights", y="n_neighbors"), many),
        (plot_surface, one),
        (plot_folds, one),
        (plot_certified_report, report),
        (plot_bound_plan, dsel.plan_bound(500, 100_000, n_candidates=9, error=0.1)),
        (plot_audit_failures, labels),
        (plot_comparison, ModelComparison(0.05, 10_000, n_differ=200)),
    ]
    for plot, what in drawings:
        figure = plt.figure(figsize=size)
        ax = plot(what, ax=figure.add_subplot())
        figure.canvas.draw()
        whole = figure.bbox
        for text in drawn_texts(ax):
            box, shown = (
                text.get_window_extent(),
                (getattr(plot, "__name__", plot), text.get_text()),
            )
            assert min(box.x0 - whole.x0, box.y0 - whole.y0) > -1.5, shown
            assert max(box.x1 - whole.x1, box.y1 - whole.y1) < 1.5, shown
        for axis in (ax.xaxis, ax.yaxis):
            boxes = [
                text.get_window_extent()
                for text in tick_labels(axis)
                if text.get_text() and not text.get_rotation()
            ]
            pairs = itertools.combinations(boxes, 2)
            assert not any(a.overlaps(b) for a, b in pairs), (plot, axis)


def test_plots__keep_the_margins_of_an_owner_who_has_set_them(nested):
    figure = plt.figure(figsize=(8, 4))
    figure.subplots_adjust(left=0.3)
    plot_surface(nested, ax=figure.add_subplot())
    assert figure.get_layout_engine() is None
    figure.tight_layout()  # also with the color bar


def test_plots__write_in_a_light_color_on_a_dark_ground(nested):
    with plt.style.context("dark_background"):
        for plot in (plot_surface, plot_folds, plot_bound_by_labels):
            ax = plot(nested)
            inks = [ax.xaxis.label, ax.xaxis.get_ticklabels()[0], ax._left_title]
            assert all(min(mpl.colors.to_rgb(ink.get_color())) > 0.7 for ink in inks)


def test_plots__say_what_is_drawn_and_from_which_rows(nested, bounded, reported):
    rows = "200 labeled rows"
    for plot, results in (
        *((plot, nested) for plot in (plot_surface, plot_certificates, plot_folds)),
        (plot_bound_by_labels, nested),
        (plot_terms, bounded),
        (plot_certified_report, reported.dsel.select().report()),
    ):
        what = plot(results).get_legend().get_title().get_text()
        assert rows in " ".join(what.split()), (plot, what)
    question = ModelComparison(0.05, 10_000, n_differ=200)
    legend = plot_comparison(question).get_legend()
    assert "10,000 pool rows" in legend.get_title().get_text()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["possible differences", "no difference"]


def test_plots__of_groups_say_which_rows_are_counted():
    X, y = make_classification(120, 5, random_state=0)
    options = {"groups": np.arange(120) // 2, "random_state": 0}
    classifier = KNeighborsClassifier(3)
    certified = dsel.certify(classifier, X, y, **options)
    regressor = dsel.certify(Ridge(), X, X[:, 0], **options)
    plan = dsel.plan_search(classifier, {"n_neighbors": [1, 3]}, X, y, **options)
    searched = plan.run(n_jobs=1)
    one_each = "one labeled row of each of 60 groups"
    for draw, rows in (
        (certified.plot.certificates, one_each),
        (partial(certified.plot.folds, ax=plt.subplots()[1]), one_each),
        (certified.plot.bound_by_labels, one_each),
        (regressor.plot.residuals, one_each),
        # Inner searches test candidates on all rows of a group.
        (searched.plot.folds, "from 120 labeled rows"),
        (searched.plot.surface, "from 120 labeled rows"),
        (searched.plot.certificates, one_each),
    ):
        what = draw().get_legend().get_title().get_text()
        assert " ".join(what.split()).endswith(rows), what
    constant = " ".join(texts(certified.plot.certificates())[-1].split())
    assert constant.startswith("always predicting ")
    assert "%, by one row of each group" in constant


def test_plot_certified_report__of_one_class_counts_no_rows_of_others():
    X, y = make_classification(120, 5, random_state=0)
    model = KNeighborsClassifier(3)
    outcome = dsel.certify(model, X, y, report=[1], random_state=0)
    what = outcome.plot.report().get_legend().get_title().get_text()
    assert f"{(y == 1).sum()} labeled rows of these classes" in " ".join(what.split())


def test_plot_surface__of_one_axis_has_a_dot_for_each_fold():
    cube = run({"n_neighbors": [1, 3, 9]}, prune=False)
    ax = plot_surface(cube)
    (folds,) = [line for line in ax.lines if line.get_label() == "a fold"]
    errors = cube.error.transpose("n_neighbors", "fold").values.ravel()
    np.testing.assert_allclose(folds.get_ydata(), errors)


def test_folds__of_random_halves_and_their_report(tmp_path):
    rng = np.random.default_rng(5)
    rows, pool = rng.normal(size=(2, 100, 3))
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, rows, rows[:, 0] > 0, pool,
        criterion="max_dt_e", cv=3, random_state=0,
    )  # fmt: skip
    results = plan.run().results
    assert {len(line.get_xdata()) for line in plot_folds(results).lines} >= {6}
    write_report(results, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


RATES = [("balanced", True), (dsel.losses.cost({("a", "b"): 5, ("b", "a"): 1}), False)]


@pytest.mark.parametrize(("loss", "is_rate"), RATES)
def test_plot_folds__shows_every_rate_in_percent(loss, is_rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] + rng.normal(size=120) > 0, "a", "b")
    model = DecisionTreeClassifier(random_state=0)
    grid = {"max_depth": [1, 2]}
    plan = dsel.plan_search(model, grid, X, y, loss=loss, prune=False, random_state=0)
    ax = plot_folds(plan.run(n_jobs=1).results)
    assert ax.get_xlabel().endswith(", %") == is_rate
    ticks = ax.xaxis.get_major_formatter().format_ticks([0.2])
    assert (ticks == ["20"]) == is_rate


def regressor_run(**options):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2))
    y = X[:500, 0] + rng.normal(size=500)
    plan = dsel.plan_search(
        Ridge(), {"alpha": [0.1, 1.0]}, X[:500], y, X[500:], random_state=0, **options
    )
    return plan.run(n_jobs=1)


def test_plot_residuals__has_the_distribution_of_each_fold_and_the_bounds():
    outcome = regressor_run(report=True)
    ax = outcome.plot.residuals()
    lines = [line for line in ax.lines if len(line.get_xdata()) > 10]
    assert len(lines) == outcome.results.sizes["fold"] + 1
    residuals = np.sort(outcome.results.outer_residuals.values.ravel())
    pooled = lines[-1]
    assert np.array_equal(pooled.get_xdata()[1:-1], residuals)
    assert pooled.get_ydata()[-1] == 1.0
    squares = {
        line.get_label(): set(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in ax.lines
        if line.get_marker() in ("s", "D")
    }
    own = outcome.certified_report()
    pairs = zip(own.off_by_at_most, own.fractions, strict=True)
    limits = {pair for pair in pairs if np.isfinite(pair[0])}
    first, second = outcome.certificates.values()
    assert squares == {
        f"bounds, {first.model_text}": {(first.bound, 0.9), *limits},
        f"bound, {second.model_text}": {(second.bound, 0.9)},
    }
    assert outcome.certificate.headline().startswith(ax.get_title("left")[:20])


def test_plot_residuals__are_those_of_regressors():
    with pytest.raises(ValueError, match="no residuals"):
        run({"n_neighbors": [1]}).dsel.plot.residuals()
    outcome = dsel.certify(Ridge(), *regression(), random_state=0)
    # There is no grid: the most useful figure is drawn.
    assert outcome.plot().get_ylabel() == "share of predictions, %"


def regression():
    X, y = np.random.default_rng(0).normal(size=(2, 300, 1))
    return X, y.ravel()


def test_plot_bound_by_labels__of_a_regression_predicts_the_bounds_of_the_run():
    outcome = regressor_run()
    ax = outcome.plot.bound_by_labels()
    lines = {line.get_label(): line for line in ax.lines}
    at_run = {
        name: float(line.get_ydata()[list(line.get_xdata()).index(500)])
        for name, line in lines.items()
        if len(line.get_xdata()) > 2
    }
    holdout = at_run.pop("20% hold-out set")
    assert holdout == pytest.approx(outcome.choice.expected_holdout)
    for predicted, certificate in zip(
        at_run.values(), outcome.certificates.values(), strict=True
    ):
        assert predicted == pytest.approx(certificate.bound, rel=0.15)
    falling = np.asarray(lines["model trained on 80% of the labels"].get_ydata(), float)
    assert (np.diff(falling[np.isfinite(falling)]) < 0).all()
    assert "in units of the target" in " ".join(ax.get_ylabel().split())


# The misses of a class are no mean over folds: the class has few rows on some of them.
@pytest.mark.parametrize("loss", [None, dsel.losses.recall(1), "balanced"], ids=repr)
def test_plot_folds__of_a_procedure_has_the_estimate_of_its_certificate(loss):
    X, y = make_classification(101, 5, flip_y=0.3, random_state=0)  # unequal folds
    outcome = dsel.certify(KNeighborsClassifier(3), X, y, loss=loss, random_state=0)
    ax = outcome.plot.folds()
    estimate = outcome.certificate.estimate
    [large] = [line for line in ax.lines if line.get_marker() == "o" and line.get_ms()
               and len(line.get_xdata()) == 1]  # fmt: skip
    assert large.get_xdata()[0] == estimate
    who, what = ax.get_title("left").split("\n")[:2]
    assert who == "KNeighborsClassifier"
    assert f" about {100 * estimate:.1f}%, " in what
    assert legend_texts(ax) == ["a fold", "all folds together"]


def test_plot_folds__of_squared_errors_names_them_beside_the_number():
    ax = dsel.certify(Ridge(), *regression(), random_state=0).plot.folds()
    assert ax.get_title("left").startswith("Ridge\nRoot mean squared error ")


def test_plot_folds__has_no_errors_below_zero():
    X = np.repeat([[0.0], [1.0]], 30, axis=0) + np.arange(60).reshape(-1, 1) / 1e3
    outcome = dsel.certify(DecisionTreeClassifier(), X, X[:, 0] > 0.5, random_state=0)
    low, high = outcome.plot.folds().get_xlim()
    assert -0.1 * high < low <= 0 < high


def test_plot_surface__marks_candidates_that_failed():
    class FailsAtThree(KNeighborsClassifier):
        def fit(self, X, y):
            if self.n_neighbors == 3:
                raise ValueError("not three")
            return super().fit(X, y)

    X, y = make_classification(100, 5, random_state=0)
    grid = {"n_neighbors": [1, 3, 5]}
    plan = dsel.plan_search(FailsAtThree(), grid, X, y, random_state=0)
    with pytest.warns(UserWarning, match="not three"):
        outcome = plan.run(n_jobs=1)
    ax = outcome.plot()
    assert "failed" in legend_texts(ax)
    [cross] = [line for line in ax.lines if line.get_marker() == "x"]
    assert cross.get_xdata().tolist() == [1]


def test_plots__of_a_list_that_is_no_grid_name_its_candidates():
    X, y = make_classification(150, 5, random_state=0)
    model = Pipeline([("m", SVC())])
    grid = [{"m": [SVC()], "m__C": [1, 10]}, {"m": [KNeighborsClassifier()]}]
    outcome = dsel.plan_search(model, grid, X, y, random_state=0).run(n_jobs=1)
    # The numbers of candidates have no order, and a line would go from one to another.
    assert outcome.plot().get_xlabel() == "error on the fold, %"
    shown = "".join(texts(outcome.plot()))
    assert "m=KNeighborsClassifier" in shown
    assert len(texts(outcome.plot.timing())) == 3


def test_plot_folds__names_both_cross_validated_numbers_of_a_declared_loss():
    cube = run({"n_neighbors": [1, 9]}, loss=dsel.losses.recall(1))
    estimate = dsel.select(cube).certificate.estimate
    end = f"The whole search: {100 * estimate:.1f}% (cross-validation)"
    what = plot_folds(cube).get_legend().get_title().get_text()
    assert what.replace("\n", " ").startswith(f"{end}. Inner ")
