"""The HTML page about a search: values of the cube in a self-contained template."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import jinja2
import numpy as np
import xarray as xr
from markupsafe import Markup
from typing_extensions import TypeAliasType

from dsel import names
from dsel.cards import has_alarm, mark_code, mark_command
from dsel.checks import check_path, show
from dsel.errors import Words, reword
from dsel.files import check_free, check_no_link, whole_file
from dsel.losses.by_class import Recall
from dsel.losses.texts import loss_of_text
from dsel.old_names import read_old_arguments
from dsel.plots import plot_comparison
from dsel.plots.bars import estimate_name
from dsel.plots.spread import (
    BY_OTHER_FOLDS,
    find_dropped_candidates,
    fold_losses,
    has_single_fold,
    is_squared,
    name_chosen,
    name_cross_validation,
    name_of_fold_losses,
)
from dsel.plots.svg import draw_svg
from dsel.report.figures import figures_of_prefit, figures_of_search
from dsel.report.page_tables import (
    N_ROWS,
    best_table,
    class_table,
    confusion_table,
    distance_table,
    fold_confusion_table,
    provenance_table,
)
from dsel.report.sentences import (
    compare_estimates,
    next_steps,
    plain_sentences,
    title_of_search,
    why_chosen,
    why_holdout_may_be_smaller,
)
from dsel.results import Choice
from dsel.results.candidate_tables import all_params, class_rows
from dsel.results.choice_texts import (
    COMPARED,
    deployed_text,
    note_on_delta,
    notes_without_print,
    why_useless,
)
from dsel.results.comparison import ModelComparison
from dsel.results.cube import cube_of, read_counts
from dsel.results.params_texts import params_text, short_params_text
from dsel.results.plan_calls import call_of_choice
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.results.renderings import reword_rows
from dsel.results.run_tables import RunTables
from dsel.rounded_texts import confidence, shorten_text
from dsel.search.running.select import select
from dsel.typing import PathLike, ResultsLike

PageLike = TypeAliasType("PageLike", ResultsLike | ModelComparison | PrefitCertificate)
"""The subject of a page: results, a comparison, or the certificate of a fitted
model."""
FOLDER: Final = Path(__file__).parent
NO_NAMES: Final[Words] = MappingProxyType({})
HTML_ENDINGS: Final = (".html", ".htm", "")
"""Endings of the names of pages; a name may have none."""
BEGINS: Final = "<!DOCTYPE html>\n<!-- Written by dsel report -->\n"
"""First lines of a page: only a file that begins with them is replaced."""


@read_old_arguments(inputs="tables")
def write_report(
    results: PageLike,
    path: PathLike,
    *,
    tables: RunTables | None = None,
    names_of_options: Words = NO_NAMES,
) -> Path:
    """Write the page about a search, a fitted model or a comparison to a file.

    Parameters
    ----------
    results
        A fitted search, an outcome, or the cube of a search, as `open_results` returns
        it; the certificate of a fitted model, ``certify(..., cv="prefit")``; or the
        result of `dsel.compare_models`.
    path
        Path of the file, which ends in ``.html``. Only a page that dsel wrote is
        replaced, and missing folders are made. For a PDF print the page from a browser.
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
        If the cube lacks what its criterion needs, or `path` has the ending of another
        format.
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
    if target.suffix.lower() not in HTML_ENDINGS:
        raise ValueError(
            f"`path` must end in .html, since the page is HTML, got {show(path)}; for "
            f"a PDF write {show(target.with_suffix('.html').name)}, open it in a "
            f"browser and print it to a file."
        )
    check_no_link(target, "path")
    begins = BEGINS.encode()
    check_free(target, "path", begins)  # figures take a while
    if isinstance(results, ModelComparison):
        page = comparison_html(results, names_of_options)
    else:
        if not isinstance(results, PrefitCertificate):
            results = cube_of(results)
        page = report_html(results, tables, names_of_options)
    with whole_file(target, "path") as file:
        file.write_text(page, encoding="utf-8", newline="\n")
        check_free(target, "path", begins)  # another process may have written it
    return target


def comparison_html(
    comparison: ModelComparison, names_of_options: Words = NO_NAMES
) -> str:
    """Return the page about a comparison of two models as one HTML text."""
    return _template("comparison.html.j2", names_of_options).render(
        begins=BEGINS,
        style=_style(),
        title=_title_of_comparison(comparison),
        comparison=comparison,
        steps=next_steps(comparison),
        svg=draw_svg(
            plot_comparison,
            comparison,
            height=1.8 if comparison.labels is None else 2.6,
            titled=False,
        ),
    )


def _title_of_comparison(comparison: ModelComparison) -> str:
    """Return the title of the page, with both models and the target if known."""
    sources = comparison.sources
    if "old model" not in sources:  # it was kept before they were stored
        return "Is the new model better?"
    old, new = sources["old model"], sources["new model"]
    of = f", target {sources['target']}" if "target" in sources else ""
    if new == old:
        return f"Is the new {new} better than the old one{of}?"
    return f"Is {new} better than {old}{of}?"


def _template(name: str, names_of_options: Words) -> jinja2.Template:
    """Return a template of this folder, with filters for code, words and alarms."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = lambda text: Markup(mark_code(text))
    environment.filters["command"] = lambda text: Markup(mark_command(text))
    environment.filters["has_alarm"] = has_alarm
    environment.filters["words"] = lambda text: reword(str(text), names_of_options)
    return environment.get_template(name)


def _style() -> str:
    return (FOLDER / "report.css").read_text(encoding="utf-8")


def report_html(
    results: xr.Dataset | PrefitCertificate,
    tables: RunTables | None = None,
    names_of_options: Words = NO_NAMES,
) -> str:
    """Return the page about a search, or a fitted model, as one self-contained HTML.

    It is the same each time for the same cube. Raises ModuleNotFoundError if matplotlib
    is not installed, ValueError if the cube lacks what its criterion needs.
    """
    if isinstance(results, PrefitCertificate):
        content = _content_of_prefit(results)
    else:
        content = _content_of_search(results, tables)
    bound = content["certificate"]
    return _template("report.html.j2", names_of_options).render(
        begins=BEGINS,
        style=_style(),
        plain=plain_sentences(bound, tables),
        mark=estimate_name(bound),
        sure=confidence(bound.delta),
        loss=shorten_text(bound.loss, 400),
        **content,
    )


def _content_of_search(results: xr.Dataset, tables: RunTables | None) -> dict[str, Any]:
    """Return the variables of the template for a search."""
    choice = select(results)
    means = fold_losses(results).values.mean(axis=1)
    confusion = confusion_table(results)
    status, params = read_counts(results)[names.STATUS], all_params(results)
    failed = np.flatnonzero(status == names.STATUS_FAILED)
    return {
        **_content_of_choice(choice),
        "assumptions": choice.assumptions,
        "are_squared": is_squared(results),
        "best": best_table(results, choice),
        "classes": class_table(results),
        "calls": _next_calls(tables),
        "command_of_report": "" if tables is None else tables.command_of_report,
        "confusion": confusion,
        "distances": distance_table(results),
        "failures": [
            [n, short_params_text(params[n]), results[names.MESSAGE].values.ravel()[n]]
            for n in failed[:N_ROWS].tolist()
        ],
        "figures": figures_of_search(results, choice),
        "has_dropped": bool(find_dropped_candidates(results).any()),
        "how": f"{'the ' * has_single_fold(results)}{name_cross_validation(results)}",
        "is_by_others": name_chosen(choice, means) == BY_OTHER_FOLDS,
        "name_of_losses": name_of_fold_losses(results),
        "numbers": _numbers_of_search(results),
        "plan_call": _plan_call(results, choice, is_shell=tables is not None),
        "own_confusion": fold_confusion_table(results, choice),
        "provenance": provenance_table(results),
        "source": [] if tables is None else _source(results, tables),
        "title": title_of_search(results, tables),
        "why": why_chosen(results, choice),
    }


def _content_of_choice(choice: Choice) -> dict[str, Any]:
    """Return the variables that a choice alone has."""

    def order_by_model(reports: Mapping[str, Any]) -> list[Any]:
        """Return reports, that of the deployed model first."""
        return sorted(reports.values(), key=lambda r: r is not reports[choice.deploy])

    words = _plain_words(choice)
    lines = [text for name, text in choice.shown_rows() if not name]
    notes = [
        ("Note", note)
        for note in notes_without_print(choice)
        # The line of a bound may end with its parts, which the note is about.
        if not any(line.endswith(f": {note.partition(': ')[2]}") for line in lines)
    ]
    texts = [text for name, text in choice.shown_rows() if name == COMPARED]
    return {
        "candidate": choice.candidate,
        "certificate": choice.certificate,
        "compared": compare_estimates(choice),
        "criterion": choice.criterion,
        "has_folds": True,
        "is_one_fold": choice.fold is not None,
        "has_all_rows": "all_rows" in choice.bounded_models,
        "dashed": (f" Dashed, only to compare: {'; '.join(texts)}." if texts else ""),
        "has_queries": choice.queries is not None,
        "has_queried_labels": choice.queries is not None
        and choice.queries.labels is not None,
        "holdout": why_holdout_may_be_smaller(choice),
        "procedure": choice.procedure,
        "reports": order_by_model(choice.by_model("report")),
        "reports_by_value": order_by_model(choice.by_model("report_by_value")),
        "shown_rows": reword_rows([*choice.shown_rows(), *notes], words),
        "tolerances": order_by_model(choice.by_model("tolerances")),
        # A reader should meet it before what the bound would mean.
        "useless": reword(why_useless(choice), words),
    }


def _plan_call(results: xr.Dataset, choice: Choice, *, is_shell: bool) -> Markup:
    """Return the call that says how many labels a smaller bound needs, with its end."""
    loss, class_share = loss_of_text(choice.certificate.loss), None
    if isinstance(loss, Recall) and len(loss.classes) == 1:
        rows = class_rows(results, names.CLASS_GROUPS) or class_rows(results)
        [label] = loss.classes
        class_share = rows.get(label, 0) / max(1, sum(rows.values())) or None
    if (call := call_of_choice(choice, class_share)) is None:
        return Markup()
    text = f"`{call.command if is_shell else call}` says how many"
    return Markup(mark_code(f"{text}{note_on_delta(choice)}"))


def _next_calls(tables: RunTables | None) -> dict[str, str]:
    """Return what predicts and what monitors, as the maker of the results writes it."""
    if tables is None:
        return {
            "predict": "outcome.predict_table('new.csv', out='predictions.csv')",
            "monitor": "outcome.monitor('next_month.csv')",
        }
    # Before 0.3 no command was stored.
    words = [*tables.command]
    place = words[words.index("--out") + 1] if "--out" in words[:-1] else "RESULTS"
    return {
        "predict": shlex.join(
            ["dsel", "predict", place, "NEW", "--out", "predictions.csv"]
        ),
        "monitor": shlex.join(["dsel", "monitor", place, "NEXT_MONTH"]),
    }


def _plain_words(choice: Choice) -> dict[str, str]:
    """Return texts of a choice with options of Python, and what stands for them."""
    # Its readers set no parameters, so that the shorter names are clearer.
    words = {
        params_text(model.params): short_params_text(model.params)
        for model in choice.bounded_models.values()
    }
    if deployed_text(choice):
        words[deployed_text(choice)] = "the first of these two models"
    return words


def _content_of_prefit(prefit: PrefitCertificate) -> dict[str, Any]:
    """Return the variables of the template for a fitted model."""
    report = prefit.certified_report() if prefit.report or prefit.tolerances else None
    is_tolerance = prefit.tolerances is not None
    unit = "groups with one row each" if prefit.n_groups else "rows"
    return {
        "assumptions": prefit.assumptions_in_words,
        "calls": {},  # the model is the reader's own
        "certificate": prefit,
        "figures": figures_of_prefit(prefit),
        "numbers": {f"{unit} that the model has not seen": prefit.n_labeled},
        "reports": [] if report is None or is_tolerance else [report],
        "reports_by_value": [prefit.report_by_value()] if prefit.by_value else [],
        "shown_rows": prefit.shown_rows(),
        "source": [list(pair) for pair in prefit.sources.items()],
        "title": f"How wrong this {prefit.sources.get('model', 'fitted model')} can "
        f"be, by {prefit.counted_rows}",
        "tolerances": [report] * is_tolerance,
    }


def _numbers_of_search(results: xr.Dataset) -> dict[str, int]:
    """Return the numbers of rows, folds and candidates by their names."""
    counts = read_counts(results)
    status, n_candidates = counts[names.STATUS], int(counts[names.N_CANDIDATES])
    return {
        "labeled rows": int(counts[names.N_LABELED]),
        **({"groups": int(counts[n])} if (n := names.N_GROUPS) in counts else {}),
        "rows in the pool": max(0, int(counts[names.N_UNLABELED])),
        "classes": int(counts.get(names.N_CLASSES, 0)),
        **_number_of_folds(results),
        # A procedure, such as a search that is certified, is one and is no grid.
        "candidates": n_candidates if n_candidates > 1 else 0,
        "dropped early": int(np.sum(status == names.STATUS_PRUNED)),
        "failed": int(np.sum(status == names.STATUS_FAILED)),
    }


def _number_of_folds(results: xr.Dataset) -> dict[str, int]:
    """Return the number of folds, or that of the rows of a single one, by its name."""
    if has_single_fold(results) and names.FOLD_ROWS in results:
        return {"held-out rows": int(results[names.FOLD_ROWS].sum())}
    return {"folds": results.sizes.get(names.FOLD, 0)}


def _source(results: xr.Dataset, tables: RunTables) -> list[list[str]]:
    """Return names and texts of the tables, the model, the date and the version."""
    version = str(results.attrs.get("version_dsel", ""))
    pool = (tables.pool or "").rstrip("/").rpartition("/")[2]
    is_unread = int(read_counts(results)[names.N_UNLABELED]) <= 0  # as with groups
    shown_rows = [
        ["labeled table", Path(tables.labeled).name],
        ["target", tables.target or ""],
        ["pool (not read)" if is_unread else "pool", pool],
        ["models" if "," in tables.model else "model", tables.model.replace(",", ", ")],
        ["date", tables.date],
        ["dsel", version],
    ]
    return [row for row in shown_rows if row[1]]
