"""The transcripts of a run against the receipts of its clients: what the server shows must be what they saw."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from protocols.foundation.identifiers import SessionId
from protocols.session.conversation import Abort, Back, LeaveOut
from protocols.session.receipts import KeptReceipt
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import AuditedRun, Observation, Recording
from secure_kg.audit.view.receipts import Receipts
from secure_kg.federation.plan.messages import Done, Goodbye, Judged, LentTable, Saved
from secure_kg.federation.plan.run_plan import RESULTS
from secure_kg.foundation.words import counted
from secure_kg.runs.recording import session_name

_GREETING = 1
"""`Hello` one way and `Welcome` the other."""
_MOST_WITHOUT_MARK = 1
"""Requests that a client was at work on when it was killed: it makes a mark before it takes the next one."""


class _Session:
    """What one transcript holds, as far as receipts can speak of it."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[int, str], list[str]] = {}
        self._requests: dict[int, list[tuple[int, str] | None]] = {}
        """By client, for each frame that it sent: which request it answers."""
        self.told_before: dict[int, list[int]] = {}
        """By client, for each frame that it sent: how many frames it had been sent before."""
        self._left_out: set[int] = set()
        self._ended_early = False
        self._goodbyes: list[bool] = []

    def observe(self, observation: Observation) -> None:
        message, peer = observation.message, observation.peer
        self.hashes.setdefault((peer, observation.direction), []).append(frame_hash(observation.frame))
        if observation.direction == "received":
            self._requests.setdefault(peer, []).append(_request(observation))
            self.told_before.setdefault(peer, []).append(len(self.hashes.get((peer, "sent"), [])))
        self._ended_early = isinstance(message, Abort) and observation.direction == "sent"
        match message:
            case Back() if observation.direction == "received":
                self._left_out.discard(peer)
            case LeaveOut() if observation.direction == "sent":
                self._left_out.add(peer)
            case Goodbye(complete=complete) if observation.direction == "sent":
                self._goodbyes.append(complete)

    def answered_after(self, client: int, frames: int) -> int:
        """To how many requests a client has answered after so many frames."""
        return len({*self._requests.get(client, [])[frames:]} - {None})

    def why_unread(self, client: int, absent: Collection[int] | None) -> str:
        """Why an honest server would not have read the last messages of a client; empty if it would have.

        `absent`: whom the server's program has lost by the end; None: not known.
        """
        if client in self._left_out:
            return "the server had left the client out"
        if self._ended_early:
            return "the server ended the session early, and said so"
        # One that could not be told that it was left out, because it took nothing more.
        if not all(self._goodbyes) and (absent is None or client in absent):
            return "a client was missing at the end, as the goodbye says"
        return ""

    @property
    def over(self) -> bool:
        return bool(self._goodbyes)


class AgainstReceipts:
    """Gathers what differs; `Integrity` tells it."""

    def __init__(self, run: AuditedRun, receipts: Receipts | None, differs: Evidence) -> None:
        """`receipts`: None if the auditor has none. `differs` gets what no honest server could have caused."""
        self._run, self._receipts, self._differs = run, receipts, differs
        self._session = _Session()
        self._recorded: set[SessionId] = set()
        self.compared = self.matched = 0
        self._unread, self._cut_off = Evidence(), Evidence()
        self._absent, self._unfinished, self._cut = Evidence(), Evidence(), Evidence()
        self._missing, self._greeted = Evidence(), Evidence()
        self.unread: set[int] = set()
        """Of the last session: clients that have sent more than the record has."""
        self.untold: set[int] = set()
        """The same of clients that have received more."""

    def observe(self, observation: Observation) -> None:
        self._session.observe(observation)

    def end_session(self, recording: Recording, absent: Collection[int] | None = None) -> None:
        """After a whole pass over `recording`. `absent`: whom the server had lost by its end; None: not known."""
        session, self._session, self.unread, self.untold = self._session, _Session(), set(), set()
        if self._receipts is None:
            return
        of_it = [one for one in self._receipts.sound if _is_of(one, recording)]
        self._recorded |= {one.head.session for one in of_it}
        for number in range(1, self._run.clients + 1):
            if not any(one.head.client == number for one in of_it):
                self._absent.add(f"client {number} has left no sound receipt of {recording.path.name}")
        # A server that is killed may have sent one frame that it had not yet recorded: one, and not one to each client.
        lacking = [len(one.received) - len(session.hashes.get((one.head.client, "sent"), [])) for one in of_it]
        killed = recording.seal is None and recording.damage is None and sum(max(0, count) for count in lacking) == 1
        for receipt in of_it:
            self._compare(recording, session, receipt, killed, absent)

    def end_run(self) -> None:
        """After the last transcript: what is left is of sessions that the server does not show."""
        for receipt in self._receipts.sound if self._receipts is not None else ():
            head = receipt.head
            if head.session in self._recorded:
                continue
            sent, received = len(receipt.sent), len(receipt.received)
            frames = f"sent {counted(sent, 'frame')}, received {received:,}"
            told = f"session {session_name(head.session)}: client {head.client} {frames}"
            if head.settings != self._run.config.digest():
                told += ", under other settings than those of config.toml"
            (self._missing if max(sent, received) > _GREETING else self._greeted).add(told)

    def _compare(
        self,
        recording: Recording,
        session: _Session,
        receipt: KeptReceipt,
        killed: bool,
        absent: Collection[int] | None,
    ) -> None:
        name, number = recording.path.name, receipt.head.client
        sent, got = receipt.sent, receipt.received
        received = session.hashes.get((number, "received"), [])
        told = session.hashes.get((number, "sent"), [])
        self.compared += 1
        self._compare_frames(f"{name}: frame {{}} that client {number} sent is another one", sent, received)
        self._compare_frames(f"{name}: frame {{}} that client {number} received is another one", got, told)
        self._compare_order(name, receipt, session.told_before.get(number, []))
        # A client can have got nothing that the server has not sent. What it sent may not have been read any more.
        if (count := len(got) - len(told)) > 0:
            self.untold.add(number)
            line = f"{name} lacks {counted(count, 'frame')} that client {number} received"
            if killed:
                self._cut_off.add(f"{line}: the transcript has no end, so the server was ended by force")
            else:
                self._differs.add(line)
        if (count := len(sent) - len(received)) > 0:
            self.unread.add(number)
            line = f"{name} lacks {counted(count, 'frame')} that client {number} sent"
            self._not_read(line, recording, session, session.why_unread(number, absent))
        if not receipt.final:
            self._end_early(name, session, receipt, len(told))
            return
        if (count := len(received) - len(sent)) > 0:
            self._differs.add(f"{name} has {counted(count, 'frame')} that client {number} did not send")
        if (count := len(told) - len(got)) > 0:
            self._differs.add(f"{name} has {counted(count, 'frame')} that client {number} did not receive")

    def _end_early(self, name: str, session: _Session, receipt: KeptReceipt, told: int) -> None:
        """`told`: how many frames the transcript has to the client."""
        number, got = receipt.head.client, len(receipt.received)
        line = f"client {number}: ends after {counted(got, 'frame')} received"
        answered = session.answered_after(number, len(receipt.sent))
        if answered > _MOST_WITHOUT_MARK:
            self._cut.add(f"{line}, and in {name} it has answered {counted(answered, 'request')} after that")
        else:
            self._unfinished.add(line + (f", and {name} has {told} to it" if told > got else ""))

    def _not_read(self, line: str, recording: Recording, session: _Session, why: str) -> None:
        if recording.seal is None and recording.damage is None:
            self._cut_off.add(f"{line}: the transcript has no end, so the server was ended by force")
        elif why:
            self._cut_off.add(f"{line}: {why}")
        elif not session.over:
            self._unread.add(f"{line}: the session broke off, and nobody was told why")
        else:
            self._differs.add(line)

    def _compare_frames(self, line: str, theirs: Sequence[str], ours: Sequence[str]) -> None:
        common = min(len(theirs), len(ours))
        self.matched += common
        first = next((index for index in range(common) if theirs[index] != ours[index]), None)
        if first is not None:
            self._differs.add(line.format(first + 1))

    def _compare_order(self, name: str, receipt: KeptReceipt, told_before: Sequence[int]) -> None:
        """What a client has sent after a mark, it has sent after all that it had received by then."""
        for before, mark in pairwise(receipt.marks):
            for index in range(before.sent, min(mark.sent, len(told_before))):
                if told_before[index] < before.received:
                    client = receipt.head.client
                    self._differs.add(
                        f"{name}: frame {index + 1} that client {client} sent stands before frame {before.received} to "
                        f"it, and was sent after that had come"
                    )
                    return

    def findings(self) -> list[Finding]:
        """Those of the comparison, and those of the receipts themselves."""
        found = [*self._of_sessions(), *self._of_receipts()]
        if self._unread or self._cut_off:
            found.append(
                Finding(
                    "messages-not-recorded",
                    "medium" if self._unread else "low",
                    "Messages of clients are not in the transcript",
                    (*self._unread.told(), *self._cut_off.told()),
                    "The last messages before a session broke off, or before a client was left out, may never have "
                    "been read. The evidence says which reason the transcript gives; a server could have cut its "
                    "record there.",
                )
            )
        if self._cut:
            found.append(
                Finding(
                    "receipt-cut",
                    "medium",
                    "Receipts end before requests that their clients have answered",
                    self._cut.told(),
                    "A client makes a mark after every request, before it takes the next one. Marks are missing here: "
                    "the ends of these receipts were cut off, or their machines lost power. What the server's record "
                    "says of these clients afterwards is taken on its word.",
                )
            )
        if self._unfinished:
            found.append(
                Finding(
                    "receipt-unfinished",
                    "low",
                    "Receipts end before their session",
                    self._unfinished.told(),
                    "These clients stopped, were left out or were killed; or the ends of their receipts were cut off. "
                    "What the server's record says of them afterwards is taken on its word.",
                )
            )
        return found

    def _of_sessions(self) -> list[Finding]:
        found = []
        if self._missing:
            found.append(
                Finding(
                    "session-missing",
                    "high",
                    "Clients took part in a session of which there is no transcript",
                    self._missing.told(),
                    "Every start of a job is a session with a transcript of its own. What the server saw in this one "
                    "is not known: it was taken away, or the receipts are of another run.",
                )
            )
        if self._greeted:
            found.append(
                Finding(
                    "session-not-recorded",
                    "info",
                    "Clients were greeted in a session of which there is no transcript",
                    self._greeted.told(),
                    "Nothing but greetings passed in it, as far as these receipts go.",
                )
            )
        if self._absent or (self._receipts is not None and self._receipts.empty):
            empty = self._receipts.empty.told() if self._receipts is not None else ()
            found.append(
                Finding(
                    "receipts-missing",
                    "info",
                    "Some clients have left no receipt",
                    (*self._absent.told(), *empty),
                    "Without its receipt, a client's messages are taken on the server's word.",
                )
            )
        if not self.compared:
            found.append(
                Finding(
                    "no-receipts",
                    "info",
                    "The transcript was not compared with clients' receipts",
                    (),
                    "Under --transcript clients keep hashes of what they sent and received "
                    "(clients/K/receipt-S.jsonl). With them at hand, an auditor need not trust the server's record.",
                )
            )
        return found

    def _of_receipts(self) -> list[Finding]:
        found, receipts = [], self._receipts or Receipts()
        if receipts.damaged:
            found.append(
                Finding(
                    "receipt-damaged",
                    "high",
                    "Receipts are damaged: they are not what clients wrote",
                    receipts.damaged.told(),
                    "Every line is chained to the one before by a hash. The chain is broken here, or this is no "
                    "receipt of this run's clients, so it was changed after it was written. It says nothing about "
                    "the server. Ask the client for its receipt again.",
                )
            )
        if receipts.forged:
            found.append(
                Finding(
                    "receipt-forged",
                    "high",
                    "Receipts are not signed by their clients",
                    receipts.forged.told(),
                    "Under --adversary active clients sign every mark of their receipts with their pinned identity. "
                    "Somebody else has written these, or changed them. They say nothing about the server.",
                )
            )
        if receipts.unverified:
            found.append(
                Finding(
                    "receipts-not-verified",
                    "medium",
                    "Receipts are signed, and nobody has checked by whom",
                    receipts.unverified.told()[:4],
                    "Without the clients' key directory (--keys directory.toml) an auditor cannot tell whose receipts "
                    "these are.",
                )
            )
        return found


def _request(observation: Observation) -> tuple[int, str] | None:
    """By round and kind: the request that a client answers with this; None if that cannot be told."""
    match observation.message:
        case Saved():
            kind = "checkpoint"
        case LentTable():
            kind = "loan"
        case Judged():
            kind = "valid"
        case Done():
            kind = "test"
        case _ if observation.purpose in RESULTS:
            kind = observation.purpose
        case _ if observation.purpose:
            kind = "training" if observation.round else "set-up"
        case _:
            return None
    return observation.round, kind


def _is_of(receipt: KeptReceipt, recording: Recording) -> bool:
    """A transcript that ends before its first `Welcome` tells its session by its name only."""
    if recording.session is not None:
        return receipt.head.session == recording.session
    return recording.path.stem == f"transcript-{session_name(receipt.head.session)}"
