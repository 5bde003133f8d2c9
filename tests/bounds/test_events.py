import pytest

from dsel.bounds import AnyTime, DeltaLedger, Event, FixedStages, read_out


def test_read_out__splits_delta_between_the_two_events():
    spends = read_out("best_fold", delta=0.04, label_share=0.75).spends
    assert spends == {
        Event.FOLD_LIMITS: pytest.approx(0.03),
        Event.BEST_FOLD_DISAGREEMENT: pytest.approx(0.01),
    }


def test_read_out__refuses_an_unknown_certificate():
    with pytest.raises(ValueError, match="`certificate` must be one of 'cv_bound'"):
        read_out("cv_error", delta=0.1)


def test_delta_ledger__takes_the_same_event_twice_for_one_price():
    ledger = DeltaLedger(0.05).read(read_out("cv_bound", delta=0.05))
    assert ledger.read(read_out("cv_bound", delta=0.03)).remaining == 0.0


def test_delta_ledger__refuses_different_events_at_the_same_share():
    ledger = DeltaLedger(0.05).read(read_out("cv_bound", delta=0.05))
    with pytest.raises(ValueError, match="different events cannot share delta"):
        ledger.read(read_out("merged_folds", delta=0.05))


def test_delta_ledger__lets_two_certificates_divide_delta():
    ledger = DeltaLedger(0.06).read(read_out("cv_bound", delta=0.04))
    both = ledger.read(read_out("best_fold", delta=0.04))
    assert both.remaining == pytest.approx(0.0)


def test_delta_ledger__keeps_its_reserve_until_it_is_drawn():
    ledger = DeltaLedger(0.05, reserve=0.02)
    with pytest.raises(ValueError, match=r"but 0\.03 of delta"):
        ledger.read(read_out("cv_bound", delta=0.05))
    assert ledger.draw(0.02).read(read_out("cv_bound", delta=0.05)).remaining == 0.0


def test_delta_ledger__draws_no_more_than_was_declared():
    with pytest.raises(ValueError, match="`amount` must be at most the reserve"):
        DeltaLedger(0.05, reserve=0.02).draw(0.03)


def test_delta_ledger__refuses_a_reserve_of_all():
    with pytest.raises(ValueError, match="`reserve` must be in"):
        DeltaLedger(0.05, reserve=0.05)


def test_read_out__of_an_interval_pays_for_both_sides():
    spends = read_out("best_fold_interval", delta=0.08).spends
    assert list(spends.values()) == pytest.approx([0.02] * 4)
    assert Event.FOLD_LIMITS_BELOW in spends
    paid = DeltaLedger(0.08).read(read_out("cv_bound", delta=0.08))
    with pytest.raises(ValueError, match=r"needs 0\.02 more for fold_limits_below"):
        paid.read(read_out("cv_interval", delta=0.08))


def test_read_out__at_several_looks_is_another_event():
    whole, stages, any_time = (
        read_out("cv_bound", delta=0.1, reading=reading)
        for reading in (FixedStages(), FixedStages(5), AnyTime())
    )
    assert "random_fold_disagreement at each of 5 stages" in stages.spends
    assert "random_fold_disagreement at every row" in any_time.spends
    with pytest.raises(ValueError, match=r"needs 0\.05 more for random_fold"):
        DeltaLedger(0.1).read(whole).read(stages)
