"""Results: the cube of evidence, the choice made from it, and its certificate.

The room promises one Dataset schema (`schema`), exact round trips through zarr, and a
journal from which a killed run goes on. It is the only room that knows the file
format.

Vocabulary: a *cube* is an `xarray.Dataset` over candidates, splits and criteria. A
*candidate* is numbered in the C order of the grid's dimensions. Counts are NaN where
nothing was counted; `evidence` turns them into integers for the mathematics, -1 there.
The *ledger* is the list of assumptions A1 to A6, each ``checked``, ``declared`` or
``violated``, and the record of what delta was spent on; a certificate is certified if
none is violated and all of it was paid for.

To add a variable: one line in the tables of `schema` and its name in `dsel.names`.
"""

from dsel.results.certificate import Certificate
from dsel.results.choice import Choice, Deployment
from dsel.results.cube import add_criterion, check_cube, evidence, make_cube
from dsel.results.files import open_results, save_results
from dsel.results.grid import GridAxes, SplitAxes, fold_axes, grid_axes, half_axes
from dsel.results.journal import Journal, open_journal
from dsel.results.ledger import Assumption, full_ledger
from dsel.results.models import open_model, save_model

__all__ = [
    "Assumption",
    "Certificate",
    "Choice",
    "Deployment",
    "GridAxes",
    "Journal",
    "SplitAxes",
    "add_criterion",
    "check_cube",
    "evidence",
    "fold_axes",
    "full_ledger",
    "grid_axes",
    "half_axes",
    "make_cube",
    "open_journal",
    "open_model",
    "open_results",
    "save_model",
    "save_results",
]
