import json

import numpy as np
import pytest
from click.testing import CliRunner

from dsel.bounds import best_fold, merged_folds, semi_supervised_cv_bound
from dsel.cli.plan_bound import command
from dsel.plots import bound_plan_data, plot_bound_plan
from dsel.searches import plan_bound
from dsel.searches.expected_terms import DesignAssumptions, mean_of_smallest


@pytest.fixture(scope="module")
def plan():
    return plan_bound(500, 100_000, 225, 0.01, 0.10)


# Rows of the table in which all certificates stand beside each other.
@pytest.mark.parametrize(
    ("n_labeled", "error", "certificate", "n_folds", "expected"),
    [
        (500, 0.10, "cv_bound", 10, 0.421),
        (500, 0.10, "merged_folds", 10, 0.393),
        (500, 0.10, "best_fold", 10, 0.321),
        (500, 0.10, "best_fold", 5, 0.254),
        (500, 0.10, "select_then_certify", 5, 0.214),
        (5000, 0.05, "cv_bound", 10, 0.131),
        (5000, 0.05, "merged_folds", 10, 0.125),
        (5000, 0.05, "best_fold", 10, 0.108),
        (5000, 0.05, "best_fold", 5, 0.097),
        (5000, 0.05, "select_then_certify", 5, 0.090),
        (50_000, 0.02, "cv_bound", 10, 0.0525),
        (50_000, 0.02, "merged_folds", 10, 0.0516),
        (50_000, 0.02, "best_fold", 10, 0.0481),
        (50_000, 0.02, "best_fold", 5, 0.0463),
        (50_000, 0.02, "select_then_certify", 5, 0.0450),
    ],
)
def test_plan_bound__reproduces_the_table(
    n_labeled, error, certificate, n_folds, expected
):
    plan = plan_bound(n_labeled, 100_000, 225, 0.01, error, n_folds=(n_folds,))
    found = float(plan.bound.sel(certificate=certificate, n_folds=n_folds))
    assert found == pytest.approx(expected, rel=0.01)


def test_plan_bound__averages_what_the_bounds_give_on_draws(rng):
    plan = plan_bound(203, 2000, 30, 0.05, 0.15, n_folds=(4,))
    rows = np.array([51, 51, 51, 50])
    errors = rng.binomial(rows, 0.15, (4000, 4))
    differing = rng.binomial(2000, 0.02, 4000)
    for name, function, gamma in [
        ("cv_bound", semi_supervised_cv_bound, 0.5),
        ("merged_folds", merged_folds, 0.8),
        ("best_fold", best_fold, 0.8),
    ]:
        terms = function(
            errors, rows, differing, 2000, delta=0.05 / 30, label_share=gamma
        )
        found = float(plan.label_term.sel(certificate=name, n_folds=4))
        assert found == pytest.approx(terms.label_term.mean(), rel=0.01)
        if name != "best_fold":
            found = float(plan.disagreement_term.sel(certificate=name, n_folds=4))
            assert found == pytest.approx(terms.disagreement_term.mean(), rel=0.01)


def test_plan_bound__does_not_plug_in_the_expected_counts(plan):
    plugged = best_fold(
        [10] * 5, 100, 2000, 100_000, delta=0.01 / 225, label_share=0.95
    )
    found = float(plan.bound.sel(certificate="best_fold", n_folds=5))
    assert plugged.bound > found + 0.04


def test_plan_bound__recommends_the_smallest_bound_of_the_full_model(plan):
    assert plan.recommended == "select_then_certify"
    assert plan.recommended_certify_share == 0.2
    assert (
        plan.recommended_bound
        <= plan.bound.sel(n_folds=[5, 10])
        .where(~plan.certificate.isin(["transductive", "holdout_bound"]))
        .min()
    )


def test_plan_bound__without_a_pool_leaves_only_the_hold_out():
    plan = plan_bound(500, 0, 10, 0.05, 0.1)
    vacuous = plan.bound.max("n_folds") >= 1
    assert plan.certificate[~vacuous.values].values.tolist() == ["holdout_bound"]


def test_plan_bound__has_no_number_for_more_folds_than_rows():
    plan = plan_bound(4, 100, 3, 0.05, 0.1, n_folds=(2, 10))
    assert plan.bound.sel(certificate="cv_bound").isnull().values.tolist() == [
        False,
        True,
    ]


def test_plan_bound__finds_the_rows_that_a_wanted_bound_needs():
    given = {"delta": 0.05, "expected_error": 0.1, "n_folds": (5,)}
    plan = plan_bound(500, 20_000, 20, wanted_bound=0.2, **given)
    cell = {"certificate": "cv_bound", "n_folds": 5}
    needed = int(plan.labels_needed.sel(cell))
    enough = plan_bound(needed, 20_000, 20, **given).bound.sel(cell)
    fewer = plan_bound(int(needed * 0.97), 20_000, 20, **given).bound.sel(cell)
    assert enough <= 0.2 < fewer
    assert int(plan.pool_rows_needed.sel(cell)) == -1


def test_plan_bound__says_never_below_the_error_expected():
    plan = plan_bound(500, 1000, 20, 0.05, 0.1, n_folds=(5,), wanted_bound=0.1)
    assert (plan.labels_needed == -1).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_labeled": 1}, ValueError, "`n_labeled` must be >= 2"),
        ({"n_labeled": 10.5}, TypeError, "`n_labeled` must be an integer"),
        ({"n_unlabeled": -1}, ValueError, "`n_unlabeled` must be >= 0"),
        ({"n_candidates": 0}, ValueError, "`n_candidates` must be >= 1"),
        ({"delta": 1.0}, ValueError, "`delta` must be strictly between"),
        ({"expected_error": 0}, ValueError, "`expected_error` must be strictly"),
        ({"n_folds": (1,)}, ValueError, "`n_folds` must hold numbers >= 2"),
        ({"n_folds": ()}, (TypeError, ValueError), "`n_folds` must hold"),
        ({"wanted_bound": 2.0}, ValueError, "`wanted_bound` must be strictly"),
    ],
)
def test_plan_bound__refuses_bad_input(change, error, message):
    given = {
        "n_labeled": 100,
        "n_unlabeled": 100,
        "n_candidates": 5,
        "delta": 0.05,
        "expected_error": 0.1,
    }
    with pytest.raises(error, match=message):
        plan_bound(**given | change)


def test_outlook__splits_rows_as_the_folds_do():
    design = DesignAssumptions(17, 0, 1, 0.05, 0.1, 0.02)
    assert design.fold_sizes(5) == [(4, 2), (3, 3)]
    assert design.fold_sizes(17) == [(1, 17)]


def test_mean_of_smallest__is_that_of_two_dice():
    die, chances = np.arange(1.0, 7.0), np.full(6, 1 / 6)
    assert mean_of_smallest([(die, chances, 2)]) == pytest.approx(91 / 36)
    assert mean_of_smallest([(die, chances, 1)] * 2) == pytest.approx(91 / 36)


def test_plan_bound_command__prints_the_table():
    shown = CliRunner().invoke(
        command, ["500", "100000", "--delta", "0.01", "--folds", "5"]
    )
    assert shown.exit_code == 0, shown.output
    assert "0.255" in shown.output
    assert "Recommended: select_then_certify with 20 % of the labels" in shown.output


def test_plan_bound_command__prints_json_and_draws(tmp_path):
    path = tmp_path / "plan.png"
    arguments = ["200", "0", "--folds", "2,500", "--json", "--figure", str(path)]
    shown = CliRunner().invoke(command, arguments)
    assert shown.exit_code == 0, shown.output
    facts = json.loads(shown.output)
    assert facts["bound"]["cv_bound"]["500"] is None
    assert path.stat().st_size > 0


def test_plan_bound_command__refuses_folds_that_are_no_numbers():
    shown = CliRunner().invoke(command, ["200", "1000", "--folds", "two"])
    assert shown.exit_code == 2
    assert "is no list of numbers" in shown.output


def test_bound_plan_data__is_clipped_and_sorted(plan):
    data = bound_plan_data(plan)
    assert float(data.max()) <= 1
    assert (np.diff(data.min("n_folds")) >= 0).all()


def test_plot_bound_plan__names_every_certificate(plan):
    texts = {text.get_text().strip() for text in plot_bound_plan(plan).texts}
    assert texts == set(plan.certificate.values)
