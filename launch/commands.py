"""The commands of the console script by name; each is a module of this package with `main(argv)`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.foundation.invocation import is_renamed

CONSOLE_SCRIPT: Final = "secure-kg"


@dataclass(frozen=True, slots=True)
class Command:
    """A launcher, and what the list of commands says of it."""

    module: str
    text: str


COMMANDS: Final[dict[str, Command]] = {
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
    "partition": Command("launch.partition", "divide a data set among clients, one folder for each"),
    "keygen": Command("launch.keygen", "make the identities that --adversary active needs"),
    "audit": Command("launch.audit", "report what the server of a run really observed, and attack it"),
    "dpkge": Command("launch.dpkge", "train on a graph of which some statements are confidential (DPKGE)"),
    "attack": Command("launch.attack", "try to tell which triples a client trains on, as a client and as the server"),
}


def script_names() -> dict[str, str]:
    """The console script's commands by module."""
    return {command.module: f"{CONSOLE_SCRIPT} {name}" for name, command in COMMANDS.items()}


def restarted(module: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What follows `python -m` to start the same command again, which then speaks of commands as this process does."""
    if not is_renamed(module):
        return module, *arguments
    (name,) = (name for name, command in COMMANDS.items() if command.module == module)
    return "launch.cli", name, *arguments
