"""Is the transcript what was recorded, whole, and what the clients saw? Everything else rests on this."""

from pathlib import Path

from protocols.transport.tap import frame_hash
from secure_kg.audit.findings import CheckResult, Evidence, Finding
from secure_kg.audit.read import AuditedRun, Observation, Recording
from secure_kg.errors import UserError
from secure_kg.federation.recording import receipt_path
from secure_kg.federation.run_folder import read_json


class Integrity:
    """Unlike other checks it looks at whole recordings, at the run's summary and at the clients' receipts."""

    id = "transcript-integrity"
    question = "Was the transcript damaged, cut, reordered or changed, or does it differ from what clients saw?"

    def __init__(self, run: AuditedRun, receipts: Path | None) -> None:
        """`receipts`: the folder with the clients' folders, if the auditor has them."""
        self._run, self._receipts = run, receipts
        self._hashes: dict[tuple[int, str], list[str]] = {}
        self._frames = self._compared = self._matched = 0
        self._damaged, self._unfinished, self._differs = Evidence(), Evidence(), Evidence()
        self._missing, self._unread = Evidence(), Evidence()

    def observe(self, observation: Observation) -> None:
        self._frames += 1
        self._hashes.setdefault((observation.peer, observation.direction), []).append(frame_hash(observation.frame))

    def end_session(self, recording: Recording, last: bool) -> None:
        """After a whole pass over `recording`. `last`: the run has no later session."""
        name = recording.path.name
        if recording.damage is not None:
            self._damaged.add(recording.damage)
        elif recording.seal is None:
            self._unfinished.add(f"{name} has no end")
        self._compare_with_summary(recording, last)
        self._compare_with_receipts(recording)
        self._hashes = {}

    def _compare_with_summary(self, recording: Recording, last: bool) -> None:
        said = (self._run.summary or {}).get("transcript")
        if not isinstance(said, dict) or said.get("file") != recording.path.name:
            if last and self._run.summary is not None and isinstance(said, dict):
                self._differs.add(f"summary.json speaks of {said.get('file')}, which is not the last transcript")
            return
        seal = recording.seal
        if recording.damage is None and (seal is None or seal.link.hex() != said.get("last_link")):
            self._differs.add(f"{recording.path.name} does not end as summary.json says it did")

    def _compare_with_receipts(self, recording: Recording) -> None:
        session = recording.session
        if self._receipts is None or session is None:
            return
        for number in range(1, self._run.clients + 1):
            path = receipt_path(self._receipts / str(number), session)
            if not path.exists():
                self._missing.add(f"client {number} has left no receipt of {recording.path.name}")
                continue
            try:
                receipt = read_json(path)
                sent, got = ([str(one) for one in receipt[way]] for way in ("sent", "received"))
                final = receipt["final"] is True
            except (UserError, KeyError, TypeError):
                self._missing.add(f"{path.name} of client {number} cannot be read")
                continue
            self._compared += 1
            name = recording.path.name
            received, told = self._hashes.get((number, "received"), []), self._hashes.get((number, "sent"), [])
            self._compare_frames(name, number, "sent", sent, received)
            self._compare_frames(name, number, "received", got, told)
            # A client can have got nothing that the server has not sent. What it sent may not have been read any more.
            if len(got) > len(told):
                self._differs.add(f"{name} lacks {len(got) - len(told)} frames that client {number} received")
            if len(sent) > len(received):
                self._unread.add(f"{name} lacks {len(sent) - len(received)} frames that client {number} sent")
            # A receipt that is not final is from the last checkpoint: what came later is not in it.
            if final and len(received) > len(sent):
                self._differs.add(f"{name} has {len(received) - len(sent)} frames that client {number} did not send")
            if final and len(told) > len(got):
                self._differs.add(f"{name} has {len(told) - len(got)} frames that client {number} did not receive")

    def _compare_frames(self, name: str, number: int, what: str, theirs: list[str], ours: list[str]) -> None:
        common = min(len(theirs), len(ours))
        self._matched += common
        if theirs[:common] != ours[:common]:
            first = next(index for index in range(common) if theirs[index] != ours[index])
            self._differs.add(f"{name}: frame {first + 1} that client {number} {what} is another one")

    def findings(self) -> list[Finding]:
        found = []
        if self._damaged:
            found.append(
                Finding(
                    "transcript-damaged",
                    "high",
                    "The transcript is damaged: it is not what was recorded",
                    self._damaged.told(),
                    "Every record is chained to the one before by a hash. The chain is broken here, so something was "
                    "changed, cut out, added or put elsewhere. What follows in this report rests on the records "
                    "before that place.",
                )
            )
        if self._differs:
            found.append(
                Finding(
                    "transcript-differs",
                    "high",
                    "The transcript is not the one of this run",
                    self._differs.told(),
                    "The clients' receipts or the run's own summary speak of other messages than the transcript has. "
                    "A server that shows its auditor a transcript made for the purpose is found out here.",
                )
            )
        if self._unfinished:
            complete = self._run.summary is not None
            found.append(
                Finding(
                    "transcript-unfinished",
                    "high" if complete and self._differs else "medium",
                    "A transcript has no end",
                    self._unfinished.told(),
                    "The job was ended by force while it was recorded, or the end was cut off. What was recorded "
                    "until then is sound; what came later is not known.",
                )
            )
        if self._unread:
            found.append(
                Finding(
                    "messages-not-recorded",
                    "medium",
                    "Clients sent messages that are not in the transcript",
                    self._unread.told(),
                    "The server may have stopped listening to a client that it had left out, or ended before it read "
                    "them; or they were taken out of the record.",
                )
            )
        if self._missing and self._receipts is not None:
            found.append(
                Finding(
                    "receipts-missing",
                    "info",
                    "Some clients have left no receipt",
                    self._missing.told(),
                    "Without its receipt, a client's messages are taken on the server's word.",
                )
            )
        if self._receipts is None or not self._compared:
            found.append(
                Finding(
                    "no-receipts",
                    "info",
                    "The transcript was not compared with clients' receipts",
                    (),
                    "Under --transcript clients keep hashes of what they sent and received (clients/K/receipt-S.json). "
                    "With them at hand, an auditor need not trust the server's record.",
                )
            )
        return found

    def result(self) -> CheckResult:
        receipts = f", {self._matched:,} frames compared with {self._compared} receipts" if self._compared else ""
        looked = f"{len(self._run.recordings)} transcripts, {self._frames:,} frames{receipts}"
        return CheckResult(self.id, self.question, self._frames, looked, tuple(self.findings()))
