"""A client of a federation: FedR, algorithm 1, "Client executes".

The client knows its own graph, settings and number. It answers the server's requests in the order a round allows,
computes itself who takes part in a round (`RunPlan`), and sends nothing but contributions to sums and acknowledgements.
Rows that too few clients hold it keeps to itself.

A client that misses a deadline is excluded: it says that it is back (`Back`) and waits for the next round it is asked
for. Its rows of the missed round are used by nobody, and their masks by no other sum.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import LeftOut, PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import NO_SESSION, SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon, Back, Conversation, Failed
from protocols.session.credentials import Credentials
from protocols.session.receipts import Head
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.openings import Opening, Openings
from protocols.sums.totals import SumTotal
from protocols.transport.base import Transport
from secure_kg.federation.client import client_files, shared_blocks
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.client.members import NUMBERS_ALONE, Members
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.result_exchange import ResultExchange
from secure_kg.federation.client.states import States
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import (
    CountHolders,
    Done,
    Evaluate,
    Finish,
    Goodbye,
    Hello,
    LendTable,
    LentTable,
    PackedRows,
    Ready,
    SaveCheckpoint,
    Saved,
    SharedBlock,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.run_plan import RESULTS, RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import SettingsError
from secure_kg.learning.learner import Learner
from secure_kg.privacy.release_record import ReleaseRecord, terms_of
from secure_kg.runs.client_folder import OpeningsFile, alone, read_openings, run_id, state_key
from secure_kg.runs.recording import ReceiptKeeper

_SECONDS_TO_SAY_SO: Final = 10.0
MOST_IN_VAIN: Final = 10
"""Sums of rows abandoned one after the other, beside those that a resumed job repeats. An honest server ends sooner."""


class FederationClient:
    """One run from a client's side. `greet()` opens the session, `run()` lasts until the results are written."""

    def __init__(self, config: RunConfig, transport: Transport, clients: int) -> None:
        """`clients`: how many there are, from this client's own knowledge of the federation."""
        self._transport = transport
        self._plan = RunPlan(config, clients)
        self._count = OwnCount(self._plan, transport.party)
        self._in_vain, self._members, self._computed = 0, NUMBERS_ALONE, ""
        self._conversation = Conversation(transport, NO_SESSION)
        self._done = self._counting = SETUP
        self._welcome: Welcome | None = None
        self._receipt: ReceiptKeeper | None = None
        if config.transcript:
            self._receipt = ReceiptKeeper()
            transport.attach(self._receipt)

    @property
    def keys(self) -> ClientKeys | None:
        """Of the session under way."""
        return self._context.keys

    @property
    def rounds_done(self) -> int:
        """The last round that this client has begun, for whoever shows how far it is."""
        return min(int(self._done), self._plan.settings.rounds)  # results are a step of their own

    @property
    def seconds(self) -> Mapping[str, float]:
        """By phase, so far."""
        context: ClientContext | None = getattr(self, "_context", None)
        return {} if context is None else dict(context.watch.seconds)

    @property
    def means(self) -> dict[str, Rows]:
        """By shared block: the means of this client's rows that it was sent last."""
        return self._blocks.means

    def say_failed(self, reason: str) -> None:
        """Tell the server that this client cannot go on. The reason must name neither contents nor files."""
        with contextlib.suppress(ProtocolError):  # a server that takes no messages cannot be told
            self._conversation.send(SERVER, Failed(reason[:MAX_REASON]), self._done)
        self._transport.flush(Deadline.after(_SECONDS_TO_SAY_SO))  # a server that no longer listens must not hold us
        if self._receipt is not None:
            self._receipt.stop(self._done)

    def greet(self) -> str:
        """Join the session; returns the name the server gave the run."""
        config = self._plan.settings
        self._conversation.send(SERVER, Hello(config.digest()), SETUP)
        welcome = self._conversation.receive(SERVER, Welcome, SETUP, Deadline.after(self._plan.client_seconds))
        self._conversation = Conversation(self._transport, SessionId(welcome.session), welcome.binding)
        if welcome.digest != config.digest():
            raise SettingsError("the server was started with other settings than this client")
        if welcome.rounds_done and self._plan.aligned_block is not None and not welcome.aligned:
            raise PeerMisbehaved("the server wants a run that has trained already to be aligned anew")
        self._done, self._welcome = RoundId(welcome.rounds_done), welcome
        return welcome.run_name

    def run(
        self,
        learner: Learner,
        folder: Path,
        credentials: Credentials | None = None,
        record: Path | None = None,
        members: Members = NUMBERS_ALONE,
        computed: str = "",
    ) -> bool:
        """Take part until the results are written; `folder` is this client's own. Whether all clients are there.

        `credentials`: its signing key and the others' pinned identities, against an active server. `record`: where it
        keeps which sums it has helped to open, if that is to hold for more than this run. `members`: who they all are,
        if it knows that of more than those in its credentials. `computed`: on what it computes; where that is another
        machine than before, sums are not opened again.
        """
        self._computed = computed
        if self._welcome is None:
            raise RuntimeError("greet() comes first")
        self._members = members.or_of(credentials)
        record = record if record is not None else folder
        with alone(folder, record), OpeningsFile(record) as self._opened:
            return self._with_receipt(learner, folder, credentials, record, self._welcome)

    def _with_receipt(
        self, learner: Learner, folder: Path, credentials: Credentials | None, record: Path, welcome: Welcome
    ) -> bool:
        if self._receipt is None:
            return self._take_part(learner, folder, credentials, record, welcome)
        head = Head(self._conversation.session, self._transport.party, self._plan.settings.digest())
        self._receipt.open(folder, head, credentials.sign if credentials is not None else None)
        try:
            return self._take_part(learner, folder, credentials, record, welcome)
        finally:
            self._receipt.stop(self._done)

    def _take_part(
        self, learner: Learner, folder: Path, credentials: Credentials | None, record: Path, welcome: Welcome
    ) -> bool:
        run = run_id(folder)
        known = self._members.bound_by(read_openings(record), run, self._plan.settings.seed)
        states = States(state_key(record))
        self._count.opened = frozenset(one.round for one in known if (one.run, one.purpose) == (run, "valid"))
        # Clients that were drawn have trained between two evaluations; others may not have been drawn.
        openings = Openings(
            known,
            self._note_opening,
            run,
            at_the_end=["test"],
            moving=["valid"],
            lineage_of=lambda round_id, purpose: lineage(self._plan, purpose, round_id, self._count.trained),
        )
        openings.identities = self._members.identities
        openings.computed = self._computed
        self._conversation.send(SERVER, Ready(), SETUP)
        self._context = self._open_session(learner, folder, states, credentials, openings)
        if (private := self._plan.private) is not None:
            terms = terms_of(run, private)
            self._context.releases = ReleaseRecord(state_key(record), folder, private.steps, terms)
            learner.entrust(self._context.releases)
        self._results = ResultExchange(self._context, self._count)
        self._keep_receipt()
        self._blocks = shared_blocks.join(self._context, welcome.aligned, run)
        if self._done:
            client_files.restore(self._context, self._results, self._count, welcome)
        return self._answer()

    def _note_opening(self, opening: Opening) -> None:
        self._opened.append(opening)
        if any(opening.purpose == block.purpose for block in self._plan.blocks):
            self._count.opening = int(opening.round)

    def _open_session(
        self,
        learner: Learner,
        folder: Path,
        states: States,
        credentials: Credentials | None,
        openings: Openings,
    ) -> ClientContext:
        """Keys with the other clients, where the settings need any, and the protocols that use them."""
        plan, config = self._plan, self._plan.settings
        keys: ClientKeys | None = None
        if plan.needs_keys:
            session = ClientSession(self._conversation, Deadline.after(plan.client_seconds))
            keys = twins.client_keys(config, plan.clients, credentials, openings, session)
        sums = {name: twins.sum_client(name, keys) for name in plan.aggregations}
        holders = twins.holder_client(plan.counted_by, keys)
        return ClientContext(plan, self._conversation, learner, folder, states, keys, holders, sums)

    def _answer(self) -> bool:
        """Answer the server's requests until it says goodbye. Whether all clients are there."""
        while True:
            self._keep_receipt()
            try:
                deadline = self._context.deadline()
                round_id, message = self._conversation.receive_any(SERVER, self._done, deadline)
                if isinstance(message, Goodbye):
                    self._keep_receipt(final=True)
                    return message.complete
                self._handle(round_id, message)
            except LeftOut:
                self._blocks.excuse_all()
                if self._context.keys is not None:
                    self._context.keys.vectors.forget_ahead()
                self._conversation.send(SERVER, Back(), self._done)
            except SumAbandoned:  # the server has said why; what this client trained stays its own
                for purpose in self._conversation.abandoned(self._done):  # sums of a round end together
                    self._blocks.excuse(self._done, purpose)

    def _handle(self, round_id: RoundId, message: wire.Message) -> None:
        rounds, blocks = self._plan.settings.rounds, self._blocks
        match message:
            case CountHolders() if blocks.any and max(self._done, self._counting) < round_id <= rounds:
                self._counting = round_id
            case TrainRound() if self._done < round_id <= rounds:
                blocks.require_news()
                self._train(round_id)
            case SharedRows() | SharedBlock() | PackedRows() | SumTotal() | LentTable() if blocks.any:
                with self._context.watch.measure("take"):
                    blocks.take(round_id, message)
            case LendTable() if blocks.any:
                blocks.lend(round_id, PartyId(message.to))
            case Evaluate() if self._plan.evaluation_due(round_id):
                blocks.require_news()
                self._done = round_id  # a client that was not drawn hears of the round only here
                self._results.evaluate(round_id)
            case Verdict() if self._count.judge(round_id):
                self._results.take_verdict(round_id, message.improved)
            case SaveCheckpoint() if round_id <= rounds:
                self._done = round_id  # a client that was not drawn may hear of the round only here
                client_files.save(self._context, self._results, self._count, round_id)
                self._conversation.send(SERVER, Saved(), round_id)
            case Abandon() if self._count.abandoned(round_id, message.purpose):
                blocks.excuse(round_id, message.purpose)  # of a sum to which this client has contributed already
                if message.purpose not in RESULTS and not self._plan.masks_sums:
                    self._results.in_vain(round_id)
            case Finish() if self._done < round_id and self._may_end(round_id) and self._count.finish(round_id):
                self._finish(round_id, message)
            case _:
                raise UnexpectedMessage(
                    f"the server sent {type(message).__name__} of round {round_id} after round {self._done}"
                )

    def _may_end(self, round_id: RoundId) -> bool:
        """Whether training may be over before this round. A client that is sent home early is in no later sum."""
        resumed = self._welcome is not None and self._welcome.rounds_done > 0
        return self._results.judge.may_end(round_id - 1, resumed=resumed)

    def _keep_receipt(self, *, final: bool = False) -> None:
        if self._receipt is not None:
            self._receipt.keep(self._done, final=final)

    def _train(self, round_id: RoundId) -> None:
        """Local epochs, then the shared blocks into their sums. In the first round there are no epochs: its sums make
        the first rows common to all (`first_rows`).
        """
        if self._transport.party not in self._plan.participants(round_id):
            raise PeerMisbehaved(f"the server asks for round {round_id}, for which this client is not drawn")
        self._done = round_id
        if not self._blocks.any:
            self._train_locally(round_id)
            self._results.added(round_id)
            return
        if self._in_vain >= MOST_IN_VAIN + 2 * self._plan.settings.checkpoint_every:
            raise PeerMisbehaved(f"this client has trained for {self._in_vain} sums in a row that were abandoned")
        self._in_vain += 1
        self._count.begin(round_id)
        self._blocks.prepare(round_id, counting=self._counting == round_id)
        if self._plan.trains(round_id):
            self._train_locally(round_id)
        self._count.trained = round_id
        self._blocks.contribute(round_id, self._results.added)
        self._blocks.advertise(round_id)
        self._in_vain = 0

    def _train_locally(self, round_id: RoundId) -> None:
        with self._context.watch.measure("train"):
            stats = self._context.learner.train(round_id)
        self._results.note_training(stats)
        self._count.trained = round_id

    def _finish(self, round_id: RoundId, asked: Finish) -> None:
        self._done = round_id
        if self._results.best:
            self._context.learner.load_parameters(self._results.best)
        metrics = self._results.measure("test")
        with contextlib.suppress(SumAbandoned):  # the model and this client's own result are written all the same
            if asked.wanted and self._plan.tells_test_results:
                self._results.sum_test(round_id, asked.best_round, metrics)
        client_files.write_result(self._context, self._count, metrics)
        self._conversation.send(SERVER, Done(), round_id)
