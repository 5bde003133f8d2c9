"""Groups of rows: folds are of whole groups, and one row of each is drawn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel.data.groups import read_row_groups
from dsel.data.identifiers import is_name_of_identifier
from dsel.search.design.cv_schemes import scheme_of_pairs


@pytest.fixture
def keys(rng):
    return rng.permutation(np.repeat(np.arange(30), np.arange(30) % 4 + 1))


def test_draw_rows__draws_one_row_of_each_group(keys):
    groups = read_row_groups(keys, len(keys))
    drawn = groups.draw_rows(seed=3)
    assert sorted(keys[drawn]) == list(range(30))
    assert (drawn == groups.draw_rows(seed=3)).all()
    assert (drawn != groups.draw_rows(seed=4)).any()


def test_draw_rows__draws_each_row_of_a_group_as_often(keys):
    groups = read_row_groups(keys, len(keys))
    n_seeds = 2_000
    counts = sum(groups.draw_rows(seed).astype(int) for seed in range(n_seeds))
    shares = counts / n_seeds
    expected = 1.0 / np.bincount(keys)[keys]
    # Six standard deviations of a share.
    assert np.abs(shares - expected).max() < 6 * 0.5 / np.sqrt(n_seeds)


def test_folds__have_whole_groups_of_equal_numbers(keys):
    groups = read_row_groups(keys, len(keys))
    fold_of = groups.folds(4, seed=1)
    pairs = {*zip(keys.tolist(), fold_of.tolist(), strict=True)}
    assert len(pairs) == 30
    assert sorted(np.bincount([fold for _, fold in pairs])) == [7, 7, 8, 8]


def test_folds__do_not_depend_on_where_rows_stand(keys, rng):
    order = rng.permutation(len(keys))
    one = read_row_groups(keys, len(keys)).folds(4, seed=1)
    other = read_row_groups(keys[order], len(keys)).folds(4, seed=1)
    assert (one[order] == other).all()


def test_row_groups__knows_groups_by_their_keys_alone(keys):
    texts = [f"{key:03}" for key in keys]
    one, other = read_row_groups(keys, len(keys)), read_row_groups(texts, len(keys))
    assert one.token == other.token
    assert one.token != read_row_groups(keys // 2, len(keys)).token
    assert other.by_row.tolist() == texts


@pytest.mark.parametrize("n_folds", [2, 3, 5, 8])
def test_scheme_of_pairs__keeps_groups_out_of_every_training(keys, n_folds):
    groups = read_row_groups(keys, len(keys))
    scheme = scheme_of_pairs(n_folds, len(keys), 0, n_candidates=4, row_groups=groups)
    for split in (*scheme.splits, *scheme.outer_splits[:n_folds]):
        tested = np.concatenate(split.row_parts)
        assert not {*keys[split.train_rows]} & {*keys[tested]}
    # Inner searches read all rows, chosen models one of each group.
    inner = {row for split in scheme.splits for rows in split.row_parts for row in rows}
    assert inner == {*range(len(keys))}
    counted = np.concatenate([split.test_rows for split in scheme.fold_splits])
    assert sorted(keys[counted]) == list(range(30))
    assert scheme.fold_rows.sum() == 30


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("p1", "P 1"),
        ("p1", "\N{FULLWIDTH LATIN SMALL LETTER P}1"),
        ("7", "007"),
        ("7", "7.0"),
    ],
)
def test_caveats__name_keys_that_people_read_as_one(key, other):
    keys = [key, other, "p2", "p3", "p4"] * 3
    [line] = read_row_groups(keys, 15).caveats()
    assert repr(other) in line
    assert repr(key) in line
    alike = [known.replace(other, key) for known in keys]
    assert read_row_groups(alike, 15).caveats() == []


@pytest.mark.parametrize(("name", "has_note"), [("client_id", True), ("age", False)])
@pytest.mark.parametrize("cv", [5, "prefit"])
@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame])
def test_certify__warns_first_of_a_feature_that_may_name_groups(
    rng, name, has_note, cv, as_frame
):
    X = as_frame({"dose": rng.normal(size=200), name: np.repeat(np.arange(50), 4)})
    y = (np.asarray(X["dose"]) > 0).astype(int)
    model = GaussianNB().fit(X, y)
    found = dsel.certify(model, X, y, cv=cv)
    line = f"Warning: {name} has 50 values in 200 rows; if rows of one {name}"
    first = " ".join(str(found).split()).replace("Warning ", "Warning: ")
    assert first.startswith(line) == has_note
    grouped = dsel.certify(model, X, y, cv=cv, groups=np.repeat(np.arange(50), 4))
    assert "belong together" not in str(grouped)


IDENTIFIERS = (
    "patient", "Patients", "USER", "user1", "userid", "customer_id", "customerIDs",
    "KundenNr", "kunden", "Kunde", "session no", "caseno", "Account-Number", "uuid",
)  # fmt: skip
FEATURES = (
    "personality", "personal", "accounting", "casein", "membership", "subjective",
    "clientele", "patient_age", "customer age", "device temperature", "number_of_rooms",
    "IDset", "paid", "user interface", "valid", "",
)  # fmt: skip


@pytest.mark.parametrize("name", IDENTIFIERS + FEATURES)
def test_names__of_identifiers_are_read_by_whole_words(name):
    assert is_name_of_identifier(name) == (name in IDENTIFIERS)
