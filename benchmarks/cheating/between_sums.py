"""Cheats in what lies between sums: who trains for them, what comes of them, what is asked for, how a run begins."""

from functools import partial

from benchmarks.cheating import (
    again,
    apart,
    beginnings,
    claims,
    interpolating,
    left_undone,
    losses,
    results,
    too_early,
    two_blocks,
)
from benchmarks.cheating.entry import Entry

_NO_FURTHER = "Whatever a client trains for a sum that is abandoned, it begins the next round at the applied table."


def of_training() -> tuple[Entry, ...]:
    return (
        Entry(
            "trained-alone",
            "the victim's rows: it trains round after round for sums that the others are told to be abandoned",
            claims.APPLIED + claims.SUM,
            "stopped",
            ("trained-apart",),
            apart.trained_alone,
            unrefused=_NO_FURTHER,
        ),
        Entry(
            "past-for-one",
            "the victim's rows: of rounds whose sums were abandoned, only the victim is asked for a checkpoint",
            claims.APPLIED + claims.SUM,
            "stopped",
            ("given-up-at-will",),
            apart.past_for_one,
            unrefused=_NO_FURTHER,
        ),
        Entry(
            "withheld-tables",
            "the victim's update: nobody is sent means any more, so that all rounds begin alike; one is without it",
            claims.NEWS,
            "stopped",
            ("tables-withheld",),
            interpolating.withheld_tables,
        ),
        Entry(
            "interpolated-dropout",
            "the victim's update: it is called too slow for a round, between rounds that are held with it",
            claims.SUM,
            "out of scope",
            (),
            interpolating.one_dropout,
            not_covered="One dropout is enough where training is nearly deterministic",
        ),
        Entry(
            "first-of-two-blocks",
            "the victim's rows: sums are opened and called abandoned, and the next round is held without it. A second "
            "block, trained meanwhile, is to make the commitments to the first new",
            claims.AGAIN,
            "stopped",
            ("false-totals", "given-up-at-will"),
            two_blocks.first_of_two_blocks,
            needs=two_blocks.registered,
        ),
    )


def of_duties() -> tuple[Entry, ...]:
    return (
        Entry(
            "opened-and-abandoned",
            "the victim's rows: a sum that it has read it calls abandoned, and has it made again without the victim",
            claims.LEFT_UNDONE,
            "caught",
            ("given-up-at-will",),
            left_undone.opened_and_abandoned,
        ),
        Entry(
            "kept-tables",
            "sums of rows that are trained from where the round before began: it sends nobody a table any more",
            claims.NEWS + claims.LEFT_UNDONE,
            "stopped",
            ("tables-withheld",),
            left_undone.kept_tables,
        ),
        Entry(
            "kept-totals",
            "the same under secret sums, whose totals it sends nobody any more",
            claims.NEWS + claims.LEFT_UNDONE,
            "stopped",
            ("tables-withheld",),
            partial(left_undone.kept_tables, aggregation="secret"),
        ),
        Entry(
            "passed-over",
            "how many validation triples the victim has: it is not asked for one evaluation, and called no dropout",
            claims.LEFT_UNDONE,
            "caught",
            ("passed-over",),
            left_undone.passed_over,
        ),
    )


def of_early_words() -> tuple[Entry, ...]:
    return (
        Entry(
            "abandoned-beforehand",
            "the victim's update: sums of rows are called abandoned before they begin, opened, and no table is sent",
            claims.NEWS + claims.LEFT_UNDONE,
            "stopped",
            ("given-up-at-will",),
            too_early.abandoned_beforehand,
        ),
        Entry(
            "excused-by-the-next-round",
            "the victim's update: word that the sum to come was abandoned is to excuse the missing result of the last",
            claims.NEWS + claims.LEFT_UNDONE,
            "stopped",
            ("given-up-at-will",),
            too_early.excused_by_next_round,
        ),
        Entry(
            "sent-home-early",
            "how many validation triples the victim has: it is told that the run is over before the last evaluation",
            claims.LEFT_UNDONE,
            "caught",
            ("passed-over",),
            too_early.sent_home_early,
        ),
        Entry(
            "sent-home-midway",
            "rounds without the victim that nobody calls a dropout: it is told in the middle that the run is over",
            claims.LEFT_UNDONE,
            "caught",
            ("passed-over",),
            too_early.sent_home_midway,
        ),
        Entry(
            "flood-of-ends",
            "the victim's memory: it is told of ever later sums that they were abandoned",
            claims.NO_WORDS,
            "stopped",
            ("given-up-at-will",),
            too_early.flood_of_ends,
        ),
    )


def of_losses() -> tuple[Entry, ...]:
    return (
        Entry(
            "trained-for-its-loss",
            "the victim's loss and number of triples: it trains alone, and nobody else has a loss to tell",
            claims.LOSS + claims.SUM,
            "stopped",
            ("trained-apart",),
            losses.trained_for_loss,
            unrefused="A training in vain is none whose loss is told.",
        ),
        Entry(
            "signatures-for-one",
            "the victim's loss and number of triples: it alone is to think that a sum was opened for which all trained",
            claims.LOSS + claims.SUM,
            "stopped",
            ("trained-apart",),
            losses.signatures_for_one,
        ),
    )


def of_results() -> tuple[Entry, ...]:
    return (
        Entry(
            "loss-twice",
            "the victim's loss and number of triples: the test results are summed without it, after an evaluation",
            claims.AGAIN,
            "stopped",
            (),
            results.loss_twice,
            unnamed="A client that is too slow at the end leaves the same transcript.",
            unrefused="Test results hold no loss, so the difference is of nothing.",
        ),
        Entry(
            "nudged-rows",
            "the victim's test figures: results again, without it, from rows moved by the least that a float can be",
            claims.AGAIN,
            "stopped",
            ("false-totals", "evaluated-on-demand"),
            results.nudged_rows,
        ),
        Entry(
            "verdict-for-one",
            "how the victim's test figures change: it alone is told to keep another copy, and all are tested again",
            claims.AGAIN,
            "stopped",
            ("different-global-models", "false-verdict"),
            results.verdict_for_one,
        ),
        Entry(
            "checkpoint-before-the-evaluation",
            "the victim's loss: the checkpoint does not know of the evaluation, which is held again without it",
            claims.ONCE + claims.AGAIN,
            "stopped",
            ("evaluated-on-demand",),
            again.checkpoint_first,
        ),
        Entry(
            "idle-results-again",
            "the victim's figures: those who are not drawn for a round are evaluated again, without it",
            claims.AGAIN,
            "stopped",
            (),
            again.idle_results,
            unnamed="Clients that are too slow leave the same transcript, and receipts have no times.",
            shows=("sums-given-up",),
        ),
        Entry(
            "nudged-idle-results",
            "the victim's figures: as idle-results-again, with rows in between moved by the least that a float can be",
            claims.AGAIN + claims.ONCE,
            "stopped",
            ("false-totals", "evaluated-on-demand"),
            again.nudged_idle_results,
        ),
    )


def of_beginnings() -> tuple[Entry, ...]:
    return (
        Entry(
            "restarted-job",
            "the victim's rows: a job that broke off is started anew in another folder, and a round held without it",
            claims.AGAIN,
            "stopped",
            (),
            beginnings.restarted_job,
            unnamed="An honest server that has lost a client leaves the same transcript.",
        ),
        Entry(
            "nearly-the-same-job",
            "the victim's rows: a second run with a learning rate larger by 10^-6, in which a round is held without it",
            claims.AGAIN,
            "stopped",
            (),
            beginnings.nearly_the_same_job,
            unnamed="An honest server that has lost a client leaves the same transcript.",
        ),
        Entry(
            "wider-first-rows",
            "the victim's first rows: a second run with rows of one number more, in which they are summed without it",
            claims.AGAIN,
            "stopped",
            (),
            beginnings.wider_first_rows,
            unnamed="An honest server that has lost a client leaves the same transcript.",
        ),
        Entry(
            "aligned-again-midway",
            "the row of a lone holder: a round is repeated under an alignment that puts its name on another's position",
            claims.HOLDERS + claims.APPLIED,
            "stopped",
            ("aligned-again",),
            beginnings.aligned_again_midway,
        ),
        Entry(
            "impossible-greeting",
            "that clients end without a word: they are told of a round whose number fits into no frame",
            claims.FRAMES,
            "stopped",
            ("resumed-from-nowhere", "transcript-damaged"),
            beginnings.impossible_greeting,
        ),
    )
