"""Backends refuse declarations that they do not stand against, whoever makes their clients."""

import dataclasses

import pytest

from protocols.registry import SCORES
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.params import ParametersRefused, ThreatModel
from protocols.sums.secagg.vectors import VectorClient
from tests.support.in_threads import SESSION
from tests.support.sum_conversations import credentials, everyone

CLIENTS = everyone(4)
SEMI_HONEST, ACTIVE, CORRUPT = ThreatModel(0.0, 0.0), ThreatModel(0.0, 0.0, "active"), ThreatModel(0.25, 0.0)
KEYED = [name for name, backend in SCORES.items() if backend.needs_keys]


def keys(model: ThreatModel) -> ClientKeys:
    own = credentials(CLIENTS[0]) if model.server == "active" else None
    return ClientKeys(VectorClient(CLIENTS, model, credentials=own), GroupKey(bytes(32), SESSION, bytes(32)))


def test_masked_alone_stands_against_an_active_server() -> None:
    assert [name for name in KEYED if SCORES[name].stands_against_active] == ["masked"]
    SCORES["masked"].client(keys(ACTIVE), None)
    for name in KEYED:
        if name != "masked":
            with pytest.raises(ParametersRefused, match=f"--scores {name} does not stand against --adversary active"):
                SCORES[name].client(keys(ACTIVE), None)


def test_what_the_server_reads_with_a_client_wants_to_be_said() -> None:
    both = {name for name in KEYED if SCORES[name].reads_all_with_a_client}
    assert both == {"topk", "crypten"}
    for name in both:
        with pytest.raises(ParametersRefused, match="say --no-collusion"):
            SCORES[name].client(keys(CORRUPT), None)
        SCORES[name].require_standing(dataclasses.replace(CORRUPT, server_apart=True))
        SCORES[name].require_standing(SEMI_HONEST)
    for name in set(KEYED) - both:
        SCORES[name].require_standing(CORRUPT)
    SCORES["topk"].client(keys(dataclasses.replace(CORRUPT, server_apart=True)), None)
