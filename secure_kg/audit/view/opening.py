"""Every sum of a session as the server could read it, computed again from its transcript and the public parameters.

Whatever a party must know to compute the terms of a sum (the session's channel keys, the participants, the layout, the
digest of the rows sent before) is in the transcript or in the run's settings: so an auditor computes them as the server
did. A sum that cannot be computed again is told with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Union, list_digest
from protocols.alignment.plain import ClearUnion
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.channels import setup_transcript
from protocols.session.credentials import check_signed
from protocols.session.group_key import SealedGroupKey, SealedGroupKeys
from protocols.session.messages import ChannelDirectory
from protocols.sums.interface import SumLayout
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import AdvertiseKeys
from protocols.sums.secagg.replay import RecordedSum, Withheld, open_again, withheld
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.travelling import added_in_clear
from secure_kg.audit.view.attending import Attending, Known, abandons, goes_on
from secure_kg.audit.view.directions import misdirected
from secure_kg.audit.view.in_turn import InTurn
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.sum_plan import SumPlan
from secure_kg.federation.plan.messages import Welcome
from secure_kg.federation.plan.run_plan import UNION, PlannedSum, PublicState, RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError

Key = tuple[int, str]
"""Round and purpose of a sum."""


@dataclass(frozen=True, slots=True)
class OpenedSum:
    """One sum as the server held it in the end."""

    round: int
    purpose: str
    contributors: frozenset[int]
    threshold: int
    """How many clients must help to open the sum; 0 for a sum in clear."""
    vector: npt.NDArray[np.unsignedinteger] | None = field(repr=False)
    """None if it could not be computed again."""
    layout: SumLayout | None = None
    """How the vector is read as numbers, where the server can read it."""
    attempt: Attempt | None = None
    """Of a private set union: how its table is read."""
    seeds: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Self-mask seeds that the server was given."""
    mask_keys: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Mask keys of clients that dropped out, which the server was given."""
    problem: str = ""
    """Why it could not be computed again."""
    finished: bool = True
    """Whether everybody who was asked has helped to open it."""
    signatures: int = 0
    """How many were checked against pinned identities: on mask keys, and on survivors."""
    false_signatures: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    """What the server has not passed on of clients that it had in the sum."""
    states: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Of its contributors: their commitments to what their inputs depend on."""
    asked: frozenset[int] = frozenset()
    """Who was asked to help to open it."""
    answered: frozenset[int] = frozenset()
    """Of one that could not be computed again: who has helped, as far as the record goes."""
    abandoned: bool = False
    """Whether a party has abandoned the sum, or it can be opened only with answers that came too late. Nobody uses its
    total then. A server that keeps them all the same could read it."""

    @property
    def read_by_server(self) -> bool:
        """Whether its total tells the server something: numbers, or tags, or names."""
        return self.layout is not None or self.attempt is not None or self.purpose == union_names.PURPOSE


@dataclass(slots=True)
class _Running:
    planned: PlannedSum
    problem: str = ""
    recorded: RecordedSum = field(default_factory=RecordedSum)
    late: list[tuple[PartyId, wire.Message]] = field(default_factory=list)
    """Answers that an honest server drops."""
    clear: dict[int, npt.NDArray[np.unsignedinteger]] = field(default_factory=dict)
    tried: int = 0
    """The number of answers with which the last attempt to open the sum failed."""

    def with_late(self) -> "_Running":
        """As the server could have it that drops nothing. What came in time stands before what came late."""
        recorded = self.recorded.copy()
        for party, message in self.late:
            recorded.note(party, message)
        return _Running(self.planned, self.problem, recorded)


class Opening:
    """One session. `observe` each of its messages in order; sums that are complete come back, the rest from `end`."""

    def __init__(
        self,
        config: RunConfig,
        clients: int,
        union: Union | None = None,
        identities: Mapping[PartyId, bytes] | None = None,
        plan: SumPlan | None = None,
        known: Known | None = None,
    ) -> None:
        """`union`: of an earlier session of the same run, if this one goes on with its alignment.

        `identities`: the clients' pinned ones, to check signatures by. `plan`: None: that of a training run.
        `known`: what the server's program went by.
        """
        self._config, self._identities = config, identities
        self._plan: SumPlan = plan if plan is not None else RunPlan(config, clients)
        self._in_turn = InTurn() if plan is None else None
        self._public = PublicState(union=union)
        self._channels = self._greeting = b""
        self._running: dict[Key, _Running] = {}
        self._added: set[Key] = set()
        """Sums in clear that are over: what comes afterwards is late."""
        self._attending = Attending(self._plan, known)
        self._explained = known is not None and not known.difference
        """Whether the server's program explains the whole record: a sum that cannot be opened it has not opened."""

    def observe(self, observation: Observation) -> list[OpenedSum]:
        """Of a training run, keys that were advertised ahead are looked at in their turn."""
        now = [observation] if self._in_turn is None else self._in_turn.turn(observation)
        return [total for one in now for total in self._observe(one)]

    def _observe(self, observation: Observation) -> list[OpenedSum]:
        message = observation.message
        if not self._attending.takes(observation):
            self._keep_late(observation)
            return []
        match message:
            case Welcome():
                self._greeting, session = message.binding, SessionId(message.session)
                self._now(session=session, union=self.union if message.aligned else None)
            case ChannelDirectory():
                if self._public.session is not None:
                    keys = {PartyId(party): key for party, key in message.channel_keys.items()}
                    self._channels = setup_transcript(self._public.session, keys, self._greeting)
            case SealedGroupKeys() | SealedGroupKey():
                self._now(commitment=message.commitment)
            case UnionPlaces():
                self._take_union(message)
            case ClearUnion():
                self._now(union=self.union or Union(len(message.tags), list_digest(message.tags)))
        # What a server says to be over it may have opened: that is looked at before its word is taken.
        settled = self._settle(observation)
        self._attending.observe(observation)
        return [*settled, *self._take(observation)]

    @property
    def union(self) -> Union | None:
        """The alignment that the session goes by, as far as it has come."""
        return self._public.union

    def _now(self, **news: Any) -> None:
        self._public = replace(self._public, **news)

    def _keep_late(self, observation: Observation) -> None:
        running = self._running.get((observation.round, observation.purpose))
        if running is not None and not misdirected(type(observation.message), observation.direction):
            running.late.append((PartyId(observation.peer), observation.message))

    def end(self) -> list[OpenedSum]:
        """Sums that were under way when the record ended. Of one in clear nobody knows who would have been in it."""
        return [_unfinished(key, one) if one.clear else self._finish(key) for key, one in list(self._running.items())]

    def _settle(self, observation: Observation) -> list[OpenedSum]:
        """Open the sums under way with the answers so far, once the server goes on and awaits no more.

        If it abandons a sum, the same is asked of that sum alone. One in clear has no step in which it is opened.
        """
        over = abandons(observation)
        if not over and not self._goes_on(observation):
            return []
        done, named = [], (observation.round, observation.purpose)
        for key, running in list(self._running.items()):
            if over and (key != named or running.clear):
                continue
            answers = len(running.recorded.openings)
            if running.clear:
                done.append(self._finish(key))
            elif answers > running.tried:
                running.tried = answers
                total = self._opened(key, running)
                if not total.problem:
                    del self._running[key]
                    done.append(total)
        return done

    def _goes_on(self, observation: Observation) -> bool:
        """Whether a server that sends this is done with the sums before it."""
        return goes_on(observation)

    def _take(self, observation: Observation) -> list[OpenedSum]:
        message, party = observation.message, PartyId(observation.peer)
        key = observation.round, observation.purpose
        done = [self._finish(old) for old in list(self._running) if old[0] < observation.round] if key[1] else []
        match message:
            case ClearInput():
                if key not in self._added:
                    self._begin(key).clear[observation.peer] = message.vector
                return done
            case AdvertiseKeys():
                self._begin(key)
        running = self._running.get(key)
        if running is None:
            return done
        recorded = running.recorded
        recorded.note(party, message)
        if recorded.answered and self._all_asked(recorded):
            done.append(self._finish(key))
        return done

    def _all_asked(self, recorded: RecordedSum) -> bool:
        """A fast client may answer before the others have been asked."""
        asked = recorded.signed if self._config.adversary == "active" else recorded.survivors
        return recorded.contributors <= asked.keys()

    def _begin(self, key: Key) -> _Running:
        if key not in self._running:
            try:
                self._running[key] = _Running(self._plan.sum_of(*key, self._public))
            except (ProtocolError, UserError, ValueError) as problem:
                self._running[key] = _Running(PlannedSum(None), str(problem))
        return self._running[key]

    def _take_union(self, places: UnionPlaces) -> None:
        number = places.purpose.removeprefix(UNION)
        if places.size and self._public.session is not None and self.union is None and number.isdecimal():
            attempt = self._plan.union_attempt(int(number), self._public)
            self._now(union=Union(places.size, attempt.digest(places)))

    def _finish(self, key: Key) -> OpenedSum:
        running = self._running.pop(key)
        total = self._opened(key, running)
        if total.problem and running.late:
            late = self._opened(key, running.with_late())
            if not late.problem:
                return replace(late, abandoned=True)
        return total

    def _opened(self, key: Key, running: _Running) -> OpenedSum:
        recorded, terms, (number, purpose) = running.recorded, running.planned.terms, key
        abandoned = key in self._attending.abandoned
        if running.clear:
            self._added.add(key)
            who, layout = frozenset(running.clear), running.planned.layout
            try:
                total = added_in_clear(running.clear.values(), layout)
            except ValueError:
                return OpenedSum(number, purpose, who, 0, None, problem="inputs of other lengths or rings")
            return OpenedSum(number, purpose, who, 0, total, layout, abandoned=abandoned)
        who = frozenset(int(party) for party in recorded.contributors)
        if terms is None or self._public.session is None:
            return OpenedSum(number, purpose, who, 0, None, problem=running.problem or "no session", finished=False)
        config = self._config
        parameters = self._plan.parameters(len(terms.participants))
        bound = BoundTerms(self._public.session, self._channels, parameters, terms)
        layout = running.planned.layout if running.planned.read_by_server else None
        kept_back = tuple(withheld(bound, recorded))
        try:
            opened = open_again(bound, recorded, config.adversary == "active")
            if layout is not None:
                layout.decode(opened.vector)  # refuses what cannot be a sum of these contributions
        except ProtocolError as problem:
            return OpenedSum(
                *(number, purpose, who, parameters.threshold, None),
                problem=str(problem),
                finished=recorded.answered and not self._explained,
                withheld=kept_back,
                asked=_asked(recorded),
                answered=frozenset(int(party) for party in recorded.openings),
                states={int(party): recorded.state_of(party) for party in recorded.adverts if int(party) in who},
            )
        checked, wrong = self._verified(bound, recorded)
        return OpenedSum(
            number,
            purpose,
            frozenset(int(party) for party in opened.contributors),
            parameters.threshold,
            opened.vector,
            layout,
            running.planned.attempt,
            {int(party): seed for party, seed in opened.seeds.items()},
            {int(party): secret for party, secret in opened.mask_keys.items()},
            signatures=checked,
            false_signatures=tuple(wrong),
            withheld=kept_back,
            states={int(party): recorded.state_of(party) for party in opened.contributors},
            asked=_asked(recorded),
            abandoned=abandoned,
        )

    def _verified(self, terms: BoundTerms, recorded: RecordedSum) -> tuple[int, list[str]]:
        """How many signatures of this sum were checked, and which of them are false."""
        if self._identities is None or self._config.adversary != "active":
            return 0, []
        survivors = recorded.contributors
        signed = [
            *(
                (terms.advert_statement(party, one.mask_key, one.state), one.signature)
                for party, one in recorded.adverts.items()
            ),
            *(
                (terms.state_statement(party, recorded.adverts[party].mask_key, one.state), one.signature)
                for party, one in recorded.shares.items()
                if one.signature and party in recorded.adverts
            ),
            *(
                (terms.survivors_statement(party, survivors), one.signature)
                for party, one in recorded.signatures.items()
            ),
        ]
        wrong = []
        for statement, signature in signed:
            try:
                check_signed(self._identities, statement, signature)
            except ProtocolError as problem:
                wrong.append(f"round {terms.sum.round}, {terms.sum.purpose}: {problem}")
        return len(signed), wrong


def _unfinished(key: Key, running: _Running) -> OpenedSum:
    return OpenedSum(*key, frozenset(running.clear), 0, None, problem="the record ends before the sum", finished=False)


def _asked(recorded: RecordedSum) -> frozenset[int]:
    return frozenset(int(party) for party in (recorded.signed or recorded.survivors))
