"""Transcripts and whole run folders of insecure variants, for an audit to find fault with.

`insecure_transcript` holds one session of the broken protocol, `insecure_run` trains a small federation with it; both
in this process, with the parties as threads. With variant None the real protocols are used: what an audit must pass.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.insecure_variants import insecure
from protocols.foundation import wire
from protocols.foundation.errors import LeftOut
from protocols.foundation.identifiers import NO_SESSION, SERVER, SETUP, PartyId, RoundId, new_session
from protocols.foundation.wire import Frame
from protocols.ideal.real_sessions import Session
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from protocols.transport.in_threads import Ended, run_in_process
from protocols.transport.tap import Tap
from secure_kg.audit.indistinguishability.experiments import masked_sums, plain_sums, union
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.plan.messages import Hello, Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise

_NO_DIGEST: Final = bytes(32)
_JOIN_SECONDS: Final = 600.0
SMALL: Final = TrainingConfig(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=0.01)


def insecure_transcript(variant: str | None, path: Path, *, seed: int = 0) -> None:
    """One session of the protocol that `variant` breaks, as the server's tap records it.

    It begins with greetings, as the transcript of a run does, so that `secure_kg.audit.view.read.Recording` reads it.
    """
    session = _session_of(variant, seed)
    identifier, tap = new_session(), Tap(path)
    for party in session.parties.clients:
        tap.write("received", party, SETUP, "greeting", wire.encode(Hello(_NO_DIGEST), NO_SESSION, SETUP))
        welcome = Welcome(identifier, _NO_DIGEST, 0, [], b"", path.stem)
        tap.write("sent", party, SETUP, "greeting", wire.encode(welcome, NO_SESSION, SETUP))
    with insecure(variant) if variant is not None else nullcontext():
        session.parties.record(tap, session.serve, session.take_part, session.falls, identifier)


def _session_of(variant: str | None, seed: int) -> Session:
    match variant:
        case "plain-twin":
            return plain_sums(seed).session
        case "unit-weights":
            return union(seed).session
        case _:
            return masked_sums(seed).session


def insecure_config(variant: str | None, **changes: Any) -> RunConfig:
    """Of a small federation on Nations with a transcript; any setting can be changed."""
    plain = {"aggregation": "plain", "alignment": "plain"} if variant == "plain-twin" else {}
    settings = {"dataset": "nations", "clients": 4, "rounds": 3, "eval_every": 3, "checkpoint_every": 3, **plain}
    return RunConfig(**{**settings, "transcript": True, "training": SMALL, **changes})


def insecure_run(variant: str | None, path: Path, *, vanish: tuple[int, int] | None = None, **changes: Any) -> Summary:
    """Train the federation of `insecure_config` into the run folder `path`; its summary, which is written there too.

    `vanish`: client and round in which it drops out for good, once it has shared its keys: its mask keys are then
    opened. Unless it is given, the last client of "short-mask-keys" does so in round 2, for nothing else shows these.
    """
    config = insecure_config(variant, **changes)
    if vanish is None and variant == "short-mask-keys":
        vanish = config.clients or 0, 2
    if vanish is not None and "grace" not in changes:
        config = replace(config, grace=5.0)
    with insecure(variant) if variant is not None else nullcontext():
        return _train(config, path, vanish)


class _Vanished(Exception):
    """A client is gone without a word, as if killed."""


class _VanishingTransport(InProcessTransport):
    """Its party is gone in place of its first masked input of a round."""

    def __init__(self, network: InProcessNetwork, party: PartyId, round_id: int) -> None:
        super().__init__(network, party, [SERVER])
        self._last = RoundId(round_id)

    def _post(self, to: PartyId, frame: Frame) -> None:
        if self._round == self._last and self._phase.startswith("masked input/"):
            raise _Vanished
        super()._post(to, frame)


def _train(config: RunConfig, path: Path, vanish: tuple[int, int] | None) -> Summary:
    """A whole run in one process: the real server, clients and trainers as threads. Raises what the parties raise."""
    torch.set_num_threads(1)
    graphs = partition(load_source(config.dataset), config.clients or 0, config.by, config.seed)
    folder = RunFolder.create(path, config)

    def serve(transport: Transport) -> Summary:
        outcome = FederationServer(config, transport, folder, lambda line: None).run()
        return summarise(config, outcome, folder)

    def take_part(transport: Transport) -> None:
        number, client = transport.party, FederationClient(config, transport, len(graphs))
        try:
            client.greet()
            trainer = KgeLearner(graphs[number - 1], config.training, torch.device("cpu"), config.seed, number)
            client.run(trainer, folder.client(number))
        except (_Vanished, LeftOut):
            return
        except Exception as problem:
            client.say_failed(str(problem))
            raise

    def endpoint(network: InProcessNetwork, party: PartyId) -> Transport:
        if vanish is not None and vanish[0] == party:
            return _VanishingTransport(network, party, vanish[1])
        return network.endpoint(party)

    parts = {PartyId(number): take_part for number in range(1, len(graphs) + 1)}
    ended = run_in_process(serve, parts, endpoint=endpoint, seconds=_JOIN_SECONDS)
    everybody: list[Ended[Any]] = [ended.server, *ended.clients.values()]
    problems = [TimeoutError("a party hangs") if one.hangs else one.error for one in everybody]
    if any(problems):
        raise BaseExceptionGroup("parties failed", [problem for problem in problems if problem is not None])
    summary = ended.server.result()
    folder.write_summary(summary)
    return summary
