"""Messages of fits have a problem that code reads; those of 0.2 had a text only."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import dsel
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.results.records import from_record, to_record
from dsel.search.engine.jobs import FitResult, FitStatus

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = (X[:, 0] > 0).astype(int)


class Unpredicting(KNeighborsClassifier):
    """Refuses rows whose second feature is large, with a text like that of a fit."""

    def predict(self, X):
        if (np.asarray(X)[:, 1] > 1.5).any():
            raise ValueError("The solver stopped: ConvergenceWarning")
        return super().predict(X)


class Unfitted(SVC):
    """Refuses to be fitted, with a text like that of a warning."""

    def fit(self, X, y):
        raise ValueError("ConvergenceWarning")


@pytest.fixture(scope="module")
def outcome():
    candidates = [
        KNeighborsClassifier(),
        MLPClassifier((3,), max_iter=2, random_state=0),
        Unpredicting(),
        Unfitted(),
    ]
    plan = dsel.plan_search(None, candidates, X, Y, random_state=0, prune=False)
    with pytest.warns(dsel.errors.FitFailedWarning):
        return plan.run(n_jobs=1)


def test_cube__says_what_each_message_is_about_whatever_its_text(outcome):
    flags = outcome.results["fit_problem"]
    meanings = flags.attrs["flag_meanings"].split()
    problems = ["none", "stopped", "unpredicted", "failed"]
    assert [meanings[number] for number in flags.values] == problems
    assert flags.attrs["flag_values"] == [0, 1, 2, 3, 4]
    remarks = " ".join(dsel.select(outcome, "cv_error").remarks)
    for words in ("1 candidate failed", "1 candidate raised", "1 candidate stopped"):
        assert words in remarks


def test_cube__takes_numeric_methods_of_xarray_without_its_messages(outcome):
    cube = outcome.results.drop_vars("message")
    assert cube.quantile(0.5)["fit_problem"] >= 0


def test_cube_of_an_older_version__says_it_by_its_texts(outcome):
    texts = np.array(
        ["", "fold 0: ConvergenceWarning: x", "fold 0: ValueError: x", "x"]
    )
    cube = outcome.results.drop_vars("fit_problem")
    cube = cube.assign(message=("candidate", texts.astype(object)))
    shown, remarks = (
        [each for each in dsel.select(c, "cv_error").remarks if "candidate" in each]
        for c in (outcome.results, cube)
    )
    assert shown == remarks


STOPPED = "The solver stopped at max_iter=2"


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        ("DONE", "", None),
        ("FAILED", "x", FitMessage(FitProblem.FAILED, "x")),
        ("DONE", STOPPED, FitMessage(FitProblem.STOPPED, STOPPED)),
        ("DONE", "ValueError: x", FitMessage(FitProblem.UNPREDICTED, "ValueError: x")),
    ],
)  # fmt: skip
def test_record_of_an_older_version__is_read(status, text, message):
    record = {"kind": "FitResult", "status": status, "seconds": 0.5, "errors": [3, -1],
              "scores": [0.1], "message": text, "token": ""}  # fmt: skip
    made = from_record(FitResult, record)
    assert made == FitResult(FitStatus[status], 0.5, (3, -1), (0.1,), message)
    assert from_record(FitResult, to_record(made)) == made


@pytest.mark.parametrize("forged", [7, ["a"], {"problem": "ALL", "text": "a"}])
def test_forged_message__is_refused(forged):
    with pytest.raises(TypeError):
        from_record(FitResult, {"status": "DONE", "seconds": 0.5, "message": forged})
