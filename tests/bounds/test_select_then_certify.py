import pytest

from dsel.bounds import binomial_tail_inversion, select_then_certify


def test_select_then_certify__has_no_factor_for_candidates_or_folds():
    terms = select_then_certify(10, 100, 20, 1000, delta=0.01, label_share=0.75)
    assert terms.label_term == binomial_tail_inversion(10, 100, delta=0.0075)
    assert terms.disagreement_term == binomial_tail_inversion(20, 1000, delta=0.0025)


def test_select_then_certify__refuses_more_errors_than_rows():
    with pytest.raises(ValueError, match="`n_errors` must be between 0 and 100"):
        select_then_certify(101, 100, 20, 1000, delta=0.01)
