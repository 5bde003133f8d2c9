"""A choice has one record for each deployed model; the rest are views of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.results import Choice

RNG = np.random.default_rng(1)
X, POOL = RNG.normal(size=(120, 2)), RNG.normal(size=(300, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def outcome():
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}, X, Y, POOL, report=True,
        random_state=0,
    )  # fmt: skip
    return plan.run()


def test_deployed__has_all_about_each_model(outcome):
    assert list(outcome.bounded_models) == ["one_fold", "all_rows"]
    for name, each in outcome.bounded_models.items():
        assert each.certificate is outcome.certificates[name]
        assert each.model is outcome.models[name]
        assert each.model.n_neighbors == each.params["n_neighbors"]
        assert each.report is outcome.certified_report(name)
        assert each.candidate == outcome.choice.candidates[name]
        assert each.params == outcome.choice.params_of[name]
        assert each.fold == outcome.certificates[name].fold


def test_useless_bound__refers_to_the_report_that_there_is(outcome):
    useless = replace(outcome.choice, constant="1", constant_loss=0.0)
    text = "baseline='largest class' tests it; see certified_report() for the recall"
    assert text in str(useless)
    assert "report=True" not in str(useless)
    models = {n: replace(m, report=None) for n, m in useless.bounded_models.items()}
    alone = replace(useless, bounded_models=models)
    assert "and report=True has the recall of each class" in str(alone)


def test_outcome__is_saved_and_written_as_its_results_are(outcome, tmp_path):
    dsel.save_results(outcome, tmp_path / "saved")
    assert dsel.open_results(tmp_path / "saved").identical(outcome.results)
    page = dsel.report.write_report(outcome, tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert "independent draws from one population" in text
    assert "print(outcome" not in text


def test_choice__alone_has_no_model_and_says_where_it_is(outcome):
    again = Choice.from_json(outcome.choice.to_json())
    assert again == outcome.choice
    with pytest.raises(ValueError, match="'all_rows'; take it from `bounded_models`"):
        _ = again.bounded_models["all_rows"].model
    assert "load_model" not in outcome.choice.to_json()


def older_record(choice):
    """Return the record that 0.2 wrote of a choice: a dict for each field."""
    record = json.loads(choice.to_json())
    models = record.pop("deployed")
    names = {"certificates": "certificate", "candidates": "candidate",
             "params_of": "params", "reports": "report"}  # fmt: skip
    older = {key: {n: m[field] for n, m in models.items()}
             for key, field in names.items()}  # fmt: skip
    main = models[choice.deploy]
    return record | older | {"candidate": main["candidate"], "params": main["params"]}


def test_older_record__is_read_as_one_record_for_each_model(outcome):
    record = older_record(outcome.choice)
    assert Choice.from_json(json.dumps(record)) == outcome.choice
    del record["candidates"], record["params_of"]  # 0.1 had what was chosen alone
    read = Choice.from_json(json.dumps(record))
    assert read.params_of["all_rows"] == outcome.choice.params


@pytest.mark.parametrize("change", [
    {"reports": 1}, {"candidates": {"one_fold": "1"}}, {"certificates": {}},
    {"params_of": {"one_fold": 7}}, {"deploy": "neither"},
])  # fmt: skip
def test_older_record__that_was_forged_is_refused(outcome, change):
    record = older_record(outcome.choice) | change
    with pytest.raises((TypeError, ValueError)):
        Choice.from_json(json.dumps(record))


def test_changed_cube__voids_bounds_and_reports_of_both_models(outcome):
    choice = dsel.select(outcome.results.isel(n_neighbors=[2, 0, 1]))
    for name, each in choice.bounded_models.items():
        assert not each.certificate.certified, name
        assert each.report.reasons == each.certificate.reasons
        assert each.certificate.unclipped == outcome.certificates[name].unclipped


@pytest.mark.parametrize(("n_same", "is_told"), [(5, False), (2, False), (1, True)])
def test_choice__names_another_choice_where_nearly_all_folds_made_it(
    outcome, n_same, is_told
):
    choice, others = outcome.choice, {"n_neighbors": 77}
    params = n_same * (choice.params,) + (5 - n_same) * (others,)
    line = "4 of 5 searches without a fold chose n_neighbors=77, so the deployed model"
    way_out = "and deploy='all_rows' has these parameters"
    changed = replace(choice, fold_params=params)
    assert (line in str(changed)) == is_told
    assert way_out not in str(changed)
    models = dict(choice.bounded_models)
    models["all_rows"] = replace(models["all_rows"], params=others)
    assert (way_out in str(replace(changed, bounded_models=models))) == is_told
    assert "without a fold chose" not in str(replace(choice, fold_params=()))


def with_bounds(choice, one_fold, all_rows, **changes):
    """Return the choice with other bounds, that of all rows in two parts."""
    models = dict(choice.bounded_models)
    for name, bound in (("one_fold", one_fold), ("all_rows", all_rows)):
        certificate = replace(
            models[name].certificate, unclipped=bound, label_term=one_fold,
            disagreement_term=bound - one_fold,
        )  # fmt: skip
        models[name] = replace(models[name], certificate=certificate, **changes)
    return replace(choice, bounded_models=models)


def test_choice__says_why_one_bound_is_much_larger_and_what_helps(outcome):
    why = "model trained on all labels has the larger bound: 10.0% from errors on "
    help_ = "Labels of 50 such rows would make it smaller: n_queries=50"
    plain = with_bounds(outcome.choice, 0.1, 0.2, report=None)
    assert f"{why}labeled rows, 10.0% from pool rows on which the models d" in str(
        plain
    )
    assert help_ in str(plain)
    assert why not in str(with_bounds(outcome.choice, 0.1, 0.14, report=None))
    assert why not in str(with_bounds(outcome.choice, 0.1, 1.1))  # Because says it
    reported = str(with_bounds(outcome.choice, 0.1, 0.2))  # its plan has a report
    assert why in reported
    assert help_ not in reported
