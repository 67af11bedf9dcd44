"""Numbers as people write them."""


def counted(number: int, noun: str) -> str:
    """1 finding, 2 findings."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clients_have(number: int) -> str:
    """1 client has, 2 clients have."""
    return f"{counted(number, 'client')} {'has' if number == 1 else 'have'}"


def were(number: int) -> str:
    """1 was, 2 were."""
    return "was" if number == 1 else "were"
