"""What the scripts of the papers share: pieces, searches, tables, the command line.

A *piece* is one repetition on one data set; it is kept as one JSON file as soon as it
was measured, and a run goes on from the files that are there. A *comparison*
(`comparison.py`) is a number or finding of a paper beside ours, with a verdict.
"""

import csv
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from hashlib import blake2b
from html import escape
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import click
import joblib
import numpy as np
import xarray as xr
from comparison import DIFFERS, Comparison, in_short

import dsel
from dsel.co_validation import plan_covalidation
from dsel.datasets import check_files, load_set

PAPERS = Path(__file__).parent
DATA_SET, REPETITION = "data_set", "repetition"
FOLD_STREAM, HOLDOUT_STREAM = 0, 4
"""Of dsel's random numbers by row: which fold a row is in, and what is held out."""


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, drawn from what was measured."""

    name: str
    """Of its file, such as ``figure-1-dna``."""
    caption: str
    draw: Callable[[Any], None]
    """Takes an empty matplotlib figure, for all panels."""
    width: float = 9.0
    height: float = 3.4


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
    figures: Callable[[xr.Dataset], Sequence[Figure]] = lambda _: ()
    load: Callable[[str, Any], Any] = lambda name, folder: name
    """Takes a set and the folder of the benchmark sets; made-up sets are their name."""
    files: Mapping[str, str] | None = None
    """File of each set; None where data are made up."""
    modules: Mapping[str, str] | None = None
    """Module that loading a set needs beyond dsel's own, where one does."""
    in_processes: bool = False
    """Whether pieces are measured side by side; searches use all cores by themselves,
    and what is timed must be alone."""
    most_repetitions: int | None = None


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
    repetitions = repetitions or experiment.repetitions
    settings = settings or experiment.settings
    if experiment.files:
        check_files([experiment.files[name] for name in sets], folder=folder)
    for module in {(experiment.modules or {}).get(name) for name in sets} - {None}:
        if find_spec(module) is None:
            raise ModuleNotFoundError(
                f"some sets need {module}, which is not installed; "
                f"pip install 'dsel[papers]', or name others by --sets."
            )
    kept = {"experiment": experiment.name, **asdict(settings)}
    kept = json.loads(json.dumps(kept))
    rows = []
    for name in sets:
        loaded = experiment.load(name, folder)
        head = {"settings": kept, "data": joblib.hash(loaded)}
        places = [_piece_place(out, name, number) for number in range(repetitions)]
        pieces = [_read_piece(place, head) for place in places]
        missing = [number for number, piece in enumerate(pieces) if piece is None]
        tasks = (
            joblib.delayed(_measured)(experiment, loaded, number, settings, out, name)
            for number in missing
        )
        n_jobs = jobs if experiment.in_processes and len(missing) > 1 else 1
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
        for number, piece in zip(missing, parallel(tasks), strict=True):
            pieces[number] = piece
            if places[number] is not None:
                _write_piece(places[number], {**head, "measured": piece})
            told(f"{name}: piece {number + 1} of {repetitions}")
        rows.append(pieces)
    variables = {
        name: (
            (DATA_SET, REPETITION, *dims),
            np.array([[piece[name] for piece in row] for row in rows]),
        )
        for name, dims in experiment.measured.items()
    }
    axes = {name: list(each) for name, each in experiment.axes(settings).items()}
    coords = {DATA_SET: list(sets), REPETITION: np.arange(repetitions), **axes}
    attrs = {"experiment": experiment.name, "seed": settings.seed}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _measured(
    experiment: Experiment, loaded: Any, number: int, settings: Any, out: Any, name: str
) -> dict[str, Any]:
    place = None if out is None else str(Path(out) / "searches" / f"{name}-{number}")
    piece = experiment.measure(loaded, number, settings, place)
    return {key: np.asarray(value).tolist() for key, value in piece.items()}


def _piece_place(out: Any, name: str, number: int) -> Path | None:
    return None if out is None else Path(out) / "pieces" / f"{name}-{number}.json"


def _read_piece(place: Path | None, head: Mapping[str, Any]) -> Any:
    """Return what a file has measured; None where it must be measured (again)."""
    if place is None or not place.exists():
        return None
    stored = json.loads(place.read_text("utf-8"))
    if stored["settings"] != head["settings"]:
        raise ValueError(
            f"`out` holds pieces of other settings ({place}); name another folder, or "
            f"the seed that they were made with."
        )
    return stored["measured"] if stored["data"] == head["data"] else None


def _write_piece(place: Path, content: Mapping[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content), "utf-8")
    part.replace(place)  # a killed run leaves no half of a piece


# Randomness and searches: all that the scripts ask of dsel's searches stands here.


def seed_of(seed: int, *parts: Any) -> int:
    """Return a seed that is a fixed hash of values, on every machine."""
    text = json.dumps([seed, *parts], separators=(",", ":")).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % 2**31


def ranks(n_rows: int, stream: int, seed: int) -> np.ndarray:
    """Return a random order of rows, the one that dsel's own splits have."""
    key = np.array([seed, stream], dtype=np.uint64)
    order = np.argsort(np.random.Philox(key=key).random_raw(n_rows), kind="stable")
    return np.argsort(order)


def counts_of(
    estimator: Any,
    grid: Mapping[str, Any],
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    cv: Any,
    seed: int,
    out: Any = None,
    delta: float = 0.05,
) -> xr.Dataset:
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


def params_at(results: xr.Dataset, place: int) -> dict[str, Any]:
    """Return the parameters of a candidate by its number."""
    shape = results.status.shape
    dims = results.status.dims
    return {
        str(dim): results[dim].values[at].item()
        for dim, at in zip(dims, np.unravel_index(place, shape), strict=True)
    }


def halves_of(
    estimator: Any,
    grid: Mapping[str, Any],
    X: Any,
    y: Any,
    pool: Any,
    tested: tuple[Any, Any],
    *,
    repeats: int,
    seed: int,
    leave_one_out: bool = False,
) -> xr.Dataset:
    """Return the counts of co-validation, and errors on the labels of tested rows."""
    plan = plan_covalidation(
        estimator, grid, X, y, pool, repeats=repeats, random_state=seed,
        leave_one_out=leave_one_out,
    )  # fmt: skip
    counts = plan.run().results
    rows, labels = tested
    errors = np.array([
        [
            np.sum(plan.model(number, fold).predict(rows) != labels)
            for fold in (*range(2 * repeats), None)  # None: the model of all rows
        ]
        for number in range(plan.n_candidates)
    ])  # fmt: skip
    of_halves, of_full = counts.fold_errors, counts.status
    return counts.assign(
        half_test_errors=(of_halves.dims, errors[:, :-1].reshape(of_halves.shape)),
        full_test_errors=(of_full.dims, errors[:, -1].reshape(of_full.shape)),
        test_rows=len(labels),
    )


def labeled_set(name: str, folder: Any) -> Any:
    """Load a benchmark set by the name of its file."""
    return load_set(name, folder=folder)


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
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #22303c; max-width: 860px;
       margin: 40px auto; padding: 0 24px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid #dde3e8; }
td:nth-last-child(-n+4):not(:last-child) { text-align: right; }
svg { width: 100%; height: auto; } figcaption { color: #5b6b79; font-size: .9rem; }
"""


def as_lines(comparisons: Sequence[Comparison]) -> Iterable[str]:
    """Yield the tables as lines of text, the summary last."""
    for source, group in _by_source(comparisons).items():
        rows = [HEAD, *map(_cells, group)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield source
        for row in rows:
            cells = [
                cell.rjust(width) if 2 <= place <= 4 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield f"  {'  '.join(cells)}".rstrip()
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


def write_tables(
    experiment: Experiment,
    results: xr.Dataset,
    comparisons: Sequence[Comparison],
    place: Any,
) -> list[Path]:
    """Write ``comparison.csv``, ``.json`` and ``.html`` and figures; return the files.

    Without matplotlib there are no figures.
    """
    files = [Path(place) / f"comparison.{end}" for end in ("csv", "json", "html")]
    files[0].parent.mkdir(parents=True, exist_ok=True)
    with files[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Comparison)])
        writer.writeheader()
        writer.writerows(_finite(asdict(each)) for each in comparisons)
    found = as_json(experiment, results, comparisons)
    files[1].write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    drawn = experiment.figures(results) if find_spec("matplotlib") else ()
    svgs = [(each, svg_of(each)) for each in drawn]
    for each, svg in svgs:
        files.append(Path(place) / f"{each.name}.svg")
        files[-1].write_text(svg, "utf-8")
    files[2].write_text(_page(experiment, results, comparisons, svgs), "utf-8")
    return files


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(figure.width, figure.height), layout="constrained")
    figure.draw(drawing)
    file = StringIO()
    with rc_context({"svg.hashsalt": "dsel"}):  # the same file each time
        drawing.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text[text.index("<svg") :])


def _page(
    experiment: Experiment,
    results: xr.Dataset,
    comparisons: Sequence[Comparison],
    drawn: Sequence[tuple[Figure, str]],
) -> str:
    """Return tables and figures as an HTML page that loads nothing else."""
    differ = [each for each in comparisons if each.verdict == DIFFERS]
    names = ", ".join(map(str, results[DATA_SET].values))
    size = f"{results.sizes[REPETITION]} repetitions on each of {names}; "
    size += f"seed {results.attrs['seed']}."
    title = escape(f"{experiment.paper}: printed, and reproduced")
    figures = "".join(
        f"<figure>{svg}<figcaption>{escape(each.caption)}</figcaption></figure>"
        for each, svg in drawn
    )
    parts = [
        f"<h1>{title}</h1><p><b>{escape(in_short(comparisons))}</b></p>",
        f"<p>{escape(size)}</p><p>{ABOUT}</p>",
        _section("What differs", _html_table(differ, with_source=True), differ),
        _section("Errors of the paper", _bullets(experiment.errors), experiment.errors),
        _section(
            "Left open there, and done here",
            _bullets(experiment.departures),
            experiment.departures,
        ),
        _section("Figures", figures, drawn),
        *(
            _section(source, _html_table(group), group)
            for source, group in _by_source(comparisons).items()
        ),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _section(heading: str, body: str, content: Sequence[Any]) -> str:
    return f"<h2>{escape(heading)}</h2>{body}" if content else ""


def _bullets(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _html_table(group: Sequence[Comparison], *, with_source: bool = False) -> str:
    rows = [HEAD, *map(_cells, group)]
    if with_source:
        rows = [("", *HEAD), *((each.source, *_cells(each)) for each in group)]
    lines = [
        "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row)
        for kind, row in zip(["th"] + ["td"] * len(group), rows, strict=True)
    ]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _by_source(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    groups: dict[str, list[Comparison]] = {}
    for each in comparisons:
        groups.setdefault(each.source, []).append(each)
    return groups


def _cells(each: Comparison) -> tuple[str, ...]:
    verdict = f"{each.verdict}: {each.why}" if each.why else each.verdict
    numbers = [
        f"{value:.4g}" if math.isfinite(value) else ""
        for value in (each.printed or 0.0, each.ours, each.standard_error)
    ]
    if each.printed is None:
        numbers[0] = "> 0"
    return (each.where, each.what, *numbers, verdict)


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(each, float) and not math.isfinite(each) else each
        for name, each in values.items()
    }


# The command line of every script.


def main(*experiments: Experiment) -> None:
    """Run one of a script's experiments, the first by default, as options say."""
    command_of(*experiments)(prog_name=f"python {sys.argv[0]}")


def command_of(*experiments: Experiment) -> click.Command:
    """Return the command that `main` runs."""
    by_name = {each.name: each for each in experiments}

    @click.command(epilog="\b\n" + "\n".join(map(_about, experiments)))
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
        experiment = by_name[name]
        sets = _sets(experiment, options["sets"])
        most = experiment.most_repetitions or math.inf
        if (options["repetitions"] or 1) > most:
            raise click.UsageError(f"--repetitions must be at most {most}.")
        try:
            with _client(options["scheduler"]):
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


def _about(experiment: Experiment) -> str:
    return "\n".join(
        [
            f"{experiment.name}: {experiment.paper}",
            f"  shows: {experiment.shows}",
            f"  sets: {', '.join(experiment.sets)}",
            f"  {experiment.repetitions} repetitions; takes {experiment.duration}",
        ]
    )


def _sets(experiment: Experiment, listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    wanted = tuple(dict.fromkeys(each.strip() for each in listed.split(",")))
    for each in wanted:
        if each not in experiment.sets:
            near = get_close_matches(each, experiment.sets, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(
                f"--sets knows no {each!r}.{meant} There are "
                f"{', '.join(experiment.sets)}."
            )
    return wanted


def _client(address: str | None) -> Any:
    if address is None:
        return nullcontext()
    from distributed import Client

    return Client(address)
