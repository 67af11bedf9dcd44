"""What may follow in each command, read from its parser: options, their values, and other words."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from secure_kg.data.catalogue import BUNDLED

Files = Literal["none", "files", "folders"]
_FOLDERS: Final = ("DIR", "RUN", "FEDE_RUN", "LOCAL_RUN")


@dataclass(frozen=True, slots=True)
class Value:
    """What may stand in one place: words, names of files or folders, or anything."""

    words: tuple[str, ...] = ()
    files: Files = "none"


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its names."""

    names: tuple[str, ...]
    text: str
    value: Value | None
    """None: it takes none."""


@dataclass(frozen=True, slots=True)
class Words:
    """All that may follow a command."""

    command: str
    text: str
    options: tuple[Option, ...]
    operand: Value
    """What is no option."""


def words_of(name: str, text: str, parser: argparse.ArgumentParser) -> Words:
    """What the parser takes."""
    options, operand = list[Option](), Value()
    for action in _actions(parser):
        if action.option_strings:
            if any(set(action.option_strings) & set(one.names) for one in options):
                continue  # of two sub-commands
            takes = None if action.nargs == 0 else _value(action)
            options.append(Option(tuple(action.option_strings), _first_words(action.help), takes))
        elif operand == Value():
            operand = _value(action)
    return Words(name, text, tuple(options), operand)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Of a command with sub-commands theirs, too: which one is typed is not looked at."""
    found = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [inner for one in action.choices.values() for inner in one._actions]
    return found


def _value(action: argparse.Action) -> Value:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if action.dest == "dataset":
        return Value(BUNDLED, "files")
    if isinstance(action, argparse._SubParsersAction):
        inner = [_value(one) for use in action.choices.values() for one in use._actions if not one.option_strings]
        words = (word for one in inner for word in one.words)
        return Value((*action.choices, *words), "files" if any(one.files == "files" for one in inner) else "none")
    if action.choices is not None:
        return Value(tuple(map(str, action.choices)))
    if "|" in metavar:
        return Value(tuple(metavar.split("|")))
    if metavar in _FOLDERS:
        return Value(files="folders")
    return Value(files="files" if metavar == "FILE" or action.type is Path else "none")


def _first_words(text: str | None) -> str:
    """Of a help text as much as fits beside an option."""
    whole = " ".join((text or "").replace("%%", "%").split())
    short = whole.partition(";")[0].partition(": ")[0]
    return short if len(short) <= 60 else short[:57].rpartition(" ")[0] + " ..."
