"""The commands of the console script by name; each is a module of this package with `main(argv)`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.foundation.invocation import CONSOLE_SCRIPT, is_renamed


@dataclass(frozen=True, slots=True)
class Command:
    """A launcher, and what the list of commands says of it."""

    module: str
    text: str


COMMANDS: Final[dict[str, Command]] = {
    "demo": Command("launch.demo", "a federation of five clients on this machine, from data to report"),
    "doctor": Command("launch.doctor", "check this machine, and say what to do about what it lacks"),
    "fedr": Command("launch.fedr_secagg", "train together by sharing relation rows (FedR), with secure aggregation"),
    "fede": Command("launch.fede", "train together by sharing entity rows (FedE), with secure aggregation"),
    "fedcqa": Command("launch.fedcqa", "train encoders of logical queries together (FedCQA), with secret sums"),
    "ask": Command("launch.ask", "ask a logical question over the graphs of all clients of a FedCQA run"),
    "local": Command("launch.local", "train every client alone: the baseline that a federation must beat"),
    "entire": Command("launch.entire", "train on the pooled triples of all clients: the bound without privacy"),
    "fuse": Command("launch.fuse", "join each client's federated model with the one it trained alone"),
    "predict": Command(
        "launch.predict", "ask a client's trained model for tails, heads, relations or similar entities"
    ),
    "evaluate": Command("launch.evaluate", "rank any triples with a client's trained model"),
    "export": Command("launch.export", "write a client's trained model for PyKEEN, Neo4j or other programs"),
    "compare": Command("launch.compare", "put finished runs side by side: results, costs, who learned what"),
    "partition": Command("launch.partition", "divide a data set among clients, one folder for each"),
    "keygen": Command("launch.keygen", "make the identities that --adversary active needs"),
    "site": Command("launch.site", "one organisation: its identity, its request, and a check before it joins"),
    "federation": Command("launch.federation", "the coordinator: found a federation, approve and revoke members"),
    "audit": Command("launch.audit", "report what the server of a run really observed, and attack it"),
    "dpkge": Command("launch.dpkge", "train on a graph of which some statements are confidential (DPKGE)"),
    "attack": Command("launch.attack", "try to tell which triples a client trains on, as a client and as the server"),
    "completion": Command("launch.completion", "a script that completes commands in bash, zsh or fish"),
}

_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "try it": ("demo", "doctor", "completion"),
    "bring your data": ("partition", "keygen"),
    "between organisations": ("site", "federation"),
    "train": ("fedr", "fede", "fedcqa"),
    "ask and use": ("predict", "evaluate", "export", "ask", "fuse"),
    "check": ("compare", "audit", "attack"),
    "research": ("local", "entire", "dpkge"),
}


def grouped() -> Iterator[tuple[str, list[str]]]:
    """The commands by what they are for, each once; those of no group come last."""
    for title, names in _GROUPS.items():
        yield title, [name for name in names if name in COMMANDS]
    listed = {name for names in _GROUPS.values() for name in names}
    if more := [name for name in COMMANDS if name not in listed]:
        yield "more", more


def script_names() -> dict[str, str]:
    """The console script's commands by module."""
    return {command.module: f"{CONSOLE_SCRIPT} {name}" for name, command in COMMANDS.items()}


def restarted(module: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What follows `python -m` to start the same command again, which then speaks of commands as this process does."""
    if not is_renamed(module):
        return module, *arguments
    (name,) = (name for name, command in COMMANDS.items() if command.module == module)
    return "launch.cli", name, *arguments
