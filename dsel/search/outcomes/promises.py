"""The promises of a search: bounds, a limit of the disagreement, labeled rows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import check_rows
from dsel.bounds import binomial_tail_inversion, upper_pool_rows
from dsel.data.frames import frame_of, has_named_columns, take_rows
from dsel.data.labeled import LabeledRows, wrap_unlabeled_rows
from dsel.data.record_ids import RecordIds
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.losses.protocols import DeltaDivision, DistanceLoss, Loss, RefutableLoss
from dsel.losses.texts import loss_of_text
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results.choice import Choice
from dsel.results.place import Place
from dsel.results.query_files import read_choice, read_labeled_result
from dsel.results.row_hashes import RowHashes, hash_keys, load_row_hashes
from dsel.results.run_store import open_results
from dsel.results.run_tables import load_run_tables
from dsel.search.outcomes.deployed_model import InputFormat, open_deployed_model
from dsel.typing import PathLike, RowsLike

NAME_LABELED: Final = "name it by --labeled"


@dataclass(frozen=True)
class Promises:
    """Promises of a search, with the models and rows that their tests need."""

    models: Mapping[str, Any]
    """The bounded models, fitted; ``one_fold``, ``all_rows`` or both."""
    choice: Choice
    input_format: InputFormat
    disagreement: float | None
    """Limit, from the pool, of the rate at which both models differ, or None."""
    labeled: LabeledRows | None = None
    """The labeled rows; their labels are not used."""
    why_unknown: str = ""
    """Reason why the labeled rows are not known."""
    group_hashes: NDArray[np.uint64] | None = None
    """Hashes of the keys of the labeled groups, if rows come in groups; None if
    unknown."""
    own_loss: Loss | None = None
    """Loss of the plan, which may be of the user's own; None if unknown."""
    labeled_ids: RecordIds | None = None
    """Ids of the labeled rows; None where they have none, or these are not known."""
    group_column: str | None = None
    """Column of the labeled rows that had the keys of their groups, if it is known."""

    @property
    def loss(self) -> Loss | None:
        """Loss that the search has bounded; None if it cannot be tested.

        Stored results keep only the text of the loss, from which a loss of dsel is made
        again. A loss of the user can be tested if it is a `DistanceLoss`, or if it has
        lower limits and counts that add up over blocks.
        """
        text, own_loss = self.choice.certificate.loss, self.own_loss
        if (named := loss_of_text(text)) is not None:
            return named
        # The text alone identifies a loss, as in the identity of a plan.
        if own_loss is None or repr(own_loss) != text:
            return None
        adds_up = own_loss.statistic.fold_shape is not None
        is_refutable = isinstance(own_loss, RefutableLoss) and adds_up
        return own_loss if is_refutable or isinstance(own_loss, DistanceLoss) else None

    @property
    def are_in_groups(self) -> bool:
        """Whether bounds are about a random row of a new group."""
        return any(c.n_groups for c in self.choice.certificates.values())


def disagreement_delta(choice: Choice) -> float:
    """Return the probability that the limit of the disagreement does not hold.

    It is the part of delta that a bound of the error spends on the pool if no rows are
    queried. Other bounds spend other parts, so the limit is printed with its own
    confidence.
    """
    return DeltaDivision.of_plan(choice.delta, has_pool=True).pool_delta


def disagreement_limit(cube: xr.Dataset, choice: Choice) -> float | None:
    """Return the limit, from the pool, of the rate at which the bounded models differ.

    The limit is a separate statement, at `disagreement_delta`, which all folds share,
    since the labels choose the deployed fold. None if no pool was counted.
    """
    fold = choice.certificates[ONE_FOLD].fold if ONE_FOLD in choice.certificates else 0
    if ALL_ROWS not in choice.certificates or fold is None:
        return None
    variables = (names.OUTER_DISAGREEMENTS, names.OUTER_DUPLICATE_DISAGREEMENTS)
    if any(name not in cube for name in variables):
        return None
    differ, duplicates = (cube[name].values for name in variables)
    if not np.isfinite(differ[fold]):
        return None
    rows = upper_pool_rows(
        int(cube[names.N_UNLABELED]),
        int(cube[names.N_DUPLICATES]),
        int(duplicates[fold]),
    )
    # The labels choose the fold, so its limit must hold among those of all folds (union
    # bound).
    fold_delta = disagreement_delta(choice) / len(differ)
    return float(binomial_tail_inversion(int(differ[fold]), rows, delta=fold_delta))


def open_promises(
    place: PathLike,
    *,
    labeled: str | None = None,
    trusted: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
    groups: str | None = None,
) -> tuple[Promises, tuple[str, ...]]:
    """Open the promises of the search in a place; return them, and notes.

    `labeled` is the table of its labeled rows; None selects the table that the results
    name. Its column `groups` has the key of the group of each row.
    """
    choice, _ = read_choice(place)
    choice = read_labeled_result(Place(place, name="place"), Choice) or choice
    deployed = {
        name: open_deployed_model(place, deploy=name, trusted=trusted)
        for name in choice.certificates
    }
    cube = open_results(place)
    tables = load_run_tables(place)
    input_format = next(iter(deployed.values())).input_format
    hashes = load_row_hashes(place)
    promises = Promises(
        {name: deployed_model.model for name, deployed_model in deployed.items()},
        choice,
        input_format,
        disagreement_limit(cube, choice),
        group_hashes=None if hashes is None else hashes.groups,
    )
    location = labeled or (None if tables is None else tables.labeled)
    if location is None:
        reason = f"the results do not name the labeled table; {NAME_LABELED}"
        return replace(promises, why_unknown=reason), ()
    if labeled is None and not os.path.exists(location):
        reason = f"{location!r} is not there any more; {NAME_LABELED}"
        return replace(promises, why_unknown=reason), ()
    target = None if tables is None else tables.target
    rows, keys, ids = read_labeled_rows(
        location,
        input_format.table_schema,
        target,
        separator,
        encoding,
        groups,
        has_ids=labeled is None,
    )
    n_labeled = int(cube[names.N_LABELED])
    promises = replace(promises, labeled=rows, labeled_ids=ids)
    if promises.group_hashes is None and keys is not None:
        promises = replace(promises, group_hashes=hash_keys(keys))
    if rows.n_rows == n_labeled:
        return promises, ()
    note = (
        f"{location!r} has {rows.n_rows:,} rows with a label, and the search had "
        f"{n_labeled:,}: it is another table, or was changed"
    )
    return promises, (note,)


def check_labeled_rows(
    X: RowsLike, input_format: InputFormat, n_labeled: int, known: RowHashes | None
) -> LabeledRows:
    """Return the labeled rows of a search; ValueError if these are others.

    `known` are the hashes of the rows of the search; None if it stored none, as in runs
    of dsel 0.2.
    """
    check_rows(X, "`labeled`")
    rows = wrap_unlabeled_rows(input_format.convert(X), "`labeled`")
    wanted = f"`labeled` must hold the {n_labeled:,} labeled rows of the search, its X"
    if rows.n_rows != n_labeled:
        raise ValueError(f"{wanted}, got {rows.n_rows:,} rows.")
    if known is None:
        return rows
    if len(unknown_rows := np.flatnonzero(~known.find(rows.X))):
        raise ValueError(
            f"{wanted}, but {len(unknown_rows):,} of the passed rows are not among "
            f"them, the first at index {unknown_rows[0]}."
        )
    if n_missing := known.count_missing(rows.X):
        raise ValueError(
            f"{wanted}, but {n_missing:,} of them are missing, and others are there "
            f"more often."
        )
    return rows


def hashes_of_column(X: RowsLike, column: str) -> NDArray[np.uint64] | None:
    """Return hashes of the keys of groups in a column; None if `X` does not have it."""
    if not has_named_columns(X) or column not in frame_of(X).schema.names:
        return None
    return hash_keys(frame_of(X).given[column].dropna())


def read_labeled_rows(
    location: str,
    schema: TableSchema | None,
    target: str | None,
    separator: str | None,
    encoding: str | None,
    groups: str | None = None,
    *,
    has_ids: bool = False,
) -> tuple[LabeledRows, NDArray[Any] | None, RecordIds | None]:
    """Read the rows with a label of a table, in the kinds that the models learned.

    Return the keys of their groups, too; None where no column of a table has them. With
    `has_ids` the table has the columns of ids of the schema, and these are returned.
    """
    record_ids = None
    read = partial(read_table, separator=separator, encoding=encoding)
    keys = None
    if schema is None or schema.target is None:
        table = read(location, target=target)
        labels = table.y
    else:
        id_names = schema.ids if has_ids else ()
        ids = (schema.target, *([] if groups is None else [groups]), *id_names)
        table = read(location, like=replace(schema, ids=tuple(dict.fromkeys(ids))))
        labels = None if table.ids is None else table.ids[schema.target].to_numpy()
        if id_names and table.ids is not None:
            record_ids = RecordIds.of(table.ids.loc[~pd.isna(labels), [*id_names]])
        if groups is not None and table.ids is not None:
            keys = table.ids[groups].to_numpy()
    X = table.X
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))
    if labels is not None and labels.ndim == 1:
        X = take_rows(X, np.flatnonzero(~pd.isna(labels)))
        keys = None if keys is None else keys[~pd.isna(labels)]
    return wrap_unlabeled_rows(X, repr(location)), keys, record_ids
