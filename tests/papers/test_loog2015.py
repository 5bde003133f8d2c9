"""Draws, fits, tables and claims of the MCPL paper, and its rivals."""

import json

import common
import loog2015
import loog2015_rivals as rivals
import numpy as np
import pytest
import xarray as xr
from common import PAPERS
from loog2015 import METHODS, PARTS, Table

SIZES = {
    "banknote": (1372, 4, 2, 762, 610, 10, 681, 681),
    "climate": (540, 18, 2, 494, 46, 38, 251, 251),
    "first-order": (6118, 41, 6, 2554, 486, 88, 3015, 3015),
    "gas": (13910, 60, 6, 3009, 1641, 126, 6892, 6892),
    "landsat": (6435, 33, 6, 1533, 626, 72, 3182, 3181),
    "letter": (20000, 16, 26, 813, 734, 58, 9971, 9971),
    "low": (531, 70, 10, 90, 4, 150, 191, 190),
    "magic": (19020, 10, 2, 12332, 6688, 22, 9499, 9499),
    "optical": (5620, 61, 10, 572, 554, 132, 2744, 2744),
    "pen-based": (10992, 16, 10, 1144, 1055, 42, 5475, 5475),
    "qsar": (1055, 38, 2, 699, 356, 78, 489, 488),
    "shuttle": (58000, 6, 7, 45586, 10, 19, 28991, 28990),
    "skin": (245057, 3, 2, 194198, 50859, 8, 122525, 122524),
    "spambase": (4601, 56, 2, 2788, 1813, 114, 2244, 2243),
    "spectf": (267, 43, 2, 212, 55, 88, 90, 89),
}  # fmt: skip
"""Table 2: rows, features after PCA, classes, rows of the largest and of the
smallest class, and labeled, unlabeled and test rows of every repetition."""


def made_results(likelihoods, errors):
    """Results of one set, from repeats x methods x parts."""
    dims = ("data_set", "repetition", "classifier", "part")
    return xr.Dataset(
        {"log_likelihood": (dims, likelihoods[None]), "error": (dims, errors[None])},
        coords={
            "data_set": ["banknote"],
            "repetition": np.arange(len(errors)),
            "classifier": list(METHODS[: errors.shape[1]]),
            "part": list(PARTS),
        },
    )


def test_load_table__has_the_sizes_of_table_2(data_dir):
    differs = []
    for name in loog2015.FILES:
        table = loog2015.load_table(name, data_dir)
        counts = np.bincount(table.y)
        of_table = (*table.X.shape, len(counts), max(counts), min(counts))
        if (*of_table, *map(len, loog2015.draw_rows(table, 0, seed=0))) != SIZES[name]:
            differs.append(name)
    assert differs == ["gas"]


def test_draw_rows__holds_every_row_once_and_rare_classes_as_often_as_they_are():
    y = (np.arange(540) < 46).astype(np.int64)  # the classes of climate
    table = Table("made up", np.zeros((540, 18)), y)
    draws = [loog2015.draw_rows(table, repeat, seed=0) for repeat in range(2000)]
    np.testing.assert_array_equal(np.sort(np.concatenate(draws[0])), np.arange(540))
    rare = [y[labeled].sum() for labeled, *_ in draws]
    assert min(rare) >= 1
    error = np.std(rare) / np.sqrt(2000)
    assert np.mean(rare) == pytest.approx(1 + 36 * 45 / 538, abs=4 * error)


@pytest.mark.parametrize("name", ["banknote", "climate", "spectf"])
def test_measure__gives_the_stored_numbers(name, data_dir):
    stored = json.loads((PAPERS / "reference" / "loog2015.json").read_text())
    table = loog2015.load_table(name, data_dir)
    for repeat, errors in enumerate(stored["sets"][name]["first_errors"]):
        found = loog2015.measure(table, repeat, common.Settings(), None)["error"]
        np.testing.assert_allclose(found, errors, atol=1e-4)


def test_measure__singular_covariances_get_a_small_ridge(data_dir):
    table = loog2015.load_table("optical", data_dir)
    found = loog2015.measure(table, 0, common.Settings(), None)
    assert found["ridge"] > 0.0
    assert found.error.sel(classifier="semi", part="test") < 0.3


def test_compare__marks_what_does_not_differ_and_what_is_not_there(data_dir):
    results = common.run(
        loog2015.EXPERIMENT, sets=("spectf",), repetitions=12, folder=data_dir, jobs=1
    )
    rows = common.compare_rows(loog2015.EXPERIMENT, results)
    of = {(row.source, row.where, row.what): row for row in rows}
    p_values = loog2015.permutation_tests(results)
    told = p_values["spectf", "error", "test", "supervised-semi"] > 0.05
    why = of["Table 4", "spectf", "semi test"].why
    assert ("supervised and semi do not differ, p =" in why) == told
    missing = [row.source for row in rows if row.where == "miniboone"]
    assert missing == ["Table 3", "Table 4", "Table 5"]
    # Few repetitions find no difference either, so that they confirm none.
    tested = next(row for row in rows if row.source == "permutation tests")
    assert tested.verdict == ("not compared" if tested.ours > 0 else "differs")
    error = results.error.sel(data_set="spectf", part="train")
    worse = error.sel(classifier="semi") - error.sel(classifier="supervised")
    # An exception of the text.
    claim = of["section 6.3", "spectf", "train error, MCPL - supervised"]
    assert claim.ours == pytest.approx(float(worse.mean()))


def test_row_of__counts_wins_and_takes_ratios_of_averages():
    likelihoods = np.zeros((4, 4, 2))
    likelihoods[:, 1], likelihoods[:, 2] = [[1.0], [1.0], [-1.0], [2.0]], 2.0
    here = made_results(likelihoods, np.zeros((4, 4, 2))).isel(data_set=0)
    third, fourth = (loog2015.row_of(f"Table {n}", here) for n in (3, 4))
    assert third["semi wins test"][0] == third["oracle wins test"][0] == 75.0
    assert third["improvement test"][0] == pytest.approx(0.75 / 2.0)
    assert np.isnan(fourth["improvement test"][0])


def test_permutation_tests__p_values_are_uniform_or_tiny(rng):
    errors = rng.normal(size=(60, 4, 2))
    errors[:, METHODS.index("supervised")] += 3.0
    tests = loog2015.permutation_tests(made_results(errors, errors), n_flips=999)
    for (*_, pair), p_value in tests.items():
        assert (p_value == 1e-3) == (pair == "supervised-semi")
    equal = np.ones((10, 4, 2))
    tests = loog2015.permutation_tests(made_results(equal, equal), n_flips=999)
    assert set(tests.values()) == {1.0}


@pytest.fixture
def rows(rng):
    y = np.arange(40) % 3
    return rng.normal(size=(40, 4)) + 2 * y[:, None], y, rng.normal(size=(90, 4)) + 2


def test_moment_constrained__has_the_moments_of_all_rows(rows):
    X, y, pool = rows
    fit = rivals.fit_moment_constrained(X, y, pool, 0.0)
    mean, everything = fit.priors @ fit.means, np.vstack([X, pool])
    np.testing.assert_allclose(mean, everything.mean(axis=0))
    steps = fit.means - mean
    total = fit.covariance + (fit.priors[:, None] * steps).T @ steps
    np.testing.assert_allclose(total, np.cov(everything.T, bias=True), atol=1e-10)


def test_fit_lda__refuses_what_rounding_would_decide(rows):
    X, y, _ = rows
    twice = np.column_stack([X, X[:, 0]])
    with pytest.raises(np.linalg.LinAlgError):
        rivals.fit_lda(twice, y, 0.0)
    assert np.isfinite(rivals.fit_lda(twice, y, 1e-6).log_joint(twice)).all()
