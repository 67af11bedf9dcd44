"""The hosts by name. A host is one module with an object `HOST`, and one line here."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from launch.hosts.interface import Host

DEFAULT_HOST: Final = "mpi"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a host is found, and what `--help` says of it."""

    module: str
    text: str

    def load(self) -> Host:
        host: Host = importlib.import_module(self.module).HOST
        return host


HOSTS: Final[dict[str, Entry]] = {
    "mpi": Entry("launch.hosts.mpi", "every party is a process of mpirun"),
}


def chosen_host(arguments: Sequence[str]) -> Host:
    """The host that `--host` names among the arguments, before anything else of them is read.

    The usual one for a name that is unknown or missing: reading the options says what is wrong with it.
    """
    name = DEFAULT_HOST
    for position, argument in enumerate(arguments):
        if argument == "--host" and position + 1 < len(arguments):
            name = arguments[position + 1]
        elif argument.startswith("--host="):
            name = argument.removeprefix("--host=")
    return HOSTS.get(name, HOSTS[DEFAULT_HOST]).load()
