"""Uploads of a client under this toolkit's secret aggregation, for attacks to try themselves on.

The very objects of a real session (`SecAggSession`, `SecAggServer`, `secret_aggregation.mask_key`) with two clients,
one sum per round, in one thread and without a network. The second client contributes zeros, which helps the least.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.session.channels import setup_transcript
from protocols.session.group_key import GroupKey
from protocols.session.messages import ChannelDirectory
from protocols.sums.interface import SumLayout
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import SecAggServer, Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secagg.vectors import parameters_for
from protocols.sums.secret.aggregation import mask_key
from protocols.sums.terms import SumTerms, VectorLayout

_PARTIES: Final = (PartyId(1), PartyId(2))
_MODEL: Final = ThreatModel(0.0, 0.0)
_PURPOSE: Final = "rows"
_KEY_BYTES: Final = 32

Vector = npt.NDArray[Any]
"""Ring elements [entries]."""


def secret_uploads(vectors: Sequence[Vector], layout: SumLayout, client: PartyId = _PARTIES[0]) -> list[Vector]:
    """The masked uploads of `client` in consecutive rounds, when its inputs are `vectors`."""
    session = new_session()
    clients = {party: SecAggSession(party, _PARTIES, session) for party in _PARTIES}
    channel_keys = {party: one.start().channel_key for party, one in clients.items()}
    directory = ChannelDirectory({int(p): key for p, key in channel_keys.items()}, {int(p): b"" for p in channel_keys})
    for one in clients.values():
        one.receive(directory)
    key = GroupKey(secrets.token_bytes(_KEY_BYTES), session, bytes(_KEY_BYTES))
    transcript = setup_transcript(session, channel_keys)
    parameters = parameters_for(len(_PARTIES), len(_PARTIES), _MODEL, len(_PARTIES))
    uploads = []
    for number, vector in enumerate(vectors, start=1):
        terms = SumTerms(RoundId(number), _PURPOSE, _PARTIES, VectorLayout(layout.group, len(vector)))
        bound = BoundTerms(session, transcript, parameters, terms)
        inputs = {party: vector.copy() if party == client else np.zeros_like(vector) for party in _PARTIES}
        uploads.append(_one_sum(clients, bound, key, inputs)[client])
    return uploads


def _one_sum(
    sessions: Mapping[PartyId, SecAggSession],
    terms: BoundTerms,
    key: GroupKey,
    inputs: Mapping[PartyId, Vector],
) -> dict[PartyId, Vector]:
    """Up to the step in which the server has everybody's masked input; these."""
    parts = {party: session.begin(terms.sum, terms.parameters) for party, session in sessions.items()}
    server = SecAggServer(terms, frozenset(_PARTIES), signed=False)
    answers: dict[PartyId, wire.Message | None] = {party: part.start() for party, part in parts.items()}
    while server.step in (Step.ADVERTISE_KEYS, Step.SHARE_KEYS):
        for party, answer in answers.items():
            if answer is None:
                raise AssertionError(f"client {party} has nothing to say in step '{server.step.value}'")
            server.receive(party, answer)
        answers = {party: parts[party].receive(message) for party, message in server.close().items()}
    masks = {party: mask_key(key, terms.sum, party) for party in parts}
    return {party: part.set_input(inputs[party], [masks[party]]).vector for party, part in parts.items()}
