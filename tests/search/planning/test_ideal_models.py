"""What a plan says that no bound can be below holds for models that never err."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import dsel
from dsel.errors import UndecidedError
from dsel.rounded_texts import in_percent

CLASSES = np.array(["fraud", "ok", "other"])
LOSSES = (
    "error", "recall:fraud", "precision:fraud", "balanced",
    "cost:fraud>ok=20,ok>fraud=1",
)  # fmt: skip


class Ideal(ClassifierMixin, BaseEstimator):
    """A classifier that errs on no row: the first column has the class."""

    def __init__(self, C=1):
        self.C = C

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return CLASSES[X[:, 0].astype(int)]


def draw_plan(seed):
    """Return a plan of random sizes, and a function that makes it by another loss."""
    rng = np.random.default_rng(seed)
    loss = LOSSES[seed % len(LOSSES)]
    n_classes = 2 if loss.startswith("cost") else int(rng.integers(2, 4))
    n = int(rng.integers(30, 400))
    rates = np.array([rng.choice([0.03, 0.1, 0.3]), 0.6, 0.4])[:n_classes]
    rates /= rates.sum()
    codes = rng.choice(n_classes, n, p=rates)
    X = np.column_stack((codes, rng.normal(size=n)))
    pool = None
    if rng.random() < 0.7:
        n_pool = int(rng.choice([15, 60, 300, 2_000]))
        classes = rng.choice(n_classes, n_pool, p=rates)
        pool = np.column_stack((classes, rng.normal(size=n_pool)))
    options = {
        "cv": int(rng.choice([2, 3, 5])),
        "delta": float(rng.choice([0.05, 0.2])),
        "groups": np.arange(n) // 2 if rng.random() < 0.3 else None,
    }

    def plan_by(name):
        return dsel.plan_search(
            Ideal(), {"C": [1]}, X, CLASSES[codes], pool, loss=name, random_state=seed,
            **options,
        )  # fmt: skip

    return plan_by(loss), plan_by


def percent(certificate):
    """Return a bound as it is printed."""
    return float(in_percent(min(1.0, certificate.number)).rstrip("%"))


SAID = r"(?:(?<!likely to have )no bound below ([\d.]+)%|([\d.]+)% or more)"
OTHER_LOSS = rf"loss='([\w:]+)'[^()]*\({SAID}"
OF_ALL_ROWS = rf"trained on all labels (?:is|can have) {SAID}"


def check(plan, plan_by):
    """Compare what a plan says with the bounds of its run; return the sentences."""
    text = " ".join([str(plan), *plan.remarks, *plan.notes_on_few_rows])
    text = " ".join(text.split())
    outcome = plan.run(n_jobs=1)
    certificates = outcome.certificates
    said = []
    for other in re.finditer(OTHER_LOSS, text):
        bound = plan_by(other[1]).run(n_jobs=1).certificates["one_fold"]
        said.append((other[0], float(other[2] or other[3]), percent(bound)))
    text = re.sub(OTHER_LOSS, "", text)
    for other in re.finditer(OF_ALL_ROWS, text):
        bound = percent(certificates["all_rows"])
        said.append((other[0], float(other[1] or other[2]), bound))
    text = re.sub(OF_ALL_ROWS, "", text)
    for other in re.finditer(SAID, text):
        bound = min(percent(certificate) for certificate in certificates.values())
        said.append((other[0], float(other[1] or other[2]), bound))
    for sentence, least, bound in said:
        assert bound >= least, (sentence, plan)
    if "cannot prove" in text:
        said.append("cannot prove")
        constant = outcome.choice.constant_loss
        assert min(c.number for c in certificates.values()) >= constant - 1e-12
    return said


@pytest.mark.parametrize("start", range(5))
def test_plan__says_no_least_bound_that_ideal_models_are_below(start):
    n_sentences = 0
    for seed in range(start, 40, 5):
        plan, plan_by = draw_plan(seed)
        try:
            n_sentences += len(check(plan, plan_by))
        except UndecidedError:  # rows are too few for any bound of use
            continue
    assert n_sentences > 2
