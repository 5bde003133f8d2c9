"""Certificates hold where the truth is known, and broken bounds are caught."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.dummy import DummyClassifier

import dsel
from dsel.bounds.events import CERTIFICATE_EVENTS
from dsel.cli.audit import command
from dsel.searches.auditing import laws, settings
from dsel.searches.auditing.audit import is_sound, verdicts
from dsel.searches.auditing.catalogue import CONTROLS, SETTINGS
from dsel.searches.auditing.settings import Claim, Setting

ROOT = Path(__file__).parents[3]
STORED = json.loads((ROOT / "docs" / "theory" / "audit.json").read_text())
"""What the figures of the site show."""
SHOWN = STORED["coords"]["setting"]["data"]
NAMES = [each.name for each in SETTINGS]
CERTIFYING = [each.name for each in SETTINGS if not each.is_control]


@pytest.mark.slow  # `.ci/run` has a step for it
@pytest.mark.parametrize("name", CERTIFYING)
def test_setting__fails_at_most_delta_in_20_draws(name):
    found = dsel.audit([name], delta=0.2, n_draws=20, random_state=7)
    assert found.holds.all(), found.failures.values


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", NAMES)
def test_setting__fails_at_most_delta_in_500_draws(name):
    found = dsel.audit([name], n_draws=500, random_state=11)
    assert is_sound(found), found.to_dict()


@pytest.mark.parametrize("name", [each.name for each in CONTROLS])
def test_control__is_caught(name):
    found = dsel.audit([name], delta=0.2, n_draws=60, random_state=3)
    assert verdicts(found) == ["caught"]


def test_settings__have_names_of_their_own_and_every_certificate():
    assert len(set(NAMES)) == len(NAMES)
    asked = {each.options.get("criterion") for each in SETTINGS}
    assert asked | {"select_then_certify"} >= set(CERTIFICATE_EVENTS)


def test_stored_audit__has_settings_of_today():
    assert set(SHOWN) <= set(NAMES)


@pytest.mark.slow
def test_stored_audit__is_what_the_same_draws_give_today():
    draws, name = STORED["data_vars"]["n_draws"]["data"], "holdout_bound, lucky folds"
    found = dsel.audit([name], n_draws=draws, random_state=0)
    kept = STORED["data_vars"]["failures"]["data"][SHOWN.index(name)]
    assert found["failures"].values.tolist() == [kept]


@pytest.mark.parametrize(
    "law", [laws.step(0.2), laws.biased_coin(0.1), laws.noisy_copies(4, 0.3)]
)
def test_error__of_a_law_is_what_its_rows_show(law, rng):
    assert law.chances.sum() == pytest.approx(1.0)
    X, y = law.draw(20_000, rng)
    for number in range(3):
        model = laws.RandomTable(number).fit(X, y)
        seen = (model.predict(X) != y).mean()
        assert law.error(model) == pytest.approx(seen, abs=0.02)


def test_noisy_copies__are_all_wrong_equally_often():
    law = laws.noisy_copies(5, 0.3)
    for column in range(5):
        model = laws.BestColumn(column, 1).fit(law.cells, np.zeros(32, dtype=int))
        assert law.error(model) == pytest.approx(0.3)


def mine(steps):
    model = DummyClassifier(strategy="constant", constant=1)
    return Setting("mine", laws.biased_coin(0.7), None, [model], steps)


def test_audit__takes_a_setting_of_ones_own():
    found = dsel.audit([mine(settings.once)], n_draws=10, random_state=0)
    assert found.certified.values.tolist() == [[10, 10, 10]]
    assert found.holds.all()
    assert (found.slack > 0).all()


def claim_of(certified):
    def steps(draw):
        yield Claim(draw.deltas[0], certified, bound=0.1, truth=0.2)

    return mine(steps)


def test_audit__counts_failures_among_what_is_certified():
    wrong = dsel.audit([claim_of(True)], delta=0.5, n_draws=20, random_state=0)
    assert (wrong.certified.item(), wrong.failures.item()) == (20, 20)
    assert wrong.p_value.item() == pytest.approx(0.5**20)
    assert verdicts(wrong) == ["FAILS"]
    silent = dsel.audit([claim_of(False)], delta=0.5, n_draws=20, random_state=0)
    assert (silent.certified.item(), silent.failures.item()) == (0, 0)
    assert verdicts(silent) == ["claims nothing"]


def test_audit__does_not_depend_on_the_number_of_processes():
    given = {"delta": 0.2, "n_draws": 12, "random_state": 5}
    one, two = (dsel.audit(["repeated looks"], n_jobs=jobs, **given) for jobs in (1, 2))
    assert one.identical(two)


def test_audit__draws_do_not_depend_on_how_many_there_are():
    few, many = (
        dsel.audit(["repeated looks"], delta=0.2, n_draws=n, random_state=5).failures
        for n in (25, 26)
    )
    assert 0 <= many.item() - few.item() <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": ["none"]}, "`settings` must be one of"),
        ({"n_draws": 0}, "`n_draws` must be >= 1"),
        ({"delta": 0.0}, "`delta` must be strictly"),
    ],
)
def test_audit__refuses_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        dsel.audit(**{"settings": ["repeated looks"]} | change)


def test_audit_command__prints_a_table_and_a_verdict():
    arguments = ["luckiest fold", "holdout_bound, lucky folds", "--draws", "30"]
    shown = CliRunner().invoke(command, [*arguments, "--delta", "0.2"])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0] == "Every certificate held in 30 draws of each setting."
    heads = "setting delta draws certified failures p verdict"
    assert lines[2].split() == heads.split()
    assert lines[3].endswith("caught")
    assert lines[4].split()[-5:-3] == ["30", "30"]


def test_audit_command__ends_with_1_where_a_control_is_not_caught():
    arguments = ["repeated looks", "--draws", "1", "--delta", "0.2", "--json"]
    shown = CliRunner().invoke(command, arguments)
    assert shown.exit_code == 1
    assert json.loads(shown.output)["data_vars"]["n_draws"]["data"] == 1


def test_audit__takes_one_setting_and_refuses_none():
    assert dsel.audit("luckiest fold", delta=0.2, n_draws=1).sizes["setting"] == 1
    for wanted, delta in (([], 0.2), (["luckiest fold"], [])):
        with pytest.raises(ValueError, match="must hold one or more"):
            dsel.audit(wanted, delta=delta, n_draws=1)
