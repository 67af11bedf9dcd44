"""Declarations that a score backend does not stand against, refused in one line."""

from protocols.sums.secagg.params import ParametersRefused, ThreatModel


def require_semi_honest(model: ThreatModel, name: str, option: str = "") -> None:
    """For backends under which nobody notices a server that breaks the protocol. `option`: if it is not --scores."""
    if model.server == "active":
        chosen, instead = _words(name, option)
        raise ParametersRefused(f"{chosen} does not stand against --adversary active: {instead}")


def require_apart(model: ThreatModel, name: str, option: str = "") -> None:
    """For backends that hide nothing from the server together with a client."""
    if model.corrupt > 0 and not model.server_apart:
        chosen, instead = _words(name, option)
        raise ParametersRefused(
            f"{chosen} hides nothing from the server together with one client, and --max-corrupt "
            f"declares some: say --no-collusion if they do not work together, or {instead}"
        )


def _words(name: str, option: str) -> tuple[str, str]:
    return (option, "ask without it") if option else (f"--scores {name}", "use --scores masked")
