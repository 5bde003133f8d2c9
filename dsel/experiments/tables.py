"""The tables of an experiment side by side: as text, CSV, JSON and a page."""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import xarray as xr

from dsel.experiments.base import Experiment, Figure
from dsel.experiments.comparison import DIFFERS, Comparison, in_short
from dsel.experiments.pieces import REPETITION
from dsel.report.figures import figure_svg
from dsel.report.html import bullets, document, figure, paragraph, section, table
from dsel.report.text import text_table

HEAD: Final = ("", "what", "paper", "ours", "s.e.", "verdict")
NUMBERS: Final = (2, 3, 4)
ABOUT: Final = (
    "Two numbers agree if they lie within so many standard errors of their difference "
    "as Student's quantile of our repetitions says, 3 for very many, 4.1 for ten: ours "
    "over repetitions, the paper's as far as it can be known, and its rounding. Of "
    "many numbers a few in a thousand lie farther apart by chance. Of fewer than ten "
    "repetitions nothing is said. What the paper says in words is a number that must "
    "be above 0 by as many standard errors."
)


def as_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield the tables as lines of text, the summary last."""
    for source, group in _by_source(comparisons).items():
        rows = [HEAD, *map(_cells, group)]
        yield source
        yield from text_table(rows, numbers=NUMBERS)
        yield ""
    yield in_short(comparisons)


def as_json(
    experiment: Experiment, results: xr.Dataset, comparisons: Sequence[Comparison]
) -> dict[str, Any]:
    """Return everything that the page says, for machines; what is unknown is None."""
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "seed": int(results.attrs["seed"]),
        "repetitions": results.sizes[REPETITION],
        "errors": list(experiment.errors),
        "departures": list(experiment.departures),
        "comparisons": [_finite(asdict(each)) for each in comparisons],
    }


def as_page(
    experiment: Experiment,
    results: xr.Dataset,
    comparisons: Sequence[Comparison],
    drawn: Sequence[tuple[Figure, str]] = (),
) -> str:
    """Return tables and drawn figures as an HTML page that loads nothing else."""
    differ = [
        (each.source, *_cells(each)) for each in comparisons if each.verdict == DIFFERS
    ]
    kind = "verdict warning" if differ else "verdict"
    tables = [
        section(source, table(HEAD, [_cells(each) for each in group], numbers=NUMBERS))
        for source, group in _by_source(comparisons).items()
    ]
    return document(
        f"{experiment.paper}: printed, and reproduced",
        f'<div class="{kind}">{paragraph(in_short(comparisons), kind="headline")}'
        f"{paragraph(_size(results))}{paragraph(ABOUT)}</div>",
        section("What differs", table(("", *HEAD), differ, numbers=(3, 4, 5)))
        if differ
        else "",
        section("Errors of the paper", bullets(experiment.errors)),
        section("Left open there, and done here", bullets(experiment.departures)),
        section("Figures", *(figure(svg, each.caption) for each, svg in drawn)),
        *tables,
    )


def draw_figures(
    experiment: Experiment, results: xr.Dataset
) -> list[tuple[Figure, str]]:
    """Return the figures with their SVG elements."""
    return [
        (each, figure_svg(each.draw, width=each.width, height=each.height))
        for each in experiment.figures(results)
    ]


def write_tables(
    experiment: Experiment,
    results: xr.Dataset,
    comparisons: Sequence[Comparison],
    place: str | Path,
) -> list[Path]:
    """Write ``comparison.csv``, ``.json`` and ``.html`` and figures; return the files.

    Without matplotlib there are no figures.
    """
    files = [Path(place) / f"comparison.{end}" for end in ("csv", "json", "html")]
    with files[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Comparison)])
        writer.writeheader()
        writer.writerows(_finite(asdict(each)) for each in comparisons)
    found = as_json(experiment, results, comparisons)
    files[1].write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    drawn = draw_figures(experiment, results) if find_spec("matplotlib") else []
    for each, svg in drawn:
        files.append(Path(place) / f"{each.name}.svg")
        files[-1].write_text(svg, "utf-8")
    files[2].write_text(as_page(experiment, results, comparisons, drawn), "utf-8")
    return files


def _by_source(comparisons: Sequence[Comparison]) -> Mapping[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        found.setdefault(each.source, []).append(each)
    return found


def _size(results: xr.Dataset) -> str:
    sets = ", ".join(map(str, results.data_set.values))
    return (
        f"{results.sizes[REPETITION]} repetitions on each of {sets}; "
        f"seed {results.attrs['seed']}."
    )


def _cells(each: Comparison) -> tuple[str, ...]:
    verdict = f"{each.verdict}: {each.why}" if each.why else each.verdict
    printed = "> 0" if each.printed is None else _number(each.printed)
    numbers = (printed, _number(each.ours), _number(each.standard_error))
    return (each.where, each.what, *numbers, verdict)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ""


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(each, float) and not math.isfinite(each) else each
        for name, each in values.items()
    }
