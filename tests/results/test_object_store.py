"""Stores in S3-compatible storage, on a server of our own on loopback."""

import pytest

from dsel.errors import StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.store import open_store
from tests.object_store import BUCKET, SECRET


def open_plan(place, storage_options, cv="5"):
    plan = {"cv": cv}
    return open_store(
        f"{BUCKET}/{place}", kind="search", plan=plan, storage_options=storage_options
    )


def test_save_results__round_trip_is_exact(cube, storage_options):
    where = {"place": f"{BUCKET}/cube", "storage_options": storage_options}
    for n in range(3):
        save_results(cube.assign_attrs(n=n), **where)
        assert open_results(**where).identical(cube.assign_attrs(n=n))


def test_store__of_two_writers_loses_nothing(cube, storage_options):
    first, second = (open_plan("shared", storage_options) for _ in range(2))
    for number, store in enumerate((first, second)):
        store.append(str(number), {"n": number})
        store.save("cube", cube.assign_attrs(run=number))
        store.save_model("one_fold", {"by": number})
    assert second.save_outcome({"by": 1}) == {"by": 1}
    assert first.save_outcome({"by": 0}) == {"by": 1}
    with pytest.raises(StoreMismatchError, match="cv is 5 there and 7 now"):
        open_plan("shared", storage_options, cv="7")
    again = open_plan("shared", storage_options)
    assert again.records == {"0": {"n": 0}, "1": {"n": 1}}
    assert again.dataset("cube").run == 1
    assert again.load_model("one_fold") == {"by": 1}
    assert SECRET not in str(again.dataset("cube").attrs)


def test_outcome__is_created_once(storage_options):
    store = open_plan("once", storage_options)
    assert store.place.create("outcome.json", b"first") == b"first"
    assert store.place.create("outcome.json", b"second") == b"first"
    assert store.place.read("outcome.json") == b"first"


def test_open_store__makes_a_lost_head_anew(storage_options):
    with open_plan("lost", storage_options) as store:
        store.append("a", {"n": 1})
    store.place.remove("dsel.json")
    assert open_plan("lost", storage_options).records == {"a": {"n": 1}}
    assert store.place.read("dsel.json")


def test_open_store__names_a_bucket_that_is_not_there(storage_options):
    with pytest.raises(OSError, match=r"cannot write to `out` s3://no-such"):
        open_store(
            "s3://no-such-bucket/run", kind="search", plan={},
            storage_options=storage_options,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:Unclosed|unclosed:ResourceWarning")
def test_open_results__says_that_nobody_answers(storage_options):
    nobody = {**storage_options, "endpoint_url": "http://127.0.0.1:9"}
    nobody["config_kwargs"] = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
    with pytest.raises(ConnectionError, match=r"dsel/cube cannot be reached"):
        open_results(f"{BUCKET}/cube", storage_options=nobody)
    with pytest.raises(ConnectionError, match=r"dsel/cube cannot be reached"):
        open_plan("cube", nobody)
