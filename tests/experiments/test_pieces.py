"""Every experiment runs piece by piece, on small sets in the place of the real ones."""

import numpy as np
import pytest
import xarray as xr

from dsel.errors import StoreMismatchError
from dsel.experiments import EXPERIMENTS, run_experiment
from dsel.experiments.comparison import AGREES, DIFFERS, OPEN
from tests.experiments.small_sets import write_documents, write_set

BY_NAME = {each.name: each for each in EXPERIMENTS}
SMALL = {
    "hardoon2009": ("bupa",),
    "kaariainen2005": ("segment",),
    "kaariainen2005-consistency": ("wave",),
    "loog2015": ("banknote",),
    "madani2004-estimation": ("earn",),
    "madani2004-selection": ("earn",),
    "sugiyama": ("sin",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    write_set(folder, "bupa", n=80, labels=["1", "2"])
    write_set(folder, "segment", n_classes=3)
    write_set(folder, "banknote", n=120)
    write_documents(folder, "reuters10", ["earn", "acq"])
    return folder


def small(name, **changes):
    return BY_NAME[name].scale("small", sets=SMALL[name], **changes)


def test_experiments__have_names_of_their_own():
    assert set(BY_NAME) == set(SMALL)
    assert len(BY_NAME) == len(EXPERIMENTS)


@pytest.mark.parametrize("name", SMALL)
def test_run_experiment__goes_on_from_what_is_kept(name, folder, tmp_path):
    experiment, told = BY_NAME[name], []
    out = tmp_path / "kept"
    first = run_experiment(
        experiment, small(name, repetitions=1), folder=folder, out=out
    )
    both = run_experiment(
        experiment,
        small(name, repetitions=2),
        folder=folder,
        out=out,
        on_piece=lambda: told.append(1),
    )

    assert len(told) == 2
    # Seconds too: the first piece was not measured again.
    xr.testing.assert_identical(first, both.isel(repetition=[0]))
    for each in experiment.compare(both):
        assert each.verdict in (AGREES, DIFFERS, OPEN)
        assert np.isfinite(each.ours)


@pytest.mark.parametrize("name", SMALL)
def test_run_experiment__pieces_do_not_depend_on_how_many_there_are(name, folder):
    one, two = (
        run_experiment(BY_NAME[name], small(name, repetitions=n), folder=folder)
        for n in (1, 2)
    )
    xr.testing.assert_identical(
        one.drop_vars("seconds", errors="ignore"),
        two.isel(repetition=[0]).drop_vars("seconds", errors="ignore"),
    )


def test_run_experiment__another_seed_is_another_experiment(tmp_path):
    run_experiment(BY_NAME["sugiyama"], small("sugiyama", repetitions=1), out=tmp_path)
    with pytest.raises(StoreMismatchError, match="seed: 0 in the store, 1 now"):
        run_experiment(BY_NAME["sugiyama"], small("sugiyama", seed=1), out=tmp_path)


def test_run_experiment__a_set_that_changed_is_measured_again(tmp_path):
    experiment, scale = BY_NAME["loog2015"], small("loog2015", repetitions=1)
    found = []
    for seed in (0, 1):
        write_set(tmp_path, "banknote", n=120, seed=seed)
        out = tmp_path / "kept"
        found.append(run_experiment(experiment, scale, folder=tmp_path, out=out))
    assert (found[0].log_likelihood != found[1].log_likelihood).all()


def test_run_experiment__names_missing_sets_as_they_are_published(tmp_path):
    write_set(tmp_path, "banknote")
    scale = BY_NAME["loog2015"].scale(sets=("banknote", "low", "pen-based"))
    with pytest.raises(FileNotFoundError) as raised:
        run_experiment(BY_NAME["loog2015"], scale, folder=tmp_path)
    message = str(raised.value)
    assert "2 of 3 benchmark sets are missing" in message
    assert "pendigits (UCI: Pen-Based Recognition of Handwritten Digits)" in message
    assert str(tmp_path) not in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": ("bupa", "iris")}, "`sets` must be among .* got 'iris'"),
        ({"sets": ()}, "got none"),
        ({"sets": ("bupa", "bupa")}, "`sets` must differ"),
        ({"repetitions": 11}, "`repetitions` must be 1 to 10, got 11"),
        ({"repetitions": 0}, "`repetitions` must be 1 to 10, got 0"),
    ],
)
def test_scale__must_be_there(changes, message):
    with pytest.raises(ValueError, match=message):
        BY_NAME["hardoon2009"].scale(**changes)


def test_experiments__agree_with_their_papers_on_real_sets(data_dir):
    experiment = BY_NAME["loog2015"]
    scale = experiment.scale(sets=("pen-based",), repetitions=10)
    found = experiment.compare(run_experiment(experiment, scale, folder=data_dir))
    of_set = [each for each in found if each.where == "pen-based"]
    errors = [each for each in of_set if each.source == "Table 4"]
    assert len(errors) == 12
    assert {each.verdict for each in errors} == {AGREES}
