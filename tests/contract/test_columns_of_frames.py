"""What messages about columns of a data frame advise runs as it is printed."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dsel
from dsel.data import make_encoder

N = 240
RNG = np.random.default_rng(0)
AMOUNTS = np.round(RNG.lognormal(6, 1, N), 2)
DAYS = pd.Timestamp("2022-01-03") + pd.to_timedelta(RNG.permutation(700)[:N], "D")
Y = (AMOUNTS > 500).astype(int)
DOLLARS = [f"€{amount:,.2f}" for amount in AMOUNTS]
EUROS = [f"{text[1:].translate(str.maketrans(',.', '.,'))} €" for text in DOLLARS]
CLAIMS = pd.DataFrame(
    {
        "claim_id": [f"C{n:05d}" for n in RNG.permutation(N)],
        "incident": DAYS,
        "reported": DAYS.strftime("%Y-%m-%d"),
        "amount": DOLLARS,
        "plz": RNG.integers(10_000, 99_999, N),
        "branch": RNG.choice(["car", "home", "travel"], N),
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(18, 90, N)),
    }
)
NUMBERS = pd.DataFrame({"plz": CLAIMS.plz, "age": CLAIMS.age.fillna(40)})
KEYS = NUMBERS.assign(customer_no=[f"K{n // 3:05d}" for n in range(N)])
CITIES = [f"city{n // 2}" for n in range(N)]
FRAMES = {
    "claims": CLAIMS,
    "days first": CLAIMS.assign(reported=DAYS.strftime("%d.%m.%Y")),
    "euros": CLAIMS.assign(amount=EUROS),
    "both": CLAIMS.assign(amount=[*EUROS[:100], *DOLLARS[100:]]),
    "two amounts": CLAIMS.assign(**{"paid (net)": EUROS, "class": DOLLARS}),
    "no identifier": CLAIMS.drop(columns="claim_id"),
    "amounts": NUMBERS.assign(amount=DOLLARS),
    "times": NUMBERS.assign(seen=DAYS, lasted=DAYS - DAYS.min()),
    "zones": NUMBERS.assign(seen=DAYS.tz_localize("Europe/Berlin")),
    "periods": NUMBERS.assign(month=DAYS.to_period("M")),
    "cities": NUMBERS.assign(city=CITIES),
    "notes": CLAIMS.assign(note=[f"the red car {n}" for n in range(N - 1)] + [None]),
    "note": NUMBERS[["plz"]].assign(note=[f"the red car {n}" for n in range(N)]),
    "mixed": NUMBERS.assign(size=[1, "large"] * (N // 2)),
    "gaps": NUMBERS.assign(amount=[*DOLLARS[:-3], "unknown", "unknown", None]),
    "errors": NUMBERS.assign(amount=[*DOLLARS[:-12], *(f"see {n}" for n in range(12))]),
    "number": NUMBERS.assign(claim_no=1000 + 7 * RNG.permutation(N), branch="car"),
}  # fmt: skip
PIPELINE = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["plz"]), remainder="passthrough"),
    LogisticRegression(),
)
LEARNERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
    "forest": RandomForestClassifier(3),
    "imputer": make_pipeline(SimpleImputer(), GaussianNB()),
    "passed on": PIPELINE,
}


def refuse(learner, X):
    """Return the message about a frame that a learner does not take."""
    with pytest.raises((TypeError, ValueError)) as caught:
        dsel.plan_search(None, [learner], X, Y, random_state=0)
    return str(caught.value)


def run_advice(text, X, estimator):
    """Run the lines of a message, as they are printed, and return rows and model."""
    names = {"X": X, "estimator": estimator, "dsel": dsel, "pd": pd} | {
        maker.__name__: maker
        for maker in (make_pipeline, make_column_transformer, TfidfVectorizer)
    }
    for line in re.findall(r"write (X = .+?), and the same for the pool", text):
        exec(line, names)
    for call in re.findall(r" (X\.astype\(.+?\))(?:, and|\.$)", text):
        names["X"] = eval(call, names)  # noqa: S307
    made = re.search(r"in front of it, (make_pipeline\(.+, estimator\))", text)
    return names["X"], eval(made[1], names) if made else estimator  # noqa: S307


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("frame", FRAMES)
def test_advice_on_columns_runs_as_printed(frame, learner):
    X, estimator = FRAMES[frame], LEARNERS[learner]
    text = refuse(estimator, X)
    if learner in ("imputer", "passed on"):
        estimator = LogisticRegression(max_iter=1000)
    rows, model = run_advice(text, X, estimator)
    fitted = model.fit(rows[:200], Y[:200])
    assert fitted.predict(rows[200:]).shape == (40,)
    dsel.plan_search(None, [model], rows, Y, random_state=0)
    lost = {*X} - {*rows}
    assert lost <= {"claim_id", "claim_no"}
    for name in lost:
        assert f"{name!r} has " in text


@pytest.mark.parametrize(
    "frame", ["claims", "euros", "both", "two amounts", "gaps", "errors"]
)
def test_advice_makes_the_numbers_that_the_texts_say(frame):
    X = FRAMES[frame]
    rows, _ = run_advice(refuse(LEARNERS["forest"], X), X, None)
    for name in {"amount", "paid (net)", "class"} & {*X}:
        known = rows[name].dropna()
        assert known.tolist() == AMOUNTS[known.index].tolist()
    assert rows.amount.notna().sum() == N - {"gaps": 3, "errors": 12}.get(frame, 0)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"])
def test_advice_makes_the_dates_that_the_texts_say(form):
    X = NUMBERS.assign(seen=DAYS.strftime(form))
    rows, _ = run_advice(refuse(LEARNERS["boosting"], X), X, None)
    assert (rows.seen == DAYS).all()


def test_advice_on_texts_of_two_orders_of_day_and_month_says_which_it_reads():
    X = NUMBERS.assign(seen=[f"{1 + n % 9:02d}/0{1 + n // 30}/2026" for n in range(N)])
    text = refuse(LEARNERS["forest"], X)
    assert "'seen': dayfirst=False if the month comes first in '0" in text
    rows, _ = run_advice(text, X, None)
    assert rows.seen.dt.month.tolist() == [1 + n // 30 for n in range(N)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_texts_that_name_the_owner_of_rows_are_refused_with_groups(learner):
    text = refuse(LEARNERS[learner], KEYS)
    note = "customer_no has 80 values in 240 rows; if rows of one customer_no belong "
    assert f"{note}together, pass groups='customer_no'" in text
    assert text.endswith("or leave it out, X = X.drop(columns=['customer_no']).")
    plan = dsel.plan_search(
        GaussianNB(), {"var_smoothing": [1e-9]}, KEYS, Y, groups="customer_no"
    )
    assert "80 groups" in " ".join(str(plan).split())


def test_category_of_more_values_than_boosting_takes_is_refused():
    X = NUMBERS.assign(city=[f"city{n % 120}" for n in range(N)])
    learner = HistGradientBoostingClassifier(max_iter=3, max_bins=100)
    text = refuse(learner, X.astype({"city": "category"}))
    assert "categories of at most 100 values" in text
    assert "dsel.data.make_encoder(X, categories=['city'])" in text


def test_encoder_is_that_of_the_shell():
    X = CLAIMS[["incident", "plz", "branch", "age"]].assign(empty=None)
    encoder = make_encoder(X)
    names = {name: columns for name, _, columns in encoder.transformers}
    assert names == {
        "numbers": ["plz", "age"],
        "dates": ["incident"],
        "values": ["branch"],
    }
    rows = encoder.fit_transform(X)
    assert rows.shape == (N, 3 + 3)
    assert np.isfinite(rows).all()
    assert make_encoder(X, categories=["plz"]).fit_transform(X).shape[1] == 2 + 3 + len(
        X.plz.unique()
    )
    later = X[:5].assign(branch="boat")
    assert encoder.transform(later)[:, 3:].sum() == 0


def test_encoder_of_polars_encodes_as_that_of_pandas():
    polars = pytest.importorskip("polars")
    X = CLAIMS[["incident", "plz", "branch"]]
    rows = make_encoder(X).fit_transform(X)
    other = polars.from_pandas(X)
    np.testing.assert_allclose(make_encoder(other).fit_transform(other), rows)
    texts = polars.from_pandas(CLAIMS)
    ready, model = run_advice(refuse(LEARNERS["forest"], texts), texts, GaussianNB())
    assert model.fit(ready, Y).predict(ready).shape == (N,)


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        (CLAIMS, {}, r"takes as they are: write X = X\.drop\(columns=\['claim_id'\]"),
        (NUMBERS.to_numpy(), {}, "data frame whose columns have names, got ndarray"),
        (NUMBERS, {"categories": "plz"}, r"pass \['plz'\]"),
        (NUMBERS, {"categories": ["plx"]}, "did you mean 'plz'|plx"),
        (NUMBERS[[]].assign(a=[None] * N), {}, "no column holds a value: a"),
        (None, {}, "`X` must"),
    ],
)
def test_encoder_of_columns_that_it_cannot_take_is_refused(X, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make_encoder(X, **options)
