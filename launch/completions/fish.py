"""The completion of fish: one line for each command and option."""

from collections.abc import Iterator, Sequence

from launch.completions.words import Option, Value, Words
from secure_kg.foundation.invocation import CONSOLE_SCRIPT


def script(commands: Sequence[Words]) -> str:
    names = " ".join(one.command for one in commands)
    lines = [
        f"# fish completion of {CONSOLE_SCRIPT}. In ~/.config/fish/completions/{CONSOLE_SCRIPT}.fish; or for this",
        f"# session: {CONSOLE_SCRIPT} completion fish | source",
        f"complete -c {CONSOLE_SCRIPT} -f",
    ]
    for one in commands:
        lines.append(f"complete -c {CONSOLE_SCRIPT} -n __fish_use_subcommand -a {one.command} -d {_quoted(one.text)}")
    lines.append(f"complete -c {CONSOLE_SCRIPT} -n __fish_use_subcommand -a help -d 'explain a command'")
    lines.append(f"complete -c {CONSOLE_SCRIPT} -n __fish_use_subcommand -l version")
    lines.append(f"complete -c {CONSOLE_SCRIPT} -n '__fish_seen_subcommand_from help' -a {_quoted(names)}")
    lines += [line for one in commands for line in _command(one)]
    return "\n".join(lines)


def _command(one: Words) -> Iterator[str]:
    start = f"complete -c {CONSOLE_SCRIPT} -n '__fish_seen_subcommand_from {one.command}'"
    if found := _found(one.operand):
        yield f"{start} -a {found}"
    for option in one.options:
        yield f"{start}{_names(option)}{_value(option)} -d {_quoted(option.text)}"


def _names(option: Option) -> str:
    return "".join(
        f" -l {name.removeprefix('--')}" if name.startswith("--") else f" -s {name.removeprefix('-')}"
        for name in option.names
    )


def _value(option: Option) -> str:
    if option.value is None:
        return ""
    found = _found(option.value)
    return f" -x -a {found}" if found else " -x"


def _found(value: Value) -> str:
    """Words as fish computes them when they are asked for; empty if anything may stand there."""
    files = {"none": "", "files": "(__fish_complete_path)", "folders": "(__fish_complete_directories)"}[value.files]
    words = " ".join([*value.words, files]).strip()
    return _quoted(words) if words else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
