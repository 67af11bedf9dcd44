"""The completion of bash: one function that looks at the command, the option before the cursor and the word there."""

from collections.abc import Iterator, Sequence
from typing import Final

from launch.completions.words import Value, Words
from secure_kg.foundation.invocation import CONSOLE_SCRIPT

_HEAD: Final = f"""\
# bash completion of {CONSOLE_SCRIPT}. For this session: source <({CONSOLE_SCRIPT} completion bash)
_secure_kg() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words="" options="" files=""
    COMPREPLY=()
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $before == "=" ]]; then
        before="${{COMP_WORDS[COMP_CWORD-2]}}"
    fi
    if [[ $COMP_CWORD -eq 1 ]]; then
"""
_TAIL: Final = f"""\
    if [[ $current == -* ]]; then
        words="$options"
        files=""
    fi
    local IFS=$' \\t\\n'
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    IFS=$'\\n'
    if [[ $files == files ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$current"))
    elif [[ $files == folders ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -d -- "$current"))
    fi
}}
complete -F _secure_kg {CONSOLE_SCRIPT}"""


def script(commands: Sequence[Words]) -> str:
    names = " ".join(one.command for one in commands)
    lines = [
        f'        COMPREPLY=($(compgen -W "{names} help --help --version" -- "$current"))',
        "        return",
        "    fi",
        '    case "${COMP_WORDS[1]}" in',
        f'        help) words="{names}" ;;',
        *(line for one in commands for line in _command(one)),
        "    esac",
    ]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _command(one: Words) -> Iterator[str]:
    names = " ".join(name for option in one.options for name in option.names)
    yield f"        {one.command})"
    yield f'            options="{names}"'
    yield '            case "$before" in'
    for option in one.options:
        if option.value is not None:
            yield f"                {'|'.join(option.names)}) {_set(option.value)} ;;"
    yield f"                *) {_set(one.operand)} ;;"
    yield "            esac ;;"


def _set(value: Value) -> str:
    parts = [f'words="{" ".join(value.words)}"'] if value.words else []
    parts += [f"files={value.files}"] if value.files != "none" else []
    return "; ".join(parts) or ":"
