"""The page: sections in order, in one file that needs nothing else."""

import os
from pathlib import Path
from typing import Any

import xarray as xr

from dsel.report import sections
from dsel.report.html import document
from dsel.searches.compare import compare
from dsel.searches.evaluate import evaluate
from dsel.searches.select import select

ORDER = (
    sections.verdict,
    sections.numbers,
    sections.surface,
    sections.best,
    sections.terms,
    sections.deployments,
    sections.assumptions,
    sections.others,
    sections.failures,
    sections.timing,
    sections.provenance,
)


def report_html(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    certificate: str | None = None,
    title: str = "Which model, and how wrong it can be",
) -> str:
    """Return a page about a search as HTML that loads nothing from elsewhere.

    Parameters
    ----------
    results
        Cube of a search.
    criterion, delta, certificate
        As in `dsel.select`; by default those of the search.
    title
        Heading of the page.

    Returns
    -------
    str
        An HTML document, the same each time for the same cube.

    Raises
    ------
    ModuleNotFoundError
        Where matplotlib is not installed.
    ValueError
        Where the cube cannot answer.
    """
    results = results.load()
    story = sections.Story(
        results,
        select(results, criterion, delta=delta, certificate=certificate),
        evaluate(results, criterion, delta=delta),
        compare(results, delta=delta),
    )
    return document(title, *(part(story) for part in ORDER))


def write_report(
    results: xr.Dataset, path: str | os.PathLike[str], **options: Any
) -> Path:
    """Write the page about a search to a file.

    Parameters
    ----------
    results
        Cube of a search.
    path
        The file, replaced if it is there; it is returned.
    **options
        As `report_html` takes them.
    """
    target = Path(path)
    target.write_text(report_html(results, **options), encoding="utf-8")
    return target
