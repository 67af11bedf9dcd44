"""Fingerprints that people compare: given on the command line as they were heard, or confirmed at a terminal.

Threat model: whoever carries files between organisations can exchange them, names and all. A fingerprint that was heard
over another channel cannot be exchanged with them. So nothing is accepted without one, and a script must give it.
"""

import sys
from collections.abc import Sequence

from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning.fields import digits_of, same_fingerprint


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def asked(question: str) -> bool:
    """True only for the whole word yes."""
    say(f"{question} Type yes or no:")
    try:
        return input("> ").strip().lower() == "yes"
    except EOFError:
        return False


def require_matching(given: str, identity: bytes, whose: str) -> None:
    """`UserError` unless the fingerprint that was heard is that of the identity."""
    if not same_fingerprint(identity, given):
        raise UserError(
            f"--fingerprint: {whose} has another one; nothing was accepted. Compare again over another channel, and if "
            "it stays different, somebody has exchanged the file"
        )


def all_matched(identities: Sequence[tuple[str, bytes]], given: Sequence[str]) -> None:
    """Each identity has one of the given fingerprints, and each of those is used."""
    heard = {digits_of(one) for one in given}
    unmatched: list[str] = []
    for whose, identity in identities:
        fitting = {digits for digits in heard if same_fingerprint(identity, digits)}
        if not fitting:
            unmatched.append(whose)
        heard -= fitting
    if unmatched and not heard:
        raise UserError(f"--fingerprint: that of {', '.join(unmatched)} is missing; nothing was approved")
    if unmatched:
        raise UserError(
            f"--fingerprint: none of those given is that of {unmatched[0]}; nothing was approved. Compare again over "
            "another channel, and if it stays different, somebody has exchanged the file"
        )
    if heard:
        raise UserError("--fingerprint: one more than requests; give one for each request")
