import json

import numpy as np
import pytest
from click.testing import CliRunner

from dsel.bounds import best_fold, best_fold_model, cv_bound, merged_folds
from dsel.cli.plan_bound import command
from dsel.plots import bound_plan_data, plot_bound_plan
from dsel.searches import plan_bound
from dsel.searches.expected_terms import DesignAssumptions, mean_of_smallest

OF_FOLD_MODELS = ("holdout_bound", "best_fold_model", "nested_fold_model")
"""Certificates of models that were trained without a fold."""


@pytest.fixture(scope="module")
def plan():
    return plan_bound(500, 100_000, 225, 0.01, 0.10, disagreement_growth=0)


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
    plan = plan_bound(
        n_labeled, 100_000, 225, 0.01, error, n_folds=(n_folds,), disagreement_growth=0
    )
    found = float(plan.bound.sel(certificate=certificate, n_folds=n_folds))
    assert found == pytest.approx(expected, rel=0.01)


# Of one nested selection, by simulation: 225 candidates are not paid for.
@pytest.mark.parametrize(
    ("n_labeled", "error", "full", "fold_model"),
    [
        (500, 0.10, {5: 0.192, 3: 0.177}, {5: 0.170, 3: 0.155}),
        (5000, 0.05, {5: 0.0853, 3: 0.0827}, {5: 0.0637, 3: 0.0611}),
        (50_000, 0.02, {5: 0.0441, 3: 0.0437}, {5: 0.0226, 3: 0.0221}),
    ],
)
def test_plan_bound__of_nested_searches_is_what_simulation_gives(
    rng, n_labeled, error, full, fold_model
):
    plan = plan_bound(n_labeled, 100_000, 225, 0.01, error, disagreement_growth=0)
    for k in (3, 5):
        rows = np.array([n_labeled // k + (i < n_labeled % k) for i in range(k)])
        errors = rng.binomial(rows, error, (4000, k))
        differing = rng.binomial(100_000, 0.02, 4000)
        simulated = {
            "nested": best_fold(
                errors, rows, differing, 100_000, delta=0.01, label_share=0.95
            ).bound.mean(),
            "nested_fold_model": best_fold_model(errors, rows, delta=0.01).mean(),
        }
        for name, table in (("nested", full), ("nested_fold_model", fold_model)):
            planned = float(plan.bound.sel(certificate=name, n_folds=k))
            assert planned == pytest.approx(table[k], rel=5e-3)
            assert simulated[name] == pytest.approx(table[k], rel=1e-2)


def test_plan_bound__lets_disagreement_grow_with_the_rows_left_out():
    given = {"delta": 0.01, "expected_error": 0.1, "n_folds": (3, 10)}
    constant, growing, steep = (
        plan_bound(500, 10**6, 5, disagreement_growth=power, **given)
        for power in (0, 0.5, 1)
    )
    terms = [
        p.disagreement_term.sel(certificate="nested_vote") for p in (constant, growing)
    ]
    np.testing.assert_allclose(*(each.sel(n_folds=10) for each in terms))
    # A third left out over two thirds seen is 4.5 times a ninth.
    ratio = float(terms[1].sel(n_folds=3) / terms[0].sel(n_folds=3))
    assert ratio == pytest.approx(4.5**0.5, rel=0.02)
    assert (steep.bound >= growing.bound - 1e-12).all()


def test_plan_bound__lets_nested_models_differ_more_where_there_are_candidates():
    for n_candidates, ratio in ((1, 1.0), (5, 1.25)):
        plan = plan_bound(500, 10**7, n_candidates, 0.05, 0.1)
        term = plan.disagreement_term.sel(n_folds=5)
        found = term.sel(certificate="nested") / term.sel(certificate="nested_vote")
        assert float(found) == pytest.approx(ratio, rel=0.01)


def test_plan_bound__recommends_no_nested_search_of_many_folds():
    plan = plan_bound(5000, 100_000, 225, 0.01, 0.05)
    smaller = plan.bound.sel(certificate="nested", n_folds=10)
    assert smaller < plan.recommended_bound


def test_plan_bound__takes_the_growth_from_a_pilot():
    given = {"delta": 0.01, "expected_error": 0.1}
    pilot = {10: 0.02, 3: 0.02 * 4.5**0.7}
    plan = plan_bound(500, 10**6, 5, expected_disagreement=pilot, **given)
    assert float(plan.disagreement_growth) == pytest.approx(0.7)
    assert float(plan.expected_disagreement) == pytest.approx(0.02)
    one = plan_bound(500, 10**6, 5, expected_disagreement={3: 0.05}, **given)
    assert float(one.disagreement_growth) == 0.6


def test_plan_bound__takes_one_number_of_folds():
    one = plan_bound(500, 1000, 5, 0.05, 0.1, n_folds=5)
    assert one.identical(plan_bound(500, 1000, 5, 0.05, 0.1, n_folds=(5, 5)))


def test_plan_bound__has_no_nested_search_of_two_folds():
    plan = plan_bound(500, 1000, 5, 0.05, 0.1, n_folds=(2, 3))
    found = plan.bound.sel(certificate="nested")
    assert found.isnull().values.tolist() == [True, False]


def test_plan_bound__averages_what_the_bounds_give_on_draws(rng):
    plan = plan_bound(203, 2000, 30, 0.05, 0.15, n_folds=(4,), disagreement_growth=0)
    rows = np.array([51, 51, 51, 50])
    errors = rng.binomial(rows, 0.15, (4000, 4))
    differing = rng.binomial(2000, 0.02, 4000)
    for name, function, gamma in [
        ("cv_bound", cv_bound, 0.5),
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
    assert plan.recommended == "nested"
    assert plan.recommended_n_folds == 3
    others = ["transductive", "nested_vote", *OF_FOLD_MODELS]
    of_full_model = plan.bound.where(~plan.certificate.isin(others))
    assert plan.recommended_bound <= of_full_model.sel(n_folds=[3, 5, 10]).min()


def test_plan_bound__without_a_pool_leaves_only_models_of_folds():
    plan = plan_bound(500, 0, 10, 0.05, 0.1, wanted_bound=0.15)
    vacuous = plan.bound.max("n_folds") >= 1
    assert set(plan.certificate[~vacuous.values].values) == set(OF_FOLD_MODELS)
    best = {"certificate": "nested_fold_model", "n_folds": 3}
    assert (plan.recommended, plan.recommended_n_folds) == tuple(best.values())
    assert plan.recommended_bound == plan.bound.sel(best) < 0.15
    assert plan.pool_rows_needed.sel(best) == 0


def test_plan_bound__of_the_best_folds_model_is_what_simulation_gives(rng):
    # Of one selection at n = 500, p = .1, delta = .01: .170, .155, .146.
    plan = plan_bound(500, 0, 1, 0.01, 0.1, n_folds=(5, 3, 2))
    for n_folds in (5, 3, 2):
        sizes = np.array([500 // n_folds + (i < 500 % n_folds) for i in range(n_folds)])
        errors = rng.binomial(sizes, 0.1, size=(20_000, n_folds))
        average = best_fold_model(errors, sizes, delta=0.01).mean()
        planned = plan.bound.sel(certificate="best_fold_model", n_folds=n_folds)
        assert float(planned) == pytest.approx(average, abs=5e-4)


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
        ({"disagreement_growth": -1}, ValueError, "`disagreement_growth` must be >= 0"),
        ({"expected_disagreement": {}}, ValueError, "must hold a rate"),
        ({"expected_disagreement": {1: 0.1}}, ValueError, "must be >= 2"),
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
        command, ["500", "100000", "--delta", ".01", "--folds", "5,3", "--growth", "0"]
    )
    assert shown.exit_code == 0, shown.output
    assert "0.255" in shown.output
    assert "Recommended: nested with 3 folds" in shown.output


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
