import numpy as np
import pytest

from dsel.bounds import nested_all_rows, nested_one_fold
from dsel.bounds.cross_validation import best_fold, cv_bound
from dsel.search.design.certificate_methods import METHODS
from dsel.search.planning.plan_bound import plan_bound

GIVEN = {"n_candidates": 20, "error": 0.1}


def planned(n_labeled, n_unlabeled, **options):
    return plan_bound(n_labeled, n_unlabeled, **{**GIVEN, **options})


def bound(plan, certificate, n_folds=5):
    return float(plan.bound.sel(certificate=certificate, n_folds=n_folds))


def test_plan_bound__averages_what_the_bounds_give_on_draws(rng):
    n, m, k, error, d = 203, 2000, 4, 0.15, 0.05
    rows = np.array([51, 51, 51, 50])
    errors, differing = rng.binomial(rows, error, (4000, k)), rng.binomial(m, d, 4000)
    case = {"n_candidates": 30, "error": error, "disagreement": d / (4 / 3) ** 0.6}
    plan = planned(n, m, cv=k, **case)
    assert float(plan.disagreement.sel(n_folds=k)) == pytest.approx(d)
    simulated = {
        "one_fold": nested_one_fold(errors, rows, delta=0.95 * 0.05)[1],
        "cv_bound": cv_bound(errors, rows, differing, m, delta=0.05 / 30).bound,
        "best_fold": best_fold(errors, rows, differing, m, delta=0.05 / 30).bound,
    }
    for name, bounds in simulated.items():
        assert bound(plan, name, k) == pytest.approx(bounds.mean(), rel=0.01)


def test_plan_bound__of_all_rows_is_hardly_above_the_smallest_sum(rng):
    rows = np.full(5, 120)
    errors = rng.binomial(rows, 0.1, (2000, 5))
    differing = rng.binomial(100_000, 0.03, (2000, 5))
    plan = planned(600, 100_000, disagreement=0.03)
    _, terms = nested_all_rows(errors, rows, differing, 100_000, delta=0.05)
    assert bound(plan, "all_rows") == pytest.approx(terms.bound.mean(), rel=0.01)


def test_plan_bound__without_a_pool_gives_held_out_rows_all_of_delta():
    alone, beside = planned(500, 0), planned(500, 1000)
    known = alone.certificate[alone.bound.sel(n_folds=5).notnull().values].values
    without_pool = {
        name
        for method in METHODS.values()
        for name, expected in method.expects.items()
        if not expected.needs_pool
    }
    assert set(known) == {*without_pool, "holdout_20_percent"}
    assert bound(alone, "one_fold") < bound(beside, "one_fold")


def test_plan_bound__lets_disagreement_grow_with_the_rows_unseen():
    plan = planned(600, 1000, cv=(3, 5, 10))
    d = plan.disagreement
    assert float(d.sel(n_folds=5)) == pytest.approx(0.1 / 3)
    assert float(d.sel(n_folds=3) / d.sel(n_folds=5)) == pytest.approx(2**0.6)
    guess = "on 3.3% of the rows with 5 folds (a third of the assumed error), and with"
    assert f"{guess} fewer folds on more." in plan.attrs["remarks"][0]
    expected = {
        **{"one_fold": 0.9, "all_rows": 1.0, "cv_bound": 1.0, "best_fold": 1.0},
        **{"holdout": 0.9, "holdout_20_percent": 0.8},
    }
    seen = plan.seen.sel(n_folds=10, certificate=[*expected])
    assert seen.values.tolist() == pytest.approx([*expected.values()])


def test_plan_bound__has_a_row_for_each_number_of_folds_that_can_be():
    assert planned(500, 1000).identical(planned(500, 1000, cv=(5, 5)))
    found = planned(4, 100, cv=(2, 10)).bound.sel(certificate="cv_bound")
    assert found.isnull().values.tolist() == [False, True]


def test_plan_bound__says_where_a_fifth_is_smaller():
    many = planned(600, 1000, cv=20).attrs["remarks"]
    assert "A 20% hold-out set would give the smallest" in many[1]
    assert len(planned(600, 1000).attrs["remarks"]) == 1


@pytest.mark.parametrize("certificate", ["one_fold", "all_rows", "cv_bound"])
def test_plan_bound__finds_the_labels_that_a_wanted_bound_needs(certificate):
    plan = planned(500, 20_000, wanted=0.2)
    needed = int(plan.labels_needed.sel(certificate=certificate, n_folds=5))
    enough, fewer = planned(needed, 20_000), planned(int(needed * 0.97), 20_000)
    assert bound(enough, certificate) <= 0.2 < bound(fewer, certificate)


def test_plan_bound__finds_that_few_rows_are_enough():
    plan = planned(500, 1000, n_candidates=225, cv=2, wanted=0.9)
    needed = plan.labels_needed.sel(certificate=["one_fold", "all_rows"])
    assert needed.values.ravel().tolist() == [3, 5]


def test_plan_bound__finds_the_pool_rows_that_a_wanted_bound_needs():
    needs = planned(2000, 100, wanted=0.17).pool_rows_needed.sel(n_folds=5)
    needed = int(needs.sel(certificate="all_rows"))
    assert int(needs.sel(certificate="one_fold")) == 0
    assert int(needs.sel(certificate="cv_bound")) == -1
    enough, fewer = planned(2000, needed), planned(2000, int(0.97 * needed))
    assert bound(enough, "all_rows") <= 0.17 < bound(fewer, "all_rows")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (0.1, "a bound is larger than the error"),
        (0.12, "is larger than the assumed error (10%) and"),
    ],
)
def test_plan_bound__says_why_a_bound_cannot_be_had(wanted, words):
    plan = planned(500, 100_000, wanted=wanted)
    assert words in plan.attrs["remarks"][-1]
    assert (plan.labels_needed.sel(certificate=["all_rows", "cv_bound"]) == -1).all()


def test_plan_bound__of_recall_reads_the_rows_of_the_class_alone():
    given = {"n_candidates": 1, "error": 0.2}
    whole = planned(100, 10_000, **given).bound
    part = planned(2_000, 10_000, class_share=0.05, **given).bound
    for name in ("one_fold", "holdout_20_percent"):
        same = part.sel(certificate=name) == whole.sel(certificate=name)
        assert bool(same.all())
    assert bool((part > whole).sel(certificate="all_rows").all())
    assert part.sel(certificate="cv_bound").isnull().all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n_labeled": 1}, ValueError, "`n_labeled` must be >= 2"),
        ({"n_labeled": 10.5}, TypeError, "`n_labeled` must be an integer"),
        ({"n_unlabeled": -1}, ValueError, "`n_unlabeled` must be >= 0"),
        ({"n_candidates": 0}, ValueError, "`n_candidates` must be >= 1"),
        ({"delta": 1.0}, ValueError, "`delta` must be above 0"),
        ({"delta": 0.99}, ValueError, "did you mean 0.01"),
        ({"error": 0}, ValueError, "`error` must be strictly"),
        ({"cv": (1,)}, ValueError, "`cv` must be a number of folds >= 2"),
        ({"cv": ()}, (TypeError, ValueError), "`cv` must"),
        ({"disagreement": 0}, ValueError, "`disagreement` must be strictly"),
        ({"wanted": 2.0}, ValueError, "`wanted` must be strictly"),
        ({"class_share": 2.0}, ValueError, "`class_share`"),
    ],
)
def test_plan_bound__refuses(change, error, words):
    with pytest.raises(error, match=words):
        planned(**{"n_labeled": 100, "n_unlabeled": 100, **change})


def test_plan_bound__says_how_many_rows_a_tolerance_needs():
    plan = plan_bound(600, 0, n_candidates=4, error_quantile=0.9, cv=[2, 5]).sel(
        n_folds=5
    )
    needed = int(plan.labels_needed.sel(certificate="one_fold"))
    fifth = int(plan.labels_needed.sel(certificate="holdout_20_percent"))
    assert (needed, fifth) == (5 * 35 + 1, 145)  # 36 and 29 rows without an exceedance
    for certificate, n_rows in (("one_fold", needed), ("holdout_20_percent", fifth)):
        finite = [
            plan_bound(n, 0, n_candidates=4, error_quantile=0.9)
            .residual_quantile.sel(certificate=certificate, n_folds=5).notnull().item()
            for n in (n_rows - 1, n_rows)
        ]  # fmt: skip
        assert finite == [False, True]
    assert 0.9 < float(plan.residual_quantile.sel(certificate="one_fold")) < 1


@pytest.mark.parametrize("certificate", ["all_rows", "holdout"])
def test_plan_bound__rows_needed_are_the_fewest_that_give_a_tolerance(certificate):
    def quantile(n):
        plan = plan_bound(n, 10_000, n_candidates=4, error_quantile=0.9)
        return float(plan.residual_quantile.sel(certificate=certificate, n_folds=5))

    plan = plan_bound(600, 10_000, n_candidates=4, error_quantile=0.9)
    needed = int(plan.labels_needed.sel(certificate=certificate, n_folds=5))
    assert np.isnan(quantile(needed - 1))
    assert not any(np.isnan(quantile(needed + n)) for n in range(0, 100, 5))


def test_plan_bound__refuses_to_plan_both_kinds():
    with pytest.raises(ValueError, match="leave one of them out"):
        plan_bound(600, 0, n_candidates=4, error=0.1, error_quantile=0.9)
    with pytest.raises(TypeError, match="for regressors it needs error_quantile="):
        plan_bound(600, 0, n_candidates=4)


@pytest.mark.parametrize(("options", "texts"), [
    ({}, ["5 folds ", "from the pool", "Note      Guessed: "]),
    ({"wanted": 0.15}, ["rows needed for a bound of 15%:", "never"]),
    ({"cv": [2, 5], "wanted": 0.15},
     ["Labels needed:\n",
      "\nPool rows needed (lines",
      "one fold (holdout): all candidates at once, trained",
      "20% hold-out set: without dsel, 80% to search"]),
    ({"error": None, "error_quantile": 0.9}, ["quantiles with 600 labeled rows:"]),
])  # fmt: skip
def test_plan_bound__is_shown_in_words_with_its_numbers(options, texts):
    plan = planned(600, 10_000, **options)
    shown, card = str(plan), plan._repr_html_()
    assert repr(plan).startswith(f"{shown}\nNext      `dsel.certify(")
    assert all(text in shown for text in texts)
    assert "xarray" not in shown
    assert "<th>" in card
    names = {*plan.data_vars} & {"bound", "labels_needed", "residual_quantile"}
    for number in (plan[name].values.flat[0] for name in names):
        text = f"{number:,}" if number > 1 else f"{100 * number:.1f}%"
        assert text in shown
        assert f"<td>{text}</td>" in card


def test_part_of_a_bound_plan__is_shown_as_a_dataset():
    plan = planned(600, 10_000, cv=[2, 5])
    assert str(plan.sel(n_folds=5)).startswith("<xarray.BoundPlan>")
    assert "xr-wrap" in plan.sel(n_folds=5)._repr_html_()
    assert "\ntrained on all labels" not in str(plan.sel(certificate=["one_fold"]))


def test_plan_bound__of_a_holdout_set_does_not_depend_on_folds():
    plan = planned(400, 5_000, error=0.38, wanted=0.4, cv=(2, 3, 5, 10))
    needed = plan.labels_needed.sel(certificate="holdout_20_percent")
    assert len({*needed.values.tolist()}) == 1
