"""Who spent which share of delta, as it stands in the cube."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from dsel import names
from dsel.results import schema


@dataclass(frozen=True)
class Spending:
    """Delta as declared before the first look, and what was read out for it."""

    declared: float
    """Probability declared for all that is ever read, the reserve included."""
    reserve: float
    """Part of it kept for what is added later."""
    read_outs: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    """Each certificate read, with its events and the share that each may fail with."""


def with_spending(cube: xr.Dataset, spending: Spending) -> xr.Dataset:
    """Return the cube with this spending in the place of its own."""
    entries = [
        (number, certificate, event, share)
        for number, (certificate, events) in enumerate(spending.read_outs)
        for event, share in events
    ]
    text = schema.DTYPES[schema.TEXT]
    columns = {
        names.SPENT_BY: np.array([entry[1] for entry in entries], dtype=text),
        names.SPENT_ON: np.array([entry[2] for entry in entries], dtype=text),
        names.SPENT_DELTA: np.array([entry[3] for entry in entries], dtype=float),
    }
    scalars = {
        names.DECLARED_DELTA: np.float64(spending.declared),
        names.DELTA_RESERVE: np.float64(spending.reserve),
    }
    return cube.drop_dims(names.SPENDING, errors="ignore").assign(
        {
            names.SPENDING: np.array([entry[0] for entry in entries], dtype=np.int64),
            **{
                name: (names.SPENDING, column, schema.BY_NAME[name].attrs)
                for name, column in columns.items()
            },
            **{
                name: ((), value, schema.BY_NAME[name].attrs)
                for name, value in scalars.items()
            },
        }
    )


def spending_of(cube: xr.Dataset) -> Spending | None:
    """Return the spending that stands in the cube; None where there is none."""
    if names.SPENDING not in cube.dims:
        return None
    read_outs: dict[int, tuple[str, list[tuple[str, float]]]] = {}
    for number, certificate, event, share in zip(
        cube[names.SPENDING].values,
        cube[names.SPENT_BY].values,
        cube[names.SPENT_ON].values,
        cube[names.SPENT_DELTA].values,
        strict=True,
    ):
        entry = read_outs.setdefault(int(number), (str(certificate), []))
        entry[1].append((str(event), float(share)))
    return Spending(
        declared=float(cube[names.DECLARED_DELTA]),
        reserve=float(cube[names.DELTA_RESERVE]),
        read_outs=tuple((name, tuple(events)) for name, events in read_outs.values()),
    )
