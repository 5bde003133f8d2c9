"""What is said of labels that are probably not what was meant."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.search.design.assumptions import two_sample_test


def certified(labels, model=None):
    X = np.random.default_rng(0).normal(size=(len(labels), 2))
    model = KNeighborsClassifier() if model is None else model
    return str(dsel.certify(model, X, labels, random_state=0))


def test_caveat__names_the_class_that_trainings_lack_and_its_rows():
    text = certified(["yes"] * 60 + ["no"] * 60 + ["perhaps"])
    assert "never predict: 'perhaps' (1 row)" in text
    assert "lack a class" not in certified(["yes"] * 60 + ["no"] * 60)


@pytest.mark.parametrize(
    ("rare", "n", "large"),
    [("noo", 1, "no"), ("n0", 1, None), ("nay", 1, None), ("yess", 3, "yes"),
     ("yess", 20, None), ("site 3", 1, None)],
)  # fmt: skip
def test_caveat__of_a_rare_class_that_is_one_letter_off_a_large_one(rare, n, large):
    text = certified(["yes"] * 80 + ["no"] * 80 + ["site 1"] * 80 + [rare] * n)
    assert ("differs by one letter" in text) == (large is not None)
    if large:
        rows = f"{n} row{'s' * (n > 1)}"
        assert f"class '{rare}' ({rows}) differs by one letter from '{large}'" in text


def test_note__of_a_regressor_whose_targets_may_be_classes():
    numbers = np.arange(90) % 10
    note = "`y` has 10 different whole numbers, and Ridge predicts numbers"
    assert note in certified(numbers, Ridge())
    for others in (numbers + 0.5, np.arange(90)):
        assert "different whole numbers" not in certified(others, Ridge())
    X = np.random.default_rng(0).normal(size=(90, 2))
    assert note in str(dsel.plan_search(Ridge(), {"alpha": [1, 2]}, X, numbers))


def _shifted(kind, rng):
    rows = rng.normal(size=(500, 20))
    if kind == "mean":
        rows[:, 7] += 0.8
    elif kind == "scale":
        rows[:, 7] *= 2.0
    else:
        rows[:, 7] = 0.95 * rows[:, 3] + np.sqrt(1 - 0.95**2) * rows[:, 7]
    return rows


@pytest.mark.parametrize("kind", ["mean", "scale", "correlation"])
@pytest.mark.parametrize("seed", range(3))
def test_two_sample_test__sees_a_shift_of_one_column_of_twenty(kind, seed):
    rng = np.random.default_rng(seed)
    test = two_sample_test(rng.normal(size=(500, 20)), _shifted(kind, rng), seed=seed)
    assert test.p_value <= 0.001
    assert test.columns[0] in ((3, 7) if kind == "correlation" else (7,))


def test_two_sample_test__has_valid_p_values_in_both_of_its_stages():
    rng = np.random.default_rng(0)
    p_values = np.array([
        two_sample_test(*rng.normal(size=(2, 60, 3)), seed=seed).p_value
        for seed in range(200)
    ])  # fmt: skip
    for level in (0.02, 0.05, 0.1, 0.2, 0.5):
        n_refuted = int((p_values <= level).sum())
        assert stats.binom.sf(n_refuted - 1, len(p_values), level) > 0.001, level
    assert (p_values > 0.1).any()
    assert (p_values < 0.1).any()
