"""``dsel reproduce``: the tables of the papers, printed and measured side by side."""

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import click
from click.core import ParameterSource

from dsel.cli.options import cluster_options, connected, is_verbose, output_options
from dsel.datasets import PUBLIC_NAMES
from dsel.experiments import EXPERIMENTS, Experiment, run_experiment
from dsel.experiments.tables import as_json, as_lines, write_tables
from dsel.report.text import text_table
from dsel.runtime.progress import piece_progress

BY_NAME: Final = {each.name: each for each in EXPERIMENTS}


@click.command
@click.argument("name", required=False)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of the benchmark sets; by default the one that DSEL_DATA names.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="Keep finished repetitions there, and the tables as CSV, JSON and a page; the "
    "same command goes on from it.",
)
@click.option("--sets", help="Only these data sets, such as dna,segment.")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help="Repetitions on each set; more may be added later.",
)
@click.option("--seed", type=int, help="Seed of everything; by default 0.")
@cluster_options
@output_options
@click.pass_context
def command(context: click.Context, /, name: str | None, **options: Any) -> None:
    """Measure what a paper prints, and put both side by side.

    NAME is an experiment; without one all that can be reproduced is listed.
    """
    if name is None:
        _refuse_options(context)
        click.echo("\n".join(_listing()))
        return
    if "://" in (options["out"] or ""):
        raise click.UsageError(
            f"--out must be a folder, since tables are written there, too; got "
            f"{options['out']!r}."
        )
    experiment = BY_NAME[_known([name], BY_NAME, "NAME")[0]]
    scale = experiment.scale(
        sets=_sets(experiment, options["sets"]),
        repetitions=options["repetitions"],
        seed=options["seed"],
    )
    experiment.check_files(scale, folder=options["data"])  # before workers start
    verbose = is_verbose(options)
    n_pieces = len(scale.sets) * scale.repetitions
    with connected(options) as client, piece_progress(verbose, n_pieces) as on_piece:
        results = run_experiment(
            experiment,
            scale,
            folder=options["data"],
            client=client,
            out=options["out"],
            on_piece=on_piece,
        )
    comparisons = experiment.compare(results)
    found = as_json(experiment, results, comparisons)
    click.echo(
        json.dumps(found) if options["as_json"] else "\n".join(as_lines(comparisons))
    )
    if options["out"] is None:
        return
    for file in write_tables(experiment, results, comparisons, options["out"]):
        click.echo(f"Wrote {file}", err=True)


def _refuse_options(context: click.Context) -> None:
    """Raise where options of a run are given without an experiment."""
    given = [
        each.opts[0]
        for each in context.command.params
        if context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)} needs NAME: what is reproduced.")


def _sets(experiment: Experiment, listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    wanted = [each.strip() for each in listed.split(",")]
    return _known(wanted, experiment.scales["paper"].sets, "--sets")


def _known(wanted: Iterable[str], known: Iterable[str], option: str) -> tuple[str, ...]:
    """Return the names, or raise where one is unknown, and say which is nearest."""
    names = list(known)
    for each in wanted:
        if each not in names:
            near = get_close_matches(each, names, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(
                f"{option} knows no {each!r}.{meant} There are {', '.join(names)}."
            )
    return tuple(wanted)


def _listing() -> Iterator[str]:
    """Yield what can be reproduced, and what it takes."""
    for each in EXPERIMENTS:
        scale = each.scales["paper"]
        yield each.name
        yield f"  {each.paper}"
        yield f"  shows: {each.shows}"
        yield f"  sets: {', '.join(scale.sets)}; {scale.repetitions} repetitions each"
        yield f"  takes: {each.duration}, on two cores"
        yield f"  needs: {'--data' if each.files else 'nothing, data are made up'}"
        yield ""
    yield "dsel reproduce NAME --data DIR --out DIR runs one; --sets and --repetitions"
    yield "run a part of it. DIR of --data holds these sets, as dsel.datasets says:"
    files = {name for each in EXPERIMENTS for name in each.files.values()}
    yield from text_table([(name, PUBLIC_NAMES[name]) for name in sorted(files)])
