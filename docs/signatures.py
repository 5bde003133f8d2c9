"""Signatures of the API's pages: types by the names that the source has for them.

Python replaces an alias such as `RowsLike` by what it stands for, which is longer than
the line and says less. So annotations are read from the source, and each name links to
the page that has it: `api/types.md` for aliases.
"""

import ast
import dataclasses
import importlib
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import make_refnode


class ShortNames(ast.NodeTransformer):
    """Writes names without their modules, and names in quotes without the quotes."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return `Dataset` for `xr.Dataset`."""
        return ast.Name(node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave the texts of `Literal` alone."""
        node.value = self.visit(node.value)
        if not (isinstance(node.value, ast.Name) and node.value.id == "Literal"):
            node.slice = self.visit(node.slice)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return `Outcome` for "Outcome"."""
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node


def annotation_text(node: ast.expr) -> str:
    """Return an annotation as its source has it, with short names."""
    return ast.unparse(ShortNames().visit(node))


def _definition(subject: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(subject))).body[0]


def _annotations_in_source(subject: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of each parameter, and those of "return"."""
    if not inspect.isclass(subject):
        node = _definition(inspect.unwrap(subject))
        arguments = node.args
        for argument in (
            *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
            arguments.vararg, arguments.kwarg,
        ):  # fmt: skip
            if argument is not None and argument.annotation is not None:
                yield argument.arg, annotation_text(argument.annotation)
        if node.returns is not None:
            yield "return", annotation_text(node.returns)
    elif dataclasses.is_dataclass(subject) or hasattr(subject, "_fields"):
        for base in reversed(subject.__mro__):
            if base.__module__.startswith("dsel"):
                for node in _definition(base).body:
                    if isinstance(node, ast.AnnAssign):
                        yield ast.unparse(node.target), annotation_text(node.annotation)
    else:
        yield from _annotations_in_source(subject.__init__)


def source_signature(subject: Any) -> tuple[str, str | None] | None:
    """Return the parameters of a function or class as text, and what it returns.

    None where Python does not know them, or the source is not there to be read.
    """
    try:
        texts = dict(_annotations_in_source(subject))
        signature = inspect.signature(subject)
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    parameters = [
        parameter.replace(annotation=texts.get(parameter.name, parameter.empty))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    signature = inspect.Signature(parameters)
    returns = None if inspect.isclass(subject) else texts.get("return")
    return stringify_signature(signature), returns


class Aliases(SphinxDirective):
    """The type aliases of a module that the content names, as their source has them."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write the definition of each alias, and the text below it."""
        [module] = self.arguments
        body = ast.parse(inspect.getsource(importlib.import_module(module))).body
        lines = []
        for name in self.content:
            definition, text = alias_source(body, name)
            lines += [f".. py:data:: {module}.{name}", f"   :value: {definition}", ""]
            lines += [f"   {line}" for line in text.splitlines()] + [""]
        return self.parse_text_to_nodes("\n".join(lines))


def alias_source(body: list[ast.stmt], name: str) -> tuple[str, str]:
    """Return the definition of an alias in a module, and the text below it."""
    for node, below in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else node
        target = getattr(target, "target", target)
        if isinstance(target, ast.Name) and target.id == name:
            text = inspect.cleandoc(below.value.value)
            is_named = isinstance(node.value, ast.Call)  # TypeAliasType(name, value)
            value = node.value.args[1] if is_named else node.value
            return annotation_text(value), text
    raise ExtensionError(f"there is no alias {name!r} to describe")


def write_signature(
    app: Any, what: str, name: str, subject: Any, *more: Any
) -> tuple[str, str | None] | None:
    """Return the signature that a page shows; None leaves it to autodoc."""
    del app, more
    if not name.startswith("dsel") or what not in {"class", "exception"} | CALLABLES:
        return None
    # A protocol is never called, and a dataclass has its fields on the page.
    if getattr(subject, "_is_protocol", False) or dataclasses.is_dataclass(subject):
        return "", None
    return source_signature(subject)


def skip_default(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out a field whose default is a class, which autodoc takes for its alias."""
    del app, what, name, skip, options
    return True if member is dict else None


CALLABLES = {"function", "method"}
TYPES = {"class", "data", "exception", "type"}
"""Kinds of objects that an annotation names."""


@cache
def _pages_by_name(env: Any, n_objects: int) -> dict[str, list[str]]:
    del n_objects  # the key: names that were added since are found, too
    pages = defaultdict(list)
    for full, entry in env.get_domain("py").objects.items():
        if entry.objtype in TYPES and not entry.aliased:
            pages[full.rpartition(".")[2]].append(full)
    return pages


def link_short_name(app: Any, env: Any, node: Any, content: Any) -> nodes.Node | None:
    """Return a link to the one object that has this name, in whichever module."""
    if node.get("refdomain") != "py":
        return None
    objects = env.get_domain("py").objects
    name = node["reftarget"].rpartition(".")[2]
    found = _pages_by_name(env, len(objects)).get(name, [])
    if len(found) != 1:
        return None
    entry = objects[found[0]]
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0]
    )


def setup(app: Any) -> None:
    """Write signatures from the source, and link the names in them."""
    app.connect("autodoc-process-signature", write_signature)
    app.connect("autodoc-skip-member", skip_default)
    app.connect("missing-reference", link_short_name)
    app.add_directive("aliases", Aliases)
