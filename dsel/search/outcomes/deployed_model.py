"""A deployed model, its certificate, and the format of the rows that it gets."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator

from dsel.arrays import (
    Features,
    Integers,
    check_dimensions,
    check_rows,
    validate_data,
)
from dsel.candidates import takes_nan
from dsel.checks import as_array, listing, show
from dsel.data.frames import (
    Frame,
    FrameSchema,
    check_finite,
    frame_like,
    frame_of,
    has_named_columns,
    read_only_rows,
    rows_by_name,
)
from dsel.data.labeled import LabeledRows, names_of_columns
from dsel.data.schema import ColumnSchema, TableSchema, schema_of, with_categories
from dsel.data.text_columns.kinds import PLAIN, Kind
from dsel.results.certificate import Certificate
from dsel.results.choice import Choice
from dsel.results.model_files import open_model
from dsel.results.place import Place, check_has_results, read_outcome
from dsel.results.query_files import read_labeled_result
from dsel.results.row_hashes import RowHashes, load_row_hashes
from dsel.results.run_tables import load_run_tables, load_schema
from dsel.search.outcomes.intervals import Tolerance, tolerance_certificates
from dsel.typing import Options, PathLike, RowsLike

T = TypeVar("T")


class LabeledColumns(BaseEstimator):
    """Columns of the labeled rows, for scikit-learn's check of other rows."""

    def __init__(self, n_columns: int, names: Sequence[str] | None) -> None:
        self.n_features_in_ = n_columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)


@dataclass(frozen=True, repr=False)
class InputFormat:
    """Format of the rows that a model gets."""

    columns: tuple[str, ...] | None = None
    """Names of the features in their order; None without names."""
    library: str | None = None
    """Library of its data frames, such as ``pandas``; None if it gets arrays."""
    schema: str | None = None
    """Kinds of the columns, JSON of a `TableSchema`; None for arrays without names."""
    n_columns: int | None = None
    """Number of the features; None if unknown: a store has no number without names."""
    frame_schema: FrameSchema | None = field(default=None, compare=False)
    """Types of the columns of data frames, which a store does not have."""

    def __repr__(self) -> str:
        kind = "array" if self.library is None else f"data frame of {self.library}"
        columns = "" if self.columns is None else f": {listing(self.columns, 10)}"
        number = "unknown" if self.n_columns is None else f"{self.n_columns:,}"
        return f"<InputFormat: {kind}, columns {number}{columns}>"

    @classmethod
    def of(cls, labeled: LabeledRows) -> "InputFormat":
        """Return the format of labeled rows."""
        X, names, n_columns = labeled.X, labeled.columns, labeled.n_columns
        if names is None:
            return cls(n_columns=n_columns)
        frame = pd.DataFrame(columns=list(names), dtype=np.float64)
        library = None
        if isinstance(X, Frame):
            frame = X.given
        elif isinstance(X, np.ndarray):
            numbers = X.astype(np.float64, copy=False)
            frame = pd.DataFrame(numbers, columns=list(names), copy=False)
        if labeled.schema is not None:
            library = type(labeled.schema.empty).__module__.partition(".")[0]
        kinds = schema_of(frame).to_json()
        return cls(names, library, kinds, n_columns, labeled.schema)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "InputFormat":
        """Return the format of a record of `to_record`."""
        names, kinds = record["columns"], record["schema"]
        if names is None:
            return cls(None, record["library"], kinds)
        return cls(tuple(names), record["library"], kinds, len(names))

    def to_record(self) -> dict[str, Any]:
        """Return what a store keeps of the format."""
        return {name: getattr(self, name) for name in ("columns", "library", "schema")}

    def convert(self, X: RowsLike, estimator: BaseEstimator | None = None) -> Any:
        """Return rows as the models get them; ValueError if columns differ.

        Columns of a data frame are found by name. For an `estimator` they must have the
        order of the labeled rows, as everywhere in scikit-learn.
        """
        if isinstance(X, (str, os.PathLike)):
            raise TypeError(
                f"`X` must hold rows of features, got the path {show(os.fspath(X))}; "
                f"`predict_table` reads it, predict_table({show(os.fspath(X))}), and "
                f"writes a file with out='predictions.csv'."
            )
        check_rows(X)
        if self.n_columns is None:
            return X  # the model raises an error that says what is wrong
        if isinstance(X, Sequence):
            as_array(X, "X")  # raises where rows have several lengths
        if self.columns is not None and len(self.columns) == 1 and _is_column(X):
            [name] = self.columns
            raise ValueError(
                f"`X` must be a data frame with the column {name!r}, got one value for "
                f"each row; pass pandas.DataFrame({{{name!r}: X}})."
            )
        if estimator is None:
            X = rows_by_name(X, self.columns, " of the labeled rows")
            check_dimensions(X, self.n_columns)
        elif len(getattr(X, "shape", (0, 0))) == 1:
            return X
        expected = LabeledColumns(self.n_columns, self.columns)
        if not (isinstance(X, pd.DataFrame) or has_named_columns(X)):
            if self.frame_schema is not None and not self.frame_schema.is_numeric:
                if hasattr(X, "compute"):
                    raise TypeError(
                        f"`X` must be in memory, got a lazy {type(X).__name__}; pass "
                        f"X.compute(), or predict a file by `predict_table`."
                    )
                raise TypeError(
                    f"`X` must be a data frame with the columns of the labeled rows, "
                    f"{listing(self.frame_schema.names, 8)}, of which some hold no "
                    f"numbers, got {type(X).__name__}."
                )
            # An array has no names to compare; the model itself warns of this.
            expected = estimator or LabeledColumns(self.n_columns, None)
        elif isinstance(X, pd.DataFrame) and self.columns is not None:
            X = X.set_axis([str(name) for name in X.columns], axis=1)
        rows = validate_data(expected, X, reset=False, skip_check_array=True)
        if has_named_columns(rows):
            self._check_numbers(rows)
            self._refuse_texts_for_times(rows)
        if self.library is not None and self.frame_schema is None:
            return rows
        if has_named_columns(rows):
            if self.frame_schema is not None:
                return frame_like(frame_of(rows).given, self.frame_schema).native
            return frame_of(rows).numbers
        return rows.to_numpy() if hasattr(rows, "to_numpy") else rows

    def call(
        self,
        function: Callable[[Any], T],
        X: RowsLike,
        estimator: BaseEstimator | None = None,
    ) -> T:
        """Return what a function of a model returns for rows, as the model gets them.

        Raises a TypeError that names the columns if the function fails because the
        rows have no names of columns.
        """
        rows = self.convert(X, estimator)
        try:
            return function(rows)
        except Exception as error:
            if self.columns is None or has_named_columns(rows):
                raise
            try:
                function(pd.DataFrame(rows, columns=list(self.columns)))
            except Exception:  # names do not help
                raise error from None
            raise TypeError(
                f"`X` must be a data frame, since the model finds columns by their "
                f"names, got {type(X).__name__}; if its columns are "
                f"{listing(self.columns, 8)}, in this order, pass pd.DataFrame(X, "
                f"columns=names) with these names."
            ) from error

    def _check_numbers(self, rows: Any) -> None:
        """Raise ValueError that names a column with a text in place of a number."""
        frame = nw.from_native(rows, eager_only=True).to_pandas()
        text_columns = [name for name in frame if not is_numeric_dtype(frame[name])]
        schema = self.table_schema if text_columns else None
        for column in () if schema is None else schema.columns:
            if column.kind is not Kind.NUMBERS or column.name not in text_columns:
                continue
            values = frame[column.name].astype(object)
            numbers = pd.to_numeric(values, errors="coerce")
            wrong = np.flatnonzero(numbers.isna() & values.notna())
            if len(wrong):
                raise ValueError(
                    f"column {column.name!r} of `X` has {show(values.iloc[wrong[0]])} "
                    f"in row {wrong[0]:,}; it holds numbers in the labeled rows. "
                    f"Correct the value, or pass None for a missing one (rows are "
                    f"counted from 0)."
                )

    def _refuse_texts_for_times(self, rows: Any) -> None:
        """Raise TypeError that names a column with texts in place of times."""
        # Before the model: an encoder takes such a text as a value that it does not
        # know, and predicts something else without an error.
        schema = self.table_schema
        times = [] if schema is None else [c for c in schema.columns if c.kind.is_time]
        if not times:
            return
        frame = nw.from_native(rows, eager_only=True).to_pandas()
        for column in times:
            if infer_dtype(frame[column.name], skipna=True) == "string":
                name = repr(column.name)
                raise TypeError(
                    f"column {name} of `X` must hold {column.kind}, as in the labeled "
                    f"rows, got text; pass pandas.to_datetime(X[{name}]) in its place."
                )

    def with_number_column(self, name: str) -> "InputFormat":
        """Return the format with one more column of numbers."""
        schema = self.table_schema
        if schema is None or name in schema.names:
            return self
        form = schema.target_form if name == schema.target else PLAIN
        columns = (*schema.columns, ColumnSchema(name, Kind.NUMBERS, form))
        return replace(self, schema=replace(schema, columns=columns).to_json())

    def with_gap_words(self, words: Sequence[str]) -> "InputFormat":
        """Return the format with further words for a missing value."""
        schema = self.table_schema
        if not words or schema is None:
            return self
        gap_words = (*schema.gap_words, *words)
        return replace(self, schema=replace(schema, gap_words=gap_words).to_json())

    @property
    def table_schema(self) -> TableSchema | None:
        """Kinds of the columns; None without names."""
        return None if self.schema is None else TableSchema.from_json(self.schema)


def _is_column(X: RowsLike) -> bool:
    """Return whether rows are the values of one column, such as texts."""
    if isinstance(X, Sequence):
        return len(X) > 0 and isinstance(X[0], str | float | int)
    return getattr(X, "ndim", 2) == 1


@dataclass(frozen=True)
class Deployed:
    """A model, with its certificate and the format of its rows."""

    model: Any
    certificate: Certificate | None
    """Its certificate; None for a model of `save_model`."""
    input_format: InputFormat
    tolerance: Tolerance | None = None
    """Certified tolerance of a regressor; None if there is none."""
    labeled_hashes: RowHashes | None = None
    """Hashes of the labeled rows; None if none are stored, or where the caller has the
    rows themselves."""
    group_hashes: NDArray[np.uint64] | None = None
    """Hashes of the keys of their groups; None without groups, or if none are
    stored."""
    group_column: str | None = None
    """Name of the column that had these keys, if it is known."""

    @classmethod
    def of(
        cls,
        name: str,
        model: Any,
        certificates: Mapping[str, Certificate],
        input_format: InputFormat,
        load_model: Callable[[str], Any],
    ) -> "Deployed":
        """Return the model with this name among those that a search has certified.

        `load_model` opens other models by their names, if the tolerance needs them.
        """
        certificate = certificates[name]
        tolerance = None
        if certificate.is_tolerance and certificate.certified:
            tolerance = Tolerance.of(certificates, name, load_model)
        return cls(model, certificate, input_format, tolerance)

    def with_gap_words(self, words: Sequence[str]) -> "Deployed":
        """Return the model, which reads further words as missing values."""
        return replace(self, input_format=self.input_format.with_gap_words(words))


def open_deployed_model(
    place: PathLike,
    *,
    deploy: str | None = None,
    trusted: Sequence[str] = (),
    storage_options: Options | None = None,
) -> Deployed:
    """Open a stored model, with its certificate and the format of its rows.

    Parameters are those of `open_model`, whose `name` is `deploy` here.
    """

    def load_model(name: str | None) -> Any:
        return open_model(
            place, name=name, trusted=trusted, storage_options=storage_options
        )

    model = load_model(deploy)
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    names = names_of_columns(model)
    input_format = InputFormat() if names is None else InputFormat(names, "pandas")
    outcome_record = read_outcome(where) or {"said": {}}
    statements = outcome_record["said"]
    input_format = read_input_format(
        place, statements, input_format, storage_options=storage_options
    )
    if "choice" not in statements:
        return Deployed(model, None, input_format)
    # Bounds that labels of queried rows have made smaller are final, too.
    choice = read_labeled_result(where, Choice) or Choice.from_json(
        statements["choice"]
    )
    name = deploy or choice.deploy
    certificates = tolerance_certificates(choice)
    deployed = Deployed.of(name, model, certificates, input_format, load_model)
    hashes = load_row_hashes(place, storage_options=storage_options)
    tables = load_run_tables(place, storage_options=storage_options)
    return replace(
        deployed,
        labeled_hashes=hashes,
        group_hashes=None if hashes is None else hashes.groups,
        group_column=statements.get("group_column")
        or (None if tables is None else tables.groups),
    )


def read_input_format(
    place: PathLike,
    statements: Mapping[str, Any],
    default: InputFormat,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> InputFormat:
    """Return how the models of an outcome get their rows.

    `statements` are those of the record of the outcome; `default` is the format if they
    have none, as in records of dsel 0.2 or of `save_model`.
    """
    input_format = default
    if "input_format" in statements:
        input_format = InputFormat.from_record(statements["input_format"])
    # The schema of a file also has its words for missing values.
    schema = load_schema(place, storage_options=storage_options)
    if schema is not None:
        # The file may also have rows without a label.
        file_schema = TableSchema.from_json(schema)
        if (labeled_schema := input_format.table_schema) is not None:
            file_schema = with_categories(file_schema, labeled_schema)
        input_format = replace(input_format, schema=file_schema.to_json())
    return input_format


@dataclass(frozen=True)
class ModelRows:
    """Conversion of blocks of a table to the rows that models get."""

    input_format: InputFormat
    where: str
    """Name of the table in messages."""
    allow_nan: bool

    @classmethod
    def of(
        cls, models: Sequence[Any], input_format: InputFormat, where: str
    ) -> "ModelRows":
        """Return the conversion for models that were fitted to the same rows."""
        inner = [getattr(model, "best_estimator_", model) for model in models]
        return cls(input_format, where, takes_nan(inner))

    def prepare(self, X: Features, row_numbers: Integers) -> Any:
        """Return a block with these row numbers as models get it: read-only.

        Raises ValueError if a number is infinite, or missing and the models refuse it.
        """
        names, checked = self.input_format.columns, X
        if isinstance(X, Frame):
            checked = X if names is None else _select(X, names)
            X = checked.given
        X = self._rows_of_model(X)
        if isinstance(X, np.ndarray) and isinstance(checked, Frame):
            checked = X  # as the model gets it, with truth values as numbers
        check_finite(checked, self.where, row_numbers, names, self.allow_nan)
        return read_only_rows(X)

    def numbers(self, X: Features) -> Any:
        """Return a block of numbers as an array, or CSR, of the models' columns."""
        if isinstance(X, Frame):
            names = self.input_format.columns
            X = X.given if names is None else X.given[list(names)]
        if not isinstance(X, pd.DataFrame):
            return X
        return np.ascontiguousarray(X.to_numpy(dtype=np.float64, na_value=np.nan))

    def _rows_of_model(self, X: Any) -> Any:
        """Return rows for the model: an array, or a frame of its library."""
        library, names = self.input_format.library, self.input_format.columns
        if library is None:
            return self.numbers(X)
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(X, columns=list(names or ()), copy=False)
        if library == "pandas":
            return X
        frame = nw.from_native(X.reset_index(drop=True), eager_only=True)
        return frame.to_polars() if library == "polars" else frame.to_arrow()


def _select(X: Frame, names: Sequence[str]) -> Frame:
    """Return a block with these columns, in this order."""
    frame = X.given
    if list(frame.columns) != list(names):
        frame = frame[list(names)]
    # The types are passed, since finding them again would read all texts.
    kinds = {column.name: column for column in X.schema.columns}
    columns = tuple(kinds[name] for name in names)
    return Frame(frame, replace(X.schema, columns=columns))
