"""Checks of selections: messages between clients pass unchanged, and dealt randomness is fresh and true.

The server draws the seeds and sends them, so an auditor has them, too, and deals again what it has dealt. Seeds are
fresh for every batch and client: values that were opened under one seed in two batches give away their difference.
"""

import math
from typing import ClassVar

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.scores.crypten.messages import AnswerShares, GroupAnswer, GroupFormed, JoinGroup
from protocols.scores.topk.dealing import Deal, Dealer, Seed
from protocols.scores.topk.frames import most_dealt
from protocols.scores.topk.hidden import dealt_product
from protocols.scores.topk.messages import (
    DealtProduct,
    DealtSeed,
    MaskedTable,
    SelectionRelay,
    SelectionStep,
    SharesForAsker,
)
from protocols.session.channels import setup_transcript
from protocols.session.messages import ChannelDirectory
from protocols.transport.tap import frame_hash
from secure_kg.audit.scores.checks import ScoreCheck
from secure_kg.audit.scores.session import AuditedBatch, ScoredSession
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.foundation.words import counted


class SelectionRelays(ScoreCheck):
    id: ClassVar[str] = "selection-relayed"
    question: ClassVar[str] = "Did the server pass on other shares than clients gave it for each other?"

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session)
        self._said: dict[tuple[int, int], dict[int, SelectionStep]] = {}
        """By round and step: what each client said."""
        self._joined: dict[int, dict[int, JoinGroup]] = {}
        self._answers: dict[int, dict[int, bytes]] = {}
        self._tables: dict[tuple[int, int], str] = {}
        """By round and owner: the hash of a masked table."""
        self._relayed = self._groups = 0
        self._wrong = Evidence()

    def observe(self, observation: Observation) -> None:
        number, peer, message = observation.round, observation.peer, observation.message
        match message:
            case SelectionStep():
                recent = {at for at in self._said if at[0] == number and at[1] >= message.step - 1}
                self._said = {at: self._said[at] for at in recent}
                self._said.setdefault((number, message.step), {}).setdefault(peer, message)
            case SelectionRelay():
                self._compare(observation, message)
            case MaskedTable():
                self._pass_table(observation, message)
            case SharesForAsker():
                last = max((at[1] for at in self._said), default=0)
                self._require(observation, self._for(number, last, peer), message.sealed)
            case JoinGroup():
                self._joined.setdefault(number, {}).setdefault(peer, message)
            case GroupFormed():
                self._formed(observation, message)
            case AnswerShares():
                self._answers.setdefault(number, {}).setdefault(peer, message.sealed)
            case GroupAnswer():
                self._require(observation, self._answers.get(number, {}), message.sealed)

    def _for(self, number: int, step: int, party: int) -> dict[int, bytes]:
        """What the others have handed to one party in a step."""
        said = self._said.get((number, step), {})
        return {peer: one.to_one[party] for peer, one in said.items() if party in one.to_one}

    def _pass_table(self, observation: Observation, message: MaskedTable) -> None:
        """Large ones: what is kept of them is a hash."""
        where = (observation.round, message.owner)
        if observation.direction == "received":
            if message.owner == observation.peer:
                self._tables.setdefault(where, frame_hash(message.sealed))
            return
        self._relayed += 1
        if self._tables.get(where) != frame_hash(message.sealed):
            self._wrong.add(f"round {where[0]}: the asker was sent a table that client {where[1]} has not sent")

    def _compare(self, observation: Observation, message: SelectionRelay) -> None:
        number, peer = observation.round, observation.peer
        said = self._said.get((number, message.step), {})
        to_all = {party: one.to_all for party, one in said.items() if party != peer and one.to_all}
        self._require(observation, to_all, message.to_all)
        self._require(observation, self._for(number, message.step, peer), message.to_one)

    def _formed(self, observation: Observation, message: GroupFormed) -> None:
        """Each participant is sent what the others have sealed for it, and where the first waits."""
        self._groups += 1
        joined, peer = self._joined.get(observation.round, {}), observation.peer
        names = message.participants
        if sorted(joined) != names or peer not in names:
            self._wrong.add(f"round {observation.round}: client {peer} was told another group than has joined")
            return
        first = joined[names[0]]
        given = {name: joined[name].sealed.get(peer, b"") for name in names if name != peer}
        self._require(observation, given, message.sealed)
        if (first.host, first.port) != (message.host, message.port):
            self._wrong.add(f"round {observation.round}: client {peer} was sent elsewhere than the first one waits")

    def _require(self, observation: Observation, given: dict[int, bytes], passed_on: dict[int, bytes]) -> None:
        self._relayed += 1
        if given != passed_on:
            odd = sorted(one for one in {*given, *passed_on} if given.get(one) != passed_on.get(one))
            names = ", ".join(map(str, odd))
            where = f"round {observation.round}, {observation.kind} to client {observation.peer}"
            self._wrong.add(f"{where}: not what came (of {names})")

    def findings(self) -> list[Finding]:
        found = []
        if self._wrong:
            found.append(
                Finding(
                    "selection-relayed-otherwise",
                    "high",
                    "Clients of a selection were sent other shares than the others had sent for them",
                    self._wrong.told(),
                    "Shares are sealed from client to client, so that a changed one does not open, and the batch ends. "
                    "The server has cheated all the same.",
                )
            )
        if self._groups:
            found.append(
                Finding(
                    "group-not-recorded",
                    "info",
                    "Clients computed in a group whose traffic is not on record",
                    (f"CrypTen's processes, in {counted(self._groups, 'invitation')}",),
                    "What CrypTen's processes tell each other, and what their dealer tells them, does not pass the "
                    "server's end of the wire. An audit says nothing about it.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._relayed

    def looked_at(self) -> str:
        return f"{counted(self._relayed, 'message')} with shares for clients"


class DealtRandomness(ScoreCheck):
    id: ClassVar[str] = "dealt-randomness"
    question: ClassVar[str] = "Was dealt randomness used twice, or other than its seeds give?"

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session)
        self._first: dict[bytes, tuple[int, int]] = {}
        self._setups: dict[PartyId, bytes] = {}
        """Digests of the set-up as each client was shown it: what it draws from a seed is bound to it."""
        self._seeds: dict[int, dict[PartyId, Seed]] = {}
        self._of_tables: dict[tuple[int, PartyId], Seed] = {}
        """By the round of their masking: of the masks of tables, under which hidden queries are scored."""
        self._deals: dict[tuple[int, int], list[int]] = {}
        self._checked = 0
        self._reused, self._false = Evidence(), Evidence()

    def observe(self, observation: Observation) -> None:
        number, message = observation.round, observation.message
        match message:
            case ChannelDirectory() if observation.direction == "sent":
                keys = {PartyId(party): key for party, key in message.channel_keys.items()}
                shown = setup_transcript(self.session.number, keys, self.session.greeting)
                self._setups.setdefault(PartyId(observation.peer), shown)
            case DealtSeed():
                self._take_seed(observation, message)
            case SelectionStep():
                self._deals = {at: deal for at, deal in self._deals.items() if at[0] == number}
                self._deals.setdefault((number, message.step), message.deal)
            case SelectionRelay():
                self._compare(observation, message)
            case DealtProduct():
                self._multiply(observation, message)

    def _multiply(self, observation: Observation, message: DealtProduct) -> None:
        """The product of two masks is what the seeds of the tables give."""
        batch, party = self.session.batches.get(observation.round), PartyId(observation.peer)
        if batch is None or batch.hidden is None:
            return  # the ledger names it
        self._checked += 1
        asker = self._of_tables.get((batch.tables_round, batch.terms.asker))
        scorer = self._of_tables.get((batch.tables_round, party))
        where = f"round {observation.round}: the product of masks for client {party}"
        if asker is None or scorer is None:
            self._false.add(f"{where} comes before their seeds")
        elif (
            len(message.product) != 8 * batch.hidden.rows * batch.terms.positions
            or dealt_product(scorer, asker, batch.hidden).tobytes() != message.product
        ):
            self._false.add(f"{where} is not what the seeds give")

    def _take_seed(self, observation: Observation, message: DealtSeed) -> None:
        where, batch = (observation.round, observation.peer), self.session.batches.get(observation.round)
        earlier = self._first.setdefault(message.seed, where)
        if earlier != where:
            self._reused.add(
                f"round {where[0]}: client {where[1]} was dealt the seed of client {earlier[1]} in round {earlier[0]}"
            )
        if batch is None:
            return
        self._seeds = {one: seeds for one, seeds in self._seeds.items() if one == observation.round}
        party = PartyId(observation.peer)
        seed = Seed(message.seed, self.session.number, self._setups.get(party, b""), batch.terms, party)
        if batch.masks_tables:
            self._of_tables.setdefault((observation.round, party), seed)
        if self._seeds.setdefault(observation.round, {}).setdefault(party, seed).secret != message.seed:
            self._reused.add(f"round {where[0]}: client {where[1]} was dealt two seeds")

    def _compare(self, observation: Observation, message: SelectionRelay) -> None:
        """Nothing is computed that is larger than what was sent: a record may ask for anything."""
        at = (observation.round, message.step)
        batch, deal = self.session.batches.get(at[0]), self._deals.get(at)
        if batch is None or not deal:
            self._false.add(f"round {at[0]}, step {at[1]}: randomness that no client asked for")
            return
        self._checked += 1
        receiver = deal[1] if deal[0] == Deal.SHUFFLE and len(deal) > 1 else min(batch.terms.clients)
        expected = b""
        if observation.peer == receiver and message.dealt and math.prod(_sizes(deal)) <= len(message.dealt):
            expected = self._deal_again(at, batch, deal)
        elif observation.peer == receiver and deal[0] not in (Deal.NOTHING, Deal.ANSWER):
            expected = b"anything else"
        if message.dealt != expected:
            self._false.add(f"round {at[0]}, step {at[1]}: not what the seeds give, to client {observation.peer}")

    def _deal_again(self, at: tuple[int, int], batch: AuditedBatch, deal: list[int]) -> bytes:
        """What the seeds give; empty if there are none, or the deal is none."""
        seeds = self._seeds.get(at[0], {})
        if seeds.keys() != set(batch.terms.clients):
            return b""
        try:
            return Dealer(seeds, most_dealt(batch.widest)).deal(at[1], deal)[1]
        except PeerMisbehaved:
            return b""

    def findings(self) -> list[Finding]:
        found = []
        if self._reused:
            found.append(
                Finding(
                    "dealt-seed-reused",
                    "high",
                    "A seed of dealt randomness came twice",
                    self._reused.told(),
                    "All that clients open in a selection lies under randomness from these seeds. Whoever sees two "
                    "values under the same randomness knows their difference. A seed belongs to one client and batch.",
                )
            )
        if self._false:
            found.append(
                Finding(
                    "false-randomness",
                    "high",
                    "The server dealt randomness that its own seeds do not give",
                    self._false.told(),
                    "Under false randomness clients compute wrong answers, and may open more than comparisons of "
                    "shuffled keys. Nobody notices while it happens: this backend stands against semi-honest servers.",
                )
            )
        if self._first:
            found.append(
                Finding(
                    "seeds-on-record",
                    "info",
                    "This record opens every client's scores to whoever has a client's secrets besides",
                    (counted(len(self._first), "seed") + " of dealt randomness",),
                    "A server together with one client reads everything in a selection, and the record is what the "
                    "server knows. Give it to an auditor outside, who is and knows no client of the session. A client "
                    "that is handed it reads all scores of the batches that it took part in.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return len(self._first)

    def looked_at(self) -> str:
        return f"{counted(len(self._first), 'seed')}, {counted(self._checked, 'share')} dealt again"


def _sizes(deal: list[int]) -> list[int]:
    """How many entries a deal has, in factors."""
    return deal[2:] if deal[0] == Deal.SHUFFLE else deal[1:]
