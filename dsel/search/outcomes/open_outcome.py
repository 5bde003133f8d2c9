"""Opens the outcome of a run that has ended, from its folder; nothing is fitted."""

from collections.abc import Sequence

from dsel.checks import check_strings
from dsel.results.choice import Choice
from dsel.results.model_files import open_model
from dsel.results.place import PAIRS, Place, check_has_results, read_outcome
from dsel.results.query_files import read_labeled_result
from dsel.results.row_hashes import load_row_hashes
from dsel.results.run_store import open_results, read_dataset, read_query_rows
from dsel.results.run_tables import load_run_tables
from dsel.search.outcomes.deployed_model import InputFormat, read_input_format
from dsel.search.outcomes.outcome import Outcome
from dsel.typing import Options, PathLike


def open_outcome(
    place: PathLike,
    *,
    trusted: Sequence[str] = (),
    storage_options: Options | None = None,
) -> Outcome:
    """Open the stored outcome of a run: counts, choice, certificates, models.

    The estimators and the labeled rows are not needed, and nothing is unpickled. Models
    are opened on first access.

    Parameters
    ----------
    place
        The ``out`` of a search that has ended, a folder or URL.
    trusted
        Full names of types of your own that the models hold, as `open_model` takes
        them.
    storage_options
        Passed to fsspec with a URL.

    Returns
    -------
    Outcome
        As the run returned it. Where queried rows were labeled by ``dsel label``, its
        choice has the bounds that these labels give. It has no labeled rows: `monitor`
        takes them as `labeled`.

    Raises
    ------
    FileNotFoundError
        Where there are no results, or a run that has not ended; from ``models``, where
        no model was kept.
    ValueError
        Where something else is there, or it is damaged; from ``models``, where a model
        holds types that are not trusted.

    See Also
    --------
    dsel.results.open_model : One model alone.
    dsel.open_results : The counts alone.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from dsel import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> with TemporaryDirectory() as folder:
    ...     made = certify(SVC(), X, y, random_state=0, out=folder)
    ...     opened = open_outcome(folder)
    ...     opened.choice == made.choice, opened.predict(X[:3]).tolist()
    (True, [0, 0, 0])
    """
    trusted = check_strings(trusted, "trusted")
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    record = read_outcome(where)
    if record is None or "choice" not in record["said"]:
        raise FileNotFoundError(
            f"`place` {where} holds no search that has ended; run the same command "
            f"again to go on with it, or open what `save_results` kept by "
            f"`open_results`."
        )
    statements = record["said"]
    choice = Choice.from_json(statements["choice"])
    labeled = read_labeled_result(where, Choice)
    tables = load_run_tables(place, storage_options=storage_options)
    results = open_results(place, storage_options=storage_options)
    pairs = None
    if PAIRS in record["datasets"]:
        pairs = read_dataset(where, PAIRS, record["datasets"][PAIRS])
    return Outcome(
        results,
        choice if labeled is None else labeled,
        pairs,
        lambda: {
            name: open_model(
                place, name=name, trusted=trusted, storage_options=storage_options
            )
            for name in choice.bounded_models
        },
        read_query_rows(where),
        read_input_format(
            place, statements, InputFormat(), storage_options=storage_options
        ),
        group_column=statements.get("group_column")
        or (None if tables is None else tables.groups),
        labeled_hashes=load_row_hashes(place, storage_options=storage_options),
        identity=statements.get("identity", {}),  # outcomes before 0.3 have none
    )
