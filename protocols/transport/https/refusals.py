"""Why a client has no connection: for now, or for good."""


class NoConnection(Exception):
    """One line. Another attempt may succeed."""


class Hopeless(NoConnection):
    """One line. Another attempt would fail as well."""


class NoUpgrade(NoConnection):
    """Whoever answered does not let a WebSocket through."""


class TurnedAway(NoConnection):
    """The server, known by its certificate, hung up before it said anything: it may not know this site's.

    Its refusal of a certificate comes after the client's part of a TLS 1.3 handshake, and asyncio closes the connection
    without sending the alert. A broken line looks the same, so this counts only when it happens again and again.
    """
