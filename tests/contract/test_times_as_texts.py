"""Texts in place of times are refused, in memory and from a file alike."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

import dsel

RNG = np.random.default_rng(0)
DAYS = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, 200), unit="D")
X = pd.DataFrame({"a": RNG.normal(size=200), "day": DAYS})
Y = (X["day"] > pd.Timestamp("2024-06-01")).astype(int)


def test_predict__refuses_texts_for_times_where_an_encoder_would_not(tmp_path):
    # Such an encoder takes each text as an unknown value.
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, ["day"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=2, random_state=0))
    out = tmp_path / "out"
    made = dsel.certify(model, X, Y, cv=2, random_state=0, out=out, n_jobs=1)
    texts = X.assign(day=X["day"].dt.strftime("%Y-%m-%d"))
    for outcome in (made, dsel.open_outcome(out)):
        with pytest.raises(TypeError, match=r"`X` must hold dates .* got text"):
            outcome.predict(texts)
        back = texts.assign(day=pd.to_datetime(texts["day"]))
        assert (outcome.predict(back) == outcome.predict(X)).all()
