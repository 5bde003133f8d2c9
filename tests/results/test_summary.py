"""Four lines say what was chosen, how wrong it can be, why, and what would help."""

from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_digits, make_moons
from sklearn.svm import SVC
from sklearn.tree import ExtraTreeClassifier

import dsel
from dsel.bounds import binomial_tail_inversion_lower
from dsel.results import Certificate
from dsel.results.choice import Choice

CERTIFICATES = ("cv_bound", "best_fold_model", "nested", "nested_fold_model")


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order[:150]], y[order[:150]], X[order[150:450]]


def test_notebook__shows_plan_choice_certificate_and_search_as_escaped_html(rows):
    grid = {"kernel": ["linear", "rbf"]}
    search = dsel.SemiSupervisedSearchCV(SVC(), grid, cv=3, random_state=0)
    unfitted = search._repr_mimebundle_()["text/html"]
    search.fit(*rows)
    own = [search.plan_, search.choice_, search.certificate_]
    for each in own:
        html = each._repr_html_()
        assert "<script" not in html
        assert "nested" in "".join(fromstring(html).itertext())
    fitted = search._repr_mimebundle_()["text/html"]
    assert fitted.endswith(search.choice_._repr_html_())
    assert not unfitted.endswith("</table></div>")
    with config_context(display="text"):
        assert not hasattr(search, "_repr_html_")
        assert "text/html" not in search._repr_mimebundle_()


def test_notebook__shows_texts_as_they_are():
    certificate = Certificate(0.2, 0.05, "cv_bound", objections=("<script>x</script>",))
    choice = Choice(0, {"name": "<b>&"}, "cv_error", 0.1, certificate, ("<i>",))
    for each in (certificate, choice):
        tree = fromstring(each._repr_html_())
        assert {"script", "b", "i"}.isdisjoint(cell.tag for cell in tree.iter())
        assert "<script>x</script>" in "".join(tree.itertext())


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_summary__says_the_bound_beside_the_estimate(rows, certificate):
    plan = dsel.plan_search(
        SVC(), {"C": [0.1, 5.0]}, *rows, criterion=certificate, cv=3, random_state=0
    )
    results = plan.run(n_jobs=1)
    choice = dsel.select(results)
    chosen, error, why, smaller, *models = choice.summary().split("\n")
    assert chosen == "Chosen   C=5"
    shown = float(error.split("at most ")[1].split(" %")[0]) / 100
    assert choice.bound <= shown < choice.bound + 0.001
    assert f"says {100 * choice.certificate.estimate:.1f} %" in error
    assert why.endswith(f"by {certificate}")
    assert "more labeled rows" in smaller
    assert len(models) == ("nested" in certificate)


def test_estimate__of_a_nested_search_is_that_of_what_it_chose(rows):
    plan = dsel.plan_search(
        SVC(), {"C": [0.1, 5.0]}, *rows, certificate="nested", random_state=0
    )
    results = plan.run(n_jobs=1)
    rates = results.outer_errors / results.fold_rows
    found = dsel.select(results).certificate.estimate
    assert found == pytest.approx(float(rates.mean()))
    plain = dsel.plan_search(SVC(), {"C": [5.0]}, *rows, cv=3, random_state=0)
    counts = plain.run(n_jobs=1)
    rates = (counts.fold_errors / counts.fold_rows).mean()
    found = dsel.select(counts).certificate.estimate
    assert found == pytest.approx(float(rates))


def test_summary__calls_no_guarantee_what_is_none():
    weak = Certificate(0.1, 0.05, "cv_error", objections=("an estimate",), estimate=0.1)
    text = Choice(0, {}, "cv_error", 0.1, weak).summary()
    assert "NO guarantee" in text
    assert "at most" not in text
    assert "by cv_error: an estimate" in text
    nothing = Certificate(np.nan, 0.05, "leaders", objections=("no number",))
    assert "no bound" in Choice(0, {}, "leaders", 0.1, nothing).summary()


def test_certificate__keeps_its_estimate_in_json():
    found = Certificate(0.1, 0.05, "nested", estimate=0.0625)
    assert Certificate.from_json(found.to_json()).estimate == 0.0625


@pytest.mark.parametrize("certificate", ["cv_bound", "nested"])
def test_summary__says_where_the_pool_contradicts_cross_validation(certificate):
    X, y = make_moons(4000, noise=0.3, random_state=0)
    easy = np.flatnonzero(np.abs(X[:, 1] - 0.25) > 0.9)[:60]
    rest = np.delete(X, easy, axis=0), np.delete(y, easy)

    def plan(rows):
        return dsel.plan_search(
            None, [ExtraTreeClassifier()], X[rows], y[rows], rest[0],
            certificate=certificate, cv=5, random_state=0, duplicates="keep",
        )  # fmt: skip

    assert not dsel.select(plan(np.arange(200)).run()).remarks
    shifted = plan(easy)
    choice = dsel.select(shifted.run())
    found = choice.remarks
    assert f"But      {found[0]}" in choice.summary()
    assert found[0].startswith("contradiction: cross-validation says 1.7 %")
    # What no label was needed for is true: the pool's own labels are all here.
    least = float(found[0].split("err on ")[1].split(" %")[0]) / 100
    models = [shifted.model(0, fold) for fold in (*range(5), None)]
    *of_folds, of_all = [np.mean(m.predict(rest[0]) != rest[1]) for m in models]
    assert 0.05 < least <= (np.mean(of_folds) + of_all) / 2


def test_summary__of_halvings_says_where_the_pool_contradicts_them():
    X, y = make_moons(4000, noise=0.3, random_state=0)
    easy = np.flatnonzero(np.abs(X[:, 1] - 0.25) > 0.9)[:60]
    results = dsel.covalidate(
        ExtraTreeClassifier(), None, X[easy], y[easy], np.delete(X, easy, axis=0),
        repeats=4, duplicates="keep",
    )  # fmt: skip
    (remark,) = dsel.select(results).remarks
    counts = results.disagreements.values.ravel().astype(int)
    limits = binomial_tail_inversion_lower(counts, 3940, delta=0.05 / 4)
    assert f"err on {100 * limits.mean() / 2:.1f} %" in remark
