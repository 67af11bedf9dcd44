"""Cheats in questions: announcements, requests, totals of lookups, clients left out, and askers that ask too much."""

from functools import partial

from benchmarks.cheating import claims, questions
from benchmarks.cheating.entry import Entry
from benchmarks.cheating.scores import SwappedTotals

_FORGED = ("asking-forged",)
_FALSE = ("false-score-totals",)


def of_questions() -> tuple[Entry, ...]:
    return (*_of_announcements(), *_of_totals(), *_of_sets(), *_of_clients())


def _of_announcements() -> tuple[Entry, ...]:
    return (
        Entry(
            "announced-in-another-size",
            "that the victim answers in another form than the others: it is told of two vectors where one is asked for",
            claims.STEP_TERMS,
            "stopped",
            _FORGED,
            partial(questions.announced_otherwise, kind="entities", sizes=[2]),
        ),
        Entry(
            "announced-as-another-kind",
            "that the victim names what it was asked the row of: it is told of names where a vector is asked for",
            claims.STEP_TERMS,
            "stopped",
            _FORGED,
            partial(questions.announced_otherwise, kind="names", sizes=[1]),
        ),
        Entry(
            "altered-lookup",
            "the victim's row of another entity: it changes the request that it passes on",
            claims.STEP_REQUESTS,
            "stopped",
            _FORGED,
            partial(questions.other_request, replays=False),
        ),
        Entry(
            "replayed-lookup",
            "the victim's answer to an earlier step once more: it passes that request on in place of the new one",
            claims.STEP_REQUESTS,
            "stopped",
            _FORGED,
            partial(questions.other_request, replays=True),
        ),
    )


def _of_totals() -> tuple[Entry, ...]:
    return (
        Entry(
            "changed-vectors",
            "that the asker goes on from another point: it changes one number of an anchor's row",
            claims.LOOKUP_TOTALS,
            "stopped",
            _FALSE,
            lambda path: questions.believed(path, questions.ChangedVectors()),
        ),
        Entry(
            "old-vectors",
            "that the asker goes on from the anchor of an earlier question: it hands it that total again",
            claims.LOOKUP_TOTALS,
            "stopped",
            _FALSE,
            lambda path: questions.believed(path, SwappedTotals(questions.SECOND_ENTITIES)),
        ),
        Entry(
            "changed-names",
            "that answers get other names: it changes the total of a lookup of names",
            claims.NAME_TOTALS,
            "stopped",
            _FALSE,
            lambda path: questions.believed(path, questions.ChangedNames()),
        ),
    )


def _of_sets() -> tuple[Entry, ...]:
    return (
        Entry(
            "lookup-without-the-victim",
            "the victim's row: the same vector again, with the victim called a dropout, for the asker to subtract",
            claims.LOOKUPS_AGAIN,
            "stopped",
            ("answers-ignored",),
            lambda path: questions.without_victim(path, questions.LookupWithoutVictim()),
        ),
        Entry(
            "announced-to-some",
            "the same: the victim is not told of the second lookup, and then called a dropout",
            claims.LOOKUPS_AGAIN,
            "stopped",
            ("not-as-programmed",),
            lambda path: questions.without_victim(path, questions.WithheldAnnouncement()),
        ),
    )


def _of_clients() -> tuple[Entry, ...]:
    return (
        Entry(
            "asks-beyond-the-atoms",
            "the model: it asks question after question",
            claims.ATOMS,
            "stopped",
            (),
            questions.beyond_atoms,
            party="client",
            unnamed="an asker may ask; what it asked for in vain is in no message but the refusals",
        ),
        Entry(
            "asks-along-a-silent-relation",
            "a point along a relation that its holders keep to themselves",
            claims.SILENCE,
            "stopped",
            (),
            questions.silent_relation,
            party="client",
            unnamed="what is asked an auditor cannot read; whoever is silent answers as one without the relation",
        ),
        Entry(
            "framed-by-a-short-vector",
            "that an audit accuses an honest server, by an answer to a lookup that lacks a number",
            claims.SCORES_NOT_FRAMED,
            "stopped",
            (),
            questions.short_vector,
            party="client",
            unnamed="an honest server ends the session for it: nobody is accused of that",
            unrefused="the server, not a client, notices it and ends the session",
        ),
    )
