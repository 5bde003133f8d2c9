"""The check of a family: ours pass, and what depends on the company is refused."""

import time

import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dsel.families import check_family
from dsel.families.family import FitCounts, FittedGroup
from dsel.families.generic import ScikitLearnFamily
from dsel.families.predictions import FittedEstimators
from dsel.families.svm.svm_family import KernelSVMFamily

TREES = [DecisionTreeClassifier(max_depth=depth) for depth in (1, 3)]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(90, 3))
    return X, np.where(X[:, 0] + rng.normal(size=90) > 0, "yes", "no")


@pytest.mark.parametrize(
    ("make", "estimators"),
    [(ScikitLearnFamily, TREES), (KernelSVMFamily, [SVC(C=0.1), SVC(C=10.0)])],
)
def test_check_family__takes_those_of_dsel(make, estimators, rows):
    check_family(make(np.unique(rows[1]), seed=0), estimators, *rows)


class ByMean(FittedEstimators):
    """Predicts by the mean of the rows that are predicted together."""

    def predict(self, X, which):
        codes = (X[:, 0] > X[:, 0].mean()).astype(int)
        return np.tile(codes, (len(which), len(self.candidate_numbers), 1))


class DependsOnRows(ScikitLearnFamily):
    def fit(self, *arguments, **options):
        made = super().fit(*arguments, **options)
        return ByMean(*(getattr(made, name) for name in made.__dataclass_fields__))


class DependsOnCompany(ScikitLearnFamily):
    def fit(self, group, X, y, splits, **options):
        made = super().fit(group, X, y, splits, **options)
        made.fit_counts.errors[:] += len(group)
        return made

    def group_candidates(self, candidates):
        return [tuple(candidates)]


class WritesTexts(ScikitLearnFamily):
    def fit(self, group, X, y, splits, **options):
        made = super().fit(group, X, y, splits, **options)
        made.fit_counts.messages[group[0].number, splits[0].number] = "it stopped"
        return made


class NamesOne(FittedEstimators):
    def token(self, candidate, split):
        return "any model"


class NamesAllAlike(ScikitLearnFamily):
    def fit(self, *arguments, **options):
        made = super().fit(*arguments, **options)
        return NamesOne(*(getattr(made, name) for name in made.__dataclass_fields__))


class NamesEachFit(ScikitLearnFamily):
    def fit(self, group, *arguments, **options):
        made = super().fit(group, *arguments, **options)
        for model in made.models.values():
            model.fitted_at_ = time.perf_counter_ns()
        return made


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (NamesAllAlike, ValueError, "`token` must .* differ between models"),
        (NamesEachFit, ValueError, "`token` must be the same"),
        (DependsOnRows, ValueError, "other rows"),
        (DependsOnCompany, ValueError, "alone and together"),
        (WritesTexts, TypeError, "a FitMessage, .* got 'it stopped'"),
    ],
)
def test_check_family__refuses(make, error, words, rows):
    with pytest.raises(error, match=words):
        check_family(make(np.unique(rows[1]), seed=0), TREES, *rows)


def test_check_family__refuses_candidates_that_it_does_not_take(rows):
    family = KernelSVMFamily(np.unique(rows[1]), seed=0)
    with pytest.raises(ValueError, match="must take DecisionTreeClassifier"):
        check_family(family, TREES, *rows)


def fit_as_in_0_2(self, group, X, y, splits, *, pool=None, budget):
    """Take the cache by the name of 0.2."""


@pytest.mark.parametrize(
    "method", [{"fit": fit_as_in_0_2}, {"check_budget": lambda *_: None}]
)
def test_family__with_a_name_of_0_2_hears_the_new_one_where_it_is_defined(method):
    words = "Old has names of dsel 0.2: .* `cache` .* `budget`, .* `check_memory`"
    with pytest.raises(TypeError, match=words):
        type("Old", (ScikitLearnFamily,), method)


def test_fitted_group__with_a_name_of_0_2_hears_the_new_one_where_it_is_defined():
    with pytest.raises(TypeError, match=r"Old has .* `counts` is now .* `fit_counts`"):
        type("Old", (FittedGroup,), {"__annotations__": {"counts": FitCounts}})
