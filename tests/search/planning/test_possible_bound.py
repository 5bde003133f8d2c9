"""What the rows of a plan cannot prove is known before any fit, with what is enough."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dsel
from dsel.errors import ways_of
from dsel.search.planning.plan_caveats import check_possible_bound
from dsel.search.planning.possible_bounds import smallest_limit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
GRID = {"C": [1.0]}


def rare(n):
    return np.where(np.arange(400) < n, "fraud", "ok")


def plan(y=Y, pool=None, **options):
    model = LogisticRegression()
    return dsel.plan_search(
        model, GRID, X[: len(y)], y, pool, random_state=0, **options
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": rare(3), "loss": "recall:fraud"}, "3 labeled rows of the class 'fraud'"),
        (
            {"groups": np.arange(400) % 5},
            "`groups` have too few rows .* with 5 groups in 5",
        ),
        ({"pool": X}, "`pool` must hold new rows: all 400 of its rows equal labeled"),
        ({"pool": X[7:99].astype(np.float32)}, "all 92 of its rows equal labeled"),
    ],
)
def test_possible_bound__of_no_use_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        check_possible_bound(plan(**options).search)


def test_plan__says_about_how_many_rows_are_enough():
    with pytest.raises(ValueError, match="enough for 50%") as refused:
        check_possible_bound(plan(rare(3), loss="recall:fraud").search)
    n = int(re.search("about ([0-9]+) are enough", str(refused.value))[1])
    assert 6 <= n <= 40
    assert "no model makes an error" not in str(plan(rare(2 * n), loss="recall:fraud"))


def test_plan__notes_a_large_bound_before_the_fits_as_no_error_gives_it():
    planned = plan(Y[:20])
    [note] = planned.notes_on_few_rows
    assert note in planned.remarks
    assert "with 20 labeled rows in 5 folds the bound is" in note
    least = float(re.search("bound is ([0-9.]+)%", note)[1]) / 100
    assert 0.5 < least < 0.9
    assert planned.run(n_jobs=1).choice.bound >= least - 1e-3
    assert plan(Y[:60]).notes_on_few_rows == []
    assert plan(Y[:20], criterion="cv_error").notes_on_few_rows == []


@pytest.mark.parametrize("loss", ["recall:fraud", "error"])
def test_plan__is_refused_or_noted_by_the_counts_and_not_by_the_folds_of_a_seed(loss):
    notes = set()
    for seed in range(6):
        try:
            planned = dsel.plan_search(
                LogisticRegression(), GRID, X, rare(12), random_state=seed, loss=loss
            )
            texts = planned.notes_on_few_rows
        except ValueError as error:
            texts = [str(error)]
        notes.add(tuple(t for t in texts if "even if no model makes an error" in t))
    assert len(notes) == 1
    assert any(notes) == (loss != "error")


def row_of(planned, name):
    return next((text for row, text in planned.shown_rows() if row == name), "")


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("precision:yes", "or more .false among predictions 'yes'., even if no model"),
        ("balanced", r"or more \(balanced error\), even if no model errs"),
    ],
)
def test_plan__says_the_smallest_possible_bound_of_any_loss(loss, words):
    planned = plan(loss=loss)
    text = row_of(planned, "bound")
    assert re.search(words, text, re.IGNORECASE), text
    least = float(text.partition("%")[0]) / 100
    assert least == pytest.approx(smallest_limit(planned.search), abs=1e-3)
    assert planned.run(n_jobs=1).choice.bound >= least - 1e-3


def percents(text):
    return [float(number) / 100 for number in re.findall(r"[0-9]+[.]?[0-9]*", text)]


def bounds_of(call):
    words = re.fullmatch(r"dsel[.]plan_bound[(](.*)[)]", call)[1].split(", ")
    rows, named = map(int, words[:2]), [word.split("=") for word in words[2:]]
    whole = ("n_candidates", "cv")
    options = {k: int(v) if k in whole else float(v) for k, v in named}
    return dsel.plan_bound(*rows, **options).bound


@pytest.mark.parametrize(
    ("options", "rates", "words"),
    [
        ({}, [0.05, 0.1, 0.2], "models err on"),
        ({"cv": 3, "delta": 0.1}, [0.05, 0.1, 0.2], "models err on"),
        ({"groups": np.arange(400) % 100}, [0.05, 0.1, 0.2], "models err on"),
        ({"loss": "recall:yes"}, [0.1, 0.3, 0.5], "models miss"),
    ],
)
def test_plan__says_the_bounds_that_plan_bound_expects_and_its_call(
    options, rates, words
):
    text = row_of(plan(pool=None, **options), "bound")
    found = re.match(
        f"about (.*?)% if {words} .*hold-out set: about ([^%]*)%[);]", text
    )
    call = text.rpartition("other rates: ")[2]
    assert "error=0.15" in call
    for n, rate in enumerate(rates):
        expected = bounds_of(call.replace("0.15", str(rate)))
        bounds = expected.isel(n_folds=expected.n_folds == options.get("cv", 5))
        for certificate, number in zip(
            ("one_fold", "holdout_20_percent"), found.groups(), strict=True
        ):
            bound = bounds.sel(certificate=certificate).item()
            assert percents(number)[n] == pytest.approx(bound, abs=6e-4)


def test_plan__with_queries_says_what_they_cost_the_first_bound():
    pool = RNG.normal(size=(5_000, 3))
    text = row_of(plan(pool=pool, n_queries=30), "queries")
    more, less, error = percents(text.partition("becomes")[2])
    without = row_of(plan(pool=pool), "bound")
    assert error == 0.1
    assert less == percents(without)[1] < more
    assert not row_of(plan(pool=pool), "queries")


def test_plan__says_what_fewer_folds_could_prove_where_a_bound_is_useless():
    for few in (
        {"y": rare(40), "loss": "recall:fraud"},
        {"y": rare(40), "loss": "precision:fraud"},
        {"groups": np.arange(400) % 40},
    ):
        text = row_of(plan(**few), "bound")
        least = smallest_limit(plan(cv=3, **few).search)
        number = re.search("([0-9.]+)% with cv=3, whose models learn from 67%", text)
        assert float(number[1]) / 100 == pytest.approx(least, abs=1e-3)
        assert "cv=3, whose" not in row_of(plan(cv=3, **few), "bound")
    assert "with cv=3" not in row_of(plan(), "bound")


@pytest.mark.parametrize(
    ("y", "options", "words"),
    [
        (
            rare(20),
            {"loss": "cost:fraud>ok=20,ok>fraud=1"},
            r"fraud costs 0.95, and the bound is",
        ),
        (rare(12), {}, r"ok errs on 3.0%, and the bound is"),
    ],
)
def test_plan__says_before_the_run_that_it_cannot_be_better_than_a_constant(
    y, options, words
):
    planned = plan(y, **options)
    [note] = [text for text in planned.notes_on_few_rows if "cannot prove" in text]
    assert re.search(f"always predicting {words}", note)
    assert note in planned.remarks
    assert planned.run(n_jobs=1).choice.certificate.number >= 0.03
    n = int(re.search("that needs about ([0-9,]+) rows", note)[1].replace(",", ""))
    for part, is_enough in ((1.02, True), (0.98, False)):
        # Every class has the same part of more rows.
        rows = np.linspace(0, 400, round(part * n), endpoint=False).astype(int)
        rows = np.argsort(y, kind="stable")[rows]
        more = dsel.plan_search(
            LogisticRegression(), GRID, X[rows], y[rows], random_state=0, **options
        )
        assert bool(more.notes_on_few_rows) != is_enough


@pytest.mark.parametrize(
    ("n_pool", "words"),
    [(10, "no bound below 100%, even if no model errs"), (200, "hardly of use")],
)
def test_plan__says_that_a_pool_is_of_no_use_for_a_rare_class(n_pool, words):
    pool = RNG.normal(size=(n_pool, 3))
    planned = plan(rare(40), pool, loss="recall:fraud")
    assert words in row_of(planned, "pool")
    assert planned.run(n_jobs=1).choice.certificates["all_rows"].number >= 0.999
    assert "of use" not in row_of(plan(pool=pool, loss="recall:yes"), "pool") or (
        n_pool == 10
    )


def test_plan__says_which_error_of_a_fold_bounds_a_regression():
    y = X[:, 0] + RNG.normal(size=400)
    planned = dsel.plan_search(Ridge(), {"alpha": [1.0]}, X, y, random_state=0)
    text = row_of(planned, "bound")
    rank = re.fullmatch(
        "how far off 90% of new predictions are at most: about the (.*)(?:st|nd|rd|th) "
        "largest error on a fold of 80 rows", text
    )[1]  # fmt: skip
    outcome = planned.run(n_jobs=1)
    residuals = outcome.results["outer_residuals"][outcome.choice.fold].values
    if outcome.choice.fold == 0:  # with the largest share of delta
        assert np.sum(residuals >= outcome.choice.bound) == int(rank)
    assert np.sum(residuals >= outcome.choice.bound) <= int(rank)


def test_plan__says_what_bounds_a_rare_class_that_the_error_hardly_shows():
    text = row_of(plan(rare(20)), "rare class")
    assert text.startswith("'fraud', 20 rows of 400: never to find it adds only 5.0%")
    # One number, at one rate of misses, which depends on no draw of folds.
    [number] = re.findall(
        "bounds its misses: about ([0-9.]+)% if models miss 30%", text
    )
    assert len(re.findall("[0-9.]+%", text)) == 3
    planned = dsel.plan_bound(400, n_candidates=1, error=0.3, class_share=0.05)
    expected = planned.bound.sel(certificate="one_fold").item()
    assert float(number) / 100 == pytest.approx(expected, abs=6e-4)
    other_seed = dsel.plan_search(
        LogisticRegression(), GRID, X, rare(20), random_state=5
    )
    assert row_of(other_seed, "rare class") == text
    assert "about" not in row_of(plan(rare(4)), "rare class")
    assert "too few for a bound of its misses" in row_of(plan(rare(4)), "rare class")
    for planned in (plan(), plan(rare(20), loss="balanced")):
        assert not row_of(planned, "rare class")


def test_plan__with_a_report_keeps_the_rare_class_and_names_the_plain_hold_out_set():
    planned = plan(rare(20), report=True)
    text = row_of(planned, "rare class")
    assert text.startswith("'fraud', 20 rows of 400: never to find it adds only 5.0%")
    assert text.endswith("the report has the part of it that is found")
    assert "(a 20% hold-out set without a report: about" in row_of(planned, "bound")


def test_plan__says_by_expectation_what_fewer_folds_give_few_rows():
    few = {"groups": np.arange(400) % 80}
    text = row_of(plan(**few), "bound")
    found = re.search("cv=3: about (.*)%, if models trained on 67% err as often", text)
    call = text.rpartition("other rates: ")[2]
    for number, rate in zip(percents(found[1]), (0.05, 0.1, 0.2), strict=True):
        bounds = bounds_of(call.replace("0.15", f"{rate}, cv=3"))
        bounds = bounds.sel(certificate="one_fold")
        assert number == pytest.approx(
            bounds.isel(n_folds=bounds.n_folds == 3).item(), abs=6e-4
        )
    assert "cv=3: about" not in row_of(plan(cv=3, **few), "bound")


def test_plan__leaves_to_a_comparison_what_it_may_prove():
    # The difference to a baseline has a limit of its own, below those of both models.
    alone, compared = (
        plan(rare(12), **options) for options in ({}, {"baseline": "largest class"})
    )
    assert any("cannot prove" in text for text in alone.notes_on_few_rows)
    assert not any("cannot prove" in text for text in compared.notes_on_few_rows)


def test_plan__with_queries_says_no_least_bound_of_the_pool_alone():
    pool = RNG.normal(size=(60, 3))
    assert "too few to help" in " ".join(str(plan(pool=pool)).split())
    with_queries = plan(pool=pool, n_queries=20)
    assert "too few to help" not in " ".join(str(with_queries).split())


def test_origin__names_the_rows_that_its_limit_counts():
    keys = np.arange(400) // 4
    for options, words in (
        ({}, "from 0 errors on the 80 rows of fold"),
        ({"loss": "recall:yes"}, "from errors on fold"),
        ({"groups": keys}, " on one row of 20 groups of fold"),
    ):
        assert words in str(plan(**options).run().certificate)


def test_plan__says_from_how_many_rows_on_a_pool_helps():
    text = row_of(plan(pool=RNG.normal(size=(8, 3))), "pool")
    assert "8 rows; too few to help: " in text.replace(", 192 B, read by 1 task", "")
    n = int(re.search("from about ([0-9]+) rows on", text)[1])
    assert 100 < n < 1000
    assert "too few" in row_of(plan(pool=RNG.normal(size=(n - 1, 3))), "pool")
    assert "too few" not in row_of(plan(pool=RNG.normal(size=(n, 3))), "pool")


@pytest.mark.parametrize(("n_groups", "n_folds"), [(120, 3), (80, 2), (60, None)])
def test_possible_bound__of_too_few_groups_of_a_regression_is_refused(
    n_groups, n_folds
):
    planned = dsel.plan_search(
        Ridge(), {"alpha": [1.0]}, X, X[:, 0], groups=np.arange(400) % n_groups,
        random_state=0,
    )  # fmt: skip
    words = rf"^{n_groups} groups are too few .* which is infinite"
    with pytest.raises(ValueError, match=words) as refused:
        check_possible_bound(planned.search)
    *folds, _, (fraction,) = ways_of(refused.value)
    assert folds == ([] if n_folds is None else [[("--cv", str(n_folds))]])
    assert re.fullmatch(r"error_quantile=0\.\d+", fraction[1])


def test_possible_bound__of_too_few_rows_offers_folds_that_are_enough():
    with pytest.raises(ValueError, match="too few rows for a bound") as refused:
        check_possible_bound(plan(rare(3), loss="recall:fraud").search)
    assert ways_of(refused.value) == ([("--cv", "2")],)
    # What is offered is enough, with the folds that this seed draws.
    with pytest.raises(ValueError, match="too few rows for a bound"):
        check_possible_bound(plan(rare(3), loss="recall:fraud", cv=3).search)
    check_possible_bound(plan(rare(3), loss="recall:fraud", cv=2).search)


def test_plan__says_what_fewer_folds_would_give():
    [note] = plan(groups=np.arange(400) % 21).notes_on_few_rows
    limit = re.search("fewer folds, cv=3, about ([0-9.]+)%", note)[1]
    planned = plan(groups=np.arange(400) % 21, cv=3).search
    assert float(limit) / 100 == pytest.approx(smallest_limit(planned), abs=1e-3)
