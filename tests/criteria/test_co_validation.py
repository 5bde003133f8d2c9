"""The co-validation criteria on counts small enough to check by hand."""

import numpy as np
import pytest

from dsel import names
from dsel.bounds import error_from_disagreement
from dsel.criteria import Settings, get_criterion
from dsel.errors import AllFitsFailedError

SETTINGS = Settings(np.full(4, 0.01))
HALVES = ["disagreement", "dis_error", "train_error", "two_fold_cv", "max_dt_e",
          "max_cv_dt_e"]  # fmt: skip


def make_evidence(rng, n=4, repeats=3, n_rows=21, m=100):
    sizes = np.tile([n_rows // 2, n_rows - n_rows // 2], (repeats, 1))
    return {
        names.TRAIN_ROWS: sizes,
        names.FOLD_ROWS: sizes[:, ::-1],
        names.TRAIN_ERRORS: rng.integers(0, 5, (n, repeats, 2)),
        names.FOLD_ERRORS: rng.integers(0, 9, (n, repeats, 2)),
        names.DISAGREEMENTS: rng.integers(0, 50, (n, repeats)),
        names.POOL_ROWS: np.full((n, repeats), m),
        names.N_UNLABELED: np.array(m),
        names.N_LABELED: np.array(n_rows),
        names.N_CLASSES: np.array(2),
        names.STATUS: np.zeros(n, dtype=np.int8),
    }


def terms(name, evidence):
    return get_criterion(name).evaluate(evidence, SETTINGS)


def test_criteria__equal_the_formulas_of_the_paper(rng):
    evidence = make_evidence(rng)
    d = evidence[names.DISAGREEMENTS].mean(axis=1) / 100
    e_l = (1 - np.sqrt(1 - 2 * d)) / 2
    train = (evidence[names.TRAIN_ERRORS] / [10, 11]).mean(axis=(1, 2))
    cv = evidence[names.FOLD_ERRORS].sum(axis=2).mean(axis=1) / 21

    expected = {
        "disagreement": d,
        "dis_error": e_l,
        "train_error": train,
        "two_fold_cv": cv,
        "max_dt_e": np.maximum(train, e_l),
        "max_cv_dt_e": np.maximum(cv, np.maximum(train, e_l)),
    }

    for name, value in expected.items():
        np.testing.assert_allclose(terms(name, evidence).estimate, value)


def test_dis_error__takes_the_formula_of_the_number_of_classes(rng):
    evidence = make_evidence(rng) | {names.N_CLASSES: np.array(3)}
    d = evidence[names.DISAGREEMENTS].mean(axis=1) / 100

    np.testing.assert_allclose(
        terms("dis_error", evidence).estimate, error_from_disagreement(d, n_classes=3)
    )
    evidence = make_evidence(rng)
    evidence[names.DISAGREEMENTS][:] = 70  # more than two classes can
    assert (terms("dis_error", evidence).estimate == 0.5).all()


def test_max_dt_e__ties_go_to_the_lower_split_error(rng):
    evidence = make_evidence(rng)
    evidence[names.DISAGREEMENTS][:] = 40
    evidence[names.TRAIN_ERRORS][:] = 2
    evidence[names.TRAIN_ERRORS][[2, 3]] = 1
    criterion = get_criterion("max_dt_e")

    assert criterion.choose(criterion.evaluate(evidence, SETTINGS), evidence) == 2


def test_choose__fails_where_nothing_is_known(rng):
    evidence = make_evidence(rng)
    evidence[names.DISAGREEMENTS][:] = -1
    criterion = get_criterion("disagreement")

    with pytest.raises(AllFitsFailedError, match="no candidate has a value"):
        criterion.choose(criterion.evaluate(evidence, SETTINGS), evidence)
