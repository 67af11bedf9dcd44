"""Names of the commands as the user calls them: `python -m launch.audit`, or `secure-kg audit` by the console script.

A line that tells the user what to call next takes the name from here.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

CONSOLE_SCRIPT: Final = "secure-kg"
_names: Mapping[str, str] = {}


def command(module: str) -> str:
    """The command that runs the launcher `module`, in the manner in which this process was called."""
    return _names.get(module, f"python -m {module}")


def is_renamed(module: str) -> bool:
    """Whether this process was called by a script that has a name of its own for the launcher `module`."""
    return module in _names


@contextmanager
def called_by_script(names: Mapping[str, str]) -> Iterator[None]:
    """For the time of a script's command: `names` are its commands by module."""
    global _names
    before, _names = _names, names
    try:
        yield
    finally:
        _names = before
