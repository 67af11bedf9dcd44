"""Mistakes on the command line in words that say what to type instead."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Final

_OF_OPTION: Final = re.compile(r"^argument (?P<names>[^:]+): (?P<what>.*)$", re.DOTALL)
_GIVEN: Final = re.compile(r"'(?P<value>[^']*)'")
_KINDS: Final = {"int": "a whole number", "float": "a number"}
_MOST_WORDS: Final = 60


def in_words(parser: argparse.ArgumentParser, message: str) -> str:
    """argparse's message with what to do about it."""
    if (found := _OF_OPTION.match(message)) is not None:
        return _about_option(parser, found["names"], found["what"])
    if message.startswith("the following arguments are required: "):
        names = message.partition(": ")[2].split(", ")
        return f"missing: {', '.join(_described(parser, name) for name in names)}"
    if message.startswith("one of the arguments "):
        names = message.removeprefix("one of the arguments ").removesuffix(" is required").split()
        return f"missing: one of {', '.join(names)}"
    if message.startswith("unrecognized arguments: "):
        return unknown(message.partition(": ")[2].split()[0], parser)
    return message


def unknown(argument: str, parser: argparse.ArgumentParser) -> str:
    """About a word that the command does not know."""
    known = [option for action in parser._actions for option in action.option_strings]
    if not argument.startswith("-"):
        if "--dataset" in known:
            return f"{argument}: a word without an option before it; for a data set say --dataset {argument}"
        return f"{argument}: a word without an option before it"
    close = difflib.get_close_matches(argument.partition("=")[0], known, n=1, cutoff=0.75)
    return f"unknown option {argument}" + (f"; did you mean {close[0]}?" if close else "")


def _about_option(parser: argparse.ArgumentParser, names: str, what: str) -> str:
    action = _action(parser, names.split("/")[-1])
    given = _GIVEN.search(what)
    value = f" {given['value']}" if given is not None else ""
    if what.startswith("invalid choice") and action is not None and action.choices is not None:
        choices = list(map(str, action.choices))
        close = difflib.get_close_matches(value.strip(), choices, n=1)
        told = f"; did you mean {close[0]}?" if close else ""
        return f"{names}{value}: choose one of {', '.join(choices)}{told}"
    if (kind := re.match(r"invalid (\w+) value", what)) is not None and kind[1] in _KINDS:
        return f"{names}{value}: must be {_KINDS[kind[1]]}"
    if what.startswith("expected ") and action is not None:
        return f"{names}: a value is missing: {_described(parser, names.split('/')[-1])}"
    return f"{names}: {what}"


def _described(parser: argparse.ArgumentParser, name: str) -> str:
    """An option or another argument with its value, and what it is for."""
    action = _action(parser, name)
    if action is None:
        return name
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "" if not action.option_strings or action.nargs == 0 else f" {_short(action.choices, metavar)}"
    text = " ".join((action.help or "").split())
    text = text.partition(";")[0] if len(text) > _MOST_WORDS else text
    return f"{name}{value}" + (f" ({text})" if 0 < len(text) <= _MOST_WORDS else "")


def _short(choices: object, metavar: str) -> str:
    return "|".join(map(str, choices)) if isinstance(choices, Sequence) and not isinstance(choices, str) else metavar


def _action(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return next((one for one in parser._actions if name in (*one.option_strings, one.metavar, one.dest)), None)
