"""Figures show the cube's numbers, and say what is a bound and what is not."""

from itertools import pairwise
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from dsel.searches.ledger import with_ledger
from matplotlib.figure import Figure
from scipy import stats

import dsel.accessor  # noqa: F401  registers `cube.dsel`
from dsel import audit
from dsel.bounds import DeltaLedger, read_out
from dsel.plots import (
    FIGURES,
    audit_failures_data,
    plot_audit_failures,
    plot_surface,
    surface_data,
    terms_data,
    timing_data,
)
from dsel.results import add_criterion, fold_axes, grid_axes, make_cube

N_FOLDS, FOLD_ROWS, N_UNLABELED = 4, 50, 4000
DONE, PRUNED, FAILED = 0, 1, 2


@pytest.fixture(autouse=True)
def off_screen():
    mpl.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def make(grid, errors, status=None):
    """Make a cube with `errors` in every fold; pruned ones have no pool counts."""
    axes = grid_axes(grid)
    n = axes.n_candidates
    status = np.zeros(n, int) if status is None else np.array(status)
    folds = np.repeat(np.array(errors)[:, np.newaxis], N_FOLDS, axis=1)
    folds[status == FAILED] = -1
    pool = np.full((n, N_FOLDS), N_UNLABELED // N_FOLDS)
    pool[status != DONE] = -1
    cube = make_cube(
        axes,
        fold_axes(N_FOLDS),
        {
            "fold_errors": folds,
            "fold_rows": np.full(N_FOLDS, FOLD_ROWS),
            "train_rows": np.full(N_FOLDS, 3 * FOLD_ROWS),
            "disagreements": np.where(pool > 0, 5, -1),
            "pool_rows": pool,
            "status": status,
            "fit_seconds": np.full((n, N_FOLDS), 0.5),
            "full_fit_seconds": np.full(n, 1.0),
            "score_seconds": np.full((n, N_FOLDS), np.nan),
            "n_labeled": N_FOLDS * FOLD_ROWS,
            "n_unlabeled": N_UNLABELED,
            "n_classes": 2,
        },
    )
    nothing = SimpleNamespace(
        estimate=np.full(n, np.nan),
        label_term=np.full(n, np.nan),
        disagreement_term=np.full(n, np.nan),
    )
    shares = np.full(n, 0.05 / n)
    declared = {"delta": 0.05, "label_share": 0.5}
    judged = add_criterion(cube, "cv_bound", nothing, delta_shares=shares, **declared)
    return with_ledger(judged, DeltaLedger(0.05).read(read_out("cv_bound", **declared)))


GRID = {"C": [1.0, 2.0, 4.0], "gamma": [0.1, 1.0]}


@pytest.fixture
def cube():
    return make(GRID, [9, 3, 8, 2, 30, 0], [0, 0, 0, 0, PRUNED, FAILED])


def test_surface_data__has_the_grid_s_last_dimensions(cube):
    data = surface_data(cube)
    assert (data.y, data.x) == ("C", "gamma")
    assert data.values.shape == (3, 2)
    assert data.x_labels == ("0.1", "1")
    assert data.y_labels == ("$2^{0}$", "$2^{1}$", "$2^{2}$")
    np.testing.assert_array_equal(data.values[:2], cube.dsel.bound().values[:2])


def test_surface_data__marks_choice_limits_and_failures(cube):
    data = surface_data(cube)
    assert data.chosen == (1, 1)
    assert data.is_limit.tolist() == [[False, False], [False, False], [True, False]]
    assert data.is_failed.tolist() == [[False, False], [False, False], [False, True]]
    assert "error at most" in data.title


def test_surface_data__calls_an_estimate_no_guarantee(cube):
    data = surface_data(cube, "cv_error")
    assert data.label == "cv_error (estimate)"
    assert data.title == "C=2, gamma=1: 0.04, an estimate"


def test_surface_data__shows_the_smallest_over_other_dimensions():
    grid = {"C": [1, 2], "gamma": [1, 2], "shrinking": [True, False]}
    cube = make(grid, [9, 3, 8, 2, 7, 6, 5, 4])
    full = cube.dsel.bound()
    data = surface_data(cube, x="shrinking", y="C")
    assert data.label.endswith("smallest over gamma")
    np.testing.assert_array_equal(data.values, full.min("gamma").values)
    assert data.chosen == (0, 1)


def test_surface_data__says_where_it_cannot_answer(cube):
    cube = make(GRID, [9, 3, 8, 2, 1, 30], [0, 0, 0, 0, PRUNED, 0])
    data = surface_data(cube, "cv_bound", delta=0.9)
    assert data.chosen is None
    assert "no choice" in data.title


def test_surface_data__refuses_other_dimensions(cube):
    with pytest.raises(ValueError, match=r"`x` must be one of .* got 'fold'"):
        surface_data(cube, x="fold")


@pytest.mark.parametrize(
    "grid",
    [GRID, {"C": [1, 2, 3, 4, 5, 6]}, [{"C": [1, 2, 3]}, {"gamma": [1, 2, 3]}],
     {"C": [1], "gamma": [1, 2, 3, 4, 5, 6]}, {"k": ["a", "b"], "m": ["x", "y", "z"]}],
    ids=["grid", "line", "list", "one row", "text"],
)  # fmt: skip
def test_plot_surface__draws_any_grid(grid):
    cube = make(grid, [9, 3, 8, 2, 30, 0], [0, 0, 0, 0, PRUNED, FAILED])
    axes = plot_surface(cube)
    axes.figure.canvas.draw()
    assert axes.get_title(loc="left")


def test_plot_surface__names_as_many_values_as_there_is_room_for():
    cube = make({"C": np.geomspace(1e-4, 1e4, 77).tolist()}, [5] * 77)
    axes = plot_surface(cube)
    axes.figure.canvas.draw()
    places = [each.get_window_extent() for each in axes.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(places))


def test_plot_surface__draws_where_it_is_told(cube):
    axes = Figure().add_subplot()
    assert plot_surface(cube, ax=axes) is axes
    assert axes.get_xlabel().startswith("gamma\nhatched")


def test_terms_data__adds_up_best_first(cube):
    data = terms_data(cube, n_best=3)
    bound = cube.dsel.bound().values.ravel()
    totals = data.label_term + data.disagreement_term
    np.testing.assert_allclose(totals, np.sort(bound)[:3])
    assert data.labels[0] == "C=2, gamma=1"
    assert data.cv_error[0] == 2 / FOLD_ROWS
    assert (data.cv_error < totals).all()


def test_terms_data__refuses_what_has_no_terms():
    cube = make(GRID, [9, 3, 8, 2, 30, 0])
    with pytest.raises(ValueError, match="has no two terms to show"):
        terms_data(cube, "cv_error")


def test_timing_data__sums_the_seconds(cube):
    data = timing_data(cube)
    assert data.phases == ("fits on folds", "fits on all labeled rows")
    assert data.seconds == (12.0, 6.0)
    assert data.total == 18.0


def test_plots__draw_on_new_axes_or_on_those_of_a_part_of_a_figure(cube):
    whole = Figure(figsize=(20, 12))
    parts = whole.subfigures(1, len(FIGURES))
    for part, (name, plot) in zip(parts, FIGURES.items(), strict=True):
        own = part.add_subplot()
        assert getattr(cube.dsel.plot, name)(ax=own) is own
        new = plot(cube)
        new.figure.canvas.draw()
        assert own.get_title(loc="left") == new.get_title(loc="left") != ""
    whole.canvas.draw()


def test_plot__draws_figures_of_others(cube, monkeypatch):
    def plot_errors(results, *, ax=None):
        ax = ax or Figure().add_subplot()
        results.fold_errors.mean("fold").plot(ax=ax)
        return ax

    monkeypatch.setitem(FIGURES, "errors", plot_errors)
    ax = Figure().add_subplot()
    assert cube.dsel.plot.errors(ax=ax) is ax
    assert "errors" in dir(cube.dsel.plot)
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="no figure 'errors'; it has surface"):
        cube.dsel.plot.errors()


def test_audit_failures_data__has_the_share_inside_its_interval():
    settings = ["holdout, lucky folds", "luckiest fold"]
    report = audit(settings, delta=(0.5, 0.2), n_draws=20, random_state=0)
    data = audit_failures_data(report)
    np.testing.assert_array_equal(data.share * 20, report.failures)
    assert (data.lower <= data.share).all()
    assert (data.upper >= data.share).all()
    some = data.share > 0
    below = stats.binom.sf(report.failures - 1, 20, data.lower)
    np.testing.assert_allclose(below[some.values], 0.025, rtol=1e-6)
    ax = plot_audit_failures(report)
    assert len(ax.get_yticks()) == 4
