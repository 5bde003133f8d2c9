"""A column without any value may be of any type: pandas writes it as NaN or NaT."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dsel
from tests.shell import succeed

pytestmark = pytest.mark.contract

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "number": RNG.normal(size=200).round(6),
        "text": RNG.choice(["x", "y"], 200),
        "day": pd.date_range("2023-01-01", periods=200),
    }
)
Y = (X["number"] > 0).astype(int)
GAPS = {
    "NaN": pd.Series([np.nan] * 200),
    "NaT": pd.Series([pd.NaT] * 200),
    "zoned NaT": pd.Series([pd.NaT] * 200, dtype="datetime64[ns, UTC]"),
    "None": pd.Series([None] * 200, dtype=object),
}


@pytest.fixture(scope="module")
def outcome():
    model = make_pipeline(dsel.data.make_encoder(X), LogisticRegression())
    return dsel.certify(model, X, Y, random_state=0, verbose=False)


@pytest.mark.filterwarnings("ignore::dsel.errors.GuaranteeWarning")
@pytest.mark.parametrize("name", [*X.columns])
@pytest.mark.parametrize("gaps", [*GAPS])
def test_predictions__of_a_column_without_values_do_not_depend_on_its_type(
    outcome, name, gaps
):
    rows, as_none = X.assign(**{name: GAPS[gaps]}), X.assign(**{name: GAPS["None"]})
    labels = outcome.predict(as_none)
    assert (outcome.predict(rows) == labels).all()
    assert (outcome.predict_table(rows)["label"] == labels).all()
    assert outcome.monitor(rows, Y, labeled=X).tests


@pytest.mark.parametrize("name", [*X.columns])
@pytest.mark.parametrize("gaps", [*GAPS])
def test_select__takes_a_pool_with_a_column_without_values(tmp_path, name, gaps):
    X.assign(label=Y).to_csv(tmp_path / "labeled.csv", index=False)
    pool = pd.concat([X.assign(number=X["number"] + 1e-3)] * 2, ignore_index=True)
    pool = pool.drop_duplicates().assign(**{name: GAPS[gaps]})
    pool.to_parquet(tmp_path / "pool.parquet", index=False)
    succeed(
        "select", tmp_path / "labeled.csv", "--target", "label", "--pool",
        tmp_path / "pool.parquet", "--model", "logistic", "--grid", "C=1", "--plan",
    )  # fmt: skip


def test_index__of_a_pandas_frame_is_no_column_of_its_pyarrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    named = X.set_index(pd.Index([f"r{n}" for n in range(200)], name="rid"))
    unnamed = X.sample(frac=1, random_state=0).sort_values("number")
    model = make_pipeline(dsel.data.make_encoder(X), LogisticRegression())
    for frame in (named, unnamed):
        table = pyarrow.Table.from_pandas(frame)
        assert len(table.column_names) == 4
        y = Y.reindex(frame.index).to_numpy() if frame is unnamed else Y
        of_table = dsel.certify(model, table, y, random_state=0, verbose=False)
        of_frame = dsel.certify(model, frame, y, random_state=0, verbose=False)
        assert of_table.certificate.bound == of_frame.certificate.bound
        assert (of_table.predict(table) == of_frame.predict(frame)).all()
        assert len(of_table.feature_names_in_) == 3
