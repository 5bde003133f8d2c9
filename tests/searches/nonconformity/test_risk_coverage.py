import pytest

from dsel.searches.nonconformity.risk_coverage import risk_coverage


def test_risk_coverage__equals_counting_at_every_cut(rng):
    values, wrong = rng.integers(0, 9, 200) / 10, rng.uniform(size=200) < 0.3

    curve = risk_coverage(values, wrong)

    for value, coverage, risk in zip(
        curve.values, curve.coverage, curve.risk, strict=True
    ):
        assert coverage == (values <= value).mean()
        assert risk == pytest.approx(wrong[values <= value].mean())
    assert curve.risk[-1] == pytest.approx(wrong.mean())


def test_risk_coverage__refuses_lengths_that_differ():
    with pytest.raises(ValueError, match="`is_wrong` must hold one answer"):
        risk_coverage([0.1, 0.2], [True])
