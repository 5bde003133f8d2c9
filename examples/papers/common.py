"""What the scripts of the papers share: pieces, tables, figures, the command line.

A *piece* is one repetition on one data set; it is kept as one JSON file as soon as it
was measured, and a run goes on from the files that are there. A *comparison*
(`comparison.py`) is a number or finding of a paper beside ours, with a verdict.
"""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click
import jinja2
import joblib
import numpy as np
import pandas as pd
import xarray as xr
from comparison import DIFFERS, Comparison, in_short

import dsel
from dsel.datasets import check_files

PAPERS = Path(__file__).parent
DATA_SET, REPETITION = "data_set", "repetition"


class Figure(NamedTuple):
    """A figure of the paper, drawn from what was measured."""

    name: str
    """Of its file, such as ``figure-1-dna``."""
    caption: str
    drawing: Any
    """A matplotlib figure."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper: what one piece measures, and what that is held to."""

    name: str
    paper: str
    shows: str
    """Tables and figures that are compared."""
    duration: str
    """About how long the paper's size takes on two cores."""
    sets: tuple[str, ...]
    repetitions: int
    """As many as in the paper; of more of them the first are the same."""
    settings: Any
    """A frozen dataclass of what else pieces depend on, with a field `seed`."""
    measured: Mapping[str, tuple[str, ...]]
    """Dimensions of everything in a piece."""
    axes: Callable[[Any], Mapping[str, Sequence[Any]]]
    """Takes settings; coordinates of these dimensions."""
    measure: Callable[..., Mapping[str, Any]]
    """Takes what was loaded, the number of a repetition, settings, and the place where
    a long search may keep its counts (None where nothing is kept)."""
    compare: Callable[[xr.Dataset], Sequence[Comparison]]
    errors: Sequence[str]
    """Errors of the paper that matter here."""
    departures: Sequence[str]
    """What the paper leaves open or is otherwise here, and what is done."""
    figures: Callable[[xr.Dataset], Iterable[Figure]] = lambda _: ()
    load: Callable[..., Any] = lambda name, folder: name
    """Takes a set and the folder of the benchmark sets; made-up sets are their name."""
    files: Mapping[str, str] | None = None
    """File of each set; None where data are made up."""
    in_processes: bool = False
    """Whether pieces are measured side by side; searches use all cores by themselves,
    and what is timed must be alone."""
    most_repetitions: float = math.inf


def run(
    experiment: Experiment,
    *,
    sets: Sequence[str] | None = None,
    repetitions: int | None = None,
    settings: Any = None,
    folder: Any = None,
    out: Any = None,
    jobs: int = -1,
    told: Callable[[str], None] = lambda _: None,
) -> xr.Dataset:
    """Measure all pieces that are not in `out` yet; return all of them together."""
    sets = experiment.sets if sets is None else tuple(sets)
    numbers = range(repetitions or experiment.repetitions)
    settings = settings or experiment.settings
    if experiment.files:
        check_files([experiment.files[name] for name in sets], folder=folder)
    rows = []
    # All sets are loaded first, so that what cannot be loaded is told before any work.
    for name, table in [(name, experiment.load(name, folder)) for name in sets]:
        known = {"experiment": experiment.name, **asdict(settings)}
        head = {"settings": json.loads(json.dumps(known)), "data": joblib.hash(table)}
        pieces = {n: _read_piece(out, f"{name}-{n}", head) for n in numbers}
        missing = [n for n in numbers if pieces[n] is None]
        n_jobs = jobs if experiment.in_processes and len(missing) > 1 else 1
        tasks = (
            joblib.delayed(_measure)(experiment, table, n, settings, out, f"{name}-{n}")
            for n in missing
        )
        measured = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        for n, piece in zip(missing, measured, strict=True):
            pieces[n] = piece
            if out is not None:
                _write_piece(out, f"{name}-{n}", {**head, "measured": piece})
            told(f"{name}: piece {n + 1} of {len(numbers)}")
        rows.append([pieces[n] for n in numbers])
    variables = {
        name: (
            (DATA_SET, REPETITION, *dims),
            np.array([[piece[name] for piece in row] for row in rows]),
        )
        for name, dims in experiment.measured.items()
    }
    axes = {name: list(each) for name, each in experiment.axes(settings).items()}
    coords = {DATA_SET: list(sets), REPETITION: np.array(numbers), **axes}
    attrs = {"experiment": experiment.name, "seed": settings.seed}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _measure(
    experiment: Experiment, table: Any, n: int, settings: Any, out: Any, name: str
) -> dict[str, Any]:
    place = None if out is None else str(Path(out) / "searches" / name)
    piece = experiment.measure(table, n, settings, place)
    return {key: np.asarray(value).tolist() for key, value in piece.items()}


def _read_piece(out: Any, name: str, head: Mapping[str, Any]) -> Any:
    """Return what a file has measured; None where it must be measured (again)."""
    place = None if out is None else Path(out) / "pieces" / f"{name}.json"
    if place is None or not place.exists():
        return None
    stored = json.loads(place.read_text("utf-8"))
    if stored["settings"] != head["settings"]:
        raise ValueError(
            f"`out` holds pieces of other settings ({place}); name another folder, or "
            f"the seed that they were made with."
        )
    return stored["measured"] if stored["data"] == head["data"] else None


def _write_piece(out: Any, name: str, content: Mapping[str, Any]) -> None:
    place = Path(out) / "pieces" / f"{name}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content), "utf-8")
    part.replace(place)  # a killed run leaves no half of a piece


def seed_of(seed: int, *parts: Any) -> int:
    """Return a seed that is a fixed hash of values, on every machine."""
    text = json.dumps([seed, *parts], separators=(",", ":")).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % 2**31


def counts_of(
    estimator: Any, grid: Mapping[str, Any], X: Any, y: Any, pool: Any = None,
    *, cv: Any, seed: int, out: Any = None, delta: float = 0.05,
) -> xr.Dataset:  # fmt: skip
    """Return the counts of a search of every candidate, disagreements with a pool."""
    kind = {"criterion": "cv_error"} if pool is None else {"certificate": "cv_bound"}
    plan = dsel.plan_search(
        estimator, grid, X, y, pool, cv=cv, delta=delta, prune=False,
        random_state=seed, **kind,
    )  # fmt: skip
    return plan.run(out=out).results


def fold_errors(results: xr.Dataset) -> np.ndarray:
    """Return the cross-validation error of every candidate."""
    rates = results.fold_errors / results.fold_rows
    # Sums of fractions of unequal folds round: equal counts must stay equal.
    return rates.mean("fold").values.ravel().round(12)


# Tables: on the screen, as CSV, as JSON and as a page.

HEAD = ("", "what", "paper", "ours", "s.e.", "verdict")
ABOUT = (
    "Two numbers agree if they lie within so many standard errors of their difference "
    "as Student's quantile of our repetitions says, 3 for very many, 4.1 for ten: ours "
    "over repetitions, the paper's as far as it can be known, and its rounding. Of "
    "many numbers a few in a thousand lie farther apart by chance. Of fewer than ten "
    "repetitions nothing is said. What the paper says in words is a number that must "
    "be above 0 by as many standard errors."
)
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title><style>
body { font: 16px/1.5 system-ui, sans-serif; color: #22303c; max-width: 860px;
       margin: 40px auto; padding: 0 24px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid #dde3e8; }
td:nth-last-child(-n+4):not(:last-child) { text-align: right; }
svg { width: 100%; height: auto; } figcaption { color: #5b6b79; font-size: .9rem; }
</style></head>
<body><h1>{{ title }}</h1><p><b>{{ short }}</b></p><p>{{ size }}</p><p>{{ about }}</p>
{%- macro table(rows) %}<table>{% for row in rows %}
<tr>{% set kind = "th" if loop.first else "td" -%}
{% for cell in row %}<{{ kind }}>{{ cell }}</{{ kind }}>{% endfor %}</tr>
{%- endfor %}</table>{% endmacro %}
{%- if differ[1:] %}<h2>What differs</h2>{{ table(differ) }}{% endif %}
{%- for heading, items in texts.items() if items %}
<h2>{{ heading }}</h2><ul>{% for each in items %}<li>{{ each }}</li>{% endfor %}</ul>
{%- endfor %}
{%- if drawn %}<h2>Figures</h2>{% for svg, caption in drawn %}
<figure>{{ svg | safe }}<figcaption>{{ caption }}</figcaption></figure>
{%- endfor %}{% endif %}
{%- for source, rows in tables.items() %}<h2>{{ source }}</h2>{{ table(rows) }}
{%- endfor %}
</body></html>
"""


def tables_of(comparisons: Sequence[Comparison]) -> dict[str, list[tuple[str, ...]]]:
    """Return rows of texts by source, the first of each with the headings."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for each in comparisons:
        tables.setdefault(each.source, [HEAD]).append(_cells(each))
    return tables


def _cells(each: Comparison) -> tuple[str, ...]:
    verdict = f"{each.verdict}: {each.why}" if each.why else each.verdict
    numbers = [
        f"{value:.4g}" if math.isfinite(value) else ""
        for value in (each.printed or 0.0, each.ours, each.standard_error)
    ]
    if each.printed is None:
        numbers[0] = "> 0"
    return (each.where, each.what, *numbers, verdict)


def as_lines(comparisons: Sequence[Comparison]) -> Iterable[str]:
    """Yield the tables as lines of text, the summary last."""
    for source, rows in tables_of(comparisons).items():
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield source
        for row in rows:
            cells = map(str.ljust, row, widths)
            yield f"  {'  '.join(cells)}".rstrip()
        yield ""
    yield in_short(comparisons)


def as_json(
    experiment: Experiment, results: xr.Dataset, comparisons: Sequence[Comparison]
) -> dict[str, Any]:
    """Return everything that the page says, for machines; what is unknown is None."""
    lines = [
        {
            name: None
            if isinstance(value, float) and not math.isfinite(value)
            else value
            for name, value in asdict(each).items()
        }
        for each in comparisons
    ]
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "seed": int(results.attrs["seed"]),
        "repetitions": results.sizes[REPETITION],
        "errors": list(experiment.errors),
        "departures": list(experiment.departures),
        "comparisons": lines,
    }


def write_tables(
    experiment: Experiment,
    results: xr.Dataset,
    comparisons: Sequence[Comparison],
    place: Any,
) -> list[Path]:
    """Write ``comparison.csv``, ``.json`` and ``.html`` and figures; return the files.

    The page loads nothing else. Without matplotlib there are no figures.
    """
    files = [Path(place) / f"comparison.{end}" for end in ("csv", "json", "html")]
    files[0].parent.mkdir(parents=True, exist_ok=True)
    told = as_json(experiment, results, comparisons)
    pd.DataFrame(told["comparisons"], dtype=object).to_csv(files[0], index=False)
    files[1].write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    drawn = []
    for each in experiment.figures(results) if find_spec("matplotlib") else ():
        drawn.append((svg_of(each.drawing), each.caption))
        files.append(Path(place) / f"{each.name}.svg")
        files[-1].write_text(drawn[-1][0], "utf-8")
    differ = [each for each in comparisons if each.verdict == DIFFERS]
    names = ", ".join(map(str, results[DATA_SET].values))
    page = jinja2.Environment(autoescape=True).from_string(PAGE).render(
        title=f"{experiment.paper}: printed, and reproduced",
        short=in_short(comparisons),
        size=f"{results.sizes[REPETITION]} repetitions on each of {names}; "
        f"seed {results.attrs['seed']}.",
        about=ABOUT,
        differ=[("", *HEAD), *((each.source, *_cells(each)) for each in differ)],
        texts={
            "Errors of the paper": experiment.errors,
            "Left open there, and done here": experiment.departures,
        },
        drawn=drawn,
        tables=tables_of(comparisons),
    )  # fmt: skip
    files[2].write_text(page, "utf-8")
    return files


def svg_of(drawing: Any) -> str:
    """Return a matplotlib figure as an SVG element, the same each time."""
    from matplotlib import rc_context

    file = StringIO()
    with rc_context({"svg.hashsalt": "dsel"}):
        drawing.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text[text.index("<svg") :])


# The command line of every script.


def main(*experiments: Experiment) -> None:
    """Run one of a script's experiments, the first by default, as options say."""
    command_of(*experiments)(prog_name=f"python {sys.argv[0]}")


def command_of(*experiments: Experiment) -> click.Command:
    """Return the command that `main` runs."""
    by_name = {each.name: each for each in experiments}
    about = [
        f"{each.name}: {each.paper}\n  shows: {each.shows}\n"
        f"  sets: {', '.join(each.sets)}\n"
        f"  {each.repetitions} repetitions; takes {each.duration}"
        for each in experiments
    ]

    @click.command(epilog="\b\n" + "\n".join(about))
    @click.option(
        "--data",
        type=click.Path(exists=True, file_okay=False),
        help="Folder of the benchmark sets; by default the one that DSEL_DATA names.",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False),
        help="Keep finished pieces there, and the tables as CSV, JSON and a page; the "
        "same command goes on from it.",
    )
    @click.option("--sets", help="Only these data sets, such as dna,segment.")
    @click.option(
        "--repetitions",
        type=click.IntRange(min=1),
        help="On each set; more may follow.",
    )
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
    @click.option("--scheduler", help="Dask scheduler whose workers run the searches.")
    @click.option("--jobs", default=-1, help="Processes; by default one a core.")
    @click.option("--json", "json_wanted", is_flag=True, help="Print JSON, no tables.")
    @click.option("--quiet", is_flag=True, help="Tell nothing of progress.")
    @click.argument(
        "name", default=experiments[0].name, type=click.Choice(list(by_name))
    )
    def command(name: str, **options: Any) -> None:
        """Measure what a paper prints, and put both side by side."""
        experiment, sets = by_name[name], options["sets"]
        if sets is not None:
            sets = tuple(dict.fromkeys(each.strip() for each in sets.split(",")))
        for each in sets or ():
            if each not in experiment.sets:
                raise click.UsageError(
                    f"--sets knows no {each!r}. There are {', '.join(experiment.sets)}."
                )
        if (options["repetitions"] or 1) > experiment.most_repetitions:
            most = experiment.most_repetitions
            raise click.UsageError(f"--repetitions must be at most {most}.")
        client: Any = nullcontext()
        if options["scheduler"] is not None:
            from distributed import Client

            client = Client(options["scheduler"])
        try:
            with client:
                results = run(
                    experiment,
                    sets=sets,
                    repetitions=options["repetitions"],
                    settings=replace(experiment.settings, seed=options["seed"]),
                    folder=options["data"],
                    out=options["out"],
                    jobs=options["jobs"],
                    told=lambda text: (
                        None if options["quiet"] else click.echo(text, err=True)
                    ),
                )
        except (FileNotFoundError, ModuleNotFoundError, ValueError) as error:
            raise click.ClickException(str(error)) from error
        comparisons = experiment.compare(results)
        if options["json_wanted"]:
            click.echo(json.dumps(as_json(experiment, results, comparisons)))
        else:
            click.echo("\n".join(as_lines(comparisons)))
        if options["out"] is not None:
            for file in write_tables(experiment, results, comparisons, options["out"]):
                click.echo(f"Wrote {file}", err=True)

    return command
