"""The result of a search: its cube and choice, and the models, with what uses them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, overload

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dsel.argument_words import keep_options
from dsel.cards import render_card
from dsel.checks import explain_unknown
from dsel.data.labeled import LabeledRows
from dsel.errors import GuaranteeWarning, rename_in_errors, warn
from dsel.losses.protocols import Loss
from dsel.names import CHOICE, N_LABELED
from dsel.option_values import MONITOR_LEVEL
from dsel.results import Choice
from dsel.results.model_files import dump_model, warn_that_models_are_lost
from dsel.results.monitoring import MonitorReport
from dsel.results.place import CUBE, PAIRS
from dsel.results.queried_labels import labels_by_row_number
from dsel.results.queries import NO_QUERIES
from dsel.results.renderings import render_lines
from dsel.results.row_hashes import RowHashes, hash_keys, save_row_hashes
from dsel.results.run_store import Store
from dsel.rounded_texts import terminal_width
from dsel.runtime.progress import check_verbose, row_progress
from dsel.search.outcomes.certified_models import CertifiedModels
from dsel.search.outcomes.deployed_model import Deployed, InputFormat
from dsel.search.outcomes.intervals import tolerance_certificates
from dsel.search.outcomes.missing_attributes import missing_attribute
from dsel.search.outcomes.monitor import monitor_table
from dsel.search.outcomes.new_labels import NewLabels
from dsel.search.outcomes.outcome_texts import DRAWN, rows_and_next_steps, shown_rows
from dsel.search.outcomes.predict_table import PredictedTable, predict_table
from dsel.search.outcomes.promises import (
    Promises,
    check_labeled_rows,
    disagreement_limit,
    hashes_of_column,
)
from dsel.search.outcomes.table_rows import WORDS_OF_PYTHON
from dsel.typing import GroupsLike, LabelsLike, Options, PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client

    from dsel.accessor import ResultsPlots


SAVED: Final = "outcome"
"""Kind of a folder that `Outcome.save` has made: no run goes on from it."""
CHECK_ROWS: Final = 200
"""Labeled rows for which a model must predict the same after it was read back."""


@dataclass(frozen=True, repr=False)
class Outcome(CertifiedModels):
    """The result of a search.

    A pickle or a copy of an outcome has the fitted models, but no labeled rows: its
    `monitor` gets these by the argument `labeled`, and knows hashes of the keys of
    their groups. Queried rows of the pool are kept for `query_rows`.
    """

    results: xr.Dataset
    """The cube over the grid, ``fold`` and ``criterion``."""
    choice: Choice
    """The chosen candidate; its print has the error bound."""
    pair_results: xr.Dataset | None = None
    """Counts of inner searches, by pair of folds; None if the search is not nested."""
    make_models: Callable[[], Mapping[str, Any]] = field(default=dict, compare=False)
    pool_rows: pd.DataFrame | None = field(default=None, compare=False)
    """The queried rows with all columns of the pool; see `query_rows`."""
    input_format: InputFormat = field(default_factory=InputFormat, compare=False)
    """Format of the rows for the models."""
    labeled: LabeledRows | None = field(default=None, compare=False)
    """The labeled rows of the plan, with which `monitor` compares new ones."""
    group_keys: NDArray[Any] | None = field(default=None, compare=False)
    """Keys of the labeled groups, where rows come in groups."""
    loss: Loss | None = field(default=None, compare=False)
    """The bounded loss, for `monitor`."""
    group_column: str | None = field(default=None, compare=False)
    """Name of the column that had the keys of the groups, if it is known."""
    labeled_hashes: RowHashes | None = field(default=None, compare=False)
    """Hashes of labeled rows that are not there, by which `monitor` checks others."""
    identity: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What the outcome depends on besides its counts: hashes of rows, estimator and
    options. `save` takes outcomes for equal only if these are."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a pickle, without the labeled rows.

        The functions that fit or open models again hold rows, or the options of a
        store, so they are replaced by the models themselves.
        """
        # Cached properties are left out too: some refer to the labeled rows.
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        make_models: Callable[[], Mapping[str, Any]]
        try:
            make_models = partial(dict, dict(self.models))
        # The counts can still be copied.
        except (OSError, RuntimeError, ValueError) as error:
            make_models = partial(_raise_no_models, str(error))
        return {
            **state,
            "labeled": None,
            "labeled_hashes": self._row_hashes,
            "group_keys": None,
            "make_models": make_models,
        }

    @property
    def _row_hashes(self) -> RowHashes | None:
        """Hashes of the labeled rows and the keys of their groups; None if unknown."""
        if self.labeled is None:
            return self.labeled_hashes
        return RowHashes.of(self.labeled, self.group_keys)

    @property
    def _group_hashes(self) -> NDArray[np.uint64] | None:
        """Hashes of the keys of the labeled groups; None if unknown."""
        if self.group_keys is not None:
            return hash_keys(self.group_keys)
        return None if self.labeled_hashes is None else self.labeled_hashes.groups

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(self, name)

    @property
    def seed(self) -> int | None:
        """The `random_state` of the run, which dsel draws if none is passed.

        None if the results lost their attributes.
        """
        text = str(self.results.attrs.get("seed", ""))
        return int(text) if text.isdecimal() else None

    @property
    def plot(self) -> "ResultsPlots":
        """Figures of the search, as ``results.dsel.plot`` has them.

        A call without arguments draws

        - of a search over a grid `surface`, and over a list of candidates `folds`;
        - of a least-squares search the curves of `dsel.plots.plot_loss_curves`;
        - after `dsel.certify` the first of `report`, `residuals`, `bound_by_labels`
          and `certificates` that can be drawn: for classes `bound_by_labels`, or
          `report` if one was declared, and for numbers `residuals`.

        Its print and completion list the figures of this search. Needs the extra
        ``plots``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> outcome.plot  # doctest: +NORMALIZE_WHITESPACE
        <figures: plot(), plot.surface(), plot.certificates(), plot.folds(),
        plot.bound_by_labels(), plot.timing()>
        >>> outcome.plot.certificates().get_xlabel()
        'Error, %'
        """
        plots: ResultsPlots = self.results.dsel.plot
        return type(plots)(self.results, self.pair_results)

    def query_rows(self) -> pd.DataFrame:
        """Return the pool rows to label, without any prediction.

        They were drawn among the rows on which both models differ. The person
        who labels them must not know the predictions.

        Returns
        -------
        pandas.DataFrame
            All columns of the pool, one row for each query. The index, named
            ``pool_row``, has their positions in the pool, from 0. If the pool is a
            pandas frame with an index of its own, it has the values of that index,
            and is named ``pool_index``: ``y.loc[rows.index]`` are their labels.

        Raises
        ------
        ValueError
            If no queries were planned, or the models differ on no pool row.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.svm import SVC
        >>> X, y = load_digits(return_X_y=True)
        >>> from dsel import certify
        >>> outcome = certify(
        ...     SVC(), X[:200], y[:200], X[200:], n_queries=5, random_state=0)
        >>> rows = outcome.query_rows()
        >>> rows.shape, rows.index.name
        ((5, 64), 'pool_row')
        """
        if self.choice.queries is None:
            raise ValueError(NO_QUERIES)
        if self.pool_rows is None:
            raise ValueError(self.choice.queries.why_no_rows)
        return self.pool_rows

    def certify_with_labels(
        self,
        labels: LabelsLike,
        *,
        partial: bool = False,
        allow_unknown: bool = False,
        corrected: bool = False,
    ) -> "Outcome":
        """Return the outcome with the labels of the queried rows; it is final.

        The bound of the model of all rows becomes the smaller one of two, from the pool
        alone and from these labels: both hold at once. Every queried row counts: one
        without a label, or with a label that is no class of the search, counts as an
        error of the model of all rows. Both are refused unless you allow them.

        Parameters
        ----------
        labels
            A Series by the index of `query_rows`, in any order, in which rows may be
            missing; or an array in the order of `query_rows`, None or NaN for a missing
            label.
        partial
            Whether rows may have no label.
        allow_unknown
            Whether labels may be no class of the search.
        corrected
            Whether these labels take the place of wrong ones that were passed before,
            such as those of other rows. It declares that no result decided which labels
            are right.

        Returns
        -------
        Outcome
            A new one; this one is not changed. ``certificates["all_rows"]`` has the new
            bound, ``choice.queries`` has both.

        Raises
        ------
        ValueError
            If no row was queried, rows were not queried or have two labels, the length
            differs, other labels were passed before, no label is a class, or labels are
            missing or unknown that were not allowed.
        TypeError
            If labels are of another type than those of the search.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.model_selection import train_test_split
        >>> from dsel import plan_search
        >>> X, pool, y, known = train_test_split(
        ...     *load_digits(return_X_y=True), train_size=300, random_state=0)
        >>> plan = plan_search(
        ...     LogisticRegression(max_iter=50), {"C": [1e-4, 1e-3]}, X, y, pool,
        ...     n_queries=50, random_state=0)
        >>> outcome = plan.run()
        >>> rows = outcome.query_rows()  # to be labeled; here the labels are known
        >>> labeled = outcome.certify_with_labels(known[rows.index])
        >>> before, after = (
        ...     round(result.certificates["all_rows"].bound, 3)
        ...     for result in (outcome, labeled))
        >>> before > after
        True
        """
        queries = self.choice.queries
        rows = () if queries is None else queries.rows
        labels = labels_by_row_number(labels, self.pool_rows, rows)
        choice = self.choice.certify_with_labels(
            labels, partial=partial, allow_unknown=allow_unknown, corrected=corrected
        )
        results = self.results.assign_attrs({CHOICE: choice.to_json()})
        return replace(self, results=results, choice=choice)

    @overload
    def predict_table(
        self,
        source: PoolLike,
        *,
        out: None = None,
        deploy: str | None = None,
        id: Sequence[str] | None = None,
        client: "Client | None" = None,
        verbose: bool | None = None,
    ) -> pd.DataFrame: ...

    @overload
    def predict_table(
        self,
        source: PoolLike,
        *,
        out: PathLike,
        deploy: str | None = None,
        id: Sequence[str] | None = None,
        client: "Client | None" = None,
        verbose: bool | None = None,
    ) -> PredictedTable: ...

    @explain_unknown()
    def predict_table(
        self,
        source: PoolLike,
        *,
        out: PathLike | None = None,
        deploy: str | None = None,
        id: Sequence[str] | None = None,
        client: "Client | None" = None,
        verbose: bool | None = None,
    ) -> PredictedTable | pd.DataFrame:
        """Predict every row of a table, as a data frame or, of any size, as a file.

        Parameters
        ----------
        source
            The path of a table in any format of `read_table`, or anything that
            `open_pool` takes. Columns are found by their names, those that the model
            does not use are left out, and texts are converted as in the labeled rows.
        out
            A new file that ends in ``.parquet``, ``.csv`` or ``.zarr``. It gets its
            name when it has all rows; missing folders are made. None returns the
            predictions in memory.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.
        id
            Columns of the table that are copied to the predictions. None takes those of
            `dsel select --id`; without any, ``row`` has the numbers of the rows, and a
            file has the index of a pandas frame in their place, if it is its own.
        client
            Dask client; None is the current one, else this machine.
        verbose
            Whether progress is shown on standard error; see `Plan.run`.

        Returns
        -------
        pandas.DataFrame or PredictedTable
            The predictions, with the index of a pandas table; of a file, its
            description. The columns are ``label``, and ``probability_`` of each class
            if the model has probabilities, in CSV with the digits of float32 (labels
            are decided before that); for a regressor ``prediction``, ``lower`` and
            ``upper``, the ends of `predict_interval`, or ``value`` if no tolerance is
            certified.

        Raises
        ------
        FileExistsError
            If something is at `out`.
        TypeError
            If a column holds something else than that of the labeled rows.
        ValueError
            If a column is missing, a value is of another kind than its column (the
            message has column, row and value), or `out` has another ending.

        Examples
        --------
        >>> import pandas as pd
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> outcome.predict_table(X.tail(2))
             row  label
        148    0      2
        149    1      2
        >>> with TemporaryDirectory() as folder:
        ...     made = outcome.predict_table(X, out=f"{folder}/p.csv")
        ...     pd.read_csv(made.path).columns.to_list()
        ['row', 'label']
        """
        name = self._name_model(deploy)
        deployed = Deployed.of(
            name,
            self.models[name],
            tolerance_certificates(self.choice),
            self.input_format,
            self._load_model,
        )
        deployed = replace(
            deployed, group_hashes=self._group_hashes, group_column=self.group_column
        )
        progress = row_progress(check_verbose(verbose), "Predicting")
        with keep_options(), rename_in_errors(WORDS_OF_PYTHON), progress as on_progress:
            predictions = predict_table(
                deployed, source, out, id=id, client=client, on_progress=on_progress
            )
        notes = predictions.notes
        if predictions.frame is not None:  # a file's description prints it
            notes = [*filter(None, [predictions.note_on_bound]), *notes]
        for line in notes:
            warn(f"{line[0].upper()}{line[1:]}.", GuaranteeWarning)
        return predictions if predictions.frame is None else predictions.frame

    def monitor(
        self,
        source: PoolLike,
        y: LabelsLike | None = None,
        *,
        target: str | LabelsLike | None = None,
        labeled: RowsLike | None = None,
        groups: GroupsLike = None,
        level: float = MONITOR_LEVEL,
        client: "Client | None" = None,
        verbose: bool | None = None,
    ) -> MonitorReport:
        """Test on the rows of a new table whether the certified promises still hold.

        There are three kinds of tests, each at its own level: the new rows against the
        labeled ones, with columns that differ alone; the disagreement of both
        deployed models against the limit from the pool; and, if new rows have labels,
        their errors against the bounds. A promise that is not refuted is not proved. If
        one is refuted, it held for other rows, or is one of the few that fail: label
        new rows and search again.

        Parameters
        ----------
        source
            A table of any size, as for `predict_table`.
        y
            The labels of all rows in order. Rows without one are left out of the tests
            of errors; a label that is no class is an error of every model.
        target
            Column of `source` with the labels, instead of `y`.
        labeled
            The labeled rows of the search, its `X`, shape (n_labeled, n_columns), for
            an outcome without them: one that `open_outcome` or a pickle has opened. If
            it has the column of the groups, too, their keys are read where the outcome
            does not know them, as one that an older version has stored.
        groups
            Of a search with groups: the column of `source` with the key of each row's
            group, or the keys of all rows in order. Then one row with a label is drawn
            of each group that was not labeled, and the errors on these are tested. None
            takes the column that had them in the labeled rows, if `source` has it.
        level
            Probability that a test refutes a promise that holds, in [0.001, 0.5].
        client
            Dask client; None is the current one, else this machine.
        verbose
            Whether progress is shown on standard error; see `Plan.run`.

        Returns
        -------
        MonitorReport
            Its print has one line for each test; `is_refuted` is true if any refutes.

        Raises
        ------
        TypeError
            If a column holds something else than that of the labeled rows.
        ValueError
            If a column is missing, no label is a class of the search, `labeled` holds
            other rows than the search had, or `level` is outside of its range.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> from dsel import plan_search
        >>> X, y = make_classification(3000, random_state=0)
        >>> plan = plan_search(
        ...     LogisticRegression(), {"C": [0.1, 1.0]}, X[:500], y[:500], X[500:2000],
        ...     random_state=0)
        >>> outcome = plan.run()
        >>> outcome.monitor(X[2000:], y[2000:]).is_refuted
        False
        >>> print(outcome.monitor(X[2000:] + 1.0).tests[0].result)
        refuted
        """
        labels = NewLabels.of(y, target, groups)
        known, group_hashes = self.labeled, self._group_hashes
        if labeled is not None:
            # A run of an older version stored no hashes of keys.
            if group_hashes is None and self.group_column is not None:
                group_hashes = hashes_of_column(labeled, self.group_column)
            passed = check_labeled_rows(
                labeled,
                self.input_format,
                int(self.results[N_LABELED]),
                self._row_hashes,
            )
            known = passed if known is None else known
        promises = Promises(
            self.models,
            self.choice,
            self.input_format,
            disagreement_limit(self.results, self.choice),
            known,
            "the outcome has no labeled rows; pass the X of the search as `labeled`",
            group_hashes,
            self.loss,
            group_column=self.group_column,
        )
        progress = row_progress(check_verbose(verbose), "Testing new rows")
        with keep_options(), rename_in_errors(WORDS_OF_PYTHON), progress as on_progress:
            return monitor_table(
                promises,
                source,
                labels,
                level=level,
                client=client,
                on_progress=on_progress,
            )

    @explain_unknown()
    def save(self, out: PathLike, *, storage_options: Options | None = None) -> None:
        """Save counts, choice, certificates and models, for `dsel.open_outcome`.

        A run with an `out` of its own is saved already, and can be resumed after an
        interruption, too.

        Parameters
        ----------
        out
            Folder or fsspec URL that is empty, or holds this outcome.
        storage_options
            Passed to fsspec with a URL.

        Raises
        ------
        NotADirectoryError
            If `out` is a file.
        ValueError
            If `out` holds another outcome, the results of a run, or something else.
            Outcomes of other
            rows, another estimator or other options are others, even if all their
            counts are equal.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import certify, open_outcome
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = certify(SVC(), X, y, random_state=0)
        >>> with TemporaryDirectory() as folder:
        ...     outcome.save(folder)
        ...     opened = open_outcome(folder)
        ...     opened.choice == outcome.choice, opened.predict(X[:3]).tolist()
        (True, [0, 0, 0])
        """
        identity = {**self.identity, "outcome": self.choice.to_json()}
        with Store(
            out, kind=SAVED, identity=identity, storage_options=storage_options
        ) as store:
            if store.outcome is None:  # else it is there already
                write_outcome(self, store)

    def __str__(self) -> str:
        return render_lines(shown_rows(self.choice), terminal_width())

    # A prompt and a notebook also show next steps; `print` shows the result only.
    def __repr__(self) -> str:
        return render_lines(rows_and_next_steps(self.choice), terminal_width())

    def _repr_html_(self) -> str:
        figure = self.results.dsel.bounds_svg()
        return render_card(rows_and_next_steps(self.choice), figure, drawn=DRAWN)


def write_outcome(
    outcome: Outcome, store: Store, why_unstored: str = ""
) -> dict[str, Any]:
    """Write an outcome to a store, make it final, and return the final record.

    If another run was first, this is its record. `why_unstored` is the reason why
    models cannot be stored, if the user was warned of it already.
    """
    # The outcome lists these files, and therefore it is written after them.
    store.save(CUBE, outcome.results)
    if outcome.pair_results is not None:
        store.save(PAIRS, outcome.pair_results)
    if outcome.pool_rows is not None:
        store.save_rows(outcome.pool_rows)
    if (row_hashes := outcome._row_hashes) is not None:
        save_row_hashes(store.place, row_hashes)
    known = outcome.labeled
    rows = None if known is None else known.take(slice(CHECK_ROWS))
    reasons = {}
    for name, model in outcome.models.items():
        try:
            store.save_model(name, dump_model(model, rows))
        except ValueError as error:
            reasons[name] = str(error)
    if reasons and not why_unstored:
        warn_that_models_are_lost(next(iter(reasons.values())), store.place)
    return store.save_outcome(
        {
            "choice": outcome.choice.to_json(),
            "deploy": outcome.choice.deploy,
            "not_kept": reasons,
            "input_format": outcome.input_format.to_record(),
            "identity": dict(outcome.identity),
            "group_column": outcome.group_column,
        }
    )


def _raise_no_models(reason: str) -> Never:
    """Raise the error with which the models of a pickled outcome could not be had."""
    raise RuntimeError(f"the pickled outcome has no models: {reason}")
