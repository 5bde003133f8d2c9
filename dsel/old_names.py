"""Names of 0.2 that still work and warn: attributes, arguments and modules.

All go with the version `NEW_NAMES`: whoever removes them searches for what is imported
from here. Keys of records with an older name are no part of it, since files stay; see
`dsel.results.records.older_name`.
"""

import functools
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any, Final, TypeVar, cast

from dsel.errors import warn

Function = TypeVar("Function", bound=Callable[..., Any])

NEW_NAMES: Final = "0.4"
"""The first version that lacks the old names."""


def warn_of_old_name(old: str, new: str) -> None:
    """Warn, at the user's call of dsel, that it used a name of 0.2."""
    text = f"`{old}` is now called `{new}`; the old name goes with dsel {NEW_NAMES}."
    warn(text, FutureWarning)


class OldName:
    """An attribute that has another name now; its old name reads it and warns."""

    def __init__(self, new: str, read: Callable[[Any], Any] | None = None) -> None:
        self.new = new
        self.read = read or attrgetter(new)
        self.__doc__ = f"Old name of `{new}`, which goes with dsel {NEW_NAMES}."

    @classmethod
    def by_model(cls, name: str) -> "OldName":
        """Return the old name of a dict of an attribute of each bounded model."""
        new = f"bounded_models[...].{name}"
        return cls(new, lambda choice: choice.by_model(name))

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, record: object, owner: type | None = None) -> Any:
        if record is None:
            return self
        warn_of_old_name(self.old, self.new)
        return self.read(record)


def names_of(kind: type) -> list[str]:
    """Return the names of a type's attributes, without old ones."""
    return [
        name for name in dir(kind) if not isinstance(getattr(kind, name, None), OldName)
    ]


def read_old_module(old: str, new: ModuleType) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module with an older name of another one.

    Its names warn, and not its import: tools import every module of a package.
    """

    def read(name: str) -> Any:
        if name.startswith("__") or not hasattr(new, name):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warn_of_old_name(old, new.__name__)
        return getattr(new, name)

    return read


def read_old_arguments(**new_names: str) -> Callable[[Function], Function]:
    """Return a decorator that reads arguments by their old names, too, and warns."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **params: Any) -> Any:
            for old, new in new_names.items():
                if old in params and new not in params:
                    warn_of_old_name(old, new)
                    params[new] = params.pop(old)
            return function(*args, **params)

        return cast(Function, call)

    return decorate
