"""The homework of the slides, at small scale."""

import common
import numpy as np
import pytest
import sugiyama

SMALL = sugiyama.Settings(
    sizes=(20, 50), noises=(0.1,), widths=(0.1, 0.5, 2.0),
    regularizations=(1e-3, 1e-1, 10.0), share=0.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return common.run(sugiyama.EXPERIMENT, repetitions=3, settings=SMALL, jobs=1)


def test_measure__no_choice_beats_the_best_candidate(results):
    best = results.chosen_error.sel(criterion="true")
    assert (results.chosen_error >= best).all()
    assert set(np.unique(results.chosen_width)) <= {0.1, 0.5, 2.0}
    again = sugiyama.measure("sin", 2, SMALL, None).estimate
    here = results.estimate.sel(data_set="sin", repetition=2)
    assert here.transpose(*again.dims).equals(again.assign_coords(here.coords))


def test_measure__has_the_choice_of_every_fold(results):
    assert results.error_by_fold.sizes["fold"] == 10
    best = results.chosen_error.sel(criterion="true")
    assert (results.error_by_fold >= best).all()
    # Folds of few rows disagree on what to choose.
    few = results.width_by_fold.sel(n_samples=20)
    assert (few.max("fold") > few.min("fold")).any()
    what = "G of the choice by fold j, mean over j - G of that by all folds"
    lines = [row for row in sugiyama.compare(results) if row.what == what]
    assert len(lines) == 3 * 2
    gap = results.error_by_fold.mean("fold") - results.chosen_error.sel(
        criterion="kfold"
    )
    assert lines[0].ours == pytest.approx(float(gap[0, :, 0, 0].mean()))


def test_search_once__true_error_is_that_of_the_fitted_model():
    X, y = sugiyama.draw("sin", 20, 0.1, np.random.default_rng(5))
    cube = sugiyama.search_once("sin", X, y, SMALL, np.random.default_rng(5))
    basis, dense = (
        np.exp(-((rows - X.T) ** 2) / (2 * 0.5**2)) for rows in (X, sugiyama.DENSE)
    )
    rows = np.vstack([basis, np.sqrt(0.1) * np.eye(20)])
    alpha = np.linalg.lstsq(rows, np.append(y, np.zeros(20)))[0]
    error = np.mean((dense @ alpha - np.sin(2 * sugiyama.DENSE[:, 0])) ** 2)
    found = float(cube.extra_loss_mean.sel(width=0.5, regularization=0.1))
    assert found == pytest.approx(error, rel=1e-8)
    mean = sugiyama.by_fold(cube).mean("fold")
    np.testing.assert_allclose(mean, cube.estimate.sel(criterion="kfold"))


def test_figures__show_curves_choices_and_spreads(results, draw):
    assert draw(sugiyama.figures(results)) == [
        "homework", "chosen-error", "chosen-width", "chosen-regularization", "spread",
        "tolerance",
        "choice-of-width-by-fold", "choice-of-regularization-by-fold", "bias",
    ]  # fmt: skip


def test_compare__holds_every_estimate_to_the_truth(results):
    lines = common.compare_rows(sugiyama.EXPERIMENT, results)
    assert {line.source for line in lines} == {
        "certified", "closed form of LOOCV", "slide 83", "slide 84", "slide 85",
    }  # fmt: skip
    certified = [line for line in lines if line.source == "certified"]
    assert all(line.why.startswith("it holds in ") for line in certified)
    assert {line.verdict for line in certified} == {"not compared"}
    others = {line.why for line in lines if line not in certified}
    assert others == {"too few to say: 3 of at least 10"}
    # Refits whose basis functions stay give the closed form, to rounding.
    assert float(results.closed_form_gap.max()) < 1e-9


def test_tolerances__are_certified_and_true(results):
    at_last, before = results.isel(n_samples=-1), results.isel(n_samples=0)
    assert (at_last.certified_tolerance > 0).all()
    assert np.isfinite(at_last.certified_tolerance).all()
    assert before.certified_tolerance.isnull().all()
    holds = at_last.certified_tolerance >= at_last.true_tolerance
    assert holds.mean() > 0.5
    # Half of the noise is within .674 of its standard deviation.
    assert (at_last.true_tolerance > 0.0674).all()
