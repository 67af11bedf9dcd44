"""Bytes of the messages of a secret selection, counted without sending them (`protocols.scores.topk`).

A selection is a sequence of steps. What a step opens, hands over and is dealt follows from its kind and its sizes. All
of them follow from the terms but one: how many pairs are compared at a time. Where all candidates are compared at once
(`compared_at_once`) that follows from the terms, too. Over more positions it depends on the order into which the keys
were shuffled, and is asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from protocols.costs.score_bytes import ScoreBatch, served
from protocols.foundation.frame_sizes import (
    binary_bytes,
    frame_bytes,
    list_head_bytes,
    map_bytes,
    number_bytes,
    text_bytes,
)
from protocols.foundation.identifiers import PartyId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal
from protocols.scores.topk.hidden import PURPOSE as HIDDEN
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.selection import few_candidates

_NAMED: Final = text_bytes(PURPOSE)
_WORD: Final = 8
_AND_BYTES: Final = (8, 4, 2, 1, 1, 1)
"""Of the words of each level of the tree in which a sign is found."""


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange. `opened`: bytes that every client opens to all; `handed`: bytes that others give to `to`."""

    deal: tuple[int, ...]
    dealt: int = 0
    """Bytes that the server sends to `receiver`."""
    receiver: PartyId | None = None
    opened: int = 0
    handed: int = 0
    to: PartyId | None = None


def compared_at_once(terms: ScoreTerms) -> list[int]:
    """How many pairs each comparison of a batch has, where all candidates are compared at once; else `ValueError`."""
    if terms.positions > few_candidates(terms.queries):
        raise ValueError(f"how {terms.positions} positions are compared depends on how they were shuffled")
    pairs = terms.queries * terms.positions * (terms.positions - 1) // 2
    return [pairs] if pairs else []


def steps(terms: ScoreTerms, compared: Sequence[int]) -> Iterator[Step]:
    """All steps of a selection in order. `compared`: how many pairs each of its comparisons has."""
    positions, cells, lead = terms.positions, terms.cells, min(terms.clients)
    table = KeyLayout.of_scores(terms).table_size
    yield Step((Deal.LOOKUP, positions, table), _WORD * table * positions, lead, opened=positions)
    yield Step((Deal.SCALE, terms.queries, positions), _WORD * cells, lead, opened=_WORD * (cells + positions))
    for turn in sorted(terms.clients):
        deal = (Deal.SHUFFLE, int(turn), terms.queries, positions)
        yield Step(deal, _WORD * cells, turn, handed=_WORD * cells, to=turn)
    for count in compared:
        yield Step((Deal.SIGN, count), _WORD * count, lead, opened=_WORD * count)
        for size in _AND_BYTES:
            yield Step((Deal.AND, count, size), count * size, lead, opened=2 * count * size)
        yield Step((Deal.NOTHING,), opened=-(-count // 8))
    answers = _WORD * terms.queries * min(terms.top, positions)
    yield Step((Deal.ANSWER,), handed=answers, to=terms.asker)


def step_up(step: Step, number: int, party: PartyId) -> int:
    """`SelectionStep` of one client."""
    hands = step.to is not None and step.to != party
    to_one = map_bytes([step.to], step.handed + OVERHEAD_BYTES) if hands and step.to else map_bytes([], 0)
    to_all = binary_bytes(step.opened + OVERHEAD_BYTES if step.opened else 0)
    deal = list_head_bytes(len(step.deal)) + sum(map(number_bytes, step.deal))
    return frame_bytes(_NAMED, number_bytes(number), deal, to_all, to_one)


def step_down(step: Step, number: int, party: PartyId, terms: ScoreTerms) -> int:
    """`SelectionRelay` to one client."""
    others = [peer for peer in terms.clients if peer != party]
    to_all = map_bytes(others, step.opened + OVERHEAD_BYTES) if step.opened else map_bytes([], 0)
    to_one = map_bytes(others, step.handed + OVERHEAD_BYTES) if step.to == party else map_bytes([], 0)
    dealt = binary_bytes(step.dealt if step.receiver == party else 0)
    return frame_bytes(_NAMED, number_bytes(number), to_all, to_one, dealt)


def selection_up(batch: ScoreBatch, party: PartyId, compared: Sequence[int]) -> dict[str, int]:
    """All that a party of a batch sends, per step of the batch."""
    terms = batch.terms
    sent = {"ask": batch.asking()} if party == terms.asker else batch.counted(party)
    if party in terms.clients:
        numbered = enumerate(steps(terms, compared), start=1)
        sent[f"selection/{PURPOSE}"] = sum(step_up(step, number, party) for number, step in numbered)
    return sent


def selection_down(batch: ScoreBatch, party: PartyId, compared: Sequence[int]) -> dict[str, int]:
    """All that a party of a batch is sent, but for the count of holders."""
    terms = batch.terms
    sent = {} if party == terms.asker else {"ask": batch.asked(), f"served/{PURPOSE}": served()}
    if party not in terms.clients:
        # The server sends these within its last exchange.
        return sent | {f"selection/{PURPOSE}": shares_for_asker(terms)}
    numbered = enumerate(steps(terms, compared), start=1)
    relayed = sum(step_down(step, number, party, terms) for number, step in numbered)
    return sent | {f"seed/{PURPOSE}": dealt_seed(), f"selection/{PURPOSE}": relayed}


def dealt_seed(purpose: str = PURPOSE) -> int:
    """`DealtSeed`, to every client; once more for the tables of hidden queries, under their purpose."""
    return frame_bytes(text_bytes(purpose), binary_bytes(KEY_BYTES))


def shares_for_asker(terms: ScoreTerms) -> int:
    """`SharesForAsker`, to an asker outside."""
    answers = _WORD * terms.queries * min(terms.top, terms.positions)
    return frame_bytes(_NAMED, map_bytes(terms.clients, answers + OVERHEAD_BYTES))


def masked_table(terms: ScoreTerms, dimensions: int, owner: PartyId) -> int:
    """`MaskedTable` of hidden queries, from a scorer and to the asker."""
    sealed = _WORD * terms.positions * dimensions + OVERHEAD_BYTES
    return frame_bytes(text_bytes(HIDDEN), number_bytes(owner), binary_bytes(sealed))


def dealt_product(terms: ScoreTerms, branches: int) -> int:
    """`DealtProduct` of hidden queries with so many branches in all, to a scorer."""
    return frame_bytes(_NAMED, binary_bytes(_WORD * branches * terms.positions))
