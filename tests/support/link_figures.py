"""The state of a link's ends in numbers, for whoever has to find out why nothing moves. No contents, keys or names."""

from typing import Any

from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.connection import Connection
from protocols.transport.https.link import Link
from protocols.transport.https.server_transport import HttpsServerTransport


def link_figures(link: Link, connection: Connection | None) -> str:
    """One end."""
    out, into = link.outbox, link.inbox
    figures: dict[str, Any] = {
        "ended": type(link.ended).__name__ if link.ended is not None else "no",
        "attempt": link.attempt,
        "kept frames": len(out._frames),
        "kept bytes": out.bytes,
        "next piece": out._next,
        "acknowledged": out.acknowledged,
        "granted to us": out._granted,
        "received": into.received,
        "granted by us": into.granted,
        "told": link._told_granted,
        "arrived bytes": into.arrived,
        "held bytes": into.held,
        "missing": into._missing,
        "connection": "none" if connection is None else "attached" if connection.attached else "over",
        "progress": 0 if connection is None else connection.progress,
    }
    return ", ".join(f"{name} {value}" for name, value in figures.items())


def both_ends(server: HttpsServerTransport, clients: dict[int, HttpsClientTransport]) -> list[str]:
    """Two lines for each client: its own end and the server's."""
    lines = list[str]()
    for number, client in clients.items():
        with client._guard:
            redialler = client._redialler
            tries = f", attempts {redialler._attempts}, failures {redialler._failures}"
            lines.append(f"client {number}: {link_figures(client._link, redialler._connection)}{tries}")
        with server._guard:
            for party, end in server._clients.items():
                if party == number:
                    lines.append(f"server to {number}: {link_figures(end.link, end.connection)}")
    return lines
