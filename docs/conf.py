"""Configuration of the documentation: one command builds it, see README.md.

Scripts of `examples/` and `docs/guide/` are run by the build, in one process, and what
they print and draw stands on their pages. Python in the other pages is run by
`tests/test_readme.py`. Formulas become MathML, so a page loads nothing from elsewhere.
"""

import io
import json
import math
import os
import re
import shutil
import sys
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from matplotlib import pyplot as plt
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import dsel
from dsel.plots import plot_audit_failures
from dsel.plots.fitting import FONT_SIZE, SMALL
from dsel.plots.style import ACCENT, BLUE, GREEN, INK, MIDDLE, PINK
from dsel.runtime import progress

# Figures are drawn to files, and all processes that scripts start do the same.
mpl.use("agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A run that takes long, as on a busy machine, writes lines of progress, which
# sphinx-gallery would put on the page of its script: other ones in each build.
progress.SILENT_SECONDS = math.inf

project = "dsel"
author = "The dsel developers"
copyright = "The dsel developers, BSD 3-clause license"
release = metadata.version("dsel")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "signatures",
]
sys.path.insert(0, str(Path(__file__).parent))  # has signatures.py
exclude_patterns = ["_build", "guide", "**/*.ipynb"]
templates_path = ["_templates"]

# Quotes and dots, not dashes: "--out" is an option.
smartquotes_action = "qe"

html_theme = "pydata_sphinx_theme"
html_title = f"dsel {release}"
html_static_path = ["_static"]
html_css_files = ["dsel.css"]
html_sidebars = {"why": [], "install": []}  # have no pages below them
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "glossary-link"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
# Names that have a page elsewhere: as dsel.<name>, or by their shorter one.
autosummary_context = {"elsewhere": dsel.__all__}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
default_role = "literal"  # `name` in a docstring is code
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

AUDIT = Path(__file__).parent / "theory" / "audit.json"
"""The report of an audit; `audit.md` says how it was made."""


DRAWING = Path(__file__).parent / "_static" / "method.svg"


def described(figure: Any, about: str) -> str:
    """Return a figure as SVG that has the colors of its page, with its text."""
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "dsel", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    svg = "<svg" + file.getvalue().partition("<svg")[2]
    for ink in (INK, "#000000"):
        svg = svg.replace(ink, "currentColor")
    widest = f"max-width: {100 * figure.get_figwidth():.0f}px"
    told = f'<svg role="img" fill="currentColor" style="{widest}" aria-label="{about}"'
    return svg.replace("<svg", told, 1)


def figure_html(svg: str) -> str:
    """Return SVG as HTML that scrolls where the page is narrow."""
    return f'<div class="figure">{svg}</div>'


STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": FONT_SIZE,
    "axes.prop_cycle": mpl.cycler(color=[BLUE, GREEN, PINK, MIDDLE, ACCENT]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": FONT_SIZE,
    "figure.titlesize": FONT_SIZE,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "text.color": INK,
    **{f"{axis}tick.{size}.size": 0 for axis in "xy" for size in ("major", "minor")},
    **{f"{axis}tick.color": INK for axis in "xy"},
    **{f"{axis}tick.labelsize": SMALL for axis in "xy"},
}
"""Figures that scripts draw by themselves look like those of `dsel.plots`.

The five colors differ for colour-blind readers, too."""


def set_style(gallery: Any, script: Any) -> None:
    """Begin each script with the style of dsel's own figures."""
    del gallery, script
    plt.rcdefaults()
    plt.rcParams.update(STYLE)


def open_figures(block: Any, variables: Any, gallery: Any, **more: Any) -> str:
    """Put the figures that a script has drawn on its page; files are for thumbnails."""
    del block, gallery, more
    shown = []
    for number, path in zip(
        plt.get_fignums(), variables["image_path_iterator"], strict=False
    ):
        figure = plt.figure(number)
        figure.savefig(path, dpi=100)
        texts = (
            text
            for ax in figure.axes
            for text in (ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel())
        )
        about = escape("; ".join(filter(None, texts)).replace("\n", " "))
        svg = described(figure, about)
        html = figure_html(svg).replace("\n", "\n   ")
        shown.append(f"\n.. raw:: html\n\n   {html}\n\n")
    plt.close("all")
    return "".join(shown)


class MainJobFirst:
    """The order of scripts: the one to begin with, others by name, the one not run."""

    def __init__(self, folder: str) -> None:
        del folder

    def __call__(self, name: str) -> tuple[bool, bool, str]:
        """Return what scripts are sorted by."""
        return name != "choose_a_model.py", name == "main_job_on_workers.py", name


class Audit(SphinxDirective):
    """The figure of an audit: one setting in each line of the content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw what the audit found."""
        self.env.note_dependency(str(AUDIT))
        report = xr.Dataset.from_dict(json.loads(AUDIT.read_text()))
        unknown = set(self.content) - set(report["setting"].values)
        if unknown:
            raise ExtensionError(f"{AUDIT.name} has no setting {sorted(unknown)}")
        report = report.sel(setting=list(self.content))
        worst = report["failures"].max("setting") / int(report["n_draws"])
        about = "Share of draws in which the bound failed: " + ", ".join(
            f"at most {float(share):.1%} at delta {float(delta):g}"
            for delta, share in zip(report["delta"], worst, strict=True)
        )
        ax = plot_audit_failures(report)
        html = figure_html(described(ax.figure, about))
        plt.close(ax.figure)
        return [nodes.raw("", html, format="html")]


suppress_warnings = ["config.cache"]  # of the scraper, a function of this file
sphinx_gallery_conf: dict[str, Any] = {
    "image_scrapers": (open_figures,),
    "examples_dirs": ["../examples", "guide"],
    "gallery_dirs": ["gallery", "guides"],
    "within_subsection_order": MainJobFirst,
    "default_thumb_file": str(DRAWING),  # dsel.css hides it: nothing was drawn
    # One starts worker processes: it is shown here, and a test runs it.
    "filename_pattern": r"/(?!main_job_on_workers)\w+\.py$",
    "write_computation_times": False,
    "notebook_extensions": set(),
    "copyfile_regex": r".*\.py$",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib\.(axes|legend|text)",
    "show_memory": False,
    "min_reported_time": 10**9,
    "remove_config_comments": True,
    "reset_modules": (set_style,),
    "reference_url": {"dsel": None},
}


def mathml(tex: str, *, is_block: bool) -> str:
    r"""Return a formula as MathML, whose brackets grow without ``\big``.

    Few fonts have the sign that ``\setminus`` becomes, most have the other one.
    ``\frac12`` is one half, as in TeX; docutils reads 12 over what follows.
    """
    tex = re.sub(r"\\[bB]ig(?![a-zA-Z])", "", tex)
    tex = re.sub(r"frac(\d)(\d)", r"frac{\1}{\2}", tex)
    return tex2mathml(tex, as_block=is_block).replace("\u29f5", "\u2216")


def block_mathml(self: Any, node: Any) -> None:
    """Write a displayed formula."""
    self.body.append(mathml(node.astext(), is_block=True))
    raise nodes.SkipNode


def inline_mathml(self: Any, node: Any) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), is_block=False))
    raise nodes.SkipNode


REPORT = Path(__file__).parent / "guides" / "report_of_a_run.html"
"""The page about the run of `guide/i_session.py`, which that script leaves there."""
os.environ["DSEL_SITE_REPORT"] = str(REPORT)


def copy_report(app: Any, error: Exception | None) -> None:
    """Put the report next to the page that links it; raise where it is not there.

    A build with ``-D plot_gallery=0`` runs no script, so it may have none.
    """
    runs_scripts = bool(app.config.sphinx_gallery_conf["plot_gallery"])
    if (
        error is None
        and app.builder.format == "html"
        and (runs_scripts or REPORT.exists())
    ):
        shutil.copy(REPORT, Path(app.outdir) / "guides")


PAGES_OF_SCRIPTS = {"docs/guide": "guides", "examples": "gallery"}


def link_pages_of_scripts(app: Any, doctree: nodes.document) -> None:
    """Let links to scripts lead to their pages, which a clone does not have."""
    root = Path(app.srcdir).parent
    for link in list(doctree.findall(addnodes.download_reference)):
        path = Path(app.srcdir, link["refdoc"]).parent / link["reftarget"]
        place = path.resolve().relative_to(root)
        pages = PAGES_OF_SCRIPTS.get(place.parent.as_posix())
        if pages and place.suffix == ".py":
            attributes = link.attributes | {"refdomain": "doc", "reftargetid": None}
            attributes["reftarget"] = f"{pages}/{place.stem}"
            page = addnodes.pending_xref("", *link.children, **attributes)
            link.replace_self(page)


def setup(app: Any) -> None:
    """Register the formulas' renderer, the figures of audits, and the run's page."""
    app.connect("doctree-read", link_pages_of_scripts, priority=400)  # before copies
    app.connect("build-finished", copy_report)
    app.add_directive("audit", Audit)
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
