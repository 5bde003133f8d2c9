"""The HTML page about a search: values of the cube in a self-contained template."""

import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import jinja2
import numpy as np
import xarray as xr
from markupsafe import Markup

from dsel import names
from dsel.cards import mark_code
from dsel.checks import check_path
from dsel.criteria import CRITERIA
from dsel.errors import read_old_arguments, reword
from dsel.files import check_free, check_no_link, whole_file
from dsel.plots import (
    plot_bound_by_labels,
    plot_certificates,
    plot_certified_report,
    plot_comparison,
    plot_folds,
    plot_report_by_value,
    plot_surface,
    plot_terms,
)
from dsel.plots.bars import estimate_name
from dsel.plots.spread import (
    BY_OTHER_FOLDS,
    MOST_CANDIDATES_DRAWN,
    fold_losses,
    is_squared,
    name_chosen,
    name_of_fold_losses,
)
from dsel.plots.style import INK
from dsel.results import Choice
from dsel.results.certificate import attribute, short_params_text
from dsel.results.comparison import ModelComparison
from dsel.results.cube import candidate_dims, cube_of, read_counts
from dsel.results.run_tables import RunTables
from dsel.results.tables import CV_ERROR, all_params, candidate_table, class_rows
from dsel.results.tolerances import amount_about
from dsel.rounded_texts import (
    about_percent,
    confidence,
    count_of,
    in_percent,
    shorten_text,
)
from dsel.search.design.certificate_methods import is_nested
from dsel.search.running.select import evaluate, first_criterion, select
from dsel.typing import PathLike, ResultsLike

FOLDER: Final = Path(__file__).parent
NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
BEGINS: Final = "<!DOCTYPE html>\n<!-- Written by dsel report -->\n"
"""First lines of a page: only a file that begins with them is replaced."""
N_ROWS: Final = 10
"""Rows of a table of candidates."""
MOST_DRAWN: Final = 20
"""Classes, or values of a column, up to which a report is a figure, too."""
MOST_CLASSES: Final = 50
"""Classes of a table."""
SHOWN_ELSEWHERE: Final = (
    names.ASSUMPTIONS,
    names.CAVEATS,
    names.CONSTANT,
    "choice",
    "class_rows",
    "creation_library",  # dsel, whose version is shown
    "creation_library_version",
)
"""Attributes that are left out of the provenance: other sections show them."""

NAMES_OF_ATTRIBUTES: Final = {
    "content_token": "fingerprint of the counts",
    "created_at": "time",
    "deploy": "deployed model",
    "dsel_schema_version": "version of the format of results",
    "estimators": "kinds of learners",
    "fold_error_kind": "errors of candidates on folds are of",
}
"""Words for attributes whose key does not say what they are."""


@read_old_arguments(inputs="tables")
def write_report(
    results: ResultsLike | ModelComparison,
    path: PathLike,
    *,
    tables: RunTables | None = None,
    names_of_options: Mapping[str, str] = NO_NAMES,
) -> Path:
    """Write the page about a search, or a comparison of two models, to a file.

    Parameters
    ----------
    results
        A fitted search, an outcome, or the cube of a search, as `open_results` returns
        it; or the result of `dsel.compare_models`.
    path
        Path of the file. Only a page that dsel wrote is replaced.
    tables
        Names of tables, target and model, which `dsel select` stores with results; the
        page begins with them.
    names_of_options
        Words for readers who do not write Python, such as options of a shell, by the
        words of Python that they replace.

    Returns
    -------
    Path
        Path of the page.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    ValueError
        If the cube lacks what its criterion needs.
    FileExistsError
        If `path` is another file than a page of dsel.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5]}
    >>> plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(plan.run(), f"{folder}/report.html").name
    'report.html'
    """
    target = Path(check_path(path, "path"))
    check_no_link(target, "path")
    begins = BEGINS.encode()
    check_free(target, "path", begins)  # figures take a while
    if isinstance(results, ModelComparison):
        page = comparison_html(results, names_of_options)
    else:
        page = report_html(cube_of(results), tables, names_of_options)
    with whole_file(target, "path") as file:
        file.write_text(page, encoding="utf-8", newline="\n")
        check_free(target, "path", begins)  # another process may have written it
    return target


def comparison_html(
    comparison: ModelComparison, names_of_options: Mapping[str, str] = NO_NAMES
) -> str:
    """Return the page about a comparison of two models as one HTML text."""
    return _template("comparison.html.j2", names_of_options).render(
        begins=BEGINS,
        style=_style(),
        title="Is the new model better?",
        comparison=comparison,
        figure=_svg(plot_comparison, comparison, height=1.8, titled=False),
    )


def _template(name: str, names_of_options: Mapping[str, str]) -> jinja2.Template:
    """Return a template of this folder, with filters for code and for words."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = lambda text: Markup(mark_code(text))
    environment.filters["words"] = lambda text: reword(str(text), names_of_options)
    return environment.get_template(name)


def _style() -> str:
    return (FOLDER / "report.css").read_text(encoding="utf-8")


def report_html(
    results: xr.Dataset,
    tables: RunTables | None = None,
    names_of_options: Mapping[str, str] = NO_NAMES,
) -> str:
    """Return the page about a search as one self-contained HTML text.

    It is the same each time for the same cube. Raises ModuleNotFoundError if matplotlib
    is not installed, ValueError if the cube lacks what its criterion needs.
    """
    counts, choice = read_counts(results), select(results)
    status, params = counts[names.STATUS], all_params(results)
    n_pool = max(0, int(counts[names.N_UNLABELED]))
    failed = np.flatnonzero(status == names.STATUS_FAILED)
    messages: Any = results[names.MESSAGE].values.ravel() if len(failed) else []
    n_drawn = min(MOST_CANDIDATES_DRAWN, len(params))  # candidates of a figure
    confusion, fold = confusion_table(results), choice.fold

    def sort_reports(reports: Mapping[str, Any]) -> list[Any]:
        return sorted(reports.values(), key=lambda each: each is not reports[deploy])

    deploy, means = choice.deploy, fold_losses(results).values.mean(axis=1)
    # The page prints the headings of these figures itself.
    figures = {
        "certificates": _svg(plot_certificates, results, height=3.1, titled=False)
    }
    if candidate_dims(results) != (names.CANDIDATE,):
        with suppress(ValueError):  # a cube without its numbers
            figures["surface"] = _svg(plot_surface, results, height=3.4, titled=False)
    with suppress(ValueError):  # a criterion without two terms
        height = 1.6 + 0.55 * n_drawn
        figures["terms"] = _svg(plot_terms, results, height=height)
    if "surface" not in figures:  # no grid
        with suppress(ValueError):  # a search without these numbers
            height = 1.5 + 0.42 * n_drawn
            figures["folds"] = _svg(plot_folds, results, height=height)
    with suppress(ValueError):
        figures["labels"] = _svg(plot_bound_by_labels, results, height=3.6)
    report = choice.reports.get(choice.deploy)
    if report is not None and len(report.classes) <= MOST_DRAWN:
        height = 1.6 + 0.5 * (1 + len(report.classes))
        figures["report"] = _svg(plot_certified_report, report, height=height)
    by_value = choice.reports_by_value.get(choice.deploy)
    if by_value is not None and len(by_value.values) <= MOST_DRAWN:
        height = 1.6 + 0.5 * len(by_value.values)
        figures["by_value"] = _svg(plot_report_by_value, by_value, height=height)
    return _template("report.html.j2", names_of_options).render(
        begins=BEGINS,
        style=_style(),
        choice=choice,
        certificate=choice.certificate,
        numbers={
            "labeled rows": int(counts[names.N_LABELED]),
            **({"groups": int(counts[n])} if (n := names.N_GROUPS) in counts else {}),
            "rows in the pool": n_pool,
            "classes": int(counts.get(names.N_CLASSES, 0)),
            "folds": results.sizes.get(names.FOLD, 0),
            # A procedure, such as a search that is certified, is one and is no grid.
            "candidates": many if (many := int(counts[names.N_CANDIDATES])) > 1 else 0,
            "dropped early": int(np.sum(status == names.STATUS_PRUNED)),
            "failed": len(failed),
        },
        title=_title(results, tables),
        plain=plain_sentences(choice, tables),
        source=[] if tables is None else _source(results, tables),
        command_of_report="" if tables is None else tables.command_of_report,
        classes=class_table(results, confusion),
        mark=estimate_name(choice.certificate),
        name_of_losses=name_of_fold_losses(results),
        why=why_chosen(results, choice),
        is_by_others=name_chosen(choice, means) == BY_OTHER_FOLDS,
        confusion=confusion,
        own_confusion=confusion_table(results, fold) if fold is not None else [],
        compared=compare_estimates(choice),
        sort_reports=sort_reports,
        sure=confidence(choice.delta),
        loss=shorten_text(choice.certificate.loss, 400),
        figures=figures,
        best=_best(results, choice),
        failures=[
            [n, short_params_text(params[n]), messages[n]]
            for n in failed[:N_ROWS].tolist()
        ],
        provenance=provenance_table(results),
        holdout=why_holdout_may_be_smaller(choice),
    )


def _title(results: xr.Dataset, tables: RunTables | None) -> str:
    """Return the title of the page, with target and table if they are known.

    Rows of Python have no names: learner, number of rows and date take their place.
    """
    if tables is None:
        known = ", ".join(attribute(results, names.LEARNERS, json.loads, []))
        known = known or select(results).procedure or "the chosen model"
        learners = shorten_text(known, 60)
        n_rows = count_of(int(read_counts(results)[names.N_LABELED]), "labeled row")
        date = str(results.attrs.get("created_at", "")).partition("T")[0]
        about = ", ".join(filter(None, [n_rows, date]))
        return f"How wrong {learners} can be ({about})"
    of = f" of {tables.target}" if tables.target else ""
    return f"How wrong predictions{of} can be ({Path(tables.labeled).name})"


def plain_sentences(choice: Choice, tables: RunTables | None) -> list[str]:
    """Return what the bound means and assumes, for readers who know no statistics.

    Empty where nothing is guaranteed, and where the bound excludes nothing.
    """
    bound = choice.certificate
    if not bound.certified or bound.says_nothing:
        return []
    sentences = []
    if bound.loss == "error" and not bound.n_groups:
        n_wrong = ceil(1000 * bound.bound)
        # Of several models, one of which was chosen, the line below names it.
        has_one = tables is not None and tables.model and "," not in tables.model
        model = f" ({tables.model})" if tables is not None and has_one else ""
        sentences = [
            f"Of 1,000 new rows the chosen model{model} gets at most {n_wrong} wrong "
            f"on average."
        ]
    elif bound.loss.startswith("recall(") and not bound.n_groups:
        label = bound.what.removeprefix("Misses of ")
        sentences = [
            f"Of 100 new rows of {label} the chosen model misses at most "
            f"{ceil(100 * bound.bound)} on average."
        ]
    table = f"those of {Path(tables.labeled).name}" if tables else "the labeled rows"
    copies = ", and duplicates are no copies" if bound.needs_no_copies else ""
    return [
        *sentences,
        f"This is about new rows that come from the same source as {table}. It says "
        f"nothing about rows of another kind, such as a later year or another site. "
        f"{confidence(choice.delta)}% confidence: where the assumptions at the end of "
        f"this page hold{copies}, at most {100 * choice.delta:g}% of such statements "
        f"are false.",
    ]


def _source(results: xr.Dataset, tables: RunTables) -> list[list[str]]:
    """Return names and texts of the tables, the model, the date and the version."""
    version = str(results.attrs.get("version_dsel", ""))
    pool = (tables.pool or "").rstrip("/").rpartition("/")[2]
    is_unread = int(read_counts(results)[names.N_UNLABELED]) <= 0  # as with groups
    facts = [
        ["labeled table", Path(tables.labeled).name],
        ["target", tables.target or ""],
        ["pool, which nothing read" if is_unread else "pool", pool],
        ["models" if "," in tables.model else "model", tables.model.replace(",", ", ")],
        ["date", tables.date],
        ["dsel", version],
    ]
    return [fact for fact in facts if fact[1]]


def class_table(results: xr.Dataset, confusion: list[list[str]]) -> list[list[str]]:
    """Return heads, then rows, of the table of classes, the largest one first.

    A class has its recall if the confusion matrix was counted.
    """
    rows = class_rows(results)
    if not rows or len(rows) > MOST_CLASSES:
        return []
    total = sum(rows.values())
    ordered = sorted(rows.items(), key=lambda item: -item[1])
    recalls = {row[0]: row[-1] for row in confusion[1:]}
    heads = ["class", "labeled rows", "of all rows"]
    heads += ["recall, all folds"] * bool(recalls)
    return [heads] + [
        [name, f"{n:,}", about_percent(n / total)]
        + [recalls.get(name, "")] * bool(recalls)
        for name, n in ordered
    ]


def why_chosen(results: xr.Dataset, choice: Choice) -> str:
    """Return a sentence that compares the choice with the next best candidate."""
    losses, _, in_percent = fold_losses(results)
    is_whole = np.isfinite(losses).all(axis=1)
    if is_whole.sum() < 2 or not is_whole[choice.candidate]:
        return ""
    means = losses.mean(axis=1)
    about: Callable[[float], str]
    about = about_percent if in_percent else choice.certificate.about
    if is_squared(results):  # in units of the target
        about = _about_root
    what = name_of_fold_losses(results).removesuffix(" on the fold")
    others = np.flatnonzero(is_whole & (np.arange(len(means)) != choice.candidate))
    second = int(others[np.argmin(means[others])])
    least, most = (about(f(losses[choice.candidate])) for f in (np.min, np.max))
    other = (
        f"{short_params_text(all_params(results)[second])} has {about(means[second])}"
    )
    if means[second] < means[choice.candidate]:
        other += ", which is less. " + (
            "The choice was made without the fold that tests the chosen model, and on "
            "the other folds the chosen candidate was the best"
            if name_chosen(choice, means) == BY_OTHER_FOLDS
            else f"Candidates were ranked by {CRITERIA[choice.criterion].title}"
        )
    else:
        other = f"the next best candidate, {other}".replace(" has ", ", has ", 1)
    chosen, choices = short_params_text(choice.params), choice.choices_of_folds
    return (
        f"{what[:1].upper()}{what[1:]}: {chosen} has "
        f"{about(means[choice.candidate])} on average over the folds, "
        f"from {least} to {most}; {other}. Differences that are small compared "
        f"to the spread of the folds mean little."
        + (f" The searches without a fold chose {choices}." if choices else "")
    )


def confusion_table(results: xr.Dataset, fold: int | None = None) -> list[list[str]]:
    """Return a confusion matrix, with recalls, as texts with heads.

    It is that of the model without a fold, on its rows, or the sum over all folds.
    """
    if names.OUTER_CONFUSION not in results:
        return []
    counts = results[names.OUTER_CONFUSION]
    whole = counts.sum(names.FOLD)
    counts = whole if fold is None else counts.isel({names.FOLD: fold})
    order = names.TRUE_CLASS, names.PREDICTED_CLASS
    cells, used_cells = (
        each.transpose(*order).values.astype(int) for each in (counts, whole)
    )
    labels = [str(label) for label in counts[names.TRUE_CLASS].values]
    # The last entry, for other classes, has no counts if every class has a name.
    used = np.flatnonzero(used_cells.sum(axis=0) + used_cells.sum(axis=1))
    if len(used) > MOST_DRAWN:
        return []
    return [["true class", *(f"predicted {labels[n]}" for n in used), "recall"]] + [
        [
            labels[n],
            *(f"{cells[n, other]:,}" for other in used),
            about_percent(cells[n, n] / n_rows) if (n_rows := cells[n].sum()) else "",
        ]
        for n in used
    ]


def compare_estimates(choice: Choice) -> str:
    """Return how the estimate at the top of the page differs from candidates' errors.

    Empty where the page has one kind of estimate only.
    """
    bound = choice.certificate
    if not is_nested(bound) or not np.isfinite(bound.estimate) or choice.procedure:
        return ""
    estimate = bound.about(bound.estimate)
    text = (
        f"The numbers of this section rank candidates, whose models were trained "
        f"without two of the folds. The {estimate} at the top is about models that "
        f"were chosen and trained without one fold, and is measured on this fold, over "
        f"all folds: an estimate, which no single model has."
    )
    if not bound.certified or bound.says_nothing or bound.is_below_estimate:
        return text  # what is said at the top of such a bound is the advice
    amount, level = bound.amount(bound.bound), confidence(bound.delta)
    return f"{text} What you can promise is the bound, {amount} ({level}% confidence)."


def why_holdout_may_be_smaller(choice: Choice) -> str:
    """Return why the bound of a hold-out set is below that of this run, if it is."""
    bound = choice.certificate
    is_smaller = bound.certified and choice.expected_holdout < bound.bound
    if not is_smaller or not is_nested(bound):
        return ""
    rate = f"{100 * choice.delta:g}%"
    others = " and the report" if choice.reports or choice.reports_by_value else ""
    return (
        f" It can be below the bound of this run: a hold-out set is one test, which "
        f"may fail with probability {rate}; here the tests of all folds{others} share "
        f"these {rate}."
    )


def provenance_table(results: xr.Dataset) -> list[tuple[str, str]]:
    """Return names and texts of what else is known about the run, without raw keys."""
    rows = []
    for key, value in results.attrs.items():
        if key in SHOWN_ELSEWHERE:
            continue
        name, text = str(key), str(value)
        if text.startswith("["):
            with suppress(ValueError):
                text = ", ".join(map(str, json.loads(text)))
        if name.startswith("version_"):
            name = f"version of {name.removeprefix('version_')}"
        rows.append((NAMES_OF_ATTRIBUTES.get(name, name.replace("_", " ")), text))
    return sorted(rows)


def _best(results: xr.Dataset, choice: Choice) -> list[list[Any]]:
    """Return heads, then rows, of the table of the best candidates."""
    table, loss = candidate_table(results), choice.certificate
    params, criterion = all_params(results), first_criterion(results)
    is_bound = evaluate(results).criterion.is_guarantee
    texts: dict[str, Callable[[float], str]]
    texts = {CV_ERROR: about_percent, criterion: in_percent if is_bound else loss.about}
    columns = [name for name in dict.fromkeys([criterion, CV_ERROR]) if name in table]
    shown = table[np.isfinite(table[criterion])].sort_values(criterion, kind="stable")
    titles = [CRITERIA[name].title for name in columns]
    if is_squared(results):
        texts[criterion] = _about_root
        titles[0] = f"root {titles[0]}"
    titles = [loss.what if name == "mean loss" else name for name in titles]
    return [["candidate", "parameters", *titles]] + [
        [n, short_params_text(params[n])]
        + [texts[name](row[name]) if row[name] >= 0 else "" for name in columns]
        for n, row in shown.head(N_ROWS).iterrows()
    ]


def _about_root(squared: float) -> str:
    return amount_about(squared**0.5)


def _svg(
    plot: Callable[..., Any], what: object, *, height: float, titled: bool = True
) -> str:
    """Return a figure as an SVG element in the color of the text around it."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a report needs matplotlib, which is not installed; "
            "pip install 'dsel[report]'."
        ) from error
    width = 3.8  # inches: letters of 9 points are legible on a phone
    figure = Figure(figsize=(width, height), layout="constrained")
    ax = plot(what, ax=figure.add_subplot())
    if not titled:
        ax.set_title("", loc="left")
    file = io.StringIO()
    # The salt makes the page the same each time.
    with rc_context({"svg.hashsalt": "dsel", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    element = "<svg" + file.getvalue().partition("<svg")[2]
    for ink in (INK, "#000000"):
        element = element.replace(ink, "currentColor")
    size = f'fill="currentColor" style="max-width:{140 * width:.0f}px"'
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', rf"\1 {size}", element, count=1)
