"""``dsel label``: compute bounds from the labels of queried rows."""

from dataclasses import replace

from dsel.cli.options import OutputOptions, TextOptions
from dsel.cli.running import (
    choice_content,
    choice_facts,
    print_facts,
    print_json,
    print_notes,
)
from dsel.data.targets import notes_on_blanks
from dsel.results.certificate import NO_QUERIES
from dsel.results.queried_labels import LabelTerms
from dsel.results.queries import EFFECT
from dsel.results.query_files import (
    is_comparison,
    keep_answer,
    read_choice,
    read_comparison,
    read_labels,
)


def run(
    place: str,
    labels: str,
    target: str | None,
    partial: bool,
    allow_unknown: bool,
    text: TextOptions,
    output: OutputOptions,
) -> None:
    """Read LABELS of the queried rows at PLACE, and print what they prove."""
    if is_comparison(place):
        question, column, form = read_comparison(place)
        if not question.rows:
            question.query_rows()  # raises with the reason
        column = target or column
        print_notes(notes_on_blanks(question.known_labels))
        row_labels = read_labels(
            labels,
            question.rows,
            question.known_labels,
            place=place,
            target=column,
            like=form,
            **text.arguments,
        )
        terms = _terms(labels, column, partial, allow_unknown)
        answer = keep_answer(place, question.with_labels(row_labels, terms))
        if output.as_json:
            print_json("label", comparison=answer)
            return
        print_facts(answer.facts()[: 1 if output.quiet else None])
        return
    choice, schema = read_choice(place)
    if choice.queries is None:
        raise ValueError(NO_QUERIES)
    if not choice.queries.rows:
        raise ValueError(choice.queries.why_no_rows)
    column = target or (None if schema is None else schema.target) or "label"
    print_notes(notes_on_blanks(choice.queries.classes))
    row_labels = read_labels(
        labels,
        choice.queries.rows,
        choice.queries.classes,
        place=place,
        target=column,
        like=schema,
        **text.arguments,
    )
    terms = replace(_terms(labels, column, partial, allow_unknown), effect=EFFECT)
    labeled = keep_answer(place, choice.with_labels(row_labels, terms))
    if output.as_json:
        print_json("label", **choice_content(labeled))
        return
    bound = ("", labeled.certificates["all_rows"].headline())
    print_facts([bound] if output.quiet else choice_facts(labeled))


def _terms(file: str, column: str, partial: bool, allow_unknown: bool) -> LabelTerms:
    """Return which labels are usable, with the names that the shell has for them."""
    return LabelTerms(
        partial,
        allow_unknown,
        labels=f"column {column!r} of {file!r}",
        partial_option="--partial",
        unknown_option="--allow-unknown",
    )
