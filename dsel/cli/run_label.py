"""``dsel label``: compute bounds from the labels of queried rows."""

import shlex
from dataclasses import replace

from dsel.cli.commands.label_command import LabelOptions
from dsel.cli.running import (
    choice_content,
    next_rows,
    print_choice,
    print_json,
    print_notes,
    print_rows,
)
from dsel.data.schema import TableSchema
from dsel.data.tables import rewrite_file
from dsel.data.targets import notes_on_blanks
from dsel.data.text_tables import text_source
from dsel.errors import UndecidedError
from dsel.option_values import ONE_FOLD
from dsel.results.choice import Choice
from dsel.results.comparison import ModelComparison
from dsel.results.queried_labels import LabelRules, OtherSpellingError
from dsel.results.queries import EFFECT, NO_QUERIES
from dsel.results.query_files import (
    QUERY_ROWS,
    add_passed_labels,
    is_comparison,
    keep_labeled_result,
    read_choice,
    read_comparison,
    read_labels,
)


def run(options: LabelOptions) -> None:
    """Read LABELS of the queried rows at PLACE, and print what they prove."""
    labeled, notes = _read(options)
    place, output = options.place, options.output
    print_notes(notes)
    step = f"dsel report {shlex.quote(place)}"
    if isinstance(labeled, ModelComparison):
        result = keep_labeled_result(place, labeled, corrected=options.corrected)
        if output.as_json:
            print_json("label", comparison=result, results=place)
            return
        rows = result.shown_rows()
        print_rows(rows[:1] if output.quiet else [*rows, *next_rows(step)])
        return
    choice = keep_labeled_result(place, labeled, corrected=options.corrected)
    if output.as_json:
        print_json("label", **choice_content(choice), results=place)
        return
    if output.quiet:
        print_rows([("", choice.certificates["all_rows"].headline())])
        return
    steps = [step]
    queries = choice.queries
    if choice.deploy == ONE_FOLD and queries and queries.queried < queries.pool_only:
        bounds = choice.certificates
        text = "predicts by the second model, whose bound is smaller by these labels"
        if bounds[ONE_FOLD].bound <= bounds["all_rows"].bound:  # NaN if uncertified
            text += ", but not below that of the first model, which predicts without it"
        steps.append(
            f"dsel predict {shlex.quote(place)} NEW --out FILE --deploy all_rows {text}"
        )
    print_choice(choice, output, steps=steps)


def check(options: LabelOptions) -> None:
    """Raise what stops the command before it stores a result."""
    _read(options)


def _read(options: LabelOptions) -> tuple[ModelComparison | Choice, list[str]]:
    """Return what the labels prove, and notes on them; nothing is stored."""
    place, target, text = options.place, options.target, options.text
    labels = options.labels or f"{place.rstrip('/')}/{QUERY_ROWS}"
    result: ModelComparison | Choice
    schema: TableSchema | None
    if is_comparison(place):
        result, column, schema = read_comparison(place)
        if not result.rows:
            result.query_rows()  # raises with the reason
        column = target or column
        rows, classes = result.rows, result.known_labels
    else:
        result, schema = read_choice(place)
        if result.queries is None:
            raise ValueError(NO_QUERIES)
        if not result.queries.rows:
            raise ValueError(result.queries.why_no_rows)
        column = target or (None if schema is None else schema.target) or "label"
        rows, classes = result.queries.rows, result.queries.classes
    rules = LabelRules(
        options.partial,
        options.allow_unknown,
        options.corrected,
        labels=f"column {column!r} of {labels!r}",
        partial_option="--partial",
        unknown_option="--allow-unknown",
    )
    if isinstance(result, Choice):
        rules = replace(rules, effect=EFFECT)
    if options.corrected:
        add_passed_labels(place, result)
    notes = notes_on_blanks(classes)
    row_labels = read_labels(
        labels, rows, classes, place=place, target=column, like=schema, **text.arguments
    )
    gaps = {*options.gaps}
    row_labels = row_labels.map(lambda label: None if label in gaps else label)
    try:
        return result.with_labels(row_labels, rules), notes
    except OtherSpellingError as error:
        change = f"t[{column!r}] = t[{column!r}].str.strip().replace({error.meant})"
        [read] = text_source(labels, **text.arguments, like=schema).files
        form = {"separator": read.separator, "encoding": read.encoding}
        file = rewrite_file(labels, "_respelled", change, **form)
        raise UndecidedError(str(error), *([] if file is None else [file])) from error
