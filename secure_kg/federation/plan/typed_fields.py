"""Fields of settings by name and type: their spelling on a command line, and whether values from a file fit them."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, get_args

from secure_kg.foundation.errors import UserError


def flag(name: str) -> str:
    """The command-line spelling of a field."""
    return "--" + name.replace("_", "-")


def check_types(owner: type, values: Mapping[str, Any], where: str, apart: Collection[str] = ()) -> None:
    """Raise `UserError` unless every key is a field of `owner` and has its default's type. `apart`: fields that do
    not stand there."""
    known = {entry.name: entry.type for entry in dataclasses.fields(owner) if entry.name not in apart}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"{where}: unknown setting '{key}'")
        if not isinstance(value, scalar_type(known[key])) or isinstance(value, bool) != (known[key] is bool):
            raise UserError(f"{where}: '{key}' has the wrong type")


def scalar_type(annotation: Any) -> type | tuple[type, ...]:
    """The plain type behind a field's annotation; a whole number will do where a float is asked for."""
    if annotation is float:
        return (float, int)
    if isinstance(annotation, type):
        return annotation
    options = [option for option in get_args(annotation) if option is not type(None)]
    if all(isinstance(option, type) for option in options):
        return tuple(options)
    return type(options[0])
