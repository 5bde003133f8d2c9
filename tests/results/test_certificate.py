"""A certificate says what it rests on, reasons against it first."""

from dataclasses import replace

import pytest

from dsel.results import Assumption, Certificate, Choice, full_ledger
from dsel.results.choice import params_of

STRATIFIED = Assumption("A2", "violated", "the folds are stratified")


def certificate(unclipped=0.0731, **changes):
    return Certificate(unclipped, 0.01, "cv_bound", **changes)


def test_certificate__is_certified_unless_something_is_violated():
    assert certificate().certified
    spoiled = certificate(assumptions=full_ledger([STRATIFIED]))
    assert not spoiled.certified
    assert spoiled.reasons == ("A2 is violated: the folds are stratified",)
    assert spoiled.bound == 0.0731


def test_certificate__objections_come_first():
    spoiled = certificate(
        assumptions=full_ledger([STRATIFIED]), objections=("cv_error is an estimate",)
    )
    assert spoiled.reasons[0] == "cv_error is an estimate"


def test_certificate__clips_only_what_it_reports():
    vacuous = certificate(1.4)
    assert vacuous.bound == 1.0
    assert vacuous.unclipped == 1.4
    assert "says nothing" in vacuous.reading()


def test_repr__marks_what_is_no_guarantee():
    spoiled = certificate(assumptions=full_ledger([STRATIFIED]))
    assert repr(spoiled) == (
        "Certificate(error ~ 0.0731, delta=0.01, criterion='cv_bound', "
        "certified=False, reasons=['A2 is violated: the folds are stratified'])"
    )


def test_reading__starts_with_the_reason():
    text = certificate(assumptions=full_ledger([STRATIFIED])).reading()
    assert text.startswith("This is no guarantee. A2 is violated: the folds are strat")


def test_in_short__says_where_the_estimate_comes_from():
    found = certificate(estimate=0.04)
    assert found.in_short().endswith("; cross-validation says 4.0 %")
    apart = replace(found, criterion="select_then_certify")
    assert apart.in_short().endswith("; rows set aside say 4.0 %")


def test_reading__tells_terms_and_interval():
    text = certificate(label_term=0.05, disagreement_term=0.0231, lower=0.01).reading()
    text = text.replace("\n", " ")
    assert "at least 1 % and at most 7.31 % of new rows" in text
    assert "5 % comes from errors on labeled rows and 2.31 % from" in text


def test_certificate__refuses_a_delta_that_is_no_probability():
    with pytest.raises(ValueError, match="`delta` must be strictly between 0 and 1"):
        Certificate(0.1, 1.5, "cv_bound")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (("A9", "checked", ""), "`name` must be one of 'A1'"),
        (("A1", "hoped", ""), "`state` must be one of 'checked'"),
        (("A1", "violated", ""), "`reason` must say what violates A1"),
    ],
)
def test_assumption__refuses_nonsense(entry, message):
    with pytest.raises(ValueError, match=message):
        Assumption(*entry)


def test_full_ledger__refuses_two_entries_of_one():
    with pytest.raises(ValueError, match="must name each assumption once"):
        full_ledger([STRATIFIED, STRATIFIED])


def test_choice__repr_is_documentation():
    choice = Choice(7, {"C": 10.0, "kernel": "rbf"}, "cv_error", 0.06, certificate())
    assert repr(choice) == (
        "Choice(candidate 7: C=10, kernel='rbf'; error <= 0.0731, delta=0.01, "
        "criterion='cv_error', certificate='cv_bound', certified=True)"
    )


def test_params_of__reads_them_from_the_cube(cube):
    assert params_of(cube, 3) == {"C": 10, "kernel": "linear"}
    assert isinstance(params_of(cube, 3)["C"], int)
