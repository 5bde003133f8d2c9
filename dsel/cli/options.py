"""Options that commands share, and how a command runs its function.

This file and those in `commands` import nothing heavy, so that help, a misspelled
option and a missing file take no time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from importlib import import_module
from os.path import exists
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from dsel.checks import describe_missing_path, did_you_mean
from dsel.cli.option_types import DELTA, ListOption
from dsel.errors import Words, rename_in_errors
from dsel.files import check_results_folder
from dsel.option_values import FORGOTTEN_GROUPS

Command = Callable[..., Any]
LISTS: Final = (
    "--drop", "--folds", "--id", "--model", "--number", "--text", "--trust",
)  # fmt: skip
"""Options of class `ListOption`: a value may have several names."""
REPEATED: Final = (
    "--class", "--gap", "--grid", "--loss", "--number", "--text", "--trust",
    "--unlabeled",
)  # fmt: skip
"""Options of which commands that are printed have one for each value. Words of a table,
losses and grids may have commas of their own."""
CHECK: Final = "dsel.check"
"""Key of the context under which a command is only checked: nothing runs."""
WORDS_OF_SHELL: Final[Words] = {
    "`param_grid[0]`": "--model",
    "`param_grid`": "--grid",
    "`estimator`": "--model",
    "`path`": "the table",
    "`pool` is not read": "the pool is not read",  # it may have rows of LABELED
    "`pool` is None; pass the pool": "there is no --pool; name it",
    "search regressors": "write --task regression",
    "pass a regressor, such as Ridge()": "write --task regression",
    "n_queries=": "--queries ",
    "`n_queries`": "--queries",
    "an `out` of its own": "an --out of its own",
    "that `out` named": "that --out named",
    "`place`": "RESULTS",
    "`source`": "the table",
    "deploy='one_fold'": "--deploy one_fold",
    "deploy='all_rows'": "--deploy all_rows",
    "baseline='largest class'": "--baseline 'largest class'",
    "loss='balanced' or ": "--loss balanced or --loss ",
    "loss='balanced'": "--loss balanced",
    "loss='recall:": "--loss 'recall:",
    "loss='error_quantile=": "--loss 'error_quantile=",
    "fewer folds, cv=": "fewer folds, --cv ",
    "groups for cv=": "groups for --cv ",
    "the same call with cv=": "the same command with --cv ",
    " with cv=": " with --cv ",
    "(drop_duplicates), or pass `groups`": "or name their --groups",
    ", and pass the labels as y=": "",
    "run again with `groups`": "run again with --groups",
    "pass groups=": "write --groups ",
    "only a category, write X.astype({": "only a category, write --text ",
    ": 'category'}) first": "",
    "again with groups=": "again with --groups ",
    "the attribute `certificates` lists all": "--verbose lists all",
    "report=True": "--loss report",
    "random_state=": "--seed ",
    "; prune='exact' never does": "",
    "; prune=False compares all candidates": "",
    " (or open_pool(..., other_records=True))": "",
    " (`other_records`)": "",
    "`write_pool` or `dsel": "`dsel",
    "pass delta=": "pass --delta ",
    "% with delta=": "% with --delta ",
    "numbers of certified_report()": "numbers of the report",
    "numbers of report_by_value()": "limits by value",
    "and report_by_value() share": "and the limits by value share",
    "model__regressor__": "",
    "model__": "",
}
"""Words of users of a shell, in addition to the options of each command.

A test finds each of the left words in a message of dsel.
"""


def run_from(
    module: str,
    function: str = "run",
    record: type[Any] | None = None,
    check_words: Callable[[Any], None] | None = None,
) -> Callable[[Command], Command]:
    """Return a decorator: the command calls this function, which is imported then.

    The function gets the values of options and arguments as parameters of their names,
    or as one `record` with fields of their names. Its `check_words` raises what is
    wrong with these words alone, before an import that takes seconds. The decorated
    function has the help in its docstring, and no code of its own. Every command is
    called here, so this is where empty and repeated values are refused, and where
    messages get the names that a shell has. Where a command is only checked, the
    function `check` of the module is called in the place of `run`, and `check_build` in
    that of `build`.
    """

    def decorate(declared: Command) -> Command:
        @wraps(declared)
        def call(**values: Any) -> Any:
            context = click.get_current_context()
            refuse_empty_values(context)
            refuse_repeats(context)
            options = None if record is None else record(**values)
            if check_words is not None:
                check_words(options)
            with rename_in_errors(shell_names(context.command)):
                check_results_folders(context)
            called = function
            # A check of a command raises its errors and runs nothing.
            if context.meta.get(CHECK):
                called = "check" if function == "run" else f"check_{function}"
            run = getattr(import_module(module), called)
            with rename_in_errors(shell_names(context.command)):
                return run(**values) if record is None else run(options)

        return call

    return decorate


def shell_names(command: click.Command) -> dict[str, str]:
    """Return what the user of a command wrote, by the words of messages.

    These are `WORDS_OF_SHELL`, and all parameters of the command.
    """
    names = {}
    for parameter in command.params:
        is_option = isinstance(parameter, click.Option)
        written = parameter.opts[0] if is_option else parameter.human_readable_name
        for name in (parameter.name, written.lstrip("-")):
            names[f"`{name}`"] = written
    if not any(parameter.name == "drop" for parameter in command.params):
        names[", or leave the columns out by --drop"] = ""
    if not any(parameter.name == "groups" for parameter in command.params):
        names[FORGOTTEN_GROUPS] = ""
    if any(parameter.human_readable_name == "LABELED" for parameter in command.params):
        names |= {"`X`": "LABELED", "gives `y`": "gives the target", "`y`": "--target"}
    if sum(isinstance(parameter, click.Argument) for parameter in command.params) == 1:
        names["; are the arguments swapped?"] = "; name what --out named."
    # Longer words come first, and are not cut.
    return {**WORDS_OF_SHELL, **names, **WORDS_OF_SHELL}


def split_options(words: Iterable[object]) -> list[str]:
    """Return the words of a command with ``--option=value`` as two of them."""
    split = list[str]()
    for word in map(str, words):
        option, equals, value = word.partition("=")
        is_both = equals and option.startswith("--")
        split += [option, value] if is_both else [word]
    return split


def check_results_folders(context: click.Context) -> None:
    """Raise FileNotFoundError where an argument is no folder of results."""
    for parameter in context.command.params:
        if isinstance(parameter.type, ResultsFolder):
            parameter.type.check(context.params[str(parameter.name)])


def refuse_repeats(context: click.Context) -> None:
    """Raise the error of click where an option of one value is given twice.

    click takes the last value, and a user may mean both.
    """
    words = split_options(context.obj or ())
    for parameter in context.command.params:
        if not isinstance(parameter, click.Option) or parameter.multiple:
            continue
        options = [*parameter.opts, *parameter.secondary_opts]
        places = [k for k, word in enumerate(words) if word in options]
        values = [words[k] if parameter.is_flag else words[k + 1] for k in places]
        if len(values) < 2 or (parameter.is_flag and len({*values}) == 1):
            continue
        name = options[0]
        shown = " and ".join(map(repr, values))
        if parameter.is_flag:
            text = f"{' and '.join(options)} contradict each other; leave one out."
        else:
            text = f"{name} takes one value, got {shown}; leave out all but one."
        raise click.UsageError(text, context)


def refuse_empty_values(context: click.Context) -> None:
    """Raise the error of click where an option or an argument has an empty text.

    An empty list of names, such as " ,", is one, too; only a separator may be a blank
    or a comma.
    """
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        empty = "" if parameter.name == "sep" else " ,"
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not text.strip(empty):
                way = "" if parameter.required else ", or leave the option out"
                raise click.BadParameter(
                    f"{text!r} is empty; name a value{way}.", context, parameter
                )


class NameOf(click.Choice[str]):
    """One of some names; a misspelled one gets a suggestion."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error of click with the name that was probably meant."""
        value = message.partition("' is not one of")[0].removeprefix("'")
        end = did_you_mean(value, self.choices)
        super().fail(message.removesuffix(".") + end, param, ctx)


class ExistingPath(click.Path):
    """A path that exists, or any URL; a misspelled path gets one that is near.

    All arguments of commands that are read are of this type. Values of `others` are no
    paths and pass.
    """

    def __init__(self, *others: str) -> None:
        super().__init__(exists=True)
        self.others = others

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the value; raise the error of click where nothing is there."""
        text = str(value)
        if not (text in self.others or "://" in text or exists(text)):
            self.fail(describe_missing_path(text), param, ctx)
        return text


class ResultsFolder(ExistingPath):
    """A folder of results, or any URL.

    `run_from` checks it: the message has words of the command.
    """

    def __init__(self, *, or_comparison: bool = False) -> None:
        super().__init__()
        self.or_comparison = or_comparison

    def check(self, path: str) -> None:
        """Raise FileNotFoundError if nothing of dsel is there."""
        if "://" not in path:
            check_results_folder(Path(path), or_comparison=self.or_comparison)


def join_options(
    *options: Callable[[Command], Command],
) -> Callable[[Command], Command]:
    """Return a decorator that adds options, the last one first in the help."""
    return lambda command: reduce(lambda made, add: add(made), options, command)


@dataclass(frozen=True)
class ClusterOptions:
    """Where tasks run."""

    scheduler: str | None
    workers: int | None

    def __post_init__(self) -> None:
        if None not in (self.scheduler, self.workers):
            raise click.UsageError(
                "--scheduler brings its own workers; leave --workers out."
            )


@dataclass(frozen=True)
class TextOptions:
    """How text files are read."""

    sep: str | None
    encoding: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """The names are those of the arguments of the readers of tables."""
        return {"separator": self.sep, "encoding": self.encoding}


@dataclass(frozen=True)
class OutputOptions:
    """How much is printed, and in which form."""

    quiet: bool
    as_json: bool

    @property
    def shows_progress(self) -> bool | None:
        """The argument of `row_progress`: None where a terminal decides."""
        return False if self.quiet else None


@dataclass(frozen=True)
class RunOutput(OutputOptions):
    """How much a search prints."""

    verbose: bool


def packing(
    name: str, kind: type[Any], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Return a decorator that adds options, and passes them as one record.

    A command with ten options of its own would need as many parameters again for those
    that all commands share.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**values: Any) -> Any:
            packed = {each.name: values.pop(each.name) for each in fields(kind)}
            return command(**values, **{name: kind(**packed)})

        return join_options(*options)(call)

    return decorate


cluster_options = packing(
    "cluster",
    ClusterOptions,
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Number of local worker processes to start.",
    ),
    click.option(
        "--scheduler",
        help="Address or file of a running Dask scheduler, or a YAML file that "
        "describes a cluster; by default the run uses threads of this machine.",
    ),
)
"""Adds the options for the workers of tasks."""

text_options = packing(
    "text",
    TextOptions,
    click.option(
        "--encoding",
        help="Encoding of the text files that are no UTF-8, such as latin-1.",
    ),
    click.option(
        "--sep", help="Separator of text files, where the header does not show it."
    ),
)
"""Adds the options for reading text files."""

day_first_option = click.option(
    "--dayfirst/--monthfirst",
    "day_first",
    default=None,
    help="How 5/9/2023 is read in columns in which no date shows it: as a day of "
    "September, or of May. By default such columns are text.",
)
"""Adds the order of day and month in the labeled table."""

number_option = click.option(
    "--number",
    cls=ListOption,
    help="Columns of amounts such as $1,234.50 or -2.8% that are read as numbers; all "
    "values of a column have the same symbol, in all tables.",
)
"""Adds the columns of amounts of the labeled table."""

gap_option = click.option(
    "--gap",
    "gaps",
    multiple=True,
    help="Word or number for a missing value, such as unknown or -999; in text files "
    "NA, None, ? and the like are known. Those of `dsel select` hold for later tables, "
    "too. May be given several times.",
)
"""Adds the words for gaps of the labeled table."""

text_column_option = click.option(
    "--text",
    "texts",
    cls=ListOption,
    help="Columns that stay text, such as versions, of which 1.1 and 1.10 are one "
    "number, and categories that are no groups, such as an agent_no.",
)
"""Adds the columns of the labeled table that are text whatever they look like."""

trust_option = click.option(
    "--trust",
    cls=ListOption,
    help="Full names of types of your own that a model holds, such as mine.Encoder.",
)
"""Adds the option for types that may be built when a model is opened."""

seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of all random draws.",
)
delta_option = click.option(
    "--delta",
    type=DELTA,
    default=0.05,
    show_default=True,
    help="Probability that the bound fails: 0.05 is 95% confidence.",
)
draw_options = join_options(seed_option, delta_option)
"""Adds the seed of random draws and the delta of bounds."""

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object, and nothing else, on standard output.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Print the result only.")
output_options = packing("output", OutputOptions, quiet_option, json_option)
"""Adds the options for the amount and the form of the output."""

model_options = join_options(
    output_options, cluster_options, text_options, trust_option
)
"""Adds the options of commands that apply stored models to a table."""

run_options = join_options(
    packing(
        "output",
        RunOutput,
        quiet_option,
        click.option(
            "--verbose",
            is_flag=True,
            help="Print the whole plan, too, where the bounds come from, and all "
            "assumptions.",
        ),
        json_option,
    ),
    draw_options,
    cluster_options,
    click.option(
        "--out",
        help="Folder or URL for the results; an interrupted command continues there.",
    ),
)
"""Adds the options of every search."""
