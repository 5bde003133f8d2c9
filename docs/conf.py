"""Configuration of the documentation: one command builds it, see README.md.

Scripts of `examples/` and `docs/guide/` are run by the build, in one process, and what
they print and draw stands on their pages. Python in the other pages is run by
`tests/test_readme.py`. Formulas become MathML, so a page loads nothing from elsewhere.
"""

import os
import re
from importlib import metadata
from typing import Any

import matplotlib as mpl
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import dsel

# Figures are drawn to files, and all processes that scripts start do the same.
mpl.use("agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "dsel"
author = "The dsel developers"
copyright = "The dsel developers, BSD 3-clause licence"
release = metadata.version("dsel")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "guide", "**/*.ipynb"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = f"dsel {release}"
html_static_path = ["_static"]
html_css_files = ["dsel.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autosummary_context = {"top": dsel.__all__}  # have their pages once, as dsel.<name>
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
numpydoc_show_class_members = False

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": ["../examples", "guide"],
    "gallery_dirs": ["gallery", "guides"],
    "within_subsection_order": "FileNameSortKey",
    # Two need worker processes, or documents that are no part of the project: they are
    # shown here, and tests run them.
    "filename_pattern": r"/(?!main_job_on_workers|text_covalidation)\w+\.py$",
    "write_computation_times": False,
    "notebook_extensions": set(),
    "copyfile_regex": r".*\.py$",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "show_memory": False,
    "min_reported_time": 10**9,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "reference_url": {"dsel": None},
}


def mathml(tex: str, *, is_block: bool) -> str:
    r"""Return a formula as MathML, whose brackets grow without ``\big``."""
    return tex2mathml(re.sub(r"\\[bB]ig(?![a-zA-Z])", "", tex), as_block=is_block)


def block_mathml(self: Any, node: Any) -> None:
    """Write a displayed formula."""
    self.body.append(mathml(node.astext(), is_block=True))
    raise nodes.SkipNode


def inline_mathml(self: Any, node: Any) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), is_block=False))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register the formulas' renderer."""
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
