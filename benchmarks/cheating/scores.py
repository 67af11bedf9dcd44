"""Servers that cheat in score queries, and an asker that asks for more than it may."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.score_stage import ACTIVE, ASKER, CLIENTS, SEMI_HONEST, VICTIM, Asked, ScoreStage, terms_of
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.holders.secret import SecretHolderServer
from protocols.registry import SCORES
from protocols.scores.budget import Budget, MemoryRecord
from protocols.scores.encrypted.bfv import PLAIN_MODULUS
from protocols.scores.messages import PURPOSE, ScoresAsked, ScoresTotal
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.messages import DealtSeed, SelectionRelay, SelectionStep
from protocols.scores.topk.server import TopKServer
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.secagg.messages import AdvertiseKeys
from protocols.sums.secagg.vectors import CarriedInputs, VectorServer, VectorTotal
from protocols.sums.terms import Layout, SumTerms

SECOND: Final = 1
"""The batch that is attacked."""
SECOND_ROUND: Final = int(terms_of(SECOND).round)
BUDGET: Final = 6


def two_batches(second: bytes = b"other queries") -> list[Asked]:
    return [Asked.of(terms_of(0), b"queries"), Asked.of(terms_of(SECOND), second)]


def _believed(stage: ScoreStage) -> Played:
    """Judged by whether the asker has taken a wrong answer."""
    wrong = [number for number in stage.answers if not stage.right(number)]
    return Played(stage, bool(wrong), {"answers": len(stage.answers), "wrong_answers": len(wrong)})


class ChangedTotal(Cheat):
    """One mean of the second batch is made the best of all."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, ScoresTotal) and self.round == SECOND_ROUND:
            vector = message.vector.copy()
            vector[:1] += np.uint32(1 << 28)
            return (structs.replace(message, vector=vector),)
        return (message,)


def changed_total(path: Path) -> Played:
    stage = ScoreStage(path, "masked", two_batches())
    stage.perform(ChangedTotal())
    return _believed(stage)


class SwappedTotals(Cheat):
    """Later batches are answered with the total of the first: all of them, or the one of the round `only`."""

    def __init__(self, only: int | None = None) -> None:
        super().__init__()
        self._only = only
        self._first: ScoresTotal | None = None

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, ScoresTotal):
            return (message,)
        self._first = self._first or message
        return (self._first,) if self._only in (None, self.round) else (message,)


def swapped_totals(path: Path) -> Played:
    stage = ScoreStage(path, "masked", two_batches())
    stage.perform(SwappedTotals())
    return _believed(stage)


class OtherAskings(Cheat):
    """In the second batch scorers are asked something else than the asker asks, and it notes who goes on."""

    def __init__(self, replays: bool) -> None:
        super().__init__()
        self._replays = replays
        self._heard: dict[int, bytes] = {}
        self.went_on: set[int] = set()
        """Scorers that advertise keys for their scores of that batch."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, ScoresAsked):
            return (message,)
        if self.round != SECOND_ROUND:
            self._heard[to] = message.sealed
            return (message,)
        sealed = self._heard[to] if self._replays else bytes(len(message.sealed))
        return (structs.replace(message, sealed=sealed),)

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, AdvertiseKeys) and self.round >= SECOND_ROUND:
            self.went_on.add(int(sender))
        return message


def other_askings(path: Path, replays: bool) -> Played:
    """Judged by whether a scorer answers."""
    stage, cheat = ScoreStage(path, "masked", two_batches()), OtherAskings(replays)
    stage.perform(cheat)
    return Played(stage, bool(cheat.went_on), {"scorers_that_answered": sorted(cheat.went_on)})


class WithoutScorer(Cheat):
    """In the second batch, of the same queries, the victim is called a dropout."""

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and isinstance(message, AdvertiseKeys) and self.round == SECOND_ROUND:
            self.call_dropout(VICTIM)
        return message


def without_scorer(path: Path, second: bytes = b"queries") -> Played:
    """Judged by whether another batch is opened without the victim: the difference is what it holds, and its scores."""
    stage = ScoreStage(path, "masked", two_batches(second))
    stage.perform(WithoutScorer())
    over = {number: sorted(answer.contributors) for number, answer in stage.answers.items()}
    got = any(VICTIM not in contributors for contributors in over.values())
    return Played(stage, got and len(over) > 1, {"opened_over": over})


class SeedsAgain(TopKServer):
    """Deals the seeds of the first batch in every batch."""

    def __init__(self, keys: ServerKeys) -> None:
        super().__init__(SecretHolderServer(keys.vectors))
        self._dealt: dict[PartyId, bytes] = {}

    def _deal_seeds(self, session: ServerSession, terms: ScoreTerms) -> dict[PartyId, Seed]:
        if not self._dealt:
            drawn = super()._deal_seeds(session, terms)
            self._dealt = {party: seed.secret for party, seed in drawn.items()}
            return drawn
        messages = {party: DealtSeed(PURPOSE, secret) for party, secret in self._dealt.items()}
        session.conversation.deliver(messages, terms.round)
        talk = session.conversation
        return {party: Seed.within(talk, secret, terms, party) for party, secret in self._dealt.items()}


def seeds_again(path: Path) -> Played:
    """Judged by whether clients compute under seeds that they have had before."""
    stage = ScoreStage(path, "topk", two_batches(), SEMI_HONEST)
    stage.perform(Cheat(), SeedsAgain)
    return Played(stage, len(stage.answers) > SECOND, {"answers": len(stage.answers)})


class FalseRandomness(Cheat):
    """The products that are dealt in the second batch are false in one entry, so that its key is another one."""

    def __init__(self) -> None:
        super().__init__()
        self._scales: set[tuple[int, int]] = set()

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, SelectionStep) and message.deal[0] == Deal.SCALE:
            self._scales.add((self.round, message.step))
        return message

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SelectionRelay) or not message.dealt or self.round < SECOND_ROUND:
            return (message,)
        if (self.round, message.step) not in self._scales:
            return (message,)
        words = np.frombuffer(message.dealt, dtype="<u8").copy()
        words[:1] += np.uint64(1 << 40)
        return (structs.replace(message, dealt=words.tobytes()),)


def false_randomness(path: Path) -> Played:
    stage = ScoreStage(path, "topk", two_batches(), SEMI_HONEST)
    stage.perform(FalseRandomness())
    return _believed(stage)


class ShiftedVectors(VectorServer):
    """A masked sum to whose result the server adds something of its own: here, to the correction of ciphertexts."""

    def collect(
        self, session: ServerSession, terms: SumTerms[Layout], carried: CarriedInputs | None = None
    ) -> VectorTotal:
        total = super().collect(session, terms, carried)
        if terms.round == SECOND_ROUND:
            total.vector[:1] = (total.vector[:1].astype(np.int64) + (1 << 28)) % PLAIN_MODULUS
        return total


def changed_encrypted_total(path: Path) -> Played:
    stage = ScoreStage(path, "bfv", two_batches(), SEMI_HONEST, vectors=ShiftedVectors)
    stage.perform(Cheat())
    return _believed(stage)


def beyond_budget(path: Path) -> Played:
    """The asker asks batch after batch about one table. Judged by how many queries it reads the means of."""
    asked = [Asked.of(terms_of(number), f"queries {number}".encode()) for number in range(BUDGET)]
    budgets = {party: Budget(MemoryRecord(), BUDGET) for party in CLIENTS if party != ASKER}
    stage = ScoreStage(path, "masked", asked, budgets=budgets)
    stage.perform(Cheat())
    opened = sum(stage.asked[number].terms.queries for number in stage.answers)
    return Played(stage, opened > BUDGET, {"queries_opened": opened, "budget": BUDGET})


def dropout(path: Path) -> Played:
    """Nobody cheats: a scorer is lost before it has sent its scores, and the batch goes on without it.

    It is of another table than the first: means of one table are opened over one set of clients.
    """
    asked = [Asked.of(terms_of(0), b"queries"), Asked.of(replace(terms_of(SECOND), table=b"trained on"), b"others")]
    stage = ScoreStage(path, "masked", asked, vanishes=(VICTIM, "masked input/"))
    stage.perform(Cheat())
    finished = len(stage.answers) == len(stage.asked) and all(map(stage.right, stage.answers))
    return Played(stage, not finished or bool(stage.refused), {"answers": len(stage.answers), "finished": finished})


def honest(path: Path, backend: str) -> Played:
    model = ACTIVE if SCORES[backend].stands_against_active else SEMI_HONEST
    stage = ScoreStage(path, backend, two_batches(), model)
    stage.perform(Cheat())
    finished = len(stage.answers) == len(stage.asked) and all(map(stage.right, stage.answers)) and not stage.refused
    return Played(stage, not finished, {"answers": len(stage.answers), "finished": finished})
