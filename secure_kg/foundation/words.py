"""Numbers and clients as people write them."""

from collections.abc import Collection

from protocols.foundation.words import counted as counted


def named_clients(parties: Collection[int]) -> str:
    """Client 3; clients 1, 4."""
    return f"client{'' if len(parties) == 1 else 's'} {', '.join(str(party) for party in sorted(parties))}"


def in_rounds(first: int, last: int) -> str:
    """Round 3; rounds 2 to 6; set-up, which is round 0."""
    if first == last:
        return f"round {first}" if first else "set-up"
    return f"rounds {first} to {last}" if first else f"set-up to round {last}"


def seconds_text(seconds: float) -> str:
    """8.2 s; 1 min 5 s; 2 h 20 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"
