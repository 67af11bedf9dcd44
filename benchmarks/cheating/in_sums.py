"""Cheats in the sums of one session: the rows and totals that are sent for them, evaluations, keys and survivors."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.cheating import claims, comparisons, evaluations, lending, memory, sums, tables, totals
from benchmarks.cheating.entry import Entry, Played
from benchmarks.cheating.stage import CLIENTS
from benchmarks.cheating.sums import input_of_victim, secrets_of_victim


def _two(cheat: Callable[[], tables.TwoTables]) -> Callable[[Path], Played]:
    return lambda path: tables.two_tables(path, cheat())


def of_tables() -> tuple[Entry, ...]:
    return (*_two_tables(), *_other_tables())


def _two_tables() -> tuple[Entry, ...]:
    beyond = tables.BEYOND
    return (
        Entry(
            "two-tables",
            "the victim's rows: all others are made to add constants beyond the clip",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            _two(partial(tables.TwoTables, beyond)),
        ),
        Entry(
            "two-tables-inside-the-clip",
            "the victim's rows: all others are made to add rows that the server has chosen, within the clip",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            _two(partial(tables.InsideTheClip, 16.0)),
        ),
        Entry(
            "table-from-the-future",
            "the victim's rows: the others' false table is said to be averaged in a later round",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            _two(partial(tables.TwoTables, beyond, 7)),
        ),
        Entry(
            "tables-in-turn",
            "the victim's rows: the false table comes a round earlier, while the victim is called a dropout",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            _two(partial(tables.TablesInTurn, beyond)),
        ),
    )


def _other_tables() -> tuple[Entry, ...]:
    return (
        Entry(
            "two-totals-with-a-colluder",
            "the victim's rows under secret sums, with the group key of a client on its side",
            claims.COLLUDER,
            "stopped",
            claims.TABLES,
            totals.two_totals,
        ),
        Entry(
            "two-totals-inside-the-clip",
            "the same with a false total that a sum of all clients could be",
            claims.COLLUDER,
            "stopped",
            claims.TABLES,
            partial(totals.two_totals, counted=CLIENTS),
        ),
        Entry(
            "different-tables",
            "the victim's rows: the others are sent other means than the victim",
            claims.MODELS,
            "stopped",
            claims.TABLES,
            _two(partial(tables.DifferentTables, 8.0)),
        ),
        Entry(
            "lies-alike-to-all",
            "that all clients train from rows it has made up",
            claims.LIE + claims.EXACT,
            "caught",
            ("false-totals",),
            tables.same_lie,
        ),
        Entry(
            "huge-frame",
            "the victim's memory: rows of a union a thousand times the true one",
            claims.FRAMES,
            "stopped",
            claims.TABLES,
            memory.huge_frame,
        ),
    )


def of_evaluations() -> tuple[Entry, ...]:
    return (
        Entry(
            "evaluation-on-demand",
            "the victim's validation figures: evaluations without training, with it and without it",
            claims.ONCE,
            "stopped",
            claims.LEFT_OUT,
            evaluations.evaluation_on_demand,
        ),
        Entry(
            "results-again",
            "the victim's test figures: a finished run is resumed, and finished again without it",
            claims.AGAIN,
            "stopped",
            (*claims.LEFT_OUT, "resumed-from-nowhere"),
            evaluations.results_again,
        ),
        Entry(
            "read-by-comparisons",
            "secret validation results: it takes another amount off for each client and asks it whether they are best",
            claims.SECRET,
            "stopped",
            claims.TABLES,
            comparisons.read_by_comparisons,
        ),
        Entry(
            "false-verdicts",
            "that the victim is tested with rows of another round than the others",
            claims.LIE,
            "caught",
            ("false-verdict",),
            evaluations.false_verdicts,
        ),
    )


def of_sums() -> tuple[Entry, ...]:
    return (
        Entry(
            "split-survivors",
            "both secrets of the victim: some are told that it dropped out, others that it survived",
            claims.SURVIVORS + claims.LISTS + claims.SUM,
            "stopped",
            ("different-survivors",),
            secrets_of_victim(sums.SplitSurvivors),
        ),
        Entry(
            "few-survivors",
            "a sum of fewer than are declared: everybody is told that all but two have dropped out",
            claims.FEW + claims.SUM,
            "stopped",
            ("answers-ignored", "different-survivors"),
            secrets_of_victim(sums.FewSurvivors),
        ),
        Entry(
            "replaced-keys",
            "the victim's pairwise masks: it gets the server's keys in place of the others'",
            claims.KEYS,
            "stopped",
            ("key-replaced",),
            input_of_victim(sums.ReplacedKeys),
        ),
        Entry(
            "replayed-keys",
            "the victim's pairwise masks: it gets the others' keys of an earlier sum",
            claims.OWN_KEYS,
            "stopped",
            ("key-replaced",),
            input_of_victim(sums.ReplayedKeys),
        ),
        Entry(
            "replaced-states",
            "that the victim takes a sum for another one than it is: it is told false states of the others",
            claims.AGAIN,
            "stopped",
            ("relayed-otherwise",),
            input_of_victim(sums.ReplacedStates),
        ),
        Entry(
            "withheld-clients",
            "the victim's masks to rest on two clients alone: the others' keys are withheld from it",
            claims.KEYS,
            "stopped",
            ("answers-ignored",),
            input_of_victim(sums.WithheldClients),
        ),
        Entry(
            "false-holders",
            "rows of lone holders: the total of the count of holders is changed",
            claims.COUNTED,
            "stopped",
            ("false-totals",),
            totals.false_holders,
        ),
    )


def of_lending() -> tuple[Entry, ...]:
    return (
        Entry(
            "false-lent-tables",
            "the victim's rows under secret sums: a client on its side lends all others a table of its choice",
            claims.COLLUDER,
            "stopped",
            ("lent-without-need",),
            lending.false_tables,
        ),
        Entry(
            "lent-twice",
            "two tables of one client for another, encrypted under one key",
            claims.SECRET,
            "stopped",
            ("lent-without-need",),
            lending.lent_twice,
        ),
        Entry(
            "lent-to-another",
            "that the victim takes a table which was encrypted for somebody else",
            claims.SECRET,
            "stopped",
            ("false-totals",),
            lending.lent_to_another,
        ),
    )
