"""Is the transcript what was recorded, whole, and what the clients saw? Everything else rests on this."""

from secure_kg.audit.checks.against_receipts import AgainstReceipts
from secure_kg.audit.replay.again import SessionAgain
from secure_kg.audit.view.findings import CheckResult, Evidence, Finding
from secure_kg.audit.view.read import AuditedRun, Observation, Recording
from secure_kg.audit.view.receipts import Receipts
from secure_kg.foundation.words import counted


class Integrity:
    """Unlike other checks it looks at whole recordings, at the run's summary and at the clients' receipts."""

    id = "transcript-integrity"
    question = "Was a transcript damaged, cut, changed or left out, or does it differ from what clients saw?"

    def __init__(self, run: AuditedRun, receipts: Receipts | None) -> None:
        """`receipts`: those of the clients, if the auditor has any."""
        self._run = run
        self._frames = 0
        self._damaged, self._unfinished, self._differs = Evidence(), Evidence(), Evidence()
        self._receipts = AgainstReceipts(run, receipts, self._differs)

    def observe(self, observation: Observation) -> None:
        self._frames += 1
        self._receipts.observe(observation)

    def end_session(self, recording: Recording, last: bool, again: SessionAgain | None = None) -> None:
        """After a whole pass over `recording`. `last`: the run has no later session.

        `again`: what the server's program makes of it; None: not known.
        """
        name = recording.path.name
        if recording.damage is not None:
            self._damaged.add(recording.damage)
        elif recording.seal is None:
            self._unfinished.add(f"{name} has no end")
        self._compare_with_summary(recording, last)
        self._receipts.end_session(recording, again.absent if again is not None else None)

    @property
    def unread(self) -> frozenset[int]:
        """Clients that have sent more in the last session than its record has."""
        return frozenset(self._receipts.unread)

    @property
    def untold(self) -> frozenset[int]:
        """Clients that have received more in the last session than its record has."""
        return frozenset(self._receipts.untold)

    def end_run(self) -> None:
        """After the last session that has a transcript."""
        self._receipts.end_run()

    def _compare_with_summary(self, recording: Recording, last: bool) -> None:
        said = self._run.summary.transcript if self._run.summary is not None else None
        if said is None:
            return
        if said.file != recording.path.name:
            if last:
                self._differs.add(f"summary.json speaks of {said.file}, which is not the last transcript")
            return
        seal = recording.seal
        if recording.damage is None and (seal is None or seal.link.hex() != said.last_link):
            self._differs.add(f"{recording.path.name} does not end as summary.json says it did")

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
        return [*found, *self._receipts.findings()]

    def result(self) -> CheckResult:
        compared, matched = self._receipts.compared, self._receipts.matched
        receipts = f", {counted(matched, 'frame')} compared with {counted(compared, 'receipt')}" if compared else ""
        looked = f"{counted(len(self._run.recordings), 'transcript')}, {counted(self._frames, 'frame')}{receipts}"
        return CheckResult(self.id, self.question, self._frames, looked, tuple(self.findings()))
