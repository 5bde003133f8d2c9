"""Options of ``dsel select``: choose a model from files."""

import os
from dataclasses import dataclass
from typing import Final

import click

from dsel.cli.grids import check_models
from dsel.cli.option_types import ListOption, as_text
from dsel.cli.options import (
    ClusterOptions,
    ExistingPath,
    NameOf,
    RunOutput,
    TextOptions,
    day_first_option,
    gap_option,
    number_option,
    run_from,
    run_options,
    text_column_option,
    text_options,
    trust_option,
)
from dsel.cli.stops import new_place, undecided_words
from dsel.option_values import (
    ALL_ROWS,
    CERTIFICATES,
    CLASSIFIERS,
    DEFAULT_MODELS,
    LARGEST_CLASS,
    LOSS_FORMS,
    MODELS_OF_GRID,
    ONE_FOLD,
    REGRESSORS,
    TASKS,
)


@dataclass(frozen=True)
class SelectOptions:
    """Values of all options and arguments."""

    labeled: str
    target: str | None
    pool: str | None
    drop: tuple[str, ...]
    ids: tuple[str, ...]
    groups: str | None
    text: TextOptions
    day_first: bool | None
    number: tuple[str, ...]
    texts: tuple[str, ...]
    gaps: tuple[str, ...]
    unlabeled_words: tuple[str, ...]
    gap_classes: tuple[str, ...]
    task: str | None
    model: str | None
    grid: tuple[str, ...]
    certificate: str | None
    deploy: str | None
    loss: tuple[str, ...]
    report_by: str | None
    queries: int
    baseline: str | None
    cv: int | None
    only_plan: bool
    trust: tuple[str, ...]
    output: RunOutput
    seed: int
    delta: float
    cluster: ClusterOptions
    out: str | None


REPORT: Final = "report"
"""Text of ``--loss`` that asks for a report, and the beginning of longer ones."""


def is_report(text: str) -> bool:
    """Return whether a text of ``--loss`` asks for a report."""
    return text == REPORT or text.startswith((f"{REPORT}:", f"{REPORT}="))


def check_words(options: SelectOptions) -> None:
    """Raise the error of click if options contradict each other, whatever tables have.

    Nothing heavy is imported for it.
    """
    check_models(options.model, options.grid)
    if options.queries and not options.out:
        place = new_place("results") if os.path.exists("results") else "results"
        raise undecided_words(
            f"--queries {options.queries} writes rows to label; name a folder by "
            f"--out.",
            [("--out", place)],
        )
    report_by, ids = options.report_by, options.ids
    if report_by is not None and report_by in (*ids, options.target, options.groups):
        option = "--id" if report_by in ids else "--groups"
        is_target = report_by == options.target
        what = "the target" if is_target else f"no feature, by {option}"
        raise click.UsageError(
            f"--report-by {report_by!r} is {what}; name a column that new rows have, "
            f"too."
        )
    reports = [text for text in options.loss if is_report(text)]
    if len(reports) > 1:
        raise click.UsageError(
            f"--loss {' and '.join(reports)} are two reports; name all in one."
        )
    losses = [text for text in options.loss if not is_report(text)]
    if len(losses) > 1:
        raise click.UsageError(
            f"--loss must be {LOSS_FORMS}, optionally with another --loss report, got "
            f"{' and '.join(map(repr, losses))}."
        )


SECTIONS: Final = {
    "Most used": "target pool ids groups out",
    "Model": "model grid cv trust",
    "What is bounded": "loss report_by baseline queries deploy certificate delta",
    "How the tables are read": "drop task gaps unlabeled_words gap_classes number "
    "texts day_first sep encoding",
    "Run and output": "only_plan seed workers scheduler verbose quiet as_json",
}
"""Options of each section of the help; those of all commands end the last one."""
EXAMPLES: Final = """\b
Examples:
  dsel select labeled.csv --target label --pool pool.parquet --out results
  dsel select labeled.csv --target price --task regression --id number
"""


class GroupedCommand(click.Command):
    """A command of one table whose help has sections of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read options and the table; a second table is probably the pool."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            way = "; only LABELED has no option: name the unlabeled rows by --pool."
            raise click.UsageError(error.message.rstrip(".") + way, ctx) from error

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options by `SECTIONS`."""
        options_of = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        lines = {option.name: option.get_help_record(ctx) for option in options_of}
        sections = {title: words.split() for title, words in SECTIONS.items()}
        known = {option for options in sections.values() for option in options}
        [*_, last] = sections.values()
        last += [str(name) for name in lines if name not in known]
        for title, options in sections.items():
            with formatter.section(title):
                formatter.write_dl([line for o in options if (line := lines[o])])


@click.command(cls=GroupedCommand, epilog=EXAMPLES)
@click.argument("labeled", type=ExistingPath())
@click.option(
    "--target",
    help="Column of the labels, such as label; npz and zarr have theirs in y.",
)
@click.option(
    "--pool",
    type=ExistingPath(),
    help="Unlabeled rows: a table of any of these formats, a folder of Parquet or text "
    "files, a zarr pool, or a URL of one. Its columns are read as those of LABELED. "
    "Without --pool, rows of LABELED whose target is empty are the pool.",
)
@click.option(
    "--drop",
    cls=ListOption,
    help="Columns to leave out, such as name,note. This and other lists may be given "
    "several times, too.",
)
@click.option(
    "--id",
    "ids",
    cls=ListOption,
    help="Columns that are not features, such as an identifier; kept as text and "
    "copied to predictions.",
)
@click.option(
    "--groups",
    help="Column whose equal values form one group, such as customer; it is no "
    "feature, and the bound holds for a random row of a new group.",
)
@text_options
@day_first_option
@number_option
@text_column_option
@gap_option
@click.option(
    "--unlabeled",
    "unlabeled_words",
    multiple=True,
    help="Text in the target, such as NULL, of rows that have no label; they are the "
    "pool as rows with an empty target are. May be given several times.",
)
@click.option(
    "--class",
    "gap_classes",
    multiple=True,
    help="Word for a missing value, such as None, that is a class of the target.",
)
@click.option(
    "--task",
    type=NameOf(TASKS),
    help="What the target is: classes, or numbers. By default numbers with fractions "
    "are a regression; text, truth values and at most 20 different whole numbers are "
    "classes.",
)
@click.option(
    "--model",
    cls=ListOption,
    callback=as_text,
    help=f"{', '.join(CLASSIFIERS)}, or for a regression {', '.join(REGRESSORS)}; "
    "texts, categories and dates are encoded for them. Several, such as "
    "forest,logistic, are one search over all of their grids. Or MODULE:OBJECT, an "
    f"estimator or a function that returns one. By default {DEFAULT_MODELS[0]}, and "
    f"for a regression {DEFAULT_MODELS[1]}; with --grid alone the one of "
    f"{' and '.join(MODELS_OF_GRID)} that has these parameters.",
)
@click.option(
    "--grid",
    multiple=True,
    help="Values of a parameter: C=0.1,1,10 or C=2^-2..2^12:4 (start..stop:factor). "
    "May be given several times.",
)
@click.option(
    "--certificate",
    type=NameOf(CERTIFICATES),
    help="Method of the bound; nested by default.",
)
@click.option(
    "--deploy",
    type=NameOf([ONE_FOLD, ALL_ROWS]),
    help="Which of the two models of a nested search is deployed: the one of the best "
    "fold (default), mostly with the smaller bound, or the one trained on all labels.",
)
@click.option(
    "--loss",
    multiple=True,
    help=f"What is ranked and bounded: {LOSS_FORMS}. --loss report adds recall and "
    "precision of every class, or how far off 50, 80, 90 and 95% of predictions are; "
    "report:yes,no names classes, report=0.5,0.9 parts of the predictions.",
)
@click.option(
    "--report-by",
    help="Column, such as site: the error is certified for each of its values, too. "
    "A column that --drop names, too, is no feature. Where columns have no names, "
    "their numbers from 0.",
)
@click.option(
    "--queries",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of pool rows to label by hand, drawn where the two models differ: a "
    "smaller bound of the model trained on all labels; needs --out, and is for the "
    "error without --loss, --report-by and --groups.",
)
@click.option(
    "--baseline",
    type=ExistingPath(LARGEST_CLASS),
    help="Folder or URL of the model in production, as `dsel compare` opens it, which "
    "was trained on none of these labels; or 'largest class'. Says whether the "
    "deployed model is proved to err less.",
)
@click.option(
    "--cv", type=click.IntRange(2), help="Number of random folds: 5 by default."
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Print the plan and stop: nothing is fitted, and no label is used up. With "
    "--verbose the whole plan.",
)
@trust_option
@run_options
@run_from("dsel.cli.run_select", record=SelectOptions, check_words=check_words)
def command() -> None:
    """Choose a model from labeled rows and bound its error.

    LABELED is a CSV or other text table, or a Parquet, Feather, JSON lines, npz,
    svmlight or zarr table.
    """
