"""Certificate and choice: one text in three renderings, the same digits everywhere."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from math import inf, nan
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsel.losses.texts import loss_of_text
from dsel.results.assumptions import Assumption, full_list
from dsel.results.caveats import Caveat, Effect
from dsel.results.certificate import Certificate, loss_fields
from dsel.results.choice import Choice
from dsel.results.choice_parts import BoundedModel
from dsel.results.records import from_record, to_record

ESTIMATE = Caveat(Effect.VOIDS, "it is an estimate")
FAILED = Caveat(Effect.INFO, "2 fits failed")
FIFTHS = "80% of the labels"
ONE, ALL = "model trained on 80% of the labels", "model trained on all labels"
COMPARED = "Compare   a 20% hold-out set would give a bound of about {} on average"
ASSUMED = (
    "Assumes   labeled rows and pool rows are independent draws from one population, "
    "no two of one customer (else this bound is void: run again with `groups`); "
    "nothing tests this without a pool; the attribute `certificates` lists all"
)
JOINTLY = "95% confidence that both bounds hold"


def certificate(bound=0.15031, model_name="one_fold", **fields):
    return Certificate(bound, 0.05, "nested", model_name, **fields)


def make_choice(**fields):
    made = {
        "bounded_models": {
            "one_fold": bounded(certificate(trained_on=FIFTHS, fold=3)),
            "all_rows": bounded(certificate(0.1777, "all_rows")),
        },
        "deploy": "one_fold",
        "expected_holdout": 0.1635,
    } | fields
    return Choice("cv_error", 0.11, **made)


def bounded(made, candidate=3, params=MappingProxyType({"C": 8.0, "gamma": 0.1})):
    return BoundedModel(made.model_name, candidate, dict(params), made)


CHOSEN = "Chosen    C=8.0, gamma=0.1"
DEPLOYED = {
    "one_fold": "Deployed  the first model (the second with deploy='all_rows')",
    "all_rows": "Deployed  the first model (the second with deploy='one_fold')",
}
LINES = [
    ({}, [f"Error at most 15.1% (95% confidence), {ONE}",
          f"Error at most 17.8% ({JOINTLY}), {ALL}",
          COMPARED.format("16.4%")]),
    ({"deploy": "all_rows"}, [f"Error at most 17.8% (95% confidence), {ALL}",
                              f"Error at most 15.1% ({JOINTLY}), {ONE}",
                              COMPARED.format("16.4%")]),
    ({"expected_holdout": 0.14, "bounded_models": {
        "one_fold": bounded(certificate(trained_on=FIFTHS)),
        "all_rows": bounded(certificate(0.1777, "all_rows"), 5, {"C": 2.0})}},
     [f"Error at most 15.1% (95% confidence), {ONE}",
      f"Error at most 17.8% ({JOINTLY}), {ALL}",
      "Chosen    C=8.0, gamma=0.1 (on all labels: C=2.0)",
      f"{COMPARED.format('14.0%')}, but one that is taken now proves nothing"]),
    # About .15034 is 15.0%, which the bound would seem to exceed.
    ({"expected_holdout": 0.15034, "largest_class": "ok", "largest_class_error": 0.349,
      "bounded_models": {
          "one_fold": bounded(certificate(trained_on=FIFTHS, estimate=0.1128))}},
     [f"Error at most 15.1% (95% confidence), {ONE}",
      "Estimate  error about 11.3% (cross-validated, no guarantee)",
      f"{COMPARED.format('15.1%')}; always predicting the largest class, ok, errs on "
      "34.9%"]),
    ({"bounded_models": {"all_rows": bounded(certificate(model_name="all_rows"))},
      "deploy": "all_rows", "expected_holdout": nan, "caveats": (FAILED,)},
     [f"Error at most 15.1% (95% confidence), {ALL}", "Caveat    2 fits failed"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "lines"), LINES)
def test_choice__is_a_few_lines(fields, lines):
    made, lines = make_choice(**fields), [*lines]
    n = len(made.bounded_models)  # the numbers come first
    chosen = [line for line in lines if line.startswith("Chosen")]
    lines = [line for line in lines if line not in chosen]
    chosen = [*(chosen or [CHOSEN]), *[DEPLOYED[made.deploy]] * (n > 1)]
    lines = [*lines[:n], *chosen, *lines[n:], ASSUMED]
    assert str(made).splitlines() == lines
    bound = made.certificates[made.deploy].bound
    assert (made.bound, made.delta) == (bound, 0.05)
    for shown in (made, made.certificate):
        numbers = {*re.findall(r"[\d.]+%", str(shown))}
        content = re.sub(r"(?s)<style>.*?</style>", "", shown._repr_html_())
        assert {*re.findall(r"[\d.]+%", content)} == numbers
        assert {*re.findall(r"[\d.]+%", repr(shown))} <= numbers


@pytest.mark.parametrize(("fields", "texts"), [
    ({"assumptions": full_list([Assumption("A1", says="groups are")]), "n_groups": 9},
     ["Assumes   groups are; the attribute `certificates` lists all"]),
    ({"assumptions": full_list([Assumption("A1", says="new rows")], has_pool=False)},
     ["Assumes   new rows, no two of one customer (else this bound is void: run again "
      "with `groups`); nothing tests this without a pool; the attribute"]),
    ({"assumptions": full_list([Assumption("A1", says="new rows")]), "n_unlabeled": 9},
     ["Assumes   new rows, no two of one customer (else this bound is void: run again "
      "with `groups`); the attribute"]),
    # Without a bound nothing is assumed: its line says why there is none.
    ({"assumptions": full_list([Assumption("A1", "violated", "copies")])}, []),
    ({"caveats": (ESTIMATE,)}, []),
    ({"bound": 1.2}, []),
])  # fmt: skip
def test_choice__ends_with_what_its_bound_assumes(fields, texts):
    made = make_choice(bounded_models={"one_fold": bounded(certificate(**fields))})
    lines = [line for line in str(made).splitlines() if line.startswith("Assumes")]
    assert [line.startswith(t) for line, t in zip(lines, texts, strict=True)] == (
        [True] * len(texts)
    )
    assert not lines or str(made).endswith(lines[0])


@pytest.mark.parametrize("value", [0.1, nan, inf])
def test_told__comes_back_from_json(value):
    made = certificate(value, caveats=(ESTIMATE,), n_duplicates=4)
    chosen = make_choice(bounded_models={"one_fold": bounded(made)})
    for each in (made, chosen):
        again = type(each).from_json(each.to_json())
        assert again == each
        assert hash(again) == hash(each)
    assert again.certificates == chosen.certificates
    assert again.params == chosen.params
    assert again != make_choice()


KNOWN = Assumption("A1", "checked", "the two-sample test sees no difference")
VIOLATED = Assumption("A1", "violated", "the rows come in groups")
READ = [
    ({"assumptions": full_list([KNOWN], has_pool=False)}, True,
     ["Error at most 15.1%", "one population (A1). The two-sample test sees no diff",
      " (A3)\n", " (A5)\n", "\nAssumes   `predict` treats each row by itself (A7)"]),
    ({"label_term": 0.1411, "disagreement_term": 0.00921, "n_duplicates": 1_200,
      "n_unlabeled": 100_000}, True,
     # Each part is a limit; rounded up, they add up to more than the bound.
     ["Origin    14.2% from errors of the tested models on labeled rows, 1.0% from "
      "pool rows on which the models differ; together at most 15.1% (nested)",
      "1,200 of 100,000 pool rows equal labeled rows", " (A4)\n"]),
    ({"assumptions": full_list([VIOLATED]), "caveats": (ESTIMATE,),
      "is_estimate": True},
     False, ["No guarantee, since it is an estimate: about 15.0%",
             "Caveat    A1 is violated (independent draws from one population): the "
             "rows come in groups"]),
    ({"assumptions": ()}, False, ["No guarantee, since the results lost their attr"]),
    ({"bound": 1.2, "n_labeled": 30}, True,
     ["No bound below 100% for the error: too few labeled rows, model trained on",
      "Caveat    30 labeled rows with as many errors give no smaller bound; more lab"]),
    ({"bound": 1.2, "label_term": 0.7, "disagreement_term": 0.5}, True,
     ["No bound below 100% for the error: too few labeled rows and pool rows, "]),
    ({"bound": 1.6, "label_term": 0.2, "disagreement_term": 1.4}, True,
     ["No bound below 100% for the error: the pool's part alone is above 100%",
      "Origin    no limit below 100% from pool rows on which the models differ (nest"]),
    ({"bound": 2.4, "label_term": 1.0, "disagreement_term": 1.4,
      "loss": "recall('fraud')", "title": "Misses of 'fraud'"}, True,
     ["No bound below 100% for the misses of 'fraud': models may differ on as many "
      "pool rows as the class has, model",
      "Origin    no limit below 100% from pool rows on which the models differ (nest"]),
    ({"bound": 1.0, "estimate": 1.0}, True, ["the error: no prediction was right, m"]),
    ({"bound": 0.9996, "label_term": 0.9996, "estimate": 0.978}, True,
     ["No bound below 100% for the error: the estimate is 97.8%, model trained",
      "Caveat    the estimate itself is 97.8%, so that only a better model "]),
    ({"bound": 1.0, "estimate_of_models": 0.1}, True, ["the error: fits failed, mod"]),
    ({"assumptions": full_list([VIOLATED]), "bound": 1.2}, False,
     ["No guarantee, since A1 is violated (independent draws from one population): no "
      "number, model trained on", "\nThe rows come in groups\n"]),
    ({"bound": nan}, False, ["since nested has no number: no number, model"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "is_certified", "texts"), READ)
def test_certificate__is_read_in_plain_words(fields, is_certified, texts):
    made = certificate(**fields)
    assert made.certified == is_certified
    assert made.reading().splitlines()[0] == made.headline()
    assert [text for text in texts if text not in made.reading()] == []
    assert repr(made) == str(made)
    assert not made.bound > 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"estimate": 0.1128}, None),
        ({"estimate": nan}, None),
        ({"estimate": 0.1621}, "folds (16.2%) is above the bound (15.1%) of the model"),
        (
            {"estimate": 0.1621, "loss": "recall:7", "title": "Recall"},
            "plan with 16.2%",
        ),
        (
            {
                "estimate": 0.4,
                "loss": "cost",
                "title": "Cost",
                "largest": 2.0,
                "is_cost": True,
            },
            "folds (0.400) is above the bound (0.151)",
        ),
        (
            {
                "estimate": 3.5,
                "bound": 3.12,
                "largest": inf,
                "title": "90% off by",
            },
            "is above the bound (3.12)",
        ),
        ({"estimate": 0.1621, "caveats": (ESTIMATE,)}, None),
    ],
)
def test_bound_below_the_estimate__has_a_note(fields, words):
    made = certificate(**fields)
    choice = make_choice(bounded_models={"one_fold": bounded(made)})
    assert ("above the bound" in str(made)) == (words is not None)
    listed = json.loads(made.to_json())["all_caveats"]
    texts = [caveat["text"] for caveat in listed]
    assert texts == [caveat.text for caveat in made.all_caveats]
    assert type(made).from_json(made.to_json()) == made
    assert words is None or words in " ".join(str(made).split())
    # A choice says it in short, in the line behind the bound.
    head, second, *_ = [" ".join(line.split()) for line in str(choice).splitlines()]
    assert second.startswith("Below the estimate, ") == (words is not None)
    if words is not None:
        assert head == made.headline()
        assert "likely lucky; it holds at 95% all the same, but plan with" in second
        assert second in re.sub(r"<[^>]*>", "", choice._repr_html_())
        assert "above the bound" not in str(choice)
        assert "has its 95% confidence whatever the estimate is" in str(
            " ".join(str(made).split())
        )


def test_certificate__of_older_records_has_no_estimate_of_models_as_nan():
    made = certificate()
    record = json.loads(made.to_json())
    assert record["estimate_of_models"] is None
    record["estimate_of_models"] = float("nan")
    assert type(made).from_json(json.dumps(record)) == made


def test_choice__of_older_records_has_the_number_of_a_hold_out_set():
    choice = make_choice()
    record = json.loads(choice.to_json())
    record["held_out_fifth"] = record.pop("expected_holdout")
    assert Choice.from_json(json.dumps(record)) == choice
    with pytest.warns(FutureWarning, match="now called `expected_holdout`"):
        assert choice.held_out_fifth == choice.expected_holdout
    for old, new in (("candidates", "candidate"), ("params_of", "params")):
        with pytest.warns(FutureWarning, match=rf"`bounded_models\[...\].{new}`"):
            by_name = getattr(choice, old)
        models = choice.bounded_models
        assert by_name == {n: getattr(model, new) for n, model in models.items()}
        assert old not in dir(choice)
    with pytest.warns(FutureWarning, match="now called `criterion_value`"):
        assert choice.estimate == choice.criterion_value == record["estimate"]


LOSS_FIELDS = {
    "rate": {},
    "cost": {"loss": "cost", "largest": 5.0, "is_cost": True, "sentence": None},
    "tolerance": {
        "loss": "error_quantile=0.9", "largest": inf, "sentence": None, "fraction": 0.9,
    },
}  # fmt: skip


@given(
    st.sampled_from([*LOSS_FIELDS]),
    st.floats(1e-9, 0.9),
    st.floats(0, 0.9),
    st.sampled_from([1.0, 0.8]),
)
@example("rate", 0.05655, 0.00045, 1.0)  # 5.7% in total, 5.7% from labeled rows
@example("rate", 0.05700000000000001, 0.0, 1.0)
def test_certificate__prints_no_limit_below_its_number(kind, labels, pool, less):
    made = certificate(
        less * (labels + pool), "all_rows", label_term=labels, disagreement_term=pool,
        **LOSS_FIELDS[kind],
    )  # fmt: skip
    unit = 100 if kind == "rate" else 1
    numbers = [labels, pool]
    if "together" in made.terms:
        assert less == 1.0
        numbers.append(made.number)
    printed = re.findall(r"(?:^|, |at most )([\d.,]*\d)%?", made.terms)
    for text, number in zip(printed, numbers, strict=True):
        assert Decimal(text.replace(",", "")) >= unit * Decimal(repr(number))
    if not made.says_nothing:
        [limit] = re.findall(r"at most ([\d.]+)", made.headline())
        assert Decimal(limit) >= unit * Decimal(repr(made.number))
    for count in re.findall("at most ([0-9,]+) ", made.in_numbers_of_rows()):
        n_rows = Decimal(count.replace(",", ""))
        assert n_rows >= made.sentence.n_rows * Decimal(repr(made.number))


def test_parts__that_add_up_as_printed_have_no_total():
    made = certificate(0.3, "all_rows", label_term=0.2, disagreement_term=0.1)
    assert made.terms == (
        "20.0% from errors of the tested models on labeled rows, "
        "10.0% from pool rows on which the models differ"
    )


def test_certificate__of_single_rows_speaks_of_one():
    of_pool = Certificate(
        0.4, 0.05, "nested", "all_rows", label_term=0.3, disagreement_term=0.1,
        n_labeled=40, n_unlabeled=2, n_duplicates=1, n_queried=1,
    )  # fmt: skip
    assert "labels of 1 queried row" in str(of_pool)
    assert "1 of 2 pool rows equals labeled rows" in str(of_pool)
    alone = Certificate(0.4, 0.05, "nested", "one_fold", n_labeled=1, n_duplicates=1)
    assert "1 of 1 row equals rows that the model was fitted to, and is not" in str(
        alone
    )
    assert alone.counted == "1 labeled row"
    assert replace(alone, n_groups=1).counted == "1 group of labeled rows"


@pytest.mark.parametrize(
    ("criterion", "is_estimate", "divides_delta"),
    [
        ("nested", False, False),
        ("best_fold", False, True),
        ("cv_error", True, False),
    ],
)
def test_certificate__of_0_2_is_known_by_its_criterion(
    criterion, is_estimate, divides_delta
):
    record = to_record(replace(certificate(), method=criterion))
    del record["is_estimate"], record["divides_delta"]
    made = from_record(Certificate, record)
    assert (made.is_estimate, made.divides_delta) == (is_estimate, divides_delta)


def test_renamed_fields__keep_their_keys_in_records_and_an_old_name_that_warns():
    choice = make_choice()
    record = json.loads(choice.to_json())
    assert record["deployed"]["all_rows"]["kind"] == "BoundedModel"
    assert record["deployed"]["all_rows"]["certificate"]["deploy"] == "all_rows"
    assert Choice.from_json(json.dumps(record)) == choice
    record = record["deployed"]["one_fold"]["certificate"]
    bound = choice.certificate
    for key, value in (
        ("deploy", bound.model_name),
        ("criterion", bound.method),
        ("share", bound.trained_on),
        ("equal_rows", bound.n_duplicates),
    ):
        with pytest.warns(FutureWarning, match=f"`{key}` is now called"):
            assert getattr(bound, key) == record[key] == value != ""
    with pytest.warns(FutureWarning, match="now called `model_text`"):
        assert bound.model == bound.model_text == ONE
    old = {"deploy", "criterion", "share", "model", "equal_rows"}
    assert not old & {*dir(bound)}


@pytest.mark.parametrize(
    ("bound", "fields", "is_large"),
    [(0.501, {}, True), (1.2, {}, True), (0.499, {}, False),
     (0.6, {"is_estimate": True}, False), (5.0, {"largest": float("inf")}, False),
     (1.2, {"n_unlabeled": 9, "n_duplicates": 9}, False)],
)  # fmt: skip
def test_certificate__of_a_large_bound_names_the_way_to_a_smaller_one(
    bound, fields, is_large
):
    text = str(certificate(bound, **fields))
    assert ("says little; more labels make it smaller" in text) == is_large


def test_rate_that_is_printed_as_100_percent__says_nothing():
    made = Certificate(0.9994, 0.05, "nested", "one_fold", trained_on="80%")
    assert made.says_nothing
    assert "100.0%" not in made.headline()
    assert "99.9%" in replace(made, unclipped=0.999).headline()


@pytest.mark.parametrize(
    ("loss", "meaning"),
    [
        (
            "recall('New York')",
            "new rows of 'New York' the model misses",
        ),
        (
            "precision('New York')",
            "the model predicts 'New York', it is",
        ),
        ("beyond(2.5)", "at most 200 with an error above 2.5 on average"),
        ("error_quantile(0.9)", "at least 900 to within 0.200 of the true value"),
        ("error", "Of 1,000 new rows the model gets at most 200 wrong on average."),
    ],
)
def test_in_numbers_of_rows__names_what_a_loss_counts(loss, meaning):
    fields = loss_fields(loss_of_text(loss))
    made = Certificate(0.2, 0.05, "nested", "all_rows", **fields)
    assert meaning in made.in_numbers_of_rows()
    older = json.loads(made.to_json())
    del older["sentence"], older["fraction"]
    older["says"] = f"{older.pop('title')} at most"
    assert Certificate.from_json(json.dumps(older)) == made
