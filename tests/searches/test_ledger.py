"""What was not paid for before the results were seen is no guarantee."""

import shutil

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.errors import DselWarning
from dsel.results.journal import open_journal, read_fingerprint
from dsel.searches.declarations import Declaration, account_of, declare
from dsel.searches.ledger import add_certificate, ledger_of
from dsel.searches.select import select

X, Y = make_classification(1500, 5, class_sep=1.5, random_state=4)
SMALL = {"n_neighbors": [1, 3]}
LARGE = {"n_neighbors": [1, 3, 9, 27]}


def run(grid=SMALL, *, out=None, on_progress=None, **options):
    plan = dsel.plan_search(
        KNeighborsClassifier(), grid, X[:300], Y[:300], X[300:],
        **{"criterion": "cv_bound", "cv": 3, "delta": 0.1, "random_state": 3,
           "prune": False} | options,
    )  # fmt: skip
    return plan.run(out=out, on_progress=on_progress)


@pytest.fixture(scope="module")
def results():
    return run()


@pytest.fixture(scope="module")
def with_reserve():
    return run(reserve=0.1)


def test_run__writes_who_spent_what(results):
    ledger = ledger_of(results)
    assert ledger.delta == 0.1
    assert [read.certificate for read in ledger.read_outs] == ["cv_bound"]
    assert results.dsel.spent.delta.sum() == pytest.approx(0.1)
    assert select(results).certificate.certified


def test_ledger__survives_saving(with_reserve, tmp_path):
    dsel.save_results(with_reserve, tmp_path)
    assert ledger_of(dsel.open_results(tmp_path)) == ledger_of(with_reserve)


@pytest.mark.parametrize(
    "asked",
    [{"certificate": "best_fold"}, {"delta": 0.2}, {"label_share": 0.9}],
    ids=["another certificate", "a larger delta", "another share"],
)
def test_select__does_not_certify_what_was_not_declared(results, asked):
    certificate = select(results, **asked).certificate
    assert not certificate.certified
    assert "was not declared before the results were seen" in certificate.reasons[0]


def test_select__certifies_a_smaller_delta(results):
    assert select(results, delta=0.05).certificate.certified


def test_select__reports_the_declared_certificate():
    results = run(certificate="best_fold")
    choice = select(results)
    assert choice.certificate.criterion == "best_fold"
    assert choice.certificate.certified
    assert not select(results, "cv_bound").certificate.certified


def test_add_certificate__is_paid_from_the_reserve(with_reserve):
    paid = add_certificate(with_reserve, "best_fold", delta=0.1)
    certificate = select(paid, certificate="best_fold").certificate
    assert certificate.certified
    assert "paid from its reserve" in certificate.assumptions[4].reason
    assert select(paid).certificate.certified
    # The limits of the folds were paid for already.
    assert ledger_of(paid).reserve == pytest.approx(0.05)


def test_add_certificate__refuses_what_the_reserve_does_not_cover(with_reserve):
    with pytest.raises(ValueError, match=r"at most the reserve, 0\.1, got 0\.2"):
        add_certificate(with_reserve, "best_fold", delta=0.25)
    with pytest.raises(ValueError, match="'cv_error' is no guarantee; choose one of"):
        add_certificate(with_reserve, "cv_error", delta=0.05)


def test_run__resumed_as_it_was_stays_certified(tmp_path):
    first = run(out=tmp_path)
    again = run(out=tmp_path)
    assert select(again).certificate.certified
    assert ledger_of(again) == ledger_of(first)


def test_run__extended_after_the_results_loses_the_guarantee(tmp_path):
    run(out=tmp_path)
    certificate = select(run(LARGE, out=tmp_path)).certificate
    assert not certificate.certified
    [reason] = certificate.reasons
    assert (
        "2 candidates (n_neighbors=9; n_neighbors=27) came in addition after 2"
        in reason
    )
    assert "costs 0.05 of delta, of which 0 is left" in reason
    assert "needed `reserve` = 0.05 in the first run" in reason


def test_run__extended_from_a_reserve_stays_certified(tmp_path):
    run(out=tmp_path, reserve=0.1)
    larger = run(LARGE, out=tmp_path, reserve=0.1)
    certificate = select(larger).certificate
    assert certificate.certified
    assert (
        "came in addition after 2 were seen, paid" in certificate.assumptions[4].reason
    )
    # Two of four candidates are new: half of delta again.
    assert ledger_of(larger).reserve == pytest.approx(0.05)
    assert ledger_of(larger).delta == pytest.approx(0.2)


def test_run__extended_again_and_again_uses_the_reserve_up(tmp_path):
    grids = [SMALL, LARGE, {"n_neighbors": [1, 3, 9, 27, 81]}]
    found = [run(grid, out=tmp_path, reserve=0.05) for grid in grids]
    assert [select(each).certificate.certified for each in found] == [True, True, False]


def test_run__with_another_certificate_in_the_same_place_is_not_declared(tmp_path):
    run(out=tmp_path)
    certificate = select(run(out=tmp_path, certificate="best_fold")).certificate
    assert not certificate.certified
    assert "2 candidates (n_neighbors=1; n_neighbors=3) got" in certificate.reasons[0]


def test_run__that_was_not_paid_for_stays_so_when_it_is_run_again(tmp_path):
    first = select(run(out=tmp_path)).certificate
    for _ in range(2):
        larger = select(run(LARGE, out=tmp_path)).certificate
        assert not larger.certified
        assert "A5 is violated: run 2 of this place (" in larger.reasons[0]
    # Its shares were paid for before anything was seen, and it is the same number.
    assert select(run(out=tmp_path)).certificate == first
    assert not select(run(LARGE, out=tmp_path)).certificate.certified


@pytest.mark.parametrize("certificate", ["best_fold_of_leader", "nested", "cv_bound"])
def test_run__of_the_same_candidates_in_another_order_has_another_leader(
    tmp_path, certificate
):
    turned = {"n_neighbors": LARGE["n_neighbors"][::-1]}
    options = {"criterion": "cv_error", "certificate": certificate, "out": tmp_path}
    found = [select(run(grid, **options)) for grid in (LARGE, turned, LARGE)]
    certified = [each.certificate.certified for each in found]
    assert certified == [True, certificate == "cv_bound", True]


@pytest.mark.parametrize("before", [{}, {"criterion": "cv_error"}])
def test_run__of_the_winner_alone_pays_for_all_who_were_seen(tmp_path, before):
    run(LARGE, out=tmp_path, reserve=0.2, **before)
    winner = select(run({"n_neighbors": [9]}, out=tmp_path)).certificate
    needed = 0.3
    assert not winner.certified
    assert "1 candidate (n_neighbors=9) got a larger share" in winner.reasons[0]
    assert f"needed `reserve` = {needed:g} in the first" in winner.reasons[0]


@pytest.mark.parametrize(("reserve", "certified"), [(0.3, True), (0.29, False)])
def test_run__of_the_winner_alone_is_covered_by_the_reserve_it_names(
    tmp_path, reserve, certified
):
    run(LARGE, out=tmp_path, reserve=reserve)
    winner = select(run({"n_neighbors": [9]}, out=tmp_path)).certificate
    assert winner.certified == certified


def test_run__of_the_same_candidates_after_ranking_costs_what_it_declared(tmp_path):
    run(LARGE, out=tmp_path, criterion="cv_error")
    assert select(run(LARGE, out=tmp_path)).certificate.certified
    assert not select(run(SMALL, out=tmp_path)).certificate.certified


@pytest.mark.parametrize("certificate", ["best_fold_of_leader", "leaders"])
def test_run__lets_nobody_lead_a_part_of_what_was_seen(tmp_path, certificate):
    first = run(LARGE, out=tmp_path, certificate=certificate, reserve=0.1)
    assert select(first).certificate.certified
    part = run(SMALL, out=tmp_path, certificate=certificate)
    assert not select(part).certificate.certified


def test_run__knows_what_was_declared_without_any_cube(tmp_path):
    run(LARGE, out=tmp_path)
    for cube in tmp_path.glob("cube-*"):
        shutil.rmtree(cube)
    assert not select(run(SMALL, out=tmp_path)).certificate.certified


def test_run__knows_what_a_run_declared_that_was_cut_short(tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(LARGE, out=tmp_path, on_progress=stop)
    assert not select(run(SMALL, out=tmp_path)).certificate.certified
    assert select(run(LARGE, out=tmp_path)).certificate.certified


def test_run__beside_another_pays_for_what_that_one_declared(tmp_path):
    beside = []

    def run_beside(progress):
        if not beside:
            beside.append(run(SMALL, out=tmp_path))

    first = run(LARGE, out=tmp_path, on_progress=run_beside)
    assert select(first).certificate.certified
    assert not select(beside[0]).certificate.certified
    assert select(run(LARGE, out=tmp_path)).certificate.certified
    assert not select(run(SMALL, out=tmp_path)).certificate.certified


@pytest.mark.parametrize("grid", [SMALL, LARGE])
def test_run__where_a_declaration_may_be_lost_certifies_nothing(tmp_path, grid):
    run(LARGE, out=tmp_path)
    [journal] = (tmp_path / "journal").iterdir()
    journal.write_bytes(b"rubbish")
    with pytest.warns(DselWarning, match="damaged"):
        certificate = select(run(grid, out=tmp_path)).certificate
    assert "may be missing in the damaged journal" in certificate.reasons[0]


def test_run__without_the_declaration_of_what_was_counted_certifies_nothing(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(LARGE, out=whole)
    fingerprint = read_fingerprint(whole)
    with open_journal(whole, fingerprint) as old, open_journal(cut, fingerprint) as new:
        for key, record in old.read().items():
            if not key.startswith("declaration/"):
                new.append(key, record)
    certificate = select(run(SMALL, out=cut)).certificate
    assert "under a declaration that is missing" in certificate.reasons[0]


def test_declare__of_two_at_the_same_moment_pays_for_one_at_most(tmp_path):
    journals = [open_journal(tmp_path, {}) for _ in range(2)]
    paid = []
    for journal, candidates in zip(journals, (("a",), ("a", "b")), strict=True):
        spends = {"cv": 0.1}
        mine = Declaration(candidates, "cv_bound", "cv_bound", 0.1, 0.0, spends)
        key = declare(journal, mine)
        paid.append(account_of(journal.read()).verdicts[key].is_paid)
    for journal in journals:
        journal.close()
    assert paid == [True, False]


def test_add_certificate__of_a_place_is_a_run_there(tmp_path):
    results = run(out=tmp_path, reserve=0.1)
    with pytest.raises(ValueError, match=r"run the same search with certificate='best"):
        results.dsel.add_certificate("best_fold", delta=0.1)
    both = run(out=tmp_path, certificate="best_fold")
    assert select(both).certificate.certified
    assert select(both, certificate="cv_bound").certificate.certified
    # The limits of the folds were paid for already.
    assert ledger_of(both).reserve == pytest.approx(0.05)


def test_plan_search__checks_the_reserve():
    with pytest.raises(ValueError, match="`reserve` must be at least 0"):
        run(reserve=-0.01)
    with pytest.raises(ValueError, match=r"`reserve` must be .* below 1 - `delta`"):
        run(delta=0.5, reserve=0.6)


def test_run__without_a_guarantee_spends_nothing():
    results = run(criterion="cv_error")
    assert ledger_of(results).read_outs == ()
    assert np.isclose(ledger_of(results).remaining, 0.1)
    assert not select(results, certificate="holdout_bound").certificate.certified
