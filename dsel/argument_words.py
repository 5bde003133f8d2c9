"""Options of the shell that a text about a table names, as arguments of `read_table`.

Readers of tables word their texts once, with the options of ``dsel select``. The
outermost caller decides how a reader of the text meets them: `name_arguments` of a
function of Python renames them, and `keep_options` of the shell, and of functions with
other arguments, leaves them as they are.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from dsel.errors import rename_parts
from dsel.option_values import names_in

OF_READ_TABLE: Final = (
    "; these are arguments of `dsel.data.read_table`, whose `X` may be the pool"
)
"""End of a text for those who call a function without these arguments."""
_ARGUMENTS: Final = {
    "class": "gap_classes",
    "drop": "drop",
    "encoding": "encoding",
    "gap": "gaps",
    "groups": "groups",
    "id": "ids",
    "number": "number",
    "sep": "separator",
    "target": "target",
    "task": "task",
    "text": "text",
    "unlabeled": "unlabeled",
}
_SINGLE: Final = ("encoding", "groups", "separator", "target", "task")
"""Arguments that are one text; the others are lists."""
_WHOLE: Final = ("gap", "class", "unlabeled")
"""Options whose value is one text, which may hold commas, of arguments with a list."""
# A quoted word of `shlex.quote`, which writes a quote in it as '"'"'.
_QUOTED: Final = r"""'[^'\n]*'(?:"'"'[^'\n]*')*"""
_VALUE: Final = rf"{_QUOTED}|[^\s'`;]+?(?=[,.;:)]?(?:\s|$))"
# Words that follow an option in a sentence, and are none of its values.
_SENTENCE: Final = r"(?!(?:and|both|for|has|if|is|must|names|or)\b)"
_OPTION: Final = re.compile(
    rf"--sep (?P<sep>{_QUOTED}|[^\s'])(?=[\s.,;)]|$)|--(?P<order>day|month)first\b"
    rf"|--(?P<name>{'|'.join(_ARGUMENTS)})\b(?: {_SENTENCE}(?P<value>{_VALUE}))?"
)
_IS_WORDED: Final = ContextVar("_IS_WORDED", default=False)


def name_options(text: str) -> str:
    """Return a text with arguments of `read_table` in the place of options.

    Examples
    --------
    >>> name_options("name it by --id nr, or leave it out by --drop nr,code")
    "name it by ids=['nr'], or leave it out by drop=['nr', 'code']"
    >>> name_options("--gap unknown --gap n/a reads them as gaps")
    "gaps=['unknown', 'n/a'] reads them as gaps"
    >>> name_options("write --sep ';', and --sep , if not; --drop names 'q'")
    "write separator=';', and separator=',' if not; `drop` names 'q'"
    >>> name_options("write --dayfirst or --monthfirst")
    'write day_first=True or day_first=False'
    """
    parts, end = list[str](), 0
    arguments: dict[str, list[str] | str] = {}
    for option in _OPTION.finditer(text):
        between = text[end : option.start()]
        if arguments and between != " ":
            parts, arguments = [*parts, _write(arguments)], {}
        if not arguments:
            parts.append(between)
        _add(arguments, option)
        end = option.end()
    return "".join([*parts, _write(arguments), text[end:]])


def _add(arguments: dict[str, list[str] | str], option: re.Match[str]) -> None:
    """Add an option to arguments, as code, or as the name alone if it has no value."""
    if order := option["order"]:
        arguments["day_first"] = repr(order == "day")
        return
    name = _ARGUMENTS[option["name"] or "sep"]
    word = option["sep"] or option["value"]
    if word is None:
        arguments.setdefault(name, "")
        return
    value = shlex.split(word)[0] if word.startswith("'") else word
    if name in _SINGLE:
        arguments[name] = repr(value)
        return
    values = [value] if option["name"] in _WHOLE else [*names_in(value)]
    known = arguments.get(name) or []
    arguments[name] = [*known, *values]


def _write(arguments: dict[str, list[str] | str]) -> str:
    """Return arguments as code."""
    return ", ".join(
        f"{name}={value}" if value else f"`{name}`" for name, value in arguments.items()
    )


@contextmanager
def keep_options() -> Iterator[None]:
    """Leave options as they are in all texts about tables that are read meanwhile."""
    token = _IS_WORDED.set(True)
    try:
        yield
    finally:
        _IS_WORDED.reset(token)


@contextmanager
def name_arguments(end: str = "") -> Iterator[Callable[[str], str]]:
    """Name arguments in errors, and return a function that does so in other texts.

    If a caller words texts already, both leave them as they are. `end` is added to an
    error whose options were renamed.
    """
    if _IS_WORDED.get():
        yield str
        return
    with keep_options():
        try:
            yield name_options
        except (OSError, TypeError, ValueError) as error:
            before = str(error)
            rename_parts(error, name_options)
            if end and str(error) != before:
                error.args = (f"{str(error).removesuffix('.')}{end}.",)
            raise
