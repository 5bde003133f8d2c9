"""Results of fits without two folds, of which each was tested in a task of its own."""

import numpy as np
import pytest

from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.results.records import from_record, to_record
from dsel.search.design.cv_schemes import scheme_of_pairs
from dsel.search.engine.jobs import FitJob, FitResult, FitStatus, join_tests

SPLIT = scheme_of_pairs(5, 50, seed=7, n_candidates=2).splits[0]
STOPPED = FitMessage(FitProblem.STOPPED, "stopped early")
FIRST = FitResult(FitStatus.DONE, 1.0, (2, 0), (0.2, np.nan), STOPPED)
SECOND = FitResult(FitStatus.DONE, 0.5, (0, 3), (np.nan, 0.3))
FAILED = FitResult.failure("its worker died")


def test_tests__that_are_done_are_one_result():
    made = join_tests((FIRST, SECOND), SPLIT)
    assert made == FitResult(FitStatus.DONE, 1.5, (2, 3), (0.2, 0.3), STOPPED)


@pytest.mark.parametrize(
    ("tests", "errors", "scores"),
    [
        ((FAILED, SECOND), (len(SPLIT.test_rows), 3), (np.inf, 0.3)),
        ((FIRST, FAILED), (2, len(SPLIT.second_part)), (0.2, np.inf)),
    ],
)
def test_tests__that_failed_fail_the_search_that_reads_them_alone(
    tests, errors, scores
):
    made = join_tests(tests, SPLIT)
    assert (made.status, made.errors, made.scores) == (FitStatus.DONE, errors, scores)
    assert made.message == FAILED.message
    assert np.isfinite(made.seconds)


def test_tests__that_both_failed_are_a_failed_fit():
    assert join_tests((FAILED, FAILED), SPLIT) is FAILED


@pytest.mark.parametrize(
    ("status", "text", "problem"),
    [
        ("FAILED", "no memory", FitProblem.FAILED),
        ("DONE", "ConvergenceWarning: more iterations", FitProblem.STOPPED),
        ("DONE", "predict raised", FitProblem.UNPREDICTED),
        ("DONE", "", None),
    ],
)
def test_results__of_a_store_of_0_2_say_what_their_messages_are_about(
    status, text, problem
):
    record = to_record(SECOND) | {"status": status, "message": text}
    message = from_record(FitResult, record).message
    assert (None if message is None else message.problem) == problem


def test_jobs__divided_have_one_candidate_and_the_same_test():
    job = FitJob(4, (1, 7), split_number=3, part_number=1)
    assert job.smaller_jobs() == [FitJob(4, (1,), 3, 1), FitJob(4, (7,), 3, 1)]
