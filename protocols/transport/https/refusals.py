"""Why a client has no connection: for now, or for good."""


class NoConnection(Exception):
    """One line. Another attempt may succeed."""


class Hopeless(NoConnection):
    """One line. Another attempt would fail as well."""


class NoUpgrade(NoConnection):
    """Whoever answered does not let a WebSocket through."""
