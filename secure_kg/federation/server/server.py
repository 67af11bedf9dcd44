"""The server of a federation: FedR, algorithm 1, "Server executes".

It sees what the chosen protocols reveal to it and nothing else: it opens no triple file, imports no model, under secure
aggregation reads only sums, of rows as well as of metrics, and under secret aggregation not even those. It may decide
when to stop; what a client sends is decided by the client.

A client that drops out in any step, because it is slow, stopped or dead, costs that client only: the sum is that of
the others, the federation goes on, and a client that comes back is taken in again. A sum that too few are left for is
abandoned and the shared rows stay as they are.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Final

from protocols.alignment.interface import Union
from protocols.alignment.psu import names as union_names
from protocols.foundation.errors import ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.session.control import Regroup
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.interface import Collected
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.totals import SumTotal
from protocols.transport.base import Transport
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.early_stopping import EarlyStopping
from secure_kg.federation.plan.messages import (
    Aligned,
    CountHolders,
    Done,
    Evaluate,
    Finish,
    Goodbye,
    Judged,
    Ready,
    SaveCheckpoint,
    Saved,
    TrainRound,
    Verdict,
)
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import SETUP_SECONDS, RunConfig
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.greeting import greet
from secure_kg.federation.server.ledger import Ledger
from secure_kg.federation.server.pacing import Turns
from secure_kg.federation.server.regrouping import Regrouping, RegroupNeeded, Step
from secure_kg.federation.server.round_lines import RoundLines
from secure_kg.federation.server.session_record import SessionRecord
from secure_kg.federation.server.set_up import check_feasible, outcome, setting
from secure_kg.federation.server.shared_table import SharedTable
from secure_kg.federation.server.shared_tables import SharedTables
from secure_kg.federation.server.standing_count import StandingCount
from secure_kg.federation.server.summing import RoundSum, Summing, sums_of_blocks
from secure_kg.foundation.errors import UserError
from secure_kg.runs import checkpoint
from secure_kg.runs.alignment_files import AlignedRun, load_aligned, save_aligned
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.records.checkpoints import ServerCheckpoint
from secure_kg.runs.records.record import Figures
from secure_kg.runs.run_folder import RunFolder, write_json

Report = Callable[[str], None]

_SETUP_GRACE: Final = 60.0
"""Starting up (imports, reading or downloading data) varies more between clients than a round does."""


class FederationServer:
    """One run, from greeting to results. `run()` is the whole life of the object."""

    def __init__(
        self,
        config: RunConfig,
        transport: Transport,
        folder: RunFolder,
        report: Report,
        turns: Turns | None = None,
        regrouping: Regrouping | None = None,
    ) -> None:
        """`turns`: when it may work (`pacing`); None: always. `regrouping`: None if its transport says who comes."""
        self._config, self._transport, self._folder, self._report = config, transport, folder, report
        self._turns = turns if turns is not None else Turns()
        self._plan = RunPlan(config, len(transport.peers))
        self._clients = self._plan.clients
        self._stopping = EarlyStopping(config.patience)
        self._keys: ServerKeys | None = None
        self._record = SessionRecord(config, folder)
        self._best_with = set(self._clients)
        """Clients that were told to keep the best copy, if there is one: test results are of that copy."""
        self._idle: set[PartyId] = set()
        """Clients that were asked to train and have not, since their last evaluation: they would refuse another."""
        self._standing, self._begun = StandingCount(), list[RoundSum]()
        self._people = Gathering(self._plan, transport, report, regrouping)
        self._people.on_dropout = self._forget
        self._tables = SharedTables(self._people, None, None)
        self._ledger = Ledger(transport, self._clients, self._people.attendance)

    def run(self) -> ServerOutcome:
        """The whole run. If it cannot be finished, the clients are told why before the error leaves."""
        try:
            return self._run()
        except RegroupNeeded as problem:
            self._people.end(str(problem), Regroup)
            raise
        except (UserError, ProtocolError) as problem:
            self._people.end_for(problem, self._folder.path)
            raise

    @property
    def complete(self) -> bool:
        """Whether every client is there at the end."""
        return self._people.attendance.complete

    def _run(self) -> ServerOutcome:
        check_feasible(self._plan)
        last, aligned = self._last_session()
        patience = Patience(max(SETUP_SECONDS, self._config.deadline), _SETUP_GRACE)
        greet(self._people, self._record, self._config, (last, aligned), patience)
        self._people.gather(Ready, "start", patience)
        self._people.regrouping.begin(self._people.present, last.round)
        with self._turn("set-up", SETUP):
            self._set_up(last, aligned, patience)
        self._folder.begin()
        done, self._lines = last.round, RoundLines(self._report, self._config.rounds, self._ledger, last.round)
        while not self._over(done):
            self._regroup(done)
            done += 1
            with self._turn("round", RoundId(done)):
                self._round(RoundId(done))
            if self._plan.evaluation_due(done) or self._checkpoint_due(done):
                with self._turn("evaluation", RoundId(done)):
                    self._look_back(RoundId(done))
            self._lines.round(done)
        self._regroup(done)
        with self._turn("results", RoundId(done)):
            return self._finish(RoundId(done))

    def _regroup(self, done: int) -> None:
        """End the session if clients wait for the next one and nothing speaks against it (`regrouping`)."""
        if (step := self._next_step(done)) is Step.CHECKPOINT_FIRST:
            self._people.round = RoundId(done)
            self._checkpoint(RoundId(done))
        if step is not Step.GO_ON:
            raise self._people.regrouping.end()

    def _next_step(self, done: int) -> Step:
        return self._people.regrouping.after_round(done, self._people.present)

    @property
    def _table(self) -> SharedTable | None:  # of the rows that stand under names
        return self._tables.aligned

    def _turn(self, work: str, round_id: RoundId) -> AbstractContextManager[None]:
        return self._turns.turn(work, round_id, self._ledger.figures)

    def _last_session(self) -> tuple[checkpoint.Complete, AlignedRun | None]:
        """What a resumed run goes on from."""
        last, aligned = checkpoint.last_complete(self._folder.path), load_aligned(self._folder.server)
        if last.round and self._plan.aligned_block is not None and aligned is None:
            raise UserError(f"{self._folder.server}: its alignment.json is missing; without it no row has its place")
        return last, aligned

    def _set_up(self, last: checkpoint.Complete, aligned: AlignedRun | None, patience: Patience) -> None:
        people = self._people
        if self._plan.needs_keys:
            self._keys = twins.server_keys(self._config, self._clients, people.session.with_patience(patience))
        self._sums = Summing(self._plan, self._keys, people, self._ledger, self._report, self._standing)
        union = self._align(aligned, patience) if self._plan.aligned_block is not None else None
        self._tables = SharedTables(people, self._plan, union)
        if last.round:
            self._restore(last.round)
        self._report(setting(self._plan, self._table))
        self._ledger.setup_is_over()

    def _forget(self, parties: Collection[PartyId]) -> None:
        """Note that dropouts may have missed what was sent to them, and training too."""
        self._tables.forget(parties)
        self._idle.update(parties)
        self._standing.dropout(self._people.round)

    def _over(self, done: int) -> bool:
        return done >= self._config.rounds or self._stopping.exhausted

    def _align(self, aligned: AlignedRun | None, patience: Patience) -> Union:
        """Line 1-2: the size of the union. The first rows are the clients' own affair."""
        union = aligned.union if aligned is not None else self._aligned_anew(patience)
        there = self._people.gather(Aligned, "alignment", patience)
        if aligned is None:
            save_aligned(self._folder.server, union, there)
        self._people.regrouping.aligned_with(there if aligned is None else aligned.clients)
        return union

    def _aligned_anew(self, patience: Patience) -> Union:
        session, keys, clients = self._people.session.with_patience(patience), self._keys, self._clients
        try:
            union = self._unite(session)
            if self._config.reveal_names and keys is not None:
                names = union_names.learn(session, keys.vectors, clients, union)
                write_json(self._folder.server / "names.json", {"names": names})
        except SumAbandoned as problem:
            raise UserError(f"the names could not be aligned: {problem}") from None
        return union

    def _unite(self, session: ServerSession) -> Union:
        return twins.align_as_server(self._config, session, self._keys, self._clients)

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        """Send those of `parties` that are present what they lack of the shared blocks."""
        self._tables.bring(parties, round_id)

    def _round(self, round_id: RoundId) -> None:
        """Line 4-8."""
        people = self._people
        people.round, chosen = round_id, self._plan.participants(round_id)
        self._assemble()
        with self._transport.corked():  # news, the word to train and everybody's keys leave together
            # Sums that nobody but clients can read are kept for a while only: all clients get them as they come.
            self._bring(self._clients if self._tables.any_sealed else chosen, round_id)
            self._idle.update(chosen)
            self._begun = sums_of_blocks(self._plan, round_id, self._tables.unions, self._standing, people.present)
            with self._transport.phase(round_id, "train"):
                if any(one.counting is not None for one in self._begun):
                    self._people.tell(chosen, CountHolders())
                self._people.tell(chosen, TrainRound())
            asked = people.present & set(chosen)
            if self._plan.blocks:
                self._tables.add(round_id, self._add_up_blocks(round_id))
        self._idle -= asked & people.present

    def _look_back(self, round_id: RoundId) -> None:
        if self._plan.evaluation_due(round_id):
            self._evaluate(round_id)
        if self._checkpoint_due(round_id):
            self._checkpoint(round_id)

    def _checkpoint_due(self, done: int) -> bool:
        return self._plan.checkpoint_due(done, over=self._over(done))

    def _assemble(self) -> None:
        self._people.assemble(self._folder.path)

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        """The sums of a round, by purpose, as far as they were not abandoned."""
        # Without epochs: how quick such a round was must not become what a round is expected to take.
        patience = None if self._plan.trains(round_id) else self._people.fresh_patience()
        return self._sums.add_up(self._begun, patience)

    def _add_up_results(self, round_id: RoundId, part: str, among: Collection[PartyId]) -> twins.Result | None:
        """The sum of results of the clients `among`; None if it had to be abandoned."""
        task = RoundSum(self._plan.results(round_id, part), None, self._config.aggregation)
        return self._sums.add_up([task], among=among).get(part)

    def _evaluate(self, round_id: RoundId) -> None:
        self._assemble()
        self._bring(self._clients, round_id)
        asked = self._people.present - self._idle
        if self._people.present & self._idle:
            self._people.regrouping.unsteady()
        with self._transport.phase(round_id, "evaluate"):
            self._people.tell(asked, Evaluate())
        result = self._add_up_results(round_id, "valid", asked)
        figures: Figures = {}
        match result:
            case None:
                return
            case Collected():
                metrics, clients = self._plan.metrics.of(result.total), len(result.contributors)
                improved = self._stopping.judge(round_id, metrics.headline)
                figures = metrics.evaluation()
                told = f"loss {metrics.loss:8.4f}  valid {metrics.headline_name} {metrics.headline:.4f}"
            case SumTotal():
                improved, clients = self._judged_by_clients(round_id, result), len(result.contributors)
                told = "results are for clients to read"
        with self._transport.phase(round_id, "verdict"):
            self._people.tell(self._clients, Verdict(improved))
        if improved:
            self._best_with = set(self._people.present)
        self._folder.append_metrics(self._ledger.evaluation(round_id, figures, clients))
        self._lines.evaluated(round_id, told, best=improved)

    def _judged_by_clients(self, round_id: RoundId, result: SumTotal) -> bool:
        """Whether the evaluation is the best so far, from the client that has seen most evaluations."""
        self._send_total(round_id, result)
        with self._transport.phase(round_id, "verdict"):
            judgements = self._people.gather(Judged, "verdict")
        if not judgements:
            return False
        wisest = max(judgements, key=lambda party: (judgements[party].evaluations, -party))
        improved = judgements[wisest].improved
        self._stopping.note(round_id, improved)
        return improved

    def _send_total(self, round_id: RoundId, result: SumTotal) -> None:
        with self._transport.phase(round_id, result.purpose):
            self._people.tell([PartyId(party) for party in result.contributors], result)

    def _checkpoint(self, round_id: RoundId) -> None:
        if self._tables.any_sealed:
            self._bring(self._clients, round_id)  # no later session could read what they lack
        with self._transport.phase(round_id, "checkpoint"):
            self._people.tell(self._clients, SaveCheckpoint())
            best_with = sorted(int(party) for party in self._best_with)
            record = ServerCheckpoint(*self._stopping.so_far, best_with, self._ledger.record())
            checkpoint.save_part(self._folder.server, round_id, self._tables.state(), record.to_json())
            saved = self._people.gather(Saved, "checkpoint")
        checkpoint.mark_complete(self._folder.path, round_id, saved)
        self._people.regrouping.begin(self._people.present, int(round_id))

    def _restore(self, done: int) -> None:
        arrays, read = checkpoint.load_part(self._folder.server, done)
        record = ServerCheckpoint.from_json(read, checkpoint.part_path(self._folder.server, done))
        saved_by = checkpoint.last_complete(self._folder.path).saved_by
        self._tables.restore(arrays, done, saved_by)
        self._stopping = EarlyStopping(self._config.patience, *record.so_far)
        kept = self._clients if record.best_with is None else map(PartyId, record.best_with)
        self._best_with = set(kept) & {PartyId(party) for party in saved_by}
        self._ledger.restore(record.ledger, done)
        self._folder.forget_metrics_after(done)
        self._report(f"continuing after round {done}")

    def _finish(self, done: RoundId) -> ServerOutcome:
        last = self._plan.results_round(done)
        self._people.round = last
        self._assemble()
        self._bring(self._clients, last)
        best = self._stopping.best_round
        asked = self._people.present & self._best_with if best else set(self._people.present)
        asked &= self._folder.tested() or asked  # clients give results of one run over one set of clients
        if not self._plan.tells_test_results:
            asked = set()
        with self._transport.phase(last, "finish"):
            self._people.tell(asked, Finish(best, wanted=True))
            self._people.tell(self._people.present - asked, Finish(best, wanted=False))
        result = self._add_up_results(last, "test", asked) if self._plan.tells_test_results else None
        if result is None and self._plan.tells_test_results and not self._sums.refused:
            raise UserError(f"no test result: {self._ledger.last_reason}")
        if result is not None:
            self._folder.note_tested(result.contributors)
        if isinstance(result, SumTotal):
            self._send_total(last, result)
        with self._transport.phase(last, "finish"):
            self._people.gather(Done, "results")
            self._people.dismiss(Goodbye(self.complete), last)
        costs = {**self._ledger.costs(), "transcript": self._record.seal()}
        return outcome(done, self._stopping, self._plan.metrics, result, self._table, **costs)
