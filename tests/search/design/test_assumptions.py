"""What is said of labels that are probably not what was meant."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

import dsel


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
