"""Settings of a federation from the options of its training command: `federation new fede --dim 128 --rounds 50`."""

import importlib
from collections.abc import Sequence
from typing import Final

from launch.commands import COMMANDS
from launch.main import Launcher
from launch.options import parse
from secure_kg.federation.plan.presets import PRESETS, QUERY_PRESETS, preset_for
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command

TRAINERS: Final = ("fedr", "fede", "fedcqa")
"""The commands whose options are settings of a federation."""
_OF_ONE_PARTY: Final = {
    "--client-data": "each site names its own data (--data) when it checks and joins",
    "--columns": "each site says how to read its own tables",
    "--device": "each site chooses its own device",
    "--keys": "each site's identity is in its own folder",
    "--out": "the server names the folder of a run when it serves",
    "--resume": "a run is resumed by the server and the sites",
    "--host": "sites are connected over the network",
    "--ranks": "there are as many clients as members",
    "-n": "there are as many clients as members",
}
_USUAL: Final = RunConfig().dataset
_PLACEHOLDER: Final = ["--keys", "site"]
"""Against an active server clients sign; with what, each site knows by itself."""


def settings_of(trainer: str, options: Sequence[str]) -> RunConfig:
    """The settings that `secure-kg TRAINER OPTIONS` would train with. Sites bring their own graphs, so presets are
    those of graphs that are not small unless a data set is named."""
    for option in options:
        name = option.partition("=")[0]
        name = "-n" if name.startswith("-n") and not name.startswith("--") else name
        if name in _OF_ONE_PARTY:
            raise UserError(f"{name}: is no setting of a federation; {_OF_ONE_PARTY[name]}")
    launcher: Launcher = importlib.import_module(COMMANDS[trainer].module).LAUNCHER
    arguments = list(options)
    if _is_unsaid(options):
        arguments += ["--preset", preset_taken(trainer, options)]
    if _declares_active(options):
        arguments += _PLACEHOLDER
    try:
        return parse(arguments, launcher.prog, launcher.description, launcher.epilog, launcher.defaults).config
    except UserError as problem:
        told = str(problem).removesuffix("; see --help")
        see = f" ({command(launcher.module)} --help has the training options)" if told != str(problem) else ""
        raise UserError(f"{told}{see}") from None


def preset_taken(trainer: str, options: Sequence[str]) -> str:
    """The name of the preset that `settings_of` takes for these options."""
    presets = QUERY_PRESETS if trainer == "fedcqa" else PRESETS
    preset = _value(options, "--preset") or "auto"
    if preset != "auto":
        return preset
    if _value(options, "--dp") is not None:
        return "private"
    return next(iter(presets)) if _is_unsaid(options) else preset_for(_value(options, "--dataset") or _USUAL, presets)


def _is_unsaid(options: Sequence[str]) -> bool:
    return all(_value(options, name) is None for name in ("--dataset", "--preset", "--dp"))


def _value(options: Sequence[str], name: str) -> str | None:
    """What was said last; None if nothing was."""
    said = None
    for option, value in zip(options, [*options[1:], ""], strict=False):
        if option == name:
            said = value
        elif option.startswith(f"{name}="):
            said = option.partition("=")[2]
    return said


def _declares_active(options: Sequence[str]) -> bool:
    return _value(options, "--adversary") == "active"
