"""Certificate and choice: one text in three renderings, the same digits everywhere."""

import re
from math import inf, nan

import pytest

from dsel.results.certificate import Assumption, Certificate, Choice, full_list

FIFTHS = "four fifths of the labels"


def certificate(bound=0.15031, deploy="one_fold", **fields):
    return Certificate(bound, 0.05, "nested", deploy, **fields)


@pytest.fixture
def choice():
    certificates = {
        "one_fold": certificate(share=FIFTHS, fold=3),
        "all_rows": certificate(0.1777, "all_rows"),
    }
    candidates = {"one_fold": 3, "all_rows": 3}
    return Choice(
        3, {"C": 8.0, "gamma": 0.1}, "cv_error", 0.11, certificates, "one_fold",
        held_out_fifth=0.1635, candidates=candidates,
    )  # fmt: skip


def changed(choice, **fields):
    return Choice(**{**vars(choice), **fields})


def test_choice__is_four_lines(choice):
    assert str(choice).splitlines() == [
        "Chosen: C=8, gamma=0.1",
        "Error at most 15.1 % (95 % sure): the model of four fifths of the labels",
        "at most 17.8 %: the model of all labels, likely the better one",
        "A held-out fifth would give about 16.4 %",
    ]
    assert (choice.bound, choice.delta, choice.fold) == (0.15031, 0.05, 3)


def test_choice__begins_with_the_model_that_is_handed_over(choice):
    lines = str(changed(choice, deploy="all_rows")).splitlines()
    assert lines[1] == "Error at most 17.8 % (95 % sure): the model of all labels"
    assert lines[2] == "at most 15.1 %: the model of four fifths of the labels"


def test_choice__says_where_a_held_out_fifth_is_smaller(choice):
    lines = str(changed(choice, held_out_fifth=0.14)).splitlines()
    assert lines[3].startswith("A held-out fifth would give about 14.0 %, the smallest")
    assert len(lines) == 4


def test_choice__of_one_certificate_is_short(choice):
    alone = changed(
        choice, certificates={"all_rows": certificate(deploy="all_rows")},
        deploy="all_rows", held_out_fifth=nan, remarks=("2 fits failed",),
    )  # fmt: skip
    lines = str(alone).splitlines()
    assert len(lines) == 3
    assert lines[2] == "Note     2 fits failed"


def test_choice__names_the_candidate_of_the_other_model(choice):
    other = changed(
        choice, candidates={"one_fold": 3, "all_rows": 5},
        params_of={"one_fold": {"C": 8.0}, "all_rows": {"C": 2.0}},
    )  # fmt: skip
    assert "the model of all labels (C=2), likely" in str(other)


def test_renderings__say_the_same_with_the_same_digits(choice):
    for shown in (choice, choice.certificate):
        numbers = {*re.findall(r"[\d.]+ %", str(shown))}
        html = shown._repr_html_()
        assert {*re.findall(r"[\d.]+ %", html)} == numbers
        assert {*re.findall(r"[\d.]+ %", repr(shown))} <= numbers
        assert all(line[:60] in html.replace("&#x27;", "'") for line in str(shown)
                   .splitlines() if line[8] != " ")  # fmt: skip


def test_choice__comes_back_from_json(choice):
    again = Choice.from_json(choice.to_json())
    assert again == choice
    assert again.certificates == choice.certificates
    assert again.params == choice.params


@pytest.mark.parametrize("value", [0.1, nan, inf])
def test_certificate__comes_back_from_json(value):
    made = certificate(value, objections=("an estimate",), equal_rows=4)
    again = Certificate.from_json(made.to_json())
    assert again == made
    assert hash(again) == hash(made)


def test_certificate__shows_each_assumption_in_a_line():
    known = [Assumption("A1", "checked", "the two-sample test sees no difference")]
    made = certificate(assumptions=full_list(known, is_refitted=True), share=FIFTHS)
    lines = made.reading().splitlines()
    assert lines[0] == made.headline()
    assert [line.split()[1] for line in lines[2:]] == [
        "A1,", "A3,", "A4,", "A5,", "A6,", "A7,",
    ]  # fmt: skip
    assert "A1, checked: labeled rows and pool rows are independent" in lines[2]


def test_certificate__says_what_it_is_made_of():
    made = certificate(
        deploy="all_rows", label_term=0.1411, disagreement_term=0.0389,
        equal_rows=1_200, n_unlabeled=100_000,
    )  # fmt: skip
    line = made.reading().splitlines()[1]
    assert "14.2 % from errors on labeled rows, 3.9 % from the pool" in line
    assert "1,200 of 100,000 pool rows equal labeled rows" in line


def test_certificate__puts_reasons_first():
    violated = full_list([Assumption("A1", "violated", "the rows come in groups")])
    made = certificate(assumptions=violated, objections=("cv_error is an estimate",))
    assert not made.certified
    assert made.headline().startswith("No guarantee, since cv_error is an estimate: ")
    assert "A1 is violated: the rows come in groups" in made.reading()
    assert "error ~ 15.1 %" in repr(made)


def test_certificate__without_assumptions_is_none():
    made = certificate(assumptions=())
    assert not made.certified
    assert "lost their attribute" in made.reasons[0]


def test_certificate__says_where_the_bound_is_empty():
    assert "says nothing" in certificate(1.2).headline()
    assert certificate(1.2).bound == 1
    assert "no number" in certificate(nan).headline()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Assumption("A2"), "`name` must be one of"),
        (lambda: Assumption("A1", "hoped"), "`state` must be one of"),
        (lambda: certificate(deploy="vote"), "`deploy` must be one of"),
        (lambda: Certificate(0.1, 5, "nested", "one_fold"), "`delta` must be strictly"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
