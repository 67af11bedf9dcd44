"""Greeting: a session is opened with every client that is there, on the same settings and from the same checkpoint."""

from collections.abc import Collection

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.session.patience import Patience
from secure_kg.federation.plan.messages import Hello, Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.session_record import SessionRecord
from secure_kg.foundation.errors import UserError
from secure_kg.runs.alignment_files import AlignedRun
from secure_kg.runs.checkpoint import Complete


def greet(
    people: Gathering,
    record: SessionRecord,
    config: RunConfig,
    last: tuple[Complete, AlignedRun | None],
    patience: Patience,
) -> None:
    """Open a session; settings that differ between parties end the job before it starts. `last`: where it goes on."""
    (complete, aligned), digest = last, config.digest()
    session = record.begin(people.transport)
    people.begin_without(people.regrouping.absent)
    people.regrouping.begin(people.present, complete.round)
    people.regrouping.aligning = people.aligns and aligned is None
    hellos = people.gather(Hello, "greeting", patience)
    union = aligned.union.digest if aligned is not None else b""
    welcome = Welcome(session, digest, complete.round, list(complete.saved_by), union, record.run_name)
    people.tell(hellos, welcome)
    people.open_session(session, welcome.binding)
    if odd := [party for party in sorted(hellos) if hellos[party].digest != digest]:
        _without(people, odd)
    if aligned is not None:
        people.regrouping.aligned_with(aligned.clients)
        if strangers := people.present - set(aligned.clients):
            people.dropout(strangers, "alignment")  # not there when the run began, so its rows have no place


def _without(people: Gathering, odd: Collection[PartyId]) -> None:
    """Clients with other settings end a job that one person has started; between organisations they are dropouts."""
    for party in odd:
        problem = f"client {party} was started with other settings than the server"
        if not people.regrouping.lasting:
            raise UserError(problem)
        people.conversation.bear(party, PeerMisbehaved(problem, party))
    people.dropout(odd, "greeting")
