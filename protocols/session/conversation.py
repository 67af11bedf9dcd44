"""One party's typed end of one session: messages in, messages out, over any transport.

Rules that hold for every protocol on top of it:

- A message of an earlier round is late and dropped (a client that was slow or stopped may still send one).
- A message of a later round, of a kind that is not awaited, or that does not decode ends the conversation. Between
  organisations it ends its sender's link: whoever breaks the rules is cut off, and a dropout.
- Either side may say that it cannot go on: a client with `Failed`, the server with `Abort`. Between organisations the
  server outlives a client that fails: it is a dropout.
- A frame larger than the tasks of this session have called for so far (`admit`) is refused unread.
- Either side may abandon one sum (`Abandon`); a client takes the server's word only for one that it has begun. The
  server may go on without a client that is too slow (`LeaveOut`); the client says when it is back (`Back`), and until
  then the server sends it nothing more and reads nothing else from it.

- Some messages come before they are awaited (`wire.Message.AHEAD`): keys of sums to come, and shares that are relayed
  while a client is at something else. They are kept, a few of each party and one of a kind for each sum, until their
  sum asks for them. What a dropout has sent ahead is dropped with it.

Not covered here: authenticity. A party that can forge frames of a session can also end it.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    DecodeError,
    LeftOut,
    PeerFailed,
    PeerLost,
    PeerMisbehaved,
    ProtocolError,
    Regrouped,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.session.ahead import Ahead
from protocols.session.control import MAX_PURPOSE as MAX_PURPOSE
from protocols.session.control import MAX_REASON as MAX_REASON
from protocols.session.control import Abandon as Abandon
from protocols.session.control import Abort as Abort
from protocols.session.control import Back as Back
from protocols.session.control import Failed as Failed
from protocols.session.control import LeaveOut as LeaveOut
from protocols.session.control import Regroup as Regroup
from protocols.session.control import printable, refusal
from protocols.session.patience import Patience
from protocols.transport.base import Transport, party_names

_MOST_AT_ONCE = 100
M = TypeVar("M", bound=wire.Message)


class Conversation:
    """Typed send and receive within one session."""

    def __init__(self, transport: Transport, session: SessionId, greeting: bytes = b"") -> None:
        """`greeting`: digest of what the server told everybody as it opened the session. Keys are bound to it."""
        self.transport = transport
        self.session, self.greeting = session, greeting
        self.setup = b""
        """At the server: digest of the set-up of keys (`channels.setup_transcript`); empty before it."""
        self.outlives: Callable[[str], None] | None = None
        """Gets the words of a peer that cannot go on, which then is merely lost (`PeerLost`); None: `PeerFailed`."""
        self.late_messages = 0
        self._abandoned: set[tuple[RoundId, str]] = set()
        self._begun: set[tuple[RoundId, str]] = set()
        """Of the last round in which anything was said: the sums in which this party has said something."""
        self._largest = wire.SMALL_FRAME_BYTES
        self._ahead = Ahead(transport.party)

    def admit(self, frame_bytes: int) -> None:
        """From now on take frames up to this size (`protocols.foundation.frame_sizes`), for a task that has need of
        them.

        The limit never falls: a frame of an earlier, larger task is late, not an attack.
        """
        self._largest = max(self._largest, min(frame_bytes, wire.MAX_FRAME_BYTES))

    def abandoned(self, round_id: RoundId) -> frozenset[str]:
        """Purposes of the sums of a round that are known to have been abandoned, also while another was awaited."""
        return frozenset(purpose for number, purpose in self._abandoned if number == round_id)

    def begun(self, round_id: RoundId, purpose: str) -> bool:
        """Whether this party has said anything in a sum of the last round in which it spoke."""
        return (round_id, purpose) in self._begun

    def begin(self, round_id: RoundId, *purposes: str) -> None:
        """These sums of a round have begun for this party: it waits for them, though it may not have spoken yet."""
        self._begun = {one for one in self._begun if one[0] == round_id} | {(round_id, one) for one in purposes}

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if (purpose := getattr(message, "purpose", None)) is not None:
            self.begin(round_id, purpose)
        self.transport.send(to, wire.encode(message, self.session, round_id))

    def send_ahead(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        """A message of a sum that is to come: it does not begin by this."""
        self.transport.send(to, wire.encode(message, self.session, round_id))

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        """The same message to several parties, serialised once; returns the parties that take no messages any more."""
        lost = set[PartyId]()
        if isinstance(message, Abandon):
            self._abandoned.add((round_id, message.purpose))
        if not to:
            return lost
        frame = wire.encode(message, self.session, round_id)
        for party in sorted(to):
            try:
                self.transport.send(party, frame)
            except PeerLost:
                lost.add(party)
        return lost

    def deliver(self, messages: dict[PartyId, M], round_id: RoundId) -> set[PartyId]:
        """To each party its own message; returns the parties that take no messages any more."""
        lost = set()
        for party, message in sorted(messages.items()):
            try:
                self.send(party, message, round_id)
            except PeerLost:
                lost.add(party)
        return lost

    def abort(self, to: Collection[PartyId], reason: str, round_id: RoundId, kind: type[Abort] = Abort) -> None:
        """Tell all parties that the session is over, without waiting for any that do not listen."""
        listening = [party for party in to if not self.transport.busy(party)]
        self.broadcast(listening, kind(reason[:MAX_REASON]), round_id)

    def receive(
        self,
        sender: PartyId,
        expected: type[M],
        round_id: RoundId,
        deadline: Deadline,
        purpose: str | None = None,
    ) -> M:
        """The next message of this round from `sender`, which must be an `expected`.

        `purpose`: the sum it belongs to; if that is abandoned instead, `SumAbandoned`.
        """
        return self._next([sender], expected, round_id, deadline, purpose)[1]

    def receive_any(self, sender: PartyId, round_at_least: RoundId, deadline: Deadline) -> tuple[RoundId, wire.Message]:
        """The next message from `sender`, of any kind and of any round from `round_at_least` on."""
        late = 0
        while True:
            _, envelope = self._received([sender], deadline)
            if self._keep_ahead(sender, envelope, round_at_least):
                continue
            if envelope.round >= round_at_least:
                return envelope.round, envelope.message
            self._pass_over()
            late += deadline.expired
            if late >= _MOST_AT_ONCE:
                raise DeadlineExpired(f"no message from {party_names([sender])} in time")

    def gather(
        self, senders: Collection[PartyId], expected: type[M], round_id: RoundId, deadline: Deadline
    ) -> dict[PartyId, M]:
        """One `expected` message from each of `senders`, or from those that answered before the deadline."""
        answers: dict[PartyId, M] = {}
        missing = set(senders)
        while missing:
            try:
                sender, message = self._next(missing, expected, round_id, deadline)
            except DeadlineExpired:
                break
            answers[sender] = message
            missing.discard(sender)
        return answers

    def gather_each(
        self,
        senders: Collection[PartyId],
        expected: type[M],
        round_id: RoundId,
        patience: Patience,
        step: str,
        purpose: str | None = None,
    ) -> Iterator[tuple[PartyId, M]]:
        """One `expected` message from each of `senders` as they arrive, without those that exceed their limit.

        `purpose`: the sum it belongs to; if one of them abandons that instead, `SumAbandoned`.
        """
        started = time.monotonic()
        missing, answered, last_dropout = set(senders), list[float](), 0.0
        while missing:
            limits = {party: patience.limit(step, party, answered, len(senders)) for party in missing}
            answer, late = None, set[PartyId]()
            try:
                limit = Deadline(started + min(limits.values()))
                answer = self._next(missing, expected, round_id, limit, purpose)
            except DeadlineExpired:
                elapsed = time.monotonic() - started
                late = {party for party in missing if limits[party] <= elapsed}
            except PeerLost as problem:  # it stopped in the middle of a message
                late = {PartyId(party) for party in problem.parties} or set(missing)
            if answer is None:
                missing -= late
                for party in late:
                    patience.note_dropout(step, party, started)
                    last_dropout = time.monotonic() - started
                continue
            sender = answer[0]
            seconds = time.monotonic() - started
            answered.append(seconds)
            patience.note(step, sender, seconds)
            missing.discard(sender)
            yield answer  # and forget it: of large messages there must not be two while the next one is awaited
        patience.seconds_in_vain += max(0.0, last_dropout - max(answered, default=0.0))

    def hear_out(self, party: PartyId) -> None:
        """`PeerFailed` if a party that takes no messages any more has sent `Failed`. What else it sent is dropped."""
        self.came_back(party)

    def came_back(self, party: PartyId) -> bool:
        """Whether a dropout has sent `Back`. What it sent before that is late and dropped."""
        for _ in range(_MOST_AT_ONCE):  # one that sends without end must not keep us
            try:
                _, envelope = self._received([party], Deadline.after(0.0))
            except (DeadlineExpired, PeerLost):
                return False
            if isinstance(envelope.message, Back):
                self._ahead.forget(party)  # it knows that the others went on, and has forgotten these sums
                return True
            self._pass_over()
        return False

    def gather_all(
        self, senders: Collection[PartyId], expected: type[M], round_id: RoundId, deadline: Deadline
    ) -> dict[PartyId, M]:
        """Like `gather`, but a dropout raises `DeadlineExpired` naming it."""
        answers = self.gather(senders, expected, round_id, deadline)
        missing = set(senders) - answers.keys()
        if missing:
            raise DeadlineExpired(f"{party_names(missing)} did not answer in time ({expected.__name__})")
        return answers

    def _next(
        self,
        senders: Collection[PartyId],
        expected: type[M],
        round_id: RoundId,
        deadline: Deadline,
        purpose: str | None = None,
    ) -> tuple[PartyId, M]:
        heard, late = set(senders), Counter[PartyId]()
        if (kept := self._ahead.take(heard, expected, (round_id, purpose or ""))) is not None:
            return kept
        while heard:
            sender, envelope = self._received(heard, deadline)
            message = envelope.message
            if envelope.round < round_id or (
                envelope.round == round_id and self._is_left_over(message, round_id, purpose)
            ):
                self._pass_over()
                if isinstance(message, Abandon) and sender == SERVER and envelope.round == round_id:
                    self._note_abandoned(round_id, message.purpose)
                # What is here already counts after the deadline too, but one that sends without end must not keep us.
                late[sender] += self.transport.expired(deadline)
                if late[sender] >= _MOST_AT_ONCE:
                    heard.discard(sender)
                continue
            if isinstance(message, Abandon) and envelope.round == round_id:
                self._abandoned.add((round_id, message.purpose))
                if sender == SERVER:
                    raise SumAbandoned(printable(message.reason))
                raise refusal(sender, party_names([sender]), message)
            awaited = envelope.round == round_id and isinstance(message, expected)
            of_awaited = awaited and getattr(message, "purpose", None) == purpose
            if not of_awaited and self._keep_ahead(sender, envelope, round_id):
                continue
            if not awaited or not isinstance(message, expected):
                sent, due = f"{type(message).__name__} of round {envelope.round}", expected.__name__
                problem = f"{party_names([sender])} sent {sent} where {due} of round {round_id} was due"
                raise self.bear(sender, UnexpectedMessage(problem))
            return sender, message
        raise DeadlineExpired(f"no message from {party_names(senders)} in time")

    def _keep_ahead(self, sender: PartyId, envelope: wire.Envelope, round_id: RoundId) -> bool:
        """Keep what has come ahead. Of the server a client keeps what is of sums that have begun here."""
        if not self._ahead.keeps(type(envelope.message)) or envelope.round < round_id:
            return False
        known = sender != SERVER or self.begun(envelope.round, getattr(envelope.message, "purpose", ""))
        return known and self._ahead.keep(sender, envelope, round_id)

    def _pass_over(self) -> None:
        """The last message counts for nothing."""
        self.late_messages += 1
        self.transport.passed_over()

    def _note_abandoned(self, round_id: RoundId, purpose: str) -> None:
        """Of this round alone, and of sums that have begun here: one that is to come cannot be over."""
        if not self.begun(round_id, purpose):
            raise UnexpectedMessage(f"the server abandons a sum of round {round_id} that has not begun here")
        self._abandoned = {one for one in self._abandoned if one[0] == round_id} | {(round_id, purpose)}

    def _is_left_over(self, message: wire.Message, round_id: RoundId, purpose: str | None) -> bool:
        """Whether a message of this round is about an abandoned sum, or abandons another sum than the awaited one."""
        about = getattr(message, "purpose", None)
        if about is None or about == purpose:
            return False
        relayed = self.transport.party != SERVER and self._ahead.keeps(type(message))  # until it knows of its sum
        return isinstance(message, Abandon) or (not relayed and (round_id, about) in self._abandoned)

    def bear(self, party: PartyId, problem: ProtocolError) -> PeerLost:
        """A peer has broken the rules. It is cut off and lost, in one line; if that ends this party too, raise that."""
        text = printable(str(problem))
        if self.outlives is None:
            raise problem
        self.outlives(f"{text}; it is cut off")
        self.transport.cut_off(party, text)
        return PeerLost(text, party)

    def _received(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, wire.Envelope]:
        try:
            sender, frame = self.transport.receive(senders, deadline, self._largest)
        except PeerMisbehaved as problem:  # by the size of its frame
            raise self.bear(PartyId(problem.parties[0]), problem) from None
        return sender, self._open(sender, frame)

    def _open(self, sender: PartyId, frame: wire.Frame) -> wire.Envelope:
        try:
            envelope = wire.decode(frame, session=self.session)
        except DecodeError as problem:
            text = f"{party_names([sender])} sent a malformed message: {problem}"
            raise self.bear(sender, PeerMisbehaved(text, sender)) from None
        if isinstance(envelope.message, Failed):
            # The real sender always stands in front, and its words cannot steer a terminal.
            name = party_names([sender])
            text = f"{name}: {printable(envelope.message.reason).removeprefix(f'{name}: ')}"
            if self.outlives is None:
                raise PeerFailed(text)
            self.outlives(text)
            raise PeerLost(text, sender)
        if isinstance(envelope.message, Abort) and sender == SERVER:
            kind = Regrouped if isinstance(envelope.message, Regroup) else Aborted
            raise kind(printable(envelope.message.reason))
        if isinstance(envelope.message, LeaveOut) and sender == SERVER:
            raise LeftOut("the server has gone on without this client")
        return envelope
