"""A run that a client goes on with on another machine, or on another device of the same one: what it says then.

The same round from the same rows is not the same to the last bit there, so the client gives no input to sums that it
has opened before (`protocols.sums.secagg.openings`). They are abandoned, and the run passes the point where it broke
off.
"""

from collections.abc import Iterable

from protocols.sums.secagg.openings import Opening


def moved(known: Iterable[Opening], run: str, computed: str) -> str | None:
    """A line on what comes of it; None if the run has not moved. `known`: this client's record of openings."""
    latest = max((one for one in known if one.run == run), key=lambda one: one.round, default=None)
    if latest is None or not latest.computed or not computed or latest.computed == computed:
        return None
    after = int(latest.round) + 1
    return (
        f"this run was computed on {latest.computed} up to round {latest.round} and goes on on {computed}, which may "
        f"round otherwise: this client is in no sum up to round {after}, as most of them would be opened again; sums "
        f"from round {after + 1} on are as always. To lose none, go on where it was computed before"
    )
