"""Cheats around the sums: in the union, between sessions, in the record, and in who is told of a sum at all."""

from benchmarks.cheating import absences, claims, guessing, records, sessions, too_early, unions
from benchmarks.cheating.entry import Entry


def of_sessions() -> tuple[Entry, ...]:
    return (
        Entry(
            "vanished-session",
            "a session of which no auditor hears: it deletes the record and begins again",
            claims.RECORD,
            "caught",
            ("session-not-recorded", "session-missing"),
            sessions.vanished_session,
        ),
        Entry(
            "false-rows-after-a-resume",
            "that clients train from rows it has made up, in a session whose first rows no transcript shows",
            claims.LIE,
            "caught",
            ("false-totals",),
            sessions.false_rows_after_a_resume,
        ),
        Entry(
            "round-without-the-victim",
            "the victim's rows: a resumed job repeats a round without it, and the sums are subtracted",
            claims.AGAIN,
            "stopped",
            claims.LEFT_OUT,
            sessions.round_without_victim,
        ),
        Entry(
            "resume-with-another-past",
            "how the victim's rows differ in two pasts: all others repeat their inputs, the victim alone does not",
            claims.MODELS,
            "stopped",
            ("different-greetings", "resumed-from-nowhere"),
            sessions.another_past,
        ),
        Entry(
            "another-past-for-all",
            "what changes in a round with where it begins: all clients go back two rounds and do it again",
            claims.AGAIN,
            "stopped",
            ("resumed-from-nowhere", "same-sum-from-other-states"),
            sessions.another_past_for_all,
        ),
    )


def of_unions() -> tuple[Entry, ...]:
    return (*_places_and_attempts(), *_guesses_and_noise())


def _places_and_attempts() -> tuple[Entry, ...]:
    return (
        Entry(
            "colliding-places",
            "who holds two given names: they are put on one position, and it waits for somebody to complain",
            claims.ALONE,
            "stopped",
            ("false-places",),
            unions.colliding_names,
        ),
        Entry(
            "colliding-lone-names",
            "rows of lone holders: two names of one holder each share a position, and so count as held by two",
            claims.HOLDERS,
            "caught",
            ("false-places",),
            unions.colliding_lone_names,
        ),
        Entry(
            "union-without-the-victim",
            "how many names only the victim holds: a union that was read is called a failure and repeated without it",
            claims.NAMES,
            "stopped",
            ("union-repeated",),
            unions.union_again,
        ),
        Entry(
            "tables-never-readable",
            "the clients' memory and time: each union is called unreadable, and they send a larger table",
            claims.TABLES_SENT,
            "stopped",
            ("union-repeated",),
            unions.never_readable,
        ),
        Entry(
            "different-places",
            "a sum in which the victim's rows stand elsewhere than the others'",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            unions.different_places,
        ),
        Entry(
            "different-union-lists",
            "a sum in which the victim's rows stand elsewhere than the others', under plain alignment",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            unions.different_lists,
        ),
    )


def _guesses_and_noise() -> tuple[Entry, ...]:
    return (
        Entry(
            "guessed-names",
            "whether anybody holds a name that it has guessed and put into its own graph",
            claims.NAMES,
            "out of scope",
            (),
            unions.guessed_names,
            "client",
            not_covered="Clients that claim names they do not have.",
        ),
        Entry(
            "guessed-first-rows",
            "whether anybody holds a name that it has guessed: it looks for its first row among the first means",
            claims.FIRST,
            "stopped",
            (),
            guessing.guessed_first_rows,
            unnamed="It does nothing but compute: every message is an honest server's.",
            unrefused="It asks for nothing that is not due, and what it can compute is the row of no client.",
        ),
        Entry(
            "garbage-tables",
            "everybody's memory and time: its tables are noise, so that no union can be read",
            claims.TABLES_SENT,
            "stopped",
            (),
            unions.garbage_tables,
            "client",
            unnamed="A table that cannot be read may be too small: bad luck looks the same.",
        ),
    )


def of_records() -> tuple[Entry, ...]:
    return (
        Entry(
            "edited-transcript",
            "that an auditor reads true rows where it had sent poisoned ones",
            claims.RECORD,
            "caught",
            ("transcript-differs",),
            records.edited_transcript,
        ),
        Entry(
            "cut-receipts",
            "the same, with clients' receipts that end before the lie",
            claims.RECORD,
            "out of scope",
            (),
            records.cut_receipts,
            shows=("receipt-cut",),
            not_covered="Receipts that end early.",
        ),
        Entry(
            "cut-and-resumed",
            "that an auditor reads nothing of poisoned rows: transcript and receipts end before them, and it goes on",
            claims.RECORD,
            "caught",
            ("opening-not-recorded",),
            records.cut_and_resumed,
        ),
        Entry(
            "reordered-transcript",
            "that an auditor reads of a sum called abandoned when the next round is under way, as if it were forgotten",
            claims.RECORD,
            "caught",
            ("transcript-differs",),
            too_early.reordered,
        ),
        Entry(
            "transcript-without-end",
            "that an auditor reads nothing of the poisoned rows: the transcript is cut before them",
            claims.RECORD,
            "caught",
            ("transcript-unfinished", "transcript-differs"),
            records.without_end,
        ),
    )


def of_absences() -> tuple[Entry, ...]:
    return (
        Entry(
            "round-quietly-without-the-victim",
            "the victim's rows: as round-without-the-victim, and the victim is never told of the round",
            claims.AGAIN,
            "stopped",
            (),
            absences.round_quietly,
            unnamed="An honest server that has lost a client leaves the same transcript.",
        ),
        Entry(
            "results-quietly-again",
            "the victim's test figures: as results-again, and the victim is never told that it is over",
            claims.AGAIN,
            "stopped",
            ("resumed-from-nowhere",),
            absences.results_quietly,
        ),
        Entry(
            "aligned-anew",
            "how many names only the victim holds: a run that is aligned begins again without it, as if it were not",
            claims.AGAIN,
            "stopped",
            ("aligned-again",),
            absences.aligned_anew,
        ),
        Entry(
            "absent-from-an-evaluation",
            "how many validation triples the victim has: it is left out of one evaluation",
            claims.SUM,
            "out of scope",
            (),
            absences.absent_from_an_evaluation,
            not_covered="a client's absence from one evaluation shows how many it has",
        ),
        Entry(
            "run-again-without-the-victim",
            "the victim's first rows: a second run with the same seed is held without it",
            claims.AGAIN,
            "out of scope",
            (),
            absences.run_again,
            not_covered="Sums over nearly equal sets of clients",
        ),
    )
