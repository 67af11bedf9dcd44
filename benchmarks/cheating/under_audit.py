"""Cheats that are after the audit: servers whose record is to look honest, and clients that frame an honest one."""

from functools import partial

from benchmarks.cheating import claims, framing, one_by_one, split
from benchmarks.cheating.entry import Entry

_DROPPED = "It is honest in all that the server goes by, and the server drops the rest."
_CUT_OFF = "A server that was cut off from half of its clients, killed and resumed leaves the same record."
_ENDED = "The server ends the job, which any client can have, and says why; an audit has nothing against it."


def of_first_answers() -> tuple[Entry, ...]:
    found = ("not-as-programmed",)
    return (
        Entry(
            "abandoned-for-one",
            "sums of rows that begin alike: the first client that helps to open one is told that it was abandoned",
            claims.NEWS + claims.PROGRAM,
            "stopped",
            found,
            partial(one_by_one.rows_for_one, word="abandoned"),
        ),
        Entry(
            "old-table-for-one",
            "the same: the first client that helps is sent the old table, as if the next round had begun",
            claims.NEWS + claims.PROGRAM,
            "stopped",
            found,
            partial(one_by_one.rows_for_one, word="old table"),
        ),
        Entry(
            "results-for-one",
            "which evaluations count: the first client that helps to open results is told that they were abandoned",
            claims.PROGRAM,
            "caught",
            found,
            one_by_one.results_for_one,
        ),
    )


def of_halves() -> tuple[Entry, ...]:
    return (
        Entry(
            "split-openings",
            "the victim's figures: results are opened by one half of the clients, and again, without it, by the other",
            claims.AGAIN,
            "stopped",
            (),
            split.split_openings,
            unnamed=_CUT_OFF,
        ),
        Entry(
            "split-requests",
            "the same, with a record of the first half that ends before the last request",
            claims.AGAIN,
            "stopped",
            (),
            split.split_requests,
            unnamed=_CUT_OFF,
        ),
    )


def of_framing() -> tuple[Entry, ...]:
    plays = {
        "framed-in-a-servers-words": (
            "in words that only a server says, under an earlier round",
            framing.in_servers_words,
        ),
        "framed-by-a-refusal": ("by refusing a sum that the server does not await", framing.by_refusal),
        "framed-as-a-dropout": ("by keys that it sends before it says that it is back", framing.as_dropout),
        "framed-in-set-up": ("by refusing the vote on the union while keys are agreed on", framing.in_set_up),
    }
    ending = {
        "framed-by-a-second-input": ("by sending its input to a sum twice", framing.by_second_input),
        "framed-by-another-ring": ("by an input in numbers of another size", framing.by_other_ring),
        "framed-by-noise": ("by what is no message", framing.by_noise),
        "framed-by-a-short-input": ("by an input of another length to a sum in clear", framing.by_short_input),
    }
    return tuple(
        Entry(
            name,
            f"that an audit accuses an honest server, {how}",
            claims.NOT_FRAMED,
            "stopped",
            (),
            play,
            party="client",
            unnamed=_DROPPED,
            unrefused=_DROPPED,
            shows=("frames-ignored",),
        )
        for name, (how, play) in plays.items()
    ) + tuple(
        Entry(
            name,
            f"that an audit accuses an honest server, {how}",
            claims.NOT_FRAMED,
            "stopped",
            (),
            play,
            party="client",
            unnamed=_ENDED,
            unrefused=_ENDED,
        )
        for name, (how, play) in ending.items()
    )
