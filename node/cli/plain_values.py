"""Takes the values of options and arguments of simple types without pydantic.

typer validates each value by pydantic. Importing that takes as long as all else that most commands import, and 9 MB of a
daemon. So a text for a `str`, digits for an `int` and a path for a `Path` are taken here, as typer would take them. All
else, and all that is wrong, goes to typer, and so each error is typer's own.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from typer.core import TyperArgument, TyperOption

if TYPE_CHECKING:  # types that typer uses in the signatures of its public classes, and does not export itself
    from typer._click import Context, Parameter

_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")


def take_plainly() -> None:
    """Have all parameters take simple values without pydantic, from now on."""
    for kind in (TyperOption, TyperArgument):
        # typer asks a parameter for what turns values into its type, and makes that from its signature and pydantic.
        kind.get_runtime_param = _plain_values  # type: ignore[assignment,method-assign]  # typer's own gives a private type


class _NotPlain(Exception):
    """A value that typer is to take, or to refuse."""


_ask_typer: Final = TyperOption.get_runtime_param


class _PlainValues:
    """What takes the values of one parameter."""

    def __init__(self, parameter: TyperOption | TyperArgument) -> None:
        self._type = parameter.type_descriptor.annotation
        self._wanted = parameter.type_descriptor.parameter_info

    def coerce(self, value: Any, param: "Parameter", ctx: "Context") -> Any:  # noqa: ANN401  # as typer calls it
        """The value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        origin: object = get_origin(self._type)
        try:
            if origin is not list:
                return self._take(value, self._type)
            if not isinstance(value, list | tuple):
                raise _NotPlain
            [kind] = get_args(self._type)
            return [self._take(item, kind) for item in value]
        except _NotPlain:
            return _ask_typer(param).coerce(value, param=param, ctx=ctx)  # type: ignore[arg-type]  # it is of typer's kinds

    def _take(self, value: object, kind: object) -> object:
        if self._wanted.parser is None and isinstance(value, str):
            if kind is str and _is_text(value):
                return value
            if kind is int and _DIGITS.fullmatch(value) and self._is_within(int(value)):
                return int(value)
            if kind is Path and _is_text(value) and self._may_be_path(value):
                return Path(value)
        if kind is int and type(value) is int and self._is_within(value):
            return value
        raise _NotPlain

    def _is_within(self, number: int) -> bool:
        low, high = self._wanted.min, self._wanted.max
        return (low is None or number >= low) and (high is None or number <= high)

    def _may_be_path(self, value: str) -> bool:
        """Whether typer would take it as it is: it refuses a path that it must not read, among others."""
        wanted = self._wanted
        if wanted.exists or wanted.writable or wanted.resolve_path or wanted.allow_dash or wanted.path_type:
            return False
        if not (wanted.file_okay and wanted.dir_okay):
            return False
        return not os.path.lexists(value) or os.access(value, os.R_OK)


def _is_text(value: str) -> bool:
    """Whether it is Unicode: an argument that is not has surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_values(parameter: TyperOption | TyperArgument) -> _PlainValues:
    return _PlainValues(parameter)
