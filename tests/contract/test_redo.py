"""A reader redoes a printed bound from the counts that are printed with it."""

import json
import pickle
import re

import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.report import write_report
from tests.shell import succeed

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=300) > 0.5, "fraud", "ok")
POOL = RNG.normal(size=(900, 2))
LIMIT = re.compile(r"B\((\d+), (\d+), ([\d.]+)\)")


def run(pool=None, **options):
    model = KNeighborsClassifier(n_neighbors=15)
    grid = {"n_neighbors": [5, 15]}
    return dsel.plan_search(model, grid, X, Y, pool, random_state=0, **options).run()


def redo(text):
    """Return the sum of the limits whose counts a text has."""
    return sum(
        stats.beta.ppf(1 - float(delta), int(c) + 1, int(m) - int(c))
        for c, m, delta in LIMIT.findall(text)
    )


@pytest.mark.parametrize(
    ("options", "n_bounds"),
    [
        ({}, 1),
        ({"pool": POOL}, 2),
        ({"report": True}, 1),
        ({"cv": 3, "delta": 0.01}, 1),
        ({"loss": "recall:fraud"}, 1),
        ({"groups": np.arange(300) // 2}, 1),
    ],
    ids=["error", "pool", "report", "folds", "recall", "groups"],
)
def test_print__of_a_certificate_has_the_counts_that_give_its_bound(options, n_bounds):
    outcome = run(**options)
    assert len(outcome.certificates) == n_bounds
    for certificate in outcome.certificates.values():
        printed = " ".join(str(certificate).split())
        percent = np.ceil(1000 * redo(printed) - 1e-6) / 10  # limits are rounded up
        assert f"at most {percent:.1f}%" in printed
        stored = json.loads(certificate.to_json())["limits"]
        assert [list(limit.values())[-3:] for limit in stored] == [
            [int(c), int(m), pytest.approx(float(delta))]
            for c, m, delta in LIMIT.findall(printed)
        ]


def test_origin__says_how_many_errors_there_were():
    certificate = run().certificate
    n_errors, n_rows, _ = LIMIT.search(certificate.origin).groups()
    word = "error" if n_errors == "1" else "errors"
    assert f"from {n_errors} {word} on the {n_rows} rows of" in certificate.origin


def test_report_page_and_verbose_print__have_the_counts_of_the_bound(tmp_path):
    rows = [f"{a},{b},{label}" for (a, b), label in zip(X, Y, strict=True)]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["a,b,label", *rows, ""]), encoding="utf-8")
    out = tmp_path / "run"
    words = ("--target", "label", "--model", "logistic", "--seed", "0", "--out", out)
    done = succeed("select", file, *words, "--verbose")
    bound = dsel.open_outcome(out).certificate.bound
    for text in (done.output, write_report(
        dsel.open_outcome(out), tmp_path / "page.html"
    ).read_text(encoding="utf-8")):  # fmt: skip
        assert redo(text) == pytest.approx(bound, rel=1e-5)
        assert LIMIT.search(text)


def test_origin__has_no_counts_where_the_bound_is_no_binomial_limit():
    outcome = run(loss="balanced")
    assert outcome.certificate.limits == ()
    assert "B(" not in str(outcome.certificate)


def test_print__is_the_same_of_a_plan_that_was_pickled():
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [5, 15]}, X, Y, POOL, random_state=0
    )
    here, there = plan.run(), pickle.loads(pickle.dumps(plan)).run()
    for name, certificate in here.certificates.items():
        assert certificate.limits
        assert there.certificates[name].limits == certificate.limits
        assert str(there.certificates[name]) == str(certificate)
