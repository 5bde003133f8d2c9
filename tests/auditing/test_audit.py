"""Certificates hold where the truth is known, and broken bounds are caught."""

import json
from pathlib import Path

import numpy as np
import pytest

import dsel
from dsel.auditing import populations
from dsel.auditing.audit import is_sound
from dsel.auditing.settings import SETTINGS

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / "docs" / "theory" / "audit.json").read_text())
"""What the figures of the site show."""
SHOWN = STORED["coords"]["setting"]["data"]
CERTIFYING = [name for name, each in SETTINGS.items() if not each.is_control]
NESTED = [name for name in CERTIFYING if name.startswith(("nested", "any"))]
CONTROLS = {
    "folds pooled": 0.2,
    "luckiest fold": 0.5,
    "repeated looks": 0.2,
    "stratified folds": 0.5,
    "a baseline picked by labels": 0.2,
    "5 rows a group": 0.2,
    "20 rows a group": 0.2,
    "values alone": 0.2,
    "a quantile for its limit": 0.2,
}
"""Broken bounds, and a delta at which few draws show it."""
QUICK = "holdout, lucky folds"


@pytest.mark.slow  # `.ci/run` has a step for it
@pytest.mark.parametrize("name", CERTIFYING)
def test_setting__fails_at_most_delta_in_20_draws(name):
    found = dsel.audit(name, delta=0.2, n_draws=20, random_state=7)
    assert found.holds.item(), found.failures.values
    assert found.certified.item() > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", NESTED)
def test_setting__fails_at_most_delta_in_500_draws(name):
    found = dsel.audit(name, n_draws=500, random_state=11)
    assert is_sound(found), found.to_dict()


@pytest.mark.parametrize(
    "name", [name for name in SETTINGS if name.endswith("duplicates")]
)
def test_duplicates__are_allowed_for_by_every_loss(name):
    # Where a bound ignored them it would fail in each of these draws.
    found = dsel.audit(name, delta=0.5, n_draws=4, random_state=3)
    assert found.certified.item() == 4
    assert found.failures.item() == 0


@pytest.mark.parametrize(("name", "delta"), CONTROLS.items())
def test_control__is_caught(name, delta):
    found = dsel.audit(name, delta=delta, n_draws=60, random_state=3)
    assert is_sound(found), found.failures.values


CERTIFIED = ("numbers", "groups", "baseline", "compare", "least squares")


@pytest.mark.parametrize("name", [n for n in SETTINGS if n.startswith(CERTIFIED)])
def test_setting__is_certified_and_holds(name):
    found = dsel.audit(name, delta=0.2, n_draws=8, random_state=5)
    assert found.certified.item() == 8
    assert found.holds.item()


def test_law_of_groups__has_the_correlation_and_the_marginal_law_that_it_says(rng):
    population = populations.group_rows(populations.biased_coin(0.3), 5)
    _, y, keys = population.draw_labeled_rows(20_000, rng)
    rows = y.reshape(-1, 5)
    correlation = np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]
    assert correlation == pytest.approx(0.6, abs=0.03)
    assert y.mean() == pytest.approx(0.3, abs=0.02)
    # Of groups whose sizes depend on their class, a random row of a random group.
    unlike = populations.group_rows(populations.biased_coin(0.3), 1, 20)
    _, y, keys = unlike.draw_labeled_rows(20_000, rng)
    first = np.unique(keys, return_index=True)[1]
    assert y.mean() > 0.5
    assert y[first].mean() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("name", ["nested, resumed", "nested, predict raises"])
def test_nested__is_certified_whatever_the_run_goes_through(name):
    found = dsel.audit(name, delta=0.2, n_draws=2)
    assert found.certified.item() == 2
    assert found.holds.item()


def test_nested__with_a_pool_claims_both_models_at_once():
    draw = SETTINGS["nested, twins"].draw(0)
    claims = SETTINGS["nested, twins"].steps(draw, 0.05)
    assert len(claims) == 2
    assert all(truth <= bound < 1 for bound, truth in claims)


def test_settings__are_certificates_or_controls_and_the_stored_ones_are_among_them():
    assert set(SETTINGS) == {*CERTIFYING, *CONTROLS}
    assert set(SHOWN) <= set(CERTIFYING)


@pytest.mark.slow
def test_stored_audit__is_what_the_same_draws_give_today():
    draws, name = STORED["data_vars"]["n_draws"]["data"], "nested, rare class"
    found = dsel.audit(name, n_draws=draws, random_state=0)
    kept = STORED["data_vars"]["failures"]["data"][SHOWN.index(name)]
    assert found["failures"].values.tolist() == [kept]


@pytest.mark.parametrize(
    "population",
    [
        populations.step(),
        populations.biased_coin(0.1),
        populations.noisy_copies(4, 0.3),
    ],
)
def test_error__of_a_law_is_what_its_rows_show(population, rng):
    assert population.probabilities.sum() == pytest.approx(1.0)
    X, y = population.draw(20_000, rng)
    for number in range(3):
        model = populations.RandomTable(number).fit(X, y)
        seen = (model.predict(X) != y).mean()
        assert population.error(model) == pytest.approx(seen, abs=0.02)


def test_error__counts_an_answer_that_raises():
    model = populations.Refusing(3).fit(np.zeros((2, 2)), np.arange(2))
    assert populations.step(32).error(model) == pytest.approx(1 / 32)


def test_audit__does_not_depend_on_the_number_of_processes():
    one, two = (
        dsel.audit(QUICK, delta=0.2, n_draws=12, random_state=5, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.identical(two)


def test_audit__draws_do_not_depend_on_how_many_there_are():
    few, many = (
        dsel.audit("luckiest fold", delta=0.5, n_draws=n, random_state=5).failures
        for n in (12, 13)
    )
    assert 0 <= many.item() - few.item() <= 1


@pytest.mark.parametrize(
    ("delta", "words"), [(0.0, "must be strictly"), ([0.05, 0.95], "did you mean 0.05")]
)
def test_audit__refuses_a_delta_that_is_none(delta, words):
    with pytest.raises(ValueError, match=f"`delta` .*{words}"):
        dsel.audit(QUICK, delta=delta)
