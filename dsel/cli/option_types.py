"""Types of options whose values can be wrong without a look at any file.

A wrong value ends a command with exit status 2, as an option that does not exist does.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NoReturn

import click

from dsel.checks import check_delta, check_level, check_probability
from dsel.errors import rename_in_errors
from dsel.files import check_ending, check_new_file
from dsel.option_values import names_in


class Fraction(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A number that one of the library's functions checks; it is no percentage."""

    name = "float"

    def __init__(self, check: Callable[[float, str], float]) -> None:
        self._check = check

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or raise the error of click with the way to write it."""
        option = "the value" if param is None else param.opts[0]
        text = str(value).strip()
        is_percent = text.endswith("%")
        try:  # decimals keep the digits of the advice, which are checked
            number = Decimal(text.removesuffix("%")) / (100 if is_percent else 1)
        except ArithmeticError:
            self.fail(f"{text!r} is no number; 5% is written 0.05.", param, ctx)
        try:
            part = self._check(float(number), "value")
        except ValueError as error:
            self.fail(str(error).replace("`value`", option), param, ctx)
        if is_percent:
            written = f"{text} is written {number.normalize()}"
            self.fail(f"{text!r} is no number; {written}.", param, ctx)
        return part


class ListOption(click.Option):
    """An option of several names, with commas between them or given several times.

    Its value is a tuple of names; one that has a comma stands in double quotes.
    """

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes | {"multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        """Return the names of all texts; an empty text is kept, and refused later."""
        texts = super().type_cast_value(ctx, value)
        return tuple(name for text in texts for name in names_in(text) or (text,))


def as_text(
    context: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> str | None:
    """Return the names of a `ListOption` as one text, as Python takes models."""
    return ",".join(names) if names else None


class RowCount(click.types.IntParamType):
    """A number of rows."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error of click with a number that is understood."""
        text = message.removesuffix(".")
        super().fail(f"{text}; write a number of rows, such as 600.", param, ctx)


FRACTION: Final = Fraction(check_probability)
"""A number strictly between 0 and 1."""
DELTA: Final = Fraction(check_delta)
"""A delta, at most 0.5."""
LEVEL: Final = Fraction(check_level)
"""The level of the tests of `monitor`."""


def check_predictions_file(
    context: click.Context, param: click.Parameter, value: str
) -> str:
    """Return the file of predictions to write, or raise where it cannot be written.

    That is known before anything is imported that takes seconds.
    """
    with rename_in_errors({"`out`": param.opts[0]}):
        try:
            check_ending(value)
        except ValueError as error:
            text = str(error).replace("`out`", param.opts[0])
            raise click.BadParameter(text, context, param) from error
        check_new_file(value)
    return value
