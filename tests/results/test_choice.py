"""A choice has one record for each deployed model; the rest are views of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.results import Choice
from dsel.results.choice_parts import FoldForecast
from dsel.results.choice_texts import next_steps, origins, plan_call
from dsel.results.queries import QueryForecast

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
        assert each.candidate == outcome.choice.bounded_models[name].candidate
        assert each.params == outcome.choice.bounded_models[name].params
        assert each.fold == outcome.certificates[name].fold


def test_useless_bound__advises_the_report_that_there_is_not(outcome):
    useless = replace(
        outcome.choice, constant="1", constant_loss=0.0, fold_forecast=None
    )
    test = (
        "Next      for other labeled rows (a second search of these proves nothing): "
        "baseline='largest class' tests whether the model is better"
    )
    assert f"{test}\n" in f"{useless}\n"
    models = {n: replace(m, report=None) for n, m in useless.bounded_models.items()}
    alone = replace(useless, bounded_models=models)
    assert f"{test}; report=True has the recall of each class" in str(alone)
    # The same rows may have a smaller bound of another model: they are not too few.
    loss = (alone.certificate.estimate + alone.certificate.bound) / 2
    between = str(replace(alone, constant_loss=loss))
    assert "ot proved better than always predicting 1 (" in between
    assert "too few" not in between


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
    assert read.bounded_models["all_rows"].params == outcome.choice.params


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
    line = (
        "4 of 5 searches without a fold chose n_neighbors=77, and the deployed model "
        "has other parameters; its bound holds nevertheless"
    )
    way_out = "and deploy='all_rows' has these parameters"
    changed = replace(choice, fold_params=params)
    assert (line in notes_of(changed)) == is_told
    assert way_out not in notes_of(changed)
    assert line not in str(changed)  # it changes neither a number nor a step
    models = dict(choice.bounded_models)
    models["all_rows"] = replace(models["all_rows"], params=others)
    assert (way_out in notes_of(replace(changed, bounded_models=models))) == is_told
    assert "without a fold chose" not in notes_of(replace(choice, fold_params=()))


def notes_of(choice):
    """Return the texts of all caveats of a choice, those without a line included."""
    return "\n".join(caveat.text for caveat in choice.all_caveats)


def with_bounds(choice, one_fold, all_rows, *, estimate=0.05, **changes):
    """Return the choice with other bounds, that of all rows in two parts."""
    models = dict(choice.bounded_models)
    for name, bound in (("one_fold", one_fold), ("all_rows", all_rows)):
        certificate = replace(
            models[name].certificate, unclipped=bound, label_term=one_fold,
            disagreement_term=bound - one_fold, estimate=estimate,
        )  # fmt: skip
        models[name] = replace(models[name], certificate=certificate, **changes)
    return replace(choice, bounded_models=models, fold_forecast=None)


def test_choice__says_why_one_bound_is_much_larger(outcome):
    why = "model trained on all labels has the larger bound: 10.0% from errors of the "
    larger = with_bounds(outcome.choice, 0.1, 0.2)
    rest = "tested models on labeled rows, 10.0% from pool rows on which the models d"
    assert f"{why}{rest}" in notes_of(larger)
    line = " ".join(str(larger).splitlines()[1:3])
    assert f"model trained on all labels: 10.0% from errors of the {rest}" in line
    assert any(rest in text for _, text in origins(larger))
    assert why not in notes_of(with_bounds(outcome.choice, 0.1, 0.14))
    # The line in place of the bound says it.
    assert why not in notes_of(with_bounds(outcome.choice, 0.1, 1.1))


def test_choice__advises_queries_where_they_are_expected_to_help(outcome):
    plain = with_bounds(outcome.choice, 0.1, 0.2, report=None)
    advice = (
        "Next      for other labeled rows (a second search of these proves nothing): "
        "n_queries=50 and labels of 50 pool rows give the model trained on all labels "
        "a bound of about 15.0% in place of 20.0%, the other one 10.4% in place of "
        "10.0%"
    )
    assert advice in str(replace(plain, forecast=QueryForecast(50, 0.104, 0.15)))
    # An estimate is rounded to the nearest, and limits are rounded up.
    advised = str(replace(plain, forecast=QueryForecast(50, 0.10401, 0.15041)))
    assert "of about 15.0% in place of 20.0%, the other one 10.5%" in " ".join(
        advised.split()
    )
    assert "n_queries" not in str(plain)  # nothing is known
    for few in (QueryForecast(50, 0.104, 0.1999), QueryForecast(3, 0.104, 0.15)):
        assert "n_queries" not in str(replace(plain, forecast=few))
    near = with_bounds(outcome.choice, 0.1, 0.14, report=None)
    near = replace(near, forecast=QueryForecast(50, 0.104, 0.12), expected_holdout=0.16)
    assert "n_queries" not in str(near)
    assert "n_queries=50 and labels" in str(replace(near, expected_holdout=0.12))


def test_choice__says_what_would_beat_a_hold_out_set(outcome):
    large = with_bounds(outcome.choice, 0.2, 0.25, report=None)
    assert next_steps(large) == []
    smaller = replace(large, expected_holdout=0.15)
    assert next_steps(smaller) == []  # nothing is known
    for forecast, text in [
        (FoldForecast(3, 0.14, False), "the same call with cv=3: a first bound of "
         "about 14.0% on average, if models trained on 67% of the labels err as often"),
        (FoldForecast(5, 0.14, True), "the same search: 14.0% on average, so this run "
         "had bad luck"),
    ]:  # fmt: skip
        better = replace(smaller, fold_forecast=forecast)
        [(name, advice)] = next_steps(better)
        assert (name, text in advice) == ("Next", True)
        line = "about 15.0% on average, but one that is taken now proves nothing"
        assert line in str(better)
        assert next_steps(replace(large, fold_forecast=forecast)) == []
    for second in (0.14, 0.16):  # queries help only if they beat the hold-out set
        queried = replace(smaller, forecast=QueryForecast(50, 0.21, second))
        assert len(next_steps(queried)) == (second < 0.15)


def test_run__expects_few_folds_to_beat_a_hold_out_set_where_they_do():
    X, y = np.arange(400.0)[:, None] % 7, np.arange(400) % 10 == 0
    grid = {"strategy": ["most_frequent"]}
    plan = dsel.plan_search(DummyClassifier(), grid, X, y, cv=20, random_state=0)
    made = plan.run().choice
    assert made.expected_holdout < made.bound
    planned = dsel.plan_bound(400, n_candidates=1, error=0.1, cv=[3, 10, 20])
    limits = planned.bound.sel(certificate="one_fold").values
    assert made.fold_forecast.n_folds == 3
    assert made.fold_forecast.bound == pytest.approx(limits[0]) == limits.min()
    advice = "proves nothing): the same call with cv=3: a first bound of about"
    assert advice in " ".join(str(made).split())


def test_holdout_set_with_the_smallest_bound__is_no_way_out_now(outcome):
    bounds = outcome.certificates
    middle = (bounds["one_fold"].bound + bounds["all_rows"].bound) / 2
    for value in (middle, 0.0, bounds["one_fold"].bound, 1.0, float("nan")):
        text = str(replace(outcome.choice, expected_holdout=value))
        assert ("taken now proves nothing" in text) == (value == 0.0)


def test_choice__prints_the_call_that_plans_more_labels(outcome):
    large = with_bounds(outcome.choice, 0.6, 0.7, estimate=0.4)
    call = plan_call(large)
    end = f"\nNext      to see how many labels a bound of 50% needs, run {call}"
    end += " (its delta is what the report leaves)"  # of five numbers
    assert f"{end}\n" in f"{large}\n"
    assert "the bound says little" not in str(large)
    numbers = outcome.certificate.n_labeled, outcome.certificate.n_unlabeled
    assert call == (
        f"dsel.plan_bound({numbers[0]}, {numbers[1]}, n_candidates="
        f"{outcome.choice.n_candidates}, error=0.4, wanted=0.5, disagreement="
        f"{outcome.choice.five_fold_disagreement:.3g}, delta=0.01)"
    )
    assert not next_steps(with_bounds(outcome.choice, 0.1, 0.2))
