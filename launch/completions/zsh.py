"""The completion of zsh, by its own `_arguments`."""

from collections.abc import Iterator, Sequence

from launch.completions.words import Option, Value, Words
from secure_kg.foundation.invocation import CONSOLE_SCRIPT


def script(commands: Sequence[Words]) -> str:
    lines = [
        f"#compdef {CONSOLE_SCRIPT}",
        f"# zsh completion of {CONSOLE_SCRIPT}. In a folder of $fpath, under the name _secure-kg; or for this session:",
        f"# source <({CONSOLE_SCRIPT} completion zsh)",
        "_secure_kg() {",
        "    local -a commands",
        "    commands=(",
        *(f"        {_quoted(f'{one.command}:{one.text}')}" for one in commands),
        "        'help:explain a command'",
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        "    local command=$words[2]",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $command in",
        "        help) _describe command commands ;;",
        *(line for one in commands for line in _command(one)),
        "    esac",
        "}",
        "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then",
        '    _secure_kg "$@"',
        "else",
        f"    compdef _secure_kg {CONSOLE_SCRIPT}",
        "fi",
    ]
    return "\n".join(lines)


def _command(one: Words) -> Iterator[str]:
    yield f"        {one.command})"
    yield "            _arguments -s \\"
    for option in one.options:
        yield f"                {_option(option)} \\"
    yield f"                {_quoted('*:' + _action(one.operand))} ;;"


def _option(option: Option) -> str:
    text = option.text.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", r"\:")
    value = "" if option.value is None else ":" + _action(option.value)
    rest = _quoted(f"[{text}]{value}")
    if len(option.names) == 1:
        return option.names[0] + rest
    others = " ".join(option.names)
    return _quoted(f"({others})") + "{" + ",".join(option.names) + "}" + rest


def _action(value: Value) -> str:
    """A message, a colon, and how words are found."""
    if value.words and value.files != "none":
        return f"value:_alternative \"names:name:({' '.join(value.words)})\" \"files:file:_files\""
    if value.words:
        return f"value:({' '.join(value.words)})"
    return {"none": "value: ", "files": "file:_files", "folders": "folder:_files -/"}[value.files]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
