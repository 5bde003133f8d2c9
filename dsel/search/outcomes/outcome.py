"""The result of a search: its cube, choice, certificates and models."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, overload

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from dsel.arrays import ArrayLike, Floats
from dsel.cards import ShownRow, render_card
from dsel.checks import attribute_error, check_choice, explain_unknown
from dsel.data.labeled import LabeledRows
from dsel.data.lazy import apply_by_block, score_predictions
from dsel.errors import DselWarning, GuaranteeWarning, Words, rename_in_errors, warn
from dsel.families.predictions import flat_predictions
from dsel.losses.protocols import Loss
from dsel.names import CHOICE, N_LABELED
from dsel.old_names import names_of
from dsel.option_values import MONITOR_LEVEL
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.certificate_texts import ESTIMATE
from dsel.results.choice import NAMES_IN_OUTCOME
from dsel.results.choice_parts import ByModel
from dsel.results.choice_texts import COMPARED, NEXT
from dsel.results.class_report import CertifiedReport
from dsel.results.model_files import dump_model
from dsel.results.monitoring import MonitorReport
from dsel.results.place import CUBE, PAIRS
from dsel.results.queried_labels import labels_by_row_number
from dsel.results.queries import NO_QUERIES
from dsel.results.renderings import render_lines
from dsel.results.row_hashes import RowHashes, hash_keys, save_row_hashes
from dsel.results.run_store import Store
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue
from dsel.rounded_texts import terminal_width
from dsel.runtime.progress import check_verbose, row_progress
from dsel.search.outcomes.deployed_model import Deployed, InputFormat
from dsel.search.outcomes.intervals import predict_interval, tolerance_certificates
from dsel.search.outcomes.monitor import monitor_table
from dsel.search.outcomes.new_labels import NewLabels, check_new_labels
from dsel.search.outcomes.predict_table import PredictedTable, predict_table
from dsel.search.outcomes.promises import (
    Promises,
    check_labeled_rows,
    disagreement_limit,
    hashes_of_column,
)
from dsel.typing import GroupsLike, LabelsLike, Options, PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client

    from dsel.accessor import ResultsPlots


WAYS: Final[Mapping[str, str]] = {
    "report": "dsel.write_report(outcome, path) writes a page, and `certified_report` "
    "has the limits of each class",
    "summary": "print(outcome) has it",
}
"""Ways to what users look for under these names."""
SAVED: Final = "outcome"
"""Kind of a folder that `Outcome.save` has made: no run goes on from it."""
OF_MODEL: Final = (
    "classes_",
    "decision_function",
    "predict_log_proba",
    "predict_proba",
)
"""Attributes that an outcome has if its deployed model has them."""
OF_ROWS: Final[Mapping[str, str]] = {
    "feature_names_in_": "the labeled rows had no names of columns",
    "n_features_in_": "it is opened, and its folder has no number of columns",
}
"""Attributes that an outcome has if its labeled rows have them, with why not."""
FITTED_PARTS: Final = ("best_estimator_", "estimator_", "regressor_", "model_")
"""Attributes in which searches, wrappers and functions keep the model that they fit."""
WORDS_OF_PYTHON: Final[Words] = {
    "; build the pool from its text file, `dsel pool build --like` the labeled table": (
        "; write texts there, too, such as by astype(str)"
    ),
    ", or leave the columns out by --drop": "",
    "name its encoding by --encoding": (
        "read it by pandas.read_csv(..., dtype=str, encoding=...) with its encoding"
    ),
    "name it by --sep": "read it by pandas.read_csv(..., dtype=str, sep=...)",
    "write --sep ": "read it by pandas.read_csv(..., dtype=str) with sep=",
    ", and --sep , if not": "",
    ", leave --sep out": ", read it by pandas.read_csv(..., dtype=str) with this sep",
}
"""What messages about a table name in a shell, and what a caller writes in Python."""
DRAWN: Final = (ESTIMATE, COMPARED)
"""Names of rows of texts that the figure of the bounds has."""
CHECK_ROWS: Final = 200
"""Labeled rows for which a model must predict the same after it was read back."""


def code_of_attribute(model: Any, name: str, path: str) -> str:
    """Return the code that reads an attribute of a fitted model, or of a part of it.

    `path` is the code of the model. "" if no part has the attribute.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(Ridge()).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> code_of_attribute(model, "coef_", "model")
    "model['ridge'].coef_"
    """
    if hasattr(model, name):
        return f"{path}.{name}"
    parts = {f"{path}.{part}": getattr(model, part, None) for part in FITTED_PARTS}
    if isinstance(model, Pipeline):
        steps = reversed(model.steps)
        parts = {f"{path}[{step!r}]": part for step, part in steps}
    found = (code_of_attribute(part, name, way) for way, part in parts.items() if part)
    return next(filter(None, found), "")


def _model_has(method: str) -> Callable[["Outcome"], bool]:
    """Return a check whether the deployed model has a method, as scikit-learn's."""
    return lambda outcome: callable(getattr(outcome.model, method))


@dataclass(frozen=True, repr=False)
class Outcome:
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
            "labeled_hashes": self._labeled_hashes,
            "group_keys": None,
            "make_models": make_models,
        }

    @property
    def _labeled_hashes(self) -> RowHashes | None:
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
        end = ""
        if name in OF_MODEL:  # the model lacks it
            end = f"; {type(self.model).__name__} has none."
        elif name in OF_ROWS:
            raise AttributeError(
                f"an outcome has no attribute {name!r}: {OF_ROWS[name]}."
            )
        elif path := self._path_in_model(name):
            end = f"; it is `{path}` here."
        elif name in NAMES_IN_OUTCOME:
            end = f"; it is `{NAMES_IN_OUTCOME[name].removeprefix('outcome.')}` here."
        elif name in WAYS:
            end = f"; {WAYS[name]}."
        elif not name.startswith("_") and name in names_of(Choice):
            end = f"; it is `choice.{name}` here."
        raise attribute_error("an outcome", name, names_of(type(self)), end)

    def _path_in_model(self, name: str) -> str:
        """Return the code that reads what `fit` has set in the model; "" if it is not.

        A search that was certified as it is has its own `cv_results_`.
        """
        if not name.endswith("_") or name.startswith("_"):
            return ""
        with suppress(Exception):  # a stored model may need types that are not trusted
            return code_of_attribute(self.model, name, "model")
        return ""

    @cached_property
    def bounded_models(self) -> Mapping[str, BoundedModel]:
        """The models of the search, ``one_fold`` and ``all_rows``, with their reports.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> made = outcome.bounded_models["one_fold"]
        >>> made.certificate.certified, made.params, made.model.C
        (True, {'C': 10}, 10)
        """
        return ByModel(
            (name, replace(model, load_model=partial(self._load_model, name)))
            for name, model in self.choice.bounded_models.items()
        )

    def _load_model(self, name: str) -> Any:
        return self.models[name]

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """The bound of each model: ``one_fold``, ``all_rows``."""
        return self.choice.certificates

    @property
    def certificate(self) -> Certificate:
        """The certificate of the deployed model."""
        return self.choice.certificate

    @property
    def bound(self) -> float:
        """The bound of the deployed model: ``certificate.bound``, NaN without one."""
        return self.certificate.bound

    @property
    def best_params_(self) -> Options:
        """Parameters of the deployed model, as scikit-learn's searches name them."""
        return self.choice.params

    @property
    def best_estimator_(self) -> Any:
        """The deployed model, `model`, as scikit-learn's searches name it."""
        return self.model

    @property
    def baseline(self) -> BaselineComparison | None:
        """Comparison of the deployed model with the baseline; None without one."""
        return self.choice.baseline

    @property
    def seed(self) -> int | None:
        """The `random_state` of the run, which dsel draws if none is passed.

        None if the results lost their attributes.
        """
        text = str(self.results.attrs.get("seed", ""))
        return int(text) if text.isdecimal() else None

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """The certified fitted models, by name.

        If the run had ended before, without stored models, they are fitted and counted
        again.

        Raises
        ------
        RuntimeError
            If a model that was fitted again differs from the counted one.
        """
        return ByModel(self.make_models())

    @property
    def model(self) -> Any:
        """The deployed model."""
        return self.models[self.choice.deploy]

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

    def certified_report(
        self, deploy: str | None = None
    ) -> CertifiedReport | ToleranceReport:
        """Return recall and precision of every class with limits, and the error.

        For regressors return tolerances, the distances that fractions of the
        predictions keep.

        Parameters
        ----------
        deploy
            ``one_fold`` or ``all_rows``; by default the deployed model.

        Returns
        -------
        CertifiedReport or ToleranceReport
            Printed, it is a table; `to_dataframe` has its numbers. All limits hold at
            once, and with the bounds of the search.

        Raises
        ------
        ValueError
            If the plan had no ``report``: it must be declared before the run.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> from dsel import certify
        >>> outcome = certify(SVC(), X, y, report=True, random_state=0)
        >>> outcome.certified_report().classes
        (0, 1, 2)
        """
        return self.choice.report(deploy)

    def report_by_value(self, deploy: str | None = None) -> ReportByValue:
        """Return the error for each value of the column that the plan reports by.

        Parameters
        ----------
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ReportByValue
            Printed, it is a table; `to_dataframe` has ``error``, ``error_at_most`` and
            ``rows`` by value. All limits hold at once.

        Raises
        ------
        ValueError
            If the plan had no ``report_by``: it must be declared before the run.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_digits(return_X_y=True, as_frame=True)
        >>> X["ward"] = [1, 2, 2] * 599
        >>> outcome = plan_search(
        ...     SVC(), {"C": [1]}, X, y, report_by="ward", random_state=0).run()
        >>> outcome.report_by_value().to_dataframe().error_at_most.round(2).tolist()
        [0.09, 0.04]
        """
        return self.choice.report_by_value(deploy)

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
        name = check_choice(
            deploy or self.choice.deploy, "deploy", tuple(self.certificates)
        )
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
        with rename_in_errors(WORDS_OF_PYTHON), progress as on_progress:
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
        if target is not None and y is not None:
            raise ValueError(
                "`target` names a column of labels, and `y` holds labels, too; leave "
                "one of them out."
            )
        if target is not None and not isinstance(target, str):
            target, y = None, target
        labels = NewLabels(
            target, None if y is None else check_new_labels(y), groups=groups
        )
        known, group_hashes = self.labeled, self._group_hashes
        if labeled is not None:
            # A run of an older version stored no hashes of keys.
            if group_hashes is None and self.group_column is not None:
                group_hashes = hashes_of_column(labeled, self.group_column)
            passed = check_labeled_rows(
                labeled,
                self.input_format,
                int(self.results[N_LABELED]),
                self._labeled_hashes,
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
        with rename_in_errors(WORDS_OF_PYTHON), progress as on_progress:
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

    def predict(self, X: ArrayLike, *, deploy: str | None = None) -> NDArray[Any]:
        """Predict labels, or numbers of a regressor; lazily for a Dask collection.

        `predict_table` reads a file, and writes one.

        Parameters
        ----------
        X
            Rows with the columns of the labeled rows, shape (n_rows, n_columns). Those
            of a data frame are found by their names, and others are left out.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ndarray or dask.array.Array
            One prediction for each row, shape (n_rows,).

        Raises
        ------
        TypeError
            If `X` is no table of rows, such as a path.
        ValueError
            If `deploy` is no model of this outcome, or a column is missing in `X`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> outcome.predict(X[:3]).tolist()
        [0, 0, 0]
        """
        return self._call("predict", X, deploy)

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return probabilities of `classes_`; lazily for a Dask collection.

        Parameters
        ----------
        X, deploy
            As for `predict`.

        Returns
        -------
        ndarray or dask.array.Array
            Shape (n_rows, n_classes). No bound is about them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from dsel import certify
        >>> X, y = load_iris(return_X_y=True)
        >>> certify(GaussianNB(), X, y, random_state=0).predict_proba(X[:2]).shape
        (2, 3)
        """
        return self._call("predict_proba", X, deploy)

    @available_if(_model_has("predict_log_proba"))
    def predict_log_proba(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return logarithms of the probabilities of `classes_`.

        Parameters
        ----------
        X, deploy
            As for `predict`.
        """
        return self._call("predict_log_proba", X, deploy)

    @available_if(_model_has("decision_function"))
    def decision_function(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return scores of `classes_`; lazily for a Dask collection.

        Parameters
        ----------
        X, deploy
            As for `predict`.
        """
        return self._call("decision_function", X, deploy)

    def score(
        self,
        X: ArrayLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None = None,
        *,
        deploy: str | None = None,
    ) -> float:
        """Return the accuracy of the deployed model, or R^2 of a regressor.

        It is a number about these rows. `monitor` tests whether they refute a bound.

        Parameters
        ----------
        X, y
            Rows and their labels, or numbers.
        sample_weight
            Weight of each row, shape (n_rows,); None for equal ones.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        float
            Accuracy in [0, 1], or R^2, at most 1: an estimate, with no bound.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import certify
        >>> X, y = load_iris(return_X_y=True)
        >>> outcome = certify(SVC(), X[::2], y[::2], random_state=0)
        >>> round(outcome.score(X[1::2], y[1::2]), 2)
        0.97
        """
        predicted = np.asarray(self.predict(X, deploy=deploy))
        return score_predictions(self.model, y, predicted, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the deployed model, in the order of its probabilities.

        A class that none of its training rows has is missing. Regressors have none.
        """
        return np.asarray(self.model.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the labeled rows, if the folder of an outcome has it."""
        if self.input_format.n_columns is None:
            raise AttributeError  # `__getattr__` says why
        return self.input_format.n_columns

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of their columns, if these are texts, as scikit-learn has them."""
        if self.input_format.columns is None:
            raise AttributeError  # `__getattr__` says why
        return np.array(self.input_format.columns, dtype=object)

    def _call(self, method: str, X: ArrayLike, deploy: str | None) -> NDArray[Any]:
        """Return what a method of a model returns, lazily for a Dask collection."""
        names = tuple(self.certificates)
        name = check_choice(deploy or self.choice.deploy, "deploy", names)
        function, input_format = getattr(self.models[name], method), self.input_format

        def call(rows: Any) -> NDArray[Any]:
            values = input_format.call(function, rows)
            # Probabilities of a single class are a column, too.
            return (
                flat_predictions(values) if method == "predict" else np.asarray(values)
            )

        results: NDArray[Any] = apply_by_block(call, X)
        return results

    def predict_interval(self, X: ArrayLike, *, deploy: str | None = None) -> Floats:
        """Return an interval for the target of each row, of a certified regressor.

        It is lazy for a Dask collection.

        Intervals of the model ``one_fold`` all have the same width: prediction minus
        and plus the certified tolerance. For ``all_rows`` the distance of both models'
        predictions is added, so that the width depends on the row.

        Parameters
        ----------
        X
            Rows with the columns of the labeled rows, shape (n_rows, n_columns). Those
            of a data frame are found by their names, and others are left out.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.

        Returns
        -------
        ndarray or dask.array.Array
            Lower and upper ends, shape (n_rows, 2), rounded outward. Infinite if there
            were too few labeled rows for a tolerance.

        Raises
        ------
        ValueError
            If no tolerance is certified, as for classifiers.

        Notes
        -----
        Guarantee: with probability at least ``1 - delta`` over labeled rows, the share
        of new rows whose target lies between the ends is at least that of the loss,
        0.9 by default; for both models at once, and with the bounds of the search.
        Assumes: what the certificate lists.
        Source: :func:`dsel.bounds.tolerance_limit`; for the model of all rows the
        triangle inequality, row by row, which needs no pool.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from dsel import plan_search
        >>> X, y = load_diabetes(return_X_y=True)
        >>> plan = plan_search(Ridge(), {"alpha": [0.1, 1]}, X, y, random_state=0)
        >>> low, high = plan.run().predict_interval(X).T
        >>> bool(((low <= y) & (y <= high)).mean() > 0.9)
        True
        """
        if deploy is not None:
            check_choice(deploy, "deploy", tuple(self.certificates))
        choice, models, input_format = self.choice, self.models, self.input_format

        def interval(rows: Any) -> Floats:
            return predict_interval(choice, models, rows, deploy)

        intervals: Floats = apply_by_block(partial(input_format.call, interval), X)
        return intervals

    def __str__(self) -> str:
        return render_lines(self._shown_rows(), terminal_width())

    # A prompt and a notebook also show next steps; `print` shows the result only.
    def __repr__(self) -> str:
        return render_lines(self._rows_and_next_steps(), terminal_width())

    def _repr_html_(self) -> str:
        figure = self.results.dsel.bounds_svg()
        return render_card(self._rows_and_next_steps(), figure, drawn=DRAWN)

    def _rows_and_next_steps(self) -> list[ShownRow]:
        """Return all rows, with the next steps together at the end."""
        steps = [(NEXT, "; ".join(self._next_calls))]
        return sorted([*self._shown_rows(), *steps], key=lambda row: row[0] == NEXT)

    def _shown_rows(self) -> list[ShownRow]:
        """Return the rows of the choice, and where a number that is no bound is."""
        shown_rows = list(self.choice.shown_rows())
        bound = self.certificate
        if not bound.certified and isfinite(bound.number):
            text = "`certificate.number` has it, and `certificate.bound` is NaN"
            shown_rows.append(("Number", text))
        return shown_rows

    @property
    def _next_calls(self) -> list[str]:
        """Calls that run as they are printed, where `X_new` are new rows."""
        calls = ["`predict(X_new)`", "`plot()`", "`save('folder')`"]
        queries = self.choice.queries
        if queries is not None and queries.labels is None:
            calls.insert(
                0, "`query_rows()`, label these, then `certify_with_labels(labels)`"
            )
        if any(b.certified and not b.says_nothing for b in self.certificates.values()):
            calls.append("`monitor(X_new)` tests the bound on new rows")
        return calls


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
    if outcome.labeled is not None:
        rows_and_groups = RowHashes.of(outcome.labeled, outcome.group_keys)
        save_row_hashes(store.place, rows_and_groups)
    elif outcome.labeled_hashes is not None:
        save_row_hashes(store.place, outcome.labeled_hashes)
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


def warn_that_models_are_lost(reason: str, place: object) -> None:
    """Warn that a store does not keep the models of an outcome."""
    warn(
        f"models cannot be kept in `out` {place}: {reason}. Results and certificates "
        f"are kept; predict before this process ends, or change the estimator and "
        f"search in another `out`.",
        DselWarning,
    )


def _raise_no_models(reason: str) -> Never:
    """Raise the error with which the models of a pickled outcome could not be had."""
    raise RuntimeError(f"the pickled outcome has no models: {reason}")
