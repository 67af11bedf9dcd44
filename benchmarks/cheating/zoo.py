"""All cheats, and what is promised against each.

stopped         clients refuse before anything is lost, and an audit of what the server has left names the cheat
caught          an audit with all clients' receipts ends with exit code 3 and names it, whether or not clients refuse
out of scope    it works, and SECURITY.md says so
clean           no cheat: an honest party, whom nobody may accuse
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.cheating import absences, evaluations, honest, memory, records, sessions, sums, tables, totals, unions
from benchmarks.cheating.entry import Entry, Played
from benchmarks.cheating.stage import CLIENTS
from benchmarks.cheating.sums import input_of_victim, secrets_of_victim

_SUM: Final = "the sum over the survivors and who they are"
_MODELS: Final = "against a server that sends different global models, or different lists of the union"
_RESUMED: Final = "when a broken job is resumed and repeats rounds with the same inputs"
_KEYS: Final = "against a server that replaces or withholds keys, replays old messages"
_SURVIVORS: Final = "tells clients different things about who survived"
_HOLDERS: Final = "No row is ever added up of fewer than"
_LIE: Final = "A server that lies alike to everybody"
_ALIGNMENT: Final = "Alignment under an active server"
_FEW: Final = "or leave too few survivors end its part in the sum"
_STOPPING: Final = "Early stopping."
_FRAMES: Final = "Frames are bounded per kind and senders take turns"
_CLAIMS: Final = "Clients that claim rows they do not have"
_HONEST: Final = "What is claimed"

_TABLES: Final = ("different-global-models", "false-totals")
_LEFT_OUT: Final = ("answers-ignored", "same-sum-over-other-clients", "evaluated-on-demand")


def _two(cheat: Callable[[], tables.TwoTables]) -> Callable[[Path], Played]:
    return lambda path: tables.two_tables(path, cheat())


def _entries() -> tuple[Entry, ...]:
    return (
        Entry("honest", "nothing", _HONEST, "clean", (), honest.run),
        Entry("honest-secret", "nothing", _HONEST, "clean", (), honest.secret),
        Entry("honest-resumed", "nothing", _HONEST, "clean", (), honest.resumed),
        Entry("honest-without-common-rows", "nothing", _HONEST, "clean", (), honest.without_common_rows),
        Entry("honest-with-a-dropout", "nothing", _HONEST, "clean", (), honest.dropout),
        *_of_tables(),
        *_of_sessions(),
        *_of_evaluations(),
        *_of_unions(),
        *_of_sums(),
        *_of_records(),
        *_of_absences(),
    )


def _of_tables() -> tuple[Entry, ...]:
    beyond = tables.BEYOND
    return (
        Entry(
            "two-tables",
            "the victim's rows: all others are made to add constants beyond the clip",
            _MODELS,
            "stopped",
            _TABLES,
            _two(partial(tables.TwoTables, beyond)),
        ),
        Entry(
            "two-tables-inside-the-clip",
            "the victim's rows: all others are made to add rows that the server has chosen, within the clip",
            _MODELS,
            "stopped",
            _TABLES,
            _two(partial(tables.InsideTheClip, 16.0)),
        ),
        Entry(
            "table-from-the-future",
            "the victim's rows: the others' false table is said to be averaged in a later round",
            _MODELS,
            "stopped",
            _TABLES,
            _two(partial(tables.TwoTables, beyond, 7)),
        ),
        Entry(
            "tables-in-turn",
            "the victim's rows: the false table comes a round earlier, while the victim is called a dropout",
            _MODELS,
            "stopped",
            _TABLES,
            _two(partial(tables.TablesInTurn, beyond)),
        ),
        Entry(
            "two-totals-with-a-colluder",
            "the victim's rows under secret sums, with the group key of a client on its side",
            "the vectors of the other clients stay protected as above",
            "stopped",
            _TABLES,
            totals.two_totals,
        ),
        Entry(
            "two-totals-inside-the-clip",
            "the same with a false total that a sum of all clients could be",
            "the vectors of the other clients stay protected as above",
            "stopped",
            _TABLES,
            partial(totals.two_totals, counted=CLIENTS),
        ),
        Entry(
            "different-tables",
            "the victim's rows: the others are sent other means than the victim",
            _MODELS,
            "stopped",
            _TABLES,
            _two(partial(tables.DifferentTables, 8.0)),
        ),
        Entry(
            "lies-alike-to-all",
            "that all clients train from rows it has made up",
            _LIE,
            "caught",
            ("false-totals",),
            tables.same_lie,
        ),
        Entry(
            "huge-frame",
            "the victim's memory: rows of a union a thousand times the true one",
            _FRAMES,
            "stopped",
            _TABLES,
            memory.huge_frame,
        ),
    )


def _of_sessions() -> tuple[Entry, ...]:
    return (
        Entry(
            "vanished-session",
            "a session of which no auditor hears: it deletes the record and begins again",
            _LIE,
            "caught",
            ("session-not-recorded", "session-missing"),
            sessions.vanished_session,
        ),
        Entry(
            "false-rows-after-a-resume",
            "that clients train from rows it has made up, in a session whose first rows no transcript shows",
            _LIE,
            "caught",
            ("false-totals",),
            sessions.false_rows_after_a_resume,
        ),
        Entry(
            "round-without-the-victim",
            "the victim's rows: a resumed job repeats a round without it, and the sums are subtracted",
            _RESUMED,
            "stopped",
            _LEFT_OUT,
            sessions.round_without_victim,
        ),
        Entry(
            "resume-with-another-past",
            "how the victim's rows differ in two pasts: all others repeat their inputs, the victim alone does not",
            _RESUMED,
            "stopped",
            ("different-greetings", "resumed-from-nowhere"),
            sessions.another_past,
        ),
    )


def _of_evaluations() -> tuple[Entry, ...]:
    return (
        Entry(
            "evaluation-on-demand",
            "the victim's validation figures: evaluations without training, with it and without it",
            _SUM,
            "stopped",
            _LEFT_OUT,
            evaluations.evaluation_on_demand,
        ),
        Entry(
            "results-again",
            "the victim's test figures: a finished run is resumed, and finished again without it",
            _SUM,
            "stopped",
            (*_LEFT_OUT, "resumed-from-nowhere"),
            evaluations.results_again,
        ),
        Entry(
            "false-verdicts",
            "that the victim is tested with rows of another round than the others",
            _STOPPING,
            "caught",
            ("false-verdict",),
            evaluations.false_verdicts,
        ),
    )


def _of_unions() -> tuple[Entry, ...]:
    return (
        Entry(
            "colliding-places",
            "who holds two given names: they are put on one position, and it waits for somebody to complain",
            "Names and holders stay hidden from it",
            "stopped",
            ("false-places",),
            unions.colliding_names,
        ),
        Entry(
            "colliding-lone-names",
            "rows of lone holders: two names of one holder each share a position, and so count as held by two",
            _HOLDERS,
            "caught",
            ("false-places",),
            unions.colliding_lone_names,
        ),
        Entry(
            "union-without-the-victim",
            "how many names only the victim holds: a union that was read is called a failure and repeated without it",
            _ALIGNMENT,
            "caught",
            ("union-repeated",),
            unions.union_again,
        ),
        Entry(
            "tables-never-readable",
            "the clients' memory and time: each union is called unreadable, and they send a larger table",
            _ALIGNMENT,
            "stopped",
            ("union-repeated",),
            unions.never_readable,
        ),
        Entry(
            "different-places",
            "a sum in which the victim's rows stand elsewhere than the others'",
            _MODELS,
            "stopped",
            _TABLES,
            unions.different_places,
        ),
        Entry(
            "different-union-lists",
            "a sum in which the victim's rows stand elsewhere than the others', under plain alignment",
            _MODELS,
            "stopped",
            _TABLES,
            unions.different_lists,
        ),
        Entry(
            "guessed-names",
            "whether anybody holds a name that it has guessed and put into its own graph",
            _CLAIMS,
            "out of scope",
            (),
            unions.guessed_names,
            "client",
        ),
        Entry(
            "garbage-tables",
            "everybody's memory and time: its tables are noise, so that no union can be read",
            "Denial of service.",
            "stopped",
            (),
            unions.garbage_tables,
            "client",
        ),
    )


def _of_sums() -> tuple[Entry, ...]:
    return (
        Entry(
            "split-survivors",
            "both secrets of the victim: some are told that it dropped out, others that it survived",
            _SURVIVORS,
            "stopped",
            ("different-survivors",),
            secrets_of_victim(sums.SplitSurvivors),
        ),
        Entry(
            "few-survivors",
            "a sum of fewer than are declared: everybody is told that all but two have dropped out",
            _FEW,
            "stopped",
            ("answers-ignored", "different-survivors"),
            secrets_of_victim(sums.FewSurvivors),
        ),
        Entry(
            "replaced-keys",
            "the victim's pairwise masks: it gets the server's keys in place of the others'",
            _KEYS,
            "stopped",
            ("key-replaced",),
            input_of_victim(sums.ReplacedKeys),
        ),
        Entry(
            "replayed-keys",
            "the victim's pairwise masks: it gets the others' keys of an earlier sum",
            _KEYS,
            "stopped",
            ("key-replaced",),
            input_of_victim(sums.ReplayedKeys),
        ),
        Entry(
            "replaced-states",
            "that the victim takes a sum for another one than it is: it is told false states of the others",
            _KEYS,
            "stopped",
            ("relayed-otherwise",),
            input_of_victim(sums.ReplacedStates),
        ),
        Entry(
            "withheld-clients",
            "the victim's masks to rest on two clients alone: the others' keys are withheld from it",
            _KEYS,
            "stopped",
            ("answers-ignored", "different-survivors", "keys-withheld"),
            input_of_victim(sums.WithheldClients),
        ),
        Entry(
            "false-holders",
            "rows of lone holders: the total of the count of holders is changed",
            "a changed total is noticed with probability",
            "stopped",
            ("false-totals",),
            totals.false_holders,
        ),
    )


def _of_records() -> tuple[Entry, ...]:
    return (
        Entry(
            "edited-transcript",
            "that an auditor reads true rows where it had sent poisoned ones",
            _LIE,
            "caught",
            ("transcript-differs",),
            records.edited_transcript,
        ),
        Entry(
            "cut-receipts",
            "the same, with clients' receipts that end before the lie",
            _LIE,
            "caught",
            ("receipt-unfinished", "receipt-damaged", "transcript-differs"),
            records.cut_receipts,
        ),
        Entry(
            "transcript-without-end",
            "that an auditor reads nothing of the poisoned rows: the transcript is cut before them",
            _LIE,
            "caught",
            ("transcript-unfinished", "transcript-differs"),
            records.without_end,
        ),
    )


def _of_absences() -> tuple[Entry, ...]:
    return (
        Entry(
            "round-quietly-without-the-victim",
            "the victim's rows: as round-without-the-victim, and the victim is never told of the round",
            _RESUMED,
            "stopped",
            (),
            absences.round_quietly,
        ),
        Entry(
            "results-quietly-again",
            "the victim's test figures: as results-again, and the victim is never told that it is over",
            _SUM,
            "stopped",
            (),
            absences.results_quietly,
        ),
        Entry(
            "aligned-anew",
            "how many names only the victim holds: a run that is aligned begins again without it, as if it were not",
            _RESUMED,
            "stopped",
            ("union-repeated", "resumed-from-nowhere"),
            absences.aligned_anew,
        ),
        Entry(
            "absent-from-an-evaluation",
            "how many validation triples the victim has: it is left out of one evaluation",
            "a client's absence from one evaluation shows how many it has",
            "out of scope",
            (),
            absences.absent_from_an_evaluation,
        ),
        Entry(
            "run-again-without-the-victim",
            "the victim's first rows: a second run with the same seed is held without it",
            "Sums over nearly equal sets of clients",
            "out of scope",
            (),
            absences.run_again,
        ),
    )


ZOO: Final = {entry.name: entry for entry in _entries()}
