"""Cheats in score queries: totals, askings, scorers left out, dealt randomness, and an asker that asks too much."""

from functools import partial

from benchmarks.cheating import claims, exact_answers, score_clients, scores
from benchmarks.cheating.entry import Entry
from protocols.scores.encrypted import bfv

_DROPPED = "an honest server drops what the client adds, and goes on: an audit counts it and accuses nobody"
_ENDED = "an honest server ends the session for it: nobody is accused of that"


def of_scores() -> tuple[Entry, ...]:
    return (*_of_totals(), *_of_askings(), *_of_selections(), *_of_framing())


def _of_framing() -> tuple[Entry, ...]:
    in_sums = partial(score_clients.framing, backend="masked", step="advertise", added=score_clients.added_to_sums)
    in_selections = partial(
        score_clients.framing, backend="topk", step="selection", added=score_clients.added_to_selections
    )
    plays = (
        ("framed-in-score-sums", "in a server's words and late ones of its own", in_sums, _DROPPED),
        ("framed-in-a-selection", "by late steps, seeds and relays", in_selections, _DROPPED),
        ("framed-by-noise-in-scores", "by what is no message", score_clients.noise, _ENDED),
    )
    return tuple(
        Entry(
            name,
            f"that an audit accuses an honest server, {how}",
            claims.SCORES_NOT_FRAMED,
            "stopped",
            (),
            play,
            party="client",
            unnamed=why,
            unrefused=why,
            shows=("frames-ignored",) if why == _DROPPED else (),
        )
        for name, how, play, why in plays
    )


def _of_totals() -> tuple[Entry, ...]:
    return (
        Entry(
            "changed-score-total",
            "that the asker takes a position for the best that is not: it changes one mean of a masked total",
            claims.SCORE_TOTALS,
            "stopped",
            ("false-score-totals",),
            scores.changed_total,
        ),
        Entry(
            "swapped-score-totals",
            "that the asker takes the answer of one batch for that of another",
            claims.SCORE_TOTALS,
            "stopped",
            ("false-score-totals",),
            scores.swapped_totals,
        ),
        Entry(
            "changed-encrypted-total",
            "the same as changed-score-total, of scores under the asker's BFV key",
            claims.SCORE_TOTALS,
            "out of scope",
            (),
            scores.changed_encrypted_total,
            not_covered="Under `paillier`, `bfv`, `topk` and `crypten` a false total, false randomness or a false "
            "answer is not noticed",
            packages=bfv.PACKAGES,
        ),
    )


def _of_askings() -> tuple[Entry, ...]:
    return (
        Entry(
            "asks-by-itself",
            "scores of queries that nobody has asked",
            claims.ONLY_ASKER + claims.ONLY_MEANS,
            "stopped",
            ("asking-forged",),
            partial(scores.other_askings, replays=False),
        ),
        Entry(
            "replayed-asking",
            "scores of one batch twice: it passes an earlier asking on again",
            claims.ONLY_ASKER,
            "stopped",
            ("asking-forged",),
            partial(scores.other_askings, replays=True),
        ),
        Entry(
            "asks-one-alone",
            "the victim's own scores: it seals its queries for the victim, and zeros for all other scorers",
            claims.ASKED_ALIKE,
            "stopped",
            (),
            score_clients.one_alone,
            party="client",
            unnamed="what the asker seals an auditor cannot read; scorers say that shares do not open, and the server "
            "ends the session",
        ),
        Entry(
            "scores-without-the-victim",
            "the victim's scores: the same queries again, with the victim called a dropout, for the asker to subtract",
            claims.SCORES_AGAIN + claims.ONLY_MEANS,
            "stopped",
            ("answers-ignored",),
            scores.without_scorer,
        ),
        Entry(
            "other-scores-without-the-victim",
            "what the victim holds, and its scores: other queries of the same table, with the victim called a dropout",
            claims.SCORES_AGAIN,
            "stopped",
            ("answers-ignored",),
            partial(scores.without_scorer, second=b"twice the queries"),
        ),
        Entry(
            "asks-beyond-the-budget",
            "the trained table: it asks batch after batch",
            claims.MEANS,
            "stopped",
            (),
            scores.beyond_budget,
            party="client",
            unnamed="an asker may ask; what it asked for in vain is in no message but the refusals",
        ),
    )


def _of_selections() -> tuple[Entry, ...]:
    return (
        Entry(
            "dealt-seeds-again",
            "that clients compute under randomness which they have had before",
            claims.DEALT,
            "caught",
            ("dealt-seed-reused",),
            scores.seeds_again,
        ),
        Entry(
            "false-randomness",
            "that the asker takes a position for the best that is not: it deals false products",
            claims.DEALT,
            "caught",
            ("false-randomness",),
            scores.false_randomness,
        ),
        Entry(
            "facts-without-the-victim",
            "the victim's stored facts: the same question again over all others, for the asker to subtract",
            claims.FACTS_OF_ALL,
            "stopped",
            ("selection-relayed-otherwise",),
            exact_answers.without_client,
        ),
    )
