"""Declarations that a score backend does not stand against, refused in one line."""

from protocols.sums.secagg.params import ParametersRefused, ThreatModel


def require_semi_honest(model: ThreatModel, name: str) -> None:
    """For backends under which nobody notices a server that breaks the protocol."""
    if model.server == "active":
        raise ParametersRefused(f"--scores {name} does not stand against --adversary active: use --scores masked")


def require_apart(model: ThreatModel, name: str) -> None:
    """For backends that hide nothing from the server together with a client."""
    if model.corrupt > 0 and not model.server_apart:
        raise ParametersRefused(
            f"--scores {name} hides nothing from the server together with one client, and --max-corrupt "
            "declares some: say --no-collusion if they do not work together, or use --scores masked"
        )
