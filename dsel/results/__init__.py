"""Results: the cube of evidence, the choice made from it, and its certificate.

The room promises one Dataset schema (`schema`), exact round trips through zarr, and a
store from which a killed run goes on. It is the only room that knows how results are
kept.

Vocabulary: a *cube* is an `xarray.Dataset` over candidates, splits and criteria. A
*candidate* is numbered in the C order of the grid's dimensions. Counts are NaN where
nothing was counted; `evidence` turns them into integers for the mathematics, -1 there.
A *record* is what one task found; a *store* keeps the records of one plan, and its
outcome. An *assumption* is by design, checked, declared or violated; a certificate is
certified if none is violated and nothing else speaks against it.

To add a variable: one line in the table of `schema` and its name in `dsel.names`.
"""

from dsel.results.assumptions import Assumption
from dsel.results.certificate import Certificate
from dsel.results.choice import Choice
from dsel.results.files import open_results, save_results
from dsel.results.models import open_model, save_model

__all__ = [
    "Assumption",
    "Certificate",
    "Choice",
    "open_model",
    "open_results",
    "save_model",
    "save_results",
]
