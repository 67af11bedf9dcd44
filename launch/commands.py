"""The commands of the console script by name; each is a module of this package with `main(argv, prog)`."""

from dataclasses import dataclass
from typing import Final

CONSOLE_SCRIPT: Final = "secure-kg"


@dataclass(frozen=True, slots=True)
class Command:
    """A launcher, and what the list of commands says of it."""

    module: str
    text: str


COMMANDS: Final[dict[str, Command]] = {
    "fedr": Command("launch.fedr_secagg", "train together by sharing relation rows (FedR), with secure aggregation"),
    "fede": Command("launch.fede", "train together by sharing entity rows (FedE), with secure aggregation"),
    "local": Command("launch.local", "train every client alone: the baseline that a federation must beat"),
    "entire": Command("launch.entire", "train on the pooled triples of all clients: the bound without privacy"),
    "fuse": Command("launch.fuse", "join each client's federated model with the one it trained alone"),
    "partition": Command("launch.partition", "divide a data set among clients, one folder for each"),
    "keygen": Command("launch.keygen", "make the identities that --adversary active needs"),
    "audit": Command("launch.audit", "report what the server of a run really observed, and attack it"),
}
