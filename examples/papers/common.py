"""What the scripts of the papers share: pieces, verdicts, tables, the command line.

A *piece* is one repetition on one data set; it is kept as one JSON file as soon as it
was measured, and a run goes on from the files that are there. A *row* is a number or
finding of a paper next to ours; the scripts yield them, and `judge` is the one rule by
which all are compared.

No duration is written by hand: `run` measures the processor seconds of every piece, and
`list_seconds` says what was measured with ``--record``.
"""

import json
import math
import os
import platform
import re
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
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
import psutil
import xarray as xr
from numpy.typing import ArrayLike
from scipy import stats

import dsel
from dsel.datasets import check_files

PAPERS = Path(__file__).parent
DATA_SET, REPETITION = "data_set", "repetition"
SECONDS = "processor_seconds"
"""Variable of the results: seconds of processors by piece, NaN where not known."""
SECONDS_FILE = PAPERS / "reference" / "processor_seconds.json"
"""What ``--record`` has written, by experiment and set, in the order of pieces."""
ALIKE = {
    "data_vars": "all", "coords": "minimal", "compat": "override", "join": "override",
}  # fmt: skip
"""How Datasets of the same shape are joined along new dimensions."""


class Row(NamedTuple):
    """One number, or one finding in words, of a paper and of ours."""

    source: str
    """Where it is printed, such as ``Table 3``."""
    where: str
    """Data set, and what else identifies the row or column of the table."""
    what: str
    """What it says; of a finding in words, what must be above 0."""
    ours: Any
    standard_error: Any = math.nan
    """Of ours, over repetitions; NaN where ours is the smallest number of them all."""
    printed: float | None = None
    """As printed; None for a finding in words, NaN where only ours is shown."""
    spread: float | None = None
    """Standard error of the difference: ours, the paper's and its rounding. None for
    whole numbers, which are equal or not."""
    why: str = ""
    """Why it cannot be compared."""
    note: str = ""
    """What else is said of it."""
    n: int | None = None
    """Repetitions behind ours, where these are not those of the run."""
    verdict: str = ""


@dataclass(frozen=True)
class Settings:
    """What pieces depend on besides set and repetition."""

    seed: int = 0


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper: what one piece measures, and what that is held to."""

    name: str
    paper: str
    shows: str
    """Tables and figures that are compared."""
    sets: tuple[str, ...]
    repetitions: int
    """As many as in the paper; of more of them the first are the same."""
    measure: Callable[..., xr.Dataset]
    """Takes what was loaded, the number of a repetition, settings, and the place where
    a long search may keep its counts (None where nothing is kept)."""
    compare: Callable[[xr.Dataset], Iterable[Row]]
    errors: Sequence[str]
    """Errors of the paper that matter here."""
    departures: Sequence[str]
    """What the paper leaves open or is otherwise here, and what is done."""
    settings: Any = Settings()
    """A frozen dataclass of what else pieces depend on, with a field `seed`."""
    figures: Callable[[xr.Dataset], Iterable[tuple[str, str, Any]]] = lambda _: ()
    """Names, such as ``figure-1-dna``, captions and matplotlib figures."""
    load: Callable[..., Any] = lambda name, folder: name
    """Takes a set and the folder of the benchmark sets; made-up sets are their name."""
    files: Mapping[str, str] | None = None
    """File of each set; None where data are made up."""
    in_processes: bool = False
    """Whether pieces are measured side by side; searches use all cores by themselves,
    and what is timed must be alone."""
    most_repetitions: int | None = None


def processor_seconds() -> float:
    """Return the seconds of processors that this process and its children have used.

    Children that have ended count, too: their parents have taken over their seconds.
    """
    this = psutil.Process()
    times = this.cpu_times()
    # This process has a finer clock than the hundredths of a second of other ones.
    seconds = time.process_time() + times.children_user + times.children_system
    for process in this.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended since it was listed
            seconds += sum(process.cpu_times()[:4])
    return seconds


def run(
    experiment: Experiment,
    *,
    sets: Sequence[str] | None = None,
    repetitions: int | None = None,
    settings: Any = None,
    folder: Any = None,
    out: Any = None,
    jobs: int = -1,
    clock: Callable[[], float] = processor_seconds,
    report: Callable[[str], None] = lambda _: None,
) -> xr.Dataset:
    """Measure all pieces that are not in `out` yet; return all of them together.

    ``processor_seconds`` of a piece are those that pass by `clock` in the process that
    measures it.
    """
    sets = list(experiment.sets if sets is None else sets)
    numbers = range(repetitions or experiment.repetitions)
    settings = settings or experiment.settings
    if experiment.files:
        check_files([experiment.files[name] for name in sets], folder=folder)
    known = json.loads(json.dumps({"experiment": experiment.name, **asdict(settings)}))
    # All sets are loaded first, so that what cannot be loaded fails before any work.
    tables = {name: experiment.load(name, folder) for name in sets}
    heads = {
        name: {"settings": known, "data": joblib.hash(table)}
        for name, table in tables.items()
    }

    def place_of(kind: str, name: str, n: int) -> Path | None:
        return None if out is None else Path(out, kind, f"{name}-{n}")

    pieces = {
        (name, n): _read_piece(place_of("pieces", name, n), heads[name])
        for name in sets
        for n in numbers
    }
    missing = [key for key, piece in pieces.items() if piece is None]
    measured = joblib.Parallel(
        n_jobs=jobs if experiment.in_processes and len(missing) > 1 else 1,
        return_as="generator",
    )(
        joblib.delayed(_measure_piece)(
            experiment.measure,
            (tables[name], n, settings, place_of("searches", name, n)),
            place_of("pieces", name, n),
            heads[name],
            clock,
        )
        for name, n in missing
    )
    began = time.monotonic()
    recorded, measured_now = recorded_seconds(experiment.name), defaultdict(list)
    # Where a set was never recorded, this run says how sets compare.
    basis = recorded if dict(missing).keys() <= recorded.keys() else measured_now
    for n_measured, (key, piece) in enumerate(zip(missing, measured, strict=True), 1):
        pieces[key] = piece
        measured_now[key[0]].append(float(piece[SECONDS]))
        done, left = missing[:n_measured], missing[n_measured:]
        time_left = _estimate_time_left(time.monotonic() - began, done, left, basis)
        n_done = len(pieces) - len(missing) + n_measured
        report(f"{n_done} of {len(pieces)} pieces ({key[0]}){time_left}")
    results = xr.combine_nested(
        [[pieces[name, n] for n in numbers] for name in sets],
        [DATA_SET, REPETITION],
        **ALIKE,
    )
    results = results.assign_coords({DATA_SET: sets, REPETITION: list(numbers)})
    results = results.transpose(DATA_SET, REPETITION, ...).assign_attrs(
        experiment=experiment.name, seed=settings.seed
    )
    report(_sum_up(sum(map(np.nansum, measured_now.values())), results))
    return results


def _measure_piece(
    measure: Callable[..., xr.Dataset],
    arguments: tuple[Any, ...],
    place: Path | None,
    head: Mapping[str, Any],
    clock: Callable[[], float],
) -> xr.Dataset:
    """Measure a piece, and keep it at once, whatever others are still measured.

    An interrupted piece may have kept searches, which make the rest of it short: its
    seconds are kept with them. Those of a piece that was killed are not known.
    """
    searches: Path | None = arguments[-1]
    earlier = 0.0
    if searches is not None and searches.exists():
        stored = searches / "seconds"
        earlier = float(stored.read_text("utf-8")) if stored.exists() else math.nan
        stored.unlink(missing_ok=True)
    began = clock()
    try:
        piece = measure(*arguments)
    except BaseException:
        if searches is not None and searches.exists():
            seconds = earlier + clock() - began
            (searches / "seconds").write_text(f"{seconds}", "utf-8")
        raise
    piece = piece.assign({SECONDS: earlier + clock() - began})
    _write_piece(place, {**head, "measured": piece.to_dict()})
    return piece


def _read_piece(place: Path | None, head: Mapping[str, Any]) -> xr.Dataset | None:
    """Return the stored piece; None if it must be measured."""
    if place is None or not (file := place.with_suffix(".json")).exists():
        return None
    stored = json.loads(file.read_text("utf-8"))
    if stored["settings"] != head["settings"]:
        raise ValueError(
            f"`out` holds pieces of other settings ({file}); name another folder, or "
            f"the seed that they were made with."
        )
    if stored["data"] != head["data"]:
        return None
    piece = xr.Dataset.from_dict(stored["measured"])
    # Pieces of 0.2 have no seconds.
    return piece if SECONDS in piece else piece.assign({SECONDS: math.nan})


def _write_piece(place: Path | None, content: Mapping[str, Any]) -> None:
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(content), "utf-8")
        part.replace(place.with_suffix(".json"))  # a kill leaves no half of a piece


# How long pieces take.


def recorded_seconds(name: str) -> dict[str, list[float]]:
    """Return the recorded processor seconds of an experiment's pieces, by set."""
    stored = json.loads(SECONDS_FILE.read_text("utf-8"))["experiments"]
    return stored[name]["sets"] if name in stored else {}


def record_seconds(results: xr.Dataset) -> None:
    """Record the processor seconds of sets, where those of all pieces are known."""
    stored = json.loads(SECONDS_FILE.read_text("utf-8"))
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    experiment = stored["experiments"].get(results.attrs["experiment"], {})
    # Seconds of two machines do not stand in one line.
    sets = experiment["sets"] if experiment.get("machine") == machine else {}
    for name, pieces in results[SECONDS].groupby(DATA_SET):
        if np.isfinite(pieces).all():
            sets[str(name)] = pieces.values.ravel().round(3).tolist()
    stored["experiments"][results.attrs["experiment"]] = {
        "machine": machine,
        "dsel": dsel.__version__,
        "sets": sets,
    }
    SECONDS_FILE.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


def list_seconds(experiment: Experiment) -> str:
    """Return the recorded seconds of sets: of the first piece, and mean of others.

    The number of pieces that were measured stands in brackets.
    """
    recorded, texts = recorded_seconds(experiment.name), []
    for name in experiment.sets:
        seconds = recorded.get(name, [])
        shown = ", ".join(f"{each:.3g}" for each in _first_and_further(seconds))
        texts.append(
            f"{name} {shown} ({len(seconds)})" if shown else f"{name} not measured"
        )
    return "; ".join(texts)


def expect_seconds(experiment: Experiment) -> float:
    """Return the seconds of the paper's size at the recorded pace; NaN if not known."""
    recorded, seconds = recorded_seconds(experiment.name), 0.0
    for name in experiment.sets:
        first, *further = _first_and_further(recorded.get(name, [])) or [math.nan]
        # Where the first piece does what all share, it says nothing of the others.
        seconds += first + (experiment.repetitions - 1) * (*further, math.nan)[0]
    return seconds


def _first_and_further(seconds: Sequence[float]) -> list[float]:
    """Return seconds of the first piece, which may do more, and the mean of others.

    Either is missing where there are no such pieces.
    """
    return [float(np.mean(part)) for part in (seconds[:1], seconds[1:]) if part]


def _estimate_time_left(
    seconds: float,
    done: Sequence[tuple[str, int]],
    left: Sequence[tuple[str, int]],
    known: Mapping[str, Sequence[float]],
) -> str:
    """Return how long the pieces that are left will take; nothing if that is not known.

    Those that are done took `seconds`; of the processor seconds of pieces that are
    `known` by set, only ratios matter.
    """
    # One piece is no estimate: the first has loaded and compiled what all need.
    if len(done) < 2 or not left or not dict(left).keys() <= known.keys():
        return ""
    first = dict(reversed((*done, *left)))

    def expect(keys: Sequence[tuple[str, int]]) -> float:
        return sum(
            _first_and_further(known[name])[0 if n == first[name] else -1]
            for name, n in keys
        )

    time_left = seconds * expect(left) / max(expect(done), 1e-9)
    return f", about {as_time(time_left)} left" if math.isfinite(time_left) else ""


def _sum_up(seconds_now: float, results: xr.Dataset) -> str:
    """Return the processor time of all pieces, and that of this run, as text."""
    seconds = results[SECONDS].values
    is_known = np.isfinite(seconds)
    text = (
        f"{is_known.sum()} of {seconds.size} pieces: "
        f"{as_time(seconds[is_known].sum())} of processors, "
        f"{as_time(seconds_now)} of them in this run"
    )
    return text if is_known.all() else f"{text}; those of the others are not known"


def as_time(seconds: float) -> str:
    """Return a time in seconds, minutes or hours, as fits its size."""
    size, unit = next(
        (size, unit)
        for limit, size, unit in (
            (90.0, 1, "seconds"), (5400.0, 60, "minutes"), (math.inf, 3600, "hours"),
        )
        if seconds < limit
    )  # fmt: skip
    return f"{seconds / size:.{1 if seconds / size < 10 else 0}f} {unit}"


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


# Numbers of a paper next to ours, and whether they agree.

MOST_ERRORS = 3.0
"""Standard errors within which two numbers agree, were there one line and very many
repetitions; of several lines, the probability beyond them is divided among these."""
ROUNDING = 1e-12
"""Difference of numbers that are equal, relative to the larger of 1 and the number."""
FEWEST = 10
"""Repetitions below which nothing is compared."""
AGREES = "agrees"
DIFFERS = "differs"
OPEN = "not compared"
"""Verdicts; what is not compared says why."""


def judge(row: Row, n_repetitions: int, n_lines: int = 1) -> Row:
    """Return the row with its verdict, and `why` with all that is said of it.

    Two numbers agree within Student's quantile, a finding is one beyond it. Where the
    paper is right, one of `n_lines` or more differs with the probability with which a
    single one would: Bonferroni's correction.
    """
    n, why = row.n or n_repetitions, row.why
    ours, error, printed, spread = (
        None if each is None else float(each) for each in row[3:7]
    )
    quantile = _quantile(n, n_lines)
    is_whole = _is_whole(row) and not why
    if not is_whole and not why and n < FEWEST:
        why = f"too few to say: {n} of at least {FEWEST}"
    difference = ""
    if is_whole:
        agrees = ours == printed
    elif printed is None:
        agrees = ours > 0.0
        if not why and abs(ours) <= max(quantile * np.nan_to_num(error), ROUNDING):
            why = f"no difference within {quantile:.1f} s.e."
    elif not why and abs(ours - printed) <= ROUNDING * max(1.0, abs(printed)):
        # An identity: what differs is rounding, and so is its standard error.
        agrees, difference = True, "equal"
    else:
        distance = (ours - printed) / (spread or math.nan)
        agrees, difference = abs(distance) <= quantile, f"{distance:+.1f} s.e."
        if not why and not math.isfinite(distance):
            why = "no standard error: all repetitions are alike, or it is not known"
    return row._replace(
        ours=ours,
        standard_error=error,
        printed=printed,
        verdict=OPEN if why else AGREES if agrees else DIFFERS,
        why="; ".join(filter(None, (why or difference, row.note))),
    )


@lru_cache  # lines of a table have the same numbers
def _quantile(n_repetitions: int, n_lines: int) -> float:
    """Return Student's quantile for the mean of repetitions.

    It is left with the probability that a normal number is left beyond three standard
    errors, divided among the lines.
    """
    beyond = stats.norm.sf(MOST_ERRORS) / n_lines
    return float(stats.t.isf(beyond, max(n_repetitions - 1, 1)))


def _is_whole(row: Row) -> bool:
    return row.printed is not None and row.spread is None


def mean_of(values: ArrayLike) -> tuple[Any, Any]:
    """Return the mean over the first axis and its standard error; NaN for one value."""
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    error = numbers.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.nan * numbers[0]
    return numbers.mean(axis=0), error


def share_of(count: int, n: int) -> tuple[float, float]:
    """Return a share and its standard error, never 0: one more could differ."""
    smoothed = (count + 0.5) / (n + 1)
    return count / n, math.sqrt(smoothed * (1 - smoothed) / n)


def in_short(rows: Iterable[Row]) -> str:
    """Return one line about all of them."""
    found = [each.verdict for each in rows]
    agree, differ, left = map(found.count, (AGREES, DIFFERS, OPEN))
    return (
        f"Agree with the paper: {agree} of {len(found)}; differ: {differ}; "
        f"not compared: {left}."
    )


def printed_table(text: str) -> dict[str, tuple[float, ...]]:
    """Return the numbers of each line of a table, by the name at its beginning."""
    rows = (line.split() for line in text.strip().splitlines())
    return {name: tuple(map(float, numbers)) for name, *numbers in rows}


# Tables: on the screen, as CSV, as JSON and as a page.

HEAD = ("", "what", "paper", "ours", "s.e.", "verdict")
ABOUT = (
    "Two numbers agree if they lie within as many standard errors of their difference "
    "as Student's quantile of our repetitions: ours over repetitions, the paper's "
    "as far as it can be known, and its rounding. It is 3 for one line and very many "
    "repetitions; of n lines each may be wrong with an n-th of the probability that "
    "this leaves, so that any line of a page differs by chance in 3 of 1,000 pages. "
    "What is equal to rounding agrees. Of fewer than ten "
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


def compare_rows(experiment: Experiment, results: xr.Dataset) -> list[Row]:
    """Return all rows of an experiment with their verdicts."""
    n, rows = results.sizes[REPETITION], list(experiment.compare(results))
    # Whole numbers are equal or not, and what says why is not compared.
    n_lines = sum(not row.why and not _is_whole(row) for row in rows)
    return [judge(row, n, max(n_lines, 1)) for row in rows]


def tables_of(rows: Iterable[Row]) -> dict[str, list[tuple[str, ...]]]:
    """Return cells by source, those of the headings first."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        tables.setdefault(row.source, [HEAD]).append(_cells(row))
    return tables


def _cells(row: Row) -> tuple[str, ...]:
    numbers = [
        "> 0" if value is None else f"{value:.4g}" if math.isfinite(value) else ""
        for value in (row.printed, row.ours, row.standard_error)
    ]
    return row.where, row.what, *numbers, f"{row.verdict}: {row.why}".rstrip(": ")


def as_lines(rows: Sequence[Row]) -> Iterable[str]:
    """Yield the tables as lines of text, the summary last."""
    for source, cells in tables_of(rows).items():
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield source
        for row in cells:
            yield f"  {'  '.join(map(str.ljust, row, widths))}".rstrip()
        yield ""
    yield in_short(rows)


def as_json(
    experiment: Experiment, results: xr.Dataset, rows: Iterable[Row]
) -> dict[str, Any]:
    """Return everything that the page says, for machines; what is unknown is None."""
    numbers = ("printed", "ours", "standard_error")
    lines = [
        {name: getattr(row, name) for name in ("source", "where", "what", *numbers)}
        | {name: None for name in numbers if not math.isfinite(getattr(row, name) or 0)}
        | {"verdict": row.verdict, "why": row.why}
        for row in rows
    ]
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "seed": int(results.attrs["seed"]),
        "repetitions": results.sizes[REPETITION],
        "errors": list(experiment.errors),
        "departures": list(experiment.departures),
        SECONDS: {
            str(name): [each if math.isfinite(each) else None for each in pieces]
            for name, pieces in zip(
                results[DATA_SET].values, results[SECONDS].values.tolist(), strict=True
            )
        },
        "comparisons": lines,
    }


def write_tables(
    experiment: Experiment, results: xr.Dataset, rows: Sequence[Row], place: Any
) -> list[Path]:
    """Write ``comparison.csv``, ``.json`` and ``.html`` and figures; return the files.

    The page loads nothing else. Without matplotlib there are no figures.
    """
    files = [Path(place) / f"comparison.{end}" for end in ("csv", "json", "html")]
    files[0].parent.mkdir(parents=True, exist_ok=True)
    record = as_json(experiment, results, rows)
    pd.DataFrame(record["comparisons"], dtype=object).to_csv(files[0], index=False)
    files[1].write_text(
        json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8"
    )
    drawn = []
    for name, caption, figure in (
        experiment.figures(results) if find_spec("matplotlib") else ()
    ):
        drawn.append((svg_of(figure), caption))
        files.append(Path(place) / f"{name}.svg")
        files[-1].write_text(drawn[-1][0], "utf-8")
    differ = [row for row in rows if row.verdict == DIFFERS]
    names = ", ".join(map(str, results[DATA_SET].values))
    page = jinja2.Environment(autoescape=True).from_string(PAGE).render(
        title=f"{experiment.paper}: printed, and reproduced",
        short=in_short(rows),
        size=f"{results.sizes[REPETITION]} repetitions on each of {names}; "
        f"seed {results.attrs['seed']}.",
        about=ABOUT,
        differ=[("", *HEAD), *((row.source, *_cells(row)) for row in differ)],
        texts={
            "Errors of the paper": experiment.errors,
            "Left open there, and done here": experiment.departures,
        },
        drawn=drawn,
        tables=tables_of(rows),
    )  # fmt: skip
    files[2].write_text(page, "utf-8")
    return files


def svg_of(figure: Any) -> str:
    """Return a matplotlib figure as an SVG element, the same each time; close it."""
    from matplotlib import pyplot as plt

    file = StringIO()
    with plt.rc_context({"svg.hashsalt": "dsel"}):
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    text = file.getvalue()
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text[text.index("<svg") :])


def lines_of(values: xr.DataArray, **how: Any) -> Any:
    """Return a figure with a panel for each value along ``col=`` and ``row=``.

    The rest are options of `DataArray.plot.line`: ``x=``, ``hue=``, ``xscale=``.
    """
    style = {"marker": "o", "ms": 3.5, "lw": 1.2, "figsize": None}
    return values.plot.line(**style | how).fig


# The command line of every script.


def _seconds_text(experiment: Experiment) -> str:
    """Return lines of the help about what pieces took."""
    seconds = expect_seconds(experiment)
    text = (
        "processor seconds of the first piece of a set, of further ones (and number of "
        f"pieces that were measured): {list_seconds(experiment)}"
    )
    if math.isfinite(seconds):
        text += f". All pieces at this pace, computed: {as_time(seconds)}"
    return textwrap.fill(text, 78, initial_indent="  ", subsequent_indent="    ")


def main(*experiments: Experiment) -> None:
    """Run one of a script's experiments, the first by default, as options say."""
    command_of(*experiments)(prog_name=f"python {sys.argv[0]}")


def command_of(*experiments: Experiment) -> click.Command:
    """Return the command that `main` runs."""
    by_name = {each.name: each for each in experiments}
    first = experiments[0]
    about = [
        f"{each.name}: {each.paper}\n  shows: {each.shows}\n"
        f"  sets: {', '.join(each.sets)}\n"
        f"  {each.repetitions} repetitions\n" + _seconds_text(each)
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
        type=click.IntRange(1, first.most_repetitions),
        help="On each set; more may follow.",
    )
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
    @click.option("--scheduler", help="Dask scheduler whose workers run the searches.")
    @click.option("--jobs", default=-1, help="Processes; by default one a core.")
    @click.option(
        "--record",
        is_flag=True,
        help=f"Put the processor seconds of the pieces into {SECONDS_FILE.name}, which "
        "this help reads.",
    )
    @click.option("--json", "json_wanted", is_flag=True, help="Print JSON, no tables.")
    @click.option("--quiet", is_flag=True, help="Show no progress.")
    @click.argument("name", default=first.name, type=click.Choice(list(by_name)))
    def command(
        name: str, data: Any, out: Any, sets: str | None, repetitions: int | None,
        seed: int, scheduler: str | None, jobs: int, record: bool, json_wanted: bool,
        quiet: bool,
    ) -> None:  # fmt: skip
        """Measure what a paper prints, and put both side by side."""
        experiment = by_name[name]
        wanted = [each.strip() for each in sets.split(",")] if sets else experiment.sets
        for each in wanted:
            if each not in experiment.sets:
                raise click.UsageError(
                    f"--sets knows no {each!r}. There are {', '.join(experiment.sets)}."
                )
        client: Any = nullcontext()
        # Seconds of a cluster's workers are not measured, and they may serve others.
        clock = processor_seconds if scheduler is None else lambda: math.nan
        try:
            if scheduler is not None:
                from distributed import Client

                client = Client(scheduler)
            with client:
                results = run(
                    experiment, sets=list(dict.fromkeys(wanted)),
                    repetitions=repetitions,
                    settings=replace(experiment.settings, seed=seed),
                    folder=data, out=out, jobs=jobs, clock=clock,
                    report=lambda text: None if quiet else click.echo(text, err=True),
                )  # fmt: skip
        except (OSError, ModuleNotFoundError, ValueError, MemoryError) as error:
            raise click.ClickException(str(error)) from error
        if record:
            record_seconds(results)
        rows = compare_rows(experiment, results)
        if json_wanted:
            click.echo(json.dumps(as_json(experiment, results, rows)))
        else:
            click.echo("\n".join(as_lines(rows)))
        if out is not None:
            for file in write_tables(experiment, results, rows, out):
                click.echo(f"Wrote {file}", err=True)

    return command
