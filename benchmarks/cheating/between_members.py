"""Cheats in which members are turned against each other, or one takes the place of another."""

from typing import Final

from benchmarks.cheating import claims, replaced, spoiled_shares
from benchmarks.cheating.entry import Entry

_SEALED: Final = "who of the two is wrong stands under a seal; the audit shows who refused which sum, and whose shares"
_BEGINS_NOT: Final = "clients refuse before anything is sent: what is left is a run that did not begin"


def of_disputes() -> tuple[Entry, ...]:
    return (
        Entry(
            "nonsense-for-all",
            "that the others end their part: what a member seals for them does not open",
            claims.DISPUTES,
            "stopped",
            (),
            spoiled_shares.nonsense_for_all,
            party="client",
            unnamed=_SEALED,
            shows=("shares-refused",),
        ),
        Entry(
            "false-accuser",
            "that an honest member is left out: another one refuses its shares, which are good",
            claims.DISPUTES,
            "stopped",
            (),
            spoiled_shares.false_accuser,
            party="client",
            unnamed=_SEALED,
            shows=("shares-refused",),
        ),
        Entry(
            "nonsense-for-one",
            "that an honest member is left out: what another one seals opens for all but it",
            claims.DISPUTES,
            "out of scope",
            (),
            spoiled_shares.nonsense_for_one,
            party="client",
            shows=("shares-refused",),
            not_covered="A member can have one other left out for ten rounds",
        ),
        Entry(
            "flipped-by-the-server",
            "that the victim trains in vain without end: a bit of what it is sent of another client is changed",
            claims.BORNE,
            "stopped",
            ("relayed-otherwise",),
            spoiled_shares.flipped_by_the_server,
            shows=("shares-refused",),
        ),
    )


def of_newcomers() -> tuple[Entry, ...]:
    return (
        Entry(
            "newcomer-in-an-old-place",
            "the rows of an organisation that was there before, by those of its successor, which is on its side",
            claims.ORGANISATIONS,
            "stopped",
            (),
            replaced.run_with_a_newcomer,
            unnamed=_BEGINS_NOT,
        ),
    )
