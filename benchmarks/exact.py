"""What exact answers over stored facts cost: `python -m benchmarks.exact --help`.

Clients are threads of one process. Each has, of every atom, a random share --held of --entities positions; the atoms
are intersected, and the answer is compared with that of the plain twin (`protocols.exact.circuit`). Whatever a formula
says, it costs the same: what counts is the number of atoms.

    seconds     of one answer by the clock, after the keys of the session; processor seconds are those of all parties
    bytes       sent and received by one client, keys aside
    exchanges   messages that a client sends, one after the other
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from launch.command_line import OneLineParser, deliver, require_json, run_command
from protocols.exact.circuit import Sets, in_clear
from protocols.exact.client import ExactClient
from protocols.exact.formula import ATOM, BOTH, Formula
from protocols.exact.server import ExactServer
from protocols.exact.terms import exact_terms
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, RoundId, SessionId, new_session
from protocols.scores import batches
from protocols.scores.batches import ATTEMPTS
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.foundation.console import table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

_MODEL = ThreatModel(corrupt=0.0, dropout=0.0)
_SECONDS = 600.0
_ASKER = PartyId(1)
_ATOMS = b"atoms"
"""Nobody reads them: everybody has its sets already."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.exact",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.exact --atoms 1 2 3 --clients 3 10",
        allow_abbrev=False,
    )
    parser.add_argument("--entities", type=int, default=15_000, metavar="N", help="positions of the union [15000]")
    parser.add_argument("--clients", type=int, nargs="+", default=[3], metavar="N", help="[3]")
    parser.add_argument("--atoms", type=int, nargs="+", default=[2], metavar="K", help="[2]")
    parser.add_argument("--held", type=float, default=0.01, metavar="SHARE", help="of the positions, by each [0.01]")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="answers, of which medians are taken [5]")
    parser.add_argument("--seed", type=int, default=0, help="of the sets [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.repeat < 1 or options.seed < 0 or not 0 <= options.held <= 1:
        raise UserError("--repeat must be at least 1, --seed at least 0, --held from 0 to 1")
    require_json(options.json)
    tried = [_measured(options, clients, atoms) for clients in options.clients for atoms in options.atoms]
    report = {"entities": options.entities, "held": options.held, "repeat": options.repeat, "answers": tried}
    deliver(report, options.json, _show)
    return 0


@dataclass
class _Measuring:
    """One session: its batches, everybody's sets, and what was measured of each batch."""

    terms: list[ScoreTerms]
    sets: dict[PartyId, Sets] = field(repr=False)
    formula: Formula
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    bytes: dict[PartyId, int] = field(default_factory=dict)

    def serve(self, session: SessionId) -> Callable[[Transport], None]:
        def run(transport: Transport) -> None:
            parties = self.terms[0].clients
            conversation = Conversation(transport, session)
            serving = ServerSession(conversation, set(parties), Patience.fixed(_SECONDS), lambda who, step: None)
            ServerKeys.agree(serving, VectorServer(len(parties), _MODEL))
            for terms in self.terms:
                batches.serve(ExactServer(), serving, terms)

        return run

    def take_part(self, session: SessionId) -> Callable[[Transport], None]:
        def run(transport: Transport) -> None:
            conversation = Conversation(transport, session)
            here = ClientSession(conversation, Deadline.after(_SECONDS))
            vectors = VectorClient(self.terms[0].clients, _MODEL)
            ClientKeys.agree(here, vectors)
            before = _traffic(transport)
            for terms in self.terms:
                self._one(ExactClient(vectors), here, terms)
            self.bytes[transport.party] = (_traffic(transport) - before) // len(self.terms)

        return run

    def _one(self, client: ExactClient, here: ClientSession, terms: ScoreTerms) -> None:
        own = self.sets[here.party]
        if here.party != terms.asker:
            client.answer(here, terms, lambda atoms: own)
            return
        started, worked = time.perf_counter(), time.process_time()
        found = client.ask(here, terms, self.formula, _ATOMS, own)
        self.seconds.append(time.perf_counter() - started)
        self.processor.append(time.process_time() - worked)
        if found.tolist() != np.flatnonzero(in_clear(self.formula, list(self.sets.values()))).tolist():
            raise AssertionError("another answer than that of the plain twin")


def _traffic(transport: Transport) -> int:
    return transport.traffic.total("sent").bytes + transport.traffic.total("received").bytes


def _measured(options: argparse.Namespace, clients: int, atoms: int) -> dict[str, Any]:
    parties = tuple(PartyId(number) for number in range(1, clients + 1))
    try:
        terms = [
            exact_terms(RoundId(1 + ATTEMPTS * number), parties, _ASKER, options.entities, atoms, b"")
            for number in range(options.repeat)
        ]
    except ValueError as problem:
        raise UserError(f"--clients {clients} --atoms {atoms} --entities {options.entities}: {problem}") from None
    rng = generator(options.seed, "stored facts")
    sets = {party: rng.random((atoms, options.entities)) < options.held for party in parties}
    measuring = _Measuring(terms, sets, Formula((ATOM, *(ATOM, BOTH) * (atoms - 1))))
    session = new_session()
    ended = run_in_process(measuring.serve(session), dict.fromkeys(parties, measuring.take_part(session)))
    ended.server.result()
    for one in ended.clients.values():
        one.result()
    return {
        "clients": clients,
        "atoms": atoms,
        "seconds": statistics.median(measuring.seconds),
        "processor_seconds": statistics.median(measuring.processor),
        "asker_bytes": measuring.bytes[_ASKER],
        "client_bytes": max(size for party, size in measuring.bytes.items() if party != _ASKER),
        "exchanges": (clients - 1).bit_length() + atoms,
    }


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            one["clients"],
            one["atoms"],
            f"{one['seconds']:.4f}",
            f"{one['processor_seconds']:.4f}",
            f"{one['asker_bytes']:,}",
            f"{one['client_bytes']:,}",
            one["exchanges"],
        ]
        for one in report["answers"]
    ]
    head = ("clients", "atoms", "seconds", "processor seconds", "bytes of the asker", "of another client", "exchanges")
    table(f"exact answers over {report['entities']:,} positions", head, rows)


if __name__ == "__main__":
    sys.exit(main())
